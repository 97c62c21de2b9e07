"""Verifying a recorded run of either kind: everything is made again from what it was made of, and compared.

The rules are those that are registered here, not those that the run brings along; the data is the store's. The
claims of one episode are in :mod:`tradeassay.runs.verify.checks`, those of the run as a whole here. What cannot
be made again is said, claim by claim: above all what a model replied, which is a claim of the runner unless
the run was sealed before the result was known, or a witness recorded it.
"""

from __future__ import annotations

import os
import re
import stat
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import msgspec

from tradeassay.agents import agents
from tradeassay.benchmarks import Benchmark, benchmarks
from tradeassay.core.errors import DataError, RunError, TradeassayError
from tradeassay.core.executors import Lost, Task, TaskExecutor, make_executor
from tradeassay.core.hashing import canonical_json, sha256_of
from tradeassay.data import load_stored, verify_snapshot
from tradeassay.metrics import BootstrapConfig
from tradeassay.runs.play.programs import code_episodes, code_scores, examine_again, reopen
from tradeassay.runs.play.progress import CountListener
from tradeassay.runs.play.trading import modules_of, prepare_tasks, score_tasks
from tradeassay.runs.play.worker_tasks import CHECKED_DECODER, ENCODE, ENTRY, SCORED_DECODER
from tradeassay.runs.score.scores import encode_scores, gather
from tradeassay.runs.spec.episode import EpisodeSpec, expand
from tradeassay.runs.spec.run_spec import AgentSpec, model_agent, work_sha256
from tradeassay.runs.store.cache import entry_of
from tradeassay.runs.store.folder import RunFolder, present_versions, version_changes
from tradeassay.runs.store.manifest import (
    CodeManifest,
    DatasetEntry,
    Manifest,
    RunManifest,
    build_manifest,
    encode_manifest,
    played_as,
    read_manifest,
    window_key,
)
from tradeassay.runs.store.outcome import ClaimOutcome, Violation, Word
from tradeassay.runs.verify.checks import Checked, CheckTask, check_program
from tradeassay.runs.verify.replay import NotReplayable, Replayed, differences, not_as_written

M = TypeVar("M", bound=Manifest)
BESIDE = ("report.html", "timing.json", ".lock", "cards")
"""Files of a run's folder that are no part of its record: anybody can write them again."""
RUNNERS_CLAIM = (
    "what a model replied is a claim of the runner, unless the run was sealed before the result was known or a "
    "witness recorded it"
)
OWN_SECRET = (
    "the secret was chosen by the runner, who may have tried others: a plan that was sealed and published before "
    "the run began rules that out (verify --plan)"
)
LARGEST_FILE = 1 << 30
"""Bytes: a file of a run is read as a whole."""
_WORDS = frozenset(("title", "description"))
"""What a benchmark is called may be reworded."""


