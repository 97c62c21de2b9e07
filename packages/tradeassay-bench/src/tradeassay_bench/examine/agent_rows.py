"""Collect the data of a run's agents for a verdict: daily parts, series and masked twins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tradeassay.core.arrays import Floats
from tradeassay.verdict import diagnostics
from tradeassay.verdict.attribution import Attribution
from tradeassay.verdict.record import VerdictConfig
from tradeassay_bench.examine import run_evidence
from tradeassay_bench.examine.attribute import RunAttribution

if TYPE_CHECKING:
    from tradeassay_bench.runs import AgentScores, Run

MASKS = ("blinded", "stock-blind", "date-blind")
"""The masks in the order of preference for the contrast: the most complete mask first."""


@dataclass(frozen=True, slots=True)
class AgentRow:
    """The data of one agent in one setting. ``daily`` is None if no episode has a result."""

    scores: AgentScores
    complete: tuple[Attribution, ...]
    daily: dict[str, Floats] | None
    year: int
    mask: str | None
    mode: str | None
    by_model: bool
    tried: diagnostics.Tried = diagnostics.NO_TRIES

    @property
    def sessions(self) -> tuple[str, ...]:
        """Return the sessions of the first seed with a result."""
        return self.complete[0].daily.sessions if self.complete else ()


def agent_row(run: Run, scores: AgentScores, attribution: RunAttribution) -> AgentRow:
    """Return the data of one agent for its findings."""
    episode = run.episode(scores.episodes[0])
    complete = [
        attribution.episodes[key]
        for key in scores.episodes
        if attribution.episodes[key].linked is not None
    ]
    same = (
        bool(complete)
        and len({episode_parts.daily.sessions for episode_parts in complete}) == 1
        and bool(complete[0].daily.sessions)
    )
    record = run.manifest.protocols.get(scores.setting)
    mask, mode = (None if record is None else record.config.get(name) for name in ("mask", "mode"))
    return AgentRow(
        scores=scores,
        complete=tuple(complete),
        daily=run_evidence.rows_of_seeds(complete) if same else None,
        year=run.manifest.benchmark(episode).periods_per_year,
        mask=str(mask) if episode.by_model and mask is not None else None,
        mode=None if mode is None else str(mode),
        by_model=episode.by_model,
    )


def masked_twin(row: AgentRow, rows: Sequence[AgentRow]) -> AgentRow | None:
    """Return the row of the same agent in a setting that differs only in the mask, or None.

    If there are several masks, the most complete mask is used. A control arm is not a mask.
    """

    def setting(other: AgentRow) -> tuple[object, ...]:
        parts = other.scores.setting.replace("__", "+").split("+")
        bare = tuple(part for part in parts if not part.startswith("mask="))
        return other.scores.agent, other.scores.benchmark, other.scores.dataset, bare

    twins = [
        other
        for other in rows
        if other.mask in MASKS
        and setting(other) == setting(row)
        and (not other.complete or not row.complete or other.sessions == row.sessions)
    ]
    return min(twins, key=lambda other: MASKS.index(str(other.mask)), default=None)


def mostly_unanswered(row: AgentRow, config: VerdictConfig) -> str | None:
    """Return a phrase with the share of sessions without a usable answer; None if it is small."""
    failed = row.scores.measures["failure_rate"].median.value
    if failed is None or failed <= config.failed_sessions:
        return None
    return f"had no usable answer on {failed:.0%} of its sessions"
