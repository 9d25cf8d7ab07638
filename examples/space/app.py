"""A page on which visitors type a text and see which words decided: two explanations side by side, words that can be deleted.

    python examples/space/app.py --models runs/quickstart/VAT
    MODELS="you/your-model distilbert/distilbert-base-uncased-finetuned-sst-2-english" python examples/space/app.py

Needs the extra demo. A Space of the Hub runs the same file and reads MODELS from its variables. Address and port are Gradio's
variables GRADIO_SERVER_NAME (127.0.0.1) and GRADIO_SERVER_PORT (the first free one from 7860).
"""

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from uuid import uuid4

import gradio as gr
from jinja2 import ChoiceLoader, Environment, FileSystemLoader, PackageLoader, StrictUndefined
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from hf_vat.cli import parse_arguments, run
from hf_vat.errors import InputError, MissingExtra
from hf_vat.errors import shown as shown_value
from hf_vat.explained import parts_of, predicted_names, texts_of
from hf_vat.explanations import METHODS, Explanation, explain
from hf_vat.faithfulness.perturb import Operator
from hf_vat.inference import encode_texts, predict_outputs
from hf_vat.models.problems import MULTI_LABEL, REGRESSION, SINGLE_LABEL, Problem
from hf_vat.models.words import PAIR, split_words
from hf_vat.pretrained import load_classifier

FOLDER = Path(__file__).parent
QUICKSTART = "runs/quickstart/VAT"
MAX_WORDS, MAX_CHARACTERS = 200, 2000
# Seconds, not minutes, for a visitor who waits. The page tells these settings.
SETTINGS = {"lime": {"n_samples": 300}, "shapley": {"n_samples": 10}}
PREFERRED = (
    "attention_x_gradient",
    "mask",
    "occlusion",
    "gradient",
    "random",
)  # fast ones, the model's own first
SCORES = {
    "attention": "the model's own attention",
    "attention_x_gradient": "the model's own attention times its gradient",
    "mask": "how likely the model's own mask keeps the word",
    "polarity": "the model's own attention times which class the word speaks for",
    "gradient": "how fast the probability changes with the word's vector",
    "input_x_gradient": "the word's vector times the gradient",
    "integrated_gradients": "gradients on the way from an empty text",
    "occlusion": "what the probability loses without the word",
    "lime": "the word's weight in a linear model around the text",
    "shapley": "what the word adds to other words, on average",
    "random": "random numbers: what any explanation should beat",
}


@dataclass
class SpaceArguments:
    models: list[str] = field(
        default_factory=lambda: os.environ.get("MODELS", "").split() or [QUICKSTART] * Path(QUICKSTART).is_dir(),
        metadata={"help": "Classifiers to choose from: folders or Hub ids. By default those in the variable MODELS."},
    )
    share: bool = field(default=False, metadata={"help": "Also open a public link through Gradio's servers."})


class Classifier(NamedTuple):
    """A model that visitors can choose, how words are deleted for it, and the methods that can explain it."""

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    operator: Operator
    methods: list[str]


class Shown(NamedTuple):
    """What a visitor looks at: a text, explained by two methods, and the positions of the words that are deleted."""

    name: str
    explanations: list[Explanation]
    answer: str  # which tells a click on an earlier answer, that was on its way, from one on this
    deleted: frozenset[int] = frozenset()

    @property
    def asked(self) -> tuple[str, str, str, tuple[str, ...]]:
        first = self.explanations[0]
        methods = tuple(explanation.method for explanation in self.explanations)
        return self.name, first.text, first.text_pair or "", methods


def main():
    (args,) = parse_arguments((SpaceArguments,), __doc__)
    if not args.models:
        raise InputError(
            "No model is named: give folders or Hub ids with --models or in the variable MODELS, or run `make quickstart`."
        )
    page = build({shown: load(name) for shown, name in short_names(args.models).items()})
    # Texts of visitors stay here: no history in the browser (and no telemetry, see `build`).
    page.launch(
        share=args.share,
        css_paths=FOLDER / "page.css",
        ssr_mode=False,
        run_history=False,
        footer_links=["gradio"],
    )


