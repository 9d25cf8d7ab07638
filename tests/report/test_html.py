import os
import re
import subprocess
import sys
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shown import explanation_of

from hf_vat.errors import InputError
from hf_vat.report import Table, heatmap, page, top_k_curves, write_report

NASTY = ["<script>alert(1)</script>", "<!--", "-->", "a<b<c", "&amp;", '"x"', "'y'", "</td>", "{{ 7 * 7 }}"]


class Reader(HTMLParser):
    """Collects the elements, comments and texts by class of the innermost element that has one."""

    def __init__(self, html):
        super().__init__()
        self.tags, self.comments, self.texts, self.open, self.classes = [], [], {}, [], []
        self.styles = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.tags.append((tag, attributes))
        if tag in ("meta", "input"):
            return
        name = "word" if tag in ("b", "u") else (attributes.get("class") or tag).split()[0]
        self.open.append((tag, name))
        if name == "word":
            self.styles.append((tag, attributes.get("class"), attributes.get("style"), attributes.get("title")))
        self.texts.setdefault(name, []).append("")

    def handle_endtag(self, tag):
        opened, _ = self.open.pop()
        assert opened == tag, f"<{opened}> closed by </{tag}>"

    def handle_comment(self, data):
        self.comments.append(data)

    def handle_data(self, data):
        if self.open:
            self.texts[self.open[-1][1]][-1] += data


def test_c82_every_string_comes_back_as_typed():
    title = "".join(NASTY)
    explanation = explanation_of(NASTY, names=NASTY, prediction=0, target=2, gold=4, method="a<b", model="m&amp;")
    html = page(
        title, {"<b>run</b>": [explanation]}, settings={"<i>": "</dl>"},
        tables=[Table("<h2>", ["<td>", "&lt;"], [["</td>", '"']], "<!-- x -->")], figures={"</svg>": "<svg></svg>"},
    )  # fmt: skip
    reader = Reader(html)
    assert reader.texts["word"] == NASTY
    assert reader.texts["hfv-label"] == [NASTY[0], NASTY[4], NASTY[2]]
    assert reader.texts["h1"] == reader.texts["title"] == [title]
    assert reader.texts["h2"] == ["<h2>", "</svg>"]
    assert reader.texts["bdi"] == ["<b>run</b>", "a<b"]
    assert (reader.texts["dt"], reader.texts["dd"]) == (["<i>"], ["</dl>"])
    assert reader.texts["th"] == ["<td>", "&lt;", "</td>"] and reader.texts["td"] == ['"']
    assert reader.texts["caption"] == ["<!-- x -->"]
    assert reader.comments == [] and "script" not in {tag for tag, _ in reader.tags}
    clean = Reader(page("t", {"r": [explanation_of(["w"] * len(NASTY), target=1, gold=1)]}, settings={"a": "b"},
                        tables=[Table("x", ["c", "d"], [["e", "f"]], "g")], figures={"h": "<svg></svg>"}))  # fmt: skip
    assert [tag for tag, _ in reader.tags] == [tag for tag, _ in clean.tags]
    assert [set(attributes) for _, attributes in reader.tags] == [set(attributes) for _, attributes in clean.tags]


def test_c82_names_of_methods_side_by_side_and_in_a_figure():
    pytest.importorskip("matplotlib")
    names = ["<script>alert(1)</script>", "a&b$x$", "</svg>"]
    runs = {name: [explanation_of(["w"], [score])] for name, score in zip(names, (1.0, -1.0, 0.5), strict=True)}
    figure = top_k_curves({"<!-- own -->": {name: [(1, 0.5, 0.4, 0.6)] for name in names}})
    reader = Reader(page("t", runs, figures={"Curves": figure}))
    unsigned, signed = [names[0], names[2]], [names[1]]
    assert reader.texts["bdi"] == unsigned + signed + names  # the legend says which methods are signed
    assert [text for text in reader.texts["text"] if text in names] == names
    assert "<!-- own -->" in reader.texts["text"]
    assert reader.comments == [] and "script" not in {tag for tag, _ in reader.tags}


def test_c82_file_name(tmp_path):
    path = write_report(tmp_path / "<b>&amp;'\".html", "t", {"r": [explanation_of(["w"])]})
    assert "&amp;amp;" not in path.read_text(encoding="utf-8") and path.parent == tmp_path


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=40))
@settings(max_examples=80)
def test_any_text_comes_back_from_the_fragment(text):
    explanation = explanation_of(text)
    reader = Reader(heatmap(explanation))
    assert reader.texts.get("word", []) == explanation.words


