"""Cases in the form of `evaluate`'s module template: inputs, options, and the result. The last text has no words."""

INPUTS = {
    "predictions": [[0.2, 0.9, 0.1, 0.5], [1.0, 1.0, 1.0], []],
    "references": [[1, 1, 0, 0], [0, 1, 1], []],
}
COUNTS = {"n_total": 3, "n_scored": 2, "n_skipped": {"no words": 1, "no marked words": 0}, "n_tied": 1}

test_cases = [
    {
        **INPUTS,
        "result": {
            **{"precision": 0.5, "recall": 0.5, "f1": 0.5, "average": "macro", "k": None, **COUNTS},
            **{"expected_precision": 7 / 12, "expected_recall": 7 / 12, "expected_f1": 7 / 12},
        },
    },
    {
        **INPUTS,
        "average": "micro",
        "k": 4,
        "result": {
            **{"precision": 4 / 7, "recall": 1.0, "f1": 8 / 11, "average": "micro", "k": 4, **COUNTS},
            **{"expected_precision": 4 / 7, "expected_recall": 1.0, "expected_f1": 8 / 11},
        },
    },
]
