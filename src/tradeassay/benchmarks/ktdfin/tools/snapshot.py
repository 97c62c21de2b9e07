"""``get_stock_snapshot``: one name's bars, factors and previous close."""

from __future__ import annotations

from typing import Annotated

import msgspec
import numpy as np
from msgspec import Meta

from tradeassay.benchmarks.ktdfin.account import Headline, headlines
from tradeassay.benchmarks.ktdfin.desk import Desk
from tradeassay.benchmarks.ktdfin.tools.tool import Arguments, Tool, ToolRefused, look_up, refuse_future
from tradeassay.benchmarks.ktdfin.wire import Day, Stock
from tradeassay.core.view import FIELDS
from tradeassay.factors import FACTOR_NAMES

COLUMNS = ("day", *FIELDS)


class SnapshotArguments(Arguments, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``lookback`` sessions up to ``as_of`` (the last completed day when left out)."""

    stock_id: Stock
    lookback: Annotated[int, Meta(ge=1)] = 20
    as_of: Day | None = None


class StockSnapshot(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One name. ``bars`` are rows of ``columns``, oldest first; factors and limits are those of the data cutoff.

    ``limit_up`` and ``limit_down`` are the prices at which the name stops trading in the coming session.
    """

    stock_id: Stock
    board: str
    state: str
    as_of: Day | None
    columns: tuple[str, ...] = msgspec.field(default_factory=tuple)
    bars: tuple[tuple[Day | float | None, ...], ...] = msgspec.field(default_factory=tuple)
    factors: dict[str, float | None]
    prev_close: float | None
    limit_up: float | None
    limit_down: float | None
    news: tuple[Headline, ...] = ()


def stock_snapshot(desk: Desk, arguments: SnapshotArguments) -> StockSnapshot:
    """Return one name's recent past; raises :class:`ToolRefused` for the future or for too long a past."""
    config = desk.config
    column = look_up(desk, arguments.stock_id)
    if arguments.lookback > config.longest_lookback:
        raise ToolRefused(f"lookback is at most {config.longest_lookback} sessions")
    refuse_future(desk, arguments.as_of)
    close, up, down = desk.limits(column)
    return StockSnapshot(
        stock_id=arguments.stock_id,
        board=desk.roster.boards[column],
        state=desk.state(column),
        as_of=desk.as_of,
        columns=COLUMNS,
        bars=_bars(desk, column, arguments),
        factors=desk.factor_values((column,), FACTOR_NAMES)[0],
        prev_close=close,
        limit_up=up,
        limit_down=down,
        news=headlines(desk, arguments.stock_id) if config.news else (),
    )


def _bars(desk: Desk, column: int, arguments: SnapshotArguments) -> tuple[tuple[Day | float | None, ...], ...]:
    days = desk.days
    stop = len(days) if arguments.as_of is None else sum(day <= arguments.as_of.iso for day in days)
    start = max(0, stop - arguments.lookback)
    table = np.stack([desk.view.bars(field, len(days))[start:stop, column] for field in FIELDS])
    return tuple(
        (Day(day), *desk.bar(column, day, row)) for day, row in zip(days[start:stop], table.T, strict=True)
    )


TOOL = Tool(
    name="get_stock_snapshot",
    description=(
        "One name in detail: its last daily bars (split-adjusted), its nine factors, its previous close and the "
        "price limits of the coming session. lookback counts completed sessions."
    ),
    arguments=SnapshotArguments,
    answer=stock_snapshot,
)
