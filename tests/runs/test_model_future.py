"""Rewrite everything after a day: every question up to that day stays the same, to the byte."""

import msgspec
import pytest

from tradeassay.benchmarks import benchmarks
from tradeassay.core.agent import EpisodeInfo, Observation
from tradeassay.core.dialogue import AskModel
from tradeassay.data import Snapshot
from tradeassay.llm import scripted_models
from tradeassay.play import Market, MarketConfig
from tradeassay.runs.conversation import open_protocol
from tradeassay.runs.episode import Episode
from tradeassay.runs.model_play import conversation_rng
from tradeassay.runs.play import as_recorded
from tradeassay.runs.spec import ParamValue, model_agent
from tradeassay.testing._worlds import CUT, small_world

CASES = [
    ("ktdfin-v1", "ashare", {"mask": "bright"}),
    ("ktdfin-v1", "ashare", {"mask": "blinded", "rebase_prices": True}),
    ("ktdfin-us-v1", "us", {"mask": "blinded"}),
    ("stockbench-v1", "us", {}),
]


def questions(
    name: str, snapshot: Snapshot, market: MarketConfig, settings: dict[str, ParamValue]
) -> list[list[bytes]]:
    """Return every question of every day up to the cut, as bytes."""
    config = benchmarks.get(name)
    # The venue of the benchmark, on the small world's days and universe.
    played = msgspec.structs.replace(config.market, first=market.first, last=market.last, universe=market.universe)
    benchmark = msgspec.structs.replace(config, market=played)
    episode = Episode(
        key="k", cell="c", benchmark=name, dataset="small", agent=model_agent("scripted/sensible"), seed=0
    )
    here = Market(snapshot, benchmark.market)
    protocol = open_protocol(benchmark, settings)
    protocol.begin(EpisodeInfo(episode="k", seed=0, rules=here.rules), conversation_rng(episode, "small"))
    model = scripted_models.get("sensible")()
    seen: Observation | None = here.reset()
    days: list[list[bytes]] = []
    while seen is not None and seen.step <= CUT:
        asked: list[AskModel] = []
        dialogue = protocol.dialogue(seen)
        try:
            asked.append(next(dialogue))
            while True:
                asked.append(dialogue.send(model.answer(asked[-1])))
        except StopIteration as done:
            decision = as_recorded(done.value)
        days.append([msgspec.json.encode(request) for request in asked])
        protocol.remember(seen, decision)
        seen = here.step(decision).observation
    return days


@pytest.mark.parametrize(("name", "market", "settings"), CASES)
def test_questions_do_not_know_the_future(name: str, market: str, settings: dict[str, ParamValue]) -> None:
    world = small_world(market)
    here = questions(name, world.snapshot, world.config, settings)
    there = questions(name, world.other_future, world.config, settings)
    # The session of the cut is rewritten from its open on, which who decides at the open is meant to see.
    known = CUT if benchmarks.get(name).market.decide == "at_open" else CUT + 1
    assert len(here) == CUT + 1
    assert any(len(day) > 2 for day in here)
    assert here[:known] == there[:known]
