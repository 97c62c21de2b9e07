"""What a season's models have cost so far, and how a season stops at a command's cap on dollars."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
from sqlalchemy import select

from tradeassay.arena.agents import ModelOpener, season_params
from tradeassay.arena.season import Season
from tradeassay.arena.state.rows import unpacked
from tradeassay.arena.state.store import Store
from tradeassay.arena.state.tables import calls, decisions, stream_calls
from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.core.errors import UserError
from tradeassay.llm import Model, ModelParams, PriceTable, QuestionPlace
from tradeassay.llm.budget import most_request


class SeasonCapped(UserError):
    """The cap on dollars is reached. The season stops before the question, and can be continued."""


def capped(opener: ModelOpener) -> ModelOpener:
    """Return an opener whose models raise :class:`SeasonCapped` where the budget refuses a question.

    A decision that failed for want of money would be on record for ever. A season that stops is continued."""

    @asynccontextmanager
    async def open_capped(name: str, params: ModelParams) -> AsyncIterator[Model]:
        async with opener(name, params) as model:
            yield _CappedModel(model)

    return open_capped


class _CappedModel:
    def __init__(self, inner: Model) -> None:
        self.name, self._inner = inner.name, inner

    async def ask(self, request: AskModel, place: QuestionPlace) -> ModelReply:
        reply = await self._inner.ask(request, place)
        if reply.error_kind == "over_budget":
            raise SeasonCapped(f"{self.name} was not asked: {reply.error}", hint="raise the cap to continue")
        return reply


def season_models(season: Season) -> tuple[str, ...]:
    """Return the models that a season asks: its entries', and those that summarise and check its news."""
    names = [entry.model for entry in season.everyone]
    return tuple(dict.fromkeys(name for name in (*names, season.summary.model, season.summary.checker) if name))


def spent_usd(store: Store, season: Season, prices: PriceTable) -> float:
    """Return the dollars that the answers in a season's database cost, as far as their prices are known.

    A question that brought no bill (its answer was lost) counts with the most that one attempt could have cost."""
    spent, most_output = 0.0, season_params(season).max_tokens
    models = {entry.id: entry.model for entry in season.everyone}
    asked = select(decisions.c.entry, calls.c.request, calls.c.reply).join(
        decisions, decisions.c.id == calls.c.slot
    )
    for entry, request, raw in store.rows(asked.where(decisions.c.season == season.id)):
        reply = msgspec.json.decode(unpacked(raw), type=ModelReply)
        if reply.usage.usd is not None:
            spent += reply.usage.usd
        elif (price := prices.of(models[entry])) is not None:
            question = msgspec.json.decode(unpacked(request), type=AskModel)
            spent += price.worst_usd(most_request(question), most_output)
    for (raw,) in store.rows(select(stream_calls.c.reply)):
        spent += msgspec.json.decode(unpacked(raw), type=ModelReply).usage.usd or 0.0
    return spent
