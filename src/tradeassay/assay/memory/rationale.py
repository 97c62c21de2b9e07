"""Rationale analysis: how many of a model's reasons name something that it was not shown?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import msgspec

from tradeassay.assay.memory.taken import arm_of
from tradeassay.assay.memory.words import CATEGORIES, Category, Finder
from tradeassay.core.dialogue import Message, ModelReply
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure
from tradeassay.llm import fenced_blocks, parse_object
from tradeassay.metrics import rate_measure
from tradeassay.play.dialogue_log import whole_messages

if TYPE_CHECKING:
    from tradeassay.runs import Episode, Run

REASON_FIELDS = frozenset(("reason", "reasons", "overall_reason", "notes", "rationale"))
"""Fields of an answer that hold reasons; everything below them is text of one."""
_EXAMPLES = 5


class NamedThing(msgspec.Struct, frozen=True, kw_only=True):
    """One example: the word, the reason it stands in, and the session."""

    category: Category
    word: str
    reason: str
    episode: str
    session: str


class RationaleRow(msgspec.Struct, frozen=True, kw_only=True):
    """One model under one mask: the share of its reasons that name something unseen, by category and in all.

    Wilson's intervals take reasons for independent; those of one day are not quite.
    """

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


class _Count:
    def __init__(self) -> None:
        self.reasons = self.naming = 0
        self.by: dict[Category, int] = dict.fromkeys(CATEGORIES, 0)
        self.episodes: set[str] = set()
        self.examples: list[NamedThing] = []


def rationale_analysis(run: Run, *, level: float = 0.95) -> RationaleReport:
    """Look through every recorded reason of the models of a run.

    A reason is compared with everything the model had been shown when it gave it: prompts and tool results of
    that day, never its own words. Names are those of the data set the episode was played on. Raises
    :class:`UserError` when no model played.
    """
    if not any(episode.by_model for episode in run.episodes):
        raise UserError("no model played in this run", mend="rules give no reasons that could name something")
    counts: dict[tuple[str, str, str], _Count] = {}
    finders: dict[str, Finder] = {}
    for episode in run.episodes:
        if episode.by_model:
            settings = run.manifest.protocols[episode.cell].config
            row = (episode.label, arm_of(settings), str(settings.get("mode", "")))
            if episode.dataset not in finders:
                snapshot = run.snapshot(episode.key)
                view = snapshot.at(len(snapshot.sessions) - 1, "close")
                finders[episode.dataset] = Finder(view.instruments)
            _count(run, episode, finders[episode.dataset], counts.setdefault(row, _Count()))
    return RationaleReport(
        rows=tuple(_row(row, count, level) for row, count in counts.items()),
        notes=(
            "a word counts as shown when it stands anywhere in that day's prompts and tool results",
            "names are those of the data set; sectors and events are found by a list of words",
        ),
    )


def _count(run: Run, episode: Episode, finder: Finder, count: _Count) -> None:
    lines = list(run.dialogue(episode.key))
    for line, messages in zip(lines, whole_messages(lines), strict=True):
        said = list(reasons(line.reply))
        if not said:
            continue
        observed = _shown(messages)
        count.episodes.add(episode.key)
        for reason in said:
            count.reasons += 1
            found = finder.unseen(reason, observed, line.session)
            count.naming += bool(found)
            for category in {one.category for one in found}:
                count.by[category] += 1
            for one in found:
                _keep(count, NamedThing(
                    category=one.category, word=one.word, reason=reason[:300], episode=episode.key,
                    session=line.session,
                ))  # fmt: skip


def _keep(count: _Count, example: NamedThing) -> None:
    """Keep a few examples of every category, each word once."""
    same = [one for one in count.examples if one.category == example.category]
    if len(same) < _EXAMPLES and all(one.word.lower() != example.word.lower() for one in same):
        count.examples.append(example)


def _shown(messages: tuple[Message, ...]) -> str:
    return "\n".join(message.text for message in messages if message.role != "assistant").lower()


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


def _row(row: tuple[str, str, str], count: _Count, level: float) -> RationaleRow:
    agent, arm, mode = row
    none = "the model gave no reasons"

    def share(hits: int) -> Measure:
        return rate_measure(hits, count.reasons, nothing=none, level=level)

    return RationaleRow(
        agent=agent,
        arm=arm,
        mode=mode,
        reasons=count.reasons,
        episodes=len(count.episodes),
        any=share(count.naming),
        shares={category: share(hits) for category, hits in count.by.items()},
        examples=tuple(count.examples),
    )
