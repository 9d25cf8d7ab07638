"""Numbers printed in Sun and Lu (ACL 2020), "Understanding Attention for Text Classification"; accuracies in percent.

Data sets are named as in [`hf_vat.data.PAPER_DATASETS`].
"""

_DATASETS = ("sst2", "imdb", "20news_1", "20news_2")
_MODELS = ("DP", "DP-L", "DP-A", "AD")

# table 1: data set -> mean length in words, and size of the vocabulary
DATA = {"sst2": (18, 16_174), "imdb": (183, 63_311), "20news_1": (185, 17_584), "20news_2": (187, 29_433)}

# table 2, test accuracy by λ: by data set those of the four models
_TABLE_2 = {
    "0.001": (55.3, 79.8, 67.9, 62.8, 55.5, 87.7, 73.3, 69.8, 54.8, 88.6, 78.6, 49.4, 31.8, 90.1, 64.6, 59.2),
    "1": (74.4, 81.2, 73.4, 73.4, 79.5, 88.2, 85.4, 83.7, 88.4, 93.0, 85.3, 87.6, 85.4, 92.3, 88.3, 86.7),
    "10": (82.2, 81.7, 80.8, 80.3, 89.2, 87.8, 89.6, 88.2, 92.8, 91.2, 92.8, 92.0, 93.4, 93.4, 91.7, 90.0),
    "20": (81.4, 80.9, 81.0, 81.2, 89.6, 88.1, 89.6, 89.6, 93.5, 92.2, 93.5, 91.2, 94.9, 94.2, 93.3, 92.1),
    "50": (80.8, 82.0, 81.5, 79.9, 89.8, 87.2, 89.1, 88.5, 93.3, 92.3, 92.2, 91.7, 94.9, 92.3, 92.9, 93.8),
    "100": (81.2, 81.1, 80.7, 80.8, 89.3, 88.3, 89.2, 88.8, 92.8, 91.2, 92.8, 93.3, 94.9, 93.1, 92.9, 92.9),
    "10000": (79.6, 81.4, 79.3, 80.8, 89.3, 88.4, 88.9, 88.9, 92.8, 92.0, 93.0, 92.0, 94.5, 93.8, 92.5, 92.9),
}
# (data set, model, λ) -> accuracy
ACCURACY = {
    (dataset, model, scale): value
    for scale, values in _TABLE_2.items()
    for (dataset, model), value in zip(
        ((dataset, model) for dataset in _DATASETS for model in _MODELS), values, strict=True
    )
}
