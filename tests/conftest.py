"""What holds for all tests. Those marked ``slow`` are left out unless asked for: see ``addopts``.

A test that takes more than a few seconds of CPU carries the mark; where only some of its cases do, ``slow_for``
names them."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Generator
from functools import cache
from itertools import count
from pathlib import Path
from threading import Lock
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
from hypothesis import settings

from tradeassay.cli import main
from tradeassay.core.hashing import sha256_of
from tradeassay_bench.core import executors
from tradeassay_bench.data import datasets, synthetic
from tradeassay_bench.data.snapshot import Snapshot
from tradeassay_programs.sandbox import SandboxConfig, sandbox
from tradeassay_programs.sandbox.sandbox import ZygoteProcess

# Timing never decides a test, on a loaded machine least of all. The default tests try the same few examples every
# time, so that a change is what makes one fail; make test-all searches on with many new ones (HYPOTHESIS_PROFILE).
# A test names a number of its own only where one example is costly.
settings.register_profile("house", deadline=None, derandomize=True, max_examples=60)
settings.register_profile("search", deadline=None, max_examples=400)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "house"))
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # What a script starts in the background ignores Ctrl-C, and so would every program that a test stops with it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(
    0, str(Path(__file__).parent / "recorded")
)  # golden runs, which tests of many rooms read
sys.path.insert(
    0, str(Path(__file__).parent / "support")
)  # checkers and models that tests of many rooms use

LONGEST = (
    "tests/sandbox/test_check_sandbox.py",
    "tests/recorded/test_recorded.py",
    "tests/runs/test_systrade_run.py",
    "tests/code/test_validation.py",
    "tests/runs/test_recordings.py",
    "tests/assay/test_verdict.py",
    "tests/assay/test_planted.py",
    "tests/assay/test_papers.py",
    "tests/assay/test_probe.py",
    "tests/cli/test_plain_install.py",
    "tests/cli/test_secrets.py",
    "tests/account/test_compiled_forms.py",
    "tests/report/test_browser.py",
    "tests/report/test_verdict_page.py",
    "tests/surfaces/test_accessible.py",
    "tests/arena/web/test_browser_arena.py",
    "tests/arena/web/test_site.py",
    "tests/arena/web/test_app.py",
    "tests/arena/web/test_openapi.py",
)
"""Files with the longest tests and fixtures. They come first, so that no worker is busy with one at the end, and
those that share a browser or a site come together."""


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
    """Mark the slow cases of a test, before the default selection looks at marks; put long files first."""
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
    """Give a command as a user would, and return what it printed (``out``, ``err``); the exit status must fit."""

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
    """Compile once: code depends on its sources alone, also where a test moves ``TRADEASSAY_HOME``."""
    os.environ.setdefault("NUMBA_CACHE_DIR", str(datasets.data_home() / "compiled"))


class LentZygote(sandbox._ZygoteLine):
    """A sandbox's line of zygotes, of which the first is kept for the next sandbox of the same configuration.

    Starting one means importing pandas, SciPy and Matplotlib, longer than most tests that need one take. What
    runs in its children cannot reach it: each job gets a fresh one, in a test as in a run."""

    kept: ClassVar[dict[SandboxConfig, ZygoteProcess]] = {}

    def __init__(self, config: SandboxConfig) -> None:
        known = self.kept.get(config)
        if known is not None and known.alive():
            self._config, self._lock, self._owner, self._zygote = config, Lock(), os.getpid(), known
        else:
            super().__init__(config)
            self.kept[config] = self.current()

    def close(self) -> None:
        """Leave the zygote that is kept, end another."""
        with self._lock:
            zygote, self._zygote = self._zygote, None
            if zygote is not None and zygote is not self.kept.get(self._config):
                zygote.close()


MAKE_WORLD, GENERATE = datasets._synthetic, synthetic.generate


@cache
def made_world(name: str, preset: str, seed: int) -> Path:
    from golden import session_home

    return MAKE_WORLD(name, preset, seed, session_home()).folder


@cache
def lent_home() -> Path:
    """Return the session's data home: what tests keep (verdicts, pages, fonts) is not for whoever runs them. Their
    data sets can be read in it, since some tests need ones that only a user can fetch."""
    from golden import session_home

    own, lent = datasets.store_folder(), datasets.store_folder(session_home())
    lent.mkdir(parents=True, exist_ok=True)
    for folder in own.absolute().glob("*"):
        with contextlib.suppress(FileExistsError):
            if folder.name != "synthetic":
                (lent / folder.name).symlink_to(folder)
    return session_home()


def lent_world(name: str, preset: str, seed: int, home: Path | None) -> Snapshot:
    """Open a synthetic world, in any home as a copy of the one that this session made: its seed gives no other.

    A test that puts another generator in place gets what that one makes."""
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


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End the zygotes that were kept; drop golden runs and worlds once, by whoever started the workers."""
    while LentZygote.kept:
        LentZygote.kept.popitem()[1].close()
    if "PYTEST_XDIST_WORKER" not in os.environ:
        workers = getattr(session.config.pluginmanager.getplugin("dsession"), "nodemanager", None)
        mine = getattr(
            workers, "testrunuid", f"pid-{os.getpid()}"
        )  # others may be testing at the same time
        shutil.rmtree(Path(tempfile.gettempdir()) / f"tradeassay-golden-{mine}", ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Give a test the session's data home, and draw the same secrets in every run of it, in whatever order: from
    them come markets and aliases.

    A file's first draw is the same in each of its tests, so that what a fixture of the file made does not depend
    on which test asked for it. Processes that a test starts draw their own."""
    own = item.nodeid.startswith("tests/sandbox/")  # they are about zygotes
    numbers = count()
    fixed = SimpleNamespace(
        token_hex=lambda size: sha256_of([item.path.name, next(numbers)])[: 2 * size]
    )
    home = lent_home()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRADEASSAY_HOME", str(home))
        patch.setattr("tradeassay.core.hashing.secrets", fixed)
        if not own:
            patch.setattr(sandbox, "_ZygoteLine", LentZygote)
        # The tests share the cores already: whoever wants processes says how many.
        patch.setattr(executors, "cores", lambda: 1)
        if not item.nodeid.startswith("tests/data/"):  # they are about making worlds
            patch.setattr(datasets, "_synthetic", lent_world)
        if rules := sys.modules.get("tradeassay_programs.code.running"):
            rules._own_secret.cache_clear()
        return (yield)
