"""Verify a recorded run of either kind: recompute everything from its sources, and compare.

The run is recomputed with the registered rules and the data of the local store, not with the rules
and data that the run states. This module checks the claims of the whole run, and
:mod:`tradeassay_bench.runs.verify.checks` checks the claims of one episode.

Claims that cannot be recomputed are listed. The most important of them are a model's replies. They
are a claim of the runner, unless the run was sealed before the result was known or a witness
recorded it.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Generic, Literal, TypeVar

import msgspec

from tradeassay.core.errors import TradeassayError
from tradeassay.core.hashing import canonical_json, sha256_file, sha256_of
from tradeassay.core.our_code import is_ours
from tradeassay.metrics import BootstrapConfig
from tradeassay_bench.account import venues
from tradeassay_bench.agents import agents
from tradeassay_bench.agents.own_file import WITH_FILES, named_files
from tradeassay_bench.benchmarks import Benchmark, benchmarks
from tradeassay_bench.benchmarks.code_protocol import (
    CodeProtocol,
    CodeSpec,
    code_benchmarks,
    code_protocols,
)
from tradeassay_bench.core.closeness import close_text
from tradeassay_bench.core.executors import make_executor
from tradeassay_bench.core.executors.task import Lost, Task, TaskExecutor
from tradeassay_bench.core.files import is_litter
from tradeassay_bench.data import load_verified, verify_snapshot
from tradeassay_bench.data.datasets import synthetic_sha256
from tradeassay_bench.llm.recording import read_recording
from tradeassay_bench.runs.play.episodes import play_task
from tradeassay_bench.runs.play.programs import (
    code_episodes,
    code_scores,
    examine_again,
    priced_models,
    recorded_code_spec,
    reopen,
)
from tradeassay_bench.runs.play.progress import CountListener
from tradeassay_bench.runs.play.trading import (
    CHECKED_DECODER,
    ENCODE,
    ENTRY,
    SCORED_DECODER,
    modules_of,
    prepare_tasks,
    score_tasks,
)
from tradeassay_bench.runs.score import encode_scores, gather
from tradeassay_bench.runs.spec.episode import EpisodeSpec, expand
from tradeassay_bench.runs.spec.run_spec import work_sha256
from tradeassay_bench.runs.store.folder import (
    RunFolder,
    present_versions,
    read_timing,
    refuse_changed_line_ends,
    version_changes,
)
from tradeassay_bench.runs.store.manifest import (
    CodeManifest,
    DatasetEntry,
    Manifest,
    PrepareTask,
    RunManifest,
    agent_record,
    build_manifest,
    encode_manifest,
    entry_of,
    played_as,
    read_manifest,
    window_key,
)
from tradeassay_bench.runs.store.outcome import ClaimOutcome, ClaimStatus, Violation, read_outcome
from tradeassay_bench.runs.store.run import CodeRun, Run, folder_of, shown_names
from tradeassay_bench.runs.verify.checks import Checked, CheckTask, check_program
from tradeassay_bench.runs.verify.freedom import OUT_OF_TIME, Freedom, code_departures, freedom_of
from tradeassay_bench.runs.verify.replay import (
    NotReplayable,
    Replayed,
    differences,
    format_difference,
)

M = TypeVar("M", bound=Manifest)
ExamineAgain = Callable[[CodeProtocol], Mapping[str, Replayed | TradeassayError]]
T = TypeVar("T")
REWRITABLE = ("report.html", "timing.json", ".lock", "cards")
"""Files and folders in a run's folder that are not part of its record: anybody can rewrite them."""
RUNNERS_CLAIM = (
    "the replies of a model are a claim of the runner, unless the run was sealed before the result "
    "was known or a "
    "witness recorded it"
)
NOT_ASSAYED = "assay.json was not recomputed"
NOT_RENDERED = "report.html was not recomputed"
OWN_SECRET = (
    "the secret was chosen by the runner, who may have tried others: a plan sealed and published "
    "before the run began excludes that (verify --plan)"
)
_SHORTEST_STEP, _LONGEST_RUN = 1e-5, 1e8
"""The bounds of plausible wall times, in seconds: per step, and per episode."""
_TABLE_FIELDS = frozenset(("price_as_of", "price_source", "cutoff"))
"""Fields of a model's record that come from tables. The runner's tables may differ from ours."""
_DESCRIPTIVE_FIELDS = frozenset(("title", "description"))
"""Fields of a benchmark that may differ, because they have no effect on a result."""


VerdictWord = Literal["verified", "warning", "unverified", "contradicted"]
_NUMERIC_CLAIMS = frozenset(("data", "rules", "account", "programs", "conversation", "scores"))
"""Claims on which a run's numbers depend."""


class VerifyReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of every claim of a run, and every contradiction.

    ``notes`` lists the parts of the folder that were not checked, and other remarks. ``freedom``
    lists the runner's choices. ``counted`` is the noun for ``episodes``, in the singular.
    """

    folder: str
    episodes: int
    steps: int
    claims: tuple[ClaimOutcome, ...]
    violations: tuple[Violation, ...]
    notes: tuple[str, ...] = ()
    freedom: Freedom | None = None
    counted: str = "episode"

    def and_claim(self, claim: ClaimOutcome, notes: Sequence[str]) -> VerifyReport:
        """Return the report with an additional claim. ``notes`` replaces the report's notes."""
        broken = (
            (Violation(check=claim.claim, what=claim.why),)
            if claim.outcome == "contradicted"
            else ()
        )
        return msgspec.structs.replace(
            self,
            claims=(*self.claims, claim),
            violations=(*self.violations, *broken),
            notes=tuple(notes),
        )

    @property
    def ok(self) -> bool:
        """Return whether every claim was recomputed and nothing is contradicted."""
        return not self.violations and all(claim.outcome == "re-derived" for claim in self.claims)

    @property
    def contradicted(self) -> bool:
        """Return whether a claim is false."""
        return bool(self.violations) or any(
            claim.outcome == "contradicted" for claim in self.claims
        )

    @property
    def unchecked(self) -> tuple[str, ...]:
        """Return the claims that were not recomputed, as texts."""
        return tuple(
            str(claim)
            for claim in self.claims
            if claim.outcome in ("consistent", "cannot be checked")
        )

    @property
    def word(self) -> VerdictWord:
        """Return the result of the verification as a keyword.

        ``verified``: everything was recomputed. ``warning``: every number was recomputed, and
        :attr:`unchecked` lists claims that cannot be, such as a live model's replies.
        ``unverified``: a number was not recomputed. ``contradicted``: a claim is false.
        """
        if self.contradicted:
            return "contradicted"
        if self.ok:
            return "verified"
        missing = any(
            claim.claim in _NUMERIC_CLAIMS for claim in self.claims if claim.outcome != "re-derived"
        )
        return "unverified" if missing else "warning"

    @property
    def exit_code(self) -> Literal[0, 1, 3]:
        """Return 0 if everything was recomputed, 1 for a contradiction, 3 for an unchecked
        claim.
        """
        if self.contradicted:
            return 1
        return 0 if self.ok else 3

    def summary(self) -> str:
        """Return the result in one line."""
        episodes = _count_of(self.episodes, self.counted)
        steps = _count_of(self.steps, "step")
        places = _count_of(len(self.violations), "place")
        size = f"{episodes}, {steps}" if self.steps else episodes
        if self.contradicted:
            first = f"; the first: {self.violations[0]}" if self.violations else ""
            return f"{self.folder} is CONTRADICTED in {places} ({size}){first}"
        if self.ok:
            return f"{self.folder} is verified: {size}, every claim recomputed."
        open = dict.fromkeys(claim.claim for claim in self.claims if claim.outcome != "re-derived")
        words = f"{self.folder}: nothing is contradicted, but not everything was recomputed"
        return f"{words} ({size}): see {', '.join(open)}."


