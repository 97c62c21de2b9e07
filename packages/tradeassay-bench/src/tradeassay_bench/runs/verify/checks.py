"""Check the claims of a recorded episode and report each result.

The episode is recomputed from its sources (:mod:`tradeassay_bench.runs.verify.replay`) and must be
equal to its record, except for the last digits of numbers. If the replay of a trading episode fails
or is impossible, the account is also recomputed from the recorded events alone. If the data is
available, an auditor (:mod:`tradeassay_bench.account.audit`) always checks fills and rules. The
auditor shares almost no code with the exchange.
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
from tradeassay_bench.runs.store.outcome import (
    ClaimOutcome,
    ClaimStatus,
    Outcome,
    Violation,
    read_outcome,
)
from tradeassay_bench.runs.verify.replay import (
    NotReplayable,
    Replayed,
    can_be_queried,
    differences,
    format_difference,
    replay_conversation,
    replay_rule,
    with_irreproducible_parts,
)

Contradiction = tuple[int | None, str, str]
"""One contradiction: the step (None for the whole episode), the check, and the false statement."""
R = TypeVar("R", bound=JournalRecord)
NO_DATA = "the data is not here"


class CheckTask(msgspec.Struct, frozen=True, kw_only=True, tag="check"):
    """A task to check the record of one episode.

    ``play`` is the task that runs the episode, with the benchmark to verify against.
    ``data_intact`` is true if the installed data equals the recorded data. ``model`` is the
    manifest's record of the episode's model and its price. ``venue_problem`` is the reason why the
    venue's recorded rules are not available here; empty if they are. ``other_code`` names the
    installed version of the agent if it differs from the recorded version.
    """

    play: PlayTask
    data_intact: bool
    model: ModelRecord | None = None
    venue_problem: str = ""
    other_code: str = ""


class Checked(msgspec.Struct, kw_only=True, tag="checked"):
    """The results of checking one episode: its steps, contradictions and claims.

    ``notes`` lists the unused parts of the record.
    """

    key: str
    steps: int = 0
    violations: list[Violation] = []
    claims: list[ClaimOutcome] = []
    notes: list[str] = []

    def contradict(self, contradictions: Iterable[Contradiction]) -> bool:
        """Add contradictions. Return whether there were any."""
        before = len(self.violations)
        for step, check, what in contradictions:
            self.violations.append(Violation(check=check, what=what, episode=self.key, step=step))
        return len(self.violations) > before

    def record_claim(self, claim: str, outcome: ClaimStatus, why: str = "") -> None:
        """Add the result of a claim."""
        self.claims.append(ClaimOutcome(claim=claim, outcome=outcome, why=why, episodes=1))

    def record_answers_claim(self, models: list[str], *, known: bool) -> None:
        """Add the result of the claim that the models gave the recorded replies.

        Only scripted models can be queried again. ``known`` is true if they were, and their replies
        matched the record.
        """
        if not can_be_queried(models):
            self.record_claim("answers", "cannot be checked", NOT_REDERIVABLE)
        elif known:
            self.record_claim("answers", "re-derived")
        else:
            self.record_claim("answers", "cannot be checked", "models were not queried again")


@dataclass(frozen=True, slots=True)
class EpisodeEvidence(Generic[R]):
    """The record of one episode: its outcome, its journal, and the paths of its other files.

    ``content`` is the journal as bytes. ``records`` contains its parsed lines.
    """

    episode: EpisodeSpec
    outcome: Outcome
    content: bytes
    records: tuple[R, ...]
    dialogue: Path
    recording: Path


def check_episode(task: CheckTask) -> Checked:
    """Return the results of a trading episode's claims.

    If the data is not available, only the checks that need no data are made.
    """
    play, episode, market = task.play, task.play.episode, task.play.benchmark.market
    checked = Checked(key=episode.key)
    evidence = _open(checked, RunFolder(Path(play.folder)), episode, STEP_DECODER)
    if evidence is None:
        checked.record_claim("decisions", "contradicted", "the record cannot be read")
        return checked
    outcome, records = evidence.outcome, evidence.records
    _check_recording(checked, evidence)
    _check_spending(checked, evidence, {} if task.model is None else {task.model.model: task.model})
    snapshot = (
        snapshot_for(episode.dataset, play.home, play.data_sha256) if task.data_intact else None
    )
    # If the episode cannot run again, its failure is a claim of the runner. A false claim could
    # hide a bad result.
    unproven_failure = (
        f"that it failed after {outcome.steps} sessions ({str(outcome.error)[:60]}) is the "
        "runner's word"
    )
    if snapshot is None or task.venue_problem:
        why = task.venue_problem or NO_DATA
        broken = checked.contradict(contradictions_within(evidence))
        if snapshot is not None:
            complete = outcome.status == "done"
            audited = audit(records, snapshot, market, complete=complete, venue_known=False)
            broken |= checked.contradict(_guarded(audited))
        for claim in ("decisions", "account"):
            checked.record_claim(claim, "cannot be checked", why)
        checked.record_claim("money", "contradicted" if broken else "consistent")
        if episode.by_model:
            checked.record_claim("conversation", "cannot be checked", why)
            checked.record_answers_claim([episode.model], known=False)
        if outcome.status == "failed":
            checked.record_claim("outcome", "cannot be checked", unproven_failure)
        return checked
    # Run the episode again and compare. Then use the checks that share no code with that.
    why = ""
    try:
        replayed = replay_conversation(play, outcome) if episode.by_model else replay_rule(play)
        differences_found = list(replay_differences(evidence, replayed))
        if differences_found and task.other_code:
            raise NotReplayable(f"they differ with {task.other_code}, which is installed here")
        broken = checked.contradict(differences_found)
        if replayed.unused_replies:
            checked.notes.append(unused_replies_note(replayed, episode))
    except NotReplayable as error:
        broken, why = False, str(error)
    except TradeassayError as error:
        broken = checked.contradict([(None, "replay", error.message)])
    if broken or why:
        checked.contradict(contradictions_within(evidence))
        broken |= checked.contradict(_guarded(execution_differences(records, snapshot, market)))
    unfair = checked.contradict(
        _guarded(audit(records, snapshot, market, complete=outcome.status == "done"))
    )
    result: tuple[ClaimStatus, str] = ("contradicted", "") if broken else ("re-derived", "")
    if why:
        result = "cannot be checked", why
        if outcome.status == "failed":
            checked.record_claim("outcome", "cannot be checked", unproven_failure)
    checked.record_claim("decisions", *result)
    checked.record_claim("account", "contradicted" if broken or unfair else "re-derived")
    if episode.by_model:
        checked.record_claim("conversation", *result)
        checked.record_answers_claim([episode.model], known=not broken and not why)
    return checked


def unused_replies_note(replayed: Replayed, episode: EpisodeSpec) -> str:
    """Return the note about recorded replies that the replay of an episode did not need."""
    return f"{replayed.unused_replies} recorded answers of {episode.key} have no question"


def _open(
    checked: Checked, folder: RunFolder, episode: EpisodeSpec, decoder: msgspec.json.Decoder[R]
) -> EpisodeEvidence[R] | None:
    """Return the record of an episode; None if it is incomplete or unreadable.

    The journal is compared with its hash, and every line with the format in which it is written.
    Contradictions are added to ``checked``.
    """
    key = episode.key

    def contradict(check: str, what: str, step: int | None = None) -> None:
        checked.contradict([(step, check, what)])

    try:
        outcome = read_outcome(folder.outcome(key))
    except RunError as error:
        contradict("outcome", error.message)
        return None
    if outcome is not None:
        stored, canonical = folder.outcome(key).read_bytes(), canonical_json(outcome)
        if stored != canonical:
            contradict("outcome", f"outcome.json: {format_difference(stored, canonical)}")
    if outcome is None or not folder.events(key).is_file():
        contradict("outcome", "the episode has not ended: the run is unfinished")
        return None
    content, records = folder.events(key).read_bytes(), list[R]()
    if sha256_bytes(content) != outcome.events_sha256:
        contradict("journal", "events.jsonl does not match its hash in outcome.json")
    for step, line in enumerate(content.removesuffix(b"\n").split(b"\n") if content else ()):
        try:
            record = decoder.decode(line)
        except UNDECODABLE as error:
            contradict("journal", f"the line does not parse: {error}", step)
            return None
        if encode_line(record) != line:
            contradict("journal", "the line is not written as tradeassay writes it", step)
        records.append(record)
        checked.steps = len(records)
    if content and not content.endswith(b"\n"):
        contradict("journal", "the last line is incomplete", len(records) - 1)
    if outcome.steps != len(records):
        contradict(
            "outcome",
            f"outcome.json states {outcome.steps} steps, but the journal has {len(records)}",
        )
    recording = folder.models / f"{key}.jsonl"
    return EpisodeEvidence(
        episode, outcome, content, tuple(records), folder.dialogue(key), recording
    )


def replay_differences(evidence: EpisodeEvidence[R], replayed: Replayed) -> Iterator[Contradiction]:
    """Yield the differences between a record and its replay: in journal, dialogue and outcome.

    The last digits of numbers in journal and outcome may differ, as they do between processors and
    versions of numpy. The dialogue must be byte-identical.
    """
    old, new = evidence.content.splitlines(), replayed.events.splitlines()
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
    else:  # The hash of a journal depends on the last digits, so the hashes are not compared.
        digest = evidence.outcome.events_sha256
        outcome = msgspec.structs.replace(replayed.outcome, events_sha256=digest)
        replayed = replayed._replace(outcome=outcome)
    path = evidence.dialogue
    dialogue = path.read_bytes() if path.is_file() else b""
    if dialogue != replayed.dialogue:
        lines = zip(dialogue.splitlines(), replayed.dialogue.splitlines(), strict=False)
        number = next((n for n, (a, b) in enumerate(lines, start=1) if a != b), None)
        where = f"first in line {number}" if number is not None else "it is longer or shorter"
        yield None, "dialogue", f"dialogue.jsonl differs when it is recomputed, {where}"
    recorded_json = canonical_json(evidence.outcome)
    replayed_json = canonical_json(with_irreproducible_parts(replayed.outcome, evidence.outcome))
    if not close_text(recorded_json.decode(), replayed_json.decode()):
        changed = differences(
            msgspec.json.decode(recorded_json), msgspec.json.decode(replayed_json), near=True
        )
        texts = (
            f"{field} is {str(old)[:80]!r}, but now {str(new)[:80]!r}"
            for field, old, new in changed
        )
        yield (
            None,
            "outcome",
            f"the episode ends differently when it runs again: {next(texts, 'its format differs')}",
        )


def contradictions_within(evidence: EpisodeEvidence[StepRecord]) -> Iterator[Contradiction]:
    """Yield the contradictions within a record. They are found without data and rules."""
    yield from spending_differences(evidence)
    status, error = evidence.outcome.status, evidence.outcome.error
    if (status == "failed") is (error is None):
        yield None, "outcome", f"the episode is {status}, but its error is {error!r:.60}"
    if status == "done" and all(record.decision.status == "failed" for record in evidence.records):
        yield None, "outcome", "no decision was usable, but the episode is recorded as done"
    done = 0
    try:  # The account is computed from the events alone, until an accounting identity is violated.
        for _ in Ledger.steps(evidence.records):
            done += 1
    except (LedgerError, ArithmeticError, LookupError, TypeError, ValueError) as broken:
        yield done, "ledger", str(broken)


def spending_differences(evidence: EpisodeEvidence[R]) -> Iterator[Contradiction]:
    """Yield the difference between the outcome's spending and the sum over the dialogue, if any."""
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


