"""Draw what was examined while training: python examples/training/picture.py LOG=NAME ... >
training.svg
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

WIDTH, HEIGHT, LEFT, TOP = 290, 160, 54, 34
COLOURS = ("#059669", "#b45309", "#9333ea", "#2563eb")
PANELS = (
    ("validation", "solved", "solved, held-out tasks"),
    ("unseen families", "solved", "solved, unseen families"),
    ("", "reward", "reward as paid in training"),
    ("", "trade", "trades in training"),
)
ROWS = len(PANELS) // 2


def points(log: Path, which: str, measure: str) -> list[tuple[float, float]]:
    """Return seconds and share of every examination of a set, or of five steps each."""
    lines = [json.loads(line) for line in log.open()]
    if which:
        looks = [line for line in lines if line["event"] == "examined" and line["set"] == which]
        # Where the warm start was examined, "step 0" is the same again on fewer tasks.
        twice = any(line["when"] == "after the warm start" for line in looks)
        return [
            (line["s"], line[measure]) for line in looks if not (twice and line["when"] == "step 0")
        ]
    steps = [line for line in lines if line["event"] == "step"]
    parts = [steps[at : at + 5] for at in range(0, len(steps) - 4, 5)]
    return [(part[2]["s"], sum(step[measure] for step in part) / 5) for part in parts]


def main() -> None:
    """Print the picture."""
    logs = [(name, Path(file)) for file, name in (word.split("=", 1) for word in sys.argv[1:])]
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * (WIDTH + 70)} '
        f'{ROWS * (HEIGHT + 70) + 50}" '
        'font-family="sans-serif" font-size="16" fill="#6b7280" role="img"><title>Training on the '
        "reward</title>"
    ]
    longest = max(
        s for _, log in logs for which, *_ in PANELS[:2] for s, _ in points(log, which, "solved")
    )
    for place, (which, measure, title) in enumerate(PANELS):
        x0, y0 = LEFT + (place % 2) * (WIDTH + 70), TOP + (place // 2) * (HEIGHT + 70)
        out.append(f'<text x="{x0}" y="{y0 - 14}" font-weight="bold">{title}</text>')
        for share in (0.0, 0.5, 1.0):
            y = y0 + HEIGHT * (1 - share)
            out.append(f'<line x1="{x0}" x2="{x0 + WIDTH}" y1="{y}" y2="{y}" stroke="#e5e7eb"/>')
            out.append(f'<text x="{x0 - 6}" y="{y + 5}" text-anchor="end">{share:.0%}</text>')
        for minute in range(0, int(longest // 60) + 1, 4):
            x = x0 + WIDTH * 60 * minute / longest
            out.append(
                f'<text x="{x:.0f}" y="{y0 + HEIGHT + 18}" text-anchor="middle">{minute} min</text>'
            )
        for (name, log), colour in zip(logs, COLOURS, strict=False):
            path = [
                (x0 + WIDTH * s / longest, y0 + HEIGHT * (1 - v))
                for s, v in points(log, which, measure)
            ]
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in path)
            out.append(
                f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>'
            )
            out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in path]
            if place == 0:
                down, right = divmod(logs.index((name, log)), 2)
                at, low = LEFT + right * (WIDTH + 70), ROWS * (HEIGHT + 70) + 12 + 24 * down
                out.append(f'<circle cx="{at}" cy="{low - 6}" r="6" fill="{colour}"/>')
                out.append(f'<text x="{at + 12}" y="{low}">{name}</text>')
    print("\n".join([*out, "</svg>"]))


if __name__ == "__main__":
    main()
