"""A small, rough market for exchanges: halts, limit moves, splits, dividends, expiries, empty books.

It is made to hit rules, not to look like a market, and needs no store.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

import numpy as np

from tradeassay.core.instruments import Board, CorporateAction, Instrument
from tradeassay.core.view import Bools, Floats, SessionBars

_BOARDS = (Board.MAIN, Board.MAIN, Board.CHINEXT, Board.STAR, Board.BSE, Board.NONE)
_FIRST = date(2024, 1, 1)
_CONTRACT_DAYS = 14


@dataclass(frozen=True, slots=True)
class RoughSession:
    """One session and what happens before it opens."""

    bars: SessionBars
    actions: tuple[CorporateAction, ...]
    delisted: tuple[str, ...]


def rough_market(rng: np.random.Generator, sessions: int, *, futures: bool) -> list[RoughSession]:
    """Return consecutive sessions of eight stocks and, if asked for, a chain of futures contracts."""
    instruments = [
        Instrument(symbol=f"S{number}", board=_BOARDS[number % len(_BOARDS)], lot=100.0) for number in range(8)
    ]
    if futures:
        instruments += [_contract(number) for number in range(sessions // _CONTRACT_DAYS + 2)]
    return _Rough(rng, tuple(instruments)).play(sessions)


def _contract(number: int) -> Instrument:
    expiry = _FIRST + timedelta(days=_CONTRACT_DAYS * (number + 1))
    return Instrument(symbol=f"F{number}", kind="future", multiplier=10.0, expiry=expiry.isoformat(), root="F")


class _Rough:
    def __init__(self, rng: np.random.Generator, instruments: tuple[Instrument, ...]) -> None:
        self.rng = rng
        self.instruments = instruments
        self.symbols = tuple(instrument.symbol for instrument in instruments)
        self.stock: Bools = np.array([instrument.kind == "stock" for instrument in instruments])
        self.close: Floats = np.round(rng.uniform(5.0, 60.0, len(instruments)), 2)
        self.first = True
        self.gone: set[int] = set()

    def play(self, sessions: int) -> list[RoughSession]:
        """Return the sessions; the last stock leaves the exchange half-way."""
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
        trading = self._trading(day)
        return RoughSession(
            SessionBars(
                session=day,
                row=row,
                symbols=self.symbols,
                instruments=self.instruments,
                prev_close=previous,
                trading=trading,
                **self._bars(previous, trading),
            ),
            actions,
            tuple(self.symbols[column] for column in sorted(self.gone)),
        )

    def _actions(self, day: str) -> tuple[CorporateAction, ...]:
        """Draw splits and dividends and take them out of the last close, as a data source does."""
        actions = []
        for column in np.flatnonzero(self.stock).tolist():
            draw = float(self.rng.random())
            symbol = self.symbols[column]
            if draw < 0.02:
                ratio = float(self.rng.choice([2.0, 1.5, 0.1, 3.0, 1.3]))
                self.close[column] /= ratio
                actions.append(CorporateAction(symbol=symbol, kind="split", ex_date=day, known_at=0, value=ratio))
            elif draw < 0.05:
                value = round(float(self.close[column]) * 0.02, 2)
                self.close[column] -= value
                actions.append(
                    CorporateAction(symbol=symbol, kind="dividend", ex_date=day, known_at=0, value=value)
                )
        return tuple(actions)

    def _trading(self, day: str) -> Bools:
        trading: Bools = self.rng.random(len(self.symbols)) > 0.06
        for column, instrument in enumerate(self.instruments):
            if column in self.gone or (instrument.expiry is not None and day > instrument.expiry):
                trading[column] = False
        return trading

    def _bars(self, previous: Floats, trading: Bools) -> dict[str, Floats]:
        """Return the bars' fields; some moves reach a limit, some books are empty."""
        rng, count = self.rng, len(self.symbols)
        base = np.where(np.isnan(previous), self.close, previous)
        gap = np.where(rng.random(count) < 0.08, rng.choice([-0.3, -0.1, 0.1, 0.2, 0.35], count), 0.01)
        opens = np.maximum(np.round(base * (1.0 + gap * rng.uniform(0.5, 1.0, count)), 2), 0.01)
        closes = np.maximum(np.round(opens * np.exp(rng.standard_t(3, count) * 0.02), 2), 0.01)
        high = np.round(np.maximum(opens, closes) * (1.0 + np.abs(rng.normal(0.0, 0.01, count))), 2)
        low = np.maximum(
            np.round(np.minimum(opens, closes) * (1.0 - np.abs(rng.normal(0.0, 0.01, count))), 2), 0.01
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
