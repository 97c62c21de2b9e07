"""The scripted model that spends what it does not have."""

from __future__ import annotations

from typing import ClassVar

import msgspec

from tradeassay.llm.scripted import ktdfin, stockbench
from tradeassay.llm.scripted.answers import dump
from tradeassay.llm.scripted.reading import Reading, number
from tradeassay.llm.scripted.registry import scripted_models
from tradeassay.llm.scripted.sensible import Sensible

TOO_MUCH = 0.6


@scripted_models.register("overspender")
class Overspender(Sensible):
    """Wants more than half of the account in everything; on some days it listens at the third attempt."""

    summary: ClassVar[str] = "orders far more than its cash and its limits allow"

    def action(self, reading: Reading) -> dict[str, object]:
        """Return orders beyond every limit."""
        if _listens(reading):
            return super().action(msgspec.structs.replace(reading, attempt=1))
        orders = [
            ktdfin.Order(
                stock_id=stock,
                side="BUY",
                target_weight=TOO_MUCH,
                confidence=1.0,
                reason="this one cannot lose, so as much of it as can be had",
            )
            for stock in ktdfin.ranking(reading)[: ktdfin.NAMES]
        ]
        return {"orders": orders, "overall_reason": "all in, on everything, with borrowed money if need be"}

    def decisions(self, reading: Reading) -> dict[str, stockbench.Decided]:
        """Return targets that each take the whole account."""
        if _listens(reading):
            return super().decisions(msgspec.structs.replace(reading, attempt=1))
        nav = number(reading.payload.get("nav"))
        return {
            row.symbol: stockbench.Decided(
                action="increase",
                target_cash_amount=round(row.value + nav, 2),
                reasons=("this one cannot lose",),
                confidence=1.0,
            )
            for row in stockbench.rows(reading)
        }


def _listens(reading: Reading) -> bool:
    return reading.attempt >= 3 and len(dump(reading.payload)) % 2 == 0