def short_names(models: list[str]) -> dict[str, str]:
    """What visitors see of each model: a Hub id as it is, and of a folder no more of its path than tells it from the others."""
    parts = {name: Path(name).resolve().parts if Path(name).is_dir() else tuple(name.split("/")) for name in models}
    shown = {}
    for name, own in parts.items():
        others = [other for other in parts.values() if other != own]
        length = 1 if Path(name).is_dir() else len(own)
        while any(other[-length:] == own[-length:] for other in others):
            length += 1
        shown["/".join(own[-length:])] = name
    return shown


def load(name: str) -> Classifier:
    """A classifier, with the methods that can explain it; their first text also warms the model up."""
    model, tokenizer = load_classifier(name)
    explain(model, tokenizer, ["a"], "random")  # refuses what is no classifier
    methods = [method for method in METHODS if _offers(model, tokenizer, method)]
    return Classifier(model, tokenizer, Operator.of("delete", tokenizer), methods)


def _offers(model, tokenizer, method: str) -> bool:
    try:
        explain(model, tokenizer, ["a"], method, **SETTINGS.get(method, {}))
    except (InputError, MissingExtra):
        return False
    return True


def build(classifiers: dict[str, Classifier]) -> gr.Blocks:
    """The page, for models by name."""
    examples = (FOLDER / "examples.txt").read_text(encoding="utf-8").splitlines()
    first = next(iter(classifiers))

    def choices(name: str) -> list[dict]:
        methods = classifiers[name].methods
        offered = [(_readable(method), method) for method in methods]
        preferred = [method for method in PREFERRED if method in methods]
        return [{"choices": offered, "value": method} for method in preferred[:2]]

    def explained(shown: Shown | None, name: str, text: str, pair: str, *methods: str) -> tuple[Shown | None, str]:
        # A list of choices also says that it has changed when the keyboard leaves it; deleted words must stay deleted.
        if shown is not None and shown.asked == (name, text, pair, methods):
            return gr.skip(), gr.skip()
        try:
            explanations = [explanation(name, text, pair, method) for method in methods]
        except InputError as error:
            return None, _templates.get_template("result.html").render(message=str(error))
        shown = Shown(name, explanations, uuid4().hex)
        return shown, render(shown, classifiers[name])

    def explanation(name: str, text: str, pair: str, method: str) -> Explanation:
        """What a request asks for, which need not come from the page."""
        if not isinstance(name, str) or name not in classifiers:
            raise InputError(f"There is no model {shown_value(name)}; there are {', '.join(classifiers)}.")
        model, tokenizer, _, methods = classifiers[name]
        if not isinstance(method, str) or method not in methods:
            raise InputError(f"There is no method {shown_value(method)}; there are {', '.join(methods)}.")
        for one in (text, pair) if pair else (text,):
            check_text(one)
        asked = {"text": text, "text_pair": pair} if pair else text
        return explain(model, tokenizer, [asked], method, **SETTINGS.get(method, {}))[0]

    def answer(text: str, model: str = first, method: str = choices(first)[0]["value"], text_pair: str = "") -> dict:
        """Explain a text, for programs: the prediction, a class, a list of labels or none; the probability of each class or
        label, or each score; and the score of each word."""
        try:
            found = explanation(model, text, text_pair, method)
        except InputError as error:
            raise gr.Error(str(error), print_exception=False) from error
        names = found.label_names
        said = [name for name, _ in predicted_names(found)]
        kind = found.problem_type
        return {
            "prediction": said[0] if kind == SINGLE_LABEL else said if kind == MULTI_LABEL else None,
            "probabilities": dict(zip(names, found.probabilities, strict=True)),
            "words": [{"word": word, "score": score} for word, score in zip(found.words, found.scores, strict=True)],
        }

    def clicked(shown: Shown | None, event: gr.EventData) -> tuple[Shown | None, str]:
        """Delete a word, put it back, or (no word) put all back."""
        if shown is None:
            return None, _templates.get_template("result.html").render(
                message="There is no explanation yet. Ask for one."
            )
        if getattr(event, "answer", shown.answer) != shown.answer:
            return gr.skip(), gr.skip()
        word = getattr(event, "word", None)
        deleted = shown.deleted ^ {word} if isinstance(word, int) else frozenset()
        shown = shown._replace(deleted=deleted & set(range(len(shown.explanations[0].words))))
        return shown, render(shown, classifiers[shown.name])

    with gr.Blocks(title="Which words decided?", analytics_enabled=False) as page:
        gr.Markdown(
            "# Which words decided?\nA classifier reads your text, and two methods say which words it relied on. Do they "
            "tell the truth? Delete the words that they colour and see what the classifier makes of the rest."
        )
        text = gr.Textbox(examples[0], label="Text", lines=3, max_lines=8)
        pair = gr.Textbox("", label="Its pair, for a model that reads two", lines=1, max_lines=4)
        button = gr.Button("Explain", variant="primary")
        samples = gr.Examples(
            examples,
            text,
            example_labels=[" ".join([*example.split()[:3], "…"]) for example in examples],
            api_visibility="private",
        )
        with gr.Row():
            model = gr.Dropdown(list(classifiers), value=first, label="Model", filterable=False, min_width=300)
            left, right = (
                gr.Dropdown(**own, label=f"{place} explanation", filterable=False, min_width=130)
                for place, own in zip(("First", "Second"), choices(first), strict=True)
            )
        result = gr.HTML(
            apply_default_css=False, elem_id="answer", js_on_load=(FOLDER / "words.js").read_text(encoding="utf-8")
        )
        shown = gr.State()

        # One thing at a time: a second model run would only slow down both.
        one = {"concurrency_id": "model", "concurrency_limit": 1, "api_visibility": "private"}
        explaining = {
            "fn": explained,
            "inputs": [shown, model, text, pair, left, right],
            "outputs": [shown, result],
            **one,
        }
        asked = [page.load, button.click, text.submit, pair.submit, left.input, right.input]
        gr.on(asked, **explaining, trigger_mode="always_last", show_progress="minimal")
        samples.load_input_event.then(**explaining)
        # In the same queue: a request that waits is answered before what it asks for is no choice any more.
        model.input(lambda name: [gr.update(**own) for own in choices(name)], model, [left, right], **one).then(
            **explaining
        )
        # Every click counts, also one that comes before the answer to the last.
        gr.api(answer, api_name="explain", concurrency_id="model", concurrency_limit=1)
        result.word(clicked, shown, [shown, result], **one, trigger_mode="multiple", show_progress="hidden")
    return page


