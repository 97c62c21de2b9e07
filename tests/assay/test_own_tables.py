"""Tables as people have them: every guess is right or said, and what is ambiguous is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from tradeassay.assay import OwnAccount, VerdictConfig, assay
from tradeassay.assay.own_tables import TableReading, read_series
from tradeassay.core.errors import UserError

DAYS = [str(day) for day in pd.bdate_range("2024-01-01", periods=60).date]
EARNED = np.random.default_rng(0).normal(0.0005, 0.01, 60)


def written(path: Path, head: str, lines: list[str], encoding: str = "utf-8") -> Path:
    path.write_bytes("\n".join([head, *lines]).encode(encoding))
    return path


def german(value: float, digits: int = 6) -> str:
    return f"{value:.{digits}f}".replace(".", ",")


FORMS = {
    "plain": ("date,return", [f"{d},{float(r)!r}" for d, r in zip(DAYS, EARNED, strict=True)]),
    "semicolons and decimal commas": (
        "Datum;Rendite",
        [f"{d[8:]}.{d[5:7]}.{d[:4]};{german(r)}" for d, r in zip(DAYS, EARNED, strict=True)],
    ),
    "tabs and per cent signs": (
        "Date\tReturn",
        [f"{d}\t{100 * r:.8f} %" for d, r in zip(DAYS, EARNED, strict=True)],
    ),
    "per cent without a sign": (
        "date,daily_return",
        [f"{d},{100 * r:.8f}" for d, r in zip(DAYS, EARNED, strict=True)],
    ),
    "basis points": ("date,ret", [f"{d},{1e4 * r:.6f}" for d, r in zip(DAYS, EARNED, strict=True)]),
    "American days": (
        "date,return",
        [f"{d[5:7]}/{d[8:]}/{d[:4]},{float(r)!r}" for d, r in zip(DAYS, EARNED, strict=True)],
    ),
    "compact days, quoted": (
        "date,return",
        ['"' + d.replace("-", "") + '","' + repr(float(r)) + '"' for d, r in zip(DAYS, EARNED, strict=True)],
    ),
    "months as words": (
        "date,return",
        [f'"{pd.Timestamp(d):%b %d, %Y}",{float(r)!r}' for d, r in zip(DAYS, EARNED, strict=True)],
    ),
    "seconds since 1970": (
        "time,return",
        [f"{int(pd.Timestamp(d).timestamp())},{float(r)!r}" for d, r in zip(DAYS, EARNED, strict=True)],
    ),
    "numbered rows below a remark": (
        "# exported\n,date,My Fund",
        [f"{k},{d},{float(r)!r}" for k, (d, r) in enumerate(zip(DAYS, EARNED, strict=True))],
    ),
    "logarithms": ("date,log_return", [f"{d},{float(np.log1p(r))!r}" for d, r in zip(DAYS, EARNED, strict=True)]),
    "another title": ("date,My Fund", [f"{d},{float(r)!r}" for d, r in zip(DAYS, EARNED, strict=True)]),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_every_form_gives_the_same_returns(tmp_path: Path, form: str, encoding: str) -> None:
    read = read_series(written(tmp_path / "mine.csv", *FORMS[form], encoding=encoding))
    assert list(read.returns) == DAYS
    np.testing.assert_allclose(list(read.returns.values()), EARNED, atol=2e-6)
    assert read.year == 252
    assert read.notes


def test_a_slip_changes_no_unit_and_a_hole_is_said(tmp_path: Path) -> None:
    lines = [f"{d},{float(r)!r}" for d, r in zip(DAYS, EARNED, strict=True)]
    slip = written(tmp_path / "slip.csv", "date,return", [*lines[:-1], f"{DAYS[-1]},-1.5"])
    with pytest.raises(UserError, match="fractions or per cent"):
        read_series(slip)
    hole = read_series(written(tmp_path / "hole.csv", "date,return", [*lines[:20], *lines[40:]]))
    assert any("no rows between" in note for note in hole.notes)


def test_a_value_path_is_turned_into_returns(tmp_path: Path) -> None:
    value = 1e5 * np.cumprod(1 + EARNED)
    lines = [f'{d},"{v:,.4f}"' for d, v in zip(DAYS, value, strict=True)]
    read = read_series(written(tmp_path / "nav.csv", "date,Equity", lines))
    assert list(read.returns) == DAYS[1:]
    np.testing.assert_allclose(list(read.returns.values()), EARNED[1:], atol=1e-8)


def test_frames_of_pandas_and_polars() -> None:
    series = pd.Series(EARNED, index=pd.to_datetime(DAYS))
    for table in (series, series.to_frame("return"), pl.DataFrame({"date": DAYS, "return": EARNED})):
        assert list(read_series(table).returns) == DAYS


def test_months_and_every_day_of_the_week(tmp_path: Path) -> None:
    months = [f"2022-{m:02}-28,0.01" for m in range(1, 13)]
    assert read_series(written(tmp_path / "m.csv", "date,return", months)).year == 12
    every = [f"{d.date()},{r}" for d, r in zip(pd.date_range("2024-01-01", periods=60), EARNED, strict=True)]
    assert read_series(written(tmp_path / "d.csv", "date,return", every)).year == 365


@pytest.mark.parametrize(
    ("head", "lines", "said"),
    [
        ("date,return", ["03/04/2024,0.01", "04/04/2024,0.02"], "two ways"),
        ("date,return", ["2024-01-02,0.01", "2024-01-02,0.02"], "given twice"),
        ("date,return", ["2024-01-02,0.01", "2024-01-03,"], "row 2"),
        ("date,return", ["2024-01-02,0.01", "2024-13-03,0.1"], "no day"),
        ("date,a,b", ["2024-01-02,0.01,0.1"], "--column"),
        ("when,return", ["2024-01-02,0.01"], "column of dates"),
        ("date,return", [], "no rows"),
        ("date,nav", ["2024-01-02,100", "2024-01-03,-5"], "positive"),
        ("date;return", ["2024-01-02;0,01;5"], "columns"),
    ],
)
def test_what_cannot_be_read_is_said_in_one_line(tmp_path: Path, head: str, lines: list[str], said: str) -> None:
    with pytest.raises(UserError, match=said):
        read_series(written(tmp_path / "bad.csv", head, lines))


def test_ambiguous_days_can_be_told(tmp_path: Path) -> None:
    path = written(tmp_path / "d.csv", "date,return", ["03/04/2024,0.01", "04/04/2024,0.02"])
    assert list(read_series(path, TableReading(dates="dmy")).returns) == ["2024-04-03", "2024-04-04"]
    assert list(read_series(path, TableReading(dates="mdy")).returns) == ["2024-03-04", "2024-04-04"]


def account(total: np.ndarray, market: np.ndarray | None) -> pl.DataFrame:
    days = [str(day) for day in pd.bdate_range("2021-01-04", periods=total.size).date]
    columns = {"date": days, "return": total}
    return pl.DataFrame(columns if market is None else columns | {"benchmark": market})


RNG = np.random.default_rng(5)
MARKET = RNG.normal(0.0004, 0.01, 750)


@pytest.mark.parametrize(
    ("total", "kind"),
    [
        (0.6 * MARKET, "market"),
        (np.convolve(MARKET, [0.5, 0.3, 0.2])[:750], "market"),
        (MARKET + RNG.normal(0.0, 0.006, 750), "luck"),
        (MARKET + RNG.normal(0.0012, 0.004, 750), "skill"),
        (0.0009 - 8.0 * MARKET**2 + RNG.normal(0, 0.0002, 750), "tail"),
    ],
)
def test_returns_alone_are_judged_against_a_benchmark(total: np.ndarray, kind: str) -> None:
    made = assay(account(total, MARKET), VerdictConfig()).agents[0]
    assert made.verdict.kind == kind, made.verdict.sentence
    assert made.parts["trading"].value is None
    assert made.parts["style"].value is None
    assert not (kind == "skill" and made.verdict.firm)
    assert "market and style" not in made.verdict.sentence


def test_without_a_benchmark_nothing_is_claimed() -> None:
    made = assay(account(RNG.normal(0.002, 0.01, 300), None)).agents[0]
    assert (made.verdict.kind, made.parts["selection"].value) == ("open", None)
    assert "--against" in made.verdict.sentence


def test_a_benchmark_in_a_file_of_its_own(tmp_path: Path) -> None:
    whole = account(0.5 * MARKET, MARKET)
    mine, other = tmp_path / "mine.csv", tmp_path / "spy.csv"
    whole.select("date", "return").write_csv(mine)
    whole.select("date", pl.col("benchmark").alias("return"))[5:].write_csv(other)
    made = assay(OwnAccount(returns=str(mine), against=str(other)))
    assert made.agents[0].verdict.kind == "market"
    assert any("5 days" in note for note in made.notes)
    other.write_text("date,return\n2030-01-01,0.1\n")
    with pytest.raises(UserError, match="share 0"):
        assay(OwnAccount(returns=str(mine), against=str(other)))
