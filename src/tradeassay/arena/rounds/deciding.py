"""One slot: the packet is completed, the agent asked, every answer kept, the choice handed over."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from sqlalchemy import Connection, select

from tradeassay.arena.agents import EntryAgent
from tradeassay.arena.rounds.money import accounts, outcomes, shared_accounts
from tradeassay.arena.season import Season
from tradeassay.arena.state.records import ClosedSlot, Known, ModelCall, Round, Slot
from tradeassay.arena.state.store import Store
from tradeassay.arena.state.tables import slots
from tradeassay.core.arena import AgentChoice, ChoiceFailure, Packet, PeerMessage
from tradeassay.core.dialogue import AskModel, ModelReply, Usage
from tradeassay.core.errors import DataError
from tradeassay.core.hashing import canonical_json, sha256_bytes
from tradeassay.llm import QuestionPlace
from tradeassay.play.episode import Asked, talk

OUTCOMES = 10
"""How many of its own settled decisions an agent is shown."""

_REPLY = msgspec.json.Decoder(ModelReply)


def packets(store: Store, season: Season, round: Round) -> Mapping[str, Packet]:
    """Return what each entry is told in a round: the common packet, its own position, its own past."""
    common = store.packet(round.id)
    held = accounts(store, season.id, round)
    shared = shared_accounts(store, season, round) if season.rules.cross_asset else {}
    with store.read() as db:
        said = _messages(db, season, round) if season.rules.messages else {}
        pasts = outcomes(db, season.id, round.asset, round.session, OUTCOMES)
    return {
        entry.id: msgspec.structs.replace(
            common,
            position=held.get(entry.id, (0, 1.0))[0],
            outcomes=tuple(pasts.get(entry.id, ())),
            others=tuple(message for message in said.values() if message.entry != entry.id),
            **shared.get(entry.id, {}),
        )
        for entry in season.everyone
    }


class _SlotRecord:
    """Keeps what is said in one slot; a :class:`~tradeassay.play.episode.Recorder`.

    Answers that cost money or would come out differently are written one by one, before anything depends on them;
    the others together with the decision (``unwritten``).
    """

    def __init__(self, store: Store, slot: Slot, known: tuple[ModelCall, ...], *, each_call: bool) -> None:
        self._store, self._slot, self._known, self._each_call = store, slot, known, each_call
        self._asked = b"", ""
        self.count = 0
        self.unwritten: list[ModelCall] = []
        self.usage = Usage(usd=0.0)

    def known(self, asked: Asked[AskModel]) -> ModelReply | None:
        """Return the answer this question had before an interruption."""
        body = canonical_json(asked.request)
        self._asked = body, sha256_bytes(body)
        self.count += 1
        number = asked.place.index
        if number >= len(self._known):
            return None
        call = self._known[number]
        if call.request_sha256 != self._asked[1]:
            raise DataError(
                f"slot {self._slot.id} asks another question {number} than it did before it was interrupted",
                mend="run the version of tradeassay and the agents that started this season",
            )
        reply = _REPLY.decode(call.reply)
        self.usage = self.usage.plus(reply.usage)
        return reply

    def note(self, asked: Asked[AskModel], reply: ModelReply) -> None:
        """Record a new answer."""
        request, digest = self._asked
        call = ModelCall(
            number=asked.place.index,
            purpose=asked.request.purpose,
            request_sha256=digest,
            request=request,
            reply=msgspec.json.encode(reply),
        )
        if self._each_call:
            self._store.record_calls(self._slot.id, [call])
        else:
            self.unwritten.append(call)
        self.usage = self.usage.plus(reply.usage)


class _Nobody:
    """Answers for an entry without a model."""

    def __init__(self, entry: str) -> None:
        self._entry = entry

    async def ask(self, request: AskModel, place: QuestionPlace) -> ModelReply:
        """Raise :class:`DataError`."""
        raise DataError(f"entry '{self._entry}' asks a model but has none", mend="give the entry a model")


async def decide_slot(store: Store, slot: Slot, agent: EntryAgent, packet: Packet, known: Known) -> ClosedSlot:
    """Return the decision of one slot; ``known`` is what it starts from."""
    record = _SlotRecord(store, slot, known.calls, each_call=agent.each_call)
    if agent.outside is not None:
        choice = await agent.outside.decide(packet)
    else:
        step = int(slot.session.replace("-", ""))
        place = QuestionPlace(episode=f"{slot.season}/{slot.asset}/{slot.entry}", step=step, sample=0, index=0)
        dialogue = agent.deliberate(packet, known.memory)
        choice = await talk(dialogue, place, agent.model or _Nobody(slot.entry), record)
    return ClosedSlot(
        slot=slot,
        choice=choice,
        usage=record.usage,
        calls=record.count,
        decided_at=packet.decided_at,
        unwritten=tuple(record.unwritten),
    )


def failed(slot: Slot, packet: Packet, kind: str, text: str) -> ClosedSlot:
    """Return the decision of an agent that gave none."""
    failure = ChoiceFailure(kind=kind, text=text[:2000])
    choice = AgentChoice(action="HOLD", status="failed", reasoning="", failures=(failure,))
    return ClosedSlot(slot=slot, choice=choice, usage=Usage(usd=None), calls=0, decided_at=packet.decided_at)


def _messages(db: Connection, season: Season, round: Round) -> dict[str, PeerMessage]:
    """Return the newest message of every entry about this asset from sessions before this one."""
    where = (slots.c.season == season.id, slots.c.asset == round.asset, slots.c.session < round.session)
    query = select(slots.c.entry, slots.c.session, slots.c.message).where(*where, slots.c.message.is_not(None))
    found: dict[str, PeerMessage] = {}
    for row in db.execute(query.order_by(slots.c.session, slots.c.entry)):
        found[row.entry] = PeerMessage(entry=row.entry, date=row.session, text=row.message[:500])
    return dict(sorted(found.items()))
