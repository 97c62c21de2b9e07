"""Checking a recorded run of either kind: hashes, journals, money, fills, rules, programs, scores.

No agent is asked anything. The claims of one episode are in :mod:`tradeassay.runs.claims`, those of the run as a
whole here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from tradeassay.account import venues
from tradeassay.core.errors import TradeassayError
from tradeassay.core.hashing import sha256_file, sha256_of
from tradeassay.data import load_dataset, verify_snapshot
from tradeassay.runs.claims import check_program
from tradeassay.runs.episode import EpisodeSpec, expand
from tradeassay.runs.executors import Lost, Task, TaskExecutor, make_executor
from tradeassay.runs.manifest import CodeManifest, Manifest, RunManifest, folder_of, read_manifest
from tradeassay.runs.outcome import Violation
from tradeassay.runs.programs import code_scores, reopen
from tradeassay.runs.recorded import CodeRun
from tradeassay.runs.scores import encode_scores
from tradeassay.runs.scoring import gather
from tradeassay.runs.spec import work_sha256
from tradeassay.runs.store import RunFolder
from tradeassay.runs.tasks import CHECKED_DECODER, ENCODE, ENTRY, SCORED_DECODER, Checked, CheckTask
from tradeassay.runs.trading import score_tasks

M = TypeVar("M", bound=Manifest)


class VerifyReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was checked and all that does not hold. ``unchecked`` says what could not be looked at, and why."""

    folder: str
    episodes: int
    steps: int
    violations: tuple[Violation, ...]
    unchecked: tuple[str, ...] = ()
    held: str = "hashes, money, fills, rules and scores"

    @property
    def ok(self) -> bool:
        """Whether everything was checked and holds."""
        return not self.violations and not self.unchecked

    def summary(self) -> str:
        """Return the result in one sentence."""
        size = f"{self.episodes} episodes, {self.steps} steps"
        if self.ok:
            return f"{self.folder}: verified, {size}: {self.held} hold"
        parts = [f"{len(self.violations)} violations"] if self.violations else []
        parts += [f"not checked: {'; '.join(self.unchecked)}"] if self.unchecked else []
        return f"{self.folder}: NOT verified, {size}: {', '.join(parts)}"


def verify(folder: Path | str, *, home: Path | str | None = None, workers: int | None = None) -> VerifyReport:
    """Check everything about a run that can be checked without its agents, on ``workers`` processes.

    Raises :class:`RunError` only when there is no readable manifest; everything else is a violation in the report.
    """
    path = Path(folder)
    manifest = read_manifest(path / "manifest.json")
    place = folder_of(path, manifest)
    if isinstance(manifest, CodeManifest):
        return _ProgramsVerifier(place, manifest).report()
    where = None if home is None else str(Path(home).absolute())
    with make_executor("local", entry=ENTRY, workers=workers) as executor:
        return _TradingVerifier(place, manifest, where, executor).report()


class _Verifier(ABC, Generic[M]):
    """What both kinds of run are checked for."""

    held: str

    def __init__(self, place: RunFolder, manifest: M) -> None:
        self._place = place
        self._manifest = manifest
        self._violations: list[Violation] = []
        self._unchecked: list[str] = []
        self._steps = 0

    def report(self) -> VerifyReport:
        """Check everything, the run as a whole first."""
        self._check_manifest()
        self._check_strays()
        self._check_episodes()
        self._check_scores()
        return VerifyReport(
            folder=str(self._place.path),
            episodes=len(self._manifest.episodes),
            steps=self._steps,
            violations=tuple(self._violations),
            unchecked=tuple(self._unchecked),
            held=self.held,
        )

    @abstractmethod
    def _check_manifest(self) -> None: ...

    @abstractmethod
    def _check_episodes(self) -> None: ...

    def _check_scores(self) -> None:
        if not self._place.scores.is_file():
            self._broken("scores", "scores.json is missing: the run is unfinished")
            return
        try:
            again = self._scores()
        except (TradeassayError, LookupError, ValueError) as error:
            self._broken("scores", f"the run cannot be scored again: {error}")
            return
        stored = self._place.scores.read_bytes()
        if again != stored:
            self._broken("scores", f"scoring again gives other bytes, first at {_first_difference(stored, again)}")

    @abstractmethod
    def _scores(self) -> bytes:
        """Score the run again."""

    def _check_expansion(self, expected: Callable[[], tuple[EpisodeSpec, ...]]) -> None:
        try:
            episodes = expected()
        except (TradeassayError, KeyError) as error:
            self._broken("spec", f"the spec cannot be expanded: {error}")
            return
        if episodes != self._manifest.episodes:
            self._broken("spec", "the episodes are not those that the spec means")

    def _take(self, checked: Checked) -> None:
        self._steps += checked.steps
        self._violations.extend(checked.violations)

    def _check_strays(self) -> None:
        known = {episode.key for episode in self._manifest.episodes}
        found = self._place.episode("")
        for folder in sorted(found.iterdir()) if found.is_dir() else ():
            if folder.name not in known:
                self._broken("episodes", f"{folder.name} belongs to no episode of this run")

    def _broken(self, check: str, what: str) -> None:
        self._violations.append(Violation(check=check, what=what))


