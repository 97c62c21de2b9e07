"""InvestorAgent: one mind with a four-layer memory that reflects on what its decisions led to."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from tradeassay.agents.ama import sight
from tradeassay.agents.ama.desk import (
    DeskConfig,
    DeskRole,
    Lesson,
    RoleDesk,
    Verdict,
    architectures,
    conclude,
    consult,
)
from tradeassay.agents.ama.memory import Item, LayerConfig, LayeredMemory
from tradeassay.core.arena import Deliberation, Packet

SEEN = 400
"""How many item ids are kept to know what has been read."""


class InvestorConfig(DeskConfig, frozen=True, kw_only=True):
    """``memory`` says how it remembers."""

    memory: LayerConfig = LayerConfig()


@architectures.register("investor")
class InvestorAgent(RoleDesk[InvestorConfig]):
    """News enter the short layer, quarterly reports the mid, annual ones the long, lessons the reflections."""

    summary: ClassVar[str] = "a single agent with four-layer memory, retrieval and reflection"
    Config = InvestorConfig
    everybody = ("reflection", "investor")
    needed = ("investor",)

    def deliberate(self, packet: Packet, memory: bytes | None) -> Deliberation:
        """Return the making of one decision."""
        transcript = self.transcript()
        mind = LayeredMemory.read(memory)
        new = [outcome for outcome in packet.outcomes if outcome.date > mind.settled]
        if new:
            mind = mind.learn(mind.recalled, new[-1].earned, self._config.memory)
            mind = msgspec.structs.replace(mind, settled=new[-1].date)
            if "reflection" in self._roles:
                shown: dict[str, object] = {
                    "outcomes": [msgspec.to_builtins(outcome) for outcome in new],
                    "remembered": _told(mind),
                }
                role = DeskRole("reflection", "reflection", "reflection")
                lesson = yield from consult(role, packet, shown, Lesson, transcript)
                if lesson is not None:
                    mind = mind.add("reflection", lesson.lesson, lesson.importance)
        # What is read today is shown as today's news, not once more as a memory.
        found = mind.recall(_question(packet), self._config.memory)
        mind = _read(packet, mind)
        shown = {**sight.everything(packet), **sight.record(packet), "memory": [_shown(item) for item in found]}
        verdict = yield from consult(
            DeskRole("investor", "decision", "investor"), packet, shown, Verdict, transcript
        )
        mind = msgspec.structs.replace(mind, recalled=tuple(item.id for item in found)).aged(self._config.memory)
        return conclude(verdict, transcript, memory=mind.written())


def _read(packet: Packet, mind: LayeredMemory) -> LayeredMemory:
    """Return the mind after reading what it has not read before."""
    known = set(mind.seen)
    fresh: list[str] = []
    for item in packet.news:
        if item.id not in known:
            mind = mind.add("short", f"{item.title}. {item.text}", 0.4)
            fresh.append(item.id)
    for layer, report in (("mid", packet.quarterly_report), ("long", packet.annual_report)):
        key = f"{layer}:{report}"[:80]
        if report is not None and key not in known:
            mind = mind.add("mid" if layer == "mid" else "long", report, 0.6)
            fresh.append(key)
    return msgspec.structs.replace(mind, seen=(*mind.seen, *fresh)[-SEEN:])


def _question(packet: Packet) -> str:
    """Return what memory is asked for: the asset and what is going on around it."""
    trend = "" if packet.momentum is None else ("rising" if packet.momentum > 0 else "falling")
    titles = " ".join(item.title for item in packet.news)
    return f"{packet.symbol} {packet.kind} {trend} {titles}"


def _told(mind: LayeredMemory) -> list[dict[str, object]]:
    used = set(mind.recalled)
    return [_shown(item) for item in mind.items if item.id in used]


def _shown(item: Item) -> dict[str, object]:
    return {"layer": item.layer, "text": item.text, "importance": round(item.importance, 3)}
