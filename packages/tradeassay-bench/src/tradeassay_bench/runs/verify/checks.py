"""Check the claims of a recorded episode and report each result.

The episode is recomputed from its sources (:mod:`tradeassay_bench.runs.verify.replay`) and must be
byte-identical. Further checks share no code with the code that runs episodes: an account computed
from the events alone, and an auditor of fills and rules. They also work if the episode cannot be
recomputed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from tradeassay.core.errors import UNDECODABLE, TradeassayError, UserError
from tradeassay.core.hashing import canonical_json, sha256_bytes, sha256_of
from tradeassay.core.measure import NOT_REDERIVABLE
from tradeassay_bench.account import Ledger, venues
from tradeassay_bench.account.audit import AuditDay, Auditor
from tradeassay_bench.benchmarks.code_protocol import AskRole, CodeAsk, CodeProtocol, CodeReply
from tradeassay_bench.core.closeness import close, close_line, close_text
from tradeassay_bench.core.dialogue import AskModel, ModelReply
from tradeassay_bench.core.drive import drive
from tradeassay_bench.core.errors import LedgerError, RunError
from tradeassay_bench.core.events import (
    STEP_DECODER,
    TURN_DECODER,
    JournalRecord,
    StepRecord,
    TurnRecord,
)
from tradeassay_bench.data import Snapshot
from tradeassay_bench.llm import load_prices, parse_name
from tradeassay_bench.llm.budget import LEAST_SHARE, estimate_reply, most_request
from tradeassay_bench.llm.recording import answer_faults, read_recording
from tradeassay_bench.llm.tables import Price, Tokens
from tradeassay_bench.play import Market, MarketConfig, most_traded, parse_universe
from tradeassay_bench.play.dialogue_log import Spending, read_dialogue, whole_messages
from tradeassay_bench.play.journal import encode_line
from tradeassay_bench.play.market import MOMENTS
from tradeassay_bench.runs.play.episodes import PlayTask
from tradeassay_bench.runs.play.programs import read_record
from tradeassay_bench.runs.spec.episode import EpisodeSpec, ModelRecord
from tradeassay_bench.runs.store.folder import RunFolder
from tradeassay_bench.runs.store.manifest import snapshot_for
from tradeassay_bench.runs.store.outcome import ClaimOutcome, Outcome, Violation, Word, read_outcome
from tradeassay_bench.runs.verify.replay import (
    NotReplayable,
    Replayed,
    can_be_asked,
    differences,
    not_as_written,
    replay_conversation,
    replay_rule,
    without_accidents,
)

Found = tuple[int | None, str, str]
"""One contradiction: the step, the check, and the false statement."""
R = TypeVar("R", bound=JournalRecord)
NO_DATA = "the data is not here"


class CheckTask(msgspec.Struct, frozen=True, kw_only=True, tag="check"):
    """A task to check the record of one episode.

    ``play`` is the task that runs it. It uses the registered benchmark if there is one, whatever
    the run states. ``data_intact`` is true if the data is here as recorded. ``model`` is the run's
    statement about its model's price. ``no_venue`` states why the venue's rules are missing here.
    ``other_code`` names the agent's version here if it differs.
    """

    play: PlayTask
    data_intact: bool
    model: ModelRecord | None = None
    no_venue: str = ""
    other_code: str = ""


class Checked(msgspec.Struct, kw_only=True, tag="checked"):
    """The result for one episode: steps, contradictions and claims.

    ``notes`` lists the parts that were not checked.
    """

    key: str
    steps: int = 0
    violations: list[Violation] = []
    claims: list[ClaimOutcome] = []
    notes: list[str] = []

    def contradict(self, found: Iterable[Found]) -> bool:
        """Add contradictions. Return whether there were any."""
        before = len(self.violations)
        for step, check, what in found:
            self.violations.append(Violation(check=check, what=what, episode=self.key, step=step))
        return len(self.violations) > before

    def say(self, claim: str, outcome: Word, why: str = "") -> None:
        """Add the result of a claim."""
        self.claims.append(ClaimOutcome(claim=claim, outcome=outcome, why=why, episodes=1))

    def say_answers(self, models: list[str], *, known: bool) -> None:
        """Add the result of the claim about the source of the replies.

        Only a scripted model can be queried again.
        """
        if not can_be_asked(models):
            self.say("answers", "cannot be checked", NOT_REDERIVABLE)
        elif known:
            self.say("answers", "re-derived")
        else:
            self.say("answers", "cannot be checked", "models were not queried again")


@dataclass(frozen=True, slots=True)
class EpisodeEvidence(Generic[R]):
    """The record of one episode: its outcome, its journal, and the paths of its other files."""

    episode: EpisodeSpec
    outcome: Outcome
    content: bytes
    records: tuple[R, ...]
    dialogue: Path
    recording: Path


def check_episode(task: CheckTask) -> Checked:
    """Return the results of a trading episode's claims.

    Without data, only checks that need no data are made.
    """
    play, episode, market = task.play, task.play.episode, task.play.benchmark.market
    checked = Checked(key=episode.key)
    evidence = _open(checked, RunFolder(Path(play.folder)), episode, STEP_DECODER)
    if evidence is None:
        checked.say("decisions", "contradicted", "the record cannot be read")
        return checked
    outcome, records = evidence.outcome, evidence.records
    _check_recording(checked, evidence)
    _check_spending(checked, evidence, {} if task.model is None else {task.model.model: task.model})
    snapshot = (
        snapshot_for(episode.dataset, play.home, play.data_sha256) if task.data_intact else None
    )
    # If the episode cannot run again, its failure is a claim of the runner. It may hide a result.
    word = (
        f"that it failed after {outcome.steps} sessions ({str(outcome.error)[:60]}) is the "
        "runner's word"
    )
    if snapshot is None or task.no_venue:
        why = task.no_venue or NO_DATA
        broken = checked.contradict(contradictions_within(evidence))
        if snapshot is not None:
            complete = outcome.status == "done"
            audited = audit(records, snapshot, market, complete=complete, venue_known=False)
            broken |= checked.contradict(_guarded(audited))
        for claim in ("decisions", "account"):
            checked.say(claim, "cannot be checked", why)
        checked.say("money", "contradicted" if broken else "consistent")
        if episode.by_model:
            checked.say("conversation", "cannot be checked", why)
            checked.say_answers([episode.model], known=False)
        if outcome.status == "failed":
            checked.say("outcome", "cannot be checked", word)
        return checked
    # Run the episode again and compare. Then use the checks that share no code with that.
    why = ""
    try:
        again = replay_conversation(play, outcome) if episode.by_model else replay_rule(play)
        differences_found = list(comes_out_again(evidence, again))
        if differences_found and task.other_code:
            raise NotReplayable(f"they differ with {task.other_code}, which is installed here")
        broken = checked.contradict(differences_found)
        if again.unasked:
            checked.notes.append(
                f"{again.unasked} recorded answers of {episode.key} have no question"
            )
    except NotReplayable as error:
        broken, why = False, str(error)
    except TradeassayError as error:
        broken = checked.contradict([(None, "replay", error.message)])
    if broken or why:
        checked.contradict(contradictions_within(evidence))
        broken |= checked.contradict(
            _guarded(decisions_give_these_lines(records, snapshot, market))
        )
    unfair = checked.contradict(
        _guarded(audit(records, snapshot, market, complete=outcome.status == "done"))
    )
    comes_out: tuple[Word, str] = ("contradicted", "") if broken else ("re-derived", "")
    if why:
        comes_out = "cannot be checked", why
        if outcome.status == "failed":
            checked.say("outcome", "cannot be checked", word)
    checked.say("decisions", *comes_out)
    checked.say("account", "contradicted" if broken or unfair else "re-derived")
    if episode.by_model:
        checked.say("conversation", *comes_out)
        checked.say_answers([episode.model], known=not broken and not why)
    return checked


def _open(
    found: Checked, place: RunFolder, episode: EpisodeSpec, decoder: msgspec.json.Decoder[R]
) -> EpisodeEvidence[R] | None:
    """Check the journal against its hash, then read it line by line; None if it is unreadable."""
    key = episode.key

    def wrong(check: str, what: str, step: int | None = None) -> None:
        found.contradict([(step, check, what)])

    try:
        outcome = read_outcome(place.outcome(key))
    except RunError as error:
        wrong("outcome", error.message)
        return None
    if outcome is not None:
        written, again = place.outcome(key).read_bytes(), canonical_json(outcome)
        if written != again:
            wrong("outcome", f"outcome.json: {not_as_written(written, again)}")
    if outcome is None or not place.events(key).is_file():
        wrong("outcome", "the episode has not ended: the run is unfinished")
        return None
    content, records = place.events(key).read_bytes(), list[R]()
    if sha256_bytes(content) != outcome.events_sha256:
        wrong("journal", "events.jsonl does not match its hash in outcome.json")
    for step, line in enumerate(content.removesuffix(b"\n").split(b"\n") if content else ()):
        try:
            record = decoder.decode(line)
        except UNDECODABLE as error:
            wrong("journal", f"the line does not parse: {error}", step)
            return None
        if encode_line(record) != line:
            wrong("journal", "the line is not written as tradeassay writes it", step)
        records.append(record)
        found.steps = len(records)
    if content and not content.endswith(b"\n"):
        wrong("journal", "the last line is incomplete", len(records) - 1)
    if outcome.steps != len(records):
        wrong("outcome", f"{outcome.steps} steps were recorded, {len(records)} are in the journal")
    recording = place.models / f"{key}.jsonl"
    return EpisodeEvidence(
        episode, outcome, content, tuple(records), place.dialogue(key), recording
    )


def comes_out_again(evidence: EpisodeEvidence[R], again: Replayed) -> Iterator[Found]:
    """Yield the differences of journal, dialogue and outcome when the episode runs again.

    The last digits of numbers may differ, as they do between processors and versions of numpy.
    """
    old, new = evidence.content.splitlines(), again.events.splitlines()
    if len(old) != len(new) or not all(map(close_line, old, new)):
        # Report the first line that differs, and whether the decision already differs.
        pairs = enumerate(zip(old, new, strict=False))
        step = next((n for n, (a, b) in pairs if not close_line(a, b)), min(len(old), len(new)))
        if step >= min(len(old), len(new)):
            yield (
                step,
                "replay",
                f"{len(old)} steps are recorded, but running the episode again gives {len(new)}",
            )
        elif not isinstance(recorded := evidence.records[step], StepRecord):
            yield step, "replay", "examining the program again gives a different line"
        elif recorded.decision != STEP_DECODER.decode(new[step]).decision:
            yield step, "decisions", "repeating the decision gives a different decision"
        else:
            yield step, "replay", "executing the recorded decision gives a different line"
    else:  # the hash of a journal depends on it, down to the last digits
        digest = evidence.outcome.events_sha256
        again = again._replace(outcome=msgspec.structs.replace(again.outcome, events_sha256=digest))
    path = evidence.dialogue
    dialogue = path.read_bytes() if path.is_file() else b""
    if dialogue != again.dialogue:
        lines = zip(dialogue.splitlines(), again.dialogue.splitlines(), strict=False)
        number = next((n for n, (a, b) in enumerate(lines, start=1) if a != b), None)
        where = f"first in line {number}" if number is not None else "it is longer or shorter"
        yield None, "dialogue", f"dialogue.jsonl differs when it is recomputed, {where}"
    then = canonical_json(evidence.outcome)
    now = canonical_json(without_accidents(again.outcome, evidence.outcome))
    if not close_text(then.decode(), now.decode()):
        changed = differences(msgspec.json.decode(then), msgspec.json.decode(now), near=True)
        words = (
            f"{where} is {str(was)[:80]!r}, but now {str(is_now)[:80]!r}"
            for where, was, is_now in changed
        )
        yield (
            None,
            "outcome",
            f"the episode ends differently when it runs again: {next(words, 'its form')}",
        )


def contradictions_within(evidence: EpisodeEvidence[StepRecord]) -> Iterator[Found]:
    """Yield the contradictions within a record. This needs neither data nor rules."""
    yield from spending_is_that_of_the_dialogue(evidence)
    status, error = evidence.outcome.status, evidence.outcome.error
    if (status == "failed") is (error is None):
        yield None, "outcome", f"the episode is {status}, but its error is {error!r:.60}"
    if status == "done" and all(record.decision.status == "failed" for record in evidence.records):
        yield None, "outcome", "no decision was usable, but the episode is recorded as done"
    done = 0
    try:  # The account is computed from the events alone. The first violated identity ends it.
        for _ in Ledger.steps(evidence.records):
            done += 1
    except (LedgerError, ArithmeticError, LookupError, TypeError, ValueError) as broken:
        yield done, "ledger", str(broken)


def spending_is_that_of_the_dialogue(evidence: EpisodeEvidence[R]) -> Iterator[Found]:
    """Yield a difference between the recorded spending and the spending of the conversations."""
    claimed, spent = evidence.outcome.spending, Spending()
    if claimed is None:
        return
    try:
        for line in read_dialogue(evidence.dialogue):
            spent = spent.plus(line.reply.usage)
    except RunError as error:
        yield None, "dialogue", error.message
        return
    if not _same_spending(spent, claimed):
        yield None, "dialogue", f"the conversations cost {spent.words()}, not {claimed.words()}"


def _same_spending(one: Spending, other: Spending) -> bool:
    """Return whether two counts of answers are equal, with dollars except for the last digits."""
    return close(one.usd, other.usd) and one == msgspec.structs.replace(other, usd=one.usd)


def _check_recording(found: Checked, evidence: EpisodeEvidence[R]) -> bool:
    """Check that every recorded reply belongs to its question. Return whether one does not."""
    spent = evidence.outcome.spending
    if not evidence.recording.is_file():
        if spent is not None and spent.calls:
            why = "it is missing; the replies in dialogue.jsonl were used instead"
            found.say("recording", "cannot be checked", why)
        return False
    try:
        return found.contradict(
            (None, "recording", what) for what in answer_faults(evidence.recording)
        )
    except RunError as error:
        return found.contradict([(None, "recording", error.message)])


def _guarded(found: Iterator[Found]) -> Iterator[Found]:
    """Yield contradictions.

    An error of the check itself is a contradiction, because records may be damaged in any way.
    """
    try:
        yield from found
    except TradeassayError as error:
        yield None, "replay", f"the journal is inconsistent: {error.message}"
    except (ArithmeticError, LookupError, TypeError, ValueError, *UNDECODABLE) as error:
        # Forged numbers and names can make ordinary code raise. The journal is then inconsistent.
        yield None, "replay", f"the journal is inconsistent: {type(error).__name__} {error}"


def decisions_give_these_lines(
    records: Sequence[StepRecord], snapshot: Snapshot, config: MarketConfig
) -> Iterator[Found]:
    """Execute the recorded decisions again. The first different line ends the replay."""
    market = Market(snapshot, config)
    market.reset()
    for place, record in enumerate(records[: len(market)]):
        if not close_line(encode_line(market.step(record.decision).record), encode_line(record)):
            yield place, "replay", "executing the recorded decision gives a different line"
            return


_MOST_DAYS = 1_000
"""The maximum number of sessions in memory. A longer market is read again for every episode."""
_WITHOUT_VENUE = frozenset(("sessions", "actions", "nav", "fills", "suspension", "universe"))
"""Checks of the auditor that use the data and the benchmark, but no rule of a venue."""


def audit(
    records: Sequence[StepRecord],
    snapshot: Snapshot,
    config: MarketConfig,
    *,
    complete: bool,
    venue_known: bool = True,
) -> Iterator[Found]:
    """Yield contradictions of the data or the rules.

    The auditor shares no code with the exchange. With ``complete`` the journal must reach the end
    of the window. Without the rules of the venue (``venue_known``), days, prices, marks and
    corporate actions are still checked against the data.
    """
    rows = snapshot.rows(config.first, config.last)
    if len(records) > len(rows) or (complete and len(records) < len(rows)):
        yield (
            None,
            "sessions",
            f"{len(records)} steps are recorded, but the window has {len(rows)} sessions",
        )
    config = config if venue_known else msgspec.structs.replace(config, venue="us-v1")
    auditor, (days, kept) = Auditor(), _market_days(snapshot, config)
    index = parse_universe(config.universe).of
    for place, (row, record) in enumerate(zip(rows, records, strict=False)):
        day = days.get(row)
        if day is None:  # the data of a session
            before, seen = snapshot.at(row, "pre_open"), snapshot.at(row, MOMENTS[config.decide])
            gone = frozenset(before.delisted_now())
            stocks = seen.symbols if index == "all" else seen.members(index)
            funds = (symbol for symbol in seen.symbols if seen.instrument(symbol).kind == "index")
            day = AuditDay(
                venue=venues.get(config.venue),
                bars=snapshot.at(row, "close").session_bars(),
                actions=before.todays_actions(),
                delisted=gone,
                members=frozenset((*(one for one in stocks if kept is None or one in kept), *funds))
                - gone,
                fill=config.fill,
                mark=config.mark,
                max_weight=config.max_weight,
                max_positions=config.max_positions,
                decided_at=seen.clock,
            )
            if len(days) < _MOST_DAYS:
                days[row] = day
        for finding in auditor.step(place, day, record, config.cash):
            if venue_known or finding.check in _WITHOUT_VENUE:
                yield place, finding.check, finding.what


@lru_cache(maxsize=2)
def _market_days(
    snapshot: Snapshot, config: MarketConfig
) -> tuple[dict[int, AuditDay], frozenset[str] | None]:
    """Return the sessions of a market and the stocks of a limited universe.

    All episodes of the market share them.
    """
    rows = snapshot.rows(config.first, config.last)
    return {}, most_traded(config.universe, snapshot.at(rows[0], "pre_open")) if rows else None


# -- programs ---


def check_program(
    place: RunFolder,
    episode: EpisodeSpec,
    protocol: CodeProtocol | None,
    again: Replayed | TradeassayError | None,
    why: str = "",
    dated: Mapping[str, ModelRecord] | None = None,
) -> Checked:
    """Return the results of a code episode's claims.

    ``again`` is the replayed episode with examined programs, or the error that stopped it. It is
    None if programs cannot be examined, for the reason ``why``. The recorded results are then
    accepted, and all other parts are checked. ``dated`` contains the run's statements about its
    models' prices. Without a ``protocol`` only the form of the record is checked.
    """
    found = Checked(key=episode.key)
    evidence = _open(found, place, episode, TURN_DECODER)
    if evidence is None:
        found.say("programs", "contradicted", "the record cannot be read")
        return found
    broken = protocol is not None and found.contradict(
        _guarded(record_is_consistent(evidence, protocol))
    )
    if broken:
        again, why = None, "the record contradicts itself"
    broken |= found.contradict(spending_is_that_of_the_dialogue(evidence))
    broken |= _check_recording(found, evidence)
    broken |= _check_spending(found, evidence, dated or {})
    if isinstance(again, Replayed):
        broken |= found.contradict(comes_out_again(evidence, again))
        if again.unasked:
            found.notes.append(
                f"{again.unasked} recorded answers of {episode.key} have no question"
            )
    elif again is not None:
        broken |= found.contradict([(None, "replay", again.message)])
    elif protocol is not None:
        broken |= found.contradict(_guarded(replies_give_this_record(evidence, protocol)))
    if again is not None:
        found.say("programs", "contradicted" if broken else "re-derived")
    else:
        found.say("programs", "contradicted" if broken else "cannot be checked", why)
    if protocol is None:
        found.say("conversation", "contradicted" if broken else "cannot be checked", why)
        return found
    outcome: Word = "consistent" if again is None else "re-derived"
    found.say("conversation", "contradicted" if broken else outcome)
    models = [role.model for role in protocol.roles(episode).values()]
    found.say_answers(models, known=isinstance(again, Replayed) and not broken)
    return found


def record_is_consistent(
    evidence: EpisodeEvidence[TurnRecord], protocol: CodeProtocol
) -> Iterator[Found]:
    """Yield verdicts in a record that do not belong to its programs."""
    try:
        record = read_record(type(protocol), evidence.outcome)
    except RunError as error:
        yield None, "outcome", error.message
        return
    if record is not None:
        for step, what in protocol.inconsistencies(record):
            yield step, "programs", what


def replies_give_this_record(
    evidence: EpisodeEvidence[TurnRecord], protocol: CodeProtocol
) -> Iterator[Found]:
    """Yield the differences of the outcome recomputed from recorded replies and results alone."""
    program = evidence.outcome.program
    if isinstance(program, msgspec.UnsetType):
        return
    replies = (line.reply for line in read_dialogue(evidence.dialogue))
    results = iter(evidence.records)

    def answer(ask: CodeAsk) -> CodeReply:
        if isinstance(ask, AskRole):
            reply = next(replies, None)
            if reply is None:
                raise RunError("the dialogue needs more answers than were recorded")
            return reply
        result = next(results, None)
        if result is None or result.request != sha256_of(ask.request):
            raise RunError(
                "the dialogue needs the examination of a program that is not in the journal"
            )
        return msgspec.json.decode(result.result, type=protocol.Result)

    try:
        again = drive(protocol.dialogue(evidence.episode), answer)
    except RunError as error:
        yield None, "replay", error.message
        return
    same = close_line(msgspec.json.encode(again), bytes(program.record))
    if not same or protocol.ended(again).status != evidence.outcome.status:
        yield None, "replay", "the recorded answers and results give a different outcome"


# The cost of answers, recomputed: dollars follow from recorded tokens and the dated table of
# prices. The tokens are the provider's count, but some numbers are impossible: a negative count, no
# tokens for a text, or more tokens than the bytes of a question or the limit of an answer. Such
# counts are reported and stop no verification.

MOST_TOKENS = 1 << 40
"""More tokens than any question or answer ever had.

