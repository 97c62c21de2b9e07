"""Pack a season's answers as a recording, and replay a season from a recording.

The replay gives the same decisions and the same standings. A recorded season contains
``season.json`` (the frozen spec), ``decisions.jsonl``, ``standings.json``, and a recording for each
asset of every entry with a model. It contains neither prompts nor texts written by other people.
"""

from __future__ import annotations

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from platform import python_version
from typing import TypeVar

import msgspec
from sqlalchemy import Engine, select

from tradeassay.core.errors import UNDECODABLE, UserError
from tradeassay_arena.agents import OUTSIDE, ModelOpener, season_params
from tradeassay_arena.agents.ama.prompts import PROMPTS
from tradeassay_arena.queries.seasons import opened_season, state_of
from tradeassay_arena.queries.snapshot import SeasonSnapshot
from tradeassay_arena.replay import Place, slot_of
from tradeassay_arena.rounds.deciding import NeverAsked, question_place
from tradeassay_arena.rounds.feed import is_live
from tradeassay_arena.season import Season
from tradeassay_arena.state.engine import open_engine
from tradeassay_arena.state.rows import Slot, read_slot
from tradeassay_arena.state.store import Store
from tradeassay_arena.state.tables import slots
from tradeassay_arena.verifying import copied_database
from tradeassay_arena.web.serving import PlayOptions, play
from tradeassay_bench.core.dialogue import AskModel, ModelReply
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.llm import Model, ModelParams, QuestionPlace, RecordingStore, open_model
from tradeassay_bench.llm.recording import (
    ENCODER,
    FORMAT,
    AnswerLine,
    HeadLine,
    key_of,
    recorded_question,
)
from tradeassay_bench.runs.store import archive

DECISIONS = "decisions.jsonl"
STANDINGS = "standings.json"
PROMPT_HASHES = "prompts.json"
T = TypeVar("T")


