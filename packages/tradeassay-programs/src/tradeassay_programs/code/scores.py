"""Compute the scorecard of a submission.

It has the gates, and SysTradeBench's four dimensions by two conventions.

The paper's convention counts penalties in the source text, on a scale of 0 to 10. It rewards the
look of the code rather than its behaviour, and is kept for comparison with the published tables.
The paper's D1 and D2 are reviewers' marks.

The corrected convention measures behaviour:

- D1: does the code make the strategy's decisions?
- D2: does it stay within its constraints, in ordinary times and under stress, by the host's
  account?
- D3: did it pass its gates?
- D4: what remains out of sample, after costs and the number of trials?
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats, Ints
from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics.intervals import BootstrapConfig
from tradeassay.metrics.measures import sharpe
from tradeassay.metrics.multiple import overfitting, superior
from tradeassay.metrics.sharpe_inference import deflated_sharpe, probabilistic_sharpe
from tradeassay_bench.account.shares import COSTS_BP, DecisionList
from tradeassay_bench.core.run_secret import seed_from
from tradeassay_programs.code.bars import TaskBars
from tradeassay_programs.code.gates import (
    NOT_CLEARED,
    PAPER_GATES,
    GateConfig,
    Gated,
    GateReport,
    runner_of,
)
from tradeassay_programs.code.program_source import parses
from tradeassay_programs.code.review import UNMARKED
from tradeassay_programs.code.semantics.interpreter import (
    Semantics,
    StrategyConstraints,
    calendar_of,
)
from tradeassay_programs.code.submission import (
    StrategySpec,
    Submission,
    SubmissionRun,
    SubmissionRunner,
    closes_of,
    market_columns,
)
from tradeassay_programs.sandbox import JobExecutor

KEYWORDS: Final = tuple(
    "signal entry exit stop position momentum mean breakout spread target".split()
)
LIBRARIES: Final = ("numpy", "pandas", "scipy", "talib")
TRADE_FIELDS: Final = ("time", "symbol", "side", "quantity", "price", "signal")
AUDIT_FIELDS: Final = ("time", "signal", "position", "equity", "risk")


class PaperScore(msgspec.Struct, frozen=True, kw_only=True):
    """A score by the paper's convention, with its parts."""

    score: float
    parts: dict[str, float]


COMPLETE: Final = 0.95
"""Minimum share of required cells. Below it, the paper lowers D3 (eq. 11)."""


def d3(source: str, completeness: float | None = None) -> PaperScore:
    """Return D3 by the paper's convention: reliability and auditability.

    Eq. 11 subtracts twice the shortfall of ``completeness`` from 0.95.
    """
    tree = parses(source) or ast.Module([], [])
    lines = [line for line in source.splitlines() if line.strip()]
    comments = sum(line.strip().startswith("#") for line in lines)
    named = any(isinstance(n, ast.ClassDef) and "Strategy" in n.name for n in tree.body)
    sparse = not lines or comments / len(lines) < 0.05
    missing = sum(field not in source for field in {*TRADE_FIELDS, *AUDIT_FIELDS})
    call_nodes = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    calls = {ast.unparse(n.func) for n in call_nodes}
    seeded = any(name.endswith(("random.seed", "default_rng", "RandomState")) for name in calls)
    drawn = any(".random." in f".{name}" for name in calls)
    clock = any(name.endswith(("datetime.now", "date.today", "time.time")) for name in calls)
    # Calls and subscripts that appear to read later rows.
    leaky = 2.0 * len(re.findall(r"\[\s*\w+\s*\+\s*\d+\s*\]", ast.unparse(tree)))
    for node in call_nodes:
        name = getattr(node.func, "attr", "")
        leaky += 2.0 * (
            name == "shift" and bool(node.args) and ast.unparse(node.args[0]).startswith("-")
        )
        leaky += 1.0 * (
            name == "rolling" and not any(k.arg == "min_periods" for k in node.keywords)
        )
    parts = {
        "det": 10.0
        - 3.0 * _imports(tree, ("random",))
        - 2.0 * (drawn and not seeded)
        - 2.0 * clock,
        "leak": 10.0 - leaky,
        "log": 10.0
        - 3.0 * ("trade_log" not in source)
        - 2.0 * ("audit_log" not in source)
        - 0.5 * missing,
        "qual": 10.0 - 2.0 * (len(lines) < 50) - 2.0 * (not named) - 1.0 * sparse,
    }
    parts = {name: min(10.0, max(0.0, part)) for name, part in parts.items()}
    score = 0.30 * parts["det"] + 0.30 * parts["leak"] + 0.25 * parts["log"] + 0.15 * parts["qual"]
    if completeness is not None:
        parts["penalty"] = -2.0 * max(0.0, COMPLETE - completeness)
        score += parts["penalty"]
    return PaperScore(score=min(10.0, max(0.0, score)), parts=parts)


