"""Numbers printed in Zhou et al. (2021), "Attending via both Fine-tuning and Compressing", in percent.

Rows "Random" of tables 3 and 4 are single draws there. Data sets are named as in [`hf_vat.data.PAPER_DATASETS`].
"""

_ORDER = ("imdb", "sst1", "sst2", "yelp", "ag_news", "trec", "subj", "twitter")


def _row(*values: float) -> dict[str, float]:
    return dict(zip(_ORDER, values, strict=True))


# table -> (encoder of the paper, system) -> data set -> number
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