def _same_spending(spending: Spending, other: Spending) -> bool:
    """Return whether two spendings are equal, except for the last digits of their dollars."""
    other_usd_aside = msgspec.structs.replace(other, usd=spending.usd)
    return close(spending.usd, other.usd) and spending == other_usd_aside


def _check_recording(checked: Checked, evidence: EpisodeEvidence[R]) -> bool:
    """Check that every recorded reply matches its question.

    Contradictions are added to ``checked``. Returns whether there are any.
    """
    spent = evidence.outcome.spending
    if not evidence.recording.is_file():
        if spent is not None and spent.calls:
            why = "it is missing; the replies in dialogue.jsonl were used instead"
            checked.record_claim("recording", "cannot be checked", why)
        return False
    try:
        return checked.contradict(
            (None, "recording", what) for what in answer_faults(evidence.recording)
        )
    except RunError as error:
        return checked.contradict([(None, "recording", error.message)])


def _guarded(contradictions: Iterator[Contradiction]) -> Iterator[Contradiction]:
    """Yield the contradictions that a check finds.

    An exception of the check becomes a contradiction, because records may be damaged in any way.
    """
    try:
        yield from contradictions
    except TradeassayError as error:
        yield None, "replay", f"the journal is inconsistent: {error.message}"
    except (ArithmeticError, LookupError, TypeError, ValueError, *UNDECODABLE) as error:
        # Forged numbers and names can make ordinary code raise. The journal is then inconsistent.
        yield None, "replay", f"the journal is inconsistent: {type(error).__name__} {error}"