def d4(source: str) -> PaperScore:
    """Return D4 by the paper's convention: out-of-sample robustness.

    It is 0.40 logic + 0.30 overfitting + 0.30 generality.
    """
    tree = parses(source) or ast.Module([], [])
    numbers = sum(
        isinstance(n, ast.Constant) and type(n.value) in (int, float) for n in ast.walk(tree)
    )
    branches = sum(isinstance(n, ast.If | ast.IfExp | ast.While) for n in ast.walk(tree))
    arguments = sum(len(n.args.args) for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))
    loops = sum(isinstance(n, ast.For | ast.BoolOp | ast.ExceptHandler) for n in ast.walk(tree))
    keywords = sum(word in source.lower() for word in KEYWORDS)
    careful = any(word in source for word in ("isnan", "dropna", "isna", "len("))
    parts = {
        "logic": 10.0 - 3.0 * (keywords < 2) - 1.0 * (numbers > 50),
        "overfit": 10.0 - 2.0 * (branches > 30) - 1.5 * (arguments > 20),
        "gen": 10.0
        - 2.0 * (branches + loops + 1 > 50)
        + 1.0 * _imports(tree, LIBRARIES)
        + 0.5 * careful,
    }
    parts = {name: min(10.0, max(0.0, part)) for name, part in parts.items()}
    score = 0.40 * parts["logic"] + 0.30 * parts["overfit"] + 0.30 * parts["gen"]
    return PaperScore(score=min(10.0, max(0.0, score)), parts=parts)


def complexity(semantics: Semantics) -> float:
    """Return the paper's complexity C of a strategy.

    It adds terms for several legs, for intraday bars, for more than three constraints, and for the
    parameters.
    """
    constraints = semantics.constraints
    count = 2 + int(constraints.flat_overnight) + int(not constraints.short_allowed)
    count += sum("stop" in rule.id for rule in semantics.rules)
    several = len(semantics.inputs.legs) > 1
    intraday = semantics.inputs.timeframes == ("1m",)
    return (
        several
        + 0.5 * intraday
        + 0.5 * (count > 3)
        + 0.5 * math.log2(len(semantics.parameters) + 1)
    )


def _imports(tree: ast.Module, wanted: tuple[str, ...]) -> bool:
    """Return whether a module imports any of the ``wanted`` packages."""
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported.add(node.module.split(".")[0])
    return bool(imported & set(wanted))


_PRICES: Final = ("open", "high", "low", "close")

STRESSES: Final = ("gap", "crash", "halts", "stale")
"""The stress regimes.

- ``gap``: the price opens 15 % lower and does not recover.
- ``crash``: the price loses 40 % within ten bars.
- ``halts``: five drawn trading halts of eight bars each, which may overlap.
- ``stale``: each bar repeats the previous bar with a probability of 20 %.
"""


