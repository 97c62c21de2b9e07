"""Summarise an agent that is a model: its cost, mistakes, calibration and conversations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import msgspec
import numpy as np

from tradeassay.core.errors import DataError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics import Calibration, calibration, calibration_curve, rate_measure
from tradeassay_bench.benchmarks.ktdfin.panel import (
    DIAGNOSTICS,
    PANEL,
    order_outcomes,
    parse_failure_rate,
    tool_validity_rate,
)
from tradeassay_bench.benchmarks.stockbench.panel import NOTES
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.core.events import (
    Expired,
    Filled,
    Marked,
    Rejected,
    Rested,
    StepRecord,
    Trimmed,
)
from tradeassay_bench.play.dialogue_log import DialogueLine, Spending
from tradeassay_bench.runs.score import NET_RETURN, AgentScores
from tradeassay_bench.runs.store.run import Run
from tradeassay_bench.runs.summary.rows import (
    CallNote,
    DecisionNote,
    ErrorRow,
    FailureCause,
    FateTone,
    FormRate,
    ModelSummary,
    OrderNote,
    ShownTurn,
)

MOST_TALKS = 1_000
"""The maximum number of displayed conversations in a run. All models of the run share it."""
MOST_DECISIONS = 20_000
"""The maximum number of displayed decisions in a run. All agents of the run share it."""
MOST_CAUSES = 3
MOST_CHARACTERS = 6_000
"""The maximum length of a displayed text, in characters. The full text is in the run's folder."""
MOST_ORDERS = 40
OrderEvent = Filled | Rejected | Trimmed | Rested | Expired


def model_summary(run: Run, row: AgentScores) -> ModelSummary | None:
    """Return the summary of a model without the figures from its journals; None for a rule."""
    episode = run.episode(row.episodes[0])
    badge = run.badges(episode.key).model
    if not episode.by_model or badge == "none":
        return None
    record = run.manifest.protocols.get(episode.setting)
    mask = None if record is None else record.config.get("mask")
    cost = None
    if not isinstance(row.inference, msgspec.UnsetType) and not row.inference.unstated:
        cost = row.inference
    net = row.measures.get(NET_RETURN)
    model = run.manifest.models.get(episode.label)
    return ModelSummary(
        # An external program has the conversation of a model, but the manifest lists it as an agent
        # only.
        model=f"{episode.agent.name} agent" if model is None else model.model,
        answers=badge,
        mask=str(mask) if mask not in (None, "bright") else None,
        cost=cost,
        net_return=None if net is None else net.median,
    )


def journals_of(run: Run, row: AgentScores) -> dict[str, tuple[StepRecord, ...]]:
    """Return the journals of an agent's finished and failed episodes, by key."""
    return {key: tuple(run.records(key)) for key in row.episodes if run.outcome(key) is not None}


def model_details(run: Run, row: AgentScores, summary: ModelSummary) -> ModelSummary:
    """Return a model's summary with its mistakes, its calibration and its rates of valid format."""
    journals = journals_of(run, row)
    level = run.spec.bootstrap.level
    every = list(chain.from_iterable(journals.values()))
    rates: dict[str, Measure] = {}
    if run.manifest.benchmark(run.episode(row.episodes[0])).protocol == "ktdfin":
        rates["parse_failure_rate"] = parse_failure_rate(every, level)
        rates["tool_validity_rate"] = tool_validity_rate(every, level)
    infos = {info.id: info for info in (*PANEL, *DIAGNOSTICS)}
    return msgspec.structs.replace(
        summary,
        sessions=len(every),
        errors=error_rows(every, level),
        rates=tuple(
            FormRate(title=infos[name].title, defined=infos[name].defined, rate=rate)
            for name, rate in rates.items()
        ),
        confidence=calibration_of(run, journals),
    )


