"""What a recorded episode claims, claim by claim, and what becomes of each claim when it is made again.

The episode is made again from what it was made of (:mod:`tradeassay.runs.verify.replay`) and must come out byte
for byte. Further checks share no code with what made it: an account kept from the events alone,
an auditor of fills and rules. They still say something where an episode cannot be made again."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from tradeassay.account import Ledger, venues
from tradeassay.account.audit import AuditDay, Auditor
from tradeassay.benchmarks.code_protocol import AskRole, CodeAsk, CodeProtocol, CodeReply
from tradeassay.core.closeness import close_text
from tradeassay.core.dialogue import AskModel, ModelReply
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
from tradeassay.runs.store.folder import RunFolder
from tradeassay.runs.store.manifest import snapshot_for
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
    """Check what an episode left behind that is to be played by the task ``play``: with the registered benchmark
    where there is one, whatever the run says. ``sound``: its data is here as recorded. ``model`` is what the run
    says about its model's price. ``no_venue`` says why the venue's rules are not here, ``other_code`` which other
    version of the agent is."""

    play: PlayTask
    sound: bool
    model: ModelRecord | None = None
    no_venue: str = ""
    other_code: str = ""


class Checked(msgspec.Struct, kw_only=True, tag="checked"):
    """What is found about one episode: its number of steps, contradictions, what becomes of its claims, and what
    was not looked at (``notes``)."""

    key: str
    steps: int = 0
    violations: list[Violation] = []
    claims: list[ClaimOutcome] = []
    notes: list[str] = []

    def contradict(self, found: Iterable[Found]) -> bool:
        """Take everything that does not hold; returns whether there was anything."""
        before = len(self.violations)
        for step, check, what in found:
            self.violations.append(Violation(check=check, what=what, episode=self.key, step=step))
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


@dataclass(frozen=True, slots=True)
class EpisodeEvidence(Generic[R]):
    """What one episode left behind: its outcome, its journal, and where everything else is."""

    episode: EpisodeSpec
    outcome: Outcome
    content: bytes
    records: tuple[R, ...]
    dialogue: Path
    cassette: Path


def check_episode(task: CheckTask) -> Checked:
    """Return what becomes of a trading episode's claims; without data, only what needs none is looked at."""
    play, episode, market = task.play, task.play.episode, task.play.benchmark.market
    found = Checked(key=episode.key)
    evidence = _open(found, RunFolder(Path(play.folder)), episode, STEP_DECODER)
    if evidence is None:
        found.say("decisions", "contradicted", "the record cannot be read")
        return found
    outcome, records = evidence.outcome, evidence.records
    _check_cassette(found, evidence)
    _check_spending(found, evidence, {} if task.model is None else {task.model.model: task.model})
    snapshot = snapshot_for(episode.dataset, play.home, play.data_sha256) if task.sound else None
    # Whose word it is that an episode failed: of one that nobody can play again, it hides a result.
    word = f"that it failed after {outcome.steps} sessions ({str(outcome.error)[:60]}) is the runner's word"
    if snapshot is None or task.no_venue:
        why = task.no_venue or NO_DATA
        broken = found.contradict(contradictions_within(evidence))
        if snapshot is not None:
            complete = outcome.status == "done"
            audited = audit(records, snapshot, market, complete=complete, venue_known=False)
            broken |= found.contradict(_guarded(audited))
        for claim in ("decisions", "account"):
            found.say(claim, "cannot be checked", why)
        found.say("money", "contradicted" if broken else "consistent")
        if episode.by_model:
            found.say("conversation", "cannot be checked", why)
            found.say_answers([episode.model], known=False)
        if outcome.status == "failed":
            found.say("outcome", "cannot be checked", word)
        return found
    # Play the episode again and compare; then ask those who share no code with the player.
    why = ""
    try:
        again = replay_conversation(play, outcome) if episode.by_model else replay_rule(play)
        wrong = list(comes_out_again(evidence, again))
        if wrong and task.other_code:
            raise NotReplayable(f"they come out otherwise with {task.other_code}, which is here")
        broken = found.contradict(wrong)
        if again.unasked:
            found.notes.append(f"{again.unasked} recorded answers of {episode.key} were not asked for")
    except NotReplayable as error:
        broken, why = False, str(error)
    except TradeassayError as error:
        broken = found.contradict([(None, "replay", error.message)])
    if broken or why:
        found.contradict(contradictions_within(evidence))
        broken |= found.contradict(_guarded(decisions_give_these_lines(records, snapshot, market)))
    unfair = found.contradict(_guarded(audit(records, snapshot, market, complete=outcome.status == "done")))
    comes_out: tuple[Word, str] = ("contradicted", "") if broken else ("re-derived", "")
    if why:
        comes_out = "cannot be checked", why
        if outcome.status == "failed":
            found.say("outcome", "cannot be checked", word)
    found.say("decisions", *comes_out)
    found.say("account", "contradicted" if broken or unfair else "re-derived")
    if episode.by_model:
        found.say("conversation", *comes_out)
        found.say_answers([episode.model], known=not broken and not why)
    return found


