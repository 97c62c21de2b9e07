"""Read accounts from brokers' exports, localised spreadsheets and data frames.

Missing facts are inferred from the values, and every guess is reported as a note. An ambiguous
table raises an error that says how to resolve it.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import UserError
from tradeassay.core.registry import did_you_mean
from tradeassay.tables._flows import Flows, of_one_share, paid_titles, read_flows
from tradeassay.tables.cells import NOTHING, RULES, CellTable, read_cells, read_number, read_numbers
from tradeassay.tables.columns import DATE_TITLES, TITLES, bare_title, plain_title
from tradeassay.tables.dates import DayOrder, month_of, read_days, read_moments

DATE, SYMBOL = "date", "symbol"
_Unit = Literal["fraction", "percent", "basis points"]
_, _RETURNS, _VALUES, _AGAINST, _PAID = TITLES["account"].values()
_TITLE_UNITS: tuple[tuple[str, _Unit], ...] = (
    (r"%|\b(percent|per cent|pct|prozent)\b", "percent"),
    (r"\b(bps|bp|basis points)\b", "basis points"),
)
_NO_RETURN = re.compile(
    r"\b(mtd|qtd|ytd|drawdown|excess|active|alpha|relative|rolling|trailing|annuali[sz]ed|volatility|sharpe|vs|"
    r"versus|contribution|attribution|sum|([2-9]|\d\d) ?(m|mo|months?)|\d+ ?(y|yr|years?))\b"
    r"|\b(log|ln) (nav|values?|prices?|equity|wealth)\b"
)
"""Words in titles of numbers that are not an account's returns."""
_CUMULATIVE = re.compile(r"\b(cum|cumul|cumulative|since inception)\b|累计收益")
_LOGARITHM = re.compile(r"\b(log|ln)\b|\b(log|ln) ?(r|ret|rets|rtn|return|returns|rendite)\b")
_DIGIT = re.compile(r"\d")
_FRACTION_UNTIL = 0.03
"""A spread per session below which numbers are hardly per cent, even if the title says so."""
_JUMP = 0.09
"""A move of an account's value that is reported if it is also ten times the usual move."""
_EITHER_FROM = 0.03
"""A spread per session (per weekday; longer rows are scaled) that is ambiguous: as fractions as
volatile as a single coin, as per cent as calm as short bonds."""
_PERCENT_FROM = 0.2
"""A spread per session above which numbers cannot be fractions."""
_POINTS_FROM = 20.0
_FASTEST = 100.0
"""Largest plausible growth per year, or in total for a shorter record. More means a misread
table."""
_CASH_UNTIL = 0.01
"""Positive numbers below this that hardly change may be a price or the returns of cash."""
_MONEY_FROM = 1000.0
"""A spread per session above which numbers cannot be basis points: ten per cent."""
_MONEY = re.compile(
    r"^(daily |net |total )?(pnl|p&l|p l|p/l|profit|gain|gains|gewinn|profit and loss)( |$)"
)
"""Titles of profits in money, unless they state another unit."""
_WEEKEND = np.timedelta64(4, "D")
"""Largest gap between the end of a benchmark and the account's last row."""
_DAY = 10
"""Letters of an ISO day, at the beginning of a moment."""
_HOLE = 14.0
"""Smallest number of days without a row that is reported."""
_EVERY_DAY = 1.2
"""Average number of days between rows above which some weekdays have no row, as with stamps after
midnight."""
_ROWS = {52: "weekly", 12: "monthly", 4: "quarterly"}
_GAPS = ((4.0, 252), (10.0, 52), (45.0, 12), (120.0, 4))
"""Number of rows per year by the median number of days between rows."""


THE_BENCHMARK = "the benchmark"
"""Name of a benchmark whose column or file has no telling name."""
_PLAIN_NAMES = ("benchmark", "market", "bench", "index", "mkt")


def benchmark_name(title: str) -> str:
    """Return the name of a benchmark: its title, unless the title only says "benchmark"."""
    return THE_BENCHMARK if title.strip().lower() in _PLAIN_NAMES else title.strip()


@dataclass(frozen=True, slots=True)
class OwnSeries:
    """An account's simple returns by ISO day, in order, and those it is compared with; ``notes``
    say what was guessed. ``year`` is how many rows make one. ``since`` is the day of the first
    value where returns were made of values: each is then what was earned since the row before.
    ``whole`` is what the account returned with rows that are left out because its benchmark
    lacks them. ``cash`` is what cash earned on the same rows, ``factors`` what styles did, each
    beyond cash or of one side less another. ``doubts`` are clauses about what rests on the
    table's word alone. ``benchmark_name`` is what the benchmark is called. ``rows`` is how many
    rows with times of day were compounded to days, 0 for a table without.
    """

    returns: dict[str, float]
    benchmark: dict[str, float] | None = None
    year: int = 252
    notes: tuple[str, ...] = ()
    since: str | None = None
    whole: float | None = None
    cash: dict[str, float] | None = None
    factors: dict[str, dict[str, float]] = field(default_factory=dict)
    doubts: tuple[str, ...] = ()
    benchmark_name: str = THE_BENCHMARK
    rows: int = 0


