"""Pictures of a verdict as SVG: what a return is made of, and the account against its market.

They are drawn here, not in the browser: nothing on such a page is explored, and a script that could would be forty
times as large as the page. Colours come from the page's style sheet, so that both themes work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tradeassay.assay.verdict.record import AgentAssay
from tradeassay.assay.verdict.waterfall import WaterfallStep, waterfall
from tradeassay.core.measure import Measure
from tradeassay.report import numbers

if TYPE_CHECKING:
    from markupsafe import Markup

_WIDTH, _HEIGHT = 560.0, 250.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 8.0, 22.0, 28.0
_NAMES = {"Market": "common", "Selection": "selection", "Trading": "trading", "Style": "style"}
_TICKS = 5
_ROOM = 2.0
"""How much room intervals get beside the bars, at most, on either side and in heights of the bars."""


class _Scale:
    """From values to places: the lowest at the bottom of the picture, the highest at its top."""

    def __init__(self, low: float, high: float, top: float, bottom: float) -> None:
        gap = (high - low) or 0.01
        self.low, self.high = low - 0.06 * gap, high + 0.06 * gap
        self._top, self._bottom = top, bottom

    def at(self, value: float) -> float:
        """Return how far down a value stands."""
        share = (value - self.low) / (self.high - self.low)
        return round(self._bottom - share * (self._bottom - self._top), 1)

    def ticks(self) -> list[float]:
        """Return round values inside, a handful of them."""
        rough = (self.high - self.low) / _TICKS
        step = next(
            size * power
            for power in (10.0**k for k in range(-6, 6))
            for size in (1.0, 2.0, 5.0)
            if size * power >= rough
        )
        first = int(self.low // step) + 1
        return [round(k * step, 10) for k in range(first, int(self.high // step) + 1)]


def waterfall_svg(one: AgentAssay) -> Markup | None:
    """Return the steps from zero to the return, with the intervals of the parts; None where there are none."""
    from markupsafe import escape

    steps = waterfall(one)
    if not steps:
        return None
    ends = _ends(steps)
    spans = [_interval(one, step, start) for step, (start, _) in zip(steps, ends, strict=True)]
    scale = _scale_of(ends, spans)
    width = (_WIDTH - _LEFT - _RIGHT) / len(steps)
    parts = [*_frame(scale)]
    for place, (step, (start, end), span) in enumerate(zip(steps, ends, spans, strict=True)):
        x = _LEFT + place * width
        top, bottom = sorted((scale.at(start), scale.at(end)))
        kind = "sum" if step.kind == "total" else "gain" if step.value >= 0 else "loss"
        middle = round(x + width / 2, 1)
        parts.append(
            f'<rect class="{kind}" x="{x + 0.18 * width:.1f}" y="{top}" width="{0.64 * width:.1f}" '
            f'height="{max(bottom - top, 1.0):.1f}" rx="2"/>'
        )
        if span:
            parts += _whisker(scale, middle, span)
        if step.kind != "total":
            level = scale.at(end)
            parts.append(
                f'<line class="link" x1="{middle:.1f}" x2="{middle + width:.1f}" y1="{level}" y2="{level}"/>'
            )
        above = min(top, scale.at(min(span[1], scale.high)) if span else top) - 5
        parts.append(
            f'<text class="value" x="{middle}" y="{max(above, 11):.1f}">{numbers.difference(step.value)}</text>'
        )
        name = _fitting(step.label, width)
        parts.append(f'<text class="name" x="{middle}" y="{_HEIGHT - 9}">{escape(name)}</text>')
    said = ", ".join(f"{step.label} {numbers.difference(step.value)}" for step in steps)
    return _svg(parts, f"What the return is made of: {said}")


def _fitting(label: str, width: float) -> str:
    """Return a label that does not run into its neighbour's; a sector is known by its own name."""
    label = label.removeprefix("SECTOR ")
    if _wide(label) <= width:
        return label
    while len(label) > 3 and _wide(label) + 7.0 > width:
        label = label[:-1]
    return f"{label}\u2026"


def _wide(text: str) -> float:
    """Return about how wide small letters under a bar are: capitals and figures are wider than the others."""
    return sum(7.2 if sign.isupper() else 3.5 if sign in " .,ijlt-" else 6.2 for sign in text)


