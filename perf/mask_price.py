"""Does a mask's price clear agents that lose information, and still find those that remember?

    python perf/mask_price.py --worlds 200 --first 700000 --keep cases.jsonl
    python perf/mask_price.py --runs again/runs --unread dose-000,dose-001,dose-003

Every agent plays synthetic worlds with and without a mask: one that it may have read, and one or
four that it cannot have read. Some read what the mask does not touch. Some read what it destroys,
in both worlds: news by the name of the firm, or the season by the date. Some remember the first
world, and some do both. Every one is judged in the first alone, and with the others as the mask's
price.

Cases are added to the first file of ``--keep``, and the table is that of all its files: with
``--worlds 0`` of those alone. With ``--runs`` the recorded worlds of ``examples/memory`` are judged
instead, all others by those that are ``--unread``: dose 0, about which the model read nothing.
"""

from __future__ import annotations

import argparse
from collections import Counter, deque
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.measure import above, below
from tradeassay.metrics import rate_measure
from tradeassay.metrics.attribution import DailyParts, decompose
from tradeassay.verdict import AgentFindings, VerdictConfig
from tradeassay.verdict.evidence import MARKET, MeanTest, gaps_of, mask_price, with_price
from tradeassay.verdict.questions import first_verdict
from tradeassay.verdict.record import AgentAssay, Claim, LeakEvidence
from tradeassay_bench.examine.planted import (
    FIRST_WORLD,
    YEAR,
    Bench,
    Plant,
    PlantConfig,
    PlantedWorld,
    daily_rows,
    planted_world,
    weights_of,
)
from tradeassay_bench.report.paste_cells import in_line

UNREAD = (1, 4)
"""How many worlds, of a year each, measure the price."""
DOSES = (0.1, 0.2, 0.3, 0.45)
CLEAR = ("reads prices", "guesses", "reads news under any mask", "reads names", "reads the season")
"""Agents that remember nothing."""
REMEMBERING = (
    *(f"remembers names, dose {dose:g}" for dose in DOSES),
    "remembers days",
    "reads names and remembers names",
)


class PricedBench(Bench):
    """One world with agents that read, remember, or do both; ``read`` is whether they may
    remember it.
    """

    read = True

    def _played(self, plant: Plant, seed: int, *, masked: bool) -> tuple[DailyParts, Floats]:
        held = holdings(plant, self.world, self.plants, seed=seed, masked=masked, read=self.read)
        model = self.world.inputs.model
        weights = np.zeros(model.returns.shape)
        weights[:, self.world.columns] = held
        return decompose(model, weights), held

    def _leaks(self, plant: Plant, seed: int, weights: Floats) -> LeakEvidence:
        return LeakEvidence(tested=True, bound=0.01)

    def gaps(self, plant: Plant) -> dict[Claim, Floats]:
        """Return what the mask takes of every claim."""
        market = self.world.inputs.references[MARKET]
        bright, masked = (
            daily_rows(self._played(plant, 0, masked=hidden)[0], market) for hidden in (False, True)
        )
        return gaps_of(bright, masked)


def holdings(
    agent: str, world: PlantedWorld, plants: PlantConfig, *, seed: int, masked: bool, read: bool
) -> Floats:
    """Return what an agent holds at the start of every session."""
    if agent == "reads prices":
        return weights_of("style", world, plants, seed=seed)
    if agent == "guesses":
        return weights_of("noise", world, plants, seed=seed, masked=masked)
    if agent == "reads news under any mask":
        return weights_of("skilled", world, plants, seed=seed, masked=masked)
    if agent == "reads names":
        seen = msgspec.structs.replace(plants, skill=0.0) if masked else plants
        return weights_of("skilled", world, seen, seed=seed, masked=masked)
    if agent == "reads the season":
        return weights_of("dates", world, plants, seed=seed, masked=masked)
    # Whoever has not read a world acts there as under a mask, with other dice.
    lost, dice = masked or not read, seed if read or masked else seed + 100
    if agent == "remembers days":
        return weights_of("dates", world, plants, seed=dice, masked=lost)
    if agent == "reads names and remembers names":
        half = holdings("reads names", world, plants, seed=seed, masked=masked, read=read)
        other = weights_of("memorising", world, plants, seed=dice, masked=lost)
        mixed: Floats = (half + other) / 2.0
        return mixed
    dose = float(agent.rpartition(" ")[2])
    plants = msgspec.structs.replace(plants, memory=dose)
    return weights_of("memorising", world, plants, seed=dice, masked=lost)


class Case(msgspec.Struct):
    """One agent in one world: the verdict by its gap alone, and with a price by some ``unread``
    worlds.
    """

    agent: str
    unread: int
    alone: str
    priced: str
    firm: bool
    gap: float
    lost: float
    memory: float
    covers_zero: bool


class Played(msgspec.Struct):
    """One world: every agent judged as in a world that it may have read, and its gaps as in one
    that it has not.
    """

    seed: int
    judged: dict[str, AgentAssay]
    unread_gaps: dict[str, dict[Claim, Floats]]


def play(seed: int, names: int, config: VerdictConfig) -> Played:
    """Play one world both ways."""
    bench = PricedBench(planted_world(seed, names=names), PlantConfig(), config, portfolios=200)
    judged = {agent: bench.judge(agent) for agent in (*CLEAR, *REMEMBERING)}
    bench.read = False
    gaps = {agent: bench.gaps(agent) for agent in (*CLEAR, *REMEMBERING)}
    return Played(seed, judged, gaps)


