"""What share of forged changes ``verify`` notices, by kind of run: thousands of them, spread over processes.

Bar: 99 % of the changes to scored content on each kind of run; what is not covered is listed with the reason.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections import Counter
from pathlib import Path

import tradeassay
from tradeassay.core.errors import TradeassayError
from tradeassay.runs import run
from tradeassay.testing import check_verify
from tradeassay.testing.season import check_season
from tradeassay.testing.verify import KindShare, VerifyCheck

RECORDED = Path(__file__).parents[1] / "tests" / "recorded" / "v1"
KINDS = ("daily", "daily-v2", "stockbench", "ktdfin-us", "ktdfin-v2", "arena", "quantcode", "systrade")
HOLDS = 30
"""Changes per call: each call verifies the honest run once more."""


def folder_of(kind: str, place: Path) -> Path:
    """Return the recorded run of a kind, played now where none is recorded."""
    if kind == "daily-v2":
        agents = ["momentum-12-1", "random", "equal-weight"]
        spec = tradeassay.make_spec(
            "daily-ashare-v2", agents=agents, first="2022-03-01", last="2022-04-29", slug="d"
        )
    elif kind == "ktdfin-v2":
        models = ("scripted/sensible", "scripted/broken-json")
        spec = tradeassay.make_spec("ktdfin-v2", models=models, first="2022-03-01", last="2022-03-11", slug="k")
    else:
        return RECORDED / kind / ("arena.db" if kind == "arena" else "run")
    folder = place / kind
    if not folder.exists():
        run(spec, folder, workers=1, executor="inline")
    return folder


def attack(task: tuple[str, str, int, float]) -> tuple[str, list[KindShare]]:
    """Attack one kind of run for so many seconds; return counts by kind of file."""
    kind, folder, seed, seconds = task
    until, found = time.monotonic() + seconds, list[KindShare]()
    while time.monotonic() < until:
        try:
            check: VerifyCheck = (
                check_season(folder, sample=HOLDS, seed=seed, least=0.0)
                if kind == "arena"
                else check_verify(folder, most=20, sample=HOLDS, seed=seed, least=0.0)
            )
        except TradeassayError as error:
            print(f"{kind} could not be attacked: {error}", flush=True)
            return kind, found
        found += check.kinds
        seed += 1
    return kind, found


def main() -> None:
    """Attack every kind of run on all cores and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--cores", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=60.0, help="wall time for everything")
    parser.add_argument("--kinds", nargs="*", default=list(KINDS))
    parser.add_argument("--place", type=Path, default=Path("/tmp/verify-mutations"))
    asked = parser.parse_args()
    asked.place.mkdir(parents=True, exist_ok=True)
    folders = {kind: str(folder_of(kind, asked.place)) for kind in asked.kinds}
    each = asked.seconds / len(folders)
    tasks = [(kind, folder, 1_000 * core, each) for kind, folder in folders.items() for core in range(asked.cores)]
    table: dict[str, Counter[str]] = {kind: Counter() for kind in folders}
    with multiprocessing.get_context("spawn").Pool(asked.cores) as pool:
        for kind, found in pool.imap_unordered(attack, tasks):
            for one in found:
                row = table[kind]
                row.update({"made": one.made, "contradicted": one.contradicted, "marked": one.marked})
                row.update({f"not covered: {why}": count for why, count in one.not_covered.items()})
                row.update({f"MISSED: {what}": 1 for what in one.missed})
            print(line_of(kind, table[kind]), flush=True)
    print("\n| run | changes | contradicted | marked | not covered | missed | noticed of those that should be |")
    print("|---|---|---|---|---|---|---|")
    for kind, row in table.items():
        print(line_of(kind, row))
    for kind, row in table.items():
        for name, count in sorted(row.items()):
            if name.startswith(("not covered", "MISSED")):
                print(f"{kind}: {count:,} {name}")


def line_of(kind: str, row: Counter[str]) -> str:
    """Return one line of the table."""
    uncovered = sum(count for name, count in row.items() if name.startswith("not covered"))
    missed = sum(count for name, count in row.items() if name.startswith("MISSED"))
    wanted = row["made"] - uncovered
    share = f"{(wanted - missed) / wanted:.2%}" if wanted else "-"
    return (
        f"| {kind} | {row['made']:,} | {row['contradicted']:,} | {row['marked']:,} | {uncovered:,} "
        f"| {missed:,} | {share} |"
    )


if __name__ == "__main__":
    main()
