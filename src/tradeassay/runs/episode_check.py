"""Checking one recorded episode: its journal against its hash, the ledger, the data, the rules, and a replay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from tradeassay.account import Ledger
from tradeassay.benchmarks import Benchmark
from tradeassay.core.errors import LedgerError, RunError, TradeassayError
from tradeassay.core.events import STEP_DECODER, StepRecord
from tradeassay.core.hashing import sha256_bytes
from tradeassay.data import Snapshot
from tradeassay.play import Market
from tradeassay.play.dialogue_log import Spending, read_dialogue
from tradeassay.play.journal import encode_line
from tradeassay.runs.audit import audit
from tradeassay.runs.layout import RunFolder
from tradeassay.runs.outcome import Outcome, read_outcome
from tradeassay.runs.snapshots import snapshot_for
from tradeassay.runs.tasks import Checked, CheckTask
from tradeassay.runs.violation import Violation

Found = tuple[int | None, str, str]
"""Step, check, what."""


def check_episode(task: CheckTask) -> Checked:
    """Return everything about an episode that does not hold. Without data, only what needs none is looked at."""
    place, key = RunFolder(Path(task.folder)), task.episode.key
    records: list[StepRecord] = []
    violations: list[Violation] = []
    for step, check, what in _episode(task, place, key, records):
        violations.append(Violation(check=check, what=what, episode=key, step=step))
    return Checked(steps=len(records), violations=tuple(violations))


def _episode(task: CheckTask, place: RunFolder, key: str, records: list[StepRecord]) -> Iterator[Found]:
    path = place.events(key)
    content = path.read_bytes() if path.is_file() else None
    try:
        outcome = read_outcome(place.outcome(key))
    except RunError as error:
        yield None, "outcome", error.message
        return
    if content is None or outcome is None:
        yield None, "outcome", "the episode has not ended: the run is unfinished"
        return
    if sha256_bytes(content) != outcome.events_sha256:
        yield None, "journal", "events.jsonl is not the file that outcome.json speaks of"
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
    yield from _outcome(outcome, records)
    yield from _spending(outcome, place.dialogue(key))
    yield from _ledger(records)
    if task.data_sha256 is not None:
        snapshot = snapshot_for(task.episode.dataset, task.home, task.data_sha256)
        yield from _against_data(records, snapshot, task.benchmark, complete=outcome.status == "done")


def _outcome(outcome: Outcome, records: Sequence[StepRecord]) -> Iterator[Found]:
    if outcome.steps != len(records):
        yield None, "outcome", f"{outcome.steps} steps were recorded, {len(records)} are in the journal"
    if outcome.status == "done" and all(record.decision.status == "failed" for record in records):
        yield None, "outcome", "no decision was usable, but the episode counts as done"


def _spending(outcome: Outcome, path: Path) -> Iterator[Found]:
    """See that what a model's answers took is what the conversations say."""
    if isinstance(outcome.model, msgspec.UnsetType):
        return
    spent = Spending()
    try:
        for line in read_dialogue(path):
            spent = spent.plus(line.reply.usage)
    except RunError as error:
        yield None, "dialogue", error.message
        return
    if spent != outcome.model.spending:
        yield None, "dialogue", f"the conversations took {spent.words()}, not {outcome.model.spending.words()}"


def _ledger(records: Sequence[StepRecord]) -> Iterator[Found]:
    """Replay the account; the first identity that breaks ends the replay."""
    done = 0
    try:
        for _ in Ledger.steps(records):
            done += 1
    except (LedgerError, ValueError) as error:
        yield done, "ledger", str(error)


def _against_data(
    records: Sequence[StepRecord], snapshot: Snapshot, benchmark: Benchmark, *, complete: bool
) -> Iterator[Found]:
    try:
        for step, finding in audit(records, snapshot, benchmark.market, complete=complete):
            yield step, finding.check, finding.what
        yield from _replay(records, snapshot, benchmark)
    except TradeassayError as error:
        yield None, "replay", f"the journal cannot be followed: {error.message}"


def _replay(records: Sequence[StepRecord], snapshot: Snapshot, benchmark: Benchmark) -> Iterator[Found]:
    """Carry the recorded decisions out again; the first line that comes out differently ends the replay."""
    market = Market(snapshot, benchmark.market)
    market.reset()
    for place, record in enumerate(records[: len(market)]):
        if encode_line(market.step(record.decision).record) != encode_line(record):
            yield place, "replay", "carrying out the recorded decision gives another line"
            return
