"""The `evaluate` modules of this package, loaded from the installed package without a network.

```python
aopc = hf_vat.metrics.load("aopc")
aopc = evaluate.load(hf_vat.metrics.path("aopc"))
```

| asked of | modules |
|---|---|
| the classifier, without the top words or on them alone | aopc, comprehensiveness, post_hoc_accuracy, sufficiency |
| marked words (rationales) | auprc, iou_f1, token_f1, word_f1_at_k |
| another explanation, or none | explanation_agreement; attention_entropy |

An input has the same name in all of them, so that modules of one row can be combined; those with `ks` and those with
`shares` are two kinds of the first:

```python
both = evaluate.combine([hf_vat.metrics.load(name) for name in ("comprehensiveness", "sufficiency")])
both.compute(predictions=full, perturbed=without_the_top_words, kept=top_words_alone, shares=[0.2, 0.5])
```

Each folder has the module, its card, a Space's app and requirements, and cases that the tests run.
"""

from pathlib import Path

import evaluate

from hf_vat.errors import InputError

NAMES = (
    "aopc",
    "attention_entropy",
    "auprc",
    "comprehensiveness",
    "explanation_agreement",
    "iou_f1",
    "post_hoc_accuracy",
    "sufficiency",
    "token_f1",
    "word_f1_at_k",
)


def load(name: str) -> evaluate.Metric:
    """Load a module; its inputs stay in memory, so that processes which share a cache folder cannot meet in a file.

    Every process that calls `compute` gets the result for what it added itself.

    Raises:
        InputError: if there is no such module.
        OSError: if `evaluate` cannot write its copy of the module's code; set `HF_HOME` to a folder that can be written.
    """
    return evaluate.load(path(name), keep_in_memory=True)


def path(name: str) -> str:
    """The folder of a module, for `evaluate.load(path)` with options, or to upload as a Space.

    Raises:
        InputError: if there is no such module.
    """
    if name not in NAMES:
        raise InputError(f"There is no metric {name!r}; there are {', '.join(NAMES)}.")
    return str(Path(__file__).parent / name)