def stressed(bars: TaskBars, name: str, seed: int = 0) -> TaskBars:
    """Return bars under one of the :data:`STRESSES`.

    The stress affects all assets at the same bars.
    """
    feeds = {}
    for asset, feed in bars.feeds.items():
        stressed_feed = {field: np.array(values) for field, values in feed.items()}
        # The same seed for every asset puts the stress at the same bars.
        generator, size = np.random.default_rng(seed), feed["close"].size
        middle = size // 2
        if name in ("gap", "crash"):
            path = np.ones(size)
            path[middle:] = 0.85 if name == "gap" else 0.6
            if name == "crash":
                end = min(middle + 10, size)
                path[middle:end] = np.linspace(1.0, 0.6, 11)[1 : end - middle + 1]
            stressed_feed |= {field: feed[field] * path for field in _PRICES}
        elif name == "halts":
            for start in sorted(generator.integers(1, max(size - 8, 2), 5).tolist()):
                for field in _PRICES:
                    stressed_feed[field][start : start + 8] = stressed_feed["close"][start - 1]
                stressed_feed["volume"][start : start + 8] = 0.0
        else:
            for t in np.flatnonzero((generator.random(size) < 0.2)[1:]) + 1:
                for field in _PRICES:
                    stressed_feed[field][t] = stressed_feed[field][t - 1]
        feeds[asset] = stressed_feed
    return TaskBars(feeds, bars.timeframe, bars.clock, f"{bars.name} {name}".strip())


ROOM = 1e-6
"""Maximum excess of an exposure that is a rounding error."""


Severity = Literal["minor", "major", "critical"]
MINOR: Final = 0.05
MAJOR: Final = 0.25
"""The largest minor and the largest major breach, as a share of equity beyond the limit.

A larger breach is critical.
"""


class Breach(msgspec.Struct, frozen=True, kw_only=True):
    """A broken constraint (section 4.4.2 of the paper).

    - ``bars`` is the number of bars with a breach. ``first`` is the first such bar, and ``time``
      its time.
    - ``worst`` is the largest excess over the limit, as a share of equity. For trades per bar it is
      the excess divided by the limit. It determines ``severity``.
    - ``logged`` is the number of bars on which the submission's risk check failed.
    """

    constraint: str
    bars: int
    first: int
    time: str
    worst: float
    severity: Severity
    logged: int


class Discipline(msgspec.Struct, frozen=True, kw_only=True):
    """The breaches in one regime, and its number of decision bars.

    ``failed`` is the reason if the submission did not run.
    """

    regime: str
    decisions: int
    breaches: tuple[Breach, ...] = ()
    failed: str = ""

    @property
    def rate(self) -> float:
        """The share of decision bars with a breach. It is 1 if the submission did not run."""
        if self.failed:
            return 1.0
        if not self.decisions:
            return 0.0
        return min(1.0, sum(breach.bars for breach in self.breaches) / self.decisions)


def examine(
    regime: str,
    run: SubmissionRun,
    bars: TaskBars,
    legs: tuple[str, ...],
    constraints: StrategyConstraints,
) -> Discipline:
    """Return the breaches of a run.

    Only bars with decisions count, because exposure may drift with prices between decisions.
    """
    if run.account is None or run.decisions is None or run.trades is None:
        text = "no run" if run.failure is None else run.failure.text
        return Discipline(regime=regime, decisions=0, failed=text[:300])
    refused = np.empty(0, dtype=np.int64)
    if run.audit is not None:
        refused = run.audit.row[(run.audit.kind == "risk_check") & (run.audit.value < 1.0)]
    unit = "M8[D]" if bars.timeframe == "1d" else "M8[m]"
    breaches = []
    for name, (at, excess) in broken_bars(run, bars, legs, constraints).items():
        if at.size:
            worst = float(excess.max())
            breaches.append(
                Breach(
                    constraint=name,
                    bars=int(at.size),
                    first=int(at[0]),
                    time=str(bars.times[at[0]].astype(unit)),
                    worst=round(worst, 9),
                    severity=_severity(worst),
                    logged=int(np.isin(at, refused).sum()),
                )
            )
    return Discipline(
        regime=regime, decisions=int(np.unique(run.decisions.row).size), breaches=tuple(breaches)
    )


