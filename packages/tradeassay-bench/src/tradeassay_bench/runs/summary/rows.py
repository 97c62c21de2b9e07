"""The records that pages and tables are written from. They know neither a folder nor a page."""

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

    ``spells`` counts holdings. One that is still held at the end counts up to there. ``sessions``
    is None without any.
    """

    names: float
    fewest: int
    most: int
    spells: int
    sessions: float | None


class CallNote(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call as the model wrote it, and its result, or None if it got none."""

    name: str
    arguments: str
    result: str | None = None
    found_in: str = "call"


class ShownTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One question and its answer. ``asked`` pairs a role with a text, for what is new in this
    question."""

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

    ``problems`` are its failures, one line each. ``more_orders`` counts the orders beyond those
    that are kept. ``turns`` is the conversation, kept for the sessions most worth reading, and
    ``why`` is the reason for this one. ``attempts`` counts the tries at the answer. ``usd`` is None
    if the price is unknown.
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
    """The repetition that stands for an agent.

    ``place`` is its index among the agent's paths. ``falls`` is the drawdown along its path.
    ``trades`` are those in the most traded symbols. ``decisions`` are all of them or the latest,
    newest first. What was left out of either is counted.
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
    """The reason why an answer could not be used: the ``answer``, and ``where`` it is recorded.

    ``detail`` has the line of a user's own code that failed, as in every failure.
    """

    session: str
    kind: str
    detail: str
    answer: str
    where: str


class ErrorRow(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of mistake: how many answers and sessions had it, and the share of such sessions."""

    kind: str
    answers: int
    sessions: int
    rate: Measure


class FormRate(msgspec.Struct, frozen=True, kw_only=True):
    """A rate of form that a benchmark defines for its own answers."""

    title: str
    defined: str
    rate: Measure


class ModelSummary(msgspec.Struct, frozen=True, kw_only=True):
    """An agent that is a model. The figures are over all repetitions.

    ``mask`` names what was hidden from it, None if nothing was.
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
    """One row of a leaderboard as it was scored, and everything that unfolds from it.

    ``paths`` has the value path (initial value first) of every repetition with a result.
    ``failure`` is the reason if there is no result at all. ``failed_episodes`` pairs an episode's
    key with its reason. ``causes`` are the first answers that could not be used, if an episode
    failed or the agent raised. ``design`` is the comparison with the baseline as an experiment,
    with the dependence measured in it; None if nothing was compared. ``model`` is None for a rule,
    ``detail`` None if only a table is written. ``called`` is the name for readers if the label
    would claim too much. ``horizon`` is what its sessions cover; None if that does not matter.
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
        """The scored measures. Those of a year are left out of a record under a quarter."""
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
        """The excess return versus the baseline as surfaces show it: per year, or over a record
        under a quarter. None if nothing was compared."""
        if self.versus is None or self.horizon is None:
            return None if self.versus is None else self.versus.difference
        return self.horizon.grown(self.versus.difference)

    @property
    def result(self) -> Measure:
        """The measure that ranks a leaderboard: the median return over the window."""
        return self.row.measures["cumulative_return"].median

    @property
    def unranked(self) -> str | None:
        """The reason why an agent with a result has no rank; None otherwise."""
        return None if self.result.value is None else self.row.unranked

    @property
    def has_place(self) -> bool:
        """Whether the agent can be ranked: it has a result that its own answers made."""
        return self.result.value is not None and self.unranked is None

    @property
    def path(self) -> tuple[float, ...]:
        return self.paths[self.detail.place if self.detail is not None else 0]


class Contest(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison of a setting's agents, as far as its sessions can tell them apart.

    ``tiers`` are groups of agents, best first. Agents of a tier cannot be told apart from its best
    one (:func:`tradeassay.metrics.tiers`). The baseline is in no tier: the comparison with it is a
    question of its own.
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
    session and one before, or is None. ``prices`` are closing prices as traded, one per session.
    ``options`` are the conversation's options that the run named, ``window`` is its named window.
    ``contest`` compares the agents; None if it was not computed. ``limits`` say when skill could
    not have shown here at all.
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
        """What the sessions cover."""
        return Horizon(len(self.sessions), self.periods_per_year)

    @property
    def excess_title(self) -> str:
        """The title of the excess return versus the baseline, on every surface."""
        return f"Excess return {self.horizon.words} versus {self.baseline_phrase}"

    @property
    def ranked(self) -> list[AgentSummary]:
        """The agents by return, best first, then those that failed too often, then those without a
        result."""
        return sorted(
            self.agents,
            key=lambda agent: (
                agent.result.value is None,
                agent.unranked is not None,
                -(agent.result.value or 0.0),
            ),
        )

    def place_of(self, agent: AgentSummary, rank: int) -> int | None:
        """Return the place of the agent that is number ``rank`` of :attr:`ranked`, or None if it
        has none.

        The place is a tier, because a rank among agents that cannot be told apart would be luck. It
        is the rank if nobody was compared.
        """
        if self.contest is not None:
            return self.contest.tier_of(agent.name)
        return rank if agent.has_place else None


class ContrastArm(msgspec.Struct, frozen=True, kw_only=True):
    """One agent in one setting of a contrast. ``versus`` compares it with the reference, which has
    None. ``excess`` is the difference as surfaces show it."""

    result: Measure
    versus: AgainstBaseline | None = None
    excess: Measure | None = None


class ContrastRow(msgspec.Struct, frozen=True, kw_only=True):
    """One agent in every setting of a contrast, the reference first."""

    agent: str
    arms: tuple[ContrastArm | None, ...]


class Contrast(msgspec.Struct, frozen=True, kw_only=True):
    """Settings that differ in one option only. ``labels`` are its values, ``settings`` their ids.

    ``horizon`` is what the sessions of the reference cover."""

    key: str
    title: str
    where: str
    labels: tuple[str, ...]
    settings: tuple[str, ...] = msgspec.field(name="cells")
    rows: tuple[ContrastRow, ...]
    horizon: Horizon = Horizon(252)


class OverMarkets(msgspec.Struct, frozen=True, kw_only=True):
    """The comparison of agents over several markets with the same ``options``.

    ``places`` has the mean ranks and the difference that is needed between them.
    """

    options: dict[str, str] = msgspec.field(name="setting")
    markets: tuple[str, ...]
    places: CriticalDifference


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """The most that ``verify`` can check of a run.

    ``again`` are the claims that can be made again if the data is present, ``not_again`` those that
    cannot.
    """

    again: tuple[str, ...]
    not_again: tuple[ClaimOutcome, ...]


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run.

    ``hashes`` and ``versions`` are (name, value) pairs, shown as they are. ``check`` is the command
    that checks the run, ``coverage`` what that check can make again, ``freedom`` the runner's own
    choices.
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