def _open(
    found: Checked, place: RunFolder, episode: EpisodeSpec, decoder: msgspec.json.Decoder[R]
) -> EpisodeEvidence[R] | None:
    """Check the journal against its hash, then read it line by line; None where it cannot be read."""
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
    cassette = place.models / f"{key}.jsonl"
    return EpisodeEvidence(episode, outcome, content, tuple(records), place.dialogue(key), cassette)


def comes_out_again(evidence: EpisodeEvidence[R], again: Replayed) -> Iterator[Found]:
    """Journal, dialogue and outcome are those that come out when the episode is played again.

    The last digits of numbers may differ, as they do between processors and versions of numpy."""
    old, new = evidence.content.splitlines(), again.events.splitlines()
    if len(old) != len(new) or not all(map(_same_line, old, new)):
        # Name the first line that comes out otherwise, and whether the decision already differs.
        pairs = enumerate(zip(old, new, strict=False))
        step = next((n for n, (a, b) in pairs if not _same_line(a, b)), min(len(old), len(new)))
        if step >= min(len(old), len(new)):
            yield step, "replay", f"{len(old)} steps are recorded, {len(new)} come out when it is played again"
        elif not isinstance(recorded := evidence.records[step], StepRecord):
            yield step, "replay", "examining the program again gives another line"
        elif recorded.decision != STEP_DECODER.decode(new[step]).decision:
            yield step, "decisions", "another decision comes out when it is asked for again"
        else:
            yield step, "replay", "carrying out the recorded decision gives another line"
    else:  # the hash of a journal follows from it, to the last digits
        digest = evidence.outcome.events_sha256
        again = again._replace(outcome=msgspec.structs.replace(again.outcome, events_sha256=digest))
    path = evidence.dialogue
    dialogue = path.read_bytes() if path.is_file() else b""
    if dialogue != again.dialogue:
        lines = zip(dialogue.splitlines(), again.dialogue.splitlines(), strict=False)
        number = next((n for n, (a, b) in enumerate(lines, start=1) if a != b), None)
        where = f"first in line {number}" if number is not None else "it is longer or shorter"
        yield None, "dialogue", f"dialogue.jsonl comes out otherwise, {where}"
    then = canonical_json(evidence.outcome)
    now = canonical_json(without_accidents(again.outcome, evidence.outcome))
    if not close_text(then.decode(), now.decode()):
        changed = differences(msgspec.json.decode(then), msgspec.json.decode(now), near=True)
        words = (f"{where} is {str(was)[:80]!r}, now {str(is_now)[:80]!r}" for where, was, is_now in changed)
        yield None, "outcome", f"the episode ends otherwise when it is played again: {next(words, 'its form')}"


def _same_line(line: bytes, other: bytes) -> bool:
    return line == other or close_text(line.decode(errors="replace"), other.decode(errors="replace"))


def contradictions_within(evidence: EpisodeEvidence[StepRecord]) -> Iterator[Found]:
    """Yield in what a record contradicts itself, which takes neither data nor rules to see."""
    yield from spending_is_that_of_the_dialogue(evidence)
    status, error = evidence.outcome.status, evidence.outcome.error
    if (status == "failed") is (error is None):
        yield None, "outcome", f"the episode is {status}, and its error is {error!r:.60}"
    if status == "done" and all(record.decision.status == "failed" for record in evidence.records):
        yield None, "outcome", "no decision was usable, but the episode counts as done"
    done = 0
    try:  # the account, from the events alone: the first identity that breaks ends it
        for _ in Ledger.steps(evidence.records):
            done += 1
    except (LedgerError, ArithmeticError, LookupError, TypeError, ValueError) as broken:
        yield done, "ledger", str(broken)


def spending_is_that_of_the_dialogue(evidence: EpisodeEvidence[R]) -> Iterator[Found]:
    """The recorded spending is that of the conversations."""
    claimed, spent = evidence.outcome.spending, Spending()
    if claimed is None:
        return
    try:
        for line in read_dialogue(evidence.dialogue):
            spent = spent.plus(line.reply.usage)
    except RunError as error:
        yield None, "dialogue", error.message
        return
    if spent != claimed:
        yield None, "dialogue", f"the conversations took {spent.words()}, not {claimed.words()}"


