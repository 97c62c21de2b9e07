import os
import random
import sys

import numpy as np
import pytest

from tradeassay.core.errors import SandboxError
from tradeassay_programs.sandbox import (
    BadResult,
    ChildClaim,
    Job,
    JobLimits,
    SyntaxFault,
    TrustedCodeInProcess,
)

SOURCE = """
import numpy as np
def run(frame, k):
    print('hello')
    return {'a': frame['close'].to_numpy() * k + np.random.rand(), 's': ['x', None]}
"""


def job(source: str = SOURCE, **options: object) -> Job:
    usual = {
        "columns": {"close": [1.0, 2.0]},
        "params": {"k": 3.0},
        "trust": "reference",
        "seed": 4,
    }
    return Job(source=source, **(usual | options))  # type: ignore[arg-type]


def test_untrusted_code_is_refused():
    with TrustedCodeInProcess() as executor, pytest.raises(SandboxError, match="reference"):
        executor.run(job(trust="untrusted"))


def test_it_means_the_same_as_the_sandbox(sandbox):
    with TrustedCodeInProcess() as executor:
        (here,) = executor.map([job()])
    there = sandbox.run(job())
    assert here.tier.level == "trusted-in-process"
    np.testing.assert_array_equal(here.need()["a"], there.need()["a"])
    assert here.need()["s"].tolist() == there.need()["s"].tolist() == ["x", None]
    assert here.log == there.log == b"hello\n"


def test_the_hosts_randomness_is_given_back():
    state, urandom = random.getstate(), os.urandom
    TrustedCodeInProcess().run(job())
    assert random.getstate() == state
    assert os.urandom is urandom
    assert "strategy" not in sys.modules


@pytest.mark.parametrize(
    ("source", "failure"),
    [
        ("def run(", SyntaxFault),
        ("def run(frame, k):\n    raise KeyError('x')", ChildClaim),
        ("def run(frame, k):\n    return {'a': [object()]}", ChildClaim),
        ("def run(frame, k):\n    return {'a': [1.0] * 50}", BadResult),
    ],
)
def test_failures_have_the_same_types(source, failure):
    assert isinstance(
        TrustedCodeInProcess().run(job(source, limits=JobLimits(rows=10))).failure, failure
    )
