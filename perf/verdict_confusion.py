"""How often the verdict is right: planted agents of every kind in worlds with unseen seeds.

    python perf/verdict_confusion.py [--worlds 20] [--noise 20] [--json] [--svg power.svg]

Every world has 200 names, a year of history and a year that is played. Prints the confusion matrix (planted kind
by verdict), the false-positive rate of the test behind "skill supported" at its nominal level, and the power over
levels of skill. The exit status is 1 when a bar is missed: every leak found and nobody else accused, false skill
among agents without any at or below its nominal level (Wilson's interval counted).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

import msgspec

from tradeassay.assay.planted import (
    EXPECTED,
    Bench,
    Confusion,
    PlantConfig,
    PlantedWorld,
    confusion,
    edge_tests,
    planted_world,
)
from tradeassay.assay.verdict import KINDS, VerdictConfig
from tradeassay.core.measure import Measure
from tradeassay.metrics import rate_measure

FIRST = 710_000
"""Seeds from here on; nothing was tuned on them."""
SKILLS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)
NOMINAL = 0.025


def share(hits: int, n: int) -> Measure:
    """Return a share with Wilson's interval."""
    return rate_measure(hits, n, nothing="nothing was judged", level=0.95)


def shown(measure: Measure) -> str:
    """Return a share as the tables print it."""
    return f"{measure.value:.1%} ({measure.low:.1%} to {measure.high:.1%})"


def power_curve(worlds: list[PlantedWorld], config: VerdictConfig) -> list[dict[str, object]]:
    """Return, for every level of skill, the mean true ratio and how often the test and the verdict see it."""
    rows: list[dict[str, object]] = []
    for skill in SKILLS:
        planting = PlantConfig(skill=skill)
        tests = [one for world in worlds for one in edge_tests(world, "skilled", planting, config, agents=3)]
        ratio = sum(one.ratio for one in tests) / len(tests)
        said = [
            Bench(world, planting, config, portfolios=200).judge("skilled").verdict.kind
            for world in worlds[: max(4, len(worlds) // 2)]
        ]
        rows.append(
            {
                "skill": skill,
                "ratio": round(ratio, 2),
                "test": share(sum(one.above for one in tests), len(tests)),
                "verdict": share(sum(kind in ("skill", "mixed") for kind in said), len(said)),
            }
        )
    return rows


def print_tables(made: Confusion, false: Measure, curve: list[dict[str, object]], seconds: float) -> None:
    """Print everything as Markdown."""
    out = sys.stdout.write
    out(f"{made.worlds} worlds, {seconds:.0f} s of CPU\n\n| planted | " + " | ".join(KINDS) + " | right |\n")
    out("|---" * (len(KINDS) + 2) + "|\n")
    for plant, row in made.counts.items():
        cells = " | ".join(
            f"**{row[kind]}**" if kind == EXPECTED[plant] else str(row[kind] or "") for kind in KINDS
        )
        out(f"| {plant} | {cells} | {shown(made.right[plant])} |\n")
    out(f"\nfalse skill among noise and lucky: {shown(made.false_skill)}, nominal {NOMINAL:.1%}\n")
    out(f"the test alone on honest noise: {shown(false)}, nominal {NOMINAL:.1%}\n\n")
    out("| share of names chosen with knowledge | mean ratio | the test sees it | the verdict says so |\n")
    out("|---|---|---|---|\n")
    for row in curve:
        out(f"| {row['skill']} | {row['ratio']} | {shown(row['test'])} | {shown(row['verdict'])} |\n")  # type: ignore[arg-type]


def power_svg(curve: list[dict[str, object]]) -> str:
    """Return the power curve as a picture: how often skill is seen, by the information ratio it comes to."""
    left, top, width, height = 60, 20, 520, 260
    most = max(2.0, *(float(str(row["ratio"])) for row in curve))

    def at(ratio: float, seen: float) -> tuple[float, float]:
        return round(left + width * max(ratio, 0.0) / most, 1), round(top + height * (1.0 - seen), 1)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + width + 30} {top + height + 60}" '
        'font-family="sans-serif" font-size="12" fill="#56606e">',
        f'<rect width="{left + width + 30}" height="{top + height + 60}" fill="#ffffff"/>',
    ]
    for share_of in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = at(0.0, share_of)[1]
        parts.append(f'<line x1="{left}" x2="{left + width}" y1="{y}" y2="{y}" stroke="#e8ecf0"/>')
        parts.append(f'<text x="{left - 8}" y="{y + 4}" text-anchor="end">{share_of:.0%}</text>')
    for ratio in range(int(most) + 1):
        x = at(ratio, 0.0)[0]
        parts.append(f'<text x="{x}" y="{top + height + 18}" text-anchor="middle">{ratio}</text>')
    low = at(0.0, NOMINAL)[1]
    parts.append(
        f'<line x1="{left}" x2="{left + width}" y1="{low}" y2="{low}" stroke="#a1360a" stroke-dasharray="4 4"/>'
    )
    for name, colour, label in (("test", "#0b57a4", "the test"), ("verdict", "#d1490f", "the verdict")):
        points = []
        for row in curve:
            measure, ratio_at = row[name], float(str(row["ratio"]))
            assert isinstance(measure, Measure)
            x, y = at(ratio_at, measure.value or 0.0)
            points.append(f"{x},{y}")
            ends = at(ratio_at, measure.low or 0.0)[1], at(ratio_at, measure.high or 0.0)[1]
            parts.append(
                f'<line x1="{x}" x2="{x}" y1="{ends[0]}" y2="{ends[1]}" stroke="{colour}" opacity="0.4"/>'
            )
            parts.append(f'<circle cx="{x}" cy="{y}" r="4" fill="{colour}"/>')
        parts.append(f'<polyline points="{" ".join(points)}" fill="none" stroke="{colour}" stroke-width="2"/>')
        y = top + (16 if name == "test" else 34)
        parts.append(f'<text x="{left + 14}" y="{y}" fill="{colour}">\u25cf {label}</text>')
    caption = "yearly information ratio of the planted agents, one year of sessions"
    parts.append(
        f'<text x="{left + width / 2}" y="{top + height + 42}" text-anchor="middle">{caption}</text></svg>'
    )
    return "\n".join(parts) + "\n"


