"""From the folders that drive.py filled to one table by dose, with intervals over worlds, and its
pictures.

    python analyse.py RESULTS [--out FOLDER]

RESULTS has one folder per model (``qwen-main``, ``qwen-placebo`` ...). A measure that a world lacks
is left out of its mean, and the table says of how many worlds it is.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from answers import claimed
from worlds import DOSES, SPANS, STUDY, World, make_world

Row = dict[str, Any]
MEASURES: dict[str, tuple[str, float | None]] = {
    "first": ("truth likeliest of five by log-probability", 0.2),
    "hit": ("open questions: moves right", 0.5),
    "closes": ("open questions: closes within 5 %", None),
    "refused": ('"unknown", where it may be said', None),
    "familiar": ("Min-K% of real less invented names", None),
    "interaction": ("more right per deviation of Min-K%", 0.0),
    "claims": ("days on which it claims to remember", None),
    "claims_blind": ("the same under the mask", 0.0),
    "said": ("moves written before trading, exact", None),
    "way": ("of them in the right direction", 0.5),
    "acts": ("stated moves that it acts on", 0.5),
    "bright": ("return with names and dates, % a window", None),
    "gap": ("of it lost under the mask, %", 0.0),
    "traded_hit": ("moves of what it traded, right", 0.5),
    "explained": ("edge that recall explains, % a window", 0.0),
    "rest": ("edge that is left, % a window", 0.0),
    "unread": ("decisions kept when returns are mirrored", None),
    "dated": ("decisions kept under a false date", None),
}
"""What is shown, and its value without memory where that is known."""


def value(measure: Any) -> float | None:
    """Return a measure's number."""
    return measure.get("value") if isinstance(measure, dict) else measure


def world_row(folder: Path, name: str) -> Row:
    """Return what was measured in one world."""
    world = make_world("dose", int(name.removeprefix("dose-")))
    row: Row = {"world": name, "dose": world.dose} | _played(folder / "runs" / name, world)
    if (audit := _read(folder / "recall" / f"{name}.json")) is not None:
        row |= _audited(audit)
    if (traded := _read(folder / "traded" / f"{name}.json")) is not None:
        row |= {f"traded_{key}": found for key, found in _audited(traded).items()}
    if (changed := _read(folder / "counterfactual" / f"{name}.json")) is not None:
        row |= _changed(changed)
    for one in _read(folder / "assay" / f"{name}.json") or []:
        mask = "" if "mask=bright" in one["cell"] else "_blind"
        row[f"word{mask}"] = one["verdict"]["kind"]
        split = ((one["recall"] or {}).get("split") or {}).get("names") or {}
        for part in ("explained", "rest"):
            # A year of 252 sessions: what a window of it is.
            found = value(split.get(part))
            row[f"{part}{mask}"] = None if found is None else found * 100 * split[part]["n"] / 252
    return row


def _audited(audit: Row) -> Row:
    real = [one for one in audit["answers"] if one.get("stands_for") is None]
    moves = [one for one in real if one["kind"] in ("day", "week", "month")]
    answered = [one for one in moves if one.get("right") is not None]
    closes = [
        one["right"] for one in real if one["kind"] == "close" and one.get("right") is not None
    ]
    may = [bool(one.get("refused")) for one in real if one.get("wording", 0) % 2 == 0]
    weighed = audit.get("propensity") or {}
    return {
        "told": audit["told"],
        "recall": value(audit["recall"]),
        "hit": float(np.mean([one["right"] for one in answered])) if answered else None,
        "refused": float(np.mean(may)) if may else None,
        "closes": float(np.mean(closes)) if closes else None,
        "first": value(weighed.get("first")),
        "first_low": (weighed.get("first") or {}).get("low"),
        "familiar": value(weighed.get("familiar")),
        "interaction": value(weighed.get("interaction")),
        "asked": len(audit["answers"]),
    }


def _played(run: Path, world: World) -> Row:
    """Return what was earned, and what the answers say of the week to come before they trade."""
    row: Row = {}
    scores = _read(run / "scores.json")
    for one in (scores or {}).get("episodes", []):
        if not one["baseline"]:
            row["bright" if "mask=bright" in one["cell"] else "blind"] = _percent(
                one["measures"]["cumulative_return"]
            )
    if row.get("bright") is not None and row.get("blind") is not None:
        row["gap"] = row["bright"] - row["blind"]
    exact, ways, acts = [], [], []
    for mask, key in (("bright", "claims"), ("blinded", "claims_blind")):
        claims = []
        for text in _first_answers(run, mask):
            found = claimed(text)
            claims.append(found is not None)
            if found is not None and mask == "bright" and found[0] in world.days:
                day = world.days.index(found[0])
                for one in found[1]:
                    if one.name in world.names:
                        true = (
                            world.move(day, world.names.index(one.name), SPANS[STUDY.span]) or 0.0
                        )
                        exact.append(one.is_exactly(true))
                        ways.append(one.rises == (true > 0))
                        acts.append(one.follows)
        row[key] = float(np.mean(claims)) if claims else None
    if len(exact) >= 10:
        row |= {
            "said": float(np.mean(exact)),
            "way": float(np.mean(ways)),
            "acts": float(np.mean(acts)),
        }
    return row


