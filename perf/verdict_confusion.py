"""How often the verdict is right: agents of every kind, of which the truth is known, in unseen markets.

    python perf/verdict_confusion.py [--worlds 20] [--nulls 18] [--leaks 10] [--cores 4] [--json]
    python perf/verdict_confusion.py --panel sp500-news --windows 2013-01-02..2015-12-31,... --worlds 0 --leaks 0

A world has 200 names, a year of history and three years that are played; a panel is real data in the local store.
Rows: nulls (they hold names drawn by chance, a few or many, for a day or a week, with and without costs) over half
a year to three years, five kinds of passive portfolio, planted selection, timing, style, memory, edges that costs
eat, the best of many (declared, and found in the folder); accounts of which only returns are known (stale, short
volatility); and rules that leak on 1, 5 and 20 % of days, played in a market and put before the real leak test.
The exit status is 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
import numpy as np

from tradeassay.assay.leaks import LeakTestConfig, leak_test
from tradeassay.assay.own_tables import OwnSeries
from tradeassay.assay.planted import (
    PASSIVE,
    Bench,
    Plant,
    PlantConfig,
    PlantedWorld,
    edge_tests,
    planted_world,
    real_world,
    share_of,
)
from tradeassay.assay.verdict import KINDS, VerdictConfig
from tradeassay.assay.verdict.assaying import assay_series
from tradeassay.benchmarks import benchmarks
from tradeassay.core.agent import AskDecision, EpisodeInfo
from tradeassay.core.measure import Measure
from tradeassay.core.orders import Decision, Order
from tradeassay.data import Snapshot, load_dataset, open_snapshot, write_snapshot
from tradeassay.data.synthetic import generate, preset
from tradeassay.metrics import rate_measure

FIRST = 1_310_000
"""Seeds from here on; nothing was tuned on them."""
SESSIONS = 756
LENGTHS = (126, 252, 504, 756)
CONFIG = VerdictConfig(draws=200)
PRAISE = ("skill", "timing", "mixed")
BLAME = ("worse", "leak", "memory")
SKILLS = (0.0, 0.05, 0.1, 0.2, 0.3)
SKILLED = "skilled (selection, information ratio about 2)"
Said = tuple[str, str]
"""A kind of agent, and the kind of verdict on it."""


@dataclass
class Row:
    """One kind of agent: which words are right and how often they must be said, how often praise or blame may."""

    name: str
    right: tuple[str, ...]
    least: float | None = None
    praised: float | None = None
    blamed: float | None = None
    said: Counter[str] = field(default_factory=Counter)

    def share(self, kinds: tuple[str, ...]) -> Measure:
        """Return how often one of some words was said, with Wilson's interval."""
        hits = sum(self.said[kind] for kind in kinds)
        return rate_measure(hits, sum(self.said.values()), nothing="nobody was judged", level=0.95)

    @property
    def missed(self) -> list[str]:
        """The bars that are missed by more than so few agents can tell."""
        found = []
        if self.least is not None and (self.share(self.right).high or 0.0) < self.least:
            found.append("right")
        for name, kinds, most in (("praised", PRAISE, self.praised), ("blamed", BLAME, self.blamed)):
            if most is not None and (self.share(kinds).low or 0.0) > most:
                found.append(name)
        return found


def row_of(name: str) -> Row:
    """Return an empty row with its bars."""
    if name.startswith("null"):
        return Row(name, ("luck", "costs", "style", "market"), praised=0.05, blamed=0.05)
    if name in PASSIVE or name.startswith("stale"):
        return Row(name, ("market",), 1.0, 0.0, 0.0)
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


def judged(world: PlantedWorld, plant: Plant, planting: PlantConfig, seeds: range = range(1)) -> list[str]:
    """Return the kinds of verdict on several agents of one kind in one world."""
    bench = Bench(world, planting, CONFIG, portfolios=200)
    return [bench.judge(plant, seed=seed).verdict.kind for seed in seeds]


