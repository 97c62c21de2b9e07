"""Read trade logs as exported by brokers: fills as signed quantities, prices and fees.

This module does not price or book trades. Other rows of a log (cancelled orders, deposits,
dividends) are counted and reported. A log that is not a single account (two currencies, options,
two accounts) raises an error.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, time, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import msgspec

from tradeassay.core.errors import UNDECODABLE, UserError
from tradeassay.tables.account import table_columns
from tradeassay.tables.cells import CellTable, decimal_comma, read_cells, read_number
from tradeassay.tables.columns import TITLES, plain_title
from tradeassay.tables.dates import DayOrder, read_days

_Row = dict[str, str]
_TITLES = TITLES["trades"]
_SIDES = dict.fromkeys(TITLES["sides"]["buy"], 1) | dict.fromkeys(TITLES["sides"]["sell"], -1)
_SIDES |= dict.fromkeys(("hold", "wait", "none", "no action"), 0)
_MONEY = re.compile(
    r"deposit|withdraw|transfer|wire|ach|cash|csd|csw|jnl|journal|\bint|fee|credit|debit|forex",
    re.I,
)
_ACTION = re.compile(r"div|distribution|split", re.I)
_STOCKS = ("", "stocks", "stk", "stock", "etf", "fill", "crypto", "equity", "us equity")
_QUOTES = ("FDUSD", "USDT", "USDC", "BUSD", "TUSD", "USD", "EUR", "GBP", "TRY", "BTC", "ETH", "BNB")
_CLOCK = re.compile(
    r"(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d+)?)?\s*(am|pm)?\s*(z|utc|gmt|e[sd]?t|[+-]\d{2}:?\d{2})?$",
    re.I,
)
_CLOCKS = ("time", "uhrzeit", "zeit", "heure", "ora", "hora", "成交时间")
"""Titles of a column with the time of day, besides the column of the day."""
_CANCELLED = " (ca.)"
"""Interactive Brokers' code after the side of a row that cancels a fill, which reverses the
sign."""
_NUMBERS = re.compile(
    r"qty|quantity|filled|executed|amount|total|shares|fee|commission|notional", re.I
)
_EPOCHS = {10: 1, 13: 10**3, 16: 10**6, 19: 10**9}


@dataclass(frozen=True, slots=True)
class Fill:
    """One trade. ``quantity`` is negative for a sale. ``fee`` is money paid (a rebate is negative).

    ``day`` is the ISO day as written. ``at`` is the time, or None if only a day is known. If the
    log names no time zone, ``at`` has none and is in the venue's time zone. For a decision only
    ``side`` is known.
    """

    day: str
    at: datetime | None
    symbol: str
    side: int
    quantity: float = 0.0
    price: float = 0.0
    fee: float = 0.0


@dataclass(frozen=True, slots=True)
class TradeLog:
    """Fills in the order of time.

    ``decisions`` means a list of BUY, SELL and HOLD without prices.
    """

    name: str
    fills: tuple[Fill, ...]
    decisions: bool
    notes: tuple[str, ...]


def read_trades(source: Path | object, order: DayOrder | None = None) -> TradeLog | None:
    """Read a trade log from a file, its cells, or a pandas or polars table.

    Returns None for another kind of table. Raises :class:`UserError` for a log that is not a single
    account.
    """
    if isinstance(source, Path) and not is_statement(source):
        source = read_cells(source, str(source))
    name = "the table"
    if isinstance(source, Path):
        name = str(source)
    elif isinstance(source, CellTable):
        name = source.file
        if not _may_be_trades(source):
            return None
    rows = _rows(source)
    title = _roles(rows)
    words = Counter(_side(row.get(title.get("side", ""), "")) for row in rows)
    sided = sum(count for word, count in words.items() if word in _SIDES)
    decisions = "quantity" not in title and sided > len(rows) / 2
    traded = {"symbol", "quantity", "price"} <= set(title) and (
        bool(sided) or any(row.get(title["quantity"], "").startswith("-") for row in rows)
    )
    if (
        sided > len(rows) / 2
        and not traded
        and (numbers := [one for one in rows[0] if _NUMBERS.search(one)])
    ):
        lacking = [role for role in ("symbol", "quantity", "price") if role not in title]
        raise UserError(
            f"{name} is a trade log without a column for {' or '.join(lacking)} (it has "
            f"{', '.join(numbers[:3])})",
            hint="name the columns time, symbol, side, quantity, price, fees",
        )
    if "day" not in title or not (traded or decisions):
        return None
    notes: list[str] = []
    rows = _only_fills(name, rows, title, notes)
    if not rows:
        raise UserError(
            f"{name} contains no trades", hint="; ".join(notes) or "give a log with fills"
        )
    if decisions:
        symbols = [row.get(title.get("symbol", ""), "") for row in rows]
        fills = [
            Fill("", None, one, _SIDES[_side(row[title["side"]])])
            for one, row in zip(symbols, rows, strict=True)
        ]
    else:
        fills = _filled(name, rows, title)
    moments = _moments(name, rows, title, order)
    placed = [replace(fill, day=day, at=at) for fill, (day, at) in zip(fills, moments, strict=True)]
    if placed[0].day > placed[-1].day:  # newest first: fills of the same time are reversed too
        placed.reverse()
    placed.sort(key=lambda fill: (fill.day, "" if fill.at is None else fill.at.isoformat()))
    said_of: dict[tuple[str, datetime | None, str], int] = {}
    for fill in placed if decisions else ():
        if said_of.setdefault((fill.day, fill.at, fill.symbol), fill.side) != fill.side:
            raise UserError(
                f"{name} contains two decisions on {fill.day}", hint="keep one per day and symbol"
            )
    said = _said(name, placed, decisions)
    return TradeLog(name=name, fills=tuple(placed), decisions=decisions, notes=(said, *notes))


def is_statement(path: Path) -> bool:
    """Return whether a file is a trade log but not a plain table.

    Such a log is JSON, or a statement with sections.
    """
    if path.suffix.lower() == ".csv":
        head = path.read_bytes()[:1_000_000]
        return re.search(rb'(?m)^(\xef\xbb\xbf)?"?Trades"?,"?Header', head) is not None
    return path.suffix.lower() == ".json"


def _may_be_trades(table: CellTable) -> bool:
    """Return whether a table's titles allow a trade log: a side, or symbol, quantity and price."""
    titles = dict.fromkeys(map(plain_title, table.columns), "")
    found = _roles([titles])
    return "side" in found or "" in titles or {"symbol", "quantity", "price"} <= set(found)


