import pickle

import numpy as np
import pytest

from tradeassay.core.errors import SandboxError, UserError
from tradeassay_programs.sandbox import (
    Job,
    JobLimits,
    JobResult,
    JobUsage,
    NetworkAttempt,
    RefusedCall,
    Tier,
    WallTimeout,
)

TIER = Tier(level="strong")
USAGE = JobUsage(cpu_s=0.1, wall_s=0.1, peak_mb=1.0)


@pytest.mark.parametrize("wrong", [{"memory_mb": 0}, {"wall_s": -1.0}])
def test_limits_are_positive_and_bound_the_result(wrong):
    with pytest.raises(UserError, match=next(iter(wrong))):
        JobLimits(**wrong)
    caps = JobLimits(rows=7, columns=3, result_mb=2).caps()
    assert (caps.rows, caps.columns, caps.total) == (7, 3, 2 << 20)


@pytest.mark.parametrize(
    "wrong",
    [{"entry": "not a name"}, {"harness": "module.function"}, {"seed": -1}, {"seed": 2**32}],
)
def test_wrong_jobs_are_refused_at_once(wrong):
    with pytest.raises(UserError):
        Job(source="", **wrong)  # type: ignore[arg-type]


def test_a_job_is_named_by_its_source():
    assert (
        Job(source="x").sha256 == "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    )
    assert Job(source="\ud800").sha256


def test_jobs_and_results_travel():
    job = Job(source="x", columns={"a": np.arange(3.0)}, limits=JobLimits(cpu_s=2))
    assert pickle.loads(pickle.dumps(job)).limits == job.limits
    failure = NetworkAttempt(attempt=RefusedCall(family="network", call="socket"))
    result = JobResult(source="x", tier=TIER, usage=USAGE, failure=failure)
    assert pickle.loads(pickle.dumps(result)) == result


def test_a_result_is_columns_or_a_failure():
    with pytest.raises(ValueError, match="either"):
        JobResult(source="x", tier=TIER, usage=USAGE)
    good = JobResult(source="x", tier=TIER, usage=USAGE, columns={"a": np.arange(2)})
    bad = JobResult(source="x", tier=TIER, usage=USAGE, failure=WallTimeout(limit_s=2.0))
    assert good.ok and good.need()["a"].tolist() == [0, 1] and not bad.ok
    with pytest.raises(SandboxError, match="not done after 2 s"):
        bad.need()
