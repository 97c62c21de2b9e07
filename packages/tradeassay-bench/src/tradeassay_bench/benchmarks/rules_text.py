"""Describe the rules of a benchmark in plain language.

The text is generated from the configuration, so the two cannot differ.
"""

from collections.abc import Iterator

import msgspec

from tradeassay.core.hashing import sha256_of
from tradeassay_bench.account import Venue, venues
from tradeassay_bench.benchmarks.benchmark import Benchmark
from tradeassay_bench.benchmarks.ktdfin.ktdfin_config import KtdfinConfig
from tradeassay_bench.benchmarks.stockbench.stockbench_config import StockbenchConfig
from tradeassay_bench.play import parse_universe

_KNOWS = {
    "pre_open": "before the session opens. You know every bar up to the previous close, and the "
    "splits and "
    "dividends that take effect today",
    "at_open": "when the session opens. You know every bar up to the previous close, and today's "
    "opening prices",
    "close": "at the close. You know today's whole bar",
}
_HOLDINGS = (
    "Dividends are paid in cash on the ex-date; splits change the number of shares; fractions are "
    "paid out.",
    "A name that leaves the exchange is paid out at its last price.",
    "A suspended name does not trade and is valued at its last price.",
)

_COUNTS = (
    "Every cost leaves the account. Cash plus positions is the value of the account, in every "
    "session.",
    "A day without orders is an abstention; a day without a usable answer is a failure. Both are "
    "counted.",
)


def rules_text(benchmark: Benchmark, venue_sha256: str | None = None) -> str:
    """Return the rules of a benchmark as text.

    ``venue_sha256`` is the hash of the venue that a run has recorded. If the rules of the installed
    venue differ, the text says so and omits them.
    """
    market = benchmark.market
    installed = venues.get(market.venue)
    is_unchanged = venue_sha256 in (None, sha256_of(installed))
    venue = installed.limited(max_weight=market.max_weight, max_positions=market.max_positions)
    currency = venue.currency
    about_venue = (f"The venue: {venue.title} ({venue.id})", _venue(venue))
    if not is_unchanged:
        # The currency tells verify that a page was written with a substitute for a missing venue.
        currency = f"{currency} (the venue's currency here)"
        changed = f"Its rules have changed since this was played ({str(venue_sha256)[:12]} then"
        lines = (
            f"{changed}, {sha256_of(installed)[:12]} here), so that they are not shown. What was "
            "charged, filled and "
            "refused is in the journal.",
            "Numbers per year that are not on record are made with the sessions that a year has "
            "here.",
        )
        about_venue = f"The venue: {venue.id}", iter(lines)
    version = f"Whatever would change a score changes the version at the end of '{benchmark.id}'."
    parts = (
        ("What is played", _what(benchmark, currency)),
        ("A day", _day(benchmark)),
        about_venue,
        ("What happens to holdings", _HOLDINGS),
        ("What counts", (*_COUNTS, version)),
    )
    title = f"{benchmark.title} ({benchmark.id}, convention: {benchmark.convention})"
    pages = [f"{head}\n" + "\n".join(f"  - {line}" for line in lines) for head, lines in parts]
    return "\n\n".join((title, benchmark.description, *pages)) + "\n"


def _what(benchmark: Benchmark, currency: str) -> Iterator[str]:
    market, universe = benchmark.market, parse_universe(benchmark.market.universe)
    yield (
        f"Data set {benchmark.dataset}, sessions from {market.first} to {market.last}; before "
        "that is history."
    )
    who = f"The members of {universe.of} on the day may be bought; what left the index may be sold"
    if universe.of == "all":
        who = "Every name listed on the day may be bought"
    if universe.size is not None:
        who += f"; of these only the {universe.size} that were traded most before the first session"
    yield f"{who}. Index funds may be bought too, where there are any."
    yield f"You start with {market.cash:,.0f} {currency} in cash."
    index = f"the index {market.index} and with " if market.index is not None else ""
    yield f"Results are compared with {index}the agent '{benchmark.baseline}'."


