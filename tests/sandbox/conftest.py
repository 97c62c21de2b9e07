"""Sandboxes shared by the tests of this folder; they skip where the machine cannot hold untrusted code."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tradeassay.sandbox import Sandbox, SandboxConfig, SandboxPool, ask_kernel, refusal

LIGHT = SandboxConfig(preload=("numpy", "pandas"))
BARE = SandboxConfig(preload=())


def family(pid: int) -> list[int]:
    """Return a process and all its descendants."""
    found = [pid]
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            found += family(int(child))
    return found


@pytest.fixture(scope="session")
def machine() -> None:
    refused = refusal(ask_kernel())
    if refused is not None:
        pytest.skip(str(refused))


@pytest.fixture(scope="session")
def sandbox(machine: None) -> Iterator[Sandbox]:
    """The best walls that this machine has."""
    with Sandbox(LIGHT) as opened:
        yield opened


@pytest.fixture(scope="session")
def standard(machine: None) -> Iterator[Sandbox]:
    """A sandbox without namespaces."""
    with Sandbox(msgspec.structs.replace(LIGHT, namespaces=False)) as opened:
        yield opened


@pytest.fixture(scope="session")
def pool(machine: None) -> Iterator[SandboxPool]:
    with SandboxPool(LIGHT, workers=2) as opened:
        yield opened
