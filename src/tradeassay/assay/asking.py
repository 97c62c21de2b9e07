"""Models asked for a study: under one budget, with answers recorded, or replayed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.llm import Access, Budget, CassetteStore, ModelParams, load_prices, open_model
from tradeassay.play import Asked
from tradeassay.play.episode import NOBODY
from tradeassay.runs.spec.episode import Asking, asking_of, refuse_bad_names

AskOne = Callable[[Asked[AskModel]], Awaitable[ModelReply]]


class Asker:
    """Asks models as an :class:`Asking` says, all of them out of one budget."""

    def __init__(self, asking: Asking | None, home: Path | None) -> None:
        self.asking = asking = asking_of(asking)
        self.store = None if asking.cassettes is None else CassetteStore(asking.cassettes)
        self.access = Access(base_url=asking.base_url, prices=load_prices(asking.prices), home=home)
        spent = asking.spent_usd
        if self.store is not None and not asking.replay:
            spent += self.store.spent_usd()
        self.budget, self._spent_before = Budget(asking.max_usd, spent_usd=spent), spent

    @property
    def usd(self) -> float | None:
        """What this study spent now; None where a price is not known."""
        if self.asking.replay:
            return 0.0
        if self.budget.unpriced_calls:
            return None
        return self.budget.spent_usd - self._spent_before

    def check(self, model: str) -> None:
        """Raise :class:`UserError` for a model that could not be asked, or whose price a cap would need."""
        refuse_bad_names([model], self.asking, None if self.access.home is None else str(self.access.home))

    @asynccontextmanager
    async def open(self, name: str, params: ModelParams) -> AsyncIterator[AskOne]:
        """Open a model to be asked; raises :class:`ModelError` where nobody answers."""
        asking = self.asking
        async with open_model(
            name,
            params,
            cassette=self.store,
            replay=asking.replay,
            budget=self.budget,
            connections=asking.concurrency,
            access=self.access,
        ) as model:

            async def ask(asked: Asked[AskModel]) -> ModelReply:
                reply = await model.ask(*asked)
                if reply.error_kind in NOBODY:
                    # A share of refusals, or of right answers, would be about the line, not about the model.
                    raise asking.unanswered(name, reply)
                return reply

            yield ask
