"""Explanations that are written as they are made, and a call that goes on from there."""

import errno
import json
import os
import threading

import pytest
from checks import without_time

from hf_vat import explain
from hf_vat.errors import InputError
from hf_vat.explanations import explainers, load_explanations
from hf_vat.explanations.store import Store

TEXTS = ["very good film", "not bad", "", "a movie", "good movie but bad", ["pre", "split"], "very very good"]
LIME = {"n_samples": 20, "seed": 3}


@pytest.fixture(autouse=True)
def small_windows(monkeypatch):
    """Two texts are run together, 20 samples and the text each."""
    monkeypatch.setattr(explainers, "_WINDOW", 42)


def interrupt_after(stub, monkeypatch, windows):
    """Ctrl-C in the middle of a window, as the model runs."""
    append, count = Store.append, [0]

    def counting(store, explanations):
        append(store, explanations)
        count[0] += 1
        if count[0] == windows:
            stub.forward = lambda **batch: (_ for _ in ()).throw(KeyboardInterrupt)

    monkeypatch.setattr(Store, "append", counting)


@pytest.mark.parametrize("windows", [1, 2, 3])
def test_an_interrupted_call_goes_on_from_what_is_written(stub, stub_tokenizer, tmp_path, monkeypatch, windows):
    expected = without_time(explain(stub, stub_tokenizer, TEXTS, "lime", **LIME))
    path = tmp_path / "new folder" / "lime.jsonl"
    forward = stub.forward
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        interrupt_after(stub, patch, windows)
        explain(stub, stub_tokenizer, TEXTS, "lime", save_to=path, **LIME)
    stub.forward = forward
    assert without_time(load_explanations(path)) == expected[: 2 * windows]

    stub.batches.clear()
    found = explain(stub, stub_tokenizer, TEXTS, "lime", save_to=path, **LIME)
    assert without_time(found) == without_time(load_explanations(path)) == expected
    texts_alone = [rows for rows, _ in stub.batches if rows <= 2]
    assert len(texts_alone) >= 1 and len(stub.batches) <= 2 * (4 - windows), "what was done is not done again"

    stub.batches.clear()
    assert without_time(explain(stub, stub_tokenizer, TEXTS, "lime", save_to=path, **LIME)) == expected
    assert stub.batches == []


@pytest.mark.parametrize("cut", [1, 30, 2000])
def test_a_torn_end_is_made_again(stub, stub_tokenizer, tmp_path, cut):
    path = tmp_path / "lime.jsonl"
    expected = without_time(explain(stub, stub_tokenizer, TEXTS, "lime", save_to=path, **LIME))
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    assert len(load_explanations(path)) < len(TEXTS)
    assert without_time(explain(stub, stub_tokenizer, TEXTS, "lime", save_to=path, **LIME)) == expected
    assert len(load_explanations(path)) == len(TEXTS)
    assert [file.name for file in tmp_path.iterdir()] == ["lime.jsonl"]


def test_the_model_goes_on_while_results_are_written(stub, stub_tokenizer, tmp_path, monkeypatch):
    path, begun, asked = tmp_path / "random.jsonl", threading.Event(), threading.Event()
    write, forward = Store._write, stub.forward

    def writing(*args):
        begun.set()
        assert asked.wait(30), "the model waits for the file"
        write(*args)

    def running(**batch):
        if begun.wait(30 if stub.batches else 0):  # the first window has no other before it
            asked.set()
        return forward(**batch)

    monkeypatch.setattr(explainers, "_WINDOW", 4)
    monkeypatch.setattr(Store, "_write", writing)
    monkeypatch.setattr(stub, "forward", running)
    found = explain(stub, stub_tokenizer, TEXTS, "random", save_to=path)
    assert without_time(load_explanations(path)) == without_time(found)


