"""When the verdict says *skill supported*, how often is it true? Three thousand blind accounts.

    python perf/predictive_value.py --plan
    python perf/predictive_value.py [--worlds 40] [--cores 2] [--results judged.jsonl]

The plan is this file. Its hash seeds the draws, so that whoever changes anything in it draws other accounts: no
seed can be kept that happened to please. Prices come from a generator that is used nowhere else (a market that
switches between calm and storm, ten industries, two styles nobody names, names with clustered volatility, and a
signal on single names that fades within days); only the calendar and the books of the companies are the
house's. Of every account a nature is drawn at :data:`RATES`, then a window, how much it holds, trades and pays.
Three in five are known by their holdings, with luck baseline and leak test, half of them as models with a
masked twin; of the others only returns are known. Nobody says how many were tried: survivors stay silent.

A row counts one label: how often it was said, and the share of those of which it was true, with Wilson's interval
at 95 %. True is fixed in :data:`TRUE` before anything is judged.
"""

from __future__ import annotations

import argparse
import hashlib
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Literal, cast

import msgspec
import numpy as np

from tradeassay.core.measure import not_scored
from tradeassay.metrics import rate_measure
from tradeassay.metrics.attribution import DailyParts, decompose
from tradeassay.tables.account import OwnSeries
from tradeassay.verdict import VerdictConfig
from tradeassay.verdict.record import LeakEvidence, LuckEvidence
from tradeassay.verdict.returns import assay_series
from tradeassay_bench.data import open_snapshot, write_snapshot
from tradeassay_bench.data.synthetic import generate, preset
from tradeassay_bench.examine.market_window import MarketQuery, market_inputs
from tradeassay_bench.examine.planted import WARM, Bench, Plant, PlantConfig, PlantedWorld, crowd

Floats = np.ndarray
Draw = np.random.Generator
Nature = Literal[
    "passive",
    "chance",
    "style",
    "survivor",
    "costs",
    "leak",
    "memory",
    "timing",
    "skilled",
    "tail",
    "stale",
]
RATES: dict[Nature, float] = {
    "chance": 0.30,
    "passive": 0.15,
    "style": 0.15,
    "costs": 0.08,
    "survivor": 0.06,
    "memory": 0.06,
    "skilled": 0.05,
    "leak": 0.05,
    "timing": 0.04,
    "tail": 0.03,
    "stale": 0.03,
}
"""The base rates: the share of accounts of each nature, in expectation."""
TRUE: dict[str, tuple[Nature, ...]] = {
    "skill supported": ("skilled",),
    "consistent with skill": ("skilled",),
    "mixed": ("skilled",),
    "mixed, not all examined": ("skilled",),
    "timing supported": ("timing",),
    "consistent with timing": ("timing",),
    "memory": ("memory",),
    "memory suspected": ("memory",),
    "leaked future": ("leak",),
    "leak suspected": ("leak",),
    "paid for tail risk": ("tail",),
    "eaten by costs": ("costs",),
    "style exposure": ("style",),
    "market exposure": ("passive", "stale"),
    "worse than chance": ("costs",),
    "behind market and style": ("costs",),
    "behind the market": ("costs",),
    "cannot be told from luck": tuple(set(RATES) - {"skilled", "timing"}),
    "no edge is shown": tuple(set(RATES) - {"skilled", "timing"}),
}
"""Of whom a label is true. *Cannot be told from luck* is false of those who know something."""
NAMES, WINDOWS, PER_WORLD, TRIES = 120, (252, 504, 756), 75, 20
SIGNAL = 0.0008
"""What one standard deviation of the signal moves a name in a session."""
CONFIG = VerdictConfig(draws=200, folder=False)
PLAN = hashlib.sha256(Path(__file__).read_bytes()).hexdigest()


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """The answer key of one account."""

    nature: Nature
    seed: int
    sessions: int
    held: float
    every: int
    cost: float
    by_holdings: bool
    by_model: bool
    size: float
    """A skilled one's information ratio; the share of days that leak, of places that are remembered or of right
    calls on the market; how much of a stale return is yesterday's."""


class Judged(msgspec.Struct, frozen=True, kw_only=True):
    """What was said of it."""

    world: int
    account: Account
    label: str
    kind: str


