"""The file ``assay.json`` beside a run's scores: written, read, and made again to be checked.

Two things in it follow from no run. One is how many tries the run's folder held when the assay was made: runs come
and go. The other is what a leak test said, which is not repeated. The assay is made again with both as they are
recorded, so that every other number still has to follow."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tradeassay.assay.verdict import diagnostics
from tradeassay.assay.verdict.build import OutsideFacts, assay_run
from tradeassay.assay.verdict.record import AgentAssay, Assay, LeakEvidence, VerdictConfig
from tradeassay.core.errors import UNDECODABLE, RunError, TradeassayError
from tradeassay.core.files import write_atomic
from tradeassay.core.hashing import canonical_json
from tradeassay.runs.store.outcome import ClaimOutcome, Word
from tradeassay.runs.verify.attested import vouch, vouched
from tradeassay.runs.verify.replay import differences
from tradeassay.runs.verify.report import NOT_ASSAYED, VerifyReport

if TYPE_CHECKING:
    from tradeassay.assay.memory import MemoryRecord
    from tradeassay.runs import Run

LEAKS_STATED = "leak tests are not repeated: what they say is as stated by the runner"


class RecordedAssay(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What lies in ``assay.json`` beside a run's scores: the assay, the hash of the scores it is about, and the
    records of what models were asked about their memory."""

    scores_sha256: str
    assay: Assay
    memory: tuple[msgspec.Raw, ...] = ()


def record_assay(run: Run, made: Assay, memory: Sequence[MemoryRecord] = ()) -> Path:
    """Keep the assay of a whole run in its folder, where pages and sites find it; return the file."""
    path = run.folder / "assay.json"
    records = tuple(msgspec.Raw(canonical_json(one)) for one in memory)
    content = canonical_json(RecordedAssay(scores_sha256=_scores_hash(run), assay=made, memory=records))
    vouch(content)
    write_atomic(path, content)
    return path


def recorded_assay(run: Run) -> Assay | None:
    """Return the assay that is kept with a run; None without one, or where it is about other scores or was not
    made here: a run may have been sent by anybody, and no page shows a verdict that it brings along."""
    path = run.folder / "assay.json"
    return brought_assay(run) if path.is_file() and vouched(path.read_bytes()) else None


def brought_assay(run: Run) -> Assay | None:
    """Return the assay in a run's folder, whoever made it, if it is about the run's scores."""
    path = run.folder / "assay.json"
    if not path.is_file():
        return None
    try:
        found = msgspec.json.decode(path.read_bytes(), type=RecordedAssay)
    except UNDECODABLE as error:
        hint = f"tradeassay assay {run.folder} makes it again"
        raise RunError(f"{path} cannot be read: {error}", hint=hint) from None
    return found.assay if found.scores_sha256 == _scores_hash(run) else None


