"""Sandboxes shared by the tests of this folder; they skip where the machine cannot hold
untrusted code.
"""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tradeassay_programs.sandbox import Sandbox, SandboxConfig, SandboxPool, ask_kernel, refusal

LIGHT = SandboxConfig(preload=("numpy", "pandas"))
BARE = SandboxConfig(preload=())


def family(pid: int) -> list[int]:
    """Return a process and all its descendants, or nothing if it has ended."""
    try:
        tasks = list(Path(f"/proc/{pid}/task").iterdir())
        children = [child for task in tasks for child in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []  # It ended after its parent named it.
    descendants = [pid]
    for child in children:
        descendants += family(int(child))
    return descendants


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
