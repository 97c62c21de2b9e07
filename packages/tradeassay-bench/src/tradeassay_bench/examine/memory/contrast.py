"""Compare masked, unmasked and post-cutoff results in one table, with paired tests.

Recorded episodes are attributed and labelled (mask, mode, window, before or after the cutoff).
Every mean over windows has an interval and a p-value. The unit of inference is the window if there
are enough windows, else the session.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import TYPE_CHECKING, Annotated, Literal, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta

from tradeassay import metrics
from tradeassay.core.arrays import Floats
from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure, above, below, not_scored
from tradeassay.metrics.intervals import (
    between,
    choose_block,
    content_seed,
    significant,
    student_reach,
)
from tradeassay_bench.examine.attribute import attribute_episode
from tradeassay_bench.masking import HARDENINGS, mask_bound

if TYPE_CHECKING:
    from tradeassay_bench.runs import EpisodeSpec, Run

PARTS = ("total", "market", "style", "selection", "trading")
"""The parts of a return, by their names in tables."""
Period = Literal["before", "after", "across", "unknown", "any"]
"""The position of a window: before, after or across the model's knowledge cutoff, or unknown.

``any`` is for an agent without training data.
"""
GapFinding = Literal["memory", "worse unmasked", "no gap", "cannot be told", "not compared"]
Inference = Literal["windows", "sessions"]


class MemoryConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The configuration of the contrast.

    ``level`` is the confidence level of all intervals. A selection return per window of up to
    ``negligible`` is considered unimportant. Windows are the unit of inference if there are at
    least ``least_windows`` windows that do not overlap, else sessions. ``draws`` is the number of
    resamples of sessions.
    """

    level: Annotated[float, Meta(gt=0, lt=1)] = 0.95
    negligible: Annotated[float, Meta(ge=0)] = 0.01
    least_windows: Annotated[int, Meta(ge=2)] = 6
    draws: Annotated[int, Meta(ge=100)] = 1000


class MemoryArm(msgspec.Struct, frozen=True, kw_only=True):
    """The mean return per window of one agent under one mask, before or after its cutoff, in parts.

    ``arm`` is the mask with its hardening (``blinded``, ``blinded+rebase_prices``) or ``control``.
    Under ``control`` nothing is hidden, and the agent is instructed not to use memory. ``missing``
    is the number of episodes without a result.
    """

    agent: str
    by_model: bool
    mode: str
    arm: str
    period: Period
    episodes: int
    windows: int
    missing: int
    parts: dict[str, Measure]


class MemoryGap(msgspec.Struct, frozen=True, kw_only=True):
    """The difference unmasked minus ``masked``, paired over window and seed, in every part.

    The memory gap is the part ``selection``. ``test`` is the signed-rank test clustered by window.
    ``plain`` is the unclustered test that papers report. ``p_value`` uses the ``inference`` of the
    interval. ``p_adjusted`` has Holm's correction over all models of the table. ``control`` marks
    an agent that a mask cannot affect.
    """

    agent: str
    by_model: bool
    control: bool
    mode: str
    period: Period
    masked: str
    pairs: int
    windows: int
    parts: dict[str, Measure]
    inference: Inference | None
    test: metrics.PairedTest | None
    plain: metrics.PairedTest | None
    p_value: float | None
    p_adjusted: float | None
    told: GapFinding
    sentence: str

    @property
    def gap(self) -> Measure:
        """Return selection unmasked minus selection masked."""
        return self.parts["selection"]


class Fade(msgspec.Struct, frozen=True, kw_only=True):
    """Selection unmasked before the cutoff minus selection unmasked after it.

    The windows differ, so the markets also differ.
    """

    agent: str
    mode: str
    selection: Measure


class DirectProbe(msgspec.Struct, frozen=True, kw_only=True):
    """The result of trading with ids and the account only.

    Any selection is then prior knowledge. ``p_value`` tests selection against zero.
    """

    agent: str
    arm: str
    period: Period
    total: Measure
    selection: Measure
    p_value: float | None
    told: GapFinding
    sentence: str


