"""Tables as people have them: every guess is right or said, and what is ambiguous is refused."""

import tomllib
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
from judging import assay

from tradeassay.core.errors import UserError
from tradeassay.tables.account import TableReading, read_series, with_benchmark
from tradeassay.tables.dates import read_days
from tradeassay.verdict.own_account import OwnAccount
from tradeassay.verdict.record import VerdictConfig

DAYS = [str(day) for day in pd.bdate_range("2024-01-01", periods=60).date]
EARNED = np.random.default_rng(0).normal(0.0005, 0.01, 60)
ROWS = list(zip(DAYS, EARNED, strict=True))
PLAIN = [f"{d},{float(r)!r}" for d, r in ROWS]


def written(path, head, lines):
    path.write_text("\n".join([head, *lines]), encoding="utf-8")
    return path


def test_a_slip_changes_no_unit_and_what_is_missing_or_jumps_is_said(tmp_path):
    slip = written(tmp_path / "slip.csv", "date,return", [*PLAIN[:-1], f"{DAYS[-1]},-1.5"])
    with pytest.raises(UserError, match="fractions or per cent"):
        read_series(slip)
    hole = read_series(written(tmp_path / "hole.csv", "date,return", [*PLAIN[:20], *PLAIN[40:]]))
    assert any("no rows between" in note for note in hole.notes)
    first = read_series(written(tmp_path / "first.csv", "date,return", [f"{DAYS[0]},", *PLAIN[1:]]))
    assert list(first.returns) == DAYS[1:] and any("left out" in note for note in first.notes)
    for paid in (5e4, 1e4):
        value = 1e5 * np.cumprod(1 + EARNED) + np.where(np.arange(60) >= 30, paid, 0.0)
        lines = [f"{d},{v:.2f}" for d, v in zip(DAYS, value, strict=True)]
        assert any(
            "paid in" in note
            for note in read_series(written(tmp_path / "j.csv", "date,nav", lines)).notes
        )


def test_an_index_beside_the_dates_is_no_date(tmp_path):
    lines = [f"{d},{float(r)!r},{0.5 * float(r)!r}" for d, r in ROWS]
    path = written(tmp_path / "i.csv", "date,return,index", lines)
    assert assay(OwnAccount(returns=str(path), benchmark="index")).agents[0].sessions == 60


def test_frames_of_pandas_and_polars():
    series = pd.Series(EARNED, index=pd.to_datetime(DAYS))
    for table in (
        series,
        series.to_frame("return"),
        pl.DataFrame({"date": DAYS, "return": EARNED}),
    ):
        assert list(read_series(table).returns) == DAYS


def test_months_and_every_day_of_the_week(tmp_path):
    for form in ("%Y%m", "%b-%y", "%Y-%m-28"):
        rows = [f"{day:{form}},0.01" for day in pd.date_range("2022-01-31", periods=12, freq="ME")]
        read = read_series(written(tmp_path / "m.csv", "Month,return", rows))
        assert (list(read.returns)[1], read.year) == ("2022-02-28", 12)
    every = [
        f"{d.date()},{r}"
        for d, r in zip(pd.date_range("2024-01-01", periods=60), EARNED, strict=True)
    ]
    assert read_series(written(tmp_path / "d.csv", "date,return", every)).year == 365
    night = [
        f"{pd.Timestamp(day) + pd.Timedelta(1, 'D')},{r}"
        for day, r in zip(DAYS, EARNED, strict=True)
    ]
    assert read_series(written(tmp_path / "n.csv", "date,return", night)).year == 252, (
        "Saturday for Friday"
    )


def test_short_years_are_where_the_rows_follow_each_other():
    """Month ends of ten years, the year last, lie closer together as days of 2028 to 2031: but
    in no order.
    """
    ends = pd.date_range("2012-01-31", periods=120, freq="ME")
    whole = {
        "%d.%m.%y": ends,
        "%d/%m/%y": ends,
        "01.%m.%y": ends,
        "%y-%m-%d": pd.bdate_range("2024-01-01", "2024-03-29"),
    }
    for form, days in whole.items():
        true = [
            str(day.date())
            for day in (days.map(lambda day: day.replace(day=1)) if "01" in form else days)
        ]
        cells = [f"{day:{form}}" for day in days]
        for rows, read in ((cells, true), (cells[::-1], true[::-1]), (cells * 2, true * 2)):
            assert read_days("days", rows, None) == read, form


