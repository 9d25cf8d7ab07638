"""The Space in a browser: Chromium, driven by Playwright, on an app that runs as a process of its own.

Playwright drives the Chromium of the system (Debian's package `chromium`) through its own protocol: unlike Selenium it needs no
driver of exactly the browser's version, it waits for what the page still has to do, and it sees every request.
Screenshots are kept in the folder that HF_VAT_SCREENSHOTS names.
"""

import importlib.util
import os
import re
import runpy
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple
from urllib.request import urlopen

import numpy as np
import psutil
import pytest
import torch
from checks import ALONE
from huggingface_hub import SpaceCard
from transformers import AutoTokenizer, BertConfig, BertForSequenceClassification, set_seed

from hf_vat import BertForVATClassification, BertVATConfig
from hf_vat.cli import run
from hf_vat.data.offline import minilm_folder
from hf_vat.explanations import explain
from hf_vat.pretrained import load_classifier

ROOT = Path(__file__).resolve().parents[2]
SPACE, QUICKSTART = ROOT / "examples" / "space", ROOT / "runs" / "quickstart" / "VAT"
LABELS = {0: "bad", 1: "good"}
TEXT = "a good film, but the plot is awful!"
HOSTILE_LABELS = {0: "<img src=x onerror=window.hit=1>", 1: "${window.hit=1} {{value}} &amp; <b>\"'</b>"}
HOSTILE = "<script>window.hit=1</script> <img src=x onerror=window.hit=1> ${window.hit=1} {{value}} &amp; \"'</b>"
# Tells which addresses the app looks up, then runs it.
WATCHED = """
import runpy, socket, sys
look_up = socket.getaddrinfo
def watched(host, *args, **options):
    if host not in ("127.0.0.1", "localhost", None):
        print("looked up", host, flush=True)
    return look_up(host, *args, **options)
socket.getaddrinfo = watched
sys.argv = sys.argv[1:]
sys.path[0] = ""
runpy.run_path(sys.argv[0], run_name="__main__")
"""


@pytest.fixture(scope="module")
def sync_playwright():
    if shutil.which("chromium") is None:
        pytest.skip("needs Chromium: apt-get install chromium")
    pytest.importorskip("gradio", reason="needs the extra demo")
    return pytest.importorskip("playwright.sync_api", reason="needs the extra test").sync_playwright


@pytest.fixture(scope="module")
def browser(sync_playwright):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium")
        )  # without a sandbox: root has none
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def folders(tokenizer, tmp_path_factory) -> list[Path]:
    """A classifier with attention and one without, tiny, with weights so large that untrained they tell texts apart; the
    quickstart's model, or one of its size.
    """
    folder = tmp_path_factory.mktemp("models")
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
    options = {
        "vocab_size": len(tokenizer),
        "max_position_embeddings": 64,
        "initializer_range": 0.3,
    }
    with torch.random.fork_rng():
        set_seed(0)
        BertForVATClassification(BertVATConfig(**sizes, **options, id2label=LABELS)).save_pretrained(folder / "vat")
        config = BertConfig(**sizes, **options, id2label=HOSTILE_LABELS)
        BertForSequenceClassification(config).save_pretrained(folder / "plain")
        if not QUICKSTART.is_dir():
            BertForVATClassification.from_pretrained(minilm_folder()).save_pretrained(folder / "minilm")
            AutoTokenizer.from_pretrained(minilm_folder()).save_pretrained(folder / "minilm")
    for name in ("vat", "plain"):
        tokenizer.save_pretrained(folder / name)
    return [folder / "vat", folder / "plain", QUICKSTART if QUICKSTART.is_dir() else folder / "minilm"]


def shown(folders: list[Path], place: int) -> str:
    """A folder's name in the list of models; the quickstart's is VAT, the first one's vat."""
    return folders[place].name


@pytest.fixture(scope="module")
def short_names():
    pytest.importorskip("gradio", reason="needs the extra demo")
    return runpy.run_path(str(SPACE / "app.py"))["short_names"]


