"""Runs and accounts at random: small markets in which some names rise, and agents that hold some
of them.
"""

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np
import scripted_misfits  # noqa: F401  # adds models
from arena_sample import AGENTS, Echo, Talker, make_season, open_store, play
from code_report_sample import TASKS, code_run
from runs_agents import Base
from systrade_sample import systrade_run

from tradeassay.metrics import BootstrapConfig
from tradeassay_arena.agents import ConstantAction, EntryAgent
from tradeassay_arena.rounds.feed import SnapshotFeed
from tradeassay_bench.agents import AgentConfig, agents
from tradeassay_bench.benchmarks import Benchmark, benchmarks
from tradeassay_bench.core.agent import AskDecision
from tradeassay_bench.core.orders import Decision, Order
from tradeassay_bench.core.time import DAY, HOUR
from tradeassay_bench.core.view import Instrument
from tradeassay_bench.data import Listing, Membership, Panel, PanelFacts, write_snapshot
from tradeassay_bench.play import MarketConfig
from tradeassay_bench.runs import AgentSpec, RunSpec, Window, run
from tradeassay_bench.runs.spec.run_spec import model_agent

WARM = 3
LENGTHS = (24, 45, 70, 130)


class HolderConfig(AgentConfig, frozen=True):
    """Which names are held, how often they are drawn anew, and how often no answer comes."""

    first: int = 0
    count: int = 2
    every: int = 0
    silent: float = 0.0


@agents.register("test-holder")
class Holder(Base):
    """Holds some names in equal parts, others every so often, and fails to answer at times."""

    Config: ClassVar[type[AgentConfig]] = HolderConfig

    def answer(self, request: AskDecision) -> Decision:
        config, names = self.config, sorted(request.observation.universe)
        if self.rng.random() < config.silent:
            raise RuntimeError("no answer")
        step = request.observation.step
        if step and (not config.every or step % config.every):
            return Decision()
        first = config.first if not config.every else int(self.rng.integers(len(names)))
        chosen = {names[(first + place) % len(names)] for place in range(config.count)}
        share = 0.95 / max(1, len(chosen))
        orders = [
            Order(symbol=name, amount=share if name in chosen else 0.0, unit="target_weight")
            for name in names
        ]
        return Decision(orders=tuple(orders))


def panel(name, rng, sessions):
    """A market of five to nine names, some of which rise or fall all the time."""
    stocks = int(rng.integers(5, 10))
    day = np.busday_offset(np.datetime64("2024-01-01", "D"), np.arange(sessions + WARM))
    opens = day.astype(np.int64) * DAY + 14 * HOUR
    drift = rng.choice([0.0, 0.0, 0.004, -0.004], stocks) * rng.choice([0.0, 1.0])
    market = rng.normal(rng.choice([0.0, 0.002, -0.002]), 0.008, (day.size, 1))
    close = 50.0 * np.exp(
        np.cumsum(market + drift + rng.normal(0, 0.01, (day.size, stocks)), axis=0)
    )
    open_ = close * np.exp(rng.normal(0, 0.001, close.shape))
    bars = {
        "open": open_,
        "high": np.maximum(open_, close),
        "low": np.minimum(open_, close),
        "close": close,
        "volume": np.full(close.shape, 1e6),
        "amount": rng.uniform(1e6, 1e7, close.shape),
    }
    names = [f"N{place}" for place in range(stocks)]
    return Panel(
        name=name,
        facts=PanelFacts(
            kind="synthetic", source="test", query=name, currency="USD", calendar="XNYS"
        ),
        listings=tuple(
            Listing(instrument=Instrument(symbol=one, kind="stock"), listed=str(day[0]))
            for one in names
        ),
        sessions=day,
        open_time=opens,
        close_time=opens + 6 * HOUR,
        bars=bars,
        suspended=np.zeros(close.shape, dtype=np.bool_),
        actions=(),
        memberships=tuple(Membership(index="IDX", symbol=one, start=str(day[0])) for one in names),
        indices={"IDX": 100.0 * np.exp(np.cumsum(market[:, 0]))},
    )


def drawn_run(seed, folder):
    """Play a run that only the seed decides: its market, its length, its agents and their seeds."""
    rng = np.random.default_rng(seed)
    name, sessions = f"tiny-surfaces-{seed}", int(rng.choice(LENGTHS))
    made = panel(name, rng, sessions)
    write_snapshot(made, folder / "home" / "store" / name, allow_faults=True)
    days = {"first": str(made.sessions[WARM]), "last": str(made.sessions[-1])}
    market = MarketConfig(venue="us-fractional-v1", universe="IDX", index="IDX", cash=1e5, **days)
    id = f"{name}-v1"
    if id not in benchmarks:
        said = {"id": id, "title": f"Market {seed}", "description": "t", "dataset": name}
        benchmarks.add(id, Benchmark(**said, market=market, takes_secret=False))
    held = []
    for place in range(int(rng.integers(1, 5))):
        names = {"first": int(rng.integers(9)), "count": int(rng.integers(1, 5))}
        habits = {
            "every": int(rng.choice([0, 0, 7])),
            "silent": float(rng.choice([0.0, 0.0, 0.0, 0.4, 1.0])),
        }
        held.append(AgentSpec(name="test-holder", label=f"holder-{place}", params=names | habits))
    twin = (
        [AgentSpec(name="test-holder", label="twin", params=held[0].params)]
        if rng.random() < 0.4
        else []
    )
    spec = RunSpec(
        name=name,
        benchmarks=(id,),
        agents=(*held, *twin, *([AgentSpec(name="cash")] if rng.random() < 0.3 else [])),
        seeds=tuple(range(int(rng.choice([1, 1, 2])))),
        bootstrap=BootstrapConfig(draws=100),
    )
    return run(
        spec, folder / "runs" / name, executor="inline", home=folder / "home", progress="none"
    )