def error_rows(records: Sequence[StepRecord], level: float) -> tuple[ErrorRow, ...]:
    """Return mistakes by kind, the most frequent first.

    Mistakes that the model corrected in a later attempt are included.
    """
    kinds = [[failure.kind for failure in record.decision.failures] for record in records]
    answers, sessions = Counter[str](), Counter[str]()
    for session_kinds in kinds:
        answers.update(session_kinds)
        sessions.update(set(session_kinds))
    return tuple(
        ErrorRow(
            kind=kind,
            answers=answers[kind],
            sessions=sessions[kind],
            rate=rate_measure(
                sessions[kind], len(records), nothing="no session was played", level=level
            ),
        )
        for kind in sorted(answers, key=lambda kind: (kind in NOTES, -answers[kind], kind))
    )


def calibration_of(run: Run, journals: Mapping[str, Sequence[StepRecord]]) -> Calibration | None:
    """Return the calibration of an agent's stated confidences over all its episodes.

    An order is judged by the price change from the open at which it fills to the next open. If
    orders fill at the close, the result has a reason instead of numbers. Returns None if no order
    states a confidence.
    """
    every = chain.from_iterable(journals.values())
    orders = chain.from_iterable(record.decision.orders for record in every)
    if not any(order.confidence is not None and order.side is not None for order in orders):
        return None
    key = next(iter(journals))
    benchmark = run.manifest.benchmark(run.episode(key))
    why = "orders are judged from open to open, and here they fill at the close"
    outcomes = None
    if benchmark.market.fill == "open":
        try:
            snapshot = run.snapshot(key)
            outcomes = [order_outcomes(records, snapshot) for records in journals.values()]
        except (DataError, RunError):
            why = "the data cannot be read"
    if outcomes is None:
        return Calibration(ece=not_scored(why), brier=not_scored(why))
    judged = []
    for of_episode in outcomes:
        for outcome in of_episode:
            right = outcome.right(benchmark.convention)
            if right is not None and 0.0 <= outcome.confidence <= 1.0:
                judged.append((outcome.confidence, right, outcome.step))
    stated_at, came_true, step = (np.array([row[place] for row in judged]) for place in range(3))
    scored = calibration(stated_at, came_true, step.astype(np.int64), bootstrap=run.spec.bootstrap)
    bins = calibration_curve(stated_at, came_true) if judged else ()
    return Calibration(ece=scored["ece"], brier=scored["brier"], bins=bins)


def decision_notes(
    records: Sequence[StepRecord], dialogue: Iterable[DialogueLine], *, talks: int, most: int
) -> tuple[tuple[DecisionNote, ...], int]:
    """Return the ``most`` latest decisions, newest first, and the number of omitted decisions.

    The decisions of the ``talks`` most interesting sessions are also returned, with their
    conversations.
    """
    why = interesting(records, talks) if talks else {}
    by_step: dict[int, list[DialogueLine]] = {}
    spent: dict[int, Spending] = {}
    for line in dialogue:
        spent[line.step] = spent.get(line.step, Spending()).plus(line.reply.usage)
        if line.step in why:
            by_step.setdefault(line.step, []).append(line)
    latest = {record.step for record in records[-most:]}
    kept = [record for record in records if record.step in latest or record.step in by_step]
    fates = Fates(records, kept[0].step if kept else 0)
    notes = []
    for record in reversed(kept):
        lines, cost = by_step.get(record.step, []), spent.get(record.step, Spending())
        orders = []
        for place, order in enumerate(record.decision.orders[:MOST_ORDERS]):
            tone, fate = fates.of(record.step, place)
            clipped_order = msgspec.structs.replace(order, reason=clipped(order.reason))
            orders.append(OrderNote(order=clipped_order, tone=tone, fate=fate))
        notes.append(
            DecisionNote(
                session=record.session,
                reason=clipped(record.decision.reason),
                failed=record.decision.status == "failed",
                orders=tuple(orders),
                problems=tuple(
                    clipped(f"{failure.kind}: {failure.detail}")
                    for failure in record.decision.failures
                ),
                turns=turns(lines),
                attempts=lines[-1].attempt if lines else 0,
                tokens=cost.tokens,
                usd=cost.known_usd,
                more_orders=max(0, len(record.decision.orders) - MOST_ORDERS),
                why=why[record.step] if lines else "",
            )
        )
    return tuple(notes), len(records) - len(notes)


