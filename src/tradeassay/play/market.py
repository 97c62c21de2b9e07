"""The market: a clock, an as-of view, an exchange and a ledger behind ``reset()`` and ``step()``.

Every session goes like this:

1. before the open, splits, dividends and delistings of the day reach the account (``opening``);
2. where the agent decides at the open or at the close, waiting orders meet the auction or the bar that it is
   about to see, so that none is taken back with hindsight;
3. the agent is shown what can be known at the configured moment, and decides;
4. the exchange works off waiting orders and the decision's orders at the configured price;
5. fees of the day are charged and the account is marked; the last event is the mark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from tradeassay.account import Exchange, Ledger, venues
from tradeassay.core.agent import Observation, Rules
from tradeassay.core.errors import RunError, UserError
from tradeassay.core.events import ENCODER, Event, StepRecord
from tradeassay.core.orders import Decision
from tradeassay.core.view import SessionBars
from tradeassay.play.market_config import MarketConfig
from tradeassay.play.universe import Universe, UniverseChoice, most_traded

if TYPE_CHECKING:
    from tradeassay.data import Snapshot

_PHASES: dict[str, Literal["pre_open", "open", "close"]] = {
    "pre_open": "pre_open",
    "at_open": "open",
    "close": "close",
}


class Step(NamedTuple):
    """What came of a decision, and what is seen next; ``observation`` is None when the episode is over."""

    record: StepRecord
    observation: Observation | None


Witness = Callable[[Observation, StepRecord], None]
"""Called for every replayed session with what was seen and what the journal says about it."""


class Market:
    """One account in one market.

    It is deterministic: the same snapshot, config and decisions give the same records to the byte. It holds no
    more than the present session and the account, so that making one is cheap and replaying is fast.
    """

    def __init__(self, snapshot: Snapshot, config: MarketConfig) -> None:
        """Raise :class:`UserError` for a window, venue or universe that the data does not have."""
        self.snapshot = snapshot
        self.config = config
        venue = venues.get(config.venue)
        self.venue = venue.limited(max_weight=config.max_weight, max_positions=config.max_positions)
        self.rows: range = snapshot.rows(config.first, config.last)
        self.rules: Rules = self.venue.rules(
            benchmark_index=config.index, day=str(snapshot.sessions[self.rows.start])
        )
        self.sessions: tuple[str, ...] = tuple(
            str(day) for day in snapshot.sessions[self.rows.start : self.rows.stop]
        )
        self._phase = _PHASES[config.decide]
        kept = most_traded(config.universe, snapshot.at(self.rows[0], "pre_open"))
        self._universe = Universe(config.universe, kept)
        self._ledger: Ledger | None = None
        self._check_index()

    def __len__(self) -> int:
        """Return the number of sessions, which is the number of decisions."""
        return len(self.rows)

    @property
    def ledger(self) -> Ledger:
        """The account; raises :class:`UserError` before the first :meth:`reset`."""
        if self._ledger is None:
            raise UserError("the market has not started", hint="call reset() first")
        return self._ledger

    def reset(self) -> Observation:
        """Start the episode afresh and return the first observation."""
        self._ledger = Ledger(self.config.cash, terms=self.venue.terms)
        self._exchange = Exchange(self.venue)
        self._step = 0
        self._since: tuple[Event, ...] = ()
        return self._open(deposit=True)

    def step(self, decision: Decision) -> Step:
        """Carry out a decision and go on to the next session.

        A decision with ``status="failed"`` trades nothing, whatever orders it carries. Raises :class:`UserError`
        when the episode is over or was not started.
        """
        ledger, step, bars = self.ledger, self._step, self._bars
        if step >= len(self.rows):
            raise UserError("the episode is over", hint="call reset() to play it again")
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

    def restore(self, records: Iterable[StepRecord], witness: Witness | None = None) -> Observation | None:
        """Continue a journal: play its decisions again and return what is seen next (None = it was complete).

        Every record made anew must equal the one in the journal to the byte; otherwise data, rules or code have
        changed, and :class:`RunError` names the session. ``witness`` is called for every session replayed, which
        is how an agent is brought back to where it was.
        """
        seen: Observation | None = self.reset()
        for record in records:
            if seen is None:
                raise RunError(
                    f"the journal goes on at step {record.step} after the last session",
                    hint="the window or the data set has changed; start the run again",
                )
            again, following = self.step(record.decision)
            if ENCODER.encode(again) != ENCODER.encode(record):
                raise RunError(
                    f"session {record.session} (step {record.step}) comes out differently than the journal says",
                    hint="data, rules or code have changed since; start the run again",
                )
            if witness is not None:
                witness(seen, record)
            seen = following
        return seen

    def _open(self, *, deposit: bool = False) -> Observation:
        """Begin a session: what happens before the open, then what may be seen."""
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
            self._early = tuple(self._exchange.work_waiting(self._bars, ledger, until=phase))
        view = before if phase == "pre_open" else whole if phase == "close" else at(row, phase)
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

    def _check_index(self) -> None:
        """Look up the universe and the index once, so that a wrong name is found before anybody pays for a day."""
        view = self.snapshot.at(self.rows[-1], "close")
        first = self.snapshot.at(self.rows[0], "pre_open")
        if not self._universe.at(view).buyable and not self._universe.at(first).buyable:
            raise UserError(
                f"'{self.snapshot.name}' has nothing to buy: '{self.config.universe}' has no dated members there",
                hint="choose another universe (--universe all), or import the data with a membership table",
            )
        if self.config.index is not None:
            view.index_levels(self.config.index, 1)
