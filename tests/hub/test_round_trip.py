"""Pushed to a Hub and loaded from it: the same bytes, the same numbers, and nothing that nobody asked for."""

import copy
import json
import logging
import runpy
from pathlib import Path

import pytest
import torch
from huggingface_hub import HfApi, hf_hub_download
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled
from loopback import TOKEN, assert_nothing_private
from transformers import (
    AutoConfig,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    BertModel,
    pipeline,
)

from hf_vat import (
    BertVMaskConfig,
    BertWithVMask,
    EncoderForVATClassification,
    EncoderVATConfig,
    VATTrainer,
    VATTrainingArguments,
    WordEncoderConfig,
    explain,
    fit_amortized,
    metrics,
)
from hf_vat.amortized import attach_explainer
from hf_vat.data import DataArguments
from hf_vat.errors import InputError
from hf_vat.training import ModelArguments, modules_to_save, train_classifier

REPO = "reader/tiny"
TASK = "text-classification-explained"
TEXTS = ["good film", "Unbelievable, a dull plot!", "the actor is very good and the scene is bad"]
ROWS = "text,label\n" + "good film,pos\nbad film,neg\n" * 8
SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
TWO_STEPS = {
    "max_steps": 2,
    "per_device_train_batch_size": 4,
    "report_to": "none",
    "use_cpu": True,
    "disable_tqdm": True,
}
PICKLES = (".bin", ".pt", ".pth", ".pkl", ".pickle", ".ckpt")


@pytest.fixture
def tokenizer(tokenizer):
    return copy.deepcopy(tokenizer)


@pytest.fixture
def model(make_model):
    return make_model("vat")


@pytest.fixture
def pushed(online, model, tokenizer):
    push(model, tokenizer)
    return model


@pytest.fixture
def models(make_model, tokenizer):
    """A model of each class, and one that explains nothing, by the repositories that they shall be in."""
    mask = BertVMaskConfig(vocab_size=len(tokenizer), pooling="attention", initializer_range=0.2, **SIZES)
    words = WordEncoderConfig(vocab_size=len(tokenizer), embedding_size=8, hidden_size=8, encoder_type="lstm")
    encoder = EncoderVATConfig(encoder=words, prefix_tokens=1, suffix_tokens=1, initializer_range=0.5)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return {
            "reader/vat": make_model("vat"),
            "reader/base": make_model("base"),
            "reader/mask": BertWithVMask(mask).eval(),
            "reader/words": EncoderForVATClassification(encoder).eval(),
        }


@pytest.fixture
def make_trainer(make_model, make_dataset, tokenizer, tmp_path):
    def make(**settings) -> VATTrainer:
        args = VATTrainingArguments(str(tmp_path / "a run" / "tiny"), **TWO_STEPS | {"save_strategy": "no"} | settings)
        data = make_dataset(8).remove_columns("text")
        return VATTrainer(make_model("vat"), args, train_dataset=data, processing_class=tokenizer)

    return make


@pytest.fixture
def local_model(model, tokenizer, tmp_path):
    folder = tmp_path / "some where" / "base"
    saved(model, tokenizer, folder=folder)
    return folder


@pytest.fixture
def csv_files(tmp_path):
    files = {f"{split}_file": str(tmp_path / f"{split}.csv") for split in ("train", "test")}
    for file in files.values():
        Path(file).write_text(ROWS, "utf-8")
    return files


@pytest.fixture
def local_run(local_model, csv_files, tmp_path):
    """A training run whose base model and data are local files."""

    def run(**settings) -> VATTrainer:
        args = VATTrainingArguments(str(tmp_path / "out"), **TWO_STEPS | {"save_strategy": "steps"} | settings)
        return train_classifier(ModelArguments(str(local_model), max_length=16), DataArguments(**csv_files), args)

    return run


def outputs(model, tokenizer) -> list[torch.Tensor]:
    """Logits, and the attention and the mask on tokens where there are any."""
    model.eval()
    with torch.no_grad():
        output = model(**tokenizer(TEXTS, padding=True, return_tensors="pt"))
    return [value for value in (output.logits, output.token_importance, output.token_mask) if value is not None]