@dataclass(frozen=True, slots=True)
class TableReading:
    """How to read a table. None means inferred. ``column`` and ``benchmark`` name columns."""

    unit: _Unit | None = None
    dates: DayOrder | None = None
    column: str | None = None
    benchmark: str | None = None


class _Table:
    """Columns by title, from a file, its cells, or a pandas or polars object.

    ``titles`` maps the plain form of titles to the titles. Messages call the table ``name``.
    """

    def __init__(self, source: Path | object) -> None:
        made: Any = source
        self.name = "the table"
        if isinstance(source, CellTable):
            self.name = source.file
            self.columns = _without_remarks(source)
        elif isinstance(source, Path | str):
            self.name = str(source)
            self.columns = _of_file(Path(source))
        elif hasattr(made, "reset_index"):
            if not hasattr(made, "columns"):
                made = made.to_frame(name="return" if made.name is None else str(made.name))
            if not any(plain_title(str(title)) in DATE_TITLES for title in made.columns):
                made = made.reset_index()
                made = made.rename(columns={made.columns[0]: DATE})
            self.columns = {str(title): made[title].tolist() for title in made.columns}
        elif hasattr(made, "to_dict") and hasattr(made, "columns"):
            self.columns = {
                str(title): list(values) for title, values in made.to_dict(as_series=False).items()
            }
        else:
            problem = f"a {type(source).__name__} is not a table"
            raise UserError(
                problem, hint="give a file, a pandas Series or DataFrame, or a polars DataFrame"
            )
        self.columns = _ungridded(self.columns)
        self.titles = {plain_title(title): title for title in self.columns}

    def find(self, asked: str) -> str:
        if asked in self.columns or plain_title(asked) in self.titles:
            return self.titles.get(plain_title(asked), asked)
        what = f"{self.name} has no column '{asked}'"
        if "/" in asked or asked.lower().endswith((".csv", ".tsv", ".txt", ".parquet")):
            what = f"there is no file {asked}, and {self.name} has no such column"
        raise UserError(what, hint=f"it has {', '.join(self.columns)}")

    def dates(self) -> str:
        if not next(iter(self.columns.values()), []):
            raise UserError(f"{self.name} has no rows", hint="write one row per session")
        for one in DATE_TITLES:
            if one in self.titles:
                return self.titles[one]
        has = ", ".join(self.columns) or "none"
        raise UserError(
            f"{self.name} has no column of dates", hint=f"name one 'date'; it has {has}"
        )


def _ungridded(columns: dict[str, list[Any]]) -> dict[str, list[Any]]:
    """Return a factsheet's table (one row per year, one column per month) as dates and returns.

    All other tables are returned unchanged.
    """
    months = {month: title for title in columns if (month := month_of(title)) is not None}
    years = list(next(iter(columns.values()), []))
    if (
        len(months) < 12
        or not years
        or not all(re.fullmatch(r"(19|20)\d\d(\.0)?", str(one)) for one in years)
    ):
        return columns
    cells = {
        f"{int(float(year))}-{month:02d}": columns[months[month]][row]
        for row, year in enumerate(years)
        for month in range(1, 13)
    }
    given = {day: cell for day, cell in cells.items() if str(cell).strip().lower() not in NOTHING}
    return {DATE: sorted(given), "return": [given[day] for day in sorted(given)]}


def _of_file(path: Path) -> dict[str, list[Any]]:
    """Return the columns of a file without totals and remarks below its rows.

    A totals row has no digit in its date column.
    """
    if not path.exists():
        raise UserError(f"no file {path}", hint="give a CSV, .xlsx or Parquet file")
    return _without_remarks(read_cells(path, str(path)))


def _without_remarks(table: CellTable) -> dict[str, list[Any]]:
    if not table.texts:
        return table.columns
    columns = {
        title: [(cell or "").strip() for cell in cells] for title, cells in table.columns.items()
    }
    known = (
        cells for title, cells in columns.items() if plain_title(title) in set(DATE_TITLES) - {""}
    )
    dates: list[Any] = next(known, next(iter(columns.values()), []))
    titles = tuple(columns)
    kept = []
    for k, row in enumerate(zip(*columns.values(), strict=True)):
        # Pages of a statement repeat the titles. Most rows begin with a date, and their other cells
        # need no check.
        if row == titles or row[0].startswith("#"):
            continue
        if row[0].strip(RULES) or any(cell.strip(RULES) for cell in row):
            kept.append(k)
    dated = [k for k in kept if _DIGIT.search(dates[k])]
    if dated and dated[0] == kept[0]:
        kept = [k for k in kept if k <= dated[-1]]
    last = int(table.rows[kept[-1]]) if kept else 0
    for fault in table.faults:
        if fault.row is None or fault.row < last or not dated:
            mend = "write every row with the same columns (a decimal comma needs ; between columns)"
            raise UserError(str(fault), hint=mend)
    rest = {title: [cells[k] for k in kept] for title, cells in columns.items()}
    # Ignore an empty column for remarks.
    return {
        title: cells
        for title, cells in rest.items()
        if not cells or any(cell.strip() for cell in cells)
    }


