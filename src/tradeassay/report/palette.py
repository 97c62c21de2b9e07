"""Lines that can be told apart without colour: a hue, a dash and a marker per agent.

The hues are those of Okabe and Ito, chosen to stay distinct for colour-blind readers, darkened or lightened
so that a line stands out on its background. The baseline is always grey and dashed.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

LIGHT = ("#0b57a4", "#d1490f", "#00805c", "#b84a91", "#a87400", "#1d86bf")
DARK = ("#5c97ee", "#f2854c", "#2cc79a", "#e59ac4", "#efd04d", "#8fdcff")
DASHES = ("solid", "dot", "dashdot", "longdashdot")
MARKERS = ("circle", "square", "diamond", "triangle-up", "x", "star", "triangle-down", "cross", "pentagon")
_SVG_DASH = {"solid": "", "dot": "2 3", "dashdot": "7 3 2 3", "longdashdot": "11 3 2 3", "dash": "6 4"}


class LineStyle(msgspec.Struct, frozen=True, kw_only=True):
    """How one agent is drawn everywhere; ``light`` and ``dark`` are its colour by theme."""

    light: str
    dark: str
    dash: str
    marker: str
    width: float = 2.0

    @property
    def svg_dash(self) -> str:
        """The dash as an SVG ``stroke-dasharray``."""
        return _SVG_DASH[self.dash]


BASELINE = LineStyle(light="#4b5563", dark="#c3cad6", dash="dash", marker="circle-open", width=2.4)
INDEX = LineStyle(light="#8a93a0", dark="#7d8897", dash="dot", marker="", width=1.2)


def styles(names: Sequence[str], baseline: str) -> dict[str, LineStyle]:
    """Return a style per agent; an agent's style depends on its place in ``names`` only."""
    found: dict[str, LineStyle] = {}
    place = 0
    for name in names:
        if name == baseline:
            found[name] = BASELINE
            continue
        hue = place % len(LIGHT)
        found[name] = LineStyle(
            light=LIGHT[hue],
            dark=DARK[hue],
            dash=DASHES[place // len(LIGHT) % len(DASHES)],
            marker=MARKERS[place % len(MARKERS)],
        )
        place += 1
    return found