@pytest.mark.parametrize("failing", [1, 2, 4])
def test_what_the_disk_refuses_is_told_and_what_was_written_stays(stub, stub_tokenizer, tmp_path, monkeypatch, failing):
    path, write, count = tmp_path / "lime.jsonl", Store._write, [0]

    def writing(store, results, begun):
        count[0] += 1
        if count[0] == failing:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(store, results, begun)

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space left"):
        patch.setattr(Store, "_write", writing)
        explain(stub, stub_tokenizer, TEXTS, "lime", save_to=path, **LIME)
    assert path.exists() == (failing > 1)
    if failing > 1:
        assert len(load_explanations(path)) == 2 * (failing - 1)
    expected = without_time(explain(stub, stub_tokenizer, TEXTS, "lime", **LIME))
    assert without_time(explain(stub, stub_tokenizer, TEXTS, "lime", save_to=path, **LIME)) == expected


@pytest.mark.parametrize("begun", [None, b"", b'{"format": "hf_vat '])
def test_f50_a_link_leads_to_the_file_that_is_written(stub, stub_tokenizer, tmp_path, begun):
    (tmp_path / "elsewhere").mkdir()
    link, file = tmp_path / "link.jsonl", tmp_path / "elsewhere" / "lime.jsonl"
    link.symlink_to(file)
    if begun is not None:
        file.write_bytes(begun)
    made = explain(stub, stub_tokenizer, TEXTS, "lime", save_to=link, **LIME)
    assert link.is_symlink() and without_time(load_explanations(file)) == without_time(made)


def test_f54_a_file_of_json_that_is_nested_too_deeply_is_left_alone(stub, stub_tokenizer, tmp_path):
    path = tmp_path / "nested.jsonl"
    path.write_text('{"text": ' + "[" * 100_000, "utf-8")
    with pytest.raises(InputError, match="is no file of explanations"):
        explain(stub, stub_tokenizer, TEXTS, "random", save_to=path)
    assert path.stat().st_size == 100_009


@pytest.mark.parametrize("save_to", [1, True, b"x", "x\0y", "x" * 300])
def test_what_is_no_path_is_refused(stub, stub_tokenizer, save_to):
    with pytest.raises(InputError, match="no path"):
        explain(stub, stub_tokenizer, TEXTS, "random", save_to=save_to)


def test_progress_counts_what_was_done_before(stub, stub_tokenizer, tmp_path, capsys):
    path = tmp_path / "lime.jsonl"
    for _ in range(2):
        explain(stub, stub_tokenizer, TEXTS, "lime", progress=True, save_to=path, **LIME)
        assert f"{21 * 7}/{21 * 7}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"seed": 4}, "settings .*'seed': 3.* there.*'seed': 4.* here"),
        ({"n_samples": 30}, "settings"),
        ({"target": 1}, "inputs"),
        ({"texts": TEXTS[:-1]}, r"texts \(7 there, 6 here\)"),
        ({"texts": ["other", *TEXTS[1:]]}, "inputs"),
        ({"max_length": 4}, "inputs"),
    ],
)
def test_another_call_is_refused_and_the_file_left_alone(stub, stub_tokenizer, tmp_path, change, named):
    path = tmp_path / "lime.jsonl"
    explain(stub, stub_tokenizer, TEXTS, "lime", save_to=path, **LIME)
    before = path.read_bytes()
    arguments = {"texts": TEXTS, **LIME, **change}
    with pytest.raises(InputError, match=f"another call, with other .*{named}.*another file"):
        explain(stub, stub_tokenizer, arguments.pop("texts"), "lime", save_to=path, **arguments)
    assert path.read_bytes() == before


RANDOM = {"model": "stub", "method": "random", "settings": {"seed": 0}}


