"""How far two action traces are from each other: edits over actions."""

from __future__ import annotations

from typing import Final

from tradeassay.code.engine.decisions import DecisionList

AGREEMENT: Final = 1e-6
"""Shares of equity nearer than this are one action."""

Action = tuple[int, int, float, int]


def trace_distance(left: DecisionList, right: DecisionList, agreement: float = AGREEMENT) -> float:
    """Return the smallest number of insertions, deletions and replacements that turns one list of actions into the
    other, over the length of the longer: 0 when they are the same, 1 when they share nothing.

    An action is a bar, a leg, a share of equity and a signal; two agree when all four do. A quiet bar is no
    action: counted as one, a strategy that trades seldom could change all its trades and stay under any threshold.
    """
    a, b = _actions(left), _actions(right)
    longest = max(len(a), len(b))
    if not longest:
        return 0.0
    return _edits(a, b, agreement) / longest


def _edits(a: list[Action], b: list[Action], agreement: float) -> int:
    row = list(range(len(b) + 1))
    for i, one in enumerate(a, start=1):
        diagonal, row[0] = row[0], i
        for j, other in enumerate(b, start=1):
            kept = diagonal + (not _same(one, other, agreement))
            diagonal, row[j] = row[j], min(kept, row[j] + 1, row[j - 1] + 1)
    return row[-1]


def _same(a: Action, b: Action, agreement: float) -> bool:
    return a[0] == b[0] and a[1] == b[1] and a[3] == b[3] and abs(a[2] - b[2]) <= agreement


def _actions(decisions: DecisionList) -> list[Action]:
    columns = (decisions.row, decisions.leg, decisions.fraction, decisions.signal)
    return list(zip(*(column.tolist() for column in columns), strict=True))