# -- weights, and returns of assets -----------------------------------------------------------


class LongTable(msgspec.Struct, frozen=True):
    """Rows of (date, symbol) as matrices.

    ``dates`` are ISO days in order, ``symbols`` are sorted. Each column has shape (dates, symbols),
    with NaN for a missing row.
    """

    dates: tuple[str, ...]
    symbols: tuple[str, ...]
    columns: Mapping[str, Floats]

    def placed(self, column: str, dates: tuple[str, ...], symbols: tuple[str, ...]) -> Floats:
        """Return a column for the given rows and columns, with NaN for missing ones."""
        found = np.full((len(dates), len(symbols)), np.nan)
        _, to_rows, rows = np.intersect1d(dates, self.dates, return_indices=True)
        _, to_names, names = np.intersect1d(symbols, self.symbols, return_indices=True)
        found[np.ix_(to_rows, to_names)] = self.columns[column][np.ix_(rows, names)]
        return found


def table_columns(source: Path | object) -> dict[str, list[Any]]:
    """Return the columns of a file, or of a pandas or polars table, by title."""
    return _Table(source).columns


def columns_of(source: Path | object) -> set[str]:
    """Return the plain titles of a table.

    A title ``symbol`` means several assets, not one account.
    """
    if isinstance(source, OwnSeries):
        return set()
    return set(_Table(source).titles)


def read_long(
    path: Path, wanted: tuple[str, ...], optional: tuple[str, ...] = (), *, gaps: bool = False
) -> LongTable:
    """Read a table of ``date``, ``symbol`` and numbers.

    Without ``gaps`` a missing number is an error, because leaving it out would silently change the
    account.
    """
    table = _Table(path)
    asked = (DATE, SYMBOL, *wanted, *optional)
    title_of = {
        name: table.titles[plain_title(name)] for name in asked if plain_title(name) in table.titles
    }
    for name in (DATE, SYMBOL, *wanted):
        if name not in title_of:
            near = did_you_mean(name, table.columns, f"it has {', '.join(table.columns) or 'none'}")
            raise UserError(f"{path} has no column '{name}'", hint=near)
    table.dates()

    def complete(name: str, cells: Sequence[str], days: Sequence[str] = ()) -> None:
        if "" in cells:
            row = cells.index("")
            where = f"row {row + 1}{f' of {days[row]}' if days else ''}"
            problem = f"{path}: {where} has no valid '{name}'"
            raise UserError(problem, hint="give one, or leave the row out")

    given = table.columns[title_of[DATE]]
    complete(DATE, [str(day or "").strip() for day in given])
    dates = read_days(str(path), given, None)
    symbols = [str(name or "").strip() for name in table.columns[title_of[SYMBOL]]]
    complete(SYMBOL, symbols, dates)
    twice = [key for key, count in Counter(zip(dates, symbols, strict=True)).items() if count > 1]
    if twice:
        raise UserError(f"{path}: {twice[0]} is given twice", hint="keep one row of each")
    days, names = sorted(set(dates)), sorted(set(symbols))
    rows, places = np.searchsorted(days, dates), np.searchsorted(names, symbols)
    columns = {}
    for name in (*wanted, *optional):
        if name in title_of:
            cells, may_lack = table.columns[title_of[name]], gaps or name in optional
            numbers, _ = read_numbers(str(path), name, cells, dates, gaps=may_lack)
            columns[name] = np.full((len(days), len(names)), np.nan)
            columns[name][rows, places] = numbers
    return LongTable(tuple(days), tuple(names), columns)


# -- one account's returns --------------------------------------------------------------------


