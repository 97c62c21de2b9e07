"""Write, read and verify the file ``assay.json`` next to a run's scores.

Two facts in the file cannot be derived from the run. The first is the number of tries in the run's
folder at the time of the assay, because runs are added and removed. The second is the result of a
leak test, which is not repeated. Verification recomputes the assay with both facts as recorded.
Every other number must be reproduced.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tradeassay.core.errors import UNDECODABLE, TradeassayError
from tradeassay.core.files import write_atomic
from tradeassay.core.hashing import canonical_json
from tradeassay.verdict import diagnostics
from tradeassay.verdict.record import (
    AgentAssay,
    Assay,
    LeakEvidence,
    MaskPrice,
    VerdictConfig,
)
from tradeassay_bench.core.closeness import close
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.examine import run_evidence
from tradeassay_bench.examine.judge import OutsideFacts, assay_run
from tradeassay_bench.examine.leaks.leak_result import NO_ANSWER, nothing_found, undetected_after
from tradeassay_bench.runs.store.outcome import ClaimOutcome, ClaimStatus
from tradeassay_bench.runs.verify.replay import differences
from tradeassay_bench.runs.verify.report import NOT_ASSAYED, VerifyReport

if TYPE_CHECKING:
    from tradeassay_bench.examine.memory import MemoryRecord
    from tradeassay_bench.runs import Run

LEAKS_STATED = "leak tests are not repeated: what they say is as stated by the runner"
OTHER_SCORES = "the file of scores changed after the assay was made, so report does not show it"
RECALL_STATED = "models are not asked again what they remember: it is as stated by the runner"
PRICE_STATED = "the mask's price comes from another run: it is as stated by the runner"


class RecordedAssay(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of ``assay.json``.

    It contains the assay, the hash of its scores, and the records of the memory studies of its
    models.
    """

    scores_sha256: str
    """The hash of the scores file at the time of the assay.

    A verification notes a different hash, but does not report a contradiction. Scores that were
    computed again on a different machine may differ in their last digits, and every number of the
    assay is recomputed.
    """
    assay: Assay
    memory: tuple[msgspec.Raw, ...] = ()


def record_assay(run: Run, made: Assay, memory: Sequence[MemoryRecord] = ()) -> Path:
    """Write the assay of a whole run into the run's folder and return the file's path.

    Pages and sites read the assay from there.
    """
    path = run.folder / "assay.json"
    records = tuple(msgspec.Raw(canonical_json(record)) for record in memory)
    content = canonical_json(
        RecordedAssay(scores_sha256=_scores_hash(run), assay=made, memory=records)
    )
    write_atomic(path, content)
    return path


def recorded_assay(run: Run) -> Assay | None:
    """Return a run's recorded assay, or None if it cannot be reproduced.

    The assay is recomputed with its recorded leak tests, memory records and numbers of tries. These
    cannot be recomputed here, and ``verify`` reports them.
    """
    path = run.folder / "assay.json"
    if not path.is_file():
        return None
    content = path.read_bytes()
    again = _make_again(run, content)
    if (
        again.kept is None
        or again.changed
        or any(claim.outcome == "contradicted" for claim in again.memory)
    ):
        return None
    return again.kept.assay


def stated_in(assay: Assay) -> tuple[str, ...]:
    """Return sentences about the parts of an assay that cannot be recomputed."""
    stated = []
    if any(agent.leaks.tested for agent in assay.agents):
        stated.append(LEAKS_STATED)
    if any(agent.recall is not None for agent in assay.agents):
        stated.append(RECALL_STATED)
    if any(_price_of(agent) is not None for agent in assay.agents):
        stated.append(PRICE_STATED)
    return tuple(stated)


def brought_assay(run: Run) -> Assay | None:
    """Return the assay in a run's folder without recomputing it.

    The result is None if there is no assay, or if it was made with different scores. Raises
    :class:`RunError` if the file cannot be read.
    """
    path = run.folder / "assay.json"
    if not path.is_file():
        return None
    try:
        recorded = msgspec.json.decode(path.read_bytes(), type=RecordedAssay)
    except UNDECODABLE as error:
        hint = f"tradeassay assay {run.folder} recomputes it"
        raise RunError(f"{path} cannot be read: {error}", hint=hint) from None
    return recorded.assay if recorded.scores_sha256 == _scores_hash(run) else None