def test_texts_that_are_streamed_may_be_words(stub, stub_tokenizer, tmp_path):
    store = Store(tmp_path / "random.jsonl", stub, None, RANDOM)
    rows = [(text, None) for text in TEXTS]
    assert explain(stub, stub_tokenizer, TEXTS[:6], "random", save_to=store)[5].words == ["pre", "split"]
    assert store.finished == 6
    again, left = Store(tmp_path / "random.jsonl", stub, None, RANDOM), iter(rows)
    again.skip_finished(left)
    assert again.finished == 6 and list(left) == rows[6:]
    for other in (["pre", "splits"], ["pre split"]):
        with pytest.raises(InputError, match=r"other texts, .* in row 6"):
            Store(tmp_path / "random.jsonl", stub, None, RANDOM).skip_finished(iter([*rows[:5], (other, None)]))


def test_a_streamed_and_an_unstreamed_call_name_each_other(stub, stub_tokenizer, tmp_path):
    explain(stub, stub_tokenizer, TEXTS, "random", save_to=tmp_path / "whole.jsonl")
    with pytest.raises(InputError, match=r"texts \(7 there, streamed here\)"):
        Store(tmp_path / "whole.jsonl", stub, None, RANDOM).skip_finished(iter([]))
    store = Store(tmp_path / "streamed.jsonl", stub, None, RANDOM)
    explain(stub, stub_tokenizer, TEXTS, "random", save_to=store)
    with pytest.raises(InputError, match=r"texts \(streamed there, 7 here\)"):
        explain(stub, stub_tokenizer, TEXTS, "random", save_to=tmp_path / "streamed.jsonl")


@pytest.mark.parametrize("damage", [b"{}", b"[1]", b'{"text": "very', b"\xff", b"7"])
def test_a_damaged_line_is_named_and_the_file_left_alone(stub, stub_tokenizer, tmp_path, damage):
    path, streamed = tmp_path / "random.jsonl", tmp_path / "streamed.jsonl"
    explain(stub, stub_tokenizer, TEXTS, "random", save_to=path)
    explain(stub, stub_tokenizer, TEXTS, "random", save_to=Store(streamed, stub, None, RANDOM))
    for file in (path, streamed):
        lines = file.read_bytes().splitlines()
        file.write_bytes(b"\n".join([*lines[:3], damage, *lines[4:], b""]))
    before = path.read_bytes(), streamed.read_bytes()
    for call in (
        lambda: load_explanations(path),
        lambda: explain(stub, stub_tokenizer, TEXTS, "random", save_to=path),
        lambda: Store(streamed, stub, None, RANDOM).skip_finished((text, None) for text in TEXTS),
    ):
        with pytest.raises(InputError, match=r"jsonl: line 4 is no explanation .*damaged"):
            call()
    assert (path.read_bytes(), streamed.read_bytes()) == before


def test_other_weights_under_the_same_name_are_refused(stub, stub_tokenizer, tmp_path):
    path = tmp_path / "occlusion.jsonl"
    explain(stub, stub_tokenizer, TEXTS, "occlusion", save_to=path)
    stub.embeddings.weight[4] += 1e-6
    with pytest.raises(InputError, match=r"model state \(configuration or weights\)"):
        explain(stub, stub_tokenizer, TEXTS, "occlusion", save_to=path)


def test_other_settings_of_a_model_with_the_same_weights_are_refused(make_model, tokenizer, tmp_path):
    path = tmp_path / "occlusion.jsonl"
    explain(make_model("mean"), tokenizer, ["a good film"], "occlusion", save_to=path)
    with pytest.raises(InputError, match="model state"):
        explain(make_model("max"), tokenizer, ["a good film"], "occlusion", save_to=path)


def test_another_tokenizer_is_refused(stub, stub_tokenizer, tokenizer, tmp_path):
    path = tmp_path / "random.jsonl"
    explain(stub, stub_tokenizer, ["good film"], "random", save_to=path)
    with pytest.raises(InputError, match="inputs"):
        explain(stub, tokenizer, ["good film"], "random", save_to=path)


