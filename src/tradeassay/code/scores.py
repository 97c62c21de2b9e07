"""One submission's scorecard: its gates, the four dimensions of SysTradeBench as printed and as measured, and what
they rest on.

The printed scores are penalties counted in the source text, on a scale of 0 to 10. They reward the look of code
rather than what it does, and are kept to be compared with the published tables; the paper's D1 and D2 are
reviewers' marks. The measured ones: D1, does it decide what the strategy decides? D2, does it stay within its
constraints, in ordinary times and under stress, by the host's account? D3, did its gates hold? D4, what remains
out of sample, after costs, and after accounting for the number of trials?
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from tradeassay.account.shares import COSTS_BP, DecisionList
from tradeassay.code.bars import TaskBars
from tradeassay.code.gates import PAPER_GATES, GateConfig, Gated, GateReport
from tradeassay.code.lookahead import NOT_CLEARED
from tradeassay.code.program_source import parses
from tradeassay.code.review import UNMARKED
from tradeassay.code.semantics.interpreter import calendar_of
from tradeassay.code.semantics.model import Semantics, StrategyConstraints
from tradeassay.code.submission import (
    StrategySpec,
    Submission,
    SubmissionRun,
    SubmissionRunner,
    closes_of,
    market_columns,
)
from tradeassay.core.draws import seed_from
from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.view import Floats, Ints
from tradeassay.metrics.bootstrap import BootstrapConfig
from tradeassay.metrics.measures import sharpe
from tradeassay.metrics.multiple import superior
from tradeassay.metrics.overfitting import overfitting
from tradeassay.metrics.sharpe_inference import deflated_sharpe, probabilistic_sharpe
from tradeassay.sandbox import JobExecutor

KEYWORDS: Final = (
    "signal",
    "entry",
    "exit",
    "stop",
    "position",
    "momentum",
    "mean",
    "breakout",
    "spread",
    "target",
)
LIBRARIES: Final = ("numpy", "pandas", "scipy", "talib")
TRADE_FIELDS: Final = ("time", "symbol", "side", "quantity", "price", "signal")
AUDIT_FIELDS: Final = ("time", "signal", "position", "equity", "risk")


class PaperScore(msgspec.Struct, frozen=True, kw_only=True):
    """A dimension's score with its parts."""

    score: float
    parts: dict[str, float]


COMPLETE: Final = 0.95
"""The share of required cells below which the paper lowers D3 (eq. 11)."""


def d3(source: str, completeness: float | None = None) -> PaperScore:
    """Return reliability and auditability: 0.30 determinism + 0.30 leakage + 0.25 logs + 0.15 quality.

    With the ``completeness`` of the logs, eq. 11 takes twice what it lacks of 0.95 away.
    """
    tree = _tree(source)
    parts = {
        "det": _determinism(tree),
        "leak": _leakage(tree),
        "log": _logs(source),
        "qual": _quality(source, tree),
    }
    score = 0.30 * parts["det"] + 0.30 * parts["leak"] + 0.25 * parts["log"] + 0.15 * parts["qual"]
    if completeness is not None:
        parts["penalty"] = -2.0 * max(0.0, COMPLETE - completeness)
        score += parts["penalty"]
    return PaperScore(score=_bounded(score), parts=parts)


def d4(source: str) -> PaperScore:
    """Return out-of-sample robustness as printed: 0.40 logic + 0.30 overfitting + 0.30 generality."""
    tree = _tree(source)
    numbers = sum(isinstance(n, ast.Constant) and type(n.value) in (int, float) for n in ast.walk(tree))
    branches = sum(isinstance(n, ast.If | ast.IfExp | ast.While) for n in ast.walk(tree))
    arguments = sum(len(n.args.args) for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))
    loops = sum(isinstance(n, ast.For | ast.BoolOp | ast.ExceptHandler) for n in ast.walk(tree))
    found = sum(word in source.lower() for word in KEYWORDS)
    logic = 10.0 - 3.0 * (found < 2) - 1.0 * (numbers > 50)
    overfit = 10.0 - 2.0 * (branches > 30) - 1.5 * (arguments > 20)
    careful = any(word in source for word in ("isnan", "dropna", "isna", "len("))
    general = 10.0 - 2.0 * (branches + loops + 1 > 50) + 1.0 * _imports(tree, LIBRARIES) + 0.5 * careful
    parts = {"logic": _bounded(logic), "overfit": _bounded(overfit), "gen": _bounded(general)}
    score = 0.40 * parts["logic"] + 0.30 * parts["overfit"] + 0.30 * parts["gen"]
    return PaperScore(score=_bounded(score), parts=parts)


