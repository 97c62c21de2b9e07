"""One slot: the packet is completed, the agent asked, every answer kept, the choice written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec
from sqlalchemy import Connection, select

from tradeassay.arena.rounds.money import accounts, histories
from tradeassay.arena.rounds.player import OutsidePlayer, Player
from tradeassay.arena.rounds.shared_account import shared_accounts
from tradeassay.arena.season import Season
from tradeassay.arena.state.records import Call, Decided, Round, Slot
from tradeassay.arena.state.store import Store
from tradeassay.arena.state.tables import slots
from tradeassay.core.arena import Choice, ChoiceFailure, Deliberation, Outcome, Packet, PeerMessage
from tradeassay.core.dialogue import AskModel, ModelReply, Usage
from tradeassay.core.errors import DataError
from tradeassay.core.hashing import canonical_json, sha256_bytes
from tradeassay.llm import Model, Place

OUTCOMES = 10
"""How many of its own settled decisions an agent is shown."""

_REPLY = msgspec.json.Decoder(ModelReply)


@dataclass(frozen=True, slots=True)
class Seat:
    """A participant ready to play: who it is, and the model it asks (None for rules and outsiders).

    ``each_call``: answers are written one by one, because asking again would cost money or give another answer.
    """

    player: Player | OutsidePlayer
    model: Model | None = None
    each_call: bool = True


@dataclass
class _Conversation:
    """The calls of one slot: those on record first, then new ones."""

    known: tuple[Call, ...]
    made: list[Call] = field(default_factory=list)
    usage: Usage = field(default_factory=lambda: Usage(usd=0.0))
    count: int = 0


def packets(store: Store, season: Season, round: Round) -> Mapping[str, Packet]:
    """Return what each entry is told in a round: the common packet, its own position, its own past."""
    common = store.packet(round.id)
    held = accounts(store, season.id, round)
    shared = shared_accounts(store, season, round) if season.rules.cross_asset else {}
    with store.read() as db:
        said = _messages(db, season, round) if season.rules.messages else {}
        pasts = histories(db, season.id, round.asset, round.session, OUTCOMES)
        found = {}
        for entry in season.everyone:
            past = pasts.get(entry.id, [])
            outcomes = tuple(
                Outcome(
                    date=s.session, action=s.action or "HOLD", position=s.position or 0, earned=s.earned or 0.0
                )
                for s in past
            )
            others = tuple(message for message in said.values() if message.entry != entry.id)
            position = held.get(entry.id, (0, 1.0))[0]
            found[entry.id] = msgspec.structs.replace(
                common, position=position, outcomes=outcomes, others=others, **shared.get(entry.id, {})
            )
    return found


async def decide_slot(store: Store, season: Season, slot: Slot, seat: Seat, packet: Packet, worker: str) -> bool:
    """Make one decision and write it; False when somebody else had the slot in the meantime."""
    talk = _Conversation(known=store.calls(slot.id))
    if isinstance(seat.player, OutsidePlayer):
        choice = await seat.player.decide(packet)
    else:
        memory = store.memory(season.id, slot.entry, slot.asset)
        choice = await _drive(store, slot, seat, seat.player.deliberate(packet, memory), talk)
    decided = Decided(choice=choice, usage=talk.usage, calls=talk.count, decided_at=packet.decided_at)
    return store.decide(slot, decided, worker, talk.made)


async def _drive(store: Store, slot: Slot, seat: Seat, making: Deliberation, talk: _Conversation) -> Choice:
    try:
        request = next(making)
        while True:
            reply = await _answer(store, slot, seat, request, talk)
            request = making.send(reply)
    except StopIteration as end:
        choice: Choice = end.value
        return choice


async def _answer(store: Store, slot: Slot, seat: Seat, request: AskModel, talk: _Conversation) -> ModelReply:
    asked = canonical_json(request)
    digest = sha256_bytes(asked)
    number = talk.count
    talk.count += 1
    if number < len(talk.known):
        call = talk.known[number]
        if call.request_sha256 != digest:
            raise DataError(
                f"slot {slot.id} asks another question {number} than it did before it was interrupted",
                mend="run the version of tradeassay and the agents that started this season",
            )
        reply = _REPLY.decode(call.reply)
    else:
        if seat.model is None:
            raise DataError(f"entry '{slot.entry}' asks a model but has none", mend="give the entry a model")
        step = int(slot.session.replace("-", ""))
        place = Place(episode=f"{slot.season}/{slot.asset}/{slot.entry}", step=step, sample=0, index=number)
        reply = await seat.model.ask(request, place)
        body = msgspec.json.encode(reply)
        call = Call(number=number, purpose=request.purpose, request_sha256=digest, request=asked, reply=body)
        if seat.each_call:
            store.record_calls(slot.id, [call])
        else:
            talk.made.append(call)
    talk.usage = _add(talk.usage, reply.usage)
    return reply


def failed(kind: str, text: str) -> Choice:
    """Return the choice of an agent that gave none."""
    return Choice(
        action="HOLD", status="failed", reasoning="", failures=(ChoiceFailure(kind=kind, text=text[:2000]),)
    )


def _add(one: Usage, other: Usage) -> Usage:
    usd = None if one.usd is None or other.usd is None else one.usd + other.usd
    return Usage(
        input_tokens=one.input_tokens + other.input_tokens,
        output_tokens=one.output_tokens + other.output_tokens,
        reasoning_tokens=one.reasoning_tokens + other.reasoning_tokens,
        cached_tokens=one.cached_tokens + other.cached_tokens,
        usd=usd,
    )


def _messages(db: Connection, season: Season, round: Round) -> dict[str, PeerMessage]:
    """Return the newest message of every entry about this asset from sessions before this one."""
    where = (slots.c.season == season.id, slots.c.asset == round.asset, slots.c.session < round.session)
    query = select(slots.c.entry, slots.c.session, slots.c.message).where(*where, slots.c.message.is_not(None))
    found: dict[str, PeerMessage] = {}
    for row in db.execute(query.order_by(slots.c.session, slots.c.entry)):
        found[row.entry] = PeerMessage(entry=row.entry, date=row.session, text=row.message[:500])
    return dict(sorted(found.items()))