def _rows(source: Path | object) -> list[_Row]:
    """Return rows by plain title.

    Of a statement with sections, return trades, money and dividends.
    """
    if isinstance(source, Path):
        if source.suffix.lower() == ".json":  # as returned by Alpaca's interface
            try:
                listed = msgspec.json.decode(source.read_bytes(), type=list[dict[str, object]])
            except UNDECODABLE as error:
                raise UserError(
                    f"{source}: {error}", hint="give a list of rows, or a CSV"
                ) from None
            return [
                {
                    plain_title(title): "" if cell is None else str(cell)
                    for title, cell in row.items()
                }
                for row in listed
            ]
        return _sections(source.read_text(encoding="utf-8-sig"))
    if isinstance(source, CellTable):
        columns = {plain_title(title): cells for title, cells in source.columns.items()}
    else:
        columns = {plain_title(title): cells for title, cells in table_columns(source).items()}
    cells = [
        ["" if cell is None else str(cell).strip() for cell in column]
        for column in columns.values()
    ]
    return [dict(zip(columns, row, strict=True)) for row in zip(*cells, strict=True) if any(row)]


def _sections(text: str) -> list[_Row]:
    """Return the rows of an Interactive Brokers activity statement.

    A line has the section, then Header or Data, then cells.
    """
    titles: dict[str, list[str]] = {}
    found: list[_Row] = []
    for row in csv.reader(io.StringIO(text, newline="")):
        section, kind, *cells = [*row, "", ""][: max(2, len(row))]
        if kind == "Header":
            titles[section] = [plain_title(cell) for cell in cells]
        elif kind == "Data" and section in titles:
            given = dict(zip(titles[section], (cell.strip() for cell in cells), strict=False))
            if section == "Trades":
                found.append(given)
            elif section in ("Dividends", "Deposits & Withdrawals") and not given.get(
                "currency", ""
            ).startswith("Total"):
                found.append({**given, "asset category": section})
    return found


