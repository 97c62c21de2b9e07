"""Define the records from which pages and tables are written.

They contain no folder and no page.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from tradeassay.core.measure import Badges, Measure, not_scored
from tradeassay.metrics import (
    AgainstBaseline,
    Calibration,
    CriticalDifference,
    Design,
    SeedSummary,
)
from tradeassay.metrics.history import AccountHistory
from tradeassay.metrics.horizon import TOO_SHORT, YEARLY, Horizon
from tradeassay.metrics.reliability import Reliability
from tradeassay_bench.core.orders import Order
from tradeassay_bench.runs.score import AgentScores, Inference
from tradeassay_bench.runs.store.outcome import ClaimOutcome
from tradeassay_bench.runs.verify.freedom import Freedom

Answers = Literal["scripted", "replayed program", "replayed", "program", "live"]
FateTone = Literal["filled", "partly", "refused", "waiting", "nothing"]


class Trade(msgspec.Struct, frozen=True, kw_only=True):
    """One fill. A positive ``quantity`` is a purchase."""

    session: str
    symbol: str
    quantity: float
    price: float
    forced: bool = False


class HoldingsOverTime(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of the account at the end of each session: ``weights[symbol][session]``."""

    symbols: tuple[str, ...]
    weights: tuple[tuple[float, ...], ...]


class HoldingTimes(msgspec.Struct, frozen=True, kw_only=True):
    """The number of names held at the end of a session, and the length of holdings in sessions.

    ``spells`` counts holdings. An open holding counts up to the last session. ``sessions`` is None
    if there are no holdings.
    """

    names: float
    fewest: int
    most: int
    spells: int
    sessions: float | None


