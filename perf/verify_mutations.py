"""What share of forged changes ``verify`` notices, by kind of run: thousands of them, in parts of any size.

    python perf/verify_mutations.py --kinds daily ktdfin --first 0 --count 200
    python perf/verify_mutations.py --show

Every kind of run is played once, small, and its changes are numbered; every change is followed by a whole
verification. What became of each is kept in ``--place``, so that a part that was stopped, or comes later, adds to
the table that ``--show`` prints. Bar: 99 % of the changes to scored content on each kind of run; what is not
covered is listed with the reason.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Iterable
from functools import partial
from pathlib import Path

import msgspec

sys.path.append(str(Path(__file__).parents[1] / "tests/bench/runs"))  # where the forger lives
sys.path.append(str(Path(__file__).parents[1] / "tests" / "recorded"))  # and the golden runs
sys.path.append(str(Path(__file__).parents[1] / "tests" / "support"))  # and models that misbehave

import forger
import golden

import tradeassay_bench
from numbered_parts import ask, gather
from season_forger import UNCOVERED, attack_season
from tradeassay_bench.runs import run
from tradeassay_programs.benchmarks.quantcode.spec import QuantCodeSpec
from tradeassay_programs.benchmarks.systrade.spec import SystradeSpec

ARENA = "arena"
MADE = ("daily", "stockbench", "ktdfin", "quantcode", "systrade")
KINDS = (*MADE, ARENA)
FIELDS = 100
"""Fields per file that may be changed, and as many bytes."""
TOGETHER = 50
"""Changes per call: what they found is written down after each."""
FIRST, LAST = "2022-03-01", "2022-03-03"


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What became of some numbered changes to one kind of run."""

    kind: str
    first: int
    cpu: float
    found: dict[str, int]


def folder_of(kind: str, place: Path) -> Path:
    """Return the run of a kind, played now where there is none."""
    if kind == ARENA:
        return (
            place / "arena.db"
            if (place / "arena.db").exists()
            else golden.play_season("arena", place / "arena.db")
        )
    folder, models = place / kind, ("scripted/sensible", "scripted/broken-json")
    if folder.exists():
        return folder
    spec = {
        "daily": lambda: tradeassay_bench.make_spec(
            "daily-ashare-v1", agents=["momentum-12-1", "random"], name="d", first=FIRST, last=LAST
        ),
        "stockbench": lambda: tradeassay_bench.make_spec(
            "stockbench-v1", models=models, name="s", first=FIRST, last=LAST
        ),
        "ktdfin": lambda: tradeassay_bench.make_spec(
            "ktdfin-v1", models=models, name="k", first=FIRST, last=LAST
        ),
        "quantcode": lambda: QuantCodeSpec(models=("scripted/coder-mends",), tasks=("d-ibs-long",)),
        "systrade": lambda: SystradeSpec(
            models=("scripted/builder-gold",), strategies=("turtle",), iterations=1
        ),
    }[kind]()
    run(spec, folder, workers=1, executor="inline")
    return folder


def attack(kind: str, folder: Path, first: int, count: int) -> Part:
    """Try some changes to one kind of run."""
    began = sum(os.times()[:4])
    part = range(first, first + count)
    if kind == ARENA:
        found = forger.counted(attack_season(folder, part=part), UNCOVERED)
    else:
        found = forger.counted(forger.attack(folder, most=FIELDS, part=part))
    used = sum(os.times()[:4]) - began
    print(f"{kind} {first}: {used:.1f} CPU-seconds", flush=True)
    return Part(kind=kind, first=first, cpu=used, found=dict(found))


def main() -> None:
    """Try a part of the changes of every kind of run, or print what all parts found."""
    asked = ask(__doc__.split("\n", 1)[0], KINDS, "change", 100, "verify-mutations")
    parts = gather(
        asked, Part, TOGETHER, lambda kind: partial(attack, kind, folder_of(kind, asked.place))
    )
    show(parts)


def show(parts: Iterable[Part]) -> None:
    """Print the table, and everything that was not noticed."""
    table: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    for part in parts:
        table[part.kind].update(part.found)
    print(
        "\n| run | changes | contradicted | marked | not covered | missed | noticed of those that should be |"
    )
    print("|---|---|---|---|---|---|---|")
    for kind, row in table.items():
        print(line_of(kind, row))
    print(line_of("all", sum(table.values(), Counter())))
    for kind, row in table.items():
        for name, count in sorted(row.items()):
            if name.startswith(("not covered", "MISSED")):
                print(f"{kind}: {count:,} {name}")


def line_of(kind: str, row: Counter[str]) -> str:
    """Return one line of the table."""
    uncovered = sum(count for name, count in row.items() if name.startswith("not covered"))
    missed = sum(count for name, count in row.items() if name.startswith("MISSED"))
    noticed = forger.share_noticed(row)
    share = "-" if noticed is None else f"{noticed:.2%}"
    return (
        f"| {kind} | {row['made']:,} | {row['contradicted']:,} | {row['marked']:,} | {uncovered:,} "
        f"| {missed:,} | {share} |"
    )


if __name__ == "__main__":
    main()