def _roles(rows: Sequence[_Row]) -> dict[str, str]:
    """Return the title of each role, for all rows of a log."""
    known = dict.fromkeys(title for row in rows for title in row)
    found: dict[str, str] = {}
    for role, titles in _TITLES.items():
        title = next((one for one in titles if one in known and one not in found.values()), None)
        if title is not None:
            found[role] = title
    if "side" not in found and {"symbol", "quantity", "price"} <= set(found):  # whatever its title
        sided = {title: sum(_side(row.get(title, "")) in _SIDES for row in rows) for title in known}
        if rows and max(sided.values()) > len(rows) / 2:
            found["side"] = max(sided, key=sided.__getitem__)
    return found


def _only_fills(
    name: str, rows: Sequence[_Row], title: Mapping[str, str], notes: list[str]
) -> list[_Row]:
    """Return the rows that are trades. ``notes`` report the number and kind of all other rows."""
    levels = {row.get(title.get("level", ""), "").lower() for row in rows}
    # A statement repeats an order's fills below it. Use only one of the two levels.
    level = next((one for one in ("execution", "trade", "order") if one in levels), None)
    seen: set[tuple[str, ...]] = set()
    left: Counter[str] = Counter()
    kept: list[_Row] = []
    for row in rows:
        given = {role: row.get(one, "") for role, one in title.items()}
        kind, side, cells = (
            _side(given.get("kind", "")),
            _side(given.get("side", "")),
            tuple(row.values()),
        )
        what = side or kind
        if level is not None and given["level"].lower() not in (level, ""):
            left["rows of another level of detail"] += 1
        elif side not in _SIDES and _ACTION.search(what):
            left["dividends or splits (the price data includes them)"] += 1
        elif (side not in _SIDES and _MONEY.search(what)) or kind in ("forex", "cash"):
            left["rows of deposits, withdrawals or currency exchange"] += 1
        elif kind not in _STOCKS:
            problem = f"{name} holds '{given['kind']}', which cannot be part of an account"
            raise UserError(problem, hint="leave those rows out, or give the account's returns")
        elif re.fullmatch(r"[-+0., ]*[A-Z]*", given.get("quantity", "1")):
            left[
                "orders that were not filled" if given.get("status") else "rows without a quantity"
            ] += 1
        elif given.get("id") and cells in seen:
            left["duplicate fills"] += 1
        elif side and side not in _SIDES:
            raise UserError(
                f"{name}: '{given['side']}' is not a side of a trade",
                hint="write BUY or SELL" if "quantity" in title else "write BUY, SELL or HOLD",
            )
        else:
            kept.append(row)
        seen.add(cells)
    notes += [f"left out: {count} {what}" for what, count in left.items()]
    alike = sum(
        count - 1
        for row, count in Counter(tuple(row.values()) for row in kept).items()
        if count > 1
    )
    if alike and "quantity" in title:
        notes.append(
            f"{alike} fills equal another fill and have no id: they are counted as separate fills"
        )
    ids = [one for row in kept if (one := row.get(title.get("id", ""), ""))]
    if shared := len(ids) - len(set(ids)):
        notes.append(
            f"{shared} fills share an id with a different fill: they are counted as parts of one "
            "order"
        )
    for role, what, hint in (
        ("account", "accounts", "keep the rows of one"),
        ("currency", "currencies", "keep the rows of one, or give the account's returns"),
    ):
        values = sorted({row.get(title.get(role, ""), "") for row in kept} - {""})
        if len(values) > 1:
            raise UserError(
                f"{name} contains trades of {len(values)} {what}: {', '.join(values[:4])}",
                hint=hint,
            )
    return kept


