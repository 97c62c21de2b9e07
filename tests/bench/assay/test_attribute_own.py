"""A person's own weights and returns."""

from dataclasses import replace
from functools import partial

import msgspec
import numpy as np
import polars as pl
import pytest
import runs_world as world

from tradeassay.core.errors import UserError
from tradeassay.metrics import BootstrapConfig
from tradeassay.tables.account import read_series
from tradeassay.verdict.own_account import OwnAccount
from tradeassay.verdict.record import VerdictConfig
from tradeassay_bench.data import write_snapshot
from tradeassay_bench.examine import assay, attribute_tables, check_identity

QUICK = VerdictConfig(draws=100)


def days(first, last):
    return [
        str(day)
        for day in np.busday_offset(np.datetime64("2024-01-01", "D"), np.arange(first, last))
    ]


def write(path, returns=None, **columns):
    pl.DataFrame(columns | ({} if returns is None else {"return": returns})).write_parquet(path)
    return path


def account(weights=None, returns=None, home=None, **fields):
    paths = {"weights": weights, "returns": returns, "home": home}
    return OwnAccount(
        **{name: str(path) for name, path in paths.items() if path is not None}, **fields
    )


def taken(*tables, **fields):
    """Take the tables at some paths apart; their parts add up."""
    found = attribute_tables(account(*tables, **fields), bootstrap=BootstrapConfig(draws=20))
    assert check_identity(found) <= 1e-12
    return found


@pytest.fixture
def tiny(home):
    """Take tables apart on the tiny market."""
    return partial(taken, dataset="tiny-us", home=home)


def halves(path, dates):
    rows = [
        (date, symbol, weight) for date in dates for symbol, weight in (("S4", 0.7), ("S5", -0.2))
    ]
    date, symbol, weight = map(list, zip(*rows, strict=True))
    return write(path, date=date, symbol=symbol, weight=weight)


def test_weights_on_a_data_set(tiny, tmp_path):
    dates = days(20, 50)
    found = tiny(halves(tmp_path / "w.parquet", dates))
    assert found.daily.sessions == tuple(dates)
    close, names = world.tiny_panel().bars["close"], world.tiny_panel().symbols
    moves = close[20:50] / close[19:49] - 1
    expected = 0.7 * moves[:, names.index("S4")] - 0.2 * moves[:, names.index("S5")]
    assert np.array(found.daily.total) == pytest.approx(expected, abs=1e-15)
    assert (found.linked["trading"], found.total) == (0.0, pytest.approx(np.prod(1 + expected) - 1))
    assert any("no trading part" in note for note in found.notes)


def test_weights_alone_say_nothing_of_costs_and_biases_are_limits(home, tmp_path):
    panel = world.tiny_panel()
    facts = msgspec.structs.replace(panel.facts, biases=("picked with hindsight",))
    picked = replace(panel, name="tiny-picked", facts=facts)
    write_snapshot(picked, home / "store" / picked.name, allow_faults=True)
    table = halves(tmp_path / "w.parquet", days(20, 50))
    made = assay(account(table, home=home, dataset=picked.name)).agents[0]
    assert made.parts["trading"].value is None
    assert "before costs" in made.verdict.sentence, made.verdict.sentence
    limits = {limit.partition(":")[0] for limit in made.verdict.limits}
    assert limits >= {"costs are unknown", "the data set has known biases"}


def test_the_accounts_own_returns_give_a_trading_part(tiny, tmp_path):
    dates = days(20, 50)
    weights = halves(tmp_path / "w.parquet", dates)
    gross = tiny(weights)
    net = [value - 0.0005 for value in gross.daily.total]
    found = tiny(
        weights, write(tmp_path / "r.parquet", net, date=pl.Series(dates).str.to_date().to_list())
    )
    assert found.daily.trading == pytest.approx([-0.0005] * 30, abs=1e-15)
    assert found.daily.selection == gross.daily.selection
    assert found.account_return == pytest.approx(np.prod(1 + np.array(net)) - 1)


