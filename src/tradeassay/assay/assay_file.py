"""The file ``assay.json`` beside a run's scores: written, read, and made again to be checked.

Two things in it follow from no run. One is how many tries the run's folder held when the assay was made: runs come
and go. The other is what a leak test said, which is not repeated. The assay is made again with both as they are
recorded, so that every other number still has to follow."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tradeassay.assay import run_evidence
from tradeassay.assay.judge import OutsideFacts, assay_run
from tradeassay.assay.leaks.leak_result import NO_ANSWER, nothing_found, undetected_after
from tradeassay.assay.verdict import diagnostics
from tradeassay.assay.verdict.record import AgentAssay, Assay, LeakEvidence, VerdictConfig
from tradeassay.core.closeness import close
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
    """Return the assay that is kept with a run, after it was made again; None where it does not come out again.

    A run may have been sent by anybody, and so may a file that says that its assay was made here. Such a file
    decides one thing only: whether leak tests, records of memory and fewer tries than the folder holds, which
    nobody can make again, are believed."""
    path = run.folder / "assay.json"
    if not path.is_file():
        return None
    content = path.read_bytes()
    again = _make_again(run, content)
    if again.kept is None or again.changed or any(one.outcome == "contradicted" for one in again.memory):
        return None
    as_stated = again.leaks_stated or again.tries_missing or again.kept.memory
    return None if as_stated and not vouched(content) else again.kept.assay


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
    content = (run.folder / "assay.json").read_bytes()
    unsure = any(one.claim == "account" and one.outcome == "cannot be checked" for one in found.claims)
    again = _make_again(run, content, unsure=unsure)
    notes = [*(note for note in found.notes if note != NOT_ASSAYED), *again.notes]
    if again.changed:
        outcome: Word = "cannot be checked" if unsure else "contradicted"
        claim = ClaimOutcome(claim="assay", outcome=outcome, why=again.changed)
    elif again.leaks_stated:
        claim = ClaimOutcome(claim="assay", outcome="cannot be checked", why=LEAKS_STATED)
    else:
        claim = ClaimOutcome(claim="assay", outcome="re-derived")
        if not again.tries_missing and all(one.outcome != "contradicted" for one in again.memory):
            vouch(content)  # it was made here just now
    for one in (claim, *again.memory):
        found = found.and_claim(one, notes)
    return found


@dataclass(kw_only=True)
class _MadeAgain:
    """What came of making an assay again: in what it differs (``changed``), what becomes of its records of memory,
    and what it says that nobody can make again. ``kept`` is None where it cannot be read."""

    kept: RecordedAssay | None = None
    changed: str = ""
    leaks_stated: bool = False
    tries_missing: str = ""
    memory: list[ClaimOutcome] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def _make_again(run: Run, content: bytes, *, unsure: bool = False) -> _MadeAgain:
    """Make a recorded assay again with the outside facts that it records, and compare."""
    from tradeassay.assay.memory.records import check_record, parse_record

    found = _MadeAgain()
    try:
        kept = found.kept = msgspec.json.decode(content, type=RecordedAssay)
        records = [parse_record(bytes(one)) for one in kept.memory]
        impossible = chain(_impossible_tries(kept.assay), _impossible_leaks(run, kept.assay))
        found.changed = next(impossible, "")
        if not found.changed:
            outside = _outside_facts(kept.assay)
            made = assay_run(run, kept.assay.config, memory=records, outside=outside)
            again = RecordedAssay(scores_sha256=_scores_hash(run), assay=made, memory=kept.memory)
            then, now = msgspec.json.decode(content), msgspec.json.decode(canonical_json(again))
            changes = differences(then, now, absent=msgspec.UNSET, near=True)
            found.changed = next((f"{where} is {old!r:.60}, here {new!r:.60}" for where, old, new in changes), "")
            found.leaks_stated = any(facts.leaks is not None for facts in outside.values())
            found.tries_missing = "" if found.changed else _tries_missing(run, kept.assay)
        chosen = differences(msgspec.to_builtins(VerdictConfig()), msgspec.to_builtins(kept.assay.config))
        found.notes += [f"the assay was asked for with {name} {new} instead of {old}" for name, old, new in chosen]
        found.notes += [found.tries_missing] if found.tries_missing else []
        for record in records:
            claim, said = check_record(run, record, unsure)
            found.memory.append(claim)
            found.notes += said
    except (TradeassayError, ValueError, *UNDECODABLE) as error:
        found.changed = f"it cannot be made again: {error}"
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


def _impossible_leaks(run: Run, kept: Assay) -> Iterator[str]:
    """Yield what no leak test of a run can have said.

    One tells what it found, or what it excludes, or nothing, and excludes no more than the sessions of the run's
    longest episode allow."""
    most = max((len(run.series(episode.key).sessions) for episode in run.episodes), default=0) + 1
    for one in kept.agents:
        leaks = one.leaks
        if leaks.bound is not None:
            sessions = _sessions_behind(leaks.bound)
            if not 1 <= sessions <= most:
                yield f"{one.agent}'s leak test excludes more than {most} sessions can: {leaks.bound:g}"
            said = (nothing_found(sessions, whole=whole, files_open=leaks.files_open) for whole in (True, False))
            right = leaks.tested and not leaks.findings and leaks.sentence in said
        elif leaks.tested:
            right = bool(leaks.findings and leaks.sentence)
        else:
            right = not leaks.findings and (not leaks.sentence or leaks.sentence.endswith(NO_ANSWER))
        if not right:
            yield f"{one.agent}'s leak test says what none says: {leaks.sentence!r:.60}"


def _sessions_behind(bound: float) -> int:
    """Return how many sessions exclude leaks on more than ``bound`` of days; 0 where no number of them does."""
    if not 0.0 < bound < 1.0:
        return 0
    sessions = round(math.log(0.05) / math.log1p(-bound))
    return sessions if sessions and close(undetected_after(sessions), bound) else 0


def _tries_missing(run: Run, kept: Assay) -> str:
    """Say how many tries of the folder an assay does not allow for; empty where it allows for all."""
    if not kept.config.folder:
        return ""
    for one in kept.agents:
        if one.trials is None:
            continue
        here = run_evidence.tried_elsewhere(run, one.dataset, _sessions(run, one))
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
