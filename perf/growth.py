"""Measure how time, memory and pages grow with names, sessions, agents and runs, each over a
hundredfold.

    python perf/growth.py --picture docs/images/growth.svg
    python perf/growth.py --only agents --size 200   # one slice; growth.json stores the
    measurements
    python perf/growth.py --shown --picture ...      # measure nothing, show the stored measurements

Every command runs in a separate process. CPU seconds and peak memory come from the kernel. The cost
of starting the process is subtracted. The exponent is the slope in logarithms over the last,
tenfold step, where fixed costs matter least. "flat" is a cost below 0.3 s, whose slope would be
noise. The largest page of each size is listed too.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import tempfile
from pathlib import Path

from machine import conditions

SIZES = {
    "names": (100, 500, 5_000),
    "sessions": (250, 500, 5_000),
    "agents": (2, 20, 200),
    "runs": (10, 100, 1_000),
}
COMMANDS = ("run", "report", "assay", "verify", "site")
MOST, FLAT = 1.1, 0.3


def measured(*words: str, cwd: Path) -> tuple[float, float]:
    """Return the CPU seconds and peak megabytes of a command line.

    Prints its output if it fails.
    """
    log = cwd / "log.txt"
    with log.open("wb") as out:
        actions = [(os.POSIX_SPAWN_DUP2, out.fileno(), 1), (os.POSIX_SPAWN_DUP2, out.fileno(), 2)]
        given = {
            **os.environ,
            "TRADEASSAY_HOME": str(cwd / "home"),
            "PYTHONPATH": str(Path("src").resolve()),
        }
        enter = f"import os, sys; os.chdir({str(cwd)!r}); from tradeassay.cli import main"
        code = f"{enter}; sys.exit(main({[*words]}))"
        pid = os.posix_spawn(
            sys.executable, [sys.executable, "-c", code], given, file_actions=actions
        )
        _, status, used = os.wait4(pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1) or "Traceback" in log.read_text():
        raise SystemExit(f"{' '.join(words)}:\n{log.read_text()[-2_000:]}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024.0


def prepared(axis: str, size: int, folder: Path) -> tuple[list[str], str]:
    """Return the arguments of ``tradeassay run`` for one size, and the run's name."""
    from tradeassay_bench.data import fetch_dataset, load_dataset

    names, sessions = size if axis == "names" else 100, size if axis == "sessions" else 250
    os.environ["TRADEASSAY_HOME"] = str(folder / "home")
    options = {"preset": "us", "seed": 7, "names": names, "sessions": sessions + 300}
    fetch_dataset("synthetic", "grown", options, home=folder / "home")
    agents = size if axis == "agents" else 2
    rules = [word for k in range(agents) for word in ("-a", f"momentum-12-1:k={k + 2}")]
    days = load_dataset("grown", folder / "home").sessions
    window = ["--first", str(days[-sessions]), "--last", str(days[-1])]
    return ["daily-us-v1", "--dataset", "grown", *window, *rules, "--name", "grown"], "grown"


def filled(folder: Path, size: int) -> None:
    """Play many small different runs, because a site leaves out copies of a run."""
    from tradeassay.metrics import BootstrapConfig
    from tradeassay_bench.runs import AgentSpec, RunSpec, Window, run

    for place in range(size):
        spec = RunSpec(
            name=f"grown-{place}",
            benchmarks=("daily-us-v1",),
            agents=(AgentSpec(name="random", params={"k": 2 + place % 30}),),
            seeds=(place,),
            window=Window(first="2023-01-03", last="2023-01-31"),
            bootstrap=BootstrapConfig(draws=100),
        )
        run(
            spec,
            folder / "runs" / spec.name,
            executor="inline",
            home=folder / "home",
            progress="none",
        )


def costs(axis: str, size: int) -> dict[str, tuple[float, float, float]]:
    """Return CPU seconds, megabytes and the largest page's megabytes of every command, for one
    size.
    """
    found = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        lines = {"site": ["site", "runs", "-o", "site", "--workers", "1"]}
        if axis == "runs":
            filled(folder, size)
        else:
            words, name = prepared(axis, size, folder)
            lines = {
                "run": ["run", *words, "--workers", "1"],
                "report": ["report", name],
                "assay": ["assay", name, "--portfolios", "200", "--workers", "1"],
                "verify": ["verify", name, "--workers", "1"],
                **lines,
            }
        start = measured("--version", cwd=folder)
        for command, line in lines.items():
            cpu, memory = measured(*line, cwd=folder)
            pages = [page.stat().st_size for page in folder.rglob("*.html")]
            found[command] = (max(cpu - start[0], 0.0), memory, max(pages, default=0) / 1e6)
    return found


def slope(few: float, many: float, least: float, times: float) -> float | None:
    """Return the exponent between two sizes, or None if the larger cost is below ``least``."""
    return math.log(many / max(few, least / 6.0)) / math.log(times) if many > least else None


