"""Values beside money paid in or out: returns are those without it, or the table is refused in
one line.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from judging import assay

from tradeassay.cli import main
from tradeassay.core.errors import UserError
from tradeassay.tables.account import read_series
from tradeassay.verdict.own_account import OwnAccount
from tradeassay.verdict.record import VerdictConfig


def invested(flows):
    """Return an account of 10,000 whose flows truly are in its value."""
    moves = np.random.default_rng(3).normal(0.0003, 0.008, flows.size)
    value, values = 10_000.0, []
    for earned, paid in zip(moves, flows, strict=True):
        value = (value + max(paid, 0.0)) * (1.0 + earned) + min(paid, 0.0)
        values.append(value)
    days = pd.bdate_range("2023-01-02", periods=flows.size)
    return pd.DataFrame(
        {"date": days.strftime("%Y-%m-%d"), "value": values, "true": moves, "flows": flows}
    )


FLOWS = np.where(np.arange(200) % 40 == 20, 2_000.0, 0.0)


def test_a_year_of_deposits_returns_what_was_earned():
    made = invested(FLOWS)
    read = read_series(made[["date", "value", "flows"]])
    assert [*read.returns.values()] == pytest.approx(made["true"][1:].tolist(), abs=1e-12)


CONTRADICTED = {
    "the other way": -FLOWS,
    "since the beginning": 10_000.0 + FLOWS.cumsum(),
    "a row early": np.roll(FLOWS, -1),
    "a row late": np.roll(FLOWS, 1),
    "on other days": np.roll(FLOWS, 9),
    "not all of it": FLOWS / 4.0,
}


@pytest.mark.parametrize("how", CONTRADICTED)
def test_what_the_value_contradicts_is_refused(how):
    made = invested(FLOWS).assign(flows=CONTRADICTED[how])
    with pytest.raises(UserError, match="from 'value': the value does not change by it") as refused:
        read_series(made[["date", "value", "flows"]])
    assert "\n" not in str(refused.value) and "cumulative deposits" in refused.value.hint


def test_small_flows_are_no_proof_of_anything():
    """A fiftieth of a usual day's move cannot be told from it, right or wrong."""
    made = invested(FLOWS / 1000.0)
    read_series(made.assign(flows=-made["flows"])[["date", "value", "flows"]])


def test_the_page_says_how(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made = invested(FLOWS).drop(columns="true")
    made.rename(columns={"value": "Account Value", "flows": "Deposits"}).to_csv(
        "mine.csv", index=False
    )
    assert main(["assay", "mine.csv"]) == 0
    page = Path("mine-assay.html").read_text("utf-8")
    assert "is removed from the returns, which are time-weighted" in page


def judged(values, flows, market):
    """Return the verdict on an account beside its market."""
    days = pd.bdate_range("2020-01-02", periods=values.size).strftime("%Y-%m-%d")
    level = 100.0 * np.cumprod(1 + market)
    table = pd.DataFrame({"date": days, "value": values, "net flow": flows, "benchmark": level})
    return assay(OwnAccount(returns=table), VerdictConfig(draws=100)).agents[0].verdict


def chance(days=500):
    """Return an account that follows its market by half and knows nothing, and the market."""
    rng = np.random.default_rng(5)
    market = rng.normal(0.0003, 0.01, days)
    return 10_000.0 * np.cumprod(1.0 + 0.5 * market + rng.normal(0.0, 0.006, days)), market


def test_losses_called_withdrawals_are_praised_on_the_table_s_word_only():
    """Nobody can tell a small payment from a loss, so that praise begins with whose word it is."""
    values, market = chance()
    assert judged(values, np.zeros(values.size), market).kind == "not-distinguishable-from-luck"
    lost = np.concatenate([[0.0], np.diff(values)])
    hidden = np.where(lost <= np.sort(lost)[30], lost, 0.0)
    said = judged(values, hidden, market)
    assert said.kind in ("skill", "timing") and not said.firm
    assert said.limits[1].startswith("withdrawals are not verified: ")
    assert "But style is not measured; withdrawals are not verified; " in said.sentence


def test_losses_diluted_by_money_paid_in_at_their_end_are_said():
    """Money that comes at the close of a bad day and goes in the morning makes the loss look
    small.
    """
    values, market = chance()
    earned = values[1:] / values[:-1] - 1.0
    value, parked, rows = 10_000.0, 0.0, [(10_000.0, 0.0)]
    for one in earned:
        value *= 1.0 + one
        more = 5.0 * value if one < -0.006 else 0.0
        rows.append((value + more, more - parked))
        parked = more
    said = judged(*np.array(rows).T, market)
    assert said.kind == "hidden-risk" or (said.kind in ("skill", "timing") and not said.firm)
    assert any(
        limit.startswith("the timing of deposits is not known: ") for limit in said.limits[:3]
    )


def test_money_that_shows_in_the_value_is_doubted_by_nobody():
    read = read_series(invested(-FLOWS / 2.0)[["date", "value", "flows"]])
    assert read.doubts == ()