def execution_differences(
    records: Sequence[StepRecord], snapshot: Snapshot, config: MarketConfig
) -> Iterator[Contradiction]:
    """Execute the recorded decisions again and yield the first line that differs."""
    market = Market(snapshot, config)
    market.reset()
    for step, record in enumerate(records[: len(market)]):
        if not close_line(encode_line(market.step(record.decision).record), encode_line(record)):
            yield step, "replay", "executing the recorded decision gives a different line"
            return


_MOST_DAYS = 1_000
"""The maximum number of cached sessions per market. Later sessions are read for every episode."""
_WITHOUT_VENUE = frozenset(("sessions", "actions", "nav", "fills", "suspension", "universe"))
"""Checks of the auditor that use the data and the benchmark, but no rule of a venue."""


def audit(
    records: Sequence[StepRecord],
    snapshot: Snapshot,
    config: MarketConfig,
    *,
    complete: bool,
    venue_known: bool = True,
) -> Iterator[Contradiction]:
    """Yield the steps that contradict the data or the rules, as found by the auditor.

    The auditor shares almost no code with the exchange. With ``complete`` the journal must reach
    the end of the window. If ``venue_known`` is false, the rules of the venue are not available,
    and only the checks in :data:`_WITHOUT_VENUE` are made.
    """
    rows = snapshot.rows(config.first, config.last)
    if len(records) > len(rows) or (complete and len(records) < len(rows)):
        yield (
            None,
            "sessions",
            f"{len(records)} steps are recorded, but the window has {len(rows)} sessions",
        )
    config = config if venue_known else msgspec.structs.replace(config, venue="us-v1")
    auditor, (days, universe) = Auditor(), _market_days(snapshot, config)
    index = parse_universe(config.universe).of
    for step, (row, record) in enumerate(zip(rows, records, strict=False)):
        day = days.get(row)
        if day is None:
            before, seen = snapshot.at(row, "pre_open"), snapshot.at(row, MOMENTS[config.decide])
            delisted = frozenset(before.delisted_now())
            members = seen.symbols if index == "all" else seen.members(index)
            stocks = [symbol for symbol in members if universe is None or symbol in universe]
            funds = [symbol for symbol in seen.symbols if seen.instrument(symbol).kind == "index"]
            day = AuditDay(
                venue=venues.get(config.venue),
                bars=snapshot.at(row, "close").session_bars(),
                actions=before.todays_actions(),
                delisted=delisted,
                members=frozenset((*stocks, *funds)) - delisted,
                fill=config.fill,
                mark=config.mark,
                max_weight=config.max_weight,
                max_positions=config.max_positions,
                decided_at=seen.clock,
            )
            if len(days) < _MOST_DAYS:
                days[row] = day
        for finding in auditor.step(step, day, record, config.cash):
            if venue_known or finding.check in _WITHOUT_VENUE:
                yield step, finding.check, finding.what


