"""One strategy with one model: build, test, patch. Four iterations at most, evidence between them. No I/O here.

:func:`build` yields an :class:`~tradeassay.core.dialogue.AskModel` for the writer, a :class:`ReviewWanted` for
a reviewer (both are sent a ``ModelReply``), or a :class:`ScoreWanted` (and is sent a :class:`ScoredIteration`),
and returns a :class:`StrategyOutcome` that keeps every submission with all findings. The evidence that a writer is
shown comes from the development year alone. Reviewers see a submission blind. Program and strategy card are each
found by themselves, so that a writer who gave one of them is asked for the other alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Generator, Sequence
from functools import lru_cache
from typing import Annotated, Final, TypeGuard

import msgspec

from tradeassay.benchmarks.systrade import wording
from tradeassay.benchmarks.systrade.spec import Iteration, ScoredIteration, Stopped, StrategyOutcome
from tradeassay.benchmarks.systrade.wording import EXAMPLE, Kept, WriterEvidence, example_program
from tradeassay.code.extraction import NOTHING_SPENT, NoCode, extract_block, no_answer, total_usage
from tradeassay.code.program_source import parses
from tradeassay.code.review import Review, peer_mark
from tradeassay.code.submission import StrategySpec, Submission
from tradeassay.core.dialogue import AskModel, Message, ModelReply, Usage, schema_text
from tradeassay.core.drive import relay
from tradeassay.core.measure import Measure
from tradeassay.llm.prompting import FENCE_END, answer_object, fenced_blocks, outer_objects, pairs, parse_object

CLASS = "TradingStrategy"
_FENCE = re.compile(r"^[ \t]*+```", re.MULTILINE)


class Halves(msgspec.Struct, frozen=True, kw_only=True):
    """What one answer holds. ``wrong`` says what is the matter with it, and is empty when it has both."""

    program: str | None = None
    card: str | None = None
    wrong: str = ""

    def beside(self, earlier: Halves) -> Halves:
        """Return this with what is missing taken from what the same writer gave before."""
        program, card = self.program or earlier.program, self.card or earlier.card
        told = "" if program is not None and card is not None else self.wrong
        return msgspec.structs.replace(self, program=program, card=card, wrong=told)


@lru_cache(maxsize=32)  # a conversation is gone through again on every resume, and by everybody who checks it
def read_halves(text: str, *, cut_off: bool = False) -> Halves:
    """Return the program and the card of an answer as a careful reader finds them.

    The program is the last block with a class that has a method ``run`` (its name does not matter where it is the
    only one), else what :func:`~tradeassay.code.extraction.extract` finds. A card is a JSON object with a strategy
    or parameters: in a block fenced as json, in any other block, or in the prose; the last of several counts. What
    repeats the example of the question is neither, nor is a program that was ``cut_off`` in the middle.
    """
    program, missing = _program(text, cut_off)
    blocks = fenced_blocks(text)
    labelled = [block.text for block in blocks if block.label == "json"]
    spans = (
        labelled,
        [block.text for block in blocks if block.label not in ("json", "python", "py")],
        list(outer_objects(_unfenced(text))),
    )
    like = (
        [one for one in group if {"strategy", "parameters"} & (parse_object(one) or {}).keys()] for group in spans
    )
    cards = next((known for known in like if known), [])
    card = next(reversed(cards or labelled), None)
    wrong = ""
    if card is not None and (parse_object(card) or {}).get("strategy") == EXAMPLE:
        card, wrong = None, f'its card is that of the example "{EXAMPLE}", not of the strategy that is asked for'
    trees = [None if text is None else parses(text) for text in (program, example_program())]
    if all(trees) and len({ast.dump(tree) for tree in trees if tree}) == 1:
        program, wrong = None, "its program is that of the example, not of the strategy that is asked for"
    elif program is None:
        wrong = f"there is no Python program in it ({missing or 'nothing that looks like one'})"
    elif card is None:
        wrong = wrong or "there is no strategy card in it"
    return Halves(program=program, card=card, wrong=wrong)


def _unfenced(text: str) -> str:
    kept, at = "", 0
    for opened, closed in pairs(text, _FENCE, FENCE_END):
        kept += text[at : opened.start()]
        at = closed.end()
    return kept + text[at:]


def _program(text: str, cut_off: bool) -> tuple[str | None, NoCode]:
    for block in reversed(fenced_blocks(text)):
        tree = parses(block.text) if block.label != "json" else None
        runners = [node.name for node in (tree.body if tree else ()) if _runs(node)]
        if CLASS in runners:
            return block.text, ""
        if len(runners) == 1:
            return f"{block.text}\n\n\n{CLASS} = {runners[0]}\n", ""
    found = extract_block(text, cut_off=cut_off)
    if found.code is not None and parse_object(found.code) is not None:
        return None, "prose"
    if cut_off and found.form == "unclosed":
        return None, "cut off"
    return found.code, found.missing


def _runs(node: ast.stmt) -> TypeGuard[ast.ClassDef]:
    return isinstance(node, ast.ClassDef) and any(
        isinstance(one, ast.FunctionDef) and one.name == "run" for one in node.body
    )


ATTEMPTS = 2


class Marks(msgspec.Struct, frozen=True, kw_only=True):
    """What a reviewer answers."""

    fidelity: Annotated[float, msgspec.Meta(ge=1, le=10)]
    risk: Annotated[float, msgspec.Meta(ge=1, le=10)]
    strengths: str = ""
    weaknesses: str = ""


def review_dialogue(
    spec: StrategySpec, submission: Submission, *, reviewer: str, author: str
) -> Generator[AskModel, ModelReply, Review]:
    """Ask for marks, and once more if they are unreadable. Missing marks are a failure, never a middle mark."""
    messages = wording.review(spec, submission)
    given = wording.review_given(spec)
    why, before = "", None
    for attempt in range(1, ATTEMPTS + 1):
        reply = yield AskModel(
            purpose="review", messages=messages, answer_schema=_SCHEMA, attempt=attempt, given=given
        )
        if reply.error is not None:
            why = reply.error_kind or "unreachable"
            break
        body = answer_object(reply.text, "fidelity")
        try:
            marks = msgspec.convert(body or {}, Marks)
        except msgspec.ValidationError as error:
            why = f"schema: {error}"
            if reply.text == before:
                break
            before = reply.text
            messages = wording.review_refusal(messages, reply.text, why)
            continue
        return Review(
            reviewer=reviewer,
            author=author,
            strategy=spec.id,
            fidelity=marks.fidelity,
            risk=marks.risk,
            strengths=marks.strengths[:1000],
            weaknesses=marks.weaknesses[:1000],
        )
    return Review(reviewer=reviewer, author=author, strategy=spec.id, fidelity=None, risk=None, failure=why)


_SCHEMA = schema_text(Marks)


ITERATIONS: Final = 4
"""The paper's. Only the last of these is told what came before and what to aim at, however few a run has: to tell
an earlier one would be another benchmark, and what was recorded with three would not be what was asked.
"""
CUT_OFF: Final = "it was cut off at the limit of tokens before it was complete. Write a shorter one"


class ScoreWanted(msgspec.Struct, frozen=True, kw_only=True):
    """Please run the gates and score this. ``first`` is the first submission, which drift refers to; ``previous``
    is what was patched, which the line budget refers to. Both are None for the first submission itself.
    """

    strategy: str
    iteration: int
    submission: Submission
    first: Submission | None = None
    previous: Submission | None = None


class ReviewWanted(msgspec.Struct, frozen=True, kw_only=True):
    """Please ask this reviewer."""

    reviewer: str
    request: AskModel


class BuildSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a strategy is put to a model: how often, and who reviews. ``early_stop``: end once the target is met."""

    iterations: int = ITERATIONS
    reviewers: tuple[str, ...] = ()
    early_stop: bool = True