def _check_cassette(found: Checked, evidence: EpisodeEvidence[R]) -> bool:
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


def _guarded(found: Iterator[Found]) -> Iterator[Found]:
    try:
        yield from found
    except TradeassayError as error:
        yield None, "replay", f"the journal cannot be followed: {error.message}"
    except (ArithmeticError, LookupError, TypeError, ValueError, *UNDECODABLE) as error:
        # Forged numbers and names lead plain code astray: wherever that happens, the journal is not what it says.
        yield None, "replay", f"the journal cannot be followed: {type(error).__name__} {error}"


def decisions_give_these_lines(
    records: Sequence[StepRecord], snapshot: Snapshot, config: MarketConfig
) -> Iterator[Found]:
    """Carry out the recorded decisions again; the first line that comes out differently ends the replay."""
    market = Market(snapshot, config)
    market.reset()
    for place, record in enumerate(records[: len(market)]):
        if encode_line(market.step(record.decision).record) != encode_line(record):
            yield place, "replay", "carrying out the recorded decision gives another line"
            return


_MOST_DAYS = 1_000
"""Sessions that are kept: memory is bounded, a longer market is read again for every episode."""
_WITHOUT_VENUE = frozenset(("sessions", "actions", "nav", "fills", "suspension", "universe"))
"""Checks of the auditor that ask the data and the benchmark, and no rule of a venue."""