@lru_cache(maxsize=2)
def _market_days(
    snapshot: Snapshot, config: MarketConfig
) -> tuple[dict[int, AuditDay], frozenset[str] | None]:
    """Return an empty cache for the sessions of a market, and the stocks of its universe.

    The cache maps rows to sessions. :func:`audit` fills it, and all episodes of the market share
    it. The stocks are None if the universe is not limited to the most traded stocks.
    """
    rows = snapshot.rows(config.first, config.last)
    return {}, most_traded(config.universe, snapshot.at(rows[0], "pre_open")) if rows else None


# -- programs ---


def check_program(
    folder: RunFolder,
    episode: EpisodeSpec,
    protocol: CodeProtocol | None,
    replayed: Replayed | TradeassayError | None,
    why: str = "",
    model_records: Mapping[str, ModelRecord] | None = None,
) -> Checked:
    """Return the results of a code episode's claims.

    ``replayed`` is the replay, in which the programs were examined again, or the error that stopped
    the replay. It is None if programs cannot be examined, for the reason ``why``. The recorded
    results are then accepted, and all other parts are checked. ``model_records`` contains the
    manifest's records of models and prices, by the name of the model. If ``protocol`` is None, the
    programs and the conversation are not checked.
    """
    checked = Checked(key=episode.key)
    evidence = _open(checked, folder, episode, TURN_DECODER)
    if evidence is None:
        checked.record_claim("programs", "contradicted", "the record cannot be read")
        return checked
    broken = protocol is not None and checked.contradict(
        _guarded(record_inconsistencies(evidence, protocol))
    )
    if broken:
        replayed, why = None, "the record contradicts itself"
    broken |= checked.contradict(spending_differences(evidence))
    broken |= _check_recording(checked, evidence)
    broken |= _check_spending(checked, evidence, model_records or {})
    if isinstance(replayed, Replayed):
        broken |= checked.contradict(replay_differences(evidence, replayed))
        if replayed.unused_replies:
            checked.notes.append(unused_replies_note(replayed, episode))
    elif replayed is not None:
        broken |= checked.contradict([(None, "replay", replayed.message)])
    elif protocol is not None:
        broken |= checked.contradict(_guarded(reply_differences(evidence, protocol)))
    if replayed is not None:
        checked.record_claim("programs", "contradicted" if broken else "re-derived")
    else:
        checked.record_claim("programs", "contradicted" if broken else "cannot be checked", why)
    if protocol is None:
        checked.record_claim("conversation", "contradicted" if broken else "cannot be checked", why)
        return checked
    status: ClaimStatus = "consistent" if replayed is None else "re-derived"
    checked.record_claim("conversation", "contradicted" if broken else status)
    models = [role.model for role in protocol.roles(episode).values()]
    checked.record_answers_claim(models, known=isinstance(replayed, Replayed) and not broken)
    return checked


