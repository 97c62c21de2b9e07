"""How often the verdict is right: agents of every kind, of which the truth is known, in worlds nothing was set by.

    python perf/verdict_confusion.py [--worlds 10] [--nulls 30] [--leaks 4] [--sessions 756] [--json] [--svg
    power.svg]

Every world has 200 names, a year of history and three years that are played. Rows: nulls (they hold names drawn by
chance, a few or many, for a day or a month, with and without costs), five kinds of passive portfolio, planted
selection, timing, style, memory, edges that costs eat, the best of many (declared, and found in the folder);
accounts of which only returns are known (stale, short volatility); and rules that leak on 1, 5 and 20 % of days,
played in a market and put before the real leak test. The exit status is 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np

from tradeassay.assay.leaks import LeakTestConfig, leak_test
from tradeassay.assay.own_tables import OwnSeries
from tradeassay.assay.planted import PASSIVE, Bench, PlantConfig, PlantedWorld, edge_tests, planted_world
from tradeassay.assay.verdict import KINDS, VerdictConfig
from tradeassay.assay.verdict.assaying import assay_series
from tradeassay.benchmarks import benchmarks
from tradeassay.core.agent import AskDecision, EpisodeInfo
from tradeassay.core.measure import Measure
from tradeassay.core.orders import Decision, Order
from tradeassay.data import Snapshot, open_snapshot, write_snapshot
from tradeassay.data.synthetic import generate, preset
from tradeassay.metrics import rate_measure

FIRST = 1_310_000
"""Seeds from here on; nothing was tuned on them."""
CONFIG = VerdictConfig(draws=200)
PRAISE = ("skill", "timing", "mixed")
SKILLS = (0.0, 0.02, 0.05, 0.1, 0.2)


class Row(msgspec.Struct):
    """One kind of agent: what was said of it, which of that is right, and the bar (at least, or at most, so
    often)."""

    name: str
    said: Counter[str]
    right: tuple[str, ...]
    least: float | None = None
    wrong: tuple[str, ...] = ()
    most: float | None = None

    @property
    def count(self) -> int:
        return sum(self.said.values())

    def share(self, kinds: tuple[str, ...]) -> Measure:
        """Return how often one of some words was said."""
        hits = sum(self.said[kind] for kind in kinds)
        return rate_measure(hits, self.count, nothing="nobody was judged", level=0.95)

    @property
    def met(self) -> bool:
        """Whether the bar is met, as far as so few trials can tell against it."""
        found, bad = self.share(self.right), self.share(self.wrong)
        enough = self.least is None or (found.high or 0.0) >= self.least
        return enough and (self.most is None or (bad.low or 0.0) <= self.most)


def judged(
    world: PlantedWorld, plant: str, planting: PlantConfig, seeds: range, *, declared: bool = True
) -> list[str]:
    """Return the kinds of verdict on several agents of one kind in one world."""
    bench = Bench(world, planting, CONFIG, portfolios=200)
    return [bench.judge(plant, seed=seed, declared=declared).verdict.kind for seed in seeds]  # type: ignore[arg-type]  # a plant


def nulls(world: PlantedWorld, count: int) -> Iterator[tuple[str, str]]:
    """Yield (kind of null, verdict): few names and many, with costs and without."""
    third = max(1, count // 3)
    for name, plant, planting in (
        ("null: 40 of 200 names", "noise", PlantConfig()),
        ("null: 10 of 200 names", "noise", PlantConfig(held=0.05)),
        ("null: churning, 10 bp", "churning", PlantConfig(held=0.1)),
    ):
        for kind in judged(world, plant, planting, range(third)):
            yield name, kind


def series_rows(world: PlantedWorld, count: int) -> Iterator[tuple[str, str]]:
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


def leak_rows(count: int, seed: int) -> Iterator[tuple[str, str]]:
    """Yield (share of days, what the real leak test said) over a year of a small market."""
    with tempfile.TemporaryDirectory(prefix="confusion-") as folder:
        world = generate(preset("us", seed=seed, names=20, sessions=512, index_members=20))
        write_snapshot(world.panel, Path(folder) / "world")
        snapshot: Snapshot = open_snapshot(Path(folder) / "world")
        days = [str(day) for day in snapshot.sessions]
        base = benchmarks.get("daily-us-v1")
        market = msgspec.structs.replace(base.market, first=days[260], last=days[511])
        played = msgspec.structs.replace(base, id="confusion", market=market)
        for share in (0.0, 0.01, 0.05, 0.2):
            for number in range(count):

                def make(share: float = share, number: int = number) -> Leaker:
                    return Leaker(share, seed + number)

                report = leak_test(make, played, snapshot, config=LeakTestConfig())
                name = "honest rule (leak test)" if not share else f"leak on {share:.0%} of days (leak test)"
                yield name, "leak" if report.leaks else "luck"


def collect(pairs: Iterator[tuple[str, str]], rows: dict[str, Row], make: Callable[[str], Row]) -> None:
    """Count verdicts by the kind of agent."""
    for name, kind in pairs:
        rows.setdefault(name, make(name)).said[kind] += 1


def bar_of(name: str) -> Row:
    """Return an empty row with its bar."""
    if name.startswith("null"):
        return Row(name, Counter(), ("luck", "costs", "style", "market"), None, (*PRAISE, "worse", "tail"), 0.05)
    if name in PASSIVE or name.startswith("stale"):
        return Row(name, Counter(), ("market",), 0.95, tuple(kind for kind in KINDS if kind != "market"), 0.0)
    if name.startswith("honest"):
        return Row(name, Counter(), ("luck",), 0.95, ("leak",), 0.0)
    if name.startswith("leak on"):
        return Row(name, Counter(), ("leak",), None if " 1%" in name else 0.95)
    right = {
        "style": ("style",),
        "memorising": ("memory",),
        "eaten": ("costs",),
        "best of 30, declared": ("luck",),
        "best of 30, found in the folder": ("luck",),
        "mixed": ("mixed",),
        "timing": ("timing", "mixed"),
        "short volatility (returns only)": ("tail", "luck"),
        "information ratio 2 (returns only)": ("skill",),
    }.get(name, PRAISE)
    wrong = () if name in ("mixed", "timing") or name.startswith(("skilled", "information")) else PRAISE
    least = 0.9 if name.startswith(("skilled", "information")) else None
    return Row(name, Counter(), right, least, wrong, 0.05 if wrong else None)


def plants(world: PlantedWorld) -> Iterator[tuple[str, str]]:
    """Yield verdicts on everything that is planted in a world."""
    small = PlantConfig(skill=0.05, tries=30)
    yield "skilled (selection)", judged(world, "skilled", small, range(1))[0]
    for plant in ("mixed", "style", "timing", "eaten", "memorising", *PASSIVE):
        yield plant, judged(world, plant, PlantConfig(skill=0.1, foresight=0.56), range(1))[0]
    yield "best of 30, declared", judged(world, "lucky", small, range(1))[0]
    yield "best of 30, found in the folder", judged(world, "lucky", small, range(1), declared=False)[0]


def shown(measure: Measure) -> str:
    """Return a share as the tables print it."""
    if measure.value is None:
        return ""
    return f"{100 * measure.value:.0f} % ({100 * (measure.low or 0):.0f} to {100 * (measure.high or 0):.0f})"


def table(rows: dict[str, Row]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield "| agent | judged | said | right | praised or blamed wrongly | bar |"
    yield "|---|---|---|---|---|---|"
    for row in rows.values():
        said = ", ".join(f"{kind} {n}" for kind, n in row.said.most_common())
        bars = [] if row.least is None else [f"right in {row.least:.0%}"]
        bars += [] if row.most is None else [f"wrong in at most {row.most:.0%}"]
        wrong = shown(row.share(row.wrong)) if row.wrong else ""
        met = "" if not bars else " met" if row.met else " **MISSED**"
        right = shown(row.share(row.right))
        yield f"| {row.name} | {row.count} | {said} | {right} | {wrong} | {', '.join(bars)}{met} |"


def power(worlds: list[PlantedWorld]) -> Iterator[str]:
    """Yield how often skill of a size is seen by the test behind the verdict."""
    yield "\n| names chosen with knowledge | information ratio | the test sees it |"
    yield "|---|---|---|"
    for skill in SKILLS:
        tests = [
            one
            for world in worlds
            for one in edge_tests(world, "skilled", PlantConfig(skill=skill), CONFIG, agents=3)
        ]
        ratio = sum(one.ratio for one in tests) / len(tests)
        seen = rate_measure(sum(one.above for one in tests), len(tests), nothing="none", level=0.95)
        yield f"| {skill:.0%} | {ratio:.1f} | {shown(seen)} |"


def main() -> int:
    """Make the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--worlds", type=int, default=10)
    parser.add_argument("--nulls", type=int, default=30, help="null agents per world")
    parser.add_argument("--leaks", type=int, default=4, help="rules per share of leaking days")
    parser.add_argument("--sessions", type=int, default=756, help="sessions played in a world")
    parser.add_argument("--first", type=int, default=FIRST, help="seed of the first world")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    started = time.process_time()
    rows: dict[str, Row] = {}
    worlds = []
    for seed in range(asked.first, asked.first + asked.worlds):
        world = planted_world(seed, sessions=asked.sessions)
        worlds.append(world)
        collect(nulls(world, asked.nulls), rows, bar_of)
        collect(plants(world), rows, bar_of)
        collect(series_rows(world, 3), rows, bar_of)
        sys.stderr.write(f"world {seed}: {time.process_time() - started:.0f} s of CPU\n")
    if asked.leaks:
        collect(leak_rows(asked.leaks, asked.first), rows, bar_of)
    if asked.json:
        text = msgspec.json.encode(list(rows.values()))
        sys.stdout.write(json.dumps(json.loads(text), indent=2) + "\n")
    else:
        lines = [*table(rows), *power(worlds)]
        sys.stdout.write("\n".join(lines) + "\n")
    sys.stderr.write(f"{time.process_time() - started:.0f} s of CPU\n")
    missed = [row.name for row in rows.values() if not row.met]
    sys.stderr.write("met\n" if not missed else f"MISSED: {', '.join(missed)}\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
