"""A person's own weights and returns."""

from dataclasses import replace

import msgspec
import numpy as np
import polars as pl
import pytest
import runs_world as world

from tradeassay.assay import OwnAccount, VerdictConfig, assay, attribute_tables, check_identity
from tradeassay.core.errors import UserError
from tradeassay.data import write_snapshot
from tradeassay.data.tables.account import read_series
from tradeassay.metrics import BootstrapConfig

FEW = BootstrapConfig(draws=20)


def days(first, last):
    return [str(day) for day in np.busday_offset(np.datetime64("2024-01-01", "D"), np.arange(first, last))]


def write(path, **columns):
    pl.DataFrame(columns).write_parquet(path)
    return path


def taken(weights=None, returns=None, *, home=None, bootstrap=None, **fields):
    """Take the tables at some paths apart."""
    named = {"weights": weights, "returns": returns, "home": home}
    paths = {name: str(path) for name, path in named.items() if path is not None}
    return attribute_tables(OwnAccount(**paths, **fields), bootstrap=bootstrap)


def halves(path, dates):
    rows = [(date, symbol, weight) for date in dates for symbol, weight in (("S4", 0.7), ("S5", -0.2))]
    date, symbol, weight = map(list, zip(*rows, strict=True))
    return write(path, date=date, symbol=symbol, weight=weight)


def test_weights_on_a_data_set(home, tmp_path):
    dates = days(20, 50)
    found = taken(halves(tmp_path / "w.parquet", dates), dataset="tiny-us", home=home, bootstrap=FEW)
    assert found.daily.sessions == tuple(dates)
    close = world.tiny_panel().bars["close"]
    names = world.tiny_panel().symbols
    moves = close[20:50] / close[19:49] - 1
    expected = 0.7 * moves[:, names.index("S4")] - 0.2 * moves[:, names.index("S5")]
    assert np.array(found.daily.total) == pytest.approx(expected, abs=1e-15)
    assert (found.linked["trading"], found.total) == (0.0, pytest.approx(np.prod(1 + expected) - 1))
    assert any("no trading part" in note for note in found.notes)
    assert check_identity(found) <= 1e-12


def test_weights_alone_say_nothing_of_costs_and_biases_are_limits(home, tmp_path):
    panel = world.tiny_panel()
    facts = msgspec.structs.replace(panel.facts, biases=("picked with hindsight",))
    picked = replace(panel, name="tiny-picked", facts=facts)
    write_snapshot(picked, home / "store" / picked.name, allow_faults=True)
    table = halves(tmp_path / "w.parquet", days(20, 50))
    made = assay(OwnAccount(weights=str(table), dataset=picked.name, home=str(home))).agents[0]
    assert made.parts["trading"].value is None
    assert any("before costs" in line for line in made.verdict.because), made.verdict.because
    limits = {limit.partition(":")[0] for limit in made.verdict.limits}
    assert limits >= {"costs are unknown", "the data set has known biases"}


def test_the_accounts_own_returns_give_a_trading_part(home, tmp_path):
    dates = days(20, 50)
    weights = halves(tmp_path / "w.parquet", dates)
    gross = taken(weights, dataset="tiny-us", home=home, bootstrap=FEW)
    net = [value - 0.0005 for value in gross.daily.total]
    returns = write(tmp_path / "r.parquet", date=pl.Series(dates).str.to_date().to_list(), **{"return": net})
    found = taken(weights, returns, dataset="tiny-us", home=home, bootstrap=FEW)
    assert found.daily.trading == pytest.approx([-0.0005] * 30, abs=1e-15)
    assert found.daily.selection == gross.daily.selection
    assert found.account_return == pytest.approx(np.prod(1 + np.array(net)) - 1)
    assert check_identity(found) <= 1e-12


def test_what_rests_on_the_table_s_word_travels_with_the_parts(home, tmp_path):
    """What a table says of payments is told beside weights as without them, and judged as it was read."""
    value = 10_000.0 * np.cumprod(1.0 + np.random.default_rng(3).normal(0.0, 0.01, 60))
    paid = np.where(np.arange(60) % 4 == 3, 20.0, 0.0)
    returns = write(tmp_path / "r.parquet", date=days(0, 60), value=value, withdrawals=paid)
    weights = halves(tmp_path / "w.parquet", days(1, 60))
    for table in (None, weights):
        found = taken(table, returns, dataset="tiny-us", home=home, bootstrap=FEW)
        assert [one.partition(":")[0] for one in found.doubts] == ["what was paid out is the table's word"]
        assert any("is taken out of the returns, which are time-weighted" in note for note in found.notes)
        named = {"weights": None if table is None else str(table), "returns": str(returns)}
        judged = assay(OwnAccount(**named, dataset="tiny-us", home=str(home)), VerdictConfig(draws=100))
        assert judged.agents[0].doubts == found.doubts