class RecordedDecision(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one slot.

    ``failures`` contains only the kinds of failures. The replay restores their messages.
    """

    asset: str
    session: str
    entry: str
    status: str
    action: str | None
    confidence: float | None
    allocation: float | None
    failures: tuple[str, ...]
    calls: int | None
    position: int | None
    nav: float | None


class _Tapes(RecordingStore):
    """The recordings of a season, by asset and entry."""

    def path(self, episode: str) -> Path:
        return self.folder / _tape_name(*episode.split("/", 1)[1].rsplit("/", 1))


def _tape_name(asset: str, entry: str) -> str:
    """Return the file name of an entry's recording on an asset. Special characters are escaped."""
    plain = (
        re.sub("[^A-Za-z0-9_.@-]", lambda one: f"={ord(one[0]):X}=", part)
        for part in (asset, entry)
    )
    return f"{','.join(plain)}.jsonl"


def pack_season(
    db: Path,
    file: Path,
    *,
    season: str | None = None,
    engine: str,
    precision: str,
    command: str = "",
) -> archive.RecordingLabel:
    """Pack the answers of a season into ``file``, and return the label of the recording.

    If ``season`` is None, the newest season is packed. Raises :class:`UserError` for a season that
    cannot be replayed: it is not finished, its prices were live, a model summarised its news, or it
    has an outside entry.
    """
    with _copied(db, season) as (store, spec):
        outside = [entry.id for entry in spec.entries if entry.architecture in OUTSIDE]
        if state_of(store, spec).status != "finished":
            why = "is not finished"
        elif is_live(spec):
            why = "was played on live prices, which no source gives again"
        elif spec.summary.model:
            why = "has a model that summarises its news, whose questions are not kept"
        else:
            why = f"has an entry that decides outside ('{outside[0]}')" if outside else ""
        if why:
            hint = "its database can be verified"
            raise UserError(f"season '{spec.id}' {why}: it cannot be recorded", hint=hint)
        found = {
            archive.SEASON: spec.frozen,
            PROMPT_HASHES: msgspec.json.encode(_prompts()),
            DECISIONS: b"".join(
                msgspec.json.encode(one) + b"\n" for one in _decisions(store, spec.id)
            ),
            STANDINGS: msgspec.json.encode(SeasonSnapshot(store, spec).board()),
            **_recordings(store, spec),
        }
    return archive.write_recording(
        file,
        found,
        benchmarks=(spec.benchmark,),
        engine=engine,
        precision=precision,
        python=python_version(),
        recorded=archive.day_of(db.stat().st_mtime),
        complete=True,
        command=command,
    )


def _recordings(store: Store, season: Season) -> dict[str, bytes]:
    """Return recordings without prompts of the entries with a model, by file name."""
    found: dict[str, list[bytes]] = {}
    params = season_params(season)
    for slot in _slots(store, season.id):
        lines = found.setdefault(f"models/{_tape_name(slot.asset, slot.entry)}", [])
        for call in store.calls(slot.id):
            request = msgspec.json.decode(call.request, type=AskModel)
            place = question_place(slot, call.number)
            question = recorded_question(season.entry(slot.entry).model, params, request, place)
            reply = msgspec.json.decode(call.reply, type=ModelReply)
            lines.append(
                ENCODER.encode(AnswerLine(key=key_of(question), asked=question, reply=reply))
                + b"\n"
            )
    head = ENCODER.encode(HeadLine(format=FORMAT, texts=False)) + b"\n"
    return {name: head + b"".join(lines) for name, lines in found.items() if lines}


def recorded_season(opened: archive.OpenRecording) -> Season:
    """Return the season of a recording. Raises :class:`RunError` if the recording contains none."""
    if not opened.is_season:
        raise RunError(
            "the recording holds a run, not a season",
            hint="play it with tradeassay run --recordings",
        )
    return _read(opened, archive.SEASON, Season)


def replaying(opened: archive.OpenRecording) -> ModelOpener:
    """Return an opener of models that give only the answers of a recorded season."""
    try:
        lines = (opened.folder / DECISIONS).read_bytes().splitlines()
        recorded = [msgspec.json.decode(line, type=RecordedDecision) for line in lines]
    except UNDECODABLE as error:
        raise RunError(
            f"a recorded decision cannot be read: {error}", hint="get the recording again"
        ) from None
    late = (one for one in recorded if "timeout" in one.failures)
    timed_out = {(one.asset, one.session, one.entry): one.calls or 0 for one in late}

    @asynccontextmanager
    async def open_recorded(name: str, params: ModelParams) -> AsyncIterator[Model]:
        with closing(_Tapes(opened.folder / "models")) as tapes:
            async with open_model(name, params, recording=tapes, replay=True) as model:
                yield _ModelThatTimesOut(model, tapes, params, timed_out)

    return open_recorded


class _ModelThatTimesOut:
    """A model that returns recorded answers.

    A decision that ran out of time in the recording runs out of time again, after the same number
    of questions.
    """

    def __init__(
        self, inner: Model, tapes: _Tapes, params: ModelParams, timed_out: dict[Place, int]
    ) -> None:
        self._inner, self._tapes, self._params, self._timed_out = inner, tapes, params, timed_out
        self.name = inner.name

    async def ask(self, request: AskModel, place: QuestionPlace) -> ModelReply:
        """Return the recorded answer. Raises :class:`TimeoutError` if none arrived in time."""
        if (calls := self._timed_out.get(slot_of(place))) is not None:
            key = key_of(recorded_question(self.name, self._params, request, place))
            if self._tapes.find(place.episode, key) is None:
                raise TimeoutError if place.index < calls else NeverAsked
        return await self._inner.ask(request, place)


def season_differences(opened: archive.OpenRecording, db: Path) -> list[str]:
    """Return the differences between a replayed season and its recording.

    Decisions and standings are compared.
    """
    season = recorded_season(opened)
    with _copied(db, season.id) as (store, played):
        now: dict[str, object] = {
            DECISIONS: list(_decisions(store, season.id)),
            STANDINGS: SeasonSnapshot(store, played).board(),
            archive.SEASON: msgspec.json.decode(season.frozen),
            PROMPT_HASHES: _prompts(),
        }
    # Compare the written JSON, not the structs: an unknown field is a difference too.
    then = {
        name: _read(opened, name, object) for name in (STANDINGS, archive.SEASON, PROMPT_HASHES)
    }
    lines = (opened.folder / DECISIONS).read_bytes().splitlines()
    then |= {DECISIONS: [msgspec.json.decode(line) for line in lines]}
    return list(archive.unlike_recorded(msgspec.json.decode(msgspec.json.encode(now)), then, ""))


def replayed_differences(opened: archive.OpenRecording) -> list[str]:
    """Replay a recorded season from its answers alone, and return the differences.

    Raises :class:`RecordingMismatch` if an agent asks a question that was not recorded.
    """
    with tempfile.TemporaryDirectory() as place:
        db = Path(place) / "arena.db"
        store = Store(open_engine(str(db), durable=False))
        try:
            how = PlayOptions(opener=replaying(opened))
            asyncio.run(play(recorded_season(opened), store, None, how=how))
        finally:
            store.engine.dispose()
        return season_differences(opened, db)


def _read(opened: archive.OpenRecording, name: str, kind: type[T]) -> T:
    try:
        return msgspec.json.decode((opened.folder / name).read_bytes(), type=kind)
    except (OSError, *UNDECODABLE) as error:
        what = f"{name} of the recording cannot be read: {error}"
        raise RunError(what, hint="get the recording again") from None


def changed_season_facts(opened: archive.OpenRecording) -> list[str]:
    """Return the names of prompts whose text has changed since the season was recorded."""
    then = _read(opened, PROMPT_HASHES, dict[str, str])
    return sorted(name for name, digest in _prompts().items() if then.get(name) != digest)


def _prompts() -> dict[str, str]:
    return {f"the prompt {name}": digest for name, digest in PROMPTS.hashes.items()}


def _decisions(store: Store, season: str) -> Iterator[RecordedDecision]:
    copied = [name for name in RecordedDecision.__struct_fields__ if name != "failures"]
    for slot in _slots(store, season):
        kinds = tuple(one.kind for one in slot.failures)
        yield RecordedDecision(**{name: getattr(slot, name) for name in copied}, failures=kinds)


def _slots(store: Store, season: str) -> list[Slot]:
    query = (
        select(slots)
        .filter_by(season=season)
        .order_by(slots.c.session, slots.c.asset, slots.c.entry)
    )
    return [read_slot(row) for row in store.rows(query)]


@contextmanager
def _copied(db: Path, season: str | None) -> Iterator[tuple[Store, Season]]:
    """Yield the store and a season of a copy of a database.

    A copy is opened, because even a reader leaves files next to an open database.
    """
    with tempfile.TemporaryDirectory() as place:

        def opened(url: str) -> Engine:
            return open_engine(copied_database(url, Path(place)), durable=False, called=url)

        with opened_season(str(db), season, opened) as found:
            yield found
