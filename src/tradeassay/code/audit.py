"""Gate: can every trade be followed from its signal to its P&L, and are its figures true?

For each trade the audit log has five rows: a ``signal``, a ``risk_check`` whose parent it is, an ``order`` (the
trade's ``order_id``) whose parent that is, a ``position`` and a ``pnl``. From the logs the host takes time, side,
quantity and signal; every price, position, P&L and equity is the host's own, and a claim that differs fails.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from tradeassay.account.shares import TradedAccount, realised_by
from tradeassay.code.checks import Exhibit, Finding, Measures, convicted, passed
from tradeassay.code.submission_run import AuditLog, SubmissionRun, TradeLog
from tradeassay.core.view import Floats, Ints

CHAIN: Final = ("signal", "risk_check", "order", "position", "pnl")
TRADE_CELLS: Final = ("time", "symbol", "side", "quantity", "price", "signal", "order_id")
_ROW_CELLS: Final = ("id", "time", "symbol", "value")
_SHOWN: Final = 5


def audit_gate(scored: SubmissionRun, closes: Floats, completeness: float, tolerance: float) -> Finding:
    """Follow every trade of the scored run through the audit log, and compare every figure.

    ``completeness`` and ``tolerance`` are those of :class:`~tradeassay.code.gates.GateConfig`.
    """
    assert scored.trades is not None and scored.audit is not None and scored.account is not None
    trades, audit = scored.trades, scored.audit
    if not len(trades):
        nothing: Measures = {"trades": 0, "completeness": None, "traceable": None}
        return passed("there was no trade to be followed", nothing)
    index = AuditIndex(audit)
    chain = index.chains(trades.order_id.tolist())
    present, required = _cells(trades, audit, chain)
    whole = (chain >= 0).all(axis=0)
    wrong = _wrong(trades, audit, chain, scored.account, tolerance)
    lying = np.flatnonzero(whole & (wrong != 0).any(axis=0))
    claims = _claims(trades, scored.account, closes, tolerance)
    followed = int(whole.sum()) - lying.size
    complete, traceable = present / required, followed / len(trades)
    found = [_lie(trades, audit, chain, wrong, scored.account, number) for number in lying[: 4 * _SHOWN].tolist()]
    found += claims
    if complete < completeness:
        text = f"{complete:.1%} of the required cells are filled; {completeness:.0%} are asked for"
        found.append(Exhibit(code="incomplete", text=text))
    if traceable < completeness:
        text = f"{followed} of {len(trades)} trades can be followed from signal to P&L"
        found += [Exhibit(code="untraceable", text=text), *_broken(trades, chain)]
    measures: Measures = {
        "trades": len(trades),
        "completeness": round(complete, 6),
        "traceable": round(traceable, 6),
        "false_claims": int(lying.size) + len(claims),
    }
    if found:
        return convicted(found[: 4 * _SHOWN], measures)
    return passed("", measures)


def _cells(trades: TradeLog, audit: AuditLog, chain: Ints) -> tuple[int, int]:
    """Return how many of the required cells are filled: of the trades, and of the rows of their chains."""
    number = len(trades)
    required = number * (len(TRADE_CELLS) + len(CHAIN) * (len(_ROW_CELLS) + 1) - 1)
    present = number * len(TRADE_CELLS)
    present -= sum(word is None for column in (trades.signal, trades.order_id) for word in column.tolist())
    present -= int(np.isnan(trades.price).sum())
    named, hung = (np.array([word is not None for word in column.tolist()]) for column in (audit.id, audit.parent))
    for kind, places in zip(CHAIN, chain, strict=True):
        rows = places[places >= 0]
        filled = named[rows] * 1 + (audit.row[rows] >= 0) + (audit.leg[rows] >= 0) + np.isfinite(audit.value[rows])
        present += int(filled.sum()) + (int(hung[rows].sum()) if kind != "signal" else 0)
    return present, required


def _own(trades: TradeLog, account: TradedAccount) -> dict[str, Floats]:
    """Return the host's own figure of every trade, for the kinds of rows that claim one."""
    return {
        "risk_check": np.ones(len(trades)),
        "order": trades.quantity,
        "position": account.position,
        "pnl": account.equity[trades.row] - account.capital,
    }


def _wrong(trades: TradeLog, audit: AuditLog, chain: Ints, account: TradedAccount, tolerance: float) -> Ints:
    """Return for each row of a chain 1 when it is of another bar or asset, 2 when its figure is false, else 0."""
    scale = tolerance * float(np.abs(trades.quantity).max())
    worth = tolerance * max(account.capital, float(np.abs(account.equity).max()))
    rooms = {"risk_check": 1e-9, "order": scale, "position": scale, "pnl": worth}
    own = _own(trades, account)
    made = np.zeros(chain.shape, dtype=np.int64)
    for at, (kind, places) in enumerate(zip(CHAIN, chain, strict=True)):
        row, leg, value = audit.row[places], audit.leg[places], audit.value[places]
        strange = ((row != trades.row) & (row != -1)) | ((leg != trades.leg) & (leg != -1))
        false = np.zeros(len(trades), dtype=bool)
        if kind in own:
            # Written this way round so that an infinite claim is false too; NaN claims nothing.
            with np.errstate(invalid="ignore"):
                false = ~np.isnan(value) & ~(np.abs(value - own[kind]) <= rooms[kind])
        made[at] = np.where(places < 0, 0, np.where(strange, 1, np.where(false, 2, 0)))
    return made