class CallNote(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call as the model wrote it, and its result, or None without a result."""

    name: str
    arguments: str
    result: str | None = None
    found_in: str = "call"


class ShownTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One question and its answer.

    ``asked`` contains the new texts of this question with their roles.
    """

    purpose: str
    attempt: int
    asked: tuple[tuple[str, str], ...]
    said: str
    calls: tuple[CallNote, ...] = ()
    error: str | None = None


class OrderNote(msgspec.Struct, frozen=True, kw_only=True):
    """An order and its fate."""

    order: Order
    tone: FateTone
    fate: str


class DecisionNote(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's decision in one session.

    ``problems`` are its failures, one line each. ``more_orders`` counts the omitted orders.
    ``turns`` is the conversation, which only the most interesting sessions have. ``why`` is the
    reason for the choice of this session. ``attempts`` counts the attempts at the answer. ``usd``
    is None if the price is unknown.
    """

    session: str
    reason: str
    failed: bool = False
    orders: tuple[OrderNote, ...] = ()
    problems: tuple[str, ...] = ()
    turns: tuple[ShownTurn, ...] = ()
    attempts: int = 0
    tokens: int = 0
    usd: float | None = None
    more_orders: int = 0
    why: str = ""


class EpisodeDetail(msgspec.Struct, frozen=True, kw_only=True):
    """The repetition that represents an agent.

    ``place`` is its index among the agent's paths. ``falls`` is the drawdown along its path.
    ``trades`` are the trades in the most traded symbols. ``decisions`` are all decisions or the
    latest, newest first. The omitted trades and decisions are counted.
    """

    place: int = 0
    seed: int | None = None
    falls: tuple[float, ...] = ()
    history: AccountHistory | None = None
    holdings: HoldingsOverTime | None = None
    times: HoldingTimes | None = None
    trades: tuple[Trade, ...] = ()
    trades_left_out: int = 0
    decisions: tuple[DecisionNote, ...] = ()
    decisions_left_out: int = 0


class FailureCause(msgspec.Struct, frozen=True, kw_only=True):
    """The reason of an unusable answer: the ``answer``, and ``where`` it is recorded.

    ``detail`` has the line of a user's own code that failed, as in every failure.
    """

    session: str
    kind: str
    detail: str
    answer: str
    where: str


class ErrorRow(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of mistake.

    It has the numbers of answers and sessions with the mistake, and the share of such sessions.
    """

    kind: str
    answers: int
    sessions: int
    rate: Measure


class FormRate(msgspec.Struct, frozen=True, kw_only=True):
    """A rate of valid form that a benchmark defines for its own answers."""

    title: str
    defined: str
    rate: Measure


class ModelSummary(msgspec.Struct, frozen=True, kw_only=True):
    """An agent that is a model. The figures are over all repetitions.

    ``mask`` names the hidden facts. It is None if nothing was hidden.
    """

    model: str
    answers: Answers
    mask: str | None = None
    cost: Inference | None = None
    net_return: Measure | None = None
    sessions: int = 0
    errors: tuple[ErrorRow, ...] = ()
    rates: tuple[FormRate, ...] = ()
    confidence: Calibration | None = None


class AgentSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a leaderboard as scored, with all its details.

    ``paths`` contains the value path (initial value first) of every repetition with a result.
    ``failure`` is the reason if there is no result. ``failed_episodes`` pairs an episode's key with
    its reason. ``causes`` are the first unusable answers, if an episode failed or the agent raised.
    ``design`` is the power of the comparison with the baseline, with the measured dependence. It is
    None if nothing was compared. ``model`` is None for a rule. ``detail`` is None if only a table
    is written. ``called`` is the displayed name if the label would be misleading. ``horizon`` is
    the period of its sessions, or None if it does not matter.
    """

    row: AgentScores
    called: str = ""
    failure: str | None = None
    failed_episodes: tuple[tuple[str, str], ...] = ()
    causes: tuple[FailureCause, ...] = ()
    rejections: dict[str, int] = {}
    failures: dict[str, int] = {}
    paths: tuple[tuple[float, ...], ...] = ()
    design: Design | None = None
    horizon: Horizon | None = None
    detail: EpisodeDetail | None = None
    model: ModelSummary | None = None

    @property
    def name(self) -> str:
        return self.called or self.row.agent

    @property
    def baseline(self) -> bool:
        return self.row.baseline

    @property
    def seeds(self) -> int:
        return len(self.row.episodes)

    @property
    def measures(self) -> dict[str, SeedSummary]:
        """Return the scored measures. Annual measures are omitted for a record under a quarter."""
        if self.horizon is None or not self.horizon.is_short:
            return self.row.measures
        short = SeedSummary(median=not_scored(TOO_SHORT), n=0, missing=self.seeds)
        return {
            name: short if name in YEARLY else spread for name, spread in self.row.measures.items()
        }

    @property
    def versus(self) -> AgainstBaseline | None:
        return self.row.versus_baseline

    @property
    def excess(self) -> Measure | None:
        """Return the excess return versus the baseline; None if nothing was compared.

        It is per year, or over a record under a quarter.
        """
        if self.versus is None or self.horizon is None:
            return None if self.versus is None else self.versus.difference
        return self.horizon.grown(self.versus.difference)

    @property
    def result(self) -> Measure:
        """Return the measure that ranks a leaderboard: the median return over the window."""
        return self.row.measures["cumulative_return"].median

    @property
    def unranked(self) -> str | None:
        """Return the reason why an agent with a result has no rank; None otherwise."""
        return None if self.result.value is None else self.row.unranked

    @property
    def has_place(self) -> bool:
        """Return whether the agent can be ranked: its own answers determine its result."""
        return self.result.value is not None and self.unranked is None

    @property
    def path(self) -> tuple[float, ...]:
        return self.paths[self.detail.place if self.detail is not None else 0]


class Contest(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison of a setting's agents.

    ``tiers`` are groups of agents, best first. Agents of a tier do not differ significantly from
    its best agent (:func:`tradeassay.metrics.tiers`). The baseline is in no tier, because the
    comparison with it is a separate question.
    """

    tiers: tuple[tuple[str, ...], ...]
    sessions: int
    level: float

    def tier_of(self, agent: str) -> int | None:
        """Return an agent's tier, 1 for the best; None if it is not ranked."""
        return next(
            (place for place, names in enumerate(self.tiers, start=1) if agent in names), None
        )


class SettingSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark on one data set with one choice of options: agents that may be compared.

    ``baseline_phrase`` is the baseline in a sentence ("buy and hold"). ``index`` has one level per
    session, preceded by an initial level, or is None. ``prices`` are closing prices as traded, one
    per session. ``options`` are the conversation's options in the run's spec. ``window`` is its
    named window. ``contest`` compares the agents. It is None if it was not computed. ``limits``
    state when skill could not have been detected.
    """

    id: str
    title: str
    benchmark: str
    dataset: str
    badges: Badges
    sessions: tuple[str, ...]
    agents: tuple[AgentSummary, ...]
    baseline: str
    baseline_phrase: str = "buy and hold"
    rules: str = ""
    periods_per_year: int = 252
    index_name: str | None = None
    index: tuple[float, ...] | None = None
    prices: dict[str, tuple[float | None, ...]] = {}
    options: dict[str, bool | int | float | str] = msgspec.field(
        name="settings", default_factory=dict
    )
    window: str | None = None
    contest: Contest | None = None
    limits: tuple[str, ...] = ()

    @property
    def horizon(self) -> Horizon:
        """Return the period of the sessions."""
        return Horizon(len(self.sessions), self.periods_per_year)

    @property
    def excess_title(self) -> str:
        """Return the title of the excess return versus the baseline."""
        return f"Excess return {self.horizon.words} versus {self.baseline_phrase}"

    @property
    def ranked(self) -> list[AgentSummary]:
        """Return the agents by return, best first.

        Agents with too many failures and then agents without a result are last.
        """
        return sorted(
            self.agents,
            key=lambda agent: (
                agent.result.value is None,
                agent.unranked is not None,
                -(agent.result.value or 0.0),
            ),
        )

    def place_of(self, agent: AgentSummary, rank: int) -> int | None:
        """Return the place of the agent at ``rank`` in :attr:`ranked`, or None.

        The place is a tier, because a rank among agents that do not differ significantly would be
        luck. It is the rank if no agents were compared.
        """
        if self.contest is not None:
            return self.contest.tier_of(agent.name)
        return rank if agent.has_place else None


class ContrastArm(msgspec.Struct, frozen=True, kw_only=True):
    """One agent in one setting of a contrast.

    ``versus`` compares it with the reference. It is None for the reference. ``excess`` is the
    displayed difference.
    """

    result: Measure
    versus: AgainstBaseline | None = None
    excess: Measure | None = None


class ContrastRow(msgspec.Struct, frozen=True, kw_only=True):
    """One agent in every setting of a contrast, the reference first."""

    agent: str
    arms: tuple[ContrastArm | None, ...]


class Contrast(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that differ in one option only. ``labels`` are its values, ``settings`` their ids.

    ``horizon`` is the period of the reference's sessions.
    """

    key: str
    title: str
    where: str
    labels: tuple[str, ...]
    settings: tuple[str, ...] = msgspec.field(name="cells")
    rows: tuple[ContrastRow, ...]
    horizon: Horizon = Horizon(252)


class OverMarkets(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison of agents over several markets with the same ``options``.

    ``places`` contains the mean ranks and their critical difference.
    """

    options: dict[str, str] = msgspec.field(name="setting")
    markets: tuple[str, ...]
    places: CriticalDifference


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """The claims of a run that ``verify`` can check.

    ``again`` are the claims that can be recomputed if the data is present. ``not_again`` are the
    remaining claims.
    """

    again: tuple[str, ...]
    not_again: tuple[ClaimOutcome, ...]


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The summary of a whole run.

    ``hashes`` and ``versions`` are (name, value) pairs, displayed unchanged. ``check`` is the
    command that verifies the run. ``coverage`` states what that command can recompute. ``freedom``
    lists the runner's own choices.
    """

    title: str
    settings: tuple[SettingSummary, ...] = msgspec.field(name="cells")
    contrasts: tuple[Contrast, ...] = ()
    over_markets: tuple[OverMarkets, ...] = ()
    reliability: Reliability | None = None
    level: float = 0.95
    draws: int = 1000
    hashes: tuple[tuple[str, str], ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    check: str | None = None
    coverage: Coverage | None = None
    freedom: Freedom | None = None
