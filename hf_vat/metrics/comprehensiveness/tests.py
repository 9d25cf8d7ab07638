"""Cases in the form of `evaluate`'s module template: inputs, options, and the result. The last text has no words."""

test_cases = [
    {
        "predictions": [[0.1, 0.9], [0.8, 0.2], [0.5, 0.5]],
        "perturbed": [[[0.4, 0.6], [0.7, 0.3]], [[0.7, 0.3], [0.6, 0.4]], []],
        "shares": [0.2, 0.5],
        "result": {
            "comprehensiveness@0.2": 0.2,
            "comprehensiveness@0.5": 0.4,
            "aopc_comprehensiveness": 0.3,
            "scale": "probability",
            "shares": [0.2, 0.5],
            "n_total": 3,
            "n_scored": 2,
            "n_skipped": {"no words": 1},
        },
    },
]
