"""Cases in the form of `evaluate`'s module template: inputs, options, and the result. The last text has no words."""

test_cases = [
    {
        "predictions": [[0.2, 0.9, 0.1, 0.5], [1.0, 1.0, 1.0], []],
        "references": [[1, 1, 0, 0], [0, 1, 1], []],
        "result": {
            "precision": 0.25,
            "recall": 0.5,
            "f1": 1 / 3,
            "average": "macro",
            "threshold": 0.5,
            "k": None,
            "n_total": 3,
            "n_scored": 2,
            "n_skipped": {"no words": 1, "no marked words": 0},
            "n_tied": 1,
        },
    },
    {
        "predictions": [[0.2, 0.9, 0.1, 0.5], [1.0, 1.0, 1.0], []],
        "references": [[1, 1, 0, 0], [0, 1, 1], []],
        "average": "micro",
        "result": {
            "precision": 1 / 3,
            "recall": 0.5,
            "f1": 0.4,
            "average": "micro",
            "threshold": 0.5,
            "k": None,
            "n_total": 3,
            "n_scored": 2,
            "n_skipped": {"no words": 1, "no marked words": 0},
            "n_tied": 1,
        },
    },
]
