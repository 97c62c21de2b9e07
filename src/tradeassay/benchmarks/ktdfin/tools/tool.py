"""What a research tool is, and what it may be asked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import msgspec

from tradeassay.benchmarks.ktdfin.desk import Desk
from tradeassay.benchmarks.ktdfin.wire import Day, Stock
from tradeassay.core.errors import AgentError

Args = TypeVar("Args", bound="Arguments")


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every tool's arguments."""


class ToolRefused(AgentError):
    """A well-formed call that cannot be answered. Its message repeats no name, date or word of the caller."""


@dataclass(frozen=True, slots=True)
class Tool(Generic[Args]):
    """One tool. ``answer`` may raise :class:`ToolRefused`; the gate turns that into a masked error."""

    name: str
    description: str
    arguments: type[Args]
    answer: Callable[[Desk, Args], msgspec.Struct]


AnyTool = Tool[Any]


def look_up(desk: Desk, stock: Stock) -> int:
    """Return a stock's column; raises :class:`ToolRefused` for one that is out of reach."""
    if not desk.in_reach(stock):
        raise ToolRefused(
            "no such stock id in the universe or the portfolio", hint="use an id exactly as it was shown"
        )
    return desk.column(stock)


def refuse_future(desk: Desk, day: Day | None) -> None:
    """Raise :class:`ToolRefused` for a day that is not completed yet."""
    if day is not None and (not desk.days or day.iso > desk.days[-1]):
        raise ToolRefused(
            "that day is not over yet: nothing after the data cutoff is known", hint="leave as_of out"
        )


def refuse_other_day(desk: Desk, day: Day | None) -> None:
    """Raise :class:`ToolRefused` for any day but the last completed one."""
    refuse_future(desk, day)
    if day is not None and day.iso != desk.days[-1]:
        raise ToolRefused("this tool only knows the state at the data cutoff", hint="leave as_of out")
