"""The toy benchmark is importable by its name, here and in a process of its own."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import code_runs_toy  # noqa: F401  # registers the toy benchmark
