"""Plans: what a run commits to before its first answer, and the log that says how many plans there were.

A sealed plan binds the spec with its secret, data, rules, prompts and the files of every agent. Its secret may be
drawn from a public beacon instead, of which only source and round are known when the plan is published. A log of
an author's plans is a chain of hashes that is only ever appended to: whoever publishes fifty plans and reveals
the one that went well shows forty-nine that are missing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import msgspec

from tradeassay.benchmarks import benchmarks
from tradeassay.benchmarks.code_protocol import CodeSpec, find_protocol
from tradeassay.core.errors import UNDECODABLE, RunError, TradeassayError, UserError
from tradeassay.core.files import write_atomic
from tradeassay.core.hashing import canonical_json, sha256_bytes, sha256_of
from tradeassay.data import load_dataset
from tradeassay.runs.play.programs import code_episodes, recorded_code_spec
from tradeassay.runs.play.resume import with_secret
from tradeassay.runs.play.trading import prepare_tasks
from tradeassay.runs.spec.episode import expand
from tradeassay.runs.spec.run_spec import RunSpec, work_sha256
from tradeassay.runs.store.folder import Versions, present_versions, version_changes
from tradeassay.runs.store.manifest import (
    DatasetEntry,
    Manifest,
    RunManifest,
    agent_files,
    build_manifest,
    describe_open,
    played_as,
    read_manifest,
)
from tradeassay.runs.store.outcome import ClaimOutcome, Violation
from tradeassay.runs.verify.freedom import freedom_of
from tradeassay.runs.verify.report import OWN_SECRET, VerifyReport, verify
from tradeassay.runs.verify.seal import Sealed, Signers, open_seal, write_seal

LOG = "plans.jsonl"
"""The log of plans in a folder of runs."""
ANYBODY = "anonymous"


class PlanRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan commits to before the first answer: the spec, and what a result depends on.

    ``spec`` is that of a run that trades, or of the programs of ``benchmark``; it has its secret, or the beacon
    that the secret will be drawn from. ``author`` says whose plan it is. ``facts`` are those of the run's
    manifest: hashes of data, rules, venues, prompts and agents' files; ``drawn`` names those that follow from a
    secret nobody knows yet. ``open`` says what is not committed to."""

    spec: msgspec.Raw
    author: str = ""
    benchmark: str = ""
    work_sha256: str
    episodes: tuple[str, ...]
    facts: dict[str, str]
    drawn: tuple[str, ...] = ()
    open: tuple[str, ...]
    versions: Versions

    @property
    def asked(self) -> RunSpec | CodeSpec:
        """The spec, as it is to be run; raises :class:`UserError` for a benchmark of programs not known here."""
        if not self.benchmark:
            return msgspec.json.decode(self.spec, type=RunSpec)
        return msgspec.json.decode(self.spec, type=find_protocol(self.benchmark).Spec)


def seal_plan(
    spec: RunSpec | CodeSpec,
    file: Path | str,
    *,
    author: str | None = None,
    key: Path | None = None,
    home: Path | str | None = None,
) -> tuple[Sealed, PlanRecord]:
    """Commit to a run before its first answer; returns the plan too, whose spec has its secret or its beacon.

    Data that is not in the store yet is left open, and so is a program behind a web address. Raises
    :class:`UserError` for a spec that cannot be played, and :class:`~tradeassay.core.errors.DataError` for data
    that is damaged."""
    if spec.beacon and spec.beacon.value:
        raise UserError("a plan names a beacon's round before its value is known", hint="leave the value out")
    whole = _unkeyed(spec) if spec.beacon else with_secret(spec)
    drawn: tuple[str, ...] = ()
    open: list[str] = []
    if isinstance(whole, RunSpec):
        episodes = expand(whole)
        ways = {one.benchmark: played_as(benchmarks.get(one.benchmark), one, whole) for one in episodes}
        entries: dict[str, DatasetEntry] = {}
        place = None if home is None else Path(home).absolute()
        for name, task in prepare_tasks(episodes, ways, None).items():
            try:
                snapshot = load_dataset(name, place)
            except UserError:
                if task.windows or name.startswith("synthetic/"):
                    raise
                open.append(f"data set '{name}'")  # of days to come, perhaps: that is said, and not committed to
                continue
            entries[name] = describe_open(snapshot, task)
        files = agent_files(episodes)
        facts = build_manifest(whole, episodes, entries, present_versions(), files=files).facts
        far = dict.fromkeys(one.label for one in episodes if one.agent.name == "http")
        open += [f"what answers for agent '{label}' over HTTP" for label in far]
    else:
        kind = find_protocol(whole.benchmark)
        facts = kind(whole).facts()
        if whole.beacon:
            # What two secrets give differently follows from the secret, and is made again once that is known.
            facts, other = (kind(msgspec.structs.replace(whole, secret=sign * 32)).facts() for sign in "01")
            drawn = tuple(sorted(name for name in facts if facts[name] != other.get(name)))
    work, keys = _work_of(whole)
    plan = PlanRecord(
        spec=msgspec.Raw(canonical_json(whole)),
        author=author or ANYBODY,
        benchmark="" if isinstance(whole, RunSpec) else whole.benchmark,
        work_sha256=work,
        episodes=keys,
        facts={name: digest for name, digest in facts.items() if name not in drawn},
        drawn=drawn,
        open=tuple(open),
        versions=present_versions(),
    )
    return write_seal(Path(file), "plan", {"plan.json": canonical_json(plan)}, key), plan


