"""``manifest.json``: what was run, on what, with what. A run is resumed only while all of it still holds."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from tradeassay.account import venues
from tradeassay.agents import agents
from tradeassay.benchmarks import Benchmark, NamedWindow, benchmarks
from tradeassay.core.badges import Badges, Convention
from tradeassay.core.errors import RunError
from tradeassay.core.hashing import canonical_json, sha256_file, sha256_of
from tradeassay.data import PanelFacts
from tradeassay.runs.conversation import ProtocolRecord, conversation_change, describe_protocol, with_protocol
from tradeassay.runs.episode import Episode
from tradeassay.runs.models import ModelRecord, describe_models
from tradeassay.runs.spec import RunSpec, Window, same_work, work_sha256
from tradeassay.runs.versions import Versions, version_changes

MANIFEST_FORMAT = 1


class DatasetEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A data set: the snapshot's name and content hash, its facts, and its sessions from first to last.

    ``windows`` are the named ones that were asked for, by :func:`window_key`.
    """

    name: str
    sha256: str
    facts: PanelFacts
    sessions: tuple[str, ...]
    windows: dict[str, NamedWindow] = {}


class DatasetRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the manifest keeps of a data set."""

    name: str
    sha256: str
    facts: PanelFacts


class BenchmarkRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A benchmark's configuration and the hashes of it and of its venue's rules."""

    sha256: str
    venue_sha256: str
    config: Benchmark


class AgentRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Where an agent's code lives. ``sha256`` is the hash of its file when it is not part of tradeassay."""

    module: str
    sha256: str | None = None


class RunManifest(msgspec.Struct, frozen=True, kw_only=True):
    """The identity of a run.

    ``protocols`` (by cell) are the conversations of models, ``windows`` (by cell) the named windows as found on
    the data, ``models`` (by label) what is known about the models.
    """

    format: int = MANIFEST_FORMAT
    spec: RunSpec
    work_sha256: str
    convention: Convention
    seeds: tuple[int, ...]
    benchmarks: dict[str, BenchmarkRecord]
    datasets: dict[str, DatasetRecord]
    agents: dict[str, AgentRecord]
    episodes: tuple[Episode, ...]
    versions: Versions
    protocols: dict[str, ProtocolRecord] = {}
    windows: dict[str, NamedWindow] = {}
    models: dict[str, ModelRecord] = {}

    def benchmark(self, episode: Episode) -> Benchmark:
        """Return the benchmark an episode plays: in its window, with its conversation."""
        config = self.benchmarks[episode.benchmark].config
        return played_as(config, episode, self.spec.window, self.windows.get(episode.cell))

    def badges(self, episode: Episode) -> Badges:
        """Return what a reader must know before believing a number of this episode."""
        facts = self.datasets[episode.dataset].facts
        return Badges(data=facts.kind, convention=self.convention, biases=facts.biases)


def played_as(
    benchmark: Benchmark, episode: Episode, window: Window | None, named: NamedWindow | None = None
) -> Benchmark:
    """Return a benchmark as an episode plays it: in the window, if there is one, with its own conversation."""
    days = named or window
    if days is not None:
        market = msgspec.structs.replace(benchmark.market, first=days.first, last=days.last)
        benchmark = msgspec.structs.replace(benchmark, market=market)
    return with_protocol(benchmark, episode.protocol)


def window_key(protocol: str, convention: Convention, code: str) -> str:
    """Return under which key a data set's entry holds a named window."""
    return f"{protocol}/{convention}/{code}"


def windows_by_cell(episodes: tuple[Episode, ...], datasets: Mapping[str, DatasetEntry]) -> dict[str, NamedWindow]:
    """Return the named window of every cell that has one."""
    found: dict[str, NamedWindow] = {}
    for episode in episodes:
        if episode.window is not None and episode.cell not in found:
            config = benchmarks.get(episode.benchmark)
            key = window_key(config.protocol, config.convention, episode.window)
            found[episode.cell] = datasets[episode.dataset].windows[key]
    return found