class _TradingVerifier(_Verifier[RunManifest]):
    held = "hashes, money, fills, rules and scores"

    def __init__(self, place: RunFolder, manifest: RunManifest, home: str | None, executor: TaskExecutor) -> None:
        super().__init__(place, manifest)
        self._home = home
        self._executor = executor
        self._sound: set[str] = set()

    def _check_manifest(self) -> None:
        manifest = self._manifest
        if work_sha256(manifest.spec) != manifest.work_sha256:
            self._broken("spec", "the spec is not the one whose hash the manifest holds")
        for name, record in manifest.benchmarks.items():
            if sha256_of(record.config) != record.sha256:
                self._broken("benchmark", f"the configuration of '{name}' is not the one whose hash is recorded")
            venue = record.config.market.venue
            if venue not in venues or sha256_of(venues.get(venue)) != record.venue_sha256:
                self._broken("benchmark", f"the rules of venue '{venue}' are not those the run was played under")
        configs = {name: record.config for name, record in manifest.benchmarks.items()}
        self._check_expansion(lambda: expand(manifest.spec, configs.__getitem__))
        self._sound = {name for name in manifest.datasets if self._data_holds(name)}

    def _data_holds(self, name: str) -> bool:
        recorded = self._manifest.datasets[name].sha256
        try:
            snapshot = load_dataset(name, Path(self._home) if self._home else None)
        except TradeassayError as error:
            self._unchecked.append(f"fills and rules on '{name}' ({error.message})")
            return False
        try:
            verify_snapshot(snapshot.folder)
        except TradeassayError as error:
            self._broken("data", error.message)
            return False
        if snapshot.sha256 != recorded:
            self._broken("data", f"data set '{name}' has hash {snapshot.sha256[:12]}, recorded is {recorded[:12]}")
            return False
        return True

    def _check_episodes(self) -> None:
        tasks = {episode.key: ENCODE(self._task(episode)) for episode in self._manifest.episodes}
        found = self._perform(tasks)
        for key in tasks:
            if key in found:
                self._take(CHECKED_DECODER.decode(found[key]))

    def _task(self, episode: EpisodeSpec) -> CheckTask:
        sound = episode.dataset in self._sound
        return CheckTask(
            folder=str(self._place.path.absolute()),
            home=self._home,
            episode=episode,
            benchmark=self._manifest.benchmark(episode),
            data_sha256=self._manifest.datasets[episode.dataset].sha256 if sound else None,
        )

    def _check_scores(self) -> None:
        if len(self._sound) == len(self._manifest.datasets):
            super()._check_scores()
        else:
            self._unchecked.append("the scores, because data is missing or changed")

    def _scores(self) -> bytes:
        tasks = score_tasks(self._place, self._home, self._manifest)
        found = self._perform({key: ENCODE(task) for key, task in tasks.items()})
        parts = [SCORED_DECODER.decode(payload) for payload in found.values()]
        return encode_scores(gather(self._manifest.work_sha256, self._manifest.episodes, parts))

    def _perform(self, payloads: dict[str, bytes]) -> dict[str, bytes]:
        results: dict[str, bytes] = {}
        tasks = [Task(key, payload) for key, payload in payloads.items()]
        for result in self._executor.perform(tasks, lambda key, sessions: None):
            if isinstance(result, Lost):
                self._unchecked.append(f"{result.key} ({result.reason})")
            else:
                results[result.key] = result.payload
        return results


class _ProgramsVerifier(_Verifier[CodeManifest]):
    """Programs are not run again here; a run from recorded answers (``replay``) does that, to the same bytes."""

    held = "hashes, programs, verdicts and sums"

    def __init__(self, place: RunFolder, manifest: CodeManifest) -> None:
        super().__init__(place, manifest)
        self._protocol, self._spec = reopen(manifest)

    def _check_manifest(self) -> None:
        if sha256_of(self._spec) != self._manifest.work_sha256:
            self._broken("spec", "the spec is not the one whose hash the manifest holds")
        self._check_expansion(self._protocol.episodes)

    def _check_episodes(self) -> None:
        for episode in self._manifest.episodes:
            self._take(check_program(self._place, episode, self._protocol))

    def _scores(self) -> bytes:
        recorded = CodeRun(self._place.path, self._manifest).scores_file().outcomes
        for episode in self._manifest.episodes:
            path = self._place.outcome(episode.key)
            if path.is_file() and recorded.get(episode.key) != sha256_file(path):
                what = "the outcome is not the one that was scored"
                self._violations.append(Violation(check="outcome", what=what, episode=episode.key))
        return code_scores(self._protocol, self._manifest, self._place)


def _first_difference(stored: bytes, again: bytes) -> str:
    for number, (old, new) in enumerate(zip(stored.splitlines(), again.splitlines(), strict=False), start=1):
        if old != new:
            return f"line {number}: {old.decode(errors='replace').strip()} should be {new.decode().strip()}"
    return "its end"
