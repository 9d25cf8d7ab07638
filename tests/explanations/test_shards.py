"""Explanations of a corpus that several jobs share: the same file as of one process, byte for byte."""

import json

import pytest

from hf_vat.errors import InputError
from hf_vat.explanations import explain, load_explanations
from hf_vat.explanations.store import split

TEXTS = [f"the {word} film {'and a plot ' * (place % 4)}" for place, word in enumerate(["good", "bad", "dull"] * 4)]
METHODS = {
    "attention": {},
    "lime": {"n_samples": 70},
    "shapley": {"n_samples": 5},
    "integrated_gradients": {"n_steps": 20},
}


@pytest.fixture
def call(make_model, tokenizer, tmp_path, monkeypatch):
    """Explain TEXTS into a file, of which a thousand model inputs are much."""
    monkeypatch.setattr("hf_vat.explanations.explainers._WINDOW", 64)
    model = make_model("vat")

    def make(method="lime", file="out.jsonl", texts=TEXTS, **settings):
        settings = METHODS[method] | settings
        return explain(model, tokenizer, texts, method, batch_size=8, save_to=tmp_path / file, **settings)

    return make


@pytest.mark.parametrize("count", [4, 30])
@pytest.mark.parametrize("method", METHODS)
def test_a_job_array_gives_the_file_of_one_process_byte_for_byte(call, tmp_path, method, count):
    whole = call(method, "one.jsonl")
    explained = [call(method, shard=(number, count)) for number in reversed(range(1, count + 1))]
    assert [one.text for part in reversed(explained) for one in part] == TEXTS
    merged = call(method, merge=count)
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "one.jsonl").read_bytes()
    assert [one.scores for one in merged] == [one.scores for one in whole]
    assert all(one.seconds > 0 for one in merged)  # from the shards; the file has none
    assert {one.seconds for one in load_explanations(tmp_path / "out.jsonl")} == {None}
    assert {path.name for path in tmp_path.glob("[!.]*")} == {"one.jsonl", "out.jsonl"}
    assert [one.scores for one in call(method, merge=count)] == [
        one.scores for one in whole
    ]  # nothing is left to merge
    assert [one.scores for one in call(method)] == [one.scores for one in whole]
    again = [one for number in range(1, count + 1) for one in call(method, shard=(number, count))]
    assert [one.scores for one in again] == [one.scores for one in whole]  # from what is there
    assert {path.name for path in tmp_path.glob("[!.]*")} == {"one.jsonl", "out.jsonl"}


def test_shards_that_are_not_finished_are_named_and_go_on(call, tmp_path):
    call(file="one.jsonl")
    for number in (1, 2, 4):
        call(shard=(number, 4))
    second = tmp_path / "out-00002-of-00004.jsonl"
    whole = second.read_bytes()
    lines = whole.splitlines(keepends=True)
    for torn, left in ((b"".join(lines[:3]), 2), (b"".join(lines[:3]) + lines[3][:20], 2), (lines[0][:30], 0)):
        second.write_bytes(torn)
        with pytest.raises(InputError) as error:
            call(merge=4)
        assert f"2/4 ({left} of {len(lines) - 1} explanations), 3/4 (0 of " in str(error.value)
        assert second.read_bytes() == torn and not (tmp_path / "out.jsonl").exists()
        assert len(call(shard=(2, 4))) == len(lines) - 1

    def untimed(lines: list[bytes]) -> list[dict]:
        return [json.loads(line) | {"seconds": None} for line in lines]

    assert untimed(second.read_bytes().splitlines()) == untimed(lines)
    call(shard=(3, 4))
    call(merge=4)
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "one.jsonl").read_bytes()


def test_a_merge_that_was_interrupted_goes_on(call, tmp_path):
    call(file="one.jsonl")
    for number in (1, 2, 3):
        call(shard=(number, 3))
    whole = (tmp_path / "one.jsonl").read_bytes()
    for end in (40, len(whole) // 2, len(whole) - 1, len(whole)):
        shards = {path: path.read_bytes() for path in tmp_path.glob("out-*")}
        (tmp_path / "out.jsonl").write_bytes(whole[:end])
        call(merge=3)
        assert (tmp_path / "out.jsonl").read_bytes() == whole and not list(tmp_path.glob("out-*"))
        for path, content in shards.items():
            path.write_bytes(content)


def test_shards_of_another_call_are_refused_and_left(call, tmp_path):
    for number in (1, 2):
        call(shard=(number, 2))
    first, second = sorted(tmp_path.glob("[!.]*"))
    with pytest.raises(
        InputError, match=r"out-00001-of-00002.jsonl holds explanations of another call, with other settings"
    ):
        call(merge=2, n_samples=5)
    first.rename(tmp_path / "first")
    second.rename(first)
    with pytest.raises(InputError, match=r"with other shard \('2/2' there, '1/2' here\)"):
        call(merge=2)
    with pytest.raises(InputError, match="of another call"):
        call(shard=(1, 2))
    first.write_text("mine\n")
    with pytest.raises(InputError, match="no file of explanations"):
        call(merge=2)
    assert first.read_text() == "mine\n"
    call(n_samples=5)
    with pytest.raises(InputError, match=r"out.jsonl holds explanations of another call"):
        call(shard=(2, 2))  # and not only when all are done


@pytest.mark.parametrize("shard", [(0, 2), (3, 2), (1, 0), ("1", 2), (1,), 3, (1.5, 2)])
def test_a_shard_that_is_none_is_refused(call, shard):
    with pytest.raises(InputError, match="shard"):
        call(shard=shard)


def test_shards_need_a_file_and_are_not_merged_at_once(make_model, tokenizer, call):
    for arguments in ({"shard": (1, 2)}, {"merge": 2}):
        with pytest.raises(InputError, match="name that file"):
            explain(make_model("vat"), tokenizer, TEXTS, **arguments)
    with pytest.raises(InputError, match="merge is 0"):
        call(merge=0)
    with pytest.raises(InputError, match="shard or merge"):
        call(merge=2, shard=(1, 2))


@pytest.mark.parametrize(
    ("ends", "count"), [([], 3), ([5], 3), ([2, 4, 9], 2), ([1, 2, 3, 4, 5, 6, 7], 3), ([1, 9], 5)]
)
def test_shards_are_neighbours_that_are_cut_where_the_call_is(ends, count):
    parts = split(ends, count)
    assert [place for part in parts for place in part] == list(range(ends[-1] if ends else 0))
    assert len(parts) == count and {part.stop for part in parts if part} <= {*ends}
    units = [sum(part.start < end <= part.stop for end in ends) for part in parts]
    assert max(units) - min(units) <= 1
