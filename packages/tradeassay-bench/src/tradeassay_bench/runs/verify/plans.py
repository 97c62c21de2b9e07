"""Seal and check plans: the commitments of a run before its first answer.

A sealed plan binds the spec with its secret, data, rules, prompts and the files of every agent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from tradeassay.core.errors import UNDECODABLE, UserError
from tradeassay.core.hashing import canonical_json, sha256_of
from tradeassay_bench.benchmarks import benchmarks
from tradeassay_bench.benchmarks.code_protocol import CodeSpec, find_protocol
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.data import load_dataset
from tradeassay_bench.runs.play.programs import code_episodes, recorded_code_spec
from tradeassay_bench.runs.play.resume import with_secret
from tradeassay_bench.runs.play.trading import prepare_tasks
from tradeassay_bench.runs.spec.episode import expand
from tradeassay_bench.runs.spec.run_spec import RunSpec, work_sha256
from tradeassay_bench.runs.store.folder import Versions, present_versions, version_changes
from tradeassay_bench.runs.store.manifest import (
    DatasetEntry,
    Manifest,
    RunManifest,
    agent_files,
    build_manifest,
    describe_open,
    played_as,
    read_manifest,
)
from tradeassay_bench.runs.store.outcome import ClaimOutcome, Violation
from tradeassay_bench.runs.verify.freedom import freedom_of
from tradeassay_bench.runs.verify.report import OWN_SECRET, VerifyReport, verify
from tradeassay_bench.runs.verify.seal import Sealed, open_seal, write_seal


class PlanRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The commitments of a plan: the spec, and everything that determines a result.

    ``spec`` is the spec of a trading run, or of the programs of ``benchmark``. It includes its
    secret. ``facts`` are the facts of the run's manifest: hashes of data, rules, venues, prompts
    and agents' files. ``open`` lists the uncommitted parts.
    """

    spec: msgspec.Raw
    benchmark: str = ""
    work_sha256: str
    episodes: tuple[str, ...]
    facts: dict[str, str]
    open: tuple[str, ...]
    versions: Versions

    @property
    def asked(self) -> RunSpec | CodeSpec:
        """Return the spec of the planned run.

        Raises :class:`UserError` for an unknown benchmark of programs.
        """
        if not self.benchmark:
            return msgspec.json.decode(self.spec, type=RunSpec)
        return msgspec.json.decode(self.spec, type=find_protocol(self.benchmark).Spec)


def seal_plan(
    spec: RunSpec | CodeSpec,
    file: Path | str,
    *,
    home: Path | str | None = None,
) -> tuple[Sealed, PlanRecord]:
    """Commit to a run before its first answer. Return the seal and the plan.

    The spec of the plan has its secret. Data that is not in the store yet is left open, and so is a
    program behind a web address. Raises :class:`UserError` for a spec that cannot run, and
    :class:`~tradeassay.core.errors.DataError` for damaged data.
    """
    whole = with_secret(spec)
    open: list[str] = []
    if isinstance(whole, RunSpec):
        episodes = expand(whole)
        ways = {
            one.benchmark: played_as(benchmarks.get(one.benchmark), one, whole) for one in episodes
        }
        entries: dict[str, DatasetEntry] = {}
        place = None if home is None else Path(home).absolute()
        for name, task in prepare_tasks(episodes, ways, None).items():
            try:
                snapshot = load_dataset(name, place)
            except UserError:
                if task.windows or name.startswith("synthetic/"):
                    raise
                open.append(
                    f"data set '{name}'"
                )  # The data may be of future days. This is reported, and not committed to.
                continue
            entries[name] = describe_open(snapshot, task)
        files = agent_files(episodes)
        facts = build_manifest(whole, episodes, entries, present_versions(), files=files).facts
        far = dict.fromkeys(one.label for one in episodes if one.agent.name == "http")
        open += [f"the program of agent '{label}' over HTTP" for label in far]
    else:
        facts = find_protocol(whole.benchmark)(whole).facts()
    work, keys = _work_of(whole)
    plan = PlanRecord(
        spec=msgspec.Raw(canonical_json(whole)),
        benchmark="" if isinstance(whole, RunSpec) else whole.benchmark,
        work_sha256=work,
        episodes=keys,
        facts=facts,
        open=tuple(open),
        versions=present_versions(),
    )
    return write_seal(Path(file), "plan", {"plan.json": canonical_json(plan)}), plan


