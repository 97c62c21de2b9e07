"""What a model is shown at the start of a day, by mode."""

from collections.abc import Sequence

import msgspec

from tradeassay.benchmarks.ktdfin.account import (
    AccountShown,
    FillShown,
    Headline,
    Performance,
    RefusalShown,
    headlines,
    show_account,
    show_fills,
    show_refusals,
)
from tradeassay.benchmarks.ktdfin.desk import BAR_DIGITS, Desk
from tradeassay.benchmarks.ktdfin.ktdfin_config import Mode
from tradeassay.benchmarks.ktdfin.tools import top_of_each
from tradeassay.benchmarks.ktdfin.wire import Day, Prose, Stock, Wire, rounded
from tradeassay.core.view import FIELDS, Field
from tradeassay.factors import FACTOR_NAMES

KIND = "ktdfin.observation"
HIDDEN_LOT = 1e-6
"""The lot that is shown where shares are rescaled: the real one would give the scale away."""


class Constraints(msgspec.Struct, frozen=True, kw_only=True):
    """The rules that an action must obey. Costs are shares of what is traded."""

    max_weight: float
    max_positions: int
    max_candidates: int
    lot: float
    t_plus_1: bool
    long_only: bool
    buy_cost: float
    sell_cost: float
    min_reason_length: int
    tool_calls: int


class CandidateRow(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One name of the table in ``fixed-candidate``: its last bar, recent returns and factors."""

    stock_id: Stock
    board: str
    state: str
    last_bar: dict[str, float | None]
    returns: dict[str, float | None]
    factors: dict[str, float | None]
    news: tuple[Headline, ...] = ()


class ObservationShown(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The payload. ``memory-only`` has ``universe``, ``fixed-candidate`` has ``candidates`` and ``held``."""

    kind: str
    mode: Mode
    step: int
    as_of: Day | None
    trade_day: Day
    account: AccountShown
    performance: Performance
    last_fills: tuple[FillShown, ...]
    last_rejections: tuple[RefusalShown, ...]
    constraints: Constraints
    universe: tuple[Stock, ...] | None = None
    candidates: tuple[CandidateRow, ...] | None = None
    held: tuple[CandidateRow, ...] | None = None
    not_sent: tuple[Prose, ...] = ()


def observe(desk: Desk, wire: Wire, performance: Performance, not_sent: Sequence[str] = ()) -> ObservationShown:
    """Return today's payload. Names are ordered as they are shown, never by their true symbols.

    ``not_sent`` says which of yesterday's orders broke a rule and were left out, and why.
    """
    mode = desk.config.mode
    since = desk.observation.since_last
    everybody = (desk.roster.stocks[column] for column in desk.observation.columns.tolist())
    return ObservationShown(
        kind=KIND,
        mode=mode,
        step=desk.observation.step,
        as_of=desk.as_of,
        trade_day=desk.today,
        account=show_account(desk),
        performance=performance,
        last_fills=show_fills(desk, since),
        last_rejections=show_refusals(desk, since),
        constraints=_constraints(desk),
        universe=tuple(sorted(everybody, key=wire.stock_id)) if mode == "memory-only" else None,
        candidates=_table(desk, wire) if mode == "fixed-candidate" else None,
        held=tuple(_row(desk, desk.column(Stock(symbol))) for symbol in desk.account.positions)
        if mode == "fixed-candidate"
        else None,
        not_sent=tuple(map(Prose, not_sent)),
    )


def _constraints(desk: Desk) -> Constraints:
    config, rules = desk.config, desk.rules
    return Constraints(
        max_weight=config.max_weight,
        max_positions=config.max_positions,
        max_candidates=config.max_candidates,
        lot=HIDDEN_LOT if config.rebase_prices else rules.lot,
        t_plus_1=rules.t_plus_1,
        long_only=rules.long_only,
        buy_cost=rules.buy_cost,
        sell_cost=rules.sell_cost,
        min_reason_length=config.min_reason,
        tool_calls=config.tool_calls if config.mode == "open-research" else 0,
    )


def _table(desk: Desk, wire: Wire) -> tuple[CandidateRow, ...]:
    columns = top_of_each(desk, desk.config.table_top, desk.config.table_size).tolist()
    columns.sort(key=lambda column: wire.stock_id(desk.roster.stocks[column]))
    return tuple(_row(desk, column) for column in columns)


def _row(desk: Desk, column: int) -> CandidateRow:
    stock = desk.roster.stocks[column]
    return CandidateRow(
        stock_id=stock,
        board=desk.roster.boards[column],
        state=desk.state(column),
        last_bar={field: _last(desk, field, column) for field in FIELDS},
        returns={f"return_{n}d": rounded(desk.change(n)[column]) for n in (1, 5, 20)},
        factors=desk.factor_values((column,), FACTOR_NAMES)[0],
        news=headlines(desk, stock) if desk.config.news else (),
    )


def _last(desk: Desk, field: Field, column: int) -> float | None:
    bars = desk.last_bars[field]
    return rounded(bars[column], BAR_DIGITS[field]) if bars.size else None
