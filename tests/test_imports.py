"""Which package imports which, read from the source: at the top of a file, in a function, and for types alone."""

import ast
from pathlib import Path

import pytest

import hf_vat

ROOT = Path(hf_vat.__file__).parent


def imports() -> dict[str, set[str]]:
    """For each package and module of hf_vat the others that its files name."""
    found: dict[str, set[str]] = {}
    for path in ROOT.rglob("*.py"):
        place = path.relative_to(ROOT).with_suffix("").parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and not node.level and node.module == "hf_vat":
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
                names = [node.module.removeprefix("hf_vat.")] if node.module.startswith("hf_vat.") else []
            elif isinstance(node, ast.Import):
                names = [alias.name.removeprefix("hf_vat.") for alias in node.names if alias.name.startswith("hf_vat.")]
            else:
                continue
            found.setdefault(place, set()).update(name.split(".")[0] for name in names)
    return found


def reached(start: str) -> set[str]:
    graph, seen, waiting = imports(), set(), [start]
    while waiting:
        for place in graph.get(waiting.pop(), set()) - seen:
            seen.add(place)
            waiting.append(place)
    return seen


@pytest.mark.parametrize(
    ("package", "used", "above"),
    [
        ("report", {"errors", "explained", "faithfulness"}, {"explanations", "comparison", "hub", "commands"}),
        ("faithfulness", {"errors", "explained", "inference"}, {"explanations", "comparison", "report", "hub"}),
        ("explanations", {"report", "faithfulness"}, {"comparison", "hub", "commands"}),
        ("comparison", {"report", "explanations", "faithfulness"}, {"hub", "commands"}),
    ],
)
def test_imports_go_one_way(package, used, above):
    found = reached(package)
    assert used <= found and not above & found
