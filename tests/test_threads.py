"""Tests that stand for public reports carry the addresses of these."""

import re
from pathlib import Path

from threads import THREADS, addresses


def test_numbers_of_a_test_give_its_threads():
    assert addresses("test_c12_a_text_of_200_words[c13]") == [
        "https://github.com/huggingface/transformers/issues/14218"
    ]
    both = addresses("test_c18_c87_c88_two_processes")
    assert both == [one for number in ("c18", "c87", "c88") for one in addresses(f"test_{number}_x")] and len(both) == 4
    assert addresses("test_texts_c12_of_words") == addresses("test_f999_nothing") == []


def test_every_thread_has_a_test():
    sources = [path.read_text(encoding="utf-8") for path in Path(__file__).parent.rglob("test_*.py")]
    names = [name for source in sources for name in re.findall(r"def (test_\w+)", source)]
    tested = {number for name in names for number in re.findall(r"(?<=_)[cf]\d+(?=_)", name)}
    assert set(THREADS) <= tested
    assert all(
        re.fullmatch(r"[\w.-]+/[\w.-]+#\d+", thread) for threads in THREADS.values() for thread in threads.split()
    )