def test_f70_of_a_folder_no_more_is_shown_than_tells_it_from_the_others(short_names, tmp_path, monkeypatch):
    for folder in ("a/x/VAT", "a/y/VAT", "b/ATT", "you"):
        (tmp_path / folder).mkdir(parents=True)
    a, b, c = (str(tmp_path / folder) for folder in ("a/x/VAT", "a/y/VAT", "b/ATT"))
    assert short_names([a]) == {"VAT": a}
    assert short_names([a, b, c, "you/ATT"]) == {"x/VAT": a, "y/VAT": b, "b/ATT": c, "you/ATT": "you/ATT"}
    assert short_names([a, f"{a}/"]) == {"VAT": f"{a}/"}
    monkeypatch.chdir(tmp_path)
    assert short_names(["you/model", "b/ATT"]) == {"you/model": "you/model", "ATT": "b/ATT"}


def test_f70_no_path_of_this_machine_is_in_the_page(app, folders):
    page = urlopen(f"{app.address}/config").read().decode() + urlopen(app.address).read().decode()
    assert shown(folders, 1) in page and str(folders[1].parent) not in page


class App(NamedTuple):
    address: str
    process: psutil.Process


@pytest.fixture(scope="module")
def app(sync_playwright, folders, tmp_path_factory):
    """The app as a process of its own. At the end, it has looked up no address, and nothing has failed."""
    log = tmp_path_factory.mktemp("space") / "log.txt"
    command = [sys.executable, "-uc", WATCHED, str(SPACE / "app.py"), "--models", *map(str, folders)]
    pipes = {"stdin": subprocess.DEVNULL, "stdout": log.open("w"), "stderr": subprocess.STDOUT}
    with pipes["stdout"], subprocess.Popen(command, **pipes, env=os.environ | {"OMP_NUM_THREADS": "1"}) as process:
        try:
            deadline = time.monotonic() + 200
            while (found := re.search(r"http://127\.0\.0\.1:\d+", log.read_text())) is None:
                assert process.poll() is None and time.monotonic() < deadline, log.read_text()
                time.sleep(0.1)
            yield App(found[0], psutil.Process(process.pid))
        finally:
            process.terminate()
    assert "looked up" not in log.read_text() and "Traceback" not in log.read_text(), log.read_text()


