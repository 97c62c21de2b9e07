"""How rooms and modules import each other: without circles, and as the map in the manual says."""

import re
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r"^\| `(\w+)` \| .* \| ([^|]*) \|$", re.MULTILINE)


@pytest.fixture(scope="module")
def imported() -> dict[str, set[str]]:
    graph = grimp.build_graph("tradeassay")
    return {module: graph.find_modules_directly_imported_by(module) - {module} for module in graph.modules}


def test_no_circles(imported: dict[str, set[str]]) -> None:
    """Not even inside a room and not even for types."""
    left = dict(imported)
    while ready := [module for module, others in left.items() if not others & left.keys()]:
        for module in ready:
            del left[module]
    assert not left, f"in or above a circle: {sorted(left)[:20]}"


def test_the_map_of_the_house_is_true(imported: dict[str, set[str]]) -> None:
    """The rooms in the manual are the folders, and import what it says beside the core."""
    rooms = {path.parent.name for path in (ROOT / "src" / "tradeassay").glob("*/__init__.py")}
    found: dict[str, set[str]] = {room: set() for room in rooms}
    for module, others in imported.items():
        room = module.split(".")[1:2]
        if room and room[0] in rooms:
            found[room[0]] |= {other.split(".")[1] for other in others if "." in other} & rooms - {*room, "core"}
    told = dict(ROW.findall((ROOT / "docs" / "concepts" / "house.md").read_text(encoding="utf-8")))
    said = {room: set(re.findall(r"`(\w+)`", text)) for room, text in told.items()}
    assert said.keys() == rooms
    wrong = {room: f"imports {sorted(found[room])}" for room in sorted(rooms) if found[room] != said[room]}
    assert not wrong, "mend the table in docs/concepts/house.md, or the import"
