"""An episode of KTD-Fin: one mask, one conversation per day."""

from typing import TYPE_CHECKING, ClassVar, cast

import msgspec
import numpy as np

from tradeassay.benchmarks.ktdfin.account import show_performance
from tradeassay.benchmarks.ktdfin.action import SUBMIT
from tradeassay.benchmarks.ktdfin.day import DROPPED, SPECS, day
from tradeassay.benchmarks.ktdfin.desk import Desk, FactorFeed, Roster, find_roster
from tradeassay.benchmarks.ktdfin.ktdfin_config import KtdfinConfig
from tradeassay.benchmarks.ktdfin.observation import Constraints, ObservationShown
from tradeassay.benchmarks.ktdfin.prompts import PROMPTS
from tradeassay.benchmarks.ktdfin.wire import Wire
from tradeassay.benchmarks.protocol import ProtocolConfig, protocols
from tradeassay.core.agent import EpisodeInfo, Observation
from tradeassay.core.dialogue import Dialogue, ToolSpec
from tradeassay.core.orders import Decision
from tradeassay.core.view import Days, MarketView
from tradeassay.masking import DayMap, Mask, refuse_nameless

if TYPE_CHECKING:
    from tradeassay.data import Snapshot

HISTORY = 300
"""Sessions before the first one that get a label of their own; older days are counted by the calendar."""


class _FirstSight:
    """What a mask needs from a snapshot, as far as the first observation shows it."""

    def __init__(self, observation: Observation) -> None:
        self.view = observation.view
        self.sessions = _calendar(observation, HISTORY)

    def rows(self, first: str | None, last: str | None) -> range:
        return range(len(self.sessions) - 1, len(self.sessions))

    def at(self, row: int, phase: str) -> MarketView:
        return self.view


@protocols.register("ktdfin")
class Ktdfin:
    """The conversation rules of one episode. See :class:`~tradeassay.benchmarks.protocol.ModelProtocol`."""

    Config: ClassVar[type[ProtocolConfig]] = KtdfinConfig
    prompts: ClassVar[tuple[str, ...]] = PROMPTS.files
    tools: ClassVar[tuple[ToolSpec, ...]] = (*SPECS, SUBMIT)
    shown: ClassVar[tuple[type[msgspec.Struct], type[msgspec.Struct]]] = (Constraints, ObservationShown)

    def __init__(self, config: KtdfinConfig | None = None) -> None:
        self.config = KtdfinConfig() if config is None else config
        self.config.mask_config  # noqa: B018  # a mask that makes no sense is refused before anybody pays for a day
        self._mask: Mask | None = None
        self._roster: Roster | None = None
        self._index_start: float | None = None
        self._yesterday: float | None = None
        self._feed = FactorFeed()
        self._not_sent: tuple[str, ...] = ()

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        """Start an episode. The mask is drawn from ``rng`` when the first day is seen."""
        self._rng = rng
        self._mask = self._index_start = self._yesterday = None
        self._feed = FactorFeed()
        self._not_sent = ()

    def dialogue(self, observation: Observation) -> Dialogue:
        """Return today's conversation; its messages start afresh every day."""
        wire, desk = self.wire(observation), self.desk(observation)
        performance = show_performance(desk, self._index_start, self._yesterday)
        return day(desk, wire, performance, self._not_sent)

    def remember(self, observation: Observation, decision: Decision) -> None:
        """Take note of a day that is over."""
        self._feed.follow(self._masked(observation).shown(observation.view) or observation.view)
        self._yesterday = observation.account.nav
        self._not_sent = tuple(failure.detail for failure in decision.failures if failure.kind == DROPPED)

    def desk(self, observation: Observation) -> Desk:
        """Return the day's desk, for tools and tests."""
        view = observation.view
        self._roster = find_roster(view, observation.rules.venue, observation.session, self._roster)
        return Desk(observation, self._roster, self.config, self._feed, self._masked(observation).shown(view))

    def wire(self, observation: Observation) -> Wire:
        """Return the day's wire, for tools and tests."""
        return Wire(self._masked(observation).gate(observation.view))

    def _masked(self, observation: Observation) -> Mask:
        """Return the episode's mask, which knows the calendar up to today and no further."""
        if self._mask is None:
            first = cast("Snapshot", _FirstSight(observation))
            if self.config.news and self.config.mask_config.hides_stocks:
                refuse_nameless(observation.view)
            self._mask = Mask(self.config.mask_config, first, None, None, self._rng)
            self._history = len(first.sessions) - 1
            self._first_step = self._step = observation.step
            levels = self.desk(observation).index_levels(1).tolist()
            self._index_start = levels[0] if levels else None
        if observation.step != self._step:
            sessions = _calendar(observation, self._history + observation.step - self._first_step)
            self._mask.days = DayMap(sessions, self._history)
            self._step = observation.step
        return self._mask


def _calendar(observation: Observation, lookback: int) -> Days:
    """Return the last completed sessions and today."""
    days = observation.view.sessions(lookback)
    today = np.datetime64(observation.session, "D")
    if days.size and days[-1] == today:
        return days
    return np.concatenate((days, today.reshape(1)))