def build_manifest(
    spec: RunSpec,
    episodes: tuple[Episode, ...],
    datasets: Mapping[str, DatasetEntry],
    versions: Versions,
    *,
    prices: Path | None = None,
) -> RunManifest:
    """Describe a run as it would be started now; ``prices`` is a file of prices of models, laid over ours."""
    return RunManifest(
        spec=spec,
        work_sha256=work_sha256(spec),
        convention=spec.convention,
        seeds=spec.seeds,
        benchmarks={name: _benchmark(benchmarks.get(name)) for name in spec.benchmarks},
        datasets={
            name: DatasetRecord(name=entry.name, sha256=entry.sha256, facts=entry.facts)
            for name, entry in datasets.items()
        },
        agents={name: _agent(name) for name in dict.fromkeys(episode.agent.name for episode in episodes)},
        episodes=episodes,
        versions=versions,
        protocols={
            episode.cell: describe_protocol(with_protocol(benchmarks.get(episode.benchmark), episode.protocol))
            for episode in episodes
            if episode.by_model
        },
        windows=windows_by_cell(episodes, datasets),
        models=describe_models(episodes, prices),
    )


def refuse_changes(then: RunManifest, now: RunManifest, folder: Path) -> None:
    """Raise :class:`RunError` naming the first thing that is no longer what the run was started with."""
    if not same_work(then.spec, now.spec):
        raise RunError(
            f"{folder} holds another run: {_difference(then.spec, now.spec)}",
            mend="choose another slug, or delete that folder",
        )
    again = "bring it back as it was, or start a new run under another slug"
    for name, dataset in now.datasets.items():
        if then.datasets[name].sha256 != dataset.sha256:
            raise RunError(
                f"data set '{name}' has changed since {folder} was started "
                f"(sha256 {then.datasets[name].sha256[:12]} is now {dataset.sha256[:12]})",
                mend=again,
            )
    for name, benchmark in now.benchmarks.items():
        if then.benchmarks[name].sha256 != benchmark.sha256:
            raise RunError(f"benchmark '{name}' has changed since {folder} was started", mend=again)
        if then.benchmarks[name].venue_sha256 != benchmark.venue_sha256:
            raise RunError(f"the venue of benchmark '{name}' has changed since {folder} was started", mend=again)
    _refuse_other_conversations(then, now, folder, again)
    for name, agent in now.agents.items():
        if then.agents[name] != agent:
            raise RunError(f"the code of agent '{name}' has changed since {folder} was started", mend=again)
    changes = version_changes(then.versions, now.versions)
    if changes:
        raise RunError(
            f"{folder} was made with other versions: {'; '.join(changes)}",
            mend="install those versions, or start a new run under another slug",
        )


def _refuse_other_conversations(then: RunManifest, now: RunManifest, folder: Path, mend: str) -> None:
    for cell, protocol in now.protocols.items():
        different = conversation_change(then.protocols[cell], protocol)
        if different is not None:
            raise RunError(f"{different} since {folder} was started", mend=mend)
    if then.windows != now.windows:
        raise RunError(f"the named windows have changed since {folder} was started", mend=mend)


def encode_manifest(manifest: RunManifest) -> bytes:
    """Return the content of ``manifest.json``."""
    return msgspec.json.format(canonical_json(manifest), indent=1) + b"\n"


def read_manifest(path: Path) -> RunManifest:
    """Read ``manifest.json``; raises :class:`RunError` when it is missing, damaged or of another format."""
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise RunError(f"{path.parent} holds no run (no manifest.json)", mend="give the folder of a run") from None
    try:
        head = msgspec.json.decode(content, type=_Head)
        if head.format != MANIFEST_FORMAT:
            raise RunError(
                f"{path} has format {head.format}, this version reads {MANIFEST_FORMAT}",
                mend="read it with the version of tradeassay that made it",
            )
        return msgspec.json.decode(content, type=RunManifest)
    except msgspec.DecodeError as error:
        raise RunError(f"{path} is damaged: {error}", mend="start the run again") from error


class _Head(msgspec.Struct):
    format: int = 0


def _benchmark(benchmark: Benchmark) -> BenchmarkRecord:
    return BenchmarkRecord(
        sha256=sha256_of(benchmark), venue_sha256=sha256_of(venues.get(benchmark.market.venue)), config=benchmark
    )


def _agent(name: str) -> AgentRecord:
    module = agents.get(name).__module__
    if module.split(".")[0] == "tradeassay":
        return AgentRecord(module=module)
    file = getattr(sys.modules.get(module), "__file__", None)
    return AgentRecord(module=module, sha256=sha256_file(Path(file)) if file and Path(file).is_file() else None)


def _difference(then: RunSpec, now: RunSpec) -> str:
    for field in msgspec.structs.fields(RunSpec):
        if field.name != "slug" and getattr(then, field.name) != getattr(now, field.name):
            return f"its {field.encode_name} differ"
    return "the specs differ"