def _severity(excess: float) -> Severity:
    if excess <= MINOR:
        return "minor"
    if excess <= MAJOR:
        return "major"
    return "critical"


def broken_bars(
    run: SubmissionRun, bars: TaskBars, legs: tuple[str, ...], constraints: StrategyConstraints
) -> dict[str, tuple[Ints, Floats]]:
    """Return the bars with a breach of each constraint, and the excess over the limit on each."""
    assert run.account is not None and run.decisions is not None and run.trades is not None
    closes = closes_of(market_columns(bars, legs), legs)
    rows = np.unique(run.decisions.row)
    held, equity = run.account.held[:, rows], run.account.equity[rows]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(equity > 0, held * closes[:, rows] / equity, np.inf * np.sign(held))
    gross = np.abs(np.nan_to_num(share, nan=0.0, posinf=1e9, neginf=-1e9)).sum(axis=0)
    placed, counts = np.unique(run.trades.row, return_counts=True)
    most = max(constraints.max_trades_per_bar, 1)
    # For each constraint: its bars, the excess on each bar, and the largest rounding error.
    limits: list[tuple[str, Ints, Floats, float]] = [
        ("max_exposure", rows, gross - constraints.max_exposure, ROOM),
        ("max_trades_per_bar", placed, (counts - constraints.max_trades_per_bar) / most, 0.0),
    ]
    if not constraints.short_allowed:
        limits.append(("short_allowed", rows, -share.min(axis=0), ROOM))
    if constraints.flat_overnight:
        last = np.flatnonzero(calendar_of(bars.times).last)
        value = np.abs(run.account.held[:, last] * closes[:, last]).sum(axis=0)
        overnight = value / np.maximum(np.abs(run.account.equity[last]), 1e-9)
        limits.append(("flat_overnight", last, overnight, 0.0))
    broken = {}
    for name, at, excess, allowance in limits:
        excess = np.nan_to_num(excess, posinf=1e9)
        beyond = excess > allowance
        broken[name] = (at[beyond], excess[beyond])
    return broken


def discipline(regimes: Mapping[str, Discipline]) -> Measure:
    """Return D2, 0 to 10.

    Half of D2 is from ordinary times, and half is the mean of the stress regimes.
    """
    if "normal" not in regimes:
        return not_scored("it was not run in ordinary times")
    stressed_rates = [1.0 - regime.rate for name, regime in regimes.items() if name != "normal"]
    calm_rate = 1.0 - regimes["normal"].rate
    stressed_rate = float(np.mean(stressed_rates)) if stressed_rates else calm_rate
    broken = 0
    for regime in regimes.values():
        broken += sum(breach.bars for breach in regime.breaches)
    note = f"{broken} bars with a breach over {len(regimes)} regimes"
    return Measure(value=10.0 * (calm_rate + stressed_rate) / 2.0, n=len(regimes), note=note)


WORST_BP = 1000.0
"""Maximum break-even cost that is reported, in basis points."""


class CostPoint(msgspec.Struct, frozen=True, kw_only=True):
    """The results of the test year at one cost level (B.7 of the paper).

    - ``sharpe`` is None if the returns do not vary.
    - ``per_turnover`` is the return divided by the turnover, or None without trades.
    - ``break_even_turnover`` is the turnover per year at which this cost consumes the return before
      costs. It is None if there is no such return.
    """

    cost_bp: float
    total: float
    sharpe: float | None
    fees: float
    per_turnover: float | None
    break_even_turnover: float | None