def _work_of(spec: RunSpec | CodeSpec) -> tuple[str, tuple[str, ...]]:
    """Return the hash of what a spec asks for, and the keys of its episodes."""
    if isinstance(spec, RunSpec):
        return work_sha256(spec), tuple(one.key for one in expand(spec))
    episodes = code_episodes(spec.benchmark, find_protocol(spec.benchmark)(spec))
    return sha256_of(spec), tuple(one.key for one in episodes)


def _unkeyed(spec: RunSpec | CodeSpec) -> RunSpec | CodeSpec:
    """Return a spec as it is before its beacon's value is known."""
    if not spec.beacon:
        return spec
    beacon = msgspec.structs.replace(spec.beacon, value="")
    return msgspec.structs.replace(spec, secret=msgspec.UNSET, beacon=beacon)


def read_plan(file: Path) -> tuple[Sealed, PlanRecord]:
    """Open a sealed plan; raises :class:`RunError` for a broken seal, :class:`UserError` for that of a run."""
    with open_seal(file) as (folder, sealed):
        if sealed.kind != "plan":
            raise UserError(f"{file} seals a run, not a plan", hint="give a file that tradeassay seal --plan made")
        try:
            content = (folder / "plan.json").read_bytes()
            record = msgspec.json.decode(content, type=PlanRecord)
            spec = record.asked
            named = getattr(spec, "task_file", None)  # a path in a received plan is never opened
            work = (sha256_of(spec), record.episodes) if named else _work_of(spec)
        except (FileNotFoundError, UserError, *UNDECODABLE) as error:
            raise RunError(
                f"{file} does not hold a plan: {error}", hint="tradeassay seal --plan makes one"
            ) from error
    honest = not record.drawn or (record.benchmark and spec.beacon)
    same = work == (record.work_sha256, record.episodes) and canonical_json(record) == content
    if not (honest and same):
        raise RunError(f"{file}: the plan contradicts itself", hint="do not believe it")
    return sealed, record


def check_plan(manifest: Manifest, record: PlanRecord) -> Iterator[str]:
    """Yield everything in which a run is not the one that a plan commits to."""
    trades = isinstance(manifest, RunManifest)
    if trades == bool(record.benchmark):
        yield f"the plan is of {'programs' if record.benchmark else 'a run that trades'}"
        return
    if isinstance(manifest, RunManifest):
        works = [work_sha256(one) for one in (_unkeyed(manifest.spec), manifest.spec) if isinstance(one, RunSpec)]
    else:
        spec = recorded_code_spec(manifest)
        works = [sha256_of(_unkeyed(spec)), sha256_of(spec)]
    if works != [record.work_sha256, manifest.work_sha256]:
        yield "the run's spec is not the one that was committed to"
    if tuple(one.key for one in manifest.episodes) != record.episodes:
        yield "the run's episodes are not those that were committed to"
    then, now = record.facts, manifest.facts
    for name in sorted({*then, *now} - set(record.open) - set(record.drawn)):
        if name not in then:
            yield f"the plan does not commit to {name}"
        elif then[name] != now.get(name):
            yield f"{name} is {now.get(name, 'missing')[:12]}, committed to was {then[name][:12]}"


def verify_anything(
    path: Path,
    *,
    plan: Path | None = None,
    signers: Signers | None = None,
    check: Callable[[Path], VerifyReport] = verify,
) -> tuple[Sealed | None, VerifyReport | None]:
    """Verify a run's folder, or a sealed run on its own; the data is asked for by its hash.

    With a ``plan`` the run must be the one committed to. ``check`` is how a folder is verified. Returns what is
    known about the seal, if there is one, and what became of the claims: None for the seal of a plan, which makes
    none. Raises :class:`RunError` for a seal that is broken."""
    if not path.is_file():
        if signers is not None:
            raise UserError(f"{path} is a folder; only a seal is signed", hint="verify the file made by seal")
        return None, _as_planned(check(path), path, plan)
    with open_seal(path, signers) as (folder, sealed):
        if sealed.kind == "plan":
            if plan is not None:
                raise UserError(f"{path} is a plan, not a run", hint="give the run that was made by it")
            read_plan(path)
            return sealed, None
        found = _as_planned(check(folder), folder, plan)
        found = msgspec.structs.replace(
            found, freedom=freedom_of(folder, read_manifest(folder / "manifest.json"), alone=True)
        )
    return sealed, msgspec.structs.replace(found, folder=str(path))