class MemoryContrast(msgspec.Struct, frozen=True, kw_only=True):
    """The evidence of masks on memory in recorded runs.

    ``controls_hold`` is False if an agent without memory has a gap. The test is then invalid, and
    no gap is reported as memory. ``controls_hold`` is None if there was no control.
    """

    config: MemoryConfig
    arms: tuple[MemoryArm, ...]
    gaps: tuple[MemoryGap, ...]
    fades: tuple[Fade, ...]
    direct: tuple[DirectProbe, ...]
    controls_hold: bool | None
    notes: tuple[str, ...]

    def gap_of(
        self, agent: str, *, masked: str = "blinded", mode: str | None = None
    ) -> MemoryGap | None:
        """Return an agent's main gap: before its cutoff if that is known, else over all windows."""
        order = ("before", "unknown", "any", "across", "after")
        found = [
            gap
            for gap in self.gaps
            if gap.agent == agent and gap.masked == masked and (mode is None or gap.mode == mode)
        ]
        return min(found, key=lambda gap: order.index(gap.period), default=None)


# Attributed episodes -----------------------------------------------------------------------------

BRIGHT = "bright"
CONTROL = "control"
_ARM = frozenset(("mask", "control", *HARDENINGS))
"""The options that define an arm. All other options of two paired episodes must be equal."""
_LINKED = {
    "total": "total",
    "market": "common",
    "style": "style",
    "selection": "selection",
    "trading": "trading",
}


@dataclass(frozen=True, slots=True)
class Taken:
    """One attributed episode.

    ``linked`` contains the parts of the return over the window, ``daily`` the parts of each
    session. Windows of one data set that share a day form one ``cluster``.
    """

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
    cluster: Hashable = None

    @property
    def pair(self) -> tuple[str, str, str, int]:
        """Return the fields that two paired episodes share."""
        return self.dataset, self.others, self.window, self.seed


Missing = tuple[str, str, str, Period, str]
"""An episode without a result: agent, mode, arm, period, and the reason."""


def take(
    runs: Sequence[Run], cutoffs: Mapping[str, date] | None
) -> tuple[list[Taken], list[Missing]]:
    """Attribute every episode of the runs that has a mask among its options.

    Returns the attributed episodes, and the episodes without a result. ``cutoffs`` contains
    knowledge cutoffs by the agent's label.
    """
    found: list[Taken] = []
    missing: list[Missing] = []
    for run in runs:
        # Only the parts are needed here. Intervals are computed over pairs of episodes.
        bootstrap = msgspec.structs.replace(run.spec.bootstrap, draws=1)
        for episode in run.episodes:
            settings = settings_of(run, episode)
            if "mask" not in settings:
                continue
            market, model = (
                run.manifest.benchmark(episode).market,
                run.manifest.models.get(episode.label),
            )
            cutoff = (cutoffs or {}).get(episode.label, None if model is None else model.cutoff)
            period: Period = "any" if not episode.by_model else "unknown"
            if episode.by_model and cutoff is not None:
                period = "across"
                if date.fromisoformat(market.first) > cutoff:
                    period = "after"
                elif date.fromisoformat(market.last) <= cutoff:
                    period = "before"
            parts = attribute_episode(run, episode.key, bootstrap=bootstrap)
            agent, arm, mode = (
                run.names[episode.label],
                arm_of(settings),
                str(settings.get("mode", "")),
            )
            linked, daily = parts.linked, parts.daily
            if linked is None:
                missing.append((agent, mode, arm, period, str(parts.reason)))
                continue
            others = sorted((key, str(value)) for key, value in settings.items() if key not in _ARM)
            found.append(
                Taken(
                    agent=agent,
                    by_model=episode.by_model,
                    arm=arm,
                    mode=mode,
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
                        "style": daily.styles,
                        "selection": np.array(daily.selection),
                        "trading": np.array(daily.trading),
                    },
                )
            )
    for dataset in dict.fromkeys(one.dataset for one in found):
        places = [k for k, one in enumerate(found) if one.dataset == dataset]
        numbers = metrics.overlapping_clusters([(found[k].first, found[k].last) for k in places])
        for k, number in zip(places, numbers, strict=True):
            found[k] = replace(found[k], cluster=(dataset, number))
    return found, missing


