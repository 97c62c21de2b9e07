"""The dialogue about one strategy with one model: build, test, patch. No I/O here.

There are at most four iterations, with evidence between them. :func:`build` yields an
:class:`~tradeassay_bench.core.dialogue.AskModel` for the writer or a :class:`ReviewWanted` for a
reviewer (both receive a ``ModelReply``), or a :class:`ScoreWanted` (which receives a
:class:`ScoredIteration`). It returns a :class:`StrategyOutcome` with every submission and all
findings. The writer sees evidence from the development year alone. Reviewers see a submission
blind. Program and strategy card are extracted separately. A writer who sent only one of them is
asked for the missing file alone.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Generator, Sequence
from functools import lru_cache
from itertools import product
from typing import Annotated, Final

import msgspec

from tradeassay.core.measure import Measure
from tradeassay_bench.core.dialogue import AskModel, Given, Message, ModelReply, Usage, schema_text
from tradeassay_bench.llm.prompting import (
    FENCE_END,
    answer_object,
    fenced_blocks,
    outer_objects,
    pairs,
    parse_object,
)
from tradeassay_programs.benchmarks.systrade import wording
from tradeassay_programs.benchmarks.systrade.spec import (
    Iteration,
    ScoredIteration,
    Stopped,
    StrategyOutcome,
)
from tradeassay_programs.benchmarks.systrade.wording import EXAMPLE, Kept, example_program
from tradeassay_programs.code.extraction import (
    NOTHING_SPENT,
    NoCode,
    extract_block,
    no_answer,
    total_usage,
)
from tradeassay_programs.code.program_source import parses
from tradeassay_programs.code.review import Review, peer_mark
from tradeassay_programs.code.submission import StrategySpec, Submission

CLASS = "TradingStrategy"
_FENCE = re.compile(r"^[ \t]*+```", re.MULTILINE)


class Halves(msgspec.Struct, frozen=True, kw_only=True):
    """The program and the card in an answer.

    ``wrong`` is the fault, or empty if both are present.
    """

    program: str | None = None
    card: str | None = None
    wrong: str = ""

    def beside(self, earlier: Halves) -> Halves:
        """Return a copy with missing files taken from the same writer's earlier answer."""
        program, card = self.program or earlier.program, self.card or earlier.card
        told = "" if program is not None and card is not None else self.wrong
        return msgspec.structs.replace(self, program=program, card=card, wrong=told)


@lru_cache(maxsize=32)  # A conversation is replayed on every resume and every verification.
def read_halves(text: str, *, cut_off: bool = False) -> Halves:
    """Return the program and the card of an answer, read as a careful person reads them.

    The program is the last block with a class that has a method ``run``, whatever the name of an
    only class. Otherwise it is the result of :func:`~tradeassay_programs.code.extraction.extract`.
    A card is a JSON object with a strategy or parameters, in a block fenced as json, in any other
    block, or in the prose. The last of several is used. Copies of the question's example are
    ignored, and so is a program that was ``cut_off``.
    """
    program, missing = _program(text, cut_off)
    blocks = fenced_blocks(text)
    prose, at = "", 0
    for opened, closed in pairs(text, _FENCE, FENCE_END):
        prose += text[at : opened.start()]
        at = closed.end()
    prose += text[at:]
    labelled = [block.text for block in blocks if block.label == "json"]
    spans = (
        labelled,
        [block.text for block in blocks if block.label not in ("json", "python", "py")],
        list(outer_objects(prose)),
    )
    like = (
        [one for one in group if {"strategy", "parameters"} & (parse_object(one) or {}).keys()]
        for group in spans
    )
    cards = next((known for known in like if known), [])
    card = next(reversed(cards or labelled), None)
    wrong = ""
    if card is not None and (parse_object(card) or {}).get("strategy") == EXAMPLE:
        card, wrong = (
            None,
            f'its card is that of the example "{EXAMPLE}", not of the strategy that is asked for',
        )
    trees = [None if text is None else parses(text) for text in (program, example_program())]
    if all(trees) and len({ast.dump(tree) for tree in trees if tree}) == 1:
        program, wrong = (
            None,
            "its program is that of the example, not of the strategy that is asked for",
        )
    elif program is None:
        wrong = f"there is no Python program in it ({missing or 'nothing that looks like one'})"
    elif card is None:
        wrong = wrong or "there is no strategy card in it"
    return Halves(program=program, card=card, wrong=wrong)


