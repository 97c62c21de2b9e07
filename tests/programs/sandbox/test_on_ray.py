import sys

import pytest

from tradeassay.core.errors import MissingExtra
from tradeassay_programs.sandbox import ChildClaim, Job, SandboxConfig, open_executor


def test_without_ray_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"tradeassay\[ray\]"):
        open_executor("ray")


@pytest.mark.slow
def test_the_same_jobs_on_ray(machine):
    pytest.importorskip("ray")
    source = "def run(columns, n):\n    return {'n': [n], 'x': columns['x'] * n}"
    jobs = [
        Job(source=source, columns={"x": [2.0]}, params={"n": n}, pass_as="columns")
        for n in range(9)
    ]
    with open_executor("ray", config=SandboxConfig(preload=()), workers=2) as pool:
        results = list(pool.map(jobs))
        assert [int(result.need()["n"][0]) for result in results] == list(range(9))
        assert results[3].need()["x"].tolist() == [6.0]
        assert pool.tier.level in ("strong", "standard")
        failed = pool.run(Job(source="def run(columns):\n    1/0", pass_as="columns"))
        assert isinstance(failed.failure, ChildClaim)
        pool.close()
        pool.close()
