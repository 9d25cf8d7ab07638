"""Claims of a paper about two systems, tested over seeds and texts, and what all reproductions show alike."""

from collections.abc import Sequence

import numpy as np

from hf_vat.faithfulness.statistics import bootstrap_interval, paired_bootstrap_over_runs
from hf_vat.report import Table

_VERDICTS = ("held", "open", "failed", "one seed")


def compare(better: np.ndarray, worse: np.ndarray) -> dict:
    """Whether one system is above another: the difference in points, its interval and p, the seeds won, the verdict.

    Intervals and p are of [`paired_bootstrap_over_runs`](hf_vat.faithfulness.statistics.paired_bootstrap_over_runs):
    they hold for other texts and other seeds. A claim "held" if p < 0.05 and the difference is above 0 in every seed,
    "failed" if p < 0.05 and it is below 0 in every seed, else it is "open". One seed decides nothing: "one seed".

    Args:
        better, worse: values per seed and text of the two systems, shape [seeds, texts].
    """
    test = paired_bootstrap_over_runs(better, worse)
    differences = (better - worse).mean(1)
    won, lost = int((differences > 0).sum()), int((differences < 0).sum())
    sure = test.p_value < 0.05
    verdict = "held" if sure and won == len(better) else "failed" if sure and lost == len(better) else "open"
    return {
        **{"difference": 100 * test.difference, "low": 100 * test.low, "high": 100 * test.high},
        **{"p_value": test.p_value, "seeds_won": won, "seeds": len(better)},
        "verdict": "one seed" if len(better) == 1 else verdict,
    }


def claims_tables(claims: Sequence[dict], note: str = "") -> list[Table]:
    """How many claims held, and all claims with their tests; nothing without claims.

    Args:
        claims: what [`compare`] found, with the keys dataset, encoder, claim, score (as shown), group (score in the
            counts) and paper (the difference that the paper prints, in points, or None).
        note: to add to the caption.
    """
    if not claims:
        return []
    counts: dict[tuple[str, str], dict[str, int]] = {}
    for claim in claims:
        row = counts.setdefault((claim["claim"], claim["group"]), dict.fromkeys(_VERDICTS, 0))
        row[claim["verdict"]] += 1
    return [
        Table(
            "Claims, counted over data sets and encoders",
            ["claim", "score", *_VERDICTS],
            [[*names, *map(str, row.values())] for names, row in counts.items()],
        ),
        Table(
            "Claims",
            ["setting", "score", "claim", "difference", "the paper's", "p", "seeds won", "verdict"],
            [
                [
                    f"{claim['encoder']}, {claim['dataset']}",
                    claim["score"],
                    claim["claim"],
                    f"{claim['difference']:+.1f} [{claim['low']:.1f}, {claim['high']:.1f}]",
                    "" if claim["paper"] is None else f"{claim['paper']:+.1f}",
                    f"{claim['p_value']:.3f}",
                    f"{claim['seeds_won']} of {claim['seeds']}",
                    claim["verdict"],
                ]
                for claim in claims
            ],
            "Differences in points. Intervals and p come from resampling seeds and texts; for one seed from texts alone, which "
            "says nothing about other seeds. Held: p < 0.05 and won in every seed; failed: p < 0.05 and lost in every seed; else "
            "open. For two systems that do not differ, with 3 seeds up to a tenth of such claims would be held or failed where "
            f"seeds differ by 5 points. p-values are not adjusted for their number.{note}",
        ),
    ]


def recipes_tables(recipes: Sequence[dict]) -> list[Table]:
    """What a recipe changes, as a table; nothing without.

    Args:
        recipes: what [`compare`] found, with the keys dataset, encoder, score and what.
    """
    rows = [
        [
            f"{one['encoder']}, {one['dataset']}",
            one["score"],
            one["what"],
            f"{one['difference']:+.1f} [{one['low']:.1f}, {one['high']:.1f}]",
            f"{one['p_value']:.3f}",
            f"{one['seeds_won']} of {one['seeds']}",
        ]
        for one in recipes
    ]
    columns = ["setting", "score", "what", "difference", "p", "seeds above 0"]
    caption = "Differences in points on the same test texts; intervals and p as those of the claims below."
    return [Table("Recipes compared", columns, rows, caption)] if rows else []


def per_text(values: Sequence) -> np.ndarray:
    """Values per seed and text, or one for each seed, as an array [seeds, texts] or [seeds, 1]."""
    return np.array(values, dtype=float).reshape(len(values), -1)


def mean_sd(values: np.ndarray, paper: float | None = None, scale: int = 100) -> str:
    """Mean ± sd over seeds, and the paper's number in brackets."""
    digits = 1 if scale == 100 else 2
    sd = f" ± {scale * values.std(ddof=1):.{digits}f}" if len(values) > 1 else ""
    printed = "" if paper is None else f" [{paper:.{digits}f}]"
    return f"{scale * values.mean():.{digits}f}{sd}{printed}"


def band(values: np.ndarray) -> tuple[float, float, float]:
    """Mean of values [seeds, texts], and ± one standard deviation over seeds; for one seed a bootstrap interval."""
    means = values.mean(1)
    if len(means) == 1:
        return bootstrap_interval(values[0])
    return means.mean(), means.mean() - means.std(ddof=1), means.mean() + means.std(ddof=1)