def push(model, tokenizer, repo: str = REPO, **settings) -> None:
    model.push_to_hub(repo, **settings)
    tokenizer.push_to_hub(repo, **settings)


def load(repo: str = REPO, **settings):
    """What a user with hf_vat gets: no remote code is trusted, none is needed."""
    found = AutoModelForSequenceClassification.from_pretrained(repo, **settings)
    return found, AutoTokenizer.from_pretrained(repo, **settings)


def same(found: list[torch.Tensor], expected: list[torch.Tensor]) -> bool:
    return len(found) == len(expected) and all(
        torch.allclose(ours, theirs, rtol=0, atol=1e-6) for ours, theirs in zip(found, expected, strict=True)
    )


def saved(*objects, folder: Path) -> dict[str, bytes]:
    for one in objects:
        one.save_pretrained(folder)
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# What is sent


def test_a_push_sends_what_is_saved_byte_for_byte(online, model, tokenizer, tmp_path):
    expected = saved(model, tokenizer, folder=tmp_path / "saved")
    push(model, tokenizer, commit_message="As saved", commit_description="All of it")
    files = online.files(REPO)
    assert files.pop("README.md").startswith(b"---")
    assert files == expected

    # The weights went as one file of LFS, all else within the commits.
    weights = expected["model.safetensors"]
    assert [request.body for request in online.sent("PUT", "/lfs/")] == [weights]
    commits = online.sent("POST", f"/api/models/{REPO}/commit/main")
    lines = [[json.loads(line) for line in request.body.splitlines()] for request in commits]
    assert [line[0]["value"]["summary"] for line in lines] == ["As saved"] * 2
    assert [line[0]["value"]["description"] for line in lines] == ["All of it"] * 2
    assert [item["value"]["path"] for line in lines for item in line if item["key"] == "lfsFile"] == [
        "model.safetensors"
    ]
    assert not any(weights[:200] in request.body for request in commits)


def test_only_safetensors_are_pushed(online, models, tokenizer):
    for repo, model in models.items():
        push(model, tokenizer, repo)
        files = online.files(repo)
        assert [name for name, data in files.items() if b"\0" in data] == ["model.safetensors"]
        assert not any(name.endswith(PICKLES) for name in files)


def test_the_token_goes_to_the_hub_alone(online, model, tokenizer):
    push(model, tokenizer, private=True)
    load()
    elsewhere = [request for request in online.requests if request.headers["host"].startswith("localhost")]
    assert {request.path.split("/")[1] for request in elsewhere} == {"lfs", "cdn"}
    assert not any("authorization" in request.headers for request in elsewhere)
    assert not any(TOKEN in json.dumps([request.path, request.query]) for request in online.requests)


# What comes back


def test_c75_with_hf_vat_the_repository_loads_without_remote_code(online, models, tokenizer):
    for repo, model in models.items():
        push(model, tokenizer, repo)
        loaded, its_tokenizer = load(repo)
        assert type(loaded) is type(model) and loaded.config.name_or_path == repo
        assert same(outputs(loaded, its_tokenizer), outputs(model, tokenizer))
        assert not online.sent("GET", ".py") and not online.sent("HEAD", ".py")


