"""What a recorded episode claims, claim by claim, and what becomes of each claim when it is made again.

The episode is made again from what it was made of (:mod:`tradeassay.runs.verify.replay`) and must come out byte
for byte. Further checks share no code with what made it: an account kept from the events alone,
an auditor of fills and rules. They still say something where an episode cannot be made again.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

import msgspec

from tradeassay.account import Ledger, venues
from tradeassay.account.audit import AuditDay, Auditor
from tradeassay.benchmarks import Benchmark
from tradeassay.benchmarks.programs import AskRole, CodeAsk, CodeProtocol, CodeReply
from tradeassay.core.dialogue import AskModel, ModelReply, Usage
from tradeassay.core.drive import drive
from tradeassay.core.errors import UNDECODABLE, LedgerError, RunError, TradeassayError, UserError
from tradeassay.core.events import STEP_DECODER, TURN_DECODER, JournalRecord, StepRecord, TurnRecord
from tradeassay.core.hashing import canonical_json, sha256_bytes, sha256_of
from tradeassay.core.measure import NOT_REDERIVABLE
from tradeassay.data import Snapshot
from tradeassay.llm import load_prices, parse_name
from tradeassay.llm.budget import LEAST_SHARE, estimate_reply, most_request
from tradeassay.llm.cassette import cassette_faults, read_cassette
from tradeassay.llm.tables import Price, Tokens
from tradeassay.play import Market, MarketConfig, most_traded, parse_universe
from tradeassay.play.dialogue_log import Spending, read_dialogue, whole_messages
from tradeassay.play.journal import encode_line
from tradeassay.play.market import MOMENTS
from tradeassay.runs.play.episodes import PlayTask
from tradeassay.runs.play.programs import read_record
from tradeassay.runs.spec.episode import EpisodeSpec, ModelRecord
from tradeassay.runs.store.cache import snapshot_for
from tradeassay.runs.store.folder import RunFolder
from tradeassay.runs.store.outcome import ClaimOutcome, Outcome, Violation, Word, read_outcome
from tradeassay.runs.verify.replay import (
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
"""The step, the check, and what does not hold."""
R = TypeVar("R", bound=JournalRecord)
NO_DATA = "the data is not here"


class CheckTask(msgspec.Struct, frozen=True, kw_only=True, tag="check"):
    """Check what an episode left behind; with ``data_sha256`` None, without its data.

    ``benchmark`` is the registered one where there is one, whatever the run says; ``model`` what the run says
    about its model's price. ``no_venue`` says why the venue's rules are not here, ``other_code`` which other
    version of the agent is.
    """

    folder: str
    home: str | None
    episode: EpisodeSpec
    benchmark: Benchmark
    data_sha256: str | None
    secret: str | None = None
    model: ModelRecord | None = None
    no_venue: str = ""
    other_code: str = ""


class Checked(msgspec.Struct, frozen=True, kw_only=True, tag="checked"):
    """The violations found in an episode, what became of its claims, and its number of steps.

    ``notes`` say what was not looked at.
    """

    steps: int
    violations: tuple[Violation, ...]
    claims: tuple[ClaimOutcome, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EpisodeEvidence(Generic[R]):
    """What one episode left behind: its outcome, its journal, and where everything is."""

    place: RunFolder
    episode: EpisodeSpec
    outcome: Outcome
    content: bytes
    records: tuple[R, ...]

    @property
    def dialogue(self) -> Path:
        return self.place.dialogue(self.episode.key)

    @property
    def cassette(self) -> Path:
        return self.place.models / f"{self.episode.key}.jsonl"


class Examination:
    """What is found about one episode: contradictions, and what becomes of its claims."""

    def __init__(self, episode: EpisodeSpec) -> None:
        self.violations: list[Violation] = []
        self.claims: list[ClaimOutcome] = []
        self.notes: list[str] = []
        self.steps = 0
        self._key = episode.key

    def contradict(self, found: Iterable[Found]) -> bool:
        """Take everything that does not hold; returns whether there was anything."""
        before = len(self.violations)
        for step, check, what in found:
            self.violations.append(Violation(check=check, what=what, episode=self._key, step=step))
        return len(self.violations) > before

    def say(self, claim: str, outcome: Word, why: str = "") -> None:
        self.claims.append(ClaimOutcome(claim=claim, outcome=outcome, why=why, episodes=1))

    def say_answers(self, models: list[str], *, known: bool) -> None:
        """Say what is known about who gave the replies. Only a scripted model can be asked whether it did."""
        if not can_be_asked(models):
            self.say("answers", "cannot be checked", NOT_REDERIVABLE)
        elif known:
            self.say("answers", "re-derived")
        else:
            self.say("answers", "cannot be checked", "they were not asked again")

    def result(self) -> Checked:
        return Checked(
            steps=self.steps, violations=tuple(self.violations), claims=tuple(self.claims), notes=tuple(self.notes)
        )


def check_episode(task: CheckTask) -> Checked:
    """Return what becomes of a trading episode's claims; without data, only what needs none is looked at."""
    found = Examination(task.episode)
    evidence = _open(found, RunFolder(Path(task.folder)), task.episode, STEP_DECODER)
    if evidence is None:
        found.say("decisions", "contradicted", "the record cannot be read")
        return found.result()
    _check_cassette(found, evidence)
    _check_spending(found, evidence, {} if task.model is None else {task.model.model: task.model})
    if task.data_sha256 is None or task.no_venue:
        why = task.no_venue or NO_DATA
        broken = found.contradict(contradictions_within(evidence))
        if task.data_sha256 is not None:
            snapshot = snapshot_for(task.episode.dataset, task.home, task.data_sha256)
            broken |= found.contradict(_guarded(audit_without_venue(evidence, snapshot, task.benchmark.market)))
        for claim in ("decisions", "account"):
            found.say(claim, "cannot be checked", why)
        found.say("money", "contradicted" if broken else "consistent")
        if task.episode.by_model:
            found.say("conversation", "cannot be checked", why)
            found.say_answers([task.episode.model], known=False)
        say_ending(found, evidence)
        return found.result()
    play = PlayTask(
        folder=task.folder,
        home=task.home,
        episode=task.episode,
        benchmark=task.benchmark,
        data_sha256=task.data_sha256,
        secret=task.secret,
    )
    _replay_trading(found, evidence, play, task.other_code)
    return found.result()


