"""Every mutant is rejected at its gate: those that only trade wrongly here, the rest in the
sandbox.
"""

import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace as Mutant

import pytest

from tradeassay_programs.benchmarks.systrade import STRATEGIES, load_reference, load_spec
from tradeassay_programs.benchmarks.systrade.data import drawn_year, synthetic_year
from tradeassay_programs.benchmarks.systrade.examine import sensitivity_of, twin_executor
from tradeassay_programs.code.bars import TaskBars
from tradeassay_programs.code.gates import (
    GateConfig,
    parse_gate,
    pass_gates,
    scenarios_gate,
    schema_gate,
)
from tradeassay_programs.code.semantics.sensitivity import Sensitivity
from tradeassay_programs.code.submission import (
    Submission,
    SubmissionRunner,
    TwinExecutor,
    market_columns,
    submission_config,
)
from tradeassay_programs.sandbox import SandboxPool, TrustedCodeInProcess

SECRET = "5e" * 16
SAMPLE = (
    ("bollinger", "buys-before-the-rise"),
    ("spread", "whole-sample-z"),
    ("double-ma", "random-sizes"),
    ("turtle", "no-position-rows"),
    ("r-breaker", "flattering-fills"),
    ("vol-target", "flattering-profits"),
    ("pairs", "asks-for-adjusted-prices"),
)


SORTS = {"look-ahead", "off-by-one bar", "added filter", "unseeded randomness"}
SORTS |= {"incomplete audit", "false claim", "broken syntax"}
"""Every strategy has mutants of these sorts."""


def load_mutants(*names: str) -> list[Mutant]:
    """What the files of these names hold; ``gate`` is the first gate that has to fail."""
    files = (Path(__file__).parent / "mutants" / f"{name.replace('-', '_')}.toml" for name in names)
    return [Mutant(**one) for file in files for one in tomllib.loads(file.read_text())["mutants"]]


def mutate(id: str, mutant: Mutant) -> Submission:
    reference = load_reference(id)
    texts = {False: reference.source, True: reference.card}
    for edit in mutant.edits:
        text = texts[edit.get("card", False)]
        assert text.count(edit["old"]) == 1, (id, mutant.name)
        texts[edit.get("card", False)] = text.replace(edit["old"], edit["new"])
    return Submission(source=texts[False], card=texts[True], name=f"{id}, {mutant.name}")


@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("id", STRATEGIES)
def test_mutants_that_trade_wrongly_depart_on_a_scenario(id):
    spec = load_spec(id)
    tables = {
        one.name: market_columns(one.bars, spec.semantics.inputs.legs) for one in spec.scenarios
    }
    mutants = load_mutants(id, "all")
    assert (
        SORTS <= {one.kind for one in mutants}
        and len({one.name for one in mutants}) == len(mutants) >= 13
    )
    for mutant in mutants:
        made = mutate(id, mutant)
        assert parse_gate(made).passed == (mutant.gate != "parse")
        if mutant.gate != "parse":
            assert schema_gate(made, spec.semantics).passed == (mutant.gate != "schema")
        if mutant.gate != "scenarios":
            continue
        runner = SubmissionRunner(
            executor=TrustedCodeInProcess(),
            source=made.source,
            semantics=spec.semantics,
            trust="reference",
        )
        runs = dict(zip(tables, runner.logs((table, 0) for table in tables.values()), strict=True))
        assert all(run.ok for run in runs.values()), mutant.name
        assert scenarios_gate(spec, runs, 1e-6).status == "failed", mutant.name


@pytest.mark.parametrize(("id", "name"), SAMPLE)
def test_a_mutant_is_rejected_at_its_gate(pool, id, name):
    (mutant,) = (one for one in load_mutants(id, "all") if one.name == name)
    spec = load_spec(id)
    report = pass_gates(
        mutate(id, mutant), spec, pool, GateConfig(), spec.practice_bars(250)
    ).report
    assert report.first_failure is not None and report.first_failure.name == mutant.gate
    assert report.first_failure.evidence


@pytest.mark.slow
def test_a_reference_passes_every_gate(pool):
    config = GateConfig(seeds=(1, 2, 3))
    report = pass_gates(load_reference("double-ma"), load_spec("double-ma"), pool, config).report
    assert report.passed and report.valid, [(gate.name, gate.reason) for gate in report.gates]
    leak = report.gate("leak")
    # Five hundred bars are few enough to be asked at every one, so no leak is left that could have been missed.
    assert (
        leak.measures["cleared_bars"] == report.rows - 1
        and leak.measures["not_excluded_below_bars"] == 1
    )
    assert leak.measures["runs"] >= report.rows - 1 and leak.reason.endswith(
        "one of them at every bar"
    )


@pytest.mark.slow
@pytest.mark.parametrize("id", STRATEGIES)
def test_all_mutants_and_the_reference_in_the_sandbox(pool, id):
    assert pass_gates(load_reference(id), load_spec(id), pool).report.passed
    for mutant in load_mutants(id, "all"):
        failure = pass_gates(mutate(id, mutant), load_spec(id), pool).report.first_failure
        assert failure is not None and failure.name == mutant.gate, mutant.name


@cache
def drawn(id: str) -> tuple[TaskBars, Sensitivity]:
    spec = load_spec(id)
    year = synthetic_year(spec, seed=drawn_year(spec, SECRET))
    return year, sensitivity_of(spec, year, SECRET)


@pytest.fixture(scope="module")
def both(pool: SandboxPool) -> Iterator[TwinExecutor]:
    """The sandbox, and one beside it whose processes hash texts differently."""
    made = twin_executor(pool, submission_config())
    yield made
    made.twin.close()


ATTACKS = load_mutants("attacks")
"""Submissions of a second reader, hostile ones and honest ones in odd clothes, for one strategy
each.
"""
CHEAP = ("volume-tells-the-side", "size-of-the-next-move")


@pytest.mark.parametrize(
    "mutant",
    [
        pytest.param(one, id=one.name, marks=() if one.name in CHEAP else pytest.mark.slow)
        for one in ATTACKS
    ],
)
def test_an_attack_fails_and_odd_clothes_pass(both, mutant):
    """On a drawn year with drawn paths; "" is the gate of what passes them all."""
    year, sensitivity = drawn(mutant.strategy)
    made, config = mutate(mutant.strategy, mutant), GateConfig(secret=SECRET)
    report = pass_gates(
        made, load_spec(mutant.strategy), both, config, year, sensitivity=sensitivity
    ).report
    assert next((gate.name for gate in report.gates if not gate.passed), "") == mutant.gate
