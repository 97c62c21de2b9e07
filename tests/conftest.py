"""What holds for all tests. Those marked ``slow`` are left out unless asked for: see ``addopts``."""

from __future__ import annotations

import os
from importlib.util import find_spec

import pytest

collect_ignore = [
    file
    for package, file in (
        ("akshare", "data/connectors/test_akshare.py"),
        ("baostock", "data/connectors/test_baostock.py"),
        ("ccxt", "data/connectors/test_ccxt.py"),
        ("yfinance", "data/connectors/test_yfinance.py"),
        ("ray", "runs/test_ray.py"),
    )
    if find_spec(package) is None
]
"""Whole files about packages that only ``make test-all`` installs."""


def pytest_configure(config: pytest.Config) -> None:
    """Compile once: code depends on its sources alone, also where a test moves ``TRADEASSAY_HOME``."""
    from tradeassay.data.home import data_home

    os.environ.setdefault("NUMBA_CACHE_DIR", str(data_home() / "compiled"))
