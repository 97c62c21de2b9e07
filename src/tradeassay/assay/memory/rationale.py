"""Finding in a reason what the observation did not contain: brands, sectors, dates and events."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from importlib.resources import files
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from tradeassay.assay.memory.contrast import arm_of
from tradeassay.core.dialogue import ModelReply
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure
from tradeassay.core.view import Instrument
from tradeassay.data.dates import DateHit, DatesWanted, find_dates
from tradeassay.llm import fenced_blocks, parse_object
from tradeassay.masking import Truth, find_leaks
from tradeassay.masking.lexicon import CHINESE, WORD, JsonSpans, chinese_terms, lowered
from tradeassay.metrics import rate_measure
from tradeassay.play.dialogue_log import whole_messages

if TYPE_CHECKING:
    from tradeassay.runs import Run

Category = Literal["brand", "sector", "date", "event"]
CATEGORIES: tuple[Category, ...] = ("brand", "sector", "date", "event")
_EPOCH = date(1970, 1, 1)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_YEAR = re.compile(r"(?:19|20)\d{2}")


class Named(NamedTuple):
    """Something named in a reason."""

    category: Category
    word: str


class Finder:
    """Knows the instruments of a market, and the words of sectors and events."""

    def __init__(self, instruments: Sequence[Instrument]) -> None:
        own = [one.name for one in instruments if one.kind != "index" and one.name not in ("", one.symbol)]
        self._truth = Truth(
            symbols=tuple(one.symbol for one in instruments),
            names=tuple(name for name in own if not CHINESE.search(name)),
            chinese=tuple(dict.fromkeys(spelling for spelling, _ in chinese_terms(instruments))),
        )
        lexicon = tomllib.loads((files(__package__) / "words.toml").read_text(encoding="utf-8"))
        sectors = {one.sector for one in instruments if one.sector}
        self._sectors, self._events = _pattern([*lexicon["sectors"], *sectors]), _pattern(lexicon["events"])

    def unseen(self, reason: str, observed: str, session: str) -> tuple[Named, ...]:
        """Return what a reason names that ``observed`` (lower case) does not contain, each once. A date counts as
        contained when its day, or for a month or a quarter its year and month, can be read off the observation.
        ``session`` is the true ISO day."""
        found = [Named("brand", leak.truth) for leak in find_leaks(reason, self._truth)]
        found += [Named("sector", hit[0]) for hit in self._sectors.finditer(reason)]
        found += [Named("event", hit[0]) for hit in self._events.finditer(reason)]
        unseen = [one for one in found if one.word.lower() not in observed]
        today, low = (date.fromisoformat(session) - _EPOCH).days, lowered(reason)
        words, wanted = frozenset(WORD.findall(low)), DatesWanted(range(1990, 2101), festivals=False)
        for hit in find_dates(reason, low, words, JsonSpans(reason).bare, today, wanted):
            text = reason[hit.start : hit.end]
            if not _known(text, hit, observed):
                unseen.append(Named("date", text))
        return tuple(dict.fromkeys(unseen))


def _pattern(words: Iterable[str]) -> re.Pattern[str]:
    plain, chinese = [], []
    for word in dict.fromkeys(words):
        if CHINESE.search(word):
            chinese.append(re.escape(word))
        else:
            plain.append(re.escape(word.removesuffix("*")) + (r"\w*" if word.endswith("*") else ""))
    forms = [rf"(?<!\w)(?:{'|'.join(sorted(plain, key=len, reverse=True))})(?!\w)"] if plain else []
    return re.compile("|".join([*forms, *chinese]), re.IGNORECASE)


def _known(text: str, hit: DateHit, observed: str) -> bool:
    if text.lower() in observed:
        return True
    if hit.day is not None:
        return (_EPOCH + timedelta(days=hit.day)).isoformat() in observed
    year = _YEAR.search(text)
    month = next((k for k, name in enumerate(_MONTHS, start=1) if name in text.lower()), None)
    if month is not None:
        years = year[0] if year else _YEAR.pattern
        return re.search(rf"{years}-{month:02d}-\d\d", observed) is not None
    return year is not None and re.search(rf"(?<!\d){year[0]}(?!\d)", observed) is not None


REASON_FIELDS = frozenset(("reason", "reasons", "overall_reason", "notes", "rationale"))
"""Fields of an answer that hold reasons; everything below them is text of one."""


class NamedThing(msgspec.Struct, frozen=True, kw_only=True):
    """One example: the word, the reason it appears in, and the session."""

    category: Category
    word: str
    reason: str
    episode: str
    session: str


class RationaleRow(msgspec.Struct, frozen=True, kw_only=True):
    """One model under one mask: the share of its reasons that name something unseen, by category and in all.
    Wilson's intervals treat reasons as independent, which those of one day are not quite."""

    agent: str
    arm: str
    mode: str
    reasons: int
    episodes: int
    any: Measure
    shares: dict[str, Measure]
    examples: tuple[NamedThing, ...]


