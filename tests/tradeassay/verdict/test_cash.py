"""Did it hold cash? Then there is nothing to judge, and nothing that would have to be excluded."""

import msgspec
import numpy as np
import pytest
from accounts import CONFIG, NOTHING, account, follows, span, table

from tradeassay.core.measure import Measure
from tradeassay.tables.account import OwnSeries
from tradeassay.verdict import judge
from tradeassay.verdict.interest import most_interest
from tradeassay.verdict.record import CASH, LeakEvidence, LuckEvidence
from tradeassay.verdict.returns import assay_series

STILL = {
    "total": Measure(value=0.0),
    "alpha": NOTHING,
    "passive": follows(1.0, 0.0, portfolio=CASH),
    "leaks": LeakEvidence(tested=False),
    "luck": LuckEvidence(percentile=Measure(value=0.5), p=0.5),
}


@pytest.mark.parametrize("make", [account, table])
def test_cash_is_cash(make):
    judged = judge(make(**STILL), CONFIG)
    verdict = judged.verdict
    assert (verdict.kind, verdict.label, verdict.firm) == ("cash", "held cash", True)
    assert verdict.sentence == "one returned 0.0%: it held cash; nothing to judge."
    assert verdict.limits == judged.reasons_for == judged.reasons_against == ()
    assert {one.quantity for one in judged.statements} >= {"return"}
    assert not {one.quantity for one in judged.statements} & {"alpha", "likelihood-ratio", "beta"}


def test_what_moves_as_cash_does_is_cash():
    judged = judge(account(**STILL | {"total": span(0.03, 0.001), "sessions": 756}), CONFIG)
    assert judged.verdict.sentence.startswith("one returned +3.0% (+1.0% a year): it moves as cash")


def test_why_nothing_was_bought_may_be_that_nothing_was_answered():
    silent = {"failed_seeds": 1, "failure_rate": Measure(value=0.7)}
    verdict = judge(account(**STILL | silent), CONFIG).verdict
    assert verdict.firm
    assert verdict.limits == (
        "some seeds are left out: 1 of 2 failed",
        "many sessions had no usable answer: 70%",
    )


def test_a_baseline_that_holds_cash_is_called_baseline():
    assert judge(account(**STILL | {"baseline": True}), CONFIG).verdict.label == "baseline"


def test_what_earns_more_than_interest_is_not_cash():
    earning = follows(1.0, 0.2, portfolio=CASH)
    assert judge(account(passive=earning), CONFIG).verdict.kind == "skill"


def judged_of(returns, market, days, year):
    series = OwnSeries(
        returns=dict(zip(days, returns.tolist(), strict=True)),
        benchmark=dict(zip(days, market.tolist(), strict=True)),
        year=year,
    )
    return assay_series(series, CONFIG, agent="one")[0].verdict


def sessions_from(first, rows):
    return np.busday_offset(first, np.arange(rows), roll="forward").astype(str).tolist()


@pytest.mark.parametrize("every", [1, 5, 21, 63])
@pytest.mark.parametrize("decimals", [4, 5, 6])
def test_interest_is_cash_however_rarely_it_is_credited_and_however_it_is_rounded(every, decimals):
    rng = np.random.default_rng([every, decimals])
    rows = 1512
    market = 0.01 * rng.standard_normal(rows) + 0.0003
    rate = np.repeat(0.02 + 0.02 * np.sin(np.arange(rows // 252)), 252)
    credited = np.where(np.arange(rows) % every == every - 1, rate * every / 252, 0.0)
    verdict = judged_of(
        np.round(credited, decimals), market, sessions_from("2004-01-05", rows), 252
    )
    assert verdict.kind == "cash"


@pytest.mark.parametrize(
    ("first", "yearly", "kind"),
    [
        ("1979-01", 0.105, "cash"),  # bills paid so much then
        ("1979-01", 0.16, "hidden-risk"),
        ("2010-01", 0.055, "cash"),
        ("2010-01", 0.105, "hidden-risk"),
    ],
)
def test_cash_earns_what_bills_paid_on_its_dates(first, yearly, kind):
    rng = np.random.default_rng(3)
    days = (np.datetime64(first, "M") + np.arange(1, 73)).astype("datetime64[D]") - 1
    returns = yearly / 12 + 1e-4 * rng.standard_normal(72)
    market = 0.04 * rng.standard_normal(72) + 0.006
    assert judged_of(returns, market, days.astype(str).tolist(), 12).kind == kind


def test_the_most_that_cash_earned():
    assert most_interest("2010-01-04", "2015-01-05", CONFIG) == pytest.approx(0.06)
    assert most_interest("1981-01-01", "1981-12-31", CONFIG) == pytest.approx(0.157)
    assert most_interest("1981-07-01", "1982-06-30", CONFIG) == pytest.approx(0.136, abs=1e-3)
    assert most_interest(None, None, CONFIG) == pytest.approx(0.06)
    assert most_interest("session 1", "session 9", CONFIG) == pytest.approx(0.06)
    dear = msgspec.structs.replace(CONFIG, interest=0.13)
    assert most_interest("2010-01-04", "2015-01-05", dear) == pytest.approx(0.14)
