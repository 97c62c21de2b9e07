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
from collections.abc import Mapping, Sequence
from typing import Final, Literal

import msgspec
import numpy as np

from tradeassay.account.shares import COSTS_BP, DecisionList
from tradeassay.code.bars import TaskBars
from tradeassay.code.gates import NOT_CLEARED, PAPER_GATES, GateConfig, Gated, GateReport, runner_of
from tradeassay.code.program_source import parses
from tradeassay.code.review import UNMARKED
from tradeassay.code.semantics.interpreter import Semantics, StrategyConstraints, calendar_of
from tradeassay.code.submission import (
    StrategySpec,
    Submission,
    SubmissionRun,
    SubmissionRunner,
    closes_of,
    market_columns,
)
from tradeassay.core.hashing import seed_from
from tradeassay.core.measure import Measure, not_scored, plain_sum
from tradeassay.core.view import Floats, Ints
from tradeassay.metrics.intervals import BootstrapConfig
from tradeassay.metrics.measures import sharpe
from tradeassay.metrics.multiple import overfitting, superior
from tradeassay.metrics.sharpe_inference import deflated_sharpe, probabilistic_sharpe
from tradeassay.sandbox import JobExecutor

KEYWORDS: Final = tuple("signal entry exit stop position momentum mean breakout spread target".split())
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
    """Return reliability and auditability; eq. 11 takes twice what ``completeness`` lacks of 0.95."""
    tree = parses(source) or ast.Module([], [])
    lines = [line for line in source.splitlines() if line.strip()]
    comments = sum(line.strip().startswith("#") for line in lines)
    named = any(isinstance(n, ast.ClassDef) and "Strategy" in n.name for n in tree.body)
    sparse = not lines or comments / len(lines) < 0.05
    missing = sum(field not in source for field in {*TRADE_FIELDS, *AUDIT_FIELDS})
    made = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    calls = {ast.unparse(n.func) for n in made}
    seeded = any(name.endswith(("random.seed", "default_rng", "RandomState")) for name in calls)
    drawn = any(".random." in f".{name}" for name in calls)
    clock = any(name.endswith(("datetime.now", "date.today", "time.time")) for name in calls)
    # Calls and subscripts that look as if they read later rows.
    leaky = 2.0 * len(re.findall(r"\[\s*\w+\s*\+\s*\d+\s*\]", ast.unparse(tree)))
    for node in made:
        name = getattr(node.func, "attr", "")
        leaky += 2.0 * (name == "shift" and bool(node.args) and ast.unparse(node.args[0]).startswith("-"))
        leaky += 1.0 * (name == "rolling" and not any(k.arg == "min_periods" for k in node.keywords))
    parts = {
        "det": 10.0 - 3.0 * _imports(tree, ("random",)) - 2.0 * (drawn and not seeded) - 2.0 * clock,
        "leak": 10.0 - leaky,
        "log": 10.0 - 3.0 * ("trade_log" not in source) - 2.0 * ("audit_log" not in source) - 0.5 * missing,
        "qual": 10.0 - 2.0 * (len(lines) < 50) - 2.0 * (not named) - 1.0 * sparse,
    }
    parts = {name: min(10.0, max(0.0, part)) for name, part in parts.items()}
    score = 0.30 * parts["det"] + 0.30 * parts["leak"] + 0.25 * parts["log"] + 0.15 * parts["qual"]
    if completeness is not None:
        parts["penalty"] = -2.0 * max(0.0, COMPLETE - completeness)
        score += parts["penalty"]
    return PaperScore(score=min(10.0, max(0.0, score)), parts=parts)


def d4(source: str) -> PaperScore:
    """Return out-of-sample robustness as printed: 0.40 logic + 0.30 overfitting + 0.30 generality."""
    tree = parses(source) or ast.Module([], [])
    numbers = sum(isinstance(n, ast.Constant) and type(n.value) in (int, float) for n in ast.walk(tree))
    branches = sum(isinstance(n, ast.If | ast.IfExp | ast.While) for n in ast.walk(tree))
    arguments = sum(len(n.args.args) for n in ast.walk(tree) if isinstance(n, ast.FunctionDef))
    loops = sum(isinstance(n, ast.For | ast.BoolOp | ast.ExceptHandler) for n in ast.walk(tree))
    found = sum(word in source.lower() for word in KEYWORDS)
    careful = any(word in source for word in ("isnan", "dropna", "isna", "len("))
    parts = {
        "logic": 10.0 - 3.0 * (found < 2) - 1.0 * (numbers > 50),
        "overfit": 10.0 - 2.0 * (branches > 30) - 1.5 * (arguments > 20),
        "gen": 10.0 - 2.0 * (branches + loops + 1 > 50) + 1.0 * _imports(tree, LIBRARIES) + 0.5 * careful,
    }
    parts = {name: min(10.0, max(0.0, part)) for name, part in parts.items()}
    score = 0.40 * parts["logic"] + 0.30 * parts["overfit"] + 0.30 * parts["gen"]
    return PaperScore(score=min(10.0, max(0.0, score)), parts=parts)