def drawn(rng: Draw) -> Account:
    """Draw an account."""
    nature = list(RATES)[rng.choice(len(RATES), p=list(RATES.values()))]
    low, high = {
        "skilled": (0.75, 3.0),
        "leak": (0.02, 0.5),
        "memory": (0.1, 0.6),
        "timing": (0.54, 0.62),
        "stale": (0.2, 0.6),
        "tail": (4.0, 12.0),
    }.get(nature, (0.0, 1.0))
    known = bool(rng.random() < 0.6) and nature not in ("tail", "stale")
    pays = nature == "costs" or (nature in ("chance", "style", "skilled") and rng.random() < 0.3)
    return Account(
        nature=nature,
        seed=int(rng.integers(2**31)),
        sessions=int(rng.choice(WINDOWS)),
        held=float(rng.choice([0.06, 0.2])),
        every=1 if nature == "costs" else int(rng.choice([2, 5, 21])),
        cost=float(
            rng.uniform(0.001, 0.003)
            if nature == "costs"
            else rng.uniform(0.0, 0.0005)
            if pays
            else 0.0
        ),
        by_holdings=known,
        by_model=nature == "memory" or bool(rng.random() < 0.5),
        size=float(rng.uniform(low, high)),
    )


def returns_of(rng: Draw, n: int) -> tuple[Floats, Floats, Floats]:
    """Return the names' returns (n, NAMES), the signal on them, and the loadings on two styles."""
    storm, calm = False, []
    for chance in rng.random(n):
        storm = chance < (0.95 if storm else 0.01)
        calm.append(1.0 if not storm else 2.6)
    market = 0.07 / 252 + 0.0075 * np.array(calm) * rng.standard_t(4, n) / np.sqrt(2.0)
    industry = rng.integers(0, 10, NAMES)
    industries = 0.005 * rng.standard_t(6, (n, 10))
    loadings = rng.normal(size=(2, NAMES))
    premia = rng.normal(0.0, 0.05, (2, 1)) / 252 + 0.003 * rng.standard_t(6, (2, n))
    shocks = rng.standard_t(5, (n, NAMES)) / np.sqrt(5.0 / 3.0)
    scale, own = np.ones(NAMES), np.empty((n, NAMES))
    size = np.exp(rng.normal(np.log(0.016), 0.3, NAMES))
    signal, fresh = np.empty((n, NAMES)), rng.normal(size=(n, NAMES))
    now = rng.normal(size=NAMES)
    for day in range(n):
        now = 0.87 * now + np.sqrt(1.0 - 0.87**2) * fresh[day]
        signal[day] = now
        own[day] = np.sqrt(scale) * shocks[day]
        scale = 0.05 + 0.08 * own[day] ** 2 + 0.87 * scale
    made = rng.uniform(0.5, 1.6, NAMES) * market[:, None] + industries[:, industry]
    made = made + premia.T @ loadings + size * own + SIGNAL * signal
    return np.clip(made, -0.6, 1.5), signal, loadings


def world_of(number: int, seed: int) -> tuple[PlantedWorld, Floats]:
    """Return a market with the signal as what could be known, and the loadings on styles."""
    n = WARM + max(WINDOWS)
    rng = np.random.default_rng([seed, number])
    config = preset("us", seed=seed % 10**6 + number, names=NAMES, sessions=n, index_members=NAMES)
    panel = generate(msgspec.structs.replace(config, new_listings=0, delistings=0)).panel
    keep = [place for place, one in enumerate(panel.listings) if one.instrument.kind == "stock"]
    earned, signal, loadings = returns_of(rng, n)
    close = np.exp(rng.normal(3.5, 0.6, NAMES)) * np.cumprod(1.0 + earned, axis=0)
    opened = np.vstack([close[:1], close[:-1]]) * (
        1.0 + earned * rng.uniform(0.0, 1.0, earned.shape)
    )
    volume = np.rint(np.exp(rng.normal(13.0, 0.5, earned.shape) + rng.normal(0.0, 1.0, NAMES)))
    bars = {
        "open": opened,
        "high": np.maximum(opened, close) * 1.002,
        "low": np.minimum(opened, close) * 0.998,
    }
    bars |= {"close": close, "volume": volume, "amount": volume * close}
    made = replace(
        panel,
        listings=tuple(panel.listings[place] for place in keep),
        bars=bars,
        suspended=np.zeros(close.shape, dtype=np.bool_),
        actions=(),
        news=(),
        indices={name: 1000.0 * np.cumprod(1.0 + earned.mean(axis=1)) for name in panel.indices},
    )
    with tempfile.TemporaryDirectory(prefix="blind-") as folder:
        write_snapshot(made, Path(folder) / "world")
        snapshot = open_snapshot(Path(folder) / "world")
        days = [str(day) for day in snapshot.sessions]
        inputs = market_inputs(snapshot, MarketQuery(first=days[WARM], last=days[-1]))
        market_inputs.cache_clear()  # it would keep a snapshot whose files are about to be deleted
    columns = np.array(
        [inputs.symbols.index(panel.listings[place].instrument.symbol) for place in keep]
    )
    returns = inputs.model.returns[:, columns]
    world = PlantedWorld(
        seed=seed + number,
        returns=returns,
        exposures=np.empty((0, 0, 0)),
        drift=signal[WARM:],
        happened=returns,
        columns=columns,
        inputs=inputs,
    )
    return world, loadings


