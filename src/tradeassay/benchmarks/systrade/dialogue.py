"""One strategy with one model: build, test, patch. Four iterations at most, evidence between them. No I/O here.

:func:`build` yields an :class:`~tradeassay.core.dialogue.AskModel` for the writer, a :class:`ReviewWanted` for
a reviewer (both are sent a ``ModelReply``), or a :class:`ScoreWanted` (and is sent a :class:`Scored`), and
returns a :class:`StrategyOutcome` that keeps every hand-in with all findings. The evidence that a writer is shown
comes from the development year alone. Reviewers see a submission blind.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Sequence
from typing import Annotated, Final, Literal

import msgspec

from tradeassay.benchmarks.systrade.prompts import PROMPTS
from tradeassay.benchmarks.systrade.trail import Trail
from tradeassay.code.attempts import NOTHING_SPENT, add_usage, exchange, no_answer, total_usage
from tradeassay.code.drift import DriftReport
from tradeassay.code.extraction import extract
from tradeassay.code.gates import GateReport
from tradeassay.code.review import Review, peer_mark
from tradeassay.code.scores.scorecard import DIMENSIONS, TARGET, Scorecard
from tradeassay.code.submission import StrategySpec, Submission, card_schema
from tradeassay.core.dialogue import AskModel, Message, ModelReply, Usage
from tradeassay.core.drive import relay
from tradeassay.core.hashing import sha256_bytes
from tradeassay.core.measure import Measure
from tradeassay.llm.prompting import answer_object

REVIEW_KIND = "systrade.review"
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
    messages = _review_opening(spec, submission)
    why = ""
    for attempt in range(1, ATTEMPTS + 1):
        reply = yield AskModel(purpose="review", messages=messages, answer_schema=_SCHEMA, attempt=attempt)
        if reply.error is not None:
            why = reply.error_kind or "unreachable"
            break
        body = answer_object(reply.text, "fidelity")
        try:
            marks = msgspec.convert(body or {}, Marks)
        except msgspec.ValidationError as error:
            why = f"schema: {error}"
            payload = msgspec.json.encode({"kind": "feedback", "failures": [{"kind": "schema", "detail": why}]})
            again = PROMPTS.fill("again", reason=why, payload=payload.decode())
            messages = (*messages, *exchange(reply, again))
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


def _review_opening(spec: StrategySpec, submission: Submission) -> tuple[Message, ...]:
    # A delimiter derived from the content cannot occur in it, so nothing inside can end the quotation.
    mark = f"<<{sha256_bytes(submission.sha256.encode())[:16]}>>"
    text = f"strategy_card.json\n{submission.card}\n\nstrategy.py\n{submission.source}"
    quoted = "\n".join(f"{mark} {line}" for line in text.splitlines())
    payload = {"kind": REVIEW_KIND, "strategy": spec.id, "lines": len(text.splitlines())}
    user = PROMPTS.fill(
        "review",
        strategy=spec.id,
        semantics=spec.semantics.canonical.decode(),
        mark=mark,
        quoted=quoted,
        payload=msgspec.json.encode(payload).decode(),
    )
    return (
        Message(role="system", text=PROMPTS.fill("review_system")),
        Message(role="user", text=user),
    )


_SCHEMA = msgspec.json.encode(msgspec.json.schema(Marks)).decode()


_SHOWN = 5


def evidence_text(
    spec: StrategySpec,
    scored: Scored,
    reviews: tuple[Review, ...],
    number: int,
    budget: int,
    *,
    last: bool,
    set_aside: bool = False,
) -> str:
    """Return the message that asks for iteration ``number``; ``last`` adds the goal of the last one.

    ``set_aside`` says that the hand-in was refused and the next one starts from its predecessor.
    """
    card = scored.develop
    payload = {"kind": "systrade.build", "strategy": spec.id, "iteration": number}
    goal = PROMPTS.fill("goal", target=TARGET, year=_year(card)) if last else ""
    return PROMPTS.fill(
        "evidence",
        number=number,
        target=TARGET,
        scores="\n".join(f"- {name}: {_number(card.sound[name])}" for name in DIMENSIONS),
        gates=_gates(card.gates),
        budget=budget,
        drift=_drift(scored.drift, set_aside=set_aside),
        reviews=_review_lines(reviews),
        goal=goal,
        payload=msgspec.json.encode(payload).decode(),
    )


def _number(measure: Measure) -> str:
    if measure.value is None:
        return f"not scored ({measure.reason})"
    return f"{measure.value:.2f}" + (f" ({measure.note})" if measure.note else "")


def _drift(drift: DriftReport | None, *, set_aside: bool) -> str:
    if drift is None:
        return ""
    why = "; ".join((*drift.card_changes, *drift.reasons)[:_SHOWN])
    words = f"Your change was judged '{drift.kind}'{f' ({why})' if why else ''}: {drift.changed_lines} lines."
    if set_aside:
        words += " It is set aside: go on from the hand-in shown above, not from the refused one."
    return words


def _gates(report: GateReport) -> str:
    lines = []
    for gate in report.gates:
        lines.append(f"- {gate.name}: {gate.status.replace('_', ' ')}{f' ({gate.reason})' if gate.reason else ''}")
        lines += [f"  - {finding.text[:300]}" for finding in gate.evidence[:_SHOWN]]
    return "\n".join(lines)


def _review_lines(reviews: tuple[Review, ...]) -> str:
    lines = []
    for number, review in enumerate(reviews, 1):
        if review.failure is None:
            words = f"fidelity {review.fidelity:g}, risk {review.risk:g}. {_one_line(review.weaknesses)}"
            lines.append(f"- reviewer {number}: {words}")
    return "\n".join(lines) or "- none"


def _one_line(text: str) -> str:
    return " ".join(text.replace("`", "'").split())[:400]


def _year(card: Scorecard) -> str:
    if card.year is None:
        return card.year_reason or "nothing"
    middle = card.year.costs[len(card.year.costs) // 2]
    ratio = "none" if middle.sharpe is None else f"{middle.sharpe:.2f}"
    return f"{middle.total:+.1%} at {middle.cost_bp:g} bp, Sharpe ratio {ratio}, turnover {card.year.turnover:.1f}"


BUILD_KIND: Final = "systrade.build"
ITERATIONS: Final = 4
_JSON = re.compile(r"```(?:json)[^\n]*\n(.*?)^[ \t]*```", re.DOTALL | re.MULTILINE | re.IGNORECASE)

Stopped = Literal["target", "iterations", "no answer", "no hand-in"]


class ScoreWanted(msgspec.Struct, frozen=True, kw_only=True):
    """Please run the gates and score this. ``first`` is the first hand-in, which drift refers to; ``previous`` is
    what was patched, which the line budget refers to. Both are None for the first hand-in itself.
    """

    strategy: str
    iteration: int
    submission: Submission
    first: Submission | None = None
    previous: Submission | None = None


class Scored(msgspec.Struct, frozen=True, kw_only=True):
    """What was found. ``scorecard`` is the test year's and never shown to the writer; ``develop`` is shown.

    ``drift`` is None for a first hand-in, ``trail`` where the test year could not be run.
    """

    scorecard: Scorecard
    develop: Scorecard
    drift: DriftReport | None = None
    trail: Trail | None = None


class ReviewWanted(msgspec.Struct, frozen=True, kw_only=True):
    """Please ask this reviewer."""

    reviewer: str
    request: AskModel


class Iteration(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One hand-in. ``submission`` is None without one; ``reason`` then says what came instead.

    ``set_aside``: the patch drifted or changed too many lines, so it does not count, and the next iteration starts
    from its predecessor.
    """

    number: int
    set_aside: bool = False
    submission: Submission | None = None
    scored: Scored | None = None
    reviews: tuple[Review, ...] = ()
    reason: str = ""
    usage: Usage = Usage()


class StrategyOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of one strategy. ``usage`` adds up the writer's tokens, ``review_usage`` the reviewers'."""

    strategy: str
    model: str
    iterations: tuple[Iteration, ...]
    stopped: Stopped
    usage: Usage = Usage()
    review_usage: Usage = Usage()

    @property
    def last(self) -> Scored | None:
        """The iteration that counts: the last hand-in that was scored and not set aside."""
        found = [one.scored for one in self.iterations if one.scored is not None and not one.set_aside]
        return found[-1] if found else None


class BuildSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How a strategy is put to a model: how often, and who reviews. ``early_stop``: end once the target is met."""

    iterations: int = ITERATIONS
    reviewers: tuple[str, ...] = ()
    early_stop: bool = True
    budget: int = 50


Request = AskModel | ScoreWanted | ReviewWanted
Answer = ModelReply | Scored


def build(
    spec: StrategySpec, model: str, settings: BuildSettings | None = None
) -> Generator[Request, Answer, StrategyOutcome]:
    """Put a strategy to a model, iteration by iteration."""
    settings = settings or BuildSettings()
    messages: tuple[Message, ...] = _opening(spec)
    done: list[Iteration] = []
    paid, review_paid = NOTHING_SPENT, NOTHING_SPENT
    stopped: Stopped = "iterations"
    first: Submission | None = None
    base: tuple[Submission, str] | None = None
    for number in range(settings.iterations):
        reply = yield AskModel(purpose="build", messages=messages, attempt=number + 1)
        assert isinstance(reply, ModelReply)
        paid = add_usage(paid, reply.usage)
        if why := no_answer(reply):
            done.append(Iteration(number=number, reason=why, usage=reply.usage))
            stopped = "no answer"
            break
        submission, why = read_hand_in(reply.text, model)
        if submission is None:
            done.append(Iteration(number=number, reason=why, usage=reply.usage))
            messages = (*messages, *exchange(reply, _again(spec, number + 1, why)))
            stopped = "no hand-in"
            continue
        previous = None if base is None else base[0]
        scored = yield ScoreWanted(
            strategy=spec.id, iteration=number, submission=submission, first=first, previous=previous
        )
        assert isinstance(scored, Scored)
        first = first or submission
        reviews, used = yield from _reviews(spec, submission, model, settings)
        review_paid = add_usage(review_paid, used)
        aside = refused(scored.drift)
        made = Iteration(
            number=number,
            submission=submission,
            scored=with_marks(scored, reviews),
            reviews=reviews,
            usage=reply.usage,
            set_aside=aside,
        )
        done.append(made)
        if not aside:
            base = (submission, reply.text)
        stopped = "iterations"
        if settings.early_stop and not aside and scored.develop.reached and scored.develop.gates.passed:
            stopped = "target"
            break
        assert base is not None  # the first hand-in cannot have drifted
        told = evidence_text(
            spec, scored, reviews, number + 1, settings.budget, last=number + 2 >= ITERATIONS, set_aside=aside
        )
        messages = (*_opening(spec), Message(role="assistant", text=base[1]), Message(role="user", text=told))
    return StrategyOutcome(
        strategy=spec.id,
        model=model,
        iterations=tuple(done),
        stopped=stopped,
        usage=paid,
        review_usage=review_paid,
    )