def case_of(agent: str, here: Played, unread: list[Played], config: VerdictConfig) -> Case:
    """Judge one agent with a price by worlds that it has not read."""
    judged = here.judged[agent]
    assert judged.memory is not None
    each = [world.unread_gaps[agent] for world in unread]
    gaps: dict[Claim, Floats] = {
        claim: np.concatenate([one[claim] for one in each]) for claim in each[0]
    }
    price = mask_price(gaps, MeanTest(YEAR, config), tuple(str(world.seed) for world in unread))
    memory = with_price(judged.memory, price)
    account: AgentFindings = msgspec.structs.replace(judged, memory=memory)
    assert not isinstance(memory.priced, msgspec.UnsetType)
    lost, remembered = memory.priced.lost, memory.priced.remembered
    verdict = first_verdict(account, config)
    return Case(
        agent=agent,
        unread=len(unread),
        alone=judged.verdict.kind,
        priced=verdict.kind,
        firm=verdict.firm,
        gap=memory.gap.value or 0.0,
        lost=lost.value or 0.0,
        memory=remembered.value or 0.0,
        covers_zero=not (above(remembered) or below(remembered)),
    )


def cases(first: int, worlds: int, names: int, config: VerdictConfig) -> Iterator[Case]:
    """Yield every agent in every world; those that follow it are the ones that it has not read."""
    most = max(UNREAD)
    played = deque(play(first + number, names, config) for number in range(most))
    for number in range(worlds):
        played.append(play(first + most + number, names, config))
        here, *unread = played
        for agent in (*CLEAR, *REMEMBERING):
            for count in UNREAD:
                yield case_of(agent, here, unread[:count], config)
        played.popleft()


def rate(hits: int, of: int) -> str:
    """Return a share with its interval."""
    return in_line(rate_measure(hits, of, nothing="none was judged"), "{:.1%}")


def planted_table(found: list[Case]) -> None:
    """Print what every agent was called."""
    print(
        "| agent | gap a year | lost information | memory | *memory* by the gap alone | *memory* "
        "with the price "
        "| of it firm | memory covers 0 |\n|---|---|---|---|---|---|---|---|"
    )
    for agent in (*CLEAR, *REMEMBERING):
        own = [case for case in found if case.agent == agent]
        sizes = [
            float(np.mean([getattr(c, name) for c in own])) for name in ("gap", "lost", "memory")
        ]
        accused = [
            sum(c.alone == "memory" for c in own),
            sum(c.priced == "memory" for c in own),
        ]
        firm = sum(case.priced == "memory" and case.firm for case in own)
        cells = [f"{size:+.1%}" for size in sizes]
        cells += [rate(count, len(own)) for count in (*accused, firm)]
        cells.append(rate(sum(case.covers_zero for case in own), len(own)))
        print(f"| {agent} | {' | '.join(cells)} |")
    for agent in (*CLEAR, *REMEMBERING):
        words = Counter(case.priced for case in found if case.agent == agent)
        print(agent, dict(words))
    created = sum(case.priced == "memory" != case.alone for case in found)
    print(f"accused with the price and not without it: {created} of {len(found)}")


def recorded_table(runs: Path, unread: list[str]) -> None:
    """Print what the worlds of ``examples/memory`` were called, by the mask alone and with its
    price.
    """
    from tradeassay_bench.examine.agent_rows import agent_row
    from tradeassay_bench.examine.attribute import attribute_run
    from tradeassay_bench.examine.judge import assay_run
    from tradeassay_bench.examine.mask_price import mask_prices
    from tradeassay_bench.runs import Run

    config = VerdictConfig(portfolios=0)
    print("| world | gap a year | lost information | memory | by the gap alone | with the price |")
    print("|---|---|---|---|---|---|")
    for folder in sorted(runs.iterdir()):
        others = [Run.load(runs / name) for name in unread if name != folder.name]
        run = Run.load(folder)
        attribution = attribute_run(run, convention="corrected", intervals=False)
        rows = [agent_row(run, scores, attribution) for scores in run.scores.agents]
        prices = mask_prices(run, rows, rows, others, config, unread=False)
        judged = assay_run(run, config)
        for one in judged.agents:
            if one.memory is None or one.memory.gap.value is None:
                continue
            (price,) = prices.values()
            memory = with_price(one.memory, price)
            account: AgentFindings = msgspec.structs.replace(one, memory=memory)
            priced = memory.priced
            assert not isinstance(priced, msgspec.UnsetType)
            sizes = [
                in_line(part, "{:+.0%}") for part in (memory.gap, priced.lost, priced.remembered)
            ]
            print(
                f"| {folder.name} | {' | '.join(sizes)} | {one.verdict.label} | "
                f"{first_verdict(account, config).label} |",
                flush=True,
            )


def main() -> None:
    """Judge planted agents, or recorded ones, and print the table."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--worlds", type=int, default=100)
    reader.add_argument("--names", type=int, default=100)
    reader.add_argument("--first", type=int, default=FIRST_WORLD, help="seed of the first world")
    reader.add_argument(
        "--keep", type=Path, nargs="+", default=[Path("mask_price.jsonl")], help="files of cases"
    )
    reader.add_argument("--runs", type=Path, help="the runs of recorded worlds")
    reader.add_argument("--unread", default="", help="the names of those that the model never read")
    asked = reader.parse_args()
    if asked.runs is not None:
        recorded_table(asked.runs, asked.unread.split(","))
        return
    if asked.worlds:
        with asked.keep[0].open("ab") as file:
            for case in cases(asked.first, asked.worlds, asked.names, VerdictConfig()):
                file.write(msgspec.json.encode(case) + b"\n")
                file.flush()
    lines = [line for file in asked.keep for line in file.read_bytes().splitlines()]
    found = [msgspec.json.decode(line, type=Case) for line in lines]
    for count in UNREAD:
        print(f"\n{count} unread worlds of a year\n")
        planted_table([case for case in found if case.unread == count])


if __name__ == "__main__":
    main()