def picks(score: Floats, count: int, every: int) -> Floats:
    """Return equal weights on the best by a score, looked at every so many sessions."""
    weights = np.zeros(score.shape)
    for start in range(0, score.shape[0], every):
        best = np.argsort(-score[start])[:count]
        weights[start : start + every, best] = 1.0 / count
    return weights


def weights_of(one: Account, world: PlantedWorld, loadings: Floats, *, masked: bool) -> Floats:
    """Return what an account holds into every session, from the seeds alone and what it knows."""
    rng = np.random.default_rng([one.seed, int(masked)])
    n, names = world.returns.shape
    count = max(2, round(one.held * names))
    chance = rng.normal(size=(n, names))
    if one.nature in ("passive", "stale", "tail"):
        size = world.inputs.size[:, world.columns]
        base = [np.ones((n, names)), np.where(np.isfinite(size), size, 0.0)][one.seed % 2]
        base = base / base.sum(axis=1, keepdims=True)
        return base * (0.5 if one.seed % 3 == 0 else 1.0)
    if one.nature == "style":
        lean = loadings[one.seed % 2] if one.seed % 4 < 2 else world.inputs.size[0, world.columns]
        return picks(np.broadcast_to(lean, (n, names)) + 0.3 * chance[:1], count, one.every)
    if one.nature == "skilled" or (one.nature == "costs" and one.seed % 2):
        wanted = one.size if one.nature == "skilled" else 1.0
        residual = 0.016 / np.sqrt(count)
        best = 1.4 if one.held > 0.1 else 1.95
        # What is left of the signal in the mean of so many sessions that a choice is kept.
        fades = (1.0 - 0.87**one.every) / (one.every * 0.13)
        seen = min(0.95, wanted * residual / np.sqrt(252) / (best * fades * SIGNAL))
        return picks(seen * world.drift + np.sqrt(1.0 - seen**2) * chance, count, one.every)
    if one.nature == "leak":
        days = rng.random(n) < one.size
        return np.where(
            days[:, None], picks(world.returns, count, 1), picks(chance, count, one.every)
        )
    if one.nature == "memory" and not masked:
        ended = world.happened.sum(axis=0)
        known = np.argsort(-ended)[: round(one.size * count)]
        chance[:, known] += 100.0
        return picks(chance, count, one.every)
    if one.nature == "survivor":
        tried = [picks(rng.normal(size=(n, names)), count, one.every) for _ in range(TRIES)]
        return max(
            tried, key=lambda held: float(np.log1p((held * world.happened).sum(axis=1)).sum())
        )
    base = picks(chance, count, one.every)
    if one.nature == "timing":
        rises = world.happened.mean(axis=1) > 0.0
        return base * np.where(rises == (rng.random(n) < one.size), 1.0, 0.2)[:, None]
    return base


class Blind(Bench):
    """Judges one account of known holdings, as the planted ones are judged."""

    def __init__(self, one: Account, world: PlantedWorld, loadings: Floats, others: Floats) -> None:
        self.one, self.loadings = one, loadings
        self.world, self.config, self.plants = world, CONFIG, PlantConfig(held=one.held)
        self._crowd = others

    def _played(self, plant: Plant, seed: int, *, masked: bool) -> tuple[DailyParts, Floats]:
        held = weights_of(self.one, self.world, self.loadings, masked=masked)
        model = self.world.inputs.model
        weights = np.zeros(model.returns.shape)
        weights[:, self.world.columns] = held
        daily = decompose(model, weights)
        return decompose(model, weights, daily.total - paid(self.one, weights, model.returns)), held

    def _luck(self, plant: Plant, daily: DailyParts) -> LuckEvidence:
        if self.one.nature == "passive":
            return LuckEvidence(percentile=not_scored("random portfolios hardly differ"), p=None)
        return super()._luck(plant, daily)

    def _leaks(self, plant: Plant, seed: int, weights: Floats) -> LeakEvidence:
        other = weights_of(self.one, self.world.other_future(0, 1), self.loadings, masked=False)
        moved, days = int((other != weights).any(axis=1).sum()), self.world.sessions
        if moved:
            return LeakEvidence(
                tested=True, findings=("bars",), sentence=f"{moved} of {days} sessions moved"
            )
        return LeakEvidence(
            tested=True, sentence="nothing moved", bound=float(1.0 - 0.05 ** (1.0 / days))
        )