@pytest.fixture(scope="module")
def screenshots(tmp_path_factory) -> Path:
    folder = Path(os.environ.get("HF_VAT_SCREENSHOTS") or tmp_path_factory.mktemp("screenshots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.fixture
def visit(browser):
    """Open a page. At the end, it has asked nobody but the app for anything, and no script has failed."""
    contexts, requests, errors = [], [], []

    def visit(address: str, width: int = 1280, height: int = 900, **options) -> "Visitor":
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(address)
        visitor = Visitor(page)
        visitor.panels.nth(1).wait_for()  # the first example is explained unasked
        return visitor

    yield visit
    for context in contexts:
        context.close()
    outside = [url for url in requests if not re.match(r"http://127\.0\.0\.1:\d+/|data:|blob:", url)]
    assert requests and not outside and not errors


class Visitor:
    """What a visitor does, and sees."""

    def __init__(self, page):
        self.page = page
        self.panels = page.locator(".hfv-text")

    def type(self, text: str) -> None:
        self.page.get_by_label("Text").fill(text)

    def explain(self, text: str) -> None:
        """Type a text, press the button and wait for its two explanations."""
        self.type(text)
        self.page.get_by_role("button", name="Explain").click()
        self.wait_for(text)

    def wait_for(self, text: str) -> None:
        self.page.wait_for_function(
            "text => { const found = [...document.querySelectorAll('.hfv-text')]; "
            "return found.length === 2 && found.every(panel => panel.textContent === text) }",
            arg=text,
        )

    def options(self, label: str):
        """Open a list of choices."""
        box = self.page.get_by_role("combobox", name=label, exact=True)
        self.page.keyboard.press("Escape")
        box.click()
        return self.page.locator(f"#{box.get_attribute('aria-controls')} [role=option]")

    def choose(self, label: str, option: str) -> None:
        self.options(label).filter(has_text=re.compile(rf"^\W*{re.escape(option)}\W*$")).click()

    def words(self, panel: int):
        return self.panels.nth(panel).locator("[data-word]")

    def click(self, panel: int, word: int) -> None:
        before = self.deleted()
        self.words(panel).nth(word).click()
        self.wait_for_deleted(sorted({*before} ^ {word}))

    def deleted(self) -> list[int]:
        [one, other] = [
            self.panels.nth(panel).locator("[aria-pressed=true]").evaluate_all("all => all.map(b => +b.dataset.word)")
            for panel in (0, 1)
        ]
        assert one == other
        return one

    def wait_for_deleted(self, words: list[int]) -> None:
        self.page.wait_for_function(
            "words => [...document.querySelectorAll('.hfv-text')].every(panel => JSON.stringify(words) === "
            "JSON.stringify([...panel.querySelectorAll('[aria-pressed=true]')].map(b => +b.dataset.word)))",
            arg=words,
        )

    def probabilities(self) -> dict[str, str]:
        names = self.page.locator(".prediction dt").all_inner_texts()
        return dict(zip(names, self.page.locator(".prediction .number").all_inner_texts(), strict=True))

    def change(self) -> str:
        return " ".join(self.page.locator(".change p").inner_text().split())


def percent(explanation) -> dict[str, str]:
    shown = [f"{100 * probability:.1f} %" for probability in explanation.probabilities]
    return dict(zip(explanation.label_names, shown, strict=True))


def test_a_text_is_explained_by_two_methods(app, visit, folders, screenshots):
    visitor = visit(app.address)
    model, tokenizer = load_classifier(str(folders[0]))
    visitor.explain(TEXT)
    for panel, method in enumerate(("attention_x_gradient", "occlusion")):
        [expected] = explain(model, tokenizer, [TEXT], method)
        words = visitor.words(panel)
        assert visitor.page.locator(".explanations h2").nth(panel).inner_text() == method.replace("_", " ")
        assert words.all_inner_texts() == expected.words
        titles = words.evaluate_all("all => all.map(word => Number(word.title))")
        assert titles == pytest.approx(expected.scores, rel=5e-3, abs=1e-6)
        largest = max(map(abs, expected.scores))
        shades = words.evaluate_all("all => all.map(word => Number(word.style.getPropertyValue('--s')))")
        assert shades == pytest.approx([abs(score) / largest for score in expected.scores], abs=6e-3)
        assert len(set(words.evaluate_all("all => all.map(word => getComputedStyle(word).backgroundColor)"))) > 3
    assert visitor.probabilities() == percent(expected)
    assert visitor.page.locator(".predicted dt").inner_text() == LABELS[expected.prediction]
    visitor.page.screenshot(path=screenshots / "space-desktop.png", full_page=True)


def test_words_are_deleted_and_put_back_by_clicks(app, visit, folders, screenshots):
    visitor = visit(app.address)
    model, tokenizer = load_classifier(str(folders[0]))
    visitor.explain(TEXT)
    without_awful, without_both = "a good film, but the plot is !", "a good film, the plot is !"
    full, one, two = explain(model, tokenizer, [TEXT, without_awful, without_both], "random")
    words = visitor.words(0).all_inner_texts()
    awful, but = words.index("awful"), words.index("but")
    [occluded] = explain(model, tokenizer, [TEXT], "occlusion")
    predicted = occluded.prediction
    before, after = full.probabilities[predicted], one.probabilities[predicted]
    assert before - after == pytest.approx(occluded.scores[awful], abs=1e-6)
    assert len({made.probabilities[predicted] for made in (full, one, two)}) == 3

    visitor.click(0, awful)
    assert visitor.probabilities() == percent(one)
    drop = f"{100 * (after - before):+.1f} points".replace("-", "−")
    assert f"Without awful: {LABELS[predicted]}" in visitor.change() and drop in visitor.change()
    assert f"from {100 * before:.1f} to {100 * after:.1f} %" in visitor.change()
    visitor.click(1, but)
    assert visitor.probabilities() == percent(two)
    assert "Without but, awful:" in visitor.change()
    visitor.page.screenshot(path=screenshots / "space-desktop-deleted.png", full_page=True)
    visitor.click(1, awful)
    visitor.click(0, but)
    assert visitor.probabilities() == percent(full) and "Click a word" in visitor.change()

    # Clicks that come before the answer to the last one all count.
    for word in visitor.words(0).all():
        word.click()
    visitor.wait_for_deleted(list(range(len(words))))
    assert "awful" not in visitor.change() and f"and {len(words) - 4} more: " in visitor.change()
    visitor.page.get_by_role("button", name="Put all back").click()
    visitor.wait_for_deleted([])
    assert visitor.probabilities() == percent(full)

    visitor.click(0, awful)
    visitor.explain("a bad film")
    assert visitor.deleted() == []


def test_c82_text_and_labels_are_shown_as_typed(app, visit, folders):
    visitor = visit(app.address)
    visitor.choose("Model", shown(folders, 1))
    visitor.page.get_by_role("heading", name="gradient").wait_for()
    visitor.explain(HOSTILE)
    assert "".join(visitor.words(1).all_inner_texts()) == re.sub(r"\s", "", HOSTILE)
    place = visitor.words(1).all_inner_texts().index("$")
    visitor.click(0, place)
    visitor.click(0, place + 1)
    assert visitor.change().startswith("Without $, {: ")
    assert set(visitor.probabilities()) == set(HOSTILE_LABELS.values())
    made = "document.querySelectorAll('#answer :is(script, img, bdi *, .hfv-text b *)').length"
    assert visitor.page.evaluate(made) == 0 and visitor.page.evaluate("window.hit") is None


def test_the_keyboard_reaches_everything(app, visit):
    visitor = visit(app.address)
    page, keyboard = visitor.page, visitor.page.keyboard

    def tab_to(selector: str) -> None:
        for _ in range(40):
            keyboard.press("Tab")
            if page.evaluate("selector => document.activeElement.matches(selector)", selector):
                return
        raise AssertionError(f"Tab does not reach {selector}")

    page.get_by_label("Text").focus()
    keyboard.press("Control+a")
    keyboard.type(TEXT)
    tab_to("button.primary")
    keyboard.press("Enter")
    visitor.wait_for(TEXT)
    tab_to("[aria-label='First explanation']")
    tab_to("[data-word='1']")
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert page.evaluate(outline) == "solid"
    keyboard.press("Space")
    visitor.wait_for_deleted([1])
    page.wait_for_timeout(500)  # leaving the lists of choices has asked for the explanations again
    assert visitor.deleted() == [1]
    assert page.evaluate("document.activeElement.dataset.word") == "1"  # the answer leaves the focus where it is
    keyboard.press("Tab")
    keyboard.press("Enter")
    visitor.wait_for_deleted([1, 2])
    keyboard.press("Shift+Tab")
    keyboard.press("Shift+Tab")
    keyboard.press("Shift+Tab")
    keyboard.press("Enter")  # Put all back
    visitor.wait_for_deleted([])


def test_a_phone_shows_all_without_scrolling_sideways(app, visit, screenshots):
    phone = visit(app.address, width=360, height=740, is_mobile=True, has_touch=True)
    text = f"{TEXT} {'unbelievable' * 12} film"

    def sections(visitor) -> list[dict]:
        return [section.bounding_box() for section in visitor.page.locator(".explanations section").all()]

    phone.explain(text)
    phone.words(1).nth(1).tap()
    phone.wait_for_deleted([1])
    assert phone.page.evaluate("document.documentElement.scrollWidth") <= 360
    assert (
        phone.page.evaluate(
            "[...document.querySelectorAll('.main *')].filter(e => e.checkVisibility() && "
            "e.getBoundingClientRect().right > 361).map(e => e.outerHTML.slice(0, 80))"
        )
        == []
    )
    first, second = sections(phone)
    assert second["y"] >= first["y"] + first["height"]
    phone.page.screenshot(path=screenshots / "space-phone.png", full_page=True)

    phone.words(1).last.scroll_into_view_if_needed()  # the prediction stays in sight
    top = phone.page.locator(".prediction").bounding_box()["y"]
    assert 0 <= top < 300
    phone.page.screenshot(path=screenshots / "space-phone-scrolled.png")

    desktop = visit(app.address)
    first, second = sections(desktop)
    assert second["y"] == first["y"] and second["x"] >= first["x"] + first["width"]


def test_texts_that_cannot_be_explained_are_refused(app, visit):
    visitor = visit(app.address)
    alert = visitor.page.locator("#answer [role=alert]")
    for text, message in (
        ("film " * 201, "The text has 201 words, more than 200."),
        ("", "no words"),
        ("f" * 2001, "The text has 2,001 characters, more than 2,000."),
        (" \n\u200b", "no words"),
    ):
        visitor.type(text)
        visitor.page.get_by_role("button", name="Explain").click()
        alert.filter(has_text=message).wait_for()
        assert visitor.panels.count() == 0
    visitor.explain("film " * 199 + "film")  # the longest one; the model takes 62 of its words
    assert alert.count() == 0 and visitor.page.get_by_text("138 words were cut off").count() == 2
    assert visitor.words(0).count() == 62 and visitor.panels.nth(0).locator(".hfv-unseen").count() == 138


def test_each_model_offers_the_methods_that_work_with_it(app, visit, folders):
    visitor = visit(app.address)
    methods = [method.replace("_", " ") for method in ALONE]

    def names(options) -> list[str]:
        return options.evaluate_all("all => all.map(option => option.ariaLabel)")

    assert names(visitor.options("First explanation")) == [
        method for method in methods if method not in ("mask", "polarity")
    ]
    visitor.choose("Second explanation", "integrated gradients")  # explains at once
    visitor.page.get_by_role("heading", name="integrated gradients").wait_for()
    visitor.choose("Model", shown(folders, 1))
    visitor.page.get_by_role("heading", name="gradient", exact=True).wait_for()
    assert visitor.page.locator(".explanations h2").all_inner_texts() == ["occlusion", "gradient"]
    assert names(visitor.options("Second explanation")) == [
        method for method in methods if method not in ("attention", "attention x gradient", "mask", "polarity")
    ]
    model, tokenizer = load_classifier(str(folders[1]))
    text = visitor.panels.nth(0).inner_text()
    assert visitor.probabilities() == percent(explain(model, tokenizer, [text], "random")[0])


def test_an_example_is_explained_when_it_is_chosen(app, visit):
    visitor = visit(app.address)
    examples = (SPACE / "examples.txt").read_text(encoding="utf-8").splitlines()
    visitor.wait_for(examples[0])
    visitor.page.get_by_role("button", name=" ".join(examples[1].split()[:3])).click()
    visitor.wait_for(examples[1])
    assert visitor.page.get_by_label("Text").input_value() == examples[1]


def test_an_answer_costs_little_more_than_its_explanations(app, visit, folders, capsys):
    """30 words, from the click to the page that shows both: seconds of the app's processor against those of `explain` here,
    text by text in turn, as other work on the machine slows both.
    """
    visitor = visit(app.address)
    visitor.choose("Model", shown(folders, 2))
    model, tokenizer = load_classifier(str(folders[2]))
    clock, answers, alone = [], [], []
    for number in range(6):
        text = " ".join(["Although the plot is dull"] * 5 + [f"I laughed {number} times today"])
        visitor.type(text)
        started, before = time.perf_counter(), sum(app.process.cpu_times()[:2])
        visitor.page.get_by_role("button", name="Explain").click()
        visitor.wait_for(text)
        clock.append(time.perf_counter() - started)
        answers.append(sum(app.process.cpu_times()[:2]) - before)
        before = time.process_time()
        for method in ("attention", "occlusion"):
            explain(model, tokenizer, [text], method)
        alone.append(time.process_time() - before)
    assert visitor.words(0).count() == visitor.words(1).count() == 30
    ratio = statistics.median(answers[1:]) / statistics.median(alone[1:])
    with capsys.disabled():
        print(
            f"\n30 words, {folders[2].name}: {statistics.median(clock[1:]):.2f} s by the clock, {ratio:.2f} times what the "
            "explanations cost alone (medians of 5)"
        )
    assert ratio < 2


# Without a browser


def test_models_are_named_by_an_option_or_a_variable(monkeypatch, tmp_path, capsys):
    pytest.importorskip("gradio", reason="needs the extra demo")
    spec = importlib.util.spec_from_file_location("space_app", SPACE / "app.py")
    app = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(app)
    monkeypatch.setattr(sys, "argv", ["app.py"])
    monkeypatch.setattr(app, "load", lambda name: (_ for _ in ()).throw(app.InputError(f"asked for {name}")))
    monkeypatch.chdir(tmp_path)

    def said() -> str:
        with pytest.raises(SystemExit) as ended:
            run(app.main)
        assert ended.value.code == 2
        return capsys.readouterr().err

    monkeypatch.delenv("MODELS", raising=False)
    assert "--models" in said()
    (tmp_path / "runs/quickstart/VAT").mkdir(parents=True)
    assert "asked for runs/quickstart/VAT" in said()
    monkeypatch.setenv("MODELS", "you/one you/two")
    assert "asked for you/one" in said()
    monkeypatch.setattr(sys, "argv", ["app.py", "--models", "three"])
    assert "asked for three" in said()


def test_the_card_of_the_space():
    card = SpaceCard.load(SPACE / "README.md").data
    pins = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text().split() if "==" in line)
    assert card.sdk == "gradio" and card.sdk_version == pins["gradio"]
    assert (SPACE / card.app_file).is_file() and len(card.short_description) <= 60
    assert (SPACE / "requirements.txt").read_text().split() == ["hf-vat[explain]"]


# Requests that do not come from the page; no browser is needed


@pytest.fixture(scope="module")
def space(folders):
    pytest.importorskip("gradio", reason="needs the extra demo")
    space = runpy.run_path(str(SPACE / "app.py"))
    return space["build"]({"vat": space["load"](str(folders[0]))})


def test_f59_programs_have_a_named_endpoint(space, folders):
    from gradio_client import Client
    from gradio_client.exceptions import AppError

    _, address, _ = space.launch(prevent_thread_lock=True, quiet=True, ssr_mode=False)
    try:
        client = Client(address, verbose=False)
        assert list(client.view_api(return_format="dict")["named_endpoints"]) == ["/explain"]
        answer = client.predict(TEXT, api_name="/explain")
        model, tokenizer = load_classifier(str(folders[0]))
        [expected] = explain(model, tokenizer, [TEXT], "attention_x_gradient")
        assert answer["prediction"] == LABELS[expected.prediction]
        assert [word["word"] for word in answer["words"]] == expected.words
        assert [word["score"] for word in answer["words"]] == pytest.approx(expected.scores, abs=1e-6)
        for given, named in (
            ((" ",), "no words"),
            ((TEXT, "x"), "no model 'x'"),
            ((TEXT, "vat", "x"), "no method 'x'"),
        ):
            with pytest.raises(AppError, match=named):
                client.predict(*given, api_name="/explain")
        with pytest.raises(AppError, match="no text"):
            client.predict(None, api_name="/explain")
    finally:
        space.close()


def test_a_pair_is_shown_as_two_texts_and_its_words_are_deleted(space):
    functions = {one.fn.__name__: one.fn for one in space.fns.values() if callable(one.fn)}
    shown, page = functions["explained"](None, "vat", "a good film", "the plot is awful", "attention", "occlusion")
    words = [*["a", "good", "film"], *["the", "plot", "is", "awful"]]
    assert page.count('<p class="hfv-text"') == 4 and shown.explanations[0].words == words
    assert [int(place) for place in re.findall(r'data-word="(\d+)"', page)] == [*range(7), *range(7)]
    shown, page = functions["clicked"](shown, SimpleNamespace(word=6))
    assert shown.deleted == {6} and "<del><bdi>awful</bdi></del>" in page


def test_a_click_on_an_answer_that_has_been_replaced_changes_nothing(space):
    """It waited behind the request for another answer, whose words are others."""
    functions = {one.fn.__name__: one.fn for one in space.fns.values() if callable(one.fn)}
    before, page = functions["explained"](None, "vat", "a good film", "", "attention", "occlusion")
    assert f'data-answer="{before.answer}"' in page
    now, page = functions["explained"](before, "vat", "an awful plot", "", "attention", "occlusion")
    assert f'data-answer="{now.answer}"' in page and now.answer != before.answer
    late, page = functions["clicked"](now, SimpleNamespace(word=1, answer=before.answer))
    assert not isinstance(late, type(now)) and not isinstance(page, str)  # what tells Gradio to leave both as they are
    after, page = functions["clicked"](now, SimpleNamespace(word=1, answer=now.answer))
    assert after.deleted == {1} and after.answer == now.answer and f'data-answer="{now.answer}"' in page


def test_a_text_can_lose_all_its_labels(tokenizer, tmp_path):
    """Then none is shown as predicted, and that is said to be a change."""
    pytest.importorskip("gradio", reason="needs the extra demo")
    config = BertVATConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32,
        max_position_embeddings=64, initializer_range=0.3, id2label=LABELS, problem_type="multi_label_classification",
    )  # fmt: skip
    with torch.random.fork_rng():
        set_seed(0)
        model = BertForVATClassification(config).eval()
    words = ["good", "film", "awful", "plot"]
    texts = [words, *([*words[:place], *words[place + 1 :]] for place in range(4))]
    full, *without = (
        one.probabilities for one in explain(model, tokenizer, [" ".join(one) for one in texts], "random", target=0)
    )
    drops = np.subtract(full, without)  # [words, labels]
    word, label = (int(one) for one in np.unravel_index(drops.argmax(), drops.shape))
    assert drops[word, label] > 0
    thresholds = [0.999] * len(LABELS)
    thresholds[label] = (full[label] + without[word][label]) / 2
    model.config.label_thresholds = thresholds
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    space = runpy.run_path(str(SPACE / "app.py"))
    page = space["build"]({"labels": space["load"](str(tmp_path))})
    functions = {one.fn.__name__: one.fn for one in page.fns.values() if callable(one.fn)}
    answer, page = functions["explained"](None, "labels", " ".join(words), "", "occlusion", "random")
    assert page.count('class="predicted"') == 1 and "the prediction changes" not in page
    _, page = functions["clicked"](answer, SimpleNamespace(word=word, answer=answer.answer))
    assert page.count('class="predicted"') == 0 and "the prediction changes" in page


