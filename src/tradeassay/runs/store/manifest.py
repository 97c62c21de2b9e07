"""``manifest.json``: what was run, on what, with what. A run is resumed only while all of it still holds.

There are two kinds of manifest: for a run that trades, and for a run in which programs are written. Resuming,
verifying and comparing rely on their ``facts``: everything that decides a result, by name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec
from msgspec.structs import fields

from tradeassay.account import venues
from tradeassay.agents import agents
from tradeassay.agents.model import NAME as MODEL
from tradeassay.agents.own_file import NAME as OWN_FILE, WITH_FILES, own_files
from tradeassay.benchmarks import Benchmark, NamedWindow, benchmarks, find_window
from tradeassay.benchmarks.protocol import protocols
from tradeassay.core.errors import UNDECODABLE, RunError, UserError
from tradeassay.core.hashing import Beacon, canonical_json, sha256_of
from tradeassay.core.measure import Badges, Convention
from tradeassay.data import PanelFacts, Snapshot, load_dataset, verify_snapshot
from tradeassay.play import Market, MarketConfig
from tradeassay.runs.spec.episode import (
    EpisodeSpec,
    ModelRecord,
    ProtocolRecord,
    code_sha256,
    describe_protocol,
    model_config,
    record_models,
    with_protocol,
)
from tradeassay.runs.spec.run_spec import RunSpec, work_sha256
from tradeassay.runs.store.folder import Versions, refuse_odd_files, version_changes

MANIFEST_FORMAT = 1
_KEY = re.compile(r"[A-Za-z0-9+=_-][A-Za-z0-9+=._-]*")
OWN = "the file"


class DatasetRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the manifest keeps of a data set: the snapshot's name, content hash and facts."""

    name: str
    sha256: str
    facts: PanelFacts


class DatasetEntry(DatasetRecord, frozen=True, kw_only=True):
    """A data set with its sessions from first to last. ``windows`` are the named ones that were asked for, by
    :func:`window_key`."""

    sessions: tuple[str, ...]
    windows: dict[str, NamedWindow] = {}


class WantedWindow(msgspec.Struct, frozen=True, kw_only=True):
    """A named window to be found on a data set."""

    protocol: str
    convention: Convention
    code: str


class PrepareTask(msgspec.Struct, frozen=True, kw_only=True, tag="prepare"):
    """Prepare a data set for reading (generate a synthetic world), describe it, and check that it can be played.

    ``markets`` are the ways in which it will be played, ``windows`` the named windows that it must have."""

    dataset: str
    home: str | None
    markets: tuple[MarketConfig, ...]
    windows: tuple[WantedWindow, ...] = ()


@lru_cache(maxsize=2)
def snapshot_for(dataset: str, home: str | None, sha256: str) -> Snapshot:
    """Open a data set; a few are kept, as consecutive episodes mostly read the same one. Raises :class:`RunError`
    when its content is not what the run was started with."""
    snapshot = load_dataset(dataset, Path(home) if home else None)
    if snapshot.sha256 != sha256:
        raise RunError(
            f"data set '{dataset}' has changed (sha256 {sha256[:12]} is now {snapshot.sha256[:12]})",
            hint="bring it back as it was, or start a new run",
        )
    return snapshot


def describe(task: PrepareTask) -> DatasetEntry:
    """Open a data set, generating it if it is synthetic and new, and describe it; see :func:`describe_open`."""
    return describe_open(load_dataset(task.dataset, Path(task.home) if task.home else None), task)


def describe_open(snapshot: Snapshot, task: PrepareTask) -> DatasetEntry:
    """Describe an open data set.

    Raises :class:`DataError` when a file or a note of the manifest was altered, and whatever a market raises that
    cannot be played on it: a window without sessions, an unknown index, no such named window."""
    verify_snapshot(snapshot.folder, again=False)
    for market in task.markets:
        Market(snapshot, market)
    return entry_of(snapshot, task.windows)


def entry_of(snapshot: Snapshot, windows: Sequence[WantedWindow]) -> DatasetEntry:
    """Describe an open data set; raises :class:`DataError` when it has no such window."""
    return DatasetEntry(
        name=snapshot.name,
        sha256=snapshot.sha256,
        facts=snapshot.facts,
        sessions=tuple(str(day) for day in snapshot.sessions),
        windows={
            window_key(one.protocol, one.convention, one.code): find_window(
                one.protocol, one.code, snapshot, one.convention
            )
            for one in windows
        },
    )


class BenchmarkRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A benchmark's configuration, its hash, and the hash of its venue's rules; ``package`` is the one that it
    came with, and its version, when that is not tradeassay."""

    sha256: str
    venue_sha256: str
    config: Benchmark
    package: str | msgspec.UnsetType = msgspec.UNSET


class AgentRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Where an agent's code lives. When it is not part of tradeassay, ``sha256`` is the hash of its code and
    ``package`` the installed package that it came with, and its version."""

    module: str
    sha256: str | None = None
    package: str | msgspec.UnsetType = msgspec.UNSET

    @property
    def ours(self) -> bool:
        return self.module.partition(".")[0] == "tradeassay"


class ManifestBase(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind"):
    """The fields common to all manifests."""

    format: int = MANIFEST_FORMAT
    work_sha256: str
    episodes: tuple[EpisodeSpec, ...]
    versions: Versions


class RunManifest(ManifestBase, frozen=True, kw_only=True, tag="trading"):
    """The identity of a run that trades.

    ``protocols`` (by cell) are the conversations of models, ``windows`` (by cell) the named windows as found on
    the data, ``models`` (by label) what is known about the models, ``files`` (by label) the hashes of the runner's
    own files that an agent is made of, as they were when the run began."""

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
        """The benchmarks that are not registered here, as the run states them."""
        return {name: one.config for name, one in self.benchmarks.items() if name not in benchmarks}

    @property
    def absent_agents(self) -> dict[str, AgentRecord]:
        """The agents of packages that are not installed here."""
        return {name: one for name, one in self.agents.items() if name not in agents and not one.ours}

    @property
    def secret(self) -> str | None:
        """What the run's draws are derived from, if anything."""
        return self.spec.secret or None

    @property
    def beacon(self) -> Beacon | None:
        """The public source that the secret is drawn from, if any."""
        return self.spec.beacon or None

    @property
    def asked(self) -> dict[str, object]:
        """What was asked for, field by field. The slug is only a name and is left out."""
        return {f.encode_name: getattr(self.spec, f.name) for f in fields(self.spec) if f.name != "slug"}

    @property
    def facts(self) -> dict[str, str]:
        """Everything that decides a result, by name: hashes of data, rules, conversations and code."""
        found = {f"data set '{name}'": record.sha256 for name, record in self.datasets.items()}
        for name, benchmark in self.benchmarks.items():
            found[f"benchmark '{name}'"] = benchmark.sha256
            found[f"the venue of benchmark '{name}'"] = benchmark.venue_sha256
        for cell, protocol in self.protocols.items():
            found[f"the settings of the conversation '{protocol.protocol}' in {cell}"] = protocol.config_sha256
            found |= {f"the prompt {name}": digest for name, digest in protocol.prompts.items()}
            found[f"the code of the conversation '{protocol.protocol}'"] = protocol.code_sha256 or "ours"
        if self.windows:
            found["the choice of named windows"] = sha256_of(self.windows)
        found |= {f"the code of agent '{name}'": sha256_of(agent) for name, agent in self.agents.items()}
        for label, files in (self.files or {}).items():
            found |= {f"{OWN} {name} of agent '{label}'": digest for name, digest in files.items()}
        return found

    def benchmark(self, episode: EpisodeSpec) -> Benchmark:
        """Return the benchmark an episode plays: in its window, with its conversation."""
        config = self.benchmarks[episode.benchmark].config
        return played_as(config, episode, self.spec, self.windows.get(episode.cell))

    def refuse_other_venue(self, benchmark: str) -> None:
        """Raise :class:`UserError` where a benchmark's venue is not here, or has other rules here than were played
        by: only their hash is on record."""
        name, then = self.benchmarks[benchmark].config.market.venue, self.benchmarks[benchmark].venue_sha256
        now = sha256_of(venues.get(name))
        if now != then:
            raise UserError(
                f"venue '{name}' has other rules here than this run was played by ({then[:12]} is now {now[:12]})",
                hint="install what it was played with",
            )

    def badges(self, episode: EpisodeSpec) -> Badges:
        """Return what a reader must know before believing a number of this episode."""
        facts = self.datasets[episode.dataset].facts
        own = episode.agent.name == OWN_FILE
        return Badges(data=facts.kind, convention=self.convention, biases=facts.biases, own_program=own)


class CodeManifest(ManifestBase, frozen=True, kw_only=True, tag="code"):
    """The identity of a run in which programs are written.

    ``spec`` is the benchmark's own, as JSON. ``facts`` are hashes of tasks, prompts and configuration, and
    versions of the packages that programs run on. ``notes`` says what was left out, ``models`` what was known of
    those that cost something."""

    benchmark: str
    spec: msgspec.Raw
    facts: dict[str, str]
    notes: tuple[str, ...]
    models: dict[str, ModelRecord] | msgspec.UnsetType = msgspec.UNSET

    @property
    def secret(self) -> str | None:
        """What the run's draws are derived from, if anything."""
        found = self.asked.get("secret")
        return found if isinstance(found, str) else None

    @property
    def beacon(self) -> Beacon | None:
        """The public source that the secret is drawn from, if any."""
        found = self.asked.get("beacon")
        try:
            return None if found is None else msgspec.convert(found, Beacon)
        except (UserError, msgspec.ValidationError):  # a spec that no run can have: whoever reads it says so
            return None

    @property
    def asked(self) -> dict[str, object]:
        found: dict[str, object] = msgspec.json.decode(self.spec)
        return found


Manifest = RunManifest | CodeManifest


NO_INDEX = "none"
"""What a spec's ``index`` says where results are to be compared with none."""


def played_as(
    benchmark: Benchmark, episode: EpisodeSpec, spec: RunSpec, named: NamedWindow | None = None
) -> Benchmark:
    """Return a benchmark as an episode plays it: in the spec's window and universe, with its own conversation."""
    days = named or spec.window
    changed: dict[str, str | None] = {} if days is None else {"first": days.first, "last": days.last}
    if spec.index:
        changed["index"] = None if spec.index == NO_INDEX else spec.index
    if spec.universe:
        changed["universe"] = spec.universe
    if changed:
        market = msgspec.structs.replace(benchmark.market, **changed)
        benchmark = msgspec.structs.replace(benchmark, market=market)
    return with_protocol(benchmark, episode.protocol)


def window_key(protocol: str, convention: Convention, code: str) -> str:
    """Return the key under which a data set's entry holds a named window."""
    return f"{protocol}/{convention}/{code}"


def windows_by_cell(
    episodes: tuple[EpisodeSpec, ...], datasets: Mapping[str, DatasetEntry]
) -> dict[str, NamedWindow]:
    found: dict[str, NamedWindow] = {}
    for episode in episodes:
        if episode.window is not None and episode.cell not in found:
            config = benchmarks.get(episode.benchmark)
            key = window_key(config.protocol, config.convention, episode.window)
            found[episode.cell] = datasets[episode.dataset].windows[key]
    return found


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
    """Describe a run as it would be started now; ``prices`` is a file of model prices that override ours.

    ``files`` are those of :func:`agent_files`, for whoever starts the run; ``stated`` is the recorded manifest,
    for whoever verifies it: what came with packages that are not installed here is taken from it."""
    absent = {} if stated is None else stated.absent_agents
    rules: dict[str, BenchmarkRecord] = {}
    for name in spec.benchmarks:
        config, package = benchmarks.get(name), benchmarks.package(name) or msgspec.UNSET
        if stated is not None and config.market.venue not in venues:
            venue = stated.benchmarks[name].venue_sha256
        else:
            venue = sha256_of(venues.get(config.market.venue))
        rules[name] = BenchmarkRecord(sha256=sha256_of(config), venue_sha256=venue, config=config, package=package)
    talks: dict[str, ProtocolRecord] = {}
    for episode in episodes:
        if episode.by_model and episode.cell not in talks:
            config = with_protocol(benchmarks.get(episode.benchmark), episode.protocol)
            if stated is not None and config.protocol not in protocols:
                talks[episode.cell] = stated.protocols[episode.cell]
            else:
                talks[episode.cell] = describe_protocol(config)
    models = {
        one.label: (model_config(one).model, dict(one.agent.params)) for one in episodes if one.agent.name == MODEL
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
        protocols=talks,
        windows=windows_by_cell(episodes, datasets),
        models=record_models(models, prices),
        files=files,
    )


def agent_files(episodes: tuple[EpisodeSpec, ...]) -> dict[str, dict[str, str]] | msgspec.UnsetType:
    """Return the hashes of the runner's own files by agent; unset where no agent has one."""
    players = {one.label: one.agent for one in episodes if one.agent.name in WITH_FILES}
    found = {label: own_files(agent.name, agent.params) for label, agent in players.items()}
    return {label: files for label, files in found.items() if files} or msgspec.UNSET


def refuse_changes(then: Manifest, now: Manifest, folder: Path) -> None:
    """Raise :class:`RunError` naming the first thing that has changed since the run was started."""
    if type(then) is not type(now) or then.work_sha256 != now.work_sha256:
        raise RunError(
            f"{folder} holds another run: {_difference(then, now)}",
            hint="give another slug, or none; that run stays as it is, unless you delete its folder",
        )
    before, after = then.facts, now.facts
    for name in sorted({*before, *after}, key=[*after, *before].index):
        if name.startswith(OWN) and name not in after:
            continue  # answers are only replayed: the file is not used
        old, new = before.get(name, "missing"), after.get(name, "missing")
        if old != new:
            raise RunError(
                f"{name} has changed since {folder} was started ({old[:12]} is now {new[:12]})",
                hint="bring it back as it was, or start a new run under another slug, or under none",
            )
    changes = version_changes(then.versions, now.versions)
    if changes:
        raise RunError(
            f"{folder} was made with other versions: {'; '.join(changes)}",
            hint="install those versions, or start a new run under another slug",
        )


def encode_manifest(manifest: Manifest) -> bytes:
    return msgspec.json.format(canonical_json(manifest), indent=1) + b"\n"


def read_manifest(path: Path) -> Manifest:
    """Read ``manifest.json``; raises :class:`RunError` when it is missing, damaged or of an unknown format, or
    when the run has files that cannot be read to their end. Everything that reads a run begins here."""
    refuse_odd_files(path.parent)
    try:
        content = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        raise RunError(
            f"{path.parent} does not hold a run: manifest.json is missing", hint="give the folder of a run"
        ) from None
    try:
        content.decode()  # a decoder of records does not look into names that it does not know
        head = msgspec.json.decode(content, type=_Head)
        if head.format != MANIFEST_FORMAT:
            raise RunError(
                f"{path} has format {head.format}, this version reads {MANIFEST_FORMAT}",
                hint="read it with the version of tradeassay that made it",
            )
        found = _DECODER.decode(content)
    except (KeyError, *UNDECODABLE) as error:
        raise RunError(f"{path} is damaged: {error}", hint="start the run again") from error
    counted = Counter(episode.key for episode in found.episodes)
    wrong = next((key for key, times in counted.items() if times > 1 or not _KEY.fullmatch(key)), None)
    if wrong is not None:  # a key is the name of a folder
        hint = "it was not written by tradeassay: do not believe it"
        raise RunError(f"{path} names an episode {wrong[:80]!a}, or names it twice", hint=hint)
    if isinstance(found, RunManifest):
        unknown = {one.benchmark for one in found.episodes} - found.benchmarks.keys()
        unknown |= {one.dataset for one in found.episodes} - found.datasets.keys()
        for name in sorted(unknown):
            raise RunError(f"{path} is damaged: it does not describe '{name}'", hint="start the run again")
    return found


class _Head(msgspec.Struct):
    format: int = 0


_DECODER: msgspec.json.Decoder[Manifest] = msgspec.json.Decoder(Manifest)


def agent_record(name: str) -> AgentRecord:
    module = agents.get(name).__module__
    if (ours := AgentRecord(module=module)).ours:
        return ours
    return AgentRecord(module=module, sha256=code_sha256(module), package=agents.package(name) or msgspec.UNSET)


def _difference(then: Manifest, now: Manifest) -> str:
    if type(then) is not type(now):
        return "it is of another kind"
    before, after, facts = then.asked, now.asked, then.facts
    for name in dict.fromkeys(("benchmark", *after, *before)):
        if before.get(name) == after.get(name):
            continue
        for file, digest in now.facts.items() if name == "agents" else ():
            if file.startswith(OWN) and facts.get(file, digest) != digest:  # another file under the same name
                return f"{file} has changed since"
        differ = "differ" if name.endswith("s") else "differs"
        return f"it runs {before[name]}" if name == "benchmark" else f"its {name} {differ}"
    return "the specs differ"
