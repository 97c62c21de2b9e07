"""The twelve strategies: pinned, explained, and the same in the interpreter and the reference."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from tradeassay.core.errors import UserError
from tradeassay_bench.account.compiled.shares import price_decisions
from tradeassay_bench.account.shares import COSTS_BP, DecisionList, keep_account
from tradeassay_programs.benchmarks.systrade import STRATEGIES, hashes, load_reference, load_spec
from tradeassay_programs.benchmarks.systrade.data import synthetic_year
from tradeassay_programs.benchmarks.systrade.loading import SYSTB_STRATEGIES
from tradeassay_programs.code.bars import TaskBars
from tradeassay_programs.code.gates import audit_gate, parse_gate, schema_gate
from tradeassay_programs.code.submission import (
    StrategySpec,
    SubmissionRun,
    SubmissionRunner,
    closes_of,
    market_columns,
)
from tradeassay_programs.sandbox import TrustedCodeInProcess

CAPITAL = 100_000.0
PAYS = "        self.cash -= quantity * price\n"
LOCK = msgspec.json.decode((Path(__file__).parent / "lock.json").read_bytes())


def same(left: DecisionList, right: DecisionList) -> None:
    assert left.row.tolist() == right.row.tolist()
    assert left.leg.tolist() == right.leg.tolist()
    assert left.signal.tolist() == right.signal.tolist()
    assert left.fraction == pytest.approx(right.fraction, abs=1e-9)


def test_the_lock_pins_semantics_doc_and_scenarios():
    for id in (*STRATEGIES, *SYSTB_STRATEGIES):
        assert hashes(id) == LOCK[id], (
            f"a frozen file of {id} changed: raise its version and pin it anew"
        )
    for ours, theirs in zip(STRATEGIES, SYSTB_STRATEGIES, strict=True):
        assert LOCK[ours]["semantics"] != LOCK[theirs]["semantics"]
    with pytest.raises(UserError, match="bollinger"):
        load_spec("bolinger")


SLOW = "calendar-spread cross-asset-momentum index-enhancement r-breaker rsi-macd spread turtle".split()


@pytest.mark.slow_for(*SLOW, *(f"systb-{id}" for id in SLOW))
@pytest.mark.parametrize("id", (*STRATEGIES, *SYSTB_STRATEGIES))
def test_scenarios_reference_and_interpreter_agree(id):
    spec = load_spec(id)
    assert 3 <= len(spec.scenarios) <= 5
    reached: set[str] = set()
    for scenario in spec.scenarios:
        frozen = spec.frozen_decisions(scenario.bars)
        same(scenario.expected, frozen)
        agrees(spec, scenario.bars)
        reached |= {spec.semantics.rules[signal].signal for signal in frozen.signal}
    assert reached == set(spec.signals), "every rule fires in some scenario"


def reference_run(spec: StrategySpec, bars: TaskBars, also: str = "") -> SubmissionRun:
    """The run of a strategy's reference, which does something more where it pays for a trade."""
    runner = SubmissionRunner(
        executor=TrustedCodeInProcess(),
        source=load_reference(spec.id).source.replace(PAYS, PAYS + also),
        semantics=spec.semantics,
        trust="reference",
    )
    return next(runner.logs([(market_columns(bars, spec.semantics.inputs.legs), 0)]))


def agrees(spec: StrategySpec, bars: TaskBars) -> SubmissionRun:
    """The run of a strategy's reference, which decides what the interpreter decides."""
    run = reference_run(spec, bars)
    assert run.failure is None and run.decisions is not None
    same(run.decisions, spec.frozen_decisions(bars))
    return run


@pytest.mark.parametrize(
    "id", ["bollinger", "turtle", "spread", "cross-asset-momentum", "vol-target"]
)
def test_a_cost_level_reprices_decisions_as_a_run_that_pays_its_fees_itself(id):
    spec = load_spec(id)
    bars, legs = synthetic_year(spec), spec.semantics.inputs.legs
    closes = closes_of(market_columns(bars, legs), legs)
    free = reference_run(spec, bars)
    assert len(free.trades) >= 4 and load_reference(id).source.count(PAYS) == 1
    priced = price_decisions(free.decisions, closes)
    for level, cost in enumerate(COSTS_BP):
        fee = f"        self.cash -= abs(quantity) * price * {cost / 10_000!r}\n"
        again = reference_run(spec, bars, fee).trades
        assert np.array_equal(again.row, free.trades.row) and np.array_equal(
            again.leg, free.trades.leg
        )
        fees = float((np.abs(again.quantity) * closes[again.leg, again.row]).sum()) * cost / 10_000
        final = float(keep_account(again, closes, CAPITAL).equity[-1]) - fees
        np.testing.assert_allclose(
            priced.quantity[level] * CAPITAL, again.quantity, rtol=1e-7, atol=1e-6
        )
        assert priced.final[level] * CAPITAL == pytest.approx(final, rel=1e-9)


@pytest.mark.parametrize("id", STRATEGIES)
def test_random_bars_reference_and_interpreter_agree(id):
    spec = load_spec(id)
    bars = spec.practice_bars(240, 7)
    frozen = spec.frozen_decisions(bars)
    assert len(frozen) and spec.frozen_decisions(bars) is frozen, (
        "an examination asks for them four times"
    )
    run = agrees(spec, bars)
    assert run.account is not None
    legs = spec.semantics.inputs.legs
    audit = audit_gate(run, closes_of(market_columns(bars, legs), legs), 0.95, 1e-6)
    assert audit.passed and audit.measures["completeness"] == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20, 30))
@pytest.mark.parametrize("id", STRATEGIES)
def test_more_random_bars(id, seed):
    spec = load_spec(id)
    agrees(spec, spec.practice_bars(1500, seed))


def test_the_reference_is_a_submission_and_its_doc_pins_what_prose_leaves_open():
    for id in (*STRATEGIES, *SYSTB_STRATEGIES):
        spec, reference = load_spec(id), load_reference(id)
        assert parse_gate(reference).passed and schema_gate(reference, spec.semantics).passed, id
        if id in SYSTB_STRATEGIES:
            continue
        said = [f"| `{name}` | {one.value:g} |" for name, one in spec.semantics.parameters.items()]
        said += [f"`{signal}`" for signal in spec.signals]
        pins = spec.semantics.conventions
        said += ["1e-9", "1e-10", *([] if pins.std_ddof is None else [f"ddof {pins.std_ddof}"])]
        said += [] if pins.wilder is None else ["Wilder"]
        said += [] if pins.ema_seed is None else ["plain mean of the first k"]
        assert not [words for words in said if words not in spec.doc], id
        assert all(one.bars.rows <= 125 for one in spec.scenarios), "scenarios are short"
