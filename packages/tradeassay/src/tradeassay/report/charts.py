"""SVG charts for reports, verdicts and the arena.

:func:`line_chart` draws several series over time, optionally with marks. :func:`area_chart` draws
shares that add up. :func:`waterfall_svg` draws bars with intervals. ``m.ibar`` of
``macros.html.j2`` is a single interval in a row of a table. Colours come from the style sheet, so
both themes work. A page is readable without its script: ``charts.js`` only hides lines, changes the
period, marks trades on prices and displays values.

A line chart has no fixed size: the browser stretches it. Its paths use units of the data (days
across, values upwards). So a period is a view box, and the script reads values from the path. Texts
and marks are positioned in per cent of the frame and keep their size. Points are thinned for a
chart, never for a number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from typing import Literal, NamedTuple
from unicodedata import east_asian_width

import msgspec
import numpy as np
from markupsafe import Markup, escape

from tradeassay.metrics.history import ROLLING, AccountHistory
from tradeassay.report import numbers
from tradeassay.verdict.record import AccountCurve, AgentAssay, WaterfallStep, waterfall

# Lines are distinguishable without colour too. The hues are those of Okabe and Ito, distinct for
# colour-blind readers. page.css has their values for both themes. The baseline is always grey and
# dashed.

HUES = ("h0", "h1", "h2", "h3", "h4", "h5")
_DASHES = ("", "2 3", "7 3 2 3", "11 3 2 3")
_MARKERS = ("●", "■", "◆", "▲", "✕", "★", "▼", "✚", "⬟")


class LineStyle(msgspec.Struct, frozen=True, kw_only=True):
    """The line style of one agent on all charts: class of the hue, SVG dash pattern, and marker."""

    hue: str
    dash: str = ""
    marker: str = ""
    width: float = 2.0


BASELINE = LineStyle(hue="base", dash="6 4", marker="○", width=2.4)
INDEX = LineStyle(hue="rest", dash="2 3", width=1.2)
_PLAIN = LineStyle(hue="base", width=1.4)


def styles(names: Sequence[str], baseline: str) -> dict[str, LineStyle]:
    found = {baseline: BASELINE} if baseline in names else {}
    for place, name in enumerate(name for name in names if name != baseline):
        found[name] = LineStyle(
            hue=HUES[place % len(HUES)],
            dash=_DASHES[place // len(HUES) % len(_DASHES)],
            marker=_MARKERS[place % len(_MARKERS)],
        )
    return found


MOST_LINES = 12
"""Largest number of accounts on a chart besides the market."""
INDEX_LINE = "@index"
PERIODS = (0, 182, 91, 30)
"""Periods in days that a reader can select; 0 is the whole chart."""
MOST_HELD = 9
_HEIGHT = {"tall": 400, "mid": 260, "low": 190}
"""Approximate height of a chart's frame in pixels, by class of the style sheet."""
_LONGEST, _LONGEST_ON_PHONES = 24, 11
_MARKS = 9
"""Number of marks on a line, enough to identify the line without its colour."""


class Curve(msgspec.Struct, frozen=True, kw_only=True):
    """One account: its return since the start, or its fall from the last peak, on every day."""

    entry: str
    label: str
    baseline: bool = False
    returns: tuple[float | None, ...]


class Band(msgspec.Struct, frozen=True, kw_only=True):
    """The range of 90 % of the random accounts and their median, as returns since the start."""

    low: tuple[float | None, ...]
    middle: tuple[float | None, ...]
    high: tuple[float | None, ...]


class Equity(msgspec.Struct, frozen=True, kw_only=True):
    """The data of a chart.

    ``days`` begins on the day before the first session. ``thinned`` means that some sessions have
    no point.
    """

    days: tuple[str, ...]
    curves: tuple[Curve, ...]
    band: Band | None = None
    sessions: int
    thinned: bool = False