def _first_answers(run: Path, mask: str) -> Iterator[str]:
    for recording in (run / "models").glob(f"*mask={mask}*"):
        for line in recording.read_text().splitlines():
            entry = json.loads(line)
            if entry["type"] == "answer" and entry["asked"]["attempt"] == 1:
                yield entry["reply"].get("text") or ""


def _percent(measure: Any) -> float | None:
    found = value(measure)
    return None if found is None else found * 100


def _changed(changed: Row) -> Row:
    """Return how many decisions about a name stay as they were, in the episode with names and
    dates shown.
    """
    same: dict[str, list[bool]] = {}
    for one in changed["decisions"]:
        if "mask=bright" in one["episode"]:
            for name in one["recorded"].keys() | one["now"].keys():
                same.setdefault(one["arm"], []).append(
                    one["recorded"].get(name, 0.0) == one["now"].get(name, 0.0)
                )
    kept = {arm: float(np.mean(each)) for arm, each in same.items()}
    arms = {"unread": "prices", "dated": "date", "again": "again"}
    return {name: kept.get(arm) for name, arm in arms.items()} | {"by_name": changed["by_name"]}


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def rows_of(folder: Path) -> list[Row]:
    """Return all worlds of one model."""
    names = {path.stem for part in ("runs", "recall") for path in (folder / part).glob("dose-*")}
    return [world_row(folder, name) for name in sorted(names)]


def interval(values: list[float]) -> tuple[float, float]:
    """Return a mean over worlds and half its 95 % interval by Student's t."""
    from scipy.stats import t

    mean = float(np.mean(values))
    if len(values) < 2:
        return mean, math.nan
    return mean, float(
        t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values))
    )


def by_dose(rows: list[Row], measure: str) -> dict[int, tuple[float, float, int]]:
    """Return mean, half interval and number of worlds by dose."""
    found = {}
    for dose in DOSES:
        values = [
            row[measure] for row in rows if row["dose"] == dose and row.get(measure) is not None
        ]
        if values:
            found[dose] = (*interval(values), len(values))
    return found


def share(rows: list[Row], test: Callable[[Row], bool | None]) -> tuple[int, int]:
    """Return how many worlds pass a test, and how many could be asked."""
    asked = [test(row) for row in rows]
    known = [one for one in asked if one is not None]
    return sum(known), len(known)


TESTS: dict[str, Callable[[Row], bool | None]] = {
    "found by log-probability (interval above a fifth)": lambda row: (
        None if row.get("first_low") is None else row["first_low"] > 0.2
    ),
    "recalls (moves, closes or log-probabilities)": lambda row: (
        row["told"] == "recalls" if "told" in row else None
    ),
    "recalls what it traded": lambda row: (
        row["traded_told"] == "recalls" if "traded_told" in row else None
    ),
    "answers by name, not by series": lambda row: row.get("by_name"),
    "verdict: memory": lambda row: row["word"] == "memory" if row.get("word") else None,
    "verdict under the mask: memory": lambda row: (
        row["word_blind"] == "memory" if row.get("word_blind") else None
    ),
}


def _cell(mean: float, half: float, worlds: int) -> str:
    return f"{mean:.2f}" if worlds < 2 else f"{mean:.2f} ±{half:.2f}"


def table(models: dict[str, list[Row]]) -> str:
    """Return the numbers as Markdown: means over worlds with 95 % intervals."""
    lines = []
    for model, rows in models.items():
        doses = [dose for dose in DOSES if any(row["dose"] == dose for row in rows)]
        lines += [
            f"### {model}",
            "",
            f"| measure | {' | '.join(f'dose {dose}' for dose in doses)} |",
            "|---" * (len(doses) + 1) + "|",
        ]
        for measure, (title, _) in MEASURES.items():
            found = by_dose(rows, measure)
            if found:
                cells = [_cell(*found[d]) if d in found else "" for d in doses]
                lines.append(f"| {title} | {' | '.join(cells)} |")
        for title, test in TESTS.items():
            counts = [share([row for row in rows if row["dose"] == dose], test) for dose in doses]
            if any(whole for _, whole in counts):
                lines.append(
                    f"| {title} | "
                    f"{' | '.join(f'{n} of {whole}' if whole else '' for n, whole in counts)} |"
                )
        lines.append("")
    return "\n".join(lines)


COLOURS = {"main": "#2563eb", "placebo": "#d97706"}


