"""What holds for all tests: those marked ``slow`` run only when asked for, with ``-m slow``."""

from __future__ import annotations

import os

import pytest


def pytest_configure(config: pytest.Config) -> None:
    """Compile once: code depends on its sources alone, also where a test moves ``TRADEASSAY_HOME``."""
    from tradeassay.data.home import data_home

    os.environ.setdefault("NUMBA_CACHE_DIR", str(data_home() / "compiled"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "slow" in config.option.markexpr:
        return
    skip = pytest.mark.skip(reason="slow: opt in with -m slow")
    for item in items:
        if item.get_closest_marker("slow") is not None:
            item.add_marker(skip)
