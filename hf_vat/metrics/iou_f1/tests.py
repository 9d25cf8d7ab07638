"""Cases in the form of `evaluate`'s module template: inputs, options, and the result. The last text has no words."""

INPUTS = {
    "predictions": [[0.2, 0.9, 0.1, 0.5], [1.0, 1.0, 1.0], []],
    "references": [[1, 1, 0, 0], [0, 1, 1], []],
}
COUNTS = {"n_total": 3, "n_scored": 2, "n_skipped": {"no words": 1, "no marked words": 0}, "n_tied": 1}

SETTINGS = {"threshold": 0.5, "k": None}

test_cases = [
    {**INPUTS, "result": {"precision": 0.25, "recall": 0.5, "f1": 1 / 3, "average": "macro", **SETTINGS, **COUNTS}},
    {
        **INPUTS,
        "average": "micro",
        "result": {"precision": 1 / 3, "recall": 0.5, "f1": 0.4, "average": "micro", **SETTINGS, **COUNTS},
    },
]
