"""The figures of the SysTradeBench paper as cited data, and why ours are not directly comparable."""

from functools import cache

from tradeassay.benchmarks.exhibits import PrintedRow, read_published


class GateRates(PrintedRow, frozen=True, kw_only=True):
    """One model of Table 3: the share of its twelve first submissions that passed each gate."""

    model: str
    submitted: int
    parse: float
    schema: float
    exec: float
    determinism: float
    leak: float
    audit: float


class StrategyScores(PrintedRow, frozen=True, kw_only=True):
    """One strategy of Table 4: marks of models (``llm``), automated marks (``qr``), their mean, valid
    submissions.
    """

    strategy: str
    complexity: str
    llm: float
    qr: float
    overall: float
    valid: int


class IterationFigures(PrintedRow, frozen=True, kw_only=True):
    """One iteration of section 5.5 (three models, one strategy): gain on a scale of 0 to 1, similarity of code."""

    iteration: int
    gain: float
    similarity: float | None = None
    test_return: float


class ModelOverall(PrintedRow, frozen=True, kw_only=True):
    """A model's overall score, where section 5.3 names one."""

    model: str
    overall: float


class CostTier(PrintedRow, frozen=True, kw_only=True):
    """One tier of section 5.6: dollars per strategy at the first iteration, and overall scores."""

    name: str
    usd_low: float
    usd_high: float
    overall_low: float
    overall_high: float


class ComplexityFigure(PrintedRow, frozen=True, kw_only=True):
    """Spearman's rho of a strategy's complexity and its quality."""

    rho: float


class ReviewFigures(PrintedRow, frozen=True, kw_only=True):
    """What sections 5.3 and B.9 say about reviewers."""

    llm_mean: float
    qr_mean: float
    tau_low: float
    tau_high: float
    tau_mean: float
    own_bias_low: float
    own_bias_high: float
    vendor_bias_low: float
    vendor_bias_high: float


class OutOfSample(PrintedRow, frozen=True, kw_only=True):
    """How many tests on windows of ten bars ran to completion (section 5.4)."""

    tests: int
    passed: int


class SystradePublished(PrintedRow, frozen=True, kw_only=True):
    """All figures and where they come from. ``notes`` say where the paper is silent or contradicts itself."""

    source: str
    models: int
    strategies: int
    attempts: int
    notes: tuple[str, ...]
    complexity: ComplexityFigure
    reviews: ReviewFigures
    out_of_sample: OutOfSample
    gates: tuple[GateRates, ...]
    by_strategy: tuple[StrategyScores, ...]
    iterations: tuple[IterationFigures, ...]
    overall: tuple[ModelOverall, ...]
    tiers: tuple[CostTier, ...]


@cache
def published() -> SystradePublished:
    return read_published(__package__, SystradePublished)


def why_not_comparable(
    *, strategies: int, iterations: int, real_data: bool, reviewed: bool, systb: bool = False
) -> tuple[str, ...]:
    """Return every reason why a figure of ours and one of the paper are not measurements of the same thing.

    It is never empty: the paper's leak guard finds none of the leaks it is there for.
    """
    whose = (
        "its twelve strategies are stated from the parameters and rules of the authors' public repository "
        "(YgcCoder/SysTB), in our words and with our semantics; the paper itself prints one Strategy Doc"
        if systb
        else "the strategies share the paper's names and defaults, but what it leaves open is pinned by us; "
        "systrade-systb-v1 has the twelve of the authors' public repository"
    )
    found = [
        whose,
        "its leak gate is a guard that vectorised code never meets; ours compares runs, so it fails more",
        "its D3 and D4 count words and patterns in the source; ours in the same column are measured by running it",
    ]
    if iterations > 1:
        found.append("its Table 3 is about first submissions; ours counts each item's last one not set aside")
    if not real_data:
        found.append("its data are 14 instruments of 2024 and 2025; these are synthetic")
    if strategies < (every := published().strategies):
        found.append(f"{strategies} of its {every} strategies {'was' if strategies == 1 else 'were'} run")
    if not reviewed:
        found.append("nobody reviewed these submissions, so that the paper's D1 and D2 are not scored")
    return tuple(found)
