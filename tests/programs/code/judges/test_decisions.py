"""What counts as the same decision: hand-worked cases."""

import pytest

from tradeassay_programs.code.judges.decisions import DecisionEvent, compare_decisions, passes

ROWS = 1_000
Events = tuple[DecisionEvent, ...]


def trades(
    *bars: tuple[int, int], units: float = 10.0, share: float = 0.5, side: int = 1
) -> Events:
    """Return positions by the bars of their entry and exit."""
    return tuple(
        event
        for begin, end in bars
        for event in (
            DecisionEvent(begin, 0, "entry", side, units, share, begin),
            DecisionEvent(end, 0, "exit", side, units, 1.0, begin),
        )
    )


REST = tuple((bar, bar + 3) for bar in range(300, 900, 20))


def test_what_was_missed_at_the_beginning_is_forgiven_until_both_hold_the_same():
    """The reference is long from bar 10 to 200, the candidate missed that and was short
    meanwhile.
    """
    theirs = trades((10, 200), *REST)
    mine = trades((120, 140), side=-1) + trades(*REST)
    found = compare_decisions(mine, theirs, ROWS)
    assert (found.stray, found.forgiven, found.matched) == (0, 4, 2 * len(REST)) and passes(found)


def test_not_for_longer_than_a_quarter_of_the_bars():
    theirs = trades((10, 290), *REST)
    found = compare_decisions(trades((120, 140), side=-1) + trades(*REST), theirs, ROWS)
    assert (found.stray, found.forgiven) == (2, 2)


def test_nothing_is_forgiven_once_both_have_held_the_same():
    """Both are flat at bar 60, where the warm-up ends, and the trade at 120 is nobody's but the
    candidate's.
    """
    found = compare_decisions(trades((10, 20), (120, 140), *REST), trades((10, 20), *REST), ROWS)
    assert (found.stray, found.forgiven) == (2, 0)


@pytest.mark.parametrize(
    ("units", "share", "same"),
    [
        pytest.param(9.0, 0.46, True, id="one share, rounded down in a smaller account"),
        pytest.param(9.0, 0.40, False, id="a smaller share"),
        pytest.param(9.4, 0.46, False, id="no whole units"),
        pytest.param(8.0, 0.41, False, id="two units less"),
    ],
)
def test_whole_units_of_accounts_that_have_drifted_apart(units, share, same):
    theirs = trades(*REST)
    mine = trades(REST[0], units=units, share=share) + trades(*REST[1:])
    found = compare_decisions(mine, theirs, ROWS)
    assert found.matched == 2 * len(REST) - (not same)


def test_a_unit_more_on_every_trade_is_another_size():
    found = compare_decisions(trades(*REST, units=9.0, share=0.46), trades(*REST), ROWS)
    assert found.matched == len(REST) and not passes(found)
