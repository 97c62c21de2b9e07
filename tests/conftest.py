"""What holds for all tests. Those marked ``slow`` are left out unless asked for: see ``addopts``.

A test that takes more than a few seconds of CPU carries the mark; where only some of its cases do,
``slow_for`` names them.
"""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Generator
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import settings

from tradeassay.cli import main
from tradeassay.core.files import data_home
from tradeassay.core.hashing import sha256_of

# Timing never decides a test, on a loaded machine least of all. The default tests try the same few examples every
# time, so that a change is what makes one fail; make test-all searches on with many new ones (HYPOTHESIS_PROFILE).
# A test names a number of its own only where one example is costly.
settings.register_profile("house", deadline=None, derandomize=True, max_examples=60)
settings.register_profile("search", deadline=None, max_examples=400)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "house"))
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # What a script starts in the background ignores Ctrl-C, and so would every program that a test stops with it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "recorded"))  # golden runs, which tests of many packages read
sys.path.insert(0, str(HERE / "support"))  # checkers, models and fixtures of many packages

PLUGINS = {"tradeassay_bench": "shared_worlds", "tradeassay_programs": "kept_zygotes"}
"""What prepares the tests of a package.

The instrument's own tests run without the other packages.
"""
pytest_plugins = [PLUGINS[package] for package in PLUGINS if find_spec(package)]

LONGEST = (
    "tests/programs/sandbox/test_check_sandbox.py",
    "tests/recorded/test_recorded.py",
    "tests/programs/runs/test_systrade_run.py",
    "tests/programs/code/test_validation.py",
    "tests/arena/runs/test_recordings.py",
    "tests/bench/assay/test_verdict.py",
    "tests/bench/assay/test_planted.py",
    "tests/project/assay/test_papers.py",
    "tests/bench/assay/test_probe.py",
    "tests/project/cli/test_plain_install.py",
    "tests/bench/cli/test_secrets.py",
    "tests/arena/account/test_compiled_forms.py",
    "tests/bench/report/test_browser.py",
    "tests/bench/report/test_verdict_page.py",
    "tests/surfaces/test_accessible.py",
    "tests/arena/web/test_browser_arena.py",
    "tests/arena/web/test_site.py",
    "tests/arena/web/test_app.py",
    "tests/arena/web/test_openapi.py",
)
"""Files with the longest tests and fixtures.

They come first, so that no worker is busy with one at the end, and those that share a browser or a
site come together.
"""


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Keep modules and items, which live to the end, out of every later search for garbage."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the slow cases of a test, before the default selection looks at marks; put long files
    first.
    """
    for item in items:
        cases = item.get_closest_marker("slow_for")
        if (
            cases is not None
            and isinstance(item, pytest.Function)
            and item.callspec.id in cases.args
        ):
            item.add_marker(pytest.mark.slow)
    place = {file: number for number, file in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.nodeid.split("::")[0], len(LONGEST)))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine to its end."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    given = {
        name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters
    }
    asyncio.run(pyfuncitem.obj(**given))
    return True


@pytest.fixture
def tell(capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[str, str]]:
    """Give a command as a user would, and return what it printed (``out``, ``err``); the exit
    status must fit.
    """

    def given(words: list[str], status: int = 0) -> tuple[str, str]:
        assert main(words) == status
        return capsys.readouterr()

    return given


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Generator[Any]:
    from browser import chromium

    with chromium(tmp_path_factory.mktemp("profile")) as made:
        made.set_script_timeout(600)
        made.command_executor.client_config.timeout = 600
        yield made


@pytest.fixture(scope="module")
def driver(browser: Any) -> Generator[Any]:
    """The session's browser. When a file is through with it, no script of a page runs on."""
    yield browser
    browser.get("about:blank")


def pytest_configure(config: pytest.Config) -> None:
    """Compile once: code depends on its sources alone, also where a test moves
    ``TRADEASSAY_HOME``.
    """
    os.environ.setdefault("NUMBA_CACHE_DIR", str(data_home() / "compiled"))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Drop golden runs and worlds once, by whoever started the workers."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        workers = getattr(session.config.pluginmanager.getplugin("dsession"), "nodemanager", None)
        mine = getattr(
            workers, "testrunuid", f"pid-{os.getpid()}"
        )  # others may be testing at the same time
        shutil.rmtree(Path(tempfile.gettempdir()) / f"tradeassay-golden-{mine}", ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Give a test the session's data home, and draw the same secrets in every run of it, in
    whatever order: from them come markets and aliases.

    A file's first draw is the same in each of its tests, so that what a fixture of the file made
    does not depend on which test asked for it. Processes that a test starts draw their own.
    """
    from shared_session import session_home

    numbers = count()
    fixed = SimpleNamespace(
        token_hex=lambda size: sha256_of([item.path.name, next(numbers)])[: 2 * size]
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRADEASSAY_HOME", str(session_home()))
        patch.setattr("tradeassay_bench.core.run_secret.secrets", fixed)
        return (yield)
