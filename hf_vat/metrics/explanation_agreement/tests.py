"""Cases in the form of `evaluate`'s module template: inputs, options, and the result. The last text has no words."""

INPUTS: dict = {
    "predictions": [[1.0, 2.0, 3.0, 4.0], [0.0, 0.0], []],
    "references": [[1.0, 3.0, 2.0, 4.0], [0.1, 0.9], []],
}
COUNTS: dict = {"n_total": 3, "n_scored": 2, "n_skipped": {"no words": 1}, "n_tied": 1}

test_cases: list[dict] = [
    {**INPUTS, "result": {"kendall_tau": 1 / 3, "definition": "kendall_tau", **COUNTS}},
    {**INPUTS, "definition": "tvd", "result": {"tvd": 0.25, "definition": "tvd", **COUNTS}},
    {
        **INPUTS,
        "definition": "top_k_overlap",
        "k": 2,
        "result": {"top_k_overlap@2": 2 / 3, "definition": "top_k_overlap", **COUNTS},
    },
]
