"""Lines that can be told apart without colour: a hue, a dash and a marker per agent.

The hues are those of Okabe and Ito, chosen to stay distinct for colour-blind readers, darkened or lightened so
that a line stands out on its background; their values for both themes are in ``page.css``. The baseline is always
grey and dashed.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

HUES = ("h0", "h1", "h2", "h3", "h4", "h5")
DASHES = ("", "2 3", "7 3 2 3", "11 3 2 3")
MARKERS = ("●", "■", "◆", "▲", "✕", "★", "▼", "✚", "⬟")


class LineStyle(msgspec.Struct, frozen=True, kw_only=True):
    """How one agent is drawn everywhere: the class of its hue, its dash as SVG writes it, and its marker."""

    hue: str
    dash: str = ""
    marker: str = ""
    width: float = 2.0


BASELINE = LineStyle(hue="base", dash="6 4", marker="○", width=2.4)
INDEX = LineStyle(hue="rest", dash="2 3", width=1.2)
PLAIN = LineStyle(hue="base", width=1.4)


def styles(names: Sequence[str], baseline: str) -> dict[str, LineStyle]:
    """Return a style per agent; an agent's style depends on its place in ``names`` only."""
    found = {baseline: BASELINE} if baseline in names else {}
    for place, name in enumerate(name for name in names if name != baseline):
        found[name] = LineStyle(
            hue=HUES[place % len(HUES)],
            dash=DASHES[place // len(HUES) % len(DASHES)],
            marker=MARKERS[place % len(MARKERS)],
        )
    return found
