"""What an agent is called wherever it is shown: a label is the runner's choice and says no more than the record.

A row is named like a provider's model only where recorded calls show that this provider was asked. Whoever else is
called so has its kind before the name: ``program over HTTP: openai-gpt-5``, ``rule momentum-12-1: openai-gpt-5``.
"""

from __future__ import annotations

from collections.abc import Iterable

from tradeassay.agents.model import NAME as MODEL
from tradeassay.agents.own_file import NAME as OWN_FILE
from tradeassay.benchmarks import Benchmark, benchmarks
from tradeassay.core.errors import RunError
from tradeassay.llm import parse_name
from tradeassay.llm.cassette import first_answer
from tradeassay.runs.spec.episode import EpisodeSpec
from tradeassay.runs.spec.run_spec import AgentSpec, model_agent
from tradeassay.runs.store.folder import RunFolder
from tradeassay.runs.store.manifest import AgentRecord, Manifest, RunManifest

_KINDS = {
    "http": "program over HTTP",
    "pipe": "program on a pipe",
    "mcp": "client over MCP",
    "python": "Python class",
    OWN_FILE: "rule from a file",
    "factor-model": "trained factor model",
}
NEVER_ASKED = "no recorded call"
ELSEWHERE = "asked at another server"


def shown_names(manifest: Manifest, place: RunFolder) -> dict[str, str]:
    """Return what the agents of a run are called, by label; for a model its recorded calls are looked at."""
    episodes: dict[str, list[EpisodeSpec]] = {}
    for episode in manifest.episodes:
        episodes.setdefault(episode.label, []).append(episode)
    records = manifest.agents if isinstance(manifest, RunManifest) else {}
    return {
        label: shown_name(played[0].agent, records.get(played[0].agent.name), _doubt(place, played))
        for label, played in episodes.items()
    }


def shown_name(agent: AgentSpec, record: AgentRecord | None = None, doubt: str = "") -> str:
    """Return what an agent is called. ``record`` says whose code it is, ``doubt`` why it may not be its model."""
    model = agent.params.get("model") if agent.name == MODEL else None
    plain = AgentSpec(name=agent.name, params=agent.params).title
    if isinstance(model, str):
        more = " ".join(f"{key}={value}" for key, value in sorted(agent.params.items()) if key != "model")
        kind, own = " ".join(filter(None, (model, more))), "" if more else model_agent(model).title
    elif agent.name in _KINDS:
        kind, own = _KINDS[agent.name], plain
    elif record is not None and record.module.partition(".")[0] != "tradeassay":
        kind, own = f"rule of {record.module.partition('.')[0]}", ""
    else:
        kind, own = f"rule {plain}", plain
    if doubt:
        kind, own = f"{kind}, {doubt}", ""
    elif model and agent.label is None:
        return kind
    return agent.title if agent.title in (own, kind) else f"{kind}: {agent.title}"


def shown_title(benchmark: Benchmark) -> str:
    """Return a benchmark's title as registered here; what a run calls one that is not is quoted behind its id."""
    if benchmark.id in benchmarks:
        return benchmarks.get(benchmark.id).title
    return f'{benchmark.id}, not registered here ("{benchmark.title}")'


def _doubt(place: RunFolder, episodes: Iterable[EpisodeSpec]) -> str:
    """Say why a row may not be named like its provider's model; empty where its calls are recorded."""
    found = ""
    for episode in episodes:
        if not episode.model or parse_name(episode.model).route != "inspect":
            continue
        try:
            first = first_answer(place.models / f"{episode.key}.jsonl", episode.model)
        except RunError:
            first = None
        if first is None and place.outcome(episode.key).is_file():
            return NEVER_ASKED
        if first is not None and first.elsewhere is True:
            found = ELSEWHERE
    return found
