"""The gallery in ``examples/notebooks``: nine notebooks, stored with the outputs that they give."""

import importlib.util
import re
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
GALLERY = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))

IMPORTED = re.compile(r"^from (tradeassay[\w.]*) import ([\w, ]+)$", re.MULTILINE)


def test_nine_are_stored_with_what_they_gave():
    assert len(GALLERY) == 9
    for path in GALLERY:
        cells = [
            cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"
        ]
        assert any(cell.outputs for cell in cells), path.name
        assert not any(
            output.output_type == "error" for cell in cells for output in cell.outputs
        ), path.name
        assert path.stat().st_size < 100_000, path.name
        for name, things in re.findall(IMPORTED, "\n".join(cell.source for cell in cells)):
            assert all(
                hasattr(importlib.import_module(name), one.strip()) for one in things.split(",")
            ), name
        text = path.read_text().replace("\\n", "\n")
        named = re.findall(r"(?<![\w:/.<])/[\w.-]+/[\w.-]+", text)
        assert not named and "/home/" not in text, (
            f"{path.name} names folders of a machine: {named[:3]}"
        )
        assert not re.search(r"on \d+ workers", text), (
            f"{path.name} prints how long this machine takes"
        )


@pytest.mark.slow
@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_it_gives_what_is_stored(path, tmp_path, monkeypatch):
    """Every output is what the code gives today; ``scripts/notebooks.py`` stores them anew."""
    monkeypatch.setenv("TRADEASSAY_HOME", str(tmp_path / "home"))
    spec = importlib.util.spec_from_file_location("notebooks", ROOT / "scripts" / "notebooks.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    stored, now = nbformat.read(path, as_version=4), script.executed(path, tmp_path)
    for was, cell in zip(stored.cells, now.cells, strict=True):
        if cell.cell_type == "code":
            assert [dict(one) for one in cell.outputs] == [dict(one) for one in was.outputs], (
                cell.source
            )