def settings_of(run: Run, episode: EpisodeSpec) -> Mapping[str, object]:
    """Return all options of a conversation, or the options of the spec if no model ran the
    setting.
    """
    record = run.manifest.protocols.get(episode.setting)
    if record is not None:
        return record.config
    return {**run.manifest.benchmark(episode).protocol_params}


def arm_of(settings: Mapping[str, object]) -> str:
    """Return the arm of a conversation.

    The arm is its mask with its hardening, ``control``, or ``bright`` without a mask.
    """
    if settings.get("control"):
        return CONTROL
    hardened = [name for name in HARDENINGS if settings.get(name)]
    return "+".join([str(settings.get("mask", BRIGHT)), *hardened])


@dataclass(frozen=True, slots=True)
class Sample:
    """The results of windows and seeds: totals, daily series, and the clusters of the windows."""

    totals: Floats
    daily: tuple[Floats, ...]
    clusters: tuple[Hashable, ...]
    windows: tuple[Hashable, ...]


class Inferred(NamedTuple):
    """A mean with its interval, its two-sided p-value against zero, and the unit of inference."""

    measure: Measure
    p_value: float | None
    by: Inference | None


def infer(sample: Sample, config: MemoryConfig) -> Inferred:
    """Return the mean over clusters with equal weights, with its interval and p-value.

    With enough clusters the interval is Student's interval over their means. With fewer clusters it
    is a stationary bootstrap over sessions, with seeds averaged. Such an interval applies only to
    these windows, and its note states so.
    """
    if sample.totals.size == 0:
        return Inferred(not_scored("nothing was played"), None, None)
    means = _cluster_means(sample.totals, sample.clusters)
    value = significant(float(means.mean()))
    if not sample.totals.any() and not any(one.any() for one in sample.daily):
        exact = between(0.0, (0.0, 0.0), config.level, means.size, "zero on every session")
        return Inferred(exact, None, None)
    if means.size >= config.least_windows:
        from scipy.special import stdtr  # slow to import

        error = float(means.std(ddof=1)) / float(np.sqrt(means.size))
        if error == 0.0:
            flat = Measure(value=value, level=config.level, n=means.size, note="no spread")
            return Inferred(flat, None, "windows")
        half = student_reach(means.size - 1, config.level) * error
        note = f"Student's interval over {means.size} windows that do not overlap"
        measure = between(value, (value - half, value + half), config.level, means.size, note)
        return Inferred(
            measure, significant(float(2.0 * stdtr(means.size - 1, -abs(value) / error))), "windows"
        )
    by_window: dict[Hashable, list[Floats]] = {}
    for window, daily in zip(sample.windows, sample.daily, strict=True):
        by_window.setdefault(window, []).append(daily)
    series = [
        np.mean(each, axis=0) for each in by_window.values() if len({one.size for one in each}) == 1
    ]
    joined = np.concatenate(series) if series else np.empty(0)
    bootstrap = metrics.BootstrapConfig(draws=config.draws, level=config.level)
    if joined.size < bootstrap.least:
        note = f"no interval: {joined.size} sessions, {bootstrap.least} are needed"
        return Inferred(
            Measure(value=value, level=config.level, n=joined.size, note=note), None, None
        )
    block, seed = choose_block(joined, bootstrap), content_seed(bootstrap, joined)
    # A mean per window: the sum of all sessions divided by the number of windows.
    drawn = np.concatenate(
        [
            joined[rows].sum(axis=1)
            for rows in metrics.resamples(joined.size, config.draws, block, seed)
        ]
    )
    apart = (drawn - joined.sum()) / len(series)
    tail = (1.0 - config.level) / 2.0
    low, high = np.quantile(apart, [tail, 1.0 - tail])
    # The basic interval is reflected, so that it agrees with the p-value.
    note = (
        f"block bootstrap over {joined.size} sessions of {len(series)} windows; it speaks of "
        "these only"
    )
    measure = between(value, (value - high, value - low), config.level, joined.size, note)
    beyond = int((np.abs(apart) >= abs(value)).sum())
    return Inferred(measure, significant((beyond + 1) / (config.draws + 1)), "sessions")


