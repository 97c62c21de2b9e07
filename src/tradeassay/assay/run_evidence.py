"""Evidence for a verdict that only runs hold: seeds, luck, masks, what models recall, other tries of a folder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tradeassay.assay.luck.luck import Luck
from tradeassay.assay.verdict.attribution import Attribution
from tradeassay.assay.verdict.diagnostics import Tried
from tradeassay.assay.verdict.evidence import BRIGHT, EDGE, INVESTED, MARKET
from tradeassay.assay.verdict.record import AgentFindings, LuckEvidence, RecallEvidence, VerdictConfig
from tradeassay.core.errors import TradeassayError, UserError
from tradeassay.core.measure import not_scored
from tradeassay.core.view import Floats

if TYPE_CHECKING:
    from tradeassay.assay.memory import MemoryRecord
    from tradeassay.assay.memory.contrast import MemoryContrast
    from tradeassay.runs import AgentScores, EpisodeSpec, Run

SAME = 0.7
"""Correlation of active returns above which two tries are one."""


_LEAST_SHARED = 20


MOST_COMPARED = 400
"""Episodes that are read and compared; further ones count without being compared."""


def tried_elsewhere(run: Run, dataset: str, sessions: tuple[str, ...]) -> Tried:
    """Return how many other strategies the run's folder has tried on ``dataset`` in these sessions. The best of
    thirty is lucky by construction. A run does not say how many others there were; the folder does. Baselines do
    not count, and neither does what repeats an agent of the run itself. A folder that cannot be read as a finished
    run is no try."""
    if len(sessions) < _LEAST_SHARED:
        return Tried()
    wanted = {day: place for place, day in enumerate(sessions)}
    mine = _active(run, dataset, wanted)
    others: list[Floats] = []
    found = 0
    from tradeassay.runs import Run

    own_folder = run.folder.resolve()
    for folder in sorted(own_folder.parent.iterdir()):
        if not folder.is_dir() or folder == own_folder or not (folder / "scores.json").is_file():
            continue
        try:
            each = _active(Run.load(folder, home=run.home), dataset, wanted)
        except (TradeassayError, OSError):
            continue
        found += len(each)
        others += each[: max(0, MOST_COMPARED - len(others))]
    clusters = list(mine)
    for series in others:
        if all(_correlation(series, known) < SAME for known in clusters):
            clusters.append(series)
    return Tried(found=found, effective=len(clusters) - len(mine) + max(0, found - len(others)))


def _active(run: Run, dataset: str, wanted: dict[str, int]) -> list[Floats]:
    """Return what each agent earned beyond its baseline on the wanted sessions, NaN where it did not play. Agents
    that share less than half of the sessions are other experiments."""
    rows = [row for row in run.scores.agents if row.dataset == dataset]
    bases = {row.cell: _placed(run, row.episodes[0], wanted) for row in rows if row.baseline}
    found = []
    for row in rows:
        mine = None if row.baseline else _placed(run, row.episodes[0], wanted)
        if mine is not None:
            base = bases.get(row.cell)
            found.append(mine if base is None else mine - base)
    return found


def _placed(run: Run, key: str, wanted: dict[str, int]) -> Floats | None:
    series = run.series(key)
    if series.failure is not None or not (series.nav > 0).all():
        return None
    places = [wanted.get(day) for day in series.sessions]
    if sum(place is not None for place in places) * 2 < len(wanted):
        return None
    moves = np.diff(np.log(series.nav))
    found = np.full(len(wanted), np.nan)
    for place, move in zip(places, moves.tolist(), strict=True):
        if place is not None:
            found[place] = move
    return found


def _correlation(one: Floats, other: Floats) -> float:
    both = np.isfinite(one) & np.isfinite(other)
    if both.sum() < _LEAST_SHARED:
        return 0.0
    a, b = one[both] - one[both].mean(), other[both] - other[both].mean()
    scale = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / scale if scale > 0 else 1.0


def rows_of_seeds(found: Sequence[Attribution]) -> dict[str, Floats]:
    """Return daily parts of an account that holds all seeds in equal parts, and their sum ``edge``. All must have
    the same sessions. A part that a seed does not have is 0 there."""
    names: dict[str, None] = {}
    each = []
    for one in found:
        daily = one.daily
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
            # Futures are settled in cash: what they brought are moves of prices too, and no cost.
            rows["fills"] = np.sum([parts[name] for name in ("fills", "futures") if name in parts], axis=0)
            rows["costs"] = rows["trading"] - rows["fills"]
        rows |= {f"style.{name}": np.array(values) for name, values in daily.style.items()}
        rows |= {f"trading.{name}": values for name, values in parts.items()}
        each.append(rows)
        names |= dict.fromkeys(rows)
    nothing = np.zeros(len(found[0].daily.sessions))
    mean = {name: np.mean([rows.get(name, nothing) for rows in each], axis=0) for name in names}
    mean[EDGE] = mean["selection"] + mean["trading"]
    references = found[0].daily.references
    if MARKET in references:
        mean["market"] = np.array(references[MARKET])
    return mean


def luck_evidence(each: Sequence[Luck]) -> LuckEvidence:
    """Return several seeds' luck as one."""
    placed = sorted(
        (one.place for one in each if one.place is not None), key=lambda place: place.percentile.value or 0.0
    )
    if not placed:
        return LuckEvidence(percentile=not_scored(str(each[0].reason) if each else "nothing was played"), p=None)
    # With an even number of seeds the worse of the two in the middle: a bound must not be the lucky one's.
    middle = placed[(len(placed) - 1) // 2]
    times = 1.0 if len(placed) == 1 else 2.0
    as_well, as_badly = (
        min(1.0, times * (round((share.value or 0.0) * middle.portfolios) + 1) / (middle.portfolios + 1))
        for share in (middle.by_luck, middle.as_badly)
    )
    shown, count = middle.percentile, middle.portfolios
    return LuckEvidence(percentile=shown, p=as_well, p_low=as_badly, portfolios=count, quantiles=middle.quantiles)


def contrast_of(run: Run, masks: Iterable[str | None], config: VerdictConfig) -> MemoryContrast | None:
    """Return what masks say over all windows of the run; None where none was run."""
    if all(mask in (None, BRIGHT) for mask in masks):
        return None
    from tradeassay.assay.memory.contrast import MemoryConfig, memory_contrast

    try:
        return memory_contrast(run, config=MemoryConfig(level=config.level, draws=config.draws))
    except UserError:  # no masked episode has a result: the rows say so themselves
        return None


def with_contrast(found: AgentFindings, contrast: MemoryContrast | None, mode: str | None) -> AgentFindings:
    """Return findings with what the contrast over all windows says about the agent."""
    memory = found.memory
    if memory is None or memory.against is None or contrast is None:
        return found
    gap = contrast.gap_of(found.agent, masked=memory.against, mode=mode)
    fade = next(
        (one.selection for one in contrast.fades if one.agent == found.agent and mode in (None, one.mode)), None
    )
    told = msgspec.structs.replace(
        memory,
        sentence="" if gap is None else gap.sentence,
        per_window=None if gap is None else gap.gap,
        doubted=contrast.controls_hold is False,
        fade=fade,
    )
    return msgspec.structs.replace(found, memory=told)


def with_recall(
    found: AgentFindings, run: Run, *, scores: AgentScores, mask: str | None, records: Sequence[MemoryRecord]
) -> AgentFindings:
    """Return findings with what direct evidence says of the model's memory, or what asking for it would take."""
    from tradeassay.assay.memory import CounterfactualReport, RecallReport, plan_recall, split_run
    from tradeassay.assay.memory.recall import untold
    from tradeassay.assay.memory.records import is_about

    episode = run.episode(scores.episodes[0])
    names = {scores.agent, run.names[scores.agent], *([episode.model] if episode.by_model else [])}
    ours = [one for one in records if one.model in names and is_about(run, episode, one)]
    if not episode.by_model:
        read = "a rule has read nothing"
        none = RecallEvidence(recall=not_scored(read), excluded=read)
        return msgspec.structs.replace(found, recall=none) if records else found
    audits = [one for one in ours if isinstance(one, RecallReport)]
    studies = [one for one in ours if isinstance(one, CounterfactualReport)]
    unasked = not_scored("it was not asked what it remembers")
    if not ours:
        why, reason = _cannot_have_read(found, run, episode, mask), None
        if why is None:
            try:
                plan = plan_recall(scores.agent, run=run).sentence
            except UserError as error:
                plan = str(error)
            reason = f"assay --recall ask would take {plan}"
        bare = RecallEvidence(recall=unasked, reason=reason, excluded=why)
        return msgspec.structs.replace(found, recall=bare)
    # What several audits asked is one evidence: who recalls in any of them recalls.
    audit = next((one for one in audits if one.told == "recalls"), audits[-1] if audits else None)
    study = studies[-1] if studies else None
    each = [one.propensity for one in audits if one.propensity is not None]
    weighed = next((one for one in each if one.first.value is not None), each[-1] if each else None)
    keys = [key for key in scores.episodes if run.series(key).failure is None]
    # Whoever recalls truly seems to follow recall wherever it is lucky: where names and days are hidden, what it
    # recalls cannot have been used, unless a probe of the mask says otherwise.
    hidden = mask == "blinded"
    split = split_run(run, keys, audits) if audits and keys and not hidden else None
    why = None if audit is None or audit.told == "recalls" else untold(audits)
    if split is not None and why is not None:
        split = msgspec.structs.replace(split, sentence=f"What recall explains cannot be told: {why}.")
    said = [one.sentence for one in (audit, split) if one is not None]
    said += ["Names and days were hidden from it: recall explains nothing here."] if hidden else []
    said += [one.sentence for one in (weighed, study) if one is not None]
    evidence = RecallEvidence(
        told=None if audit is None else audit.told,
        recall=unasked if audit is None else audit.recall,
        split=split,
        unread=None if study is None else study.unread,
        by_name=study is not None and study.by_name and not hidden,
        interaction=None if weighed is None else weighed.interaction,
        sentences=tuple(said),
        reason=why,
    )
    return msgspec.structs.replace(found, recall=evidence)


def _cannot_have_read(found: AgentFindings, run: Run, episode: EpisodeSpec, mask: str | None) -> str | None:
    """Return why a model cannot recall what it traded; None where it may."""
    if found.badges is not None and found.badges.data == "synthetic":
        return "recall is excluded: the data is synthetic, and no model has read it"
    if found.badges is not None and found.badges.model == "scripted":
        return "recall is excluded: a script has read nothing"
    if mask == "blinded":
        from tradeassay.assay.memory.contrast import arm_of, settings_of
        from tradeassay.masking import mask_bound

        return f"names and days were hidden from it ({mask_bound(arm_of(settings_of(run, episode)))})"
    known = run.manifest.models.get(episode.label)
    cutoff = None if known is None else known.cutoff
    if cutoff is not None and found.first is not None and found.first > cutoff.isoformat():
        return f"recall is excluded: the window begins after {cutoff}, when its knowledge ends"
    return None
