"""What a page or table is written from: plain frozen records that know neither a folder nor a page."""

from __future__ import annotations

from typing import Literal

import msgspec

from tradeassay.core.measure import Badges, Measure
from tradeassay.core.orders import Order
from tradeassay.metrics import AgainstBaseline, Calibration, CriticalDifference, Design, SeedSummary
from tradeassay.metrics.history import AccountHistory
from tradeassay.metrics.reliability import Reliability
from tradeassay.runs.score import AgentScores, Inference
from tradeassay.runs.store.outcome import ClaimOutcome
from tradeassay.runs.verify.freedom import Freedom

Answers = Literal["scripted", "replayed program", "replayed", "program", "live"]
FateTone = Literal["filled", "partly", "refused", "waiting", "nothing"]


class Trade(msgspec.Struct, frozen=True, kw_only=True):
    """One fill: positive ``quantity`` is a purchase."""

    session: str
    symbol: str
    quantity: float
    price: float
    forced: bool = False


class HoldingsOverTime(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of the account at the end of each session, by symbol: ``weights[symbol][session]``."""

    symbols: tuple[str, ...]
    weights: tuple[tuple[float, ...], ...]


class HoldingTimes(msgspec.Struct, frozen=True, kw_only=True):
    """How many names are held at the end of a session, and for how many sessions a holding lasts. ``spells``
    counts holdings; one still held at the end counts up to there. ``sessions`` is None without any."""

    names: float
    fewest: int
    most: int
    spells: int
    sessions: float | None


class CallNote(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call as the model wrote it, and the result it got, None when it got none."""

    name: str
    arguments: str
    result: str | None = None
    found_in: str = "call"


class ShownTurn(msgspec.Struct, frozen=True, kw_only=True):
    """One question and its answer. ``asked`` pairs a role with a text, only what is new in this question."""

    purpose: str
    attempt: int
    asked: tuple[tuple[str, str], ...]
    said: str
    calls: tuple[CallNote, ...] = ()
    error: str | None = None


class OrderNote(msgspec.Struct, frozen=True, kw_only=True):
    """An order and what became of it."""

    order: Order
    tone: FateTone
    fate: str


class DecisionNote(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent decided in one session. ``problems`` are its failures, one line each. ``more_orders`` counts
    those beyond the ones that are kept. ``turns`` is the conversation, kept for the sessions most worth reading,
    ``why`` says why this one; ``attempts`` counts its tries at the answer. ``usd`` None is an unknown price."""

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
    """The repetition that stands for an agent. ``place`` is its place among the agent's paths. ``falls`` is the
    drawdown along its path. ``trades`` are those in the symbols traded most, ``decisions`` all of them or the
    latest, newest first; what was left out of either is counted."""

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
    """Why an answer could not be used: the ``answer`` itself, and ``where`` it is recorded. The line of somebody's
    own code that failed is in ``detail``, as in every failure."""

    session: str
    kind: str
    detail: str
    answer: str
    where: str


class ErrorRow(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of mistake: answers refused for it, sessions that had one, and the share of such sessions."""

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
    """An agent that is a model. ``mask`` names what was hidden from it, None when nothing was. The figures are
    over all repetitions."""

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
    """One row of a leaderboard, as it was scored, and all that unfolds from it.

    ``paths`` holds the value path (initial value first) of every repetition that has a result. ``failure`` says
    why there is no result at all; ``failed_episodes`` pairs an episode's key with its reason, ``causes`` are the
    first answers that could not be used, where an episode failed or the agent raised. ``design`` is the comparison
    with the baseline as an experiment, with the dependence measured in it, None where nothing was compared.
    ``model`` is None for a rule, ``detail`` None where only a table was asked for. ``called`` is what it is called
    where the label would say too much."""

    row: AgentScores
    called: str = ""
    failure: str | None = None
    failed_episodes: tuple[tuple[str, str], ...] = ()
    causes: tuple[FailureCause, ...] = ()
    rejections: dict[str, int] = {}
    failures: dict[str, int] = {}
    paths: tuple[tuple[float, ...], ...] = ()
    design: Design | None = None
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
        return self.row.measures

    @property
    def versus(self) -> AgainstBaseline | None:
        return self.row.versus_baseline

    @property
    def result(self) -> Measure:
        """The measure that ranks a leaderboard: the (median) return over the window."""
        return self.row.measures["cumulative_return"].median

    @property
    def unranked(self) -> str | None:
        """Why it has no place although it has a result; None otherwise."""
        return None if self.result.value is None else self.row.unranked

    @property
    def has_place(self) -> bool:
        """Whether it can be placed among others: by a result that its own answers made."""
        return self.result.value is not None and self.unranked is None

    @property
    def path(self) -> tuple[float, ...]:
        return self.paths[self.detail.place if self.detail is not None else 0]


class Contest(msgspec.Struct, frozen=True, kw_only=True):
    """Which agent of a cell is best, as far as its sessions can tell. ``tiers`` are groups of agents, best first:
    those of a tier cannot be told apart from its best one (:func:`tradeassay.metrics.tiers`). The baseline is in
    none: how an agent compares with it is a question of its own."""

    tiers: tuple[tuple[str, ...], ...]
    sessions: int
    level: float

    def tier_of(self, agent: str) -> int | None:
        """Return an agent's tier, 1 the best; None without a place."""
        return next((place for place, names in enumerate(self.tiers, start=1) if agent in names), None)


class CellSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark on one data set: agents that may be compared with each other.

    ``baseline_phrase`` is what the baseline is called in a sentence ("buy and hold"). ``index`` has one level per
    session and one before, or is None. ``prices`` are closing prices as traded, one per session. ``settings`` are
    those of the conversation that the run named, ``window`` its named window; ``contest`` who is best, None where
    that was not worked out; ``limits`` say when skill could not have shown here at all."""

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
    settings: dict[str, bool | int | float | str] = {}
    window: str | None = None
    contest: Contest | None = None
    limits: tuple[str, ...] = ()

    @property
    def ranked(self) -> list[AgentSummary]:
        """The agents by return, best first; those that failed too often after them, those without a result
        last."""
        return sorted(
            self.agents,
            key=lambda agent: (
                agent.result.value is None,
                agent.unranked is not None,
                -(agent.result.value or 0.0),
            ),
        )

    def place_of(self, agent: AgentSummary, rank: int) -> int | None:
        """Return the tier of the agent that is number ``rank`` of :attr:`ranked`, or where nobody was compared its
        rank: a place among agents that cannot be told apart would be luck. None for one without a place."""
        if self.contest is not None:
            return self.contest.tier_of(agent.name)
        return rank if agent.has_place else None


class ContrastArm(msgspec.Struct, frozen=True, kw_only=True):
    """One agent under one setting. ``versus`` compares it with the reference, None for the reference itself."""

    result: Measure
    versus: AgainstBaseline | None = None


class ContrastRow(msgspec.Struct, frozen=True, kw_only=True):
    """One agent under every setting, the reference first."""

    agent: str
    arms: tuple[ContrastArm | None, ...]


class Contrast(msgspec.Struct, frozen=True, kw_only=True):
    """Cells that differ in one setting only. ``labels`` name its values, ``cells`` are their ids."""

    key: str
    title: str
    where: str
    labels: tuple[str, ...]
    cells: tuple[str, ...]
    rows: tuple[ContrastRow, ...]


class OverMarkets(msgspec.Struct, frozen=True, kw_only=True):
    """Who is best over several markets under one ``setting``: mean places, and by how much they must differ."""

    setting: dict[str, str]
    markets: tuple[str, ...]
    places: CriticalDifference


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """What ``verify`` can say at most of a run: ``again`` names the claims that can be made again where the data
    is, ``not_again`` those that cannot."""

    again: tuple[str, ...]
    not_again: tuple[ClaimOutcome, ...]


class RunSummary(msgspec.Struct, frozen=True, kw_only=True):
    """A whole run. ``hashes`` and ``versions`` are (name, value) pairs, shown as they are. ``check`` is the
    command that checks the run it was made from, ``coverage`` what that can make again, ``freedom`` what its
    runner chose."""

    title: str
    cells: tuple[CellSummary, ...]
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
