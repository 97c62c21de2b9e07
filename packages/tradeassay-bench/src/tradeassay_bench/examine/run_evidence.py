"""Collect the evidence for a verdict that only runs have.

It covers seeds, luck, masks, recall, and other tries in a folder.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import TradeassayError, UserError
from tradeassay.core.measure import not_scored
from tradeassay.verdict.attribution import Attribution
from tradeassay.verdict.diagnostics import Tried
from tradeassay.verdict.evidence import ALPHA, BRIGHT, INVESTED, MARKET
from tradeassay.verdict.record import AgentFindings, LuckEvidence, RecallEvidence, VerdictConfig
from tradeassay_bench.examine.luck.luck import Luck

if TYPE_CHECKING:
    from tradeassay_bench.examine.memory import MemoryRecord
    from tradeassay_bench.examine.memory.contrast import MemoryContrast
    from tradeassay_bench.runs import AgentScores, EpisodeSpec, Run

SAME = 0.7
"""The minimum correlation of active returns at which two tries are considered one try."""


_LEAST_SHARED = 20


MOST_COMPARED = 400
"""The maximum number of episodes that are compared. All others are separate tries."""


def tried_elsewhere(run: Run, dataset: str, sessions: tuple[str, ...]) -> Tried:
    """Return the number of other strategies in the run's folder on ``dataset`` in these sessions.

    The best of thirty tries is lucky by construction. A run does not state the number of other
    tries, but its folder shows them. Baselines are not counted, nor are other runs of the same
    agents. A folder that cannot be read as a finished run is ignored.
    """
    if len(sessions) < _LEAST_SHARED:
        return Tried()
    wanted = {day: place for place, day in enumerate(sessions)}
    own_returns = _active(run, dataset, wanted)
    other_returns: list[Floats] = []
    tries = 0
    from tradeassay_bench.runs import Run

    own_folder = run.folder.resolve()
    for folder in sorted(own_folder.parent.iterdir()):
        if not folder.is_dir() or folder == own_folder or not (folder / "scores.json").is_file():
            continue
        try:
            of_folder = _active(Run.load(folder, home=run.home), dataset, wanted)
        except (TradeassayError, OSError):
            continue
        tries += len(of_folder)
        other_returns += of_folder[: max(0, MOST_COMPARED - len(other_returns))]
    clusters = list(own_returns)
    for series in other_returns:
        if all(_correlation(series, cluster) < SAME for cluster in clusters):
            clusters.append(series)
    return Tried(
        found=tries, effective=len(clusters) - len(own_returns) + max(0, tries - len(other_returns))
    )


def _active(run: Run, dataset: str, wanted: dict[str, int]) -> list[Floats]:
    """Return each agent's return over its baseline on the wanted sessions; NaN on missing sessions.

    Agents that share less than half of the sessions are separate experiments.
    """
    rows = [row for row in run.scores.agents if row.dataset == dataset]
    bases = {row.setting: _placed(run, row.episodes[0], wanted) for row in rows if row.baseline}
    returns = []
    for row in rows:
        own = None if row.baseline else _placed(run, row.episodes[0], wanted)
        if own is not None:
            base = bases.get(row.setting)
            returns.append(own if base is None else own - base)
    return returns


def _placed(run: Run, key: str, wanted: dict[str, int]) -> Floats | None:
    series = run.series(key)
    if series.failure is not None or not (series.nav > 0).all():
        return None
    places = [wanted.get(day) for day in series.sessions]
    if sum(place is not None for place in places) * 2 < len(wanted):
        return None
    moves = np.diff(np.log(series.nav))
    placed = np.full(len(wanted), np.nan)
    for place, move in zip(places, moves.tolist(), strict=True):
        if place is not None:
            placed[place] = move
    return placed


def _correlation(one: Floats, other: Floats) -> float:
    both = np.isfinite(one) & np.isfinite(other)
    if both.sum() < _LEAST_SHARED:
        return 0.0
    a, b = one[both] - one[both].mean(), other[both] - other[both].mean()
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale > 0 else 1.0


def rows_of_seeds(attributions: Sequence[Attribution]) -> dict[str, Floats]:
    """Return the daily parts of an account that holds all seeds with equal weights.

    The sum of selection and trading is added as ``edge``. All seeds must have the same sessions. A
    part that a seed does not have is 0 for that seed.
    """
    names: dict[str, None] = {}
    each = []
    for attribution in attributions:
        daily = attribution.daily
        rows = {
            "total": np.array(daily.total),
            "common": np.array(daily.common),
            "style": daily.styles,
            "tilt": np.array(daily.tilt),
            "selection": np.array(daily.selection),
            "trading": np.array(daily.trading),
            INVESTED: np.array(daily.invested),
        }
        parts = {name: np.array(values) for name, values in daily.trading_parts.items()}
        if "fills" in parts:
            rows["fills"] = parts["fills"]
            rows["costs"] = rows["trading"] - rows["fills"]
        rows |= {f"style.{name}": np.array(values) for name, values in daily.style.items()}
        rows |= {f"trading.{name}": values for name, values in parts.items()}
        each.append(rows)
        names |= dict.fromkeys(rows)
    nothing = np.zeros(len(attributions[0].daily.sessions))
    mean = {name: np.mean([rows.get(name, nothing) for rows in each], axis=0) for name in names}
    mean[ALPHA] = mean["selection"] + mean["trading"]
    references = attributions[0].daily.references
    if MARKET in references:
        mean["market"] = np.array(references[MARKET])
    return mean


def luck_evidence(each: Sequence[Luck]) -> LuckEvidence:
    """Return the luck of several seeds combined into one piece of evidence."""
    placed = sorted(
        (luck.place for luck in each if luck.place is not None),
        key=lambda place: place.percentile.value or 0.0,
    )
    if not placed:
        return LuckEvidence(
            percentile=not_scored(str(each[0].reason) if each else "nothing was played"), p=None
        )
    # With an even number of seeds, use the worse of the two middle ones, so that the bound is not a
    # lucky one.
    middle = placed[(len(placed) - 1) // 2]
    times = 1.0 if len(placed) == 1 else 2.0
    as_well, as_badly = (
        min(
            1.0,
            times * (round((share.value or 0.0) * middle.portfolios) + 1) / (middle.portfolios + 1),
        )
        for share in (middle.by_luck, middle.as_badly)
    )
    percentile, count = middle.percentile, middle.portfolios
    return LuckEvidence(
        percentile=percentile,
        p=as_well,
        p_low=as_badly,
        portfolios=count,
        quantiles=middle.quantiles,
    )


def contrast_of(
    run: Run, masks: Iterable[str | None], config: VerdictConfig
) -> MemoryContrast | None:
    """Return the contrast between masks over all windows of the run; None without masks."""
    if all(mask in (None, BRIGHT) for mask in masks):
        return None
    from tradeassay_bench.examine.memory.contrast import MemoryConfig, memory_contrast

    try:
        return memory_contrast(run, config=MemoryConfig(level=config.level, draws=config.draws))
    except UserError:  # no masked episode has a result, which the rows report
        return None


def with_contrast(
    findings: AgentFindings, contrast: MemoryContrast | None, mode: str | None
) -> AgentFindings:
    """Return the findings with the agent's share of the contrast over all windows."""
    memory = findings.memory
    if memory is None or memory.against is None or contrast is None:
        return findings
    gap = contrast.gap_of(findings.agent, masked=memory.against, mode=mode)
    fade = next(
        (
            entry.selection
            for entry in contrast.fades
            if entry.agent == findings.agent and mode in (None, entry.mode)
        ),
        None,
    )
    contrasted = msgspec.structs.replace(
        memory,
        sentence="" if gap is None else gap.sentence,
        per_window=None if gap is None else gap.gap,
        doubted=contrast.controls_hold is False,
        fade=fade,
    )
    return msgspec.structs.replace(findings, memory=contrasted)


