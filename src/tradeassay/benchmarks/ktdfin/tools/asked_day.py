"""A day in a tool's arguments: the past may be asked for, the future is refused in words that name no day."""

from __future__ import annotations

from tradeassay.benchmarks.ktdfin.desk import Desk
from tradeassay.benchmarks.ktdfin.tools.tool import ToolRefused
from tradeassay.benchmarks.ktdfin.words import Day


def refuse_future(desk: Desk, day: Day | None) -> None:
    """Raise :class:`ToolRefused` for a day that is not completed yet."""
    if day is not None and (not desk.days or day.iso > desk.days[-1]):
        raise ToolRefused(
            "that day is not over yet: nothing after the data cutoff is known", mend="leave as_of out"
        )


def refuse_other_day(desk: Desk, day: Day | None) -> None:
    """Raise :class:`ToolRefused` for any day but the last completed one."""
    refuse_future(desk, day)
    if day is not None and day.iso != desk.days[-1]:
        raise ToolRefused("this tool only knows the state at the data cutoff", mend="leave as_of out")
