"""The market: a clock, an as-of view, an exchange and a ledger behind ``reset()`` and ``step()``.

Every session has five phases:

1. Before the open, the day's splits, dividends and delistings are applied (``opening``).
2. If the agent decides at the open or at the close, resting orders are matched with the auction or
   the bar that the agent is about to see. No order can therefore be withdrawn with hindsight.
3. The agent sees the data known at the configured moment, and decides.
4. The exchange executes resting orders and the decision's orders at the configured price.
5. Fees of the day are charged and the account is marked. The last event is the mark.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import msgspec
import numpy as np

from tradeassay.core.arguments import check_fields
from tradeassay.core.arrays import Floats, Ints
from tradeassay.core.errors import UserError
from tradeassay_bench.account import Exchange, Ledger, venues
from tradeassay_bench.core.agent import Observation, Rules
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.core.events import ENCODER, Event, StepRecord
from tradeassay_bench.core.orders import Decision
from tradeassay_bench.core.time import parse_day
from tradeassay_bench.core.view import MarketView, SessionBars

if TYPE_CHECKING:
    from tradeassay_bench.data import Snapshot
    from tradeassay_bench.data.snapshot import SessionPhase

Decide = Literal["pre_open", "at_open", "close"]
"""When the agent decides.

``pre_open``: before the open, when bars up to yesterday are known. ``at_open``: at the open, when
today's opening prices are also known. ``close``: at the close, when today's whole bar is known.
"""
OpenOrClose = Literal["open", "close"]


class MarketConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The rules of one episode, apart from the data and the agent.

    ``universe`` is an index whose dated members may be bought, or ``"all"`` for all listed names
    except index funds. ``IDX:20`` limits the universe to the 20 names most traded before the first
    session. ``first`` and ``last`` are the first and last days of the traded sessions. All earlier
    sessions are history. ``max_weight`` limits the weight of a name and ``max_positions`` the
    number of positions. None means the venue's own limit. If both exist, the stricter limit
    applies. ``index`` is the benchmark of the results.

    Raises :class:`UserError` for values that contradict each other. An order cannot be filled at a
    price that precedes the decision, and a session cannot be marked at a price older than its
    fills.
    """

    venue: str
    universe: str = "all"
    cash: float = 1_000_000.0
    decide: Decide = "pre_open"
    fill: OpenOrClose = "open"
    mark: OpenOrClose = "close"
    first: str
    last: str
    max_weight: float | None = None
    max_positions: int | None = None
    index: str | None = None

    def __post_init__(self) -> None:
        check_fields(self)
        if parse_day(self.first) > parse_day(self.last):
            raise UserError(
                f"the window ends on {self.last}, before it starts on {self.first}",
                hint="swap them",
            )
        if not (self.cash > 0 and math.isfinite(self.cash)):
            raise UserError(
                f"expected a positive amount of cash, got {self.cash}",
                hint="set cash",
            )
        if self.decide == "close" and self.fill == "open":
            raise UserError(
                "a decision at the close cannot be filled at the earlier open",
                hint="fill: close",
            )
        if self.fill == "close" and self.mark == "open":
            raise UserError(
                "a fill at the close cannot be marked at the earlier open", hint="mark: close"
            )
        if self.max_weight is not None and not 0 < self.max_weight <= 1:
            raise UserError(
                f"expected a max_weight above 0 and at most 1, got {self.max_weight}",
                hint="write 0.1 for 10 % of NAV",
            )
        if self.max_positions is not None and self.max_positions < 1:
            hint = "leave max_positions out for no limit"
            raise UserError(
                f"expected max_positions of 1 or more, got {self.max_positions}", hint=hint
            )


# -- the names that may be bought today ---

ALL = "all"
RANKING_SESSIONS = 60
"""Number of sessions before the first one over which ``IDX:20`` ranks names by traded amount."""


class DatedView(MarketView, Protocol):
    """A view that also contains the delistings of names."""

    def delisted_now(self) -> tuple[str, ...]: ...


class UniverseChoice(NamedTuple):
    """The names of a universe in one session.

    ``symbols`` are in column order, with their ``columns``. ``buyable`` contains the symbols and
    the index funds.
    """

    symbols: tuple[str, ...]
    columns: Ints
    buyable: frozenset[str]


class UniverseName(NamedTuple):
    """The parsed name of a universe.

    ``of`` is an index or ``all``. ``size`` is the number of names in ``IDX:20``, or None.
    """

    of: str
    size: int | None


def parse_universe(text: str) -> UniverseName:
    """Return the parts of a universe's name.

    Raises :class:`UserError` for an invalid number of names.
    """
    index, colon, count = text.rpartition(":")
    if not colon:
        return UniverseName(text, None)
    if not index or not count.isascii() or not count.isdigit() or int(count) < 1:
        hint = "write an index, or e.g. IDX:20 for its 20 most traded names"
        raise UserError(f"'{text}' is not a universe", hint=hint)
    return UniverseName(index, int(count))