def welch(one: Sample, other: Sample, config: MemoryConfig) -> Measure:
    """Return the difference of two means over different windows.

    The interval is Welch's over the clusters of windows.
    """
    both = [_cluster_means(side.totals, side.clusters) for side in (one, other)]
    first, second = both
    if first.size == 0 or second.size == 0:
        return not_scored("there are no windows on one side of the cutoff")
    value = significant(float(first.mean() - second.mean()))
    n = first.size + second.size
    if first.size < 2 or second.size < 2:
        return Measure(
            value=value, level=config.level, n=n, note="no interval: one window on a side"
        )
    parts = [side.var(ddof=1) / side.size for side in both]
    spread = sum(parts)
    if spread == 0.0:
        return Measure(
            value=value, level=config.level, n=n, note="no interval: the windows do not differ"
        )
    freedom = spread**2 / sum(
        part**2 / (side.size - 1) for part, side in zip(parts, both, strict=True)
    )
    half = student_reach(freedom, config.level) * float(np.sqrt(spread))
    note = "Welch's interval over windows; the markets differ too"
    return between(value, (value - half, value + half), config.level, n, note)


def _cluster_means(totals: Floats, clusters: Sequence[Hashable]) -> Floats:
    places = {name: k for k, name in enumerate(dict.fromkeys(clusters))}
    at = np.array([places[name] for name in clusters], dtype=np.int64)
    sums = np.bincount(at, weights=totals, minlength=len(places))
    means: Floats = sums / np.bincount(at, minlength=len(places))
    return means


def memory_contrast(
    runs: Run | Sequence[Run],
    *,
    cutoffs: Mapping[str, date] | None = None,
    config: MemoryConfig | None = None,
) -> MemoryContrast:
    """Return the effect of masks on the results of agents in recorded runs.

    Episodes of one agent that differ only in their mask are paired by window and seed. ``cutoffs``
    (by the agent's label) replace the recorded knowledge cutoffs of models. Rules are included as
    controls, because a mask does not affect a rule. Raises :class:`UserError` if no episode has a
    mask.
    """
    config = config or MemoryConfig()
    listed = tuple(runs) if isinstance(runs, Sequence) else (runs,)
    taken, missing = take(listed, cutoffs)
    if not taken:
        hint = "run it with masks: tradeassay run ID --mask bright,blinded"
        raise UserError("no episode with a mask has a result", hint=hint)
    gaps, holds = _gaps(taken, config)
    return MemoryContrast(
        config=config,
        arms=tuple(_arms(taken, missing, config)),
        gaps=tuple(gaps),
        fades=tuple(_fades(taken, config)),
        direct=tuple(_direct(taken, config)),
        controls_hold=holds,
        notes=_notes(listed, taken, missing, holds),
    )


def _sample(taken: Sequence[Taken], part: str) -> Sample:
    return Sample(
        totals=np.array([one.linked[part] for one in taken]),
        daily=tuple(one.daily[part] for one in taken),
        clusters=tuple(one.cluster for one in taken),
        windows=tuple((one.dataset, one.others, one.window) for one in taken),
    )


Group = tuple[str, bool, str, Period]


def _grouped(taken: Iterable[Taken]) -> dict[Group, list[Taken]]:
    groups: dict[Group, list[Taken]] = {}
    for one in taken:
        groups.setdefault((one.agent, one.by_model, one.mode, one.period), []).append(one)
    return groups


def _arms(
    taken: Sequence[Taken], missing: Sequence[Missing], config: MemoryConfig
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
                missing=sum(one[:4] == (agent, mode, arm, period) for one in missing),
                parts={part: infer(_sample(here, part), config).measure for part in PARTS},
            )


