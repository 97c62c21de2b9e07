"""Every pinned word matters: mutants show on drawn paths, programs that are wrong in one word are rejected."""

import numpy as np
import pytest
from tests.benchmarks.systrade.written import right_ones, wrong_ones

from tradeassay.account.shares import decision_list
from tradeassay.benchmarks.systrade import STRATEGIES, load_reference, load_spec
from tradeassay.benchmarks.systrade.data import drawn_year, synthetic_year
from tradeassay.benchmarks.systrade.examine import pins_of
from tradeassay.code.gates import GateConfig, pass_gates
from tradeassay.code.lookahead.grow import LeakConfig
from tradeassay.code.semantics.pins import Mutant, Pins, Tape, _unshown, decide, draw_path, mutants
from tradeassay.code.submission import Submission
from tradeassay.sandbox import TrustedCodeInProcess

SECRET = "5e" * 16


@pytest.fixture(scope="module")
def pins() -> dict[str, tuple[object, Pins]]:
    return {}


def _drawn(pins: dict[str, tuple[object, Pins]], strategy: str) -> tuple[object, Pins]:
    if strategy not in pins:
        spec = load_spec(strategy)
        year = synthetic_year(spec, seed=drawn_year(spec, SECRET))
        pins[strategy] = (year, pins_of(spec, year, SECRET))
    return pins[strategy]


def _gate(pins: dict[str, tuple[object, Pins]], strategy: str, made: Submission) -> tuple[bool, bool]:
    """Return whether the scenarios and the agreement hold; the leak gate is not asked here."""
    year, drawn = _drawn(pins, strategy)
    config = GateConfig(leak=LeakConfig(every_bar=0, runs=0, cuts=0, confirmations=0))
    report = pass_gates(
        made, load_spec(strategy), TrustedCodeInProcess(), config, year, trust="reference", pins=drawn
    ).report
    return report.gate("scenarios").passed, report.gate("agreement").passed


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_mutant_that_differs_in_nothing_decides_like_the_interpreter(strategy):
    spec = load_spec(strategy)
    rng = np.random.default_rng(3)
    for bars in (*(one.bars for one in spec.scenarios), *(draw_path(spec.semantics, rng, n) for n in range(4))):
        frozen, found = spec.frozen_decisions(bars), decide(Mutant(what="", semantics=spec.semantics), Tape(bars))
        made = decision_list(list(found))
        assert made.row.tolist() == frozen.row.tolist() and made.signal.tolist() == frozen.signal.tolist()
        assert np.allclose(made.fraction, frozen.fraction, rtol=0, atol=1e-12)


def test_mutants_are_other_words():
    found = {one.what for one in mutants(load_spec("turtle").semantics)}
    assert {
        "entry_n 21",
        "atr = ema(tr, atr_n)",
        "add-long sets n0",
        "exit-long first",
        "two rules a bar",
    } <= found
    assert "top = highest(X.high, entry_n)" in found
    assert "sd = std(gap, w, 0)" in {one.what for one in mutants(load_spec("pairs").semantics)}
    assert "weights drift" in {one.what for one in mutants(load_spec("vol-target").semantics)}


@pytest.mark.parametrize("strategy", ["double-ma", "vol-target", "pairs"])
def test_what_is_left_of_the_mutants_decides_the_same_anywhere(pins, strategy):
    _, drawn = _drawn(pins, strategy)
    words = "first;two rules; from ;>=;<=;> -leave;< leave;z = (gap;want = min;1.03e-10".split(";")
    strange = [what for what in drawn.unshown if not any(word in what for word in words) and what[-1] != "2"]
    assert not strange and drawn.paths


def test_without_pins_nobody_asks_about_agreement():
    spec = load_spec("double-ma")
    config = GateConfig(leak=LeakConfig(every_bar=0, runs=0, cuts=0, confirmations=0))
    report = pass_gates(
        load_reference("double-ma"), spec, TrustedCodeInProcess(), config, trust="reference"
    ).report
    assert [gate.name for gate in report.gates][-1] == "scenarios"


def test_a_path_on_which_the_account_is_ruined_proves_nothing():
    semantics, rng = load_spec("r-breaker").semantics, np.random.default_rng(5)
    plain = Mutant(what="", semantics=semantics)
    paths = [draw_path(semantics, rng, number) for number in range(60)]
    ruined = [bars for bars in paths if any(np.isnan(share) for _, _, share, _ in decide(plain, Tape(bars)))]
    assert 1 <= len(ruined) < 10
    assert all(_unshown([], plain, bars, rng) is None for bars in ruined)


def test_there_are_many_programs_written_from_the_docs():
    assert len(right_ones()) >= 40 and len(wrong_ones()) >= 80


@pytest.mark.parametrize("secret", [pytest.param(one * 16, marks=pytest.mark.slow) for one in ("00", "a7", "c3")])
def test_sessions_turn_more_than_once(secret):
    """A high that no close reaches, and two rules on one bar, show nowhere else."""
    spec = load_spec("r-breaker")
    drawn = pins_of(spec, synthetic_year(spec, seed=drawn_year(spec, secret)), secret)
    words = {"top = high_so_far(X.close)", "low = low_so_far(X.close)", "two rules a bar"}
    assert words <= {one.what for one in mutants(spec.semantics)}
    assert not words & set(drawn.unshown)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "strategy", [pytest.param(one, marks=() if one == "double-ma" else pytest.mark.slow) for one in STRATEGIES]
)
def test_programs_written_from_the_docs(pins, strategy):
    rejected = [id for id, made in right_ones() if id == strategy and _gate(pins, id, made) != (True, True)]
    wrong = [(id, new, made) for id, new, made in wrong_ones() if id == strategy]
    accepted = [new for id, new, made in wrong if _gate(pins, id, made) == (True, True)]
    assert rejected == []
    assert accepted == []
