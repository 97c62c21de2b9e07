"""How time, memory and pages grow: names, sessions, agents and runs in a folder, each over a factor of ten.

    python perf/growth.py                       # each axis tenfold from its small end
    python perf/growth.py --far                 # the far ends: 5,000 names, 5,000 sessions, 200 agents, 1,000 runs
    python perf/growth.py --far --only agents --size 200   # one slice; growth.json keeps what was measured
    python perf/growth.py --picture growth.html

Every command runs in a process of its own: CPU seconds and peak memory are the kernel's. The start of the process
is taken away first. The exponent is the slope between the ends in logarithms; "flat" is a cost below 0.3 s, whose
slope would be noise. The largest page of each size stands beside it.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import sys
import tempfile
from pathlib import Path

from machine import conditions

NEAR = {"names": (100, 1_000), "sessions": (250, 2_500), "agents": (2, 20), "runs": (10, 100)}
FAR = {"names": (100, 5_000), "sessions": (250, 5_000), "agents": (2, 200), "runs": (10, 1_000)}
COMMANDS = ("run", "report", "assay", "verify", "site")
MOST, FLAT = 1.1, 0.3


def measured(*words: str, cwd: Path) -> tuple[float, float]:
    """Return the CPU seconds and peak megabytes of a command line; its output is shown where it breaks."""
    log = cwd / "log.txt"
    with log.open("wb") as out:
        actions = [(os.POSIX_SPAWN_DUP2, out.fileno(), 1), (os.POSIX_SPAWN_DUP2, out.fileno(), 2)]
        given = {**os.environ, "TRADEASSAY_HOME": str(cwd / "home"), "PYTHONPATH": str(Path("src").resolve())}
        enter = f"import os, sys; os.chdir({str(cwd)!r}); from tradeassay.cli import main"
        code = f"{enter}; sys.exit(main({[*words]}))"
        pid = os.posix_spawn(sys.executable, [sys.executable, "-c", code], given, file_actions=actions)
        _, status, used = os.wait4(pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 1) or "Traceback" in log.read_text():
        raise SystemExit(f"{' '.join(words)}:\n{log.read_text()[-2_000:]}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024.0


def prepared(axis: str, size: int, folder: Path) -> tuple[list[str], str]:
    """Return the words of ``tradeassay run`` for one size, and the run's name."""
    from tradeassay.data import fetch_dataset, load_dataset

    names, sessions = size if axis == "names" else 100, size if axis == "sessions" else 250
    os.environ["TRADEASSAY_HOME"] = str(folder / "home")
    options = {"preset": "us", "seed": 7, "names": names, "sessions": sessions + 300}
    fetch_dataset("synthetic", "grown", options, home=folder / "home")
    agents = size if axis == "agents" else 2
    rules = [word for k in range(agents) for word in ("-a", f"momentum-12-1:k={k + 2}")]
    days = load_dataset("grown", folder / "home").sessions
    window = ["--first", str(days[-sessions]), "--last", str(days[-1])]
    return ["daily-us-v1", "--dataset", "grown", *window, *rules, "--slug", "grown"], "grown"


def costs(axis: str, size: int) -> dict[str, tuple[float, float, float]]:
    """Return CPU seconds, megabytes and the largest page's megabytes of every command, for one size."""
    found = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        words, name = prepared(axis, size, folder)
        start = measured("--version", cwd=folder)
        lines = {
            "run": ["run", *words, "--workers", "1"],
            "report": ["report", name],
            "assay": ["assay", name, "--portfolios", "200", "--workers", "1"],
            "verify": ["verify", name, "--workers", "1"],
            "site": ["site", "runs", "-o", "site", "--workers", "1"],
        }
        for command in COMMANDS:
            if command == "site" and axis == "runs":
                for copy in range(1, size):
                    shutil.copytree(folder / "runs" / name, folder / "runs" / f"{name}-{copy}")
            cpu, memory = measured(*lines[command], cwd=folder)
            pages = [page.stat().st_size for page in folder.rglob("*.html")]
            found[command] = (max(cpu - start[0], 0.0), memory, max(pages, default=0) / 1e6)
    return found


def slope(few: float, many: float, least: float, times: float) -> float | None:
    """Return the exponent between two ends; None where the larger is below ``least``."""
    return math.log(many / max(few, least / 6.0)) / math.log(times) if many > least else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--far", action="store_true")
    parser.add_argument("--only", choices=tuple(NEAR))
    parser.add_argument("--size", type=int, help="measure this size of --only alone, as a slice")
    parser.add_argument("--kept", type=Path, default=Path("growth.json"), help="where slices are kept")
    parser.add_argument("--picture", type=Path)
    asked = parser.parse_args()
    kept = json.loads(asked.kept.read_text()) if asked.kept.exists() else {}
    for axis, ends in (FAR if asked.far else NEAR).items():
        for size in ends if asked.only in (None, axis) and asked.size in (None, *ends) else ():
            if f"{axis} {size}" not in kept and asked.size in (None, size):
                kept[f"{axis} {size}"] = costs(axis, size)
                asked.kept.write_text(json.dumps(kept, indent=1))
    rows = []
    print("| axis | from | to | command | CPU s | exponent | memory MB | exponent | largest page MB |")
    print("|---|---|---|---|---|---|---|---|---|")
    for axis in NEAR:
        sizes = sorted(int(key.split()[1]) for key in kept if key.startswith(axis))
        if len(sizes) < 2:
            continue
        low, high = sizes[0], sizes[-1]
        first, last = kept[f"{axis} {low}"], kept[f"{axis} {high}"]
        for command in ("site",) if axis == "runs" else COMMANDS:
            (few, small, _), (many, large, page) = first[command], last[command]
            grown = (slope(few, many, FLAT, high / low), slope(small, large, 1.0, high / low))
            rows.append({"axis": axis, "command": command, "few": few, "many": many, "slope": grown[0]})
            told = ["flat" if one is None else f"{one:.2f}{' !' if one > MOST else ''}" for one in grown]
            print(
                f"| {axis} | {low:,} | {high:,} | {command} | {few:.1f} to {many:.1f} | {told[0]} | "
                f"{small:.0f} to {large:.0f} | {told[1]} | {page:.2f}{' !' if page > 2 else ''} |"
            )
    print(f"\n{conditions()}")
    if asked.picture is not None:
        from matplotlib import pyplot

        figure, axes = pyplot.subplots(figsize=(9, 4))
        axes.bar([f"{row['axis']}\n{row['command']}" for row in rows], [row["slope"] or 0.0 for row in rows])
        axes.axhline(MOST, linestyle="--")
        axes.set_title("Exponent of CPU time")
        figure.savefig(asked.picture)
        asked.picture.with_suffix(".json").write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
