"""Records of an assay, which can be written as JSON, and the thresholds of a verdict.

All thresholds are our choice. The page of a verdict lists the thresholds that were used.
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
"""Largest number of tries. For more tries the corrected confidence level is 1 in a float."""


_LEAST_ROWS = 20
"""Smallest number of weekly, monthly or quarterly rows for an interval."""


class VerdictConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Thresholds of a verdict. Raises :class:`UserError` for values out of range.

    ``level`` is the confidence level of intervals. Intervals of alpha, timing, the excess return
    and the parts of the return are corrected for the number of agents in the setting. Intervals of
    the whole return, of ratios and of alpha by period are not corrected.

    ``tries`` is the number of strategies, settings or agents tried to find this one. The best of
    many is lucky by construction, and a record does not show the number of tries. None means that
    the number was not disclosed. Then ``assumed_tries`` are assumed. With ``folder`` the tries
    recorded in other runs of the folder are counted, and the larger number is used. *Skill*,
    *timing* and *worse* require a result that survives the correction for all tries.

    ``portfolios`` is the number of random portfolios of the luck baseline; 0 leaves it out. A
    result can be style only if style explains at least ``style_variance`` of the variance beyond
    the market, and one exposure is at least ``exposure`` standard deviations. An account follows
    the market if the return beyond the market is at most ``market_variance`` of the variance, or if
    a passive portfolio explains at least ``tracks`` of the variance, and no meaningful return
    remains. If even the lower end of the annual alpha ratio is above ``too_good``, look-ahead is
    suspected (hidden risk for a table of returns). ``least`` trading days, and 20 rows, are needed
    for any test. ``skilled`` is the alpha ratio in the statement on power. An annual alpha or loss
    that is smaller than ``floor`` has no economic meaning and does not count, even if it is
    significant.

    Praise (*skill*, *timing*, or the best of a few tries) is not firm if the verdict has any limit.
    These thresholds cause limits: more than ``failed_sessions`` of the sessions without a usable
    answer, look-ahead not excluded on more than ``leak_bound`` of the days, factors for less than
    ``styled`` of the days or of the holdings, and fewer than ``short`` trading days.

    ``interest`` is the highest annual interest on uninvested money. ``dividends`` is the highest
    annual yield that the benchmark of a table of returns may exclude; it is 0 if the benchmark
    includes dividends. For a table of returns both are added to the floor.

    ``watched`` is for a result that is looked at while its record grows. The intervals of the parts
    of the return, alpha, the excess return and timing by holdings then remain valid for any number
    of looks. Other intervals are valid for a single look. ``draws`` is the number of resamples for
    measures such as the Sharpe ratio.
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

        The rows must cover ``least`` trading days. Rows longer than a day must also be at least 20.
        """
        if trading_days(1, year) == 1.0:
            return self.least
        # Two years of weeks are 104 rows, although 504 / (252 / 52) is slightly more in floats.
        return max(_LEAST_ROWS, math.ceil(self.least / trading_days(1, year) - 1e-9))

    def tail(self, comparisons: int) -> float:
        """Return the error level of one side of each of ``comparisons`` intervals (Bonferroni)."""
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
"""Kinds of praise. A verdict of these kinds is not firm if it has a limit."""
Claim = Literal["alpha", "timing", "style_timing", "together"]
"""Effects that may show skill: alpha, timing of the market, and timing of styles.

``together`` is the sum of alpha and timing of the market. It is tested only for memory.
"""
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
    """The verdict on an account: the result of the first question that settles the case.

    ``sentence`` states it in words. ``limits`` are missing tests and findings that weaken the
    verdict. Praise is ``firm`` if there are no limits. Memory, look-ahead and hidden risk are
    ``firm`` if they are certain and not only suspected. The numbers behind a verdict are its
    :class:`statements <tradeassay.verdict.statement.Statement>`.
    """

    kind: Kind
    label: str
    firm: bool
    sentence: str
    limits: tuple[str, ...] = ()


def is_likelier(likelihood: float | None) -> bool:
    """Return whether a record is likelier under skill than as luck's best try.

    Returns True if there is no likelihood ratio.
    """
    return likelihood is None or likelihood > 1.0