def most_traded(text: str, first: DatedView) -> frozenset[str] | None:
    """Return the names of a universe with a size, or None for a universe without a size.

    ``first`` is the view before the first session. The names that could then be bought are ranked
    by their median traded amount over :data:`RANKING_SESSIONS` completed sessions. No later data
    matters. Ties are resolved by column. Raises :class:`UserError` if there are fewer names than
    the size.
    """
    name = parse_universe(text)
    if name.size is None:
        return None
    members = first.symbols if name.of == ALL else first.members(name.of)
    choice = _choose(first, members, frozenset(first.delisted_now()))
    if len(choice.symbols) < name.size:
        words = (
            f"'{text}' requires {name.size} names, but only {len(choice.symbols)} could be "
            "bought at the start"
        )
        raise UserError(words, hint="use a smaller number of names, or a different data set")
    amount = first.bars("amount", RANKING_SESSIONS, adjust="none")
    closes = first.bars("close", RANKING_SESSIONS, adjust="none")
    volumes = first.bars("volume", RANKING_SESSIONS, adjust="none")
    money = np.nan_to_num(np.where(np.isnan(amount), closes * volumes, amount), nan=0.0)
    traded: Floats = np.median(money, axis=0) if len(money) else np.zeros(len(first.symbols))
    order = np.argsort(-traded[choice.columns], kind="stable")[: name.size]
    return frozenset(choice.symbols[place] for place in order.tolist())


class Universe:
    """The dated members of an index, or all listed names.

    Index funds are never members but may be bought. A universe with a size has the names that are
    :func:`most_traded` at ``first`` for the whole episode.
    """

    def __init__(self, name: str, first: DatedView | None = None) -> None:
        self.name = parse_universe(name).of
        self.kept = None if first is None else most_traded(name, first)
        self._key: tuple[object, object, object] = (None, None, None)
        self._choice = UniverseChoice((), _frozen([]), frozenset())

    def at(self, view: DatedView) -> UniverseChoice:
        """Return the session's choice of names.

        Raises :class:`DataError` if the dataset does not contain the index.
        """
        symbols, gone = view.symbols, view.delisted_now()
        members = symbols if self.name == ALL else view.members(self.name)
        # Views return the same tuples while nothing changes, so identity is sufficient in nearly
        # every session.
        old_symbols, old_gone, old_members = self._key
        if symbols is old_symbols and gone is old_gone and members is old_members:
            return self._choice
        if (symbols, gone, members) != self._key:
            wanted = members if self.kept is None else tuple(s for s in members if s in self.kept)
            self._choice = _choose(view, wanted, frozenset(gone))
        self._key = (symbols, gone, members)
        return self._choice


def _choose(view: DatedView, members: tuple[str, ...], gone: frozenset[str]) -> UniverseChoice:
    funds = {symbol for symbol in view.symbols if view.instrument(symbol).kind == "index"}
    chosen = tuple(symbol for symbol in members if symbol not in gone and symbol not in funds)
    columns = _frozen([view.column(symbol) for symbol in chosen])
    return UniverseChoice(chosen, columns, frozenset((*chosen, *(funds - gone))))


def _frozen(columns: list[int]) -> Ints:
    array = np.array(columns, dtype=np.int64)
    array.setflags(write=False)
    return array


# -- the market ---

MOMENTS: dict[Decide, SessionPhase] = {"pre_open": "pre_open", "at_open": "open", "close": "close"}
"""The phase of the session in which the agent decides, by the value of ``decide``."""


class Step(NamedTuple):
    """The record of a decision, and the next observation.

    ``observation`` is None if the episode is over.
    """

    record: StepRecord
    observation: Observation | None


Witness = Callable[[Observation, StepRecord], None]
"""Called for every replayed session with its observation and its record in the journal."""


