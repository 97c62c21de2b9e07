"""Famous portfolios of which everybody knows what they are: what an expert says, and nothing
stronger.
"""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from judging import assay

from tradeassay.reference import read_benchmark, read_factors
from tradeassay.verdict.own_account import OwnAccount
from tradeassay.verdict.record import VerdictConfig

CONFIG = VerdictConfig(portfolios=0, draws=100)
PRAISE = ("skill", "timing", "could-be-best-of-few")
LUCK = "not-distinguishable-from-luck"


@cache
def french():
    """Market, bills, size and value by month, 1926 to 2018, from arch."""
    table = read_factors("french")
    assert table.market is not None and table.cash is not None
    columns = {"Mkt": table.market, "RF": table.cash, **table.factors}
    return pd.DataFrame({name: series.returns for name, series in columns.items()})


@cache
def portfolios():
    """Industries, and sorts by size, value and momentum, 1949 to 2017, from linearmodels."""
    sorts = pytest.importorskip(
        "linearmodels.datasets.french", reason="a peer that make test-all installs"
    )
    data = sorts.load()
    data.index = pd.Index((data.pop("dates") + pd.offsets.MonthEnd(0)).dt.strftime("%Y-%m-%d"))
    return data


def judged(returns, **given):
    return assay(OwnAccount(returns=returns.rename("return"), title="it", **given), CONFIG).agents[
        0
    ]


def named(name):
    found = read_benchmark(name, ["2001-01-02", "2018-11-30"]).returns
    return pd.Series(found)


def stocks():
    return french()["Mkt"] + french()["RF"]


FACTORS = {"factors": "french"}
EXCESS = {"factors": "french", "cash": "none"}
ALONE = {"benchmark": "us-market"}
OLD = {
    "all US stocks": (stocks, FACTORS, ("market",)),
    "all US stocks, against themselves": (stocks, ALONE, ("market",)),
    "stocks against bills": (stocks, {"benchmark": "bills"}, ("no-benchmark",)),
    "sixty per cent stocks": (lambda: 0.6 * stocks() + 0.4 * french()["RF"], FACTORS, ("market",)),
    "half as much again, on credit": (
        lambda: 1.5 * stocks() - 0.5 * french()["RF"],
        FACTORS,
        ("market",),
    ),
    "stocks sold short": (lambda: -stocks() + 2.0 * french()["RF"], FACTORS, ("market",)),
    "a fund that takes 2 % a year": (lambda: stocks() - 0.02 / 12, FACTORS, ("market",)),
    "bills": (lambda: french()["RF"], ALONE, ("cash",)),
    "value (HML)": (lambda: french()["HML"], EXCESS, ("style",)),
    "value, nobody says that it is one": (lambda: french()["HML"], ALONE, (LUCK,)),
    "size (SMB)": (lambda: french()["SMB"], EXCESS, ("style",)),
    "size, nobody says that it is one": (lambda: french()["SMB"], ALONE, (LUCK,)),
    "stocks that lean to value": (lambda: stocks() + 0.7 * french()["HML"], FACTORS, ("style",)),
    "the Nasdaq": (lambda: named("nasdaq"), FACTORS, ("style", LUCK, "market")),
    "the S&P 500, without dividends": (lambda: named("sp500"), FACTORS, ("market", "worse")),
}
FOUR = ("MktRF", "SMB", "HML", "Mom", "RF")
SORTED = {
    "momentum (Mom)": ("Mom", "none", ("style",)),
    "small value": ("S1V5", None, ("style",)),
    "small growth": ("S1V1", None, ("style", "worse")),
    "large value": ("S5V5", None, ("style", "worse")),
    "large growth": ("S5V1", None, ("market", "style", LUCK)),
    "large winners": ("S5M5", None, ("style", LUCK)),
    "large losers": ("S5M1", None, ("style", "worse")),
    "energy": ("Enrgy", None, (LUCK, "style", "market")),
    "utilities": ("Utils", None, (LUCK, "style", "market")),
    "banks and insurers": ("Money", None, (LUCK, "style", "market", "worse")),
    "telephone": ("Telcm", None, (LUCK, "style", "market")),
}


@pytest.mark.parametrize("name", OLD)
def test_what_everybody_knows(name):
    make, given, right = OLD[name]
    bills = {what: french()["RF"].rename("return") for what, one in given.items() if one == "bills"}
    one = judged(make(), **{**given, **bills})
    assert one.verdict.kind in right, one.verdict.sentence
    assert not (one.verdict.firm and one.verdict.kind in PRAISE)


@pytest.mark.slow  # linearmodels comes with requirements/test-all.txt
@pytest.mark.parametrize("name", SORTED)
def test_sorts_and_industries_are_style(name):
    column, cash, right = SORTED[name]
    one = judged(portfolios()[column], factors=portfolios()[list(FOUR)], cash=cash)
    assert one.verdict.kind in right, one.verdict.sentence


@pytest.mark.slow
def test_momentum_that_nobody_measures_has_that_as_its_first_limit():
    one = judged(portfolios()["Mom"], benchmark="us-market", cash="none")
    assert one.verdict.limits[0] == "style is not measured: no factors are known"
    assert not one.verdict.firm


def test_survivors_carry_their_bias():
    rng = np.random.default_rng(20)
    market = rng.normal(0.0004, 0.01, 1500)
    names = market[:, None] + rng.normal(0.0, 0.02, (1500, 300))
    best = names[:, np.argsort(-names.sum(axis=0))[:20]].mean(axis=1)
    days = pd.bdate_range("2010-01-04", periods=1500).strftime("%Y-%m-%d")
    one = judged(pd.Series(best, days), benchmark=pd.Series(market, days).rename("return"))
    assert one.verdict.label == "skill, with caveats"
    assert "But style is not measured; hindsight is not excluded" in one.verdict.sentence
    assert not any("tries" in line for line in one.reasons_for)
