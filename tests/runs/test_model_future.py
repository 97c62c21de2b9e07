"""Rewrite everything after a day: every question up to that day stays the same, to the byte."""

from itertools import islice

import msgspec
import pytest

from tradeassay.benchmarks import benchmarks
from tradeassay.llm import scripted_models
from tradeassay.runs.play.episodes import conversation
from tradeassay.runs.spec.episode import EpisodeSpec, with_protocol
from tradeassay.runs.spec.run_spec import model_agent
from tradeassay.testing.agent import CUT, small_world

CASES = [
    ("ktdfin-v1", "ashare", {"mask": "bright"}),
    ("ktdfin-v1", "ashare", {"mask": "blinded", "rebase_prices": True}),
    ("ktdfin-us-v1", "us", {"mask": "blinded"}),
    ("stockbench-v1", "us", {}),
]


def questions(name, snapshot, market, settings):
    """Return every question of every day up to the cut, as bytes."""
    config = benchmarks.get(name)
    # The venue of the benchmark, on the small world's days and universe.
    played = msgspec.structs.replace(config.market, first=market.first, last=market.last, universe=market.universe)
    benchmark = msgspec.structs.replace(config, market=played)
    episode = EpisodeSpec(
        key="k", cell="c", benchmark=name, dataset="small", agent=model_agent("scripted/sensible"), seed=0
    )
    play = conversation(snapshot, with_protocol(benchmark, settings), episode)
    play.open()
    model = scripted_models.get("sensible")()
    days = {}

    def answer(asked):
        days.setdefault(asked.place.step, []).append(msgspec.json.encode(asked.request))
        return model.answer(asked.request)

    list(islice(play.records(answer), CUT + 1))
    return list(days.values())


@pytest.mark.parametrize(("name", "market", "settings"), CASES)
def test_questions_do_not_know_the_future(name, market, settings):
    world = small_world(market)
    here = questions(name, world.snapshot, world.config, settings)
    there = questions(name, world.other_future, world.config, settings)
    # The session of the cut is rewritten from its open on, which who decides at the open is meant to see.
    known = CUT if benchmarks.get(name).market.decide == "at_open" else CUT + 1
    assert len(here) == CUT + 1
    assert any(len(day) > 2 for day in here)
    assert here[:known] == there[:known]