def complexity(semantics: Semantics) -> float:
    """Return the paper's complexity C of a strategy: legs, intraday, more than three constraints, parameters."""
    constraints = semantics.constraints
    count = 2 + int(constraints.flat_overnight) + int(not constraints.short_allowed)
    count += sum("stop" in rule.id for rule in semantics.rules)
    several = len(semantics.inputs.legs) > 1
    intraday = semantics.inputs.timeframes == ("1m",)
    return several + 0.5 * intraday + 0.5 * (count > 3) + 0.5 * math.log2(len(semantics.parameters) + 1)


def _tree(source: str) -> ast.Module:
    return parses(source) or ast.Module([], [])


def _determinism(tree: ast.Module) -> float:
    names = {ast.unparse(n.func) for n in ast.walk(tree) if isinstance(n, ast.Call)}
    seeded = any(name.endswith(("random.seed", "default_rng", "RandomState")) for name in names)
    drawn = any(".random." in f".{name}" for name in names)
    clock = any(name.endswith(("datetime.now", "date.today", "time.time")) for name in names)
    return _bounded(10.0 - 3.0 * _imports(tree, ("random",)) - 2.0 * (drawn and not seeded) - 2.0 * clock)


def _leakage(tree: ast.Module) -> float:
    score = 10.0
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        if node.func.attr == "shift" and node.args and ast.unparse(node.args[0]).startswith("-"):
            score -= 2.0
        if node.func.attr == "rolling" and not any(k.arg == "min_periods" for k in node.keywords):
            score -= 1.0
    ahead = re.compile(r"\[\s*\w+\s*\+\s*\d+\s*\]")
    score -= 2.0 * len(ahead.findall(ast.unparse(tree)))
    return _bounded(score)


def _logs(source: str) -> float:
    missing = sum(f"{field}" not in source for field in {*TRADE_FIELDS, *AUDIT_FIELDS})
    score = 10.0 - 3.0 * ("trade_log" not in source) - 2.0 * ("audit_log" not in source) - 0.5 * missing
    return _bounded(score)


def _quality(source: str, tree: ast.Module) -> float:
    lines = [line for line in source.splitlines() if line.strip()]
    comments = sum(line.strip().startswith("#") for line in lines)
    classes = any(isinstance(n, ast.ClassDef) and "Strategy" in n.name for n in tree.body)
    sparse = not lines or comments / len(lines) < 0.05
    return _bounded(10.0 - 2.0 * (len(lines) < 50) - 2.0 * (not classes) - 1.0 * sparse)


def _imports(tree: ast.Module, wanted: tuple[str, ...]) -> bool:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return bool(found & set(wanted))


def _bounded(value: float) -> float:
    return min(10.0, max(0.0, value))


Columns = dict[str, NDArray[Any]]
_PRICES: Final = ("open", "high", "low", "close")


def gap(feed: Columns, generator: np.random.Generator) -> Columns:
    """Return bars that open 15 % lower after the middle, and stay there."""
    middle = feed["close"].size // 2
    return {**feed, **{name: _scaled(feed[name], middle, 0.85) for name in _PRICES}}


def crash(feed: Columns, generator: np.random.Generator) -> Columns:
    """Return bars that lose 40 % within ten bars after the middle."""
    size = feed["close"].size
    start = size // 2
    path = np.ones(size)
    path[start:] = 0.6
    end = min(start + 10, size)
    path[start:end] = np.linspace(1.0, 0.6, 11)[1 : end - start + 1]
    return {**feed, **{name: feed[name] * path for name in _PRICES}}


def halts(feed: Columns, generator: np.random.Generator) -> Columns:
    """Return bars with five halts of eight bars each: the last close, no volume."""
    made = {name: np.array(values) for name, values in feed.items()}
    size = feed["close"].size
    for start in sorted(generator.integers(1, max(size - 8, 2), 5).tolist()):
        stop = min(start + 8, size)
        for name in _PRICES:
            made[name][start:stop] = made["close"][start - 1]
        made["volume"][start:stop] = 0.0
    return made


