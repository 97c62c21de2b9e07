from collections.abc import Iterator

import pytest

from tradeassay_programs.code.running import open_code_executor
from tradeassay_programs.sandbox import JobExecutor, SandboxRefused


@pytest.fixture(scope="session")
def pool() -> Iterator[JobExecutor]:
    """The sandbox that programs run in, with everything that they are promised."""
    try:
        opened = open_code_executor(2)
    except SandboxRefused as refused:
        pytest.skip(str(refused))
    with opened:
        yield opened
