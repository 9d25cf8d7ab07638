"""The model card of an explainer."""

from huggingface_hub import ModelCardData

from hf_vat.hub.card import escaped

from .teacher import EXPLAINED

_TEXT = """---
{metadata}
---

# An explainer of a text classifier

It scores the words of a text for each class of one classifier, and for no other: {classes}. It has learned from {teacher}
({settings}) of {texts} texts, without labels, and gives in one forward pass what that method says after many.
On {held_out} others its scores explain {variance:.0f} % of {explained}.

## Use

```python
import hf_vat

[explanation] = hf_vat.explain(
    "the classifier", texts=["A text."], method="amortized", explainer="this folder or its Hub id"
)
print(explanation)
```

In the classifier's own folder, as `explainer` (`hf_vat.amortized.attach_explainer`), it is found without being named, also by the
pipeline `text-classification-explained`.

The scores are an estimate of the teacher's, made from a text that the student reads at once. Where they matter, ask the teacher
itself, and measure both: `hf_vat.compare_explainers`.

After FastSHAP (Jethani et al., ICLR 2022) and amortised Shapley values of texts (Yang et al., ACL 2023). Made with `hf_vat.fit_amortized`; all numbers of the run
are in `distillation.json`.
"""


def explainer_card(student, run: dict) -> str:
    """The card of an explainer, from its configuration and the numbers of its run, see [`fit_amortized`]."""
    metadata = ModelCardData(
        library_name="transformers", pipeline_tag="token-classification", tags=["hf_vat", "explainability"]
    )
    settings = ", ".join(f"{name} {value}" for name, value in run["settings"].items())
    return _TEXT.format(
        metadata=metadata.to_yaml(),
        classes=", ".join(f"**{escaped(name)}**" for name in student.config.id2label.values()),
        teacher={"shapley": "Shapley values", "lime": "LIME", "occlusion": "occlusion"}[run["teacher"]],
        settings=escaped(settings),
        texts=f"{run['texts'] - run['held_out']:,}",
        held_out=run["held_out"],
        explained=EXPLAINED[run["teacher"]],
        variance=100 * max(run["explained_variance"], 0),
    )
