"""Define ``manifest.json``, the identity of a run.

A run can be resumed only if its manifest still applies. There are two kinds of manifest: one for a
trading run, one for a run in which models write programs. Both have ``facts``, the hashes of
everything that determines a result. Facts are compared to resume, verify and compare runs.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec
from msgspec.structs import fields

from tradeassay.core.errors import UNDECODABLE, UserError
from tradeassay.core.hashing import canonical_json, sha256_of
from tradeassay.core.measure import Badges, Convention
from tradeassay.core.our_code import is_ours
from tradeassay_bench.account import venues
from tradeassay_bench.agents import agents
from tradeassay_bench.agents.model import NAME as MODEL
from tradeassay_bench.agents.own_file import NAME as OWN_FILE, WITH_FILES, own_files
from tradeassay_bench.benchmarks import Benchmark, NamedWindow, benchmarks, find_window
from tradeassay_bench.benchmarks.protocol import protocols
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.data import PanelFacts, Snapshot, load_dataset, verify_snapshot
from tradeassay_bench.play import Market, MarketConfig
from tradeassay_bench.runs.spec.episode import (
    EpisodeSpec,
    ModelRecord,
    ProtocolRecord,
    code_sha256,
    describe_protocol,
    model_config,
    record_models,
    with_protocol,
)
from tradeassay_bench.runs.spec.run_spec import RunSpec, work_sha256
from tradeassay_bench.runs.store.folder import Versions, refuse_odd_files, version_changes

MANIFEST_FORMAT = 1
_KEY = re.compile(r"[A-Za-z0-9+=_-][A-Za-z0-9+=._-]*")
OWN = "the file"


class DatasetRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A data set in the manifest: the snapshot's name, content hash and facts."""

    name: str
    sha256: str
    facts: PanelFacts


class DatasetEntry(DatasetRecord, frozen=True, kw_only=True):
    """A data set with all its sessions and the named windows of the run.

    ``windows`` maps the keys of :func:`window_key` to windows.
    """

    sessions: tuple[str, ...]
    windows: dict[str, NamedWindow] = {}


class WantedWindow(msgspec.Struct, frozen=True, kw_only=True):
    """A named window that a data set must have."""

    protocol: str
    convention: Convention
    code: str


class PrepareTask(msgspec.Struct, frozen=True, kw_only=True, tag="prepare"):
    """A task to prepare a data set: open it, and check that the run can use it.

    A synthetic data set is generated if it is new. ``markets`` lists the markets of the run on the
    data set, and ``windows`` the named windows that the data set must have.
    """

    dataset: str
    home: str | None
    markets: tuple[MarketConfig, ...]
    windows: tuple[WantedWindow, ...] = ()


@lru_cache(maxsize=2)
def snapshot_for(dataset: str, home: str | None, sha256: str) -> Snapshot:
    """Open a data set and return it.

    The two latest data sets stay open, because consecutive episodes usually use the same data.
    Raises :class:`RunError` if the content of the data set does not have the hash ``sha256``.
    """
    snapshot = load_dataset(dataset, Path(home) if home else None)
    if snapshot.sha256 != sha256:
        raise RunError(
            f"data set '{dataset}' has changed (sha256 {sha256[:12]} is now "
            f"{snapshot.sha256[:12]})",
            hint="restore the original data, or start a new run",
        )
    return snapshot


def describe(task: PrepareTask) -> DatasetEntry:
    """Open a data set, generate it if it is synthetic and new, and return its entry.

    See :func:`describe_open`.
    """
    return describe_open(load_dataset(task.dataset, Path(task.home) if task.home else None), task)


def describe_open(snapshot: Snapshot, task: PrepareTask) -> DatasetEntry:
    """Return the entry of an open data set.

    Raises :class:`DataError` if a file of the data set was altered. Raises an error if the data
    does not support a market of the run: a window without sessions, an unknown index, a missing
    named window.
    """
    verify_snapshot(snapshot.folder, again=False)
    for market in task.markets:
        Market(snapshot, market)
    return entry_of(snapshot, task.windows)