def with_recall(
    findings: AgentFindings,
    run: Run,
    *,
    scores: AgentScores,
    mask: str | None,
    records: Sequence[MemoryRecord],
) -> AgentFindings:
    """Return the findings with direct evidence on the model's memory.

    Without such evidence, the findings state the plan and cost of a recall audit.
    """
    from tradeassay_bench.examine.memory import (
        CounterfactualReport,
        RecallReport,
        plan_recall,
        split_run,
    )
    from tradeassay_bench.examine.memory.recall import untold
    from tradeassay_bench.examine.memory.records import is_about

    episode = run.episode(scores.episodes[0])
    names = {scores.agent, run.names[scores.agent], *([episode.model] if episode.by_model else [])}
    about_agent = [
        record for record in records if record.model in names and is_about(run, episode, record)
    ]
    if not episode.by_model:
        reason_excluded = "a rule has read nothing"
        excluded = RecallEvidence(recall=not_scored(reason_excluded), excluded=reason_excluded)
        return msgspec.structs.replace(findings, recall=excluded) if records else findings
    audits = [record for record in about_agent if isinstance(record, RecallReport)]
    studies = [record for record in about_agent if isinstance(record, CounterfactualReport)]
    unasked = not_scored("it was not asked what it remembers")
    if not about_agent:
        why, reason = _cannot_have_read(findings, run, episode, mask), None
        if why is None:
            try:
                plan = plan_recall(scores.agent, run=run).sentence
            except UserError as error:
                plan = str(error)
            reason = f"assay --recall ask would take {plan}"
        bare = RecallEvidence(recall=unasked, reason=reason, excluded=why)
        return msgspec.structs.replace(findings, recall=bare)
    # Several audits are one piece of evidence: a model that recalls in one of them recalls.
    audit = next(
        (record for record in audits if record.told == "recalls"), audits[-1] if audits else None
    )
    study = studies[-1] if studies else None
    each = [record.propensity for record in audits if record.propensity is not None]
    weighed = next(
        (record for record in each if record.first.value is not None), each[-1] if each else None
    )
    keys = [key for key in scores.episodes if run.series(key).failure is None]
    # A lucky model with correct recall seems to use its recall. If names and days were hidden, the
    # model cannot have used it, unless a probe of the mask shows otherwise.
    hidden = mask == "blinded"
    split = split_run(run, keys, audits) if audits and keys and not hidden else None
    why = None if audit is None or audit.told == "recalls" else untold(audits)
    if split is not None and why is not None:
        split = msgspec.structs.replace(
            split, sentence=f"What recall explains cannot be told: {why}."
        )
    sentences = [record.sentence for record in (audit, split) if record is not None]
    sentences += (
        ["Names and days were hidden from it: recall explains nothing here."] if hidden else []
    )
    sentences += [record.sentence for record in (weighed, study) if record is not None]
    evidence = RecallEvidence(
        told=None if audit is None else audit.told,
        recall=unasked if audit is None else audit.recall,
        split=split,
        unread=None if study is None else study.unread,
        by_name=study is not None and study.by_name and not hidden,
        interaction=None if weighed is None else weighed.interaction,
        sentences=tuple(sentences),
        reason=why,
    )
    return msgspec.structs.replace(findings, recall=evidence)


def _cannot_have_read(
    findings: AgentFindings, run: Run, episode: EpisodeSpec, mask: str | None
) -> str | None:
    """Return why a model cannot have read about the traded window; None if it may have."""
    if findings.badges is not None and findings.badges.data == "synthetic":
        return "recall is excluded: the data is synthetic, and no model has read it"
    if findings.badges is not None and findings.badges.model == "scripted":
        return "recall is excluded: a script has read nothing"
    if mask == "blinded":
        from tradeassay_bench.examine.memory.contrast import arm_of, settings_of
        from tradeassay_bench.masking import mask_bound

        return (
            f"names and days were hidden from it ({mask_bound(arm_of(settings_of(run, episode)))})"
        )
    model = run.manifest.models.get(episode.label)
    cutoff = None if model is None else model.cutoff
    if cutoff is not None and findings.first is not None and findings.first > cutoff.isoformat():
        return f"recall is excluded: the window begins after {cutoff}, when its knowledge ends"
    return None