Request = AskModel | ScoreWanted | ReviewWanted
Answer = ModelReply | ScoredIteration


def build(
    spec: StrategySpec, model: str, settings: BuildSettings | None = None
) -> Generator[Request, Answer, StrategyOutcome]:
    settings = settings or BuildSettings()
    talk = _Talk(spec, model, settings)
    number = 0
    while number < settings.iterations:
        reply = yield AskModel(
            purpose="build", messages=talk.messages, attempt=number + 1, given=wording.given(spec, number)
        )
        assert isinstance(reply, ModelReply)
        talk.paid = talk.paid.plus(reply.usage)
        if why := no_answer(reply):
            talk.note(number, reply, why, "no answer")
            break
        submission, why = talk.read(reply)
        if submission is None:
            if talk.cut_off(reply):
                talk.refuse(reply, CUT_OFF)
                continue
            again = talk.repeated(reply)
            if talk.half() and not again:
                talk.refuse(reply, why)
                continue
            talk.note(number, reply, why, "no submission")
            if again:
                talk.stopped = "repeats itself"
                break
            talk.refuse(reply, why)
            number += 1
            continue
        scored = yield ScoreWanted(
            strategy=spec.id, iteration=number, submission=submission, first=talk.first, previous=talk.previous
        )
        assert isinstance(scored, ScoredIteration)
        reviews, used = yield from _reviews(spec, submission, model, settings)
        talk.review_paid = talk.review_paid.plus(used)
        if talk.take(number, reply, submission, scored, reviews):
            break
        number += 1
    return talk.outcome()