def test_c75_c76_without_hf_vat_the_repository_gives_the_same(online, run_python, models, tokenizer):
    del models["reader/base"]
    for repo, model in models.items():
        model.config.id2label = {0: "neg", 1: "pos"}
        push(model, tokenizer, repo)
    found = run_python(
        """
sys.modules["hf_vat"] = None  # makes "import hf_vat" fail
import torch
from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline
repos, texts, task = arguments
result = {}
for repo in repos:
    for load in (AutoModelForSequenceClassification.from_pretrained, pipeline):
        try:
            load(**({"model": repo} if load is pipeline else {"pretrained_model_name_or_path": repo}))
            raise SystemExit("loaded without trust_remote_code")
        except ValueError as error:
            assert "trust_remote_code" in str(error), error
    model = AutoModelForSequenceClassification.from_pretrained(repo, trust_remote_code=True)
    tokenizer = AutoTokenizer.from_pretrained(repo, trust_remote_code=True)
    with torch.no_grad():
        output = model(**tokenizer(texts, padding=True, return_tensors="pt"))
    tensors = [value for value in (output.logits, output.token_importance, output.token_mask) if value is not None]
    explain = pipeline(task, model=repo, trust_remote_code=True)
    stock = pipeline("text-classification", model=repo, trust_remote_code=True)
    found = pipeline(model=repo, trust_remote_code=True)
    assert found.task == task and found(texts) == explain(texts)
    result[repo] = [[value.tolist() for value in tensors], explain(texts, batch_size=2), stock(texts)]
""",
        list(models),
        TEXTS,
        TASK,
    )
    for repo, model in models.items():
        tensors, explained, stock = found[repo]
        assert same([torch.tensor(values) for values in tensors], outputs(model, tokenizer))
        for ours, result, its_stock in zip(
            pipeline(TASK, model=model, tokenizer=tokenizer)(TEXTS, batch_size=2), explained, stock, strict=True
        ):
            assert result["label"] == ours["label"] == its_stock["label"]
            assert [result["score"], its_stock["score"]] == pytest.approx([ours["score"]] * 2, abs=1e-6)
            assert [word.pop("score") for word in result["words"]] == pytest.approx(
                [word.pop("score") for word in ours["words"]], abs=1e-6
            )
            assert result["words"] == ours["words"]


def test_c76_the_standard_pipeline_gives_the_model_s_probabilities(online, make_model, tokenizer, caplog):
    model = make_model("vat", num_labels=3, id2label={0: "neg", 1: "neutral", 2: "pos"})
    push(model, tokenizer)
    classify = pipeline("text-classification", model=REPO)
    long = " ".join(["good"] * 200)
    for text in (*TEXTS, long):
        encoded = tokenizer([text], truncation=True, max_length=32, return_tensors="pt")
        with torch.no_grad():
            probabilities = model.eval()(**encoded).logits[0].softmax(-1).tolist()
        expected = dict(zip(("neg", "neutral", "pos"), probabilities, strict=True))
        results = classify(text, top_k=None, truncation=True, max_length=32)
        assert {result["label"]: result["score"] for result in results} == pytest.approx(expected, abs=1e-6)
    assert "not supported" not in caplog.text


def test_a_pull_request_leaves_main_as_it_is(online, pushed, make_model, tokenizer):
    second = make_model("att")
    before = online.files(REPO)
    answer = second.push_to_hub(REPO, create_pr=True, commit_message="Attention alone")
    assert answer.pr_revision == "refs/pr/1" and answer.pr_url.endswith(f"{REPO}/discussions/1")
    assert online.files(REPO) == before
    assert online.repos[f"models/{REPO}"].at("refs/pr/1").message == "Attention alone"
    assert same(outputs(load()[0], tokenizer), outputs(pushed, tokenizer))
    assert same(outputs(load(revision="refs/pr/1")[0], tokenizer), outputs(second, tokenizer))


def test_a_revision_is_a_branch_or_a_commit(online, pushed, make_model, tokenizer):
    second = make_model("att")
    commit = online.repos[f"models/{REPO}"].at().sha
    push(second, tokenizer, revision="attention")
    assert [branch.name for branch in HfApi().list_repo_refs(REPO).branches] == ["main", "attention"]
    second.push_to_hub(REPO)  # main moves on; the commit stays
    assert same(outputs(load(revision=commit)[0], tokenizer), outputs(pushed, tokenizer))
    for revision in ("main", "attention"):
        assert same(outputs(load(revision=revision)[0], tokenizer), outputs(second, tokenizer))
    with pytest.raises(OSError, match="never-pushed"):
        AutoConfig.from_pretrained(REPO, revision="never-pushed")


def test_what_did_not_change_is_not_sent_again(online, pushed, tokenizer):
    sent = len(online.sent("PUT", "/lfs/"))
    commits = len(online.repos[f"models/{REPO}"].commits)
    push(pushed, tokenizer)
    assert len(online.sent("PUT", "/lfs/")) == sent
    assert len(online.repos[f"models/{REPO}"].commits) == commits


