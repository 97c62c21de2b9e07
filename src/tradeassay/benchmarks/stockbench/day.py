"""One StockBench day as a sans-I/O generator: overview, analysis, decision, validation.

Every retry, every piece of feedback and every counted failure of the benchmark is decided here. Failure kinds:

- ``schema``: an answer without the asked-for form (the overview's choice of names, or the decision);
- ``arithmetic``, ``liquidity``: a decision whose targets contradict its actions, or that cannot be paid for;
- ``give_up``: the attempts are used up; everything is held;
- ``refused``, ``timeout``, ``unreachable``, ``rate_limited``, ``over_budget``, ``context``: no answer came;
- ``context_cut``: not a mistake of the model's, but a note of what was left out to stay within the context limit.

Nothing is enforced with a provider's JSON mode: how often a model breaks the form is one of the results.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from itertools import chain
from typing import Generic, TypeVar

from tradeassay.benchmarks.stockbench.answers import (
    DECISIONS_SCHEMA,
    PICKED_SCHEMA,
    AnswerComplaint,
    AnswerFeedback,
    AnswerRefused,
    make_orders,
    read_decisions,
    read_picks,
)
from tradeassay.benchmarks.stockbench.briefing import Briefing, Name
from tradeassay.benchmarks.stockbench.payload import (
    ANALYSIS,
    CUTS,
    DECISION,
    OVERVIEW,
    Limits,
    Parts,
    encode,
    make_payload,
    tokens_in,
)
from tradeassay.benchmarks.stockbench.prompts import PROMPTS
from tradeassay.core.dialogue import AskModel, Dialogue, Given, Message, ModelReply
from tradeassay.core.orders import Decision, Failure, Order

T = TypeVar("T")

MISTAKES = ("schema", "arithmetic", "liquidity")
"""Failures that are the model's own, in the order in which an answer is judged."""
_FINAL = frozenset(("over_budget",))
"""Kinds of error after which asking again is pointless."""
BP = 10_000.0
LONGEST_DETAIL = 2_000
MOST_COMPLAINTS = 20
"""At most this many of the things wrong with an answer are reported back."""


@dataclass(frozen=True, slots=True)
class AskedStage(Generic[T]):
    """One question: what it shows, how it is worded, how its answer is read (raises :class:`AnswerRefused`)."""

    purpose: str
    parts: Parts
    names: tuple[Name, ...]
    text: Callable[[str], str]
    read: Callable[[str], T]
    schema: str | None = None


class DayStopped(Exception):
    """The day cannot go on."""


def dialogue(briefing: Briefing) -> Dialogue:
    """Ask a model for one day's decision. It has failed, and trades nothing, when none was accepted."""
    return StockbenchTalk(briefing).play()