class Alpha(msgspec.Struct, frozen=True, kw_only=True):
    """The annual return beyond market and style, which may show skill.

    With known holdings alpha is the sum of selection and trading, net of costs. For a table of
    returns it is the return that market and style do not explain. Then trading and costs are
    unknown, and alpha is net of those costs that the returns already include.

    ``tested`` is the annual mean with an interval corrected for ``comparisons``, the number of
    agents judged together. ``ratio`` is the alpha ratio: alpha divided by the volatility of alpha.
    ``gross`` is alpha before known costs. ``at_least`` is the lower end of alpha in a one-sided
    test at twice the one-sided error level. Possible income without skill, such as dividends, must
    be smaller than ``at_least``.

    ``tries`` is the number of tries, disclosed, counted or assumed. ``at_tries`` is alpha with an
    interval corrected for all tries. ``likelihood`` is the likelihood of the record under skill
    divided by its likelihood as luck's best try. ``equal_tries`` is the number of tries for which
    luck's best looks the same. A negative alpha is compared with luck's worst try and has no
    ``equal_tries``. ``likelihood`` and ``equal_tries`` are None if alpha cannot be tested.

    ``costs`` are annual and negative, None if unknown. ``most_of_gain`` is true if costs were at
    least half of a gain before costs. ``most_of_loss`` is true if costs are significantly more than
    half of a loss.
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

        The record must also be likelier under skill than as luck's best try.
        """
        return self.at_tries is not None and above(self.at_tries) and is_likelier(self.likelihood)

    @property
    def survives_below(self) -> bool:
        """Return whether alpha is below zero after correction for tries.

        The record must also be less likely as luck's worst try.
        """
        return self.at_tries is not None and below(self.at_tries) and is_likelier(self.likelihood)

    def costly(self, config: VerdictConfig) -> bool:
        """Return whether known trading costs are at least the floor."""
        return self.costs is not None and -(self.costs.value or 0.0) >= config.floor


class LuckEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The rank of a return among random portfolios with the same trades, if these were simulated.

    This is the comparison with random portfolios only. The comparison of alpha with luck's best of
    many tries is part of :class:`Alpha`.

    ``percentile`` is the share of random portfolios that the account beats. ``p`` is the share that
    did as well, ``p_low`` the share that did as badly, both None without random portfolios. For
    several seeds, ``percentile`` is from the median seed, and ``p`` and ``p_low`` are twice the
    median seed's values. This bound is valid for any dependence between seeds.
    """

    percentile: Measure
    p: float | None
    p_low: float | None = None
    portfolios: int = 0
    quantiles: tuple[float, ...] = ()


class MaskPrice(msgspec.Struct, frozen=True, kw_only=True):
    """The annual return that a mask costs an agent in ``worlds`` that no model can have read.

    Memory is impossible in these worlds, so the loss is information that the mask destroyed.
    ``lost`` maps each claim to the loss with its interval. ``sessions`` is the number of sessions
    behind it. ``lost`` is empty if there is a ``reason``.
    """

    worlds: tuple[str, ...]
    sessions: int = 0
    lost: dict[Claim, Measure] = {}
    reason: str | None = None


class PricedGap(msgspec.Struct, frozen=True, kw_only=True):
    """A gap under a mask, split into ``lost`` information and ``remembered`` return.

    The two parts sum to the gap.
    """

    lost: Measure
    remembered: Measure


class Contrast(msgspec.Struct, frozen=True, kw_only=True):
    """One claim in the unmasked run and in the masked run.

    The fields have the same meaning as in :class:`MemoryEvidence`, for this claim.
    """

    gap: Measure
    masked: Measure
    confirmed: bool
    shrinks: bool
    priced: PricedGap | msgspec.UnsetType = msgspec.UNSET


class JointContrast(Contrast, frozen=True, kw_only=True):
    """The sum of alpha and timing of the market in the unmasked run and in the masked run.

    ``earned`` is the annual sum in the unmasked run, at the tested level.
    """

    earned: Measure


class MemoryEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The contrast between an agent's unmasked run and its run under the mask ``against``.

    The mask hides names or dates. ``gap`` is the annual alpha of the unmasked run minus the alpha
    of the masked run, compared session by session. ``parts`` are such differences of the parts of
    the return. ``masked`` is the alpha of the masked run. ``both`` is the alpha of an account that
    holds both runs in equal parts, and ``both_at_tries`` the same with an interval corrected for
    all tries. ``confirmed`` is true if the masked alpha is above zero in a one-sided test at twice
    the one-sided error level. The test is milder because it confirms an alpha that is already
    significant in the unmasked run. ``shrinks`` is true if the gap is above zero in the same kind
    of test.

    ``sentence`` and ``per_window`` (the selection lost per window) come from the contrast over all
    windows of the run. ``doubted`` is true if a control, which cannot remember, shows a gap too.
    ``fade`` is the selection before the model's knowledge cutoff minus the selection after it.
    ``reason`` says why there is no contrast. ``price`` is the cost of the mask in a world that no
    model can have read. ``priced`` is the gap split by that cost. Both are unset if the cost was
    not measured.
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

    ``told`` is the result of the recall audit, and ``recall`` is the audit's measure. ``split`` is
    alpha with and without recall. ``unread`` is the similarity of the orders when the displayed
    returns are mirrored: 1 for the same orders, -1 for opposite orders. ``by_name`` is true if the
    decisions follow the name and the day and not the displayed input. ``interaction`` is the gain
    in accuracy for one standard deviation of the familiarity of a question. ``sentences`` are the
    results in words. ``reason`` says why the answers prove nothing. ``excluded`` says why the model
    cannot have read the data, so that no test is needed.
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

    ``findings`` name the channels through which future data leaked. If ``tested`` is false,
    look-ahead is not excluded. ``bound`` is the largest share of days with a leak that the test
    could have missed, None if unknown. ``files_open`` is true if the agent could have read the data
    from the disk, which the test does not detect.
    """

    tested: bool
    findings: tuple[str, ...] = ()
    sentence: str = ""
    bound: float | None = None
    files_open: bool = False


