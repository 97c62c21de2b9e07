"""Query models for a study under one budget. Answers are recorded, or replayed from a recording."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from tradeassay_bench.core.dialogue import AskModel, ModelReply
from tradeassay_bench.llm import (
    Access,
    Budget,
    ModelParams,
    RecordingStore,
    load_prices,
    open_model,
)
from tradeassay_bench.play import AddressedQuestion
from tradeassay_bench.play.episode import UNAVAILABLE
from tradeassay_bench.runs.spec.episode import Asking, asking_or_default, refuse_bad_names

AskOne = Callable[[AddressedQuestion[AskModel]], Awaitable[ModelReply]]


class Asker:
    """Queries models with the options of an :class:`Asking`. All queries share one budget."""

    def __init__(self, asking: Asking | None, home: Path | None) -> None:
        asking = asking_or_default(asking)
        self.asking = asking
        self.store = None if asking.recordings is None else RecordingStore(asking.recordings)
        self.access = Access(base_url=asking.base_url, prices=load_prices(asking.prices), home=home)
        spent = asking.spent_usd
        if self.store is not None and not asking.replay:
            spent += self.store.spent_usd()
        self.budget, self._spent_before = Budget(asking.max_usd, spent_usd=spent), spent

    @property
    def usd(self) -> float | None:
        """Return the dollars that this study has spent; None if a price is unknown."""
        if self.asking.replay:
            return 0.0
        if self.budget.unpriced_calls:
            return None
        return self.budget.spent_usd - self._spent_before

    def check(self, model: str) -> None:
        """Check that a model can be queried.

        Raises :class:`UserError` if the model is unavailable, or if a dollar cap is set for a model
        whose price is unknown.
        """
        refuse_bad_names(
            [model], self.asking, None if self.access.home is None else str(self.access.home)
        )

    @asynccontextmanager
    async def open(self, name: str, params: ModelParams) -> AsyncIterator[AskOne]:
        """Open a model for the block. Raises :class:`ModelError` if it cannot answer."""
        asking = self.asking
        async with open_model(
            name,
            params,
            recording=self.store,
            replay=asking.replay,
            budget=self.budget,
            connections=asking.concurrency,
            access=self.access,
        ) as model:

            async def ask(asked: AddressedQuestion[AskModel]) -> ModelReply:
                reply = await model.ask(*asked)
                if reply.error_kind in UNAVAILABLE:
                    # A rate of refusals or of correct answers would describe the connection, not
                    # the model.
                    raise asking.unanswered(name, reply)
                return reply

            yield ask