WANDERING = [f"{d},{100 * v:.4f}" for d, v in zip(DAYS, np.cumprod(1 + EARNED) - 1, strict=True)]
CALM = [f"{d},{10 * r:.4f}" for d, r in ROWS]


def test_a_unit_depends_on_how_long_a_row_is(tmp_path):
    months = [str(day.date()) for day in pd.date_range("2015-01-31", periods=60, freq="ME")]
    rows = [f"{d},{25 * r}" for d, r in zip(months, EARNED, strict=True)]
    coin = written(tmp_path / "c.csv", "date,return", rows)
    with pytest.raises(UserError, match=r"'unit': 'fraction'\} or reading=\{'unit': 'percent'\}"):
        read_series(coin)
    assert read_series(coin, TableReading(unit="fraction")).returns[months[3]] == pytest.approx(
        25 * EARNED[3]
    )
    percent = [f"{d},{2500 * r}" for d, r in zip(months, EARNED, strict=True)]
    read = read_series(written(tmp_path / "p.csv", "date,return", percent))
    assert read.notes[0].split(": read as ")[1].startswith("monthly percent returns")


def test_a_benchmark_with_holes_is_compared_over_the_same_spans():
    days = pd.bdate_range("2021-01-04", periods=400)
    market = pd.Series(np.random.default_rng(8).normal(0.0004, 0.01, 400), index=days)
    level = (1.0 + market).cumprod()
    holes = level.drop(days[7::9]).to_frame("nav")
    series = with_benchmark(read_series((0.5 * market).to_frame("return")), read_series(holes))
    assert list(series.benchmark) == list(series.returns)
    assert not set(map(str, days[7::9].date)) & set(series.returns)
    grown = np.prod([1 + one for one in series.benchmark.values()])
    assert grown == pytest.approx(level.iloc[-1] / level.iloc[0], rel=1e-12)
    mine = np.prod([1 + one for one in series.returns.values()])
    assert mine == pytest.approx(
        np.prod(1 + 0.5 * market.iloc[1:]), rel=1e-12
    )  # nothing inside is left out
    late = with_benchmark(
        read_series(market.to_frame("return")), read_series(level.iloc[30:].to_frame("nav"))
    )
    (said,) = (note for note in late.notes if "left out" in note)
    assert "31 rows" in said and f"earned {level.iloc[-1] - 1:+.1%}" in said


@pytest.mark.parametrize(
    ("head", "lines", "said"),
    [
        ("Date,Total Return", WANDERING, "a cumulative return"),
        ("Date,Total Return %", WANDERING, "a cumulative return"),
        ("date,return", CALM, "{'unit': 'fraction'} or reading={'unit': 'percent'}"),
        ("date,return (%)", [f"{d},{50 + 100 * r:.2f}" for d, r in ROWS], "multiplied money by"),
    ],
)
def test_what_long_tables_contradict_is_refused(tmp_path, head, lines, said):
    with pytest.raises(UserError, match=said):
        read_series(written(tmp_path / "bad.csv", head, lines))


@pytest.mark.parametrize(
    "case", tomllib.loads((Path(__file__).parent / "tables.toml").read_text("utf-8"))["table"]
)
def test_short_tables_by_hand(tmp_path, case):
    """Returns are those without what was paid in or out; what can be read in two ways is refused
    in one line.
    """
    path = tmp_path / "mine.csv"
    path.write_text(case["text"], encoding="utf-8")
    if "refused" in case:
        with pytest.raises(UserError, match=case["refused"]) as refused:
            read_series(path)
        assert "\n" not in str(refused.value) and refused.value.hint
        return
    made = read_series(path)
    assert made.returns == pytest.approx(case["returns"], abs=1e-12)
    assert made.since == case.get("since", made.since)
    assert all(any(said in note for note in made.notes) for said in case.get("said", ()))


