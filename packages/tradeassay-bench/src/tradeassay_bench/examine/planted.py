"""Test the verdict on planted agents, whose true nature is known.

Worlds are synthetic markets with an answer key, read in the same way as for attribution. Each agent
holds ``held`` names with equal weights. Knowledge chooses a share of the names. The rest is drawn
at random and kept for ``EVERY`` sessions. The evidence and the verdict are then computed as for any
account.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats, Ints
from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics import BootstrapConfig, growth, rate_measure
from tradeassay.metrics.attribution import DailyParts, decompose, preferences, rows_of
from tradeassay.verdict.diagnostics import NO_TRIES, Tried
from tradeassay.verdict.evidence import ALPHA, INVESTED, MARKET, MeanTest, memory_evidence
from tradeassay.verdict.judge import judge
from tradeassay.verdict.record import (
    KINDS,
    AgentAssay,
    AgentFindings,
    Assay,
    Kind,
    KnownNature,
    LeakEvidence,
    LuckEvidence,
    Ranks,
    VerdictConfig,
)
from tradeassay.verdict.returns import JudgingContext, run_tests
from tradeassay_bench.core.executors import HERE, Spread
from tradeassay_bench.data import open_snapshot, write_snapshot
from tradeassay_bench.data.synthetic import generate, preset
from tradeassay_bench.examine.luck.luck import Luck
from tradeassay_bench.examine.luck.portfolios import place_among
from tradeassay_bench.examine.market_window import MarketInputs, MarketQuery, market_inputs
from tradeassay_bench.examine.run_evidence import luck_evidence

WARM = 260
"""Sessions of history before the first traded session, because factors look back one year."""


@dataclass(frozen=True, slots=True)
class PlantedWorld:
    """A synthetic market of T sessions and N names, as an agent can see it, and its truth.

    ``returns`` (T, N) contains the return of each session. ``exposures`` (T, 9, N) were known
    before the session. ``drift`` (T, N) is the effect of public news on the session's return: the
    true alpha of an informed reader. ``happened`` (T, N) contains the true returns, as a model may
    have memorised them. They do not change in :meth:`other_future`. ``columns`` contains the
    indices of the names in ``inputs``, the data for attributing accounts.
    """

    seed: int
    returns: Floats
    exposures: Floats
    drift: Floats
    happened: Floats
    columns: Ints
    inputs: MarketInputs

    @property
    def sessions(self) -> int:
        return int(self.returns.shape[0])

    @property
    def names(self) -> int:
        return int(self.returns.shape[1])

    def until(self, sessions: int) -> PlantedWorld:
        cut = {
            name: getattr(self, name)[:sessions]
            for name in ("returns", "exposures", "drift", "happened")
        }
        return replace(self, inputs=self.inputs.until(sessions), **cut)

    def other_future(self, row: int, seed: int) -> PlantedWorld:
        """Return this world with a different future.

        The returns of all sessions from ``row`` are shuffled among names. Earlier public data does
        not change, nor do the memorised returns (``happened``).
        """
        rng = np.random.default_rng([self.seed, row, seed])
        returns = self.returns.copy()
        returns[row:] = rng.permuted(returns[row:], axis=1)
        return replace(self, returns=returns)


def planted_world(
    seed: int, *, names: int = 200, sessions: int = 252, strength: float = 1.0
) -> PlantedWorld:
    """Return the world of a seed, with a year of history before its ``sessions``.

    ``strength`` scales the effect of news, and so the possible earnings of a skilled reader.
    """
    config = preset(
        "us",
        seed=seed,
        names=names,
        sessions=WARM + sessions,
        index_members=names,
        new_listings=0,
        delistings=0,
    )
    news = msgspec.structs.replace(config.news, strength=strength)
    world = generate(msgspec.structs.replace(config, news=news))
    key = world.key
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        write_snapshot(world.panel, Path(folder) / "world")
        snapshot = open_snapshot(Path(folder) / "world")
        days = [str(day) for day in snapshot.sessions]
        inputs = market_inputs(snapshot, MarketQuery(first=days[WARM], last=days[-1]))
        market_inputs.cache_clear()  # the cache would refer to deleted files
    columns = np.array(
        [inputs.symbols.index(symbol) for symbol in key.facts.symbols], dtype=np.int64
    )
    fresh = np.zeros(key.news.shape, dtype=np.bool_)
    place = {str(day): row for row, day in enumerate(key.sessions)}
    for truth in key.facts.news:
        fresh[place[truth.session], key.column(truth.symbol)] = True
    returns = inputs.model.returns[:, columns]
    return PlantedWorld(
        seed=seed,
        returns=returns,
        exposures=key.exposures[WARM:],
        drift=np.where(fresh, 0.0, key.news)[WARM:],
        happened=returns,
        columns=columns,
        inputs=inputs,
    )


Plant = str
EXPECTED: dict[Plant, tuple[Kind, ...]] = {
    "skilled": ("skill",),
    "mixed": ("skill",),
    "style": ("style",),
    "timing": ("timing",),
    "lucky": ("not-distinguishable-from-luck", "could-be-best-of-few"),
    "noise": ("not-distinguishable-from-luck",),
    "churning": ("costs", "not-distinguishable-from-luck"),
    "eaten": ("costs",),
    "memorising": ("memory",),
    "dates": ("memory",),
    "leaking": ("look-ahead",),
    "all-equal": ("market",),
    "all-once": ("market",),
    "all-sized": ("market",),
    "all-traded": ("market",),
    "half-equal": ("market",),
}
"""All planted agents, each with the kinds of verdict that are correct."""
PLANTS = tuple(EXPECTED)
PASSIVE = tuple(plant for plant, kinds in EXPECTED.items() if kinds == ("market",))
SHOWN: dict[Plant, tuple[str, str]] = {
    "skilled": ("reads-news", "skilled: reads public news"),
    "lucky": ("best-of-50", "lucky: best of 50 by chance"),
    "style": ("buys-winners", "style: last year's winners"),
    "leaking": ("sees-tomorrow", "leaking: knows tomorrow"),
    "memorising": ("remembers", "remembers how months ended"),
    "eaten": ("overtrades", "skilled, eaten by its costs"),
}
"""One agent of each nature: its displayed name and its true nature."""
EVERY = 5
"""The number of sessions for which randomly drawn names are held."""
_MOMENTUM = 0
"""The index of momentum among the exposures."""
FIRST_WORLD = 88_000
"""The seed of the first world of a trial and of the displayed world.