def _program(text: str, cut_off: bool) -> tuple[str | None, NoCode]:
    for block in reversed(fenced_blocks(text)):
        tree = parses(block.text) if block.label != "json" else None
        runners = [
            node.name
            for node in (tree.body if tree else ())
            if isinstance(node, ast.ClassDef)
            and any(isinstance(one, ast.FunctionDef) and one.name == "run" for one in node.body)
        ]
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


class Marks(msgspec.Struct, frozen=True, kw_only=True):
    """The answer from a reviewer."""

    fidelity: Annotated[float, msgspec.Meta(ge=1, le=10)]
    risk: Annotated[float, msgspec.Meta(ge=1, le=10)]
    strengths: str = ""
    weaknesses: str = ""


_SCHEMA = schema_text(Marks)


def _review(
    spec: StrategySpec, submission: Submission, reviewer: str, author: str, used: list[Usage]
) -> Generator[Request, Answer, Review]:
    """Ask a reviewer for marks, and ask once more if they are unreadable.

    Missing marks are recorded as a failure and are never replaced by a middle mark.
    """
    messages = wording.review(spec, submission)
    asked = msgspec.json.encode({"kind": "systrade.review", "strategy": spec.id}).decode()
    given = Given(session="review", rules="{}", observation=asked)
    why, before = "", None
    for attempt in (1, 2):
        request = AskModel(
            purpose="review", messages=messages, answer_schema=_SCHEMA, attempt=attempt, given=given
        )
        reply = yield ReviewWanted(reviewer=reviewer, request=request)
        assert isinstance(reply, ModelReply)
        used.append(reply.usage)
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
    return Review(
        reviewer=reviewer, author=author, strategy=spec.id, fidelity=None, risk=None, failure=why
    )


ITERATIONS: Final = 4
"""The paper's number of iterations.

Only the last of these iterations sees the history and the goal, even in a run with fewer
iterations. Showing them to an earlier iteration would be a different benchmark and would not match
the recordings.
"""
CUT_OFF: Final = "it was cut off at the limit of tokens before it was complete. Write a shorter one"


class ScoreWanted(msgspec.Struct, frozen=True, kw_only=True):
    """A request to run the gates on a submission and score it.

    ``first`` is the first submission, the base of drift. ``previous`` is the patched submission,
    the base of the line budget. Both are None for the first submission itself.
    """

    strategy: str
    iteration: int
    submission: Submission
    first: Submission | None = None
    previous: Submission | None = None


class ReviewWanted(msgspec.Struct, frozen=True, kw_only=True):
    """A request to ask this reviewer."""

    reviewer: str
    request: AskModel


class BuildSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Settings for presenting a strategy to a model: the number of iterations, and the reviewers.

    ``early_stop`` ends the dialogue when the target is met.
    """

    iterations: int = ITERATIONS
    reviewers: tuple[str, ...] = ()
    early_stop: bool = True


Request = AskModel | ScoreWanted | ReviewWanted
Answer = ModelReply | ScoredIteration


def build(
    spec: StrategySpec, model: str, settings: BuildSettings | None = None
) -> Generator[Request, Answer, StrategyOutcome]:
    """Request submissions from a writer until the target is reached or its iterations are used up.

    An unreadable answer is requested again: once per strategy after the token limit, and once per
    iteration for the missing one of the two files. Neither uses up an iteration. A file that was
    sent earlier need not be sent again, and a patch without a card keeps the card of its base. The
    same unreadable answer twice, word for word, ends the dialogue.
    """
    settings = settings or BuildSettings()
    messages: tuple[Message, ...] = wording.opening(spec)
    done: list[Iteration] = []
    paid = NOTHING_SPENT
    review_paid = paid
    spent = NOTHING_SPENT  # The cost of the current iteration, including repeated requests.
    stopped: Stopped = "iterations"
    first: Submission | None = None
    base: tuple[Submission, ScoredIteration] | None = None  # The base of the next iteration.
    refused: str | None = None
    kept, asked_half, cut_off = Halves(), False, 0
    number = 0
    while number < settings.iterations:
        reply = yield AskModel(
            purpose="build",
            messages=messages,
            attempt=number + 1,
            given=wording.given(spec, number),
        )
        assert isinstance(reply, ModelReply)
        paid, spent = paid.plus(reply.usage), spent.plus(reply.usage)
        if why := no_answer(reply):
            done.append(Iteration(number=number, reason=why, usage=spent))
            stopped = "no answer"
            break
        kept = read_halves(reply.text, cut_off=reply.stop == "length").beside(kept)
        card = kept.card
        if card is None and base is not None and kept.program is not None:
            card = base[0].card
        if kept.program is None or card is None:
            again, half = False, False
            cut_off += reply.stop == "length"
            why = CUT_OFF
            if reply.stop != "length" or cut_off > 1:
                again, refused = reply.text == refused, reply.text
                half = (kept.program is None) != (kept.card is None)
                half, asked_half = half and not asked_half and not again, half
                why = kept.wrong
                if not half:
                    done.append(Iteration(number=number, reason=why, usage=spent))
                    spent = NOTHING_SPENT
                    stopped = "repeats itself" if again else "no submission"
                    number += 1
            if again:
                break
            which: Kept = "program" if kept.program else ""
            if kept.card:
                which = "card"
            messages = wording.refusal(spec, messages, reply.text, why, which)
            continue
        submission = Submission(source=kept.program, card=card, name=model)
        scored = yield ScoreWanted(
            strategy=spec.id,
            iteration=number,
            submission=submission,
            first=first,
            previous=None if base is None else base[0],
        )
        assert isinstance(scored, ScoredIteration)
        marked, used = list[Review](), list[Usage]()
        for reviewer in settings.reviewers:
            marked.append((yield from _review(spec, submission, reviewer, model, used)))
        reviews, review_paid = tuple(marked), review_paid.plus(total_usage(used))
        first = first or submission
        aside = False
        if scored.drift is not None:
            assert base is not None
            # A patch that fails on a year on which its base ran is set aside too.
            aside = not scored.drift.accepted or any(
                getattr(base[1], year).gates.gate(name).passed
                and not getattr(scored, year).gates.gate(name).passed
                for year, name in product(("scorecard", "develop"), ("parse", "exec"))
            )
        made = Iteration(
            number=number,
            submission=submission,
            scored=with_marks(scored, reviews),
            reviews=reviews,
            usage=spent,
            set_aside=aside,
        )
        done.append(made)
        spent = NOTHING_SPENT
        refused, kept, asked_half = None, Halves(), False
        if not aside:
            base = (submission, scored)
        stopped = "iterations"
        if (
            settings.early_stop
            and not aside
            and scored.develop.reached
            and scored.develop.gates.passed
        ):
            stopped = "target"
            break
        assert base is not None  # The first submission cannot have drifted.
        messages = wording.evidence(spec, scored, done, base[0], last=number + 2 >= ITERATIONS)
        number += 1
    return StrategyOutcome(
        strategy=spec.id,
        model=model,
        iterations=tuple(done),
        stopped=stopped,
        usage=paid,
        review_usage=review_paid,
        cut_off=cut_off,
    )


def with_marks(scored: ScoredIteration, reviews: Sequence[Review]) -> ScoredIteration:
    """Return a copy with the paper's D1 and D2 from mean peer marks.

    After drift, D1 is 0. An invalid submission has none of the paper's scores.
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
