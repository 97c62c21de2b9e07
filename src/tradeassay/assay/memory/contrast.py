"""The memory contrast: masked, unmasked and after the cutoff in one table, each taken apart, with paired tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tradeassay.assay.memory.inference import Inferred, Sample, infer, welch
from tradeassay.assay.memory.records import (
    PARTS,
    DirectProbe,
    Fade,
    MemoryArm,
    MemoryConfig,
    MemoryContrast,
    MemoryGap,
    Period,
    Told,
)
from tradeassay.assay.memory.taken import BRIGHT, CONTROL, Missing, Taken, take
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics import holm, overlapping_clusters, wilcoxon, wilcoxon_clustered

if TYPE_CHECKING:
    from tradeassay.runs import Run

MEMORY_ONLY = "memory-only"


def memory_contrast(
    runs: Run | Sequence[Run],
    *,
    cutoffs: Mapping[str, date] | None = None,
    config: MemoryConfig | None = None,
) -> MemoryContrast:
    """Say what masks take away from the agents of recorded runs.

    Episodes of one agent that differ in their mask only are paired by window and seed. ``cutoffs`` (by the
    agent's label) replace the days on which models' knowledge ends, as the runs recorded them. Rules stand beside
    the models as controls: a mask changes nothing for them. Raises :class:`UserError` when no episode has a mask.
    """
    config = config or MemoryConfig()
    listed = tuple(runs) if isinstance(runs, Sequence) else (runs,)
    taken, missing = take(listed, cutoffs)
    if not taken:
        raise UserError(
            "no episode with a mask has a result", mend="run a benchmark with masks: --mask bright,blinded"
        )
    clusters = _clusters(taken)
    arms = tuple(_arms(taken, missing, clusters, config))
    gaps = _adjusted([gap for gap in _gaps(taken, clusters, config)], config)
    holds = _controls_hold(gaps)
    if holds is False:
        gaps = [_doubted(gap) for gap in gaps]
    return MemoryContrast(
        config=config,
        arms=arms,
        gaps=tuple(gaps),
        fades=tuple(_fades(taken, clusters, config)),
        direct=tuple(_direct(taken, clusters, config)),
        controls_hold=holds,
        notes=_notes(listed, taken, missing, holds),
    )


Clusters = Mapping[str, tuple[str, int]]


def _clusters(taken: Sequence[Taken]) -> Clusters:
    """Return for every episode its cluster: windows of one data set that share a day share it."""
    found: dict[str, tuple[str, int]] = {}
    for dataset in dict.fromkeys(one.dataset for one in taken):
        inside = [one for one in taken if one.dataset == dataset]
        numbers = overlapping_clusters([(one.first, one.last) for one in inside])
        found |= {one.key: (dataset, number) for one, number in zip(inside, numbers, strict=True)}
    return found


def _sample(taken: Sequence[Taken], part: str, clusters: Clusters) -> Sample:
    return Sample(
        totals=np.array([one.linked[part] for one in taken]),
        daily=tuple(one.daily[part] for one in taken),
        clusters=tuple(clusters[one.key] for one in taken),
        windows=tuple((one.dataset, one.others, one.window) for one in taken),
    )


def _grouped(taken: Iterable[Taken]) -> dict[tuple[str, bool, str, Period], list[Taken]]:
    groups: dict[tuple[str, bool, str, Period], list[Taken]] = {}
    for one in taken:
        groups.setdefault(one.group, []).append(one)
    return groups


def _arms(
    taken: Sequence[Taken], missing: Sequence[Missing], clusters: Clusters, config: MemoryConfig
) -> Iterable[MemoryArm]:
    for (agent, by_model, mode, period), inside in _grouped(taken).items():
        for arm in dict.fromkeys(one.arm for one in inside):
            here = [one for one in inside if one.arm == arm]
            yield MemoryArm(
                agent=agent,
                by_model=by_model,
                mode=mode,
                arm=arm,
                period=period,
                episodes=len(here),
                windows=len({(one.dataset, one.window) for one in here}),
                missing=sum(
                    (one.agent, one.mode, one.arm, one.period) == (agent, mode, arm, period) for one in missing
                ),
                parts={part: infer(_sample(here, part, clusters), config).measure for part in PARTS},
            )


# -- gaps --------------------------------------------------------------------------------------------------------


def _gaps(taken: Sequence[Taken], clusters: Clusters, config: MemoryConfig) -> Iterable[MemoryGap]:
    for group, inside in _grouped(taken).items():
        bright = {one.pair: one for one in inside if one.arm == BRIGHT}
        for arm in dict.fromkeys(one.arm for one in inside if one.arm != BRIGHT):
            pairs = [(bright[one.pair], one) for one in inside if one.arm == arm and one.pair in bright]
            yield _gap(group, arm, pairs, clusters, config)


def _gap(
    group: tuple[str, bool, str, Period],
    arm: str,
    pairs: Sequence[tuple[Taken, Taken]],
    clusters: Clusters,
    config: MemoryConfig,
) -> MemoryGap:
    agent, by_model, mode, period = group
    inferred = {part: infer(_differences(pairs, part, clusters), config) for part in PARTS}
    main = inferred["selection"]
    differences = _differences(pairs, "selection", clusters)
    test = wilcoxon_clustered(differences.totals, differences.clusters) if pairs else None
    return MemoryGap(
        agent=agent,
        by_model=by_model,
        control=not by_model,
        mode=mode,
        period=period,
        masked=arm,
        pairs=len(pairs),
        windows=differences.independent,
        parts={part: one.measure for part, one in inferred.items()},
        inference=main.by,
        test=test,
        plain=wilcoxon(differences.totals) if pairs else None,
        p_value=main.p_value,
        p_adjusted=None,
        told="not compared",
        sentence="",
    )


def _differences(pairs: Sequence[tuple[Taken, Taken]], part: str, clusters: Clusters) -> Sample:
    same = [(a, b) for a, b in pairs if a.daily[part].size == b.daily[part].size]
    return Sample(
        totals=np.array([a.linked[part] - b.linked[part] for a, b in same]),
        daily=tuple(a.daily[part] - b.daily[part] for a, b in same),
        clusters=tuple(clusters[a.key] for a, _ in same),
        windows=tuple((a.dataset, a.others, a.window) for a, _ in same),
    )


def _adjusted(gaps: Sequence[MemoryGap], config: MemoryConfig) -> list[MemoryGap]:
    """Return gaps with p-values corrected over all models, and with what can be told."""
    raw = iter(holm([gap.p_value for gap in gaps if gap.by_model]))
    made = []
    for gap in gaps:
        adjusted = next(raw) if gap.by_model else gap.p_value
        told = _tell(gap.gap, adjusted, config)
        made.append(
            msgspec.structs.replace(gap, p_adjusted=adjusted, told=told, sentence=_sentence(gap, told, config))
        )
    return made


def _tell(gap: Measure, p_adjusted: float | None, config: MemoryConfig) -> Told:
    if gap.value is None:
        return "not compared"
    if gap.low is None or gap.high is None:
        return "cannot be told"
    if gap.low == gap.high == 0.0:
        return "no gap"
    sure = p_adjusted is not None and p_adjusted <= 1.0 - config.level
    if sure and (gap.low > 0.0 or gap.high < 0.0):
        return "memory" if gap.value > 0.0 else "worse unmasked"
    if -config.negligible <= gap.low and gap.high <= config.negligible:
        return "no gap"
    return "cannot be told"


def _sentence(gap: MemoryGap, told: Told, config: MemoryConfig) -> str:
    against = "being told not to use memory" if gap.masked == CONTROL else f"the mask '{gap.masked}'"
    measure = gap.gap
    if told == "not compared" or measure.value is None:
        return f"{gap.agent} was not compared: {measure.reason}."
    size = f"{measure.value:+.2%}"
    if measure.low is not None and measure.high is not None and measure.low < measure.high:
        size += f" ({measure.low:+.2%} to {measure.high:+.2%})"
    if told == "memory":
        size = size.replace("+", "")
        late = " although the windows lie after its cutoff" if gap.period == "after" else ""
        return f"{gap.agent} loses {size} of selection per window under {against}: it recognises the market{late}."
    if told == "worse unmasked":
        return f"{gap.agent} selects worse without {against}: {size} per window."
    if told == "no gap":
        return f"{gap.agent} selects the same under {against}, within {config.negligible:.1%} per window."
    return f"Whether {gap.agent} uses memory cannot be told: {size} of selection under {against}."


def _controls_hold(gaps: Sequence[MemoryGap]) -> bool | None:
    controls = [gap for gap in gaps if gap.control]
    if not controls:
        return None
    return all(gap.told not in ("memory", "worse unmasked") for gap in controls)


def _doubted(gap: MemoryGap) -> MemoryGap:
    if not gap.by_model or gap.told not in ("memory", "worse unmasked"):
        return gap
    sentence = f"Whether {gap.agent} uses memory cannot be told: an agent without memory shows a gap as well."
    return msgspec.structs.replace(gap, told="cannot be told", sentence=sentence)


# -- time and memory alone ---------------------------------------------------------------------------------------


def _fades(taken: Sequence[Taken], clusters: Clusters, config: MemoryConfig) -> Iterable[Fade]:
    models = [one for one in taken if one.by_model and one.arm == BRIGHT]
    for agent, mode in dict.fromkeys((one.agent, one.mode) for one in models):
        here = [one for one in models if (one.agent, one.mode) == (agent, mode)]
        sides = [
            _sample([one for one in here if one.period == period], "selection", clusters)
            for period in ("before", "after")
        ]
        selection = (
            not_scored("the model's cutoff is not known")
            if any(one.period == "unknown" for one in here)
            else welch(sides[0], sides[1], config)
        )
        yield Fade(agent=agent, mode=mode, selection=selection)


def _direct(taken: Sequence[Taken], clusters: Clusters, config: MemoryConfig) -> Iterable[DirectProbe]:
    alone = [one for one in taken if one.mode == MEMORY_ONLY and one.by_model]
    for (agent, _, _, period), inside in _grouped(alone).items():
        for arm in dict.fromkeys(one.arm for one in inside):
            here = [one for one in inside if one.arm == arm]
            found = infer(_sample(here, "selection", clusters), config)
            told = _tell(found.measure, found.p_value, config)
            yield DirectProbe(
                agent=agent,
                arm=arm,
                period=period,
                total=infer(_sample(here, "total", clusters), config).measure,
                selection=found.measure,
                p_value=found.p_value,
                told=told,
                sentence=_direct_sentence(agent, arm, found, told),
            )


def _direct_sentence(agent: str, arm: str, found: Inferred, told: Told) -> str:
    value = found.measure.value
    if value is None:
        return f"{agent} did not trade from memory alone: {found.measure.reason}."
    start = f"With ids and its account alone ({arm}) {agent} earns {value:+.2%} of selection per window"
    if told == "memory":
        return f"{start}: it knew these names before."
    if told == "no gap":
        return f"{start}: nothing that matters."
    return f"{start}, which can{' ' if told == 'worse unmasked' else 'not '}be told from zero."


def _notes(
    runs: Sequence[Run], taken: Sequence[Taken], missing: Sequence[Missing], holds: bool | None
) -> tuple[str, ...]:
    notes = []
    if missing:
        notes.append(f"{len(missing)} episodes have no result: {sorted({one.reason for one in missing})[0]}")
    if holds is None:
        notes.append("no control was run: nothing shows that the masks themselves change nothing")
    if holds is False:
        notes.append("an agent without memory shows a gap: no gap of this table is told as memory")
    if any(one.period == "unknown" for one in taken):
        notes.append("for some models nobody knows when their knowledge ends: no window of theirs is unseen")
    kinds = {record.facts.kind for run in runs for record in run.manifest.datasets.values()}
    if "synthetic" in kinds:
        notes.append("on synthetic data no model can have seen anything: a gap there is not memory of markets")
    return tuple(notes)