def _replay_trading(
    found: Examination, evidence: EpisodeEvidence[StepRecord], task: PlayTask, other_code: str
) -> None:
    """Play the episode again and compare; then ask those who share no code with the player."""
    episode, market = task.episode, task.benchmark.market
    snapshot = snapshot_for(episode.dataset, task.home, task.data_sha256)
    why = ""
    try:
        again = replay_conversation(task, evidence.outcome) if episode.by_model else replay_rule(task)
        wrong = list(comes_out_again(evidence, again))
        if wrong and other_code:
            raise NotReplayable(f"they come out otherwise with {other_code}, which is here")
        broken = found.contradict(wrong)
        if again.unasked:
            found.notes.append(f"{again.unasked} recorded answers of {episode.key} were not asked for")
    except NotReplayable as error:
        broken, why = False, str(error)
    except TradeassayError as error:
        broken = found.contradict([(None, "replay", error.message)])
    if broken or why:
        found.contradict(contradictions_within(evidence))
        broken |= found.contradict(_guarded(decisions_give_these_lines(evidence, snapshot, market)))
    complete = evidence.outcome.status == "done"
    unfair = found.contradict(_guarded(audit(evidence.records, snapshot, market, complete=complete)))
    comes_out: tuple[Word, str] = ("contradicted", "") if broken else ("re-derived", "")
    if why:
        comes_out = "cannot be checked", why
        say_ending(found, evidence)
    found.say("decisions", *comes_out)
    found.say("account", "contradicted" if broken or unfair else "re-derived")
    if episode.by_model:
        found.say("conversation", *comes_out)
        found.say_answers([episode.model], known=not broken and not why)


def _open(
    found: Examination, place: RunFolder, episode: EpisodeSpec, decoder: msgspec.json.Decoder[R]
) -> EpisodeEvidence[R] | None:
    """Check the journal against its hash, then read it line by line; None where it cannot be read."""
    outcome, key = None, episode.key

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
        wrong("journal", "events.jsonl is not the file that outcome.json speaks of")
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
        wrong("journal", "the last line is torn", len(records) - 1)
    if outcome.steps != len(records):
        wrong("outcome", f"{outcome.steps} steps were recorded, {len(records)} are in the journal")
    return EpisodeEvidence(place, episode, outcome, content, tuple(records))


