"""Measure how often the verdict is right: agents of every kind with known truth, in unseen markets.

    python perf/verdict_confusion.py [--worlds 20] [--nulls 18] [--leaks 10] [--cores 4] [--json]
    python perf/verdict_confusion.py --panel sp500-news --windows 2013-01-02..2015-12-31,...
    --worlds 0 --leaks 0
    python perf/verdict_confusion.py --only skilled,series --first 7000 --worlds 4 --results
    judged.jsonl

A world has 200 names, a year of history and three years of trading. A panel is real data in the
local store. Rows: nulls over half a year to three years (they hold random names, few or many, for a
day or a week, with and without costs; as models with a masked twin, and as rules); five kinds of
passive portfolio; planted selection, timing, style, memory and alpha lost to costs; the best of
many (declared, and found in the folder); accounts with returns only (stale, short volatility,
market and bonds, dividends missing from a benchmark); and rules that leak on 1, 5 and 20 % of days,
run in a market and tested with the real leak test.

A limit is *met* if the whole interval (Wilson, 95 %) is on its good side, *missed* if it is on the
bad side, and *not shown* otherwise, because there are too few agents. A limit of zero is missed by
a single case, and met by none in a hundred. ``--results`` appends every market's verdicts to a
file. Markets in the file are not judged again, and the table includes all of them. The exit status
is 1 if a limit is missed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec
import numpy as np

from planted_studies import edge_tests, real_world, share_of
from tradeassay.core.measure import Measure
from tradeassay.metrics import rate_measure
from tradeassay.tables.account import OwnSeries
from tradeassay.verdict import KINDS, VerdictConfig
from tradeassay.verdict.returns import assay_series
from tradeassay_bench.benchmarks import benchmarks
from tradeassay_bench.core.agent import AskDecision, EpisodeInfo
from tradeassay_bench.core.orders import Decision, Order
from tradeassay_bench.data import Snapshot, load_dataset, open_snapshot, write_snapshot
from tradeassay_bench.data.synthetic import generate, preset
from tradeassay_bench.examine.leaks import LeakTestConfig, leak_test
from tradeassay_bench.examine.planted import (
    PASSIVE,
    Bench,
    Plant,
    PlantConfig,
    PlantedWorld,
    planted_world,
)

FIRST = 1_310_000
"""Held-out seeds start here."""
SESSIONS = 756
LENGTHS = (126, 252, 504, 756)
CONFIG = VerdictConfig(draws=200)
PRAISE = ("skill", "timing", "mixed")
BLAME = ("worse", "leak", "memory")
SKILLS = (0.0, 0.05, 0.1, 0.2, 0.3)
SKILLED = "skilled (information ratio 2 by holdings)"
PASSIVES = "passive, all five kinds"
ENOUGH = 100
"""This many accounts without a wrong verdict meet a limit of zero."""
PARTS = ("nulls", "skilled", "plants", "series", "power", "leaks")
Said = tuple[str, str]
"""A kind of agent, and the kind of verdict on it."""
Standing = Literal["met", "missed", "not shown"]


@dataclass
class Row:
    """One kind of agent: the right words and their required share, and the allowed shares of praise
    or blame.
    """

    name: str
    right: tuple[str, ...]
    least: float | None = None
    praised: float | None = None
    blamed: float | None = None
    said: Counter[str] = field(default_factory=Counter)

    def share(self, kinds: tuple[str, ...]) -> Measure:
        """Return how often some words occurred, with Wilson's interval."""
        hits = sum(self.said[kind] for kind in kinds)
        return rate_measure(hits, sum(self.said.values()), nothing="nobody was judged", level=0.95)

    @property
    def bars(self) -> dict[str, Standing]:
        """Return every limit in words, with its result."""
        found: dict[str, Standing] = {}
        if self.least is not None:
            found[f"right >= {self.least:.0%}"] = standing(
                self.share(tuple(set(KINDS) - set(self.right))), 1.0 - self.least
            )
        for name, kinds, most in (
            ("praised", PRAISE, self.praised),
            ("blamed", BLAME, self.blamed),
        ):
            if most is not None:
                found[f"{name} <= {most:.0%}"] = standing(self.share(kinds), most)
        return found


