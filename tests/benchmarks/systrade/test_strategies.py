"""The twelve strategies: pinned, explained, and the same in the interpreter, the kernel and the reference."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from tradeassay.account.shares import DecisionList
from tradeassay.benchmarks.systrade import STRATEGIES, hashes, load_reference, load_spec
from tradeassay.benchmarks.systrade.loading import SYSTB_STRATEGIES
from tradeassay.code.bars import TaskBars
from tradeassay.code.gates import audit_gate, parse_gate, schema_gate
from tradeassay.code.semantics.compiler import KernelTape, run_compiled
from tradeassay.code.submission import (
    StrategySpec,
    SubmissionRun,
    SubmissionRunner,
    closes_of,
    market_columns,
)
from tradeassay.core.errors import UserError
from tradeassay.sandbox import TrustedCodeInProcess

LOCK = msgspec.json.decode((Path(__file__).parent / "lock.json").read_bytes())


def reference_run(spec: StrategySpec, bars: TaskBars) -> SubmissionRun:
    runner = SubmissionRunner(
        executor=TrustedCodeInProcess(),
        source=load_reference(spec.id).source,
        semantics=spec.semantics,
        trust="reference",
    )
    return next(runner.logs([(market_columns(bars, spec.semantics.inputs.legs), 0)]))


def compiled(spec: StrategySpec, bars: TaskBars) -> DecisionList:
    legs = spec.semantics.inputs.legs
    return run_compiled(
        spec.semantics, KernelTape(dict(zip(legs, bars.feeds.values(), strict=False)), legs, bars.times)
    )


def same(left: DecisionList, right: DecisionList) -> None:
    assert left.row.tolist() == right.row.tolist()
    assert left.leg.tolist() == right.leg.tolist()
    assert left.signal.tolist() == right.signal.tolist()
    assert left.fraction == pytest.approx(right.fraction, abs=1e-9)


@pytest.mark.parametrize("id", (*STRATEGIES, *SYSTB_STRATEGIES))
def test_the_lock_pins_semantics_doc_and_scenarios(id):
    assert msgspec.to_builtins(hashes(id)) == LOCK[id], "a frozen file changed: raise its version and pin it anew"


SLOW = "calendar-spread cross-asset-momentum index-enhancement r-breaker rsi-macd spread turtle".split()


@pytest.mark.slow_for(*SLOW, *(f"systb-{id}" for id in SLOW))
@pytest.mark.parametrize("id", (*STRATEGIES, *SYSTB_STRATEGIES))
def test_scenarios_reference_interpreter_and_kernel_agree(id):
    spec = load_spec(id)
    assert 3 <= len(spec.scenarios) <= 5
    reached: set[str] = set()
    for scenario in spec.scenarios:
        frozen = spec.frozen_decisions(scenario.bars)
        same(scenario.expected, frozen)
        same(compiled(spec, scenario.bars), frozen)
        run = reference_run(spec, scenario.bars)
        assert run.failure is None and run.decisions is not None
        same(run.decisions, frozen)
        reached |= {spec.semantics.rules[signal].signal for signal in frozen.signal}
    assert reached == set(spec.signals), "every rule fires in some scenario"


@pytest.mark.parametrize("seed", [1, 7])
@pytest.mark.parametrize("id", STRATEGIES)
def test_random_bars_reference_interpreter_and_kernel_agree(id, seed):
    spec = load_spec(id)
    bars = spec.practice_bars(240, seed)
    frozen = spec.frozen_decisions(bars)
    assert len(frozen)
    same(compiled(spec, bars), frozen)
    run = reference_run(spec, bars)
    assert run.decisions is not None and run.account is not None
    same(run.decisions, frozen)
    legs = spec.semantics.inputs.legs
    audit = audit_gate(run, closes_of(market_columns(bars, legs), legs), 0.95, 1e-6)
    assert audit.passed and audit.measures["completeness"] == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20, 30))
@pytest.mark.parametrize("id", STRATEGIES)
def test_more_random_bars(id, seed):
    spec = load_spec(id)
    bars = spec.practice_bars(1500, seed)
    frozen = spec.frozen_decisions(bars)
    same(compiled(spec, bars), frozen)
    run = reference_run(spec, bars)
    assert run.decisions is not None
    same(run.decisions, frozen)


@pytest.mark.parametrize("id", (*STRATEGIES, *SYSTB_STRATEGIES))
def test_the_reference_is_a_submission_and_its_doc_pins_what_prose_leaves_open(id):
    spec, reference = load_spec(id), load_reference(id)
    assert parse_gate(reference).passed
    assert schema_gate(reference, spec.semantics).passed
    if id in SYSTB_STRATEGIES:
        return
    for name, parameter in spec.semantics.parameters.items():
        assert f"| `{name}` | {parameter.value:g} |" in spec.doc
    for signal in spec.signals:
        assert f"`{signal}`" in spec.doc
    pins = spec.semantics.conventions
    assert "1e-9" in spec.doc and "1e-10" in spec.doc
    if pins.std_ddof is not None:
        assert f"ddof {pins.std_ddof}" in spec.doc
    if pins.wilder is not None:
        assert "Wilder" in spec.doc
    if pins.ema_seed is not None:
        assert "plain mean of the first k" in spec.doc


def test_an_unknown_strategy_names_the_nearest():
    with pytest.raises(UserError, match="bollinger"):
        load_spec("bolinger")


def test_scenarios_are_short():
    assert all(np.less_equal(one.bars.rows, 125) for id in STRATEGIES for one in load_spec(id).scenarios)


def test_they_are_other_strategies_than_ours():
    assert len(SYSTB_STRATEGIES) == len(STRATEGIES) == 12
    for ours, theirs in zip(STRATEGIES, SYSTB_STRATEGIES, strict=True):
        assert load_spec(ours).semantics.sha256 != load_spec(theirs).semantics.sha256
