"""What all figures have in common."""

import numpy as np
import pytest
from shown import explanation_of

from hf_vat.errors import InputError
from hf_vat.explanations import GlobalImportance, WordImportance
from hf_vat.report import attention_pairs, frequency_scatter, text_scatter, top_k_curves, training_curves, word_bars

pytest.importorskip("matplotlib")

FILM = explanation_of("a good film", [0.1, 0.6, 0.3])
WORDS = [("rare", 0.25, 1), ("film", 0.5, 10), ("the", 0.5, 100), ("good", 0.75, 10)]
TABLE = GlobalImportance([WordImportance(*word, 1) for word in WORDS])
POINTS = [(0.0, 0.0), (1.0, 2.0), (4.0, 1.0)]
RISING = [(1, 0.125, 0.1, 0.2), (2, 0.25, 0.2, 0.3), (3, 0.5, 0.4, 0.6)]
LOG = [{"loss": 0.7, "epoch": 1.0}, {"loss": 0.5, "phase": "compress", "epoch": 2.0}]

# A function, arguments, and others that mean the same.
FIGURES = {
    attention_pairs: ([{"ATT": [FILM]}], [{"ATT": (FILM,)}]),
    word_bars: ([{"LSTM": [("good", 1.0)]}], [{"LSTM": [("good", 1.0, 7, 3)]}]),
    frequency_scatter: ([{"LSTM": TABLE, "CNN": TABLE}], [{"LSTM": list(TABLE), "CNN": WORDS[::-1]}]),
    text_scatter: (
        [{"ATT": (POINTS, [0, 1, 1])}, ["no", "yes"]],
        [{"ATT": (np.array(POINTS), np.array([0, 1, 1]))}, ("no", "yes"), {}],
    ),
    top_k_curves: ([{"recall": {"a": RISING}}], [{"recall": {"a": RISING[::-1]}, "f1": {"a": []}}]),
    training_curves: ([{"ATT": LOG}], [{"ATT": tuple(LOG)}]),
}


@pytest.mark.parametrize(("suffix", "start"), [(".svg", b"<?xml"), (".png", b"\x89PNG")])
@pytest.mark.parametrize("draw", FIGURES)
def test_equal_for_equal_input_and_written_by_suffix(draw, suffix, start, tmp_path):
    given, same = FIGURES[draw]
    path = tmp_path / "missing folder" / f"figure{suffix}"
    svg = draw(*given, path=path)
    first = path.read_bytes()
    assert svg == draw(*same, path=path)
    assert first.startswith(start) and path.read_bytes() == first
    assert svg.startswith("<svg") and "<dc:date>" not in svg and "currentColor" in svg and 'id="axes' not in svg


@pytest.mark.parametrize("draw", FIGURES)
def test_wrong_suffixes_and_nothing_to_draw_are_refused(draw, tmp_path):
    given, _ = FIGURES[draw]
    with pytest.raises(InputError, match=r"\.pdf.*\.svg or \.png"):
        draw(*given, path=tmp_path / "figure.pdf")
    with pytest.raises(InputError, match="nothing to draw"):
        draw({}, *given[1:])


@pytest.mark.parametrize("draw", FIGURES)
def test_matplotlib_is_left_as_it_was(draw):
    import matplotlib

    before = dict(matplotlib.rcParams)
    draw(*FIGURES[draw][0])
    assert dict(matplotlib.rcParams) == before
