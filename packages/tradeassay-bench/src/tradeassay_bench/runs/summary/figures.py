"""Compute the figures of a run's summary from its records.

The figures are comparisons of agents within a setting, over markets and between settings, the
reliability of results, and the monthly returns and holdings of episodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain

import msgspec
import numpy as np

from tradeassay.core.measure import Measure
from tradeassay.metrics import (
    AgainstBaseline,
    BootstrapConfig,
    Design,
    compare_to_baseline,
    corrected,
    critical_difference,
    drawdowns,
    measured_design,
    nothing_to_compare,
    power_summary,
    significant,
    tiers,
)
from tradeassay.metrics.history import history_of
from tradeassay.metrics.horizon import Horizon
from tradeassay.metrics.reliability import Play, PlayWords, reliability
from tradeassay_bench.runs.summary.rows import (
    AgentSummary,
    Contest,
    Contrast,
    ContrastArm,
    ContrastRow,
    EpisodeDetail,
    HoldingsOverTime,
    HoldingTimes,
    OverMarkets,
    RunSummary,
    SettingSummary,
)

Value = bool | int | float | str


def completed_run(summary: RunSummary) -> RunSummary:
    """Return a run's summary with all figures that are computed from its records."""
    bootstrap = BootstrapConfig(level=summary.level, draws=summary.draws)
    return msgspec.structs.replace(
        summary,
        settings=tuple(compare_setting(setting, bootstrap) for setting in summary.settings),
        contrasts=contrasts(summary.settings, bootstrap),
        over_markets=over_markets(summary.settings, summary.level),
        reliability=reliability(plays_of(summary.settings), called=PLAYED, level=summary.level),
    )


# Within a setting


def compare_setting(setting: SettingSummary, bootstrap: BootstrapConfig) -> SettingSummary:
    """Return a setting with the tiers of its agents and with sentences about the design's power."""
    rivals = [
        agent
        for agent in setting.agents
        if agent.versus is not None and agent.versus.distinguishable is not None
    ]
    agents = tuple(
        msgspec.structs.replace(agent, design=_design(agent, rivals, setting, bootstrap.level))
        for agent in setting.agents
    )
    # The power of the design does not depend on the agents' returns. The sentence is about the
    # agent that needs the fewest sessions, and names the number for the agent that needs the most.
    summaries = sorted(
        (power_summary(agent.design) for agent in agents if agent.design),
        key=lambda summary: summary.sessions,
    )
    limits: tuple[str, ...] = ()
    if summaries and summaries[0].hopeless:
        easiest, hardest = summaries[0], summaries[-1]
        more = ""
        if hardest.sessions != easiest.sessions:
            more = f", for the agent that is hardest to judge {hardest.sessions:,}"
        limits = (f"The design: {easiest.sentence}{more}.",)
    setting = msgspec.structs.replace(setting, agents=agents, limits=limits)
    return msgspec.structs.replace(setting, contest=contest_of(setting, bootstrap))


def _design(
    agent: AgentSummary, rivals: list[AgentSummary], setting: SettingSummary, level: float
) -> Design | None:
    """Return the power of an agent's comparison; None if it was not compared or has no paths."""
    base = next((other for other in setting.agents if other.baseline and other.paths), None)
    if agent.name not in {rival.name for rival in rivals} or base is None or not agent.paths:
        return None
    paths, base_path = np.array(agent.paths), np.array(base.paths[0])
    if (
        paths.shape[-1] != base_path.size
        or base_path.size < 3
        or not ((paths > 0).all() and (base_path > 0).all())
    ):
        return None
    return measured_design(
        np.diff(np.log(paths), axis=-1) - np.diff(np.log(base_path)),
        level=level,
        comparisons=len(rivals),
        periods_per_year=setting.periods_per_year,
    )


# The best agents: tiers instead of places for agents that do not differ significantly

_MARKETS = 3
"""The minimum number of markets for averaging ranks."""


def contest_of(setting: SettingSummary, bootstrap: BootstrapConfig) -> Contest | None:
    """Return the comparison of a setting's agents, paired by session and averaged over seeds.

    Only agents that can be ranked are compared. Returns None if there is no such agent, if the
    lengths of the paths differ, or if there are too few sessions.
    """
    playing = [
        agent
        for agent in setting.agents
        if not agent.baseline
        and agent.paths
        and agent.has_place
        and min(map(min, agent.paths)) > 0.0
    ]
    lengths = set()
    for agent in playing:
        for path in agent.paths:
            lengths.add(len(path))
    if len(lengths) != 1 or next(iter(lengths)) - 1 < bootstrap.least:
        return None
    # The log growth of each session, averaged over seeds.
    growth = np.stack(
        [np.diff(np.log(np.array(agent.paths)), axis=1).mean(axis=0) for agent in playing], axis=1
    )
    found = tiers(growth, level=bootstrap.level)
    return Contest(
        tiers=tuple(tuple(playing[place].name for place in tier) for tier in found),
        sessions=int(growth.shape[0]),
        level=bootstrap.level,
    )