def complexity(semantics: Semantics) -> float:
    """Return the paper's complexity C of a strategy: legs, intraday, more than three constraints, parameters."""
    constraints = semantics.constraints
    count = 2 + int(constraints.flat_overnight) + int(not constraints.short_allowed)
    count += sum("stop" in rule.id for rule in semantics.rules)
    several = len(semantics.inputs.legs) > 1
    intraday = semantics.inputs.timeframes == ("1m",)
    return several + 0.5 * intraday + 0.5 * (count > 3) + 0.5 * math.log2(len(semantics.parameters) + 1)


def _imports(tree: ast.Module, wanted: tuple[str, ...]) -> bool:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return bool(found & set(wanted))


_PRICES: Final = ("open", "high", "low", "close")

STRESSES: Final = ("gap", "crash", "halts", "stale")
"""A price that opens 15 % lower and stays there; one that loses 40 % within ten bars; five trading halts of eight
bars each; and a feed that hangs: a fifth of its bars repeat the one before."""


def stressed(bars: TaskBars, name: str, seed: int = 0) -> TaskBars:
    """Return bars under one of the :data:`STRESSES`, the same for all assets at the same bars."""
    feeds = {}
    for asset, feed in bars.feeds.items():
        made = {field: np.array(values) for field, values in feed.items()}
        generator, size = np.random.default_rng(seed), feed["close"].size
        middle = size // 2
        if name in ("gap", "crash"):
            path = np.ones(size)
            path[middle:] = 0.85 if name == "gap" else 0.6
            if name == "crash":
                end = min(middle + 10, size)
                path[middle:end] = np.linspace(1.0, 0.6, 11)[1 : end - middle + 1]
            made |= {field: feed[field] * path for field in _PRICES}
        elif name == "halts":
            for start in sorted(generator.integers(1, max(size - 8, 2), 5).tolist()):
                for field in _PRICES:
                    made[field][start : start + 8] = made["close"][start - 1]
                made["volume"][start : start + 8] = 0.0
        else:
            for t in np.flatnonzero((generator.random(size) < 0.2)[1:]) + 1:
                for field in _PRICES:
                    made[field][t] = made[field][t - 1]
        feeds[asset] = made
    return TaskBars(feeds, bars.timeframe, bars.clock, f"{bars.name} {name}".strip())


ROOM = 1e-6
"""What rounding may add to an exposure."""


Severity = Literal["minor", "major", "critical"]
MINOR: Final = 0.05
MAJOR: Final = 0.25
"""Up to here, as a share of equity beyond the limit, a breach is minor or major; more is critical."""


class Breach(msgspec.Struct, frozen=True, kw_only=True):
    """A constraint that was broken, on how many bars, and the first of them. Section 4.4.2 of the paper: ``time``
    of the first bar, ``worst`` is how far beyond the limit it went (a share of equity; for trades a bar the number
    beyond, over the limit), ``severity`` follows from it, ``logged`` counts the bars on which the submission's own
    risk check said no.
    """

    constraint: str
    bars: int
    first: int
    time: str
    worst: float
    severity: Severity
    logged: int


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


def examine(
    regime: str, run: SubmissionRun, bars: TaskBars, legs: tuple[str, ...], constraints: StrategyConstraints
) -> Discipline:
    """Return the breaches of a run. Only decisions count: exposure may drift because prices moved."""
    if run.account is None or run.decisions is None or run.trades is None:
        text = "no run" if run.failure is None else run.failure.text
        return Discipline(regime=regime, decisions=0, failed=text[:300])
    refused = np.empty(0, dtype=np.int64)
    if run.audit is not None:
        refused = run.audit.row[(run.audit.kind == "risk_check") & (run.audit.value < 1.0)]
    unit = "M8[D]" if bars.timeframe == "1d" else "M8[m]"
    broken = []
    for name, (at, beyond) in broken_bars(run, bars, legs, constraints).items():
        if at.size:
            worst = float(beyond.max())
            broken.append(
                Breach(
                    constraint=name,
                    bars=int(at.size),
                    first=int(at[0]),
                    time=str(bars.times[at[0]].astype(unit)),
                    worst=round(worst, 9),
                    severity="minor" if worst <= MINOR else "major" if worst <= MAJOR else "critical",
                    logged=int(np.isin(at, refused).sum()),
                )
            )
    return Discipline(regime=regime, decisions=int(np.unique(run.decisions.row).size), breaches=tuple(broken))