def entry_of(snapshot: Snapshot, windows: Sequence[WantedWindow]) -> DatasetEntry:
    """Return the entry of an open data set.

    Raises :class:`DataError` if the data set does not have a named window.
    """
    return DatasetEntry(
        name=snapshot.name,
        sha256=snapshot.sha256,
        facts=snapshot.facts,
        sessions=tuple(str(day) for day in snapshot.sessions),
        windows={
            window_key(window.protocol, window.convention, window.code): find_window(
                window.protocol, window.code, snapshot, window.convention
            )
            for window in windows
        },
    )


class BenchmarkRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A benchmark's configuration, its hash, and the hash of its venue's rules.

    ``package`` is the name and version of the benchmark's package. It is unset for a benchmark of
    tradeassay.
    """

    sha256: str
    venue_sha256: str
    config: Benchmark
    package: str | msgspec.UnsetType = msgspec.UNSET


class AgentRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The module of an agent's code.

    For code outside tradeassay, ``sha256`` is the hash of the code, and ``package`` is the name and
    version of the installed package.
    """

    module: str
    sha256: str | None = None
    package: str | msgspec.UnsetType = msgspec.UNSET

    @property
    def ours(self) -> bool:
        """Return whether the code is part of tradeassay."""
        return is_ours(self.module)


