"""Rows of the database as frozen structs, with their JSON decoded."""

from __future__ import annotations

import zlib
from functools import cache
from importlib import resources
from typing import Any, Literal, TypeVar

import msgspec

from tradeassay.core.errors import DataError
from tradeassay_bench.core.arena import Action, AgentChoice, ChoiceFailure, Contribution, Packet
from tradeassay_bench.core.dialogue import Usage

Stage = Literal["warm-up", "live"]
Phase = Literal["opened", "executed", "settled"]
Status = Literal["open", "decided", "failed", "missed"]


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One session of an asset.

    After settlement, the asset's return is ``next_price / base_price - 1``.
    """

    id: int
    season: str
    asset: str
    session: str
    decision_time: str
    stage: Stage
    phase: Phase
    price: float
    base_price: float | None
    next_price: float | None
    packet_sha256: str
    opened_at: str
    next_session: str | None = None
    shared: str | None = None


class Skipped(msgspec.Struct, frozen=True, kw_only=True):
    """A session without a round, and the cause."""

    asset: str
    session: str
    stage: Stage
    cause: str
    at: str


class Slot(msgspec.Struct, frozen=True, kw_only=True):
    """One entry's part of a round: its decision, the cost, and the result.

    ``earned`` is None until the next price is known. ``nav`` is the present value of 1 that was
    invested in this entry and asset at the start of its stage.
    """

    id: int
    round: int
    season: str
    asset: str
    session: str
    stage: Stage
    entry: str
    status: Status
    action: Action | None = None
    confidence: float | None = None
    allocation: float | None = None
    reasoning: str | None = None
    message: str | None = None
    talk: tuple[Contribution, ...] = ()
    failures: tuple[ChoiceFailure, ...] = ()
    decided_at: str | None = None
    calls: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    usd: float | None = None
    position_before: int | None = None
    position: int | None = None
    nav_before: float | None = None
    fee: float | None = None
    earned: float | None = None
    nav: float | None = None


class ModelCall(msgspec.Struct, frozen=True, kw_only=True):
    """A question to a model within a slot and its answer, as JSON bytes."""

    number: int
    purpose: str
    request_sha256: str
    request: bytes
    reply: bytes


class SeasonEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event of the journal, in the form of the live pages."""

    seq: int
    season: str
    kind: str
    at: str
    body: dict[str, Any]


class SlotStart(msgspec.Struct, frozen=True, kw_only=True):
    """The initial state of a slot: its answers before an interruption, and its agent's memory."""

    calls: tuple[ModelCall, ...] = ()
    memory: bytes | None = None


class ClosedSlot(msgspec.Struct, frozen=True, kw_only=True):
    """The decision that closes a slot. ``unwritten`` are the answers to write together with it."""

    slot: Slot
    choice: AgentChoice
    usage: Usage
    calls: int
    decided_at: str
    unwritten: tuple[ModelCall, ...] = ()


_LISTS: dict[str, msgspec.json.Decoder[Any]] = {
    "talk": msgspec.json.Decoder(tuple[Contribution, ...]),
    "failures": msgspec.json.Decoder(tuple[ChoiceFailure, ...]),
}
read_packet = msgspec.json.Decoder(Packet).decode
S = TypeVar("S", bound=msgspec.Struct)


def read_row(kind: type[S], row: Any) -> S:
    """Return a row as a struct. The row needs a column for every field."""
    return kind(**{name: getattr(row, name) for name in kind.__struct_fields__})


def read_slot(row: Any) -> Slot:
    """Return a row of ``slots``. Columns that were not selected keep their defaults."""
    found = {name: value for name, value in row._mapping.items() if name in Slot.__struct_fields__}
    for name in _LISTS.keys() & found.keys():
        found[name] = _LISTS[name].decode(found[name]) if found[name] else ()
    return Slot(**found)


@cache
def _common() -> bytes:
    """Return the text that questions have in common. It must never change, because stored questions
    are compressed with it.
    """
    return resources.files(__package__).joinpath("questions.v1.txt").read_bytes()


def packed(body: bytes) -> bytes:
    """Return compressed bytes. The dictionary is the text that most questions share."""
    writer = zlib.compressobj(1, zdict=_common())
    return writer.compress(body) + writer.flush()


def unpacked(body: bytes) -> bytes:
    """Return decompressed bytes. Raises :class:`DataError` for damaged or oversized data."""
    reader = zlib.decompressobj(zdict=_common())
    try:
        found = reader.decompress(body, 1 << 26)
    except zlib.error as error:
        raise DataError(
            f"a part of the database is damaged: {error}", hint="restore a backup"
        ) from None
    if not reader.eof:
        raise DataError(
            "a part of the database is damaged: it is cut off or too long", hint="restore a backup"
        )
    return found
