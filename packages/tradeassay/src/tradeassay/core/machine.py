"""Checks of a machine for ``tradeassay doctor``. Installed packages can add checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

import msgspec

from tradeassay.core.registry import Registry


class MachineFinding(msgspec.Struct, frozen=True):
    """The result of one check.

    ``absent`` is a missing optional part. ``broken`` is a missing or faulty required part.
    """

    part: str
    state: Literal["ok", "absent", "broken"]
    finding: str


DoctorCheck = Callable[[], Iterable[MachineFinding]]

doctor_checks: Registry[DoctorCheck] = Registry("doctor_check")
"""Checks of installed packages, by name (entry points ``tradeassay.doctor_checks``)."""


OPTIONAL = {
    "files": ("pyarrow", "Parquet files and workbooks"),
    "us": ("yfinance", "live US prices"),
    "crypto": ("ccxt", "live crypto prices"),
    "ashare": ("baostock", "live A-share prices"),
    "ray": ("ray", "grids over many machines"),
    "models": ("inspect_ai", "language models of any provider"),
    "local": ("xllamacpp", "a language model on this machine"),
    "code": ("talib", "generated strategies"),
    "qlib": ("qlib", "factor-model baselines"),
    "arena": ("sqlalchemy", "the arena"),
    "postgres": ("psycopg", "an arena with several workers"),
    "serve": ("mcp", "agents that speak MCP"),
    "fast": ("numba", "luck baselines"),
    "polars": ("polars", "runs as polars frames, other projects' layouts of data"),
    "tracking": ("mlflow", "export to experiment trackers"),
    "rl": ("gymnasium", "the market as a Gymnasium environment"),
}
"""For each extra: the package that it requires, and its purpose."""
