"""Numbers printed in Zhou et al. (2021), "Attending via both Fine-tuning and Compressing", in percent.

Rows "Random" of tables 3 and 4 are single draws there. Data sets are named as in [`hf_vat.data.PAPER_DATASETS`].
"""

_ORDER = ("imdb", "sst1", "sst2", "yelp", "ag_news", "trec", "subj", "twitter")


def _row(*values: float) -> dict[str, float]:
    return dict(zip(_ORDER, values, strict=True))


# tables 2 to 4: table -> (encoder of the paper, system) -> data set -> number
VAT_TABLES: dict[int, dict[tuple[str, str], dict[str, float]]] = {
    2: {  # test accuracy
        ("LSTM", "base"): _row(88.79, 45.20, 85.45, 95.10, 91.91, 90.00, 89.00, 71.25),
        ("LSTM", "ATT"): _row(88.16, 46.29, 84.73, 95.06, 91.88, 91.00, 90.80, 70.75),
        ("LSTM", "VAT"): _row(88.98, 47.42, 86.22, 95.32, 92.04, 92.80, 91.10, 71.62),
        ("BERT", "base"): _row(91.90, 51.44, 91.60, 96.07, 93.52, 96.60, 96.50, 75.28),
        ("BERT", "ATT"): _row(91.81, 51.13, 91.16, 97.20, 93.41, 96.40, 96.20, 74.84),
        ("BERT", "VAT"): _row(92.11, 51.99, 91.98, 97.36, 93.71, 97.20, 96.70, 77.13),
    },
    3: {  # AOPC: accuracy_drop@5 under the base model
        ("LSTM", "Random"): _row(0.30, 5.97, 7.58, 1.02, 1.87, 19.40, 1.50, 4.72),
        ("LSTM", "ATT"): _row(5.27, 12.94, 20.54, 6.64, 5.99, 31.00, 2.10, 19.10),
        ("LSTM", "VAT"): _row(6.13, 14.34, 21.58, 7.12, 6.59, 37.20, 6.30, 20.37),
        ("BERT", "Random"): _row(0.60, 33.26, 41.46, 3.60, 44.20, 65.80, 45.70, 59.21),
        ("BERT", "ATT"): _row(2.81, 33.98, 41.52, 4.73, 52.22, 71.60, 45.70, 59.39),
        ("BERT", "VAT"): _row(3.17, 34.03, 41.52, 6.64, 54.70, 72.20, 45.80, 59.45),
    },
    4: {  # post-hoc accuracy: posthoc_gold@5 under the base model
        ("LSTM", "Random"): _row(58.48, 34.21, 71.33, 64.74, 62.45, 71.40, 78.40, 54.07),
        ("LSTM", "ATT"): _row(83.96, 40.56, 82.70, 87.80, 78.96, 73.60, 87.40, 70.20),
        ("LSTM", "VAT"): _row(84.41, 43.39, 84.35, 88.82, 81.43, 79.20, 89.10, 71.23),
        ("BERT", "Random"): _row(51.50, 20.27, 50.52, 50.21, 26.74, 26.60, 50.60, 40.50),
        ("BERT", "ATT"): _row(51.72, 29.19, 58.92, 53.63, 37.53, 34.20, 61.90, 53.68),
        ("BERT", "VAT"): _row(53.40, 30.23, 61.34, 56.58, 43.08, 36.80, 65.40, 56.05),
    },
}

_WORD_SCORES = tuple(
    f"{polarity} {score}@{k}"
    for polarity in ("positive", "negative")
    for k in (1, 5)
    for score in ("precision", "recall", "f1")
)


def _words(*values: float) -> dict[str, float]:
    return dict(zip(_WORD_SCORES, values, strict=True))


_RANDOM = _words(14.88, 4.78, 6.56, 14.59, 23.34, 16.06, 20.52, 5.61, 8.19, 17.18, 23.68, 17.97)
# table 5, Twitter of SemEval-2013: (encoder, row) -> score -> number
VAT_WORDS = {
    ("LSTM", "Random"): _RANDOM,
    ("LSTM", "ATT"): _words(58.70, 26.04, 32.73, 30.30, 54.17, 34.70, 47.13, 15.74, 21.39, 28.24, 42.04, 30.33),
    ("LSTM", "VAT"): _words(65.20, 29.38, 36.60, 33.04, 58.40, 37.77, 60.00, 21.42, 28.76, 32.70, 49.19, 35.35),
    ("BERT", "Random"): _RANDOM,
    ("BERT", "ATT"): _words(46.44, 16.52, 21.82, 33.13, 52.52, 35.66, 37.74, 9.19, 13.46, 30.82, 39.65, 30.23),
    ("BERT", "VAT"): _words(55.24, 20.62, 26.90, 37.26, 58.39, 40.09, 43.83, 11.15, 16.20, 36.42, 44.55, 35.30),
}
# table 6, test accuracy of VAT after iterations 0 to 5: (encoder, data set) -> numbers
VAT_ITERATIONS = {
    ("LSTM", "twitter"): (70.75, 71.62, 70.96, 70.67, 71.06, 70.98),
    ("LSTM", "imdb"): (88.16, 88.98, 88.22, 88.84, 88.14, 88.60),
    ("BERT", "twitter"): (74.84, 75.26, 77.71, 77.13, 76.68, 76.76),
    ("BERT", "imdb"): (91.81, 92.06, 92.11, 92.09, 91.92, 91.96),
}
