"""Every compiled form of a policy comes to the money of the policy it compiles.

A case plays the same decisions twice, in compiled code and through the account it stands for, and returns both
series of values. A new compiled form adds its cases to :data:`CASES`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "assay"))

import attribute_runs
from luck_grounds import VENUES, played, scheduled

from tradeassay.account import Margin, venues
from tradeassay.account.daily_target import DailyTarget, target_growth
from tradeassay.assay.luck import Schedule, decisions_of, even_schedule, ground_of, random_portfolios, replay
from tradeassay.core.events import MarginCalled
from tradeassay.core.view import Floats
from tradeassay.play import Market

Both = tuple[Floats, Floats]
"""The values of the compiled form and those of the policy, equal to 1e-9 relatively."""


def random_walk(venue: str) -> Both:
    """Fifty random portfolios against the exchange of a venue."""
    snapshot, config, _ = played(venue)
    ground, schedule = scheduled(venue)
    made = random_portfolios(ground, schedule, n=100, seed=3)
    again = [replay(snapshot, config, decisions_of(ground, schedule, one, seed=3)) for one in range(50)]
    return made.nav[:50], np.array(again)


def margin_calls(sides: str) -> Both:
    """Accounts that borrow too much: the compiled calls are those of the exchange, of which there are some."""
    name = "test-tight-margin-v1"
    if name not in venues:
        tight = Margin(initial=0.3, maintenance_long=0.41, maintenance_short=0.41)
        venues.add(name, msgspec.structs.replace(venues.get("us-margin-v1"), id=name, margin=tight))
    snapshot, config, _ = played("us-margin")
    config = msgspec.structs.replace(config, venue=name)
    ground = ground_of(snapshot, config)
    schedule = _borrowed(len(ground.market.sessions), both=sides == "both")
    made, calls, paths = random_portfolios(ground, schedule, n=100), 0, []
    for portfolio in range(15):
        market, path = Market(snapshot, config), [config.cash]
        market.reset()
        for decision in decisions_of(ground, schedule, portfolio):
            record = market.step(decision).record
            calls += sum(isinstance(event, MarginCalled) for event in record.events)
            path.append(market.ledger.nav())
        paths.append(path)
    assert calls > 0
    return made.nav[:15], np.array(paths)


def _borrowed(sessions: int, *, both: bool) -> Schedule:
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


CASES: dict[str, Callable[[], Both]] = {
    **{f"random walk, {venue}": partial(random_walk, venue) for venue in (*VENUES, attribute_runs.OPEN)},
    **{f"margin calls, {sides}": partial(margin_calls, sides) for sides in ("long", "both")},
    **{f"daily targets, {hold}": partial(daily_targets, hold) for hold in ("keep", "flat")},
}


@pytest.mark.parametrize("case", CASES)
def test_a_compiled_form_comes_to_the_same_money(case: str) -> None:
    compiled, policy = CASES[case]()
    assert compiled.shape == policy.shape
    assert policy == pytest.approx(compiled, rel=1e-9, abs=0.0)