class VerifyReport(msgspec.Struct, frozen=True, kw_only=True):
    """What became of every claim of a run, and everything that does not hold.

    ``notes`` say what is beside the record and was not looked at.
    """

    folder: str
    episodes: int
    steps: int
    claims: tuple[ClaimOutcome, ...]
    violations: tuple[Violation, ...]
    notes: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every claim was re-derived."""
        return not self.violations and all(claim.outcome == "re-derived" for claim in self.claims)

    @property
    def contradicted(self) -> bool:
        """Whether something does not hold."""
        return bool(self.violations) or any(claim.outcome == "contradicted" for claim in self.claims)

    @property
    def unchecked(self) -> tuple[str, ...]:
        """What could not be made again, and why."""
        return tuple(str(claim) for claim in self.claims if claim.outcome in ("consistent", "cannot be checked"))

    @property
    def exit_code(self) -> Literal[0, 1, 3]:
        """0: everything was re-derived; 1: something is contradicted; 3: something cannot be checked."""
        return 1 if self.contradicted else 0 if self.ok else 3

    def summary(self) -> str:
        """Return the result in one sentence."""
        size = f"{self.episodes} episodes, {self.steps} steps"
        names = ", ".join(dict.fromkeys(claim.claim for claim in self.claims if claim.outcome == "re-derived"))
        if self.contradicted:
            return f"{self.folder}: CONTRADICTED, {size}: {len(self.violations)} violations"
        if self.ok:
            return f"{self.folder}: re-derived, {size}: {names}"
        words = f"{self.folder}: nothing is contradicted, but not everything is re-derived, {size}"
        return f"{words}: {'; '.join(self.unchecked)}"


def verify(
    folder: Path | str,
    *,
    home: Path | str | None = None,
    workers: int | None = None,
    programs: bool = True,
    examined: dict[str, msgspec.Struct] | None = None,
    told: CountListener | None = None,
) -> VerifyReport:
    """Make a run again from its data, rules and recorded replies, on ``workers`` processes, and compare.

    With ``programs`` False the programs of a code run are not examined again; ``examined`` keeps what their
    examinations gave, so that many verifications of one run examine each program once and hash a file of the
    store once for as long as it stays as it is. ``told`` hears how far it is. Raises :class:`RunError` only when
    there is no readable manifest; everything else is in the report.
    """
    path = Path(folder)
    _refuse_odd_files(path)
    manifest = read_manifest(path / "manifest.json")
    _refuse_nonsense(manifest, path)
    place = RunFolder(path)
    for inside in (place.models, place.episode(""), *(place.episode(one.key) for one in manifest.episodes)):
        if inside.is_file():
            raise RunError(f"{inside} is a file where a folder belongs", hint="remove it")
    if isinstance(manifest, CodeManifest):
        return _ProgramsVerifier(place, manifest, workers, programs, examined, told).report()
    where = None if home is None else str(Path(home).absolute())
    names, here = modules_of(manifest.episodes)
    with make_executor("inline" if here else "local", entry=ENTRY, workers=workers, modules=names) as executor:
        return _TradingVerifier(place, manifest, where, executor, examined is not None, told).report()


def _refuse_odd_files(path: Path) -> None:
    """Raise :class:`RunError` for what cannot be read safely: reading it may never end, or read other files.

    That is pipes, devices, links, files that fit into no memory (a sparse one takes no space on a disk), and names
    that are no text.
    """
    for place, folders, files in os.walk(path):
        for name in (*folders, *files):
            odd = Path(place) / name
            if not name.isprintable():
                raise RunError(f"{place} holds {name[:80]!a}, which is not a valid name", hint="remove it")
            facts = odd.lstat()
            if not stat.S_ISREG(facts.st_mode) and not stat.S_ISDIR(facts.st_mode):
                raise RunError(
                    f"{odd} is neither a file nor a folder",
                    hint="put a plain file in its place",
                )
            if stat.S_ISREG(facts.st_mode) and facts.st_size > LARGEST_FILE:
                raise RunError(
                    f"{odd} is too large to be read", hint="it was not written by tradeassay: remove it"
                )


_FOLDER = re.compile(r"[A-Za-z0-9+=._-]+")


def _refuse_nonsense(manifest: Manifest, path: Path) -> None:
    """Raise :class:`RunError` for a manifest that cannot be followed: names of other folders, missing parts."""
    hint = "it was not written by tradeassay: do not believe it"
    for episode in manifest.episodes:
        if not _FOLDER.fullmatch(episode.key) or set(episode.key) <= {"."}:
            raise RunError(f"{path}: the manifest names an episode {episode.key[:80]!a}", hint=hint)
    if len({episode.key for episode in manifest.episodes}) < len(manifest.episodes):
        raise RunError(f"{path}: the manifest names an episode twice", hint=hint)
    if isinstance(manifest, RunManifest):
        for episode in manifest.episodes:
            if episode.dataset not in manifest.datasets or episode.benchmark not in manifest.benchmarks:
                raise RunError(f"{path}: the manifest does not describe what {episode.key} plays", hint=hint)


class _Verifier(ABC, Generic[M]):
    """What both kinds of run are checked for."""

    def __init__(self, place: RunFolder, manifest: M) -> None:
        self._place = place
        self._manifest = manifest
        self._violations: list[Violation] = []
        self._claims: dict[tuple[str, Word, str], int] = {}
        self._notes: list[str] = []
        self._steps = 0

    def report(self) -> VerifyReport:
        """Check everything, the run as a whole first."""
        self._check_form()
        self._check_manifest()
        self._check_strays()
        self._check_episodes()
        self._check_scores()
        changes = version_changes(self._manifest.versions, present_versions())
        if changes:
            self._notes.append(f"the run was made with other versions: {'; '.join(changes)}")
        self._notes.append("the versions and the machine in the manifest are as stated by the runner")
        if self._manifest.secret:
            self._notes.append(OWN_SECRET)
        return VerifyReport(
            folder=str(self._place.path),
            episodes=len(self._manifest.episodes),
            steps=self._steps,
            claims=tuple(
                ClaimOutcome(claim=claim, outcome=outcome, why=why, episodes=count)
                for (claim, outcome, why), count in self._claims.items()
            ),
            violations=tuple(self._violations),
            notes=tuple(self._notes),
        )

    def _check_form(self) -> None:
        """The manifest holds nothing that is not read from it, in the form in which it is written."""
        content = self._place.manifest.read_bytes()
        again = encode_manifest(self._manifest)
        if content == again:
            return
        self._broken("manifest", f"manifest.json: {not_as_written(content, again)}")

    @abstractmethod
    def _check_manifest(self) -> None: ...

    @abstractmethod
    def _check_episodes(self) -> None: ...

    def _check_scores(self) -> None:
        before = len(self._violations)
        if not self._place.scores.is_file():
            self._broken("scores", "scores.json is missing: the run is unfinished")
        else:
            try:
                self._compare_scores()
            except NotReplayable as error:
                self._say("scores", "cannot be checked", str(error))
                return
        self._say("scores", "contradicted" if len(self._violations) > before else "re-derived")

    def _compare_scores(self) -> None:
        try:
            again = self._scores()
        except (TradeassayError, ArithmeticError, LookupError, TypeError, ValueError) as error:
            self._broken("scores", f"the run cannot be scored again: {error}")
            return
        stored = self._place.scores.read_bytes()
        if again != stored:
            self._broken("scores", f"scoring again gives other bytes, first at {_first_difference(stored, again)}")

    @abstractmethod
    def _scores(self) -> bytes:
        """Score the run again."""

    def _take(self, checked: Checked) -> None:
        self._steps += checked.steps
        self._violations.extend(checked.violations)
        self._notes.extend(checked.notes)
        for claim in checked.claims:
            self._say(claim.claim, claim.outcome, claim.why, claim.episodes)

    def _check_strays(self) -> None:
        known = {episode.key for episode in self._manifest.episodes}
        ours = {"manifest.json", "scores.json", self._place.models.name, self._place.episode("").name}
        for entry in sorted(self._place.path.iterdir()):
            if entry.name not in ours:
                words = "can be written again" if entry.name in BESIDE else "is not part of a run"
                self._notes.append(f"{entry.name} {words}; it was not looked at")
        found = self._place.episode("")
        for folder in sorted(found.iterdir()) if found.is_dir() else ():
            if folder.name not in known:
                self._broken("episodes", f"{folder.name} belongs to no episode of this run")
                continue
            known_files = ("events.jsonl", "outcome.json", "dialogue.jsonl")
            strange = sorted(file.name for file in folder.iterdir() if file.name not in known_files)
            if strange:
                more = f" and {len(strange) - 1} more" if len(strange) > 1 else ""
                what = f"{folder.name}/{strange[0]}{more}: not part of a run; not looked at"
                self._notes.append(what)
        models = self._place.models
        for file in sorted(models.iterdir()) if models.is_dir() else ():
            if file.suffix != ".jsonl" or file.stem not in known:
                self._notes.append(f"{models.name}/{file.name} belongs to no episode; it was not looked at")

    def _say(self, claim: str, outcome: Word, why: str = "", episodes: int = 0) -> None:
        key = (claim, outcome, why)
        self._claims[key] = self._claims.get(key, 0) + episodes

    def _broken(self, check: str, what: str) -> None:
        self._violations.append(Violation(check=check, what=what))


class _TradingVerifier(_Verifier[RunManifest]):
    def __init__(
        self,
        place: RunFolder,
        manifest: RunManifest,
        home: str | None,
        executor: TaskExecutor,
        many: bool,
        told: CountListener | None = None,
    ) -> None:
        super().__init__(place, manifest)
        self._many = many
        self._told = told
        self._home = home
        self._executor = executor
        self._sound: set[str] = set()
        self._registered = {name: benchmarks.get(name) for name in manifest.benchmarks if name in benchmarks}

    def _check_manifest(self) -> None:
        manifest, before = self._manifest, len(self._violations)
        if work_sha256(manifest.spec) != manifest.work_sha256:
            self._broken("spec", "the spec is not the one whose hash the manifest holds")
        strangers = sorted({*manifest.benchmarks, *manifest.spec.benchmarks} - set(self._registered))
        for name in strangers:
            self._say("rules", "cannot be checked", f"benchmark '{name}' is not registered here")
        entries = self._data()
        if not strangers:
            self._compare_manifest(entries)
        for name, record in manifest.benchmarks.items():
            if sha256_of(record.config) != record.sha256:
                self._broken("benchmark", f"the configuration of '{name}' is not the one whose hash is recorded")
        if not manifest.secret and any(one.config.takes_secret for one in manifest.benchmarks.values()):
            self._broken("spec", "there is no secret, from which its draws are derived")
        self._check_names()
        if manifest.spec.bootstrap != BootstrapConfig():
            chosen = differences(_plain(BootstrapConfig()), _plain(manifest.spec.bootstrap))
            words = ", ".join(f"{name} {new} instead of {old}" for name, old, new in chosen)
            self._notes.append(f"the runner chose how intervals are made: {words}")
        if not strangers:
            broken = len(self._violations) > before
            self._say("rules", "contradicted" if broken else "re-derived")

    def _check_names(self) -> None:
        """An agent may be called anything but another agent; what it is called otherwise is said."""
        for agent in self._manifest.spec.agents:
            model = agent.params.get("model") if agent.name == "model" else None
            own = model_agent(model) if isinstance(model, str) else AgentSpec(name=agent.name, params=agent.params)
            if agent.title == own.title:
                continue
            if agent.title in agents and agent.title != agent.name:
                self._broken("spec", f"'{agent.name}' is called '{agent.title}', which is another agent")
            self._notes.append(f"'{agent.title}' is what the runner calls {model or agent.name}")

    def _compare_manifest(self, entries: Mapping[str, DatasetEntry]) -> None:
        """Describe the run again as it would be started now, with what is registered and stored here."""
        manifest = self._manifest
        try:
            episodes = expand(manifest.spec)
            if episodes != manifest.episodes:
                self._broken("spec", "the episodes are not those that the spec means")
                return
            again = build_manifest(manifest.spec, episodes, entries, manifest.versions)
        except (TradeassayError, KeyError, AssertionError) as error:
            self._broken("spec", f"the run cannot be described again: {error}")
            return
        for field, check in _FIELDS.items():
            then, now = (_plain(getattr(one, field)) for one in (manifest, again))
            for where, old, new in differences(then, now, field):
                self._differs(check, where, old, new)

    def _differs(self, check: str, where: str, old: object, new: object) -> None:
        """Take one field that is not as it would be now; prices may have come from a file of the runner's."""
        leaf = where.rpartition(".")[2]
        if check == "benchmark" and (leaf in _WORDS or (leaf == "sha256" and where.startswith("benchmarks"))):
            return
        if check == "agents" and leaf == "module" and _ours(old) and _ours(new):
            return  # our own code may move to another file
        what = f"{where} is {_short(old)}, here it is {_short(new)}"
        if where.startswith("models.") and leaf in ("price_as_of", "price_source", "cutoff"):
            self._say("model tables", "cannot be checked", what)
        else:
            self._broken(check, what)

    def _data(self) -> dict[str, DatasetEntry]:
        """Return the data sets as they are here; one that is missing, as the run describes it."""
        wanted = self._preparations()
        entries: dict[str, DatasetEntry] = {}
        for name, record in self._manifest.datasets.items():
            found = self._data_set(name, wanted)
            if found is not None:
                entries[name] = found
                continue
            entries[name] = DatasetEntry(
                name=record.name,
                sha256=record.sha256,
                facts=record.facts,
                sessions=(),
                windows=self._stated_windows(name),
            )
        return entries

    def _preparations(self) -> Mapping[str, Any]:
        if any(episode.benchmark not in self._registered for episode in self._manifest.episodes):
            return {}
        try:
            return prepare_tasks(self._manifest.episodes, self._registered, self._home)
        except TradeassayError:
            return {}

    def _stated_windows(self, dataset: str) -> dict[str, Any]:
        return {
            window_key(config.protocol, config.convention, episode.window): self._manifest.windows[episode.cell]
            for episode in self._manifest.episodes
            if episode.dataset == dataset
            and episode.window is not None
            and episode.cell in self._manifest.windows
            and (config := self._registered.get(episode.benchmark)) is not None
        }

    def _data_set(self, name: str, wanted: Mapping[str, Any]) -> DatasetEntry | None:
        recorded = self._manifest.datasets[name].sha256
        windows = wanted[name].windows if name in wanted else ()
        try:
            snapshot = load_stored(name, Path(self._home) if self._home else None)
        except DataError as error:
            self._broken("data", error.message)
            self._say("data", "contradicted", "")
            return None
        except TradeassayError as error:
            self._say(
                "data", "cannot be checked", f"'{name}' is not here (sha256 {recorded[:12]}): {error.message}"
            )
            return None
        try:
            verify_snapshot(snapshot.folder, again=not self._many)
            if snapshot.sha256 != recorded:
                raise DataError(
                    f"data set '{name}' has hash {snapshot.sha256[:12]}, recorded is {recorded[:12]}",
                    hint="get the data the run was made with",
                )
            entry = entry_of(snapshot, windows)
        except TradeassayError as error:
            self._broken("data", error.message)
            self._say("data", "contradicted", "")
            return None
        self._sound.add(name)
        self._say("data", "re-derived", "")
        return entry

    def _check_episodes(self) -> None:
        tasks = {episode.key: ENCODE(self._task(episode)) for episode in self._manifest.episodes}
        found = self._perform(tasks, "episodes played again")
        for key in tasks:
            if key in found:
                self._take(CHECKED_DECODER.decode(found[key]))
        self._check_badges()

    def _check_badges(self) -> None:
        """Who answered is part of every badge; it must fit the agent that is named."""
        from tradeassay.runs.store.run import Run

        run = Run(self._place.path, self._manifest)
        for episode in self._manifest.episodes:
            try:
                answers = run.badges(episode.key).model
            except TradeassayError:
                continue  # an outcome that cannot be read is named already
            expected = _answers_of(episode)
            if answers not in expected:
                what = f"its badge says that answers are '{answers}'; {' or '.join(expected)} fits its agent"
                self._violations.append(Violation(check="badges", what=what, episode=episode.key))

    def _task(self, episode: EpisodeSpec) -> CheckTask:
        sound, benchmark = episode.dataset in self._sound, self._benchmark(episode)
        return CheckTask(
            folder=str(self._place.path.absolute()),
            home=self._home,
            episode=episode,
            benchmark=benchmark,
            data_sha256=self._manifest.datasets[episode.dataset].sha256 if sound else None,
            secret=self._manifest.secret if benchmark.takes_secret else None,
        )

    def _benchmark(self, episode: EpisodeSpec) -> Benchmark:
        """Return the registered benchmark as an episode plays it, whatever the run says about it."""
        registered = self._registered.get(episode.benchmark)
        if registered is None:
            return self._manifest.benchmark(episode)
        return played_as(registered, episode, self._manifest.spec, self._manifest.windows.get(episode.cell))

    def _check_scores(self) -> None:
        if len(self._sound) == len(self._manifest.datasets):
            super()._check_scores()
        else:
            self._say("scores", "cannot be checked", "data is missing or changed")

    def _scores(self) -> bytes:
        tasks = score_tasks(self._place, self._home, self._manifest, self._benchmark)
        found = self._perform({key: ENCODE(task) for key, task in tasks.items()}, "agents scored again")
        if len(found) < len(tasks):
            raise NotReplayable("a process that scored died")  # of the machine, perhaps: that contradicts nobody
        parts = [SCORED_DECODER.decode(payload) for payload in found.values()]
        return encode_scores(gather(self._manifest.work_sha256, self._manifest.episodes, parts))

    def _perform(self, payloads: dict[str, bytes], what: str) -> dict[str, bytes]:
        results: dict[str, bytes] = {}
        tasks = [Task(key, payload) for key, payload in payloads.items()]
        performed = self._executor.perform(tasks, lambda key, sessions: None)
        for done, result in enumerate(performed, 1):
            if self._told is not None:
                self._told(what, done, len(tasks))
            if isinstance(result, Lost):
                self._say("decisions", "cannot be checked", f"{result.key}: {result.reason}", 1)
            else:
                results[result.key] = result.payload
        return results