class Marks(msgspec.Struct, frozen=True, kw_only=True):
    """Points of one kind on a chart: (day, value, words).

    Points without a value are drawn at the bottom. ``tone`` is one of buy, sell, hold, bad and
    news.
    """

    label: str
    glyph: str
    tone: str
    points: tuple[tuple[str, float | None, str], ...]


class ChartLook(msgspec.Struct, frozen=True, kw_only=True):
    """The layout of a line chart.

    ``names`` are written at the ends of lines. Otherwise the room for them stays empty, so that the
    dates of stacked charts are aligned. ``filled`` fills the area between a line and zero. ``zero``
    keeps zero visible.
    """

    styles: Mapping[str, LineStyle] = {}
    size: Literal["tall", "mid", "low"] = "tall"
    form: Literal["share", "number"] = "share"
    names: Literal["ends", "room", "none"] = "ends"
    filled: bool = False
    zero: bool = False


# Data of a chart -----------------------------------------------------------------------------


def picked(
    values: Sequence[float], places: Sequence[int], digits: int = 5
) -> tuple[float | None, ...]:
    """Return the values at ``places`` rounded to ``digits`` decimals.

    A value that is not finite becomes None.
    """
    found = (float(values[place]) for place in places)
    return tuple(round(value, digits) if np.isfinite(value) else None for value in found)


def day_number(session: str) -> int:
    return date.fromisoformat(session[:10]).toordinal()


# Lines and areas over time -------------------------------------------------------------------


class _Frame:
    """The visible range: days from left to right, values from bottom to top.

    Positions are in per cent of it.
    """

    def __init__(self, days: tuple[int, int], values: Sequence[float], *, zero: bool) -> None:
        self.first, self.last = days[0], max(days[1], days[0] + 1)
        low, high = min(values, default=0.0), max(values, default=0.0)
        if zero:
            low, high = min(low, 0.0), max(high, 0.0)
        if high <= low:
            high, low = high + (abs(high) * 0.01 or 0.01), low - (abs(low) * 0.01 or 0.01)
        pad = 0.05 * (high - low)
        # Zero stays the edge if no value is beyond it.
        self.low, self.high = (low - pad if low else 0.0), (high + pad if high else 0.0)

    def x(self, day: float) -> float:
        return round(100.0 * (day - self.first) / (self.last - self.first), 1)

    def y(self, value: float) -> float:
        return round(100.0 * (self.high - value) / (self.high - self.low), 1)

    def view(self, unit: float) -> str:
        """Return the frame as the view box of paths in units of ``unit``."""
        height = (self.high - self.low) / unit
        return f"{self.first} {-self.high / unit:.6g} {self.last - self.first} {height:.6g}"


def line_chart(
    chart: Equity,
    look: ChartLook,
    about: str,
    *,
    periods: Sequence[int] = (0,),
    cell: str = "",
    marks: Sequence[Marks] = (),
) -> Markup:
    """Return a line chart. ``about`` describes it in words.

    ``periods`` are the selectable periods in days; 0 is the whole chart. ``cell`` links the chart
    to the legend and the period buttons with the same ``data-for``.
    """
    days = [day_number(day) for day in chart.days]
    log = _grows_far(chart, look)
    if log:
        chart = _on_log_axis(chart)
    unit = _unit(chart, look)
    styles = {curve.entry: look.styles.get(curve.entry, _PLAIN) for curve in chart.curves}
    every = list(days)
    for one in marks:
        every += [day_number(day) for day, _, _ in one.points]
    back: list[str] = []
    front: list[str] = []
    view = "0 0 1 1"
    for period in periods if every else ():
        # A period longer than the chart is the whole chart.
        first = max(min(every), max(every) - period) if period else min(every)
        values = _values_in_sight(chart, marks, [day >= first for day in days])
        with_zero = look.zero or look.filled or look.names == "room"
        frame = _Frame((first, max(every)), values, zero=with_zero)
        if not back:
            view = frame.view(unit)
        hidden = "" if period == 0 else " hidden"
        group = f'<g class="period" data-days="{period}"'
        grid = "".join(_grid(frame, look, log=log))
        back.append(f'{group} data-view="{frame.view(unit)}"{hidden}>{grid}</g>')
        texts = [*_mark_texts(frame, marks), *_line_marks(frame, chart, days, styles)]
        if look.names == "ends":
            texts += _names(frame, chart, styles, _HEIGHT[look.size])
        front.append(f"{group}{hidden}>{''.join(texts)}</g>")
    body = _lines_svg(chart, days, styles, unit, filled=look.filled)
    return Markup(
        f'<div class="plot {look.size}" role="img" aria-label="{escape(about)}" '
        f'data-cell="{escape(cell)}" '
        f'data-form="{look.form}" data-unit="{unit:g}"{" data-log" if log else ""} '
        f'style="{_label_room(chart, look)}">'
        f"<svg>{''.join(back)}"
        f'<svg class="data" viewBox="{view}" preserveAspectRatio="none">{"".join(body)}</svg>'
        f"{''.join(front)}</svg></div>{_mark_key(marks)}"
    )