def record_inconsistencies(
    evidence: EpisodeEvidence[TurnRecord], protocol: CodeProtocol
) -> Iterator[Contradiction]:
    """Yield the statements in a program's record that contradict each other."""
    try:
        record = read_record(type(protocol), evidence.outcome)
    except RunError as error:
        yield None, "outcome", error.message
        return
    if record is not None:
        for step, what in protocol.inconsistencies(record):
            yield step, "programs", what


def reply_differences(
    evidence: EpisodeEvidence[TurnRecord], protocol: CodeProtocol
) -> Iterator[Contradiction]:
    """Recompute the outcome from recorded replies and results, and yield its difference, if any."""
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
        record = drive(protocol.dialogue(evidence.episode), answer)
    except RunError as error:
        yield None, "replay", error.message
        return
    same = close_line(msgspec.json.encode(record), bytes(program.record))
    if not same or protocol.ended(record).status != evidence.outcome.status:
        yield None, "replay", "the recorded answers and results give a different outcome"


# The cost of answers is recomputed from recorded tokens and the dated table of prices. The tokens
# are the provider's count. Impossible counts, such as a negative number, contradict the record.
# Implausible counts are only reported: no tokens for a text, more tokens than the question has
# bytes, or more tokens than the limit of an answer.

MOST_TOKENS = 1 << 40
"""The maximum number of tokens of a question or an answer.

It is far above any real count. Larger numbers are rejected before any arithmetic.
"""
_NEAR = 1e-9
"""The tolerance for dollars, relative to amounts above one dollar, else absolute."""


