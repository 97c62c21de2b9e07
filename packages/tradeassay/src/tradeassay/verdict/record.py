"""Records of an assay, which can be written as JSON, and the thresholds of a verdict.

All thresholds are our choice. The page of a verdict lists the thresholds used.
"""

from __future__ import annotations

import math
from typing import Annotated, Literal, get_args

import msgspec
from msgspec import Meta

from tradeassay.core.errors import UserError
from tradeassay.core.measure import Badges, Measure, above, below
from tradeassay.factors import factor_words
from tradeassay.metrics import AgainstBaseline, Calibration
from tradeassay.metrics.cosine import trading_days
from tradeassay.metrics.history import AccountHistory
from tradeassay.metrics.option_selling import OptionSelling
from tradeassay.metrics.smoothness import Smoothness
from tradeassay.verdict.recalled import RecallSplit, RecallWord
from tradeassay.verdict.statement import QUANTITIES, Statement

Share = Annotated[float, Meta(ge=0.0, le=1.0)]
_MOST_DRAWS = 1_000_000
_MOST_TRIES = 1_000_000_000
"""Largest number of tries. Beyond it a level shared among all tries equals 1 in a float."""


_LEAST_ROWS = 20
"""Smallest number of weekly, monthly or quarterly rows for an interval."""


class VerdictConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Thresholds of a verdict. Raises :class:`UserError` for values out of range.

    ``level`` is the confidence of every interval, shared among the agents of a setting.

    ``tries`` is the number of strategies, settings or agents tried to find this one. The best of
    many is lucky by construction, and a record does not show the number of tries. None means that
    the number was not disclosed: ``assumed_tries`` are then assumed. With ``folder`` the tries
    recorded in other runs of the folder are counted, if there are more. *Skill*, *timing* and
    *worse* require a result that survives the correction for all tries.

    ``portfolios`` is the number of random portfolios of the luck baseline; 0 leaves it out. A
    result is style if style explains ``style_variance`` of active variance and one exposure is at
    least ``exposure`` standard deviations. Below ``market_variance`` of the whole variance an
    account follows the market. It is passive if a portfolio explains ``tracks`` of it. ``too_good``
    is an implausibly high annual alpha ratio, at which look-ahead is suspected. ``least`` trading
    days, and 20 rows, are needed for any test. ``skilled`` is the alpha ratio in the statement on
    power. An annual alpha, or loss, below the economic ``floor`` does not count, even if it is
    significant.

    A verdict is not firm in these cases: a share above ``failed_sessions`` without a usable answer,
    leaks not excluded on ``leak_bound`` of days, factors on less than ``styled`` of the days or of
    the holdings, or fewer than ``short`` trading days. If only returns are known, ``dividends`` is
    the highest annual yield that a benchmark may exclude (0 for a benchmark that includes
    dividends), and ``interest`` the highest annual interest on uninvested money. Both are added to
    the floor. ``watched`` is for results that are looked at while they grow. Intervals then remain
    valid for any number of looks.
    """

    level: float = 0.95
    tries: int | None = None
    assumed_tries: int = 20
    folder: bool = True
    portfolios: int = 10_000
    seed: int = 0
    draws: int = 1000
    style_variance: Share = 0.25
    exposure: float = 0.5
    market_variance: Share = 0.02
    too_good: float = 6.0
    failed_sessions: Share = 0.2
    least: int = 60
    skilled: float = 1.0
    floor: float = 0.01
    tracks: Share = 0.99
    leak_bound: Share = 0.05
    styled: Share = 0.8
    short: int = 126
    dividends: Share = 0.025
    interest: Share = 0.05
    watched: bool = False

    def __post_init__(self) -> None:
        if not 0.0 < self.level < 1.0:
            raise UserError(
                f"a confidence level of {self.level}", hint="choose one between 0 and 1, e.g. 0.95"
            )
        for tries in (self.known_tries, self.assumed_tries):
            if not 1 <= tries <= _MOST_TRIES:
                hint = f"count at least the one that is shown, and at most {_MOST_TRIES:,}"
                raise UserError(f"{tries} tries", hint=hint)
        if self.portfolios != 0 and not 100 <= self.portfolios <= _MOST_DRAWS:
            raise UserError(
                f"{self.portfolios} random portfolios are too few for a distribution, or without "
                "end",
                hint=f"ask for 0 (none) or 100 to {_MOST_DRAWS:,}",
            )
        if not 100 <= self.draws <= _MOST_DRAWS or self.least < 20:
            hint = f"draws 100 to {_MOST_DRAWS:,}, least >= 20"
            raise UserError("too few draws or sessions for an interval, or too many", hint=hint)

    @property
    def known_tries(self) -> int:
        """Return the disclosed number of tries, or the assumed one."""
        return self.assumed_tries if self.tries is None else self.tries

    def rows_needed(self, year: int) -> int:
        """Return the number of rows that a test needs with ``year`` rows per year.

        Both the number of days and the number of rows must be large enough.
        """
        if trading_days(1, year) == 1.0:
            return self.least
        # Two years of weeks are 104 rows, although 504 / (252 / 52) is slightly more in floats.
        return max(_LEAST_ROWS, math.ceil(self.least / trading_days(1, year) - 1e-9))

    def tail(self, comparisons: int) -> float:
        """Return the one-sided error level of each of ``comparisons`` tests (Bonferroni)."""
        return (1.0 - self.level) / 2.0 / max(1, comparisons)


Kind = Literal[
    "skill",
    "timing",
    "could-be-best-of-few",
    "not-distinguishable-from-luck",
    "market",
    "style",
    "look-ahead",
    "memory",
    "costs",
    "cash",
    "hidden-risk",
    "worse",
    "no-benchmark",
    "failed",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
PRAISE: tuple[Kind, ...] = ("skill", "timing", "could-be-best-of-few")
"""Kinds of verdicts that missing tests make weaker."""
Claim = Literal["alpha", "timing", "style_timing", "together"]
"""Effects that may show skill: alpha, timing of the market, and timing of styles. Alpha and timing
of the market ``together`` can only be attributed to memory, because their sum shows no skill."""
LABELS: dict[Kind, str] = {
    "skill": "skill",
    "timing": "timing",
    "could-be-best-of-few": "could be the best of a few tries",
    "not-distinguishable-from-luck": "not distinguishable from luck",
    "market": "market exposure",
    "style": "style exposure",
    "look-ahead": "look-ahead",
    "memory": "memory",
    "costs": "eaten by costs",
    "cash": "held cash",
    "hidden-risk": "hidden risk",
    "worse": "worse than chance",
    "no-benchmark": "nothing to compare with",
    "failed": "failed run",
}
NOT_FIRM: dict[Kind, str] = {
    "skill": "skill, with caveats",
    "timing": "timing, with caveats",
    "look-ahead": "look-ahead suspected",
    "memory": "memory suspected",
    "hidden-risk": "hidden risk suspected",
}
"""Labels of verdicts that are not firm."""
OTHER_LABELS = ("baseline", "alpha too small", "faded")
"""Labels more specific than their kind: baselines, and two reasons for not being skill."""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the first question that settles a case.

    It has one sentence, and as ``limits`` the missing tests. A verdict is ``firm`` if everything
    that must be excluded is excluded. The numbers behind it are statements: see
    :class:`~tradeassay.verdict.statement.Statement`.
    """

    kind: Kind
    label: str
    firm: bool
    sentence: str
    limits: tuple[str, ...] = ()


def is_likelier(likelihood: float | None) -> bool:
    """Return whether a record is likelier under skill than as luck's best try.

    Without a test it is true.
    """
    return likelihood is None or likelihood > 1.0


