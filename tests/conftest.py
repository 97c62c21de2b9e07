"""What holds for all tests. Those marked ``slow`` are left out unless asked for: see ``addopts``.

A test is slow because it was made for heavy work, and says so with the mark, or because it was measured to be:
those stand in ``slow.txt``.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import settings

from tradeassay.core.hashing import sha256_of

# Timing never decides a test, on a loaded machine least of all. The default tests try the same examples every
# time, so that a change is what makes one fail; make test-all searches on with new ones (HYPOTHESIS_PROFILE).
settings.register_profile("house", deadline=None, derandomize=True)
settings.register_profile("search", deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "house"))

collect_ignore = [
    file
    for package, file in (
        ("akshare", "data/connectors/test_akshare.py"),
        ("baostock", "data/connectors/test_baostock.py"),
        ("ccxt", "data/connectors/test_ccxt.py"),
        ("yfinance", "data/connectors/test_yfinance.py"),
        ("ray", "runs/test_ray.py"),
        ("ray", "runs/test_ray_nodes.py"),
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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Draw the same secrets in every run of a test, in whatever order: markets and aliases come from them.

    A file's first draw is the same in each of its tests, so that what a fixture of the file made does not depend
    on which test asked for it. Processes that a test starts draw their own.
    """
    numbers = count()
    fixed = SimpleNamespace(token_hex=lambda size: sha256_of([item.path.name, next(numbers)])[: 2 * size])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tradeassay.core.draws.secrets", fixed)
        if rules := sys.modules.get("tradeassay.code.rules"):
            rules._own_secret.cache_clear()
        return (yield)