def picture(
    panels: list[tuple[str, float | None, dict[str, dict[int, tuple[float, float, int]]]]],
) -> str:
    """Return panels side by side as SVG: means with whiskers over doses, one colour per model."""
    width, height, left, top = 270, 190, 44, 30
    columns = min(3, len(panels))
    whole = f"{columns * width} {math.ceil(len(panels) / columns) * height + 20}"
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {whole}" font-family="sans-serif" '
        'font-size="10" '
        'fill="#6b7280" role="img"><title>Dose and measure</title>'
    ]
    for number, (title, none, series) in enumerate(panels):
        x0, y0 = (number % columns) * width, (number // columns) * height
        ends = [
            end
            for found in series.values()
            for m, h, _ in found.values()
            for end in (m, m - h, m + h)
        ]
        ends = [end for end in ends if math.isfinite(end)] + ([none] if none is not None else [])
        low, high = min(ends), max(ends)
        room = (high - low) * 0.06 or 0.5
        low, high = low - room, high + room

        def at(dose: int, x0: float = x0) -> float:
            return x0 + left + 16 + DOSES.index(dose) * (width - left - 36) / (len(DOSES) - 1)

        def up(value: float, y0: float = y0, low: float = low, high: float = high) -> float:
            return y0 + top + (height - top - 34) * (high - value) / (high - low)

        out.append(f'<text x="{x0 + left}" y="{y0 + 16}" font-weight="bold">{title}</text>')
        for mark in (low + room, high - room):
            out.append(
                f'<text x="{x0 + left - 6}" y="{up(mark) + 4:.1f}" '
                f'text-anchor="end">{mark:.2g}</text>'
            )
        if none is not None:
            out.append(
                f'<line x1="{x0 + left}" x2="{x0 + width - 8}" y1="{up(none):.1f}" '
                f'y2="{up(none):.1f}" '
                'stroke="#9ca3af" stroke-dasharray="4 3"/>'
            )
        for dose in DOSES:
            out.append(
                f'<text x="{at(dose):.1f}" y="{y0 + height - 12}" '
                f'text-anchor="middle">{dose}</text>'
            )
        for place, (model, found) in enumerate(series.items()):
            colour = COLOURS["placebo" if "placebo" in model else "main"]
            shift = 5 * place
            points = " ".join(
                f"{at(dose) + shift:.1f},{up(mean):.1f}" for dose, (mean, _, _) in found.items()
            )
            if "placebo" not in model:
                out.append(
                    f'<polyline points="{points}" fill="none" stroke="{colour}" '
                    'stroke-width="1.5"/>'
                )
            for dose, (mean, half, _) in found.items():
                x = at(dose) + shift
                if math.isfinite(half):
                    out.append(
                        f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{up(mean - half):.1f}" '
                        f'y2="{up(mean + half):.1f}" '
                        f'stroke="{colour}"/>'
                    )
                out.append(f'<circle cx="{x:.1f}" cy="{up(mean):.1f}" r="3" fill="{colour}"/>')
    out.append("</svg>")
    return "\n".join(out)


def as_lines(models: dict[str, list[Row]]) -> str:
    """Return all rows as JSON, a world a line, with as many digits as matter."""

    def short(value: Any) -> Any:
        return float(f"{value:.6g}") if isinstance(value, float) else value

    made = [
        f"{json.dumps(model)}: [\n"
        + ",\n".join(
            json.dumps({name: short(found) for name, found in row.items()}) for row in rows
        )
        + "\n]"
        for model, rows in models.items()
    ]
    return "{\n" + ",\n".join(made) + "\n}\n"


DRAWN = (
    "first",
    "familiar",
    "closes",
    "refused",
    "said",
    "traded_hit",
    "bright",
    "explained",
    "gap",
)


def _enough(found: dict[int, tuple[float, float, int]]) -> dict[int, tuple[float, float, int]]:
    """Return what rests on five worlds or more."""
    return {dose: one for dose, one in found.items() if one[2] >= 5}


def main() -> None:
    """Read the results, print the table, write the pictures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("results", type=Path)
    parser.add_argument("--out", type=Path, default=Path("."))
    arguments = parser.parse_args()
    models = {
        path.name: rows
        for path in sorted(arguments.results.iterdir())
        if path.is_dir() and (rows := rows_of(path))
    }
    print(table(models))
    arguments.out.mkdir(parents=True, exist_ok=True)
    (arguments.out / "worlds.json").write_text(as_lines(models))
    for family in sorted({name.split("-")[0] for name in models}):
        mine = {name: rows for name, rows in models.items() if name.startswith(family)}
        panels = [
            (MEASURES[measure][0], MEASURES[measure][1], series)
            for measure in DRAWN
            if (
                series := {
                    name: found
                    for name, rows in mine.items()
                    if (found := _enough(by_dose(rows, measure)))
                }
            )
        ]
        if panels:
            (arguments.out / f"dose-{family}.svg").write_text(picture(panels))


if __name__ == "__main__":
    main()
