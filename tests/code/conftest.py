from collections.abc import Iterator

import pytest

from tradeassay.code.backtrader import sandbox_config
from tradeassay.sandbox import SandboxConfig, SandboxPool, SandboxRefused


@pytest.fixture(scope="session")
def pool() -> Iterator[SandboxPool]:
    try:
        opened = SandboxPool(sandbox_config(SandboxConfig(preload=("numpy", "pandas", "backtrader"))))
    except SandboxRefused as refused:
        pytest.skip(str(refused))
    with opened:
        yield opened
