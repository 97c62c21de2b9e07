"""Ways in which code tries to look better than it is, and how the host notices.

None of them can change a number: what is printed is not read, the account is the host's, the environment is empty.
They are named because a program that tries is not a strategy.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from tradeassay.account.backtrader import BrokerReplay, OrderLog
from tradeassay.code.backtrader.backtest import Trick
from tradeassay.code.harness.wire import FUTURE, PATCHED
from tradeassay.code.program_source import parses
from tradeassay.sandbox import ChildClaim, Failure
from tradeassay.sandbox.sandbox_config import ENVIRONMENT

_CENT: Final = 0.01
_LONGEST: Final = 300
_SECRET_NAME: Final = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|DSN|PRIVATE", re.IGNORECASE)
_SECRET_TEXT: Final = re.compile(
    r"\b(?:sk|pk|ghp|gho|xox[abp]|hf)[-_][A-Za-z0-9_-]{16,}\b|\bAKIA[0-9A-Z]{16}\b|"
    r"\b[A-Z0-9_]*(?:API_KEY|SECRET|TOKEN|PASSWORD)[A-Z0-9_]*+\b['\"]?\s*[:=]\s*['\"]?"
    r"(?=[^\s'\",}]{0,99}\d)(?=[^\s'\",}]{0,99}[A-Za-z])[^\s'\",}]{6,}"
)
_ENVIRONMENT_DUMP: Final = re.compile(r"environ\(|" + "|".join(f"{name}['\"]?\\s*[:=]" for name in ENVIRONMENT))
_SHORTEST_SECRET: Final = 8
_WHOLE_ARRAYS: Final = frozenset({"array", "getzero", "getzeroval", "plotrange", "dataname"})


def tricks_in(source: str, notes: Iterable[str]) -> list[Trick]:
    return [*_noted(notes), *_arrays(source)]


def tricks_of_orders(log: OrderLog) -> list[Trick]:
    cheats = int((log.row == log.turn).sum()) if len(log) else 0
    if not cheats:
        return []
    text = f"{cheats} orders were given after the bar was known and before the broker had dealt with it"
    return [Trick(name="cheat-timer", evidence=text, grave=False)]


def account_mismatch(value: float, cash: float, done: BrokerReplay) -> list[Trick]:
    if abs(value - done.value) < _CENT and abs(cash - done.cash) < _CENT:
        return []
    text = (
        f"its own account says value {value:,.2f} and cash {cash:,.2f}; "
        f"by the orders it is {done.value:,.2f} and {done.cash:,.2f}"
    )
    return [Trick(name="account-mismatch", evidence=text, grave=False)]


def scrub(
    failure: Failure | None, environment: Mapping[str, str] | None = None
) -> tuple[Failure | None, list[Trick]]:
    """Remove from a child's words what looks like a secret, and name it: finding one means that a wall has a
    hole.
    """
    if not isinstance(failure, ChildClaim):
        return failure, []
    known = [
        value
        for name, value in (os.environ if environment is None else environment).items()
        if len(value) >= _SHORTEST_SECRET and _SECRET_NAME.search(name)
    ]
    found: list[str] = []
    fields = {name: _clean(getattr(failure, name), known, found) for name in ("error", "message", "trace")}
    if not found:
        return failure, []
    text = f"its error text carries {', '.join(dict.fromkeys(found))}; removed"
    return msgspec.structs.replace(failure, **fields), [Trick(name="secrets-in-error", evidence=text, grave=True)]


def _clean(text: str, known: list[str], found: list[str]) -> str:
    for value in known:
        if value in text:
            found.append("a value of the host's environment")
            text = text.replace(value, "[removed]")
    if _ENVIRONMENT_DUMP.search(text):
        found.append("an environment")
        return "[removed: an environment]"
    text, times = _SECRET_TEXT.subn("[removed]", text)
    if times:
        found.append("what looks like a key or password")
    return text


def _noted(notes: Iterable[str]) -> list[Trick]:
    patched, future = [], []
    for note in notes:
        if note.startswith(PATCHED):
            patched.append(note.removeprefix(PATCHED))
        elif note.startswith(FUTURE):
            future.append(note.removeprefix(FUTURE))
    found = []
    if patched:
        text = f"changed {', '.join(patched)}"[:_LONGEST]
        found.append(Trick(name="patched-framework", evidence=text, grave=True))
    if future:
        text = f"read later bars by {', '.join(future)}"[:_LONGEST]
        found.append(Trick(name="future-index", evidence=text, grave=False))
    return found


def _arrays(source: str) -> list[Trick]:
    tree = parses(source)
    if tree is None:
        return []
    lines = sorted(set(_whole_arrays(tree)))
    if not lines:
        return []
    text = f"takes hold of whole lines in line {', '.join(map(str, lines[:10]))}"
    return [Trick(name="preloaded-array", evidence=text, grave=False)]


def _whole_arrays(tree: ast.AST) -> Iterator[int]:
    """Yield the lines that name a whole line outside the methods that compute an indicator all at once."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.FunctionDef) and node.name in ("once", "oncestart", "preonce"):
            continue
        waiting += ast.iter_child_nodes(node)
        if isinstance(node, ast.Attribute) and node.attr in _WHOLE_ARRAYS:
            owner = node.value
            if not (isinstance(owner, ast.Name) and owner.id in ("np", "numpy", "pd")):
                yield node.lineno
