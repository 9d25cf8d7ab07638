"""Cases in the form of `evaluate`'s module template: inputs, options, and the result. The last text has no words."""

INPUTS = {
    "predictions": [[0.2, 0.9, 0.1, 0.5], [1.0, 1.0, 1.0], []],
    "references": [[1, 1, 0, 0], [0, 1, 1], []],
}
COUNTS = {
    "n_total": 3,
    "n_scored": 2,
    "n_skipped": {"no words": 1, "no marked words": 0, "only marked words": 0},
    "n_tied": 1,
}

test_cases = [
    {**INPUTS, "result": {"auprc": 0.8125, "definition": "auprc", **COUNTS}},
    *[
        {**INPUTS, "definition": name, "result": {name: value, "definition": name, **COUNTS}}
        for name, value in (("average_precision", 0.75), ("roc_auc", 0.625))
    ],
]
