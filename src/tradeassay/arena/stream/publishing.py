"""The stream as a season's rounds see it: a hook that turns a feed's facts into published items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tradeassay.arena.rounds.feed import AssetFacts, Due
from tradeassay.arena.rounds.running import Publish, Published
from tradeassay.arena.season import Season
from tradeassay.arena.state.store import Store
from tradeassay.arena.stream.editing import Editing, EditingDesk, Question, edit, from_facts
from tradeassay.arena.stream.items import Language
from tradeassay.arena.stream.store import inbox, keep_reply, stored_news, stored_reply, window, write_edition
from tradeassay.core.dialogue import ModelReply
from tradeassay.core.drive import adrive, drive
from tradeassay.core.errors import UserError
from tradeassay.core.time import DAY
from tradeassay.llm import Model, QuestionPlace


def stream_publisher(
    store: Store,
    season: Season,
    model: Model | None = None,
    *,
    language: Language | None = None,
    names: Mapping[str, Sequence[str]] | None = None,
) -> Publish:
    """Return the hook that a :class:`~tradeassay.arena.rounds.running.Runner` publishes through.

    Without a ``model`` items are shown in their own words. ``language`` is what summaries are written in (None:
    the source's, English or Chinese); ``names`` are further names of assets, which a summary may use. What a
    round was given is stored, and given again. Raises :class:`UserError` for a language no check covers.
    """
    if language == "other":
        raise UserError("summaries can be checked in English and Chinese only", hint="ask for 'en' or 'zh'")
    given = names or {}

    def begin(due: Due, facts: AssetFacts) -> Editing:
        since = due.at - season.news_days * DAY
        raw = (*from_facts(season, due, facts), *inbox(store, season.id, due.asset, since, due.at))
        # One day more than is shown: a repeat of something that has just left the window is still a repeat.
        on_record = window(store, season.id, due, raw, since - DAY)
        named = tuple(given.get(due.asset, ()))
        desk = EditingDesk(season=season.id, model=model.name if model else None, language=language, names=named)
        return edit(desk, due, raw, on_record)

    def publish(due: Due, facts: AssetFacts) -> Published:
        there = stored_news(store, season.id, due)
        if there is not None:
            return there
        return write_edition(store, season.id, due, drive(begin(due, facts), _nobody))

    async def publish_with_model(due: Due, facts: AssetFacts) -> Published:
        assert model is not None
        there = stored_news(store, season.id, due)
        if there is not None:
            return there
        edition = await adrive(begin(due, facts), lambda asked: _answer(store, season.id, due, model, asked))
        return write_edition(store, season.id, due, edition)

    return publish if model is None else publish_with_model


def _nobody(question: Question) -> ModelReply:
    raise AssertionError(f"a desk without a model asks nothing, but it asked about {question.item}")


async def _answer(store: Store, season: str, due: Due, model: Model, question: Question) -> ModelReply:
    known = stored_reply(store, question, model.name)
    if known is not None:
        return known
    step = int(due.session.replace("-", ""))
    place = QuestionPlace(
        episode=f"{season}/{due.asset}/stream/{question.item}", step=step, sample=0, index=question.number
    )
    reply = await model.ask(question.request, place)
    keep_reply(store, question, model.name, reply)
    # Of two workers that asked at once the first answer counts, for both.
    return stored_reply(store, question, model.name) or reply