def _check_spending(
    checked: Checked, evidence: EpisodeEvidence[R], model_records: Mapping[str, ModelRecord]
) -> bool:
    """Recompute dollars from tokens and prices, and report impossible counts.

    ``model_records`` contains the manifest's records of models and prices. Contradictions are added
    to ``checked``. Returns whether there are any.
    """
    prices, odd, unsure, priced, stated = load_prices(), Counter[str](), "", 0, 0.0
    wrong: list[Contradiction] = []
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
        price, stated_price = prices.of(model), model_records.get(model)
        table = (None, None) if price is None else (price.as_of, price.source)
        if stated_price is not None and table != (
            stated_price.price_as_of,
            stated_price.price_source,
        ):
            recorded, installed = (
                "unknown" if day is None else f"of {day}"
                for day in (stated_price.price_as_of, table[0])
            )
            unsure = f"the run's price of {model} is {recorded}, but here it is {installed}"
            continue
        fault = _dollars(reply, price)
        if fault and stated_price is None:
            # A run without a statement on its prices may have used the runner's own file.
            unsure = f"{about} {fault}, by the prices known here"
        elif fault:
            wrong.append((step, "spending", f"{about} {fault}"))
        else:
            priced += 1
    if stated:
        unsure = f"its program states a cost of ${stated:,.2f}, and no table has its price"
    broken = checked.contradict(wrong)
    why = "; ".join(
        [
            *(f"{what} ({count} of its answers)" for what, count in odd.items()),
            *filter(None, [unsure]),
        ]
    )
    if broken or why or priced:
        status: ClaimStatus = "cannot be checked" if why else "re-derived"
        checked.record_claim("dollars", "contradicted" if broken else status, why)
    return broken


def _answers(
    evidence: EpisodeEvidence[R],
) -> Iterator[tuple[str, int, ModelReply, AskModel | None, int | None]]:
    """Yield every recorded answer: the model, the step, the reply, the question, the token limit.

    The question and the limit are None if they are unknown.
    """
    if evidence.recording.is_file():
        recording = read_recording(evidence.recording)
        for line in recording.answers:
            question, request = line.asked, None
            if recording.texts:
                request = AskModel(
                    purpose=question.purpose,
                    messages=tuple(recording.messages[name] for name in question.messages),
                    tools=recording.tools[question.tools] if question.tools else (),
                    answer_schema=question.answer_schema,
                )
            text_limit, reasoning_limit = (
                question.params.get(name) for name in ("max_tokens", "reasoning_tokens")
            )
            limit = text_limit if isinstance(text_limit, int) else None
            if limit is not None and isinstance(reasoning_limit, int):
                limit += reasoning_limit
            yield question.model, question.step, line.reply, request, limit
    elif evidence.dialogue.is_file():
        lines = list(read_dialogue(evidence.dialogue))
        for exchange, messages in zip(lines, whole_messages(lines), strict=True):
            # The log contains only the names of tools, so the size of a question with tools is
            # unknown.
            request = None
            if not exchange.tools:
                request = AskModel(purpose=exchange.purpose, messages=messages)
            yield evidence.episode.model, exchange.step, exchange.reply, request, None


def examine_usage(
    reply: ModelReply, request: AskModel | None, most_output: int | None
) -> tuple[str, tuple[str, ...]]:
    """Return why an answer's token counts are impossible, and all reasons why they are implausible.

    The first value is empty if the counts are possible. The second value is then empty if they are
    plausible.
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
    """Return why the cost of an answer does not follow from its tokens; empty if it does.

    The number of tokens written to a provider's cache is not recorded. If such tokens have a
    separate price, the cost must lie between two bounds: no input token was written to the cache,
    and all fresh input tokens were.
    """
    usage, usd = reply.usage, reply.usage.usd
    if not usage.input_tokens and not usage.output_tokens and reply.error is not None:
        return "" if usd is None or usd == 0.0 else f"has no tokens but cost ${usd:g}"
    fresh, read = usage.input_tokens - usage.cached_tokens, usage.cached_tokens
    bounds = (
        Tokens(plain=fresh, cache_read=read, output=usage.output_tokens),
        Tokens(cache_write=fresh, cache_read=read, output=usage.output_tokens),
    )
    costs = [None if price is None else price.usd(tokens) for tokens in bounds]
    known_costs = [cost for cost in costs if cost is not None]
    if len(known_costs) < len(costs):
        return "" if usd is None else f"has no known price but cost ${usd:g}"
    low, high = min(known_costs), max(known_costs)
    near = _NEAR * max(1.0, high)
    if usd is None or not low - near <= usd <= high + near:
        expected = f"${low:g}" if low == high else f"${low:g} to ${high:g}"
        return (
            f"cost {'an unknown sum' if usd is None else f'${usd:g}'}; its tokens cost {expected}"
        )
    return ""
