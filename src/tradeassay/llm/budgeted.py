"""A provider that is paid: every attempt is reserved for before it is made and settled after it was."""

from __future__ import annotations

from tradeassay.core.dialogue import AskModel
from tradeassay.core.errors import UserError
from tradeassay.llm.attempt import Attempt, Provider
from tradeassay.llm.budget import Budget
from tradeassay.llm.model import Place, failed_reply
from tradeassay.llm.params import ModelParams
from tradeassay.llm.tables.prices import Price
from tradeassay.llm.tokens import most_request


class BudgetedProvider:
    """Asks another provider while the money lasts; then answers ``over_budget``.

    Raises :class:`UserError` when there is a cap and the price is unknown: such a cap cannot be kept.
    """

    def __init__(self, inner: Provider, params: ModelParams, budget: Budget, price: Price | None) -> None:
        if price is None and budget.max_usd is not None:
            raise UserError(
                f"the price of {inner.name} is unknown, so a cap of {budget.max_usd:g} dollars cannot be kept",
                mend="give its price in a file of prices, or run without a cap",
            )
        self._inner = inner
        self._budget = budget
        self._price = price
        # A provider that takes a separate budget for reasoning bills it on top of the answer.
        self._most_output = params.max_tokens + (params.reasoning_tokens or 0)

    @property
    def name(self) -> str:
        """The model's full name."""
        return self._inner.name

    async def attempt(self, request: AskModel, place: Place) -> Attempt:
        """Ask once, or say that the budget is spent."""
        if self._price is None:
            self._budget.unpriced_calls += 1
            return await self._inner.attempt(request, place)
        worst = self._price.worst_usd(most_request(request), self._most_output)
        reservation = await self._budget.reserve(worst)
        if reservation is None:
            return Attempt(reply=failed_reply("over_budget", self._refusal(worst)))
        cost: float | None = None
        try:
            attempt = await self._inner.attempt(request, place)
            cost = attempt.reply.usage.usd
        finally:
            self._budget.settle(reservation, cost)
        return attempt

    async def aclose(self) -> None:
        """Close the inner provider."""
        await self._inner.aclose()

    def _refusal(self, worst: float) -> str:
        return (
            f"the budget of {self._budget.max_usd:g} dollars has {self._budget.left_usd:.6f} left, "
            f"and this call may cost up to {worst:.6f}"
        )