def stale(feed: Columns, generator: np.random.Generator) -> Columns:
    """Return bars of which a fifth repeat the bar before, as a feed that hangs does."""
    made = {name: np.array(values) for name, values in feed.items()}
    hangs = generator.random(feed["close"].size) < 0.2
    for t in np.flatnonzero(hangs[1:]) + 1:
        for name in _PRICES:
            made[name][t] = made[name][t - 1]
    return made


STRESSES: Final[dict[str, Callable[[Columns, np.random.Generator], Columns]]] = {
    "gap": gap,
    "crash": crash,
    "halts": halts,
    "stale": stale,
}


def stressed(bars: TaskBars, name: str, seed: int = 0) -> TaskBars:
    """Return bars under one stress, the same for all assets at the same bars."""
    feeds = {asset: STRESSES[name](dict(feed), np.random.default_rng(seed)) for asset, feed in bars.feeds.items()}
    return TaskBars(feeds, bars.timeframe, bars.clock, f"{bars.name} {name}".strip())


def _scaled(values: NDArray[Any], start: int, factor: float) -> NDArray[Any]:
    made = np.array(values, dtype=np.float64)
    made[start:] *= factor
    return made


ROOM = 1e-6
"""What rounding may add to an exposure."""


Severity = Literal["minor", "major", "critical"]
MINOR: Final = 0.05
MAJOR: Final = 0.25
"""Up to here, as a share of equity beyond the limit, a breach is minor or major; more is critical."""


class Breach(msgspec.Struct, frozen=True, kw_only=True):
    """A constraint that was broken, on how many bars, and the first of them.

    As in section 4.4.2 of the paper, ``time`` is that of the first bar, ``worst`` is how far beyond
    the limit it went (shares of equity; for trades a bar the number beyond, over the limit), ``severity`` follows
    from it, and ``logged`` counts the bars on which the submission's own risk check said no.
    """

    constraint: str
    bars: int
    first: int
    time: str | msgspec.UnsetType = msgspec.UNSET
    worst: float | msgspec.UnsetType = msgspec.UNSET
    severity: Severity | msgspec.UnsetType = msgspec.UNSET
    logged: int | msgspec.UnsetType = msgspec.UNSET


class Discipline(msgspec.Struct, frozen=True, kw_only=True):
    """What was broken in one regime, out of how many decision bars. ``failed``: it did not run there at all."""

    regime: str
    decisions: int
    breaches: tuple[Breach, ...] = ()
    failed: str = ""

    @property
    def rate(self) -> float:
        """The share of decision bars on which something was broken; 1 when it did not run."""
        if self.failed:
            return 1.0
        return min(1.0, sum(b.bars for b in self.breaches) / self.decisions) if self.decisions else 0.0


def severity_of(worst: float) -> Severity:
    """Return how grave a breach is by how far it went beyond its limit."""
    return "minor" if worst <= MINOR else "major" if worst <= MAJOR else "critical"


def examine(
    regime: str,
    run: SubmissionRun,
    bars: TaskBars,
    legs: tuple[str, ...],
    constraints: StrategyConstraints,
) -> Discipline:
    """Return the breaches of a run, counted on the bars where it traded, with times and severities.

    Only what a decision did is counted: an exposure that drifts over a limit because prices moved is not a breach.
    """
    if run.account is None or run.decisions is None or run.trades is None:
        text = "no run" if run.failure is None else run.failure.text
        return Discipline(regime=regime, decisions=0, failed=text[:300])
    found = _beyond(run, bars, legs, constraints)
    refused = _refused(run)
    broken = tuple(
        breach
        for name, at, beyond, room in found
        if (breach := _breach(name, at, np.nan_to_num(beyond, posinf=1e9), room, bars, refused)) is not None
    )
    return Discipline(regime=regime, decisions=int(np.unique(run.decisions.row).size), breaches=broken)


def broken_bars(
    run: SubmissionRun, bars: TaskBars, legs: tuple[str, ...], constraints: StrategyConstraints
) -> dict[str, Ints]:
    """Return the bars on which each constraint was broken, where it was."""
    found = _beyond(run, bars, legs, constraints)
    return {name: at[np.nan_to_num(beyond, posinf=1e9) > room] for name, at, beyond, room in found}


