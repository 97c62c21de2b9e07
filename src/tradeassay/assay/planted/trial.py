"""Planted agents before the judge: every piece of evidence is made, then the verdict, as for anybody else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
import numpy as np

from tradeassay.assay.luck.percentile import place_among
from tradeassay.assay.planted.agents import EXPECTED, PLANTS, Plant, PlantConfig, crowd, weights_of
from tradeassay.assay.planted.world import PlantedWorld
from tradeassay.assay.verdict.config import VerdictConfig
from tradeassay.assay.verdict.decide import judge
from tradeassay.assay.verdict.evidence import EDGE, above, below, tested
from tradeassay.assay.verdict.memory_evidence import memory_evidence
from tradeassay.assay.verdict.of_run import with_daily
from tradeassay.assay.verdict.record import KINDS, AgentAssay, AgentFindings, LeakEvidence, LuckEvidence, Ranks
from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.view import Floats
from tradeassay.metrics import BootstrapConfig, growth, rate_measure
from tradeassay.metrics.attribution import DailyParts, decompose, preferences, rows_of

YEAR = 252
CUTS = 4
"""Moments after which the leak test rewrites the future."""


class Confusion(msgspec.Struct, frozen=True, kw_only=True):
    """Verdicts by kind of planted agent: ``counts[plant][kind]``, and how often each got what it deserves."""

    worlds: int
    counts: dict[str, dict[str, int]]
    right: dict[str, Measure]

    @property
    def false_skill(self) -> Measure:
        """How often agents without skill (noise, and the luckiest of many) were said to have some."""
        honest = [self.counts[name] for name in ("noise", "lucky") if name in self.counts]
        wrong = sum(row.get("skill", 0) + row.get("mixed", 0) for row in honest)
        return rate_measure(wrong, sum(sum(row.values()) for row in honest), nothing="none was judged", level=0.95)


class Bench:
    """One world with what all its agents share: the crowd of random portfolios."""

    def __init__(
        self, world: PlantedWorld, plants: PlantConfig, config: VerdictConfig, *, portfolios: int = 400
    ) -> None:
        self.world, self.plants, self.config = world, plants, config
        self._crowd = crowd(world, plants, portfolios=portfolios)

    def judge(self, plant: Plant, *, seed: int = 0) -> AgentAssay:
        """Return the verdict on one planted agent, with its masked twin, luck baseline and leak test.

        The lucky one says how many were tried; nobody else tried more than one.
        """
        config = self.config
        if plant == "lucky":
            config = msgspec.structs.replace(config, trials=config.trials * self.plants.tries)
        daily, weights = self._played(plant, seed, masked=False)
        rows = _rows(daily)
        found = AgentFindings(
            cell=f"planted-{self.world.seed}",
            benchmark="planted",
            dataset=self.world.inputs.dataset,
            agent=plant,
            by_model=True,
            baseline=False,
            seeds=1,
            failed_seeds=0,
            sessions=self.world.sessions,
            first=self.world.inputs.sessions[0],
            last=self.world.inputs.sessions[-1],
            total=not_scored("not measured yet"),
            excess=not_scored("no index"),
            exposures=preferences(daily, bootstrap=BootstrapConfig(draws=config.draws)),
            luck=self._luck(daily.total),
            memory=memory_evidence(
                rows, _rows(self._played(plant, seed, masked=True)[0]), YEAR, config, against="blinded"
            ),
            leaks=self._leaks(plant, seed, weights),
            failure_rate=Measure(value=0.0, n=self.world.sessions),
            ranks=Ranks(of=1, by_return=1, by_excess=None, by_selection=1),
        )
        return judge(with_daily(found, rows, YEAR, config, 1), config)

    def _played(self, plant: Plant, seed: int, *, masked: bool) -> tuple[DailyParts, Floats]:
        held = weights_of(plant, self.world, self.plants, seed=seed, masked=masked)
        weights = np.zeros(self.world.inputs.model.returns.shape)
        weights[:, self.world.columns] = held
        return decompose(self.world.inputs.model, weights), held

    def _luck(self, total: Floats) -> LuckEvidence:
        place = place_among(growth(total), self._crowd, bootstrap=BootstrapConfig(draws=100))
        as_well = round((place.by_luck.value or 0.0) * place.portfolios)
        return LuckEvidence(
            percentile=place.percentile,
            p=(as_well + 1) / (place.portfolios + 1),
            portfolios=place.portfolios,
            quantiles=place.quantiles,
        )

    def _leaks(self, plant: Plant, seed: int, weights: Floats) -> LeakEvidence:
        """Play the agent in other futures: what it held until then must stay what it was."""
        rows = np.linspace(0.2, 0.8, CUTS) * self.world.sessions
        moved = 0
        for row in rows.astype(int).tolist():
            other = weights_of(plant, self.world.other_future(row, seed), self.plants, seed=seed)
            moved += not np.array_equal(other[: row + 1], weights[: row + 1])
        if moved:
            said = f"{moved} of {CUTS} other futures changed what was held before them"
            return LeakEvidence(tested=True, findings=("bars",), sentence=said)
        return LeakEvidence(tested=True, sentence=f"{CUTS} other futures changed nothing that came before them")


def confusion(
    worlds: Iterable[PlantedWorld],
    *,
    plants: Sequence[Plant] = PLANTS,
    planting: PlantConfig | None = None,
    config: VerdictConfig | None = None,
    portfolios: int = 400,
) -> Confusion:
    """Judge every kind of agent in every world and count the verdicts."""
    counts: dict[str, dict[str, int]] = {plant: dict.fromkeys(KINDS, 0) for plant in plants}
    seen = 0
    for world in worlds:
        bench = Bench(world, planting or PlantConfig(), config or VerdictConfig(), portfolios=portfolios)
        for plant in plants:
            counts[plant][bench.judge(plant).verdict.kind] += 1
        seen += 1
    return Confusion(worlds=seen, counts=counts, right=_right(counts))


class EdgeTest(msgspec.Struct, frozen=True, kw_only=True):
    """The one test behind "skill supported": was the edge found above, or below, zero? ``ratio`` is its yearly
    information ratio."""

    above: bool
    below: bool
    ratio: float


def edge_tests(
    world: PlantedWorld, plant: Plant, planting: PlantConfig, config: VerdictConfig, *, agents: int = 10
) -> tuple[EdgeTest, ...]:
    """Return the test on several planted agents of one kind, without the rest of the evidence."""
    found = []
    for seed in range(agents):
        weights = np.zeros(world.inputs.model.returns.shape)
        weights[:, world.columns] = weights_of(plant, world, planting, seed=seed)
        edge = _rows(decompose(world.inputs.model, weights))[EDGE]
        measure = tested(edge, YEAR, config, 1)
        ratio = float(edge.mean() / edge.std() * np.sqrt(YEAR)) if edge.std() > 0 else 0.0
        found.append(EdgeTest(above=above(measure), below=below(measure), ratio=ratio))
    return tuple(found)


def _right(counts: Mapping[str, Mapping[str, int]]) -> dict[str, Measure]:
    return {
        plant: rate_measure(row[EXPECTED[plant]], sum(row.values()), nothing="none was judged", level=0.95)
        for plant, row in ((plant, counts[plant]) for plant in PLANTS if plant in counts)
    }


def _rows(daily: DailyParts) -> dict[str, Floats]:
    rows = rows_of(daily)
    return rows | {EDGE: rows["selection"] + rows["trading"]}