def test_ambiguous_days_can_be_told(tmp_path):
    path = written(tmp_path / "d.csv", "date,return", ["03/04/2024,0.01", "04/04/2024,0.02"])
    for order, first in (("dmy", "2024-04-03"), ("mdy", "2024-03-04")):
        assert list(read_series(path, TableReading(dates=order)).returns) == [first, "2024-04-04"]


def account(total, market):
    days = [str(day) for day in pd.bdate_range("2021-01-04", periods=total.size).date]
    columns = {"date": days, "return": total}
    return pl.DataFrame(columns if market is None else columns | {"benchmark": market})


LUCK = "not-distinguishable-from-luck"
RNG = np.random.default_rng(5)
MARKET = RNG.normal(0.0004, 0.01, 750)


def weekly_puts(market):
    """What sellers of puts on the coming week earn: a premium every day, and the loss when the
    week ends.
    """
    lost = np.maximum(-market.reshape(-1, 5).sum(axis=1) - 0.015, 0.0)
    total = np.full(market.size, 2.0 * lost.mean() / 5)
    total[4::5] -= lost
    return total


@pytest.mark.parametrize(
    ("total", "kind"),
    [
        (weekly_puts(MARKET), "hidden-risk"),
        (0.6 * MARKET, "market"),
        (1.5 * MARKET - 0.015 / 252, "market"),
        (MARKET + RNG.normal(-0.0001, 0.0004, 750), "market"),
        (np.convolve(MARKET, [0.5, 0.3, 0.2])[:750], "market"),
        (MARKET + RNG.normal(0.0, 0.006, 750), LUCK),
        (MARKET + RNG.normal(0.0012, 0.004, 750), "skill"),
        (0.0009 - 8.0 * MARKET**2 + RNG.normal(0, 0.0002, 750), "hidden-risk"),
    ],
)
def test_returns_alone_are_judged_against_a_benchmark(total, kind):
    made = assay(account(total, MARKET), VerdictConfig()).agents[0]
    assert made.verdict.kind == kind, made.verdict.sentence
    assert (made.parts["trading"].value, made.parts["style"].value) == (None, None)
    assert not (kind == "skill" and made.verdict.firm)
    assert "market and style" not in made.verdict.sentence


def test_dividends_and_interest_are_no_alpha_unless_they_are_known_to_be_there():
    strayed = np.random.default_rng(11).normal(0.0, 0.0015, 750)
    total = MARKET + strayed - strayed.mean() + 0.03 / 252
    said = assay(account(total, MARKET)).agents[0].verdict
    assert (said.kind, said.label) == (LUCK, "alpha too small") and "dividends" in said.sentence
    # Nothing is missing: an alpha of 3 % that survives one try, and not the twenty that are assumed.
    for tries, kind in ((1, "skill"), (None, "could-be-best-of-few")):
        config = VerdictConfig(dividends=0.0, interest=0.0, tries=tries)
        assert assay(account(total, MARKET), config).agents[0].verdict.kind == kind
    mixed = assay(account(0.6 * total + 0.4 * 0.04 / 252, MARKET)).agents[0].verdict
    assert mixed.kind == LUCK, mixed.sentence


def test_the_same_return_on_every_session_is_not_believed_and_too_few_sessions_are_not_blamed():
    made = assay(account(np.full(750, 0.0006), MARKET)).agents[0]
    assert made.verdict.kind == "hidden-risk"
    assert "the same on every session" in made.verdict.sentence
    assert not any("too few" in stated.claim for stated in made.statements)
    interest = assay(account(np.full(750, 0.0001), MARKET)).agents[0].verdict
    assert interest.kind not in ("hidden-risk", "look-ahead", "skill"), interest.sentence


def test_losses_that_are_rare_and_large_stand_in_the_sentence():
    total = np.full(750, 0.0012)
    total[[100, 390, 500, 640]] = -0.06
    said = assay(account(total, MARKET)).agents[0].verdict
    assert "its losses are rare and large" in said.sentence
    assert "11 more like the worst day" in " ".join(
        said.limits
    )  # 1.91 x 0.94^11 is the first below 1


