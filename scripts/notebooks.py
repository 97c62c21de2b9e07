"""Execute the notebooks of examples/notebooks in an empty folder and data home, and save the
outputs.

    python scripts/notebooks.py [NAME...]

The notebooks print nothing that depends on the machine or the day (paths, times). Running them
again therefore changes only the effects of changed code.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

GALLERY = Path(__file__).resolve().parents[1] / "examples" / "notebooks"


def executed(path: Path, folder: Path) -> nbformat.NotebookNode:
    """Return a notebook with its current outputs. Raises nbclient's error if a cell fails."""
    notebook = nbformat.read(path, as_version=4)
    os.environ.setdefault("TRADEASSAY_HOME", str(folder / "home"))
    os.environ.setdefault(
        "TRADEASSAY_RECORDINGS",
        str(GALLERY.parents[1] / "recordings" / "src" / "tradeassay_recordings"),
    )
    os.environ.setdefault("EXAMPLES", str(GALLERY.parent))
    resources = {"metadata": {"path": str(folder)}}
    NotebookClient(
        notebook, timeout=300, kernel_name="python3", resources=resources, coalesce_streams=True
    ).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":  # progress and warnings go to stderr; a reader wants results
            cell.outputs = [one for one in cell.outputs if one.get("name") != "stderr"]
    return notebook


if __name__ == "__main__":
    for path in sorted(GALLERY.glob("*.ipynb")):
        if len(sys.argv) == 1 or path.stem in sys.argv[1:]:
            with tempfile.TemporaryDirectory() as place:
                nbformat.write(executed(path, Path(place)), path)
            print(path.name, path.stat().st_size)
