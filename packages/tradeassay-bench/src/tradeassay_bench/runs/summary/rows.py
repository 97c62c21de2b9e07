"""Define the records of a run's summary, from which pages and tables are written."""

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
    """The weights of positions at the end of each session.

    ``weights`` has a row per symbol and a column per session. A weight is a share of the account.
    """

    symbols: tuple[str, ...]
    weights: tuple[tuple[float, ...], ...]


class HoldingTimes(msgspec.Struct, frozen=True, kw_only=True):
    """The number of positions at the end of a session, and the length of positions.

    ``names`` is the mean number of positions, ``fewest`` and ``most`` are the extremes. ``spells``
    is the number of uninterrupted holdings of a symbol. ``sessions`` is their mean length in
    sessions; None if there are no holdings. An open holding ends with the last session.
    """

    names: float
    fewest: int
    most: int
    spells: int
    sessions: float | None


class CallNote(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call as the model wrote it. ``result`` is None for a call without a result."""

    name: str
    arguments: str
    result: str | None = None
    found_in: str = "call"


class ShownTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One question and its answer.

    ``asked`` contains the roles and texts that are new in this question. ``said`` is the text of
    the answer.
    """

    purpose: str
    attempt: int
    asked: tuple[tuple[str, str], ...]
    said: str
    calls: tuple[CallNote, ...] = ()
    error: str | None = None


class OrderNote(msgspec.Struct, frozen=True, kw_only=True):
    """An order, and what happened to it: ``fate`` is a text, ``tone`` its category."""

    order: Order
    tone: FateTone
    fate: str


class DecisionNote(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's decision in one session.

    ``problems`` lists the failures of the decision, one line each. ``more_orders`` is the number of
    omitted orders. ``turns`` is the conversation; it is empty except for the most interesting
    sessions. ``why`` is the reason why the session is interesting. ``attempts`` is the number of
    attempts at the answer. ``usd`` is the cost in dollars, or None if the price is unknown.
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
    """The details of the episode that represents an agent.

    ``place`` is the index of the episode's path among the agent's paths. ``falls`` is the drawdown
    at each session. ``trades`` contains the trades in the most traded symbols. ``decisions``
    contains the latest decisions, newest first. ``trades_left_out`` and ``decisions_left_out`` are
    the numbers of omitted trades and decisions.
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
    """An unusable answer, and why it is unusable.

    ``kind`` and ``detail`` describe the failure. For a failure in a user's own code, ``detail``
    names the line of the code. ``answer`` is the text of the answer, and ``where`` is the file with
    its record.
    """

    session: str
    kind: str
    detail: str
    answer: str
    where: str


class ErrorRow(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of mistake.

    ``answers`` and ``sessions`` are the numbers of answers and sessions with the mistake. ``rate``
    is the share of sessions with the mistake.
    """

    kind: str
    answers: int
    sessions: int
    rate: Measure


class FormRate(msgspec.Struct, frozen=True, kw_only=True):
    """A rate of correctly formatted answers, as a benchmark defines it. ``defined`` is the text."""

    title: str
    defined: str
    rate: Measure


class ModelSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The summary of an agent that is a model, over all its episodes in a setting.

    ``answers`` is the source of the answers. ``mask`` is the name of the mask, or None without a
    mask.
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

    ``called`` is the displayed name; if empty, the label is displayed. ``failure`` is the reason
    why there is no result, or None. ``failed_episodes`` contains pairs of an episode's key and the
    reason for its failure. ``causes`` contains the first unusable answers, if an episode failed or
    the agent raised an exception. ``paths`` contains the account values of every finished episode,
    initial value first. ``design`` is the power of the comparison with the baseline, given the
    measured dependence between sessions; None if nothing was compared. ``horizon`` is the period of
    the sessions, or None if it is unknown. ``detail`` is None if only a table is written. ``model``
    is None for a rule.
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
        """Return the scored measures.

        If the sessions cover less than a quarter, annual measures have a reason instead of a value.
        """
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

        The value is per year. If the sessions cover less than a quarter, it is for the whole
        period.
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
        """Return whether the agent can be ranked: it has a result and enough usable answers."""
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
            (tier for tier, names in enumerate(self.tiers, start=1) if agent in names), None
        )


class SettingSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The summary of one setting, whose agents may be compared.

    A setting is a benchmark on a data set, with the options of the conversation and the window.
    ``baseline_phrase`` names the baseline in a sentence ("buy and hold"). ``index`` has an initial
    level and one level per session, or is None. ``prices`` contains closing prices as traded, one
    per session, by symbol. ``options`` contains the options that the run's spec changes. ``window``
    is the name of the window, or None. ``contest`` is the comparison of the agents, or None if it
    was not computed. ``limits`` contains sentences about the skill that the sessions and seeds
    cannot detect.
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

        Agents with too many failures follow, and agents without a result are last.
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
        """Return the displayed place of an agent; None if the agent is not ranked.

        The place is the agent's tier, because ranks of agents that do not differ significantly are
        luck. If the agents were not compared, it is ``rank``, the position in :attr:`ranked`.
        """
        if self.contest is not None:
            return self.contest.tier_of(agent.name)
        return rank if agent.has_place else None


class ContrastArm(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one agent in one setting of a contrast.

    ``versus`` is the comparison with the agent's result in the reference setting, and ``excess`` is
    the displayed difference. Both are None in the reference setting.
    """

    result: Measure
    versus: AgainstBaseline | None = None
    excess: Measure | None = None


class ContrastRow(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one agent in all settings of a contrast, the reference setting first.

    An arm is None if the agent does not run in the setting.
    """

    agent: str
    arms: tuple[ContrastArm | None, ...]


class Contrast(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison of settings that differ only in the option ``key``.

    ``labels`` contains the value of the option in each setting, and ``settings`` the ids of the
    settings. The first setting is the reference. ``horizon`` is the period of its sessions.
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

    ``places`` contains the mean ranks of the agents and the critical difference of mean ranks.
    """

    options: dict[str, str] = msgspec.field(name="setting")
    markets: tuple[str, ...]
    places: CriticalDifference


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """The claims of a run that a verification can and cannot recompute.

    ``again`` lists the claims that can be recomputed if the data is present. ``not_again`` contains
    all other claims.
    """

    again: tuple[str, ...]
    not_again: tuple[ClaimOutcome, ...]


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The summary of a whole run.

    ``level`` is the confidence level of intervals, and ``draws`` is the number of bootstrap draws.
    ``hashes`` and ``versions`` contain pairs of a name and a value. ``check`` is the command that
    verifies the run. ``coverage`` contains the claims that this command can recompute. ``freedom``
    lists the runner's choices.
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