def skew(values):
    centred = np.asarray(values) - np.mean(values)
    return float((centred**3).mean() / (centred**2).mean() ** 1.5)


def test_the_skew_that_is_shown_is_the_tested_one():
    """The account's returns lean to the right with its market; what is tested is alpha, which
    leans left.
    """
    rng = np.random.default_rng(5)
    market = rng.normal(0.0003, 0.004, 750)
    market[rng.choice(750, 25, replace=False)] += 0.05
    alpha = 0.0012 + rng.normal(0.0, 0.0004, 750)
    alpha[[100, 390, 500, 640]] -= 0.06
    made = assay(account(market + alpha, market)).agents[0]
    assert skew(market + alpha) > 1.0
    line = np.column_stack([np.ones(750), market])
    left = market + alpha - line @ np.linalg.lstsq(line, market + alpha, rcond=None)[0]
    shown = f"skew of alpha \N{MINUS SIGN}{-skew(left):.1f}"
    assert f"its losses are rare and large ({shown})" in made.verdict.sentence
    worst = made.statement("worst-day").claim
    assert "skew of its returns +" in worst and shown in worst
    assert made.tail.alpha_skew == pytest.approx(skew(left), rel=0.02)
    assert made.tail.alpha_span == 1
    claims = (stated.claim for stated in made.statements)
    for text in (made.verdict.sentence, *claims, *made.verdict.limits):
        assert "rare and large (skew +" not in text and "rare and large: skew +" not in text


def test_cash_is_no_market_and_without_one_nothing_is_claimed():
    total = np.random.default_rng(12).normal(0.002, 0.01, 300)
    with pytest.raises(UserError, match="cash is not a benchmark"):
        assay(account(total, np.random.default_rng(1).normal(0, 1e-5, 300)))
    made = assay(
        OwnAccount(returns=account(total, None), benchmark=account(np.full(300, 0.0001), None))
    ).agents[0]
    assert made.verdict.kind == "no-benchmark"
    assert "what it is compared with is cash, which is no market" in made.verdict.sentence
    with pytest.raises(UserError, match="a price or the returns of cash"):
        assay(account(total, 0.0001 + np.random.default_rng(1).normal(0, 1e-5, 300)))
    with pytest.raises(UserError, match="5 rows are too few"):
        assay(account(total[:5], MARKET[:5]))
    made = assay(account(total, None)).agents[0]
    assert (made.verdict.kind, made.parts["selection"].value) == ("no-benchmark", None)
    assert "--benchmark" in made.verdict.sentence


def test_a_benchmark_in_a_file_of_its_own(tmp_path):
    whole = account(0.5 * MARKET, MARKET)
    mine, other = tmp_path / "mine.csv", tmp_path / "spy.csv"
    whole.select("date", "return").write_csv(mine)
    whole.select("date", pl.col("benchmark").alias("return"))[5:].write_csv(other)
    made = assay(OwnAccount(returns=str(mine), benchmark=str(other)))
    assert made.agents[0].verdict.kind == "market"
    assert any("no return there: 5 rows" in note for note in made.notes)
    other.write_text("date,return\n2030-01-01,0.1\n")
    with pytest.raises(UserError, match="share 0"):
        assay(OwnAccount(returns=str(mine), benchmark=str(other)))


def test_a_month_is_not_compared_with_its_last_day():
    days = pd.bdate_range("2010-01-04", periods=1300)
    market = pd.Series(np.random.default_rng(3).normal(0.0004, 0.01, 1300), index=days)
    mine = 0.6 * market
    monthly = (1.0 + mine).resample("ME").prod() - 1.0
    weekly = (1.0 + mine).cumprod().resample("W").last().to_frame("nav")
    daily = market.to_frame("return")
    for account, bench in ((monthly.to_frame("return"), daily), (weekly, daily), (mine, monthly)):
        found = assay(OwnAccount(returns=account, benchmark=bench)).agents[0]
        assert found.verdict.kind == "market", found.verdict.sentence
        assert any("compounded" in note for note in found.notes)
    # Vendors date a month by its first day, others by its last one, or by the day on which it was over.
    ends = pd.DatetimeIndex(monthly.index)
    first = pd.Series(monthly.to_numpy(), index=ends - pd.offsets.MonthBegin())
    after = pd.Series(monthly.to_numpy(), index=ends + pd.Timedelta(days=1))
    index = (1.0 + market).resample("MS").prod() - 1.0
    for account, bench in (
        (first, daily),
        (after, daily),
        (after, index),
        (first, index),
        (monthly, index),
    ):
        found = assay(OwnAccount(returns=account.to_frame("return"), benchmark=bench)).agents[0]
        assert found.verdict.kind == "market", found.verdict.sentence
    holes = (1.0 + mine).cumprod().drop(days[5::7]).to_frame("nav")
    assert assay(OwnAccount(returns=holes, benchmark=daily)).agents[0].verdict.kind == "market"


