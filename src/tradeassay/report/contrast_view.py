"""Settings side by side, and figures from papers beside ours, written out for the page."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tradeassay.report import numbers
from tradeassay.report.contrasts import Arm, Contrast
from tradeassay.report.interval_bar import IntervalBar, Scale, common_scale
from tradeassay.report.model_data import FigureRow, Figures
from tradeassay.report.words import Verdict


class ArmView(msgspec.Struct, frozen=True, kw_only=True):
    """One agent under one setting; ``told`` is None for the reference."""

    text: str
    interval: str
    told: Verdict | None = None
    difference: str = ""
    bounds: str = ""
    bar: IntervalBar | None = None


class ContrastView(msgspec.Struct, frozen=True, kw_only=True):
    """One table. ``labels`` pairs a value of the setting with the tab that shows it."""

    title: str
    where: str
    reference: str
    labels: tuple[tuple[str, str], ...]
    rows: tuple[tuple[str, tuple[ArmView | None, ...]], ...]
    sentences: tuple[str, ...]


class FigureView(msgspec.Struct, frozen=True, kw_only=True):
    """One printed figure beside ours."""

    who: str
    measure: str
    printed: str
    where: str
    ours: str
    ours_by: str
    difference: str
    reasons: tuple[str, ...]


class FiguresView(msgspec.Struct, frozen=True, kw_only=True):
    """All printed figures of a cell. ``shared`` are the reasons that hold for every row, said once."""

    source: str
    second_hand: bool
    shared: tuple[str, ...]
    rows: tuple[FigureView, ...]


def contrast_views(found: Sequence[Contrast], tabs: dict[str, str], level: float) -> tuple[ContrastView, ...]:
    """Return contrasts for the page; ``tabs`` gives a cell's place on it."""
    return tuple(_contrast(one, tabs, level) for one in found)


def _contrast(one: Contrast, tabs: dict[str, str], level: float) -> ContrastView:
    arms = [arm for row in one.rows for arm in row.arms if arm is not None]
    scale = common_scale([arm.versus.difference for arm in arms if arm.versus is not None])
    return ContrastView(
        title=one.title,
        where=one.where,
        reference=one.labels[0],
        labels=tuple((label, tabs[cell]) for label, cell in zip(one.labels, one.cells, strict=True)),
        rows=tuple(
            (row.agent, tuple(None if arm is None else _arm(arm, one.labels[0], scale, level) for arm in row.arms))
            for row in one.rows
        ),
        sentences=sentences(one, level),
    )


def _arm(arm: Arm, reference: str, scale: Scale, level: float) -> ArmView:
    value = arm.result.value
    plain = ArmView(
        text=numbers.NONE if value is None else numbers.shown("cumulative_return", value),
        interval=numbers.interval("cumulative_return", arm.result) or arm.result.reason or "",
    )
    if arm.versus is None:
        return plain
    measure = arm.versus.difference
    p = "" if arm.p_adjusted is None else numbers.p_value(arm.p_adjusted)
    bounds = measure.reason or ""
    if measure.low is not None and measure.high is not None and measure.low < measure.high:
        bounds = f"{numbers.difference(measure.low)} to {numbers.difference(measure.high)} · {p}"
    return msgspec.structs.replace(
        plain,
        told=contrast_verdict(arm, reference, level),
        difference="" if measure.value is None else numbers.difference(measure.value),
        bounds=bounds,
        bar=scale.bar(measure),
    )


def contrast_verdict(arm: Arm, reference: str, level: float) -> Verdict:
    """Say how an agent under one setting stands to itself under the reference."""
    versus = arm.versus
    if versus is None or versus.distinguishable is None or versus.difference.value is None:
        reason = "" if versus is None else str(versus.difference.reason)
        return Verdict(tone="none", label="not compared", sentence=f"was not compared with {reference}: {reason}")
    if versus.difference.low == versus.difference.high == 0.0:
        return Verdict(tone="same", label="same", sentence=f"is the same as under {reference}, session by session")
    sure = versus.distinguishable and arm.p_adjusted is not None and arm.p_adjusted <= 1.0 - level
    if not sure:
        return Verdict(
            tone="same", label="cannot be told apart", sentence=f"cannot be told apart from {reference}"
        )
    better = versus.difference.value > 0
    return Verdict(
        tone="above" if better else "below",
        label="better" if better else "worse",
        sentence=f"does {'better' if better else 'worse'} than under {reference} by more than luck explains",
    )


def sentences(one: Contrast, level: float) -> tuple[str, ...]:
    """Return the contrast in plain words, one sentence for every agent and setting."""
    said = []
    for row in one.rows:
        for label, arm in zip(one.labels[1:], row.arms[1:], strict=True):
            if arm is not None:
                said.append(f"{row.agent} under {label} {contrast_verdict(arm, one.labels[0], level).sentence}.")
    return tuple(said)


def figures_view(found: Figures | None) -> FiguresView | None:
    """Return printed figures for the page; what makes all of them not comparable is said once."""
    if found is None or not found.rows:
        return None
    shared = tuple(reason for reason in found.rows[0].reasons if all(reason in row.reasons for row in found.rows))
    return FiguresView(
        source=found.source,
        second_hand=found.second_hand,
        shared=shared,
        rows=tuple(_figure(row, shared) for row in found.rows),
    )


def _figure(row: FigureRow, shared: tuple[str, ...]) -> FigureView:
    apart = "" if row.ours is None else numbers.number(row.ours - row.printed, unit="fraction", signed=True)
    return FigureView(
        who=row.who,
        measure=numbers.info(row.measure).title,
        printed=numbers.shown(row.measure, row.printed),
        where=row.where,
        ours=numbers.NONE if row.ours is None else numbers.shown(row.measure, row.ours),
        ours_by=row.ours_by,
        difference=apart.replace("%", " points") if numbers.info(row.measure).unit == "fraction" else apart,
        reasons=tuple(reason for reason in row.reasons if reason not in shared) or (("as all",) if shared else ()),
    )