def standing(share: Measure, most: float) -> Standing:
    """Return whether a share is certainly at most, or more than, the allowed share."""
    low, high, count = share.low or 0.0, 1.0 if share.high is None else share.high, share.n or 0
    if low > most or (most < 1e-9 and share.value):
        return "missed"
    none = most < 1e-9 and count >= ENOUGH and share.value == 0.0
    return "met" if none or high <= most else "not shown"


def row_of(name: str) -> Row:
    """Return an empty row with its bars."""
    if name.startswith("null"):
        # Only of one that pays for trading can it be true that costs took it.
        paid = ("costs",) if "that pays" in name else ()
        return Row(name, ("luck", "style", "market", *paid), praised=0.05, blamed=0.05)
    if name in (*PASSIVE, PASSIVES) or name.startswith("stale"):
        return Row(name, ("market",), 1.0, 0.0, 0.0)
    if name.startswith("passive:"):
        return Row(name, ("market", "luck"), praised=0.05)
    if name.startswith("honest"):
        return Row(name, ("luck",), blamed=0.0)
    if name.startswith("leak on"):
        return Row(name, ("leak",), None if " 1 %" in name else 0.95)
    if name.startswith("best of"):
        return Row(name, ("luck", "style", "market"), praised=0.05)
    if name.startswith(("skilled", "information")):
        return Row(name, ("skill", "mixed"), 0.9, blamed=0.05)
    right = {
        "style": ("style",),
        "memorising": ("memory",),
        "eaten": ("costs",),
        "mixed": ("mixed",),
        "timing": ("timing", "mixed"),
        "short volatility (returns only)": ("tail", "luck"),
    }[name]
    honest = name in ("mixed", "timing")
    return Row(name, right, 0.9, None if honest else 0.05, 0.05 if honest else None)


def judged(
    world: PlantedWorld,
    plant: Plant,
    planting: PlantConfig,
    seeds: range = range(1),
    *,
    by_model: bool = True,
) -> list[str]:
    """Return the kinds of verdict on several agents of one kind in one world: models, with a
    mask, or rules.
    """
    bench = Bench(world, planting, CONFIG, portfolios=200)
    return [bench.judge(plant, seed=seed, by_model=by_model).verdict.kind for seed in seeds]