def test_the_command_says_how_it_read_and_ignores_nothing(tmp_path, tell):
    path = written(
        tmp_path / "mine.csv", "date,daily_return", [f"{d},{100 * r:.8f}" for d, r in ROWS]
    )
    said = tell(["assay", str(path)])
    shown = " ".join(said.out.split())
    assert "your own account" in shown and "is read as per cent" in shown
    page = tmp_path / "mine-assay.html"
    assert page.is_file() and f"page: {page}" in said.err
    assert "--leak-test" in tell(["assay", str(path), "--leak-test"], 2).err
    assert "no file spy.csv" in tell(["assay", str(path), "--benchmark", "spy.csv"], 2).err


def test_a_market_by_name_is_offered_read_and_described():
    """A month of the S&P 500 itself is the market, and a table's own column of that name comes
    first.
    """
    import arch.data.sp500

    prices = arch.data.sp500.load()["Adj Close"]["2010":"2011"]
    table = prices.pct_change().dropna().to_frame("return")
    alone = assay(OwnAccount(returns=table))
    assert any(
        "--benchmark sp500, --benchmark nasdaq, --benchmark us-market" in note
        for note in alone.notes
    )
    named = assay(OwnAccount(returns=table, benchmark="sp500"))
    assert named.agents[0].verdict.kind == "market"
    [note] = [note for note in named.notes if "the market is 'sp500'" in note]
    assert (
        "1999-01-04 to 2018-12-31, from the package arch" in note
        and "without its dividends" in note
    )
    rng = np.random.default_rng(3)
    own = assay(
        OwnAccount(returns=table.assign(sp500=rng.normal(0, 0.01, len(table))), benchmark="sp500")
    )
    assert own.agents[0].verdict.kind != "market"
    monthly = assay(OwnAccount(returns=table, benchmark="us-market"))
    assert monthly.config.dividends == 0.0 and monthly.agents[0].sessions == 23


def test_a_market_by_name_says_where_it_ends(tmp_path):
    days = pd.bdate_range("2020-01-01", periods=300)
    table = pd.Series(np.random.default_rng(1).normal(0, 0.01, 300), index=days).to_frame("return")
    with pytest.raises(UserError, match="known from 1999-01-04 to 2018-12-31") as caught:
        assay(OwnAccount(returns=table, benchmark="sp500", home=str(tmp_path)))
    assert "tradeassay data get skfolio-sp500" in str(caught.value.hint)
    alone = assay(OwnAccount(returns=table))
    assert any("(after tradeassay data get skfolio-sp500)" in note for note in alone.notes)
    with pytest.raises(UserError, match="no file, column or named benchmark 'sp50'") as caught:
        assay(OwnAccount(returns=table, benchmark="sp50"))
    assert str(caught.value.hint).startswith("did you mean sp500?")


