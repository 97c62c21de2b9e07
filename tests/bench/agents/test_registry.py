"""The door: names, parameters, and what a wrong one is told."""

import os
import subprocess
import sys

import numpy as np
import pytest

from tradeassay.core.errors import UserError
from tradeassay_bench.agents import agents, make_agent, parameters
from tradeassay_bench.agents.rules import MomentumConfig

NAMES = (
    "cash equal-weight index-hold min-variance momentum-12-1 momentum-weighted random reversal"
).split()
NAMES += ["sector-equal", "vol-target"]


@pytest.mark.parametrize("name", NAMES)
def test_every_parameter_is_documented_and_has_a_default(name):
    cls = agents.get(name)
    assert cls.summary and cls.summary[0].islower() and make_agent(name) is not make_agent(name)
    for parameter in parameters(name):
        assert parameter.description, f"{name}.{parameter.name} says nothing about itself"


def test_parameters_from_a_command_line_are_read_and_those_made_in_code_checked():
    agent = make_agent("momentum-12-1", {"k": "7", "buffer": "0.1"})
    assert (agent.config.k, agent.config.buffer) == (7, 0.1)
    made = agents.get("momentum-12-1")
    config = made(MomentumConfig(k=np.int64(7), keep=2)).config
    assert (type(config.k), type(config.keep)) == (int, float) and config == MomentumConfig(k=7)
    with pytest.raises(UserError, match="k cannot be -1"):
        made(MomentumConfig(k=-1))


@pytest.mark.parametrize(
    ("name", "params", "said"),
    [
        ("momentum", {}, "did you mean momentum-12-1"),
        ("momentum-12-1", {"kep": 3}, "has no parameter 'kep' (did you mean keep"),
        ("momentum-12-1", {"k": 0}, "cannot take k=0 (it wants int >= 1)"),
        ("momentum-12-1", {"k": 2.5}, "cannot take k=2.5"),
        ("momentum-12-1", {"buffer": "much"}, "cannot take buffer='much'"),
        ("momentum-12-1", {"lookback": 20, "skip": 20}, "make skip < lookback"),
        ("min-variance", {"shrinkage": 2}, "cannot take shrinkage=2"),
        ("cash", {"k": 1}, "it has none"),
    ],
)
def test_a_wrong_name_or_value_is_named(name, params, said):
    with pytest.raises(UserError) as caught:
        make_agent(name, params)
    assert said in str(caught.value)


SCRIPT = """
import hashlib
from itertools import filterfalse
import numpy as np
from tradeassay_bench.agents import agents, converses, make_agent, plays_alone
from tradeassay_bench.core.agent import AskDecision, EpisodeInfo
from tradeassay_bench.core.events import ENCODER
from tradeassay_bench.play import Market
from tradeassay_bench.testing.agent import MARKETS, small_world

digest = hashlib.sha256()
for world in map(small_world, MARKETS):
    for name in filter(plays_alone, filterfalse(converses, agents.names())):
        market, agent = Market(world.snapshot, world.config), make_agent(name)
        agent.begin(EpisodeInfo(episode="e", seed=1, rules=market.rules), np.random.default_rng(1))
        seen = market.reset()
        while seen is not None:
            decision = agent.answer(AskDecision(seen))
            digest.update(ENCODER.encode(decision))
            seen = market.step(decision).observation
print(digest.hexdigest())
"""
OLD_CPU = {
    "OPENBLAS_CORETYPE": "Nehalem",
    "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3 AVX512F AVX512CD AVX512_SKX AVX512_ICL AVX512_SPR",
    "PYTHONHASHSEED": "3",
}


@pytest.mark.slow
def test_the_same_decisions_on_an_older_cpu():
    command = [sys.executable, "-W", "ignore", "-c", SCRIPT]
    one, other = (
        subprocess.check_output(command, env={**os.environ, **env})
        for env in ({"PYTHONHASHSEED": "0"}, OLD_CPU)
    )
    assert one == other