def test_what_rests_on_the_table_s_word_travels_with_the_parts(home, tiny, tmp_path):
    """What a table says of payments is told beside weights as without them, and judged as it was
    read.
    """
    value = 10_000.0 * np.cumprod(1.0 + np.random.default_rng(3).normal(0.0, 0.01, 60))
    paid = np.where(np.arange(60) % 4 == 3, 20.0, 0.0)
    returns = write(tmp_path / "r.parquet", date=days(0, 60), value=value, withdrawals=paid)
    for weights in (None, halves(tmp_path / "w.parquet", days(1, 60))):
        found = tiny(weights, returns)
        assert [one.partition(":")[0] for one in found.doubts] == ["withdrawals are not verified"]
        assert any(
            "is removed from the returns, which are time-weighted" in note for note in found.notes
        )
        judged = assay(account(weights, returns, home, dataset="tiny-us"), QUICK)
        assert judged.agents[0].doubts == found.doubts


def test_a_table_in_memory_is_named_and_not_repeated(home):
    dates = days(20, 50)
    table = pl.DataFrame({"date": dates[:5] + dates[6:], "return": [0.001] * 29})
    with pytest.raises(UserError, match=f"^the table has no return on {dates[5]}"):
        assay(OwnAccount(returns=table, dataset="tiny-us", home=str(home)), QUICK)


def test_ruin_has_no_linked_parts_and_a_reason(tiny, tmp_path):
    dates = days(20, 50)
    lost = write(tmp_path / "r.parquet", [0.0] * 10 + [-1.0] + [0.0] * 19, date=dates)
    found = tiny(halves(tmp_path / "w.parquet", dates), lost)
    assert (found.linked, found.total) == (None, None)
    assert "-100 %" in str(found.reason)
    assert found.brinson[0].reason is not None


def test_between_rebalancings_an_account_holds_or_is_in_cash(tiny, tmp_path):
    weights = halves(tmp_path / "w.parquet", [*days(20, 21), *days(29, 30)])
    cash, held = tiny(weights, between="cash"), tiny(weights)  # few rows: days of rebalancing
    assert held == tiny(weights, between="hold")
    assert any("kept its holdings" in note for note in held.notes)
    with pytest.raises(UserError, match="between='cash' or between='hold'"):
        tiny(halves(tmp_path / "most.parquet", [*days(20, 24), *days(25, 30)]))
    assert cash.daily.gross[1:9] == pytest.approx([0.0] * 8)
    assert held.daily.gross[5] > 0.8
    close, names = world.tiny_panel().bars["close"], world.tiny_panel().symbols
    up, down = (close[28, names.index(s)] / close[19, names.index(s)] - 1 for s in ("S4", "S5"))
    grown = np.prod(1 + np.array(held.daily.total[:9])) - 1
    assert grown == pytest.approx(0.7 * up - 0.2 * down, abs=1e-12)


def test_names_returns_need_no_data_set(tmp_path):
    rng = np.random.default_rng(2)
    dates, symbols = days(0, 40), [f"N{n:02d}" for n in range(40)]
    momentum = rng.normal(size=(40, 40))
    moves = 0.001 + 0.01 * momentum + rng.normal(0, 0.001, (40, 40))
    earned = moves.astype(object)
    earned[3, np.argmin(momentum[3])] = (
        None  # a name that is not held has no return on one day: it was suspended
    )
    grid = {
        "date": np.repeat(dates, 40).tolist(),
        "symbol": symbols * 40,
        "MOM_12_1": momentum.ravel().tolist(),
    }
    returns = write(tmp_path / "r.parquet", earned.ravel().tolist(), **grid)
    best = np.argsort(-momentum, axis=1)[:, :5]
    weights = write(
        tmp_path / "w.parquet",
        date=np.repeat(dates, 5).tolist(),
        symbol=[symbols[s] for s in best.ravel()],
        weight=[0.2] * 200,
    )
    found = taken(weights, returns)
    assert found.linked["style.MOM_12_1"] > 0.5
    assert abs(found.linked["selection"]) < 0.05
    assert found.preferences["MOM_12_1"].value > 1.0
    judged = assay(account(weights, returns), QUICK).agents[0]
    why = "returns of the names are given, and none of a market"
    assert (judged.timing, judged.passive, judged.market.value, judged.market.reason) == (
        None,
        None,
        None,
        why,
    )
    assert f"timing and passive portfolios are not tested: {why}" in judged.verdict.limits


