"""What a run holds of every agent: its daily parts in one setting, and its twin under a mask."""

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
"""The masks in the order of preference for the contrast: the one that hides most comes first."""


@dataclass(frozen=True, slots=True)
class AgentRow:
    """One agent in one setting while its findings are collected. ``daily`` is None without a
    result."""

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
        """The sessions of its first seed with a result."""
        return self.complete[0].daily.sessions if self.complete else ()


def agent_row(run: Run, scores: AgentScores, attribution: RunAttribution) -> AgentRow:
    """Return the data of one agent that its findings are made from."""
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
    """Return the same agent in the setting that differs in the mask only; None if there is none.

    Of several masks it is the one that hides most. A control arm is another setting.
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
    """Say on how many sessions there was no usable answer; None if these are few."""
    failed = row.scores.measures["failure_rate"].median.value
    if failed is None or failed <= config.failed_sessions:
        return None
    return f"had no usable answer on {failed:.0%} of its sessions"