class RationaleReport(msgspec.Struct, frozen=True, kw_only=True):
    """All models under all masks."""

    rows: tuple[RationaleRow, ...]
    notes: tuple[str, ...]


Given = tuple[str, str, str, tuple[Named, ...]]
"""A reason: its episode and session, its words, and what it names that was not shown."""


def rationale_analysis(run: Run, *, level: float = 0.95) -> RationaleReport:
    """Look through every recorded reason of the models of a run. A reason is compared with everything the model
    had been shown when it gave it: prompts and tool results of that day, never its own words. Names are those of
    the data set the episode was played on. Raises :class:`UserError` when no model played."""
    if not any(episode.by_model for episode in run.episodes):
        raise UserError("no model played in this run", hint="rules give no reasons that could name something")
    given: dict[tuple[str, str, str], list[Given]] = {}
    finders: dict[str, Finder] = {}
    for episode in run.episodes:
        if not episode.by_model:
            continue
        settings = run.manifest.protocols[episode.cell].config
        mine = given.setdefault((run.names[episode.label], arm_of(settings), str(settings.get("mode", ""))), [])
        if episode.dataset not in finders:
            snapshot = run.snapshot(episode.key)
            finders[episode.dataset] = Finder(snapshot.at(len(snapshot.sessions) - 1, "close").instruments)
        lines = list(run.dialogue(episode.key))
        for line, messages in zip(lines, whole_messages(lines), strict=True):
            if said := list(reasons(line.reply)):
                shown = (message.text for message in messages if message.role != "assistant")
                observed = "\n".join(shown).lower()
                for reason in said:
                    found = finders[episode.dataset].unseen(reason, observed, line.session)
                    mine.append((episode.key, line.session, reason, found))
    return RationaleReport(
        rows=tuple(_row(row, mine, level) for row, mine in given.items()),
        notes=(
            "a word counts as shown when it stands anywhere in that day's prompts and tool results",
            "names are those of the data set; sectors and events are found by a list of words",
        ),
    )


def reasons(reply: ModelReply) -> Iterator[str]:
    """Yield every reason of an answer, whether it was given in a call or as JSON in the text."""
    bodies = [parse_object(call.arguments) for call in reply.calls]
    whole = parse_object(reply.text)
    bodies += [whole] if whole is not None else [parse_object(block.text) for block in fenced_blocks(reply.text)]
    for body in bodies:
        if body is not None:
            yield from _texts(body, inside=False)


def _texts(value: object, *, inside: bool) -> Iterator[str]:
    if isinstance(value, str):
        if inside and value.strip():
            yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(item, inside=inside or str(key).lower() in REASON_FIELDS)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _texts(item, inside=inside)


def _row(row: tuple[str, str, str], given: Sequence[Given], level: float) -> RationaleRow:
    def share(hits: int) -> Measure:
        return rate_measure(hits, len(given), nothing="the model gave no reasons", level=level)

    examples: list[NamedThing] = []
    for episode, session, reason, found in given:
        for category, word in found:
            same = [one.word.lower() for one in examples if one.category == category]
            if len(same) < 5 and word.lower() not in same:
                about = {"reason": reason[:300], "episode": episode, "session": session}
                examples.append(NamedThing(category=category, word=word, **about))
    named = [{one.category for one in found} for *_, found in given]
    agent, arm, mode = row
    return RationaleRow(
        agent=agent,
        arm=arm,
        mode=mode,
        reasons=len(given),
        episodes=len({episode for episode, *_ in given}),
        any=share(sum(map(bool, named))),
        shares={category: share(sum(category in one for one in named)) for category in CATEGORIES},
        examples=tuple(examples),
    )
