"""Who decides for an entry: a deliberation with a model, a rule, or somebody outside. All answer with a choice."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from tradeassay.agents.ama import Conduct, architectures, make_architecture
from tradeassay.arena.season import BASELINE, Entry, Season
from tradeassay.core.arena import Action, AgentChoice, Deliberation, Packet
from tradeassay.core.errors import UserError
from tradeassay.core.registry import did_you_mean
from tradeassay.llm import Access, Budget, Model, ModelParams, open_model, parse_name

RULES = ("buy", "sell", "hold", "trend")
"""What an entry of architecture ``rule`` may have as its parameter ``rule``."""

OUTSIDE = ("http", "subprocess", "python", "mcp")
"""Architectures that decide outside this process; whoever starts the season supplies their agents."""


ModelOpener = Callable[[str, ModelParams], AbstractAsyncContextManager[Model]]
"""Opens a model by its name, where models are not opened as usual: their recorded answers, say."""


class InsideAgent(Protocol):
    """An agent that thinks with a model: a generator of questions, driven and recorded by the arena."""

    def deliberate(self, packet: Packet, memory: bytes | None) -> Deliberation:
        """Return the dialogue of one decision. It must depend on its arguments and the answers alone."""
        ...


@runtime_checkable
class OutsideAgent(Protocol):
    """An agent that decides by itself, over HTTP, a pipe or in Python; nothing it says is believed."""

    async def decide(self, packet: Packet) -> AgentChoice:
        """Return a choice; every failure is a choice with status ``failed``, never an exception."""
        ...


@dataclass(frozen=True, slots=True)
class EntryAgent:
    """The agent of an entry, ready to be asked, and the model it asks (None for rules and outsiders).

    ``each_call``: answers are written one by one, because asking again would cost money or give another answer.
    ``recorded``: answers are at hand, so that nobody is waited for and time is no matter.
    """

    agent: InsideAgent | OutsideAgent
    model: Model | None = None
    each_call: bool = True
    recorded: bool = False
    outside: OutsideAgent | None = field(init=False, default=None)
    """The agent, where it decides by itself."""

    def __post_init__(self) -> None:
        if isinstance(self.agent, OutsideAgent):
            object.__setattr__(self, "outside", self.agent)

    @property
    def repeatable(self) -> bool:
        """Whether asking again gives the same decision for free, so that writing its decisions can wait."""
        return self.outside is None and (self.model is None or not self.each_call)

    def deliberate(self, packet: Packet, memory: bytes | None) -> Deliberation:
        """Return the dialogue of a decision that is not made outside."""
        inside: InsideAgent = self.agent  # type: ignore[assignment]  # the other kind is asked directly
        return inside.deliberate(packet, memory)


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
    season: Season,
    *,
    outside: Mapping[str, OutsideAgent] | None = None,
    budget: Budget | None = None,
    connections: int = 10,
    access: Access | None = None,
    opener: ModelOpener | None = None,
) -> AsyncIterator[dict[str, EntryAgent]]:
    """Open every model once and make the agent of every entry; leaving the block closes the models.

    ``opener`` opens recorded models: asking them again is free.
    Raises :class:`UserError` for an unknown architecture or rule, an architecture without a model, or an outside
    entry without an agent.
    """
    async with AsyncExitStack() as stack:
        models: dict[str, Model] = {}
        params = season_params(season)
        found = {}
        for entry in season.everyone:
            if entry.model and entry.architecture in architectures.names() and entry.model not in models:
                if opener is not None:
                    opened = opener(entry.model, params)
                else:
                    opened = open_model(entry.model, params, budget=budget, connections=connections, access=access)
                models[entry.model] = await stack.enter_async_context(opened)
            found[entry.id] = _agent(season, entry, models, outside or {}, recorded=opener is not None)
        yield found


def season_params(season: Season) -> ModelParams:
    """Return what is sent with every question of a season."""
    return ModelParams(
        temperature=season.temperature, max_tokens=season.max_tokens, timeout_s=float(season.timeout_s)
    )


def conduct_of(season: Season) -> Conduct:
    return Conduct(
        hold=season.money.hold,
        allocations=season.rules.cross_asset,
        messages=season.rules.messages,
    )


def check_entries(season: Season, outside: tuple[str, ...] = ()) -> None:
    """Raise what :func:`entry_agents` would raise, without opening a model; ``outside`` ids have an agent."""
    for entry in season.everyone:
        kind = entry.architecture
        if kind == "rule":
            _rule(entry)
        elif kind in OUTSIDE:
            if entry.id not in outside:
                raise _no_agent(entry)
        else:
            _known(entry)
            make_architecture(kind, entry.params, conduct_of(season))
            if not entry.model:
                raise UserError(f"entry '{entry.id}' has no model", hint='add model = "scripted/sensible", say')
            parse_name(entry.model)


def _agent(
    season: Season,
    entry: Entry,
    models: Mapping[str, Model],
    outside: Mapping[str, OutsideAgent],
    *,
    recorded: bool = False,
) -> EntryAgent:
    if entry.architecture == "rule":
        return EntryAgent(_rule(entry))
    if entry.architecture in OUTSIDE:
        if entry.id not in outside:
            raise _no_agent(entry)
        return EntryAgent(outside[entry.id])
    _known(entry)
    if not entry.model:
        raise UserError(f"entry '{entry.id}' has no model", hint='add model = "scripted/sensible", say')
    # A scripted or recorded model repeats its answers for free: no need to write them one by one.
    paid = not recorded and parse_name(entry.model).route != "scripted"
    made = make_architecture(entry.architecture, entry.params, conduct_of(season))
    return EntryAgent(made, models[entry.model], each_call=paid, recorded=recorded)


def _rule(entry: Entry) -> ConstantAction | Trend:
    name = "buy" if entry.id == BASELINE else str(entry.params.get("rule", ""))
    fixed: dict[str, Action] = {"buy": "BUY", "sell": "SELL", "hold": "HOLD"}
    if name in fixed:
        return ConstantAction(fixed[name])
    if name == "trend":
        return Trend()
    raise UserError(f"entry '{entry.id}' has no rule '{name}'", hint=f"params.rule is one of {', '.join(RULES)}")


def _known(entry: Entry) -> None:
    names = (*architectures.names(), "rule", *OUTSIDE)
    if entry.architecture not in names:
        hint = did_you_mean(entry.architecture, names, f"one of {', '.join(names)}")
        raise UserError(f"entry '{entry.id}': no architecture '{entry.architecture}'", hint=hint)


def _no_agent(entry: Entry) -> UserError:
    return UserError(
        f"entry '{entry.id}' decides outside ({entry.architecture}), but no agent is connected for it",
        hint="register it first",
    )
