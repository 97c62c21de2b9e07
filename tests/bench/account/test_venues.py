"""The venues that ship, and their numbers."""

from pathlib import Path
from typing import get_args

import msgspec
import pytest
from candles import PLAIN, plain

from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_of
from tradeassay_bench.account import (
    ASHARE,
    ASHARE_DATED,
    BUILTIN,
    US,
    US_MARGIN,
    Concentration,
    Margin,
    Settlement,
    Shorting,
    Venue,
    venues,
)
from tradeassay_bench.core.events import AccountTerms, RejectReason


def test_all_are_registered_under_their_own_id():
    for venue in BUILTIN:
        assert venues.get(venue.id) is venue
    assert venues.get("us") is venues.get("us-v1")  # without a version: the newest
    with pytest.raises(UserError, match="us-v1"):
        venues.get("us-v7")


def test_a_venue_survives_json():
    for venue in BUILTIN:
        assert msgspec.json.decode(msgspec.json.encode(venue), type=Venue) == venue
    assert len({sha256_of(venue) for venue in BUILTIN}) == len(BUILTIN)
    assert [venue for venue in BUILTIN if venue.resting.held_to_side is True] == [ASHARE_DATED]


def test_the_numbers_of_the_protocols():
    rules = US.rules()
    assert (rules.buy_cost, rules.sell_cost, rules.lot, rules.long_only) == (
        pytest.approx(3e-4),
        pytest.approx(3e-4),
        1.0,
        True,
    )
    rules = ASHARE.rules(benchmark_index="CSI300")
    assert (rules.buy_cost, rules.sell_cost) == (pytest.approx(5e-4), pytest.approx(15e-4))
    assert (rules.lot, rules.t_plus_1, rules.currency, rules.benchmark_index) == (
        100.0,
        True,
        "CNY",
        "CSI300",
    )
    limits = ASHARE.price_limits
    assert (limits.main, limits.chinext, limits.star, limits.bse, limits.buffer) == (
        0.10,
        0.20,
        0.20,
        0.30,
        0.005,
    )
    assert venues.get("crypto-v1").rules().periods_per_year == 365


def test_limits_are_added_the_stricter_wins_and_agents_are_told():
    rules = PLAIN.limited(max_weight=0.1, max_positions=20).rules(benchmark_index="IDX")
    assert (rules.max_weight, rules.max_positions, rules.benchmark_index) == (0.1, 20, "IDX")
    own = plain(concentration=Concentration(max_weight=0.05, max_positions=8, on_excess="trim"))
    assert PLAIN.limited() == PLAIN and own.limited() == own == own.limited(
        max_weight=0.10, max_positions=20
    )
    stricter = own.limited(max_weight=0.02, max_positions=5).concentration
    assert stricter == Concentration(max_weight=0.02, max_positions=5, on_excess="trim")


def test_contradicting_rules_are_refused():
    with pytest.raises(UserError, match="short sales without margin"):
        plain(shorting=Shorting(allowed=True))
    with pytest.raises(UserError, match="both T\\+1 and margin"):
        plain(margin=Margin(), settlement=Settlement(t_plus=1))


def test_terms_for_the_ledger():
    assert US.terms == AccountTerms()
    assert ASHARE.terms == AccountTerms(t_plus_1=True)
    assert US_MARGIN.terms == AccountTerms(
        margin=True, maintenance_long=0.25, maintenance_short=0.30
    )
    assert not US_MARGIN.rules().long_only


PAGE = (Path(__file__).resolve().parents[3] / "docs" / "reference" / "venues.md").read_text()


def row(venue: Venue) -> str:
    fees, limits = venue.fees, venue.price_limits
    account = "cash" if venue.margin is None else f"margin {venue.margin.initial:.0%}"
    tested = (
        "no" if limits is None else "by the open" if limits.limit_test == "open" else "by the close"
    )
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