def read_series(
    source: Path | object, reading: TableReading | None = None, *, alone: bool = False
) -> OwnSeries:
    """Read one account's returns, or its value, from a file or a pandas or polars table.

    With ``alone`` a benchmark column of the table is ignored, because another table is the
    benchmark.
    """
    if isinstance(source, OwnSeries):
        return source
    reading = reading or TableReading()
    table = _Table(source)
    day_title = table.dates()
    days = read_days(table.name, table.columns[day_title], reading.dates)
    moments = read_moments(table.columns[day_title], days)
    # A column without a title is the row number.
    rest = {plain: title for plain, title in table.titles.items() if title != day_title and plain}
    named = {**{bare_title(title): title for title in rest.values()}, **rest}
    if reading.benchmark is not None:
        benchmark_title: str | None = table.find(reading.benchmark)
    else:
        beside = [named[one] for one in _AGAINST if one in named]
        benchmark_title = beside[0] if beside and len(rest) > 1 else None
    named = {plain: title for plain, title in named.items() if title != benchmark_title}
    title, by_value = _which(table, named, reading.column, moments)
    notes: list[str] = []
    year = _year(sorted(set(days)), notes)
    rows_a_day = len(set(moments)) / max(1, len(set(days)))
    rows_a_year = round(year * rows_a_day)
    if title not in ("return", "returns"):
        notes.append(
            f"{table.name}: the column '{title}' is read as {'a value' if by_value else 'returns'}"
        )
    flows = None
    if by_value:
        flows = read_flows(table.name, named, table.columns, moments, title)
        if flows is not None and of_one_share(title):
            notes.append(
                f"{table.name}: {flows.said} is ignored: '{title}' is the value of one share"
            )
            flows = None
        paid = [named[one] for one in _PAID if one in named and "adj" not in plain_title(title)]
        if any(
            read_number(str(cell), comma=False) > 0.0 for one in paid for cell in table.columns[one]
        ):
            notes.append(
                f"{table.name}: withdrawals ('{paid[0]}') are not counted unless '{title}' "
                "includes them"
            )
    weekends = year == 365
    column = _Column(table.name, title, notes, rows_a_year, flows=flows, weekends=weekends)
    returns = column.returns(table.columns[title], moments, by_value, reading.unit)
    benchmark = None
    if benchmark_title is not None and not alone:
        other = _Column(table.name, benchmark_title, notes, rows_a_year, weekends=weekends)
        benchmark = other.returns(table.columns[benchmark_title], moments, None, reading.unit)
        notes.append(f"{table.name}: compared with its column '{benchmark_title}'")
    began = column.began or min(moments)
    rows = 0
    if rows_a_day > 1.0:
        rows = len(returns)
        returns = _of_days(returns, began)
        benchmark = None if benchmark is None else _of_days(benchmark, min(moments))
        notes.append(
            f"{table.name}: {rows:,} rows with times of day are compounded to {len(returns):,} days"
        )
    first, last = began[:_DAY], max(days)
    form = f"{_ROWS.get(year, 'daily')} {column.form}"
    said = f"{table.name}: read as {form}, {first} to {last}, {_grown(returns):+.1%}"
    since, doubts = None if first in returns else first, tuple(column.doubts)
    name = THE_BENCHMARK if benchmark_title is None else benchmark_name(benchmark_title)
    return OwnSeries(
        returns,
        benchmark,
        year,
        notes=(said, *notes),
        since=since,
        doubts=doubts,
        benchmark_name=name,
        rows=rows,
    )


def _of_days(returns: Mapping[str, float], began: str) -> dict[str, float]:
    """Return what was earned by day, of returns by day and time.

    The last value of a day is the day's: where returns were made of values, ``began`` is the first
    of these, and the rest of its day belongs to no row.
    """
    grown: dict[str, float] = {}
    whole_day = began in returns
    for moment, earned in returns.items():
        day = moment[:_DAY]
        if whole_day or day != began[:_DAY]:
            grown[day] = grown.get(day, 1.0) * (1.0 + earned)
    return {day: growth - 1.0 for day, growth in grown.items()}


def read_columns(source: Path | object) -> dict[str, OwnSeries]:
    """Read a table with returns in every column except the date.

    All columns have one unit, the unit of the most volatile column. Raises :class:`UserError` for
    an unreadable table.
    """
    table = _Table(source)
    day_title = table.dates()
    days = read_days(table.name, table.columns[day_title], None)
    moments = read_moments(table.columns[day_title], days)
    notes: list[str] = []
    year = _year(sorted(set(days)), notes)
    read = {
        title: read_numbers(table.name, title, values, days)
        for title, values in table.columns.items()
        if title != day_title and plain_title(title)
    }
    rows_a_year = year * len(set(moments)) / max(1, len(set(days)))
    widest = max((_spread(numbers) for numbers, _ in read.values()), default=0.0) * math.sqrt(
        rows_a_year / 252.0
    )
    percent = widest > _PERCENT_FROM or any(signs for _, signs in read.values())
    order = np.argsort(np.array(moments)).tolist()
    said = (
        f"{table.name}: read as {_ROWS.get(year, 'daily')} "
        f"{'per cent' if percent else 'fractions'}",
        *notes,
    )
    scale, found = 0.01 if percent else 1.0, {}
    for title, (numbers, _) in read.items():
        returns = {moments[row]: float(numbers[row]) * scale for row in order}
        if len(set(days)) < len(set(moments)):
            returns = _of_days(returns, min(moments))
        found[title] = OwnSeries(returns, year=year, notes=said)
    return found


def _which(
    table: _Table, named: dict[str, str], asked: str | None, days: Sequence[str]
) -> tuple[str, bool]:
    """Return the account's column, and whether it contains values instead of returns."""
    beside = paid_titles(named)
    titles = [title for title in dict.fromkeys(named.values()) if title not in beside] or beside
    title = titles[0] if len(titles) == 1 else ""
    if asked is not None:
        title = table.find(asked)
    if asked is None:
        for one in (*_RETURNS, *_VALUES):
            if one in named:
                return named[one], one not in _RETURNS
        if title and _NO_RETURN.search(plain_title(title)):
            what = f"{table.name}: '{title}' is not a return from one row to the next"
            raise UserError(
                what, hint="give returns or values; reading={'column': 'NAME'} if it is"
            )
    elif plain_title(title) in _VALUES:
        return title, True
    if not title:
        choice = f"name it with reading={{'column': 'NAME'}}: one of {', '.join(titles) or 'none'}"
        raise UserError(f"{table.name} has no column that is clearly the account's", hint=choice)
    return title, _Column(table.name, title, [], 252).looks_like_value(table.columns[title], days)