def test_a_benchmark_that_lacks_days_changes_neither_the_return_nor_the_year(tmp_path):
    rng = np.random.default_rng(909)
    days = np.busday_offset("2019-01-02", np.arange(500), roll="forward").astype(str).tolist()
    market = 0.0004 + 0.011 * rng.standard_normal(500)
    own = market + 0.004 * rng.standard_normal(500)
    level = 100.0 * np.cumprod(1.0 + market)
    account, other = tmp_path / "account.csv", tmp_path / "other.csv"
    account.write_text(
        "date,return\n" + "".join(f"{d},{r:.9f}\n" for d, r in zip(days, own, strict=True))
    )
    for kept in (rng.random(500) > 0.2, np.arange(500) >= 150, np.arange(500) % 5 == 2):
        rows = [f"{days[k]},{level[k]:.6f}\n" for k in np.flatnonzero(kept)]
        other.write_text("date,close\n" + "".join(rows))
        found = assay(OwnAccount(returns=str(account), benchmark=str(other))).agents[0]
        first, last = (int(np.flatnonzero(kept)[place]) for place in (0, -1))
        assert found.total.value == pytest.approx(
            float(np.prod(1.0 + own[first + 1 : last + 1])) - 1.0, abs=1e-6
        )
        assert found.with_all == pytest.approx(float(np.prod(1.0 + own)) - 1.0, abs=1e-6)
        assert (
            f"{found.with_all:+.1%} with all of its own".replace("-", "−") in found.verdict.sentence
        )
        assert found.sessions / found.year == pytest.approx((last - first) / 252, rel=0.05)


def test_what_a_cumulative_table_says_at_its_end_is_the_return(tmp_path):
    earned = 0.0005 + 0.011 * np.random.default_rng(31).standard_normal(300)
    days = np.busday_offset("2020-01-02", np.arange(300), roll="forward").astype(str).tolist()
    grown = np.cumprod(1.0 + earned) - 1.0
    table = tmp_path / "cumulative.csv"
    for before, said in ((0.0, grown[-1]), (0.8, (1.0 + grown[-1]) / (1.0 + grown[0]) - 1.0)):
        since = (1.0 + before) * (1.0 + grown) - 1.0
        rows = "".join(f"{day},{100 * one:.6f}%\n" for day, one in zip(days, since, strict=True))
        table.write_text(f"Date,Cumulative Return\n{rows}")
        assert assay(OwnAccount(returns=str(table))).agents[0].total.value == pytest.approx(
            said, abs=1e-6
        )


@pytest.mark.slow
def test_sellers_of_insurance_are_not_praised_and_skill_is():
    rng = np.random.default_rng(4)
    said = {"puts": [], "far": [], "skill": []}
    for _ in range(6):
        market = rng.normal(0.0004, 0.011, 756)
        # Weeks end on any day. Far puts paid three times in as many years: too rarely to show their shape.
        puts, far = (0.3 * market + rng.normal(0.0, 0.0004, 756) for _ in range(2))
        first = int(rng.integers(5))
        for week in range(first, 751, 5):
            puts[week : week + 5] += 0.0012
            puts[week + 4] -= 1.5 * max(0.0, -market[week : week + 5].sum() - 0.02)
        far += 0.0003
        far[rng.choice(756, 3, replace=False)] -= 0.03
        for name, total in (
            ("puts", puts),
            ("far", far),
            ("skill", market + rng.normal(0.0009, 0.005, 756)),
        ):
            said[name].append(
                assay(account(total, market), VerdictConfig(draws=100)).agents[0].verdict.label
            )
    assert not [
        label
        for name in ("puts", "far")
        for label in said[name]
        if "skill" in label or "timing" in label or "best of a few" in label
    ]
    assert "hidden risk" in said["puts"] and "hidden risk suspected" in said["far"]
    assert said["skill"].count("skill, with caveats") >= 5


def test_a_benchmark_of_returns_that_lacks_rows_is_compared_on_the_days_it_has():
    tracker = account(MARKET + np.random.default_rng(2).normal(0.0, 0.0002, MARKET.size), None)
    kept = [place for place in range(MARKET.size) if place % 37 != 10]
    spans = np.add.reduceat(np.log1p(MARKET), [0, *(place + 1 for place in kept[:-1])])
    for name, returns in (
        ("one day each", MARKET[kept]),
        ("since the row before", np.expm1(spans)),
    ):
        other = account(MARKET, None)[kept].with_columns(pl.Series("return", returns))
        made = assay(OwnAccount(returns=tracker, benchmark=other)).agents[0]
        assert made.verdict.kind == "market", (name, made.verdict.sentence)
