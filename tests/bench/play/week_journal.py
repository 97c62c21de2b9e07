"""Small journals, written by hand, for the tests of scoring."""

from tradeassay_bench.core.events import Deposited, Event, Filled, Marked, Rejected, StepRecord
from tradeassay_bench.core.orders import Decision, Failure, Order


def buy(symbol: str, quantity: float, price: float, fee: float = 0.0, order: str = "o") -> Filled:
    return Filled(order, symbol, quantity, price, price, fee, 0.0, -quantity * price - fee)


def step(
    number: int,
    *events: Event,
    cash: float,
    held: dict[str, tuple[float, float]] | None = None,
    decision: Decision | None = None,
    opening: tuple[Event, ...] = (),
) -> StepRecord:
    """One record that ends with a mark; ``held`` maps a symbol to (quantity, price)."""
    held = held or {}
    value = sum(quantity * price for quantity, price in held.values())
    mark = Marked(
        cash, value, cash + value, (), {symbol: price for symbol, (_, price) in held.items()}
    )
    return StepRecord(
        step=number,
        session=f"2025-03-{3 + number:02d}",
        decided_at=number,
        opening=opening,
        decision=decision or Decision(),
        events=(*events, mark),
    )


def traded_week() -> list[StepRecord]:
    """Buy 5 A at 10 and 2 B at 25 with 100; a refused order; a failed day; a rise of A to 12."""
    orders = (Order(symbol="A", amount=5, side="BUY"), Order(symbol="B", amount=2, side="BUY"))
    refused = Rejected("1.0", "C", "limit_up", "at the limit")
    idle = Rejected("1.1", "A", "no_change", "already there")
    one = (
        Order(symbol="C", amount=1, side="BUY"),
        Order(symbol="A", amount=5, unit="target_shares"),
    )
    broken = Decision(status="failed", failures=(Failure(kind="schema", detail="no JSON"),))
    return [
        step(
            0,
            buy("A", 5, 10.0, fee=1.0),
            buy("B", 1, 25.0),
            cash=24.0,
            held={"A": (5, 10.0), "B": (1, 25.0)},
            decision=Decision(orders=orders),
            opening=(Deposited(100.0),),
        ),
        step(
            1,
            refused,
            idle,
            cash=24.0,
            held={"A": (5, 12.0), "B": (1, 25.0)},
            decision=Decision(orders=one),
        ),
        step(2, cash=24.0, held={"A": (5, 12.0), "B": (1, 25.0)}, decision=broken),
        step(3, cash=24.0, held={"A": (5, 12.0), "B": (1, 20.0)}),
    ]


def silent(days: int) -> list[StepRecord]:
    """A model that never answered."""
    failed = Decision(status="failed", failures=(Failure(kind="timeout", detail="180 s"),))
    return [
        step(day, cash=100.0, decision=failed, opening=(Deposited(100.0),) if day == 0 else ())
        for day in range(days)
    ]