@dataclass(slots=True)
class _Column:
    """One column of an account's table, to be read as returns: guesses go to ``notes``, its kind
    to ``form``. ``flows`` is what was paid in and out beside a value; ``began`` is then the
    first day with money, ``doubts`` what rests on it. ``weekends`` says that rows come on every
    day of the week, as those of coins do.
    """

    name: str
    title: str
    notes: list[str]
    year: int
    form: str = "returns"
    flows: Flows | None = None
    began: str | None = None
    doubts: list[str] = field(default_factory=list)
    weekends: bool = False

    def say(self, what: str) -> None:
        self.notes.append(f"{self.name}: {what}")

    def wrong(self, what: str, hint: str) -> UserError:
        return UserError(f"{self.name}: {what}", hint=hint)

    def looks_like_value(self, values: Sequence[Any], days: Sequence[str]) -> bool:
        """Return whether numbers are an account's value.

        A value is never negative and hardly moves from row to row.
        """
        if _CUMULATIVE.search(plain_title(self.title)):
            return False
        numbers, _ = read_numbers(self.name, self.title, *_begun(values, days))
        if numbers.size < 3 or not (numbers > 0).all():
            return False
        still = bool(np.median(np.abs(np.diff(numbers))) < 0.2 * np.median(numbers))
        bare = bare_title(self.title)
        if still and numbers.max() < _CASH_UNTIL and bare not in _VALUES and bare not in _RETURNS:
            raise self.wrong(
                f"'{self.title}' may be a price or the returns of cash: its numbers are between 0 "
                f"and {numbers.max():.2g}",
                "call the column 'price' or 'return'",
            )
        return still and bare not in _RETURNS

    def returns(
        self, values: Sequence[Any], days: Sequence[str], by_value: bool | None, unit: _Unit | None
    ) -> dict[str, float]:
        begun, given = _begun(values, days)
        if len(given) < len(days):
            self.say(f"the first row has no '{self.title}' and is left out")
        numbers, percent = read_numbers(self.name, self.title, begun, given)
        first = {day: place for place, day in reversed(list(enumerate(given)))}
        if len(first) < len(given):
            twice = next(day for place, day in enumerate(given) if first[day] != place)
            same = all(
                numbers[first[day]] == number for day, number in zip(given, numbers, strict=True)
            )
            if not same or len(first) < 2:  # one day repeated again and again is not an account
                raise self.wrong(f"{twice} is given twice", "keep one row of each, one a day")
            self.say(f"duplicate rows such as {twice} are counted once")
            kept = sorted(first.values())
            given, numbers = [given[place] for place in kept], numbers[kept]
        order = np.argsort(np.array(given))
        days, numbers = [given[place] for place in order.tolist()], numbers[order]
        if by_value is None:
            by_value = self.looks_like_value(values, given)
        told, unit = unit, unit or self._title_unit(numbers)
        if _CUMULATIVE.search(plain_title(self.title)):
            self.form = "cumulative returns"
            scale, said = self._scale(np.diff(numbers), percent, unit)
            self.say(
                f"'{self.title}' is read as a cumulative return" + (f", in {said}" if said else "")
            )
            moved = self._moves(days, 1.0 + numbers * scale)
            # A first number no larger than the later moves is the return of its own row. A larger
            # one is from before the table.
            own = float(numbers[0]) * scale
            own_row = 0.0 < abs(own) <= max(map(abs, moved.values()), default=0.0)
            return {days[0]: own} | moved if own_row else moved
        self._refuse_factors(numbers, unit, by_value=by_value)
        if by_value:
            self.form = "values"
            return self._moves(days, numbers)
        if told is None and _accumulates(numbers):
            raise self.wrong(
                f"'{self.title}' looks like a cumulative return: it starts near zero "
                "and changes little between rows",
                "call the column 'cumulative return'; reading={'unit': 'fraction'} if each row is "
                "a separate return",
            )
        scale, said = self._scale(numbers, percent, unit)
        self.form = {1.0: "", 0.01: "percent ", 1e-4: "basis-point "}[scale] + "returns"
        if said:
            self.say(f"'{self.title}' is read as {said}")
        earned = numbers * scale
        if _LOGARITHM.search(plain_title(self.title)):
            self.form = f"logarithmic {self.form}"
            earned = np.expm1(earned)
            self.say(f"'{self.title}' is read as logarithms, as its name says")
        if np.count_nonzero(earned <= -1.0) > 1:
            problem = "several returns are below -100 %"
            raise self.wrong(problem, "state the unit: reading={'unit': 'percent'}")
        grown = float(np.log1p(np.maximum(earned, -1.0 + 1e-12)).sum())
        years = max(1.0, earned.size / self.year)
        if told is None and grown > years * math.log(_FASTEST):
            raise self.wrong(
                f"read as {self.form}, '{self.title}' would have multiplied money by "
                f"{math.exp(min(grown, 700.0)):.3g} in {years:.1f} years",
                "state the unit: reading={'unit': 'percent'}, or a column called "
                "'cumulative return' or 'value'",
            )
        return dict(zip(days, earned.tolist(), strict=True))

    def _moves(self, days: Sequence[str], numbers: Floats) -> dict[str, float]:
        if self.flows is not None:
            funded = self.flows.with_money(days, numbers)
            if funded.start:
                self.say(f"rows without money before {days[funded.start]} are left out")
            if funded.stop < len(days):
                self.say(f"rows without money after {days[funded.stop - 1]} are left out")
            days, numbers = days[funded], numbers[funded]
            self.began = days[0]
            earned, notes, doubts = self.flows.earned(self.title, days, numbers, self.year)
            self.notes += notes
            self.doubts += doubts
        elif not (numbers > 0).all():
            raise self.wrong(
                f"'{self.title}' is zero or negative in some row",
                "an account's value must be positive",
            )
        else:
            earned = numbers[1:] / numbers[:-1] - 1.0
        if earned.size:
            far = int(np.argmax(np.abs(earned)))
            if abs(earned[far]) > max(_JUMP, 10.0 * float(np.median(np.abs(earned)))):
                self.say(
                    f"'{self.title}' moves by {earned[far]:+.0%} on {days[far + 1]}: if money was "
                    "paid in or out, list it in a column 'deposits'; if shares were split, give "
                    "returns"
                )
        return dict(zip(days[1:], earned.tolist(), strict=True))

    def _refuse_factors(self, numbers: Floats, unit: _Unit | None, *, by_value: bool) -> None:
        """Raise an error for growth factors and for values that are labelled as returns.

        Both are positive numbers that hardly move.
        """
        middle = float(np.median(numbers)) if numbers.size else 0.0
        if unit is not None or numbers.size < 3 or not (numbers > 0.5).all():
            return
        around_one = 0.9 < middle < 1.1
        moves = float(np.median(np.abs(np.diff(numbers)))) >= 0.2 * middle
        if moves and not around_one:
            return
        if by_value and (
            not around_one or numbers.size < 20 or numbers.std() > np.diff(numbers).std()
        ):
            return
        said = "growth factors, or an account's value?" if around_one else "an account's value?"
        raise self.wrong(
            f"'{self.title}' is around {middle:,.4g} and hardly moves: {said}",
            "give returns (0.01 for 1 %), or a value in a column called 'value'; "
            "reading={'unit': 'fraction'} if they are returns",
        )

    def _title_unit(self, numbers: Floats) -> _Unit | None:
        """Return the unit that a title states.

        Raises :class:`UserError` if the numbers contradict it.
        """
        for pattern, unit in _TITLE_UNITS:
            if re.search(pattern, plain_title(self.title)):
                if unit == "percent" and 0.0 < _spread(numbers) < _FRACTION_UNTIL:
                    raise self.wrong(
                        f"'{self.title}' means per cent, but its spread of {_spread(numbers):.4f} "
                        "means fractions",
                        "choose one: reading={'unit': 'percent'} or reading={'unit': 'fraction'}",
                    )
                return unit
        return None

    def _scale(self, numbers: Floats, percent: bool, unit: _Unit | None) -> tuple[float, str]:
        if unit is not None:
            return {"fraction": 1.0, "percent": 0.01, "basis points": 1e-4}[unit], ""
        if percent:
            return 0.01, "per cent, as its signs say"
        deviation = _spread(numbers)
        daily = deviation * math.sqrt(self.year / 252.0)
        if deviation > _MONEY_FROM or (
            deviation > _PERCENT_FROM and _MONEY.match(bare_title(self.title))
        ):
            raise self.wrong(
                f"'{self.title}' looks like money (its spread is {deviation:,.4g}), not like "
                "returns",
                "give the account's value, or returns as a share of it; "
                "reading={'unit': 'fraction'} if they are returns",
            )
        if daily > _POINTS_FROM:
            return 1e-4, f"basis points: its spread is {deviation:,.0f} (--unit says otherwise)"
        if daily > _PERCENT_FROM:
            return 0.01, f"per cent: its spread is {deviation:.2f} (--unit says otherwise)"
        if (numbers < -1.0).any():
            raise self.wrong(
                f"most numbers are like {deviation:.2g}, one is {numbers.min():.4g}: fractions or "
                "per cent?",
                "say which (reading={'unit': 'fraction'} or reading={'unit': 'percent'}), or "
                "correct the row",
            )
        # Coins trade at weekends and are this volatile. A few rows have no meaningful spread.
        if (
            daily > _EITHER_FROM
            and not self.weekends
            and numbers.size >= 20
            and numbers.min() > -0.9
        ):
            raise self.wrong(
                f"'{self.title}' with its spread of {deviation:.3f} may be fractions of a wild "
                "account or per cent of a calm one",
                "choose one: reading={'unit': 'fraction'} or reading={'unit': 'percent'}",
            )
        return 1.0, f"fractions, 0.01 for 1 %: its spread is {deviation:.4f}"


