"""Every compiled form of a policy comes to the money of the policy it compiles.

A case plays the same decisions twice, in compiled code and through the account it stands for, and
returns both series of values. A new compiled form adds its cases to :data:`CASES`.
"""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "bench" / "assay"))

import attribute_runs
from luck_markets import VENUES, decisions_of, played, replay, scheduled

from tradeassay.core.arrays import Floats, Ints
from tradeassay_arena.daily_target import DailyTarget, target_growth
from tradeassay_bench.account import Exchange, Fees, Ledger, Lots, Margin, Shorting, Venue, venues
from tradeassay_bench.account.compiled.shares import price_decisions
from tradeassay_bench.account.shares import DecisionList, keep_account
from tradeassay_bench.core.events import MarginCalled, Rejected
from tradeassay_bench.core.orders import Order
from tradeassay_bench.core.view import Instrument, SessionBars
from tradeassay_bench.examine.luck import SeatChanges, even_schedule, luck_market, random_portfolios
from tradeassay_bench.play import Market

Both = tuple[Floats, Floats]
"""The values of the compiled form and those of the policy, equal to 1e-9 relatively."""


def random_walk(venue: str) -> Both:
    """Fifty random portfolios against the exchange of a venue."""
    snapshot, config, _ = played(venue)
    traded, schedule = scheduled(venue)
    made = random_portfolios(traded, schedule, n=100, seed=3)
    again = [
        replay(snapshot, config, decisions_of(traded, schedule, one, seed=3)) for one in range(50)
    ]
    return made.nav[:50], np.array(again)


def margin_calls(sides: str) -> Both:
    """Accounts that borrow too much: the compiled calls are those of the exchange, of which
    there are some.
    """
    name = "test-tight-margin-v1"
    if name not in venues:
        tight = Margin(initial=0.3, maintenance_long=0.41, maintenance_short=0.41)
        venues.add(name, msgspec.structs.replace(venues.get("us-margin-v1"), id=name, margin=tight))
    snapshot, config, _ = played("us-margin")
    config = msgspec.structs.replace(config, venue=name)
    traded = luck_market(snapshot, config)
    schedule = _borrowed(len(traded.sessions), both=sides == "both")
    made, calls, paths = random_portfolios(traded, schedule, n=100), 0, []
    for portfolio in range(15):
        market, path = Market(snapshot, config), [config.cash]
        market.reset()
        for decision in decisions_of(traded, schedule, portfolio):
            record = market.step(decision).record
            calls += sum(isinstance(event, MarginCalled) for event in record.events)
            path.append(market.ledger.nav())
        paths.append(path)
    assert calls > 0
    return made.nav[:15], np.array(paths)


def _borrowed(sessions: int, *, both: bool) -> SeatChanges:
    plain, _ = even_schedule(sessions, names=6, turnover=0.1)
    much = plain._replace(size=plain.size * 2.4, gross=plain.gross * 2.4)
    return much._replace(sign=np.where(much.seat % 2 == 0, 1.0, -1.0)) if both else much


def daily_targets(hold: Literal["keep", "flat"]) -> Both:
    """Whole paths of targets at once against one booking after the other."""
    rng, policy = np.random.default_rng(5), DailyTarget(hold=hold, fee_bp=7.0)
    moved = rng.normal(0.0, 0.05, 60)
    held, booked = np.empty((40, 60), dtype=np.int64), np.empty((40, 60))
    for row in range(40):
        position, nav = 0, 1.0
        for day, action in enumerate(rng.choice(["BUY", "SELL", "HOLD"], 60)):
            settled = policy.settle(policy.execute(action, position, nav), moved[day])
            held[row, day], booked[row, day] = settled.position, settled.nav
            position, nav = settled.position, settled.nav
    return np.cumprod(target_growth(held, moved, policy.fee_bp), axis=1), booked