def check_assay(run: Run, report: VerifyReport) -> VerifyReport:
    """Recompute the assay of a run with its recorded configuration and add the claim to ``report``.

    Tries and leak tests are taken as recorded. A different number of tries in the folder is noted.
    An assay that uses a leak test cannot be checked as a whole. Neither case excuses a difference
    in any other number. Missing data or missing venue rules are not a contradiction.
    """
    content = (run.folder / "assay.json").read_bytes()
    unsure = any(
        checked.claim == "account" and checked.outcome == "cannot be checked"
        for checked in report.claims
    )
    again = _make_again(run, content, unsure=unsure)
    notes = [*(note for note in report.notes if note != NOT_ASSAYED), *again.notes]
    if again.changed:
        outcome: ClaimStatus = "cannot be checked" if unsure else "contradicted"
        claim = ClaimOutcome(claim="assay", outcome=outcome, why=again.changed)
    elif again.stated:
        claim = ClaimOutcome(claim="assay", outcome="cannot be checked", why=again.stated)
    else:
        claim = ClaimOutcome(claim="assay", outcome="re-derived")
    for added in (claim, *again.memory):
        report = report.and_claim(added, notes)
    return report


@dataclass(kw_only=True)
class _MadeAgain:
    """The result of recomputing an assay.

    ``changed`` lists the differences. The other fields contain the results of the memory records
    and the statements that cannot be recomputed. ``kept`` is None if the file cannot be read.
    """

    kept: RecordedAssay | None = None
    changed: str = ""
    stated: str = ""
    tries_missing: str = ""
    memory: list[ClaimOutcome] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def _make_again(run: Run, content: bytes, *, unsure: bool = False) -> _MadeAgain:
    """Recompute a recorded assay with its recorded outside facts, and return the differences."""
    from tradeassay_bench.examine.memory.records import check_record, parse_record

    result = _MadeAgain()
    try:
        kept = msgspec.json.decode(content, type=RecordedAssay)
        result.kept = kept
        records = [parse_record(bytes(content_of_record)) for content_of_record in kept.memory]
        impossible = chain(
            _impossible_tries(kept.assay),
            _impossible_leaks(run, kept.assay),
            _impossible_prices(kept.assay),
        )
        result.changed = next(impossible, "")
        if not result.changed:
            outside = _outside_facts(kept.assay)
            assay = assay_run(run, kept.assay.config, memory=records, outside=outside)
            again = msgspec.structs.replace(kept, assay=assay)
            then, now = msgspec.json.decode(content), msgspec.json.decode(canonical_json(again))
            changes = differences(then, now, absent=msgspec.UNSET, near=True)
            result.changed = next(
                (f"{where} is {old!r:.60}, but here {new!r:.60}" for where, old, new in changes), ""
            )
            if any(facts.leaks is not None for facts in outside.values()):
                result.stated = LEAKS_STATED
            elif any(facts.price is not None for facts in outside.values()):
                result.stated = PRICE_STATED
            result.tries_missing = "" if result.changed else _tries_missing(run, kept.assay)
        chosen = differences(
            msgspec.to_builtins(VerdictConfig()), msgspec.to_builtins(kept.assay.config)
        )
        result.notes += [
            f"the assay was made with {name} {new} instead of {old}" for name, old, new in chosen
        ]
        result.notes += [result.tries_missing] if result.tries_missing else []
        if kept.scores_sha256 != _scores_hash(run):
            result.notes.append(OTHER_SCORES)
        for record in records:
            claim, record_notes = check_record(run, record, unsure)
            result.memory.append(claim)
            result.notes += record_notes
    except (TradeassayError, ValueError, *UNDECODABLE) as error:
        result.changed = f"the assay cannot be recomputed: {error}"
    return result


def _outside_facts(kept: Assay) -> dict[tuple[str, str], OutsideFacts]:
    """Return the facts in an assay that are not from its run, by setting and agent."""
    untested = LeakEvidence(tested=False)
    facts = {}
    for agent in kept.agents:
        tried = diagnostics.NO_TRIES
        if agent.tries is not None:
            tried = diagnostics.Tried(found=agent.tries.found, effective=int(agent.tries.effective))
        leaks = msgspec.structs.replace(agent.leaks, files_open=False)
        facts[agent.setting, agent.agent] = OutsideFacts(
            tried=tried, leaks=None if leaks == untested else leaks, price=_price_of(agent)
        )
    return facts


def _price_of(agent: AgentAssay) -> MaskPrice | None:
    """Return the price of the mask that an agent's assay uses, or None."""
    if agent.memory is None or isinstance(agent.memory.price, msgspec.UnsetType):
        return None
    return agent.memory.price