class Alpha(msgspec.Struct, frozen=True, kw_only=True):
    """The return after market and style, net of costs (selection + trading), which may show skill.

    ``tested`` is its annual mean with an interval corrected for ``comparisons``, the agents judged
    together. ``ratio`` is the alpha ratio: alpha divided by its own volatility. ``gross`` is alpha
    before costs. ``at_least`` is its lower end at twice the one-sided error level. The possible
    income without skill must be below this number.

    ``tries`` is the number of tries, disclosed, counted or assumed. ``at_tries`` is the interval
    corrected for all of them. ``likelihood`` is the likelihood of the record under skill relative
    to luck's best try. ``equal_tries`` is the number of tries for which luck's best looks the same.
    A negative alpha is compared with luck's worst try, and has no ``equal_tries``. Both are None if
    alpha cannot be tested.

    ``costs`` are annual, None if they cannot be separated from fills. ``most_of_gain`` is true if
    they were at least half of the return before costs, ``most_of_loss`` if they are most of a loss.
    """

    tested: Measure
    ratio: Measure
    gross: Measure
    comparisons: int
    tries: int = 1
    at_tries: Measure | None = None
    likelihood: float | None = None
    equal_tries: int | None = None
    at_least: float | None = None
    costs: Measure | None = None
    most_of_gain: bool = False
    most_of_loss: bool = False

    @property
    def survives(self) -> bool:
        """Return whether alpha is above zero after correction for tries.

        The record must also be likelier under skill than under luck.
        """
        return self.at_tries is not None and above(self.at_tries) and is_likelier(self.likelihood)

    @property
    def survives_below(self) -> bool:
        """Return whether alpha is below zero after correction for tries.

        Luck's worst try must not be likelier.
        """
        return self.at_tries is not None and below(self.at_tries) and is_likelier(self.likelihood)

    def costly(self, config: VerdictConfig) -> bool:
        """Return whether known trading costs are at least the floor."""
        return self.costs is not None and -(self.costs.value or 0.0) >= config.floor


class LuckEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The rank of a result among random portfolios with the same trades.

    ``p`` is the chance of doing as well, ``p_low`` the chance of doing as badly. For several seeds,
    ``percentile`` is the percentile of the median seed, and the chances are twice its chances. This
    bound is valid for any dependence between seeds.
    """

    percentile: Measure
    p: float | None
    p_low: float | None = None
    portfolios: int = 0
    quantiles: tuple[float, ...] = ()


class MaskPrice(msgspec.Struct, frozen=True, kw_only=True):
    """What a mask costs an agent in ``worlds`` that no model can have read, claim by claim.

    Nothing can be remembered there, so a gap is information that the mask destroyed. ``lost`` are
    yearly gaps with their intervals, over ``sessions``. They have no value where there is a
    ``reason``.
    """

    worlds: tuple[str, ...]
    sessions: int = 0
    lost: dict[Claim, Measure] = {}
    reason: str | None = None


class PricedGap(msgspec.Struct, frozen=True, kw_only=True):
    """What a gap is made of: ``lost`` information, and ``remembered``, the gap minus it."""

    lost: Measure
    remembered: Measure


class Contrast(msgspec.Struct, frozen=True, kw_only=True):
    """One claim in the play and in the play under a mask.

    Fields are as in :class:`MemoryEvidence`.
    """

    gap: Measure
    masked: Measure
    confirmed: bool
    shrinks: bool
    priced: PricedGap | msgspec.UnsetType = msgspec.UNSET


class JointContrast(Contrast, frozen=True, kw_only=True):
    """Alpha and timing of the market as a sum.

    ``earned`` is the annual return of both, at the tested level.
    """

    earned: Measure


class MemoryEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The same agent where it could not know names or dates.

    ``gap`` is the yearly alpha unmasked less masked, session by session; ``parts`` are such
    differences by part; ``masked`` is alpha under the mask, and ``both`` that of an account that
    holds both plays in equal parts. ``both_at_tries`` is the same with an interval that allows for
    all tries. ``confirmed`` is whether the masked alpha is above zero by a one-sided test at twice
    the error of one side: an alpha that is certain unmasked need not be found twice as surely.
    ``shrinks`` is whether the gap is, by such a test. The contrast over all windows of the run says
    ``sentence`` and ``per_window``, the selection lost in one of them; ``doubted`` is that a
    control, which cannot remember, shows a gap too; ``fade`` is the selection before the model's
    cutoff less that after it. ``reason`` says why there is no contrast. ``price`` is what the mask
    costs in a world that no model can have read, and ``priced`` splits the gap by it. Both are
    unset where nobody measured it.
    """

    against: str | None
    gap: Measure
    masked: Measure
    parts: dict[str, Measure] = {}
    sentence: str = ""
    per_window: Measure | None = None
    doubted: bool = False
    fade: Measure | None = None
    confirmed: bool | None = None
    shrinks: bool = False
    both: Measure | None = None
    both_at_tries: Measure | None = None
    timing: Contrast | None = None
    style_timing: Contrast | None = None
    together: JointContrast | None = None
    reason: str | None = None
    price: MaskPrice | msgspec.UnsetType = msgspec.UNSET
    priced: PricedGap | msgspec.UnsetType = msgspec.UNSET


class RecallEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """Direct evidence of a model's memory.

    ``told`` is the result of the recall audit, and ``recall`` is its measure. ``split`` is alpha
    with and without recall. ``unread`` measures how similar decisions remain when their input is
    reversed: 1 the same, -1 the opposite. ``by_name`` is true if the decisions followed the name
    and the day instead. ``interaction`` is the gain in accuracy when the question's tokens are
    familiar. ``reason`` says why the answers prove nothing. ``excluded`` says why no test is
    needed: the model cannot have read the data.
    """

    told: RecallWord | None = None
    recall: Measure
    split: RecallSplit | None = None
    unread: Measure | None = None
    by_name: bool = False
    interaction: Measure | None = None
    sentences: tuple[str, ...] = ()
    reason: str | None = None
    excluded: str | None = None


class LeakEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the leak test.

    ``findings`` name channels. If ``tested`` is false, look-ahead is not excluded. ``bound`` is the
    share of days with a leak that the test could have missed, None if unknown. ``files_open`` means
    that the agent could have read the data from the disk, which the test does not see.
    """

    tested: bool
    findings: tuple[str, ...] = ()
    sentence: str = ""
    bound: float | None = None
    files_open: bool = False


CASH = "cash"


class PassiveEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The passive portfolio that explains an account best.

    ``explained`` is R squared. ``beyond`` is the annual return that it does not explain. ``lagged``
    is the late share of the exposure, which shows stale or smoothed prices.
    """

    portfolio: str
    explained: float
    beta: float
    beyond: Measure
    lagged: float = 0.0


class TimingEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The test whether the account held more when the market rose.

    ``per_year`` is the annual value of timing, at the tested level. ``by`` holdings, it is the
    covariance of the share invested with the market's return. ``by`` returns, it is Treynor and
    Mazuy's term times the market's variance. ``curvature`` is this term and ``upside`` is
    Henriksson and Merton's. ``intercept`` is the annual return while the market does not move, from
    which bought convexity is paid. ``at_tries`` and ``likelihood`` of the timing by holdings are
    corrected for all tries.
    """

    by: Literal["holdings", "returns"]
    per_year: Measure
    curvature: Measure
    upside: Measure
    intercept: Measure | None = None
    at_tries: Measure | None = None
    likelihood: float | None = None


class StyleEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The annual return from style.

    ``tilt`` is the return of mean exposures alone. ``timing`` is the return from higher exposures
    when a style paid. ``net`` is ``timing`` plus alpha, net of all costs. ``at_tries`` and
    ``likelihood`` of the timing are corrected for all tries.
    """

    tilt: Measure
    timing: Measure
    net: Measure | None = None
    at_tries: Measure | None = None
    likelihood: float | None = None


class TailEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The tails of the returns.

    ``crash`` is true if the market fell by a tenth or more in the window. With ``rare_losses``
    alpha is not significant after correction for its skew (returns only). ``skew`` is the skew of
    the account's returns by session. ``alpha_skew`` is the tested skew of alpha over ``alpha_span``
    sessions, None without ``rare_losses``.
    """

    skew: float | None
    worst: float
    worst_session: str | None
    drawdown: float
    crash: bool | None
    rare_losses: bool = False
    alpha_skew: float | None = None
    alpha_span: int | None = None


class CapacityEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The account size at which alpha is zero, by the square-root law of impact (a model).

    ``alphas`` are the annual alphas at ``sizes`` (in the data's money). Alpha is zero at ``dies``.
    Up to ``low`` it is significantly positive (0: never), and from ``high`` on it is significantly
    gone (None: never). ``traded`` is the share of the traded value with known usual amounts.
    """

    sizes: tuple[float, ...]
    alphas: tuple[Measure, ...]
    dies: float
    low: float
    high: float | None
    traded: float

    @property
    def sentence(self) -> str:
        """Return the result as one sentence."""
        low = "none" if self.low <= 0.0 else money_words(self.low)
        high = "any" if self.high is None else money_words(self.high)
        what = "what alpha there may be" if self.low <= 0.0 else "its alpha"
        return (
            f"{what} would be gone at a size of {money_words(self.dies)} ({low} to {high}): a "
            "trade is taken to "
            "move its price by a day's standard deviation times the root of its share of the usual "
            "day's amount"
        )


def money_words(amount: float) -> str:
    """Return an amount of money with two digits, in words from a million on."""
    rounded = float(f"{amount:.2g}")
    for unit, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if rounded >= unit:
            return f"{rounded / unit:g} {word}"
    return f"{rounded:,.0f}"


class StabilityEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The annual alpha by period.

    ``first``, ``second`` and ``latest`` are alpha in the two halves and in the latest third of the
    window. ``without_best`` excludes the five best sessions, and ``without_month`` excludes
    ``best_month`` (None under a year). ``faded`` is true if the second half contradicts the whole:
    its alpha is not positive, or it is less than a quarter of the first half's alpha and
    significantly smaller.
    """

    first: Measure
    second: Measure
    latest: Measure
    without_best: Measure
    best_month: str | None = None
    without_month: Measure | None = None
    faded: bool = False


class ConcentrationEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of selection and alpha from one name and one session.

    A share is None if the sum is not positive.
    """

    name: str | None
    name_share: float | None
    session: str | None
    session_share: float | None


class TriesEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The number of tries behind a result.

    ``here`` is the number in the setting. ``disclosed`` is None if it is not known. ``found`` is
    the number in other runs of the folder on the same sessions. ``effective`` is their number after
    merging correlated tries. ``deflated`` is the probability that the alpha ratio is above the
    expected best ratio of as many worthless tries (Bailey and López de Prado 2014). ``haircut`` is
    the share of the ratio lost by correction for tries.
    """

    here: int
    disclosed: int | None
    found: int
    effective: float
    deflated: Measure
    haircut: float | None


class Dollars(msgspec.Struct, frozen=True, kw_only=True):
    """Model costs in all seeds. ``net_return`` is the return if the account pays them."""

    usd: float | None
    calls: int
    tokens: int
    net_return: Measure


class Ranks(msgspec.Struct, frozen=True, kw_only=True):
    """Places among the ``of`` ranked agents of a setting, 1 the best; None without a result.

    ``unranked`` says why an agent with a result has no place.
    """

    of: int
    by_return: int | None
    by_selection: int | None
    unranked: str | None = None


class AccountCurve(msgspec.Struct, frozen=True, kw_only=True):
    """Growth of an account and its market, and its drawdown, at selected sessions."""

    sessions: tuple[str, ...]
    account: tuple[float, ...]
    market: tuple[float, ...] | None
    drawdown: tuple[float, ...]


class AgentFindings(msgspec.Struct, frozen=True, kw_only=True):
    """One agent in one setting: all that is known about it, before any verdict.

    Whose account it is, and over which sessions: ``with_all`` is what it returned with those that
    are left out because its benchmark lacks them, None where that is the same; ``failure`` says why
    there is no result.

    What its return is made of, over several seeds that of an account that holds all in equal parts:
    ``parts`` are linked and sum to ``total``: ``common``, ``style`` (to which ``style.<factor>``
    sum), ``selection``, ``trading`` (to which ``costs`` and ``fills`` sum where they are told
    apart). ``market`` is what the market behind the ``common`` part returned. ``exposures`` are
    mean z-exposures on invested days. ``style_variance`` is the share of style in the variance of
    what is not market, ``active_variance`` the share of that in the whole. ``styled`` is the share
    of days on which style was measured, ``covered`` the share of what was held that factors cover.

    From ``passive`` to ``calibration``, each is a test of what is behind it. ``versus`` is the
    run's own comparison with its baseline. ``could_not`` is set when the result could not have been
    significant; ``needed`` sessions would find alpha as large as the one measured, None where there
    is none. A venue has ``year`` of them in one. ``badges`` are those of the agent's own episodes,
    not of what played beside it. ``measures`` and ``history`` are of an account that no run has
    scored, ``doubts`` what of its returns rests on its table's word. ``rows`` is how many rows with
    times of day were compounded to its sessions, 0 for a table of days.
    """

    setting: str = msgspec.field(name="cell")
    benchmark: str
    dataset: str
    agent: str
    by_model: bool
    baseline: bool
    seeds: int
    failed_seeds: int
    sessions: int
    first: str | None
    last: str | None
    method: Literal["holdings", "returns"] = "holdings"
    mask: str | None = None
    with_all: float | None = None
    failure: str | None = None

    total: Measure
    market: Measure
    parts: dict[str, Measure] = {}
    exposures: dict[str, Measure] = {}
    style_variance: float | None = None
    active_variance: float | None = None
    alpha: Alpha | None = None
    styled: float | None = None
    covered: float | None = None
    biases: tuple[str, ...] = ()

    passive: PassiveEvidence | None = None
    timing: TimingEvidence | None = None
    styles: StyleEvidence | None = None
    tail: TailEvidence | None = None
    options: OptionSelling | None = None
    smoothness: Smoothness | None = None
    excess: Measure | None = None
    information_ratio: Measure | None = None
    stability: StabilityEvidence | None = None
    capacity: CapacityEvidence | None = None
    concentration: ConcentrationEvidence | None = None
    tries: TriesEvidence | None = None
    curve: AccountCurve | None = None
    luck: LuckEvidence
    memory: MemoryEvidence | None = None
    recall: RecallEvidence | None = None
    leaks: LeakEvidence
    calibration: Calibration | None = None
    versus: AgainstBaseline | None = None

    failures: dict[str, int] = {}
    failure_rate: Measure
    rejections: dict[str, int] = {}
    dollars: Dollars | None = None
    ranks: Ranks
    could_not: bool = False
    chance: float | None = None
    needed: int | None = None
    year: int = 252
    notes: tuple[str, ...] = ()
    badges: Badges | None = None
    measures: dict[str, Measure] = {}
    history: AccountHistory | None = None
    doubts: tuple[str, ...] = ()
    rows: int = 0

    @property
    def known_alpha(self) -> Alpha:
        """Return alpha. Every verdict except *failed* and those without a benchmark needs it."""
        assert self.alpha is not None
        return self.alpha

    @property
    def years(self) -> float:
        """Return the length of the record in years."""
        return self.sessions / self.year


class AgentAssay(AgentFindings, frozen=True, kw_only=True):
    """The findings about one agent in one setting, its verdict, and its numbers as statements."""

    verdict: Verdict
    statements: tuple[Statement, ...] = ()

    def statement(self, quantity: str) -> Statement | None:
        """Return the statement about a quantity, or None if there is none."""
        for statement in self.statements:
            if statement.quantity == quantity:
                return statement
        return None

    @property
    def reasons_for(self) -> tuple[str, ...]:
        """Return the evidence for skill, the strongest first."""
        return tuple(one.claim for one in self.statements if one.bearing == "for")

    @property
    def reasons_against(self) -> tuple[str, ...]:
        """Return the evidence against skill, the strongest first, and then the limits."""
        against = (one.claim for one in self.statements if one.bearing == "against")
        return (*against, *self.verdict.limits)


class KnownNature(msgspec.Struct, frozen=True, kw_only=True):
    """The true nature of a planted account in words, and the correct kinds of verdict."""

    is_truly: str
    deserves: tuple[Kind, ...]


class Assay(msgspec.Struct, frozen=True, kw_only=True):
    """All findings about a run, or about a user's own account.

    ``titles`` name settings for readers. ``key`` is the answer key by agent, if accounts were
    planted.
    """

    title: str
    source: Literal["run", "own"]
    config: VerdictConfig
    agents: tuple[AgentAssay, ...]
    badges: dict[str, Badges] = {}
    titles: dict[str, str] = {}
    notes: tuple[str, ...] = ()
    key: dict[str, KnownNature] = {}

    def agent(self, name: str, setting: str | None = None) -> AgentAssay:
        """Return one agent. Raises :class:`UserError` if there is no such agent."""
        for one in self.agents:
            if (one.agent == name or one.agent.endswith(f": {name}")) and setting in (
                None,
                one.setting,
            ):
                return one
        names = ", ".join(dict.fromkeys(one.agent for one in self.agents))
        raise UserError(f"'{name}' was not judged", hint=f"one of {names}")


_SMALL = 0.1
"""Style factors below this share of the largest part are merged into one step."""


class WaterfallStep(msgspec.Struct, frozen=True, kw_only=True):
    """One step with the interval of its part. Relative steps sum to the total, which is last."""

    label: str
    value: float
    kind: Literal["relative", "total"] = "relative"
    low: float | None = None
    high: float | None = None


def rest_title(one: AgentFindings) -> str:
    """Return the title of the part beyond market and style.

    It is selection, or unexplained for a table of returns.
    """
    return QUANTITIES["unexplained" if one.method == "returns" else "selection"].title


def waterfall(one: AgentFindings) -> tuple[WaterfallStep, ...]:
    """Return the steps from zero to the return, or an empty tuple if the return has no parts."""
    parts, total = one.parts, one.total
    unknown = any(parts[name].value is None for name in ("common", "selection") if name in parts)
    if not parts or total.value is None or unknown:
        return ()
    value = {name: measure.value or 0.0 for name, measure in parts.items()}
    known = {name for name, measure in parts.items() if measure.value is not None}
    largest = max(abs(value[name]) for name in ("common", "style", "selection", "trading"))
    factors = {name: part for name, part in value.items() if name.startswith("style.")}
    large = [name for name, part in factors.items() if abs(part) >= max(_SMALL * largest, 0.001)]
    large = sorted(large, key=lambda name: -abs(factors[name]))[:3]

    def step(label: str, name: str) -> WaterfallStep:
        return WaterfallStep(
            label=label, value=value[name], low=parts[name].low, high=parts[name].high
        )

    steps = [
        step("Market", "common"),
        *(step(factor_words(name.removeprefix("style.")), name) for name in large),
    ]
    if large and "style" in known:
        rest = value["style"] - math.fsum(factors[name] for name in large)
        steps.append(WaterfallStep(label="Other style", value=rest))
    elif "style" in known:
        steps.append(step("Style", "style"))
    steps.append(step(rest_title(one), "selection"))
    if {"costs", "fills"} <= known:
        steps += [step("Fills", "fills"), step("Costs", "costs")]
    elif "trading" in known:
        steps.append(step("Trading", "trading"))
    steps.append(
        WaterfallStep(
            label="Return", value=total.value, kind="total", low=total.low, high=total.high
        )
    )
    return tuple(steps)