def _beyond(
    run: SubmissionRun, bars: TaskBars, legs: tuple[str, ...], constraints: StrategyConstraints
) -> list[tuple[str, Ints, Floats, float]]:
    """Return for each constraint the bars looked at, how far beyond the limit each is, and room for rounding."""
    assert run.account is not None and run.decisions is not None and run.trades is not None
    closes = closes_of(market_columns(bars, legs), legs)
    rows = np.unique(run.decisions.row)
    held, equity = run.account.held[:, rows], run.account.equity[rows]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(equity > 0, held * closes[:, rows] / equity, np.inf * np.sign(held))
    gross = np.abs(np.nan_to_num(share, nan=0.0, posinf=1e9, neginf=-1e9)).sum(axis=0)
    placed, counts = np.unique(run.trades.row, return_counts=True)
    most = max(constraints.max_trades_per_bar, 1)
    found: list[tuple[str, Ints, Floats, float]] = [
        ("max_exposure", rows, gross - constraints.max_exposure, ROOM),
        ("max_trades_per_bar", placed, (counts - constraints.max_trades_per_bar) / most, 0.0),
    ]
    if not constraints.short_allowed:
        found.append(("short_allowed", rows, -share.min(axis=0), ROOM))
    if constraints.flat_overnight:
        last = np.flatnonzero(calendar_of(bars.times).last)
        left = np.abs(run.account.held[:, last] * closes[:, last]).sum(axis=0)
        found.append(("flat_overnight", last, left / np.maximum(np.abs(run.account.equity[last]), 1e-9), 0.0))
    return found


def _refused(run: SubmissionRun) -> Ints:
    """Return the bars on which the submission's own log has a risk check that did not hold."""
    if run.audit is None:
        return np.empty(0, dtype=np.int64)
    checks: Ints = run.audit.row[(run.audit.kind == "risk_check") & (run.audit.value < 1.0)]
    return checks


def discipline(found: Mapping[str, Discipline]) -> Measure:
    """Return D2, 0 to 10: half from ordinary times, half from the stresses."""
    if "normal" not in found:
        return not_scored("it was not run in ordinary times")
    stresses = [1.0 - one.rate for name, one in found.items() if name != "normal"]
    calm = 1.0 - found["normal"].rate
    under = float(np.mean(stresses)) if stresses else calm
    broken = sum(b.bars for one in found.values() for b in one.breaches)
    note = f"{broken} bars with a breach over {len(found)} regimes"
    return Measure(value=10.0 * (calm + under) / 2.0, n=len(found), note=note)


def _breach(
    name: str, rows: Ints, beyond: Floats, room: float, bars: TaskBars, refused: Ints | None
) -> Breach | None:
    over = beyond > room
    if not over.any():
        return None
    at = rows[over]
    made = Breach(constraint=name, bars=int(at.size), first=int(at[0]))
    if refused is None:
        return made
    worst = float(beyond[over].max())
    return msgspec.structs.replace(
        made,
        time=str(bars.times[at[0]].astype("M8[D]" if bars.timeframe == "1d" else "M8[m]")),
        worst=round(worst, 9),
        severity=severity_of(worst),
        logged=int(np.isin(at, refused).sum()),
    )


WORST_BP = 1000.0
"""A break-even cost above this is reported as this."""


class CostPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One cost level over the whole test year. ``sharpe`` is None where returns do not vary.

    As in B.7 of the paper, ``per_turnover`` is the year's return over its turnover at this
    cost, None where nothing was traded; ``break_even_turnover`` how often the capital could have been traded a
    year before this cost had eaten the return before costs, None where there was none.
    """

    cost_bp: float
    total: float
    sharpe: float | None
    fees: float
    per_turnover: float | msgspec.UnsetType | None = msgspec.UNSET
    break_even_turnover: float | msgspec.UnsetType | None = msgspec.UNSET


class Robustness(msgspec.Struct, frozen=True, kw_only=True):
    """The test year of one submission.

    ``turnover`` is traded value per year over the starting capital at no cost; ``break_even_bp`` the cost at
    which the year earns nothing (None with a reason where it never earned). ``deflated`` is the probability that
    the true Sharpe ratio beats the best of so many worthless trials. ``excess`` is the year's return over buy and
    hold, ``daily`` the returns of its sessions at the middle cost level.
    """

    costs: tuple[CostPoint, ...]
    turnover: float
    break_even_bp: Measure
    deflated: Measure
    excess: float
    quarters: tuple[float, ...]
    daily: tuple[float, ...]
    score: Measure


class Cohort(msgspec.Struct, frozen=True, kw_only=True):
    """What can only be said about several submissions for one strategy together."""

    pbo: Measure
    spa_p: Measure
    better: tuple[str, ...]


def daily_curve(curve: Floats, session: Floats | None) -> Floats:
    """Return equity at each session's end, the start first. Without ``session`` every bar is one."""
    if session is None:
        return np.concatenate(([1.0], curve))
    ends = np.flatnonzero(np.diff(session, append=session[-1] + 1))
    return np.concatenate(([1.0], curve[ends]))