Larger numbers are rejected before any arithmetic.
"""
_NEAR = 1e-9


def _check_spending(
    found: Checked, evidence: EpisodeEvidence[R], dated: Mapping[str, ModelRecord]
) -> bool:
    """Recompute dollars from tokens and prices, and report impossible counts.

    ``dated`` contains the run's statements about its own prices. Returns whether something is
    wrong.
    """
    prices, odd, unsure, priced, stated = load_prices(), Counter[str](), "", 0, 0.0
    wrong: list[Found] = []
    try:
        answers = list(_answers(evidence))
    except RunError:  # already reported by the check of the file
        return False
    for model, step, reply, request, most_output in answers:
        about = f"an answer of {model or 'its program'}"
        impossible, implausible = examine_usage(reply, request, most_output)
        if impossible:
            wrong.append((step, "spending", f"{about} {impossible}"))
            continue
        try:
            paid = parse_name(model).route != "scripted" and not model.startswith(
                ("http/", "pipe/", "python/")
            )
        except UserError:
            paid = False
        if not paid:
            stated += reply.usage.usd or 0.0
            continue
        odd.update(f"{model} counts {what}" for what in implausible)
        price, said = prices.of(model), dated.get(model)
        table = (None, None) if price is None else (price.as_of, price.source)
        if said is not None and table != (said.price_as_of, said.price_source):
            then, now = (
                "unknown" if day is None else f"of {day}" for day in (said.price_as_of, table[0])
            )
            unsure = f"the run's price of {model} is {then}, but here it is {now}"
            continue
        fault = _dollars(reply, price)
        if fault and said is None:
            # A run without a statement on its prices may have used the runner's own file.
            unsure = f"{about} {fault}, by the prices known here"
        elif fault:
            wrong.append((step, "spending", f"{about} {fault}"))
        else:
            priced += 1
    if stated:
        unsure = f"its program states ${stated:,.2f} itself; no table has its price"
    broken = found.contradict(wrong)
    why = "; ".join(
        [
            *(f"{what} ({count} of its answers)" for what, count in odd.items()),
            *filter(None, [unsure]),
        ]
    )
    if broken or why or priced:
        outcome: Word = "cannot be checked" if why else "re-derived"
        found.say("dollars", "contradicted" if broken else outcome, why)
    return broken


def _answers(
    evidence: EpisodeEvidence[R],
) -> Iterator[tuple[str, int, ModelReply, AskModel | None, int | None]]:
    """Yield every recorded answer: its model, its step, the reply, the question and its limit.

    The question and the limit are None if unknown.
    """
    if evidence.recording.is_file():
        held = read_recording(evidence.recording)
        for line in held.answers:
            asked, known = line.asked, None
            if held.texts:
                known = AskModel(
                    purpose=asked.purpose,
                    messages=tuple(held.messages[name] for name in asked.messages),
                    tools=held.tools[asked.tools] if asked.tools else (),
                    answer_schema=asked.answer_schema,
                )
            written, thought = (
                asked.params.get(name) for name in ("max_tokens", "reasoning_tokens")
            )
            most = written if isinstance(written, int) else None
            if most is not None and isinstance(thought, int):
                most += thought
            yield asked.model, asked.step, line.reply, known, most
    elif evidence.dialogue.is_file():
        lines = list(read_dialogue(evidence.dialogue))
        for said, messages in zip(lines, whole_messages(lines), strict=True):
            # The log contains only the names of tools, so nothing is claimed about the size of the
            # question.
            known = None if said.tools else AskModel(purpose=said.purpose, messages=messages)
            yield evidence.episode.model, said.step, said.reply, known, None


def examine_usage(
    reply: ModelReply, request: AskModel | None, most_output: int | None
) -> tuple[str, tuple[str, ...]]:
    """Return why the counts of an answer are impossible, and why they are implausible.

    The first value is empty if they are possible.
    """
    usage, odd = reply.usage, []
    counts = (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens, usage.cached_tokens)
    if min(counts) < 0:
        return f"counts {min(counts):,} tokens"[:80], ()
    if max(counts) > MOST_TOKENS:
        return "counts more tokens than any question or answer ever had", ()
    if usage.cached_tokens > usage.input_tokens:
        return (
            f"has {usage.cached_tokens:,} of {usage.input_tokens:,} input tokens in the provider's "
            "cache",
            (),
        )
    if usage.usd is not None and not (math.isfinite(usage.usd) and usage.usd >= 0):
        return f"cost {usage.usd:g} dollars", ()
    if reply.error is None and usage.output_tokens < LEAST_SHARE * estimate_reply(reply):
        odd.append(f"{'no' if not usage.output_tokens else 'too few'} tokens for its text")
    if reply.error is None and not usage.input_tokens:
        odd.append("no tokens for its question")
    if request is not None and usage.input_tokens > most_request(request):
        odd.append("more tokens than its question has bytes")
    if most_output is not None and usage.output_tokens > most_output + usage.reasoning_tokens:
        odd.append("more tokens than an answer may have")
    return "", tuple(odd)


def _dollars(reply: ModelReply, price: Price | None) -> str:
    """Return why the dollars of an answer do not follow from its tokens; empty if they do.

    The number of tokens written to a provider's cache is not recorded. If they have a separate
    price, the dollars are between the cost for all tokens and the cost for none.
    """
    usage, usd = reply.usage, reply.usage.usd
    if not usage.input_tokens and not usage.output_tokens and reply.error is not None:
        return "" if usd is None or usd == 0.0 else f"has no tokens but cost ${usd:g}"
    fresh, read = usage.input_tokens - usage.cached_tokens, usage.cached_tokens
    ends = (
        Tokens(plain=fresh, cache_read=read, output=usage.output_tokens),
        Tokens(cache_write=fresh, cache_read=read, output=usage.output_tokens),
    )
    costs = [None if price is None else price.usd(tokens) for tokens in ends]
    low, high = (
        None if None in costs else end([one or 0.0 for one in costs]) for end in (min, max)
    )
    if low is None or high is None:
        return "" if usd is None else f"has no known price but cost ${usd:g}"
    near = _NEAR * max(1.0, high)
    if usd is None or not low - near <= usd <= high + near:
        expected = f"${low:g}" if low == high else f"${low:g} to ${high:g}"
        return (
            f"cost {'an unknown sum' if usd is None else f'${usd:g}'}; its tokens cost {expected}"
        )
    return ""
