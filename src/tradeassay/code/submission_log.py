"""The logs of a submission as the host reads them: times become bars, names become legs, all else is a claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tradeassay.code.leak.trace import Trace
from tradeassay.core.hashing import sha256_bytes
from tradeassay.core.view import Floats, Ints
from tradeassay.sandbox.plain_text import plain_line

Texts = NDArray[np.object_]
_SIDES: Final = {"BUY": 1.0, "SELL": -1.0}
_TRADE: Final = ("time", "symbol", "side", "quantity", "price", "signal", "order_id", "pnl", "equity")
_AUDIT: Final = ("time", "kind", "id", "parent", "symbol", "value")
_SHOWN: Final = 60


class BadLog(ValueError):
    """A log that cannot be read as trades. The text says which row and why."""


@dataclass(frozen=True, slots=True, eq=False)
class TradeLog:
    """Trades in the order of their bars. The host takes ``row``, ``leg``, ``quantity`` (signed) and ``signal``.

    ``price``, ``pnl`` and ``equity`` are what the submission claims; NaN where it claims nothing.
    """

    row: Ints
    leg: Ints
    quantity: Floats
    signal: Texts
    order_id: Texts
    price: Floats
    pnl: Floats
    equity: Floats

    def __len__(self) -> int:
        return int(self.row.size)

    @property
    def sha256(self) -> str:
        """The hash of what was decided: bars, legs, quantities to the bit, signals."""
        words = "\0".join("" if word is None else str(word) for word in self.signal)
        parts = (self.row.tobytes(), self.leg.tobytes(), self.quantity.tobytes(), words.encode())
        return sha256_bytes(b"\0\0".join(parts))

    def trace(self, cpu_s: float | None = None) -> Trace:
        """Return the trades as the look-ahead check compares them."""
        fields = {"leg": self.leg, "quantity": self.quantity, "signal": self.signal}
        return Trace(rows=self.row, fields=fields, cpu_s=cpu_s)


@dataclass(frozen=True, slots=True, eq=False)
class AuditLog:
    """The audit rows as they came. ``row`` is -1 where the time is no bar, ``leg`` where the symbol is none."""

    row: Ints
    leg: Ints
    kind: Texts
    id: Texts
    parent: Texts
    value: Floats

    def __len__(self) -> int:
        return int(self.row.size)


def read_trades(columns: Mapping[str, NDArray[Any]], times: NDArray[Any], legs: Sequence[str]) -> TradeLog:
    """Return the trade log in columns ``trade/...``; raises :class:`BadLog` for trades that cannot have been.

    Such are: a time that is no bar, a leg or side that does not exist, a quantity that is no positive number.
    """
    found = _columns(columns, "trade", _TRADE)
    row, leg = _rows(found["time"], times), _legs(found["symbol"], legs)
    sign = np.array([_SIDES.get(str(side).upper(), 0.0) for side in found["side"]], dtype=np.float64)
    quantity = found["quantity"].astype(np.float64)
    _refuse(row < 0, "is dated at a time that is no bar", found["time"])
    _refuse(leg < 0, f"names an asset that is not among {', '.join(legs)}", found["symbol"])
    _refuse(sign == 0.0, "has a side that is neither BUY nor SELL", found["side"])
    with np.errstate(invalid="ignore"):
        _refuse(~(np.isfinite(quantity) & (quantity > 0)), "has a quantity that is no positive number", quantity)
    order = np.argsort(row, kind="stable")
    return TradeLog(
        row=row[order],
        leg=leg[order],
        quantity=(sign * quantity)[order],
        signal=found["signal"][order],
        order_id=found["order_id"][order],
        price=found["price"].astype(np.float64)[order],
        pnl=found["pnl"].astype(np.float64)[order],
        equity=found["equity"].astype(np.float64)[order],
    )


def read_audit(columns: Mapping[str, NDArray[Any]], times: NDArray[Any], legs: Sequence[str]) -> AuditLog:
    """Return the audit log in columns ``audit/...``; raises :class:`BadLog` only when they are missing."""
    found = _columns(columns, "audit", _AUDIT)
    return AuditLog(
        row=_rows(found["time"], times),
        leg=_legs(found["symbol"], legs),
        kind=found["kind"],
        id=found["id"],
        parent=found["parent"],
        value=found["value"].astype(np.float64),
    )


def _columns(columns: Mapping[str, NDArray[Any]], log: str, names: Sequence[str]) -> dict[str, NDArray[Any]]:
    found = {name: columns.get(f"{log}/{name}") for name in names}
    lengths = {len(values) for values in found.values() if values is not None}
    kinds = {"time": "M", "quantity": "f", "price": "f", "pnl": "f", "equity": "f", "value": "f"}
    whole = {name: values for name, values in found.items() if values is not None}
    if len(whole) != len(names) or len(lengths) != 1:
        raise BadLog(f"the {log} log came back without its columns")
    for name, values in whole.items():
        if values.dtype.kind != kinds.get(name, "O"):
            raise BadLog(f"the column '{name}' of the {log} log has another type than it was sent with")
    return whole


def _rows(stamps: NDArray[Any], times: NDArray[Any]) -> Ints:
    clock = times.astype("M8[ns]")
    place = np.minimum(np.searchsorted(clock, stamps), len(clock) - 1)
    found: Ints = np.where(clock[place] == stamps, place, -1).astype(np.int64)
    return found


def _legs(symbols: NDArray[Any], legs: Sequence[str]) -> Ints:
    places = {leg: place for place, leg in enumerate(legs)}
    return np.array([places.get(symbol, -1) for symbol in symbols], dtype=np.int64)


def _refuse(wrong: NDArray[np.bool_], what: str, values: NDArray[Any]) -> None:
    if wrong.any():
        first = int(np.flatnonzero(wrong)[0])
        raise BadLog(f"trade {first} {what}: {plain_line(str(values[first]), _SHOWN)}")