def test_a_private_repository_opens_with_a_token_alone(online, model, tokenizer, monkeypatch, tmp_path):
    push(model, tokenizer, private=True)
    assert HfApi().model_info(REPO).private
    assert same(outputs(*load()), outputs(model, tokenizer))
    monkeypatch.delenv("HF_TOKEN")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "another cache"))
    with pytest.raises(OSError, match=REPO):
        load()
    assert same(outputs(*load(token=TOKEN)), outputs(model, tokenizer))


# Large files and bad connections


def test_a_large_file_goes_in_parts_and_one_part_again(online, model, tokenizer, tmp_path):
    weights = saved(model, folder=tmp_path / "saved")["model.safetensors"]
    online.part_size = 4096
    assert len(weights) > 3 * online.part_size
    online.cut("PUT", "/3", after=1000)
    push(model, tokenizer)
    cut, *parts = sorted(online.sent("PUT", "/lfs/"), key=lambda request: request.status)
    assert cut.status == 0 and cut.path.endswith("/3") and len(cut.body) == 1000
    parts.sort(key=lambda request: int(request.path.rsplit("/", 1)[1]))
    assert b"".join(request.body for request in parts) == weights == online.files(REPO)["model.safetensors"]
    assert {len(request.body) for request in parts[:-1]} == {4096}
    assert same(outputs(*load()), outputs(model, tokenizer))


def test_a_download_goes_on_where_it_was_cut(online, pushed, tokenizer, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 1000)  # 10 MB: what it keeps of a cut download
    online.cut("GET", "/cdn/", after=5500)
    assert same(outputs(*load()), outputs(pushed, tokenizer))
    cut, rest = online.sent("GET", "/cdn/")
    assert cut.status == 0 and "range" not in cut.headers
    assert rest.status == 206 and rest.headers["range"] == "bytes=5000-"


def test_an_upload_that_was_cut_is_sent_again(online, model, tokenizer):
    online.cut("PUT", "/lfs/", after=5000)
    push(model, tokenizer)
    cut, again = online.sent("PUT", "/lfs/")
    assert (cut.status, len(cut.body)) == (0, 5000) and again.body == online.files(REPO)["model.safetensors"]


def test_a_push_that_failed_is_repeated_without_sending_the_weights_again(online, model, tokenizer):
    online.cut("POST", "/commit/", after=0)
    with pytest.raises(Exception, match=r"disconnected|reset"):
        model.push_to_hub(REPO)
    assert online.files(REPO) == {}
    push(model, tokenizer)
    assert len(online.sent("PUT", "/lfs/")) == 1
    assert same(outputs(*load()), outputs(model, tokenizer))


# Metrics as Spaces


def test_metric_folders_are_spaces_that_evaluate_loads(online, run_python, monkeypatch, tmp_path):
    monkeypatch.setattr("evaluate.config.HF_METRICS_CACHE", str(tmp_path / "metrics"))
    asked = {}
    for name in metrics.NAMES:
        HfApi().create_repo(f"reader/{name}", repo_type="space", space_sdk="gradio")
        HfApi().upload_folder(repo_id=f"reader/{name}", repo_type="space", folder_path=metrics.path(name))
        folder = Path(metrics.path(name))
        expected = {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}
        assert online.files(f"reader/{name}", kind="spaces") == expected
        asked[name] = runpy.run_path(str(folder / "tests.py"))["test_cases"][0]
        del asked[name]["result"]
    found = run_python(
        """
import evaluate
result = {name: evaluate.load(f"reader/{name}").compute(**case) for name, case in arguments[0].items()}
""",
        asked,
        token=None,
        HF_UPDATE_DOWNLOAD_COUNTS="0",  # evaluate would report each load from the Hub to a server of Amazon
    )
    for name in metrics.NAMES:
        assert found[name] == json.loads(json.dumps(metrics.load(name).compute(**asked[name])))
        assert online.sent("GET", f"/spaces/reader/{name}/resolve/")


# Training