def comes_out_again(evidence: EpisodeEvidence[R], again: Replayed) -> Iterator[Found]:
    """Journal, dialogue and outcome are those that come out when the episode is played again."""
    yield from _same_lines(evidence, again)
    path = evidence.dialogue
    dialogue = path.read_bytes() if path.is_file() else b""
    if dialogue != again.dialogue:
        lines = zip(dialogue.splitlines(), again.dialogue.splitlines(), strict=False)
        number = next((n for n, (a, b) in enumerate(lines, start=1) if a != b), None)
        where = f"first in line {number}" if number is not None else "it is longer or shorter"
        yield None, "dialogue", f"dialogue.jsonl comes out otherwise, {where}"
    then = canonical_json(evidence.outcome)
    now = canonical_json(without_accidents(again.outcome, evidence.outcome))
    if then != now:
        changed = differences(msgspec.json.decode(then), msgspec.json.decode(now))
        words = (f"{where} is {str(old)[:80]!r}, now {str(new)[:80]!r}" for where, old, new in changed)
        yield None, "outcome", f"the episode ends otherwise when it is played again: {next(words, 'its form')}"


def _same_lines(evidence: EpisodeEvidence[R], again: Replayed) -> Iterator[Found]:
    """Name the first line of the journal that comes out otherwise, and whether the decision already differs."""
    if evidence.content == again.events:
        return
    then, now = evidence.content.splitlines(), again.events.splitlines()
    step = next((n for n, (a, b) in enumerate(zip(then, now, strict=False)) if a != b), min(len(then), len(now)))
    if step >= len(then) or step >= len(now):
        yield step, "replay", f"{len(then)} steps are recorded, {len(now)} come out when it is played again"
        return
    recorded = evidence.records[step]
    if not isinstance(recorded, StepRecord):
        yield step, "replay", "examining the program again gives another line"
    elif recorded.decision != STEP_DECODER.decode(now[step]).decision:
        yield step, "decisions", "another decision comes out when it is asked for again"
    else:
        yield step, "replay", "carrying out the recorded decision gives another line"


def contradictions_within(evidence: EpisodeEvidence[StepRecord]) -> Iterator[Found]:
    """Yield in what a record contradicts itself, which takes neither data nor rules to see."""
    yield from spending_is_that_of_the_dialogue(evidence)
    yield from outcome_fits(evidence)
    yield from money_adds_up(evidence)


def say_ending(found: Examination, evidence: EpisodeEvidence[StepRecord]) -> None:
    """Say of a failed episode that nobody can play again whose word its failure is: it hides a result."""
    outcome = evidence.outcome
    if outcome.status == "failed":
        why = f"that it failed after {outcome.steps} sessions ({str(outcome.error)[:60]}) is the runner's word"
        found.say("outcome", "cannot be checked", why)


def outcome_fits(evidence: EpisodeEvidence[StepRecord]) -> Iterator[Found]:
    """An episode without a usable decision has failed, and only one that failed has an error."""
    status, error = evidence.outcome.status, evidence.outcome.error
    if (status == "failed") is (error is None):
        yield None, "outcome", f"the episode is {status}, and its error is {error!r:.60}"
    if status == "done" and all(record.decision.status == "failed" for record in evidence.records):
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


def _check_cassette(found: Examination, evidence: EpisodeEvidence[R]) -> bool:
    """Every recorded reply belongs to the question recorded with it; returns whether one does not."""
    spent = evidence.outcome.spending
    if not evidence.cassette.is_file():
        if spent is not None and spent.calls:
            why = "it is missing; the replies in dialogue.jsonl were taken instead"
            found.say("cassette", "cannot be checked", why)
        return False
    try:
        return found.contradict((None, "cassette", what) for what in cassette_faults(evidence.cassette))
    except RunError as error:
        return found.contradict([(None, "cassette", error.message)])


def _check_spending(found: Examination, evidence: EpisodeEvidence[R], dated: Mapping[str, ModelRecord]) -> bool:
    """Make dollars again from tokens and prices, and name counts that cannot be; returns whether one is wrong."""
    try:
        exam = examine_spending(evidence.cassette, evidence.dialogue, evidence.episode.model, dated)
    except RunError:  # named already, where the file itself was looked at
        return False
    broken = found.contradict((step, "spending", what) for step, what in exam.wrong)
    said = [f"{what} ({count} of its answers)" for what, count in exam.odd.items()]
    why = "; ".join([*said, *([exam.unsure] if exam.unsure else [])])
    if broken or why or exam.priced:
        found.say("dollars", "contradicted" if broken else "cannot be checked" if why else "re-derived", why)
    return broken


