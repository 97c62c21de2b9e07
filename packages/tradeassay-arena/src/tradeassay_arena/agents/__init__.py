"""The agents of entries: a deliberation with a model, a rule, or an outside agent.

Every agent answers with an :class:`AgentChoice`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Protocol, TypeVar, runtime_checkable

from tradeassay.core.errors import UserError
from tradeassay.core.registry import did_you_mean
from tradeassay_arena.agents.ama import Conduct, architectures, make_architecture
from tradeassay_arena.season import BASELINE, Entry, Season
from tradeassay_bench.core.arena import Action, AgentChoice, Deliberation, Packet
from tradeassay_bench.llm import Model, ModelParams, parse_name

OUTSIDE = ("http", "subprocess", "python", "mcp")
"""Architectures that decide outside this process. The caller that starts the season supplies their
agents.
"""

T = TypeVar("T")
ModelOpener = Callable[[str, ModelParams], AbstractAsyncContextManager[Model]]
"""Opens a model by name, for example a model that gives recorded answers."""


class InsideAgent(Protocol):
    """An agent that deliberates with a model.

    Its dialogue is a generator of questions. The arena asks and records each question. The dialogue
    of a decision depends only on its arguments and the answers.
    """

    def deliberate(self, packet: Packet, memory: bytes | None) -> Deliberation: ...


@runtime_checkable
class OutsideAgent(Protocol):
    """An agent that decides outside the arena: over HTTP, over a pipe or in Python.

    Its answers are not trusted. Every failure is a choice with the status ``failed``, never an
    exception.
    """

    async def decide(self, packet: Packet) -> AgentChoice: ...


@dataclass(frozen=True, slots=True)
class EntryAgent:
    """The agent of an entry with its model, or with None for rules and outside agents.

    With ``each_call``, every answer is written as soon as it arrives, because a second request
    would cost money or return a different answer. With ``recorded``, answers come from a recording,
    so there are no waits and no time-outs.
    """

    agent: InsideAgent | OutsideAgent
    model: Model | None = None
    each_call: bool = True
    recorded: bool = False

    @property
    def repeatable(self) -> bool:
        """Whether the same decision can be made again for free, so that writing it can wait."""
        return not isinstance(self.agent, OutsideAgent) and (
            self.model is None or not self.each_call
        )


class ConstantAction:
    """An agent without a model that always takes the same action. The baseline buys and holds."""

    def __init__(self, action: Action) -> None:
        self._action = action

    def deliberate(self, packet: Packet, memory: bytes | None) -> Deliberation:
        yield from ()
        return AgentChoice(action=self._action, reasoning="rule")


class Trend:
    """A rule that follows the last month: long after a rise, short after a fall, and HOLD without
    history.
    """

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
    outside: Mapping[str, OutsideAgent] | None,
    opener: ModelOpener,
    recorded: bool,
) -> AsyncIterator[dict[str, EntryAgent]]:
    """Open every model once and yield the agent of every entry, by id.

    Leaving the block closes the models. ``recorded`` is whether ``opener`` opens recorded models,
    which answer for free. Raises :class:`UserError` for an unknown architecture or rule, an
    architecture without a model, or an outside entry without an agent.
    """
    params, models = season_params(season), dict[str, Model]()
    async with AsyncExitStack() as stack:
        found = {}
        for entry in season.all_entries:
            made = _made(season, entry, outside or {})
            if isinstance(made, ConstantAction | Trend | OutsideAgent):
                found[entry.id] = EntryAgent(made)
                continue
            if entry.model not in models:
                models[entry.model] = await stack.enter_async_context(opener(entry.model, params))
            # A scripted or recorded model repeats its answers for free, so they need not be written
            # one by one.
            paid = not recorded and parse_name(entry.model).route != "scripted"
            found[entry.id] = EntryAgent(
                made, models[entry.model], each_call=paid, recorded=recorded
            )
        yield found


def season_params(season: Season) -> ModelParams:
    """Return the model parameters that all questions of a season share."""
    return ModelParams(
        temperature=season.temperature,
        max_tokens=season.max_tokens,
        timeout_s=float(season.timeout_s),
    )


def check_entries(season: Season, outside: Collection[str] = ()) -> None:
    """Raise the errors of :func:`entry_agents` without opening a model.

    ``outside`` contains the ids of outside entries that have an agent.
    """
    for entry in season.all_entries:
        _made(season, entry, dict.fromkeys(outside, ConstantAction("HOLD")))


def _made(season: Season, entry: Entry, outside: Mapping[str, T]) -> InsideAgent | T:
    """Return an entry's agent: a rule, an architecture, or its agent in ``outside``."""
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
        raise UserError(f"entry '{entry.id}': unknown architecture '{kind}'", hint=hint)
    rules = season.rules
    conduct = Conduct(
        hold=season.money.hold, allocations=rules.cross_asset, messages=rules.messages
    )
    made = make_architecture(kind, entry.params, conduct)
    if not entry.model:
        raise UserError(
            f"entry '{entry.id}' has no model", hint='for example: model = "scripted/sensible"'
        )
    parse_name(entry.model)
    return made