def paid(one: Account, weights: Floats, returns: Floats) -> Floats:
    """Return what trading cost in every session, as a share of the account."""
    grown = weights * (1.0 + np.nan_to_num(returns))
    before = np.vstack(
        [weights[:1], (grown / np.maximum(grown.sum(axis=1, keepdims=True), 1e-12))[:-1]]
    )
    moved = weights - before * weights.sum(axis=1, keepdims=True)
    return one.cost * np.abs(moved).sum(axis=1) / 2.0


def by_returns(one: Account, world: PlantedWorld, loadings: Floats) -> tuple[str, str]:
    """Return label and kind of an account of which only returns are known."""
    size = world.inputs.size[:, world.columns]
    share = np.where(np.isfinite(size), size, 0.0)
    market = (share / share.sum(axis=1, keepdims=True) * world.returns).sum(axis=1)
    weights = weights_of(one, world, loadings, masked=False)
    total = (weights * world.returns).sum(axis=1) - paid(one, weights, world.returns)
    rng = np.random.default_rng([one.seed, 7])
    if one.nature == "stale":
        for day in range(1, total.size):
            total[day] = one.size * total[day - 1] + (1.0 - one.size) * total[day]
    if one.nature == "tail":
        sold = one.size * (1.4 * (market**2).mean() - market**2)
        total = 0.2 * market + sold + rng.normal(0.0, 0.0004, total.size)
    days = world.inputs.sessions
    table = OwnSeries(
        returns=dict(zip(days, total.tolist(), strict=True)),
        benchmark=dict(zip(days, market.tolist(), strict=True)),
    )
    verdict = assay_series(table, CONFIG, agent="blind")[0].verdict
    return verdict.label, verdict.kind


def judged(number: int) -> list[Judged]:
    """Draw and judge the accounts of one market."""
    seed = int(PLAN[:8], 16)
    rng = np.random.default_rng([seed, number, 1])
    accounts = [drawn(rng) for _ in range(PER_WORLD)]
    whole, loadings = world_of(number, seed)
    crowds = cache(lambda held: crowd(whole, PlantConfig(held=held), portfolios=200))
    found = []
    for one in accounts:
        world = whole.until(one.sessions)
        if one.by_holdings:
            bench = Blind(one, world, loadings, crowds(one.held)[:, : one.sessions])
            verdict = bench.judge(cast(Plant, one.nature), by_model=one.by_model).verdict
            label, kind = verdict.label, str(verdict.kind)
        else:
            label, kind = by_returns(one, world, loadings)
        found.append(Judged(world=number, account=one, label=label, kind=kind))
    return found


def table(found: list[Judged]) -> None:
    """Print what each label was worth, and what was said of each nature."""
    print("| said | by | accounts | true | of whom it was said |\n|---|---|---|---|---|")
    for known in (True, False):
        some = [one for one in found if one.account.by_holdings is known]
        for label, count in Counter(one.label for one in some).most_common():
            whom = Counter(one.account.nature for one in some if one.label == label)
            right = sum(whom[nature] for nature in TRUE.get(label, ()))
            share = rate_measure(right, count, nothing="nobody", level=0.95)
            cell = f"{share.value:.0%} ({share.low:.0%} to {share.high:.0%})"
            said = ", ".join(f"{nature} {n}" for nature, n in whom.most_common())
            print(f"| {label} | {'holdings' if known else 'returns'} | {count} | {cell} | {said} |")
    print("\n| nature | accounts | said |\n|---|---|---|")
    for nature in RATES:
        said = Counter(one.label for one in found if one.account.nature == nature)
        print(
            f"| {nature} | {said.total()} | {', '.join(f'{label} {n}' for label, n in said.most_common())} |"
        )


def main() -> int:
    """Judge, and print the tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--plan", action="store_true", help="print the hash that seeds the study, judge nobody"
    )
    parser.add_argument("--worlds", type=int, default=40)
    parser.add_argument("--cores", type=int, default=1)
    parser.add_argument(
        "--results", type=Path, help="a file (JSON lines) to write every verdict to"
    )
    asked = parser.parse_args()
    print(f"plan {PLAN}", flush=True)
    if asked.plan:
        return 0
    began, found = time.process_time(), []
    with ProcessPoolExecutor(asked.cores) as pool:
        for some in pool.map(judged, range(asked.worlds)):
            found += some
            if asked.results is not None:
                with asked.results.open("ab") as file:
                    file.writelines(msgspec.json.encode(one) + b"\n" for one in some)
    table(found)
    print(
        f"\n{len(found)} accounts; {time.process_time() - began:.0f} s of CPU here, without the other processes"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