class StockbenchTalk:
    """The state of a day's conversation. ``talk`` holds the stages that are over, by name."""

    def __init__(self, briefing: Briefing) -> None:
        self.briefing, self.config = briefing, briefing.config
        self.failures: list[Failure] = []
        self.talk: dict[str, tuple[Message, ...]] = {}
        self.cuts = 0
        self.rules = encode(Limits.of(briefing.rules, self.config))
        self.system = self._system()
        days = self.config.news_days
        self.about_news = PROMPTS.fill("news", days=days) if self.config.shows_news else ""

    def _system(self) -> Message:
        rules = self.briefing.rules
        costs = {"buy_bps": f"{rules.buy_cost * BP:g}", "sell_bps": f"{rules.sell_cost * BP:g}"}
        return Message(role="system", text=PROMPTS.fill(f"system.{self.config.prompt}", **costs))

    def play(self) -> Dialogue:
        """Ask, and return the decision."""
        try:
            picked = yield from self._ask(self._overview())
            if picked:
                yield from self._ask(self._analysis(picked))
            orders = yield from self._ask(self._decision())
        except DayStopped as stopped:
            return Decision(status="failed", reason=str(stopped), failures=tuple(self.failures))
        reason = f"changes {len(orders)} of {len(self.briefing.names)} positions" if orders else "holds everything"
        return Decision(orders=orders, reason=reason, failures=tuple(self.failures))

    # -- the stages ----------------------------------------------------------------------------------------------

    def _overview(self) -> AskedStage[tuple[str, ...]]:
        briefing, most = self.briefing, self.config.max_names
        return AskedStage(
            "overview",
            OVERVIEW,
            briefing.names,
            lambda payload: PROMPTS.fill(
                "overview", session=briefing.session, news=self.about_news, payload=payload, max_names=most
            ),
            lambda answer: read_picks(answer, briefing.by_symbol, most),
            PICKED_SCHEMA,
        )

    def _analysis(self, picked: tuple[str, ...]) -> AskedStage[str]:
        about = PROMPTS.fill("fundamentals") if self.config.shows_fundamentals else ""
        return AskedStage(
            "analysis",
            ANALYSIS,
            tuple(self.briefing.by_symbol[symbol] for symbol in picked),
            lambda payload: PROMPTS.fill("analysis", fundamentals=about, news=self.about_news, payload=payload),
            # The notes are for the model's own use: any words will do, and leaving them out is not a mistake.
            str,
        )

    def _decision(self) -> AskedStage[tuple[Order, ...]]:
        briefing, config = self.briefing, self.config
        words = {
            "tolerance": f"{config.tolerance * 100:g}",
            "costs": " after costs" if config.costs_count else "",
            "format": PROMPTS.fill(f"format.{config.prompt}"),
        }
        return AskedStage(
            "decision",
            DECISION,
            briefing.names,
            lambda payload: PROMPTS.fill("decision", payload=payload, **words),
            lambda answer: make_orders(read_decisions(answer, briefing.by_symbol), briefing),
            DECISIONS_SCHEMA,
        )

    # -- asking --------------------------------------------------------------------------------------------------

    def _given(self, stage: AskedStage[T], shown: str, feedback: str | None) -> Given:
        return Given(
            session=self.briefing.session,
            rules=self.rules,
            observation=shown,
            answer_schema=stage.schema,
            feedback=feedback,
        )

    def _ask(self, stage: AskedStage[T]) -> Generator[AskModel, ModelReply, T]:
        """Ask until an answer can be used; raises :class:`DayStopped` when the attempts are used up."""
        attempts = self.config.attempts
        tail: list[tuple[Message, ...]] = []
        feedback: str | None = None
        for attempt in range(1, attempts + 1):
            messages, first, shown = self._messages(stage, tail)
            given = self._given(stage, shown, feedback)
            reply = yield AskModel(purpose=stage.purpose, messages=messages, attempt=attempt, given=given)
            if reply.error is not None or reply.error_kind is not None:
                self._count_error(reply, stage.purpose)
                continue
            said = _said(reply)
            try:
                result = stage.read(reply.text)
            except AnswerRefused as refused:
                feedback = self._refuse(refused, reply)
                tail.append((*said, _again(feedback, attempts - attempt)))
                continue
            self.talk[stage.purpose] = (first, *said)
            return result
        if self.failures[-1].kind in MISTAKES:
            self._fail("give_up", f"{stage.purpose}: no usable answer in {attempts} attempts")
        raise DayStopped(f"no usable answer to the {stage.purpose} in {attempts} attempts; everything is held")

    def _refuse(self, refused: AnswerRefused, reply: ModelReply) -> str:
        """Count one failure per refused answer, and return what is wrong with it as JSON."""
        cut = " (the answer was cut off at the token limit)" if reply.stop == "length" else ""
        self._fail(refused.kind, f"{refused}{cut}")
        complaints = refused.complaints[:MOST_COMPLAINTS]
        if cut:
            complaints = (
                *complaints,
                AnswerComplaint(kind=refused.kind, detail="the answer was too long and was cut off"),
            )
        return encode(AnswerFeedback(failures=complaints))

    def _count_error(self, reply: ModelReply, purpose: str) -> None:
        kind = reply.error_kind or "unreachable"
        self._fail(kind, f"{purpose}: {reply.error or 'no answer'}")
        if kind in _FINAL:
            raise DayStopped("the model cannot be asked any more; everything is held")
        if kind == "context":
            # The model's own limit is smaller than ours: show less next time.
            if self.talk:
                self._note(f"{purpose}: without what was said before")
                self.talk.clear()
            self.cuts = min(self.cuts + 1, len(CUTS))

    # -- the context limit ---------------------------------------------------------------------------------------

    def _messages(
        self, stage: AskedStage[T], tail: list[tuple[Message, ...]]
    ) -> tuple[tuple[Message, ...], Message, str]:
        """Return a request that fits the context limit, its question, and what the question shows.

        Left out, in this order: earlier stages, earlier refused attempts, then parts of the payload.
        """
        talk, kept, cuts = dict(self.talk), list(tail), self.cuts
        while True:
            shown = encode(make_payload(self.briefing, stage.parts, stage.names, cuts))
            first = Message(role="user", text=stage.text(shown))
            messages = (self.system, *chain(*talk.values()), first, *chain(*kept))
            length = tokens_in(messages)
            if length <= self.config.room:
                break
            if talk:
                name = next(iter(talk))
                del talk[name]
                self._note(f"{stage.purpose}: without what was said in the {name}")
            elif len(kept) > 1:
                kept.pop(0)
                self._note(f"{stage.purpose}: without earlier refused answers")
            elif cuts < len(CUTS):
                cuts += 1
            else:
                self._note(f"{stage.purpose}: about {length} tokens, {self.config.room} are allowed")
                break
        for left_out in CUTS[:cuts]:
            self._note(f"{stage.purpose}: without the {left_out}")
        return messages, first, shown

    def _note(self, what: str) -> None:
        note = Failure(kind="context_cut", detail=what)
        if note not in self.failures:
            self.failures.append(note)

    def _fail(self, kind: str, detail: str) -> None:
        self.failures.append(Failure(kind=kind, detail=detail[:LONGEST_DETAIL]))


def _again(feedback: str, left: int) -> Message:
    attempts = f"{left} attempt{'' if left == 1 else 's'}"
    return Message(role="user", text=PROMPTS.fill("again", left=attempts, payload=feedback))


def _said(reply: ModelReply) -> tuple[Message, ...]:
    """Return the model's own words for the conversation, unless empty: providers refuse empty messages."""
    return (Message(role="assistant", text=reply.text),) if reply.text.strip() else ()
