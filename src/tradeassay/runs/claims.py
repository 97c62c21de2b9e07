"""What a recorded episode claims, claim by claim, and how each is checked against what it was made from.

A claim is one function: it is given the evidence of one episode and yields everything that does not hold. To check
more, add a claim to the list of its kind of run.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from tradeassay.account import Ledger
from tradeassay.benchmarks import Benchmark
from tradeassay.core.drive import drive
from tradeassay.core.errors import LedgerError, RunError, TradeassayError
from tradeassay.core.events import STEP_DECODER, TURN_DECODER, JournalRecord, StepRecord, TurnRecord
from tradeassay.core.hashing import sha256_bytes, sha256_of
from tradeassay.data import Snapshot
from tradeassay.play import Market
from tradeassay.play.dialogue_log import Spending, read_dialogue
from tradeassay.play.journal import encode_line
from tradeassay.runs.audit import audit
from tradeassay.runs.code_protocol import AskRole, CodeAsk, CodeProtocol, CodeReply
from tradeassay.runs.episode import EpisodeSpec
from tradeassay.runs.format1 import ITEMS
from tradeassay.runs.outcome import Outcome, Violation, read_outcome
from tradeassay.runs.programs import read_record
from tradeassay.runs.snapshots import snapshot_for
from tradeassay.runs.store import RunFolder
from tradeassay.runs.tasks import Checked, CheckTask

Found = tuple[int | None, str, str]
"""The step, the check, and what does not hold."""
R = TypeVar("R", bound=JournalRecord)


@dataclass(frozen=True, slots=True)
class EpisodeEvidence(Generic[R]):
    """What one episode left behind: its outcome, the lines of its journal, and where its dialogue is."""

    episode: EpisodeSpec
    outcome: Outcome
    records: tuple[R, ...]
    dialogue: Path


@dataclass(frozen=True, slots=True)
class MarketGround:
    """The data and market a trading episode was played on."""

    snapshot: Snapshot
    benchmark: Benchmark


def check_episode(task: CheckTask) -> Checked:
    """Return everything about a trading episode that does not hold; without data, only what needs none."""
    place = RunFolder(Path(task.folder))
    ground: MarketGround | None = None
    if task.data_sha256 is not None:
        ground = MarketGround(snapshot_for(task.episode.dataset, task.home, task.data_sha256), task.benchmark)

    def claims(evidence: EpisodeEvidence[StepRecord]) -> Iterator[Found]:
        for claim in TRADING:
            yield from claim(evidence)
        if ground is not None:
            yield from _on_data(evidence, ground)

    return _checked(place, task.episode, STEP_DECODER, claims)


def check_program(place: RunFolder, episode: EpisodeSpec, protocol: CodeProtocol) -> Checked:
    """Return everything about a code episode that does not hold. Programs are not run again."""

    def claims(evidence: EpisodeEvidence[TurnRecord]) -> Iterator[Found]:
        yield from record_is_consistent(evidence, protocol)
        if place.episodes != ITEMS:  # format 1 kept neither journal nor dialogue
            yield from spending_is_that_of_the_dialogue(evidence)
            yield from replies_give_this_record(evidence, protocol)

    return _checked(place, episode, TURN_DECODER, claims)


def _checked(
    place: RunFolder,
    episode: EpisodeSpec,
    decoder: msgspec.json.Decoder[R],
    claims: Callable[[EpisodeEvidence[R]], Iterator[Found]],
) -> Checked:
    """Check the journal against its hash, line by line, then everything that is claimed about it."""
    key, records = episode.key, list[R]()
    violations: list[Violation] = []

    def every() -> Iterator[Found]:
        outcome = yield from _journal(place, key, decoder, records)
        if outcome is not None:
            yield from claims(EpisodeEvidence(episode, outcome, tuple(records), place.dialogue(key)))

    for step, check, what in every():
        violations.append(Violation(check=check, what=what, episode=key, step=step))
    return Checked(steps=len(records), violations=tuple(violations))


def _journal(
    place: RunFolder, key: str, decoder: msgspec.json.Decoder[R], records: list[R]
) -> Generator[Found, None, Outcome | None]:
    """Read an episode's journal into ``records`` and return its outcome; None when the rest cannot be checked."""
    path = place.events(key)
    content = path.read_bytes() if path.is_file() else None
    try:
        outcome = read_outcome(place.outcome(key))
    except RunError as error:
        yield None, "outcome", error.message
        return None
    if content is None and place.episodes == ITEMS:
        return outcome
    if content is None or outcome is None:
        yield None, "outcome", "the episode has not ended: the run is unfinished"
        return None
    if sha256_bytes(content) != outcome.events_sha256:
        yield None, "journal", "events.jsonl is not the file that outcome.json speaks of"
    for step, line in enumerate(content.removesuffix(b"\n").split(b"\n") if content else ()):
        try:
            record = decoder.decode(line)
        except msgspec.DecodeError as error:
            yield step, "journal", f"the line does not parse: {error}"
            return None
        if encode_line(record) != line:
            yield step, "journal", "the line is not written as tradeassay writes it"
        records.append(record)
    if content and not content.endswith(b"\n"):
        yield len(records) - 1, "journal", "the last line is torn"
    if outcome.steps != len(records):
        yield None, "outcome", f"{outcome.steps} steps were recorded, {len(records)} are in the journal"
    return outcome


