"""Split the results of a recorded run by market regime.

A regime is a window of an index path that rose, fell, fell and recovered, or moved sideways. The
rules use the whole window. A tag is therefore known only after the window has ended. Tags help to
interpret results. They are not a trading signal.
"""

from __future__ import annotations

from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics import cosine_interval, growth, max_drawdown, significant
from tradeassay.metrics.horizon import TOO_SHORT, Horizon
from tradeassay.verdict.evidence import ALPHA
from tradeassay_bench.examine.attribute import RunAttribution, attribute_run
from tradeassay_bench.examine.run_evidence import rows_of_seeds

if TYPE_CHECKING:
    from tradeassay_bench.runs import AgentScores, Run

Regime = Literal["bull", "bear", "v", "flat"]
REGIMES: tuple[Regime, ...] = ("bull", "bear", "v", "flat")


class RegimeRules(msgspec.Struct, frozen=True, kw_only=True):
    """The rules of regimes, in the order in which they are applied.

    A window of ``length`` sessions is a **v** if it falls by at least ``depth`` from its first
    level, has its low in its middle (between ``edge`` and 1 - ``edge`` of its sessions), and
    recovers at least ``regained`` of the fall. It is a **bull** if it ends at least ``move`` above
    its first level, a **bear** if it ends at least ``move`` below, else **flat**. A rest at the end
    of a path joins the last window if it is shorter than half a window.

    Raises :class:`UserError` for values out of range.
    """

    length: int = 63
    move: float = 0.05
    depth: float = 0.08
    regained: float = 0.6
    edge: float = 0.15

    def __post_init__(self) -> None:
        if self.length < 5:
            raise UserError(
                f"a regime cannot be determined in {self.length} sessions", hint="give at least 5"
            )
        if not (
            self.move > 0 and 0 < self.depth < 1 and 0 < self.regained <= 2 and 0 <= self.edge < 0.5
        ):
            raise UserError(
                "the rules cannot tag any window",
                hint="move > 0, 0 < depth < 1, 0 < regained, edge < 0.5",
            )


class IndexRegime(msgspec.Struct, frozen=True, kw_only=True):
    """The regime of the index in sessions ``first`` to ``last`` (indices, both included)."""

    kind: Regime
    first: int
    last: int
    change: float
    lowest: float


class RegimePanel(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one agent in all sessions of one regime.

    The measures are annual means (``return``, ``against the index``, ``selection``, and ``alpha``:
    selection + trading), ``sharpe``, and ``max_drawdown``, the largest drawdown within a single
    window. ``spans`` is the number of windows.
    """

    setting: str = msgspec.field(name="cell")
    agent: str
    baseline: bool
    regime: Regime
    spans: int
    sessions: int
    measures: dict[str, Measure]


def tag_window(levels: Floats, rules: RegimeRules | None = None) -> Regime:
    """Return the regime of a whole path of levels.

    Raises :class:`UserError` for fewer than two levels.
    """
    rules = rules or RegimeRules()
    levels = np.asarray(levels, dtype=np.float64)
    if levels.size < 2 or not (levels > 0).all():
        raise UserError(
            "a regime needs at least two positive levels", hint="give the index level by level"
        )
    path = levels / levels[0]
    low = int(path.argmin())
    fall, back = 1.0 - float(path[low]), float(path[-1] - path[low])
    inside = rules.edge <= low / (path.size - 1) <= 1.0 - rules.edge
    if fall >= rules.depth and inside and back >= rules.regained * fall:
        return "v"
    change = float(path[-1]) - 1.0
    if change >= rules.move:
        return "bull"
    return "bear" if change <= -rules.move else "flat"


def tag_regimes(levels: Floats, rules: RegimeRules | None = None) -> tuple[IndexRegime, ...]:
    """Split a path into windows and tag each window.

    ``levels`` has one entry per session, preceded by the level of the day before.
    """
    rules = rules or RegimeRules()
    sessions = np.asarray(levels).size - 1
    starts = list(range(0, max(sessions, 0), rules.length))
    if len(starts) > 1 and sessions - starts[-1] < rules.length / 2:
        starts.pop()
    spans = []
    for start, stop in zip(starts, [*starts[1:], sessions], strict=True):
        part = np.asarray(levels, dtype=np.float64)[start : stop + 1]
        change, lowest = (
            significant(float(level / part[0] - 1.0)) for level in (part[-1], part.min())
        )
        kind = tag_window(part, rules)
        spans.append(
            IndexRegime(kind=kind, first=start, last=stop - 1, change=change, lowest=lowest)
        )
    return tuple(spans)


def regime_panels(run: Run, rules: RegimeRules | None = None) -> tuple[RegimePanel, ...]:
    """Return the results of every agent of a run in every regime of its market.

    The path is the index of the benchmark suite. Sessions of one regime are concatenated, and the
    intervals use a block bootstrap. Raises :class:`UserError` if a benchmark suite has no index.
    """
    attribution, rules = attribute_run(run, convention="corrected"), rules or RegimeRules()
    return tuple(
        chain.from_iterable(_panels(run, row, attribution, rules) for row in run.scores.agents)
    )


def _panels(
    run: Run, row: AgentScores, attribution: RunAttribution, rules: RegimeRules
) -> list[RegimePanel]:
    """Return the results of one agent in every regime of its market."""
    complete = [
        attribution.episodes[key]
        for key in row.episodes
        if attribution.episodes[key].linked is not None
    ]
    series = run.series(row.episodes[0])
    if series.index is None:
        raise UserError(
            f"'{row.benchmark}' has no index to tag", hint="choose a benchmark with an index"
        )
    spans = tag_regimes(series.index, rules)
    index = series.index[1:] / series.index[:-1] - 1.0
    same = bool(complete) and len({episode.daily.sessions for episode in complete}) == 1
    daily = (
        rows_of_seeds(complete) if same and complete[0].daily.sessions == series.sessions else None
    )
    drawn = run.spec.bootstrap
    interval = partial(
        cosine_interval,
        periods_per_year=series.periods_per_year,
        level=drawn.level,
        least=drawn.least,
    )
    panels = []
    for kind in REGIMES:
        of_kind = [span for span in spans if span.kind == kind]
        if not of_kind:
            continue
        places = np.concatenate([np.arange(span.first, span.last + 1) for span in of_kind])
        if daily is None:
            nothing = not_scored(series.failure or "no result over all sessions")
            measures = dict.fromkeys(
                ("return", "against the index", "selection", "alpha", "sharpe"), nothing
            )
        else:
            total = daily["total"]
            columns = {
                "return": total[places],
                "against the index": (total - index)[places],
                "selection": daily["selection"][places],
                "alpha": daily[ALPHA][places],
            }
            measures = {name: interval(values, "mean") for name, values in columns.items()}
            measures["sharpe"] = interval(columns["return"])
            if Horizon(int(places.size), series.periods_per_year).is_short:
                measures = dict.fromkeys(measures, not_scored(TOO_SHORT))
            worst = min(
                float(max_drawdown(growth(total[span.first : span.last + 1]))) for span in of_kind
            )
            measures["max_drawdown"] = Measure(
                value=significant(worst),
                n=int(places.size),
                note="no interval: this is the largest drawdown of a single span",
            )
        panels.append(
            RegimePanel(
                setting=row.setting,
                agent=run.names[row.agent],
                baseline=row.baseline,
                regime=kind,
                spans=len(of_kind),
                sessions=int(places.size),
                measures=measures,
            )
        )
    return panels