It was not chosen for its verdicts.
"""


class PlantConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of the planted agents.

    ``held`` is the share of the names that is held. ``skill``, ``leak`` and ``memory`` are the
    shares of positions chosen by knowledge: of public drifts, of the coming session, and of the
    window's outcome. ``tilt`` is the share of the mixed agent that follows momentum. The timing
    agent and the agent that remembers dates know the sign of the coming session's market return
    with probability ``foresight``. Otherwise they are nearly out of the market. The churning agent
    pays ``cost`` on its trades. The agent whose costs consume its alpha pays exactly its alpha. The
    lucky agent is the best of ``tries``.
    """

    held: float = 0.2
    skill: float = 0.4
    leak: float = 0.5
    foresight: float = 0.6
    cost: float = 0.001
    memory: float = 0.45
    tilt: float = 0.5
    tries: int = 50


def weights_of(
    plant: Plant, world: PlantedWorld, config: PlantConfig, *, seed: int = 0, masked: bool = False
) -> Floats:
    """Return a planted agent's holdings at the start of every session, shape (T, N).

    ``masked`` hides the names. Random choices depend on the seeds alone. A different future
    therefore changes only the choices that use the future.
    """
    rng = np.random.default_rng([world.seed, seed, PLANTS.index(plant), int(masked)])
    held = max(2, round(config.held * world.names))
    if plant == "lucky":
        tried = [_by_chance(world, rng, held) for _ in range(config.tries)]
        made = [
            np.log1p(np.take_along_axis(world.happened, one, axis=1).mean(axis=1)).sum()
            for one in tried
        ]
        return _equal(tried[int(np.argmax(made))], world)
    if plant in PASSIVE:
        if plant == "all-once":
            grown = np.vstack([np.ones(world.names), np.cumprod(1.0 + world.happened, axis=0)[:-1]])
        elif plant in ("all-sized", "all-traded"):
            inputs = world.inputs
            grown = (inputs.size if plant == "all-sized" else inputs.traded)[:, world.columns]
        else:
            grown = np.ones(world.returns.shape)
        grown = np.where(np.isfinite(grown), grown, 0.0)
        weights: Floats = grown / grown.sum(axis=1, keepdims=True)
        return 0.5 * weights if plant == "half-equal" else weights
    chance = _by_chance(world, rng, held, 1 if plant == "churning" else EVERY)
    if plant in ("timing", "dates"):
        # An agent that has memorised the days times them as well as an agent that foresees them,
        # until they are masked.
        known = 0.5 if masked and plant == "dates" else config.foresight
        # This is knowledge, not a leak: it uses the true past, however the future is rewritten.
        rises = world.happened.mean(axis=1) > 0.0
        right = rng.random(world.sessions) < known
        return _equal(chance, world) * np.where(rises == right, 1.0, 0.2)[:, None]
    if plant == "style":
        return _equal(_top(world.exposures[:, _MOMENTUM], held), world)
    knowledge: list[tuple[Floats, float]] = []
    if plant in ("skilled", "mixed", "eaten"):
        knowledge.append((world.drift, config.skill))
    if plant == "mixed":
        knowledge.append((world.exposures[:, _MOMENTUM], config.tilt))
    if plant == "leaking":
        knowledge.append((world.returns, config.leak))
    if plant == "memorising" and not masked:
        knowledge.append(
            (np.broadcast_to(world.happened.sum(axis=0), world.returns.shape), config.memory)
        )
    # The best names by each kind of knowledge, then random names that are not among them.
    rows = np.empty_like(chance)
    tops = [_top(score, round(share * held)) for score, share in knowledge]
    for row in range(chance.shape[0]):
        in_order = chain.from_iterable(top[row] for top in tops)
        known_names = list(dict.fromkeys(int(name) for name in in_order))
        rest = [int(name) for name in chance[row] if int(name) not in set(known_names)]
        rows[row] = (known_names + rest)[:held]
    return _equal(rows, world)