# -- gaps ------------------------------------------------------------------------------------------


def _gaps(taken: Sequence[Taken], config: MemoryConfig) -> tuple[list[MemoryGap], bool | None]:
    """Return every gap, and whether agents without memory show none.

    P-values are corrected over all models.
    """
    found = []
    for group, inside in _grouped(taken).items():
        bright = {one.pair: one for one in inside if one.arm == BRIGHT}
        for arm in dict.fromkeys(one.arm for one in inside if one.arm != BRIGHT):
            pairs = [
                (bright[one.pair], one) for one in inside if one.arm == arm and one.pair in bright
            ]
            found.append(_gap(group, arm, pairs, config))
    raw, gaps = iter(metrics.holm([gap.p_value for gap in found if gap.by_model])), []
    for gap in found:
        adjusted = next(raw) if gap.by_model else gap.p_value
        told = _tell(gap.gap, adjusted, config)
        sentence = _sentence(gap, told, config)
        gaps.append(msgspec.structs.replace(gap, p_adjusted=adjusted, told=told, sentence=sentence))
    shown = ("memory", "worse unmasked")
    controls = [gap.told not in shown for gap in gaps if gap.control]
    holds = all(controls) if controls else None
    for k, gap in enumerate(gaps):
        if holds is False and gap.by_model and gap.told in shown:
            unsure = (
                f"Whether {gap.agent} uses memory cannot be told: an agent without memory "
                "shows a gap as well."
            )
            gaps[k] = msgspec.structs.replace(gap, told="cannot be told", sentence=unsure)
    return gaps, holds


def _gap(
    group: Group, arm: str, pairs: Sequence[tuple[Taken, Taken]], config: MemoryConfig
) -> MemoryGap:
    """Return the difference unmasked minus masked of one group of paired episodes."""
    agent, by_model, mode, period = group
    inferred = {part: infer(_differences(pairs, part), config) for part in PARTS}
    main, differences = inferred["selection"], _differences(pairs, "selection")
    return MemoryGap(
        agent=agent,
        by_model=by_model,
        control=not by_model,
        mode=mode,
        period=period,
        masked=arm,
        pairs=len(pairs),
        windows=len(set(differences.clusters)),
        parts={part: one.measure for part, one in inferred.items()},
        inference=main.by,
        test=metrics.wilcoxon_clustered(differences.totals, differences.clusters)
        if pairs
        else None,
        plain=metrics.wilcoxon(differences.totals) if pairs else None,
        p_value=main.p_value,
        p_adjusted=None,
        told="not compared",
        sentence="",
    )


def _differences(pairs: Sequence[tuple[Taken, Taken]], part: str) -> Sample:
    same = [(a, b) for a, b in pairs if a.daily[part].size == b.daily[part].size]
    return Sample(
        totals=np.array([a.linked[part] - b.linked[part] for a, b in same]),
        daily=tuple(a.daily[part] - b.daily[part] for a, b in same),
        clusters=tuple(a.cluster for a, _ in same),
        windows=tuple((a.dataset, a.others, a.window) for a, _ in same),
    )


def _tell(gap: Measure, p_adjusted: float | None, config: MemoryConfig) -> GapFinding:
    if gap.value is None:
        return "not compared"
    if gap.low is None or gap.high is None:
        return "cannot be told"
    if gap.low == gap.high == 0.0:
        return "no gap"
    sure = p_adjusted is not None and p_adjusted <= 1.0 - config.level
    if sure and (above(gap) or below(gap)):
        return "memory" if gap.value > 0.0 else "worse unmasked"
    if -config.negligible <= gap.low and gap.high <= config.negligible:
        return "no gap"
    return "cannot be told"


