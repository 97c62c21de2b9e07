"""Seal and check plans: the commitments of a run before its first answer.

A sealed plan commits to the spec and its secret, the data, the rules, the prompts and the files of
every agent.
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

    ``spec`` is the spec of a trading run, or of a run of programs if ``benchmark`` is not empty. It
    includes the secret. ``facts`` contains the facts that the run's manifest must have: hashes of
    data, rules, venues, prompts and agents' files. ``open`` lists the parts to which the plan does
    not commit.
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
    """Write a sealed plan for a run to ``file``. Return the seal and the plan.

    The spec in the plan contains the secret of the run. The plan does not commit to data that is
    not in the store yet, or to a program behind a web address. Raises :class:`UserError` for a
    spec that cannot run, and :class:`~tradeassay.core.errors.DataError` for damaged data.
    """
    whole = with_secret(spec)
    open: list[str] = []
    if isinstance(whole, RunSpec):
        episodes = expand(whole)
        played = {
            episode.benchmark: played_as(benchmarks.get(episode.benchmark), episode, whole)
            for episode in episodes
        }
        entries: dict[str, DatasetEntry] = {}
        home_path = None if home is None else Path(home).absolute()
        for name, task in prepare_tasks(episodes, played, None).items():
            try:
                snapshot = load_dataset(name, home_path)
            except UserError:
                if task.windows or name.startswith("synthetic/"):
                    raise
                # The data may contain future days, so the plan cannot commit to it.
                open.append(f"data set '{name}'")
                continue
            entries[name] = describe_open(snapshot, task)
        files = agent_files(episodes)
        facts = build_manifest(whole, episodes, entries, present_versions(), files=files).facts
        remote = dict.fromkeys(
            episode.label for episode in episodes if episode.agent.name == "http"
        )
        open += [f"the program of agent '{label}' over HTTP" for label in remote]
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
        return work_sha256(spec), tuple(episode.key for episode in expand(spec))
    episodes = code_episodes(spec.benchmark, find_protocol(spec.benchmark)(spec))
    return sha256_of(spec), tuple(episode.key for episode in episodes)


def read_plan(file: Path) -> tuple[Sealed, PlanRecord]:
    """Return the seal and the plan in a file.

    Raises :class:`RunError` for a broken seal and for a plan that contradicts itself, and
    :class:`UserError` for a sealed run.
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
            # A path in a received plan is never opened, so its episodes are not recomputed.
            task_file = getattr(spec, "task_file", None)
            work = (sha256_of(spec), record.episodes) if task_file else _work_of(spec)
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
    if tuple(episode.key for episode in manifest.episodes) != record.episodes:
        yield "the run's episodes differ from the plan"
    planned, actual = record.facts, manifest.facts
    for name in sorted({*planned, *actual} - set(record.open)):
        if name not in planned:
            yield f"the plan does not commit to {name}"
        elif planned[name] != actual.get(name):
            found = actual.get(name, "missing")[:12]
            yield f"{name} is {found}, but the plan has {planned[name][:12]}"


def verify_anything(
    path: Path,
    *,
    plan: Path | None = None,
    check: Callable[[Path], VerifyReport] = verify,
) -> tuple[Sealed | None, VerifyReport | None]:
    """Verify a run's folder or a sealed run. Return the seal and the report.

    The seal is None for a folder. The report is None for the seal of a plan, which makes no claims.
    With ``plan``, the file of a sealed plan, the report also states whether the run follows the
    plan. ``check`` is the function that verifies a folder. Raises :class:`RunError` for a broken
    seal.
    """
    if not path.is_file():
        return None, _as_planned(check(path), path, plan)
    with open_seal(path) as (folder, sealed):
        if sealed.kind == "plan":
            if plan is not None:
                raise UserError(
                    f"{path} is a plan, not a run", hint="give the run that follows this plan"
                )
            read_plan(path)
            return sealed, None
        report = _as_planned(check(folder), folder, plan)
        freedom = freedom_of(folder, read_manifest(folder / "manifest.json"), alone=True)
    return sealed, msgspec.structs.replace(report, freedom=freedom, folder=str(path))


def _as_planned(report: VerifyReport, folder: Path, plan: Path | None) -> VerifyReport:
    """Return a report with the claim that the run follows its plan, if there is a plan."""
    if plan is None:
        return report
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
        report,
        violations=(*report.violations, *broken),
        claims=(*report.claims, claim),
        notes=(*(note for note in report.notes if note != OWN_SECRET), *notes),
    )
