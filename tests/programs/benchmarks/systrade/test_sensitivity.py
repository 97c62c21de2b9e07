"""Every pinned word matters: mutants show on drawn paths, programs that are wrong in one word
are rejected.
"""

from functools import cache

import numpy as np
import pytest
from tests.programs.benchmarks.systrade.written import right_ones, wrong_ones

from tradeassay_bench.account.shares import decision_list
from tradeassay_programs.benchmarks.systrade import STRATEGIES, load_reference, load_spec
from tradeassay_programs.benchmarks.systrade.data import drawn_year, synthetic_year
from tradeassay_programs.benchmarks.systrade.examine import sensitivity_of
from tradeassay_programs.code.bars import TaskBars
from tradeassay_programs.code.gates import GateConfig, pass_gates
from tradeassay_programs.code.lookahead.grow import LeakConfig
from tradeassay_programs.code.semantics.sensitivity import (
    Mutant,
    Sensitivity,
    Tape,
    decide,
    draw_path,
    mutants,
    mutants_left,
)
from tradeassay_programs.code.submission import Submission
from tradeassay_programs.sandbox import TrustedCodeInProcess

SECRET = "5e" * 16


@cache
def _drawn(strategy: str) -> tuple[TaskBars, Sensitivity]:
    spec = load_spec(strategy)
    year = synthetic_year(spec, seed=drawn_year(spec, SECRET))
    return year, sensitivity_of(spec, year, SECRET)


QUICK = GateConfig(leak=LeakConfig(every_bar=0, runs=0, cuts=0, confirmations=0))
"""The leak gate is not asked here."""


def _holds(strategy: str, made: Submission) -> bool:
    """Return whether the scenarios and the agreement hold."""
    year, drawn = _drawn(strategy)
    here = TrustedCodeInProcess()
    report = pass_gates(
        made, load_spec(strategy), here, QUICK, year, trust="reference", sensitivity=drawn
    ).report
    return report.gate("scenarios").passed and report.gate("agreement").passed


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_mutant_that_differs_in_nothing_decides_like_the_interpreter(strategy):
    spec = load_spec(strategy)
    rng = np.random.default_rng(3)
    for bars in (
        *(one.bars for one in spec.scenarios),
        *(draw_path(spec.semantics, rng, n) for n in range(4)),
    ):
        frozen, found = (
            spec.frozen_decisions(bars),
            decide(Mutant(description="", semantics=spec.semantics), Tape(bars)),
        )
        made = decision_list(list(found))
        assert (
            made.row.tolist() == frozen.row.tolist()
            and made.signal.tolist() == frozen.signal.tolist()
        )
        assert np.allclose(made.fraction, frozen.fraction, rtol=0, atol=1e-12)


def test_mutants_are_other_words():
    for strategy, words in (
        (
            "turtle",
            "entry_n 21;atr = ema(tr, atr_n);add-long sets n0;exit-long first;two rules a bar",
        ),
        ("turtle", "top = highest(X.high, entry_n)"),
        ("pairs", "sd = std(gap, w, 0)"),
        ("vol-target", "weights drift"),
    ):
        assert set(words.split(";")) <= {
            one.description for one in mutants(load_spec(strategy).semantics)
        }


@pytest.mark.slow_for("pairs")
@pytest.mark.parametrize("strategy", ["double-ma", "vol-target", "pairs"])
def test_what_is_left_of_the_mutants_decides_the_same_anywhere(strategy):
    _, drawn = _drawn(strategy)
    words = "first;two rules; from ;>=;<=;> -leave;< leave;z = (gap;want = min;1.03e-10".split(";")
    strange = [
        what
        for what in drawn.undetected
        if not any(word in what for word in words) and what[-1] != "2"
    ]
    assert not strange and drawn.paths


def test_agreement_is_asked_only_with_sensitivity_paths():
    made, here = load_reference("double-ma"), TrustedCodeInProcess()
    report = pass_gates(made, load_spec("double-ma"), here, QUICK, trust="reference").report
    assert report.gates[-1].name == "scenarios"


def test_a_path_on_which_the_account_is_ruined_proves_nothing():
    semantics, rng = load_spec("r-breaker").semantics, np.random.default_rng(5)
    plain = Mutant(description="", semantics=semantics)
    paths = [draw_path(semantics, rng, number) for number in range(60)]
    ruined = [
        bars
        for bars in paths
        if any(np.isnan(share) for _, _, share, _ in decide(plain, Tape(bars)))
    ]
    assert 1 <= len(ruined) < 10
    assert all(mutants_left([], plain, bars, rng) is None for bars in ruined)


@pytest.mark.parametrize(
    "secret", [pytest.param(one * 16, marks=pytest.mark.slow) for one in ("00", "a7", "c3")]
)
def test_sessions_turn_more_than_once(secret):
    """A high that no close reaches, and two rules on one bar, show nowhere else."""
    spec = load_spec("r-breaker")
    drawn = sensitivity_of(spec, synthetic_year(spec, seed=drawn_year(spec, secret)), secret)
    words = {"top = high_so_far(X.close)", "low = low_so_far(X.close)", "two rules a bar"}
    assert words <= {one.description for one in mutants(spec.semantics)}
    assert not words & set(drawn.undetected)


@pytest.mark.journey
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "strategy",
    [pytest.param(one, marks=() if one == "double-ma" else pytest.mark.slow) for one in STRATEGIES],
)
def test_programs_written_from_the_docs(strategy):
    assert len(right_ones()) >= 40 and len(wrong_ones()) >= 80
    rejected = [id for id, made in right_ones() if id == strategy and not _holds(id, made)]
    accepted = [new for id, new, made in wrong_ones() if id == strategy and _holds(id, made)]
    assert rejected == [] and accepted == []
