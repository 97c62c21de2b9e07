"""For tests of the programs: the sandbox's zygotes are kept, and each test draws its secret anew."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from threading import Lock
from typing import ClassVar

import pytest

from tradeassay_programs.sandbox import SandboxConfig, sandbox
from tradeassay_programs.sandbox.sandbox import ZygoteProcess


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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Lend a kept zygote, except to tests of the sandbox, which are about zygotes."""
    with pytest.MonkeyPatch.context() as patch:
        if not item.nodeid.startswith("tests/programs/sandbox/"):
            patch.setattr(sandbox, "_ZygoteLine", LentZygote)
        if rules := sys.modules.get("tradeassay_programs.code.running"):
            rules._own_secret.cache_clear()
        return (yield)


def pytest_sessionfinish() -> None:
    """End the zygotes that were kept."""
    while LentZygote.kept:
        LentZygote.kept.popitem()[1].close()
