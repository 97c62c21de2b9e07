"""Gate: can every trade be followed from its signal to its P&L, and are its figures true?

For each trade the audit log has five rows: a ``signal``, a ``risk_check`` whose parent it is, an ``order`` (the
trade's ``order_id``) whose parent that is, a ``position`` and a ``pnl``. From the logs the host takes time, side,
quantity and signal; every price, position, P&L and equity is the host's own, and a claim that differs fails.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from tradeassay.account.shares import TradedAccount
from tradeassay.code.checks import Exhibit, Finding, Measures, convicted, passed
from tradeassay.code.submission_run import AuditLog, SubmissionRun, TradeLog
from tradeassay.core.view import Floats

CHAIN: Final = ("signal", "risk_check", "order", "position", "pnl")
TRADE_CELLS: Final = ("time", "symbol", "side", "quantity", "price", "signal", "order_id")
_ROW_CELLS: Final = ("id", "time", "symbol", "value")
_SHOWN: Final = 5


@dataclass(slots=True)
class _Tally:
    """Cells and trades counted so far, and the claims that were false."""

    required: int = 0
    present: int = 0
    traceable: int = 0
    broken: list[Exhibit] = field(default_factory=list)
    false: list[Exhibit] = field(default_factory=list)


def audit_gate(scored: SubmissionRun, closes: Floats, completeness: float, tolerance: float) -> Finding:
    """Follow every trade of the scored run through the audit log, and compare every figure.

    ``completeness`` and ``tolerance`` are those of :class:`~tradeassay.code.gates.GateConfig`.
    """
    assert scored.trades is not None and scored.audit is not None and scored.account is not None
    trades, audit = scored.trades, scored.audit
    if not len(trades):
        nothing: Measures = {"trades": 0, "completeness": None, "traceable": None}
        return passed("there was no trade to be followed", nothing)
    tally = _Tally()
    _follow(trades, audit, scored.account, tolerance, tally)
    _claims(trades, scored.account, closes, tolerance, tally)
    complete = tally.present / tally.required
    traceable = tally.traceable / len(trades)
    found = list(tally.false)
    if complete < completeness:
        text = f"{complete:.1%} of the required cells are filled; {completeness:.0%} are asked for"
        found.append(Exhibit(code="incomplete", text=text))
    if traceable < completeness:
        text = f"{tally.traceable} of {len(trades)} trades can be followed from signal to P&L"
        found += [Exhibit(code="untraceable", text=text), *tally.broken[:_SHOWN]]
    measures: Measures = {
        "trades": len(trades),
        "completeness": round(complete, 6),
        "traceable": round(traceable, 6),
        "false_claims": len(tally.false),
    }
    if found:
        return convicted(found[: 4 * _SHOWN], measures)
    return passed("", measures)


def _follow(trades: TradeLog, audit: AuditLog, account: TradedAccount, tolerance: float, tally: _Tally) -> None:
    index = AuditIndex(audit)
    scale = float(np.abs(trades.quantity).max())
    room = tolerance * max(account.capital, float(np.abs(account.equity).max()))
    for number in range(len(trades)):
        _count_trade(trades, number, tally)
        chain = index.chain(trades.order_id[number])
        for kind, place in chain.items():
            cells = len(_ROW_CELLS) + (kind != "signal")
            tally.required += cells
            tally.present += 0 if place is None else _filled(audit, place, kind)
        missing = next((kind for kind, place in chain.items() if place is None), None)
        row, leg = int(trades.row[number]), int(trades.leg[number])
        if missing is not None:
            tally.broken.append(_exhibit("no_" + missing, number, row, f"has no {missing} row in the audit log"))
            continue
        true = {
            "risk_check": (1.0, 1e-9),
            "order": (float(trades.quantity[number]), tolerance * scale),
            "position": (float(account.position[number]), tolerance * scale),
            "pnl": (float(account.equity[row]) - account.capital, room),
        }
        wrong = _wrong(audit, chain, row, leg, true)
        if wrong is None:
            tally.traceable += 1
        else:
            tally.false.append(_exhibit(wrong[0], number, row, wrong[1]))


def _wrong(
    audit: AuditLog, chain: dict[str, int | None], row: int, leg: int, true: dict[str, tuple[float, float]]
) -> tuple[str, str] | None:
    """Return the first thing that is wrong in a chain of rows."""
    for kind, place in chain.items():
        assert place is not None
        if audit.row[place] not in (row, -1) or audit.leg[place] not in (leg, -1):
            return f"other_{kind}", f"is linked to a {kind} of another bar or asset"
        value = float(audit.value[place])
        if kind in true and not np.isnan(value):
            own, room = true[kind]
            if not abs(value - own) <= room:
                return f"false_{kind}", f"claims {_words(kind)} {value:.10g}; the host finds {own:.10g}"
    return None


def _words(kind: str) -> str:
    return {
        "risk_check": "a risk check of",
        "order": "an order of",
        "position": "a position of",
        "pnl": "a P&L of",
    }[kind]


def _claims(trades: TradeLog, account: TradedAccount, closes: Floats, tolerance: float, tally: _Tally) -> None:
    """Compare what the trade log itself says: prices, and P&L and equity where they are given."""
    price = closes[trades.leg, trades.row]
    equity = account.equity[trades.row]
    room = tolerance * np.maximum(account.capital, np.abs(equity))
    pairs = (
        ("price", trades.price, price, tolerance * np.abs(price)),
        ("pnl", trades.pnl, account.realised, room),
        ("equity", trades.equity, equity, room),
    )
    for name, claimed, own, allowed in pairs:
        # Written this way round so that an infinite claim is false too; NaN claims nothing.
        wrong = np.flatnonzero(~np.isnan(claimed) & ~(np.abs(claimed - own) <= allowed))
        for number in wrong[:_SHOWN].tolist():
            text = f"claims the {name} {claimed[number]:.10g}; the host finds {own[number]:.10g}"
            tally.false.append(_exhibit(f"false_{name}", number, int(trades.row[number]), text))


class AuditIndex:
    """Where the rows of an audit log are: by their id, and by their kind under a parent; the last of several."""

    def __init__(self, audit: AuditLog) -> None:
        self._audit = audit
        self._by_id: dict[object, int] = {}
        self._by_parent: dict[tuple[object, object], int] = {}
        for place in range(len(audit)):
            if audit.id[place] is not None:
                self._by_id[audit.id[place]] = place
            if audit.parent[place] is not None:
                self._by_parent[audit.kind[place], audit.parent[place]] = place

    def chain(self, order_id: object) -> dict[str, int | None]:
        """Return the rows from an order's signal to its P&L; None for each that is missing."""
        audit = self._audit
        order = self._named(order_id, "order")
        check = self._named(audit.parent[order], "risk_check") if order is not None else None
        signal = self._named(audit.parent[check], "signal") if check is not None else None
        position = self._by_parent.get(("position", order_id)) if order is not None else None
        pnl = self._by_parent.get(("pnl", audit.id[position])) if position is not None else None
        return dict(zip(CHAIN, (signal, check, order, position, pnl), strict=True))

    def _named(self, id: object, kind: str) -> int | None:
        place = self._by_id.get(id) if id is not None else None
        return place if place is not None and self._audit.kind[place] == kind else None


def _filled(audit: AuditLog, place: int, kind: str) -> int:
    cells = [audit.id[place] is not None, audit.row[place] >= 0, audit.leg[place] >= 0]
    cells += [np.isfinite(audit.value[place]), kind != "signal" and audit.parent[place] is not None]
    return sum(map(bool, cells))


def _count_trade(trades: TradeLog, number: int, tally: _Tally) -> None:
    tally.required += len(TRADE_CELLS)
    absent = [trades.signal[number] is None, trades.order_id[number] is None, np.isnan(trades.price[number])]
    tally.present += len(TRADE_CELLS) - sum(map(bool, absent))


def _exhibit(code: str, number: int, row: int, text: str) -> Exhibit:
    return Exhibit(code=code, text=f"trade {number} on bar {row} {text}", bar=row, where="scored bars")