def _count_of(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def verify(
    folder: Run | CodeRun | Path | str,
    *,
    home: Path | str | None = None,
    workers: int | None = None,
    programs: bool = True,
    examined: dict[str, msgspec.Struct] | None = None,
    progress: CountListener | None = None,
    copies: Path | None = None,
) -> VerifyReport:
    """Recompute a run from its data, rules and recorded replies, and compare.

    ``folder`` is the run's folder, or the open run. ``home`` is the root of the data store.
    ``workers`` is the number of processes. With ``programs=False`` the programs of a code run are
    not examined again. ``examined`` is a cache for repeated verifications: it receives the results
    of examined programs. If it is given, unchanged files of the store are not hashed again.
    ``progress`` is called after every episode. ``copies`` is your copy of the run's task file, or
    the folder with your copies of its agents' own files. Paths that are recorded in the run are
    never opened.

    Raises :class:`RunError` only if the manifest cannot be read or if line ends were changed. All
    other problems are in the report.
    """
    run_folder = RunFolder(folder_of(folder))
    manifest = read_manifest(run_folder.manifest)
    refuse_changed_line_ends(run_folder)
    if isinstance(manifest, CodeManifest):
        examine = partial(
            examine_again,
            place=run_folder,
            episodes=manifest.episodes,
            workers=workers,
            examined=examined,
            progress=progress,
        )
        verifier = _ProgramsVerifier(run_folder, manifest, copies, examine if programs else None)
        return verifier.report()
    where = None if home is None else str(Path(home).absolute())
    modules, own_script = modules_of(manifest.episodes)
    with make_executor(
        "inline" if own_script else "local", entry=ENTRY, workers=workers, modules=modules
    ) as executor:
        trading = _TradingVerifier(
            run_folder,
            manifest,
            copies,
            home=where,
            executor=executor,
            progress=progress,
            hash_again=examined is None,
        )
        return trading.report()


def in_any_venue(played: Iterable[Benchmark], make: Callable[[], T]) -> list[T]:
    """Call ``make`` twice, with a different venue in place of the venues that are missing here.

    Returns both results, or an empty list if all venues of the benchmarks are registered.
    """
    absent = {benchmark.market.venue for benchmark in played} - set(venues.names())
    results: list[T] = []
    for name in _SUBSTITUTE_VENUES if absent else ():
        with venues.knowing(dict.fromkeys(absent, venues.get(name))):
            results.append(make())
    return results


def _entries_without_litter(folder: Path) -> Iterator[Path]:
    """Yield the entries of a folder, except for files that desktops and network drives add."""
    return (entry for entry in folder.glob("*") if not is_litter(entry.name))


class _Verifier(ABC, Generic[M]):
    """Verifies a run. A subclass exists for each kind of run."""

    def __init__(self, folder: RunFolder, manifest: M) -> None:
        self._folder, self._manifest = folder, manifest
        self._violations: list[Violation] = []
        self._claims: dict[tuple[str, ClaimStatus, str], int] = {}
        self._notes: list[str] = []
        self._steps: dict[str, int] = {}

    @abstractmethod
    def _check_manifest(self) -> None:
        """Compare the manifest with the registered rules and record the claims."""

    @abstractmethod
    def _check_episodes(self) -> None:
        """Check every episode and record its claims."""

    @abstractmethod
    def _scores(self) -> bytes:
        """Score the run again and return the content of ``scores.json``."""

    def report(self) -> VerifyReport:
        """Check everything, beginning with the run as a whole, and return the report."""
        manifest = self._manifest
        stored, canonical = self._folder.manifest.read_bytes(), encode_manifest(manifest)
        if stored != canonical:
            difference = format_difference(stored, canonical)
            self._record_violation("manifest", f"manifest.json: {difference}")
        self._check_manifest()
        self._check_extra_files()
        self._check_episodes()
        self._check_scores()
        self._check_times()
        changes = version_changes(manifest.versions, present_versions())
        if changes:
            self._notes.append(f"the run was made with other versions: {'; '.join(changes)}")
        # Parts of the record that cannot be derived.
        uses_models = any(episode.by_model for episode in manifest.episodes)
        live = ", whether answers were live" if uses_models else ""
        self._notes.append(f"as stated by the runner: versions, the machine, wall times{live}")
        if manifest.secret:
            self._notes.append(OWN_SECRET)
        return VerifyReport(
            folder=str(self._folder.path),
            episodes=len(manifest.episodes),
            steps=sum(self._steps.values()),
            claims=tuple(
                ClaimOutcome(claim=claim, outcome=outcome, why=why, episodes=count)
                for (claim, outcome, why), count in self._claims.items()
            ),
            violations=tuple(self._violations),
            notes=tuple(self._notes),
            freedom=freedom_of(self._folder.path, manifest),
        )

    def _check_times(self) -> None:
        """Add notes about impossible wall times.

        Wall times cannot be recomputed, but they have bounds. Each live answer has a time, and an
        episode takes longer than any of its answers. This bound is not checked for a resumed run,
        because an answer may be from an earlier start.
        """
        timing = read_timing(self._folder.timing)
        odd: list[str] = []
        for episode in self._manifest.episodes:
            key, answers = episode.key, list[float]()
            # An unreadable file is reported elsewhere.
            with contextlib.suppress(TradeassayError):
                recording = self._folder.models / f"{key}.jsonl"
                outcome = read_outcome(self._folder.outcome(key))
                live = outcome is not None and outcome.answers == "live"
                if live and episode.model and recording.is_file():
                    recorded = read_recording(recording).answers
                    answers = [
                        answer.seconds for answer in recorded if answer.seconds is not msgspec.UNSET
                    ]
                    if recorded and not answers:
                        odd.append(
                            f"the answers of {key} are stated to be live but have no times, like "
                            "replayed answers"
                        )
            took, steps = timing.episodes.get(key), self._steps.get(key, 0)
            if took is None:
                continue
            longest = max(answers, default=0.0) if len(timing.starts) == 1 else 0.0
            if not _SHORTEST_STEP * steps <= took < _LONGEST_RUN or took < longest:
                what = f"{took:g} s, with {steps} steps" + (
                    f" and an answer of {longest:g} s" if longest else ""
                )
                odd.append(f"{key} took {what}")
            elif timing.starts:
                run_seconds = sum(sum(phases.values()) for phases in timing.starts)
                if took > run_seconds + _SHORTEST_STEP:
                    odd.append(f"{key} took {took:g} s, longer than the run")
        self._notes += [f"impossible times: {what}" for what in odd[:3]]

    def _check_scores(self) -> None:
        """Score the run again and compare the result with ``scores.json``."""
        before, file = len(self._violations), self._folder.scores
        if not file.is_file():
            self._record_violation("scores", "scores.json is missing: the run is unfinished")
        else:
            try:
                difference = _score_difference(file.read_bytes(), self._scores())
                if difference:
                    self._record_violation("scores", difference)
            except NotReplayable as error:
                self._record_claim("scores", "cannot be checked", str(error))
                return
            except (TradeassayError, ArithmeticError, LookupError, TypeError, ValueError) as error:
                self._record_violation("scores", f"the run cannot be scored again: {error}")
        self._record_claim(
            "scores", "contradicted" if len(self._violations) > before else "re-derived"
        )

    def _add_episode(self, checked: Checked) -> None:
        """Add the results of one episode."""
        self._steps[checked.key] = checked.steps
        self._violations += checked.violations
        self._notes += checked.notes
        for claim in checked.claims:
            self._record_claim(claim.claim, claim.outcome, claim.why, claim.episodes)

    def _check_extra_files(self) -> None:
        """Add notes about files that were not checked.

        An episode that is not in the manifest is a violation. A folder without an episode's files
        is not an episode, because desktops, network drives and version control add folders.
        """
        place, keys = self._folder, {episode.key for episode in self._manifest.episodes}
        ours = {
            "manifest.json",
            "scores.json",
            "assay.json",
            place.models.name,
            place.episode("").name,
        }
        self._notes += [NOT_ASSAYED] if (place.path / "assay.json").is_file() else []
        self._notes += [NOT_RENDERED] if place.report.is_file() else []
        ours |= set(REWRITABLE)
        strays = sorted(
            entry.name for entry in _entries_without_litter(place.path) if entry.name not in ours
        )
        if strays:
            more = f" and {len(strays) - 3} more" if len(strays) > 3 else ""
            self._notes.append(f"not part of a run, and not checked: {', '.join(strays[:3])}{more}")
        for folder in sorted(_entries_without_litter(place.episode(""))):
            known_files = ("events.jsonl", "outcome.json", "dialogue.jsonl")
            if folder.name not in keys:
                if any((folder / name).exists() for name in known_files):
                    self._record_violation(
                        "episodes", f"{folder.name} belongs to no episode of this run"
                    )
                else:
                    where = f"{folder.parent.name}/{folder.name}"
                    self._notes.append(f"{where} belongs to no episode; it was not checked")
                continue
            strange = sorted(
                file.name
                for file in _entries_without_litter(folder)
                if file.name not in known_files
            )
            if strange:
                more = f" and {len(strange) - 1} more" if len(strange) > 1 else ""
                self._notes.append(
                    f"{folder.name}/{strange[0]}{more}: not part of a run; not checked"
                )
        for file in sorted(_entries_without_litter(place.models)):
            if file.suffix != ".jsonl" or file.stem not in keys:
                self._notes.append(
                    f"{place.models.name}/{file.name} belongs to no episode; it was not checked"
                )

    def _record_claim(
        self, claim: str, outcome: ClaimStatus, why: str = "", episodes: int = 0
    ) -> None:
        """Record the result of a claim. Equal results of several episodes are counted together."""
        key = (claim, outcome, why)
        self._claims[key] = self._claims.get(key, 0) + episodes

    def _record_violation(self, check: str, what: str) -> None:
        """Record a contradiction of the whole run."""
        self._violations.append(Violation(check=check, what=what))


def _score_difference(stored: bytes, recomputed: bytes) -> str:
    """Return the first difference between recorded and recomputed scores.

    The text is empty if they are equal except for the last digits of numbers.
    """
    stored_lines = stored.decode(errors="surrogateescape").split("\n")
    recomputed_lines = recomputed.decode().split("\n")
    pairs = zip(stored_lines, recomputed_lines, strict=False)
    for number, (old, new) in enumerate(pairs, start=1):
        if not close_text(old, new):
            return (
                f"the recomputed scores differ, first in line {number}: "
                f"{old.encode(errors='replace').decode().strip()} should be {new.strip()}"
            )
    if len(stored_lines) == len(recomputed_lines):
        return ""
    return (
        f"scores.json has {len(stored_lines)} lines, but the recomputed scores have "
        f"{len(recomputed_lines)}"
    )


_SUBSTITUTE_VENUES = ("ashare-v1", "crypto-v1")
"""Two venues that differ in all properties that affect a score: sessions per year and currency.

A score that is equal under both does not depend on the venue.
"""
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
"""The manifest's fields that are derived from a trading spec, and the check that compares each."""


class _TradingVerifier(_Verifier[RunManifest]):
    """Verifies a trading run.

    ``hash_again`` is true if every file of the store is hashed again. ``_verified_data`` contains
    the data sets whose installed data equals the recorded data. ``_rule_differences`` maps each
    benchmark whose recorded rules differ from the registered rules to the differences.
    ``_known_benchmarks`` contains the registered benchmarks, and as stated in the manifest all
    others. ``_changed_agents`` maps each agent with different code to the version that is installed
    here. ``_venue_problems`` maps each benchmark to the reason why its venue is missing or
    different here.
    """

    def __init__(
        self,
        folder: RunFolder,
        manifest: RunManifest,
        copies: Path | None,
        *,
        home: str | None,
        executor: TaskExecutor,
        progress: CountListener | None,
        hash_again: bool,
    ) -> None:
        super().__init__(folder, manifest)
        self._copies, self._home, self._executor = copies, home, executor
        self._progress, self._hash_again = progress, hash_again
        self._rule_differences: dict[str, list[str]] = {}
        self._verified_data: set[str] = set()
        self._registered = {
            name: benchmarks.get(name) for name in manifest.benchmarks if name in benchmarks
        }
        self._known_benchmarks = {**manifest.absent_benchmarks, **self._registered}
        self._changed_agents: dict[str, str] = {}
        self._venue_problems: dict[str, str] = {}

    def _check_manifest(self) -> None:
        """Compare the manifest with its spec, the rules and the data, and record the claims."""
        manifest, before = self._manifest, len(self._violations)
        if work_sha256(manifest.spec) != manifest.work_sha256:
            self._record_violation("spec", "the spec does not match its hash in the manifest")
        unregistered = sorted(
            {*manifest.benchmarks, *manifest.spec.benchmarks} - set(self._registered)
        )
        problems = [f"benchmark '{name}' is not registered here" for name in unregistered]
        problems += self._package_changes()
        for why in problems:
            self._record_claim("rules", "cannot be checked", why)
        # A benchmark that is not registered here is accepted as stated. All derived fields of the
        # manifest must still follow from it.
        with benchmarks.knowing(self._known_benchmarks):
            self._compare_manifest(self._data())
        for name, record in manifest.benchmarks.items():
            if sha256_of(record.config) != record.sha256:
                self._record_violation(
                    "benchmark",
                    f"the configuration of '{name}' does not match its recorded hash",
                )
            if record.config.id != name:
                self._record_violation(
                    "benchmark", f"the configuration of '{name}' has the id '{record.config.id}'"
                )
        if not manifest.secret and any(
            record.config.takes_secret for record in manifest.benchmarks.values()
        ):
            self._record_violation("spec", "the secret of its draws is missing")
        # An agent may have any label except the name of another agent. Such labels are noted.
        names = shown_names(manifest, self._folder)
        own_labels = []
        for agent in manifest.spec.agents:
            if agent.title in agents and agent.title != agent.name:
                self._record_violation(
                    "spec",
                    f"'{agent.name}' has the label '{agent.title}', the name of another agent",
                )
            displayed = names.get(agent.title, agent.title)
            if displayed != agent.title:
                own_labels.append(f"'{agent.title}' is shown as '{displayed}'")
        if own_labels:
            self._notes.append(f"the runner's labels: {', '.join(own_labels)}")
        self._check_own_files()
        if manifest.spec.bootstrap != BootstrapConfig():
            chosen = differences(_plain(BootstrapConfig()), _plain(manifest.spec.bootstrap))
            words = ", ".join(f"{name} {new} instead of {old}" for name, old, new in chosen)
            self._notes.append(f"the runner changed the computation of intervals: {words}")
        for name, rules in self._rule_differences.items():
            package = benchmarks.package(name)
            registered = f"'{name}' in {package}" if package else f"'{name}'"
            self._record_claim(
                "rules",
                "cannot be checked",
                f"the rules differ from the rules of {registered}: {'; '.join(rules)}",
            )
        if not problems and not self._rule_differences:
            broken = len(self._violations) > before
            self._record_claim("rules", "contradicted" if broken else "re-derived")

    def _package_changes(self) -> Iterator[str]:
        """Yield the agents and venues of other packages that are missing or different here.

        Such a difference is not a contradiction. It is also stored in ``_changed_agents`` or
        ``_venue_problems``.
        """
        manifest = self._manifest
        for name, agent in manifest.absent_agents.items():
            package = agent.package or agent.module.partition(".")[0]
            yield f"agent '{name}' is not registered here: its package '{package}' is not installed"
        for name, recorded in manifest.agents.items():
            if name not in agents or recorded.ours:
                continue
            installed = agent_record(name)
            if installed.ours:
                continue
            recorded_code = (
                recorded.module,
                recorded.sha256,
                recorded.package or installed.package,
            )
            if recorded_code != (installed.module, installed.sha256, installed.package):
                recorded_version, installed_version = (
                    f"{record.package or record.module} ({(record.sha256 or 'no file')[:12]})"
                    for record in (recorded, installed)
                )
                self._changed_agents[name] = installed_version
                yield (
                    f"agent '{name}' is from {recorded_version}, but here it is from "
                    f"{installed_version}"
                )
        for name, record in manifest.benchmarks.items():
            venue = self._known_benchmarks[name].market.venue
            if venue not in venues:
                self._venue_problems[name] = f"venue '{venue}' is not registered here"
                continue
            venue_package = venues.package(venue)
            if venue_package and sha256_of(venues.get(venue)) != record.venue_sha256:
                self._venue_problems[name] = (
                    f"venue '{venue}' has different rules in {venue_package}, which is installed "
                    "here"
                )
        yield from (
            f"of '{name}': {why}"
            for name, why in self._venue_problems.items()
            if name in self._registered
        )

    def _check_own_files(self) -> None:
        """Compare the runner's own files with the copies on this machine.

        Files without a copy are listed with their hashes.
        """
        files = self._manifest.files or {}
        for agent in self._manifest.spec.agents:
            if agent.name not in WITH_FILES:
                continue
            required = {
                file.name for file in named_files(agent.name, agent.params) if file.suffix == ".py"
            }
            hashed = {Path(path).name for path in files.get(agent.title, ())}
            for name in sorted(required - hashed):
                self._record_violation("files", f"{name} of '{agent.title}' has no recorded hash")
        unchecked: list[str] = []
        copies = None if self._copies is None else self._copies.resolve()
        recorded = set(chain.from_iterable(hashes.items() for hashes in files.values()))
        for name, digest in sorted(recorded):
            copy = None if copies is None else (copies / name).resolve()
            if (
                copies is None
                or copy is None
                or not copy.is_relative_to(copies)
                or not copy.is_file()
            ):
                unchecked.append(f"{name} {digest[:12]}")
            elif sha256_file(copy) != digest:
                self._record_violation(
                    "files",
                    f"{name} has the hash {sha256_file(copy)[:12]}, but {digest[:12]} is recorded",
                )
        if unchecked:
            names = ", ".join(unchecked)
            why = f"{names}: as stated; compare them with your copies (--agent-files)"
            self._record_claim("files", "cannot be checked", why, len(unchecked))
        elif files:
            self._record_claim("files", "re-derived")

    def _compare_manifest(self, entries: Mapping[str, DatasetEntry]) -> None:
        """Build the manifest of the run anew and compare it with the recorded manifest.

        ``entries`` describes the data sets. Facts about packages that are not installed are copied
        from the recorded manifest.
        """
        manifest = self._manifest
        try:
            episodes = expand(manifest.spec)
            if episodes != manifest.episodes:
                self._record_violation("spec", "the episodes do not match the spec")
                return
            rebuilt = build_manifest(
                manifest.spec, episodes, entries, manifest.versions, stated=manifest
            )
        except (TradeassayError, KeyError, AssertionError) as error:
            self._record_violation("spec", f"the run's description cannot be recomputed: {error}")
            return
        for field, check in _FIELDS.items():
            recorded, expected = _plain(getattr(manifest, field)), _plain(getattr(rebuilt, field))
            for where, old, new in differences(recorded, expected, field):
                self._record_difference(check, where, old, new)

    def _record_difference(self, check: str, where: str, old: object, new: object) -> None:
        """Record the difference of one field of the manifest, unless it is allowed.

        Different rules, prices and cutoffs are not contradictions: a package may have a different
        version here, and the runner may have used a separate table of prices.
        """
        leaf = where.rpartition(".")[2]
        if check == "benchmark" and (
            leaf in _DESCRIPTIVE_FIELDS or (leaf == "sha256" and where.startswith("benchmarks"))
        ):
            return
        if check == "agents" and leaf == "module" and is_ours(str(old)) and is_ours(str(new)):
            return  # tradeassay's own code may move to a different file
        reported = [f"agents.{name}." for name in self._changed_agents]
        reported += [f"benchmarks.{name}.venue_sha256" for name in self._venue_problems]
        if leaf == "package" or where.startswith(tuple(reported)):
            return  # a different version, which _package_changes reports
        recorded, expected = _shortened(old), _shortened(new)
        what = f"{where} is {recorded!r}, but here it is {expected!r}"
        for name in self._registered:
            if where.startswith(head := f"benchmarks.{name}.config."):
                # Different rules make a different benchmark with the same id, which is not
                # necessarily a false statement.
                rule = f"{where.removeprefix(head)} is {recorded}, registered is {expected}"
                self._rule_differences.setdefault(name, []).append(rule)
                return
        if where.startswith("models.") and leaf in _TABLE_FIELDS:
            self._record_claim("model tables", "cannot be checked", what)
        else:
            self._record_violation(check, what)

    def _data(self) -> dict[str, DatasetEntry]:
        """Return the description of every data set, and record whether its data is verified.

        A data set that is missing or different here is described as in the manifest.
        """
        manifest = self._manifest
        wanted: Mapping[str, PrepareTask] = {}
        with contextlib.suppress(TradeassayError):
            wanted = prepare_tasks(manifest.episodes, self._known_benchmarks, self._home)
        entries: dict[str, DatasetEntry] = {}
        for name, record in manifest.datasets.items():
            recorded, broken = record.sha256, ""
            stated = {
                window_key(config.protocol, config.convention, episode.window): manifest.windows[
                    episode.setting
                ]
                for episode in manifest.episodes
                if episode.dataset == name
                and episode.window is not None
                and episode.setting in manifest.windows
                and (config := self._known_benchmarks.get(episode.benchmark)) is not None
            }
            entries[name] = DatasetEntry(
                name=record.name, sha256=recorded, facts=record.facts, sessions=(), windows=stated
            )
            try:
                if (synthetic_sha256(name) or recorded) != recorded:
                    broken = f"the recorded world '{name}' differs from the world of its seed"
                else:
                    snapshot = load_verified(name, Path(self._home) if self._home else None)
                    verify_snapshot(snapshot.folder, again=self._hash_again)
                    if snapshot.sha256 != recorded:
                        broken = (
                            f"data set '{name}' has hash {snapshot.sha256[:12]}, but "
                            f"{recorded[:12]} is recorded"
                        )
            except TradeassayError as error:  # A problem of this machine is not a contradiction.
                why = f"'{name}' is not here (sha256 {recorded[:12]}): {error}"
                self._record_claim("data", "cannot be checked", why)
                continue
            try:
                if not broken:
                    entries[name] = entry_of(
                        snapshot, wanted[name].windows if name in wanted else ()
                    )
            except TradeassayError as error:
                broken = error.message
            if broken:
                self._record_violation("data", broken)
                self._record_claim("data", "contradicted")
            else:
                self._verified_data.add(name)
                self._record_claim("data", "re-derived")
        return entries

    def _check_episodes(self) -> None:
        """Check every episode and its badge, and record the claims."""
        manifest = self._manifest
        tasks: dict[str, bytes] = {}
        for episode in manifest.episodes:
            task = CheckTask(
                play=play_task(
                    self._folder, self._home, manifest, episode, self._benchmark(episode)
                ),
                data_intact=episode.dataset in self._verified_data,
                model=manifest.models.get(episode.label),
                venue_problem=self._venue_problems.get(episode.benchmark, ""),
                other_code=self._changed_agents.get(episode.agent.name, ""),
            )
            tasks[episode.key] = ENCODE(task)
        results = self._perform(tasks, "episodes played again")
        for key in tasks:
            if key in results:
                self._add_episode(CHECKED_DECODER.decode(results[key]))
        # The badge of an episode states the source of its answers. It must match the agent.
        run = Run(self._folder.path, manifest)
        for episode in manifest.episodes:
            scripted = episode.model.startswith("scripted/")
            expected: tuple[str, ...] = ("none",)
            if scripted:
                expected = ("scripted",)
            elif episode.by_model:
                expected = ("replayed", "live")
            # An unreadable outcome is reported elsewhere.
            with contextlib.suppress(TradeassayError):
                outcome = run.outcome(episode.key)
                if (answers := "none" if outcome is None else outcome.answers) not in expected:
                    what = (
                        f"its badge states '{answers}' answers, but its agent requires "
                        f"{' or '.join(expected)}"
                    )
                    self._violations.append(
                        Violation(check="badges", what=what, episode=episode.key)
                    )

    def _benchmark(self, episode: EpisodeSpec, venue: str | None = None) -> Benchmark:
        """Return the registered benchmark with an episode's window and conversation.

        If the benchmark is not registered here or its recorded rules differ, the benchmark of the
        manifest is returned. ``venue`` replaces a venue that is missing or different here.
        """
        registered = self._registered.get(episode.benchmark)
        if registered is None or episode.benchmark in self._rule_differences:
            benchmark = self._manifest.benchmark(episode)
        else:
            window = self._manifest.windows.get(episode.setting)
            benchmark = played_as(registered, episode, self._manifest.spec, window)
        if venue is None or episode.benchmark not in self._venue_problems:
            return benchmark
        return msgspec.structs.replace(
            benchmark, market=msgspec.structs.replace(benchmark.market, venue=venue)
        )

    def _check_scores(self) -> None:
        if len(self._verified_data) == len(self._manifest.datasets):
            super()._check_scores()
        else:
            self._record_claim("scores", "cannot be checked", "data is missing or changed")

    def _scores(self) -> bytes:
        """Score the run again and return the content of ``scores.json``.

        If a venue is missing or different here, the run is scored with two substitutes. Raises
        :class:`ValueError` for a recorded score that differs from both results, if these agree.
        Otherwise raises :class:`NotReplayable`.
        """
        if not self._venue_problems:
            return self._scores_with_venue(None)
        recorded = msgspec.json.decode(self._folder.scores.read_bytes())
        errors: list[set[tuple[str, str, str]]] = []
        for venue in _SUBSTITUTE_VENUES:
            recomputed = msgspec.json.decode(self._scores_with_venue(venue))
            changed = differences(recorded, recomputed, near=True)
            errors.append({(where, repr(old), repr(new)) for where, old, new in changed})
        for where, old, new in sorted(errors[0] & errors[1])[:1]:
            raise ValueError(f"{where} is {old}, but recomputed it is {new}")
        raise NotReplayable("; ".join(dict.fromkeys(self._venue_problems.values())))

    def _scores_with_venue(self, venue: str | None) -> bytes:
        """Return the content of ``scores.json``. ``venue`` replaces missing and changed venues."""
        manifest = self._manifest
        tasks = score_tasks(
            self._folder, self._home, manifest, partial(self._benchmark, venue=venue)
        )
        results = self._perform(
            {key: ENCODE(task) for key, task in tasks.items()}, "agents scored again"
        )
        if len(results) < len(tasks):
            # The cause may be this machine, so it is not a contradiction.
            raise NotReplayable("a scoring process died")
        parts = [SCORED_DECODER.decode(payload) for payload in results.values()]
        level = manifest.spec.bootstrap.level
        return encode_scores(gather(manifest.work_sha256, manifest.episodes, parts, level=level))

    def _perform(self, payloads: dict[str, bytes], what: str) -> dict[str, bytes]:
        """Perform tasks on the executor and return their results by key.

        ``what`` describes the tasks to the progress listener. A task whose process died has no
        result, and a claim is recorded for it.
        """
        results: dict[str, bytes] = {}
        tasks = [Task(key, payload) for key, payload in payloads.items()]
        performed = self._executor.perform(tasks, lambda key, sessions: None)
        for done, result in enumerate(performed, 1):
            if self._progress is not None:
                self._progress(what, done, len(tasks))
            if isinstance(result, Lost):
                self._record_claim(
                    "decisions", "cannot be checked", f"{result.key}: {result.reason}", 1
                )
            else:
                results[result.key] = result.payload
        return results


class _ProgramsVerifier(_Verifier[CodeManifest]):
    """Verifies a run of programs.

    ``examine`` replays the episodes and examines their programs. It is None if programs must not be
    examined. ``_unavailable`` is the reason why the benchmark cannot be opened. In that case only
    the parts that need no program are checked. ``_changed_packages`` lists the recorded versions of
    packages and Python that differ from the installed versions.
    """

    def __init__(
        self,
        folder: RunFolder,
        manifest: CodeManifest,
        copies: Path | None,
        examine: ExamineAgain | None,
    ) -> None:
        super().__init__(folder, manifest)
        self._examine = examine
        self._spec: CodeSpec | None = None
        self._protocol: CodeProtocol | None = None
        self._unavailable = ""
        self._changed_packages: list[str] = []
        if manifest.benchmark not in code_benchmarks():
            self._unavailable = f"benchmark '{manifest.benchmark}' is not registered here"
            return
        self._spec = recorded_code_spec(manifest)
        rules = [str(departure) for departure in code_departures(self._spec) if departure.rule]
        if rules:
            self._unavailable = (
                f"the rules differ from the rules of '{manifest.benchmark}': {'; '.join(rules)}"
            )
            return
        try:
            self._protocol = reopen(manifest, copies)
        except TradeassayError as error:
            self._unavailable = str(error)

    def _check_manifest(self) -> None:
        before, manifest, spec = len(self._violations), self._manifest, self._spec
        if spec is not None:
            if sha256_of(spec) != manifest.work_sha256:
                self._record_violation("spec", "the spec does not match its hash in the manifest")
            if manifest.asked != _plain(spec):
                self._record_violation(
                    "spec", "the spec contains a field that the benchmark does not have"
                )
            if spec.benchmark != manifest.benchmark:
                self._record_violation(
                    "spec", f"the spec is of '{spec.benchmark}', not of '{manifest.benchmark}'"
                )
        if not manifest.secret:
            self._record_violation("spec", "the secret of its draws is missing")
        if self._protocol is not None:
            self._compare_manifest(self._protocol)
        if len(self._violations) > before:
            self._record_claim("rules", "contradicted")
        elif self._unavailable:
            self._record_claim("rules", "cannot be checked", self._unavailable)
        else:
            self._record_claim("rules", "re-derived")

    def _compare_manifest(self, protocol: CodeProtocol) -> None:
        """Build the facts of the run anew and compare them with the manifest.

        If a benchmark of another package has different rules here, it is a different version of the
        benchmark. This is not a contradiction, but programs cannot be examined with it.
        """
        manifest, rules = self._manifest, list[str]()
        try:
            recorded, installed = manifest.facts, protocol.facts()
            for name in sorted({*recorded, *installed}):
                old, new = recorded.get(name, "missing"), installed.get(name, "missing")
                if old != new and name.startswith("package "):
                    recorded_package = f"{name.removeprefix('package ')} {old[:12]}"
                    self._changed_packages.append(recorded_package)
                    self._notes.append(
                        f"programs were examined with {recorded_package}, here with {new[:12]}"
                    )
                elif old != new:
                    rules.append(f"{name} is {old[:12]}, but here it is {new[:12]}")
            if rules and not is_ours(type(protocol).__module__):
                package = code_protocols.package(manifest.benchmark)
                registered = f"'{manifest.benchmark}'{f' in {package}' if package else ''}"
                self._unavailable = (
                    f"the rules differ from the rules of {registered}: {'; '.join(rules)}"
                )
                self._protocol = None
                return
            if code_episodes(manifest.benchmark, protocol) != manifest.episodes:
                self._record_violation("spec", "the episodes do not match the spec")
            if protocol.notes != manifest.notes:
                self._record_violation("spec", "the notes do not match the spec")
        except (TradeassayError, KeyError) as error:
            self._record_violation("spec", f"the run's description cannot be recomputed: {error}")
            return
        recorded_models = _plain(manifest.models or {})
        known_models = _plain(priced_models(protocol, manifest.episodes) or {})
        for where, old_value, new_value in differences(recorded_models, known_models, "models"):
            what = f"{where} is {old_value!r}, but here it is {new_value!r}"
            if where.rpartition(".")[2] in _TABLE_FIELDS or not recorded_models:
                self._record_claim("model tables", "cannot be checked", what)
            else:
                self._record_violation("models", what)
        for what in rules:
            self._record_violation("benchmark", what)
        python = manifest.versions.python.split(".")[:2]
        if python != present_versions().python.split(".")[:2]:
            self._changed_packages.append(f"Python {'.'.join(python)}")

    def _check_episodes(self) -> None:
        """Replay every episode, examine its programs again, and record the claims."""
        replays: Mapping[str, Replayed | TradeassayError] = {}
        why = self._unavailable or "the examination of programs was turned off"
        if self._examine is not None and self._protocol is not None:
            try:
                replays = self._examine(self._protocol)
            except NotReplayable as error:
                why = str(error)
            except (TradeassayError, KeyError) as error:
                self._record_violation(
                    "programs", f"the programs cannot be examined again: {error}"
                )
        for episode in self._manifest.episodes:
            replayed = replays.get(episode.key)
            records = self._manifest.models or {}
            checked = check_program(self._folder, episode, self._protocol, replayed, why, records)
            if checked.violations and isinstance(replayed, Replayed):
                # Programs may behave differently with other packages, or be too slow on a busy
                # machine. The recorded results are then accepted, and the claim cannot be checked.
                # A record that contradicts itself is still false.
                timed_out = replayed.timed_out or _differs_by_timeout(
                    self._folder.events(episode.key).read_bytes(), replayed.events
                )
                reasons = []
                if self._changed_packages:
                    reasons.append(f"they were examined with {', '.join(self._changed_packages)}")
                if timed_out:
                    reasons.append("one exceeded its time limit, here or as stated by the runner")
                if reasons:
                    reason = f"their results differ here; {' and '.join(reasons)}"
                    checked = check_program(
                        self._folder, episode, self._protocol, None, reason, records
                    )
            self._add_episode(checked)

    def _scores(self) -> bytes:
        if self._protocol is None:
            raise NotReplayable(self._unavailable)
        return code_scores(self._protocol, self._manifest, self._folder)


def _differs_by_timeout(recorded: bytes, replayed: bytes) -> bool:
    """Return whether the first different line of two journals is explained by a time-out.

    The recorded line must contain a time-out, and no test that is recorded as passed may have a
    different result in the replay.
    """
    pairs = zip(recorded.splitlines(), replayed.splitlines(), strict=False)
    old_line, new_line = next((pair for pair in pairs if pair[0] != pair[1]), (b"", b""))
    if not OUT_OF_TIME.search(old_line):
        return False
    old_result = msgspec.json.decode(old_line)["result"]
    new_result = msgspec.json.decode(new_line)["result"]
    changed = differences(old_result, new_result)
    return not any(b'"passed"' in msgspec.json.encode(old) for _, old, _ in changed)


def _shortened(value: object) -> str:
    """Return a value as text of at most 60 characters."""
    text = str(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _plain(value: object) -> Any:
    """Return a value as the JSON types of its canonical form."""
    return msgspec.json.decode(canonical_json(value))