def audit(
    records: Sequence[StepRecord],
    snapshot: Snapshot,
    config: MarketConfig,
    *,
    complete: bool,
    venue_known: bool = True,
) -> Iterator[Found]:
    """An auditor that shares no code with the exchange finds nothing that the data or the rules contradict.

    With ``complete`` the journal must reach the end of the window. Where the rules of the venue are not here
    (``venue_known``), days, prices, marks and corporate actions are still those of the data."""
    rows = snapshot.rows(config.first, config.last)
    if len(records) > len(rows) or (complete and len(records) < len(rows)):
        yield None, "sessions", f"{len(records)} steps are recorded, the window has {len(rows)} sessions"
    config = config if venue_known else msgspec.structs.replace(config, venue="us-v1")
    auditor, (days, kept) = Auditor(), _market_days(snapshot, config)
    index = parse_universe(config.universe).of
    for place, (row, record) in enumerate(zip(rows, records, strict=False)):
        day = days.get(row)
        if day is None:  # what the data says about a session
            before, seen = snapshot.at(row, "pre_open"), snapshot.at(row, MOMENTS[config.decide])
            gone = frozenset(before.delisted_now())
            stocks = seen.symbols if index == "all" else seen.members(index)
            funds = (symbol for symbol in seen.symbols if seen.instrument(symbol).kind == "index")
            day = AuditDay(
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
            if len(days) < _MOST_DAYS:
                days[row] = day
        for finding in auditor.step(place, day, record, config.cash):
            if venue_known or finding.check in _WITHOUT_VENUE:
                yield place, finding.check, finding.what


@lru_cache(maxsize=2)
def _market_days(snapshot: Snapshot, config: MarketConfig) -> tuple[dict[int, AuditDay], frozenset[str] | None]:
    """Keep the sessions of a market, which are the same for all of its episodes, and the stocks that a universe of
    limited size has."""
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
    """Return what becomes of a code episode's claims.

    ``again`` is the episode as it comes out when its programs are examined again, or what stopped it; None where
    they cannot be, for the reason ``why``. Then the recorded findings are believed, and the rest is checked.
    ``dated`` is what the run says about its models' prices.
    Without a ``protocol`` that is only the form of the record."""
    found = Checked(key=episode.key)
    evidence = _open(found, place, episode, TURN_DECODER)
    if evidence is None:
        found.say("programs", "contradicted", "the record cannot be read")
        return found
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
        return found
    found.say("conversation", "contradicted" if broken else "re-derived" if again is not None else "consistent")
    models = [role.model for role in protocol.roles(episode).values()]
    found.say_answers(models, known=isinstance(again, Replayed) and not broken)
    return found


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


def _check_spending(found: Checked, evidence: EpisodeEvidence[R], dated: Mapping[str, ModelRecord]) -> bool:
    """Make dollars again from tokens and prices, and name counts that cannot be; returns whether one is wrong.
    ``dated`` is what the run says about the prices of its own."""
    prices, odd, unsure, priced, stated = load_prices(), Counter[str](), "", 0, 0.0
    wrong: list[Found] = []
    try:
        answers = list(_answers(evidence))
    except RunError:  # named already, where the file itself was looked at
        return False
    for model, step, reply, request, most_output in answers:
        about = f"an answer of {model or 'its program'}"
        impossible, implausible = examine_usage(reply, request, most_output)
        if impossible:
            wrong.append((step, "spending", f"{about} {impossible}"))
            continue
        try:
            paid = parse_name(model).route != "scripted" and not model.startswith(("http/", "pipe/", "python/"))
        except UserError:
            paid = False
        if not paid:
            stated += reply.usage.usd or 0.0
            continue
        odd.update(f"{model} counts {what}" for what in implausible)
        price, said = prices.of(model), dated.get(model)
        table = (None, None) if price is None else (price.as_of, price.source)
        if said is not None and table != (said.price_as_of, said.price_source):
            then, now = ("unknown" if day is None else f"of {day}" for day in (said.price_as_of, table[0]))
            unsure = f"the run's price of {model} is {then}, here it is {now}"
            continue
        fault = _dollars(reply, price)
        if fault and said is None:
            # A run that does not say whose prices it took may have had those of the runner's own file.
            unsure = f"{about} {fault}, by the prices known here"
        elif fault:
            wrong.append((step, "spending", f"{about} {fault}"))
        else:
            priced += 1
    if stated:
        unsure = f"its program states ${stated:,.2f} itself; no table has its price"
    broken = found.contradict(wrong)
    why = "; ".join(
        [*(f"{what} ({count} of its answers)" for what, count in odd.items()), *filter(None, [unsure])]
    )
    if broken or why or priced:
        found.say("dollars", "contradicted" if broken else "cannot be checked" if why else "re-derived", why)
    return broken


def _answers(
    evidence: EpisodeEvidence[R],
) -> Iterator[tuple[str, int, ModelReply, AskModel | None, int | None]]:
    """Yield every recorded answer: whose, at which step, the reply, its question and its limit as far as known."""
    if evidence.cassette.is_file():
        held = read_cassette(evidence.cassette)
        for line in held.answers:
            asked, known = line.asked, None
            if held.texts:
                known = AskModel(
                    purpose=asked.purpose,
                    messages=tuple(held.messages[name] for name in asked.messages),
                    tools=held.tools[asked.tools] if asked.tools else (),
                    answer_schema=asked.answer_schema,
                )
            most, thought = (asked.params.get(name) for name in ("max_tokens", "reasoning_tokens"))
            most = most + (thought if isinstance(thought, int) else 0) if isinstance(most, int) else None
            yield asked.model, asked.step, line.reply, known, most
    elif evidence.dialogue.is_file():
        lines = list(read_dialogue(evidence.dialogue))
        for said, messages in zip(lines, whole_messages(lines), strict=True):
            # Only the names of tools are in the log, so that nothing is claimed about the question's size.
            known = None if said.tools else AskModel(purpose=said.purpose, messages=messages)
            yield evidence.episode.model, said.step, said.reply, known, None


def examine_usage(
    reply: ModelReply, request: AskModel | None, most_output: int | None
) -> tuple[str, tuple[str, ...]]:
    """Return what makes one answer's counts impossible (empty: nothing), and what makes them hard to believe."""
    usage, odd = reply.usage, []
    counts = (usage.input_tokens, usage.output_tokens, usage.reasoning_tokens, usage.cached_tokens)
    if min(counts) < 0:
        return f"counts {min(counts):,} tokens"[:80], ()
    if max(counts) > MOST_TOKENS:
        return "counts more tokens than any question or answer ever had", ()
    if usage.cached_tokens > usage.input_tokens:
        return f"has {usage.cached_tokens:,} of {usage.input_tokens:,} input tokens in the provider's cache", ()
    if usage.usd is not None and not (math.isfinite(usage.usd) and usage.usd >= 0):
        return f"cost {usage.usd:g} dollars", ()
    if reply.error is None and usage.output_tokens < LEAST_SHARE * estimate_reply(reply):
        odd.append(f"{'no' if not usage.output_tokens else 'too few'} tokens for what it wrote")
    if reply.error is None and not usage.input_tokens:
        odd.append("no tokens for what it was asked")
    if request is not None and usage.input_tokens > most_request(request):
        odd.append("more tokens than its question has bytes")
    if most_output is not None and usage.output_tokens > most_output + usage.reasoning_tokens:
        odd.append("more tokens than an answer may have")
    return "", tuple(odd)


def _dollars(reply: ModelReply, price: Price | None) -> str:
    """Say in what the dollars of an answer do not follow from its tokens; empty where they do.

    How many tokens were written to a provider's cache is not recorded: where that has a price of its own, the
    dollars lie between all of them and none."""
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
