"""The venues that ship. Whatever moves a fill bumps the version in the id."""

from __future__ import annotations

import msgspec

from tradeassay.account.commission import Fees
from tradeassay.account.limits import BoardLimits, BoardRule, Participation, PriceLimits
from tradeassay.account.lots import Lots
from tradeassay.account.margin import Margin
from tradeassay.account.resting import Resting
from tradeassay.account.settlement import Futures, Settlement, Shorting
from tradeassay.account.slippage import Slippage
from tradeassay.account.venue import Era, Venue, venues

_TENTH_OF_VOLUME = Participation(max_share=0.10)

US = Venue(
    id="us-v1",
    title="US stocks, cash account, whole shares",
    currency="USD",
    fees=Fees(buy_bps=1.0, sell_bps=1.0),
    slippage=Slippage(bps=2.0),
    participation=_TENTH_OF_VOLUME,
)
US_FRACTIONAL = Venue(
    id="us-fractional-v1",
    title="US stocks, cash account, fractions of 0.0001 share",
    currency="USD",
    fees=Fees(buy_bps=1.0, sell_bps=1.0),
    slippage=Slippage(bps=2.0),
    lots=Lots(lot=0.0001, step=0.0001, on_odd="trim"),
    participation=_TENTH_OF_VOLUME,
)
US_MARGIN = Venue(
    id="us-margin-v1",
    title="US stocks, margin account with short sales",
    currency="USD",
    fees=Fees(buy_bps=1.0, sell_bps=1.0),
    slippage=Slippage(bps=2.0),
    participation=_TENTH_OF_VOLUME,
    margin=Margin(),
    shorting=Shorting(allowed=True, borrow_per_year=0.01, max_volume_share=0.10),
)
ASHARE = Venue(
    id="ashare-flat-v1",
    title="China A-shares, cash account, T+1, price limits",
    currency="CNY",
    fees=Fees(buy_bps=5.0, sell_bps=5.0, sell_tax_bps=10.0, minimum=5.0, minimum_covers_tax=True),
    lots=Lots(lot=100.0, step=1.0),
    settlement=Settlement(t_plus=1),
    price_limits=PriceLimits(),
    participation=_TENTH_OF_VOLUME,
)
_STAMP_DUTY = (
    # from, on purchases, on sales (basis points); see docs/reference/venues.md for the sources
    ("1992-06-12", 30.0, 30.0),
    ("1997-05-10", 50.0, 50.0),
    ("1998-06-12", 40.0, 40.0),
    ("2001-11-16", 20.0, 20.0),
    ("2005-01-24", 10.0, 10.0),
    ("2007-05-30", 30.0, 30.0),
    ("2008-04-24", 10.0, 10.0),
    ("2008-09-19", 0.0, 10.0),
    ("2023-08-28", 0.0, 5.0),
)
_TEN, _TWENTY = BoardRule(limit=0.10), BoardRule(limit=0.20, free_sessions=5)
_BSE = BoardRule(limit=0.30)
_TEN_ST = BoardRule(limit=0.10, special=0.05)
_LIMITS = (
    ("1992-06-12", None),
    ("1996-12-16", BoardLimits(main=_TEN)),
    ("1998-04-22", BoardLimits(main=_TEN_ST, chinext=_TEN_ST)),
    ("2019-07-22", BoardLimits(main=_TEN_ST, chinext=_TEN_ST, star=_TWENTY)),
    ("2020-08-24", BoardLimits(main=_TEN_ST, chinext=_TWENTY, star=_TWENTY)),
    ("2021-11-15", BoardLimits(main=_TEN_ST, chinext=_TWENTY, star=_TWENTY, bse=_BSE)),
    (
        "2023-04-10",
        BoardLimits(
            main=BoardRule(limit=0.10, special=0.05, free_sessions=5), chinext=_TWENTY, star=_TWENTY, bse=_BSE
        ),
    ),
    (
        "2026-07-06",
        BoardLimits(main=BoardRule(limit=0.10, free_sessions=5), chinext=_TWENTY, star=_TWENTY, bse=_BSE),
    ),
)


def _eras() -> tuple[Era, ...]:
    """Return one era for every day on which a tax or a limit changed."""
    days = sorted({day for day, *_ in _STAMP_DUTY} | {day for day, _ in _LIMITS})
    result = []
    for day in days:
        bought, sold = next((b, s) for start, b, s in reversed(_STAMP_DUTY) if start <= day)
        fees = msgspec.structs.replace(ASHARE.fees, buy_tax_bps=bought, sell_tax_bps=sold)
        result.append(
            Era(start=day, fees=fees, price_limits=next(x for start, x in reversed(_LIMITS) if start <= day))
        )
    return tuple(result)


ASHARE_DATED = msgspec.structs.replace(
    ASHARE,
    id="ashare-v1",
    title="China A-shares, cash account, T+1, price limits and stamp duty of each day",
    fees=msgspec.structs.replace(ASHARE.fees, sell_tax_bps=5.0),
    resting=Resting(held_to_side=True),
    eras=_eras(),
)
CRYPTO = Venue(
    id="crypto-v1",
    title="Crypto spot, cash account",
    currency="USD",
    periods_per_year=365,
    fees=Fees(buy_bps=5.0, sell_bps=5.0),
    lots=Lots(lot=1e-8, step=1e-8, on_odd="trim", min_value=1.0),
    participation=_TENTH_OF_VOLUME,
)
FUTURES = Venue(
    id="futures-v1",
    title="Futures, daily settlement, rolled into the next contract",
    currency="USD",
    fees=Fees(buy_bps=0.5, sell_bps=0.5),
    slippage=Slippage(bps=1.0),
    participation=_TENTH_OF_VOLUME,
    margin=Margin(initial=0.12, maintenance_long=0.10, maintenance_short=0.10, interest_per_year=0.06),
    shorting=Shorting(allowed=True),
    futures=Futures(roll="next", roll_days=5),
)
ASHARE_QLIB = Venue(
    id="ashare-qlib-v1",
    title="A-share rules as Qlib's executor has them: limits by the closing change, no volume limit",
    currency="CNY",
    fees=Fees(buy_bps=5.0, sell_bps=15.0, minimum=5.0),
    lots=Lots(lot=100.0, step=1.0),
    settlement=Settlement(t_plus=1),
    price_limits=PriceLimits(chinext=0.10, star=0.10, bse=0.10, none=0.10, limit_test="close_change"),
    priority="as_given",
)

BUILTIN = (US, US_FRACTIONAL, US_MARGIN, ASHARE, ASHARE_DATED, ASHARE_QLIB, CRYPTO, FUTURES)

for _venue in BUILTIN:
    venues.add(_venue.id, _venue)