def test_c83_utf8_whatever_the_locale(tmp_path):
    path = tmp_path / "a folder" / "missing" / "page of film.html"
    code = (
        "import sys; from hf_vat.explanations import Explanation\n"
        "Explanation('caf\\u00e9 \\U0001f600 \\u597d', ['caf\\u00e9', '\\U0001f600', '\\u597d'], [(0, 4), (5, 6), (7, 8)],"
        "[0.2, 0.3, 0.5], [True] * 3, 'attention', 0, 0, [1.0], ['one']).to_html(sys.argv[1])"
    )
    environment = {**os.environ, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LC_ALL": "C"}
    subprocess.run([sys.executable, "-c", code, str(path)], env=environment, check=True)
    html = path.read_bytes().decode("utf-8")
    assert Reader(html).texts["word"] == ["café", "😀", "好"]
    assert html.index('<meta charset="utf-8">') < 1024


def test_c85_stands_alone():
    html = page("t", {"ATT": [explanation_of(["good", "film"])], "VAT": [explanation_of(["good", "film"])]})
    assert not re.search(r"https?:|//|@import|url\(|<script|<link|<img|\son\w+=", html)
    code = "import sys, hf_vat.explanations, hf_vat.report; sys.exit('IPython' in sys.modules or 'matplotlib' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_c86_each_row_shows_its_own_labels():
    names = ("zero", "one", "two")
    explanations = [
        explanation_of([f"text{row}"], names=names, gold=gold, prediction=prediction, target=prediction)
        for row, (gold, prediction) in enumerate([(0, 0), (2, 1), (1, 1)])
    ]
    html = page("t", {"run": explanations})
    reader = Reader(html)
    assert reader.texts["hfv-label"] == ["zero", "zero", "one", "two", "one", "one"]
    assert [name for tag, name in rows(reader)] == ["right", "wrong", "right"]
    assert reader.texts["hfv-badge"] == ["✓ right", "✗ wrong", "✓ right"]
    assert reader.texts["label"] == ["All 3", "✓ Right 2", "✗ Wrong 1"]


def rows(reader):
    return [(tag, attributes["class"]) for tag, attributes in reader.tags if tag == "li"]


def test_runs_stand_under_each_other_by_text():
    runs = {
        name: [explanation_of(["a"], gold=gold, model=name), explanation_of(["b"], gold=1, model=name)]
        for name, gold in (("ATT", 0), ("VAT", 1))
    }
    reader = Reader(page("t", runs))
    assert reader.texts["word"] == ["a", "a", "b", "b"]
    assert reader.texts["bdi"] == ["ATT", "attention", "VAT", "attention"] * 2
    assert [name for _, name in rows(reader)] == ["wrong", "wrong"]
    with pytest.raises(InputError, match="'VAT' and 'ATT' explain different texts"):
        page("t", {**runs, "VAT": runs["VAT"][::-1]})


def test_no_filter_without_gold_or_with_one_text():
    known, unknown = explanation_of(["a"], gold=0), explanation_of(["a"])
    for explanations, labels in (([known, known], 3), ([known], 0), ([unknown, unknown], 0)):
        assert len(Reader(page("t", {"run": explanations})).texts.get("label", [])) == labels


def by_methods(*texts, **scores):
    """Runs of one model on texts of one word each, by method."""
    return {
        method: [explanation_of([text], [score], method=method, model="m", gold=0) for text in texts]
        for method, score in scores.items()
    }


def test_methods_of_one_model_share_one_headline():
    reader = Reader(page("t", by_methods("a", "b", attention=1.0, lime=-1.0, random=0.5)))
    assert reader.texts["word"] == ["a"] * 3 + ["b"] * 3
    assert reader.texts["hfv-badge"] == ["✓ right"] * 2
    assert reader.texts["hfv-source"] == [""] * 2  # holds the model, in a bdi
    assert reader.texts["dt"] == [""] * 6
    names = ["attention", "lime", "random"]
    assert reader.texts["bdi"] == ["attention", "random", "lime", "m", *names, "m", *names]
    assert reader.texts["label"] == ["All 2", "✓ Right 2", "✗ Wrong 0"]


@pytest.mark.parametrize(
    ("field", "value", "headlines"),
    [
        ("probabilities", [0.5 + 1e-6, 0.5 - 1e-6], 1),  # another batch
        ("probabilities", [0.6, 0.4], 2),
        ("prediction", 1, 2),
        ("target", 1, 2),
        ("gold", 1, 2),
        ("model", "other", 2),
    ],
)
def test_another_prediction_has_its_own_headline(field, value, headlines):
    runs = by_methods("a", attention=1.0, lime=1.0, random=1.0)
    setattr(runs["lime"][0], field, value)
    reader = Reader(page("t", runs))
    assert len(reader.texts["hfv-head"]) == headlines
    assert len(reader.texts["word"]) == 3


def test_rationales_are_underlined_in_every_row():
    runs = {
        method: [explanation_of(["good", "film"], scores), explanation_of([], [])]
        for method, scores in (("attention", [0.0, 1.0]), ("lime", [-1.0, 1.0]))
    }
    html = page("t", runs, rationales=[[1, 0], []])
    assert [tag for tag, *_ in Reader(html).styles[1:]] == ["u", "b"] * 2
    assert Reader(html).texts["word"][0] == "evidence"  # the legend
    assert "evidence" not in page("t", runs)


@pytest.mark.parametrize(
    ("rationales", "message"),
    [
        ([[1, 0], [1], [0]], "3 rationales for 2 texts"),
        ([[1, 0], [1, 0]], "rationale of text 1 has 2 flags for 1 words"),
        ([[1, 2], [0]], "rationale of text 0 has the flag 2; flags are 0 or 1"),
    ],
)
def test_c86_rationales_of_another_length_are_refused(rationales, message):
    runs = {"r": [explanation_of(["a", "b"]), explanation_of(["c"])]}
    with pytest.raises(InputError, match=message):
        page("t", runs, rationales=rationales)


def test_shade_is_the_share_of_the_greatest_score():
    reader = Reader(heatmap(explanation_of(["a", "b", "c", "d"], [0.5, 0.25, -0.1, 0], seen=[True, True, True, False])))
    assert reader.styles == [
        ("b", None, "--s:1.00", "0.5"),
        ("b", None, "--s:0.50", "0.25"),
        ("b", "hfv-low", "--s:0.20", "-0.1"),
        ("b", "hfv-unseen", None, "not seen by the model"),
    ]


def test_legend_explains_the_hues_that_are_there():
    def scales(**scores):
        tags = Reader(page("t", by_methods("a", **scores))).tags
        return [attributes["class"] for tag, attributes in tags if tag == "i"]

    assert scales(attention=1.0) == ["scale high"]
    assert scales(lime=-1.0) == ["scale both"]
    assert scales(lime=-1.0, attention=1.0) == ["scale high", "scale both"]


def test_a_word_costs_few_bytes():
    one, many = (
        len(page("t", {"r": [explanation_of(["word"] * words, [-0.123456, *[0.1] * (words - 1)])]}))
        for words in (2, 1002)
    )
    assert (many - one) / 1000 < len("word ") + 40


@pytest.mark.parametrize(
    ("explanation", "note"),
    [
        (explanation_of(["a", "b"], [0.5, 0.5]), "All words tie"),
        (explanation_of([], []), "The text has no words"),
        (explanation_of(["a", "b"], [1.0, 0.0], seen=[True, False], truncated=1), "1 words were cut off"),
    ],
)
def test_notes(explanation, note):
    assert note in heatmap(explanation)
    assert note not in heatmap(explanation_of(["a", "b"], [0.5, 0.4]))


def test_numbers_stand_to_the_right():
    table = Table("Tests", ["methods", "score", "p"], [["a − b", "recall@5", "0.01"], ["a − c", "recall@5", "—"]])
    reader = Reader(page("t", {}, tables=[table]))
    cells = [(tag, attributes.get("class")) for tag, attributes in reader.tags if tag in ("th", "td")]
    assert cells == [("th", None), ("th", None), ("th", "number"), *[("th", None), ("td", None), ("td", "number")] * 2]


def test_page_without_explanations_shows_what_it_has():
    figures = dict.fromkeys(["Curves", "Training"], '<svg viewBox="0 0 1 1"></svg>')
    tables = [Table("Results", ["a"], [["b"]]), Table("Tests", ["c"], [])]
    reader = Reader(page("t", {}, tables=tables, figures=figures))
    assert reader.texts["h2"] == ["Results", "Tests", "Curves", "Training"]
    assert [tag for tag, _ in reader.tags].count("svg") == 2