class Market:
    """One account in one market.

    The market is deterministic: the same snapshot, config and decisions give byte-identical
    records. The object contains only the present session and the account, so that construction is
    cheap and replays are fast.
    """

    def __init__(self, snapshot: Snapshot, config: MarketConfig) -> None:
        """Open a market.

        Raises :class:`UserError` if the dataset does not contain the window or the universe, or if
        the venue is unknown.
        """
        self.snapshot, self.config = snapshot, config
        venue = venues.get(config.venue)
        self.venue = venue.limited(max_weight=config.max_weight, max_positions=config.max_positions)
        self.rows: range = snapshot.rows(config.first, config.last)
        days = snapshot.sessions[self.rows.start : self.rows.stop]
        self.sessions: tuple[str, ...] = tuple(str(day) for day in days)
        self.rules: Rules = self.venue.rules(benchmark_index=config.index, day=self.sessions[0])
        self._phase = MOMENTS[config.decide]
        first, view = snapshot.at(self.rows[0], "pre_open"), snapshot.at(self.rows[-1], "close")
        self._universe = Universe(config.universe, first)
        self._ledger: Ledger | None = None
        # Look up the universe and the index once, so that a wrong name is found before a day costs
        # money
        if not self._universe.at(view).buyable and not self._universe.at(first).buyable:
            raise UserError(
                f"'{self.snapshot.name}' has no names to buy: '{self.config.universe}' has no "
                "dated members there",
                hint="choose a different universe (universe='all'), or import the data with a "
                "membership table",
            )
        if self.config.index is not None:
            view.index_levels(self.config.index, 1)

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def ledger(self) -> Ledger:
        """Return the account. Raises :class:`UserError` before the first :meth:`reset`."""
        if self._ledger is None:
            raise UserError("the market has not started", hint="call reset() first")
        return self._ledger

    def reset(self) -> Observation:
        """Start the episode again with a new account, and return the first observation."""
        self._ledger = Ledger(self.config.cash, terms=self.venue.terms)
        self._exchange = Exchange(self.venue)
        self._step = 0
        self._since: tuple[Event, ...] = ()
        return self._open(deposit=True)

    def step(self, decision: Decision) -> Step:
        """Execute a decision. Return its record and the next session's observation.

        A decision with ``status="failed"`` trades nothing, whatever its orders are. Raises
        :class:`UserError` if the episode is over or was not started.
        """
        ledger, step, bars = self.ledger, self._step, self._bars
        if step >= len(self.rows):
            raise UserError("the episode is over", hint="call reset() to run it again")
        orders = decision.orders if decision.status == "ok" else ()
        config = self.config
        events = self._exchange.execute(
            [(f"{step}.{n}", order) for n, order in enumerate(orders)],
            bars,
            ledger,
            fill=config.fill,
            universe=self._choice.buyable,
        )
        events += self._exchange.close_session(bars, ledger, mark=config.mark)
        self._since = tuple(events)
        record = StepRecord(
            step=step,
            session=bars.session,
            decided_at=self._decided_at,
            opening=self._opening,
            decision=decision,
            events=self._early + self._since,
        )
        self._step = step + 1
        return Step(record, self._open() if self._step < len(self.rows) else None)

    def restore(
        self, records: Iterable[StepRecord], witness: Witness | None = None
    ) -> Observation | None:
        """Replay a journal's decisions.

        Return the next observation, or None if the journal is complete. Every replayed record must
        be byte-identical to the record in the journal. Otherwise data, rules or code have changed,
        and :class:`RunError` states the session. ``witness`` is called for every replayed session
        and can restore the state of an agent.
        """
        seen: Observation | None = self.reset()
        for record in records:
            if seen is None:
                hint = "the window or the data set has changed; start the run again"
                raise RunError(
                    f"the journal continues at step {record.step} after the last session", hint=hint
                )
            again, following = self.step(record.decision)
            if ENCODER.encode(again) != ENCODER.encode(record):
                raise RunError(
                    f"the replay of session {record.session} (step {record.step}) differs from the "
                    "journal",
                    hint="data, rules or code have changed since; start the run again",
                )
            if witness is not None:
                witness(seen, record)
            seen = following
        return seen

    def _open(self, *, deposit: bool = False) -> Observation:
        """Begin a session and return its observation.

        Corporate actions are applied first, and resting orders are executed if the agent will see
        the prices at which they trade.
        """
        ledger, row = self.ledger, self.rows[self._step]
        at = self.snapshot.at
        whole, before = at(row, "close"), at(row, "pre_open")
        self._bars: SessionBars = whole.session_bars()
        opening = self._exchange.open_session(
            self._bars, before.todays_actions(), ledger, delisted=before.delisted_now()
        )
        self._opening: tuple[Event, ...] = (ledger.deposit, *opening) if deposit else tuple(opening)
        phase = self._phase
        self._early: tuple[Event, ...] = ()
        if phase != "pre_open":
            self._early = tuple(self._exchange.execute_resting(self._bars, ledger, until=phase))
        if phase == "pre_open":
            view = before
        elif phase == "close":
            view = whole
        else:
            view = at(row, phase)
        if self.venue.eras is not msgspec.UNSET:
            self.rules = self.venue.rules(benchmark_index=self.config.index, day=self._bars.session)
        self._choice: UniverseChoice = self._universe.at(view)
        self._decided_at = view.clock
        return Observation(
            self._step,
            self._bars.session,
            view.clock,
            self._choice.symbols,
            self._choice.columns,
            view,
            ledger.state(),
            self.rules,
            self._since + self._opening + self._early,
            len(self.rows) - self._step,
        )
