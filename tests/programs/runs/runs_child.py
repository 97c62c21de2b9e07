"""What the kill tests start, in a process of its own: a run of rules, of a slow model or of
programs.

``python runs_child.py rules FOLDER HOME WORKERS``, ``model FOLDER HOME LOG``, ``programs FOLDER LOG
KILL_AT``.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "bench" / "runs"))

import runs_agents  # noqa: F401  # registers the agents
import runs_code_toy as toy
import runs_talk as talk
import runs_world as world

from tradeassay_bench.runs import AgentSpec, Asking, run

AGENTS = (
    AgentSpec(name="test-slow", params={"ms": 4.0}, label="slow"),
    AgentSpec(name="reversal", params={"lookback": 3, "every": 4, "k": 3}),
    AgentSpec(name="test-provoker"),
)


def spec() -> world.RunSpec:
    return world.tiny_spec("killed", agents=AGENTS)


if __name__ == "__main__":
    kind, folder, one, other = sys.argv[1:]
    if kind == "rules":
        run(spec(), folder, workers=int(other), home=one, progress="lines")
    elif kind == "model":
        talk.LOG.path = Path(other)
        run(talk.talk_spec("tiny-slow"), folder, executor="inline", home=one)
    else:
        run(
            toy.ToySpec(log=one, kill_at=int(other)),
            folder,
            asking=Asking(concurrency=2),
            workers=1,
        )