def broken_bars(
    run: SubmissionRun, bars: TaskBars, legs: tuple[str, ...], constraints: StrategyConstraints
) -> dict[str, tuple[Ints, Floats]]:
    """Return for each constraint the bars on which it was broken, and how far beyond the limit each went."""
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
    known = [(name, at, np.nan_to_num(beyond, posinf=1e9), room) for name, at, beyond, room in found]
    return {name: (at[beyond > room], beyond[beyond > room]) for name, at, beyond, room in known}


def discipline(found: Mapping[str, Discipline]) -> Measure:
    if "normal" not in found:
        return not_scored("it was not run in ordinary times")
    stresses = [1.0 - one.rate for name, one in found.items() if name != "normal"]
    calm = 1.0 - found["normal"].rate
    under = float(np.mean(stresses)) if stresses else calm
    broken = sum(b.bars for one in found.values() for b in one.breaches)
    note = f"{broken} bars with a breach over {len(found)} regimes"
    return Measure(value=10.0 * (calm + under) / 2.0, n=len(found), note=note)


WORST_BP = 1000.0
"""A break-even cost above this is reported as this."""


class CostPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One cost level over the whole test year. ``sharpe`` is None where returns do not vary. ``per_turnover`` is
    the year's return over its turnover at this cost, None where nothing was traded; ``break_even_turnover`` how
    often the capital could have been traded a year before this cost had eaten the return before costs, None where
    there was none (B.7 of the paper).
    """

    cost_bp: float
    total: float
    sharpe: float | None
    fees: float
    per_turnover: float | None
    break_even_turnover: float | None


class Robustness(msgspec.Struct, frozen=True, kw_only=True):
    """The test year of one submission. ``turnover`` is traded value per year over the starting capital at no cost;
    ``break_even_bp`` the cost at which the year earns nothing (None with a reason where it never earned).
    ``deflated`` is the probability that the true Sharpe ratio beats the best of so many worthless trials.
    ``excess`` is the year's return over buy and hold, ``daily`` the returns of its sessions at the middle cost
    level.
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
    decisions: DecisionList, closes: Floats, session: Floats | None, *, trials: int, year: int = 252
) -> Robustness:
    """Return the test year of a decision list on closes (legs, bars). ``trials`` is how many submissions and
    iterations were scored on this split; their yearly Sharpe ratios are taken to vary as one ratio's sampling
    does.
    """
    from tradeassay.account.compiled.shares import price_decisions

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
            middle, trials=trials, trial_variance=1.0 / years, periods_per_year=year, bootstrap=bootstrap
        ).probability
    else:
        deflated = probabilistic_sharpe(middle, 0.0, periods_per_year=year, bootstrap=bootstrap)
    quarters = tuple(float(np.prod(1 + part) - 1) for part in np.array_split(middle, 4) if part.size)

    def gain(cost: float) -> float:
        return float(price_decisions(decisions, closes, (cost,)).final[0]) - 1.0

    if not len(decisions):
        even = not_scored("it never traded")
    elif gain(0.0) <= 0.0:
        even = not_scored("it earned nothing even without costs")
    elif gain(WORST_BP) > 0.0:
        even = Measure(value=WORST_BP, note="at least this much")
    else:
        low, high = 0.0, WORST_BP
        for _ in range(50):
            half = (low + high) / 2.0
            low, high = (half, high) if gain(half) > 0.0 else (low, half)
        even = Measure(value=low)
    parts = {
        "cost room": 0.0 if even.value is None else min(1.0, even.value / COSTS_BP[-1]),
        "quarters that earned": float(np.mean([q > 0 for q in quarters])) if quarters else 0.0,
    }
    if deflated.value is not None:
        parts["deflated Sharpe"] = deflated.value
    note = ", ".join(f"{name} {value:.2f}" for name, value in sorted(parts.items()))
    held = closes / closes[:, :1]
    return Robustness(
        costs=tuple(points),
        turnover=float(priced.traded[0] / years),
        break_even_bp=even,
        deflated=deflated,
        excess=float(points[len(points) // 2].total - (held.mean(axis=0)[-1] - 1.0)),
        quarters=quarters,
        daily=tuple(float(value) for value in middle),
        score=Measure(value=10.0 * float(np.mean(list(parts.values()))), n=len(parts), note=note),
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


NEAR = 0.01
"""Two exposures that differ by less than this share of equity are the same decision."""


def fidelity(
    spec: StrategySpec,
    scenarios: Mapping[str, SubmissionRun],
    scored: SubmissionRun | None,
    expected: DecisionList | None,
) -> Measure:
    """Return D1, 0 to 10: half from the micro-scenarios, half from the test data, on which the frozen semantics
    decide ``expected``. A scenario that could not be run counts as no agreement.
    """
    if scored is None or scored.decisions is None or expected is None:
        return not_scored("it could not be run on the test data")
    parts = []
    for scenario in spec.scenarios:
        run = scenarios.get(scenario.name)
        found = None if run is None else run.decisions
        parts.append(0.0 if found is None else agreement(found, scenario.expected)[0])
    share, either = agreement(scored.decisions, expected)
    small = float(np.mean(parts)) if parts else share
    note = f"scenarios {small:.3f}, test data {share:.3f} of {either} decisions"
    return Measure(value=10.0 * (small + share) / 2.0, n=either, note=note)


def agreement(ours: DecisionList, theirs: DecisionList) -> tuple[float, int]:
    """Return the share of decisions made alike (bar, leg, size) of those that either made, and how many those
    are. It is 1 when neither decided anything: doing nothing is right where there is nothing to do.
    """
    mine, other = (
        dict(zip(zip(one.row.tolist(), one.leg.tolist(), strict=True), one.fraction.tolist(), strict=True))
        for one in (ours, theirs)
    )
    both = sum(abs(mine[place] - other[place]) <= NEAR for place in mine.keys() & other.keys())
    either = len(mine.keys() | other.keys())
    return (both / either if either else 1.0), either


WEIGHTS: Final = {"exec": 0.20, "determinism": 0.25, "leak": 0.30, "audit": 0.25}
"""What each gate is worth; ours, near the paper's weights."""


CAP: Final = 5.0
"""The most that work which is not valid can get in any dimension."""


def reliability(report: GateReport) -> Measure:
    """Return D3, 0 to 10. The audit counts by its complete cells and traceable trades; false claims cost at least
    half of it. A gate that could not be asked counts as not held: nothing speaks in its favour.
    """
    if not report.gate("parse").passed:
        return not_scored("it could not be parsed")
    audit = report.gate("audit")
    share = float(audit.passed)  # where there was no trade to follow
    known = {name: value for name, value in audit.measures.items() if isinstance(value, float | int)}
    if known.keys() >= {"completeness", "traceable"}:
        share = (known["completeness"] + known["traceable"]) / 2.0
    if known.get("false_claims") and known.get("trades"):
        share *= min(0.5, max(0.0, 1.0 - known["false_claims"] / known["trades"]))
    parts = {name: float(report.gate(name).passed) for name in WEIGHTS} | {"audit": share}
    value = 10.0 * plain_sum(weight * parts[name] for name, weight in WEIGHTS.items())
    return Measure(value=value, n=len(WEIGHTS))


DIMENSIONS = ("D1", "D2", "D3", "D4")
TARGET = 8.5
"""What D1 to D3 have to reach for the loop to stop: the paper's 0.85 on a scale of 10."""


class ScoreConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How submissions are scored. ``trials`` counts submissions and iterations scored on the split so far."""

    gates: GateConfig = GateConfig()
    trials: int = 1
    stresses: tuple[str, ...] = STRESSES
    stress_rows: int = 500
    year: int = 252
    seed: int = 0


WINDOW: Final = 10
"""Bars of one of the paper's out-of-sample tests (section 5.4)."""
WINDOWS: Final = 5


class Windows(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a valid submission also runs on short pieces of the test data; ``failures`` say where it did not."""

    tests: int
    passed: int
    failures: tuple[str, ...] = ()


class Scorecard(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about a submission. ``sound`` are our measured dimensions, ``paper`` those of the printed
    formulas (D1 and D2 only where peers have marked it). ``overall`` is the mean of the four, not scored when one
    of them is not. ``windows`` is there for valid work.
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
        gates = msgspec.structs.replace(self.gates, submission=submission)
        return msgspec.structs.replace(self, submission=submission, gates=gates)


def score_gated(
    submission: Submission, spec: StrategySpec, executor: JobExecutor, gated: Gated, config: ScoreConfig
) -> Scorecard:
    """Score a submission that has been through the gates. The paper's D1 and D2 wait for peers."""
    report = gated.report
    runner = runner_of(submission, spec, executor, config.gates)
    regimes = _regimes(spec, runner, gated, config)
    year, why = _year(spec, gated, config)
    sound = {
        "D1": fidelity(spec, gated.scenarios, gated.scored, spec.frozen_decisions(gated.bars)),
        "D2": discipline(regimes) if gated.scored is not None else not_scored("it could not be run"),
        "D3": reliability(report),
        "D4": year.score if year is not None else not_scored(why or "it could not be run"),
    }
    complete = report.gate("audit").measures.get("completeness")
    share = complete if isinstance(complete, float | int) else None
    printed = {"D3": d3(submission.source, share), "D4": d4(submission.source)}
    paper = {"D1": UNMARKED, "D2": UNMARKED}
    paper |= {name: Measure(value=found.score) for name, found in printed.items()}
    if not report.valid:
        open_gate = next((gate.name for gate in report.gates if gate.name in PAPER_GATES and not gate.passed), "")
        invalid = f"the gate '{open_gate}' does not hold"
        why_not = "look-ahead is not cleared" if report.not_cleared else invalid
        paper = dict.fromkeys(DIMENSIONS, not_scored(why_not))
        for name, measure in sound.items():
            if not report.not_cleared and measure.value is not None and measure.value > CAP:
                sound[name] = Measure(value=CAP, n=measure.n, note=f"at most {CAP:g}: {invalid}")
    return Scorecard(
        strategy=spec.id,
        submission=submission.name,
        submission_sha256=submission.sha256,
        gates=report,
        sound=sound,
        paper=paper,
        paper_parts=printed,
        overall=overall(sound),
        regimes=tuple(regimes.values()),
        year=year,
        year_reason=why,
        complexity=complexity(spec.semantics),
        data=gated.bars.name,
        windows=_windows(spec, runner, gated, config),
    )


def overall(scores: Mapping[str, Measure]) -> Measure:
    """Return the mean of the four dimensions; not scored when one of them is not."""
    values = [scores[name].value for name in DIMENSIONS]
    known = [value for value in values if value is not None]
    if len(known) < len(DIMENSIONS):
        missing = ", ".join(name for name, value in zip(DIMENSIONS, values, strict=True) if value is None)
        return not_scored(f"{missing} not scored")
    return Measure(value=float(np.mean(known)), n=len(known))


def _regimes(
    spec: StrategySpec, runner: SubmissionRunner, gated: Gated, config: ScoreConfig
) -> dict[str, Discipline]:
    legs, constraints = spec.semantics.inputs.legs, spec.semantics.constraints
    if gated.scored is None:
        return {}
    found = {"normal": examine("normal", gated.scored, gated.bars, legs, constraints)}
    if not gated.scored.ok:
        return found
    calm = gated.bars.first(config.stress_rows)
    tables = {name: stressed(calm, name, config.seed) for name in config.stresses}
    runs = list(runner.logs((market_columns(bars, legs), config.gates.seeds[0]) for bars in tables.values()))
    for (name, bars), run in zip(tables.items(), runs, strict=True):
        found[name] = examine(name, run, bars, legs, constraints)
    return found


def _windows(
    spec: StrategySpec, runner: SubmissionRunner, gated: Gated, config: ScoreConfig
) -> Windows | msgspec.UnsetType:
    if not gated.report.valid or gated.bars.rows < WINDOW:
        return msgspec.UNSET
    draws = np.random.default_rng(seed_from(config.gates.secret or "", "windows", spec.id))
    starts = sorted(draws.integers(0, gated.bars.rows - WINDOW + 1, WINDOWS).tolist())
    whole = market_columns(gated.bars, spec.semantics.inputs.legs)
    pieces = ({name: column[start : start + WINDOW] for name, column in whole.items()} for start in starts)
    runs = list(runner.logs((piece, config.gates.seeds[0]) for piece in pieces))
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
    return robustness_on(gated.bars, run.decisions, spec, config), None


def robustness_on(bars: TaskBars, decisions: DecisionList, spec: StrategySpec, config: ScoreConfig) -> Robustness:
    """Return what the decisions of a submission earned on a year of bars."""
    closes = closes_of(market_columns(bars, spec.semantics.inputs.legs), spec.semantics.inputs.legs)
    session = None if bars.timeframe == "1d" else calendar_of(bars.times).session.astype(np.float64)
    return robustness(decisions, closes, session, trials=config.trials, year=config.year)
