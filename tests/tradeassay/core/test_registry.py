import importlib
import sys

import pytest

from tradeassay.core.errors import UserError
from tradeassay.core.registry import Registry


@pytest.fixture
def fruits():
    registry: Registry[int] = Registry("fruit")
    registry.add("apple", 1)
    registry.add("pear", 2)
    return registry


def test_the_decorator_files_and_returns_its_object(fruits):
    assert fruits.register("plum")(3) == 3
    assert fruits.names() == ("apple", "pear", "plum")
    assert dict(fruits.items())["plum"] == 3
    assert "plum" in fruits


def test_a_duplicate_name_is_refused(fruits):
    with pytest.raises(UserError, match="'apple' is registered twice"):
        fruits.add("apple", 9)
    assert fruits.get("apple") == 1


def test_an_unknown_name_gets_near_ones(fruits):
    with pytest.raises(UserError, match="did you mean apple"):
        fruits.get("aple")
    with pytest.raises(UserError, match="known: apple, pear"):
        fruits.get("zzzzz")


def install(folder, monkeypatch, name, point):
    """Put an installed package with one entry point on the path."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[tradeassay.fruits]\n{point}\n")
    monkeypatch.syspath_prepend(str(folder))


def test_entry_points_of_other_packages_are_found(tmp_path, monkeypatch, fruits):
    (tmp_path / "orchard.py").write_text("QUINCE = 4\n")
    install(tmp_path, monkeypatch, "orchard", "quince = orchard:QUINCE")
    assert fruits.get("quince") == 4
    assert "quince" in fruits.names()


def test_one_broken_package_does_not_take_the_others_down(tmp_path, monkeypatch, fruits):
    install(tmp_path, monkeypatch, "rotten", "medlar = no_such_module_at_all:X")
    assert fruits.names() == ("apple", "pear")
    assert "no_such_module_at_all" in fruits.broken()["medlar"]
    with pytest.raises(UserError, match="cannot be loaded: ModuleNotFoundError"):
        fruits.get("medlar")


PACKAGE = """
from typing import TYPE_CHECKING

from tradeassay.core.lazy import attach

if TYPE_CHECKING:
    from lazy_house import garden as garden
    from lazy_house.cellar import DEPTH as DEPTH
    from lazy_house.cellar import dig as dig
    from lazy_house.roof import tile as tile
else:
    __getattr__, __dir__, __all__ = attach(
        __name__, {"lazy_house.cellar": ["DEPTH", "dig"], "lazy_house.roof": ["tile"]}, submodules=["garden"]
    )
"""


@pytest.fixture
def house(tmp_path, monkeypatch):
    folder = tmp_path / "lazy_house"
    folder.mkdir()
    (folder / "__init__.py").write_text(PACKAGE)
    (folder / "cellar.py").write_text("DEPTH = 3\n\n\ndef dig():\n    return DEPTH\n")
    (folder / "roof.py").write_text("def tile():\n    return 'red'\n")
    (folder / "garden.py").write_text("TREES = 2\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.startswith("lazy_house")]:
        monkeypatch.delitem(sys.modules, name)
    return "lazy_house"


def test_a_name_is_imported_when_it_is_asked_for(house):
    package = importlib.import_module(house)
    assert "lazy_house.cellar" not in sys.modules
    assert package.dig() == package.DEPTH == 3
    assert "lazy_house.roof" not in sys.modules
    assert package.tile() == "red"
    assert package.garden.TREES == 2
    assert package.__all__ == ["DEPTH", "dig", "garden", "tile"]
    assert set(dir(package)) >= set(package.__all__)


def test_a_name_that_is_not_listed_is_refused(house):
    package = importlib.import_module(house)
    with pytest.raises(AttributeError, match="'lazy_house' has no attribute 'attic'"):
        _ = package.attic
    with pytest.raises(ImportError):
        exec("from lazy_house import attic")


def test_a_declared_name_is_known_and_imported_when_it_is_used(tmp_path, monkeypatch):
    registry = Registry[str]("bed")
    monkeypatch.setattr(sys, "beds_of_the_test", registry, raising=False)
    (tmp_path / "lazy_bed.py").write_text(
        "import sys\n\nsys.beds_of_the_test.add('roses-v1', 'red')\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    registry.declare("roses-v1", "lazy_bed")
    assert registry.names() == ("roses-v1",) and "roses-v1" in registry
    assert registry.full_name("roses") == "roses-v1"
    assert "lazy_bed" not in sys.modules
    assert registry.get("roses") == "red"
    assert dict(registry.items()) == {"roses-v1": "red"}
    with pytest.raises(UserError, match="'roses-v1' is registered twice"):
        registry.add("roses-v1", "white")
