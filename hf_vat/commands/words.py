"""Which words matter to a classifier over all texts of a file or data set.

    hf-vat words --model runs/trec-vmask --paper_dataset trec --split train --min_count 5 --output_dir runs/words
    hf-vat words --model runs/mine --method lime --settings n_samples=500 --test_file reviews.csv --output_dir runs/words
    hf-vat words --model runs/mine --method polarity --train_file reviews.csv --split train --output_dir runs/words

By default from the model's word mask, the probability that a word is kept; with another --method from the explanations of
all texts, whose scores of a word are added up. Prints the most important words and how importance goes with frequency, and
writes words.csv, and as pictures the most important words (words.png, cloud.png) and importance by frequency
(frequency.png). After an interruption of a slow method the same command goes on where it stopped. With --shard 3/8 a job of a
cluster explains a part of the texts, and --merge 8 does the rest; processes of torchrun share the texts by themselves.

With --method polarity it is the attention and polarity scores of words in the texts of a classifier with attention, most attended
first, and how well they tell types of words apart, which are counted in these texts, so give the training texts with their
labels. It writes words.csv, and as pictures the scores (scores.png) and attention weights (attention.png) of each type.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path

from hf_vat.analysis import AttentionScores, attention_scores, type_separation
from hf_vat.analysis.scores import CONTEXTS
from hf_vat.arguments import argument
from hf_vat.cli import given_options, output_folder, parse_arguments, settings_of_method
from hf_vat.data import DataArguments, load_texts
from hf_vat.errors import import_extra
from hf_vat.explanations import (
    METHODS,
    Explanation,
    GlobalImportance,
    WordImportance,
    explain,
    mask_importance,
    word_importance,
)
from hf_vat.explanations.global_importance import AGGREGATES
from hf_vat.faithfulness import frequency_correlation
from hf_vat.options import refuse_without_effect, settings_of
from hf_vat.pretrained import load_classifier
from hf_vat.processes import is_main_process
from hf_vat.report import frequency_scatter, score_boxes, score_histograms, table, word_bars, word_cloud
from hf_vat.report.figures import LINE_STYLES
from hf_vat.report.terminal import clean

from .sharing import ShardArguments, Turn, turns


@dataclass
class WordsArguments:
    model: str = argument(help="Classifier: a folder or a Hub id.")
    method: str = argument(
        "mask",
        "'mask' reads the model's word mask, 'polarity' its attention and head; others explain each text.",
        choices=list(METHODS),
    )
    settings: list[str] = argument([], "Settings of the method, e.g. n_samples=500 operator=mask.")
    aggregate: str = argument(
        "abs_sum", "What becomes of a word's scores; not for 'mask' and 'polarity'.", choices=list(AGGREGATES)
    )
    context: str = argument(
        "average",
        "For 'polarity': a word's scores as the average over its occurrences, or alone as a text.",
        choices=list(CONTEXTS),
    )
    split: str | None = argument(
        None,
        "Texts of which split; by default of the test split, or of the first that there is.",
        choices=["train", "validation", "test"],
    )
    min_count: int = argument(1, "How often a word must occur.")
    top: int = argument(10, "Number of words to print and to draw.")
    batch_size: int = argument(32, "Model inputs per forward pass.")
    seed: int = argument(0, "Seed of methods that draw random numbers.")
    output_dir: str | None = argument(None, "Write table and pictures to this folder.")


ARGUMENTS = (WordsArguments, DataArguments, ShardArguments)


def main():
    args, data_args, shard_args = parse_arguments(ARGUMENTS, __doc__)
    explains = args.method not in ("mask", "polarity")
    if not explains and not is_main_process():
        return
    refuse_without_effect("words", given_options(ARGUMENTS), settings_of(args, data_args, shard_args))
    work = turns(shard_args, args.output_dir, "output_dir") if explains else iter(())
    scored = args.method == "polarity"
    files = ("words.csv", *(("scores.png", "attention.png") if scored else ("words.png", "frequency.png", "cloud.png")))
    folder = None if args.output_dir is None else output_folder("--output_dir", args.output_dir, files)
    if folder:
        for package in ("matplotlib", *([] if scored else ["wordcloud"])):  # the pictures come last
            import_extra(package, "viz")
    model, tokenizer = load_classifier(args.model)
    texts, labels = load_texts(data_args, model, labelled=scored, split=args.split)
    if scored:
        _show_scores(args, model, tokenizer, texts, labels or [], folder)
        return
    if not explains:
        _show(args, mask_importance(model, tokenizer, texts, min_count=args.min_count), folder)
        return
    for turn in work:
        explanations = _explanations(args, model, tokenizer, texts, folder, turn)
        if turn.shard is not None:
            turn.tell(len(explanations), len(texts), folder)
        else:
            _show(args, word_importance(explanations, args.aggregate, args.min_count), folder)


def _show(args: WordsArguments, words: GlobalImportance, folder: Path | None) -> None:
    top = words.top(args.top)
    rows = [[clean(row.word), f"{row.importance:.3f}", str(row.count), str(row.texts)] for row in top]
    print(table(list(WordImportance._fields), rows))
    print(f"\n{_frequency(words)}")
    if folder:
        _write(folder, words, top, Path(args.model).name)


def _explanations(
    args: WordsArguments, model, tokenizer, texts: Sequence[str], folder: Path | None, turn: Turn
) -> list[Explanation]:
    settings = settings_of_method(args.method, args.settings)
    return explain(
        model,
        tokenizer,
        texts,
        args.method,
        batch_size=args.batch_size,
        seed=args.seed,
        progress=is_main_process(),
        save_to=folder and folder / f"{args.method}.jsonl",
        shard=turn.shard,
        merge=turn.merge,
        **settings,
    )


def _frequency(words: GlobalImportance) -> str:
    if len(words) < 3:
        return f"{len(words)} words: too few for a correlation with frequency."
    found = frequency_correlation([row.count for row in words], [row.importance for row in words])
    told = ", ".join(
        f"{name} {one.value:.3f} [{one.low:.3f}, {one.high:.3f}]"
        for name, one in (
            ("Pearson", found.pearson),
            ("Pearson of log counts", found.pearson_log),
            ("Spearman", found.spearman),
        )
    )
    return f"Importance and frequency over {found.n_words} words: {told}"


def _write(folder: Path, words: GlobalImportance, top: list, title: str) -> None:
    words.to_csv(folder / "words.csv")
    word_bars({title: top}, folder / "words.png")
    frequency_scatter({title: words}, path=folder / "frequency.png")
    positive = [row for row in top if row.importance > 0]
    if positive:
        word_cloud(positive, folder / "cloud.png")
    print(f"Table and pictures: {folder}")


def _show_scores(
    args: WordsArguments, model, tokenizer, texts: Sequence, labels: Sequence, folder: Path | None
) -> None:
    words = attention_scores(
        model,
        tokenizer,
        texts,
        labels,
        context=args.context,
        min_count=args.min_count,
        batch_size=args.batch_size,
        progress=True,
    )
    names = words.label_names
    of_class = [f"polarity score of {name}" for name in names] if len(names) > 2 else ["polarity score"]
    rows = [
        [
            *(clean(row.word), str(row.count), clean(row.type or "-"), f"{row.attention_score:.3f}"),
            *(f"{score:.3f}" for score in (*row.polarity_scores, row.gamma)),
            "-" if row.attention is None else f"{row.attention:.3f}",
        ]
        for row in words.top(args.top)
    ]
    print(table(["word", "count", "type", "attention score", *map(clean, of_class), "gamma", "attention weight"], rows))
    print(f"\n{_separation(words)}")
    if folder:
        words.to_csv(folder / "words.csv")
        types = len(words.by_type("attention_score"))
        if types > len(LINE_STYLES):
            print(f"No pictures: {types} types of words cannot be told apart, {len(LINE_STYLES)} can.")
        elif types:
            titles = {"polarity score": "polarity_score", "attention score": "attention_score"}
            score_histograms({title: words.by_type(field) for title, field in titles.items()}, 1, folder / "scores.png")
            score_boxes({"mean attention weight": words.by_type("attention")}, path=folder / "attention.png")
        print(f"Table and pictures: {folder}")


def _separation(words: AttentionScores) -> str:
    found = type_separation(words)
    if not found.means:
        return f"None of the {len(words)} words is polar or neutral by its counts; give more texts."
    rows = [
        [
            *(clean(name), str(means.words)),
            _mean(means.attention_score, means.attention_score_sd),
            _mean(means.polarity_score, means.polarity_score_sd),
        ]
        for name, means in found.means.items()
    ]
    told = ", ".join(
        f"{name} {value:.3f}"
        for name, value in (
            ("AUC of attention scores, polar against neutral words", found.attention_auc),
            ("AUC of polarity scores between classes", found.polarity_auc),
            ("sign agreement", found.sign_agreement),
        )
        if isfinite(value)
    )
    return table(["type", "words", "attention score", "polarity score"], rows) + (told and f"\n\n{told}")


def _mean(mean: float, sd: float) -> str:
    return f"{mean:.3f} ± {sd:.3f}" if isfinite(sd) else f"{mean:.3f}"  # of a single word
