"""Slow tests of this folder replay every bar of every case; they run when asked for."""

from pathlib import Path

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave slow tests out unless ``-m slow`` asks for them."""
    if "slow" in str(config.getoption("markexpr")):
        return
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and item.get_closest_marker("slow") is not None:
            item.add_marker(pytest.mark.skip(reason="slow: opt in with -m slow"))
