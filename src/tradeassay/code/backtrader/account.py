"""Terms, money, positions and trades as Backtrader's broker keeps them, for shares: value is size times price.

Sums are formed in the framework's order, so that an account agrees with the framework's to the last bit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import msgspec

from tradeassay.code.task import CodeTask, Sizing
from tradeassay.core.errors import UserError


class BrokerTerms(msgspec.Struct, frozen=True, kw_only=True):
    """The broker's terms. ``commission`` is a share of the traded value. Raises UserError for impossible ones."""

    cash: float = 10_000.0
    commission: float = 0.001
    sizing: Sizing = Sizing(kind="fixed", value=1.0)

    def __post_init__(self) -> None:
        if not (math.isfinite(self.cash) and self.cash > 0):
            raise UserError(f"{self.cash:g} is not enough cash to start with", hint="give more than 0")
        if not 0 <= self.commission < 1:
            raise UserError(
                f"a commission of {self.commission:g} is not a share of a trade", hint="0.001 is 0.1 %"
            )


def terms_of(task: CodeTask) -> BrokerTerms:
    """Return the terms that a task states."""
    return BrokerTerms(cash=task.cash, commission=task.commission, sizing=task.sizing)


Split = tuple[float, float, float, float]
"""A position after an order: its size and price, and the parts of the order that opened and closed."""


class Fill(msgspec.Struct, frozen=True, kw_only=True):
    """One execution. ``size`` is signed; ``opened`` and ``closed`` are its parts, ``pnl`` what closing earned."""

    bar: int
    ref: int
    asset: str
    size: float
    price: float
    opened: float
    closed: float
    commission: float
    pnl: float


class RoundTrip(msgspec.Struct, frozen=True, kw_only=True):
    """A position from nothing back to nothing, or still open (``exit_bar`` None).

    ``size`` is the largest it had, with the sign it was opened with; ``entry_price`` the average. ``pnl`` is
    before, ``net`` after commission, both of what has been closed so far.
    """

    asset: str
    entry_bar: int
    exit_bar: int | None
    size: float
    entry_price: float
    exit_price: float | None
    pnl: float
    commission: float
    net: float
    tradeid: int = 0

    @property
    def closed(self) -> bool:
        """Whether it is over."""
        return self.exit_bar is not None

    @property
    def long(self) -> bool:
        """Whether it was opened by buying."""
        return self.size > 0


@dataclass(slots=True)
class BrokerPosition:
    """A position: signed size and average price."""

    size: float = 0.0
    price: float = 0.0

    def after(self, size: float, price: float) -> Split:
        """Return the position that an order of signed ``size`` would leave, and what it would open and close."""
        total = self.size + size
        if not total:
            return total, 0.0, 0.0, size
        if not self.size:
            return total, price, size, 0.0
        if (size > 0) == (self.size > 0):
            return total, (self.price * self.size + size * price) / total, size, 0.0
        if (total > 0) == (self.size > 0):
            return total, self.price, 0.0, size
        return total, price, total, -self.size


@dataclass(slots=True)
class _Running:
    """A trade in progress."""

    size: float = 0.0
    price: float = 0.0
    peak: float = 0.0
    pnl: float = 0.0
    commission: float = 0.0
    entry_bar: int = -1
    exit_bar: int | None = None
    exit_price: float | None = None
    sign: float = 0.0

    def update(self, bar: int, size: float, price: float, commission: float) -> None:
        self.commission += commission
        old = self.size
        self.size += size
        if not old:
            self.entry_bar = bar
            self.sign = 1.0 if size > 0 else -1.0
        over = bool(old) and not self.size
        self.exit_bar, self.exit_price = (bar, price) if over else (None, None)
        if abs(self.size) > abs(old):
            self.price = (old * self.price + size * price) / self.size
            self.peak = max(self.peak, abs(self.size))
        else:
            self.pnl += -size * (price - self.price)


@dataclass(slots=True)
class TradeBook:
    """Trades by asset and trade id; fed with fills, as the framework's strategies are."""

    _running: dict[tuple[str, int], list[_Running]] = field(default_factory=dict)
    _started: list[tuple[str, int, _Running]] = field(default_factory=list)

    def add(self, fill: Fill, tradeid: int, closing: float, opening: float) -> None:
        """Count a fill; ``closing`` and ``opening`` are the commissions of its two parts."""
        line = self._running.setdefault((fill.asset, tradeid), [])
        if not line:
            self._start(fill.asset, tradeid, line)
        if fill.closed:
            line[-1].update(fill.bar, fill.closed, fill.price, closing)
        if fill.opened:
            if line[-1].exit_bar is not None:
                self._start(fill.asset, tradeid, line)
            line[-1].update(fill.bar, fill.opened, fill.price, opening)

    def trades(self) -> tuple[RoundTrip, ...]:
        """Return all trades in the order in which they were opened."""
        return tuple(
            RoundTrip(
                asset=asset,
                entry_bar=run.entry_bar,
                exit_bar=run.exit_bar,
                size=run.sign * run.peak,
                entry_price=run.price,
                exit_price=run.exit_price,
                pnl=run.pnl,
                commission=run.commission,
                net=run.pnl - run.commission,
                tradeid=tradeid,
            )
            for asset, tradeid, run in self._started
            if run.sign
        )

    def _start(self, asset: str, tradeid: int, line: list[_Running]) -> None:
        run = _Running()
        line.append(run)
        self._started.append((asset, tradeid, run))
