"""Recorded episodes taken apart and labelled: which mask, which mode, which window, before or after the cutoff."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tradeassay.assay.attribute import attribute_episode
from tradeassay.assay.attribution_record import Attribution
from tradeassay.assay.memory.records import Period
from tradeassay.core.view import Floats

if TYPE_CHECKING:
    from tradeassay.runs import Episode, Run

BRIGHT = "bright"
CONTROL = "control"
_HARDENING = ("rebase_prices", "scale_volumes", "scrub_news")
_ARM = frozenset(("mask", "control", *_HARDENING))
"""Settings that make an arm; all others must be the same for two episodes to be paired."""
_LINKED = {"total": "total", "market": "common", "style": "style", "selection": "selection", "trading": "trading"}


@dataclass(frozen=True, slots=True)
class Taken:
    """One episode. ``linked`` are parts of its whole return, ``daily`` the same session by session."""

    key: str
    agent: str
    by_model: bool
    arm: str
    mode: str
    others: str
    dataset: str
    window: str
    first: str
    last: str
    seed: int
    period: Period
    linked: dict[str, float]
    daily: dict[str, Floats]

    @property
    def pair(self) -> tuple[str, str, str, int]:
        """What two episodes share that are compared."""
        return self.dataset, self.others, self.window, self.seed

    @property
    def group(self) -> tuple[str, bool, str, Period]:
        """What stands together in a table."""
        return self.agent, self.by_model, self.mode, self.period


@dataclass(frozen=True, slots=True)
class Missing:
    """An episode without a result."""

    agent: str
    mode: str
    arm: str
    period: Period
    reason: str


def take(runs: Sequence[Run], cutoffs: Mapping[str, date] | None) -> tuple[list[Taken], list[Missing]]:
    """Take every episode of runs apart that has a mask in its settings."""
    found: list[Taken] = []
    missing: list[Missing] = []
    for run in runs:
        # Only the parts are needed here: the intervals are made over pairs.
        bootstrap = msgspec.structs.replace(run.spec.bootstrap, draws=1)
        for episode in run.episodes:
            settings = _settings(run, episode)
            if "mask" not in settings:
                continue
            period = _period(run, episode, cutoffs)
            parts = attribute_episode(run, episode.key, bootstrap=bootstrap)
            arm, mode = arm_of(settings), str(settings.get("mode", ""))
            if parts.linked is None:
                missing.append(Missing(episode.label, mode, arm, period, str(parts.reason)))
                continue
            found.append(_taken(run, episode, parts, settings, period))
    return found, missing


def _taken(
    run: Run, episode: Episode, parts: Attribution, settings: Mapping[str, object], period: Period
) -> Taken:
    market = run.manifest.benchmark(episode).market
    daily = parts.daily
    days = len(daily.sessions)
    style = (
        np.sum([np.array(values) for values in daily.style.values()], axis=0) if daily.style else np.zeros(days)
    )
    linked = parts.linked or {}
    others = sorted((key, str(value)) for key, value in settings.items() if key not in _ARM)
    return Taken(
        key=episode.key,
        agent=episode.label,
        by_model=episode.by_model,
        arm=arm_of(settings),
        mode=str(settings.get("mode", "")),
        others=f"{episode.benchmark} {others}",
        dataset=episode.dataset,
        window=episode.window or f"{market.first}..{market.last}",
        first=market.first,
        last=market.last,
        seed=episode.seed,
        period=period,
        linked={name: linked[key] for name, key in _LINKED.items()},
        daily={
            "total": np.array(daily.total),
            "market": np.array(daily.common),
            "style": style,
            "selection": np.array(daily.selection),
            "trading": np.array(daily.trading),
        },
    )


def _settings(run: Run, episode: Episode) -> Mapping[str, object]:
    """Return the conversation's settings in full; where no model played the cell, those the spec names."""
    record = run.manifest.protocols.get(episode.cell)
    if record is not None:
        return record.config
    return {**run.manifest.benchmark(episode).protocol_params}


def arm_of(settings: Mapping[str, object]) -> str:
    """Return a conversation's arm: its mask with its hardening, ``control``, or ``bright`` where nothing masks."""
    if settings.get("control"):
        return CONTROL
    hardened = [name for name in _HARDENING if settings.get(name)]
    return "+".join([str(settings.get("mask", BRIGHT)), *hardened])


def _period(run: Run, episode: Episode, cutoffs: Mapping[str, date] | None) -> Period:
    if not episode.by_model:
        return "any"
    model = run.manifest.models.get(episode.label)
    cutoff = (cutoffs or {}).get(episode.label, None if model is None else model.cutoff)
    if cutoff is None:
        return "unknown"
    market = run.manifest.benchmark(episode).market
    if date.fromisoformat(market.first) > cutoff:
        return "after"
    return "before" if date.fromisoformat(market.last) <= cutoff else "across"