def _day(benchmark: Benchmark) -> Iterator[str]:
    market, attempts = benchmark.market, benchmark.day.attempts
    params = benchmark.protocol_params
    yield f"You decide once per session, {_KNOWS[market.decide]}."
    yield f"Orders fill at the session's {market.fill}; the account is valued at its {market.mark}."
    free = "by shares, money, or a target weight, value or holding; market, limit or stop"
    orders = f"One order per symbol: {free}."
    if benchmark.protocol == "ktdfin":
        attempts = int(params.get("retries", KtdfinConfig().retries)) + 1
        orders = (
            "A model gives a target weight per symbol, traded at the market; rules and "
            f"programs order {free}."
        )
    elif benchmark.protocol == "stockbench":
        attempts = int(params.get("attempts", StockbenchConfig().attempts))
        orders = (
            "A model gives dollars per symbol, traded at the market; rules and programs "
            f"order {free}."
        )
    yield (
        f"An answer that is malformed comes back with the reason. After {attempts} attempts the "
        "day counts as "
        "failed and nothing is traded."
    )
    yield orders
    yield (
        "An order the venue refuses stays in the journal with the reason. Nothing is silently "
        "corrected."
    )


def _venue(venue: Venue) -> Iterator[str]:
    fees = venue.fees
    costs = f"Commission {fees.buy_bps:g} bp on purchases, {fees.sell_bps:g} bp on sales"
    if fees.sell_tax_bps:
        costs += f", tax {fees.sell_tax_bps:g} bp on sales"
    if fees.minimum:
        costs += f", at least {fees.minimum:g} {venue.currency} per order"
    yield f"{costs}."
    if venue.slippage.bps:
        yield f"Fills are {venue.slippage.bps:g} bp worse than the reference price."
    lot = venue.lots.lot
    if lot is None:
        yield "Purchases in whole lots of the instrument."
    elif lot != 1.0:
        yield f"Purchases in multiples of {lot:g}."
    else:
        yield "Whole shares."
    if venue.lots.min_value:
        yield f"An order is worth at least {venue.lots.min_value:g} {venue.currency}."
    if venue.participation.max_share is not None:
        yield (
            f"At most {venue.participation.max_share:.0%} of a session's volume; the rest of an "
            "order is cut."
        )
    if venue.concentration.max_weight is not None:
        yield f"No purchase may bring a name above {venue.concentration.max_weight:.0%} of NAV."
    if venue.concentration.max_positions is not None:
        yield f"At most {venue.concentration.max_positions} names at once."
    if venue.settlement.t_plus:
        yield "What is bought in a session cannot be sold in it (T+1)."
    if (limits := venue.price_limits) is not None:
        boards = {
            "main board": limits.main,
            "ChiNext": limits.chinext,
            "STAR": limits.star,
            "BSE": limits.bse,
        }
        boards["elsewhere"] = limits.none
        shown = ", ".join(
            f"{name} {limit:.0%}" for name, limit in boards.items() if limit is not None
        )
        yield (
            f"Daily price limits ({shown}): within {limits.buffer:.1%} of the limit no purchase on "
            "the way up and "
            "no sale on the way down."
        )
    if venue.eras is not msgspec.UNSET:
        yield "Tax and price limits are those of the day that is played; the ones above hold today."
    if venue.margin is None:
        yield "A cash account: no borrowing, no short sales."
    else:
        margin = venue.margin
        yield (
            f"A margin account: equity of {margin.initial:.0%} of the exposure to open, "
            f"{margin.maintenance_long:.0%} (long) and {margin.maintenance_short:.0%} (short) to "
            "keep; "
            f"borrowed cash costs {margin.interest_per_year:.1%} a year."
        )
    if venue.shorting.allowed:
        yield (
            "Short sales are allowed; borrowing shares costs "
            f"{venue.shorting.borrow_per_year:.1%} a year."
        )
    yield f"A year has {venue.periods_per_year} sessions."