def over_markets(settings: Sequence[SettingSummary], level: float) -> tuple[OverMarkets, ...]:
    """Return a comparison of agents over markets, for all options with three or more markets.

    Two markets share no session of the same data: of settings on the same data with overlapping
    windows, only the first is used. Only agents with a rank in every market are compared.
    """
    groups: dict[tuple[tuple[str, str], ...], list[SettingSummary]] = {}
    for setting in settings:
        options = tuple(sorted((key, str(value)) for key, value in setting.options.items()))
        inside = groups.setdefault(options, [])
        if not any(
            setting.dataset == earlier.dataset and set(setting.sessions) & set(earlier.sessions)
            for earlier in inside
        ):
            inside.append(setting)
    comparisons = []
    for options, markets in groups.items():
        placed = [
            {agent.name: agent for agent in setting.agents if agent.has_place}
            for setting in markets
        ]
        names = [name for name in placed[0] if all(name in by_name for by_name in placed)]
        if len(markets) < _MARKETS or len(names) < 2:
            continue
        results = np.array(
            [[by_name[name].result.value for name in names] for by_name in placed],
            dtype=np.float64,
        )
        comparisons.append(
            OverMarkets(
                options=dict(options),
                markets=tuple(setting.title for setting in markets),
                places=critical_difference(results, names, level=level),
            )
        )
    return tuple(comparisons)


# Reliability: runs of several seeds, windows and wordings

PLAYED = PlayWords(
    passes="ends ahead of its baseline",
    score="yearly growth beyond the baseline",
    model="agent",
    wording="setting",
)


def plays_of(settings: Sequence[SettingSummary], run: str = "") -> Iterator[Play]:
    """Yield the result of every episode except for baselines, for the analysis of reliability.

    The options of the conversation are used as the wording, and also ``run``, the name of the run,
    if several runs are compared. Windows that share sessions form one unit.
    """
    units: dict[str, list[SettingSummary]] = {}
    for setting in settings:
        windows = units.setdefault(setting.dataset, [])
        unit = next(
            (window for window in windows if set(window.sessions) & set(setting.sessions)), setting
        )
        if unit is setting:
            windows.append(setting)
        base = next((agent for agent in setting.agents if agent.baseline and agent.paths), None)
        words = [option_words(key, value) for key, value in sorted(setting.options.items())]
        for agent in setting.agents:
            if agent.baseline or base is None:
                continue
            failed, paths = dict(agent.failed_episodes), iter(agent.paths)
            for seed, key in enumerate(agent.row.episodes):
                score = None
                if key not in failed:  # a failed episode has no path
                    score = _beyond(next(paths), base.paths[0], setting.periods_per_year)
                yield Play(
                    model=agent.name,
                    wording=", ".join([run, *words] if run else words),
                    window=" ".join((setting.benchmark, setting.dataset, setting.window or "")),
                    seed=seed,
                    passed=score is not None and score > 0.0,
                    score=score,
                    unit=f"{unit.dataset} {unit.window or unit.id}",
                )


def _beyond(path: Sequence[float], base: Sequence[float], year: int) -> float | None:
    """Return the annual log growth of a path minus the growth of the baseline.

    ``year`` is the number of sessions per year. Returns None if an account was lost, or if the
    paths do not have the same length.
    """
    if len(path) < 2 or len(path) != len(base) or min(path[-1], base[-1]) <= 0.0:
        return None
    return significant(math.log(path[-1] / path[0] * base[0] / base[-1]) * year / (len(path) - 1))


# Between settings: ``bright`` and ``blinded``, with the paired test


def contrasts(
    settings: Sequence[SettingSummary], bootstrap: BootstrapConfig
) -> tuple[Contrast, ...]:
    """Return the comparisons of settings that differ in one option of the conversation.

    Only agents that are models are compared.
    """
    contrasts_found = []
    keys: set[str] = set()
    for setting in settings:
        keys |= setting.options.keys()
    for key in sorted(keys, key=lambda key: (key != "mask", key)):
        groups: dict[tuple[object, ...], list[SettingSummary]] = {}
        for setting in settings:
            if key in setting.options:
                other_options = tuple(
                    sorted(
                        (name, str(value)) for name, value in setting.options.items() if name != key
                    )
                )
                groups.setdefault(
                    (setting.benchmark, setting.dataset, setting.window, other_options), []
                ).append(setting)
        for group in groups.values():
            if len({str(setting.options[key]) for setting in group}) > 1:
                contrast = _contrast(key, group, settings, bootstrap)
                if contrast.rows:
                    contrasts_found.append(contrast)
    return tuple(contrasts_found)


def option_words(key: str, value: Value) -> str:
    """Return an option for a heading: the name of a mask, ``control: yes``, ``inputs: no-news``."""
    if key == "mask":
        return str(value)
    if isinstance(value, bool):
        value = "yes" if value else "no"
    return f"{key.replace('_', ' ')}: {value}"


