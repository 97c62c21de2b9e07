"""DeepFundAgent: analysts, and a manager who remembers its own decisions and what became of them."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from tradeassay.agents.ama import sight
from tradeassay.agents.ama.answers import Opinion, Verdict
from tradeassay.agents.ama.consulting import Minutes, Role, consult, opinions
from tradeassay.agents.ama.desk import DeskConfig, conclude, present
from tradeassay.agents.ama.registry import architectures
from tradeassay.agents.ama.trade import Sight
from tradeassay.core.arena import Action, Deliberation, Outcome, Packet

ANALYSTS: dict[str, tuple[str, Sight]] = {
    "technical": ("You read prices and nothing else.", sight.prices),
    "media": ("You read what the media report.", sight.news),
    "fundamental": ("You read reports and figures.", sight.reports),
}


class DeepFundConfig(DeskConfig, frozen=True, kw_only=True):
    """``remembered``: how many own decisions the manager is shown."""

    remembered: int = 20


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """A decision, what the analysts thought then, and what it earned once that was known."""

    date: str
    action: Action
    views: dict[str, str]
    reasoning: str
    earned: float | None = None


class Journal(msgspec.Struct, frozen=True, kw_only=True):
    """The memory: own decisions, oldest first."""

    entries: tuple[Remembered, ...] = ()

    def settled(self, outcomes: tuple[Outcome, ...]) -> Journal:
        """Return it with what has become known since."""
        known = {outcome.date: outcome.earned for outcome in outcomes}
        return Journal(
            entries=tuple(
                msgspec.structs.replace(entry, earned=known[entry.date])
                if entry.earned is None and entry.date in known
                else entry
                for entry in self.entries
            )
        )

    def lessons(self) -> dict[str, object]:
        """Return how each analyst's views fared: how often the asset moved as they said, of how many."""
        score: dict[str, list[int]] = {}
        for entry in self.entries:
            if entry.earned is None or entry.action == "HOLD" or entry.earned == 0:
                continue
            rose = (entry.earned > 0) == (entry.action == "BUY")
            for name, view in entry.views.items():
                if view != "neutral":
                    right, count = score.get(name, [0, 0])
                    score[name] = [right + int((view == "bullish") == rose), count + 1]
        return {name: {"right": right, "of": count} for name, (right, count) in sorted(score.items())}


@architectures.register("deep-fund")
class DeepFundAgent:
    """Analysts see one field each; the manager sees them, its journal, and how often each analyst was right."""

    summary: ClassVar[str] = "three analysts and a manager with a journal of its own decisions and outcomes"
    Config = DeepFundConfig

    def __init__(self, config: DeepFundConfig) -> None:
        self._config = config
        self._roles = present((*ANALYSTS, "manager"), config, needed=("manager",))

    @property
    def roles(self) -> tuple[str, ...]:
        """Everybody who is asked, in order."""
        return self._roles

    def deliberate(self, packet: Packet, memory: bytes | None) -> Deliberation:
        """Return the making of one decision."""
        minutes = Minutes(attempts=self._config.attempts)
        journal = Journal() if memory is None else msgspec.json.decode(memory, type=Journal)
        journal = journal.settled(packet.outcomes)
        said: dict[str, Opinion | None] = {}
        for name, (character, sees) in ANALYSTS.items():
            if name in self._roles:
                role = Role(name, "analysis", "analyst", character)
                said[name] = yield from consult(role, packet, sees(packet), Opinion, minutes)
        shown = {
            "opinions": opinions(said),
            "journal": [msgspec.to_builtins(e) for e in journal.entries[-self._config.remembered :]],
            "analysts_record": journal.lessons(),
            "price": packet.price,
            **sight.record(packet),
        }
        role = Role("manager", "decision", "manager")
        verdict = yield from consult(role, packet, shown, Verdict, minutes)
        made = Remembered(
            date=packet.date,
            action="HOLD" if verdict is None else verdict.action,
            views={name: opinion.view for name, opinion in said.items() if opinion is not None},
            reasoning="" if verdict is None else verdict.reasoning[:400],
        )
        kept = (*journal.entries, made)[-4 * self._config.remembered :]
        return conclude(verdict, minutes, memory=msgspec.json.encode(Journal(entries=kept)))