def picture(drawn: dict[str, dict[str, list[tuple[int, float]]]]) -> str:
    """Return a plot of CPU seconds over size in logarithms, a panel per axis. Dashed is
    proportional growth.
    """
    colours = dict(
        zip(COMMANDS, ("#0f6cbd", "#b4531a", "#107c41", "#8a3ffc", "#a4262c"), strict=True)
    )
    wide, tall, pad = 230, 220, 44
    body = []
    for place, (axis, lines) in enumerate(drawn.items()):
        points = [(size, max(cpu, 0.05)) for line in lines.values() for size, cpu in line]
        left, right = (math.log10(end([size for size, _ in points])) for end in (min, max))
        least, most = -1.4, max(math.log10(max(cpu for _, cpu in points)) + 0.2, 2.0)

        def at(size: float, cpu: float, x0: int = pad + place * (wide + pad)) -> str:
            x = x0 + wide * (math.log10(size) - left) / (right - left)  # noqa: B023  # used in its own turn only
            y = 30 + tall * (1 - (math.log10(max(cpu, 0.05)) - least) / (most - least))  # noqa: B023
            return f"{x:.1f},{y:.1f}"

        x0 = pad + place * (wide + pad)
        body.append(
            f'<rect x="{x0}" y="30" width="{wide}" height="{tall}" fill="none" stroke="#8a8a8a"/>'
        )
        body.append(f'<text x="{x0}" y="20" font-weight="600">{axis}</text>')
        for power in range(-1, math.floor(most) + 1):
            y = at(10**left, 10.0**power).split(",")[1]
            body.append(
                f'<text x="{x0 - 6}" y="{y}" text-anchor="end" dy="4">{10.0**power:g}</text>'
            )
        for size in sorted({size for size, _ in points}):
            x = at(size, 1).split(",")[0]
            body.append(f'<text x="{x}" y="{tall + 48}" text-anchor="middle">{size:,}</text>')
        first = max(cpu for size, cpu in points if size == min(one for one, _ in points))
        reach = min(right - left, most - math.log10(first))
        ends = (at(10**left, first), at(10 ** (left + reach), first * 10**reach))
        body.append(
            f'<polyline points="{" ".join(ends)}" stroke="#8a8a8a" stroke-dasharray="4 4" '
            'fill="none"/>'
        )
        for command, line in lines.items():
            path = " ".join(at(size, cpu) for size, cpu in line)
            body.append(
                f'<polyline points="{path}" stroke="{colours[command]}" stroke-width="2" '
                'fill="none"/>'
            )
    for place, (command, colour) in enumerate(colours.items()):
        body.append(
            f'<text x="{pad + place * 90}" y="{tall + 80}" fill="{colour}" '
            f'font-weight="600">{command}</text>'
        )
    body.append(f'<text x="{pad + 480}" y="{tall + 80}">CPU seconds; dashed: in proportion</text>')
    size = f'viewBox="0 0 {pad + len(drawn) * (wide + pad)} {tall + 95}"'
    style = 'font-family="sans-serif" font-size="13" fill="#5c5c5c"'
    title = "<title>CPU seconds of each command as a study grows</title>"
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>{title}{"".join(body)}</svg>\n'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--only", choices=tuple(SIZES))
    parser.add_argument("--size", type=int, help="measure this size of --only alone, as a slice")
    parser.add_argument(
        "--kept", type=Path, default=Path("growth.json"), help="where slices are kept"
    )
    parser.add_argument("--shown", action="store_true", help="measure nothing, show what is kept")
    parser.add_argument("--picture", type=Path)
    asked = parser.parse_args()
    kept = json.loads(asked.kept.read_text()) if asked.kept.exists() else {}
    for axis in SIZES if asked.only is None else (asked.only,):
        for size in () if asked.shown else SIZES[axis] if asked.size is None else (asked.size,):
            if f"{axis} {size}" not in kept:
                kept[f"{axis} {size}"] = costs(axis, size)
                asked.kept.write_text(json.dumps(kept, indent=1))
    print("| axis | to | command | CPU s | exponent | memory MB | exponent | largest page MB |")
    print("|---|---|---|---|---|---|---|---|")
    drawn: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for axis in SIZES:
        sizes = sorted(int(key.split()[1]) for key in kept if key.startswith(axis))
        if len(sizes) < 2:
            continue
        low, high = sizes[-2:]
        for command in ("site",) if axis == "runs" else COMMANDS:
            drawn.setdefault(axis, {})[command] = [
                (size, kept[f"{axis} {size}"][command][0]) for size in sizes
            ]
            (few, small, _), (many, large, page) = (
                kept[f"{axis} {size}"][command] for size in (low, high)
            )
            grown = (slope(few, many, FLAT, high / low), slope(small, large, 1.0, high / low))
            told = [
                "flat" if one is None else f"{one:.2f}{' !' if one > MOST else ''}" for one in grown
            ]
            print(
                f"| {axis} | {low:,} to {high:,} | {command} | {few:.1f} to {many:.1f} | {told[0]} "
                "| "
                f"{small:.0f} to {large:.0f} | {told[1]} | {page:.2f}{' !' if page > 2 else ''} |"
            )
    print(f"\n{conditions()}")
    if asked.picture is not None:
        asked.picture.write_text(picture(drawn), encoding="utf-8")


if __name__ == "__main__":
    main()
