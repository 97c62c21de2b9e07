"""``check_exchange``: test that the rules of a venue hold for any orders.

It sends seeded random orders to the exchange on a difficult market, keeps a second pair of books,
and then tests single rules with orders that must be refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from math import nan
from typing import Any, Literal

import msgspec
import numpy as np

from tradeassay.core.arrays import Bools, Floats, Ints
from tradeassay_bench.account import Exchange, Ledger, Venue, venues
from tradeassay_bench.account.audit import AuditDay, Auditor
from tradeassay_bench.core.errors import CheckFailed, LedgerError
from tradeassay_bench.core.events import (
    ENCODER,
    STEP_DECODER,
    Filled,
    Rejected,
    RejectReason,
    StepRecord,
)
from tradeassay_bench.core.orders import Decision, Order
from tradeassay_bench.core.view import AccountState, Board, CorporateAction, Instrument, SessionBars

CASH = 250_000.0
_SESSIONS = 70


def check_exchange(venue: Venue | str, *, seeds: Sequence[int] = (0, 1, 2, 3)) -> None:
    """Raise :class:`CheckFailed` with one sentence if a venue breaks a rule.

    Checks for each seed:

    - cash + positions = NAV at every mark, by a second pair of books;
    - a cash account is never below zero, a margin account never below maintenance without a call;
    - no fill is outside the bar, at a price limit, in a halted name, or beyond the volume share;
    - no sale of locked or missing shares;
    - costs follow the fee policy;
    - every order is answered by an event;
    - the journal's replay equals the live account, and two runs are identical, byte for byte.
    """
    rules = venues.get(venue) if isinstance(venue, str) else venue
    if msgspec.json.decode(msgspec.json.encode(rules), type=Venue) != rules:
        raise CheckFailed(f"venue '{rules.id}' does not survive a round trip through JSON")
    fills = 0
    for seed in seeds:
        journal = play_journal(rules, seed, fill="open")
        if ENCODER.encode(journal) != ENCODER.encode(play_journal(rules, seed, fill="open")):
            raise CheckFailed(
                f"venue '{rules.id}', seed {seed}: two runs of the same orders differ"
            )
        fills += sum(isinstance(event, Filled) for record in journal for event in record.events)
        play_journal(rules, seed, fill="close")
    if fills == 0:
        raise CheckFailed(f"venue '{rules.id}' filled none of the random orders")
    _probe(rules)


def play_journal(
    venue: Venue,
    seed: int,
    *,
    fill: Literal["open", "close"],
    batches: Sequence[Sequence[Order]] | None = None,
) -> list[StepRecord]:
    """Send orders (random, or a batch for each session) to a difficult market, audit it, and return
    the journal.
    """
    rng = np.random.default_rng(seed)
    exchange, ledger, auditor = Exchange(venue), Ledger(CASH, terms=venue.terms), Auditor(CASH)
    label = f"venue '{venue.id}', seed {seed}"
    records: list[StepRecord] = []
    sessions = _SESSIONS if batches is None else len(batches)
    try:
        for step, session in enumerate(rough_market(rng, sessions)):
            bars = session.bars
            opening = exchange.open_session(
                bars, session.actions, ledger, delisted=session.delisted
            )
            day = AuditDay(venue, bars, session.actions, session.delisted, fill=fill)
            found = list(auditor.opening(day, opening))
            orders = rough_orders(rng, bars, ledger.state()) if batches is None else batches[step]
            placed = [(f"{step}.{number}", order) for number, order in enumerate(orders)]
            events = exchange.execute(placed, bars, ledger, fill=fill)
            events += exchange.close_session(bars, ledger)
            found += auditor.session(day, dict(placed), events)
            if found:
                raise CheckFailed(f"{label}, fills at the {fill}, {bars.session}: {found[0].what}")
            first = () if step else (ledger.deposit,)
            # The decision is left out: some amounts are NaN, which JSON cannot represent, and no
            # replay needs it.
            record = StepRecord(
                step=step,
                session=bars.session,
                decided_at=0,
                opening=(*first, *opening),
                decision=Decision(),
                events=tuple(events),
            )
            records.append(record)
    except LedgerError as error:
        raise CheckFailed(f"{label}: the ledger refuses an event: {error}") from error
    again = Ledger.replay(STEP_DECODER.decode(ENCODER.encode(record)) for record in records)
    if again.state() != ledger.state():
        raise CheckFailed(f"{label}: the replay of the journal differs from the account")
    return records


def _probe(venue: Venue) -> None:
    """Send orders that must be refused, one for each reason."""
    market = rough_market(np.random.default_rng(0), 20)
    session = next(one for one in market if one.bars.trading[0])
    symbol = "S0"
    impossible: list[tuple[Order, RejectReason]] = [
        (Order(symbol="NOBODY", amount=1.0, side="BUY"), "unknown_symbol"),
        (Order(symbol=symbol, amount=nan, side="BUY"), "bad_amount"),
        (Order(symbol=symbol, amount=-1.0, side="BUY"), "bad_amount"),
        (Order(symbol=symbol, amount=1.0), "bad_amount"),
        (Order(symbol=symbol, amount=100.0, side="BUY", kind="limit"), "bad_price"),
        (Order(symbol=symbol, amount=0.0, unit="target_weight"), "no_change"),
    ]
    if not venue.shorting.allowed:
        impossible.append((Order(symbol=symbol, amount=100.0, side="SELL"), "no_shorting"))
    for order, reason in impossible:
        exchange, ledger = Exchange(venue), Ledger(CASH, terms=venue.terms)
        exchange.open_session(session.bars, (), ledger)
        events = exchange.execute([("probe", order)], session.bars, ledger)
        got = [event.reason for event in events if isinstance(event, Rejected)]
        if len(events) != 1 or got != [reason]:
            raise CheckFailed(
                f"venue '{venue.id}' answers {order} with {events} instead of {reason}"
            )


# -- a difficult market and difficult orders: all cases of an exchange, drawn from a seed ---

_BOARDS = (Board.MAIN, Board.MAIN, Board.CHINEXT, Board.STAR, Board.BSE, Board.NONE)
_FIRST = date(2024, 1, 1)


@dataclass(frozen=True, slots=True)
class RoughSession:
    """One session and the events before it opens."""

    bars: SessionBars
    actions: tuple[CorporateAction, ...]
    delisted: tuple[str, ...]


def rough_market(rng: np.random.Generator, sessions: int) -> list[RoughSession]:
    """Return consecutive sessions of eight stocks."""
    instruments = [
        Instrument(symbol=f"S{number}", board=_BOARDS[number % len(_BOARDS)], lot=100.0)
        for number in range(8)
    ]
    return _Rough(rng, tuple(instruments)).play(sessions)


class _Rough:
    def __init__(self, rng: np.random.Generator, instruments: tuple[Instrument, ...]) -> None:
        self.rng, self.instruments = rng, instruments
        self.symbols = tuple(instrument.symbol for instrument in instruments)
        self.stock: Bools = np.array([instrument.kind == "stock" for instrument in instruments])
        self.close: Floats = np.round(rng.uniform(5.0, 60.0, len(instruments)), 2)
        # The second name is under special treatment. The first and the fourth are new for a while.
        self.special: Bools = np.arange(len(instruments)) == 1
        self.first_row: Ints = np.where(np.isin(np.arange(len(instruments)), (0, 3)), 8, 0)
        self.first = True
        self.gone: set[int] = set()

    def play(self, sessions: int) -> list[RoughSession]:
        """Return the sessions. The last stock is delisted halfway through."""
        result = []
        for row in range(sessions):
            if row == sessions // 2:
                self.gone.add(int(np.flatnonzero(self.stock)[-1]))
            result.append(self._session(row))
        return result

    def _session(self, row: int) -> RoughSession:
        day = (_FIRST + timedelta(days=row)).isoformat()
        actions = self._actions(day) if row else ()
        previous = np.full(self.close.shape, np.nan) if self.first else self.close.copy()
        self.first = False
        trading: Bools = self.rng.random(len(self.symbols)) > 0.06
        trading[sorted(self.gone)] = False
        return RoughSession(
            SessionBars(
                session=day,
                row=row,
                symbols=self.symbols,
                instruments=self.instruments,
                prev_close=previous,
                trading=trading,
                first_row=self.first_row,
                special=self.special,
                **self._bars(previous, trading),
            ),
            actions,
            tuple(self.symbols[column] for column in sorted(self.gone)),
        )

    def _actions(self, day: str) -> tuple[CorporateAction, ...]:
        """Draw splits and dividends and adjust the last close for them, as a data source does."""
        actions = []
        for column in np.flatnonzero(self.stock).tolist():
            draw = float(self.rng.random())
            symbol = self.symbols[column]
            if draw < 0.02:
                ratio = float(self.rng.choice([2.0, 1.5, 0.1, 3.0, 1.3]))
                self.close[column] /= ratio
                actions.append(
                    CorporateAction(
                        symbol=symbol, kind="split", ex_date=day, known_at=0, value=ratio
                    )
                )
            elif draw < 0.05:
                value = round(float(self.close[column]) * 0.02, 2)
                self.close[column] -= value
                actions.append(
                    CorporateAction(
                        symbol=symbol, kind="dividend", ex_date=day, known_at=0, value=value
                    )
                )
        return tuple(actions)

    def _bars(self, previous: Floats, trading: Bools) -> dict[str, Floats]:
        """Return the fields of the bars. Some moves reach a limit, some order books are empty."""
        rng, count = self.rng, len(self.symbols)
        base = np.where(np.isnan(previous), self.close, previous)
        gap = np.where(
            rng.random(count) < 0.08, rng.choice([-0.3, -0.1, 0.1, 0.2, 0.35], count), 0.01
        )
        opens = np.maximum(np.round(base * (1.0 + gap * rng.uniform(0.5, 1.0, count)), 2), 0.01)
        closes = np.maximum(np.round(opens * np.exp(rng.standard_t(3, count) * 0.02), 2), 0.01)
        high = np.round(np.maximum(opens, closes) * (1.0 + np.abs(rng.normal(0.0, 0.01, count))), 2)
        low = np.maximum(
            np.round(np.minimum(opens, closes) * (1.0 - np.abs(rng.normal(0.0, 0.01, count))), 2),
            0.01,
        )
        volume = np.rint(np.exp(rng.normal(11.0, 2.0, count))) * (rng.random(count) > 0.03)
        self.close = np.where(trading, closes, base)
        blank = np.where(trading, 0.0, np.nan)
        return {
            "open": opens + blank,
            "high": high + blank,
            "low": low + blank,
            "close": closes + blank,
            "volume": volume + blank,
            "amount": volume * closes + blank,
        }


_WRONG: tuple[dict[str, Any], ...] = (
    {"symbol": "NOBODY"},
    {"amount": float("nan")},
    {"amount": -5.0, "unit": "shares"},
    {"side": None, "unit": "shares"},
    {"kind": "limit", "limit_price": None},
    {"kind": "stop", "stop_price": -1.0},
    {"kind": "market", "limit_price": 10.0},
    {"tif": "until tomorrow"},
    {"unit": "buckets"},
)


def rough_orders(rng: np.random.Generator, bars: SessionBars, account: AccountState) -> list[Order]:
    """Return up to ten orders, half of them for names that are held."""
    held = list(account.positions)
    orders = []
    for _ in range(int(rng.integers(0, 9))):
        symbol = (
            str(rng.choice(held)) if held and rng.random() < 0.5 else str(rng.choice(bars.symbols))
        )
        column = bars.symbols.index(symbol)
        last = float(bars.prev_close[column])
        price = last if last == last else 20.0
        unit = str(
            rng.choice(["shares", "dollars", "target_weight", "target_value", "target_shares"])
        )
        scale = abs(account.nav) * float(rng.choice([0.0, 0.001, 0.05, 0.2, 0.6, 3.0]))
        scale /= bars.instruments[column].multiplier
        amount = {
            "shares": float(
                np.rint(scale / price / 100.0) * 100.0 + rng.choice([0.0, 0.0, 0.0, 1.0, 37.5])
            ),
            "dollars": scale,
            "target_weight": float(rng.choice([0.0, 0.05, 0.2, 0.5, 1.0, 1.9, -0.2, -1.5])),
            "target_value": scale * float(rng.choice([1.0, 1.0, -1.0])),
            "target_shares": float(
                np.rint(scale / price / 100.0) * 100.0 * rng.choice([1.0, 1.0, -1.0])
            ),
        }[unit]
        position = account.positions.get(symbol)
        if unit == "shares" and position is not None and rng.random() < 0.4:
            amount = abs(position.quantity) * float(rng.choice([1.0, 0.5, 1.1]))
        fields: dict[str, Any] = {"symbol": symbol, "amount": amount, "unit": unit}
        if unit in ("shares", "dollars") or rng.random() < 0.2:
            fields["side"] = str(rng.choice(["BUY", "SELL"]))
        kind = str(rng.choice(["market", "market", "limit", "stop"]))
        if kind != "market":
            fields["kind"] = kind
            fields[f"{kind}_price"] = max(round(price * float(rng.uniform(0.96, 1.04)), 2), 0.01)
        if rng.random() < 0.25:
            fields["tif"] = "gtc"
        if rng.random() < 0.06:
            fields.update(_WRONG[int(rng.integers(len(_WRONG)))])
        orders.append(Order(**fields))
    if rng.random() < 0.3:
        # Buy at once and sell during the same session, which a T+1 venue must not allow.
        symbol = str(rng.choice(bars.symbols))
        last = float(bars.prev_close[bars.symbols.index(symbol)])
        price = max(round(last * float(rng.uniform(0.99, 1.02)), 2) if last == last else 20.0, 0.01)
        orders.append(Order(symbol=symbol, amount=200.0, side="BUY"))
        orders.append(
            Order(symbol=symbol, amount=200.0, side="SELL", kind="limit", limit_price=price)
        )
    return orders
