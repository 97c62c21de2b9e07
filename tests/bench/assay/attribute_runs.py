"""Small runs on every venue, for the tests of attribution."""

import sys
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "runs"))

import runs_agents  # noqa: F401  # registers the agents
import runs_world as world

from tradeassay.metrics import BootstrapConfig
from tradeassay_bench.benchmarks import Benchmark, benchmarks
from tradeassay_bench.play import MarketConfig
from tradeassay_bench.runs import AgentSpec, RunSpec, run

OPEN = "tiny-marked-at-open-v1"


@lru_cache(maxsize=1)
def every_venue():
    """One run over every venue preset: one that holds, one that provokes and shorts, one that
    never answers.
    """
    home = Path(mkdtemp(prefix="attribution-"))
    world.write_world(home)
    world.register()
    if OPEN not in benchmarks:
        day = np.busday_offset(np.datetime64("2024-01-01", "D"), [world.WARM, world.SESSIONS - 1])
        market = MarketConfig(
            venue="us-v1",
            universe="IDX:6",
            cash=1e5,
            decide="at_open",
            mark="open",
            first=str(day[0]),
            last=str(day[1]),
            index="IDX",
        )
        benchmarks.add(
            OPEN, Benchmark(id=OPEN, title=OPEN, description="t", dataset="tiny-us", market=market)
        )
    spec = RunSpec(
        name="attribution",
        benchmarks=(*(f"tiny-{venue}-v1" for venue in world.VENUES), OPEN),
        agents=(
            AgentSpec(name="test-provoker"),
            AgentSpec(name="index-hold"),
            AgentSpec(name="test-never-answers"),
        ),
        seeds=(0,),
        bootstrap=BootstrapConfig(draws=20),
    )
    return run(spec, home / "run", executor="inline", home=home, progress="none")
