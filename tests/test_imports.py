"""Which package imports which, read from the source: at the top of a file, in a function, and for types alone."""

import ast
import importlib
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import pytest

import hf_vat

ROOT = Path(hf_vat.__file__).parent
PAGE = Path(__file__).parents[1] / "docs" / "concepts" / "architecture.md"


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


def layers() -> dict[str, int]:
    """The layer of each room, as the page on the architecture has it."""
    rows = re.findall(r"^\| (\d+) \| (.+?) \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {room: int(layer) for layer, rooms in rows for room in re.findall(r"`(\w+)`", rooms)}


def test_rooms_are_those_of_the_page_and_of_its_figure():
    rooms = {path.stem for path in ROOT.iterdir() if path.name[0] not in "_." and path.name != "py.typed"}
    assert rooms == set(layers())
    figure = (PAGE.parents[1] / "assets" / "rooms.svg").read_text(encoding="utf-8")
    assert rooms == set(re.findall(r'<text x="\d+" y="\d+">(\w+)</text>', figure))


@pytest.mark.parametrize("room", sorted(layers()))
def test_a_room_imports_only_from_rooms_below_it(room):
    layer, used = layers(), imports().get(room, set()) - {room}
    assert all(layer[other] < layer[room] for other in used), used


def test_imports_are_seen():
    assert {"errors", "explained", "faithfulness"} <= imports()["report"]
    assert {"report", "faithfulness"} <= imports()["explanations"]


def test_no_module_has_the_name_of_what_its_package_gives():
    """Which of both an import finds, and a page of the API shows, would depend on the order."""
    for package in (one.name for one in pkgutil.walk_packages(hf_vat.__path__, "hf_vat.") if one.ispkg):
        given = importlib.import_module(package)
        for module in pkgutil.iter_modules(given.__path__):
            found = getattr(given, module.name, None)
            assert found is None or isinstance(found, ModuleType), f"{package}.{module.name}"