def money_adds_up(evidence: EpisodeEvidence[StepRecord]) -> Iterator[Found]:
    """Replay the account; the first identity that breaks ends the replay."""
    done = 0
    try:
        for _ in Ledger.steps(evidence.records):
            done += 1
    except (LedgerError, ArithmeticError, LookupError, TypeError, ValueError) as error:
        yield done, "ledger", str(error)


def _guarded(found: Iterator[Found]) -> Iterator[Found]:
    try:
        yield from found
    except TradeassayError as error:
        yield None, "replay", f"the journal cannot be followed: {error.message}"
    except (ArithmeticError, LookupError, TypeError, ValueError, *UNDECODABLE) as error:
        # Forged numbers and names lead plain code astray: wherever that happens, the journal is not what it says.
        yield None, "replay", f"the journal cannot be followed: {type(error).__name__} {error}"


def decisions_give_these_lines(
    evidence: EpisodeEvidence[StepRecord], snapshot: Snapshot, config: MarketConfig
) -> Iterator[Found]:
    """Carry out the recorded decisions again; the first line that comes out differently ends the replay."""
    market = Market(snapshot, config)
    market.reset()
    for place, record in enumerate(evidence.records[: len(market)]):
        if encode_line(market.step(record.decision).record) != encode_line(record):
            yield place, "replay", "carrying out the recorded decision gives another line"
            return


_MOST_DAYS = 1_000
"""Sessions that are kept: memory is bounded, a longer market is read again for every episode."""


def audit(
    records: Sequence[StepRecord], snapshot: Snapshot, config: MarketConfig, *, complete: bool
) -> Iterator[Found]:
    """An auditor that shares no code with the exchange finds nothing that the data or the rules contradict.

    With ``complete`` the journal must reach the end of the window.
    """
    rows = snapshot.rows(config.first, config.last)
    if len(records) > len(rows) or (complete and len(records) < len(rows)):
        yield None, "sessions", f"{len(records)} steps are recorded, the window has {len(rows)} sessions"
    auditor, days = Auditor(), _days(snapshot, config)
    for place, (row, record) in enumerate(zip(rows, records, strict=False)):
        day = days.get(row)
        if day is None:
            day = _audit_day(snapshot, config, row)
            if len(days) < _MOST_DAYS:
                days[row] = day
        for finding in auditor.step(place, day, record, config.cash):
            yield place, finding.check, finding.what


_WITHOUT_VENUE = frozenset(("sessions", "actions", "nav", "fills", "suspension", "universe"))
"""Checks of the auditor that ask the data and the benchmark, and no rule of a venue."""


def audit_without_venue(
    evidence: EpisodeEvidence[StepRecord], snapshot: Snapshot, config: MarketConfig
) -> Iterator[Found]:
    """Days, prices, marks and corporate actions are those of the data, whatever the venue took for a trade."""
    any_venue = msgspec.structs.replace(config, venue="us-v1")
    complete = evidence.outcome.status == "done"
    for found in audit(evidence.records, snapshot, any_venue, complete=complete):
        if found[1] in _WITHOUT_VENUE:
            yield found


@lru_cache(maxsize=2)
def _days(snapshot: Snapshot, config: MarketConfig) -> dict[int, AuditDay]:
    """Keep the sessions of a market: its episodes mostly follow one another, and the data says the same to all."""
    return {}


@lru_cache(maxsize=2)
def _kept_stocks(snapshot: Snapshot, config: MarketConfig) -> frozenset[str] | None:
    """Return the stocks that a universe of limited size has."""
    return most_traded(config.universe, snapshot.at(snapshot.rows(config.first, config.last)[0], "pre_open"))


def _audit_day(snapshot: Snapshot, config: MarketConfig, row: int) -> AuditDay:
    """Return what the data says about a session."""
    kept = _kept_stocks(snapshot, config)
    before = snapshot.at(row, "pre_open")
    seen = snapshot.at(row, MOMENTS[config.decide])
    gone = frozenset(before.delisted_now())
    index = parse_universe(config.universe).of
    stocks = seen.symbols if index == "all" else seen.members(index)
    funds = (symbol for symbol in seen.symbols if seen.instrument(symbol).kind == "index")
    return AuditDay(
        venue=venues.get(config.venue),
        bars=snapshot.at(row, "close").session_bars(),
        actions=before.todays_actions(),
        delisted=gone,
        members=frozenset((*(one for one in stocks if kept is None or one in kept), *funds)) - gone,
        fill=config.fill,
        mark=config.mark,
        max_weight=config.max_weight,
        max_positions=config.max_positions,
        decided_at=seen.clock,
    )