def main() -> int:
    """Make the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=20)
    parser.add_argument("--noise", type=int, default=20, help="honest noise agents per world for the level")
    parser.add_argument("--first", type=int, default=FIRST, help="seed of the first world")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--svg", type=Path, help="write the power curve as a picture")
    asked = parser.parse_args()
    started = time.process_time()
    config = VerdictConfig(draws=500)
    worlds = [planted_world(asked.first + seed) for seed in range(asked.worlds)]
    made = confusion(worlds, config=config)
    noise = [
        one for world in worlds for one in edge_tests(world, "noise", PlantConfig(), config, agents=asked.noise)
    ]
    false = share(sum(one.above for one in noise), len(noise))
    curve = power_curve(worlds, config)
    if asked.svg is not None:
        asked.svg.write_text(power_svg(curve), encoding="utf-8")
    seconds = time.process_time() - started
    if asked.json:
        text = msgspec.json.encode({"confusion": made, "false": false, "curve": curve, "cpu_seconds": seconds})
        sys.stdout.write(json.dumps(json.loads(text), indent=2) + "\n")
    else:
        print_tables(made, false, curve, seconds)
    accused = sum(row["leak"] for plant, row in made.counts.items() if plant != "leaking")
    found = made.counts["leaking"]["leak"] == made.worlds
    level = (false.low or 0.0) <= NOMINAL and (made.false_skill.low or 0.0) <= NOMINAL
    good = found and not accused and level
    sys.stderr.write("met\n" if good else "MISSED\n")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