def curve_svg(one: AgentAssay) -> Markup | None:
    """Return the account's growth against the market's with its drawdown below; None without a curve."""
    curve = one.curve
    if curve is None or len(curve.sessions) < 2:
        return None
    split = _HEIGHT * 0.66
    every = [*curve.account, *(curve.market or ())]
    scale = _Scale(min(every), max(every), _TOP, split - 6)
    under = _Scale(min(curve.drawdown), 0.0, split + 12, _HEIGHT - _BOTTOM)
    parts = [*_frame(scale), *_axis(under, [min(curve.drawdown), 0.0])]
    if curve.market:
        parts.append(_line("market", curve.market, scale))
    parts.append(_line("account", curve.account, scale))
    edge = f"{_WIDTH - _RIGHT},{under.at(0.0)} {_LEFT},{under.at(0.0)}"
    points = _points(curve.drawdown, under)
    parts.append(f'<polygon class="under" points="{points} {edge}"/>')
    first, last = curve.sessions[0], curve.sessions[-1]
    parts.append(f'<text class="name start" x="{_LEFT}" y="{_HEIGHT - 9}">{first}</text>')
    parts.append(f'<text class="name end" x="{_WIDTH - _RIGHT}" y="{_HEIGHT - 9}">{last}</text>')
    parts.append(f'<text class="name start" x="{_LEFT + 6}" y="{split + 22}">drawdown</text>')
    market = f", the market {numbers.difference(curve.market[-1])}" if curve.market else ""
    said = f"The account from {first} to {last}: {numbers.difference(curve.account[-1])}{market}"
    return _svg(parts, f"{said}; worst drawdown {numbers.difference(min(curve.drawdown))}")


def _ends(steps: Sequence[WaterfallStep]) -> list[tuple[float, float]]:
    found, level = [], 0.0
    for step in steps:
        start = 0.0 if step.kind == "total" else level
        level = start + step.value
        found.append((start, level))
    return found


def _scale_of(ends: list[tuple[float, float]], spans: list[tuple[float, float] | None]) -> _Scale:
    """Return a scale on which the bars can be seen: intervals get at most twice their room on either side."""
    bars = [0.0, *(level for pair in ends for level in pair)]
    low, high = min(bars), max(bars)
    room = _ROOM * (high - low)
    every = [level for span in spans if span for level in span]
    return _Scale(
        min(low, max(low - room, min(every, default=low))),
        max(high, min(high + room, max(every, default=high))),
        _TOP,
        _HEIGHT - _BOTTOM,
    )


def _whisker(scale: _Scale, middle: float, span: tuple[float, float]) -> list[str]:
    """Return an interval's line; an end that goes on beyond the picture is an arrow."""
    low, high = scale.at(max(span[0], scale.low)), scale.at(min(span[1], scale.high))
    parts = [f'<line class="whisker" x1="{middle}" x2="{middle}" y1="{low}" y2="{high}"/>']
    for at, beyond, back in ((low, span[0] < scale.low, -6.0), (high, span[1] > scale.high, 6.0)):
        if beyond:
            for side in (-4, 4):
                parts.append(
                    f'<line class="whisker" x1="{middle}" x2="{middle + side}" y1="{at}" y2="{at + back:.1f}"/>'
                )
        else:
            parts.append(f'<line class="whisker" x1="{middle - 4}" x2="{middle + 4}" y1="{at}" y2="{at}"/>')
    return parts


def _interval(one: AgentAssay, step: WaterfallStep, start: float) -> tuple[float, float] | None:
    name = _NAMES.get(step.label, f"style.{step.label}")
    measure: Measure | None = one.total if step.kind == "total" else one.parts.get(name)
    if measure is None or measure.low is None or measure.high is None:
        return None
    return start + measure.low, start + measure.high


def _frame(scale: _Scale) -> list[str]:
    return _axis(scale, scale.ticks())


def _axis(scale: _Scale, ticks: Sequence[float]) -> list[str]:
    parts = []
    # So many digits that no two ticks read alike; those of small moves need them.
    far = max(map(abs, ticks), default=0.0)
    digits = 0 if far >= 0.05 or all(abs(100 * one - round(100 * one)) < 1e-6 for one in ticks) else 1
    digits = 2 if 0.0 < far < 0.002 else digits
    for tick in ticks:
        y, kind = scale.at(tick), "zero" if tick == 0 else "grid"
        words = f"{tick:.{digits if tick else 0}%}".replace("-", "\u2212")
        parts.append(f'<line class="{kind}" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text class="tick" x="{_LEFT - 5}" y="{y + 4}">{words}</text>')
    return parts


def _points(values: Sequence[float], scale: _Scale) -> str:
    step = (_WIDTH - _LEFT - _RIGHT) / (len(values) - 1)
    return " ".join(f"{_LEFT + place * step:.1f},{scale.at(value)}" for place, value in enumerate(values))


def _line(kind: str, values: Sequence[float], scale: _Scale) -> str:
    return f'<polyline class="{kind}" points="{_points(values, scale)}"/>'


def _svg(parts: Sequence[str], label: str) -> Markup:
    from markupsafe import Markup, escape

    body = "".join(parts)
    return Markup(
        f'<svg class="drawing" viewBox="0 0 {_WIDTH:g} {_HEIGHT:g}" role="img" '
        f'aria-label="{escape(label)}">{body}</svg>'
    )
