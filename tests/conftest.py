"""What holds for all tests. Those marked ``slow`` are left out unless asked for: see ``addopts``.

A test is slow because it was made for heavy work, and says so with the mark, or because it was measured to be:
those stand in ``slow.txt``.
"""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import settings

# Timing never decides a test, on a loaded machine least of all.
settings.register_profile("house", deadline=None)
settings.load_profile("house")

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


MEASURED = Path(__file__).with_name("slow.txt")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what was measured to be slow, before the default selection looks at marks."""
    slow = {line for line in MEASURED.read_text(encoding="utf-8").splitlines() if not line.startswith("#")}
    for item in items:
        if item.nodeid in slow:
            item.add_marker(pytest.mark.slow)


def pytest_configure(config: pytest.Config) -> None:
    """Compile once: code depends on its sources alone, also where a test moves ``TRADEASSAY_HOME``."""
    from tradeassay.data.home import data_home

    os.environ.setdefault("NUMBA_CACHE_DIR", str(data_home() / "compiled"))