_FIELDS = {
    "convention": "benchmark",
    "seeds": "spec",
    "benchmarks": "benchmark",
    "datasets": "data",
    "agents": "agents",
    "protocols": "benchmark",
    "windows": "benchmark",
    "models": "models",
}
"""The fields of a trading run's manifest that follow from its spec, and the check that they belong to."""


def _ours(module: object) -> bool:
    return str(module).partition(".")[0] == "tradeassay"


def _answers_of(episode: EpisodeSpec) -> tuple[str, ...]:
    if not episode.by_model:
        return ("none",)
    scripted = episode.model.startswith("scripted/")
    return ("scripted",) if scripted else ("replayed", "live")


class _ProgramsVerifier(_Verifier[CodeManifest]):
    def __init__(
        self,
        place: RunFolder,
        manifest: CodeManifest,
        workers: int | None,
        programs: bool,
        examined: dict[str, msgspec.Struct] | None,
        told: CountListener | None = None,
    ) -> None:
        super().__init__(place, manifest)
        self._told = told
        self._examined = examined
        self._workers = workers
        self._programs = programs
        self._protocol, self._spec = reopen(manifest)
        self._missing = self._missing_data()

    def _missing_data(self) -> str:
        """Return why the data that a spec names cannot be had from the store; nothing where it can."""
        name = getattr(self._spec, "dataset", None)
        try:
            if name:
                load_stored(name)
        except TradeassayError as error:
            return f"'{name}' is not here: {error.message}"
        return ""

    def _check_manifest(self) -> None:
        before, manifest = len(self._violations), self._manifest
        if sha256_of(self._spec) != manifest.work_sha256:
            self._broken("spec", "the spec is not the one whose hash the manifest holds")
        if manifest.asked != _plain(self._spec):
            self._broken("spec", "the spec holds something that the benchmark does not know")
        if self._spec.benchmark != manifest.benchmark:
            self._broken("spec", f"the spec is of '{self._spec.benchmark}', not of '{manifest.benchmark}'")
        if not manifest.secret:
            self._broken("spec", "there is no secret, from which its draws are derived")
        try:
            if code_episodes(manifest.benchmark, self._protocol) != manifest.episodes:
                self._broken("spec", "the episodes are not those that the spec means")
            if self._protocol.notes != manifest.notes:
                self._broken("spec", "the notes are not those that the spec means")
            if not self._missing:
                self._compare_facts(self._protocol.facts())
        except (TradeassayError, KeyError) as error:
            self._broken("spec", f"the run cannot be described again: {error}")
        if len(self._violations) > before:
            self._say("rules", "contradicted")
        elif self._missing:
            self._say("data", "cannot be checked", self._missing)
        else:
            self._say("rules", "re-derived")

    def _compare_facts(self, now: Mapping[str, str]) -> None:
        then = self._manifest.facts
        for name in sorted({*then, *now}):
            old, new = then.get(name, "missing"), now.get(name, "missing")
            if old == new:
                continue
            what = f"{name} is {old[:12]}, here it is {new[:12]}"
            if name.startswith("package "):
                self._say("packages", "cannot be checked", f"{what}: programs may behave differently")
            else:
                self._broken("benchmark", what)

    def _check_episodes(self) -> None:
        again: Mapping[str, Replayed | TradeassayError] = {}
        why = self._missing or "programs were not to be examined again"
        if self._programs and not self._missing:
            try:
                again = examine_again(
                    self._protocol,
                    self._place,
                    self._manifest.episodes,
                    self._workers,
                    self._examined,
                    told=self._told,
                )
            except NotReplayable as error:
                why = str(error)
            except (TradeassayError, KeyError) as error:
                self._broken("programs", f"the programs cannot be examined again: {error}")
        for episode in self._manifest.episodes:
            self._take(check_program(self._place, episode, self._protocol, again.get(episode.key), why))

    def _check_scores(self) -> None:
        if self._missing:
            self._say("scores", "cannot be checked", self._missing)
        else:
            super()._check_scores()

    def _scores(self) -> bytes:
        return code_scores(self._protocol, self._manifest, self._place)


def _plain(value: object) -> Any:
    return msgspec.json.decode(canonical_json(value))


def _short(value: object) -> str:
    text = str(value)
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def _first_difference(stored: bytes, again: bytes) -> str:
    for number, (old, new) in enumerate(zip(stored.splitlines(), again.splitlines(), strict=False), start=1):
        if old != new:
            return f"line {number}: {old.decode(errors='replace').strip()} should be {new.decode().strip()}"
    return "its end"