class Robustness(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one submission in the test year.

    - ``turnover`` is the traded value per year over the starting capital, without costs.
    - ``break_even_bp`` is the cost at which the year's return is zero. It is not scored if the
      return is never positive.
    - ``deflated`` is the probability that the true Sharpe ratio exceeds the best of ``trials``
      worthless trials.
    - ``excess`` is the return of the year minus the return of buy and hold. ``daily`` are the
      returns of its sessions. Both are at the middle cost level.
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
    """Joint results of several submissions for one strategy: PBO, and the p-value of SPA."""

    pbo: Measure
    spa_p: Measure
    better: tuple[str, ...]


def daily_curve(curve: Floats, session: Floats | None) -> Floats:
    """Return equity at the start and at each session's end.

    Without ``session`` every bar is a session.
    """
    if session is None:
        return np.concatenate(([1.0], curve))
    ends = np.flatnonzero(np.diff(session, append=session[-1] + 1))
    return np.concatenate(([1.0], curve[ends]))


def robustness(
    decisions: DecisionList, closes: Floats, session: Floats | None, *, trials: int, year: int = 252
) -> Robustness:
    """Return the results in the test year of decisions on closes with shape (legs, bars).

    ``trials`` is the number of submissions and iterations scored on this split. The variance of
    their annual Sharpe ratios is assumed to equal the sampling variance of one ratio. ``year`` is
    the number of sessions per year.
    """
    from tradeassay_bench.account.compiled.shares import price_decisions

    bootstrap = BootstrapConfig(draws=300)
    priced = price_decisions(decisions, closes, (0.0, *COSTS_BP), curve=True)
    assert priced.curve is not None
    navs = [daily_curve(path, session) for path in priced.curve]
    returns = [nav[1:] / np.where(nav[:-1] > 0, nav[:-1], np.nan) - 1.0 for nav in navs]
    middle = np.nan_to_num(returns[1 + len(COSTS_BP) // 2])
    years = max(middle.size / year, 1e-9)
    gross = float(navs[0][-1] - 1.0) / years
    points = []
    for n, cost in enumerate(COSTS_BP, start=1):
        total, traded = float(navs[n][-1] - 1.0), float(priced.traded[n])
        ratio = float(sharpe(np.nan_to_num(returns[n]), year))
        points.append(
            CostPoint(
                cost_bp=cost,
                total=total,
                sharpe=ratio if np.isfinite(ratio) else None,
                fees=float(priced.fees[n]),
                per_turnover=total / traded if traded > 0.0 else None,
                break_even_turnover=gross / (cost / 1e4) if gross > 0.0 and traded > 0.0 else None,
            )
        )
    if trials > 1:
        deflated = deflated_sharpe(
            middle,
            trials=trials,
            trial_variance=1.0 / years,
            periods_per_year=year,
            bootstrap=bootstrap,
        ).probability
    else:
        deflated = probabilistic_sharpe(middle, 0.0, periods_per_year=year, bootstrap=bootstrap)
    quarters = tuple(
        float(np.prod(1 + part) - 1) for part in np.array_split(middle, 4) if part.size
    )

    def gain(cost: float) -> float:
        return float(price_decisions(decisions, closes, (cost,)).final[0]) - 1.0

    if not len(decisions):
        break_even = not_scored("it never traded")
    elif gain(0.0) <= 0.0:
        break_even = not_scored("it earned nothing even without costs")
    elif gain(WORST_BP) > 0.0:
        break_even = Measure(value=WORST_BP, note="at least this much")
    else:
        low, high = 0.0, WORST_BP
        for _ in range(50):
            half = (low + high) / 2.0
            if gain(half) > 0.0:
                low = half
            else:
                high = half
        break_even = Measure(value=low)
    parts = {
        "cost room": 0.0 if break_even.value is None else min(1.0, break_even.value / COSTS_BP[-1]),
        "quarters that earned": float(np.mean([q > 0 for q in quarters])) if quarters else 0.0,
    }
    if deflated.value is not None:
        parts["deflated Sharpe"] = deflated.value
    note = ", ".join(f"{name} {value:.2f}" for name, value in sorted(parts.items()))
    held = closes / closes[:, :1]
    return Robustness(
        costs=tuple(points),
        turnover=float(priced.traded[0] / years),
        break_even_bp=break_even,
        deflated=deflated,
        excess=float(points[len(points) // 2].total - (held.mean(axis=0)[-1] - 1.0)),
        quarters=quarters,
        daily=tuple(float(value) for value in middle),
        score=Measure(value=10.0 * float(np.mean(list(parts.values()))), n=len(parts), note=note),
    )


def cohort(names: Sequence[str], returns: Floats, benchmark: Floats) -> Cohort:
    """Return PBO and SPA over the daily returns of submissions.

    ``returns`` has shape (sessions, submissions). With a single submission, neither value is
    scored.
    """
    if returns.shape[1] < 2:
        alone = not_scored("one submission cannot be overfitted among itself")
        return Cohort(pbo=alone, spa_p=alone, better=())
    test = superior(returns, benchmark, names, bootstrap=BootstrapConfig(draws=500))
    if test.p_value is None:
        p_value = not_scored(test.reason or "nothing to test")
    else:
        p_value = Measure(value=test.p_value)
    return Cohort(pbo=overfitting(returns).probability, spa_p=p_value, better=test.better)


NEAR = 0.01
"""Maximum difference between exposures that are the same decision, as a share of equity."""


def fidelity(
    spec: StrategySpec,
    scenarios: Mapping[str, SubmissionRun],
    scored: SubmissionRun | None,
    expected: DecisionList | None,
) -> Measure:
    """Return D1, 0 to 10: half from the micro-scenarios, half from the test data.

    ``expected`` are the frozen decisions on the test data. A scenario that could not run has an
    agreement of 0.
    """
    if scored is None or scored.decisions is None or expected is None:
        return not_scored("it could not be run on the test data")
    parts = []
    for scenario in spec.scenarios:
        run = scenarios.get(scenario.name)
        if run is None or run.decisions is None:
            parts.append(0.0)
        else:
            parts.append(agreement(run.decisions, scenario.expected)[0])
    year_share, count = agreement(scored.decisions, expected)
    scenario_share = float(np.mean(parts)) if parts else year_share
    note = f"scenarios {scenario_share:.3f}, test data {year_share:.3f} of {count} decisions"
    return Measure(value=10.0 * (scenario_share + year_share) / 2.0, n=count, note=note)


def agreement(left: DecisionList, right: DecisionList) -> tuple[float, int]:
    """Return the share of equal decisions, and the number of decisions in either list.

    Decisions are equal if bar, leg and size are equal. A decision in both lists counts once.

    The share is 1 if neither list has a decision.
    """
    left_sizes, right_sizes = _sizes(left), _sizes(right)
    shared = left_sizes.keys() & right_sizes.keys()
    equal = sum(abs(left_sizes[key] - right_sizes[key]) <= NEAR for key in shared)
    count = len(left_sizes.keys() | right_sizes.keys())
    return (equal / count if count else 1.0), count


def _sizes(decisions: DecisionList) -> dict[tuple[int, int], float]:
    """Return the sizes of decisions by bar and leg."""
    keys = zip(decisions.row.tolist(), decisions.leg.tolist(), strict=True)
    return dict(zip(keys, decisions.fraction.tolist(), strict=True))


WEIGHTS: Final = {"exec": 0.20, "determinism": 0.25, "leak": 0.30, "audit": 0.25}
"""The weight of each gate in D3. The weights are this project's, and close to the paper's."""


CAP: Final = 5.0
"""Maximum score in any dimension for a submission that is not valid."""


def reliability(report: GateReport) -> Measure:
    """Return D3, 0 to 10.

    The audit is scored by its complete cells and traceable trades. False claims cost at least half
    of that score. A gate that could not run counts as failed.
    """
    if not report.gate("parse").passed:
        return not_scored("it could not be parsed")
    audit = report.gate("audit")
    share = float(audit.passed)  # This value remains if there was no trade to follow.
    known = {
        name: value for name, value in audit.measures.items() if isinstance(value, float | int)
    }
    if known.keys() >= {"completeness", "traceable"}:
        share = (known["completeness"] + known["traceable"]) / 2.0
    if known.get("false_claims") and known.get("trades"):
        share *= min(0.5, max(0.0, 1.0 - known["false_claims"] / known["trades"]))
    parts = {name: float(report.gate(name).passed) for name in WEIGHTS} | {"audit": share}
    value = 10.0 * math.fsum(weight * parts[name] for name, weight in WEIGHTS.items())
    return Measure(value=value, n=len(WEIGHTS))


DIMENSIONS = ("D1", "D2", "D3", "D4")
TARGET = 8.5
"""The score that D1 to D3 must reach for the iterations to stop: the paper's 0.85, on a scale of
10.
"""


class ScoreConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Settings of the scores.

    ``trials`` is the number of submissions and iterations on the split. ``stress_rows`` is the
    number of bars of a stress regime. ``year`` is the number of sessions per year.
    """

    gates: GateConfig = GateConfig()
    trials: int = 1
    stresses: tuple[str, ...] = STRESSES
    stress_rows: int = 500
    year: int = 252
    seed: int = 0


WINDOW: Final = 10
"""Number of bars in each of the paper's out-of-sample tests (section 5.4)."""
WINDOWS: Final = 5


class Windows(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of a valid submission on short pieces of the test data.

    ``failures`` describes the pieces on which the submission did not run.
    """

    tests: int
    passed: int
    failures: tuple[str, ...] = ()


class Scorecard(msgspec.Struct, frozen=True, kw_only=True):
    """The scores of a submission.

    - ``corrected`` contains the measured dimensions.
    - ``paper`` contains the dimensions of the published formulas. D1 and D2 need the marks of
      peers.
    - ``overall`` is the mean of the four measured dimensions. It is not scored if a dimension is
      not scored.
    - ``windows`` is set for valid submissions.
    """

    strategy: str
    submission: str
    submission_sha256: str
    gates: GateReport
    corrected: dict[str, Measure]
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
        return all((self.corrected[name].value or 0.0) >= TARGET for name in DIMENSIONS[:3])

    def named(self, submission: str) -> Scorecard:
        """Return a copy of this scorecard with the name of a submission."""
        gates = msgspec.structs.replace(self.gates, submission=submission)
        return msgspec.structs.replace(self, submission=submission, gates=gates)


def score_gated(
    submission: Submission,
    spec: StrategySpec,
    executor: JobExecutor,
    gated: Gated,
    config: ScoreConfig,
) -> Scorecard:
    """Return the scorecard of a submission, from the runs of its gates.

    The paper's D1 and D2 are not scored until peers mark the submission.
    """
    report = gated.report
    runner = runner_of(submission, spec, executor, config.gates)
    regimes = _regimes(spec, runner, gated, config)
    year, why = _year(spec, gated, config)
    corrected = {
        "D1": fidelity(spec, gated.scenarios, gated.scored, spec.frozen_decisions(gated.bars)),
        "D2": discipline(regimes)
        if gated.scored is not None
        else not_scored("it could not be run"),
        "D3": reliability(report),
        "D4": year.score if year is not None else not_scored(why or "it could not be run"),
    }
    complete = report.gate("audit").measures.get("completeness")
    share = complete if isinstance(complete, float | int) else None
    printed = {"D3": d3(submission.source, share), "D4": d4(submission.source)}
    paper = {"D1": UNMARKED, "D2": UNMARKED}
    paper |= {name: Measure(value=score.score) for name, score in printed.items()}
    if not report.valid:
        open_gate = next(
            (gate.name for gate in report.gates if gate.name in PAPER_GATES and not gate.passed), ""
        )
        invalid = f"the gate '{open_gate}' does not hold"
        reason = "look-ahead is not cleared" if report.not_cleared else invalid
        paper = dict.fromkeys(DIMENSIONS, not_scored(reason))
        for name, measure in corrected.items():
            if not report.not_cleared and measure.value is not None and measure.value > CAP:
                corrected[name] = Measure(
                    value=CAP, n=measure.n, note=f"at most {CAP:g}: {invalid}"
                )
    return Scorecard(
        strategy=spec.id,
        submission=submission.name,
        submission_sha256=submission.sha256,
        gates=report,
        corrected=corrected,
        paper=paper,
        paper_parts=printed,
        overall=overall(corrected),
        regimes=tuple(regimes.values()),
        year=year,
        year_reason=why,
        complexity=complexity(spec.semantics),
        data=gated.bars.name,
        windows=_windows(spec, runner, gated, config),
    )


def overall(scores: Mapping[str, Measure]) -> Measure:
    """Return the mean of the four dimensions. It is not scored if a dimension is not scored."""
    values = [scores[name].value for name in DIMENSIONS]
    known = [value for value in values if value is not None]
    if len(known) < len(DIMENSIONS):
        missing = ", ".join(
            name for name, value in zip(DIMENSIONS, values, strict=True) if value is None
        )
        return not_scored(f"{missing} not scored")
    return Measure(value=float(np.mean(known)), n=len(known))


def _regimes(
    spec: StrategySpec, runner: SubmissionRunner, gated: Gated, config: ScoreConfig
) -> dict[str, Discipline]:
    """Return the breaches in ordinary times and under stress, by regime."""
    legs, constraints = spec.semantics.inputs.legs, spec.semantics.constraints
    if gated.scored is None:
        return {}
    regimes = {"normal": examine("normal", gated.scored, gated.bars, legs, constraints)}
    if not gated.scored.ok:
        return regimes
    calm = gated.bars.first(config.stress_rows)
    tables = {name: stressed(calm, name, config.seed) for name in config.stresses}
    runs = list(
        runner.logs((market_columns(bars, legs), config.gates.seeds[0]) for bars in tables.values())
    )
    for (name, bars), run in zip(tables.items(), runs, strict=True):
        regimes[name] = examine(name, run, bars, legs, constraints)
    return regimes


def _windows(
    spec: StrategySpec, runner: SubmissionRunner, gated: Gated, config: ScoreConfig
) -> Windows | msgspec.UnsetType:
    """Return the runs on short pieces of the test data, or UNSET for an invalid submission."""
    if not gated.report.valid or gated.bars.rows < WINDOW:
        return msgspec.UNSET
    draws = np.random.default_rng(seed_from(config.gates.secret or "", "windows", spec.id))
    starts = sorted(draws.integers(0, gated.bars.rows - WINDOW + 1, WINDOWS).tolist())
    whole = market_columns(gated.bars, spec.semantics.inputs.legs)
    pieces = (
        {name: column[start : start + WINDOW] for name, column in whole.items()} for start in starts
    )
    runs = list(runner.logs((piece, config.gates.seeds[0]) for piece in pieces))
    failures = tuple(
        f"bars {start} to {start + WINDOW - 1}: {run.failure.kind}: {run.failure.text}"[:300]
        for start, run in zip(starts, runs, strict=True)
        if run.failure is not None
    )
    return Windows(tests=len(runs), passed=len(runs) - len(failures), failures=failures)


def _year(
    spec: StrategySpec, gated: Gated, config: ScoreConfig
) -> tuple[Robustness | None, str | None]:
    """Return the results of a submission in the test year, or None and the reason."""
    run = gated.scored
    if run is None or run.decisions is None or run.account is None:
        return None, "it could not be run on the test year"
    if gated.report.gate("leak").error_class == NOT_CLEARED:
        return None, "look-ahead is not cleared"
    if not gated.report.gate("leak").passed:
        return None, "a result that may know the future says nothing about robustness"
    if run.account.ruined:
        return None, "the account was ruined"
    return robustness_on(gated.bars, run.decisions, spec, config), None


def robustness_on(
    bars: TaskBars, decisions: DecisionList, spec: StrategySpec, config: ScoreConfig
) -> Robustness:
    """Return the results of a submission's decisions on a year of bars."""
    closes = closes_of(market_columns(bars, spec.semantics.inputs.legs), spec.semantics.inputs.legs)
    session = None if bars.timeframe == "1d" else calendar_of(bars.times).session.astype(np.float64)
    return robustness(decisions, closes, session, trials=config.trials, year=config.year)
