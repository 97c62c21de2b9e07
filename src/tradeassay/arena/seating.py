"""From a season's entries to seats: architectures get their models, rules their rule, outsiders their door."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager

from tradeassay.agents.ama import architectures, make_architecture
from tradeassay.arena.rounds.deciding import Seat
from tradeassay.arena.rounds.player import OutsidePlayer, Rule, Trend
from tradeassay.arena.season import BASELINE, Entry, Season
from tradeassay.core.errors import UserError
from tradeassay.core.near import did_you_mean
from tradeassay.llm import Access, Budget, Model, ModelParams, open_model, parse_name

RULES = ("buy", "sell", "hold", "trend")
"""What an entry of architecture ``rule`` may have as its parameter ``rule``."""

OUTSIDE = ("http", "subprocess", "python", "mcp")
"""Architectures that decide outside this process; whoever starts the season hands their players over."""


@asynccontextmanager
async def seats(
    season: Season,
    *,
    outside: Mapping[str, OutsidePlayer] | None = None,
    budget: Budget | None = None,
    connections: int = 10,
    access: Access | None = None,
) -> AsyncIterator[dict[str, Seat]]:
    """Open every model once and seat every entry; leaving the block closes the models.

    Raises :class:`UserError` for an unknown architecture or rule, an architecture without a model, or an outside
    entry nobody was handed over for.
    """
    async with AsyncExitStack() as stack:
        models: dict[str, Model] = {}
        params = ModelParams(
            temperature=season.temperature, max_tokens=season.max_tokens, timeout_s=float(season.timeout_s)
        )
        found = {}
        for entry in season.everyone:
            if entry.model and entry.architecture in architectures.names() and entry.model not in models:
                opened = open_model(entry.model, params, budget=budget, connections=connections, access=access)
                models[entry.model] = await stack.enter_async_context(opened)
            found[entry.id] = _seat(entry, models, outside or {})
        yield found


def check_entries(season: Season, outside: tuple[str, ...] = ()) -> None:
    """Raise what seating would raise, without opening a model. ``outside`` are ids that have a player."""
    for entry in season.everyone:
        kind = entry.architecture
        if kind == "rule":
            _rule(entry)
        elif kind in OUTSIDE:
            if entry.id not in outside:
                raise _nobody(entry)
        else:
            _known(entry)
            make_architecture(kind, entry.params)
            if not entry.model:
                raise UserError(f"entry '{entry.id}' has no model", mend='add model = "scripted/sensible", say')
            parse_name(entry.model)


def _seat(entry: Entry, models: Mapping[str, Model], outside: Mapping[str, OutsidePlayer]) -> Seat:
    if entry.architecture == "rule":
        return Seat(_rule(entry))
    if entry.architecture in OUTSIDE:
        if entry.id not in outside:
            raise _nobody(entry)
        return Seat(outside[entry.id])
    _known(entry)
    if not entry.model:
        raise UserError(f"entry '{entry.id}' has no model", mend='add model = "scripted/sensible", say')
    # A scripted model answers a repeated question alike and for nothing: no need to write answers one by one.
    paid = parse_name(entry.model).route != "scripted"
    return Seat(make_architecture(entry.architecture, entry.params), models[entry.model], each_call=paid)


def _rule(entry: Entry) -> Rule | Trend:
    name = "buy" if entry.id == BASELINE else str(entry.params.get("rule", ""))
    if name == "trend":
        return Trend()
    if name == "buy":
        return Rule("BUY")
    if name == "sell":
        return Rule("SELL")
    if name == "hold":
        return Rule("HOLD")
    raise UserError(f"entry '{entry.id}' has no rule '{name}'", mend=f"params.rule is one of {', '.join(RULES)}")


def _known(entry: Entry) -> None:
    names = (*architectures.names(), "rule", *OUTSIDE)
    if entry.architecture not in names:
        hint = did_you_mean(entry.architecture, names, f"one of {', '.join(names)}")
        raise UserError(f"entry '{entry.id}': no architecture '{entry.architecture}'", mend=hint)


def _nobody(entry: Entry) -> UserError:
    return UserError(
        f"entry '{entry.id}' decides outside ({entry.architecture}), but nobody is connected for it",
        mend="register it first",
    )
