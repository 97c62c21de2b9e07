"""Packages that import their names on first use, and what importing them costs."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = """
from typing import TYPE_CHECKING

from tradeassay.core.lazy import lazily

if TYPE_CHECKING:
    from lazy_house.cellar import DEPTH as DEPTH
    from lazy_house.cellar import dig as dig
    from lazy_house.roof import tile as tile
else:
    __getattr__, __dir__, __all__ = lazily(__name__)
"""


@pytest.fixture
def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    folder = tmp_path / "lazy_house"
    folder.mkdir()
    (folder / "__init__.py").write_text(PACKAGE)
    (folder / "cellar.py").write_text("DEPTH = 3\n\n\ndef dig():\n    return DEPTH\n")
    (folder / "roof.py").write_text("def tile():\n    return 'red'\n")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.startswith("lazy_house")]:
        monkeypatch.delitem(sys.modules, name)
    return "lazy_house"


def test_a_name_is_imported_when_it_is_asked_for(house: str) -> None:
    package = importlib.import_module(house)
    assert "lazy_house.cellar" not in sys.modules
    assert package.dig() == package.DEPTH == 3
    assert "lazy_house.roof" not in sys.modules
    assert package.tile() == "red"
    assert package.__all__ == ["DEPTH", "dig", "tile"]
    assert set(dir(package)) >= set(package.__all__)


def test_a_name_that_is_not_listed_is_refused(house: str) -> None:
    package = importlib.import_module(house)
    with pytest.raises(AttributeError, match="'lazy_house' has no attribute 'attic'"):
        _ = package.attic
    with pytest.raises(ImportError):
        exec("from lazy_house import attic")


@pytest.mark.parametrize("package", ["tradeassay", "tradeassay.assay", "tradeassay.runs", "tradeassay.report"])
def test_every_listed_name_is_there(package: str) -> None:
    module = importlib.import_module(package)
    assert all(getattr(module, name) is not None for name in module.__all__)


def test_importing_the_assay_loads_nothing_heavy() -> None:
    heavy = {"pandas", "inspect_ai", "numba", "scipy", "arch"}
    code = f"import sys, tradeassay.assay; loaded = {heavy!r} & sys.modules.keys(); assert not loaded, loaded"
    subprocess.run([sys.executable, "-c", code], check=True)