def _impossible_tries(kept: Assay) -> Iterator[str]:
    """Yield descriptions of recorded numbers of tries that are impossible.

    The number of tries is a whole number. The effective number, in which correlated tries are one
    try, cannot be larger. Accounts over the same sessions must have the same number.
    """
    seen: dict[tuple[object, ...], tuple[str, int, float]] = {}
    for agent in kept.agents:
        if agent.tries is None:
            continue
        tries, effective = agent.tries.found, agent.tries.effective
        if tries < 0 or not 0 <= effective <= tries or not effective.is_integer():
            yield (
                f"{agent.agent} has {tries} other tries in its folder, which count as {effective:g}"
            )
        if tries and not kept.config.folder:
            yield (
                f"{agent.agent} has {tries} other tries in its folder, although the folder was "
                "not searched"
            )
        window = agent.dataset, agent.first, agent.last, agent.sessions
        name, *counts = seen.setdefault(window, (agent.agent, tries, effective))
        if counts != [tries, effective]:
            yield f"{agent.agent} and {name} have other tries in the same folder"


def _impossible_leaks(run: Run, kept: Assay) -> Iterator[str]:
    """Yield descriptions of recorded leak results that no leak test of the run can produce.

    A leak test states a leak, an upper bound on leaks, or nothing. Its bound cannot be smaller than
    the sessions of the run's longest episode allow.
    """
    most = max((len(run.series(episode.key).sessions) for episode in run.episodes), default=0) + 1
    for agent in kept.agents:
        leaks = agent.leaks
        if leaks.bound is not None:
            sessions = _sessions_behind(leaks.bound)
            if not 1 <= sessions <= most:
                yield (
                    f"{agent.agent}'s leak test excludes more than {most} sessions can: "
                    f"{leaks.bound:g}"
                )
            sentences = (
                nothing_found(sessions, whole=whole, files_open=leaks.files_open)
                for whole in (True, False)
            )
            possible = leaks.tested and not leaks.findings and leaks.sentence in sentences
        elif leaks.tested:
            possible = bool(leaks.findings and leaks.sentence)
        else:
            possible = not leaks.findings and (
                not leaks.sentence or leaks.sentence.endswith(NO_ANSWER)
            )
        if not possible:
            yield (
                f"{agent.agent}'s leak test has a sentence that no leak test writes: "
                f"{leaks.sentence!r:.60}"
            )


def _impossible_prices(kept: Assay) -> Iterator[str]:
    """Yield descriptions of recorded mask prices that cannot have been measured.

    The price must be from a different world than the judged world, and must lie in its interval.
    """
    for agent in kept.agents:
        price = _price_of(agent)
        if price is None:
            continue
        if not price.worlds or agent.dataset in price.worlds:
            yield f"{agent.agent}'s mask has a price from no other world"
        for claim, lost in price.lost.items():
            if lost.value is None or lost.low is None or lost.high is None:
                continue
            if not lost.low <= lost.value <= lost.high or lost.level != kept.config.level:
                yield f"{agent.agent}'s lost information on {claim} lies outside its interval"


def _sessions_behind(bound: float) -> int:
    """Return the number of sessions that exclude leaks on more than ``bound`` of the days.

    Returns 0 if no number of sessions excludes them.
    """
    if not 0.0 < bound < 1.0:
        return 0
    sessions = round(math.log(0.05) / math.log1p(-bound))
    return sessions if sessions and close(undetected_after(sessions), bound) else 0


def _tries_missing(run: Run, kept: Assay) -> str:
    """Return a note if the number of tries in the folder has changed; empty if it has not."""
    if not kept.config.folder:
        return ""
    for agent in kept.agents:
        if agent.tries is None:
            continue
        tries = run_evidence.tried_elsewhere(run, agent.dataset, _sessions(run, agent))
        if tries.effective > agent.tries.effective or tries.found > agent.tries.found:
            now = f"there {'is' if tries.found == 1 else 'are'} {tries.found} now"
            return f"assay.json allows for {agent.tries.found} other tries in its folder, {now}"
    return ""


def _sessions(run: Run, agent: AgentAssay) -> tuple[str, ...]:
    """Return the sessions that an agent's verdict covers."""
    row = next(
        row
        for row in run.scores.agents
        if (row.setting, run.names[row.agent]) == (agent.setting, agent.agent)
    )
    for key in row.episodes:
        series = run.series(key)
        days = tuple(
            day for day in series.sessions if (agent.first or "") <= day <= (agent.last or "")
        )
        if series.failure is None and days:
            return days
    return ()


def _scores_hash(run: Run) -> str:
    return hashlib.sha256((run.folder / "scores.json").read_bytes()).hexdigest()
