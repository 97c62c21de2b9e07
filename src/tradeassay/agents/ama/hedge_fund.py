"""HedgeFundAgent: sixteen personas give signals, a risk manager sets limits, a portfolio manager decides."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from tradeassay.agents.ama import sight
from tradeassay.agents.ama.answers import Opinion, RiskCheck, Verdict
from tradeassay.agents.ama.consulting import Minutes, Role, consult, opinions
from tradeassay.agents.ama.desk import DeskConfig, conclude, present
from tradeassay.agents.ama.personas import PERSONAS
from tradeassay.agents.ama.registry import architectures
from tradeassay.core.arena import Deliberation, Packet


@architectures.register("hedge-fund")
class HedgeFundAgent:
    """Personas see the same information and not each other; the managers see all signals."""

    summary: ClassVar[str] = "sixteen investor personas, a risk manager, a portfolio manager"
    Config = DeskConfig

    def __init__(self, config: DeskConfig) -> None:
        self._config = config
        self._roles = present((*PERSONAS, "risk", "manager"), config, needed=("manager",))

    @property
    def roles(self) -> tuple[str, ...]:
        """Everybody who is asked, in order."""
        return self._roles

    def deliberate(self, packet: Packet, memory: bytes | None) -> Deliberation:
        """Return the making of one decision."""
        minutes = Minutes(attempts=self._config.attempts)
        shown = sight.everything(packet)
        said: dict[str, Opinion | None] = {}
        for name, character in PERSONAS.items():
            if name in self._roles:
                role = Role(name, "signal", "persona", character)
                said[name] = yield from consult(role, packet, shown, Opinion, minutes)
        signals: dict[str, object] = {"opinions": opinions(said)}
        risk = None
        if "risk" in self._roles:
            role = Role("risk", "risk", "risk")
            seen = {**sight.prices(packet), **sight.record(packet), **signals}
            risk = yield from consult(role, packet, seen, RiskCheck, minutes)
            signals["risk"] = None if risk is None else msgspec.to_builtins(risk)
        role = Role("manager", "decision", "manager")
        seen = {**signals, "price": packet.price, "momentum": packet.momentum, **sight.record(packet)}
        verdict = yield from consult(role, packet, seen, Verdict, minutes)
        return conclude(verdict, minutes, risk=risk)