def test_a_table_in_memory_is_named_and_not_repeated(home):
    dates = days(20, 50)
    table = pl.DataFrame({"date": dates[:5] + dates[6:], "return": [0.001] * 29})
    with pytest.raises(UserError, match=f"^the table has no return on {dates[5]}"):
        assay(OwnAccount(returns=table, dataset="tiny-us", home=str(home)), VerdictConfig(draws=100))


def test_ruin_has_no_linked_parts_and_a_reason(home, tmp_path):
    dates = days(20, 50)
    weights = halves(tmp_path / "w.parquet", dates)
    returns = write(tmp_path / "r.parquet", date=dates, **{"return": [0.0] * 10 + [-1.0] + [0.0] * 19})
    found = taken(weights, returns, dataset="tiny-us", home=home, bootstrap=FEW)
    assert (found.linked, found.total) == (None, None)
    assert "-100 %" in str(found.reason)
    assert found.brinson[0].reason is not None
    assert check_identity(found) <= 1e-12


def test_between_rebalancings_an_account_holds_or_is_in_cash(home, tmp_path):
    weights = halves(tmp_path / "w.parquet", [days(20, 21)[0], days(29, 30)[0]])
    cash = taken(weights, dataset="tiny-us", home=home, between="cash", bootstrap=FEW)
    held = taken(weights, dataset="tiny-us", home=home, bootstrap=FEW)  # few rows: days of rebalancing
    assert held == taken(weights, dataset="tiny-us", home=home, between="hold", bootstrap=FEW)
    assert any("held what it had" in note for note in held.notes)
    most = halves(tmp_path / "most.parquet", [*days(20, 24), *days(25, 30)])
    with pytest.raises(UserError, match="between='cash' or between='hold'"):
        taken(most, dataset="tiny-us", home=home, bootstrap=FEW)
    assert cash.daily.gross[1:9] == pytest.approx([0.0] * 8)
    assert held.daily.gross[5] > 0.8
    names = world.tiny_panel().symbols
    close = world.tiny_panel().bars["close"]
    up, down = (close[28, names.index(s)] / close[19, names.index(s)] - 1 for s in ("S4", "S5"))
    grown = np.prod(1 + np.array(held.daily.total[:9])) - 1
    assert grown == pytest.approx(0.7 * up - 0.2 * down, abs=1e-12)


def test_names_returns_need_no_data_set(tmp_path):
    rng = np.random.default_rng(2)
    dates, symbols = days(0, 40), [f"N{n:02d}" for n in range(40)]
    momentum = rng.normal(size=(40, 40))
    moves = 0.001 + 0.01 * momentum + rng.normal(0, 0.001, (40, 40))
    grid = [(d, s) for d in range(40) for s in range(40)]
    returns = write(
        tmp_path / "r.parquet",
        date=[dates[d] for d, _ in grid],
        symbol=[symbols[s] for _, s in grid],
        MOM_12_1=[float(momentum[d, s]) for d, s in grid],
        # A name that is not held has no return on one day: it was suspended.
        **{
            "return": [None if (d, s) == (3, int(np.argmin(momentum[3]))) else float(moves[d, s]) for d, s in grid]
        },
    )
    best = np.argsort(-momentum, axis=1)[:, :5]
    weights = write(
        tmp_path / "w.parquet",
        date=[dates[d] for d in range(40) for _ in range(5)],
        symbol=[symbols[s] for d in range(40) for s in best[d]],
        weight=[0.2] * 200,
    )
    found = taken(weights, returns, bootstrap=FEW)
    assert found.linked["style.MOM_12_1"] > 0.5
    assert abs(found.linked["selection"]) < 0.05
    assert found.preferences["MOM_12_1"].value > 1.0
    assert check_identity(found) <= 1e-12
    judged = assay(OwnAccount(weights=str(weights), returns=str(returns)), VerdictConfig(draws=100)).agents[0]
    why = "returns of the names are given, and none of a market"
    assert (judged.timing, judged.passive, judged.market.value, judged.market.reason) == (None, None, None, why)
    assert f"timing and passive portfolios are not tested: {why}" in judged.verdict.limits


def test_returns_alone_are_explained_over_time(tmp_path, home):
    dates = days(0, 60)
    returns = write(tmp_path / "r.parquet", date=dates, **{"return": [0.001 * (n % 3 - 1) for n in range(60)]})
    found = taken(returns=returns, dataset="tiny-us", home=home, bootstrap=FEW)
    assert (found.method, found.preferences) == ("returns", {})
    assert any("holdings are unknown" in note for note in found.notes)
    assert check_identity(found) <= 1e-12