def decisions_were_usable(evidence: EpisodeEvidence[StepRecord]) -> Iterator[Found]:
    """An episode without a usable decision has failed."""
    unusable = all(record.decision.status == "failed" for record in evidence.records)
    if evidence.outcome.status == "done" and unusable:
        yield None, "outcome", "no decision was usable, but the episode counts as done"


def spending_is_that_of_the_dialogue(evidence: EpisodeEvidence[R]) -> Iterator[Found]:
    """The recorded spending is that of the conversations."""
    claimed = evidence.outcome.spending
    if claimed is None:
        return
    spent = Spending()
    try:
        for line in read_dialogue(evidence.dialogue):
            spent = spent.plus(line.reply.usage)
    except RunError as error:
        yield None, "dialogue", error.message
        return
    if spent != claimed:
        yield None, "dialogue", f"the conversations took {spent.words()}, not {claimed.words()}"


def money_adds_up(evidence: EpisodeEvidence[StepRecord]) -> Iterator[Found]:
    """Replay the account; the first identity that breaks ends the replay."""
    done = 0
    try:
        for _ in Ledger.steps(evidence.records):
            done += 1
    except (LedgerError, ValueError) as error:
        yield done, "ledger", str(error)


TRADING: tuple[Callable[[EpisodeEvidence[StepRecord]], Iterator[Found]], ...] = (
    decisions_were_usable,
    spending_is_that_of_the_dialogue,
    money_adds_up,
)
"""The claims of a trading episode that need no data."""


def _on_data(evidence: EpisodeEvidence[StepRecord], ground: MarketGround) -> Iterator[Found]:
    try:
        for claim in ON_DATA:
            yield from claim(evidence, ground)
    except TradeassayError as error:
        yield None, "replay", f"the journal cannot be followed: {error.message}"


def fills_follow_the_rules(evidence: EpisodeEvidence[StepRecord], ground: MarketGround) -> Iterator[Found]:
    """An auditor that shares no code with the exchange finds nothing."""
    complete = evidence.outcome.status == "done"
    for step, finding in audit(evidence.records, ground.snapshot, ground.benchmark.market, complete=complete):
        yield step, finding.check, finding.what


def decisions_give_these_lines(evidence: EpisodeEvidence[StepRecord], ground: MarketGround) -> Iterator[Found]:
    """Carry out the recorded decisions again; the first line that comes out differently ends the replay."""
    market = Market(ground.snapshot, ground.benchmark.market)
    market.reset()
    for place, record in enumerate(evidence.records[: len(market)]):
        if encode_line(market.step(record.decision).record) != encode_line(record):
            yield place, "replay", "carrying out the recorded decision gives another line"
            return


ON_DATA: tuple[Callable[[EpisodeEvidence[StepRecord], MarketGround], Iterator[Found]], ...] = (
    fills_follow_the_rules,
    decisions_give_these_lines,
)
"""The claims of a trading episode about its market."""


def record_is_consistent(evidence: EpisodeEvidence[TurnRecord], protocol: CodeProtocol) -> Iterator[Found]:
    """The verdicts in a record belong to the programs recorded with them."""
    try:
        record = read_record(type(protocol), evidence.outcome)
    except RunError as error:
        yield None, "outcome", error.message
        return
    if record is not None:
        for step, what in protocol.inconsistencies(record):
            yield step, "programs", what


def replies_give_this_record(evidence: EpisodeEvidence[TurnRecord], protocol: CodeProtocol) -> Iterator[Found]:
    """Recorded replies and results reproduce the recorded outcome, with no model and no sandbox."""
    program = evidence.outcome.program
    if isinstance(program, msgspec.UnsetType):
        return
    replies = (line.reply for line in read_dialogue(evidence.dialogue))
    results = iter(evidence.records)

    def answer(ask: CodeAsk) -> CodeReply:
        if isinstance(ask, AskRole):
            reply = next(replies, None)
            if reply is None:
                raise RunError("the dialogue asks for more answers than were recorded")
            return reply
        result = next(results, None)
        if result is None or result.request != sha256_of(ask.request):
            raise RunError("the dialogue asks for the examination of a program that is not in the journal")
        return msgspec.json.decode(result.result, type=protocol.Result)

    try:
        again = drive(protocol.dialogue(evidence.episode), answer)
    except RunError as error:
        yield None, "replay", error.message
        return
    same = msgspec.json.encode(again) == bytes(program.record)
    if not same or protocol.ended(again).status != evidence.outcome.status:
        yield None, "replay", "the recorded answers and results give another outcome"