def robustness(
    decisions: DecisionList,
    closes: Floats,
    session: Floats | None,
    *,
    trials: int,
    year: int = 252,
    per_turnover: bool = False,
) -> Robustness:
    """Return the test year of a decision list on closes of shape (legs, bars).

    ``trials`` is how many submissions and iterations were scored on this split; the variance of their yearly
    Sharpe ratios is taken to be the sampling variance of one ratio over the year. ``per_turnover`` adds the return
    by turnover to every cost level.
    """
    from tradeassay.account.compiled.shares import price_decisions

    bootstrap = BootstrapConfig(draws=300)
    priced = price_decisions(decisions, closes, (0.0, *COSTS_BP), curve=True)
    assert priced.curve is not None
    navs = [daily_curve(path, session) for path in priced.curve]
    returns = [nav[1:] / np.where(nav[:-1] > 0, nav[:-1], np.nan) - 1.0 for nav in navs]
    points = tuple(
        CostPoint(
            cost_bp=cost,
            total=float(navs[n + 1][-1] - 1.0),
            sharpe=_finite(float(sharpe(np.nan_to_num(returns[n + 1]), year))),
            fees=float(priced.fees[n + 1]),
        )
        for n, cost in enumerate(COSTS_BP)
    )
    middle = np.nan_to_num(returns[1 + len(COSTS_BP) // 2])
    years = max(middle.size / year, 1e-9)
    if per_turnover:
        gross = float(navs[0][-1] - 1.0) / years
        points = tuple(
            _by_turnover(point, years, float(priced.traded[n + 1]), gross) for n, point in enumerate(points)
        )
    if trials > 1:
        deflated = deflated_sharpe(
            middle, trials=trials, trial_variance=1.0 / years, periods_per_year=year, bootstrap=bootstrap
        ).probability
    else:
        deflated = probabilistic_sharpe(middle, 0.0, periods_per_year=year, bootstrap=bootstrap)
    quarters = tuple(float(np.prod(1 + part) - 1) for part in np.array_split(middle, 4) if part.size)
    held = closes / closes[:, :1]
    even = _break_even(decisions, closes)
    return Robustness(
        costs=points,
        turnover=float(priced.traded[0] / years),
        break_even_bp=even,
        deflated=deflated,
        excess=float(points[len(points) // 2].total - (held.mean(axis=0)[-1] - 1.0)),
        quarters=quarters,
        daily=tuple(float(value) for value in middle),
        score=_score(deflated, even, quarters, points),
    )


def _by_turnover(point: CostPoint, years: float, traded: float, gross: float) -> CostPoint:
    """Return a cost level with what a unit of turnover earned; ``traded`` is over the whole time, in capitals."""
    return msgspec.structs.replace(
        point,
        per_turnover=point.total / traded if traded > 0.0 else None,
        break_even_turnover=gross / (point.cost_bp / 1e4) if gross > 0.0 and traded > 0.0 else None,
    )


def cohort(names: Sequence[str], returns: Floats, benchmark: Floats) -> Cohort:
    """Return PBO and SPA over submissions' daily returns, shape (sessions, submissions); none for one alone."""
    if returns.shape[1] < 2:
        none = not_scored("one submission cannot be overfitted among itself")
        return Cohort(pbo=none, spa_p=none, better=())
    found = overfitting(returns)
    test = superior(returns, benchmark, names, bootstrap=BootstrapConfig(draws=500))
    p = not_scored(test.reason or "nothing to test") if test.p_value is None else Measure(value=test.p_value)
    return Cohort(pbo=found.probability, spa_p=p, better=test.better)


def _break_even(decisions: DecisionList, closes: Floats) -> Measure:
    """Return the cost at which the final equity is 1, by bisection: final equity falls as costs rise."""
    from tradeassay.account.compiled.shares import price_decisions

    if not len(decisions):
        return not_scored("it never traded")

    def gain(cost: float) -> float:
        return float(price_decisions(decisions, closes, (cost,)).final[0]) - 1.0

    if gain(0.0) <= 0.0:
        return not_scored("it earned nothing even without costs")
    if gain(WORST_BP) > 0.0:
        return Measure(value=WORST_BP, note="at least this much")
    low, high = 0.0, WORST_BP
    for _ in range(50):
        middle = (low + high) / 2.0
        low, high = (middle, high) if gain(middle) > 0.0 else (low, middle)
    return Measure(value=low)


def _score(
    deflated: Measure, even: Measure, quarters: tuple[float, ...], points: tuple[CostPoint, ...]
) -> Measure:
    """Return D4, 0 to 10: the mean of what is known of deflated Sharpe, cost headroom and steadiness."""
    parts = {
        "cost room": 0.0 if even.value is None else min(1.0, even.value / points[-1].cost_bp),
        "quarters that earned": float(np.mean([q > 0 for q in quarters])) if quarters else 0.0,
    }
    if deflated.value is not None:
        parts["deflated Sharpe"] = deflated.value
    note = ", ".join(f"{name} {value:.2f}" for name, value in sorted(parts.items()))
    return Measure(value=10.0 * float(np.mean(list(parts.values()))), n=len(parts), note=note)


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


NEAR = 0.01
"""Two exposures that differ by less than this share of equity are the same decision."""


class DecisionAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """How many decisions both made at the same bar, in the same leg and size, out of how many either made."""

    both: int
    either: int

    @property
    def share(self) -> float:
        """1 when neither decided anything: doing nothing is right where there is nothing to do."""
        return self.both / self.either if self.either else 1.0


def agree(ours: DecisionList, theirs: DecisionList, *, near: float = NEAR) -> DecisionAgreement:
    """Return the agreement of two decision lists; the last decision of a bar and leg counts."""
    mine, other = _by_place(ours), _by_place(theirs)
    both = sum(abs(mine[place] - other[place]) <= near for place in mine.keys() & other.keys())
    return DecisionAgreement(both=both, either=len(mine.keys() | other.keys()))


def fidelity(
    spec: StrategySpec,
    scenarios: Mapping[str, SubmissionRun],
    scored: SubmissionRun | None,
    expected: DecisionList | None,
) -> Measure:
    """Return D1, 0 to 10: half from the micro-scenarios, half from the test data.

    ``expected`` is what the frozen semantics decide on the data of ``scored``. A scenario that could not be run
    counts as no agreement. Not scored when there is no run at all.
    """
    if scored is None or scored.decisions is None or expected is None:
        return not_scored("it could not be run on the test data")
    parts = []
    for scenario in spec.scenarios:
        run = scenarios.get(scenario.name)
        found = None if run is None else run.decisions
        parts.append(0.0 if found is None else agree(found, scenario.expected).share)
    test = agree(scored.decisions, expected)
    small = float(np.mean(parts)) if parts else test.share
    note = f"scenarios {small:.3f}, test data {test.share:.3f} of {test.either} decisions"
    return Measure(value=10.0 * (small + test.share) / 2.0, n=test.either, note=note)


def _by_place(decisions: DecisionList) -> dict[tuple[int, int], float]:
    return {
        (int(row), int(leg)): float(fraction)
        for row, leg, fraction in zip(decisions.row, decisions.leg, decisions.fraction, strict=True)
    }


WEIGHTS: Final = {"exec": 0.20, "determinism": 0.25, "leak": 0.30, "audit": 0.25}
"""What each gate is worth; ours, near the paper's weights."""


CAP: Final = 5.0
"""The most that work which is not valid can get in any dimension."""


def reliability(report: GateReport) -> Measure:
    """Return D3, 0 to 10. The audit counts by its share of complete cells and of traceable trades.

    False prices and claims cost the audit's part: by the share of trades that hold one, and at least half of it.

    A gate that could not be asked counts as not held, because nothing speaks in its favour. Not scored when
    the submission could not even be parsed.
    """
    if not report.gate("parse").passed:
        return not_scored("it could not be parsed")
    total = 0.0
    for name, weight in WEIGHTS.items():
        gate = report.gate(name)  # type: ignore[arg-type]  # names of gates
        part = _audit_share(report) if name == "audit" else float(gate.passed)
        if name == "audit":
            part *= _true_share(report)
        total += weight * part
    return Measure(value=10.0 * total, n=len(WEIGHTS))


def _audit_share(report: GateReport) -> float:
    gate = report.gate("audit")
    if gate.status == "not_run":
        return 0.0
    complete, traced = gate.measures.get("completeness"), gate.measures.get("traceable")
    if not isinstance(complete, float | int) or not isinstance(traced, float | int):
        return float(gate.passed)  # no trade to follow
    return (float(complete) + float(traced)) / 2.0


def _true_share(report: GateReport) -> float:
    measures = report.gate("audit").measures
    false, trades = measures.get("false_claims"), measures.get("trades")
    if not isinstance(false, float | int) or not isinstance(trades, float | int) or not false or not trades:
        return 1.0
    return min(0.5, max(0.0, 1.0 - false / trades))


DIMENSIONS = ("D1", "D2", "D3", "D4")
TARGET = 8.5
"""What D1 to D3 have to reach for the loop to stop: the paper's 0.85 on a scale of 10."""


class ScoreConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How submissions are scored. ``trials`` counts submissions and iterations scored on the split so far."""

    gates: GateConfig = GateConfig()
    trials: int = 1
    stresses: tuple[str, ...] = tuple(STRESSES)
    stress_rows: int = 500
    year: int = 252
    seed: int = 0


WINDOW: Final = 10
"""Bars of one of the paper's out-of-sample tests (section 5.4)."""
WINDOWS: Final = 5
"""Such tests of each valid hand-in."""


class Windows(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a valid hand-in also runs on short pieces of the test data; ``failures`` say where it did not."""

    tests: int
    passed: int
    failures: tuple[str, ...] = ()


class Scorecard(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about a submission.

    ``sound`` are our measured dimensions, ``paper`` those of the printed formulas (D1 and D2 only where peers have
    marked it). ``overall`` is the mean of the four, not scored when one of them is not. ``windows`` is there
    for valid work.
    """

    strategy: str
    submission: str
    submission_sha256: str
    gates: GateReport
    sound: dict[str, Measure]
    paper: dict[str, Measure]
    paper_parts: dict[str, PaperScore]
    overall: Measure
    regimes: tuple[Discipline, ...]
    year: Robustness | None
    year_reason: str | None
    complexity: float
    data: str
    windows: Windows | msgspec.UnsetType = msgspec.UNSET

    @property
    def reached(self) -> bool:
        """Whether D1 to D3 have reached the target."""
        return all((self.sound[name].value or 0.0) >= TARGET for name in DIMENSIONS[:3])

    def named(self, submission: str) -> Scorecard:
        """Return the same card for equal files handed in by another author."""
        gates = msgspec.structs.replace(self.gates, submission=submission)
        return msgspec.structs.replace(self, submission=submission, gates=gates)


def score_gated(
    submission: Submission,
    spec: StrategySpec,
    executor: JobExecutor,
    gated: Gated,
    config: ScoreConfig,
) -> Scorecard:
    """Score a submission that has been through the gates. What could not be run is not scored, with the reason.

    The paper's D1 and D2 are open until peers have marked it.
    """
    expected = spec.compiled_decisions(gated.bars)
    regimes = _regimes(submission, spec, executor, gated, config)
    year, why = _year(spec, gated, config)
    sound = {
        "D1": fidelity(spec, gated.scenarios, gated.scored, expected),
        "D2": discipline(regimes) if gated.scored is not None else not_scored("it could not be run"),
        "D3": reliability(gated.report),
        "D4": year.score if year is not None else not_scored(why or "it could not be run"),
    }
    if not gated.report.valid and not gated.report.not_cleared:
        sound = {name: _capped(measure, gated.report) for name, measure in sound.items()}
    complete = gated.report.gate("audit").measures.get("completeness")
    printed = {
        "D3": d3(submission.source, complete if isinstance(complete, float | int) else None),
        "D4": d4(submission.source),
    }
    paper = {
        "D1": UNMARKED,
        "D2": UNMARKED,
        **{name: Measure(value=found.score) for name, found in printed.items()},
    }
    if not gated.report.valid:
        paper = dict.fromkeys(DIMENSIONS, not_scored(_why_invalid(gated.report)))
    return Scorecard(
        strategy=spec.id,
        submission=submission.name,
        submission_sha256=submission.sha256,
        gates=gated.report,
        sound=sound,
        paper=paper,
        paper_parts=printed,
        overall=overall(sound),
        regimes=tuple(regimes.values()),
        year=year,
        year_reason=why,
        complexity=complexity(spec.semantics),
        data=gated.bars.name,
        windows=_windows(submission, spec, executor, gated, config),
    )


def _capped(measure: Measure, report: GateReport) -> Measure:
    if measure.value is None or measure.value <= CAP:
        return measure
    return Measure(value=CAP, n=measure.n, note=f"at most {CAP:g}: {_why_invalid(report)}")


def _why_invalid(report: GateReport) -> str:
    if report.not_cleared:
        return "look-ahead is not cleared"
    open_gate = next((gate.name for gate in report.gates if gate.name in PAPER_GATES and not gate.passed), "")
    return f"the gate '{open_gate}' does not hold"


def overall(scores: Mapping[str, Measure]) -> Measure:
    """Return the mean of the four dimensions; not scored when one of them is not."""
    values = [scores[name].value for name in DIMENSIONS]
    known = [value for value in values if value is not None]
    if len(known) < len(DIMENSIONS):
        missing = ", ".join(name for name, value in zip(DIMENSIONS, values, strict=True) if value is None)
        return not_scored(f"{missing} not scored")
    return Measure(value=float(np.mean(known)), n=len(known))


def _regimes(
    submission: Submission, spec: StrategySpec, executor: JobExecutor, gated: Gated, config: ScoreConfig
) -> dict[str, Discipline]:
    legs, constraints = spec.semantics.inputs.legs, spec.semantics.constraints
    if gated.scored is None:
        return {}
    found = {"normal": examine("normal", gated.scored, gated.bars, legs, constraints)}
    if not gated.scored.ok:
        return found
    runner = _runner(submission, spec, executor, config)
    calm = gated.bars.first(config.stress_rows)
    tables = {name: stressed(calm, name, config.seed) for name in config.stresses}
    wanted = [(market_columns(bars, legs), config.gates.seeds[0]) for bars in tables.values()]
    runs: list[SubmissionRun] = list(runner.logs(wanted))
    for (name, bars), run in zip(tables.items(), runs, strict=True):
        found[name] = examine(name, run, bars, legs, constraints)
    return found


def _runner(
    submission: Submission, spec: StrategySpec, executor: JobExecutor, config: ScoreConfig
) -> SubmissionRunner:
    return SubmissionRunner(
        executor=executor,
        source=submission.source,
        semantics=spec.semantics,
        limits=config.gates.limits,
        capital=config.gates.capital,
    )


def _windows(
    submission: Submission, spec: StrategySpec, executor: JobExecutor, gated: Gated, config: ScoreConfig
) -> Windows | msgspec.UnsetType:
    """Run valid work on pieces of ten bars, at places drawn from the secret, as section 5.4 of the paper does."""
    if not gated.report.valid or gated.bars.rows < WINDOW:
        return msgspec.UNSET
    draws = np.random.default_rng(seed_from(config.gates.secret or "", "windows", spec.id))
    starts = sorted(draws.integers(0, gated.bars.rows - WINDOW + 1, WINDOWS).tolist())
    whole = market_columns(gated.bars, spec.semantics.inputs.legs)
    wanted = [
        ({name: column[start : start + WINDOW] for name, column in whole.items()}, config.gates.seeds[0])
        for start in starts
    ]
    runs = list(_runner(submission, spec, executor, config).logs(wanted))
    failures = tuple(
        f"bars {start} to {start + WINDOW - 1}: {run.failure.kind}: {run.failure.text}"[:300]
        for start, run in zip(starts, runs, strict=True)
        if run.failure is not None
    )
    return Windows(tests=len(runs), passed=len(runs) - len(failures), failures=failures)


def _year(spec: StrategySpec, gated: Gated, config: ScoreConfig) -> tuple[Robustness | None, str | None]:
    run = gated.scored
    if run is None or run.decisions is None or run.account is None:
        return None, "it could not be run on the test year"
    if gated.report.gate("leak").error_class == NOT_CLEARED:
        return None, "look-ahead is not cleared"
    if not gated.report.gate("leak").passed:
        return None, "a result that may know the future says nothing about robustness"
    if run.account.ruined:
        return None, "the account was ruined"
    legs = spec.semantics.inputs.legs
    closes = closes_of(market_columns(gated.bars, legs), legs)
    session = None if gated.bars.timeframe == "1d" else calendar_of(gated.bars.times).session.astype(np.float64)
    found = robustness(run.decisions, closes, session, trials=config.trials, year=config.year)
    return found, None
