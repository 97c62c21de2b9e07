"""TradeAgent: a trading firm. Four analysts, a debate of bull and bear, a trader, risk, a portfolio manager."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import msgspec

from tradeassay.agents.ama import sight
from tradeassay.agents.ama.answers import Argument, Opinion, RiskCheck, Verdict
from tradeassay.agents.ama.consulting import Json, Minutes, Role, consult, opinions
from tradeassay.agents.ama.desk import DeskConfig, conclude, present
from tradeassay.agents.ama.registry import architectures
from tradeassay.core.arena import Deliberation, Packet

Sight = Callable[[Packet], dict[str, object]]

ANALYSTS: dict[str, tuple[str, Sight]] = {
    "fundamental": ("You are the fundamental analyst: you read reports and figures.", sight.reports),
    "sentiment": ("You are the sentiment analyst: you hear the mood of headlines.", sight.headlines),
    "news": ("You are the news analyst: you ask what the events mean for the asset.", sight.news),
    "technical": ("You are the technical analyst: you read prices and nothing else.", sight.prices),
}


@architectures.register("trade")
class TradeAgent:
    """Analysts see one field each; researchers see what analysts said; the manager sees the whole process."""

    summary: ClassVar[str] = "four analysts, bull and bear debate, trader, risk manager, portfolio manager"
    Config = DeskConfig

    def __init__(self, config: DeskConfig) -> None:
        self._config = config
        everybody = (*ANALYSTS, "bull", "bear", "trader", "risk", "manager")
        self._roles = present(everybody, config, needed=("manager",))

    @property
    def roles(self) -> tuple[str, ...]:
        """Everybody who is asked, in order."""
        return self._roles

    def deliberate(self, packet: Packet, memory: bytes | None) -> Deliberation:
        """Return the making of one decision."""
        minutes = Minutes(attempts=self._config.attempts)
        said: dict[str, Opinion | None] = {}
        for name, (character, sees) in ANALYSTS.items():
            if name in self._roles:
                role = Role(name, "analysis", "analyst", character)
                said[name] = yield from consult(role, packet, sees(packet), Opinion, minutes)
        shown: dict[str, object] = {"opinions": opinions(said)}
        debate: list[Json] = []
        for _ in range(self._config.debate):
            for side in ("bull", "bear"):
                if side in self._roles:
                    role = Role(side, "debate", side)
                    heard = {**shown, "debate": list(debate)}
                    spoken = yield from consult(role, packet, heard, Argument, minutes)
                    debate.append({"role": side, "argument": None if spoken is None else spoken.argument})
        shown["debate"] = debate
        if "trader" in self._roles:
            role = Role("trader", "proposal", "trader")
            proposal = yield from consult(role, packet, {**shown, **sight.record(packet)}, Verdict, minutes)
            shown["proposal"] = None if proposal is None else msgspec.to_builtins(proposal)
        risk = None
        if "risk" in self._roles:
            role = Role("risk", "risk", "risk")
            seen = {**sight.prices(packet), **sight.record(packet), "proposal": shown.get("proposal")}
            risk = yield from consult(role, packet, seen, RiskCheck, minutes)
            shown["risk"] = None if risk is None else msgspec.to_builtins(risk)
        role = Role("manager", "decision", "manager")
        verdict = yield from consult(role, packet, {**shown, **sight.record(packet)}, Verdict, minutes)
        return conclude(verdict, minutes, risk=risk)
