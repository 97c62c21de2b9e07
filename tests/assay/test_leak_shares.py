"""Leaks that hide: on few days, in the size of orders, in one symbol, in volume, in rules that seldom trade."""

from __future__ import annotations

import sys
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import msgspec
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))

from tradeassay.assay import leak_test
from tradeassay.benchmarks import Benchmark, benchmarks
from tradeassay.core.agent import AskDecision, EpisodeInfo, Observation
from tradeassay.core.orders import Decision, Order
from tradeassay.data import Snapshot, open_snapshot, write_snapshot
from tradeassay.data.synthetic import generate, preset

pytestmark = pytest.mark.slow
PLAYED = 200


@lru_cache(maxsize=1)
def world() -> Snapshot:
    panel = generate(preset("us", seed=5, names=12, sessions=262 + PLAYED, index_members=12)).panel
    folder = Path(mkdtemp(prefix="shares-")) / "world"
    write_snapshot(panel, folder, allow_faults=True)
    return open_snapshot(folder)


def benchmark() -> Benchmark:
    days, base = world().sessions, benchmarks.get("daily-us-v1")
    market = msgspec.structs.replace(base.market, first=str(days[262]), last=str(days[-1]))
    return msgspec.structs.replace(base, id="shares", market=market)


class Drawing:
    """Holds three names drawn by chance; ``peek`` may spoil the draw, on a share of days."""

    def __init__(self, share: float = 0.0, every: int = 1) -> None:
        self._share, self._every = share, every

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        self._rng = np.random.default_rng(11)

    def answer(self, request: AskDecision) -> Decision:
        seen = request.observation
        names = [seen.universe[k] for k in self._rng.permutation(len(seen.universe))[:3]]
        weights, leaks = dict.fromkeys(names, 0.2), self._rng.random() < self._share
        if seen.step % self._every:
            return Decision(reason="waits")
        if leaks:
            weights = self.peek(seen, weights)
        gone = [name for name in seen.account.positions if name not in weights]
        orders = [Order(symbol=name, amount=0.0, unit="target_weight") for name in gone]
        orders += [Order(symbol=name, amount=size, unit="target_weight") for name, size in weights.items()]
        return Decision(orders=tuple(orders), reason="")

    def peek(self, seen: Observation, weights: dict[str, float]) -> dict[str, float]:
        moves = ahead(seen, "close") / ahead(seen, "open")
        best = [seen.view.symbols[k] for k in np.argsort(-np.nan_to_num(moves))]
        return dict.fromkeys([name for name in best if name in seen.universe][:3], 0.2)


def ahead(seen: Observation, field: str) -> np.ndarray:
    view: Any = seen.view
    found: np.ndarray = view._history.fields[field][view.row, : len(view.symbols)]
    return found


class BySize(Drawing):
    """The names are honest; how much of them is not."""

    def peek(self, seen: Observation, weights: dict[str, float]) -> dict[str, float]:
        rises = np.nanmean(ahead(seen, "close") / ahead(seen, "open")) > 1.0
        return dict.fromkeys(weights, 0.25 if rises else 0.1)


class ByOne(Drawing):
    """Looks at a single symbol."""

    def peek(self, seen: Observation, weights: dict[str, float]) -> dict[str, float]:
        rises = ahead(seen, "close")[0] > ahead(seen, "open")[0]
        return {**weights, seen.view.symbols[0]: 0.2 if rises else 0.01}


class ByVolume(Drawing):
    """Holds what will be traded most."""

    def peek(self, seen: Observation, weights: dict[str, float]) -> dict[str, float]:
        most = [seen.view.symbols[k] for k in np.argsort(-np.nan_to_num(ahead(seen, "volume")))]
        return dict.fromkeys([name for name in most if name in seen.universe][:3], 0.2)


@pytest.mark.parametrize("kind", [Drawing, BySize, ByOne, ByVolume])
@pytest.mark.parametrize("share", [0.02, 0.05])
def test_a_leak_on_few_days_is_found(kind: type[Drawing], share: float) -> None:
    report = leak_test(lambda: kind(share), benchmark(), world())
    assert report.channels == ("bars",), report.sentence
    days = max(finding.days for finding in report.findings)
    assert 1 <= days <= 3 * share * PLAYED


def test_a_rule_that_seldom_trades_is_tested_on_the_days_it_does() -> None:
    assert leak_test(lambda: Drawing(1.0, every=21), benchmark(), world()).leaks
    honest = leak_test(lambda: Drawing(0.0, every=21), benchmark(), world())
    assert not honest.leaks
    assert honest.undetected == pytest.approx(1.0 - 0.05 ** (1.0 / PLAYED))
    assert "1.5 %" in honest.sentence
