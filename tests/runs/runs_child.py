"""What the kill tests start: a run in a process of its own. ``python runs_child.py FOLDER HOME WORKERS [ray]``."""

import sys

import runs_agents  # noqa: F401  # registers the agents
import runs_world as world

from tradeassay.runs import AgentSpec, run

AGENTS = (
    AgentSpec(name="test-slow", params={"ms": 4.0}, label="slow"),
    AgentSpec(name="reversal", params={"lookback": 3, "every": 4, "k": 3}),
    AgentSpec(name="test-provoker"),
)


def spec() -> world.RunSpec:
    return world.tiny_spec("killed", agents=AGENTS)


if __name__ == "__main__":
    run(spec(), sys.argv[1], workers=int(sys.argv[3]), home=sys.argv[2], progress="lines")
