"""What a run knows about an agent that is a model, read from its journals, dialogues, scores and data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tradeassay.benchmarks.ktdfin.outcomes import order_outcomes
from tradeassay.benchmarks.ktdfin.panel import DIAGNOSTICS, PANEL, parse_failure_rate, tool_validity_rate
from tradeassay.core.errors import DataError, RunError
from tradeassay.core.events import StepRecord
from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics import calibration, calibration_curve, rate_measure
from tradeassay.report.conversations import model_decisions
from tradeassay.report.model_data import ConfidenceNote, CostNote, ErrorRow, ModelData

if TYPE_CHECKING:
    from tradeassay.runs import AgentScores, Run

MOST_SESSIONS = 12
"""Sessions of an agent with their whole conversation, on a page with few models."""
MOST_ON_A_PAGE = 200
"""Such sessions on one page: with many models each shows fewer, so that a page can still be sent by mail."""
NET_RETURN = "return_net_of_inference"
NOTES = frozenset(("context_cut",))
"""Kinds of failure that are notes and no mistakes."""


def sessions_each(models: int) -> int:
    """Return how many sessions of each of ``models`` agents are shown in full; never less than two."""
    return max(2, min(MOST_SESSIONS, MOST_ON_A_PAGE // max(1, models)))


def model_summary(run: Run, row: AgentScores) -> ModelData | None:
    """Return who played and what it cost, None when no model did. Reads no journal."""
    episode = run.episode(row.episodes[0])
    badge = run.badges(episode.key).model
    if not episode.by_model or badge == "none":
        return None
    record = run.manifest.protocols.get(episode.cell)
    mask = None if record is None else record.config.get("mask")
    found = row.inference
    net = row.measures.get(NET_RETURN)
    return ModelData(
        model=run.manifest.models[episode.label].model,
        answers=badge,
        mask=str(mask) if mask not in (None, "bright") else None,
        cost=None
        if isinstance(found, msgspec.UnsetType)
        else CostNote(
            calls=found.calls,
            decisions=found.decisions,
            input_tokens=found.input_tokens,
            output_tokens=found.output_tokens,
            usd=found.usd,
        ),
        net_return=None if net is None else net.median,
    )


def model_details(run: Run, row: AgentScores, summary: ModelData, shown: str, most: int) -> ModelData:
    """Return ``summary`` with mistakes over all repetitions, confidence, and the sessions of episode ``shown``."""
    journals = {key: tuple(run.records(key)) for key in row.episodes if run.outcome(key) is not None}
    level = run.spec.bootstrap.level
    every = [record for records in journals.values() for record in records]
    decisions, left_out = model_decisions(journals.get(shown, ()), run.dialogue(shown), most)
    ktdfin = run.manifest.benchmark(run.episode(shown)).protocol == "ktdfin"
    return msgspec.structs.replace(
        summary,
        sessions=len(every),
        errors=error_rows(every, level),
        rates=_rates(every, level) if ktdfin else (),
        confidence=_confidence(run, journals),
        decisions=decisions,
        decisions_left_out=left_out,
    )


def error_rows(records: Sequence[StepRecord], level: float) -> tuple[ErrorRow, ...]:
    """Return mistakes by kind, the most frequent first. A mistake that was mended in time is counted too."""
    answers: dict[str, int] = {}
    sessions: dict[str, int] = {}
    for record in records:
        kinds = [failure.kind for failure in record.decision.failures]
        for kind in kinds:
            answers[kind] = answers.get(kind, 0) + 1
        for kind in set(kinds):
            sessions[kind] = sessions.get(kind, 0) + 1
    return tuple(
        ErrorRow(
            kind=kind,
            answers=answers[kind],
            sessions=sessions[kind],
            rate=rate_measure(sessions[kind], len(records), nothing="no session was played", level=level),
        )
        for kind in sorted(answers, key=lambda kind: (kind in NOTES, -answers[kind], kind))
    )


def _rates(records: Sequence[StepRecord], level: float) -> tuple[tuple[str, str, Measure], ...]:
    """Return the rates of form that KTD-Fin defines for itself."""
    infos = {info.id: info for info in (*PANEL, *DIAGNOSTICS)}
    values = {
        "parse_failure_rate": parse_failure_rate(records, level),
        "tool_validity_rate": tool_validity_rate(records, level),
    }
    return tuple((infos[name].title, infos[name].defined, value) for name, value in values.items())


def _confidence(run: Run, journals: dict[str, tuple[StepRecord, ...]]) -> ConfidenceNote | None:
    """Return confidences against what came true, over all repetitions; None when none was ever stated."""
    stated = any(
        order.confidence is not None and order.side is not None
        for records in journals.values()
        for record in records
        for order in record.decision.orders
    )
    if not stated:
        return None
    key = next(iter(journals))
    benchmark = run.manifest.benchmark(run.episode(key))
    if benchmark.market.fill != "open":
        return _no_confidence("orders are judged from open to open, and here they fill at the close")
    try:
        snapshot = run.snapshot(key)
        outcomes = [order_outcomes(records, snapshot) for records in journals.values()]
    except (DataError, RunError):
        return _no_confidence("the data cannot be read")
    judged = [
        (one.confidence, right, one.step)
        for part in outcomes
        for one in part
        if (right := one.right(benchmark.convention)) is not None and 0.0 <= one.confidence <= 1.0
    ]
    stated_at, came_true, step = (np.array([row[place] for row in judged]) for place in range(3))
    scored = calibration(stated_at, came_true, step.astype(np.int64), bootstrap=run.spec.bootstrap)
    bins = calibration_curve(stated_at, came_true) if judged else ()
    return ConfidenceNote(bins=bins, ece=scored["ece"], brier=scored["brier"])


def _no_confidence(reason: str) -> ConfidenceNote:
    return ConfidenceNote(bins=(), ece=not_scored(reason), brier=not_scored(reason))
