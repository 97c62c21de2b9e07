"""The smallest strategy for gates and drift: its semantics, a card that says the same, and logs
of trades.
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from tradeassay_programs.code.semantics.interpreter import Semantics, read_semantics
from tradeassay_programs.code.submission import AuditLog, Submission, TradeLog

LIMITS = {"max_exposure": 1.0, "max_trades_per_bar": 1}
CARD = {
    "strategy": "hold",
    "version": 1,
    "strategy_family": "none",
    "entry_rule": "in it  goes",
    "exit_rule": "never",
    "position_sizing_rule": "all",
    "parameters": {"n": 3, "k": 2.0},
    "constraints": LIMITS,
    "legs": ["X"],
    "execution": "signal-bar-close",
}


def semantics(**k: Any) -> Semantics:
    """Return the frozen semantics; ``k`` says more about the parameter of that name, such as a
    tolerance.
    """
    rule = {
        "id": "in",
        "from": ["flat"],
        "when": "row >= n",
        "to": "long",
        "signal": "IN",
        "target": {"X": "1"},
    }
    body = {
        "id": "hold",
        "version": 1,
        "title": "Hold",
        "inputs": {"legs": ["X"], "timeframes": ["1d"]},
        "parameters": {"n": {"value": 3, "kind": "int"}, "k": {"value": 2.0, "kind": "float", **k}},
        "indicators": {},
        "states": ["flat", "long"],
        "rules": [rule],
        "constraints": LIMITS,
        "conventions": {},
    }
    return read_semantics(json.dumps(body).encode())


def submission(source: str, **card: object) -> Submission:
    return Submission(source=source, card=json.dumps({**CARD, **card}), name="mine")


def trade_log(
    row: list[int], quantity: list[float], signal: list[str], price: list[float], **more: Any
) -> TradeLog:
    """Return trades in the only leg; P&L and equity are not claimed unless they are given."""
    unsaid = [np.nan] * len(row)
    return TradeLog(
        row=np.array(row, dtype=int),
        leg=np.zeros(len(row), dtype=int),
        quantity=np.array(quantity, dtype=float),
        signal=np.array(signal, dtype=object),
        order_id=np.array([f"o{number}" for number in range(len(row))], dtype=object),
        price=np.array(price, dtype=float),
        pnl=np.array(more.get("pnl", unsaid), dtype=float),
        equity=np.array(more.get("equity", unsaid), dtype=float),
    )


def audit_log(rows: Sequence[tuple[int, str, str, str | None, float]]) -> AuditLog:
    """Return rows (bar, kind, id, parent, value) of the only leg."""
    row, kind, own, parent, value = zip(*rows, strict=True)
    texts = [np.array(one, dtype=object) for one in (kind, own, parent)]
    return AuditLog(np.array(row), np.zeros(len(rows), dtype=int), *texts, np.array(value))
