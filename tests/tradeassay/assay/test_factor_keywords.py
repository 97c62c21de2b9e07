"""``assay`` takes what cash earned and the returns of styles, as the command line does."""

import numpy as np
import pandas as pd
import pytest

from tradeassay import assay

DATES = pd.date_range("2004-01-31", periods=96, freq="ME")


def tables():
    rng = np.random.default_rng(5)
    cash = 0.002 + 0.0005 * np.sin(np.arange(96) / 12)
    market, style = rng.normal(0.006, 0.04, 96), rng.normal(0.004, 0.03, 96)
    own = cash + 0.8 * market + 0.9 * style + rng.normal(0.0, 0.01, 96)
    account = pd.DataFrame({"date": DATES, "return": own})
    factors = pd.DataFrame({"date": DATES, "Mkt-RF": market, "value": style, "RF": cash})
    return account, factors


@pytest.mark.parametrize("as_file", [False, True])
def test_factors_measure_style(as_file, tmp_path):
    account, factors = tables()
    if as_file:
        factors.to_csv(tmp_path / "factors.csv", index=False)
    judged = assay(account, factors=tmp_path / "factors.csv" if as_file else factors)
    assert judged.agents[0].exposures["value"].value == pytest.approx(0.9, abs=0.15)
    assert judged.verdict.kind == "style"
    assert not any(limit.startswith("style is not measured") for limit in judged.verdict.limits)


def test_cash_replaces_the_allowance_for_interest():
    account, factors = tables()
    market = pd.DataFrame({"date": DATES, "return": factors["Mkt-RF"] + factors["RF"]})
    cash = factors[["date", "RF"]]
    with_cash = assay(account, benchmark=market, cash=cash)
    assert with_cash.config.interest == 0.0
    assert assay(account, benchmark=market).config.interest > 0.0
    assert assay(account, benchmark=market, cash="french").config.interest == 0.0
