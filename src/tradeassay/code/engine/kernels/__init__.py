"""The twelve strategies and the pricing of decisions as compiled loops. Importing a module here imports numba."""

from __future__ import annotations

from pathlib import Path

from tradeassay.core.compiled import Compiler
from tradeassay.data import data_home

_COMPILER = Compiler(Path(__file__).parent, data_home())
compiled, inner = _COMPILER.compiled, _COMPILER.inner
