"""The error profile of a run: how often a model got the form, the arithmetic or the money wrong."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tradeassay.benchmarks.stockbench.day import MISTAKES
from tradeassay.core.events import StepRecord
from tradeassay.core.measure import Measure
from tradeassay.metrics import rate_measure

NOTES = frozenset(("context_cut",))
"""Kinds that are notes, not mistakes."""


class ErrorProfile(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of sessions, with Wilson's interval.

    ``schema``, ``arithmetic`` and ``liquidity``: at least one answer of the session was refused for it, whether
    or not a later one was good. ``give_up``: all attempts were refused. ``unanswered``: the session failed because
    the model gave no answer. ``context_cut``: something was left out of a prompt. ``refused`` counts refused
    answers by kind; a session may have several.
    """

    sessions: int
    schema: Measure
    arithmetic: Measure
    liquidity: Measure
    give_up: Measure
    unanswered: Measure
    context_cut: Measure
    refused: dict[str, int]


def error_profile(records: Iterable[StepRecord]) -> ErrorProfile:
    """Return the error profile of one or more journals."""
    sessions, unanswered = 0, 0
    with_kind = dict.fromkeys((*MISTAKES, "give_up", *NOTES), 0)
    refused = dict.fromkeys(MISTAKES, 0)
    for record in records:
        sessions += 1
        decision = record.decision
        kinds = [failure.kind for failure in decision.failures]
        for kind in with_kind.keys() & set(kinds):
            with_kind[kind] += 1
        for kind in MISTAKES:
            refused[kind] += kinds.count(kind)
        unanswered += decision.status == "failed" and "give_up" not in kinds

    def rate(count: int) -> Measure:
        return rate_measure(count, sessions, nothing="no session was played")

    return ErrorProfile(
        sessions=sessions,
        schema=rate(with_kind["schema"]),
        arithmetic=rate(with_kind["arithmetic"]),
        liquidity=rate(with_kind["liquidity"]),
        give_up=rate(with_kind["give_up"]),
        unanswered=rate(unanswered),
        context_cut=rate(with_kind["context_cut"]),
        refused=refused,
    )
