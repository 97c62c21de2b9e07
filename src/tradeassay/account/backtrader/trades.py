"""Fills and round trips as Backtrader's broker keeps them, for shares: value is size times price."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec


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