def drawn_masked(seed, folder):
    """Play scripted models with names shown and hidden, so that each is compared with itself."""
    rng = np.random.default_rng(seed)
    models = rng.permutation(["sensible", "broken-json", "never-submits", "overspender"])[
        : rng.integers(1, 4)
    ]
    months = (
        ("2022-02-07", "2022-03-04"),
        ("2022-02-07", "2022-03-18"),
        ("2022-04-11", "2022-05-13"),
    )
    first, last = months[rng.integers(3)]
    spec = RunSpec(
        name=f"masked-{seed}",
        benchmarks=("ktdfin-v1",),
        agents=tuple(model_agent(f"scripted/{name}") for name in models),
        window=Window(first=first, last=last),
        bootstrap=BootstrapConfig(draws=100),
        protocol={"mask": tuple(map(str, rng.permutation(["blinded", "bright"])))},
    )
    return run(
        spec, folder / "runs" / spec.name, executor="inline", home=folder / "home", progress="none"
    )


def drawn_programs(seed, folder):
    """Have scripted models write programs, with findings that are given:

    QuantCode, or SysTradeBench.
    """
    rng = np.random.default_rng(seed)
    if rng.random() < 0.4:
        names = rng.permutation(["builder-gold", "builder-mends", "builder-peeps", "away"])[
            : rng.integers(2, 4)
        ]
        changes = {"models": tuple(f"scripted/{name}" for name in names), "reviewers": ()}
        return systrade_run(
            folder / "runs" / f"builders-{seed}", **changes, strategies=("bollinger",)
        )
    coders = ["coder-gold", "coder-sma", "coder-mends", "coder-cheat", "coder-silent", "away"]
    names = rng.permutation(coders)[: rng.integers(1, 4)]
    settings = ("single-turn", "agentic")[: rng.integers(1, 3)]
    return code_run(
        folder / "runs" / f"coders-{seed}",
        models=tuple(f"scripted/{name}" for name in names),
        tasks=tuple(map(str, rng.permutation(TASKS)[: rng.integers(2, 5)])),
        settings=settings,
        turns=int(rng.integers(2, 4)),
    )


def drawn_season(seed, folder):
    """Play a season whose length and agents' habits only the seed decides; returns its database."""
    rng = np.random.default_rng(seed)
    season = make_season(
        id=f"season-{seed}", last=str(rng.choice(["2022-05-20", "2022-06-08", "2022-06-14"]))
    )
    wild = {"one-a": EntryAgent(Talker(int(rng.integers(2))), Echo(), each_call=False)}
    wild["two-b"] = EntryAgent(ConstantAction(str(rng.choice(["BUY", "SELL", "HOLD"]))))
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"arena-{seed}.db"
    store = open_store(path)
    play(store, season, SnapshotFeed.open(season), season.last, agents={**AGENTS, **wild})
    store.engine.dispose()
    return str(path), season


@dataclass(frozen=True)
class DrawnAccount:
    """A file of an account's returns; ``against`` is another file, None where only a column may
    be one.
    """

    returns: Path
    against: Path | None
    column: bool


def drawn_account(seed, folder):
    """Write an account that only the seed decides: alpha, beta, length, and where its benchmark
    is.
    """
    rng = np.random.default_rng(seed)
    rows = int(rng.choice((25, 61, 90, 150, 260, 520)))
    market = rng.normal(0.0004, 0.01, rows)
    beta, noise = rng.choice([0.0, 0.3, 1.0, 1.4]), rng.choice([0.0, 0.0005, 0.004, 0.012])
    # What never moves is refused as a table: it says nothing.
    account = beta * market + rng.normal(0, 1.0, rows) * (noise or (0.0 if beta else 0.0002))
    account = account + rng.choice([0.0, 0.0, 0.0003, 0.001, 0.004, -0.002])
    account[rows // 2 :] += rng.choice([0.0, 0.0, 0.0006])
    days = np.busday_offset(np.datetime64("2021-01-04", "D"), np.arange(rows)).astype(str)
    (folder / f"world-{seed}").mkdir(parents=True, exist_ok=True)
    column, apart = bool(rng.random() < 0.5), bool(rng.random() < 0.5)
    path, other = folder / f"account-{seed}.csv", folder / f"world-{seed}" / "world market.csv"
    for place, titles, table in (
        (
            path,
            ["date", "return", *(["benchmark"] if column else [])],
            [account, *([market] if column else [])],
        ),
        (other, ["date", "return"], [market]),
    ):
        with place.open("w", newline="") as file:
            lines = csv.writer(file)
            lines.writerow(titles)
            lines.writerows(
                [day, *(f"{row[at]:.8f}" for row in table)] for at, day in enumerate(days)
            )
    return DrawnAccount(path, other if apart else None, column)


def doubted_account(folder):
    """Write the value of an account that knows nothing, thirty of whose worst days are listed as
    withdrawals.
    """
    rng = np.random.default_rng(5)
    market = rng.normal(0.0003, 0.01, 500)
    value = 10_000.0 * np.cumprod(1.0 + 0.5 * market + rng.normal(0.0, 0.006, 500))
    lost = np.concatenate([[0.0], np.diff(value)])
    paid = np.where(lost <= np.sort(lost)[30], -lost, 0.0)
    days = np.busday_offset(np.datetime64("2020-01-02", "D"), np.arange(500)).astype(str)
    path = folder / "doubted.csv"
    with path.open("w", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(["date", "value", "withdrawals", "benchmark"])
        lines.writerows(zip(days, value, paid, 100.0 * np.cumprod(1.0 + market), strict=True))
    return path
