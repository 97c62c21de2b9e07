"""Paths of the four packages of the checkout."""

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = tuple(sorted(path for path in ROOT.glob("packages/*/src/tradeassay*") if path.is_dir()))
"""The folders of the import packages."""
PYTHONPATH = os.pathsep.join(str(folder.parent) for folder in FOLDERS)
