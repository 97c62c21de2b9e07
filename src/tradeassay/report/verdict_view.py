"""What the verdict page's template is given: words and places, all numbers already written out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from tradeassay.assay.verdict.record import AgentAssay, Assay, Kind
from tradeassay.core.measure import Measure
from tradeassay.report import numbers
from tradeassay.report.figure import Figure
from tradeassay.report.interval_bar import Scale, common_scale

TONES: dict[Kind, str] = {
    "skill": "above",
    "mixed": "mixed",
    "luck": "same",
    "style": "same",
    "market": "same",
    "memory": "below",
    "leak": "below",
    "worse": "below",
    "failed": "failed",
}
PARTS = (
    ("total", "Return", "What the account made, net of costs."),
    ("common", "Market", "What was invested times the return all names share."),
    ("style", "Style", "Exposure to the nine factors times what they returned."),
    ("selection", "Selection", "What the names held did beyond market and style."),
    ("trading", "Trading", "Costs, and everything earned or paid beyond holding."),
)
_SMALL = 0.1
"""Style factors below this share of the largest part are drawn as one."""


class Tile(msgspec.Struct, frozen=True, kw_only=True):
    """One number with its small print."""

    title: str
    text: str
    small: str
    defined: str = ""


class Strip(msgspec.Struct, frozen=True, kw_only=True):
    """The luck percentile on a line from 0 to 100; positions in per cent."""

    at: float
    low: float | None
    high: float | None
    text: str
    small: str


class VerdictView(msgspec.Struct, frozen=True, kw_only=True):
    """One agent on the page."""

    id: str
    one: AgentAssay
    tone: str
    where: str
    figures: tuple[Figure, ...]
    edge: Figure | None
    strip: Strip | None
    tiles: tuple[Tile, ...]
    exposures: tuple[tuple[str, str, str, float, bool], ...]
    failures: tuple[tuple[str, int], ...]
    has_chart: bool


def views(assay: Assay) -> list[VerdictView]:
    """Return the agents of a page: those that are judged first, baselines last, each group by its return."""
    order = sorted(assay.agents, key=lambda one: (one.cell, one.baseline, -(one.total.value or -1e9)))
    return [_view(f"a{place}", one) for place, one in enumerate(order)]


def payload(made: Sequence[VerdictView]) -> dict[str, Any]:
    """Return what the page's script draws: the steps of every waterfall."""
    return {view.id: waterfall(view.one) for view in made if view.has_chart}


def waterfall(one: AgentAssay) -> list[dict[str, Any]]:
    """Return the steps from nothing to the return; small style factors are one step, so that it can be read."""
    value = {name: measure.value or 0.0 for name, measure in one.parts.items()}
    largest = max(abs(value[name]) for name in ("common", "style", "selection", "trading"))
    factors = {name: part for name, part in value.items() if name.startswith("style.")}
    shown = [name for name, part in factors.items() if abs(part) >= max(_SMALL * largest, 0.001)]
    shown = sorted(shown, key=lambda name: -abs(factors[name]))[:3]
    rest = value["style"] - sum(factors[name] for name in shown)
    steps = [{"label": "Market", "value": value["common"], "kind": "relative"}]
    steps += [{"label": name.removeprefix("style."), "value": factors[name], "kind": "relative"} for name in shown]
    steps.append({"label": "Other style" if shown else "Style", "value": rest, "kind": "relative"})
    steps.append({"label": "Selection", "value": value["selection"], "kind": "relative"})
    steps.append({"label": "Trading", "value": value["trading"], "kind": "relative"})
    steps.append({"label": "Return", "value": one.total.value or 0.0, "kind": "total"})
    for step in steps:
        step["text"] = numbers.difference(float(str(step["value"])))
    return steps


def measured(title: str, measure: Measure, scale: Scale | None, defined: str = "", name: str = "") -> Figure:
    """Return a share as a figure with its interval."""
    span = ""
    if measure.low is not None and measure.high is not None:
        span = f"{numbers.difference(measure.low)} to {numbers.difference(measure.high)}"
    return Figure(
        id=name or title,
        title=title,
        defined=defined,
        text=numbers.NONE if measure.value is None else numbers.difference(measure.value),
        interval=span,
        sort=measure.value,
        note=measure.reason or measure.note or "",
        bar=None if scale is None else scale.bar(measure),
    )


def _view(place: str, one: AgentAssay) -> VerdictView:
    bars = [one.total if name == "total" else one.parts.get(name) for name, _, _ in PARTS]
    there = [measure for measure in bars if measure is not None and measure.value is not None]
    tested = one.edge.tested if one.edge is not None else None
    scale = common_scale(there)
    figures = tuple(
        measured(title, measure, scale, defined, name)
        for (name, title, defined), measure in zip(PARTS, bars, strict=True)
        if measure is not None
    )
    edge = None
    if tested is not None:
        edge = measured("Beyond market and style, a year", tested, common_scale([tested]), name="edge")
    window = f"{one.first} to {one.last}" if one.first else "no sessions"
    seeds = f", {numbers.count(one.seeds, 'seed')}" if one.seeds > 1 else ""
    where = [
        one.benchmark or "own account",
        f"on {one.dataset}",
        f"{numbers.count(one.sessions, 'session')}{seeds}",
    ]
    where += [window, *([f"mask: {one.mask}"] if one.mask else [])]
    return VerdictView(
        id=place,
        one=one,
        tone=TONES[one.verdict.kind],
        where=" · ".join(where),
        figures=figures if there else (),
        edge=edge,
        strip=_strip(one),
        tiles=_tiles(one),
        exposures=_exposures(one),
        failures=tuple(one.failures.items()),
        has_chart=bool(one.parts) and one.total.value is not None,
    )