def check_assay(run: Run, found: VerifyReport) -> VerifyReport:
    """Make the assay that lies beside a run again, as it was asked for, and add what becomes of it to ``found``.

    Tries and leak tests are taken as recorded: other tries than the folder holds now are noted, and an assay that
    rests on a leak test cannot be checked as a whole. Neither excuses any other number. The assay of a run whose
    data or venue's rules are not here contradicts nobody."""
    from tradeassay.assay.memory.records import check_record, parse_record

    notes = [note for note in found.notes if note != NOT_ASSAYED]
    told: list[ClaimOutcome] = []
    unsure = any(one.claim == "account" and one.outcome == "cannot be checked" for one in found.claims)
    content = (run.folder / "assay.json").read_bytes()
    stated, tries_missing = False, ""
    try:
        kept = msgspec.json.decode(content, type=RecordedAssay)
        records = [parse_record(bytes(one)) for one in kept.memory]
        changed = next(_impossible_tries(kept.assay), "")
        if not changed:
            outside = _outside_facts(kept.assay)
            made = assay_run(run, kept.assay.config, memory=records, outside=outside)
            again = RecordedAssay(scores_sha256=_scores_hash(run), assay=made, memory=kept.memory)
            then, now = msgspec.json.decode(content), msgspec.json.decode(canonical_json(again))
            changes = differences(then, now, absent=msgspec.UNSET, near=True)
            changed = next((f"{where} is {old!r:.60}, here {new!r:.60}" for where, old, new in changes), "")
            stated = any(facts.leaks is not None for facts in outside.values())
            tries_missing = _tries_missing(run, kept.assay)
        chosen = differences(msgspec.to_builtins(VerdictConfig()), msgspec.to_builtins(kept.assay.config))
        notes += [f"the assay was asked for with {name} {new} instead of {old}" for name, old, new in chosen]
        for record in records:
            claim, said = check_record(run, record, unsure)
            told.append(claim)
            notes += said
    except (TradeassayError, ValueError, *UNDECODABLE) as error:
        changed = f"it cannot be made again: {error}"
    if changed:
        outcome: Word = "cannot be checked" if unsure else "contradicted"
        claim = ClaimOutcome(claim="assay", outcome=outcome, why=changed)
    elif stated:
        claim = ClaimOutcome(claim="assay", outcome="cannot be checked", why=LEAKS_STATED)
    else:
        claim = ClaimOutcome(claim="assay", outcome="re-derived")
        notes += [tries_missing] if tries_missing else []
        if not tries_missing and all(one.outcome != "contradicted" for one in told):
            vouch(content)  # it was made here just now
    for one in (claim, *told):
        found = found.and_claim(one, notes)
    return found


def _outside_facts(kept: Assay) -> dict[tuple[str, str], OutsideFacts]:
    """Return what a recorded assay says about the outside of its run, by cell and agent."""
    untested = LeakEvidence(tested=False)
    facts = {}
    for one in kept.agents:
        tried = diagnostics.NO_TRIES
        if one.trials is not None:
            tried = diagnostics.Tried(found=one.trials.found, effective=int(one.trials.effective))
        leaks = msgspec.structs.replace(one.leaks, files_open=False)
        facts[one.cell, one.agent] = OutsideFacts(tried=tried, leaks=None if leaks == untested else leaks)
    return facts


def _impossible_tries(kept: Assay) -> Iterator[str]:
    """Yield what no folder can have held.

    Tries are whole numbers, correlated ones count once, and accounts over the same sessions have the same."""
    seen: dict[tuple[object, ...], tuple[str, int, float]] = {}
    for one in kept.agents:
        if one.trials is None:
            continue
        found, effective = one.trials.found, one.trials.effective
        if found < 0 or not 0 <= effective <= found or not effective.is_integer():
            yield f"{one.agent} has {found} other tries in its folder, which count as {effective:g}"
        if found and not kept.config.folder:
            yield f"{one.agent} has {found} other tries in its folder, which was not to be looked at"
        setting = one.dataset, one.first, one.last, one.sessions
        name, *others = seen.setdefault(setting, (one.agent, found, effective))
        if others != [found, effective]:
            yield f"{one.agent} and {name} have other tries in the same folder"


def _tries_missing(run: Run, kept: Assay) -> str:
    """Say how many tries of the folder an assay does not allow for; empty where it allows for all."""
    if not kept.config.folder:
        return ""
    for one in kept.agents:
        if one.trials is None:
            continue
        here = diagnostics.tried_elsewhere(run, one.dataset, _sessions(run, one))
        if here.effective > one.trials.effective or here.found > one.trials.found:
            are = f"there {'is' if here.found == 1 else 'are'} {here.found} now"
            return f"assay.json allows for {one.trials.found} other tries in its folder, {are}"
    return ""


def _sessions(run: Run, one: AgentAssay) -> tuple[str, ...]:
    """Return the sessions that an agent was judged on."""
    row = next(row for row in run.scores.agents if (row.cell, run.names[row.agent]) == (one.cell, one.agent))
    for key in row.episodes:
        series = run.series(key)
        days = tuple(day for day in series.sessions if (one.first or "") <= day <= (one.last or ""))
        if series.failure is None and days:
            return days
    return ()


def _scores_hash(run: Run) -> str:
    return hashlib.sha256((run.folder / "scores.json").read_bytes()).hexdigest()