def test_returns_alone_are_explained_over_time(tiny, tmp_path):
    earned = [0.001 * (n % 3 - 1) for n in range(60)]
    found = tiny(None, write(tmp_path / "r.parquet", earned, date=days(0, 60)))
    assert (found.method, found.preferences) == ("returns", {})
    assert any("holdings are unknown" in note for note in found.notes)


TWO = ["2024-01-29", "2024-01-30"]


@pytest.mark.parametrize(
    ("date", "symbol", "weight", "match"),
    [
        (TWO[:1] * 2, "S4", [0.5, 0.5], "given twice"),
        (TWO[:1], "S44", [1.0], "no name 'S44'.*S4"),
        (["2024-01-27", TWO[0]], "S4", [1.0, 1.0], "not a session"),
        (["soon"], "S4", [1.0], "row 1: 'soon' is not a day"),
        ([29], "S4", [1.0], "row 1: '29' is not a day"),
        (TWO[:1], "S4", [float("inf")], "row 1 of 2024-01-29 has no valid 'weight'"),
        (TWO, "S4", [1.0, float("nan")], "row 2"),
        (TWO, "S4", [1.0, None], "row 2"),
        ([TWO[0], None], "S4", [1.0, 1.0], "row 2 has no valid 'date'"),
        ([], "", [], "no rows"),
    ],
)
def test_a_wrong_table_is_one_clear_line(date, symbol, weight, match, tiny, tmp_path):
    path = write(tmp_path / "w.parquet", date=date, symbol=[symbol] * len(date), weight=weight)
    with pytest.raises(UserError, match=match) as caught:
        tiny(path)
    assert "\n" not in str(caught.value)


def test_returns_without_a_number_are_refused_and_per_cent_is_said(tmp_path):
    for k, returns in enumerate(
        ([0.01, None, 0.02], [0.01, float("nan"), 0.02], ["1 %", "soon", "3 %"])
    ):
        with pytest.raises(UserError, match="row 2 of 2024-01-30 has no valid 'return'") as caught:
            read_series(write(tmp_path / f"wrong-{k}.parquet", returns, date=days(20, 23)))
        assert "\n" not in str(caught.value)
    spread = "'return' is read as per cent: its spread is 1.19 (--unit says otherwise)"
    signs = "'return' is read as per cent, as its signs say"
    for k, (returns, true, note) in enumerate(
        (
            ([1.3, -1.2, -2.0], [0.013, -0.012, -0.02], spread),
            (["1 %", "2 %", "3 %"], [0.01, 0.02, 0.03], signs),
        )
    ):
        path = write(tmp_path / f"per-cent-{k}.parquet", returns, date=days(20, 23))
        found = read_series(path)
        assert found.returns == pytest.approx(dict(zip(days(20, 23), true, strict=True)), abs=1e-15)
        assert found.notes[0].startswith(
            f"{path}: read as daily percent returns, 2024-01-29 to 2024-01-31, "
        )
        assert found.notes[1:] == (f"{path}: {note}",)


def test_csv_is_read_too_and_what_is_missing_is_named(tiny, tmp_path):
    path = tmp_path / "w.csv"
    path.write_text("date,symbol,weight\n2024-01-29,S4,0.5\n2024-01-30,S4,0.5\n")
    assert tiny(path).daily.gross == (0.5, 0.5)
    weights = halves(tmp_path / "w.parquet", days(20, 23))
    short = write(tmp_path / "r.parquet", [0.0, 0.0], date=TWO)
    names = write(tmp_path / "n.parquet", [0.1], date=TWO[:1], symbol=["S4"])
    wrong = write(tmp_path / "x.parquet", date=TWO[:1], symbol=["S4"], weigth=[1.0])
    torn = tmp_path / "torn.parquet"
    torn.write_bytes(b"PAR1")
    for said, take, tables in (
        ("no data set", taken, (weights,)),
        ("no file", tiny, (tmp_path / "nothing.parquet",)),
        ("no account is given", tiny, ()),
        ("no return on", tiny, (weights, short)),
        ("too few", tiny, (None, short)),
        ("not a Parquet file", tiny, (torn,)),
        ("no column 'weight'.*weigth", tiny, (wrong,)),
        ("give the weights", taken, (None, names)),
    ):
        with pytest.raises(UserError, match=said):
            take(*tables)