def _sentence(gap: MemoryGap, told: GapFinding, config: MemoryConfig) -> str:
    against = (
        "being told not to use memory" if gap.masked == CONTROL else f"the mask '{gap.masked}'"
    )
    measure = gap.gap
    if told == "not compared" or measure.value is None:
        return f"{gap.agent} was not compared: {measure.reason}."
    size = f"{measure.value:+.2%}"
    if measure.low is not None and measure.high is not None and measure.low < measure.high:
        size += f" ({measure.low:+.2%} to {measure.high:+.2%})"
    if told == "memory":
        size = size.replace("+", "")
        late = " although the windows lie after its cutoff" if gap.period == "after" else ""
        return (
            f"{gap.agent} loses {size} of selection per window under {against}: it recognises "
            f"the market{late}."
        )
    if told == "worse unmasked":
        return f"{gap.agent} selects worse without {against}: {size} per window."
    if told == "no gap":
        return (
            f"{gap.agent} selects the same under {against}, within {config.negligible:.1%} per "
            "window."
        )
    return f"Whether {gap.agent} uses memory cannot be told: {size} of selection under {against}."


# -- time and memory alone -------------------------------------------------------------------------


def _fades(taken: Sequence[Taken], config: MemoryConfig) -> Iterable[Fade]:
    models = [one for one in taken if one.by_model and one.arm == BRIGHT]
    for agent, mode in dict.fromkeys((one.agent, one.mode) for one in models):
        here = [one for one in models if (one.agent, one.mode) == (agent, mode)]
        before, after = (
            _sample([one for one in here if one.period == period], "selection")
            for period in ("before", "after")
        )
        unknown = any(one.period == "unknown" for one in here)
        none = not_scored("the model's cutoff is not known")
        yield Fade(
            agent=agent, mode=mode, selection=none if unknown else welch(before, after, config)
        )


_ALONE: dict[str, str] = {
    "memory": ": it knew these names before.",
    "no gap": ": nothing that matters.",
    "worse unmasked": ", which can be told from zero.",
}


def _direct(taken: Sequence[Taken], config: MemoryConfig) -> Iterable[DirectProbe]:
    alone = [one for one in taken if one.mode == "memory-only" and one.by_model]
    for (agent, _, _, period), inside in _grouped(alone).items():
        for arm in dict.fromkeys(one.arm for one in inside):
            here = [one for one in inside if one.arm == arm]
            found = infer(_sample(here, "selection"), config)
            told, value = _tell(found.measure, found.p_value, config), found.measure.value
            sentence = f"{agent} did not trade from memory alone: {found.measure.reason}."
            if value is not None:
                sentence = (
                    f"With ids and its account alone ({arm}) {agent} earns {value:+.2%} of "
                    "selection per window"
                )
                sentence += _ALONE.get(told, ", which cannot be told from zero.")
            yield DirectProbe(
                agent=agent,
                arm=arm,
                period=period,
                total=infer(_sample(here, "total"), config).measure,
                selection=found.measure,
                p_value=found.p_value,
                told=told,
                sentence=sentence,
            )


def _notes(
    runs: Sequence[Run], taken: Sequence[Taken], missing: Sequence[Missing], holds: bool | None
) -> tuple[str, ...]:
    """Return notes on the limits of a contrast."""
    notes = []
    if missing:
        notes.append(f"{len(missing)} episodes have no result: {min(why for *_, why in missing)}")
    if holds is None:
        notes.append("no control was run: nothing shows that the masks themselves change nothing")
    if holds is False:
        notes.append("an agent without memory shows a gap: no gap of this table is told as memory")
    if any(one.period == "unknown" for one in taken):
        notes.append("some models have no known cutoff: no window counts as unseen for them")
    masks = sorted({one.arm for one in taken} - {BRIGHT, CONTROL})
    notes += [
        f"what '{arm}' does not hide: {mask_bound(arm)}"
        for arm in masks
        if arm.startswith("blinded")
    ]
    kinds = set()
    for run in runs:
        for record in run.manifest.datasets.values():
            kinds.add(record.facts.kind)
    if "synthetic" in kinds:
        notes.append(
            "on synthetic data no model can have seen anything: a gap there is not memory of "
            "markets"
        )
    return tuple(notes)
