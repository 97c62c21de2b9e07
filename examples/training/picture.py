"""Draw what was examined while training: python examples/training/picture.py LOG=NAME ... > training.svg"""

from __future__ import annotations

import json
import sys
from pathlib import Path

WIDTH, HEIGHT, LEFT, TOP = 300, 150, 40, 34
COLOURS = ("#2563eb", "#b45309", "#6b7280")
PANELS = (
    ("seen families", "solved", "solved, unseen variants of seen families"),
    ("unseen families", "solved", "solved, unseen families"),
    ("seen families", "trade", "trades, unseen variants of seen families"),
    ("unseen families", "trade", "trades, unseen families"),
)


def points(log: Path, which: str, measure: str) -> list[tuple[float, float]]:
    """Return seconds and share of every examination; an untrained model solved nothing and hardly ran."""
    lines = [json.loads(line) for line in log.open()]
    return [(line["s"], line[measure]) for line in lines if line["event"] == "examined" and line["set"] == which]


def main() -> None:
    """Print the picture."""
    logs = [(name, Path(file)) for file, name in (word.split("=", 1) for word in sys.argv[1:])]
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {2 * (WIDTH + 60)} {2 * (HEIGHT + 70) + 20}" '
        'font-family="sans-serif" font-size="10" fill="#6b7280" role="img"><title>Training on the reward</title>'
    ]
    longest = max(s for _, log in logs for which, *_ in PANELS for s, _ in points(log, which, "solved"))
    for place, (which, measure, title) in enumerate(PANELS):
        x0, y0 = LEFT + (place % 2) * (WIDTH + 60), TOP + (place // 2) * (HEIGHT + 70)
        out.append(f'<text x="{x0}" y="{y0 - 14}" font-weight="bold">{title}</text>')
        for share in (0.0, 0.5, 1.0):
            y = y0 + HEIGHT * (1 - share)
            out.append(f'<line x1="{x0}" x2="{x0 + WIDTH}" y1="{y}" y2="{y}" stroke="#e5e7eb"/>')
            out.append(f'<text x="{x0 - 6}" y="{y + 3}" text-anchor="end">{share:.0%}</text>')
        for minute in range(0, int(longest // 60) + 1, 2):
            x = x0 + WIDTH * 60 * minute / longest
            out.append(f'<text x="{x:.0f}" y="{y0 + HEIGHT + 14}" text-anchor="middle">{minute} min</text>')
        for (name, log), colour in zip(logs, COLOURS, strict=False):
            path = [(x0 + WIDTH * s / longest, y0 + HEIGHT * (1 - v)) for s, v in points(log, which, measure)]
            line = " ".join(f"{x:.1f},{y:.1f}" for x, y in path)
            out.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="2"/>')
            out += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in path]
            if place == 0:
                at = LEFT + 150 * logs.index((name, log))
                low = 2 * (HEIGHT + 70) + 12
                out.append(f'<circle cx="{at}" cy="{low - 3}" r="4" fill="{colour}"/>')
                out.append(f'<text x="{at + 8}" y="{low}">{name}</text>')
    print("\n".join([*out, "</svg>"]))


if __name__ == "__main__":
    main()