def nulls(world: PlantedWorld, count: int) -> Iterator[Said]:
    """Yield nulls of every length: many names and few, and traded daily with costs."""
    kinds: tuple[tuple[Plant, PlantConfig], ...] = (
        ("noise", PlantConfig()),
        ("noise", PlantConfig(held=0.05)),
        ("churning", PlantConfig(held=0.1)),
    )
    for length in (one for one in LENGTHS if one <= world.sessions):
        part = world.until(length)
        for number, (plant, planting) in enumerate(kinds):
            for kind in judged(part, plant, planting, range(100 * number, 100 * number + count // 3)):
                yield f"null, {length} sessions", kind


def plants(world: PlantedWorld) -> Iterator[Said]:
    """Yield everything that is planted in a world."""
    yield SKILLED, judged(world, "skilled", PlantConfig(skill=share_of(world, 2.0)))[0]
    strong = PlantConfig(skill=0.4, foresight=0.6, memory=0.8)
    for plant in ("mixed", "style", "timing", "eaten", "memorising", *PASSIVE):
        yield plant, judged(world, plant, strong)[0]
    bench = Bench(world, PlantConfig(tries=30), CONFIG, portfolios=200)
    for name, declared in (("best of 30, declared", True), ("best of 30, found in the folder", False)):
        yield name, bench.judge("lucky", declared=declared).verdict.kind


def series_rows(world: PlantedWorld, count: int) -> Iterator[Said]:
    """Yield verdicts on accounts of which only returns are known, against the market's."""
    market = world.returns.mean(axis=1)
    days = tuple(str(day) for day in np.arange(world.sessions) + np.datetime64("2001-01-01"))
    rng = np.random.default_rng(world.seed)

    def said(total: np.ndarray) -> str:
        table = OwnSeries(
            returns=dict(zip(days, total.tolist(), strict=True)),
            against=dict(zip(days, market.tolist(), strict=True)),
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
        earned = bend * (market**2).mean() * 1.5 - bend * market**2 + rng.normal(0.0, 0.0004, market.size)
        yield "short volatility (returns only)", said(earned + rng.uniform(0.0, 0.3) * market)
        yield "null around the market (returns only)", said(market + rng.normal(0.0, 0.005, market.size))
        yield "information ratio 2 (returns only)", said(market + rng.normal(0.00063, 0.005, market.size))


class Leaker:
    """Holds five names by chance, and on some days those that will rise most."""

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
    """Return what the real leak test said of one rule per share of days, over a year of a small market."""
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
            name = "honest rule (leak test)" if not share else f"leak on {100 * share:.0f} % of days (leak test)"
            found.append((name, "leak" if report.leaks else "luck"))
    return found


@dataclass(frozen=True)
class Job:
    """One market, in one process: a seed, or a window of a panel; ``kind`` says what is asked."""

    kind: str
    seed: int
    nulls: int = 0
    window: tuple[str, str, str] | None = None


def worked(job: Job) -> tuple[list[Said], dict[float, list[tuple[float, bool]]], float]:
    """Return verdicts, tests by share of places filled with knowledge, and CPU seconds."""
    began = time.process_time()
    if job.kind == "leaks":
        return leak_rows(job.seed), {}, time.process_time() - began
    if job.window is not None:
        name, first, last = job.window
        world = real_world(load_dataset(name), first, last, seed=job.seed)
    else:
        world = planted_world(job.seed, sessions=SESSIONS)
    found = [*nulls(world, job.nulls), *plants(world), *series_rows(world, 3)]
    seen = {
        skill: [(one.ratio, one.above) for one in edge_tests(world, "skilled", PlantConfig(skill=skill), CONFIG,
                                                              agents=3)]
        for skill in SKILLS
    }  # fmt: skip
    return found, seen, time.process_time() - began


def shown(measure: Measure) -> str:
    """Return a share as the tables print it."""
    if measure.value is None:
        return ""
    return f"{100 * measure.value:.0f} % ({100 * (measure.low or 0):.0f} to {100 * (measure.high or 0):.0f})"


def table(rows: dict[str, Row]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| agent | judged | said | right | praised | blamed | bar |"
    yield "|---|---|---|---|---|---|---|"
    for row in rows.values():
        said = ", ".join(f"{kind} {row.said[kind]}" for kind in KINDS if row.said[kind])
        bars = [] if row.least is None else [f"right >= {row.least:.0%}"]
        bars += [f"{word} <= {most:.0%}" for word, most in (("praised", row.praised), ("blamed", row.blamed))
                 if most is not None]  # fmt: skip
        met = "" if not bars else f"; **missed: {', '.join(row.missed)}**" if row.missed else "; met"
        cells = " | ".join(shown(row.share(kinds)) for kinds in (row.right, PRAISE, BLAME))
        yield f"| {row.name} | {sum(row.said.values())} | {said} | {cells} | {', '.join(bars)}{met} |"


def power(tests: dict[float, list[tuple[float, bool]]]) -> Iterator[str]:
    """Yield how often skill of a size is seen by the test behind the verdict."""
    yield "\n| places filled with knowledge | mean information ratio | the test sees it |"
    yield "|---|---|---|"
    for skill, found in tests.items():
        ratio = sum(ratio for ratio, _ in found) / len(found)
        seen = rate_measure(sum(above for _, above in found), len(found), nothing="none", level=0.95)
        yield f"| {skill:.0%} | {ratio:.1f} | {shown(seen)} |"


def main() -> int:
    """Make the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=20)
    parser.add_argument("--nulls", type=int, default=18, help="null agents per world and length")
    parser.add_argument("--leaks", type=int, default=10, help="rules per share of leaking days")
    parser.add_argument("--first", type=int, default=FIRST, help="seed of the first world")
    parser.add_argument("--panel", help="a stored data set to plant agents in")
    parser.add_argument("--windows", default="", help="FIRST..LAST, several with commas")
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    seeds = range(asked.first, asked.first + asked.worlds)
    jobs = [Job("world", seed, asked.nulls) for seed in seeds]
    for number, window in enumerate(filter(None, asked.windows.split(","))):
        first, _, last = window.partition("..")
        jobs.append(Job("panel", asked.first + number, asked.nulls, (asked.panel, first, last)))
    jobs += [Job("leaks", asked.first + number) for number in range(asked.leaks)]
    rows: dict[str, Row] = {}
    tests: dict[float, list[tuple[float, bool]]] = {}
    used = 0.0
    with ProcessPoolExecutor(asked.cores) as pool:
        for job, (said, seen, seconds) in zip(jobs, pool.map(worked, jobs), strict=True):
            used += seconds
            sys.stderr.write(f"{job.kind} {job.window or job.seed}: {seconds:.0f} s of CPU\n")
            for name, kind in said:
                rows.setdefault(name, row_of(name)).said[kind] += 1
            for skill, found in seen.items():
                tests.setdefault(skill, []).extend(found)
    if asked.json:
        made = [{"name": row.name, "said": dict(row.said), "missed": row.missed} for row in rows.values()]
        sys.stdout.buffer.write(msgspec.json.format(msgspec.json.encode(made)) + b"\n")
    else:
        sys.stdout.write("\n".join([*table(rows), *(power(tests) if tests else ())]) + "\n")
    missed = [row.name for row in rows.values() if row.missed]
    sys.stderr.write(f"{used:.0f} s of CPU; " + (f"MISSED: {', '.join(missed)}\n" if missed else "met\n"))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
