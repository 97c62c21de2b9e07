"""Checking a recorded run: hashes, money, fills, rules, scores. No agent is asked anything."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from tradeassay.benchmarks import Benchmark
from tradeassay.core.errors import LedgerError, RunError, TradeassayError
from tradeassay.core.events import STEP_DECODER, StepRecord
from tradeassay.core.hashing import sha256_bytes, sha256_of
from tradeassay.data import Snapshot, load_dataset, verify_snapshot
from tradeassay.execution import venues
from tradeassay.ledger import Ledger
from tradeassay.market import Market
from tradeassay.runs.audit import audit
from tradeassay.runs.episode import Episode, expand
from tradeassay.runs.executors.one_thread import one_thread
from tradeassay.runs.journal import encode_line
from tradeassay.runs.layout import RunFolder
from tradeassay.runs.manifest import RunManifest, read_manifest
from tradeassay.runs.outcome import Outcome, read_outcome
from tradeassay.runs.phases import score_tasks
from tradeassay.runs.scores import encode_scores
from tradeassay.runs.scoring import gather, score_agent
from tradeassay.runs.spec import work_sha256


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """Something that does not hold: where (None = the run as a whole), which check, and what."""

    check: str
    what: str
    episode: str | None = None
    step: int | None = None

    def __str__(self) -> str:
        """Return it as one line."""
        where = self.episode or "run"
        return f"{where}{'' if self.step is None else f', step {self.step}'}: {self.check}: {self.what}"


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


def verify(folder: Path | str, *, home: Path | str | None = None) -> VerifyReport:
    """Check everything about a run that can be checked without its agents.

    Raises :class:`RunError` only when there is no readable manifest; everything else is a violation in the report.
    """
    place = RunFolder(Path(folder))
    manifest = read_manifest(place.manifest)
    with one_thread():
        return _Verifier(place, manifest, None if home is None else str(home)).report()


class _Verifier:
    def __init__(self, place: RunFolder, manifest: RunManifest, home: str | None) -> None:
        self._place = place
        self._manifest = manifest
        self._home = home
        self._violations: list[Violation] = []
        self._unchecked: list[str] = []
        self._steps = 0

    def report(self) -> VerifyReport:
        self._check_manifest()
        snapshots = {name: self._snapshot(name) for name in self._manifest.datasets}
        for episode in self._manifest.episodes:
            for step, check, what in self._episode(episode, snapshots.get(episode.dataset)):
                self._violations.append(Violation(check=check, what=what, episode=episode.key, step=step))
        self._check_strays()
        if any(snapshot is None for snapshot in snapshots.values()):
            self._unchecked.append("the scores, because data is missing or changed")
        else:
            self._check_scores()
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

    def _snapshot(self, name: str) -> Snapshot | None:
        recorded = self._manifest.datasets[name].sha256
        try:
            snapshot = load_dataset(name, Path(self._home) if self._home else None)
        except TradeassayError as error:
            self._unchecked.append(f"fills and rules on '{name}' ({error.message})")
            return None
        try:
            verify_snapshot(snapshot.folder)
        except TradeassayError as error:
            self._broken("data", error.message)
            return None
        if snapshot.sha256 != recorded:
            self._broken("data", f"data set '{name}' has hash {snapshot.sha256[:12]}, recorded is {recorded[:12]}")
            return None
        return snapshot

    def _episode(self, episode: Episode, snapshot: Snapshot | None) -> Iterator[tuple[int | None, str, str]]:
        path = self._place.events(episode.key)
        content = path.read_bytes() if path.is_file() else None
        try:
            outcome = read_outcome(self._place.outcome(episode.key))
        except RunError as error:
            yield None, "outcome", error.message
            return
        if content is None or outcome is None:
            yield None, "outcome", "the episode has not ended: the run is unfinished"
            return
        if sha256_bytes(content) != outcome.events_sha256:
            yield None, "journal", "events.jsonl is not the file that outcome.json speaks of"
        records: list[StepRecord] = []
        for step, line in enumerate(content.removesuffix(b"\n").split(b"\n") if content else ()):
            try:
                record = STEP_DECODER.decode(line)
            except msgspec.DecodeError as error:
                yield step, "journal", f"the line does not parse: {error}"
                return
            if encode_line(record) != line:
                yield step, "journal", "the line is not written as tradeassay writes it"
            records.append(record)
        if content and not content.endswith(b"\n"):
            yield len(records) - 1, "journal", "the last line is torn"
        self._steps += len(records)
        yield from self._journal(episode, outcome, records, snapshot)

    def _journal(
        self, episode: Episode, outcome: Outcome, records: Sequence[StepRecord], snapshot: Snapshot | None
    ) -> Iterator[tuple[int | None, str, str]]:
        if outcome.steps != len(records):
            yield None, "outcome", f"{outcome.steps} steps were recorded, {len(records)} are in the journal"
        unusable = bool(records) and all(record.decision.status == "failed" for record in records)
        if outcome.status == "done" and (unusable or not records):
            yield None, "outcome", "no decision was usable, but the episode counts as done"
        yield from _ledger(records)
        if snapshot is None:
            return
        benchmark = self._manifest.benchmark(episode)
        complete = outcome.status == "done"
        try:
            for step, finding in audit(records, snapshot, benchmark.market, complete=complete):
                yield step, finding.check, finding.what
            yield from _replay(records, snapshot, benchmark)
        except TradeassayError as error:
            yield None, "replay", f"the journal cannot be followed: {error.message}"

    def _check_strays(self) -> None:
        known = {episode.key for episode in self._manifest.episodes}
        found = self._place.path / "episodes"
        for folder in sorted(found.iterdir()) if found.is_dir() else ():
            if folder.name not in known:
                self._broken("episodes", f"{folder.name} belongs to no episode of this run")

    def _check_scores(self) -> None:
        if not self._place.scores.is_file():
            self._broken("scores", "there is no scores.json: the run is unfinished")
            return
        try:
            parts = [score_agent(task) for task in score_tasks(self._place, self._home, self._manifest).values()]
            again = encode_scores(gather(self._manifest.work_sha256, self._manifest.episodes, parts))
        except (TradeassayError, LookupError, ValueError) as error:
            self._broken("scores", f"the run cannot be scored again: {error}")
            return
        stored = self._place.scores.read_bytes()
        if again != stored:
            self._broken("scores", f"scoring again gives other bytes, first at {_first_difference(stored, again)}")


def _ledger(records: Sequence[StepRecord]) -> Iterator[tuple[int | None, str, str]]:
    """Replay the account; the first identity that breaks ends the replay."""
    done = 0
    try:
        for _ in Ledger.steps(records):
            done += 1
    except (LedgerError, ValueError) as error:
        yield done, "ledger", str(error)


def _replay(
    records: Sequence[StepRecord], snapshot: Snapshot, benchmark: Benchmark
) -> Iterator[tuple[int | None, str, str]]:
    """Carry the recorded decisions out again; the first line that comes out differently ends the replay."""
    market = Market(snapshot, benchmark.market)
    market.reset()
    for place, record in enumerate(records[: len(market)]):
        again = market.step(record.decision).record
        if encode_line(again) != encode_line(record):
            yield place, "replay", "carrying out the recorded decision gives another line"
            return


def _first_difference(stored: bytes, again: bytes) -> str:
    for number, (old, new) in enumerate(zip(stored.splitlines(), again.splitlines(), strict=False), start=1):
        if old != new:
            return f"line {number}: {old.decode(errors='replace').strip()} should be {new.decode().strip()}"
    return "its end"