def _accumulates(numbers: Floats) -> bool:
    """Return whether numbers drift from zero in small steps, like cumulative returns."""
    if numbers.size < 20 or not numbers[1:].std() * numbers[:-1].std() > 0.0:
        return False
    alike = float(np.corrcoef(numbers[1:], numbers[:-1])[0, 1])
    return alike > 0.9 and abs(float(numbers[0])) <= 4.0 * float(
        np.median(np.abs(np.diff(numbers)))
    )


def _begun(values: Sequence[Any], days: Sequence[str]) -> tuple[Sequence[Any], Sequence[str]]:
    """Return a column without its earliest row if that row is empty.

    A column of differences has no value in its first row.
    """
    at = min(range(len(days)), key=lambda row: days[row], default=0)
    if len(days) < 2 or str(values[at]).strip().lower() not in NOTHING:
        return values, days
    return [*values[:at], *values[at + 1 :]], [*days[:at], *days[at + 1 :]]


def _spread(numbers: Floats) -> float:
    """Return the standard deviation of most numbers.

    One typing error cannot change the unit.
    """
    if numbers.size < 2:
        return 0.0
    return float(np.median(np.abs(numbers - np.median(numbers)))) * 1.4826 or float(numbers.std())


def _year(days: Sequence[str], notes: list[str]) -> int:
    """Return the number of rows per year, from the days between them."""
    if len(days) < 3:
        return 252
    gaps = np.diff(np.array(days, dtype="datetime64[D]")).astype(float)
    middle = float(np.median(gaps))
    widest = int(np.argmax(gaps))
    if gaps[widest] > max(_HOLE, 4.0 * middle):
        notes.append(
            f"no rows between {days[widest]} and {days[widest + 1]}: the returns in between are "
            "unknown"
        )
    if middle <= 1.5:
        weekends = bool(np.mean(np.is_busday(np.array(days, dtype="datetime64[D]"))) < 0.95)
        return 365 if weekends and np.mean(gaps[gaps <= _HOLE]) < _EVERY_DAY else 252
    for most, year in _GAPS:
        if middle <= most:
            if year != 252:
                notes.append(f"rows are {middle:.0f} days apart: {year} of them make a year")
            return year
    raise UserError(f"rows are {middle:.0f} days apart", hint="give at least four a year")


