"""One slot: the packet is completed, the agent asked, every answer kept, the choice handed over."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Generic, TypeVar

import msgspec
from sqlalchemy import case, func, select
from sqlalchemy.exc import OperationalError, SQLAlchemyError

from tradeassay.arena.agents import EntryAgent, OutsideAgent
from tradeassay.arena.rounds.money import accounts, outcomes
from tradeassay.arena.rounds.spending import SeasonCapped
from tradeassay.arena.season import Season
from tradeassay.arena.state.rows import ClosedSlot, Known, ModelCall, Round, Slot
from tradeassay.arena.state.store import Store
from tradeassay.arena.state.tables import decisions, slots
from tradeassay.core.arena import AgentChoice, ChoiceFailure, Packet, PeerMessage
from tradeassay.core.dialogue import AskModel, ModelReply, Usage
from tradeassay.core.drive import Ended, advance, fault_of
from tradeassay.core.errors import DataError, TradeassayError
from tradeassay.core.hashing import canonical_json, sha256_bytes
from tradeassay.llm import CassetteMismatch, QuestionPlace
from tradeassay.play.episode import Answerer, Asked, recorded

_REPLY = msgspec.json.Decoder(ModelReply)
_SHARED = msgspec.json.Decoder(dict[str, dict[str, Any]])


def packets(store: Store, season: Season, round: Round) -> Mapping[str, Packet]:
    """Return what each entry is told in a round: the common packet, its own position, its own past."""
    common, season = store.packet(round.id), season.on(round.session)
    shared = {} if round.shared is None else _SHARED.decode(round.shared)
    with store.read() as db:
        held = accounts(db, season, round)
        # The newest message of every entry about this asset, of earlier sessions.
        said: dict[str, PeerMessage] = {}
        if season.rules.messages:
            own = slots.c["entry", "session", "message"]
            query = select(*own).filter_by(season=season.id, asset=round.asset).order_by(own.session, own.entry)
            for row in db.execute(query.where(own.session < round.session, own.message.is_not(None))):
                said[row.entry] = PeerMessage(entry=row.entry, date=row.session, text=row.message[:500])
        pasts = outcomes(db, season.id, round.asset, round.session, most=10)
    return {
        entry.id: msgspec.structs.replace(
            common,
            position=held.get(entry.id, (0, 1.0))[0],
            outcomes=tuple(pasts.get(entry.id, ())),
            others=tuple(message for id, message in sorted(said.items()) if id != entry.id),
            **shared.get(entry.id, {}),
        )
        for entry in season.everyone
    }


@lru_cache(maxsize=512)
def _written(request: AskModel) -> tuple[bytes, str]:
    """Return a question as it is kept, and its hash; several models are asked the same one.

    The question as data is left out: it is never sent to a model, and says what the messages say."""
    body = canonical_json(msgspec.structs.replace(request, given=msgspec.UNSET))
    return body, sha256_bytes(body)


class _SlotRecord:
    """Keeps what is said in one slot; a :class:`~tradeassay.play.episode.Recorder`.

    Answers that cost money or would come out differently are written one by one, before anything depends on them;
    the others together with the decision (``unwritten``)."""

    def __init__(self, store: Store, slot: Slot, known: tuple[ModelCall, ...], *, each_call: bool) -> None:
        self._store, self._slot, self._each_call = store, slot, each_call
        self._known = {call.number: call for call in known}
        self._asked: dict[int, tuple[bytes, str]] = {}
        self.count = 0
        self.unwritten: list[ModelCall] = []
        self.answered = 0
        self.usage = Usage(usd=0.0)

    def known(self, asked: Asked[AskModel]) -> ModelReply | None:
        number = asked.place.index
        self._asked[number] = _written(asked.request)
        self.count += 1
        call = self._known.get(number)
        if call is None:
            return None
        if call.request_sha256 != self._asked[number][1]:
            raise DataError(
                f"slot {self._slot.id} asks another question {number} than it did before it was interrupted",
                hint="run the version of tradeassay and the agents that started this season",
            )
        reply = _REPLY.decode(call.reply)
        self.answered += 1
        self.usage = self.usage.plus(reply.usage)
        return reply

    def note(self, asked: Asked[AskModel], reply: ModelReply) -> None:
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
    """A recorded decision ran out of time when all it had asked was answered, before this question."""


class _NoModel:
    """Answers for an entry without a model."""

    async def ask(self, request: AskModel, place: QuestionPlace) -> ModelReply:
        entry = place.episode.rpartition("/")[2]
        raise DataError(f"entry '{entry}' asks a model but has none", hint="give the entry a model")


async def deliberated(
    dialogue: Generator[Any, Any, AgentChoice], slot: Slot, model: Answerer, record: _SlotRecord, *, in_turn: bool
) -> AgentChoice:
    """Carry a deliberation to its end. Questions that come together are asked at once, numbered in their order.

    ``in_turn`` asks them one after another, which is less work where nobody has to be waited for."""
    answer, number = recorded(model, record), 0
    try:
        now = advance(dialogue)
        while not isinstance(now, Ended):
            asked = now if isinstance(now, tuple) else (now,)
            wanted = [Asked(question, question_place(slot, number + i)) for i, question in enumerate(asked)]
            number += len(wanted)
            if len(wanted) == 1 or in_turn:
                replies, failed = [], None
                for one in wanted:
                    try:
                        replies.append(await answer(one))
                    except Exception as error:  # the others are on record all the same
                        failed = failed or error
                if failed is not None:
                    raise failed
            else:
                # What was answered stays on record when time runs out. When one raises, the others are waited
                # for: they are paid for already.
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


class Together(Generic[A, B]):
    """Puts the questions of all who ask in the same moment as one; each gets its own answer.

    When a round opens fifty agents come at once. Were each to ask for itself, fifty threads would wait for one
    interpreter and fifty transactions for one disk. ``thread``: it is done in a thread of its own."""

    def __init__(self, do: Callable[[Sequence[A]], Sequence[B]], *, thread: bool = True) -> None:
        self._do, self._thread = do, thread
        self._asked: list[tuple[A, asyncio.Future[B]]] = []
        self._asking: asyncio.Task[None] | None = None

    async def ask(self, what: A) -> B:
        """Return the answer to a question; raises what putting it raised."""
        here = asyncio.get_running_loop()
        if self._asking is None or self._asking.done() or self._asking.get_loop() is not here:
            self._asked = []
            self._asking = here.create_task(self._ask())
        answer: asyncio.Future[B] = here.create_future()
        self._asked.append((what, answer))
        return await answer

    async def _ask(self) -> None:
        while self._asked:  # more at once would let those who came first wait for the last
            now, self._asked = self._asked[:64], self._asked[64:]
            await self._answer(now)

    async def _answer(self, now: list[tuple[A, asyncio.Future[B]]]) -> None:
        try:
            asked = [what for what, _ in now]
            found = await asyncio.to_thread(self._do, asked) if self._thread else self._do(asked)
        except BaseException as error:  # nobody else would hear of it, and those who wait would wait for ever
            apart = isinstance(error, Exception) and not isinstance(error, OperationalError)
            if len(now) > 1 and apart:  # one of them may have spoilt it for all
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
            if not answer.done():  # whoever asked may have gone
                answer.set_result(given)


@dataclass(frozen=True, slots=True, kw_only=True)
class Slots:
    """Decides slots: time-outs, budgets and faults of agents end here, as decisions that hold and say why.

    Those decided in one moment are ``closed`` in one transaction: a disk takes as long for one as for fifty."""

    store: Store
    season: Season
    agents: Mapping[str, EntryAgent]
    closed: Together[ClosedSlot, int]

    async def decide(self, slot: Slot, packet: Packet, known: Known) -> ClosedSlot | None:
        """Decide one slot. What cannot be repeated is written at once, the rest returned to be written later."""
        agent = self.agents.get(slot.entry)
        record = _SlotRecord(self.store, slot, known.calls, each_call=agent is None or agent.each_call)
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
                    dialogue, model = agent.agent.deliberate(packet, known.memory), agent.model or _NoModel()
                    making = deliberated(dialogue, slot, model, record, in_turn=agent.recorded)
                # A rule or a record answers at once: a timeout around it would cost more than it does.
                at_once = agent.repeatable and (agent.model is None or agent.recorded)
                choice = await (making if at_once else asyncio.wait_for(making, self.season.timeout_s))
                decided = _closed(slot, packet, record, choice)
        except TimeoutError as error:
            if isinstance(error, NeverAsked):
                record.count = record.answered
            late = f"no decision within {self.season.timeout_s} s"
            decided = _closed(slot, packet, record, _failure("timeout", late))
        except (SQLAlchemyError, CassetteMismatch, SeasonCapped):
            raise  # the arena's own trouble, a replay of something else, or no money: not the agent's fault
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
    return QuestionPlace(episode=f"{slot.season}/{slot.asset}/{slot.entry}", step=step, sample=0, index=number)


def _failure(kind: str, text: str) -> AgentChoice:
    failure = ChoiceFailure(kind=kind, text=text[:2000])
    return AgentChoice(action="HOLD", status="failed", reasoning="", failures=(failure,))


def _closed(slot: Slot, packet: Packet, record: _SlotRecord, choice: AgentChoice) -> ClosedSlot:
    """Return a slot's decision; what was answered and paid until then stays on record, whatever came of it."""
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
    """Return which limit of the season's budget is used up for a slot, or None."""
    budget = season.budget
    if not budget.any:
        return None
    own = decisions.c
    used = own.input_tokens + own.output_tokens
    sums = (  # nothing that was told as negative gives anything back
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
                return f"{what} has {priceless} decisions of an unknown price, so {usd:g} dollars cannot be kept"
            if usd is not None and spent_usd >= usd:
                return f"{what} has spent {spent_usd:.2f} of {usd:g} dollars"
            if tokens is not None and spent_tokens >= tokens:
                return f"{what} has used {spent_tokens} of {tokens} tokens"
    return None