def first_causes(run: Run, key: str) -> tuple[FailureCause, ...]:
    """Return the first unusable answers of an episode, with reasons, and its exception, if any.

    Equal reasons are returned only once.
    """
    causes: dict[tuple[str, str], FailureCause] = {}
    outcome, journal = run.outcome(key), run.journal(key)
    if outcome is not None and outcome.traceback:
        causes["", ""] = FailureCause(
            session="",
            kind="exception",
            detail=clipped(str(outcome.error), 600),
            answer=clipped("\n".join(outcome.traceback.strip().splitlines()[-3:]), 600),
            where=f"{journal.parent.relative_to(run.folder)}/outcome.json",
        )
    answers: dict[int, list[str]] = {}
    for line in run.dialogue(key):
        calls = "; ".join(f"{call.name}({call.arguments})" for call in line.reply.calls)
        answer = "" if line.reply.error else line.reply.text or calls or "(an empty answer)"
        answers.setdefault(line.step, []).append(answer)
    for number, record in enumerate(run.records(key), start=1):
        of_step = answers.get(record.step, [])
        for place, failure in enumerate(record.decision.failures):
            if len(causes) < MOST_CAUSES and (failure.kind, failure.detail) not in causes:
                causes[failure.kind, failure.detail] = FailureCause(
                    session=record.session,
                    kind=failure.kind,
                    detail=clipped(failure.detail, 600),
                    answer=clipped(of_step[min(place, len(of_step) - 1)], 600) if of_step else "",
                    where=f"{journal.relative_to(run.folder)}:{number}",
                )
    return tuple(causes.values())


def interesting(records: Sequence[StepRecord], most: int) -> dict[int, str]:
    """Return the ``most`` most interesting sessions, as a mapping from steps to reasons.

    The sessions are chosen in turn by five reasons: most mistakes, largest loss, largest gain,
    largest trades, latest session.
    """
    last = [record.events[-1] if record.events else None for record in records]
    navs = [event.nav if isinstance(event, Marked) else None for event in last]
    moved, changes = {}, {}
    for place, record in enumerate(records):
        fills = (event for event in record.events if isinstance(event, Filled))
        moved[record.step] = sum(abs(fill.quantity * fill.price) for fill in fills)
        before, after = navs[place - 1] if place else None, navs[place]
        changes[record.step] = after / before - 1.0 if before and after is not None else 0.0
    mistakes = {
        r.step: len(r.decision.failures) + 1_000 * (r.decision.status == "failed") for r in records
    }
    ranked = [
        ("mistakes", sorted((s for s in mistakes if mistakes[s]), key=lambda s: -mistakes[s])),
        ("large loss", sorted((s for s in changes if changes[s] < 0), key=lambda s: changes[s])),
        ("large gain", sorted((s for s in changes if changes[s] > 0), key=lambda s: -changes[s])),
        ("much traded", sorted((s for s in moved if moved[s]), key=lambda s: -moved[s])),
        ("latest", [record.step for record in reversed(records)]),
    ]
    queues = [(why, iter(steps)) for why, steps in ranked]
    chosen: dict[int, str] = {}
    while len(chosen) < min(most, len(records)):
        for why, steps in queues:
            step = next((candidate for candidate in steps if candidate not in chosen), None)
            if step is not None and len(chosen) < most:
                chosen[step] = why
    return chosen