# -- programs ---


def check_program(
    place: RunFolder,
    episode: EpisodeSpec,
    protocol: CodeProtocol | None,
    again: Replayed | TradeassayError | None,
    why: str = "",
    dated: Mapping[str, ModelRecord] | None = None,
) -> Checked:
    """Return what becomes of a code episode's claims.

    ``again`` is the episode as it comes out when its programs are examined again, or what stopped it; None where
    they cannot be, for the reason ``why``. Then the recorded findings are believed, and the rest is checked.
    ``dated`` is what the run says about its models' prices.
    Without a ``protocol`` that is only the form of the record.
    """
    found = Examination(episode)
    evidence = _open(found, place, episode, TURN_DECODER)
    if evidence is None:
        found.say("programs", "contradicted", "the record cannot be read")
        return found.result()
    broken = protocol is not None and found.contradict(_guarded(record_is_consistent(evidence, protocol)))
    if broken:
        again, why = None, "the record contradicts itself"
    broken |= found.contradict(spending_is_that_of_the_dialogue(evidence))
    broken |= _check_cassette(found, evidence)
    broken |= _check_spending(found, evidence, dated or {})
    if isinstance(again, Replayed):
        broken |= found.contradict(comes_out_again(evidence, again))
        if again.unasked:
            found.notes.append(f"{again.unasked} recorded answers of {episode.key} were not asked for")
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
        return found.result()
    found.say("conversation", "contradicted" if broken else "re-derived" if again is not None else "consistent")
    models = [role.model for role in protocol.roles(episode).values()]
    found.say_answers(models, known=isinstance(again, Replayed) and not broken)
    return found.result()


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


# What answers cost, made again: dollars follow from recorded tokens and the dated table of prices. What a provider
# counted is its own affair, but not every number can be a count: a negative one, none for a text, more than the
# bytes of a question or the limit of an answer allow. Such counts are named and stop no verification.

MOST_TOKENS = 1 << 40
"""More than any question or answer ever had: no arithmetic is done with such a number."""
_NEAR = 1e-9


class SpendingExam(NamedTuple):
    """``wrong`` contradicts itself or the table, (step, words); ``odd`` cannot be believed, by words; ``unsure``
    says why dollars could not be made again; ``priced`` answers were.
    """

    wrong: tuple[tuple[int, str], ...]
    odd: dict[str, int]
    unsure: str
    priced: int


class _Answer(NamedTuple):
    """An answer, which model gave it, and its question as far as it is known."""

    model: str
    step: int
    reply: ModelReply
    request: AskModel | None
    most_output: int | None


def examine_spending(cassette: Path, dialogue: Path, model: str, dated: Mapping[str, ModelRecord]) -> SpendingExam:
    """Examine every recorded answer of models; ``dated`` is what the run says about the prices of its own.

    ``model`` is the episode's, used where there is no cassette to name it. Raises :class:`RunError` for files that
    cannot be read.
    """
    prices = load_prices()
    wrong: list[tuple[int, str]] = []
    odd: Counter[str] = Counter()
    unsure, priced, stated = "", 0, 0.0
    for one in _answers(cassette, dialogue, model):
        usage, about = one.reply.usage, f"an answer of {one.model or 'its program'}"
        impossible = _impossible(usage)
        if impossible:
            wrong.append((one.step, f"{about} {impossible}"))
            continue
        if not _paid(one.model):
            stated += usage.usd or 0.0
            continue
        for what in _implausible(one):
            odd[f"{one.model} counts {what}"] += 1
        price = prices.of(one.model)
        said = dated.get(one.model)
        table = (None, None) if price is None else (price.as_of, price.source)
        if said is not None and table != (said.price_as_of, said.price_source):
            unsure = f"the run's price of {one.model} is {_dated(said)}, here it is {_dated(price)}"
            continue
        fault = _dollars(one.reply, price)
        if fault and said is None:
            # A run that does not say whose prices it took may have had those of the runner's own file.
            unsure = f"{about} {fault}, by the prices known here"
        elif fault:
            wrong.append((one.step, f"{about} {fault}"))
        else:
            priced += 1
    if stated:
        unsure = f"its program states ${stated:,.2f} itself; no table has its price"
    return SpendingExam(tuple(wrong), dict(odd), unsure, priced)