def test_choices_are_exchanged_behind_the_requests_that_wait(space):
    import gradio as gr

    queues = {
        function.concurrency_id
        for function in space.fns.values()
        if any(isinstance(one, gr.Dropdown) for one in (*function.inputs, *function.outputs))
    }
    assert queues == {"model"}


def test_f59_crafted_requests_are_answered_with_a_sentence(space):
    functions = {one.fn.__name__: one.fn for one in space.fns.values() if callable(one.fn)}
    explained, clicked = functions["explained"], functions["clicked"]
    for name, text, *methods in (
        ("vat", None, "attention", "occlusion"),
        ("vat", 3, "attention", "occlusion"),
        ("x", TEXT, "attention", "occlusion"),
        (None, TEXT, "attention", "occlusion"),
        ([], TEXT, "attention", "occlusion"),
        ("vat", TEXT, "x", "occlusion"),
        ("vat", TEXT, None, ["lime"]),
        ("vat", "\ud800", "attention", "occlusion"),
    ):
        shown, page = explained(None, name, text, "", *methods)
        assert shown is None and "<p" in page and "Traceback" not in page
    shown, page = explained(None, "vat", TEXT, 3, "attention", "occlusion")
    assert shown is None and "<p" in page
    _, page = clicked(None, SimpleNamespace(word=1))
    assert "no explanation yet" in page
    shown, _ = explained(None, "vat", TEXT, "attention", "occlusion")
    for word in ([1], None, "1", {}, 10**9, -1, True, 1.5):
        again, page = clicked(shown, SimpleNamespace(word=word))
        assert again.deleted <= set(range(len(shown.explanations[0].words))) and page
    assert clicked(shown, SimpleNamespace())[0].deleted == frozenset()
