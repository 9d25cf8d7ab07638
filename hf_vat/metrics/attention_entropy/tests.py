"""Cases in the form of `evaluate`'s module template: inputs, options, and the result. The last text has no words."""

test_cases = [
    {
        "predictions": [[0.25, 0.25, 0.25, 0.25], [1.0, 0.0], []],
        "result": {
            "normalized_entropy": 0.5,
            "max_weight": 0.625,
            "n_total": 3,
            "n_scored": 2,
            "n_skipped": {"no words": 1},
        },
    },
]