def _strip(one: AgentAssay) -> Strip | None:
    share = one.luck.percentile
    if share.value is None:
        return None
    span = "" if share.low is None else f"{share.low:.0%} to {share.high:.0%} on days like these"
    return Strip(
        at=round(100.0 * share.value, 2),
        low=None if share.low is None else round(100.0 * share.low, 2),
        high=None if share.high is None else round(100.0 * share.high, 2),
        text=f"{share.value:.1%}",
        small=f"of {one.luck.portfolios:,} random portfolios with the same trades did worse. {span}".strip(),
    )


def _tiles(one: AgentAssay) -> tuple[Tile, ...]:
    ranks = one.ranks
    excess = measured("Against the index", one.excess, None)
    rows = [
        Tile(
            title="Rank by return / excess / selection",
            text=" / ".join("–" if rank is None else str(rank) for rank in (
                ranks.by_return, ranks.by_excess, ranks.by_selection)),
            small=f"among {numbers.count(ranks.of, 'agent')} with a result",
            defined="Excess: return less that of the index. Selection: what the chosen names did beyond market "
            "and style.",
        ),
        Tile(title="Against the index", text=excess.text, small=excess.interval or excess.note),
        _memory_tile(one),
        _leak_tile(one),
        _calibration_tile(one),
        _failure_tile(one),
        _dollar_tile(one),
    ]  # fmt: skip
    ratio = None if one.edge is None else one.edge.ratio
    if ratio is not None and ratio.value is not None:
        span = "" if ratio.low is None else f"{numbers.number(ratio.low)} to {numbers.number(ratio.high or 0.0)}"
        tile = Tile(title="Information ratio beyond style", text=numbers.number(ratio.value), small=span)
        rows.insert(2, tile)
    return tuple(rows)


def _memory_tile(one: AgentAssay) -> Tile:
    title = "Memory gap, a year"
    if one.memory is None:
        reason = f"it played under '{one.mask}'" if one.mask else "no language model: nothing to remember"
        return Tile(title=title, text=numbers.NONE, small=reason)
    made = measured(title, one.memory.gap, None)
    against = f"against '{one.memory.against}': " if one.memory.against else ""
    return Tile(title=title, text=made.text, small=f"{against}{made.interval or made.note}")


def _leak_tile(one: AgentAssay) -> Tile:
    if one.leaks.findings:
        return Tile(title="Leak test", text="leak", small=", ".join(one.leaks.findings))
    if one.leaks.tested:
        return Tile(title="Leak test", text="none found", small=one.leaks.sentence)
    return Tile(title="Leak test", text=numbers.NONE, small=one.leaks.sentence or "not made")


def _calibration_tile(one: AgentAssay) -> Tile:
    title = "Calibration error"
    if one.calibration is None:
        return Tile(title=title, text=numbers.NONE, small="no confidence was stated")
    ece = one.calibration.ece
    if ece.value is None:
        return Tile(title=title, text=numbers.NONE, small=str(ece.reason))
    span = "" if ece.low is None else f"{ece.low:.2f} to {ece.high:.2f}, "
    brier = one.calibration.brier.value
    return Tile(
        title=title, text=f"{ece.value:.2f}", small=f"{span}Brier {brier:.2f}" if brier is not None else span,
        defined="Mean distance between stated confidence and how often it came true; 0 is perfect.",
    )  # fmt: skip


def _failure_tile(one: AgentAssay) -> Tile:
    rate = one.failure_rate
    if rate.value is None:
        return Tile(title="Sessions without an answer", text=numbers.NONE, small=str(rate.reason))
    kinds = ", ".join(f"{kind} {count}" for kind, count in list(one.failures.items())[:3])
    seeds = f"{numbers.count(one.failed_seeds, 'seed')} failed. " if one.failed_seeds else ""
    text = numbers.number(rate.value, unit="fraction")
    return Tile(title="Sessions without an answer", text=text, small=seeds + (kinds or "no mistake"))


def _dollar_tile(one: AgentAssay) -> Tile:
    if one.dollars is None:
        return Tile(title="Dollars for thinking", text=numbers.dollars(0.0), small="no model was asked")
    net = one.dollars.net_return
    paid = f"return after paying for it: {numbers.difference(net.value)}" if net.value is not None else net.reason
    return Tile(title="Dollars for thinking", text=numbers.dollars(one.dollars.usd), small=str(paid))


def _exposures(one: AgentAssay) -> tuple[tuple[str, str, str, float, bool], ...]:
    """Return factor, mean exposure, interval, and a bar's length in per cent with its side."""
    found = [(name, m) for name, m in one.exposures.items() if m.value is not None]
    most = max((abs(m.value or 0.0) for _, m in found), default=1.0) or 1.0
    rows = []
    for name, m in sorted(found, key=lambda pair: -abs(pair[1].value or 0.0)):
        value = m.value or 0.0
        span = "" if m.low is None else f"{numbers.number(m.low, signed=True)} to "
        span += "" if m.high is None else numbers.number(m.high, signed=True)
        rows.append((name, numbers.number(value, signed=True), span, round(50 * abs(value) / most, 1), value > 0))
    return tuple(rows)