def nulls(world: PlantedWorld, count: int) -> Iterator[Said]:
    """Yield nulls of every length: with many and few names, and traded daily with costs."""
    kinds: tuple[tuple[Plant, PlantConfig], ...] = (
        ("noise", PlantConfig()),
        ("noise", PlantConfig(held=0.05)),
        ("churning", PlantConfig(held=0.1)),
    )
    for length in (one for one in LENGTHS if one <= world.sessions):
        part = world.until(length)
        for number, (plant, planting) in enumerate(kinds):
            for by_model, name, first in ((True, "null", 0), (False, "null rule", 10_000)):
                seeds = range(first + 100 * number, first + 100 * number + count // 3)
                for kind in judged(part, plant, planting, seeds, by_model=by_model):
                    pays = " that pays" if plant == "churning" else ""
                    yield f"{name}{pays}, {length} sessions", kind


def skilled(world: PlantedWorld, count: int) -> Iterator[Said]:
    """Yield agents that can expect an information ratio of two, as models with a masked twin and
    as rules.
    """
    planting = PlantConfig(skill=share_of(world, 2.0))
    for by_model, name in ((True, SKILLED), (False, f"{SKILLED}, as a rule")):
        for kind in judged(world, "skilled", planting, range(10, 10 + count), by_model=by_model):
            yield name, kind


def plants(world: PlantedWorld) -> Iterator[Said]:
    """Yield every kind of planted agent in a world."""
    strong = PlantConfig(skill=0.4, foresight=0.6, memory=0.8)
    for plant in ("mixed", "style", "timing", "eaten", "memorising", *PASSIVE):
        kind = judged(world, plant, strong)[0]
        yield plant, kind
        if plant in PASSIVE:
            yield PASSIVES, kind
    bench = Bench(world, PlantConfig(tries=30), CONFIG, portfolios=200)
    for name, declared in (
        ("best of 30, declared", True),
        ("best of 30, found in the folder", False),
    ):
        yield name, bench.judge("lucky", declared=declared).verdict.kind


def series_rows(world: PlantedWorld, count: int) -> Iterator[Said]:
    """Yield verdicts on accounts with returns only, against the market's."""
    market = world.returns.mean(axis=1)
    days = tuple(str(day) for day in np.arange(world.sessions) + np.datetime64("2001-01-01"))
    rng = np.random.default_rng(world.seed)

    def said(total: np.ndarray) -> str:
        table = OwnSeries(
            returns=dict(zip(days, total.tolist(), strict=True)),
            benchmark=dict(zip(days, market.tolist(), strict=True)),
        )
        return assay_series(table, CONFIG, agent="own")[0].verdict.kind

    for _ in range(count):
        carry = rng.uniform(0.3, 0.7)
        late = np.empty_like(market)
        late[0] = market[0]
        for t in range(1, market.size):
            late[t] = carry * late[t - 1] + (1.0 - carry) * market[t]
        yield "stale copy of the market (returns only)", said(late)
        bend = rng.uniform(4.0, 10.0)
        earned = (
            bend * (market**2).mean() * 1.5
            - bend * market**2
            + rng.normal(0.0, 0.0004, market.size)
        )
        yield "short volatility (returns only)", said(earned + rng.uniform(0.0, 0.3) * market)
        yield (
            "null around the market (returns only)",
            said(market + rng.normal(0.0, 0.005, market.size)),
        )
        yield (
            "information ratio 2 (returns only)",
            said(market + rng.normal(0.00063, 0.005, market.size)),
        )
        # Real benchmarks leave dividends out, and a part of most accounts lies in bonds or cash.
        bonds = rng.uniform(0.01, 0.04) / 252 + rng.normal(0.0, 0.0025, market.size)
        yield "passive: market and bonds (returns only)", said(0.6 * market + 0.4 * bonds)
        strayed = market + rng.uniform(0.012, 0.024) / 252 + rng.normal(0.0, 0.0015, market.size)
        yield "passive: dividends that the benchmark lacks (returns only)", said(strayed)


class Leaker:
    """Holds five random names, and on some days the names that will rise most."""

    def __init__(self, share: float, seed: int) -> None:
        self._share, self._seed = share, seed

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        self._rng = np.random.default_rng(self._seed)

    def answer(self, request: AskDecision) -> Decision:
        seen = request.observation
        names = [seen.universe[k] for k in self._rng.permutation(len(seen.universe))[:5]]
        if self._rng.random() < self._share:
            view = seen.view
            bars = view._history.fields  # type: ignore[attr-defined]  # reaching behind the view is what is planted
            row, n = view.row, len(view.symbols)  # type: ignore[attr-defined]  # ditto
            moves = bars["close"][row, :n] / bars["open"][row, :n]
            ranked = [view.symbols[k] for k in np.argsort(-np.nan_to_num(moves))]
            names = [name for name in ranked if name in set(seen.universe)][:5]
        gone = [name for name in seen.account.positions if name not in names]
        orders = [Order(symbol=name, amount=0.0, unit="target_weight") for name in gone]
        orders += [Order(symbol=name, amount=0.18, unit="target_weight") for name in names]
        return Decision(orders=tuple(orders), reason="")


def leak_rows(seed: int) -> list[Said]:
    """Return the result of the real leak test on one rule per share of days, over a year of a small
    market.
    """
    found = []
    with tempfile.TemporaryDirectory(prefix="confusion-") as folder:
        world = generate(preset("us", seed=seed, names=20, sessions=512, index_members=20))
        write_snapshot(world.panel, Path(folder) / "world")
        snapshot: Snapshot = open_snapshot(Path(folder) / "world")
        days = [str(day) for day in snapshot.sessions]
        base = benchmarks.get("daily-us-v1")
        market = msgspec.structs.replace(base.market, first=days[260], last=days[511])
        played = msgspec.structs.replace(base, id="confusion", market=market)
        for share in (0.0, 0.01, 0.05, 0.2):

            def make(share: float = share) -> Leaker:
                return Leaker(share, seed)

            report = leak_test(make, played, snapshot, config=LeakTestConfig())
            name = (
                "honest rule (leak test)"
                if not share
                else f"leak on {100 * share:.0f} % of days (leak test)"
            )
            found.append((name, "leak" if report.leaks else "luck"))
    return found


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """One market, in one process: a seed, or a window of a panel. ``parts`` selects the tests."""

    seed: int
    parts: tuple[str, ...]
    nulls: int = 0
    skilled: int = 5
    series: int = 5
    window: tuple[str, str, str] | None = None


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """A market's verdicts, its tests by share of places filled with knowledge, and the CPU
    seconds they took.
    """

    job: Job
    said: tuple[Said, ...]
    tests: dict[str, tuple[tuple[float, bool], ...]] = {}
    seconds: float = 0.0


def worked(job: Job) -> Judged:
    """Run the requested tests in one market."""
    began = time.process_time()
    if job.parts == ("leaks",):
        return Judged(job=job, said=tuple(leak_rows(job.seed)), seconds=time.process_time() - began)
    if job.window is not None:
        name, first, last = job.window
        world = real_world(load_dataset(name), first, last, seed=job.seed)
    else:
        world = planted_world(job.seed, sessions=SESSIONS)
    made: dict[str, Iterator[Said]] = {
        "nulls": nulls(world, job.nulls),
        "skilled": skilled(world, job.skilled),
        "plants": plants(world),
        "series": series_rows(world, job.series),
    }
    said = tuple(one for part, found in made.items() if part in job.parts for one in found)
    tests = {
        str(skill): tuple(
            (one.ratio, one.above)
            for one in edge_tests(world, "skilled", PlantConfig(skill=skill), CONFIG, agents=3)
        )
        for skill in (SKILLS if "power" in job.parts else ())
    }
    return Judged(job=job, said=said, tests=tests, seconds=time.process_time() - began)


def shown(measure: Measure) -> str:
    """Return a share as the tables print it."""
    if measure.value is None:
        return ""
    return (
        f"{100 * measure.value:.0f} % ({100 * (measure.low or 0):.0f} to "
        f"{100 * (measure.high or 0):.0f})"
    )


def table(rows: dict[str, Row]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| agent | judged | said | right | praised | blamed | bar |"
    yield "|---|---|---|---|---|---|---|"
    for row in rows.values():
        said = ", ".join(f"{kind} {row.said[kind]}" for kind in KINDS if row.said[kind])
        bars = "; ".join(
            f"{bar}: {said if said != 'missed' else '**missed**'}" for bar, said in row.bars.items()
        )
        cells = " | ".join(shown(row.share(kinds)) for kinds in (row.right, PRAISE, BLAME))
        yield f"| {row.name} | {sum(row.said.values())} | {said} | {cells} | {bars} |"


def power(tests: dict[str, list[tuple[float, bool]]]) -> Iterator[str]:
    """Yield how often the verdict's test detects skill of a given size."""
    yield "\n| places filled with knowledge | mean information ratio | the test sees it |"
    yield "|---|---|---|"
    for skill, found in tests.items():
        ratio = sum(ratio for ratio, _ in found) / len(found)
        seen = rate_measure(
            sum(above for _, above in found), len(found), nothing="none", level=0.95
        )
        yield f"| {float(skill):.0%} | {ratio:.1f} | {shown(seen)} |"


def read_results(path: Path | None) -> list[Judged]:
    """Return the results of earlier parts of the measurement."""
    if path is None or not path.exists():
        return []
    return [msgspec.json.decode(line, type=Judged) for line in path.read_bytes().splitlines()]


def jobs_of(asked: argparse.Namespace) -> list[Job]:
    """Return the requested markets."""
    wanted = tuple(asked.only.split(",")) if asked.only else PARTS
    unknown = sorted(set(wanted) - set(PARTS))
    if unknown:
        raise SystemExit(f"no part {', '.join(unknown)}: choose from {', '.join(PARTS)}")
    parts = tuple(part for part in wanted if part != "leaks")
    seeds = range(asked.first, asked.first + asked.worlds)
    sizes = {"nulls": asked.nulls, "skilled": asked.skilled, "series": asked.series}
    jobs = [Job(seed=seed, parts=parts, **sizes) for seed in seeds if parts]
    for number, window in enumerate(filter(None, asked.windows.split(","))):
        first, _, last = window.partition("..")
        jobs.append(
            Job(seed=asked.first + number, parts=parts, window=(asked.panel, first, last), **sizes)
        )
    leaks = asked.leaks if "leaks" in wanted else 0
    return jobs + [Job(seed=asked.first + number, parts=("leaks",)) for number in range(leaks)]


def main() -> int:
    """Make the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--worlds", type=int, default=20)
    parser.add_argument(
        "--nulls", type=int, default=18, help="null models per world and length, and as many rules"
    )
    parser.add_argument(
        "--skilled", type=int, default=5, help="skilled agents per world, of each kind"
    )
    parser.add_argument(
        "--series", type=int, default=5, help="accounts of every kind known by returns, per world"
    )
    parser.add_argument("--leaks", type=int, default=10, help="rules per share of leaking days")
    parser.add_argument("--first", type=int, default=FIRST, help="seed of the first world")
    parser.add_argument("--only", default="", help=f"some of {','.join(PARTS)}")
    parser.add_argument("--panel", help="a stored data set to plant agents in")
    parser.add_argument("--windows", default="", help="FIRST..LAST, several with commas")
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--results", type=Path, help="a file (JSON lines) to append to")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    found = read_results(asked.results)
    jobs = [job for job in jobs_of(asked) if job not in {one.job for one in found}]
    with ProcessPoolExecutor(asked.cores) if asked.cores > 1 else nullcontext() as pool:
        for one in (map if pool is None else pool.map)(worked, jobs):
            found.append(one)
            sys.stderr.write(f"{one.job.window or one.job.seed}: {one.seconds:.0f} s of CPU\n")
            if asked.results is not None:
                with asked.results.open("ab") as file:
                    file.write(msgspec.json.encode(one) + b"\n")
    rows: dict[str, Row] = {}
    tests: dict[str, list[tuple[float, bool]]] = {}
    for one in found:
        for name, kind in one.said:
            rows.setdefault(name, row_of(name)).said[kind] += 1
        for skill, seen in one.tests.items():
            tests.setdefault(skill, []).extend(seen)
    if asked.json:
        made = [
            {"name": row.name, "said": dict(row.said), "bars": row.bars} for row in rows.values()
        ]
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(made)) + b"\n")
    else:
        sys.stdout.write("\n".join([*table(rows), *(power(tests) if tests else ())]) + "\n")
    missed = [row.name for row in rows.values() if "missed" in row.bars.values()]
    sys.stderr.write(
        f"{sum(one.seconds for one in found):.0f} seconds of CPU; missed: "
        f"{', '.join(missed) or 'none'}\n"
    )
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