def _side(cell: str) -> str:
    return cell.lower().replace("_", " ").removesuffix(_CANCELLED).strip()


def _filled(name: str, rows: Sequence[_Row], title: Mapping[str, str]) -> list[Fill]:
    # Symbols are pairs of coins if the title or the currency of a fee says so.
    coins = title["symbol"] in ("pair", "market") or any(
        row.get(title.get("fee currency", ""), "") in _QUOTES[:4] for row in rows
    )
    pairs = [pair_of(row[title["symbol"]]) if coins else ("", "") for row in rows]
    money = sorted({quote for _, quote in pairs})
    if len(money) > 1:
        problem = f"{name} contains trades in {len(money)} currencies: {', '.join(money)}"
        raise UserError(problem, hint="keep the rows of one")
    cells = {
        role: [
            _coined(row.get(title.get(role, ""), ""), pair)
            for row, pair in zip(rows, pairs, strict=True)
        ]
        for role in ("quantity", "price", "fee", "tax")
    }
    numbers = {}
    commas = decimal_comma([text for column in cells.values() for text, _ in column])
    for role, column in cells.items():
        texts = [text for text, _ in column]
        # 1.000 shares at 98,30 are a thousand. If a column is ambiguous, the remaining columns
        # decide.
        grouped = commas and all(
            re.fullmatch(r"-?[1-9]\d{0,2}(\.\d{3})+|[^.]*", text) for text in texts
        )
        comma = grouped or decimal_comma(texts)
        numbers[role] = [read_number(text, comma=comma) if text else 0.0 for text in texts]
    sides = [_SIDES.get(_side(row.get(title.get("side", ""), ""))) for row in rows]
    # Interactive Brokers, like some other brokers, books payments as negative.
    booked = title.get("fee") in ("comm/fee", "ibcommission") or not any(
        fee > 0.0 for fee in numbers["fee"]
    )
    found = []
    for k, row in enumerate(rows):
        where, (base, quote) = f"{name}: row {k + 1} of {row[title['day']]}", pairs[k]
        quantity, price, fee, tax = (
            numbers[role][k] for role in ("quantity", "price", "fee", "tax")
        )
        if cells["fee"][k][0].endswith("%"):
            fee *= abs(quantity) * price / 100.0
        back = row.get(title.get("side", ""), "").lower().endswith(_CANCELLED)
        given, signed = sides[k], int(math.copysign(1, quantity))
        if given == 1 and signed < 0 and not back:
            raise UserError(
                f"{where} buys {quantity:g}", hint="write purchases as positive quantities"
            )
        side = signed if given is None or back else given
        quantity, fee = abs(quantity), (-fee if booked else fee) + abs(tax)
        if not (0.0 < quantity < math.inf and 0.0 < price < math.inf and side):
            raise UserError(
                f"{where} has no valid quantity and price", hint="give both, or remove the row"
            )
        if not math.isfinite(fee):
            raise UserError(
                f"{where}: the fee '{cells['fee'][k][0]}' is not a number", hint="write 0 for none"
            )
        coin = row.get(title.get("fee currency", ""), "") or cells["fee"][k][1]
        quote = quote or row.get(title.get("currency", ""), "")
        if fee and coin and coin == base:  # the fee reduces the amount bought
            quantity, fee = quantity - side * fee, fee * price
        elif fee and coin and quote and coin != quote:
            raise UserError(
                f"{where} has a fee in {coin}, the trade is in {quote}", hint=f"write it in {quote}"
            )
        found.append(Fill("", None, row[title["symbol"]], side, side * quantity, price, fee))
    return found