CASH = "cash"


class PassiveEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The passive portfolio that explains an account best.

    ``explained`` is the R squared. ``beyond`` is the annual return that the portfolio does not
    explain. ``lagged`` is the share of the exposure that comes in later rows, a sign of stale or
    smoothed prices. ``portfolio`` is ``cash`` for an account that never moves or moves like cash.
    """

    portfolio: str
    explained: float
    beta: float
    beyond: Measure
    lagged: float = 0.0


class TimingEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The test whether the account held more when the market rose.

    ``per_year`` is the annual return from timing, at the tested level. If ``by`` is ``holdings``,
    it is the covariance of the share invested with the market's return. If ``by`` is ``returns``,
    it is the term of Treynor and Mazuy times the market's variance. ``curvature`` is this term, and
    ``upside`` is the term of Henriksson and Merton. ``intercept`` is the annual return while the
    market does not move. It contains the price of bought convexity. ``at_tries`` is ``per_year``
    with an interval corrected for all tries. ``likelihood`` (by holdings only) compares skill with
    luck's best of all tries.
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

    ``tilt`` is the return from the mean exposures. ``timing`` is the return from higher exposures
    when a style paid. ``net`` is ``timing`` plus alpha, net of all costs. ``at_tries`` is
    ``timing`` with an interval corrected for all tries. ``likelihood`` compares skill with luck's
    best of all tries.
    """

    tilt: Measure
    timing: Measure
    net: Measure | None = None
    at_tries: Measure | None = None
    likelihood: float | None = None


class TailEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The tails of the returns.

    ``crash`` is true if the market fell by a tenth or more from a peak, None without a market.
    ``rare_losses`` is true if alpha is not significant after correction for its skew (tested for
    tables of returns only). ``alpha_skew`` is this skew of alpha over ``alpha_span`` sessions, None
    without ``rare_losses``. ``skew`` is the skew of the account's returns by session. ``worst`` is
    the lowest return of a session, and ``drawdown`` the deepest fall from a peak.
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

    ``alphas`` are the annual alphas at account ``sizes``, in the currency of the data. Alpha is
    zero at the size ``dies``. Alpha is significantly positive up to the size ``low``, or at no size
    if ``low`` is 0. Alpha is significantly negative from the size ``high``, or at no size if
    ``high`` is None. ``traded`` is the share of the traded value for which the usual daily traded
    amount is known.
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
        alpha = "what alpha there may be" if self.low <= 0.0 else "its alpha"
        return (
            f"{alpha} would be gone at a size of {money_words(self.dies)} ({low} to {high}): a "
            "trade is taken to "
            "move its price by a day's standard deviation times the root of its share of the usual "
            "day's amount"
        )


def money_words(amount: float) -> str:
    """Return an amount of money as text with two significant digits, for example "1.5 million"."""
    rounded = float(f"{amount:.2g}")
    for unit, word in ((1e12, "trillion"), (1e9, "billion"), (1e6, "million")):
        if rounded >= unit:
            return f"{rounded / unit:g} {word}"
    return f"{rounded:,.0f}"


class StabilityEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The annual alpha by period.

    ``first``, ``second`` and ``latest`` are alpha in the first half, the second half and the latest
    third of the window. ``without_best`` excludes the five best sessions. ``without_month``
    excludes the calendar month ``best_month``; both are None for a record under a year. ``faded``
    is true in three cases: the second half's alpha is not positive, it is significantly smaller
    than the whole record's, or it is less than a quarter of the first half's and significantly
    smaller.
    """

    first: Measure
    second: Measure
    latest: Measure
    without_best: Measure
    best_month: str | None = None
    without_month: Measure | None = None
    faded: bool = False


class ConcentrationEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The share of selection from the best name, and the share of alpha from the best session.

    A share is None if the whole selection, or the whole alpha, is not positive.
    """

    name: str | None
    name_share: float | None
    session: str | None
    session_share: float | None


class TriesEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """The number of tries behind a result.

    ``here`` is the number of agents in the setting. ``disclosed`` is the number that the user
    stated, or None. ``found`` is the number of tries in other runs of the folder on the same
    sessions. ``effective`` is ``found`` after correlated tries are merged. ``deflated`` is the
    probability that the alpha ratio is above the expected best ratio of the same number of
    worthless tries (Bailey and López de Prado 2014). ``haircut`` is the share of the alpha ratio
    that the correction for tries removes.
    """

    here: int
    disclosed: int | None
    found: int
    effective: float
    deflated: Measure
    haircut: float | None


class Dollars(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of model calls over all seeds. ``net_return`` is the return after this cost."""

    usd: float | None
    calls: int
    tokens: int
    net_return: Measure


class Ranks(msgspec.Struct, frozen=True, kw_only=True):
    """The ranks of an agent in its setting. Rank 1 is the best, None means that there is no rank.

    ``of`` is the number of ranked agents. ``unranked`` says why an agent with a result has no rank.
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
    """All findings about one agent in one setting, before the verdict.

    The account: ``sessions`` is the number of sessions from ``first`` to ``last``. ``with_all`` is
    the return including the rows that are left out because the benchmark lacks them, None if no
    rows matter. ``failure`` says why there is no result.

    The return: with several seeds, all numbers describe an account that holds all seeds in equal
    parts. ``parts`` are linked and sum to ``total``. They are ``common`` (market), ``style`` (the
    sum of ``style.<factor>``), ``selection`` and ``trading`` (the sum of ``costs`` and ``fills`` if
    both are known). ``market`` is the return of the market behind ``common``. ``exposures`` are the
    mean exposures on invested days in standard deviations; for a table of returns they are
    regression coefficients. ``active_variance`` is the share of the variance beyond the market, and
    ``style_variance`` the share of style in that variance. ``styled`` is the share of days on which
    style was measured. ``covered`` is the share of the holdings that factors cover.

    The tests: the fields from ``passive`` to ``calibration`` are one test each. ``versus`` is the
    run's comparison with its baseline. ``chance`` is the probability that a record like this one
    detects a skilled account. ``could_not`` is true if a skilled account would be detected in fewer
    than half of such records, or if the record is too short for a test. ``needed`` is the number of
    sessions to detect an alpha as large as the measured one, None if there is no alpha. ``year`` is
    the number of sessions per year.

    ``badges`` are from the agent's episodes only. ``measures`` and ``history`` are set for an
    account without a recorded run. ``doubts`` are facts about the returns that only their table
    states. ``rows`` is the number of rows with times of day that were compounded to sessions, 0 for
    a table of days.
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
        """Return alpha, which every account with a result has."""
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
        """Return the evidence for skill."""
        return tuple(reason.claim for reason in self.statements if reason.bearing == "for")

    @property
    def reasons_against(self) -> tuple[str, ...]:
        """Return the evidence against skill, followed by the limits of the verdict."""
        against = (reason.claim for reason in self.statements if reason.bearing == "against")
        return (*against, *self.verdict.limits)


class KnownNature(msgspec.Struct, frozen=True, kw_only=True):
    """The true nature of a planted account, and the kinds of verdict that are correct for it."""

    is_truly: str
    deserves: tuple[Kind, ...]


class Assay(msgspec.Struct, frozen=True, kw_only=True):
    """The verdicts on all agents of a run, or on a user's own account.

    ``titles`` are the displayed names of settings. ``key`` is the answer key by agent if accounts
    of known nature were planted.
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
        """Return one agent's assay.

        Raises :class:`UserError` if no agent has this name in this setting.
        """
        for assay in self.agents:
            same_name = assay.agent == name or assay.agent.endswith(f": {name}")
            if same_name and setting in (None, assay.setting):
                return assay
        names = ", ".join(dict.fromkeys(assay.agent for assay in self.agents))
        raise UserError(f"'{name}' was not judged", hint=f"one of {names}")


_SMALL = 0.1
"""Style factors smaller than this share of the largest part are merged into one step."""


class WaterfallStep(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a waterfall chart, with an interval. Relative steps sum to the total."""

    label: str
    value: float
    kind: Literal["relative", "total"] = "relative"
    low: float | None = None
    high: float | None = None


def rest_title(account: AgentFindings) -> str:
    """Return "Selection", or "Unexplained" for a table of returns."""
    return QUANTITIES["unexplained" if account.method == "returns" else "selection"].title


def waterfall(account: AgentFindings) -> tuple[WaterfallStep, ...]:
    """Return the steps from zero to the return, the total last.

    Returns an empty tuple if the return or one of its main parts is unknown.
    """
    parts, total = account.parts, account.total
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
    steps.append(step(rest_title(account), "selection"))
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