def refused(drift: DriftReport | None) -> bool:
    """Return whether a patch is set aside: it drifted, or changed too many lines."""
    return drift is not None and (drift.kind == "drift" or not drift.within_budget)


def with_marks(scored: Scored, reviews: Sequence[Review]) -> Scored:
    """Return the same with the paper's D1 and D2 on the scorecard: mean peer marks, and 0 for D1 after drift."""
    card = scored.scorecard
    marks = {
        "D1": peer_mark(reviews, card.submission, card.strategy),
        "D2": peer_mark(reviews, card.submission, card.strategy, risk=True),
    }
    if scored.drift is not None and scored.drift.kind == "drift":
        marks["D1"] = Measure(value=0.0, note="drift")
    card = msgspec.structs.replace(card, paper={**card.paper, **marks})
    return msgspec.structs.replace(scored, scorecard=card)


def read_hand_in(text: str, name: str) -> tuple[Submission | None, str]:
    """Return the two files of an answer, or None and what is missing. The last of several cards counts."""
    found = extract(text)
    cards = _JSON.findall(text)
    if found.code is None:
        return None, f"no program was found in the answer ({found.missing or 'none'})"
    if not cards:
        return None, "no strategy card was found: it belongs into a block fenced as json"
    return Submission(source=found.code, card=cards[-1], name=name), ""


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


def _opening(spec: StrategySpec) -> tuple[Message, ...]:
    user = PROMPTS.fill(
        "first",
        title=spec.semantics.title,
        doc=spec.doc,
        semantics=spec.semantics.canonical.decode(),
        schema=card_schema().decode(),
        payload=msgspec.json.encode(_payload(spec, 0)).decode(),
    )
    return (Message(role="system", text=PROMPTS.fill("system")), Message(role="user", text=user))


def _again(spec: StrategySpec, number: int, why: str) -> str:
    payload = msgspec.json.encode(_payload(spec, number)).decode()
    return PROMPTS.fill("again", reason=why, payload=payload)


def _payload(spec: StrategySpec, number: int) -> dict[str, object]:
    return {"kind": BUILD_KIND, "strategy": spec.id, "iteration": number}
