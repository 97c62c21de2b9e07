"""For tests of programs: reuse the sandbox's zygotes. Each test draws a new secret."""

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
    """A sandbox's line of zygotes whose first zygote is reused by the next sandbox of the same
    configuration.

    Starting a zygote imports pandas, SciPy and Matplotlib, which takes longer than most tests. Code
    in its children cannot reach it: each job gets a new child, in a test as in a run.
    """

    kept: ClassVar[dict[SandboxConfig, ZygoteProcess]] = {}

    def __init__(self, config: SandboxConfig) -> None:
        known = self.kept.get(config)
        if known is not None and known.alive():
            self._config, self._lock, self._owner, self._zygote = config, Lock(), os.getpid(), known
        else:
            super().__init__(config)
            self.kept[config] = self.current()

    def close(self) -> None:
        """Leave the shared zygote running, and end any other."""
        with self._lock:
            zygote, self._zygote = self._zygote, None
            if zygote is not None and zygote is not self.kept.get(self._config):
                zygote.close()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Share a zygote, except with tests of the sandbox, which test zygotes."""
    with pytest.MonkeyPatch.context() as patch:
        if not item.nodeid.startswith("tests/programs/sandbox/"):
            patch.setattr(sandbox, "_ZygoteLine", LentZygote)
        if rules := sys.modules.get("tradeassay_programs.code.running"):
            rules._own_secret.cache_clear()
        return (yield)


def pytest_sessionfinish() -> None:
    """End the shared zygotes."""
    while LentZygote.kept:
        LentZygote.kept.popitem()[1].close()