# -- an account and its benchmark -------------------------------------------------------------


def with_benchmark(series: OwnSeries, other: OwnSeries) -> OwnSeries:
    """Return an account with another table as its benchmark, both over the same periods.

    Returns between the rows of the other table are compounded. Rows dated the first of a month may
    mean that month or the previous one. The reading that correlates more with the other table is
    used.
    """
    pairs = [_paired(mine, theirs) for mine in _dated(series) for theirs in _dated(other)]
    gaps = [day for day in series.returns if day not in other.returns]
    if series.year == other.year and other.since is None and gaps:
        # A table of returns may lack rows, or contain moves over several days. Use the reading more
        # similar to the account.
        days = {day: earned for day, earned in series.returns.items() if day in other.returns}
        whole = _grown(series.returns)
        told = _left_out(gaps, whole, days)
        notes = (*series.notes, *other.notes, told)
        pairs.append(
            replace(series, returns=days, benchmark=other.returns, whole=whole, notes=notes)
        )
    return max(pairs, key=_likeness)


def _paired(series: OwnSeries, other: OwnSeries) -> OwnSeries:
    """Return both series over their common periods, with returns compounded over missing days."""
    notes = [*series.notes, *other.notes]
    whole = _grown(series.returns)
    if other.year < series.year:
        notes.append(f"the account is compounded to the benchmark's rows, {other.year} a year")
        mine, told = _spans(series, other), tuple(notes)
        return replace(
            series,
            returns=mine,
            benchmark=other.returns,
            year=other.year,
            notes=told,
            since=None,
            whole=whole,
        )
    if other.year > series.year:
        notes.append(f"the benchmark is compounded to the account's rows, {series.year} a year")
        return replace(series, benchmark=_spans(other, series), notes=tuple(notes))
    days = [day for day in series.returns if day in other.returns]
    if len(days) < 0.5 * len(series.returns):  # their days hardly overlap, which the judge refuses
        return replace(series, benchmark=other.returns, notes=tuple(notes))
    # If the start of the first row is not known, the row cannot be split. Both series then begin
    # after it.
    began = max(one.since or next(iter(one.returns)) for one in (series, other))
    start = began if began < days[0] else None
    mine, theirs = (_compounded(one, days, start) for one in (series, other))
    lost = [
        day
        for day in series.returns
        if day > days[-1] or (day < days[0] and (start is None or day <= start))
    ]
    inside = len(series.returns) - len(lost) - len(mine)
    if inside:
        notes.append(
            f"the benchmark has no row on {inside} of the account's days: both are compounded over "
            "them"
        )
    if lost:
        notes.append(_left_out(lost, whole, mine))
    # Compounding reduces the number of rows and so the rows per year, unless the benchmark's
    # calendar has fewer rows.
    year = (
        series.year if series.year <= 52 else round(series.year * len(mine) / (len(mine) + inside))
    )
    return replace(
        series, returns=mine, benchmark=theirs, year=year, notes=tuple(notes), whole=whole
    )


