"""Rewrite everything after a moment: every observation and decision up to it stays the same to
the byte.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tradeassay.core.our_code import is_ours
from tradeassay_bench.agents import agents, converses, make_agent, plays_alone
from tradeassay_bench.benchmarks import day, play_day
from tradeassay_bench.core.agent import EpisodeInfo
from tradeassay_bench.core.events import ENCODER
from tradeassay_bench.data import Panel, open_snapshot, synthetic, write_snapshot
from tradeassay_bench.play import Market, MarketConfig
from tradeassay_bench.testing.agent import fingerprint, rewrite_after

FIRST, SESSIONS = 30, 40
SHORT = {
    "momentum-12-1": {"lookback": 20, "skip": 2, "every": 3},
    "momentum-weighted": {"lookback": 20, "every": 3},
    "min-variance": {"lookback": 20, "every": 3},
    "sector-equal": {"every": 3},
    "vol-target": {"every": 2},
    "random": {"every": 2},
    "reversal": {"every": 2},
}
# Other tests register agents of their own (slow ones, dying ones); this one is about those that ship.
RULES = [
    name
    for name, cls in agents.items()
    if is_ours(cls.__module__) and not converses(name) and plays_alone(name)
]
FILLS = {"pre_open": "open", "at_open": "open", "close": "close"}
PHASES = {"pre_open": "pre_open", "at_open": "open", "close": "close"}


@pytest.fixture(scope="module")
def world() -> Panel:
    config = synthetic.preset(
        "ashare", seed=3, names=16, sessions=FIRST + SESSIONS, new_listings=1, delistings=1
    )
    return synthetic.generate(config).panel


@pytest.fixture(scope="module")
def folder(tmp_path_factory: Any) -> Path:
    return tmp_path_factory.mktemp("futures")


def watch(
    panel: Panel, folder: Path, decide: str, last: int
) -> tuple[list[str], dict[str, list[bytes]]]:
    """Return what was seen and decided up to decision ``last``, by every agent registered."""
    write_snapshot(panel, folder, allow_faults=True)
    snapshot = open_snapshot(folder)
    days = [str(d) for d in panel.sessions]
    config = MarketConfig(
        venue="ashare-flat-v1",
        universe="IDX",
        index="IDX",
        first=days[FIRST],
        last=days[-1],
        decide=decide,
        fill=FILLS[decide],
    )
    seen_by_all, decided = [], {}
    for name in RULES:
        market, agent = Market(snapshot, config), make_agent(name, SHORT.get(name, {}))
        agent.begin(EpisodeInfo(episode="e", seed=1, rules=market.rules), np.random.default_rng(1))
        seen, lines = market.reset(), []
        while seen is not None and seen.step <= last:
            if name == "random":
                seen_by_all.append(fingerprint(seen, "IDX"))
            decision = play_day(day(seen), agent)
            lines.append(ENCODER.encode(decision))
            seen = market.step(decision).observation
        decided[name] = lines
    return seen_by_all, decided


@settings(
    max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    cut=st.integers(1, SESSIONS - 2),
    seed=st.integers(0, 2**32 - 1),
    decide=st.sampled_from(sorted(PHASES)),
)
def test_the_future_cannot_be_felt(world, folder, cut, seed, decide):
    other = rewrite_after(world, FIRST + cut, np.random.default_rng(seed), PHASES[decide])
    count = len(list(folder.iterdir()))
    here = watch(world, folder / f"{count}-here", decide, cut)
    there = watch(other, folder / f"{count}-there", decide, cut)
    assert here == there
    assert sum(len(line) > 200 for lines in here[1].values() for line in lines) > 5, "nobody traded"


def test_the_rewriting_really_changes_the_future(world, folder):
    other = rewrite_after(world, FIRST + 10, np.random.default_rng(0), "pre_open")
    here = watch(world, folder / "here", "pre_open", 16)
    there = watch(other, folder / "there", "pre_open", 16)
    assert here[0][:11] == there[0][:11] and here[0][11] != there[0][11]
    assert here[1] != there[1]
