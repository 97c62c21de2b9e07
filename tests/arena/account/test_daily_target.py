"""Accounts with a target of -1, 0 or +1: by hand, and a journal that is held to its identities."""

import msgspec
import pytest
from hypothesis import given, strategies as st
from tests.arena.account.booking_chain import follow

from tradeassay_arena.daily_target import Booking, DailyTarget, SharedTarget
from tradeassay_bench.core.errors import LedgerError

POLICY = DailyTarget(hold="keep", fee_bp=5.0)


def test_a_reversal_pays_for_both_sides_and_earns_from_what_is_left():
    made = POLICY.execute("SELL", 1, 2.0)
    assert (made.position_before, made.position, made.fee) == (
        1,
        -1,
        pytest.approx(2.0 * 0.001, rel=1e-12),
    )
    settled = POLICY.settle(made, 0.1)
    assert settled.nav == pytest.approx(2.0 * 0.999 * 0.9, rel=1e-12)
    assert settled.earned == pytest.approx(0.999 * 0.9 - 1.0, rel=1e-12)
    assert made.nav == pytest.approx(2.0 * 0.999, rel=1e-12)  # the execution stays as it was booked


def test_a_short_that_loses_more_than_everything_ends_at_nothing():
    gone = POLICY.settle(POLICY.execute("SELL", 0, 1.0), 1.5)
    assert (gone.nav, gone.earned) == (0.0, -1.0)
    after = POLICY.settle(POLICY.execute("HOLD", -1, gone.nav), 0.1)
    assert (after.nav, after.earned) == (0.0, 0.0)


days = st.lists(
    st.tuples(
        st.sampled_from(["BUY", "SELL", "HOLD"]), st.floats(-0.5, 0.5), st.sampled_from(["A", "B"])
    ),
    max_size=20,
)


def shared_journal(plan: list[tuple[str, float, str]]) -> list[tuple[str, Booking]]:
    policy, value, exposure = SharedTarget(hold="keep", fee_bp=5.0), 1.0, {"A": 0.0, "B": 0.0}
    open_, made = {}, []
    for action, moved, asset in plan:
        if asset in open_:
            settled = policy.settle(open_[asset], value, moved)
            made.append((asset, settled))
            value, exposure[asset] = settled.nav, settled.exposure or 0.0
        others = abs(exposure["B" if asset == "A" else "A"])
        booking = policy.execute(action, 0.5, value=value, before=exposure[asset], others=others)  # type: ignore[arg-type]
        made.append((asset, booking))
        value, exposure[asset], open_[asset] = booking.nav, booking.exposure or 0.0, booking
    return made


@given(days)
def test_a_journal_adds_up_and_a_changed_one_does_not(plan):
    held, nav, made = 0, 1.0, []
    for action, moved, _ in plan:
        executed = POLICY.execute(action, held, nav)  # type: ignore[arg-type]  # drawn by hypothesis
        settled = POLICY.settle(executed, moved)
        made += [("A", executed), ("A", settled)]
        held, nav = settled.position, settled.nav
    assert follow(made) == nav
    shared = shared_journal(plan)
    assert follow(shared) == (shared[-1][1].nav if shared else 1.0)
    for journal in (made, shared):
        for place, (asset, booking) in enumerate(journal):
            changed = msgspec.structs.replace(booking, nav=booking.nav + 0.01)
            if place + 1 < len(journal) or booking.kind == "executed" or booking.nav_before > 0:
                with pytest.raises(LedgerError):
                    follow([*journal[:place], (asset, changed), *journal[place + 1 :]])


def test_settled_twice_or_never_executed_is_found():
    executed = POLICY.execute("BUY", 0, 1.0)
    settled = POLICY.settle(executed, 0.1)
    unpaid = msgspec.structs.replace(settled, fee=0.0)
    for bookings, complaint in (
        ([settled], "not executed"),
        ([executed, settled, settled], "not executed"),
        ([executed, executed], "before the last one is settled"),
        ([POLICY.execute("BUY", 1, 1.0)], "another position"),
        ([executed, unpaid], "changes its fee"),
    ):
        with pytest.raises(LedgerError, match=complaint):
            follow([("A", booking) for booking in bookings])


def test_a_shared_account_that_lost_everything_holds_nothing():
    policy = SharedTarget(hold="keep", fee_bp=0.0)
    short = policy.execute("SELL", 1.0, value=1.0, before=0.0, others=0.0)
    gone = policy.settle(short, 1.0, 2.0)
    assert (gone.nav, gone.exposure, gone.position) == (0.0, 0.0, -1)
    after = policy.execute("BUY", 1.0, value=gone.nav, before=gone.exposure or 0.0, others=0.0)
    assert follow([("A", short), ("A", gone), ("A", after)]) == 0.0
