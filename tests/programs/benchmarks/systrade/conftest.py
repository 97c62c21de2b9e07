from collections.abc import Iterator

import pytest

from tradeassay_programs.code.submission import submission_config
from tradeassay_programs.sandbox import SandboxConfig, SandboxPool, SandboxRefused


@pytest.fixture(scope="package")
def pool() -> Iterator[SandboxPool]:
    try:
        made = SandboxPool(submission_config(SandboxConfig(preload=("numpy", "pandas"))), workers=2)
    except SandboxRefused as refused:
        pytest.skip(str(refused))
    with made:
        yield made
