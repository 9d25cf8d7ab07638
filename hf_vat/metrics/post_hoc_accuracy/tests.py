"""Cases in the form of `evaluate`'s module template: inputs, options, and the result. The last text has no words."""

test_cases = [
    {
        "predictions": [[0.1, 0.9], [0.8, 0.2], [0.5, 0.5]],
        "kept": [[[0.4, 0.6], [0.7, 0.3]], [[0.3, 0.7]], []],
        "references": [1, 1, 1],
        "result": {
            "posthoc_gold@1": 1.0,
            "posthoc_gold@2": 0.5,
            "definition": "gold",
            "scale": "probability",
            "ks": [1, 2],
            "n_total": 3,
            "n_scored": 2,
            "n_skipped": {"no words": 1},
            "n_clamped@1": 0,
            "n_clamped@2": 1,
        },
    },
]
