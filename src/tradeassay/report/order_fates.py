"""What became of an order: filled, in part, refused, waiting, or nothing that a journal tells."""

from __future__ import annotations

from collections.abc import Sequence

from tradeassay.core.events import Expired, Filled, Rejected, Rested, StepRecord, Trimmed
from tradeassay.report.model_data import FateTone

OrderEvent = Filled | Rejected | Trimmed | Rested | Expired


class Fates:
    """The fates of all orders of a journal from step ``first`` on, those that filled on a later day included."""

    def __init__(self, records: Sequence[StepRecord], first: int = 0) -> None:
        self._events: dict[str, list[OrderEvent]] = {}
        for record in records:
            if record.step < first:
                continue
            for event in (*record.opening, *record.events):
                if isinstance(event, OrderEvent):
                    self._events.setdefault(event.order_id, []).append(event)

    def of(self, step: int, place: int) -> tuple[FateTone, str]:
        """Return the fate of the order at ``place`` in the decision of ``step``."""
        events = self._events.get(f"{step}.{place}", [])
        fills = [event for event in events if isinstance(event, Filled)]
        refused = [event for event in events if isinstance(event, Rejected)]
        trimmed = [event for event in events if isinstance(event, Trimmed)]
        parts = [_filled(fills)] if fills else []
        parts += [f"of {event.asked:,.10g} asked for ({_why(event.reason)})" for event in trimmed]
        parts += [_refused(event, rest=bool(fills)) for event in refused]
        if any(isinstance(event, Expired) for event in events):
            parts.append("ran out before its price was reached")
        elif not fills and any(isinstance(event, Rested) for event in events):
            parts.append("waiting at the end")
        if fills:
            return ("partly" if trimmed or refused else "filled"), "; ".join(parts)
        if refused:
            return "refused", "; ".join(parts)
        return ("waiting", "; ".join(parts)) if parts else ("nothing", "no trade")


def _filled(fills: Sequence[Filled]) -> str:
    quantity = sum(fill.quantity for fill in fills)
    size = sum(abs(fill.quantity) for fill in fills)
    price = sum(abs(fill.quantity) * fill.price for fill in fills) / size if size else fills[0].price
    costs = sum(fill.fee + fill.tax for fill in fills)
    done = "bought" if quantity > 0 else "sold"
    return f"{done} {abs(quantity):,.10g} at {price:,.6g}" + (f", costs {costs:,.2f}" if costs else "")


def _refused(event: Rejected, *, rest: bool) -> str:
    return f"{'rest ' if rest else ''}refused: {_why(event.reason)}" + (
        f" ({event.detail})" if event.detail else ""
    )


def _why(reason: str) -> str:
    return reason.replace("_", " ")
