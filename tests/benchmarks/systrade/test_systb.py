"""The twelve strategies of the public repository: frozen, exercised by their scenarios, written as programs."""

import types

import numpy as np
import pandas as pd
import pytest

from tradeassay.account.shares import DecisionList
from tradeassay.benchmarks.systrade import STRATEGIES, load_reference, load_spec
from tradeassay.benchmarks.systrade.loading import SYSTB_STRATEGIES
from tradeassay.code.bars import TaskBars
from tradeassay.code.gates import parse_gate, schema_gate
from tradeassay.code.submission import closes_of, decisions_of, keep_account, market_columns, read_trades
from tradeassay.code.systrade_child import _trade_columns


def decided(source: str, bars: TaskBars, legs: tuple[str, ...], signals: list[str]) -> np.ndarray:
    module = types.ModuleType("strategy")
    exec(compile(source, "strategy.py", "exec"), module.__dict__)
    columns = market_columns(bars, legs)
    index = pd.DatetimeIndex(columns[f"{legs[0]}/time"], name="time")
    market = {
        leg: pd.DataFrame(
            {n.partition("/")[2]: v for n, v in columns.items() if n.startswith(f"{leg}/") and n[-4:] != "time"},
            index=index,
        )
        for leg in legs
    }
    log, _ = module.TradingStrategy().run(market, 100_000.0)
    found = {name: np.asarray(values) for name, values in _trade_columns(log).items()}
    trades = read_trades(found, columns[f"{legs[0]}/time"], legs)
    closes = closes_of(columns, legs)
    got = decisions_of(trades, keep_account(trades, closes, 100_000.0), closes, signals)
    return table(got)


def table(found: DecisionList) -> np.ndarray:
    return np.stack([found.row, found.leg, found.fraction, found.signal], axis=1).astype(float)


@pytest.mark.parametrize("name", SYSTB_STRATEGIES)
def test_scenarios_exercise_every_rule_and_the_program_agrees(name: str) -> None:
    spec, reference = load_spec(name), load_reference(name)
    assert parse_gate(reference).passed and schema_gate(reference, spec.semantics).passed
    legs, fired = spec.semantics.inputs.legs, set()
    assert 3 <= len(spec.scenarios) <= 5
    for scenario in spec.scenarios:
        want = scenario.expected
        frozen = spec.frozen_decisions(scenario.bars)
        assert np.array_equal(frozen.row, want.row) and np.allclose(frozen.fraction, want.fraction)
        got = decided(reference.source, scenario.bars, legs, list(spec.signals))
        assert got.shape == table(want).shape and np.allclose(got, table(want), atol=1e-9)
        fired |= {spec.signals[number] for number in want.signal.tolist()}
    assert fired == set(spec.signals)


def test_they_are_other_strategies_than_ours() -> None:
    assert len(SYSTB_STRATEGIES) == len(STRATEGIES) == 12
    for ours, theirs in zip(STRATEGIES, SYSTB_STRATEGIES, strict=True):
        assert load_spec(ours).semantics.sha256 != load_spec(theirs).semantics.sha256
