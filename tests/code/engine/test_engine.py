"""Compiled strategies decide as their frozen semantics say, and a cost level is worth what a re-run would give."""

from __future__ import annotations

from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tradeassay.account.shares import COSTS_BP, DecisionList, decision_list, price_decisions
from tradeassay.code.bars import make_bars
from tradeassay.code.engine.compiled_strategies import KERNELS, Tape, kernel, run_compiled
from tradeassay.code.engine.sweep import Batch, run_batch, spread_parameters, sweep
from tradeassay.code.semantics import Semantics, interpret, read_semantics
from tradeassay.core.errors import UserError


def semantics(id: str) -> Semantics:
    folder = files("tradeassay.benchmarks.systrade") / "strategies" / id.replace("-", "_")
    return read_semantics((folder / "semantics.json").read_bytes())


def tape_and_feeds(spec: Semantics, timeframe: str, seed: int):
    legs = spec.inputs.legs
    market = "pairs" if len(legs) == 2 else ("us", "crypto", "trend", "volatile")[seed % 4]
    bars = make_bars(market, timeframe, len(legs), 300 if timeframe == "1d" else 1700, seed)
    feeds = {leg: bars.feeds[asset] for leg, asset in zip(legs, bars.feeds, strict=True)}
    return feeds, bars.times, Tape(feeds, legs, bars.times)


@pytest.mark.parametrize("id", sorted(KERNELS))
def test_compiled_decides_as_the_interpreter(id: str) -> None:
    spec = semantics(id)
    for timeframe in spec.inputs.timeframes:
        for seed, variant in enumerate(spread_parameters(spec, 3, seed=5)):
            feeds, times, tape = tape_and_feeds(spec, timeframe, seed)
            slow = interpret(spec, feeds, times, parameters=variant)
            fast = run_compiled(spec, tape, variant)
            assert fast.row.tolist() == slow.row.tolist(), (timeframe, seed)
            assert fast.leg.tolist() == slow.leg.tolist()
            assert fast.signal.tolist() == slow.signal.tolist()
            assert fast.fraction == pytest.approx(slow.fraction, rel=1e-9)


def naive(decisions: DecisionList, closes: np.ndarray, cost: float) -> tuple[float, list[float]]:
    """Carry an account bar by bar, as anybody would write it."""
    cash, held = 1.0, np.zeros(closes.shape[0])
    curve = []
    at = 0
    for bar in range(closes.shape[1]):
        equity = cash + float(held @ closes[:, bar])
        while at < len(decisions) and decisions.row[at] == bar:
            leg = int(decisions.leg[at])
            change = decisions.fraction[at] * equity / closes[leg, bar] - held[leg]
            cash -= change * closes[leg, bar] + abs(change) * closes[leg, bar] * cost
            held[leg] += change
            at += 1
        curve.append(cash + float(held @ closes[:, bar]))
    return curve[-1], curve


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.integers(1, 3), st.integers(2, 40))
def test_every_cost_level_is_an_account_of_its_own(seed: int, legs: int, bars: int) -> None:
    generator = np.random.default_rng(seed)
    closes = 100 * np.exp(np.cumsum(generator.normal(0, 0.02, (legs, bars)), axis=1))
    rows = np.sort(generator.integers(0, bars, size=12))
    decisions = DecisionList(
        rows, generator.integers(0, legs, 12), generator.uniform(-0.4, 0.4, 12), np.full(12, -1)
    )
    priced = price_decisions(decisions, closes, curve=True)
    assert priced.curve is not None
    for level, cost in enumerate(COSTS_BP):
        final, curve = naive(decisions, closes, cost / 10_000)
        assert priced.final[level] == pytest.approx(final, rel=1e-12)
        assert priced.curve[level] == pytest.approx(curve, rel=1e-12)
    assert (np.diff(priced.fees) >= 0).all()


def test_money_by_hand() -> None:
    # Buy all at 100 with 10 bp, sell all at 110: 1 -> 0.999 in cash terms, then the gain, then the fee again.
    decisions = decision_list([(0, 0, 1.0, 0), (2, 0, 0.0, 1)])
    priced = price_decisions(decisions, np.array([[100.0, 105.0, 110.0]]), (10.0,), curve=True)
    value = 1 / 100
    after = 1 - 0.001 + value * 10
    assert priced.quantity[0].tolist() == [0.01, -0.01]
    assert priced.final[0] == pytest.approx(after - value * 110 * 0.001)
    assert priced.traded[0] == pytest.approx(1.0 + 1.1)
    assert priced.curve is not None and priced.curve[0, 1] == pytest.approx(1 - 0.001 + value * 5)


def test_ruin_ends_an_account() -> None:
    decisions = decision_list([(0, 0, -1.0, 0), (2, 0, 1.0, 0)])
    priced = price_decisions(decisions, np.array([[100.0, 250.0, 250.0, 500.0]]), (0.0,), curve=True)
    assert priced.final[0] == 0.0
    assert priced.curve is not None and priced.curve[0].tolist() == [1.0, 0.0, 0.0, 0.0]


def test_bad_lists_are_refused() -> None:
    closes = np.array([[1.0, 2.0]])
    with pytest.raises(UserError, match="outside the bars"):
        price_decisions(decision_list([(5, 0, 1.0, 0)]), closes)
    with pytest.raises(UserError, match="leg"):
        price_decisions(decision_list([(0, 3, 1.0, 0)]), closes)
    with pytest.raises(ValueError, match="order"):
        decision_list([(1, 0, 1.0, 0), (0, 0, 1.0, 0)])
    with pytest.raises(UserError, match="no compiled form"):
        kernel("oracle")
    spec = semantics("double-ma")
    with pytest.raises(UserError, match="no parameter"):
        run_compiled(spec, tape_and_feeds(spec, "1d", 1)[2], {"colour": 1.0})


def test_a_sweep_is_the_same_whatever_the_workers() -> None:
    batches = []
    for id in ("double-ma", "bollinger", "pairs"):
        spec = semantics(id)
        tape = tape_and_feeds(spec, "1d", 1)[2]
        batches.append(Batch(spec, tape, "A", spread_parameters(spec, 3)))
    one = sweep(batches, workers=1)
    assert one == sweep(batches, workers=3)
    assert len(one) == 3 * 3 * 5
    assert one[:15] == run_batch(batches[0])
    finals = [row.final for row in one if row.strategy == "double-ma" and row.variant == 0]
    assert finals == sorted(finals, reverse=True)
    with pytest.raises(UserError, match="no executor"):
        sweep(batches, executor="cloud")  # type: ignore[arg-type]  # on purpose


@pytest.mark.slow
def test_a_sweep_on_ray_gives_the_same_bytes() -> None:
    pytest.importorskip("ray")
    spec = semantics("turtle")
    batch = Batch(spec, tape_and_feeds(spec, "1d", 1)[2], "A", spread_parameters(spec, 4))
    assert sweep([batch, batch], executor="ray") == sweep([batch, batch])
