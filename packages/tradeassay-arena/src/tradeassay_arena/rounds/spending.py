"""Compute the cost of a season's models so far, and stop a season at a command's cap on dollars."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
from sqlalchemy import select

from tradeassay.core.errors import UserError
from tradeassay_arena.agents import ModelOpener, season_params
from tradeassay_arena.season import Season, amended
from tradeassay_arena.state.rows import unpacked
from tradeassay_arena.state.store import Store
from tradeassay_arena.state.tables import calls, decisions, stream_calls
from tradeassay_bench.core.arena import ChoiceFailure
from tradeassay_bench.core.dialogue import AskModel, ModelReply
from tradeassay_bench.llm import Model, ModelParams, PriceTable, QuestionPlace, load_prices
from tradeassay_bench.llm.budget import most_request
from tradeassay_bench.llm.tables import own_file, price_line
from tradeassay_bench.play.episode import UNAVAILABLE

UNANSWERED = UNAVAILABLE | {"agent", "timeout"}
"""Kinds of failure of a decision without an answer: no money, no key, no connection, no time."""


class SeasonCapped(UserError):
    """Raised if the cap on dollars is reached.

    The season stops before the question and can be continued.
    """


def capped(opener: ModelOpener) -> ModelOpener:
    """Return an opener whose models raise :class:`SeasonCapped` if the budget refuses a question.

    Without this error, the decision would fail for lack of money and stay in the journal for ever.
    A season that stops can be continued.
    """

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
            raise SeasonCapped(
                f"{self.name} was not asked: {reply.error}", hint="raise the cap to continue"
            )
        return reply


def season_models(season: Season) -> tuple[str, ...]:
    """Return the models of a season.

    These are the models of its entries, and the models that summarise and check its news.
    """
    names = [entry.model for entry in season.all_entries]
    return tuple(
        dict.fromkeys(
            name for name in (*names, season.summary.model, season.summary.checker) if name
        )
    )


def check_prices(season: Season) -> None:
    """Raise :class:`UserError` if a budget in dollars cannot be enforced.

    This is the case if the price of a model is unknown.
    """
    if not season.budget.in_dollars:
        return
    prices = load_prices()
    for name in season_models(season):
        if prices.of(name) is None:
            raise UserError(
                f"the price of {name} is unknown, so season '{season.id}' cannot keep a budget in "
                "dollars",
                hint=f"limit tokens instead, or write into {own_file()}: {price_line(name)}",
            )


def failed_decisions(store: Store, season: Season) -> tuple[Counter[str], int]:
    """Count the decisions of models that failed without an answer.

    Returns the number of failures by cause, and the number of all decisions. An unusable answer is
    the agent's own failure and is not counted here.
    """
    models = list(_models_by_entry(store, season))
    query = select(decisions.c.status, decisions.c.failures).where(
        decisions.c.season == season.id, decisions.c.entry.in_(models), decisions.c.status != "open"
    )
    found, made = Counter[str](), 0
    for status, raw in store.rows(query):
        made += 1
        if status != "failed" or not raw:
            continue
        kinds = {one.kind for one in msgspec.json.decode(raw, type=tuple[ChoiceFailure, ...])}
        found.update(sorted(kinds & UNANSWERED)[:1])
    return found, made


def _models_by_entry(store: Store, season: Season) -> dict[str, str]:
    """Return the model of every entry that has one, including entries that joined later."""
    all_entries = amended(season, store.amendments(season.id)).all_entries
    return {entry.id: entry.model for entry in all_entries if entry.model}


def spent_usd(store: Store, season: Season, prices: PriceTable) -> float:
    """Return the dollar cost of the answers in a season's database, as far as prices are known.

    A question whose answer was lost has no bill. It is counted with the highest possible cost of
    one attempt.
    """
    spent, most_output = 0.0, season_params(season).max_tokens
    models = _models_by_entry(store, season)
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
