"""Verify a recorded run of either kind: recompute everything from its sources, and compare.

The rules are those registered here, not those in the run, and the data is the store's. The claims
of one episode are checked in :mod:`tradeassay_bench.runs.verify.checks`, the claims of the whole
run here.

Claims that cannot be recomputed are reported one by one. Above all, a model's replies are a claim
of the runner, unless the run was sealed before the result was known or a witness recorded it.
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
from tradeassay_bench.runs.store.outcome import ClaimOutcome, Violation, Word, read_outcome
from tradeassay_bench.runs.store.run import CodeRun, Run, folder_of, shown_names
from tradeassay_bench.runs.verify.checks import Checked, CheckTask, check_program
from tradeassay_bench.runs.verify.freedom import OUT_OF_TIME, Freedom, code_departures, freedom_of
from tradeassay_bench.runs.verify.replay import NotReplayable, Replayed, differences, not_as_written

M = TypeVar("M", bound=Manifest)
ExamineAgain = Callable[[CodeProtocol], Mapping[str, Replayed | TradeassayError]]
T = TypeVar("T")
REWRITABLE = ("report.html", "timing.json", ".lock", "cards")
"""Files of a run's folder that are not part of its record, because anybody can rewrite them."""
RUNNERS_CLAIM = (
    "the replies of a model are a claim of the runner, unless the run was sealed before the result "
    "was known or a "
    "witness recorded it"
)
NOT_ASSAYED = "assay.json was not recomputed"
NOT_RENDERED = "report.html was not recomputed"
OWN_SECRET = (
    "the secret was chosen by the runner, who may have tried others: a plan that was sealed and "
    "published before "
    "the run began rules that out (verify --plan)"
)
_LEAST, _MOST = 1e-5, 1e8
"""In seconds: less than the time of any step, and more than the time of any run."""
_TABLED = frozenset(("price_as_of", "price_source", "cutoff"))
"""Facts about a model that are from tables, which may be the runner's own or older."""
_WORDS = frozenset(("title", "description"))
"""Fields of a benchmark that may be reworded."""


VerdictWord = Literal["verified", "warning", "unverified", "contradicted"]
_NUMBERS_REST_ON = frozenset(("data", "rules", "account", "programs", "conversation", "scores"))
"""Claims on which a run's numbers depend."""


class VerifyReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of every claim of a run, and every contradiction.

    ``notes`` are about files next to the record that were not checked. ``freedom`` lists the
    runner's choices. ``counted`` is the noun for ``episodes``.
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
        """Return the report with an additional claim, and with new notes."""
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
        """Return whether every claim was recomputed."""
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
            claim.claim in _NUMBERS_REST_ON
            for claim in self.claims
            if claim.outcome != "re-derived"
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
            return f"{self.folder} is verified: {size}, identical to the recording."
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

    ``folder`` is the run's folder, or the open run. ``workers`` is the number of processes. With
    ``programs`` False the programs of a code run are not examined again. ``examined`` stores
    results of examinations, so that repeated verifications of one run examine each program once,
    and hash an unchanged file of the store once. ``progress`` is called with the progress.
    ``copies`` is this machine's copy of a run's task file, or the folder of its agents' own files,
    because no path in a recorded run is opened.

    Raises :class:`RunError` only without a readable manifest or if line ends were changed. All
    other problems are in the report.
    """
    place = RunFolder(folder_of(folder))
    manifest = read_manifest(place.manifest)
    refuse_changed_line_ends(place)
    if isinstance(manifest, CodeManifest):
        again = partial(
            examine_again,
            place=place,
            episodes=manifest.episodes,
            workers=workers,
            examined=examined,
            progress=progress,
        )
        return _ProgramsVerifier(place, manifest, copies, again if programs else None).report()
    where = None if home is None else str(Path(home).absolute())
    modules, own_script = modules_of(manifest.episodes)
    with make_executor(
        "inline" if own_script else "local", entry=ENTRY, workers=workers, modules=modules
    ) as executor:
        trading = _TradingVerifier(
            place,
            manifest,
            copies,
            home=where,
            executor=executor,
            progress=progress,
            data_again=examined is None,
        )
        return trading.report()


def in_any_venue(played: Iterable[Benchmark], make: Callable[[], T]) -> list[T]:
    """Call ``make`` with each of two venues in place of the venues that are not registered here.

    Returns an empty list if all venues are registered.
    """
    absent, results = (
        {benchmark.market.venue for benchmark in played} - set(venues.names()),
        list[T](),
    )
    for name in _STAND_INS if absent else ():
        with venues.knowing(dict.fromkeys(absent, venues.get(name))):
            results.append(make())
    return results


def _not_litter(folder: Path) -> Iterator[Path]:
    """Yield the entries of a folder without the files of desktops and network drives."""
    return (entry for entry in folder.glob("*") if not is_litter(entry.name))


class _Verifier(ABC, Generic[M]):
    """The checks that are common to both kinds of run."""

    def __init__(self, place: RunFolder, manifest: M) -> None:
        self._place, self._manifest = place, manifest
        self._violations: list[Violation] = []
        self._claims: dict[tuple[str, Word, str], int] = {}
        self._notes: list[str] = []
        self._steps: dict[str, int] = {}

    @abstractmethod
    def _check_manifest(self) -> None: ...

    @abstractmethod
    def _check_episodes(self) -> None: ...

    @abstractmethod
    def _scores(self) -> bytes:
        """Score the run again."""

    def report(self) -> VerifyReport:
        """Check everything, beginning with the run as a whole, and return the report."""
        manifest = self._manifest
        written, again = self._place.manifest.read_bytes(), encode_manifest(manifest)
        if written != again:
            self._broken("manifest", f"manifest.json: {not_as_written(written, again)}")
        self._check_manifest()
        self._check_strays()
        self._check_episodes()
        self._check_scores()
        self._check_times()
        changes = version_changes(manifest.versions, present_versions())
        if changes:
            self._notes.append(f"the run was made with other versions: {'; '.join(changes)}")
        # Parts of the record that cannot be derived.
        live = (
            ", whether answers were live" if any(one.by_model for one in manifest.episodes) else ""
        )
        self._notes.append(f"as stated by the runner: versions, the machine, wall times{live}")
        if manifest.secret:
            self._notes.append(OWN_SECRET)
        return VerifyReport(
            folder=str(self._place.path),
            episodes=len(manifest.episodes),
            steps=sum(steps for steps in self._steps.values()),
            claims=tuple(
                ClaimOutcome(claim=claim, outcome=outcome, why=why, episodes=count)
                for (claim, outcome, why), count in self._claims.items()
            ),
            violations=tuple(self._violations),
            notes=tuple(self._notes),
            freedom=freedom_of(self._place.path, manifest),
        )

    def _check_times(self) -> None:
        """Note impossible wall times. They cannot be derived, but not every number is possible.

        Each live answer has a time, and an episode takes longer than any of its answers. Of a
        resumed run only the last start is known.
        """
        timing = read_timing(self._place.timing)
        odd: list[str] = []
        for episode in self._manifest.episodes:
            key, answers = episode.key, list[float]()
            # An unreadable file is reported elsewhere.
            with contextlib.suppress(TradeassayError):
                recording = self._place.models / f"{key}.jsonl"
                outcome = read_outcome(self._place.outcome(key))
                live = outcome is not None and outcome.answers == "live"
                if live and episode.model and recording.is_file():
                    held = read_recording(recording).answers
                    answers = [
                        answer.seconds for answer in held if answer.seconds is not msgspec.UNSET
                    ]
                    if held and not answers:
                        odd.append(
                            f"the answers of {key} are stated to be live but have no times, like "
                            "replayed answers"
                        )
            took, steps = timing.episodes.get(key), self._steps.get(key, 0)
            if took is None:
                continue
            longest = max(answers, default=0.0) if len(timing.starts) == 1 else 0.0
            if not _LEAST * steps <= took < _MOST or took < longest:
                what = f"{took:g} s, with {steps} steps" + (
                    f" and an answer of {longest:g} s" if longest else ""
                )
                odd.append(f"{key} took {what}")
            elif timing.starts and took > sum(sum(one.values()) for one in timing.starts) + _LEAST:
                odd.append(f"{key} took {took:g} s, longer than the run")
        self._notes += [f"impossible times: {what}" for what in odd[:3]]

    def _check_scores(self) -> None:
        """Score the run again and compare."""
        before, place = len(self._violations), self._place.scores
        if not place.is_file():
            self._broken("scores", "scores.json is missing: the run is unfinished")
        else:
            try:
                stored, again = place.read_bytes(), self._scores()
                if what := _other_scores(stored, again):
                    self._broken("scores", what)
            except NotReplayable as error:
                self._say("scores", "cannot be checked", str(error))
                return
            except (TradeassayError, ArithmeticError, LookupError, TypeError, ValueError) as error:
                self._broken("scores", f"the run cannot be scored again: {error}")
        self._say("scores", "contradicted" if len(self._violations) > before else "re-derived")

    def _take(self, checked: Checked) -> None:
        """Add the result of one episode."""
        self._steps[checked.key] = checked.steps
        self._violations += checked.violations
        self._notes += checked.notes
        for claim in checked.claims:
            self._say(claim.claim, claim.outcome, claim.why, claim.episodes)

    def _check_strays(self) -> None:
        """Note files that were not checked. An episode that is not in the manifest is an error.

        Desktops, network drives and version control add folders everywhere, so a folder without an
        episode's files is not an episode.
        """
        place, keys = self._place, {episode.key for episode in self._manifest.episodes}
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
        strays = sorted(entry.name for entry in _not_litter(place.path) if entry.name not in ours)
        if strays:
            more = f" and {len(strays) - 3} more" if len(strays) > 3 else ""
            self._notes.append(f"not part of a run, and not checked: {', '.join(strays[:3])}{more}")
        for folder in sorted(_not_litter(place.episode(""))):
            known_files = ("events.jsonl", "outcome.json", "dialogue.jsonl")
            if folder.name not in keys:
                if any((folder / name).exists() for name in known_files):
                    self._broken("episodes", f"{folder.name} belongs to no episode of this run")
                else:
                    where = f"{folder.parent.name}/{folder.name}"
                    self._notes.append(f"{where} belongs to no episode; it was not checked")
                continue
            strange = sorted(
                file.name for file in _not_litter(folder) if file.name not in known_files
            )
            if strange:
                more = f" and {len(strange) - 1} more" if len(strange) > 1 else ""
                self._notes.append(
                    f"{folder.name}/{strange[0]}{more}: not part of a run; not checked"
                )
        for file in sorted(_not_litter(place.models)):
            if file.suffix != ".jsonl" or file.stem not in keys:
                self._notes.append(
                    f"{place.models.name}/{file.name} belongs to no episode; it was not checked"
                )

    def _say(self, claim: str, outcome: Word, why: str = "", episodes: int = 0) -> None:
        key = (claim, outcome, why)
        self._claims[key] = self._claims.get(key, 0) + episodes

    def _broken(self, check: str, what: str) -> None:
        self._violations.append(Violation(check=check, what=what))


def _other_scores(stored: bytes, again: bytes) -> str:
    """Return the first difference between recorded and recomputed scores.

    It is empty if only last digits differ.
    """
    then = stored.decode(errors="surrogateescape").split("\n")
    now = again.decode().split("\n")
    for number, (old, new) in enumerate(zip(then, now, strict=False), start=1):
        if not close_text(old, new):
            what = (
                f"line {number}: {old.encode(errors='replace').decode().strip()} should be "
                f"{new.strip()}"
            )
            return f"scoring again gives different bytes, first at {what}"
    return "" if len(then) == len(now) else "scoring again gives different bytes, first at its end"


_STAND_INS = ("ashare-v1", "crypto-v1")
"""Two venues that differ in all properties that affect a number: sessions per year and currency.