def pair_of(symbol: str) -> tuple[str, str]:
    """Return the two coins of ``BTCUSDT``, ``BTC/USDT`` or ``BTC-USD``. The second may be empty."""
    base, sign, quote = re.sub(r"[-_]", "/", symbol.upper()).partition("/")
    if sign:
        return base, quote
    ends = next((one for one in _QUOTES if base.endswith(one) and base != one), "")
    return base.removesuffix(ends), ends


def _coined(cell: str, pair: tuple[str, str]) -> tuple[str, str]:
    """Return the number and the coin of a cell such as ``0.0100000000BTC``."""
    for coin in filter(None, pair):
        if cell.endswith(coin):
            return cell.removesuffix(coin).strip(), coin
    found = re.fullmatch(r"([-+(]*[\d.,]+\)?)\s*([A-Z]{2,10})", cell)
    return (found[1], found[2]) if found else (cell, "")


def _moments(
    name: str, rows: Sequence[_Row], title: Mapping[str, str], order: DayOrder | None
) -> list[tuple[str, datetime | None]]:
    """Return the day of each row, and the time if the row has one."""
    day_title = title["day"]
    beside = next((one for one in _CLOCKS if one in rows[0] and one != day_title), "")
    cells = []
    for row in rows:
        # An order cancelled after a partial fill has no fill time.
        given = next((row[one] for one in (day_title, *_TITLES["day"]) if row.get(one)), "")
        later = row[beside] if beside else ""
        if re.match(r"\d{4}-", later):  # the last change of a filled order is its fill
            given, later = later, ""
        cell = re.sub(r"[,;]\s*(?=\d{1,2}:|\d{6}\b)", " ", given)
        cell = re.sub(r"^([-\d]{8,10})\s(\d{2})(\d{2})(\d{2})\b", r"\1 \2:\3:\4", cell)
        cells.append(f"{cell} {later}".strip())
    days = read_days(name, cells, order)
    return [
        (day, _moment(cell, day, utc="utc" in day_title))
        for cell, day in zip(cells, days, strict=True)
    ]


def _moment(cell: str, day: str, *, utc: bool) -> datetime | None:
    if cell.isdigit() and len(cell) in _EPOCHS:
        return datetime.fromtimestamp(int(cell) / _EPOCHS[len(cell)], UTC)
    clock = _CLOCK.search(cell)
    if clock is None:
        return None
    hour = int(clock[1]) % 12 + 12 * (clock[4].lower() == "pm") if clock[4] else int(clock[1])
    # A time without a zone is local time of the venue.
    wall = datetime.combine(
        datetime.fromisoformat(day).date(), time(hour % 24, int(clock[2]), int(clock[3] or 0))
    )
    zone = (clock[5] or "").lower()
    if zone[:1] in ("+", "-") and zone:
        minutes = int(zone[1:3]) * 60 + int(zone[-2:])
        return wall.replace(
            tzinfo=timezone(timedelta(minutes=-minutes if zone[0] == "-" else minutes))
        )
    if zone.startswith("e"):
        return wall.replace(tzinfo=ZoneInfo("America/New_York"))
    return wall.replace(tzinfo=UTC) if zone or utc else wall


def _said(name: str, fills: Sequence[Fill], decisions: bool) -> str:
    """Return one line on how a log was read."""
    window = f"{fills[0].day} to {fills[-1].day}"
    symbols = len({fill.symbol for fill in fills})
    if decisions:
        counts = Counter(fill.side for fill in fills)
        each = f"{counts[1]} BUY, {counts[-1]} SELL, {counts[0]} HOLD"
        return f"{name}: read as a list of decisions: {each}, {window}; without fees"
    paid = sum(fill.fee for fill in fills)
    value = sum(abs(fill.quantity) * fill.price for fill in fills)
    rebates = sum(fill.fee < 0.0 for fill in fills)
    fees = f"fees {100.0 * paid / value:.2g} % of what was traded" if paid or rebates else "no fees"
    fees += f" ({rebates} negative fees are rebates)" if rebates else ""
    names = f"{symbols} symbol{'s' if symbols != 1 else ''}"
    return f"{name}: read as a trade log: {len(fills)} fills in {names}, {window}, {fees}"
