"""A strategy with a year in it has the year of minutes on minutes, as its doc says."""

from __future__ import annotations

import numpy as np
import pytest

from tradeassay.benchmarks.systrade.benchmark import SystradeProtocol
from tradeassay.benchmarks.systrade.data import minute_year
from tradeassay.benchmarks.systrade.loading import load_reference, load_spec
from tradeassay.benchmarks.systrade.spec import SystradeSpec


def test_the_year_is_that_of_the_bars() -> None:
    daily, minutes = load_spec("vol-target"), load_spec("vol-target", minutes=True)
    assert daily.semantics.parameters["year"].value == 252
    assert minutes.semantics.parameters["year"].value == 525_600
    assert "| `year` | 525600 |" in minutes.doc and "| `year` | 252 |" not in minutes.doc
    for one, other in zip(daily.scenarios, minutes.scenarios, strict=True):
        assert one.expected.row.tolist() == other.expected.row.tolist(), "the same path, only calmer"
        assert one.expected.fraction == pytest.approx(other.expected.fraction, rel=1e-9)
    reference = load_reference("vol-target", minutes=True)
    assert reference.read_card().parameters["year"] == 525_600 and "YEAR = 525600" in reference.source
    assert load_spec("bollinger", minutes=True) is load_spec("bollinger")


def test_on_minutes_it_aims_at_its_goal() -> None:
    bars = minute_year(4_000)
    wanted = {
        flag: load_spec("vol-target", minutes=flag).compiled_decisions(bars).fraction for flag in (False, True)
    }
    assert np.all(wanted[False] == 1.0), "by the year of days every minute is calm"
    assert wanted[True].size > 5 and wanted[True].min() < 0.5


def test_a_run_on_minutes_uses_it() -> None:
    spec = SystradeSpec(models=("scripted/builder-gold",), strategies=("vol-target",), minutes=600)
    protocol = SystradeProtocol(spec)
    assert protocol.strategies["vol-target"].semantics.parameters["year"].value == 525_600
    assert "strategy vol-target on minutes" in protocol.facts()
