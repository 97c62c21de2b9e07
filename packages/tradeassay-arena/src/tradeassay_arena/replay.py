"""Compare the replay of a season with the record of its decisions.

In the replay, rules decide again. Agents with a model ask their questions again and receive the
recorded replies. Decisions of outside agents, and failures without a reply, are copied from the
record, because they cannot be computed again. Copied facts are counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from typing import Any

import msgspec
from sqlalchemy import Connection, Engine, select

from tradeassay.core.errors import UNDECODABLE
from tradeassay_arena.agents import OUTSIDE
from tradeassay_arena.season import Season
from tradeassay_arena.state.rows import ClosedSlot, ModelCall, Slot, SlotStart, unpacked
from tradeassay_arena.state.store import CALLS, CLAIM, Store, close_slots, read_call
from tradeassay_arena.state.tables import decisions
from tradeassay_bench.core.arena import AgentChoice, ChoiceFailure, Contribution, Packet
from tradeassay_bench.core.dialogue import AskModel, ModelReply, Usage
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.llm import Model, ModelParams, QuestionPlace, open_model, parse_name
from tradeassay_bench.runs.verify.checks import examine_usage

NO_REPLY = "no reply is on record"
_UNANSWERED = {
    "timeout": "decisions ran out of time",
    "agent": "decisions failed without a reply",
    "over_budget": "decisions were over the budget",
}
_SAID = ("action", "reasoning", "status", "confidence", "allocation", "message")
_QUESTION = ("purpose", "request_sha256", "request")
Place = tuple[str, str, str]
"""An asset, a session and an entry."""


class Evidence:
    """The decisions and replies in a season's database.

    - ``faults`` lists contradictions as (place, description).
    - ``taken`` counts the facts copied from the record.
    - ``live`` counts the replies of models that cannot be called again.
    - ``odd`` counts the replies with unlikely token counts.
    """

    def __init__(self, db: Connection, season: Season) -> None:
        self._db, self.season = db, season
        found = db.execute(select(decisions).where(decisions.c.season == season.id))
        self.rows: dict[Place, Any] = {(row.asset, row.session, row.entry): row for row in found}
        self._slots: dict[tuple[str, str], dict[int, str]] = {}
        for (asset, session, entry), row in self.rows.items():
            self._slots.setdefault((asset, session), {})[row.id] = entry
        self._round: tuple[tuple[str, str], dict[str, dict[int, ModelCall]]] = ("", ""), {}
        self.faults: list[tuple[str, str]] = []
        self.taken: Counter[str] = Counter()
        self.odd: Counter[str] = Counter()
        self.live = 0
        self._said: dict[tuple[str, ModelParams], dict[int, tuple[AskModel, ModelReply]]] = {}

    def calls(self, asset: str, session: str, entry: str) -> dict[int, ModelCall]:
        """Return the replies in a slot by question number.

        The replies of one round are read at a time.
        """
        if self._round[0] != (asset, session):
            entries = self._slots.get((asset, session), {})
            found: dict[str, dict[int, ModelCall]] = {}
            once = cache(unpacked)  # Models of the same architecture receive the same questions.
            for row in self._db.execute(CALLS, {"slots": list(entries)}).all():
                found.setdefault(entries[row[0]], {})[row[1]] = read_call(row, once)
            self._round = (asset, session), found
        return self._round[1].get(entry, {})

    @property
    def outside(self) -> dict[str, RecordedAgent]:
        """The outside agents by entry, each of which repeats its recorded decisions."""
        outside = (entry.id for entry in self.season.all_entries if entry.architecture in OUTSIDE)
        return {id: RecordedAgent(self, id) for id in outside}

    @asynccontextmanager
    async def opener(self, name: str, params: ModelParams) -> AsyncIterator[Model]:
        """Open a model for the replay and yield it.

        A scripted model answers again. Any other model returns its recorded replies.
        """
        if parse_name(name).route == "scripted":
            async with open_model(name, params) as model:
                yield _CachingModel(self, model, self._said.setdefault((name, params), {}))
        else:
            yield _RecordedModel(self, name)

    def check(self, closed: ClosedSlot) -> ClosedSlot:
        """Compare the questions and replies of a replayed slot with the record.

        Returns the decision of the slot. A decision without a recorded reply fails in the same way
        as in the record.
        """
        slot = closed.slot
        place = slot.asset, slot.session, slot.entry
        row = self.rows.get(place)
        if row is None or row.status == "open":
            return closed  # reported elsewhere, or still in progress
        where, there = f"{slot.asset} {slot.session}, {slot.entry}", self.calls(*place)
        for call in closed.unwritten:
            known = there.get(call.number)
            if known is None:
                self.faults.append((where, f"question {call.number} has no reply on record"))
            elif any(getattr(known, name) != getattr(call, name) for name in _QUESTION):
                self.faults.append(
                    (where, f"question {call.number} is not the one that the agent asks")
                )
            elif known.reply != call.reply:
                self.faults.append((where, f"reply {call.number} is not what the model replies"))
        if more := there.keys() - {call.number for call in closed.unwritten}:
            self.faults.append(
                (
                    where,
                    f"{len(more)} replies are on record to questions that the agent does not ask",
                )
            )
        if not any(one.text == NO_REPLY for one in closed.choice.failures):
            return closed
        failure = _no_reply_because(row)
        if failure is None or (failure.kind == "over_budget" and not self.season.budget.any):
            self.faults.append((where, "the replies on record end before its decision"))
            return closed
        self.taken[_UNANSWERED[failure.kind]] += 1
        choice = msgspec.structs.replace(closed.choice, failures=(failure,))
        if failure.kind == "over_budget":
            return msgspec.structs.replace(closed, choice=choice, calls=0, usage=Usage(usd=0.0))
        # Time may run out after all answers have come and before the agent asks its next question.
        asked = row.calls if there and len(there) == row.calls else closed.calls
        return msgspec.structs.replace(closed, choice=choice, calls=asked)


class _CachingModel:
    """A scripted model that answers each question once and then returns the same reply."""

    def __init__(
        self, evidence: Evidence, model: Model, said: dict[int, tuple[AskModel, ModelReply]]
    ) -> None:
        self.name, self._evidence, self._model, self._said = model.name, evidence, model, said

    async def ask(self, request: AskModel, place: QuestionPlace) -> ModelReply:
        """Return the model's reply.

        Raises :class:`RunError` if the recorded decision ended without this reply. Even a scripted
        model times out on a busy machine, and is not called over the budget.
        """
        where = slot_of(place)
        row = self._evidence.rows.get(where)
        failure = None if row is None else _no_reply_because(row)
        if (
            failure is not None
            and failure.kind != "agent"
            and place.index not in self._evidence.calls(*where)
        ):
            raise RunError(NO_REPLY)
        known = self._said.get(
            id(request)
        )  # The question is stored, so that its id cannot be reused.
        if known is None:
            if len(self._said) >= 1024:
                self._said.clear()
            known = request, await self._model.ask(request, place)
            self._said[id(request)] = known
        return known[1]


class _RecordedModel:
    """A model that only returns its recorded replies."""

    def __init__(self, evidence: Evidence, name: str) -> None:
        self._evidence, self.name = evidence, name

    async def ask(self, request: AskModel, place: QuestionPlace) -> ModelReply:
        """Return the recorded reply. Raises :class:`RunError` if there is none."""
        asset, session, entry = slot_of(place)
        known = self._evidence
        call = known.calls(asset, session, entry).get(place.index)
        if call is None:
            raise RunError(NO_REPLY)
        reply = msgspec.json.decode(call.reply, type=ModelReply)
        known.live += 1
        impossible, odd = examine_usage(reply, request, known.season.max_tokens)
        if impossible:
            known.faults.append(
                (f"{asset} {session}, {entry}", f"a reply of {self.name} {impossible}")
            )
        known.odd.update(f"{self.name} counts {what}" for what in odd)
        return reply


class RecordedAgent:
    """An outside agent that only repeats its recorded decisions."""

    def __init__(self, evidence: Evidence, entry: str) -> None:
        self._evidence, self._entry = evidence, entry

    async def decide(self, packet: Packet) -> AgentChoice:
        row = self._evidence.rows.get((packet.symbol, packet.date, self._entry))
        if row is None or row.status not in ("decided", "failed"):
            raise RunError("no decision is on record")
        self._evidence.taken["decisions were made outside"] += 1
        try:
            choice = AgentChoice(
                **{name: getattr(row, name) for name in _SAID},
                talk=msgspec.json.decode(row.talk, type=tuple[Contribution, ...]),
                failures=_read_failures(row),
            )
            choice = msgspec.convert(msgspec.to_builtins(choice), AgentChoice)
        except UNDECODABLE as error:
            raise RunError(f"its decision cannot be read: {error}") from None
        if choice.status == "failed" and choice.action != "HOLD":
            raise RunError("a failed decision has an action")
        return choice


def slot_of(place: QuestionPlace) -> Place:
    """Return the asset, session and entry of a question."""
    asset, entry = place.episode.split("/", 1)[1].rsplit("/", 1)
    day = str(place.step)
    return asset, f"{day[:4]}-{day[4:6]}-{day[6:]}", entry


def _no_reply_because(row: Any) -> ChoiceFailure | None:
    """Return the recorded failure of a decision that failed without a reply, or None."""
    failures = _read_failures(row) if row.status == "failed" else ()
    return failures[0] if len(failures) == 1 and failures[0].kind in _UNANSWERED else None


def _read_failures(row: Any) -> tuple[ChoiceFailure, ...]:
    try:
        return msgspec.json.decode(row.failures or b"[]", type=tuple[ChoiceFailure, ...])
    except UNDECODABLE:
        return ()


class ReplayStore(Store):
    """The database of a replay, in which replies are compared with the record and not written.

    The replay is the only reader and its result is discarded, so everything is one transaction.
    """

    def __init__(self, engine: Engine, evidence: Evidence) -> None:
        super().__init__(engine)
        self._evidence = evidence
        self._connection = engine.connect()
        self._connection.begin()
        self._failed: Exception | None = None
        self._memories: dict[tuple[str, str], bytes] = {}

    @contextmanager
    def change(self) -> Iterator[Connection]:
        if (
            self._failed is not None
        ):  # The failed change was not rolled back, so it cannot be tried again.
            raise self._failed
        try:
            yield self._connection
        except Exception as error:
            self._failed = error
            raise

    @contextmanager
    def read(self) -> Iterator[Connection]:
        yield self._connection

    def close(self) -> None:
        self._connection.close()
        self.engine.dispose()

    def claim(
        self, round: int, worker: str, now: float, until: float, most: int
    ) -> tuple[Slot, ...]:
        """Return open slots without a lease, because there is no other worker."""
        asked = {"round": round, "worker": worker, "now": now, "most": most}
        return tuple(Slot(**row) for row in self._connection.execute(CLAIM, asked).mappings())

    def known(self, claimed: Sequence[Slot]) -> dict[int, SlotStart]:
        return {
            slot.id: SlotStart(memory=self._memories.get((slot.entry, slot.asset)))
            for slot in claimed
        }

    def decide(self, made: Sequence[ClosedSlot], worker: str) -> int:
        checked = [msgspec.structs.replace(self._evidence.check(one), unwritten=()) for one in made]
        with self.change() as db:
            close_slots(db, checked)
        for one in checked:
            if one.choice.memory is not None:
                self._memories[one.slot.entry, one.slot.asset] = one.choice.memory
        return len(checked)