def exposures(cost_bp: float) -> Both:
    """Exposures decided at closes, long and short, against an exchange that takes target weights
    at the close.
    """
    generator = np.random.default_rng(7)
    closes = 100.0 * np.exp(np.cumsum(generator.normal(0.0, 0.02, (3, 60)), axis=1))
    places = np.sort(
        generator.choice(180, 40, replace=False)
    )  # a target says once a bar what a leg is to be
    rows = places // 3
    decisions = DecisionList(rows, places % 3, generator.uniform(-0.5, 0.5, 40), np.full(40, -1))
    priced = price_decisions(decisions, closes, (0.0, cost_bp), curve=True)
    orders: dict[int, list[Order]] = {}
    for row, leg, share in zip(
        rows.tolist(), decisions.leg.tolist(), decisions.fraction.tolist(), strict=True
    ):
        orders.setdefault(row, []).append(
            Order(symbol="ABC"[leg], amount=share, unit="target_weight")
        )
    return priced.curve[1], _at_the_close(closes, orders, cost_bp) / _CASH


def trades() -> Both:
    """Trades of given quantities at closes, without costs, against the same exchange."""
    generator = np.random.default_rng(8)
    closes = 100.0 * np.exp(np.cumsum(generator.normal(0.0, 0.02, (3, 60)), axis=1))
    made = _Trades(
        np.sort(generator.integers(0, 60, 40)),
        generator.integers(0, 3, 40),
        generator.integers(1, 2_000, 40) * np.where(generator.random(40) < 0.5, 1.0, -1.0),
    )
    orders: dict[int, list[Order]] = {}
    for row, leg, quantity in zip(
        made.row.tolist(), made.leg.tolist(), made.quantity.tolist(), strict=True
    ):
        side = "BUY" if quantity > 0 else "SELL"
        orders.setdefault(row, []).append(Order(symbol="ABC"[leg], amount=abs(quantity), side=side))
    return keep_account(made, closes, _CASH).equity, _at_the_close(closes, orders, 0.0)


class _Trades(NamedTuple):
    row: Ints
    leg: Ints
    quantity: Floats


_CASH = 1e8


def _at_the_close(closes: Floats, orders: dict[int, list[Order]], cost_bp: float) -> Floats:
    """Return the NAV at every close of an account without slippage, lots or limits that pays
    ``cost_bp``.
    """
    venue = Venue(
        id="at-the-close",
        title="everything at the close",
        currency="USD",
        fees=Fees(buy_bps=cost_bp, sell_bps=cost_bp),
        lots=Lots(lot=1e-9, step=1e-9, on_odd="trim"),
        margin=Margin(
            initial=0.0, maintenance_long=0.0, maintenance_short=0.0, interest_per_year=0.0
        ),
        shorting=Shorting(allowed=True),
        priority="as_given",
    )
    exchange, ledger = Exchange(venue), Ledger(_CASH, terms=venue.terms)
    names = tuple(Instrument(symbol=symbol) for symbol in "ABC")
    path, before = [], np.full(3, np.nan)
    for row, close in enumerate(closes.T):
        day = str(np.datetime64("2024-01-01") + row)
        rest = (np.full(3, 1e9), 1e9 * close, before, np.ones(3, dtype=bool))
        bars = SessionBars(day, row, tuple("ABC"), names, *[close] * 4, *rest)
        exchange.open_session(bars, (), ledger)
        batch = [(f"{row}-{number}", order) for number, order in enumerate(orders.get(row, ()))]
        events = exchange.execute(batch, bars, ledger, fill="close")
        assert not [event for event in events if isinstance(event, Rejected)]
        exchange.close_session(bars, ledger)
        path.append(ledger.nav())
        before = close
    return np.array(path)


CASES: dict[str, Callable[[], Both]] = {
    **{f"exposures at the close, {cost:g} bp": partial(exposures, cost) for cost in (0.0, 10.0)},
    "trades at the close": trades,
    **{
        f"random walk, {venue}": partial(random_walk, venue)
        for venue in (*VENUES, attribute_runs.OPEN)
    },
    **{f"margin calls, {sides}": partial(margin_calls, sides) for sides in ("long", "both")},
    **{f"daily targets, {hold}": partial(daily_targets, hold) for hold in ("keep", "flat")},
}


@pytest.mark.parametrize("case", CASES)
def test_a_compiled_form_comes_to_the_same_money(case):
    compiled, policy = CASES[case]()
    assert compiled.shape == policy.shape
    assert policy == pytest.approx(compiled, rel=1e-9, abs=0.0)
