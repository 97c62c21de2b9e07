"""The smallest strategy that gates and drift can be asked about: its semantics, and a card that says the same."""

import json
from typing import Any

from tradeassay.code.semantics.interpreter import Semantics, read_semantics
from tradeassay.code.submission import Submission

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
    """Return the frozen semantics; ``k`` says more about the parameter of that name, such as a tolerance."""
    rule = {"id": "in", "from": ["flat"], "when": "row >= n", "to": "long", "signal": "IN", "target": {"X": "1"}}
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