@pytest.mark.parametrize(
    ("table", "match"),
    [
        ({"date": ["2024-01-29"], "symbol": ["S4"], "weigth": [1.0]}, "no column 'weight'.*weigth"),
        ({"date": ["2024-01-29"] * 2, "symbol": ["S4"] * 2, "weight": [0.5, 0.5]}, "given twice"),
        ({"date": ["2024-01-29"], "symbol": ["S44"], "weight": [1.0]}, "no name 'S44'.*S4"),
        ({"date": ["2024-01-27", "2024-01-29"], "symbol": ["S4"] * 2, "weight": [1.0, 1.0]}, "not a session"),
        ({"date": ["soon"], "symbol": ["S4"], "weight": [1.0]}, "row 1: 'soon' is not a day"),
        (
            {"date": ["2024-01-29"], "symbol": ["S4"], "weight": [float("inf")]},
            "row 1 of 2024-01-29 has no 'weight'",
        ),
        ({"date": ["2024-01-29", "2024-01-30"], "symbol": ["S4"] * 2, "weight": [1.0, float("nan")]}, "row 2"),
        ({"date": ["2024-01-29", "2024-01-30"], "symbol": ["S4"] * 2, "weight": [1.0, None]}, "row 2"),
        ({"date": ["2024-01-29", None], "symbol": ["S4"] * 2, "weight": [1.0, 1.0]}, "row 2 has no 'date'"),
        ({"date": [29], "symbol": ["S4"], "weight": [1.0]}, "row 1: '29' is not a day"),
        ({"date": [], "symbol": [], "weight": []}, "no rows"),
    ],
)
def test_a_wrong_table_is_one_clear_line(table, match, home, tmp_path):
    path = write(tmp_path / "w.parquet", **table)
    with pytest.raises(UserError, match=match) as caught:
        taken(path, dataset="tiny-us", home=home)
    assert "\n" not in str(caught.value)


def test_returns_without_a_number_are_refused_and_per_cent_is_said(tmp_path):
    def read(name, returns):
        path = write(tmp_path / name, date=days(20, 23), **{"return": returns})
        return path, read_series(path)

    for k, returns in enumerate(([0.01, None, 0.02], [0.01, float("nan"), 0.02], ["1 %", "soon", "3 %"])):
        with pytest.raises(UserError, match="row 2 of 2024-01-30 has no 'return'") as caught:
            read(f"wrong-{k}.parquet", returns)
        assert "\n" not in str(caught.value)
    spread = "'return' is read as per cent: its spread is 1.19 (--unit says otherwise)"
    for k, (returns, true, note) in enumerate(
        (
            ([1.3, -1.2, -2.0], [0.013, -0.012, -0.02], spread),
            (["1 %", "2 %", "3 %"], [0.01, 0.02, 0.03], "'return' is read as per cent, as its signs say"),
        )
    ):
        path, found = read(f"per-cent-{k}.parquet", returns)
        assert found.returns == pytest.approx(dict(zip(days(20, 23), true, strict=True)), abs=1e-15)
        assert found.notes[0].startswith(f"{path}: read as daily percent returns, 2024-01-29 to 2024-01-31, ")
        assert found.notes[1:] == (f"{path}: {note}",)


def test_csv_is_read_too_and_what_is_missing_is_named(home, tmp_path):
    path = tmp_path / "w.csv"
    path.write_text("date,symbol,weight\n2024-01-29,S4,0.5\n2024-01-30,S4,0.5\n")
    assert taken(path, dataset="tiny-us", home=home).daily.gross == (0.5, 0.5)
    weights, here = halves(tmp_path / "w.parquet", days(20, 23)), {"dataset": "tiny-us", "home": home}
    short = write(tmp_path / "r.parquet", date=days(20, 22), **{"return": [0.0, 0.0]})
    names = write(tmp_path / "n.parquet", date=["2024-01-29"], symbol=["S4"], **{"return": [0.1]})
    torn = tmp_path / "torn.parquet"
    torn.write_bytes(b"PAR1")
    for said, given in (
        ("no data set", {"weights": weights}),
        ("no file", {"weights": tmp_path / "nothing.parquet", **here}),
        ("nothing to take apart", here),
        ("no return on", {"weights": weights, "returns": short, **here}),
        ("too few", {"returns": short, **here}),
        ("not a Parquet file", {"weights": torn, **here}),
        ("give the weights", {"returns": names}),
    ):
        with pytest.raises(UserError, match=said):
            taken(**given)
