"""Decide one slot: complete the packet, ask the agent, record every answer, and return the
choice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

import msgspec
from sqlalchemy import case, func, select
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from tradeassay.core.errors import DataError, TradeassayError
from tradeassay.core.hashing import canonical_json, sha256_bytes
from tradeassay_arena.agents import EntryAgent, OutsideAgent
from tradeassay_arena.rounds.money import accounts, outcomes
from tradeassay_arena.rounds.spending import SeasonCapped
from tradeassay_arena.season import Season
from tradeassay_arena.state.rows import ClosedSlot, ModelCall, Round, Slot, SlotStart
from tradeassay_arena.state.store import Store
from tradeassay_arena.state.tables import decisions, slots
from tradeassay_bench.core.arena import AgentChoice, ChoiceFailure, Packet, PeerMessage
from tradeassay_bench.core.dialogue import AskModel, ModelReply, Usage
from tradeassay_bench.core.drive import Ended, advance, fault_of
from tradeassay_bench.llm import QuestionPlace, RecordingMismatch
from tradeassay_bench.play.episode import AddressedQuestion, Answerer, recorded

_REPLY = msgspec.json.Decoder(ModelReply)
_SHARED = msgspec.json.Decoder(dict[str, dict[str, Any]])


def packets(store: Store, season: Season, round: Round) -> Mapping[str, Packet]:
    """Return the packet of each entry in a round.

    It has the common facts, the entry's position, and the entry's past outcomes.
    """
    common, season = store.packet(round.id), season.on(round.session)
    shared = {} if round.shared is None else _SHARED.decode(round.shared)
    with store.read() as db:
        held = accounts(db, season, round)
        # The newest message of every entry about this asset from earlier sessions.
        said: dict[str, PeerMessage] = {}
        if season.rules.messages:
            own = slots.c["entry", "session", "message"]
            query = (
                select(*own)
                .filter_by(season=season.id, asset=round.asset)
                .order_by(own.session, own.entry)
            )
            for row in db.execute(
                query.where(own.session < round.session, own.message.is_not(None))
            ):
                said[row.entry] = PeerMessage(
                    entry=row.entry, date=row.session, text=row.message[:500]
                )
        pasts = outcomes(db, season.id, round.asset, round.session, most=10)
    return {
        entry.id: msgspec.structs.replace(
            common,
            position=held.get(entry.id, (0, 1.0))[0],
            outcomes=tuple(pasts.get(entry.id, ())),
            others=tuple(message for id, message in sorted(said.items()) if id != entry.id),
            **shared.get(entry.id, {}),
        )
        for entry in season.all_entries
    }


@lru_cache(maxsize=512)
def _written(request: AskModel) -> tuple[bytes, str]:
    """Return a question in its stored form, with its hash.

    The question as data is left out, because it is never sent to a model and repeats the messages.
    Results are cached, because several models receive the same question.
    """
    body = canonical_json(msgspec.structs.replace(request, given=msgspec.UNSET))
    return body, sha256_bytes(body)


class _SlotRecord:
    """Records the questions and answers of one slot.

    The class is a :class:`~tradeassay_bench.play.episode.Recorder`. An answer that costs money or
    cannot be repeated is written immediately. Other answers are written together with the decision
    (``unwritten``).
    """

    def __init__(
        self, store: Store, slot: Slot, known: tuple[ModelCall, ...], *, each_call: bool
    ) -> None:
        self._store, self._slot, self._each_call = store, slot, each_call
        self._known = {call.number: call for call in known}
        self._asked: dict[int, tuple[bytes, str]] = {}
        self.count = 0
        self.unwritten: list[ModelCall] = []
        self.answered = 0
        self.usage = Usage(usd=0.0)

    def known(self, asked: AddressedQuestion[AskModel]) -> ModelReply | None:
        """Return the recorded reply to a question, or None if the question is new.

        Raises :class:`DataError` if the recorded question differs.
        """
        number = asked.place.index
        self._asked[number] = _written(asked.request)
        self.count += 1
        call = self._known.get(number)
        if call is None:
            return None
        if call.request_sha256 != self._asked[number][1]:
            raise DataError(
                f"slot {self._slot.id} asks another question {number} than it did before it was "
                "interrupted",
                hint="run the version of tradeassay and the agents that started this season",
            )
        reply = _REPLY.decode(call.reply)
        self.answered += 1
        self.usage = self.usage.plus(reply.usage)
        return reply

    def note(self, asked: AddressedQuestion[AskModel], reply: ModelReply) -> None:
        """Record a reply. With ``each_call`` it is written immediately."""
        request, digest = self._asked.pop(asked.place.index)
        call = ModelCall(
            number=asked.place.index,
            purpose=asked.request.purpose,
            request_sha256=digest,
            request=request,
            reply=msgspec.json.encode(reply),
        )
        if self._each_call:
            self._store.record_call(self._slot.id, call)
        else:
            self.unwritten.append(call)
        self.answered += 1
        self.usage = self.usage.plus(reply.usage)


class NeverAsked(TimeoutError):
    """Raised if a recorded decision timed out before this question.

    All earlier questions were answered.
    """


class _NoModel:
    """The placeholder for the model of an entry without a model.

    It raises :class:`DataError` if it is asked.
    """

    async def ask(self, request: AskModel, place: QuestionPlace) -> ModelReply:
        entry = place.episode.rpartition("/")[2]
        raise DataError(f"entry '{entry}' has no model to ask", hint="give the entry a model")


async def run_deliberation(
    dialogue: Generator[Any, Any, AgentChoice],
    slot: Slot,
    model: Answerer,
    record: _SlotRecord,
    *,
    in_turn: bool,
) -> AgentChoice:
    """Run a deliberation to its end, and return the choice.

    Questions that are yielded together are asked concurrently and numbered in their order. With
    ``in_turn`` they are asked one after another, which is cheaper for answers that take no time.
    """
    answer, number = recorded(model, record), 0
    try:
        now = advance(dialogue)
        while not isinstance(now, Ended):
            asked = now if isinstance(now, tuple) else (now,)
            wanted = [
                AddressedQuestion(question, question_place(slot, number + i))
                for i, question in enumerate(asked)
            ]
            number += len(wanted)
            if len(wanted) == 1 or in_turn:
                replies, failed = [], None
                for one in wanted:
                    try:
                        replies.append(await answer(one))
                    except Exception as error:  # the other answers are still recorded
                        failed = failed or error
                if failed is not None:
                    raise failed
            else:
                # Answers stay on record when time runs out. If one call raises, wait for the other
                # calls: they are already paid for.
                tasks = [asyncio.ensure_future(answer(one)) for one in wanted]
                try:
                    await asyncio.gather(*tasks, return_exceptions=True)
                finally:
                    for task in tasks:
                        task.cancel()
                replies = [task.result() for task in tasks]
            now = advance(dialogue, tuple(replies) if isinstance(now, tuple) else replies[0])
        return now.result
    finally:
        dialogue.close()


A = TypeVar("A")
B = TypeVar("B")


class Batcher(Generic[A, B]):
    """Combines calls of the same moment into one call. Each caller receives its own result.

    When a round opens, fifty agents may answer at the same moment. Fifty separate calls would need
    fifty threads of one interpreter and fifty transactions on one disk. With ``thread``, the
    combined call runs in a separate thread.
    """

    def __init__(self, do: Callable[[Sequence[A]], Sequence[B]], *, thread: bool = True) -> None:
        self._do, self._thread = do, thread
        self._asked: list[tuple[A, asyncio.Future[B]]] = []
        self._asking: asyncio.Task[None] | None = None

    async def ask(self, what: A) -> B:
        """Return the result for one argument. Raises the error of the combined call."""
        here = asyncio.get_running_loop()
        if self._asking is None or self._asking.done() or self._asking.get_loop() is not here:
            self._asked = []
            self._asking = here.create_task(self._ask())
        answer: asyncio.Future[B] = here.create_future()
        self._asked.append((what, answer))
        return await answer

    async def _ask(self) -> None:
        while (
            self._asked
        ):  # Small batches, so that the first callers do not wait for the last caller.
            now, self._asked = self._asked[:64], self._asked[64:]
            await self._answer(now)

    async def _answer(self, now: list[tuple[A, asyncio.Future[B]]]) -> None:
        try:
            asked = [what for what, _ in now]
            found = await asyncio.to_thread(self._do, asked) if self._thread else self._do(asked)
        except (
            BaseException
        ) as error:  # The callers must get the error. Otherwise they would wait for ever.
            apart = isinstance(error, Exception) and not isinstance(error, OperationalError)
            if len(now) > 1 and apart:  # A single argument may be the cause.
                for one in now:
                    await self._answer([one])
                return
            for _, answer in now:
                if not answer.done():
                    answer.set_exception(error)
            if isinstance(error, asyncio.CancelledError):
                raise
            return
        for (_, answer), given in zip(now, found, strict=True):
            if not answer.done():  # The caller may have stopped waiting.
                answer.set_result(given)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlotDecider:
    """Decides slots. Time-outs, budgets and faults of agents become HOLD decisions with a reason.

    Slots that are decided at the same moment are closed in one transaction (``closed``), because a
    disk takes as long for one slot as for fifty.
    """

    store: Store
    season: Season
    agents: Mapping[str, EntryAgent]
    closed: Batcher[ClosedSlot, int]

    async def decide(self, slot: Slot, packet: Packet, known: SlotStart) -> ClosedSlot | None:
        """Decide one slot.

        A decision that cannot be repeated is written immediately, and None is returned. Any other
        decision is returned, and the caller writes it later.
        """
        agent = self.agents.get(slot.entry)
        record = _SlotRecord(
            self.store, slot, known.calls, each_call=agent is None or agent.each_call
        )
        try:
            if agent is None:
                raise TradeassayError(f"entry '{slot.entry}' has no agent")
            spent = over_budget(self.store, self.season, slot) if agent.model is not None else None
            if spent is not None and not known.calls:
                decided = _closed(slot, packet, record, _failure("over_budget", spent))
            else:
                if isinstance(agent.agent, OutsideAgent):
                    making = agent.agent.decide(packet)
                else:
                    dialogue, model = (
                        agent.agent.deliberate(packet, known.memory),
                        agent.model or _NoModel(),
                    )
                    making = run_deliberation(dialogue, slot, model, record, in_turn=agent.recorded)
                # A rule or a recording answers at once, so a time-out would cost more than the
                # answer.
                at_once = agent.repeatable and (agent.model is None or agent.recorded)
                choice = await (
                    making if at_once else asyncio.wait_for(making, self.season.timeout_s)
                )
                decided = _closed(slot, packet, record, choice)
        except TimeoutError as error:
            if isinstance(error, NeverAsked):
                record.count = record.answered
            late = f"no decision within {self.season.timeout_s} s"
            decided = _closed(slot, packet, record, _failure("timeout", late))
        except (SQLAlchemyError, RecordingMismatch, SeasonCapped):
            raise  # This is a fault of the database, the recording or the budget, not of the agent.
        except (TradeassayError, ValueError) as error:
            decided = _closed(slot, packet, record, _failure("agent", str(error)))
        except Exception as error:
            decided = _closed(slot, packet, record, _failure("agent", str(fault_of(error))))
        if agent is not None and agent.repeatable:
            return decided
        await self.closed.ask(decided)
        return None


def question_place(slot: Slot, number: int) -> QuestionPlace:
    step = int(slot.session.replace("-", ""))
    return QuestionPlace(
        episode=f"{slot.season}/{slot.asset}/{slot.entry}", step=step, sample=0, index=number
    )


def _failure(kind: str, text: str) -> AgentChoice:
    failure = ChoiceFailure(kind=kind, text=text[:2000])
    return AgentChoice(action="HOLD", status="failed", reasoning="", failures=(failure,))


def _closed(slot: Slot, packet: Packet, record: _SlotRecord, choice: AgentChoice) -> ClosedSlot:
    """Return a closed slot with its choice, its answers and its cost so far.

    A failed decision has answers and cost too.
    """
    unpriced = choice.status == "failed" and record.count and not record.answered
    return ClosedSlot(
        slot=slot,
        choice=choice,
        usage=Usage(usd=None) if unpriced else record.usage,
        calls=record.count,
        decided_at=packet.decided_at,
        unwritten=tuple(record.unwritten),
    )


def over_budget(store: Store, season: Season, slot: Slot) -> str | None:
    """Return a sentence on the budget limit that stops a slot, or None."""
    budget = season.budget
    if not budget.any:
        return None
    own = decisions.c
    used = own.input_tokens + own.output_tokens
    sums = (  # A negative reported cost must not increase the budget.
        func.coalesce(func.sum(case((own.usd > 0, own.usd), else_=0.0)), 0.0),
        func.coalesce(func.sum(case((used > 0, used), else_=0)), 0),
        func.coalesce(func.sum(case((own.usd.is_(None) & (used > 0), 1), else_=0)), 0),
    )
    mine = own.season == season.id
    parts = (
        ("the season", "", (mine,)),
        (f"entry '{slot.entry}'", "_per_entry", (mine, own.entry == slot.entry)),
        (f"session {slot.session}", "_per_day", (mine, own.session == slot.session)),
    )
    with store.read() as db:
        for what, name, where in parts:
            usd, tokens = getattr(budget, f"usd{name}"), getattr(budget, f"tokens{name}")
            if usd is None and tokens is None:
                continue
            spent_usd, spent_tokens, priceless = db.execute(select(*sums).where(*where)).one()
            if usd is not None and priceless:
                return (
                    f"{what} has {priceless} decisions of an unknown price, so {usd:g} dollars "
                    "cannot be kept"
                )
            if usd is not None and spent_usd >= usd:
                return f"{what} has spent {spent_usd:.2f} of {usd:g} dollars"
            if tokens is not None and spent_tokens >= tokens:
                return f"{what} has used {spent_tokens} of {tokens} tokens"
    return None
