"""For tests that run agents: generate each synthetic world once per session, and use one core per
test.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from collections.abc import Generator
from functools import cache
from pathlib import Path

import pytest
from shared_session import session_home

from tradeassay_bench.core import executors
from tradeassay_bench.data import datasets, synthetic
from tradeassay_bench.data.snapshot import Snapshot

OWN_STORE = datasets.store_folder().absolute()  # before a test gets the session's data home
MAKE_WORLD, GENERATE = datasets._synthetic, synthetic.generate


@cache
def made_world(name: str, preset: str, seed: int) -> Path:
    return MAKE_WORLD(name, preset, seed, session_home()).folder


@cache
def link_own_datasets() -> None:
    """Make the user's own data sets readable in the session's data home. Some must be fetched by a
    user.
    """
    lent = datasets.store_folder(session_home())
    lent.mkdir(parents=True, exist_ok=True)
    for folder in OWN_STORE.glob("*"):
        with contextlib.suppress(FileExistsError):
            if folder.name != "synthetic":
                (lent / folder.name).symlink_to(folder)


def lent_world(name: str, preset: str, seed: int, home: Path | None) -> Snapshot:
    """Open a synthetic world in any home, as a copy of the session's world of the same seed.

    A test that replaces the generator gets that generator's world.
    """
    if synthetic.generate is not GENERATE:
        return MAKE_WORLD(name, preset, seed, home)
    made = made_world(name, preset, seed)
    folder = datasets.store_folder(home) / "synthetic" / made.name
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".lent-") as place:
            copy = Path(shutil.copytree(made, Path(place) / "world"))
            with contextlib.suppress(OSError):  # another process was faster
                copy.rename(folder)
    return datasets.open_snapshot(folder)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Share the session's worlds, except with tests of the data, which test their generation."""
    link_own_datasets()
    with pytest.MonkeyPatch.context() as patch:
        # The tests already share the cores. A test that needs processes must set their number.
        patch.setattr(executors, "cores", lambda: 1)
        if not item.nodeid.startswith("tests/bench/data/"):
            patch.setattr(datasets, "_synthetic", lent_world)
        return (yield)
