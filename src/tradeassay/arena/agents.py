"""Who decides for an entry: a deliberation with a model, a rule, or somebody outside. All answer with a choice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

from tradeassay.agents.ama import Conduct, architectures, make_architecture
from tradeassay.arena.season import BASELINE, Entry, Season
from tradeassay.core.arena import Action, AgentChoice, Deliberation, Packet
from tradeassay.core.errors import UserError
from tradeassay.core.registry import did_you_mean
from tradeassay.llm import Model, ModelParams, parse_name

OUTSIDE = ("http", "subprocess", "python", "mcp")
"""Architectures that decide outside this process; whoever starts the season supplies their agents."""

T = TypeVar("T")
ModelOpener = Callable[[str, ModelParams], AbstractAsyncContextManager[Model]]
"""Opens a model by its name, where models are not opened as usual: their recorded answers, say."""


class InsideAgent(Protocol):
    """An agent that thinks with a model: a generator of questions, driven and recorded by the arena. The dialogue
    of a decision depends on its arguments and the answers alone."""

    def deliberate(self, packet: Packet, memory: bytes | None) -> Deliberation: ...


@runtime_checkable
class OutsideAgent(Protocol):
    """An agent that decides by itself, over HTTP, a pipe or in Python; nothing it says is believed. Every failure
    is a choice with status ``failed``, never an exception."""

    async def decide(self, packet: Packet) -> AgentChoice: ...


@dataclass(frozen=True, slots=True)
class EntryAgent:
    """The agent of an entry, ready to be asked, and the model it asks (None for rules and outsiders).

    ``each_call``: answers are written one by one, because asking again would cost money or give another answer.
    ``recorded``: answers are at hand, so that nobody is waited for and time is no matter."""

    agent: InsideAgent | OutsideAgent
    model: Model | None = None
    each_call: bool = True
    recorded: bool = False

    @property
    def repeatable(self) -> bool:
        """Whether asking again gives the same decision for free, so that writing its decisions can wait."""
        return not isinstance(self.agent, OutsideAgent) and (self.model is None or not self.each_call)


class ConstantAction:
    """An agent without a model: always the same action (the baseline buys and holds)."""

    def __init__(self, action: Action) -> None:
        self._action = action

    def deliberate(self, packet: Packet, memory: bytes | None) -> Deliberation:
        yield from ()
        return AgentChoice(action=self._action, reasoning="rule")


class Trend:
    """A rule that follows the last month: long after a rise, short after a fall, unchanged without history."""

    def deliberate(self, packet: Packet, memory: bytes | None) -> Deliberation:
        yield from ()
        if packet.momentum is None:
            return AgentChoice(action="HOLD", reasoning="no month of history yet")
        action: Action = "BUY" if packet.momentum > 0 else "SELL"
        return AgentChoice(action=action, reasoning=f"one-month return {packet.momentum:+.2%}")


@asynccontextmanager
async def entry_agents(
    season: Season, *, outside: Mapping[str, OutsideAgent] | None, opener: ModelOpener, recorded: bool
) -> AsyncIterator[dict[str, EntryAgent]]:
    """Open every model once and make the agent of every entry; leaving the block closes the models.

    ``recorded``: ``opener`` opens recorded models, and asking them again is free.
    Raises :class:`UserError` for an unknown architecture or rule, an architecture without a model, or an outside
    entry without an agent."""
    params, models = season_params(season), dict[str, Model]()
    async with AsyncExitStack() as stack:
        found = {}
        for entry in season.everyone:
            made = _made(season, entry, outside or {})
            if isinstance(made, ConstantAction | Trend | OutsideAgent):
                found[entry.id] = EntryAgent(made)
                continue
            if entry.model not in models:
                models[entry.model] = await stack.enter_async_context(opener(entry.model, params))
            # A scripted or recorded model repeats its answers for free: no need to write them one by one.
            paid = not recorded and parse_name(entry.model).route != "scripted"
            found[entry.id] = EntryAgent(made, models[entry.model], each_call=paid, recorded=recorded)
        yield found


def season_params(season: Season) -> ModelParams:
    """Return what is sent with every question of a season."""
    return ModelParams(
        temperature=season.temperature, max_tokens=season.max_tokens, timeout_s=float(season.timeout_s)
    )


def check_entries(season: Season, outside: Collection[str] = ()) -> None:
    """Raise what :func:`entry_agents` would raise, without opening a model; ``outside`` ids have an agent."""
    for entry in season.everyone:
        _made(season, entry, dict.fromkeys(outside, ConstantAction("HOLD")))


def _made(season: Season, entry: Entry, outside: Mapping[str, T]) -> InsideAgent | T:
    """Return who decides for an entry: a rule, an architecture for its model, or whoever is given ``outside``."""
    kind = entry.architecture
    if kind == "rule":
        name = "buy" if entry.id == BASELINE else str(entry.params.get("rule", ""))
        fixed: dict[str, Action] = {"buy": "BUY", "sell": "SELL", "hold": "HOLD"}
        if name in fixed:
            return ConstantAction(fixed[name])
        if name == "trend":
            return Trend()
        hint = f"params.rule is one of {', '.join((*fixed, 'trend'))}"
        raise UserError(f"entry '{entry.id}' has no rule '{name}'", hint=hint)
    if kind in OUTSIDE:
        if entry.id in outside:
            return outside[entry.id]
        what = f"entry '{entry.id}' decides outside ({kind}), but no agent is connected for it"
        raise UserError(what, hint="register it first")
    names = (*architectures.names(), "rule", *OUTSIDE)
    if kind not in names:
        hint = did_you_mean(kind, names, f"one of {', '.join(names)}")
        raise UserError(f"entry '{entry.id}': no architecture '{kind}'", hint=hint)
    rules = season.rules
    conduct = Conduct(hold=season.money.hold, allocations=rules.cross_asset, messages=rules.messages)
    made = make_architecture(kind, entry.params, conduct)
    if not entry.model:
        raise UserError(f"entry '{entry.id}' has no model", hint='add model = "scripted/sensible", say')
    parse_name(entry.model)
    return made