def _as_planned(found: VerifyReport, folder: Path, plan: Path | None) -> VerifyReport:
    if plan is None:
        return found
    sealed, record = read_plan(plan)
    manifest = read_manifest(folder / "manifest.json")
    broken = tuple(Violation(check="plan", what=what) for what in check_plan(manifest, record))
    notes = [f"the plan says something only if its root was published before the run began: {sealed.root}"]
    changes = version_changes(record.versions, manifest.versions)
    if changes:
        notes.append(f"the plan was made with other versions: {'; '.join(changes)}")
    log = PlanLog.read(plan.resolve().parent / LOG)
    notes.append(log.words(sealed.root))
    for line in log.lines:
        if line.root == sealed.root and line.author != record.author:
            what = f"the log says that it is {line.author}'s; it was sealed as {record.author}'s"
            broken = (*broken, Violation(check="plan", what=what))
    claim = ClaimOutcome(claim="plan", outcome="contradicted" if broken else "re-derived")
    if record.open and not broken:
        why = f"it does not commit to {', '.join(record.open)}"
        claim = ClaimOutcome(claim="plan", outcome="cannot be checked", why=why)
    return msgspec.structs.replace(
        found,
        violations=(*found.violations, *broken),
        claims=(*found.claims, claim),
        notes=(*(one for one in found.notes if one != OWN_SECRET), *notes),
    )


# -- the log ---


class PlanLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One plan in the log: its number, whose it is, its root, and the hash of the line ``before`` it."""

    number: int
    author: str
    root: str
    before: str


class PlanLog:
    """A log of plans, as read: its lines, and which of them a run of its folder was made by (``revealed``)."""

    def __init__(self, content: bytes, lines: tuple[PlanLine, ...], revealed: dict[str, str]) -> None:
        self.content, self.lines, self.revealed = content, lines, revealed

    @classmethod
    def read(cls, file: Path) -> PlanLog:
        """Read a log, which need not exist, and find its plans and their runs beside it.

        Raises :class:`RunError` for one that is not whole: a line was changed, taken out or put in."""
        content = file.read_bytes() if file.is_file() else b""
        lines: list[PlanLine] = []
        before = ""
        for number, text in enumerate(content.splitlines(), start=1):
            try:
                line = msgspec.json.decode(text, type=PlanLine)
            except UNDECODABLE as error:
                raise RunError(f"{file}, line {number} is damaged: {error}", hint=_RESTORE) from error
            if (line.number, line.before, canonical_json(line)) != (number, before, text):
                raise RunError(f"{file}: line {number} does not follow from the one before it", hint=_RESTORE)
            lines.append(line)
            before = sha256_bytes(text)
        if content and not content.endswith(b"\n"):
            raise RunError(f"{file}: the last line is torn", hint=_RESTORE)
        known = {line.root: line.author for line in lines}
        plans: list[tuple[str, PlanRecord]] = []
        for path in sorted(file.parent.glob("*.plan.seal")) if known else ():
            with suppress(TradeassayError):  # a file that holds no plan reveals none
                sealed, record = read_plan(path)
                if known.get(sealed.root) == record.author:
                    plans.append((sealed.root, record))
        revealed: dict[str, str] = {}
        for path in sorted(file.parent.glob("*/manifest.json")) if plans else ():
            with suppress(TradeassayError):
                manifest = read_manifest(path)
                roots = (root for root, record in plans if not any(check_plan(manifest, record)))
                if root := next(roots, ""):
                    revealed[path.parent.name] = root
        return cls(content, tuple(lines), revealed)

    @property
    def author(self) -> str:
        """Whose the last plan is: the next one is theirs too, unless somebody else says so."""
        return self.lines[-1].author if self.lines else ANYBODY

    @property
    def authors(self) -> dict[str, tuple[int, int]]:
        """How many plans every author has, and how many of them no run here was made by."""
        found: dict[str, tuple[int, int]] = {}
        for line in self.lines:
            plans, hidden = found.get(line.author, (0, 0))
            found[line.author] = plans + 1, hidden + (line.root not in self.revealed.values())
        return found

    def words(self, root: str) -> str:
        """Say which of an author's plans one is, and how many of them are not revealed."""
        line = next((one for one in self.lines if one.root == root), None)
        if line is None:
            return f"the plan {root[:12]} is in no log: how many others there were is not known"
        plans, hidden = self.authors[line.author]
        hidden -= root not in self.revealed.values()  # the run in question reveals it
        return f"this is 1 of {plans} plans of {line.author}, {hidden} unrevealed"


_RESTORE = "the log is only ever appended to: restore it"


def append_plan(file: Path, root: str, author: str | None = None) -> PlanLine:
    """Append a plan to a whole log; without an ``author`` it is whose the last one was."""
    log = PlanLog.read(file)
    before = sha256_bytes(log.content.splitlines()[-1]) if log.lines else ""
    line = PlanLine(number=len(log.lines) + 1, author=author or log.author, root=root, before=before)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(file, log.content + canonical_json(line) + b"\n")
    return line


def publish_log(log: PlanLog, target: Path) -> None:
    """Publish a log; raises :class:`RunError` where what was published there before is not its beginning."""
    earlier = target.read_bytes() if target.is_file() else b""
    if not log.content.startswith(earlier):
        raise RunError(f"the log of plans lacks plans that {target} has published", hint=_RESTORE)
    if log.content:
        target.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(target, log.content)