def _lie(
    trades: TradeLog, audit: AuditLog, chain: Ints, wrong: Ints, account: TradedAccount, number: int
) -> Exhibit:
    """Return the first thing that is wrong in the chain of a trade."""
    at = int(np.flatnonzero(wrong[:, number])[0])
    kind, row = CHAIN[at], int(trades.row[number])
    if wrong[at, number] == 1:
        return _exhibit(f"other_{kind}", number, row, f"is linked to a {kind} of another bar or asset")
    value, own = float(audit.value[chain[at, number]]), float(_own(trades, account)[kind][number])
    text = f"claims {_words(kind)} {value:.10g}; the host finds {own:.10g}"
    return _exhibit(f"false_{kind}", number, row, text)


def _broken(trades: TradeLog, chain: Ints) -> list[Exhibit]:
    """Return the first trades whose chain has a gap."""
    found = []
    for number in np.flatnonzero((chain < 0).any(axis=0))[:_SHOWN].tolist():
        kind = CHAIN[int(np.flatnonzero(chain[:, number] < 0)[0])]
        text = f"has no {kind} row in the audit log"
        found.append(_exhibit("no_" + kind, number, int(trades.row[number]), text))
    return found


def _words(kind: str) -> str:
    return {
        "risk_check": "a risk check of",
        "order": "an order of",
        "position": "a position of",
        "pnl": "a P&L of",
    }[kind]


def _claims(trades: TradeLog, account: TradedAccount, closes: Floats, tolerance: float) -> list[Exhibit]:
    """Compare what the trade log itself says: prices, and P&L and equity where they are given."""
    price = closes[trades.leg, trades.row]
    equity = account.equity[trades.row]
    room = tolerance * np.maximum(account.capital, np.abs(equity))
    pairs = [("price", trades.price, price, tolerance * np.abs(price)), ("equity", trades.equity, equity, room)]
    if not np.isnan(trades.pnl).all():
        pairs.insert(1, ("pnl", trades.pnl, realised_by(trades, closes), room))
    found = []
    for name, claimed, own, allowed in pairs:
        # Written this way round so that an infinite claim is false too; NaN claims nothing.
        with np.errstate(invalid="ignore"):
            wrong = np.flatnonzero(~np.isnan(claimed) & ~(np.abs(claimed - own) <= allowed))
        for number in wrong[:_SHOWN].tolist():
            text = f"claims the {name} {claimed[number]:.10g}; the host finds {own[number]:.10g}"
            found.append(_exhibit(f"false_{name}", number, int(trades.row[number]), text))
    return found


class AuditIndex:
    """Where the rows of an audit log are: by their id, and by their kind under a parent; the last of several."""

    def __init__(self, audit: AuditLog) -> None:
        self._id, self._parent, kinds = audit.id.tolist(), audit.parent.tolist(), audit.kind.tolist()
        self._kind = kinds
        self._by_id = {name: place for place, name in enumerate(self._id) if name is not None}
        self._by_parent = {
            (kind, parent): place
            for place, (kind, parent) in enumerate(zip(kinds, self._parent, strict=True))
            if parent is not None
        }

    def chains(self, order_ids: Sequence[object]) -> Ints:
        """Return the rows from each order's signal to its P&L, shape (kinds, orders); -1 for a missing one."""
        found = [self._chain(order_id) for order_id in order_ids]
        return np.array(found, dtype=np.int64).reshape(len(found), len(CHAIN)).T

    def _chain(self, order_id: object) -> tuple[int, int, int, int, int]:
        order = self._named(order_id, "order")
        check = self._named(self._parent[order], "risk_check") if order >= 0 else -1
        signal = self._named(self._parent[check], "signal") if check >= 0 else -1
        position = self._by_parent.get(("position", order_id), -1) if order >= 0 else -1
        pnl = self._by_parent.get(("pnl", self._id[position]), -1) if position >= 0 else -1
        return signal, check, order, position, pnl

    def _named(self, id: object, kind: str) -> int:
        place = -1 if id is None else self._by_id.get(id, -1)
        return place if place >= 0 and self._kind[place] == kind else -1


def _exhibit(code: str, number: int, row: int, text: str) -> Exhibit:
    return Exhibit(code=code, text=f"trade {number} on bar {row} {text}", bar=row, where="scored bars")