def _known_values(chart: Equity) -> list[float]:
    values: list[float] = []
    for curve in chart.curves:
        values += [value for value in curve.returns if value is not None]
    return values


def _grows_far(chart: Equity, look: ChartLook) -> bool:
    """Return whether a chart of shares needs a log axis, because its early part would look flat."""
    grown = [1.0 + value for value in _known_values(chart)]
    if look.form != "share" or look.filled or not grown:
        return False
    return min(grown) > 0.0 and max(grown) / min(grown) >= _FAR


def _on_log_axis(chart: Equity) -> Equity:
    """Return a chart in which equal distances are equal ratios."""
    curves = []
    for curve in chart.curves:
        curves.append(msgspec.structs.replace(curve, returns=_logs(curve.returns)))
    band = chart.band
    if band is not None:
        band = Band(low=_logs(band.low), middle=_logs(band.middle), high=_logs(band.high))
    return msgspec.structs.replace(chart, curves=tuple(curves), band=band)


def _unit(chart: Equity, look: ChartLook) -> float:
    """Return the unit of a chart's paths. Values are whole multiples of it."""
    if look.form != "number":
        return 1e-5
    # The largest value has five digits.
    largest = max((abs(value) for value in _known_values(chart) if value), default=1.0)
    return float(10.0 ** (math.floor(math.log10(largest)) - 4))


def _values_in_sight(
    chart: Equity, marks: Sequence[Marks], in_sight: Sequence[bool]
) -> list[float]:
    """Return the values that a frame must contain. ``in_sight`` marks the visible days."""
    rows = [curve.returns for curve in chart.curves]
    if chart.band is not None and all(in_sight):
        rows += [chart.band.low, chart.band.high]
    values: list[float] = []
    for row in rows:
        for value, is_shown in zip(row, in_sight, strict=True):
            if is_shown and value is not None:
                values.append(value)
    for one in marks:
        values += [value for _, value, _ in one.points if value is not None]
    return values


def _lines_svg(
    chart: Equity,
    days: Sequence[int],
    styles: Mapping[str, LineStyle],
    unit: float,
    *,
    filled: bool,
) -> list[str]:
    """Return the paths of the band and of the lines. The best line is drawn last, on top."""
    parts = []
    if chart.band is not None:
        above = list(zip(days, chart.band.high, strict=True))
        below = list(zip(days, chart.band.low, strict=True))
        parts.append(f'<path class="band" d="{_path([*above, *reversed(below)], unit)}Z"/>')
    for curve in reversed(chart.curves):
        style = styles[curve.entry]
        drawn = _path(zip(days, curve.returns, strict=True), unit)
        if filled and days:
            parts.append(f'<path class="under" d="{drawn}V0H{days[0]}Z"/>')
        parts.append(
            f'<path class="ink {style.hue}" data-entry="{escape(curve.entry)}" '
            f'data-label="{escape(curve.label)}" '
            f'stroke-width="{style.width:g}" stroke-dasharray="{style.dash}" d="{drawn}"/>'
        )
    return parts