class _Talk:
    """One conversation with a writer: what was said, what was handed in, what to go on from. Mutable."""

    def __init__(self, spec: StrategySpec, model: str, settings: BuildSettings) -> None:
        self.spec, self.model, self.settings = spec, model, settings
        self.messages: tuple[Message, ...] = wording.opening(spec)
        self.done: list[Iteration] = []
        self.paid, self.review_paid = NOTHING_SPENT, NOTHING_SPENT
        self.stopped: Stopped = "iterations"
        self.first: Submission | None = None
        self._base: tuple[Submission, ScoredIteration] | None = None
        self._refused: str | None = None
        self._kept = Halves()
        self._asked_half = False
        self._cut_off = 0

    @property
    def previous(self) -> Submission | None:
        return None if self._base is None else self._base[0]

    def read(self, reply: ModelReply) -> tuple[Submission | None, str]:
        """Return the two files of an answer, or None and what is missing.

        A half that was given before need not be given again; a patch without a card keeps the card of what it
        patches.
        """
        self._kept = found = read_halves(reply.text, cut_off=reply.stop == "length").beside(self._kept)
        card = found.card
        if card is None and self._base is not None and found.program is not None:
            card = self._base[0].card
        if found.program is None or card is None:
            return None, found.wrong
        return Submission(source=found.program, card=card, name=self.model), ""

    def half(self) -> bool:
        """Whether one of the two files was given; the other is then asked for, once an iteration."""
        wanted = (self._kept.program is None) != (self._kept.card is None)
        once, self._asked_half = wanted and not self._asked_half, wanted
        return once

    def cut_off(self, reply: ModelReply) -> bool:
        """Whether an unreadable answer ran into the limit of tokens; it is asked for again, once a strategy."""
        self._cut_off += reply.stop == "length"
        return reply.stop == "length" and self._cut_off <= 1

    def repeated(self, reply: ModelReply) -> bool:
        """Whether an unreadable answer is the one before it, word for word."""
        same = reply.text == self._refused
        self._refused = reply.text
        return same

    def note(self, number: int, reply: ModelReply, why: str, stopped: Stopped) -> None:
        """Keep an iteration without a submission."""
        self.done.append(Iteration(number=number, reason=why, usage=reply.usage))
        self.stopped = stopped

    def refuse(self, reply: ModelReply, why: str) -> None:
        """Say why an answer could not be read."""
        kept: Kept = "card" if self._kept.card else "program" if self._kept.program else ""
        self.messages = wording.refusal(self.spec, self.messages, reply.text, why, kept)

    def take(
        self,
        number: int,
        reply: ModelReply,
        submission: Submission,
        scored: ScoredIteration,
        reviews: tuple[Review, ...],
    ) -> bool:
        """Keep a submission and say what was found; returns whether the target is reached."""
        self.first = self.first or submission
        aside = self._aside(scored)
        made = Iteration(
            number=number,
            submission=submission,
            scored=with_marks(scored, reviews),
            reviews=reviews,
            usage=reply.usage,
            set_aside=aside,
        )
        self.done.append(made)
        self._refused, self._kept, self._asked_half = None, Halves(), False
        if not aside:
            self._base = (submission, scored)
        self.stopped = "iterations"
        if self.settings.early_stop and not aside and scored.develop.reached and scored.develop.gates.passed:
            self.stopped = "target"
            return True
        assert self._base is not None  # the first submission cannot have drifted
        given = WriterEvidence(
            scored=scored,
            reviews=reviews,
            base=self._base[0],
            earlier=tuple(self.done),
            last=number + 2 >= ITERATIONS,
            set_aside=aside,
        )
        self.messages = wording.evidence(self.spec, given)
        return False

    def _aside(self, scored: ScoredIteration) -> bool:
        if scored.drift is None:
            return False
        assert self._base is not None
        base = self._base[1]
        # A patch that does not run where its base did, on either year, is set aside too.
        return not scored.drift.accepted or any(
            getattr(base, year).gates.gate(name).passed and not getattr(scored, year).gates.gate(name).passed
            for year in ("scorecard", "develop")
            for name in ("parse", "exec")
        )

    def outcome(self) -> StrategyOutcome:
        return StrategyOutcome(
            strategy=self.spec.id,
            model=self.model,
            iterations=tuple(self.done),
            stopped=self.stopped,
            usage=self.paid,
            review_usage=self.review_paid,
            cut_off=self._cut_off,
        )


def with_marks(scored: ScoredIteration, reviews: Sequence[Review]) -> ScoredIteration:
    """Return the same with the paper's D1 and D2 on the scorecard: mean peer marks, and 0 for D1 after drift.

    Work that is not valid has none of the paper's scores.
    """
    card = scored.scorecard
    marks = {
        "D1": peer_mark(reviews, card.submission, card.strategy),
        "D2": peer_mark(reviews, card.submission, card.strategy, risk=True),
    }
    if scored.drift is not None and scored.drift.kind == "drift":
        marks["D1"] = Measure(value=0.0, note="drift")
    if not card.gates.valid:
        marks = {name: card.paper[name] for name in marks}
    card = msgspec.structs.replace(card, paper={**card.paper, **marks})
    return msgspec.structs.replace(scored, scorecard=card)


def _reviews(
    spec: StrategySpec, submission: Submission, author: str, settings: BuildSettings
) -> Generator[Request, Answer, tuple[tuple[Review, ...], Usage]]:
    made: list[Review] = []
    used: list[Usage] = []
    for reviewer in settings.reviewers:
        talk = review_dialogue(spec, submission, reviewer=reviewer, author=author)

        def ask(request: AskModel, reviewer: str = reviewer) -> Generator[Request, Answer, ModelReply]:
            reply = yield ReviewWanted(reviewer=reviewer, request=request)
            assert isinstance(reply, ModelReply)
            used.append(reply.usage)
            return reply

        made.append((yield from relay(talk, ask)))
    return tuple(made), total_usage(used)