def _work_of(spec: RunSpec | CodeSpec) -> tuple[str, tuple[str, ...]]:
    """Return the hash of a spec's work and the keys of its episodes."""
    if isinstance(spec, RunSpec):
        return work_sha256(spec), tuple(one.key for one in expand(spec))
    episodes = code_episodes(spec.benchmark, find_protocol(spec.benchmark)(spec))
    return sha256_of(spec), tuple(one.key for one in episodes)


def read_plan(file: Path) -> tuple[Sealed, PlanRecord]:
    """Open a sealed plan.

    Raises :class:`RunError` for a broken seal and :class:`UserError` for a sealed run.
    """
    with open_seal(file) as (folder, sealed):
        if sealed.kind != "plan":
            raise UserError(
                f"{file} is the seal of a run, not of a plan",
                hint="give a file from tradeassay seal --plan",
            )
        try:
            content = (folder / "plan.json").read_bytes()
            record = msgspec.json.decode(content, type=PlanRecord)
            spec = record.asked
            named = getattr(spec, "task_file", None)  # a path in a received plan is never opened
            work = (sha256_of(spec), record.episodes) if named else _work_of(spec)
        except (FileNotFoundError, UserError, *UNDECODABLE) as error:
            raise RunError(
                f"{file} does not contain a plan: {error}",
                hint="make one with: tradeassay seal --plan",
            ) from error
    if work != (record.work_sha256, record.episodes) or canonical_json(record) != content:
        raise RunError(f"{file}: the plan contradicts itself", hint="do not trust it")
    return sealed, record


def check_plan(manifest: Manifest, record: PlanRecord) -> Iterator[str]:
    """Yield the differences between a run and its plan."""
    trades = isinstance(manifest, RunManifest)
    if trades == bool(record.benchmark):
        yield f"the plan is of {'programs' if record.benchmark else 'a trading run'}"
        return
    if isinstance(manifest, RunManifest):
        work = work_sha256(manifest.spec)
    else:
        work = sha256_of(recorded_code_spec(manifest))
    if not work == record.work_sha256 == manifest.work_sha256:
        yield "the run's spec differs from the plan"
    if tuple(one.key for one in manifest.episodes) != record.episodes:
        yield "the run's episodes differ from the plan"
    then, now = record.facts, manifest.facts
    for name in sorted({*then, *now} - set(record.open)):
        if name not in then:
            yield f"the plan does not commit to {name}"
        elif then[name] != now.get(name):
            yield f"{name} is {now.get(name, 'missing')[:12]}, but the plan has {then[name][:12]}"


def verify_anything(
    path: Path,
    *,
    plan: Path | None = None,
    check: Callable[[Path], VerifyReport] = verify,
) -> tuple[Sealed | None, VerifyReport | None]:
    """Verify a run's folder, or a sealed run. Its data is found by hash.

    With a ``plan`` the run must be the planned run. ``check`` verifies a folder. Returns the seal,
    if there is one, and the report. The report is None for the seal of a plan, which makes no
    claims. Raises :class:`RunError` for a broken seal.
    """
    if not path.is_file():
        return None, _as_planned(check(path), path, plan)
    with open_seal(path) as (folder, sealed):
        if sealed.kind == "plan":
            if plan is not None:
                raise UserError(
                    f"{path} is a plan, not a run", hint="give the run that followed it"
                )
            read_plan(path)
            return sealed, None
        found = _as_planned(check(folder), folder, plan)
        found = msgspec.structs.replace(
            found, freedom=freedom_of(folder, read_manifest(folder / "manifest.json"), alone=True)
        )
    return sealed, msgspec.structs.replace(found, folder=str(path))


def _as_planned(found: VerifyReport, folder: Path, plan: Path | None) -> VerifyReport:
    """Return a report with the claim that the run follows its plan."""
    if plan is None:
        return found
    sealed, record = read_plan(plan)
    manifest = read_manifest(folder / "manifest.json")
    broken = tuple(Violation(check="plan", what=what) for what in check_plan(manifest, record))
    notes = [
        "the plan proves something only if its root was published before the run began: "
        f"{sealed.root}"
    ]
    changes = version_changes(record.versions, manifest.versions)
    if changes:
        notes.append(f"the plan was made with other versions: {'; '.join(changes)}")
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
