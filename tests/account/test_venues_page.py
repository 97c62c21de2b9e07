"""The page about venues shows the numbers that the venues have."""

from pathlib import Path
from typing import get_args

from tradeassay.account import BUILTIN, Venue
from tradeassay.core.events import RejectReason

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "venues.md").read_text()


def row(venue: Venue) -> str:
    fees, limits = venue.fees, venue.price_limits
    account = "cash" if venue.margin is None else f"margin {venue.margin.initial:.0%}"
    tested = "no" if limits is None else "by the open" if limits.limit_test == "open" else "by the close"
    share = venue.participation.max_share
    cells = [
        f"`{venue.id}`",
        account,
        f"{fees.buy_bps:g} / {fees.sell_bps:g}",
        f"{fees.sell_tax_bps:g}",
        f"{fees.minimum:g}",
        f"{venue.slippage.bps:g}",
        f"{venue.lots.lot:g}",
        "yes" if venue.settlement.t_plus else "no",
        tested,
        "no limit" if share is None else f"{share:.0%}",
    ]
    return "| " + " | ".join(cells) + " |"


def test_every_venue_is_on_the_page():
    for venue in BUILTIN:
        assert row(venue) in PAGE


def test_every_reason_is_explained():
    table = PAGE.split("## Reasons")[1].split("## ")[0]
    assert [reason for reason in get_args(RejectReason) if f"`{reason}`" not in table] == []
