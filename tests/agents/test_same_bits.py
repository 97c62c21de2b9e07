"""The rules that use matrix products or long sums decide the same, to the bit, on another kind of CPU."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import hashlib
from itertools import filterfalse
import numpy as np
from tradeassay.agents import agents, converses, make_agent, plays_alone
from tradeassay.core.agent import AskDecision, EpisodeInfo
from tradeassay.core.events import ENCODER
from tradeassay.play import Market
from tradeassay.testing.agent import MARKETS, small_world

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


def digest(**env: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT],
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.mark.slow
def test_the_same_decisions_on_an_older_cpu() -> None:
    assert digest(PYTHONHASHSEED="0") == digest(**OLD_CPU)