def test_c79_nothing_is_pushed_unless_asked(online, make_trainer):
    trainer = make_trainer(save_strategy="steps", save_steps=1)
    trainer.train()
    trainer.save_model()
    assert online.requests == []


def test_c79_trainer_pushes_what_a_user_needs_and_no_more(online, make_trainer, tokenizer):
    trainer = make_trainer(save_strategy="steps", save_steps=1, hub_token=TOKEN, hub_model_id=REPO)
    trainer.train()
    assert online.requests == []
    trainer.push_to_hub(commit_message="Two steps", private=True)
    assert online.repos[f"models/{REPO}"].private
    assert online.repos[f"models/{REPO}"].at().message == "Two steps"
    files = online.files(REPO)
    assert {"config.json", "model.safetensors", "tokenizer.json", "README.md", "modeling_vat.py"} <= set(files)
    assert not any(name.startswith("checkpoint-") or "optimizer" in name for name in files)
    assert same(outputs(*load()), outputs(trainer.model, tokenizer))


def test_f07_an_adapter_is_pushed_and_put_on_its_model_again(online, make_trainer, make_model, tokenizer, monkeypatch):
    from peft import LoraConfig, PeftModel, get_peft_model

    trainer = make_trainer(hub_token=TOKEN, hub_model_id=REPO)
    settings = LoraConfig(target_modules=["query", "value"], modules_to_save=modules_to_save(trainer.model))
    adapted = get_peft_model(make_model("vat"), settings)
    arguments = {"train_dataset": trainer.train_dataset, "processing_class": tokenizer}
    trainer = VATTrainer(adapted, trainer.args, **arguments)
    trainer.train()
    trainer.push_to_hub()
    files = set(online.files(REPO))
    assert {"adapter_config.json", "adapter_model.safetensors", "config.json", "tokenizer.json", "README.md"} <= files
    assert "model.safetensors" not in files and b"library_name: peft" in online.files(REPO)["README.md"]
    loaded = PeftModel.from_pretrained(make_model("vat"), REPO)
    loaded.config.predict_from = AutoConfig.from_pretrained(REPO).predict_from
    assert same(outputs(loaded, tokenizer), outputs(trainer.model, tokenizer))


def test_c79_trainer_pushes_no_pickles_no_data_and_no_token(online, make_trainer, tmp_path):
    trainer = make_trainer(hub_token=TOKEN, hub_model_id=REPO)
    trainer.train()
    folder = Path(trainer.args.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "train.csv").write_text(ROWS, "utf-8")
    (folder / "my.token").write_text(TOKEN, "utf-8")
    trainer.push_to_hub()
    assert not [name for name in online.files(REPO) if name.endswith((*PICKLES, ".csv", ".token"))]
    assert_nothing_private(online, str(tmp_path))