def _left_out(days: Sequence[str], whole: float, kept: Mapping[str, float]) -> str:
    return (
        f"left out because the benchmark has no return there: {len(days)} rows ({days[0]} to "
        f"{days[-1]}); "
        f"with them the account earned {whole:+.1%}, without them {_grown(kept):+.1%}"
    )


def _compounded(series: OwnSeries, days: Sequence[str], start: str | None) -> dict[str, float]:
    """Return the compounded return from each of ``days`` to the next.

    Without a ``start`` the first day keeps its own return.
    """
    found, grown = {}, 1.0
    wanted, last = set(days), days[-1]
    for day, earned in series.returns.items():
        if day > last:
            break
        if day < days[0] and (start is None or day <= start):
            continue
        grown *= 1.0 + earned
        if day in wanted:
            found[day], grown = grown - 1.0, 1.0
    return found


def _dated(series: OwnSeries) -> list[OwnSeries]:
    """Return the possible datings of a monthly table by month ends. Other tables stay unchanged."""
    days = [*series.returns, *([] if series.since is None else [series.since])]
    if series.year != 12 or any(3 < int(day[8:]) < 25 for day in days):
        return [series]
    starts = all(int(day[8:]) <= 3 for day in days)
    months = np.array([day[:7] for day in days], dtype="datetime64[M]")
    found = []
    for back, whose in ((0, "that month's"), (1, "the month before's")) if starts else ((0, ""),):
        last = ((months + (1 - back)).astype("datetime64[D]") - 1).astype(str).tolist()
        ends = dict(zip(days, last, strict=True))
        if len(set(last)) < len(days):
            return [series]
        said = (f"rows dated the first of a month are read as {whose}",) if whose else ()
        returns = {ends[day]: value for day, value in series.returns.items()}
        since = None if series.since is None else ends[series.since]
        found.append(replace(series, returns=returns, since=since, notes=(*series.notes, *said)))
    return found


def beside(series: OwnSeries, other: OwnSeries) -> dict[str, float]:
    """Return another series' returns on an account's rows, for rows that both have.

    A series with fewer rows per year is spread evenly in between, as interest accrues.
    """
    if other.year >= series.year:
        pair = with_benchmark(replace(series, benchmark=None), other)
        mine, benchmark = series.returns, pair.benchmark or {}
        # A return compounded over a day that one series lacks belongs to no row of the account.
        same = [
            day
            for day, value in pair.returns.items()
            if abs(value - mine.get(day, math.inf)) < 1e-9
        ]
        return {day: benchmark[day] for day in same if day in benchmark}
    rows = np.array([*other.returns], dtype="datetime64[D]")
    starts = np.concatenate([[rows[0] - np.timedelta64(365 // other.year, "D")], rows]).astype(
        float
    )
    grown = np.concatenate([[0.0], np.cumsum(np.log1p(np.array([*other.returns.values()])))])
    days = np.array([*series.returns], dtype="datetime64[D]").astype(float)
    before = np.concatenate([[days[0] - 1.0], days[:-1]])
    earned = np.expm1(np.interp(days, starts, grown) - np.interp(before, starts, grown))
    inside = (before >= starts[0]) & (days <= starts[-1])
    return {
        day: float(one)
        for day, one, known in zip(series.returns, earned, inside, strict=True)
        if known
    }


def compounded(series: OwnSeries, other: OwnSeries) -> OwnSeries:
    """Return an account compounded to the less frequent rows of another table."""
    notes = (
        *series.notes,
        f"the account is compounded to {other.year} rows a year, those of its factors",
    )
    return OwnSeries(
        returns=_spans(series, other),
        year=other.year,
        notes=notes,
        doubts=series.doubts,
        rows=series.rows,
    )


def _likeness(pair: OwnSeries) -> float:
    """Return the similarity of an account and its benchmark, or 0 if their rows hardly overlap."""
    benchmark = pair.benchmark or {}
    both = [(value, benchmark[day]) for day, value in pair.returns.items() if day in benchmark]
    mine, theirs = np.array(both).T if len(both) > 2 else (np.zeros(3), np.zeros(3))
    moves = mine.std() > 0.0 and theirs.std() > 0.0
    return abs(float(np.corrcoef(mine, theirs)[0, 1])) if moves else 0.0


def _grown(returns: Mapping[str, float]) -> float:
    return math.prod(1.0 + one for one in returns.values()) - 1.0


def _spans(fine: OwnSeries, coarse: OwnSeries) -> dict[str, float]:
    """Return the returns of ``fine`` between the rows of ``coarse``, by the later row."""
    days, found = np.array(list(fine.returns), dtype="datetime64[D]"), {}
    grown = np.cumprod(np.concatenate([[1.0], 1.0 + np.array(list(fine.returns.values()))]))
    before, began = coarse.since, days[0] if fine.since is None else np.datetime64(fine.since)
    for day in coarse.returns:
        if (
            before is not None
            and began <= np.datetime64(before)
            and np.datetime64(day) <= days[-1] + _WEEKEND
        ):
            first, last = np.searchsorted(
                days, np.array([before, day], dtype="datetime64[D]"), side="right"
            )
            if last > first:
                found[day] = float(grown[last] / grown[first]) - 1.0
        before = day
    return found
