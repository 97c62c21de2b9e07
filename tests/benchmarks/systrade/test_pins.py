"""Every pinned word matters: mutants show on drawn paths, programs that are wrong in one word are rejected."""

from functools import cache

import numpy as np
import pytest
from tests.benchmarks.systrade.written import right_ones, wrong_ones

from tradeassay.account.shares import decision_list
from tradeassay.benchmarks.systrade import STRATEGIES, load_reference, load_spec
from tradeassay.benchmarks.systrade.data import drawn_year, synthetic_year
from tradeassay.benchmarks.systrade.examine import pins_of
from tradeassay.code.bars import TaskBars
from tradeassay.code.gates import GateConfig, pass_gates
from tradeassay.code.lookahead.grow import LeakConfig
from tradeassay.code.semantics.pins import Mutant, Pins, Tape, _unshown, decide, draw_path, mutants
from tradeassay.code.submission import Submission
from tradeassay.sandbox import TrustedCodeInProcess

SECRET = "5e" * 16


@cache
def _drawn(strategy: str) -> tuple[TaskBars, Pins]:
    spec = load_spec(strategy)
    year = synthetic_year(spec, seed=drawn_year(spec, SECRET))
    return year, pins_of(spec, year, SECRET)


QUICK = GateConfig(leak=LeakConfig(every_bar=0, runs=0, cuts=0, confirmations=0))
"""The leak gate is not asked here."""


def _holds(strategy: str, made: Submission) -> bool:
    """Return whether the scenarios and the agreement hold."""
    year, drawn = _drawn(strategy)
    here = TrustedCodeInProcess()
    report = pass_gates(made, load_spec(strategy), here, QUICK, year, trust="reference", pins=drawn).report
    return report.gate("scenarios").passed and report.gate("agreement").passed


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
    for strategy, words in (
        ("turtle", "entry_n 21;atr = ema(tr, atr_n);add-long sets n0;exit-long first;two rules a bar"),
        ("turtle", "top = highest(X.high, entry_n)"),
        ("pairs", "sd = std(gap, w, 0)"),
        ("vol-target", "weights drift"),
    ):
        assert set(words.split(";")) <= {one.what for one in mutants(load_spec(strategy).semantics)}


@pytest.mark.slow_for("pairs")
@pytest.mark.parametrize("strategy", ["double-ma", "vol-target", "pairs"])
def test_what_is_left_of_the_mutants_decides_the_same_anywhere(strategy):
    _, drawn = _drawn(strategy)
    words = "first;two rules; from ;>=;<=;> -leave;< leave;z = (gap;want = min;1.03e-10".split(";")
    strange = [what for what in drawn.unshown if not any(word in what for word in words) and what[-1] != "2"]
    assert not strange and drawn.paths


def test_without_pins_nobody_asks_about_agreement():
    made, here = load_reference("double-ma"), TrustedCodeInProcess()
    report = pass_gates(made, load_spec("double-ma"), here, QUICK, trust="reference").report
    assert report.gates[-1].name == "scenarios"


def test_a_path_on_which_the_account_is_ruined_proves_nothing():
    semantics, rng = load_spec("r-breaker").semantics, np.random.default_rng(5)
    plain = Mutant(what="", semantics=semantics)
    paths = [draw_path(semantics, rng, number) for number in range(60)]
    ruined = [bars for bars in paths if any(np.isnan(share) for _, _, share, _ in decide(plain, Tape(bars)))]
    assert 1 <= len(ruined) < 10
    assert all(_unshown([], plain, bars, rng) is None for bars in ruined)


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
def test_programs_written_from_the_docs(strategy):
    assert len(right_ones()) >= 40 and len(wrong_ones()) >= 80
    rejected = [id for id, made in right_ones() if id == strategy and not _holds(id, made)]
    accepted = [new for id, new, made in wrong_ones() if id == strategy and _holds(id, made)]
    assert rejected == [] and accepted == []