@pytest.mark.parametrize("during", [False, True])
def test_f58_a_push_sends_what_this_trainer_saved_and_no_other_file(online, make_trainer, during):
    settings = (
        {"save_strategy": "steps", "save_steps": 1, "push_to_hub": True, "hub_always_push": True} if during else {}
    )
    trainer = make_trainer(hub_token=TOKEN, hub_model_id=REPO, **settings)
    folder = Path(trainer.args.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    mine = [
        "secret.py",
        "tokenizer_notes.json",
        "vocab.bak",
        "old.model",
        "other.safetensors",
        "my.jinja",
        "merges.txt",
    ]
    mine += ["model.safetensors.index.json", "a[1].py", "adapter_config.json", "added_tokens.json"]
    for name in mine:
        (folder / name).write_text("private", "utf-8")
    trainer.train()
    trainer.push_to_hub()
    for commit in online.repos[f"models/{REPO}"].history():
        assert not set(mine) & set(commit.files), commit.message
    assert {"config.json", "model.safetensors", "tokenizer.json", "README.md", "modeling_vat.py"} <= set(
        online.files(REPO)
    )
    assert all((folder / name).is_file() for name in mine)


def test_c75_c79_each_push_during_training_is_complete_and_clean(online, make_trainer, tmp_path):
    trainer = make_trainer(
        save_strategy="steps",
        save_steps=1,
        push_to_hub=True,
        hub_strategy="every_save",
        hub_always_push=True,
        hub_model_id=REPO,
        hub_token=TOKEN,
    )
    trainer.train()
    trainer.push_to_hub()
    *_, initial = history = online.repos[f"models/{REPO}"].history()
    assert initial.message == "initial commit" and history[0].message == "End of training"
    assert "Training in progress, step 1" in [commit.message for commit in history]
    for commit in history[:-1]:
        assert not [name for name in commit.files if name.endswith(PICKLES)]
        code = json.loads(commit.files["config.json"].data)["auto_map"]
        assert {f"{name.partition('.')[0]}.py" for name in code.values()} <= set(commit.files)
    assert_nothing_private(online, str(tmp_path))


def test_c78_c79_a_run_on_local_files_keeps_their_paths_to_itself(online, local_run, tokenizer, tmp_path):
    # The path of the best checkpoint is in trainer_state.json, those of the data in run.json.
    trainer = local_run(eval_steps=1, eval_strategy="steps", save_steps=1, load_best_model_at_end=True)
    assert online.requests == []
    trainer.push_to_hub()
    assert same(outputs(*load("reader/out")), outputs(trainer.model, tokenizer))
    assert_nothing_private(online, str(tmp_path), "some where", "train.csv", "test.csv")


def test_c79_a_run_that_shall_be_pushed_is(online, local_run):
    trainer = local_run(push_to_hub=True, hub_model_id=REPO, hub_private_repo=True)
    repo, files = online.repos[f"models/{REPO}"], online.files(REPO)
    assert repo.private and repo.at().message == "End of training"
    for name in ("README.md", "config.json", "model.safetensors", "tokenizer.json"):
        assert files[name] == (Path(trainer.args.output_dir) / name).read_bytes()


def test_c79_a_run_that_cannot_be_pushed_says_what_to_do(online, local_run, monkeypatch, tmp_path):
    monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(InputError, match="token"):
        local_run(push_to_hub=True, hub_model_id=REPO)
    assert not (tmp_path / "out" / "run.json").exists()


def test_f47_a_push_that_is_cut_keeps_the_run_and_the_same_command_pushes_again(online, local_run, tmp_path):
    settings = {"push_to_hub": True, "hub_model_id": REPO, "hub_strategy": "end"}
    online.cut("POST", "/commit/", after=0)
    with pytest.raises(InputError, match=f"The push to {REPO} failed: .*--resume_from_checkpoint last pushes again"):
        local_run(**settings)
    files = {path: path.read_bytes() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert online.files(REPO) == {} and tmp_path / "out" / "model.safetensors" in files
    local_run(**settings, resume_from_checkpoint="last")
    assert online.files(REPO)["model.safetensors"] == files[tmp_path / "out" / "model.safetensors"]
    assert (tmp_path / "out" / "train_results.json").read_bytes() == files[tmp_path / "out" / "train_results.json"]
    assert not [name for name in online.files(REPO) if name.startswith(".hf_vat") or "manifest" in name]


@pytest.mark.parametrize("private", [None, True])
def test_c79_the_visibility_is_shown(online, make_trainer, caplog, private):
    with caplog.at_level(logging.INFO, "hf_vat"):
        make_trainer(hub_model_id=REPO).push_to_hub(private=private)
    assert online.repos[f"models/{REPO}"].private is bool(private)
    assert f"{REPO}, which is {'private' if private else 'public'}" in caplog.text


def test_c79_a_push_that_failed_during_training_is_told(online, make_trainer, caplog):
    trainer = make_trainer(save_strategy="steps", save_steps=1, push_to_hub=True, hub_model_id=REPO)
    online.cut("POST", "/commit/", after=0)
    trainer.train()
    trainer.push_to_hub()
    assert set(online.files(REPO)) >= {"config.json", "model.safetensors"}
    assert "push" in " ".join(record.getMessage() for record in caplog.records if record.name.startswith("hf_vat"))


@pytest.mark.parametrize("reason", ["no token", "offline"])
def test_c79_what_cannot_be_pushed_stops_at_the_start(online, make_trainer, make_model, tokenizer, monkeypatch, reason):
    errors = (HfHubHTTPError, OfflineModeIsEnabled, InputError)
    if reason == "offline":
        monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    else:
        monkeypatch.delenv("HF_TOKEN")
    with pytest.raises(errors):
        make_trainer(push_to_hub=True)
    trainer = make_trainer()
    trainer.train()
    with pytest.raises(errors):
        trainer.push_to_hub()
    trainer.save_model()
    assert same(outputs(*load(trainer.args.output_dir)), outputs(trainer.model, tokenizer))
    with pytest.raises(errors):
        make_model().push_to_hub(REPO)
    assert online.repos == {} and not online.sent("PUT", "/")


def test_c78_a_local_base_model_stays_private(online, local_model, tmp_path):
    push(*load(str(local_model)))
    pipeline(TASK, model=str(local_model), trust_remote_code=True).push_to_hub("reader/pipeline")
    assert_nothing_private(online, str(tmp_path), "some where")


def test_c78_a_local_encoder_stays_private(online, tokenizer, tmp_path):
    base = tmp_path / "some where" / "base"
    saved(BertModel(BertConfig(vocab_size=len(tokenizer), **SIZES)), tokenizer, folder=base)
    push(EncoderForVATClassification.from_encoder_pretrained(str(base)), AutoTokenizer.from_pretrained(str(base)))
    assert_nothing_private(online, str(tmp_path), "some where")


def test_c79_training_explaining_and_loading_folders_send_nothing(hub, run_python, local_model, csv_files, tmp_path):
    words, files = run_python(
        """
import hf_vat
from hf_vat.commands import main
from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline
folder, files, out = arguments
model = AutoModelForSequenceClassification.from_pretrained(folder)
tokenizer = AutoTokenizer.from_pretrained(folder)
words = [explanation.words for explanation in hf_vat.explain(model, tokenizer, ["good film"])]
pipeline("text-classification-explained", model=folder, trust_remote_code=True)("good film")
hf_vat.metrics.load("aopc")
sys.argv = ["hf-vat", "train", "--model_name_or_path", folder, *files,
            "--output_dir", out, "--max_steps", "2", "--per_device_train_batch_size", "4", "--max_length", "16",
            "--use_cpu", "True"]
try:
    main()
except SystemExit as end:
    assert not end.code
result = [words, sorted(os.listdir(out))]
""",
        str(local_model),
        [word for name, file in csv_files.items() for word in (f"--{name}", file)],
        str(tmp_path / "out"),
    )
    assert words == [["good", "film"]] and "model.safetensors" in files
    assert hub.requests == []


def test_the_cache_answers_without_the_hub(online, pushed, tokenizer, monkeypatch):
    path = hf_hub_download(REPO, "config.json")
    assert Path(path).read_bytes() == online.files(REPO)["config.json"]
    load()
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    before = len(online.requests)
    assert same(outputs(*load()), outputs(pushed, tokenizer))
    assert len(online.requests) == before


def test_a_student_alone_and_inside_its_classifier(online, model, tokenizer, tmp_path):
    """Loaded by name they say what they said before, in `explain` and in the pipeline."""
    student = fit_amortized(model, tokenizer, TEXTS, epochs=1, n_samples=4)
    expected = [one.scores for one in explain(model, tokenizer, TEXTS, "amortized", explainer=student)]
    student.push_to_hub("reader/explainer")
    folder = tmp_path / "classifier"
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    attach_explainer(folder, student)
    HfApi().create_repo("reader/classifier")
    HfApi().upload_folder(repo_id="reader/classifier", folder_path=folder)

    alone = explain(model, tokenizer, TEXTS, "amortized", explainer="reader/explainer")
    inside = explain("reader/classifier", texts=TEXTS, method="amortized")
    for found in (alone, inside):
        assert [one.scores for one in found] == [pytest.approx(scores, abs=1e-6) for scores in expected]
    for result, scores in zip(pipeline(TASK, model="reader/classifier")(TEXTS), expected, strict=True):
        assert [word["score"] for word in result["words"]] == pytest.approx(scores, abs=1e-6)