class ManifestBase(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """The fields common to all manifests."""

    format: int = MANIFEST_FORMAT
    work_sha256: str
    episodes: tuple[EpisodeSpec, ...]
    versions: Versions


class RunManifest(ManifestBase, frozen=True, kw_only=True, tag="trading"):
    """The identity of a trading run.

    ``protocols`` contains the conversations of models, and ``windows`` the named windows, both by
    setting. ``models`` contains the known facts about models by label. ``files`` contains, by
    label, the hashes of an agent's own files at the start of the run.
    """

    spec: RunSpec
    convention: Convention
    seeds: tuple[int, ...]
    benchmarks: dict[str, BenchmarkRecord]
    datasets: dict[str, DatasetRecord]
    agents: dict[str, AgentRecord]
    protocols: dict[str, ProtocolRecord] = {}
    windows: dict[str, NamedWindow] = {}
    models: dict[str, ModelRecord] = {}
    files: dict[str, dict[str, str]] | msgspec.UnsetType = msgspec.UNSET

    @property
    def absent_benchmarks(self) -> dict[str, Benchmark]:
        """Return the run's benchmarks that are not registered here."""
        return {
            name: record.config
            for name, record in self.benchmarks.items()
            if name not in benchmarks
        }

    @property
    def absent_agents(self) -> dict[str, AgentRecord]:
        """Return the run's agents whose packages are not installed here."""
        return {
            name: record
            for name, record in self.agents.items()
            if name not in agents and not record.ours
        }

    @property
    def secret(self) -> str | None:
        """Return the secret that seeds the run's draws, or None without a secret."""
        return self.spec.secret or None

    @property
    def asked(self) -> dict[str, object]:
        """Return the fields of the spec except for the name."""
        return {
            f.encode_name: getattr(self.spec, f.name) for f in fields(self.spec) if f.name != "name"
        }

    @property
    def facts(self) -> dict[str, str]:
        """Return the hashes of everything that determines a result, by name.

        These are hashes of data, rules, conversations and code.
        """
        found = {f"data set '{name}'": record.sha256 for name, record in self.datasets.items()}
        for name, benchmark in self.benchmarks.items():
            found[f"benchmark '{name}'"] = benchmark.sha256
            found[f"the venue of benchmark '{name}'"] = benchmark.venue_sha256
        for setting, protocol in self.protocols.items():
            found[f"the settings of the conversation '{protocol.protocol}' in {setting}"] = (
                protocol.config_sha256
            )
            found |= {f"the prompt {name}": digest for name, digest in protocol.prompts.items()}
            found[f"the code of the conversation '{protocol.protocol}'"] = (
                protocol.code_sha256 or "ours"
            )
        if self.windows:
            found["the choice of named windows"] = sha256_of(self.windows)
        found |= {
            f"the code of agent '{name}'": sha256_of(agent) for name, agent in self.agents.items()
        }
        for label, files in (self.files or {}).items():
            found |= {f"{OWN} {name} of agent '{label}'": digest for name, digest in files.items()}
        return found

    def benchmark(self, episode: EpisodeSpec) -> Benchmark:
        """Return the benchmark of an episode, with the episode's window and conversation."""
        config = self.benchmarks[episode.benchmark].config
        return played_as(config, episode, self.spec, self.windows.get(episode.setting))

    def refuse_other_venue(self, benchmark: str) -> None:
        """Check that the registered rules of a benchmark's venue are the rules of the run.

        Raises :class:`UserError` otherwise. The recorded rules cannot be used instead, because only
        their hash is recorded.
        """
        record = self.benchmarks[benchmark]
        name, recorded = record.config.market.venue, record.venue_sha256
        installed = sha256_of(venues.get(name))
        if installed != recorded:
            raise UserError(
                f"the rules of venue '{name}' differ from this run's rules ({recorded[:12]} is now "
                f"{installed[:12]})",
                hint="install the venue's version of the run",
            )

    def badges(self, episode: EpisodeSpec) -> Badges:
        """Return the caveats for the numbers of this episode."""
        facts = self.datasets[episode.dataset].facts
        own = episode.agent.name == OWN_FILE
        return Badges(
            data=facts.kind, convention=self.convention, biases=facts.biases, own_program=own
        )


class CodeManifest(ManifestBase, frozen=True, kw_only=True, tag="code"):
    """The identity of a run in which models write programs.

    ``spec`` is the spec of the run as JSON, in the type of its benchmark. ``facts`` contains hashes
    of tasks, prompts and configuration, and the versions of the packages that programs use.
    ``notes`` lists omitted parts. ``models`` contains the known facts about models with a cost, by
    name.
    """

    benchmark: str
    spec: msgspec.Raw
    facts: dict[str, str]
    notes: tuple[str, ...]
    models: dict[str, ModelRecord] | msgspec.UnsetType = msgspec.UNSET

    @property
    def secret(self) -> str | None:
        """Return the secret that seeds the run's draws, or None without a secret."""
        secret = self.asked.get("secret")
        return secret if isinstance(secret, str) else None

    @property
    def asked(self) -> dict[str, object]:
        """Return all fields of the spec."""
        spec_fields: dict[str, object] = msgspec.json.decode(self.spec)
        return spec_fields


Manifest = RunManifest | CodeManifest


NO_INDEX = "none"
"""The value of a spec's ``index`` for a comparison without an index."""


def played_as(
    benchmark: Benchmark, episode: EpisodeSpec, spec: RunSpec, named: NamedWindow | None = None
) -> Benchmark:
    """Return a benchmark as an episode uses it.

    The spec replaces the window, the index and the universe. The episode replaces options of the
    conversation. ``named`` is the named window of the episode.
    """
    days = named or spec.window
    changed: dict[str, str | None] = (
        {} if days is None else {"first": days.first, "last": days.last}
    )
    if spec.index:
        changed["index"] = None if spec.index == NO_INDEX else spec.index
    if spec.universe:
        changed["universe"] = spec.universe
    if changed:
        market = msgspec.structs.replace(benchmark.market, **changed)
        benchmark = msgspec.structs.replace(benchmark, market=market)
    return with_protocol(benchmark, episode.protocol)


def window_key(protocol: str, convention: Convention, code: str) -> str:
    """Return the key of a named window in a data set's entry."""
    return f"{protocol}/{convention}/{code}"


def windows_by_setting(
    episodes: tuple[EpisodeSpec, ...], datasets: Mapping[str, DatasetEntry]
) -> dict[str, NamedWindow]:
    """Return the named windows by setting. Settings without a named window are omitted."""
    windows: dict[str, NamedWindow] = {}
    for episode in episodes:
        if episode.window is not None and episode.setting not in windows:
            config = benchmarks.get(episode.benchmark)
            key = window_key(config.protocol, config.convention, episode.window)
            windows[episode.setting] = datasets[episode.dataset].windows[key]
    return windows


def build_manifest(
    spec: RunSpec,
    episodes: tuple[EpisodeSpec, ...],
    datasets: Mapping[str, DatasetEntry],
    versions: Versions,
    *,
    prices: Path | None = None,
    files: dict[str, dict[str, str]] | msgspec.UnsetType = msgspec.UNSET,
    stated: RunManifest | None = None,
) -> RunManifest:
    """Return the manifest of a run that starts now.

    ``prices`` is a file of model prices, which override the packaged prices. A new run passes
    ``files``, the result of :func:`agent_files`. A verification passes ``stated``, the recorded
    manifest. Facts about packages that are not installed here are copied from ``stated``.
    """
    absent = {} if stated is None else stated.absent_agents
    rules: dict[str, BenchmarkRecord] = {}
    for name in spec.benchmarks:
        config, package = benchmarks.get(name), benchmarks.package(name) or msgspec.UNSET
        if stated is not None and config.market.venue not in venues:
            venue = stated.benchmarks[name].venue_sha256
        else:
            venue = sha256_of(venues.get(config.market.venue))
        rules[name] = BenchmarkRecord(
            sha256=sha256_of(config), venue_sha256=venue, config=config, package=package
        )
    conversations: dict[str, ProtocolRecord] = {}
    for episode in episodes:
        if episode.by_model and episode.setting not in conversations:
            config = with_protocol(benchmarks.get(episode.benchmark), episode.protocol)
            if stated is not None and config.protocol not in protocols:
                conversations[episode.setting] = stated.protocols[episode.setting]
            else:
                conversations[episode.setting] = describe_protocol(config)
    models = {
        episode.label: (model_config(episode).model, dict(episode.agent.params))
        for episode in episodes
        if episode.agent.name == MODEL
    }
    return RunManifest(
        spec=spec,
        work_sha256=work_sha256(spec),
        convention=spec.convention,
        seeds=spec.seeds,
        benchmarks=rules,
        datasets={
            name: DatasetRecord(name=entry.name, sha256=entry.sha256, facts=entry.facts)
            for name, entry in datasets.items()
        },
        agents={
            name: absent.get(name) or agent_record(name)
            for name in dict.fromkeys(episode.agent.name for episode in episodes)
        },
        episodes=episodes,
        versions=versions,
        protocols=conversations,
        windows=windows_by_setting(episodes, datasets),
        models=record_models(models, prices),
        files=files,
    )


def agent_files(episodes: tuple[EpisodeSpec, ...]) -> dict[str, dict[str, str]] | msgspec.UnsetType:
    """Return the hashes of the agents' own files by label; unset if no agent has such files."""
    players = {
        episode.label: episode.agent for episode in episodes if episode.agent.name in WITH_FILES
    }
    hashes = {label: own_files(agent.name, agent.params) for label, agent in players.items()}
    return {label: files for label, files in hashes.items() if files} or msgspec.UNSET


def refuse_changes(then: Manifest, now: Manifest, folder: Path) -> None:
    """Check that the run to start now (``now``) is the recorded run (``then``) of a folder.

    Raises :class:`RunError` with the first difference of spec, facts or versions.
    """
    if type(then) is not type(now) or then.work_sha256 != now.work_sha256:
        raise RunError(
            f"{folder} contains a different run: {_difference(then, now)}",
            hint="use a different name, or no name; the existing run is not changed",
        )
    before, after = then.facts, now.facts
    for name in sorted({*before, *after}, key=[*after, *before].index):
        if name.startswith(OWN) and name not in after:
            continue  # In a replay of answers, the file is not used.
        old, new = before.get(name, "missing"), after.get(name, "missing")
        if old != new:
            raise RunError(
                f"{name} has changed since {folder} was started ({old[:12]} is now {new[:12]})",
                hint="restore the original, or start a new run with a different name, or without a "
                "name",
            )
    changes = version_changes(then.versions, now.versions)
    if changes:
        raise RunError(
            f"{folder} was made with other versions: {'; '.join(changes)}",
            hint="install those versions, or start a new run with a different name",
        )


def encode_manifest(manifest: Manifest) -> bytes:
    """Return a manifest as the bytes of its file."""
    return msgspec.json.format(canonical_json(manifest), indent=1) + b"\n"


def read_manifest(path: Path) -> Manifest:
    """Return the content of ``manifest.json``. Every reader of a run calls this function first.

    Raises :class:`RunError` if the file is missing, damaged or of an unknown format, and if the run
    has files that cannot be read to their end.
    """
    refuse_odd_files(path.parent)
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        raise RunError(
            f"{path.parent} does not contain a run: manifest.json is missing",
            hint="give the folder of a run",
        ) from None
    try:
        content.decode()  # The JSON decoder skips unknown fields, so it would accept invalid UTF-8.
        head = msgspec.json.decode(content, type=_Head)
        if head.format != MANIFEST_FORMAT:
            raise RunError(
                f"{path} has format {head.format}, this version reads {MANIFEST_FORMAT}",
                hint="read it with the version of tradeassay that wrote it",
            )
        manifest = _DECODER.decode(content)
    except (KeyError, *UNDECODABLE) as error:
        raise RunError(f"{path} is damaged: {error}", hint="start the run again") from error
    counts = Counter(episode.key for episode in manifest.episodes)
    bad_key = next(
        (key for key, times in counts.items() if times > 1 or not _KEY.fullmatch(key)), None
    )
    if bad_key is not None:  # a key is the name of a folder
        hint = "it was not written by tradeassay: do not trust it"
        raise RunError(f"{path} has an invalid or repeated episode key {bad_key[:80]!a}", hint=hint)
    if isinstance(manifest, RunManifest):
        unknown = {episode.benchmark for episode in manifest.episodes} - manifest.benchmarks.keys()
        unknown |= {episode.dataset for episode in manifest.episodes} - manifest.datasets.keys()
        for name in sorted(unknown):
            raise RunError(
                f"{path} is damaged: it has no description of '{name}'", hint="start the run again"
            )
    return manifest


class _Head(msgspec.Struct):
    format: int = 0


_DECODER: msgspec.json.Decoder[Manifest] = msgspec.json.Decoder(Manifest)


def agent_record(name: str) -> AgentRecord:
    """Return the record of a registered agent's code."""
    module = agents.get(name).__module__
    if (record := AgentRecord(module=module)).ours:
        return record
    return AgentRecord(
        module=module, sha256=code_sha256(module), package=agents.package(name) or msgspec.UNSET
    )


def _difference(then: Manifest, now: Manifest) -> str:
    """Return the first difference between the specs of two manifests, as text."""
    if type(then) is not type(now):
        return "its kind differs"
    before, after, facts = then.asked, now.asked, then.facts
    for name in dict.fromkeys(("benchmark", *after, *before)):
        if before.get(name) == after.get(name):
            continue
        for file, digest in now.facts.items() if name == "agents" else ():
            # Agents with the same name may have different files.
            if file.startswith(OWN) and facts.get(file, digest) != digest:
                return f"{file} has changed since"
        differ = "differ" if name.endswith("s") else "differs"
        return f"it runs {before[name]}" if name == "benchmark" else f"its {name} {differ}"
    return "the specs differ"
