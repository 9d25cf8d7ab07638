"""Cases in the form of `evaluate`'s module template: inputs, options, and the result. The last text has no words."""

test_cases = [
    {
        "predictions": [[0.2, 0.9, 0.1, 0.5], [1.0, 1.0, 1.0], []],
        "references": [[1, 1, 0, 0], [0, 1, 1], []],
        "result": {
            "auprc": 0.8125,
            "definition": "auprc",
            "n_total": 3,
            "n_scored": 2,
            "n_skipped": {"no words": 1, "no marked words": 0, "only marked words": 0},
            "n_tied": 1,
        },
    },
    {
        "predictions": [[0.2, 0.9, 0.1, 0.5], [1.0, 1.0, 1.0], []],
        "references": [[1, 1, 0, 0], [0, 1, 1], []],
        "definition": "average_precision",
        "result": {
            "average_precision": 0.75,
            "definition": "average_precision",
            "n_total": 3,
            "n_scored": 2,
            "n_skipped": {"no words": 1, "no marked words": 0, "only marked words": 0},
            "n_tied": 1,
        },
    },
    {
        "predictions": [[0.2, 0.9, 0.1, 0.5], [1.0, 1.0, 1.0], []],
        "references": [[1, 1, 0, 0], [0, 1, 1], []],
        "definition": "roc_auc",
        "result": {
            "roc_auc": 0.625,
            "definition": "roc_auc",
            "n_total": 3,
            "n_scored": 2,
            "n_skipped": {"no words": 1, "no marked words": 0, "only marked words": 0},
            "n_tied": 1,
        },
    },
]
