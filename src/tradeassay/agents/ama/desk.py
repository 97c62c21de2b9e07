"""What the architectures share: settings, leaving a role out, and obeying the risk manager."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from tradeassay.agents.ama.answers import RiskCheck, Verdict
from tradeassay.agents.ama.consulting import Minutes
from tradeassay.core.arena import Action, Choice, ChoiceFailure, Said
from tradeassay.core.errors import UserError


class DeskConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``attempts`` per role, ``without`` names roles that are left out (comma-separated), ``debate`` rounds."""

    attempts: int = 3
    without: str = ""
    debate: int = 1

    def __post_init__(self) -> None:
        if self.attempts < 1 or self.debate < 0:
            raise ValueError("attempts must be at least 1 and debate at least 0")


def present(names: Iterable[str], config: DeskConfig, needed: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the roles that stay; raises :class:`UserError` for one that does not exist or cannot be missed."""
    everybody = tuple(names)
    gone = {name.strip() for name in config.without.split(",") if name.strip()}
    unknown = sorted(gone - set(everybody))
    if unknown:
        raise UserError(f"there is no role '{unknown[0]}' to leave out", mend=f"one of {', '.join(everybody)}")
    kept = sorted(gone & set(needed))
    if kept:
        raise UserError(f"role '{kept[0]}' cannot be left out: nobody else decides")
    return tuple(name for name in everybody if name not in gone)


def conclude(
    verdict: Verdict | None, minutes: Minutes, *, risk: RiskCheck | None = None, memory: bytes | None = None
) -> Choice:
    """Return the choice of a desk. A side that the risk manager forbade becomes HOLD, and that is on record."""
    if verdict is None:
        return msgspec.structs.replace(minutes.failed("the last role gave no usable answer"), memory=memory)
    action, allocation = verdict.action, verdict.allocation
    failures = list(minutes.failures)
    talk = list(minutes.talk)
    if risk is not None:
        if _forbidden(action, risk):
            failures.append(ChoiceFailure(kind="constraint", text=f"{action} was forbidden: {risk.reason}"[:2000]))
            talk.append(Said(role="rules", step="limit", text=f"{action} is not allowed; the desk holds"))
            action = "HOLD"
        if allocation is not None:
            allocation = min(allocation, risk.max_exposure)
    return Choice(
        action=action,
        reasoning=verdict.reasoning,
        confidence=verdict.confidence,
        allocation=allocation,
        message=verdict.message,
        talk=tuple(talk),
        failures=tuple(failures),
        memory=memory,
    )


def _forbidden(action: Action, risk: RiskCheck) -> bool:
    if risk.max_exposure == 0:
        return action != "HOLD"
    return (action == "BUY" and not risk.allow_long) or (action == "SELL" and not risk.allow_short)