def crowd(world: PlantedWorld, config: PlantConfig, *, portfolios: int) -> Floats:
    """Return the returns (portfolios, T) of random portfolios with the same number of names."""
    rng = np.random.default_rng([world.seed, 0, 7919])
    held = max(2, round(config.held * world.names))
    found = np.empty((portfolios, world.sessions))
    for one in range(portfolios):
        picks = _by_chance(world, rng, held)
        found[one] = np.take_along_axis(world.returns, picks, axis=1).mean(axis=1)
    return found


def _by_chance(
    world: PlantedWorld, rng: np.random.Generator, held: int, every: int = EVERY
) -> Ints:
    """Return randomly drawn names, shape (T, held).

    A fifth of the names is replaced every ``every`` sessions.
    """
    names = rng.permutation(world.names)
    leave = max(1, min(held // 5, world.names - held))
    kept = []
    for _ in range(0, world.sessions, every):
        kept.append(names[:held].copy())
        out = rng.permutation(held)[:leave]
        into = held + rng.permutation(world.names - held)[:leave]
        names[out], names[into] = names[into], names[out]
    rows: Ints = np.repeat(np.array(kept, dtype=np.int64), every, axis=0)[: world.sessions]
    return rows


def _top(score: Floats, count: int) -> Ints:
    return np.asarray(np.argsort(-score, axis=1, kind="stable")[:, :count], dtype=np.int64)


def _equal(picks: Ints, world: PlantedWorld) -> Floats:
    weights = np.zeros(world.returns.shape)
    np.put_along_axis(weights, picks, 1.0 / picks.shape[1], axis=1)
    return weights


YEAR = 252


class Confusion(msgspec.Struct, frozen=True, kw_only=True):
    """The verdicts on planted agents.

    ``counts[plant][kind]`` is the number of verdicts of a kind. The rates are shares of correct
    verdicts.
    """

    worlds: int
    counts: dict[str, dict[str, int]]
    right: dict[str, Measure]


class Bench:
    """One world, with the random portfolios that all its agents share."""

    def __init__(
        self,
        world: PlantedWorld,
        plants: PlantConfig,
        config: VerdictConfig,
        *,
        portfolios: int = 400,
    ) -> None:
        self.world, self.plants, self.config = world, plants, config
        self._crowd = crowd(world, plants, portfolios=portfolios)

    def judge(
        self,
        plant: Plant,
        *,
        seed: int = 0,
        declared: bool = True,
        by_model: bool = True,
        shown: str | None = None,
    ) -> AgentAssay:
        """Return the verdict on one planted agent, displayed under its own name or as ``shown``.

        The agent has a luck baseline, a leak test and, for a model, a masked twin. The lucky agent
        declares its tries. If not ``declared``, its folder shows them. All other agents have one
        try.
        """
        tries, tried = self.config.tries or 1, NO_TRIES
        if plant == "lucky" and declared:
            tries *= self.plants.tries
        elif plant == "lucky":
            tried = Tried(found=self.plants.tries - 1, effective=self.plants.tries - 1)
        config = msgspec.structs.replace(self.config, tries=tries)
        daily, weights = self._played(plant, seed, masked=False)
        luck = LuckEvidence(
            percentile=not_scored("random portfolios with the same trades hardly differ"), p=None
        )
        if plant not in PASSIVE:
            # Random portfolios with the same investment and the same costs.
            paths = growth(self._crowd * daily.invested + daily.trading)
            place = place_among(growth(daily.total), paths, bootstrap=BootstrapConfig(draws=100))
            luck = luck_evidence([Luck(episode=plant, agent=plant, seed=0, place=place)])
        references = self.world.inputs.references
        rows = daily_rows(daily, references[MARKET])
        found = AgentFindings(
            setting=f"planted-{self.world.seed}",
            benchmark="planted",
            dataset=self.world.inputs.dataset,
            agent=shown or plant,
            by_model=by_model,
            baseline=False,
            seeds=1,
            failed_seeds=0,
            sessions=self.world.sessions,
            first=self.world.inputs.sessions[0],
            last=self.world.inputs.sessions[-1],
            total=not_scored("not measured yet"),
            market=not_scored("no index"),
            exposures=preferences(daily, bootstrap=BootstrapConfig(draws=config.draws)),
            luck=luck,
            leaks=self._leaks(plant, seed, weights),
            failure_rate=Measure(value=0.0, n=self.world.sessions),
            ranks=Ranks(of=1, by_return=1, by_selection=1),
        )
        context = JudgingContext(
            tried=tried, references=references, sessions=self.world.inputs.sessions
        )
        measured = run_tests(found, rows, YEAR, config, context)
        assert measured.alpha is not None
        if by_model:
            masked = daily_rows(self._played(plant, seed, masked=True)[0], references[MARKET])
            test = MeanTest(YEAR, config, measured.alpha.comparisons, measured.alpha.tries)
            memory = memory_evidence(rows, masked, test, against="blinded")
            measured = msgspec.structs.replace(measured, memory=memory)
        return judge(measured, config)

    def _played(self, plant: Plant, seed: int, *, masked: bool) -> tuple[DailyParts, Floats]:
        held = weights_of(plant, self.world, self.plants, seed=seed, masked=masked)
        model = self.world.inputs.model
        weights = np.zeros(model.returns.shape)
        weights[:, self.world.columns] = held
        daily = decompose(model, weights)
        if plant not in ("churning", "eaten"):
            return daily, held
        grown = weights * (1.0 + model.returns)
        before = np.concatenate(
            [np.zeros_like(grown[:1]), (grown / grown.sum(axis=1, keepdims=True))[:-1]]
        )
        turnover = np.abs(weights - before).sum(axis=1) / 2.0
        rate = self.plants.cost
        if plant == "eaten":
            rate = max(0.0, float(daily.selection.mean())) / float(turnover.mean())
        return decompose(model, weights, daily.total - rate * turnover), held

    def _leaks(self, plant: Plant, seed: int, weights: Floats) -> LeakEvidence:
        """Return the leak evidence: whether a different future changes the agent's holdings.

        A planted agent that knows the future knows the coming session. One world in which every
        session is replaced therefore tests all sessions.
        """
        other = weights_of(plant, self.world.other_future(0, seed), self.plants, seed=seed)
        moved, days = int((other != weights).any(axis=1).sum()), self.world.sessions
        if moved:
            said = f"another future changed what was held in {moved} of {days} sessions"
            return LeakEvidence(tested=True, findings=("bars",), sentence=said)
        bound = float(1.0 - 0.05 ** (1.0 / days))
        return LeakEvidence(
            tested=True, sentence=f"no holding changed in {days} sessions", bound=bound
        )


def answer_key(config: VerdictConfig | None = None) -> Assay:
    """Return the verdicts on one account of each nature in :data:`SHOWN`, with the answer key.

    All accounts trade in one world.
    """
    settings = config or VerdictConfig()
    bench = Bench(planted_world(FIRST_WORLD), PlantConfig(), settings)
    return Assay(
        title=f"{len(SHOWN)} accounts of known nature",
        source="run",
        config=settings,
        agents=tuple(bench.judge(plant, shown=name) for plant, (name, _) in SHOWN.items()),
        titles={f"planted-{FIRST_WORLD}": "Accounts of known nature on one synthetic market"},
        key={
            name: KnownNature(is_truly=truth, deserves=EXPECTED[plant])
            for plant, (name, truth) in SHOWN.items()
        },
    )


def planted_trial(
    worlds: int = 5, *, config: VerdictConfig | None = None, spread: Spread = HERE
) -> Confusion:
    """Judge every kind of agent in ``worlds`` synthetic worlds and count the verdicts.

    ``spread`` distributes the worlds.
    """
    each = spread.map(
        partial(_kinds, config=config), [FIRST_WORLD + number for number in range(worlds)]
    )
    counts: dict[str, dict[str, int]] = {
        plant: {kind: sum(one[plant] == kind for one in each) for kind in KINDS} for plant in PLANTS
    }
    right: dict[str, Measure] = {
        plant: rate_measure(
            sum(counts[plant][kind] for kind in kinds),
            len(each),
            nothing="none was judged",
            level=0.95,
        )
        for plant, kinds in EXPECTED.items()
    }
    return Confusion(worlds=len(each), counts=counts, right=right)


def _kinds(seed: int, config: VerdictConfig | None) -> dict[str, Kind]:
    bench = Bench(planted_world(seed), PlantConfig(), config or VerdictConfig())
    return {plant: bench.judge(plant).verdict.kind for plant in PLANTS}


def daily_rows(daily: DailyParts, market: Floats) -> dict[str, Floats]:
    """Return daily parts under the names of :func:`rows_of_seeds`."""
    rows = rows_of(daily) | {INVESTED: daily.invested, "market": market}
    # Costs are the only trading loss of a planted agent.
    costs = {"costs": rows["trading"], "fills": np.zeros(daily.total.size)}
    return rows | costs | {ALPHA: rows["selection"] + rows["trading"], "tilt": daily.tilt}