@pytest.mark.parametrize("length", [0, 20, 10_000])
def test_a_file_without_an_explanation_does_not_stand_in_the_way(stub, stub_tokenizer, tmp_path, length):
    """Nothing, a torn first line, or the first line of a call that was stopped in its first window."""
    path = tmp_path / "lime.jsonl"
    explain(stub, stub_tokenizer, TEXTS, "lime", save_to=path, **LIME)
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0][:length])
    found = explain(stub, stub_tokenizer, TEXTS, "lime", save_to=path, **LIME)
    assert without_time(load_explanations(path)) == without_time(found) and len(found) == len(TEXTS)
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    assert len(explain(stub, stub_tokenizer, TEXTS, "occlusion", save_to=path)) == len(TEXTS)


def test_a_call_that_fails_leaves_no_file(stub, stub_tokenizer, tmp_path):
    with pytest.raises(InputError, match="no mask token"):
        explain(stub, stub_tokenizer, TEXTS, "integrated_gradients", baseline="mask", save_to=tmp_path / "a.jsonl")
    assert not list(tmp_path.iterdir())


def test_a_folder_is_refused(stub, stub_tokenizer, tmp_path):
    with pytest.raises(InputError, match="a folder; give a file"):
        explain(stub, stub_tokenizer, TEXTS, "random", save_to=tmp_path)


@pytest.mark.parametrize("content", [b"text,label\ngood,1\n", b"\xff\xfe\x00", b"[1, 2]\n", b"{}\n", b"no line end"])
def test_a_file_that_is_something_else_is_left_alone(stub, stub_tokenizer, tmp_path, content):
    path = tmp_path / "reviews.csv"
    path.write_bytes(content)
    with pytest.raises(InputError, match="no file of explanations"):
        explain(stub, stub_tokenizer, TEXTS, "occlusion", save_to=path)
    with pytest.raises(InputError, match="no file of explanations"):
        load_explanations(path)
    assert path.read_bytes() == content


def test_file_is_ascii_json_lines(stub, stub_tokenizer, tmp_path):
    path = tmp_path / "random.jsonl"
    explain(stub, stub_tokenizer, ["café 😀\u2028 好"], "random", save_to=path, labels=[1])
    header, line = path.read_text(encoding="ascii").splitlines()
    assert json.loads(header)["method"] == "random" and json.loads(line)["text"] == "café 😀\u2028 好"
    assert load_explanations(path)[0].gold == 1


def test_f51_an_empty_file_is_taken_and_a_device_is_not(stub, stub_tokenizer, tmp_path):
    (tmp_path / "empty.jsonl").touch()
    assert len(explain(stub, stub_tokenizer, TEXTS, "occlusion", save_to=tmp_path / "empty.jsonl")) == len(TEXTS)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="no regular file"):
        explain(stub, stub_tokenizer, TEXTS, "occlusion", save_to=tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize("content", [b"{", b'{"format": "', b"text,label\ngood,1\n"])
def test_f51_what_could_be_the_beginning_of_any_file_is_no_torn_one(stub, stub_tokenizer, tmp_path, content):
    path = tmp_path / "notes.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match="no file of explanations"):
        explain(stub, stub_tokenizer, TEXTS, "occlusion", save_to=path)
    assert path.read_bytes() == content


def test_f49_results_are_never_added_to_the_file_of_another_call(stub, stub_tokenizer, tmp_path):
    """Also where nothing was read of it before."""
    path, run = tmp_path / "a.jsonl", {"model": "m", "method": "occlusion", "settings": {}}
    made = explain(stub, stub_tokenizer, TEXTS[:2], "occlusion")
    with Store(path, stub, None, run) as store:
        store.append(made[:1])
    with Store(path, stub, None, run) as store:  # the same call goes on
        store.append(made[1:])
    before = path.read_bytes()
    assert len(load_explanations(path)) == 2
    with Store(path, stub, None, run | {"method": "lime"}) as store, pytest.raises(InputError, match="of another call"):
        store.append(made)
    assert path.read_bytes() == before and [one.name for one in tmp_path.iterdir()] == ["a.jsonl"]
