"""The gallery in ``examples/notebooks``: eight notebooks, stored with small outputs; they run as they stand."""

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

ROOT = Path(__file__).parents[2]
GALLERY = sorted((ROOT / "examples" / "notebooks").glob("*.ipynb"))


def test_eight_are_stored_with_what_they_gave() -> None:
    assert len(GALLERY) == 8
    for path in GALLERY:
        cells = [cell for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
        assert any(cell.outputs for cell in cells), path.name
        assert not any(output.output_type == "error" for cell in cells for output in cell.outputs), path.name
        assert path.stat().st_size < 100_000, path.name
        text = path.read_text().replace("\\n", "\n")
        named = re.findall(r"(?<![\w:/.<])/[\w.-]+/[\w.-]+", text)
        assert not named and "/home/" not in text, f"{path.name} names folders of a machine: {named[:3]}"


@pytest.mark.slow
@pytest.mark.parametrize("path", GALLERY, ids=lambda path: path.stem)
def test_it_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRADEASSAY_HOME", str(tmp_path / "home"))
    recorded = ROOT / "recordings" / "src" / "tradeassay_recordings"
    monkeypatch.setenv("TRADEASSAY_RECORDINGS", str(recorded))
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=240, kernel_name="python3", resources=resources).execute()
