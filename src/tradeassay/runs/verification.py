"""Checking a recorded run: hashes, money, fills, rules, scores. No agent is asked anything."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tradeassay.account import venues
from tradeassay.core.errors import TradeassayError
from tradeassay.core.hashing import sha256_of
from tradeassay.data import load_dataset, verify_snapshot
from tradeassay.runs.episode import Episode, expand
from tradeassay.runs.executors import Executor, Lost, Task, make_executor
from tradeassay.runs.layout import RunFolder
from tradeassay.runs.manifest import RunManifest, read_manifest
from tradeassay.runs.phases import score_tasks
from tradeassay.runs.scores import encode_scores
from tradeassay.runs.scoring import gather
from tradeassay.runs.spec import work_sha256
from tradeassay.runs.tasks import CHECKED_DECODER, ENCODE, ENTRY, SCORED_DECODER, CheckTask
from tradeassay.runs.violation import Violation


class VerifyReport(msgspec.Struct, frozen=True, kw_only=True):
    """What was checked and all that does not hold. ``unchecked`` says what could not be looked at, and why."""

    folder: str
    episodes: int
    steps: int
    violations: tuple[Violation, ...]
    unchecked: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether everything was checked and holds."""
        return not self.violations and not self.unchecked

    def summary(self) -> str:
        """Return the result in one sentence."""
        size = f"{self.episodes} episodes, {self.steps} steps"
        if self.ok:
            return f"{self.folder}: verified, {size}: hashes, money, fills, rules and scores hold"
        parts = [f"{len(self.violations)} violations"] if self.violations else []
        parts += [f"not checked: {'; '.join(self.unchecked)}"] if self.unchecked else []
        return f"{self.folder}: NOT verified, {size}: {', '.join(parts)}"


def verify(folder: Path | str, *, home: Path | str | None = None, workers: int | None = None) -> VerifyReport:
    """Check everything about a run that can be checked without its agents, on ``workers`` processes.

    Raises :class:`RunError` only when there is no readable manifest; everything else is a violation in the report.
    """
    place = RunFolder(Path(folder))
    manifest = read_manifest(place.manifest)
    where = None if home is None else str(Path(home).absolute())
    with make_executor("local", entry=ENTRY, workers=workers) as executor:
        return _Verifier(place, manifest, where, executor).report()


class _Verifier:
    def __init__(self, place: RunFolder, manifest: RunManifest, home: str | None, executor: Executor) -> None:
        self._place = place
        self._manifest = manifest
        self._home = home
        self._executor = executor
        self._violations: list[Violation] = []
        self._unchecked: list[str] = []
        self._steps = 0

    def report(self) -> VerifyReport:
        """Look at everything, the run as a whole first."""
        self._check_manifest()
        sound = {name for name in self._manifest.datasets if self._data_holds(name)}
        self._check_strays()
        self._check_episodes(sound)
        if len(sound) == len(self._manifest.datasets):
            self._check_scores()
        else:
            self._unchecked.append("the scores, because data is missing or changed")
        return VerifyReport(
            folder=str(self._place.path),
            episodes=len(self._manifest.episodes),
            steps=self._steps,
            violations=tuple(self._violations),
            unchecked=tuple(self._unchecked),
        )

    def _broken(self, check: str, what: str) -> None:
        self._violations.append(Violation(check=check, what=what))

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
        try:
            expected = expand(manifest.spec, configs.__getitem__)
        except (TradeassayError, KeyError) as error:
            self._broken("spec", f"the spec cannot be expanded: {error}")
        else:
            if expected != manifest.episodes:
                self._broken("spec", "the episodes are not those that the spec means")

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

    def _check_strays(self) -> None:
        known = {episode.key for episode in self._manifest.episodes}
        found = self._place.path / "episodes"
        for folder in sorted(found.iterdir()) if found.is_dir() else ():
            if folder.name not in known:
                self._broken("episodes", f"{folder.name} belongs to no episode of this run")

    def _check_episodes(self, sound: set[str]) -> None:
        tasks = {episode.key: ENCODE(self._task(episode, sound)) for episode in self._manifest.episodes}
        found = self._perform(tasks)
        for key in tasks:
            if key in found:
                checked = CHECKED_DECODER.decode(found[key])
                self._steps += checked.steps
                self._violations.extend(checked.violations)

    def _task(self, episode: Episode, sound: set[str]) -> CheckTask:
        return CheckTask(
            folder=str(self._place.path.absolute()),
            home=self._home,
            episode=episode,
            benchmark=self._manifest.benchmark(episode),
            data_sha256=self._manifest.datasets[episode.dataset].sha256 if episode.dataset in sound else None,
        )

    def _check_scores(self) -> None:
        if not self._place.scores.is_file():
            self._broken("scores", "there is no scores.json: the run is unfinished")
            return
        tasks = score_tasks(self._place, self._home, self._manifest)
        try:
            found = self._perform({key: ENCODE(task) for key, task in tasks.items()})
            parts = [SCORED_DECODER.decode(payload) for payload in found.values()]
            again = encode_scores(gather(self._manifest.work_sha256, self._manifest.episodes, parts))
        except (TradeassayError, LookupError, ValueError) as error:
            self._broken("scores", f"the run cannot be scored again: {error}")
            return
        stored = self._place.scores.read_bytes()
        if again != stored:
            self._broken("scores", f"scoring again gives other bytes, first at {_first_difference(stored, again)}")

    def _perform(self, payloads: dict[str, bytes]) -> dict[str, bytes]:
        results: dict[str, bytes] = {}
        tasks = [Task(key, payload) for key, payload in payloads.items()]
        for result in self._executor.perform(tasks, lambda key, sessions: None):
            if isinstance(result, Lost):
                self._unchecked.append(f"{result.key} ({result.reason})")
            else:
                results[result.key] = result.payload
        return results


def _first_difference(stored: bytes, again: bytes) -> str:
    for number, (old, new) in enumerate(zip(stored.splitlines(), again.splitlines(), strict=False), start=1):
        if old != new:
            return f"line {number}: {old.decode(errors='replace').strip()} should be {new.decode().strip()}"
    return "its end"