def turns(lines: Sequence[DialogueLine]) -> tuple[ShownTurn, ...]:
    """Return the questions and answers of one session, with the results of tool calls."""
    # The keys are the index of the answer and the id of the call, because ids may repeat.
    results: dict[tuple[int, str], str] = {}
    waiting: dict[str, list[int]] = {}
    for place, line in enumerate(lines):
        for message in line.messages:
            if (
                message.role == "tool"
                and message.call_id is not None
                and waiting.get(message.call_id)
            ):
                results[waiting[message.call_id].pop(0), message.call_id] = clipped(message.text)
        for call in line.reply.calls:
            waiting.setdefault(call.id, []).append(place)
    earlier_answers: set[str] = set()
    shown_turns = []
    for place, line in enumerate(lines):
        reply = line.reply
        shown_turns.append(
            ShownTurn(
                purpose=line.purpose,
                attempt=line.attempt,
                # Earlier answers and results of calls are left out, because they are displayed with
                # their own turns.
                asked=tuple(
                    (message.role, clipped(message.text))
                    for message in line.messages
                    if message.role != "tool"
                    and (
                        message.role != "assistant"
                        or (message.text and message.text not in earlier_answers)
                    )
                ),
                said=clipped(reply.text),
                calls=tuple(
                    CallNote(
                        name=clipped(call.name),
                        arguments=clipped(call.arguments),
                        result=results.get((place, call.id)),
                        found_in=call.found_in,
                    )
                    for call in reply.calls
                ),
                error=None
                if reply.error is None
                else f"{reply.error_kind or 'error'}: {clipped(reply.error)}",
            )
        )
        earlier_answers.add(reply.text)
    return tuple(shown_turns)


def clipped(text: str, most: int = MOST_CHARACTERS) -> str:
    """Return a text, cut after ``most`` characters with the number of omitted characters."""
    return text if len(text) <= most else f"{text[:most]} … [{len(text) - most:,} characters more]"


class Fates:
    """Looks up what happened to the orders of a journal, including fills in later sessions.

    Events before step ``first`` are ignored.
    """

    def __init__(self, records: Sequence[StepRecord], first: int = 0) -> None:
        self._events: dict[str, list[OrderEvent]] = {}
        for record in records:
            if record.step < first:
                continue
            for event in (*record.opening, *record.events):
                if isinstance(event, OrderEvent):
                    self._events.setdefault(event.order_id, []).append(event)

    def of(self, step: int, place: int) -> tuple[FateTone, str]:
        """Return what happened to an order, as a category and as text.

        ``place`` is the index of the order in the decision of the step.
        """
        events = self._events.get(f"{step}.{place}", [])
        fills = [event for event in events if isinstance(event, Filled)]
        refused = [event for event in events if isinstance(event, Rejected)]
        trimmed = [event for event in events if isinstance(event, Trimmed)]
        parts = []
        if fills:
            quantity = sum(fill.quantity for fill in fills)
            size = sum(abs(fill.quantity) for fill in fills)
            worth = sum(abs(fill.quantity) * fill.price for fill in fills)
            price = worth / size if size else fills[0].price
            costs = sum(fill.fee + fill.tax for fill in fills)
            done = f"{'bought' if quantity > 0 else 'sold'} {abs(quantity):,.10g} at {price:,.6g}"
            parts.append(done + (f", costs {costs:,.2f}" if costs else ""))
        parts += [
            f"of {event.asked:,.10g} ordered ({event.reason.replace('_', ' ')})"
            for event in trimmed
        ]
        for rejection in refused:
            why = rejection.reason.replace("_", " ")
            why += f" ({rejection.detail})" if rejection.detail else ""
            parts.append(f"{'rest ' if fills else ''}refused: {why}")
        if any(isinstance(event, Expired) for event in events):
            parts.append("expired before its price was reached")
        elif not fills and any(isinstance(event, Rested) for event in events):
            parts.append("waiting at the end")
        if fills:
            return ("partly" if trimmed or refused else "filled"), "; ".join(parts)
        if refused:
            return "refused", "; ".join(parts)
        return ("waiting", "; ".join(parts)) if parts else ("nothing", "no trade")