def check_text(text: str) -> None:
    """Refuse a text without words, or one that would keep the other visitors waiting."""
    if not isinstance(text, str):
        raise InputError("There is no text. Type one.")
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"The text has {len(text):,} characters, more than {MAX_CHARACTERS:,}. Shorten it.")
    words = len(split_words(text))
    if words > MAX_WORDS:
        raise InputError(f"The text has {words} words, more than {MAX_WORDS}. Shorten it.")
    if not words:
        raise InputError("The text has no words. Type one.")


def render(shown: Shown, classifier: Classifier) -> str:
    """The prediction with and without the deleted words, and the explanations, as HTML in which all data is escaped."""
    explanation, problem = shown.explanations[0], Problem.of(classifier.model.config)
    before = after = explanation.probabilities
    if shown.deleted:
        model, tokenizer, operator, _ = classifier
        texts = texts_of(explanation)
        asked = texts[0] if len(texts) == 1 else dict(zip(PAIR, texts, strict=True))
        [encoded] = encode_texts(tokenizer, [asked], model, None)
        kept = [[position not in shown.deleted for position in range(len(explanation.words))]]
        [after] = predict_outputs(model, tokenizer, operator.keep(encoded, kept)).tolist()
    largest = sorted(range(len(before)), key=lambda label: -max(before[label], after[label]))
    return _templates.get_template("result.html").render(
        message=None,
        explanations=shown.explanations,
        answer=shown.answer,
        deleted=sorted(shown.deleted),
        before=before,
        after=after,
        predicted=explanation.predicted if problem.kind == REGRESSION else problem.predicted(after),
        is_score=problem.kind == REGRESSION,
        classes=largest[:6],
        scores=SCORES,
    )


def _readable(method: str) -> str:
    return method.replace("_", " ")


def _told(output: float, is_score: bool) -> str:
    return f"{output:.3g}" if is_score else f"{100 * output:.1f} %"


_templates = Environment(
    loader=ChoiceLoader([FileSystemLoader(FOLDER), PackageLoader("hf_vat.report")]),  # the colours are those of reports
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.filters |= {"readable": _readable, "told": _told, "parts": parts_of}

if __name__ == "__main__":
    run(main)