def varying(settings: Sequence[SettingSummary]) -> list[str]:
    """Return the options whose values differ between settings."""
    keys: set[str] = set()
    for setting in settings:
        keys |= setting.options.keys()
    return [
        key
        for key in sorted(keys)
        if len({str(setting.options.get(key)) for setting in settings}) > 1
    ]


def _contrast(
    key: str,
    group: list[SettingSummary],
    settings: Sequence[SettingSummary],
    bootstrap: BootstrapConfig,
) -> Contrast:
    """Return the comparison of a group of settings that differ in the option ``key``."""
    # The setting without a mask or an ablation is the reference.
    plain = ("bright", False, "all")
    ordered = sorted(group, key=lambda setting: setting.options[key] not in plain)
    first = ordered[0]
    agents = chain.from_iterable(setting.agents for setting in ordered)
    names = dict.fromkeys(agent.name for agent in agents if agent.model is not None)
    # The table is about one option, so its labels do not repeat the name of the option.
    labels = tuple(
        value if isinstance(value := setting.options[key], str) else option_words(key, value)
        for setting in ordered
    )
    rows = [_row(name, ordered, labels[0], bootstrap) for name in names]
    # The comparisons are corrected for their number in the table.
    arms = chain.from_iterable(row.arms for row in rows)
    left = iter(corrected([arm.versus for arm in arms if arm], bootstrap.level))
    rows = [
        ContrastRow(
            agent=row.agent,
            arms=tuple(
                arm and _compared_arm(arm.result, next(left), first.horizon) for arm in row.arms
            ),
        )
        for row in rows
    ]
    others = [
        option_words(name, first.options[name])
        for name in varying(settings)
        if name in first.options
    ]
    where = [first.benchmark, f"on {first.dataset}", *([first.window] if first.window else [])]
    where += [words for words in others if words != option_words(key, first.options[key])]
    return Contrast(
        key=key,
        title="Mask by mask" if key == "mask" else f"By {key.replace('_', ' ')}",
        where=", ".join([" ".join(where[:2]), *where[2:]]),
        labels=labels,
        settings=tuple(setting.id for setting in ordered),
        rows=tuple(rows),
        horizon=first.horizon,
    )


def _compared_arm(result: Measure, versus: AgainstBaseline | None, horizon: Horizon) -> ContrastArm:
    """Return an arm of a contrast, corrected for the number of comparisons."""
    excess = None if versus is None else horizon.grown(versus.difference)
    return ContrastArm(result=result, versus=versus, excess=excess)


def _row(
    name: str, settings: Sequence[SettingSummary], reference: str, bootstrap: BootstrapConfig
) -> ContrastRow:
    """Return an agent's row of a contrast.

    The row contains the agent's result in every setting, compared with the agent's result in the
    first setting. ``reference`` is the label of the first setting.
    """
    agents = [
        next((agent for agent in setting.agents if agent.name == name), None)
        for setting in settings
    ]
    arms: list[ContrastArm | None] = []
    for place, (setting, agent) in enumerate(zip(settings, agents, strict=True)):
        if agent is None:
            arms.append(None)
            continue
        versus = None
        if place:
            other = agents[0]
            if other is None or not agent.paths or not other.paths:
                versus = nothing_to_compare(reference, "one of the two has no result")
            elif setting.sessions != settings[0].sessions:
                versus = nothing_to_compare(reference, "the sessions differ")
            else:
                versus = compare_to_baseline(
                    np.array(agent.paths),
                    np.array(other.paths),
                    periods_per_year=setting.periods_per_year,
                    baseline=reference,
                    bootstrap=bootstrap,
                )
        arms.append(ContrastArm(result=agent.result, versus=versus))
    return ContrastRow(agent=name, arms=tuple(arms))


# One episode


def completed_episode(
    read: EpisodeDetail, sessions: Sequence[str], path: Sequence[float], periods_per_year: int
) -> EpisodeDetail:
    """Return an episode with the figures that are computed from its account values and holdings.

    ``path`` contains the account values. It is empty if the episode has no result.
    """
    return msgspec.structs.replace(
        read,
        falls=tuple(drawdowns(np.asarray(path, dtype=np.float64)).tolist()) if path else (),
        history=history_of(sessions, path, periods_per_year),
        times=None if read.holdings is None else holding_times(read.holdings),
    )


def holding_times(held: HoldingsOverTime) -> HoldingTimes:
    """Return the number of positions and the mean length of holdings."""
    if not held.symbols:
        return HoldingTimes(names=0.0, fewest=0, most=0, spells=0, sessions=None)
    there = np.abs(np.asarray(held.weights, dtype=np.float64)) > 0
    spells = int(there[:, 0].sum() + (there[:, 1:] & ~there[:, :-1]).sum())
    count = there.sum(axis=0)
    return HoldingTimes(
        names=float(count.mean()),
        fewest=int(count.min()),
        most=int(count.max()),
        spells=spells,
        sessions=float(there.sum()) / spells if spells else None,
    )