def _mark_key(marks: Sequence[Marks]) -> str:
    """Return the legend of a chart's marks, or an empty text without marks."""
    items = []
    for one in marks:
        if one.label:
            glyph = f'<b class="mark {one.tone}">{one.glyph}</b>'
            items.append(f"<li>{glyph}{escape(one.label)}</li>")
    return f'<ul class="plot-key">{"".join(items)}</ul>' if items else ""


def _label_room(chart: Equity, look: ChartLook) -> str:
    """Return the style with the room for line names, measured in Latin letters."""
    longest = 0
    for curve in chart.curves if look.names != "none" else ():
        wide_letters = sum(east_asian_width(letter) in "WF" for letter in curve.label)
        longest = max(longest, len(curve.label) + wide_letters)
    return f"--wide:{min(longest, _LONGEST)};--thin:{min(longest, _LONGEST_ON_PHONES)}"


_FAR = 20.0
"""Smallest growth for which a chart of shares has a log axis."""


def _logs(values: Sequence[float | None]) -> tuple[float | None, ...]:
    return tuple(None if value is None else math.log1p(max(value, -0.999)) for value in values)


def _multiples(low: float, high: float, count: int) -> list[tuple[float, str]]:
    """Return positions on a log axis and the growth there.

    They are 1, 2 and 5 times powers of ten, or fewer.
    """
    first, last = math.floor(low / math.log(10.0)), math.ceil(high / math.log(10.0))
    every = math.ceil((last - first) / count)
    sizes = (1.0, 2.0, 5.0) if 3 * (last - first) <= 1.5 * count else (1.0,)
    found = []
    for power in range(first, last + 1):
        for size in sizes if power % every == 0 else ():
            grown = size * 10.0**power
            if low <= math.log(grown) <= high:
                scales = ((1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k"), (0.0, 1.0, ""))
                by, sign = next((by, sign) for least, by, sign in scales if grown >= least)
                found.append((math.log(grown), f"{grown / by:,.6g}{sign}×"))
    return found


_HELD = "Area chart of the share of the account held in each name"


def area_chart(
    sessions: Sequence[str], rows: Sequence[tuple[str, Sequence[float | None]]]
) -> Markup:
    """Return shares of an account as stacked areas, or as lines if a share is negative."""
    # Tenths of a per cent, as displayed by the script, so that sums of them are exact.
    days, unit = [day_number(session) for session in sessions], 1e-3
    table = np.array([[round(value or 0.0, 3) for value in values] for _, values in rows])
    stacked = not bool((table < 0).any())
    levels = table.cumsum(axis=0) if stacked else table
    frame = _Frame((days[0], days[-1]), levels.ravel().tolist(), zero=True)
    hues = [HUES[k % len(HUES)] if k < MOST_HELD else "rest" for k in range(len(rows))]
    body = []
    # The highest sum first: each area covers the areas below, so only its upper edge is written.
    for k in reversed(range(len(rows))):
        drawn = _path([*zip(days, levels[k].tolist(), strict=True)], unit)
        kind, tail = ("area", f"V0H{days[0]}Z") if stacked else ("ink", "")
        label = escape(rows[k][0])
        body.append(f'<path class="{kind} {hues[k]}" data-label="{label}" d="{drawn}{tail}"/>')
    key = "".join(
        f'<li><i class="{hue}"></i>{escape(name)}</li>'
        for (name, _), hue in zip(rows, hues, strict=True)
    )
    back = "".join(_grid(frame, ChartLook(size="mid")))
    return Markup(
        f'<div class="plot mid" role="img" aria-label="{_HELD}" data-form="share" '
        f'data-unit="{unit:g}"'
        f'{" data-stacked" if stacked else ""} style="--wide:0;--thin:0"><svg>{back}'
        f'<svg class="data" viewBox="{frame.view(unit)}" '
        f'preserveAspectRatio="none">{"".join(body)}</svg></svg>'
        f'</div><ul class="plot-key">{key}</ul>'
    )


def _path(points: Iterable[tuple[int, float | None]], unit: float) -> str:
    """Return the path through the known points.

    It uses whole units and relative moves, which takes a third of the bytes.
    """
    parts: list[str] = []
    at: tuple[int, int] | None = None
    for x, value in points:
        if value is None:
            at = None
            continue
        y = -round(value / unit)
        dx, dy = (x, y) if at is None else (x - at[0], y - at[1])
        parts.append(f"{'M' if at is None else 'l'}{dx}{'' if dy < 0 else ' '}{dy}")
        at = (x, y)
    return "".join(parts)


def ticks(low: float, high: float, count: int) -> tuple[float, list[float]]:
    """Return a round step and its multiples between two values, about ``count`` of them."""
    rough = (high - low) / max(1, count)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(
        size * power for size in (1.0, 2.0, 5.0, 10.0) if size * power >= rough * (1 - 1e-9)
    )
    return step, [
        round(k * step, 10) for k in range(math.ceil(low / step - 1e-9), int(high // step) + 1)
    ]


def _grid(frame: _Frame, look: ChartLook, *, log: bool = False) -> list[str]:
    count = max(2, _HEIGHT[look.size] // 50)
    step, levels = ticks(frame.low, frame.high, count)
    size = 100.0 * step if look.form == "share" else step
    digits = max(0, min(4, math.ceil(-math.log10(size) - 1e-9)))
    parts = []
    named = [
        (value, f"{value:.{digits}%}" if look.form == "share" else f"{value:,.{digits}f}")
        for value in levels
    ]
    for value, words in _multiples(frame.low, frame.high, count) if log else named:
        y, kind = frame.y(value), ' class="zero"' if value == 0 else ""
        parts.append(f'<line{kind} x2="100%" y1="{y}%" y2="{y}%"/>')
        parts.append(
            f'<text class="y" x="-6" y="{y}%" dy="4">{words.replace("-", numbers.MINUS)}</text>'
        )
    dates = _dates(frame.first, frame.last)
    # A phone has room for three labels.
    every = math.ceil(len(dates) / 3)
    for place, (day, words) in enumerate(dates):
        kind = "x" if place % every == 0 else "x more"
        parts.append(f'<text class="{kind}" x="{frame.x(day)}%" y="100%" dy="17">{words}</text>')
    return parts


def _dates(first: int, last: int) -> list[tuple[int, str]]:
    """Return a handful of days to label: days for a few weeks, otherwise months or years."""
    if last - first <= 60:
        every = math.ceil((last - first) / 6)
        return [
            (day, date.fromordinal(day).strftime("%m-%d")) for day in range(first, last + 1, every)
        ]
    months = (last - first) / 30.44
    every = next((one for one in (1, 2, 3, 6, 12, 24, 60) if months / one <= 6), 120)
    start = date.fromordinal(first)
    found = []
    for number in range(start.year * 12 + start.month - 1, last // 28):
        month = date(number // 12, number % 12 + 1, 1)
        if month.toordinal() > last:
            break
        if number % every == 0 and month.toordinal() >= first:
            found.append((month.toordinal(), f"{month:%Y}" if every >= 12 else f"{month:%Y-%m}"))
    return found


def _line_marks(
    frame: _Frame, chart: Equity, days: Sequence[int], styles: Mapping[str, LineStyle]
) -> list[str]:
    """Return a few marks on each line, staggered so that marks of adjacent lines do not overlap."""
    every = max(1, len(days) // _MARKS)
    found = []
    for place, curve in enumerate(reversed(chart.curves)):
        style = styles[curve.entry]
        spots = [
            (frame.x(days[at]), frame.y(value))
            for at in range(place * 5 % every, len(days), every)
            if days[at] >= frame.first and (value := curve.returns[at]) is not None
        ]
        if style.marker and spots:
            whose = f'class="mark {style.hue}" data-entry="{escape(curve.entry)}"'
            found.append(f"<text {whose} {_placed(spots, style.marker)}</text>")
    return found


def _mark_texts(frame: _Frame, marks: Sequence[Marks]) -> list[str]:
    found = []
    for one in marks:
        spots = [
            (
                frame.x(day_number(day)),
                97.0 if value is None else frame.y(value),
                (day_number(day), words),
            )
            for day, value, words in one.points
            if frame.first <= day_number(day) <= frame.last
        ]
        if one.glyph and spots:
            said = escape(msgspec.json.encode([words for _, _, words in spots]).decode())
            drawn = _placed([(x, y) for x, y, _ in spots], one.glyph)
            found.append(f'<text class="mark {one.tone}" data-points="{said}" {drawn}</text>')
    return found


def _placed(spots: Sequence[tuple[float, float]], glyph: str) -> str:
    """Return the positions and the text of one glyph's copies.

    An SVG text can position each of its letters.
    """
    across, down = (" ".join(f"{spot[axis]:g}%" for spot in spots) for axis in (0, 1))
    return f'x="{across}" y="{down}">{glyph * len(spots)}'


def _names(frame: _Frame, chart: Equity, styles: Mapping[str, LineStyle], height: int) -> list[str]:
    """Return the names at the ends of lines, moved apart if they would overlap."""
    ends = []
    for curve in chart.curves:
        last = next((value for value in reversed(curve.returns) if value is not None), None)
        if last is not None:
            ends.append((frame.y(last), curve))
    ends.sort(key=lambda end: end[0])
    gap = min(1600.0 / height, 100.0 / max(1, len(ends)))
    places = [y for y, _ in ends]
    for _ in range(80):
        moved = False
        for k in range(1, len(places)):
            need = gap - (places[k] - places[k - 1])
            if need > 0.1:
                places[k - 1] -= need / 2
                places[k] += need / 2
                moved = True
        places = [min(99.0, max(1.0, y)) for y in places]
        if not moved:
            break
    found = []
    for y, (_, curve) in zip(places, ends, strict=True):
        whole, short = _cut(curve.label, _LONGEST), _cut(curve.label, _LONGEST_ON_PHONES)
        texts = (
            [("name", whole)] if whole == short else [("name wide", whole), ("name thin", short)]
        )
        for kind, label in texts:
            found.append(
                f'<text class="{kind} {styles[curve.entry].hue}" '
                f'data-entry="{escape(curve.entry)}" '
                f'x="100%" dx="6" y="{y:.1f}%" dy="4">{escape(label)}</text>'
            )
    return found


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}\u2026"


# A verdict -----------------------------------------------------------------------------------

_WIDE, _HIGH = 560.0, 268.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 46.0, 8.0, 22.0, 46.0
_VERDICT = {
    "account": LineStyle(hue="h0"),
    "market": LineStyle(hue="rest", dash="5 3"),
    "drawdown": LineStyle(hue="h1", width=1.0),
}


def account_charts(curve: AccountCurve) -> tuple[Markup, Markup]:
    sessions = curve.sessions
    market_text = f", the market {numbers.difference(curve.market[-1])}" if curve.market else ""
    description = (
        f"The account from {sessions[0]} to {sessions[-1]}: "
        f"{numbers.difference(curve.account[-1])}{market_text}"
    )
    lines = [("account", "the account", curve.account)]
    lines += [("market", "the market", curve.market)] if curve.market else []
    grown = _plain_chart(sessions, lines, ChartLook(styles=_VERDICT, size="mid"), description)
    fallen = f"Drawdown of the account, {numbers.difference(min(curve.drawdown))} at its worst"
    look = ChartLook(styles=_VERDICT, size="low", names="room", filled=True)
    return grown, _plain_chart(
        sessions, [("drawdown", "the account", curve.drawdown)], look, fallen
    )


def rolling_chart(history: AccountHistory) -> Markup | None:
    """Return a chart of the rolling Sharpe ratio, or None if the history is too short."""
    if len(history.rolling) < 2:
        return None
    sessions, ratios = zip(*history.rolling, strict=True)
    about = (
        f"Sharpe ratio over the last {ROLLING} sessions, from {min(ratios):.1f} to "
        f"{max(ratios):.1f}"
    )
    look = ChartLook(
        styles={"sharpe": LineStyle(hue="h0")}, size="low", form="number", names="none", zero=True
    )
    return _plain_chart(sessions, [("sharpe", "Sharpe ratio", ratios)], look, about)


def _plain_chart(
    days: Sequence[str],
    lines: Sequence[tuple[str, str, Sequence[float]]],
    look: ChartLook,
    about: str,
) -> Markup:
    places = range(len(days))
    curves = tuple(
        Curve(entry=entry, label=label, returns=picked(values, places))
        for entry, label, values in lines
    )
    return line_chart(Equity(days=tuple(days), curves=curves, sessions=len(days)), look, about)


class _Bar(NamedTuple):
    """A step of a waterfall: start and end of its bar, and its interval."""

    step: WaterfallStep
    start: float
    end: float
    span: tuple[float, float] | None


class _BarFrame(NamedTuple):
    """The values at the bottom and top of a waterfall, and the width of one step."""

    low: float
    high: float
    width: float

    def y(self, value: float) -> float:
        height = _HIGH - _BOTTOM - _TOP
        return round(_HIGH - _BOTTOM - (value - self.low) / (self.high - self.low) * height, 1)


def waterfall_svg(account: AgentAssay) -> Markup | None:
    """Return the steps from zero to the return as bars with intervals, or None without parts.

    It has a fixed size, because notebooks display it outside of our pages.
    """
    steps = waterfall(account)
    if not steps:
        return None
    bars = _bars(steps)
    low, high = _bar_range(bars)
    frame = _BarFrame(low, high, (_WIDE - _LEFT - _RIGHT) / len(bars))
    parts = _bar_grid(ticks(low, high, 5)[1], frame.y)
    for place, bar in enumerate(bars):
        parts += _bar_svg(bar, _LEFT + place * frame.width, frame)
    step_texts = ", ".join(f"{step.label} {numbers.difference(step.value)}" for step in steps)
    label = escape(f"What the return is made of: {step_texts}")
    return Markup(
        f'<svg class="drawing" viewBox="0 0 {_WIDE:g} {_HIGH:g}" role="img" aria-label="{label}">'
        f"{''.join(parts)}</svg>"
    )


def _bars(steps: Sequence[WaterfallStep]) -> list[_Bar]:
    level = 0.0
    bars = []
    for step in steps:
        start = 0.0 if step.kind == "total" else level
        level = start + step.value
        span = None
        if step.low is not None and step.high is not None:
            span = (start + step.low, start + step.high)
        bars.append(_Bar(step, start, level, span))
    return bars


def _bar_range(bars: Sequence[_Bar]) -> tuple[float, float]:
    """Return the lowest and the highest visible value.

    The bars must stay visible, so intervals get at most twice the height of the bars on either
    side.
    """
    levels = [0.0]
    ends: list[float] = []
    for bar in bars:
        levels += [bar.start, bar.end]
        ends += bar.span or ()
    low, high = min(levels), max(levels)
    room = 2.0 * (high - low)
    lowest, highest = min(ends, default=low), max(ends, default=high)
    low = min(low, max(low - room, lowest))
    high = max(high, min(high + room, highest))
    pad = 0.06 * ((high - low) or 0.01)
    return low - pad, high + pad


def _bar_svg(bar: _Bar, x: float, frame: _BarFrame) -> list[str]:
    """Return a bar at ``x`` with its link to the next bar, its interval, value and name."""
    step, width = bar.step, frame.width
    top, bottom = sorted((frame.y(bar.start), frame.y(bar.end)))
    kind = "gain" if step.value >= 0 else "loss"
    if step.kind == "total":
        kind = "sum"
    middle = round(x + width / 2, 1)
    parts = [
        f'<rect class="{kind}" x="{x + 0.18 * width:.1f}" y="{top}" width="{0.64 * width:.1f}" '
        f'height="{max(bottom - top, 1.0):.1f}" rx="2"/>'
    ]
    if step.kind != "total":
        y = frame.y(bar.end)
        ends = f'x1="{middle:.1f}" x2="{middle + width:.1f}" y1="{y}" y2="{y}"'
        parts.append(f'<line class="link" {ends}/>')
    above = top
    if bar.span is not None:
        above = min(top, frame.y(min(bar.span[1], frame.high)))
        for x1, x2, y1, y2 in _whisker(bar.span, middle, frame):
            parts.append(f'<line class="whisker" x1="{x1}" x2="{x2}" y1="{y1}" y2="{y2}"/>')
    y, value = max(above - 5, 11), numbers.difference(step.value)
    parts.append(f'<text class="value" x="{middle}" y="{y:.1f}">{value}</text>')
    for row, words in enumerate(_fitting(step.label, width)):
        y = _HIGH - _BOTTOM + 15 + 12 * row
        parts.append(f'<text class="name" x="{middle}" y="{y}">{escape(words)}</text>')
    return parts


def _whisker(
    span: tuple[float, float], middle: float, frame: _BarFrame
) -> list[tuple[float, float, float, float]]:
    """Return the lines of an interval. An end outside the chart is an arrow."""
    foot, head = frame.y(max(span[0], frame.low)), frame.y(min(span[1], frame.high))
    lines = [(middle, middle, foot, head)]
    for y, is_beyond, back in (
        (foot, span[0] < frame.low, -6.0),
        (head, span[1] > frame.high, 6.0),
    ):
        if is_beyond:
            lines += [(middle, middle + side, y, round(y + back, 1)) for side in (-4, 4)]
        else:
            lines.append((middle - 4, middle + 4, y, y))
    return lines


def _bar_grid(levels: Sequence[float], at: Callable[[float], float]) -> list[str]:
    far = max(map(abs, levels), default=0.0)
    # Enough digits that all tick labels differ. Small moves need more.
    digits = (
        0 if far >= 0.05 or all(abs(100 * one - round(100 * one)) < 1e-6 for one in levels) else 1
    )
    digits = 2 if 0.0 < far < 0.002 else digits
    parts = []
    for level in levels:
        y, kind = at(level), "zero" if level == 0 else "grid"
        if far >= 100.0 and level:
            words = f"{level / 10:.0f}k%"
        else:
            words = f"{level:.{digits if level else 0}%}"
        words = words.replace("-", numbers.MINUS)
        parts.append(f'<line class="{kind}" x1="{_LEFT}" x2="{_WIDE - _RIGHT}" y1="{y}" y2="{y}"/>')
        parts.append(f'<text class="tick" x="{_LEFT - 5}" y="{y + 4}">{words}</text>')
    return parts


def _fitting(label: str, width: float) -> list[str]:
    """Return a label in lines that do not overlap the adjacent label."""

    def sign_width(sign: str) -> float:
        if sign.isupper():
            return 7.2
        return 3.5 if sign in " .,ijlt-" else 6.2

    def wide(text: str) -> float:
        """Return the approximate width of a label in small letters, in pixels."""
        return sum(map(sign_width, text))

    lines: list[str] = []
    for word in label.replace("-", "- ").split():
        if lines:
            blank = "" if lines[-1].endswith("-") else " "
            joined = f"{lines[-1]}{blank}{word}"
            if wide(joined) <= width:
                lines[-1] = joined
                continue
        lines.append(word)
    return lines[:3]
