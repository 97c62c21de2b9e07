"""A packet of the arena, and a resolver of host names that knows its answer."""

from collections.abc import Callable

from tradeassay_bench.core.arena import NewsShown, Packet, PricePoint, SettledOutcome

PACKET = Packet(
    season="s",
    date="2025-08-01",
    decided_at="2025-08-01T20:00:00Z",
    symbol="TSLA",
    kind="stock",
    price=300.0,
    history=tuple(PricePoint(date=f"2025-07-{d}", price=float(d)) for d in range(20, 30)),
    news=(
        NewsShown(id="n1", published_at="2025-08-01T12:00:00Z", source="wire", title="A", text="B"),
    ),
    annual_report="Revenue: 1",
    momentum=0.05,
    position=1,
    outcomes=(SettledOutcome(date="2025-07-29", action="BUY", position=1, earned=0.01),),
)


def served_at(*addresses: str) -> Callable[[str, int], object]:
    async def resolve(host: str, port: int) -> list[str]:
        return list(addresses)

    return resolve