A number that is equal under both does not depend on the venue.
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
"""The fields of a trading run's manifest that are derived from its spec, with the check of each."""


class _TradingVerifier(_Verifier[RunManifest]):
    """Verifies a trading run.

    ``data_again`` is whether every file of the store is hashed again. ``_intact`` contains the data
    sets that are here as recorded. ``_foreign`` contains the rules that differ from the registered
    rules. ``_others`` and ``_no_venue`` list agents and venues with a different version here.
    """

    def __init__(
        self,
        place: RunFolder,
        manifest: RunManifest,
        copies: Path | None,
        *,
        home: str | None,
        executor: TaskExecutor,
        progress: CountListener | None,
        data_again: bool,
    ) -> None:
        super().__init__(place, manifest)
        self._copies, self._home, self._executor = copies, home, executor
        self._progress, self._data_again = progress, data_again
        self._foreign: dict[str, list[str]] = {}
        self._intact: set[str] = set()
        self._registered = {
            name: benchmarks.get(name) for name in manifest.benchmarks if name in benchmarks
        }
        self._known = {**manifest.absent_benchmarks, **self._registered}
        self._others: dict[str, str] = {}
        self._no_venue: dict[str, str] = {}

    def _check_manifest(self) -> None:
        manifest, before = self._manifest, len(self._violations)
        if work_sha256(manifest.spec) != manifest.work_sha256:
            self._broken("spec", "the spec does not match its hash in the manifest")
        strangers = sorted(
            {*manifest.benchmarks, *manifest.spec.benchmarks} - set(self._registered)
        )
        unknown = [f"benchmark '{name}' is not registered here" for name in strangers]
        unknown += self._unlike_here()
        for why in unknown:
            self._say("rules", "cannot be checked", why)
        # A benchmark that is not registered here is accepted as stated. The rest must still be
        # derived from it.
        with benchmarks.knowing(self._known):
            self._compare_manifest(self._data())
        for name, record in manifest.benchmarks.items():
            if sha256_of(record.config) != record.sha256:
                self._broken(
                    "benchmark",
                    f"the configuration of '{name}' does not match its recorded hash",
                )
            if record.config.id != name:
                self._broken(
                    "benchmark", f"the configuration of '{name}' has the id '{record.config.id}'"
                )
        if not manifest.secret and any(
            one.config.takes_secret for one in manifest.benchmarks.values()
        ):
            self._broken("spec", "the secret of its draws is missing")
        # An agent may have any label except the name of another agent. Own labels are reported.
        names = shown_names(manifest, self._place)
        own_labels = []
        for agent in manifest.spec.agents:
            if agent.title in agents and agent.title != agent.name:
                self._broken(
                    "spec",
                    f"'{agent.name}' has the label '{agent.title}', the name of another agent",
                )
            if (called := names.get(agent.title, agent.title)) != agent.title:
                own_labels.append(f"'{agent.title}' is displayed as '{called}'")
        if own_labels:
            self._notes.append(f"the runner's own labels: {', '.join(own_labels)}")
        self._check_own_files()
        if manifest.spec.bootstrap != BootstrapConfig():
            chosen = differences(_plain(BootstrapConfig()), _plain(manifest.spec.bootstrap))
            words = ", ".join(f"{name} {new} instead of {old}" for name, old, new in chosen)
            self._notes.append(f"the runner changed the computation of intervals: {words}")
        for name, others in self._foreign.items():
            whose = (
                f"'{name}' in {package}" if (package := benchmarks.package(name)) else f"'{name}'"
            )
            self._say(
                "rules",
                "cannot be checked",
                f"the rules differ from those of {whose}: {'; '.join(others)}",
            )
        if not unknown and not self._foreign:
            broken = len(self._violations) > before
            self._say("rules", "contradicted" if broken else "re-derived")

    def _unlike_here(self) -> Iterator[str]:
        """Yield agents and venues of other packages that are missing or different here.

        This is not a contradiction.
        """
        manifest = self._manifest
        for name, agent in manifest.absent_agents.items():
            whose = agent.package or agent.module.partition(".")[0]
            yield f"agent '{name}' is not registered here: its package '{whose}' is not installed"
        for name, then in manifest.agents.items():
            if name not in agents or then.ours or (now := agent_record(name)).ours:
                continue
            if (then.module, then.sha256, then.package or now.package) != (
                now.module,
                now.sha256,
                now.package,
            ):
                recorded, present = (
                    f"{version.package or version.module} ({(version.sha256 or 'no file')[:12]})"
                    for version in (then, now)
                )
                self._others[name] = present
                yield f"agent '{name}' is from {recorded}, but here it is from {present}"
        for name, record in manifest.benchmarks.items():
            venue = self._known[name].market.venue
            if venue not in venues:
                self._no_venue[name] = f"venue '{venue}' is not registered here"
            elif (package := venues.package(venue)) and sha256_of(
                venues.get(venue)
            ) != record.venue_sha256:
                self._no_venue[name] = (
                    f"venue '{venue}' has different rules in {package}, which is installed here"
                )
        yield from (
            f"of '{name}': {why}"
            for name, why in self._no_venue.items()
            if name in self._registered
        )

    def _check_own_files(self) -> None:
        """Compare the runner's own files with the copies on this machine.

        Files without a copy are reported with their hashes.
        """
        files = self._manifest.files or {}
        for agent in (one for one in self._manifest.spec.agents if one.name in WITH_FILES):
            named = {
                one.name for one in named_files(agent.name, agent.params) if one.suffix == ".py"
            }
            for name in sorted(named - {Path(one).name for one in files.get(agent.title, ())}):
                self._broken("files", f"{name} of '{agent.title}' has no recorded hash")
        unseen, place = [], None if self._copies is None else self._copies.resolve()
        for name, digest in sorted(set(chain.from_iterable(one.items() for one in files.values()))):
            copy = None if place is None else (place / name).resolve()
            if (
                place is None
                or copy is None
                or not copy.is_relative_to(place)
                or not copy.is_file()
            ):
                unseen.append(f"{name} {digest[:12]}")
            elif sha256_file(copy) != digest:
                self._broken(
                    "files",
                    f"{name} has the hash {sha256_file(copy)[:12]}, but {digest[:12]} is recorded",
                )
        if unseen:
            why = f"{', '.join(unseen)}: as stated; compare them with your copies (--agent-files)"
            self._say("files", "cannot be checked", why, len(unseen))
        elif files:
            self._say("files", "re-derived")

    def _compare_manifest(self, entries: Mapping[str, DatasetEntry]) -> None:
        """Describe the run as if it started now and compare it with its manifest.

        Facts about packages that are not installed are copied from the manifest.
        """
        manifest = self._manifest
        try:
            episodes = expand(manifest.spec)
            if episodes != manifest.episodes:
                self._broken("spec", "the episodes do not match the spec")
                return
            again = build_manifest(
                manifest.spec, episodes, entries, manifest.versions, stated=manifest
            )
        except (TradeassayError, KeyError, AssertionError) as error:
            self._broken("spec", f"the run's description cannot be recomputed: {error}")
            return
        for field, check in _FIELDS.items():
            then, now = (_plain(getattr(one, field)) for one in (manifest, again))
            for where, old, new in differences(then, now, field):
                self._differs(check, where, old, new)

    def _differs(self, check: str, where: str, old: object, new: object) -> None:
        """Report one field that would be different now.

        Prices may be from the runner's own file.
        """
        leaf = where.rpartition(".")[2]
        if check == "benchmark" and (
            leaf in _WORDS or (leaf == "sha256" and where.startswith("benchmarks"))
        ):
            return
        if check == "agents" and leaf == "module" and all(is_ours(str(one)) for one in (old, new)):
            return  # tradeassay's own code may move to a different file
        said = [f"agents.{name}." for name in self._others]
        said += [f"benchmarks.{name}.venue_sha256" for name in self._no_venue]
        if leaf == "package" or where.startswith(tuple(said)):
            return  # a different version, which is reported: code and rules are compared separately
        then, now = (
            text if len(text := str(one)) <= 60 else f"{text[:57]}..." for one in (old, new)
        )
        what = f"{where} is {then!r}, but here it is {now!r}"
        for name in self._registered:
            if where.startswith(head := f"benchmarks.{name}.config."):
                # A benchmark with different rules is a different benchmark, whatever its id. It may
                # still be honest.
                other = f"{where.removeprefix(head)} is {then}, registered is {now}"
                self._foreign.setdefault(name, []).append(other)
                return
        if where.startswith("models.") and leaf in _TABLED:
            self._say("model tables", "cannot be checked", what)
        else:
            self._broken(check, what)

    def _data(self) -> dict[str, DatasetEntry]:
        """Return the data sets that are here.

        A missing or altered one is described as in the run.
        """
        manifest = self._manifest
        wanted: Mapping[str, PrepareTask] = {}
        with contextlib.suppress(TradeassayError):
            wanted = prepare_tasks(manifest.episodes, self._known, self._home)
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
                and (config := self._known.get(episode.benchmark)) is not None
            }
            entries[name] = DatasetEntry(
                name=record.name, sha256=recorded, facts=record.facts, sessions=(), windows=stated
            )
            try:
                if (synthetic_sha256(name) or recorded) != recorded:
                    broken = f"the recorded world '{name}' differs from the world of its seed"
                else:
                    snapshot = load_verified(name, Path(self._home) if self._home else None)
                    verify_snapshot(snapshot.folder, again=self._data_again)
                    if snapshot.sha256 != recorded:
                        broken = (
                            f"data set '{name}' has hash {snapshot.sha256[:12]}, but "
                            f"{recorded[:12]} is recorded"
                        )
            except TradeassayError as error:  # due to this machine: not a contradiction
                why = f"'{name}' is not here (sha256 {recorded[:12]}): {error}"
                self._say("data", "cannot be checked", why)
                continue
            try:
                if not broken:
                    entries[name] = entry_of(
                        snapshot, wanted[name].windows if name in wanted else ()
                    )
            except TradeassayError as error:
                broken = error.message
            if broken:
                self._broken("data", broken)
                self._say("data", "contradicted")
            else:
                self._intact.add(name)
                self._say("data", "re-derived")
        return entries

    def _check_episodes(self) -> None:
        manifest, tasks = self._manifest, {}
        for episode in manifest.episodes:
            task = CheckTask(
                play=play_task(
                    self._place, self._home, manifest, episode, self._benchmark(episode)
                ),
                data_intact=episode.dataset in self._intact,
                model=manifest.models.get(episode.label),
                no_venue=self._no_venue.get(episode.benchmark, ""),
                other_code=self._others.get(episode.agent.name, ""),
            )
            tasks[episode.key] = ENCODE(task)
        found = self._perform(tasks, "episodes played again")
        for key in tasks:
            if key in found:
                self._take(CHECKED_DECODER.decode(found[key]))
        # Every badge states the source of the answers. It must match the agent.
        run = Run(self._place.path, manifest)
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

        If the run has different rules, its own benchmark is returned, and the report states so.
        ``venue`` replaces a venue that is not registered here.
        """
        registered = self._registered.get(episode.benchmark)
        if registered is None or episode.benchmark in self._foreign:
            benchmark = self._manifest.benchmark(episode)
        else:
            window = self._manifest.windows.get(episode.setting)
            benchmark = played_as(registered, episode, self._manifest.spec, window)
        if venue is None or episode.benchmark not in self._no_venue:
            return benchmark
        return msgspec.structs.replace(
            benchmark, market=msgspec.structs.replace(benchmark.market, venue=venue)
        )

    def _check_scores(self) -> None:
        if len(self._intact) == len(self._manifest.datasets):
            super()._check_scores()
        else:
            self._say("scores", "cannot be checked", "data is missing or changed")

    def _scores(self) -> bytes:
        if not self._no_venue:
            return self._scored_as(None)
        then = msgspec.json.decode(self._place.scores.read_bytes())
        wrong = [
            {
                (where, repr(old), repr(new))
                for where, old, new in differences(then, msgspec.json.decode(again), near=True)
            }
            for again in map(self._scored_as, _STAND_INS)
        ]
        for where, old, new in sorted(wrong[0] & wrong[1])[:1]:
            raise ValueError(f"{where} is {old}, but recomputed it is {new}")
        raise NotReplayable("; ".join(dict.fromkeys(self._no_venue.values())))

    def _scored_as(self, venue: str | None) -> bytes:
        manifest = self._manifest
        tasks = score_tasks(
            self._place, self._home, manifest, partial(self._benchmark, venue=venue)
        )
        results = self._perform(
            {key: ENCODE(task) for key, task in tasks.items()}, "agents scored again"
        )
        if len(results) < len(tasks):
            # Possibly because of this machine, which is not a contradiction.
            raise NotReplayable("a scoring process died")
        parts = [SCORED_DECODER.decode(payload) for payload in results.values()]
        level = manifest.spec.bootstrap.level
        return encode_scores(gather(manifest.work_sha256, manifest.episodes, parts, level=level))

    def _perform(self, payloads: dict[str, bytes], what: str) -> dict[str, bytes]:
        results: dict[str, bytes] = {}
        tasks = [Task(key, payload) for key, payload in payloads.items()]
        performed = self._executor.perform(tasks, lambda key, sessions: None)
        for done, result in enumerate(performed, 1):
            if self._progress is not None:
                self._progress(what, done, len(tasks))
            if isinstance(result, Lost):
                self._say("decisions", "cannot be checked", f"{result.key}: {result.reason}", 1)
            else:
                results[result.key] = result.payload
        return results


class _ProgramsVerifier(_Verifier[CodeManifest]):
    """Verifies a run of programs.

    ``again`` replays the episodes. It is None if programs must not be examined. ``_closed`` is the
    reason why the benchmark cannot be opened. Then only the parts that need no program are checked.
    """

    def __init__(
        self,
        place: RunFolder,
        manifest: CodeManifest,
        copies: Path | None,
        again: ExamineAgain | None,
    ) -> None:
        super().__init__(place, manifest)
        self._again = again
        self._spec: CodeSpec | None = None
        self._protocol: CodeProtocol | None = None
        self._closed = ""
        self._elsewhere: list[str] = []
        if manifest.benchmark not in code_benchmarks():
            self._closed = f"benchmark '{manifest.benchmark}' is not registered here"
            return
        self._spec = recorded_code_spec(manifest)
        foreign = [str(one) for one in code_departures(self._spec) if one.rule]
        if foreign:
            self._closed = (
                f"the rules differ from those of '{manifest.benchmark}': {'; '.join(foreign)}"
            )
            return
        try:
            self._protocol = reopen(manifest, copies)
        except TradeassayError as error:
            self._closed = str(error)

    def _check_manifest(self) -> None:
        before, manifest, spec = len(self._violations), self._manifest, self._spec
        if spec is not None:
            if sha256_of(spec) != manifest.work_sha256:
                self._broken("spec", "the spec does not match its hash in the manifest")
            if manifest.asked != _plain(spec):
                self._broken("spec", "the spec contains a field that the benchmark does not have")
            if spec.benchmark != manifest.benchmark:
                self._broken(
                    "spec", f"the spec is of '{spec.benchmark}', not of '{manifest.benchmark}'"
                )
        if not manifest.secret:
            self._broken("spec", "the secret of its draws is missing")
        if self._protocol is not None:
            self._compare_manifest(self._protocol)
        if len(self._violations) > before:
            self._say("rules", "contradicted")
        elif self._closed:
            self._say("rules", "cannot be checked", self._closed)
        else:
            self._say("rules", "re-derived")

    def _compare_manifest(self, protocol: CodeProtocol) -> None:
        """Describe the run as if it started now and compare it with its manifest.

        If the benchmark of another package has different rules here, it is a different version.
        This is not a contradiction, and no program can be examined with it.
        """
        manifest, rules = self._manifest, list[str]()
        try:
            then, now = manifest.facts, protocol.facts()
            for name in sorted({*then, *now}):
                old, new = then.get(name, "missing"), now.get(name, "missing")
                if old != new and name.startswith("package "):
                    self._elsewhere.append(f"{name.removeprefix('package ')} {old[:12]}")
                    self._notes.append(
                        f"programs were examined with {self._elsewhere[-1]}, here with {new[:12]}"
                    )
                elif old != new:
                    rules.append(f"{name} is {old[:12]}, but here it is {new[:12]}")
            if rules and not is_ours(type(protocol).__module__):
                package = code_protocols.package(manifest.benchmark)
                whose = f"'{manifest.benchmark}'{f' in {package}' if package else ''}"
                self._closed = f"the rules differ from those of {whose}: {'; '.join(rules)}"
                self._protocol = None
                return
            if code_episodes(manifest.benchmark, protocol) != manifest.episodes:
                self._broken("spec", "the episodes do not match the spec")
            if protocol.notes != manifest.notes:
                self._broken("spec", "the notes do not match the spec")
        except (TradeassayError, KeyError) as error:
            self._broken("spec", f"the run's description cannot be recomputed: {error}")
            return
        kept, known = (
            _plain(one or {})
            for one in (manifest.models, priced_models(protocol, manifest.episodes))
        )
        for where, was, here in differences(kept, known, "models"):
            what = f"{where} is {was!r}, but here it is {here!r}"
            if where.rpartition(".")[2] in _TABLED or not kept:
                self._say("model tables", "cannot be checked", what)
            else:
                self._broken("models", what)
        for what in rules:
            self._broken("benchmark", what)
        python = manifest.versions.python.split(".")[:2]
        if python != present_versions().python.split(".")[:2]:
            self._elsewhere.append(f"Python {'.'.join(python)}")

    def _check_episodes(self) -> None:
        again: Mapping[str, Replayed | TradeassayError] = {}
        why = self._closed or "the examination of programs was turned off"
        if self._again is not None and self._protocol is not None:
            try:
                again = self._again(self._protocol)
            except NotReplayable as error:
                why = str(error)
            except (TradeassayError, KeyError) as error:
                self._broken("programs", f"the programs cannot be examined again: {error}")
        for episode in self._manifest.episodes:
            replayed = again.get(episode.key)
            dated = self._manifest.models or {}
            checked = check_program(self._place, episode, self._protocol, replayed, why, dated)
            if checked.violations and isinstance(replayed, Replayed):
                # Programs may behave differently with other packages, or be too slow for a busy
                # machine. The record is then accepted, and the report states so. A record that
                # contradicts itself is still wrong.
                late = replayed.late or _by_the_clock(
                    self._place.events(episode.key).read_bytes(), replayed.events
                )
                reasons = []
                if self._elsewhere:
                    reasons.append(f"they were examined with {', '.join(self._elsewhere)}")
                if late:
                    reasons.append("one exceeded its time limit, here or as stated by the runner")
                if reasons:
                    reason = f"their results differ here; {' and '.join(reasons)}"
                    checked = check_program(
                        self._place, episode, self._protocol, None, reason, dated
                    )
            self._take(checked)

    def _scores(self) -> bytes:
        if self._protocol is None:
            raise NotReplayable(self._closed)
        return code_scores(self._protocol, self._manifest, self._place)


def _by_the_clock(then: bytes, now: bytes) -> bool:
    """Return whether the first different line is a time-out that hides no failure here."""
    pairs = zip(then.splitlines(), now.splitlines(), strict=False)
    line, again = next((pair for pair in pairs if pair[0] != pair[1]), (b"", b""))
    if not OUT_OF_TIME.search(line):
        return False
    changed = differences(*(msgspec.json.decode(one)["result"] for one in (line, again)))
    return not any(b'"passed"' in msgspec.json.encode(was) for _, was, _ in changed)


def _plain(value: object) -> Any:
    return msgspec.json.decode(canonical_json(value))
