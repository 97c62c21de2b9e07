"""What runs every task on every market runs on demand only."""

from __future__ import annotations

from pathlib import Path

import pytest


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Skip slow tests of this folder unless they are asked for: ``-m slow``."""
    if "slow" in str(config.getoption("markexpr")):
        return
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and item.get_closest_marker("slow") is not None:
            item.add_marker(pytest.mark.skip(reason="slow: opt in with -m slow"))
