from pathlib import Path

import pytest

from tradeassay.core.errors import UserError
from tradeassay.core.registry import Registry


@pytest.fixture
def fruits() -> Registry[int]:
    registry: Registry[int] = Registry("fruit")
    registry.add("apple", 1)
    registry.add("pear", 2)
    return registry


def test_the_decorator_files_and_returns_its_object(fruits: Registry[int]) -> None:
    assert fruits.register("plum")(3) == 3
    assert fruits.names() == ("apple", "pear", "plum")
    assert dict(fruits.items())["plum"] == 3
    assert "plum" in fruits


def test_a_duplicate_name_is_refused(fruits: Registry[int]) -> None:
    with pytest.raises(UserError, match="'apple' is registered twice"):
        fruits.add("apple", 9)
    assert fruits.get("apple") == 1


def test_an_unknown_name_gets_near_ones(fruits: Registry[int]) -> None:
    with pytest.raises(UserError, match="did you mean apple"):
        fruits.get("aple")
    with pytest.raises(UserError, match="known: apple, pear"):
        fruits.get("zzzzz")


def test_entry_points_of_other_packages_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fruits: Registry[int]
) -> None:
    (tmp_path / "orchard.py").write_text("QUINCE = 4\n")
    info = tmp_path / "orchard-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: orchard\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[tradeassay.fruits]\nquince = orchard:QUINCE\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert fruits.get("quince") == 4
    assert "quince" in fruits.names()


def test_one_broken_package_does_not_take_the_others_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fruits: Registry[int]
) -> None:
    info = tmp_path / "rotten-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rotten\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[tradeassay.fruits]\nmedlar = no_such_module_at_all:X\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert fruits.names() == ("apple", "pear")
    assert "no_such_module_at_all" in fruits.broken()["medlar"]
    with pytest.raises(UserError, match="cannot be loaded: ModuleNotFoundError"):
        fruits.get("medlar")
