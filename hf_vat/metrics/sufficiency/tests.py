"""Cases in the form of `evaluate`'s module template: inputs, options, and the result. The last text has no words."""

test_cases = [
    {
        "predictions": [[0.1, 0.9], [0.8, 0.2], [0.5, 0.5]],
        "kept": [[[0.3, 0.7], [0.1, 0.9]], [[0.9, 0.1], [0.8, 0.2]], []],
        "shares": [0.2, 0.5],
        "result": {
            "sufficiency@0.2": 0.05,
            "sufficiency@0.5": 0.0,
            "aopc_sufficiency": 0.025,
            "scale": "probability",
            "shares": [0.2, 0.5],
            "n_total": 3,
            "n_scored": 2,
            "n_skipped": {"no words": 1},
        },
    },
]