def examine_usage(
    model: str, reply: ModelReply, request: AskModel | None, most_output: int | None
) -> tuple[str, tuple[str, ...]]:
    """Return what makes one answer's counts impossible (empty: nothing), and what makes them hard to believe."""
    impossible = _impossible(reply.usage)
    return impossible, () if impossible else tuple(_implausible(_Answer(model, 0, reply, request, most_output)))


def _answers(cassette: Path, dialogue: Path, model: str) -> Iterator[_Answer]:
    if cassette.is_file():
        held = read_cassette(cassette)
        for line in held.answers:
            asked, known = line.asked, None
            if held.texts:
                messages = tuple(held.messages[name] for name in asked.messages)
                tools = held.tools[asked.tools] if asked.tools else ()
                known = AskModel(
                    purpose=asked.purpose, messages=messages, tools=tools, answer_schema=asked.answer_schema
                )
            most, thought = (asked.params.get(name) for name in ("max_tokens", "reasoning_tokens"))
            most = most + (thought if isinstance(thought, int) else 0) if isinstance(most, int) else None
            yield _Answer(asked.model, asked.step, line.reply, known, most)
    elif dialogue.is_file():
        lines = list(read_dialogue(dialogue))
        for said, messages in zip(lines, whole_messages(lines), strict=True):
            # Only the names of tools are in the log, so that nothing is claimed about the question's size.
            known = None if said.tools else AskModel(purpose=said.purpose, messages=messages)
            yield _Answer(model, said.step, said.reply, known, None)


def _paid(model: str) -> bool:
    try:
        return parse_name(model).route != "scripted" and not model.startswith(("http/", "pipe/", "python/"))
    except UserError:
        return False


def _impossible(usage: Usage) -> str:
    """Say what cannot be a count or a sum of money at all; empty where all of it can."""
    counts = (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens, usage.cached_tokens)
    if min(counts) < 0:
        return f"counts {min(counts):,} tokens"[:80]
    if max(counts) > MOST_TOKENS:
        return "counts more tokens than any question or answer ever had"
    if usage.cached_tokens > usage.input_tokens:
        return f"has {usage.cached_tokens:,} of {usage.input_tokens:,} input tokens in the provider's cache"
    if usage.usd is not None and not (math.isfinite(usage.usd) and usage.usd >= 0):
        return f"cost {usage.usd:g} dollars"
    return ""


def _implausible(one: _Answer) -> Iterator[str]:
    usage, reply = one.reply.usage, one.reply
    if reply.error is None and usage.output_tokens < LEAST_SHARE * estimate_reply(reply):
        yield f"{'no' if not usage.output_tokens else 'too few'} tokens for what it wrote"
    if reply.error is None and not usage.input_tokens:
        yield "no tokens for what it was asked"
    if one.request is not None and usage.input_tokens > most_request(one.request):
        yield "more tokens than its question has bytes"
    if one.most_output is not None and usage.output_tokens > one.most_output + usage.reasoning_tokens:
        yield "more tokens than an answer may have"


def _dollars(reply: ModelReply, price: Price | None) -> str:
    """Say in what the dollars of an answer do not follow from its tokens; empty where they do.

    How many tokens were written to a provider's cache is not recorded: where that has a price of its own, the
    dollars lie between all of them and none.
    """
    usage, usd = reply.usage, reply.usage.usd
    if not usage.input_tokens and not usage.output_tokens and reply.error is not None:
        return "" if usd is None or usd == 0.0 else f"took no tokens and ${usd:g}"
    fresh, read = usage.input_tokens - usage.cached_tokens, usage.cached_tokens
    ends = (
        Tokens(plain=fresh, cache_read=read, output=usage.output_tokens),
        Tokens(cache_write=fresh, cache_read=read, output=usage.output_tokens),
    )
    costs = [None if price is None else price.usd(tokens) for tokens in ends]
    low, high = (None if None in costs else end([one or 0.0 for one in costs]) for end in (min, max))
    if low is None or high is None:
        return "" if usd is None else f"has no known price, and cost ${usd:g}"
    near = _NEAR * max(1.0, high)
    if usd is None or not low - near <= usd <= high + near:
        expected = f"${low:g}" if low == high else f"${low:g} to ${high:g}"
        return f"cost {'an unknown sum' if usd is None else f'${usd:g}'}; its tokens cost {expected}"
    return ""


def _dated(price: Price | ModelRecord | None) -> str:
    day = price.price_as_of if isinstance(price, ModelRecord) else None if price is None else price.as_of
    return "unknown" if day is None else f"of {day}"
