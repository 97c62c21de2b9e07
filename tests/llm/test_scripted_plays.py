"""Scripted models in the real protocols: what the referees of the other tests copy is what the benchmarks do."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tradeassay.benchmarks.ktdfin import Ktdfin, KtdfinConfig
from tradeassay.benchmarks.stockbench import Stockbench, StockbenchConfig
from tradeassay.benchmarks.stockbench.panel import NOTES
from tradeassay.core.agent import EpisodeInfo
from tradeassay.data import Snapshot, open_snapshot, synthetic, write_snapshot
from tradeassay.llm import scripted_models
from tradeassay.play import Market, MarketConfig

DAYS = 8


def world(folder: Path, preset: str, history: int) -> Snapshot:
    config = synthetic.preset(preset, seed=7, names=24, index_members=20, sessions=history + DAYS)
    write_snapshot(synthetic.generate(config).panel, folder / preset)
    return open_snapshot(folder / preset)


@pytest.fixture(scope="module")
def ashare(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return world(tmp_path_factory.mktemp("worlds"), "ashare", 256)


@pytest.fixture(scope="module")
def us(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return world(tmp_path_factory.mktemp("worlds"), "us", 60)


def play(name: str, protocol: Any, market: Market) -> tuple[Counter[str], Counter[str], int]:
    """Return how the days ended, what failed, and how many orders were given."""
    model = scripted_models.get(name)()
    seen = market.reset()
    protocol.begin(EpisodeInfo(episode="e", seed=0, rules=market.rules), np.random.default_rng(0))
    ends: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    orders = 0
    while seen is not None:
        dialogue = protocol.dialogue(seen)
        request = next(dialogue)
        while True:
            try:
                request = dialogue.send(model.answer(request))
            except StopIteration as stop:
                decision = stop.value
                break
        ends[decision.status] += 1
        failures.update(failure.kind for failure in decision.failures if failure.kind not in NOTES)
        orders += len(decision.orders)
        protocol.remember(seen, decision)
        seen = market.step(decision).observation
    return ends, failures, orders


def ktdfin_market(snapshot: Snapshot) -> Market:
    return Market(snapshot, config(snapshot, venue="ashare-flat-v1", max_weight=0.1, max_positions=20))


def stockbench_market(snapshot: Snapshot) -> Market:
    return Market(snapshot, config(snapshot, venue="us-v1", cash=100_000.0, decide="at_open", fill="open"))


def config(snapshot: Snapshot, **more: Any) -> MarketConfig:
    first, last = str(snapshot.sessions[-DAYS]), str(snapshot.sessions[-1])
    return MarketConfig(universe="IDX", index="IDX", first=first, last=last, **more)


@pytest.mark.parametrize("mode", ["open-research", "fixed-candidate", "memory-only"])
def test_sensible_plays_ktdfin_without_a_mistake(ashare: Snapshot, mode: Any) -> None:
    ends, failures, orders = play("sensible", Ktdfin(KtdfinConfig(mode=mode)), ktdfin_market(ashare))
    assert ends == {"ok": DAYS} and not failures and orders >= 5


def test_sensible_plays_stockbench_without_a_mistake(us: Snapshot) -> None:
    ends, failures, orders = play("sensible", Stockbench(StockbenchConfig()), stockbench_market(us))
    assert ends == {"ok": DAYS} and not failures and orders >= 10


@pytest.mark.parametrize(
    ("name", "in_ktdfin", "in_stockbench"),
    [
        ("broken-json", "schema", "schema"),
        ("future-asker", "tool", None),
        ("never-submits", "no_submit", "schema"),
        ("overspender", "constraint", "liquidity"),
        ("injector", None, None),
    ],
)
def test_the_others_are_caught(
    ashare: Snapshot, us: Snapshot, name: str, in_ktdfin: str | None, in_stockbench: str | None
) -> None:
    for kind, protocol, market in (
        (in_ktdfin, Ktdfin(KtdfinConfig()), ktdfin_market(ashare)),
        (in_stockbench, Stockbench(StockbenchConfig()), stockbench_market(us)),
    ):
        ends, failures, _ = play(name, protocol, market)
        assert not failures if kind is None else failures[kind] >= DAYS, failures
        # Who is refused twice in the same words is not asked a third time: the overspender gets no further either.
        assert (ends["ok"] == 0) == (name in ("never-submits", "overspender")), (name, ends)
