"""Implement one StockBench day as a sans-I/O generator: overview, analysis, decision, validation.

This module decides every retry, all feedback and every counted failure of the benchmark.
docs/reference/stockbench.md lists the kinds of failure.

- Prompts are prose and plain tables, and end with the question.
- A refusal names the changes to make. It repeats the form if the answer did not have it.
- Under ``corrected``, valid decisions are kept if others are refused. The others are counted by
  kind.
- A provider's error and a truncated answer do not use up an attempt.
- Repeating the same wrong answer ends the attempts.
- Only the last refused answer stays in the conversation.
- The provider's JSON mode is not used, because the rate of malformed answers is a result.
"""

from collections.abc import Callable, Generator, Sequence
from itertools import chain
from typing import TypeVar

import numpy as np
from msgspec.structs import asdict, replace

from tradeassay.core.arguments import typed
from tradeassay_bench.benchmarks.protocol import ModelProtocol, protocols
from tradeassay_bench.benchmarks.stockbench.answers import (
    DECISIONS_SCHEMA,
    PICKED_SCHEMA,
    AnswerComplaint,
    AnswerFeedback,
    AnswerRefused,
    in_words,
    read_decisions,
    read_picks,
    select_valid_orders,
)
from tradeassay_bench.benchmarks.stockbench.briefing import ActionHistory, Briefing, Name
from tradeassay_bench.benchmarks.stockbench.payload import (
    ANALYSIS,
    CUTS,
    DECISION,
    DECISION_FORM,
    NOTES_FORM,
    OVERVIEW,
    PICK_FORM,
    Limits,
    Parts,
    PromptPayload,
    analysis_in_words,
    decision_in_words,
    encode,
    make_payload,
    overview_in_words,
    tokens_in,
)
from tradeassay_bench.benchmarks.stockbench.prompts import PROMPTS
from tradeassay_bench.benchmarks.stockbench.stockbench_config import StockbenchConfig
from tradeassay_bench.core.agent import EpisodeInfo, Observation
from tradeassay_bench.core.dialogue import AskModel, Dialogue, Given, Message, ModelReply
from tradeassay_bench.core.orders import Decision, Failure, Order
from tradeassay_bench.llm.prompting import (
    CUT_OFF,
    Abandoned,
    Inquiry,
    Refused,
    Tail,
    ask_until_read,
    left_in_words,
    listed,
    own_words,
)

T = TypeVar("T")

MISTAKES = ("schema", "arithmetic", "liquidity")
"""The kinds of mistakes that a model can make, in the order of the checks."""
LONGEST_DETAIL = 2_000
MOST_COMPLAINTS = 20
"""Maximum number of mistakes listed in a refusal."""
_STAGES: dict[str, tuple[Parts, Callable[[str, StockbenchConfig], str], str, str | None]] = {
    "overview": (OVERVIEW, overview_in_words, PICK_FORM, PICKED_SCHEMA),
    "analysis": (ANALYSIS, analysis_in_words, NOTES_FORM, None),
    "decision": (DECISION, decision_in_words, DECISION_FORM, DECISIONS_SCHEMA),
}
"""For each stage: the parts of its payload, its rendering function, and the form and schema of its
answer.
"""


class _DayConversation:
    """The state of a day's conversation. ``talk`` maps completed stages to their messages."""

    def __init__(self, briefing: Briefing) -> None:
        self.briefing, self.config = briefing, briefing.config
        self.failures: list[Failure] = []
        self.talk: dict[str, tuple[Message, ...]] = {}
        self.cuts = 0
        self.rules = encode(Limits.of(briefing.rules, self.config))
        rules = self.briefing.rules
        costs = {
            "buy_cost": f"{rules.buy_cost * 100:g} %",
            "sell_cost": f"{rules.sell_cost * 100:g} %",
        }
        self.system = Message(
            role="system", text=PROMPTS.fill(f"system.{self.config.prompt}", **costs)
        )

    def play(self) -> Dialogue:
        """Run the three stages and return the day's decision.

        If no answer was accepted, the decision is failed and has no orders.
        """
        briefing = self.briefing
        try:
            picked = yield from self._ask("overview", briefing.names, self._picks)
            if picked:
                picked_names = tuple(briefing.by_symbol[symbol] for symbol in picked)
                # The notes are for the model itself. Any text is accepted, even an empty one.
                yield from self._ask("analysis", picked_names, str)
            orders = yield from self._ask("decision", briefing.names, self._orders)
        except Abandoned as abandoned:
            reason = f"{abandoned}; everything is held"
            return Decision(status="failed", reason=reason, failures=tuple(self.failures))
        reason = "holds everything"
        if orders:
            reason = f"changes {len(orders)} of {len(briefing.names)} positions"
        return Decision(orders=orders, reason=reason, failures=tuple(self.failures))

    # -- the stages --

    def _picks(self, answer: str) -> tuple[str, ...]:
        names, wrong = read_picks(answer, self.briefing.by_symbol, self.config.max_names)
        self._leave_out(wrong, some_stand=bool(names))
        return names

    def _orders(self, answer: str) -> tuple[Order, ...]:
        decided, unread = read_decisions(answer, self.briefing.by_symbol)
        orders, stand, broken = select_valid_orders(decided, self.briefing)
        self._leave_out((*unread, *broken), some_stand=stand > 0)
        without = sum(order.unit == "target_value" for order in orders)
        if without:
            self._fail(
                "no_target_shares", f"{without} of {len(orders)} changes come without target_shares"
            )
        return orders

    def _leave_out(self, wrong: Sequence[AnswerComplaint], *, some_stand: bool) -> None:
        """Count the mistakes of an answer whose valid parts are kept.

        Raises :class:`AnswerRefused` with the mistakes of the first kind if no part is valid, or if
        the paper's rule applies, which refuses the whole answer.
        """
        if wrong and not (some_stand and self.config.keeps_valid_decisions):
            raise AnswerRefused(
                *(complaint for complaint in wrong if complaint.kind == wrong[0].kind)
            )
        for complaint in wrong:
            self._fail(complaint.kind, in_words(complaint))

    # -- asking --

    def _ask(
        self, purpose: str, names: tuple[Name, ...], read: Callable[[str], T]
    ) -> Generator[AskModel, ModelReply, T]:
        """Repeat a question until an answer is accepted, and return the answer.

        ``purpose`` is the name of the stage, and ``names`` are the displayed names. ``read`` parses
        the answer and raises :class:`AnswerRefused`. Raises :class:`Abandoned` after the last
        attempt.
        """
        parts, render, form, schema = _STAGES[purpose]
        feedback: str | None = None
        first, answered = Message(role="user", text=""), ModelReply()

        def ask(tail: Tail, attempt: int) -> AskModel:
            # To fit the context limit, first earlier stages and then parts of the payload are
            # dropped.
            nonlocal first
            talk, cuts, room = dict(self.talk), self.cuts, self.config.room
            while True:
                shown = encode(make_payload(self.briefing, parts, names, cuts))
                first = Message(role="user", text=render(shown, self.config))
                messages = (self.system, *chain(*talk.values()), first, *tail)
                length = tokens_in(messages)
                if length <= room:
                    break
                if talk:
                    name = next(iter(talk))
                    del talk[name]
                    self._note(f"{purpose}: without what was said in the {name}")
                elif cuts < len(CUTS):
                    cuts += 1
                else:
                    self._note(f"{purpose}: about {length} tokens, {room} are allowed")
                    break
            for left_out in CUTS[:cuts]:
                self._note(f"{purpose}: without the {left_out}")
            given = Given(
                session=self.briefing.session,
                rules=self.rules,
                observation=shown,
                answer_schema=schema,
                feedback=feedback,
            )
            return AskModel(purpose=purpose, messages=messages, attempt=attempt, given=given)

        def read_reply(reply: ModelReply) -> T:
            nonlocal answered
            answered = reply
            return read(reply.text)

        def again(reply: ModelReply, refused: Refused, left: int) -> Tail:
            nonlocal feedback
            assert isinstance(refused, AnswerRefused)
            complaints = refused.complaints[:MOST_COMPLAINTS]
            feedback = encode(AnswerFeedback(failures=complaints))
            wrong = listed([in_words(complaint) for complaint in complaints])
            # An answer that breaks only a market rule has the right form, so the form is not
            # repeated.
            shown = f" {PROMPTS.fill('form', form=form)}" if refused.kind == "schema" else ""
            text = PROMPTS.fill("again", wrong=wrong, left=left_in_words(left), form=shown)
            return (*own_words(reply), Message(role="user", text=text))

        def cut(reply: ModelReply) -> Tail:
            self._fail(CUT_OFF, f"{purpose}: the answer was cut off at the token limit")
            return (Message(role="user", text=PROMPTS.fill("cut", form=form)),)

        def lost(reply: ModelReply, tail: Tail) -> Tail:
            # The model's context limit is smaller than ours, so the next request contains less.
            if reply.error_kind == "context":
                if self.talk:
                    self._note(f"{purpose}: without what was said before")
                    self.talk.clear()
                self.cuts = min(self.cuts + 1, len(CUTS))
            return tail

        inquiry = Inquiry(
            ask=ask,
            read=read_reply,
            on_refusal=again,
            on_cut=cut,
            record=lambda kind, detail: self._fail(kind, f"{purpose}: {detail}"),
            on_error=lost,
            attempts=self.config.attempts,
            silences=self.config.attempts,
        )
        try:
            result = yield from ask_until_read(inquiry)
        except Abandoned as abandoned:
            raise Abandoned(f"{purpose}: {abandoned}") from None
        self.talk[purpose] = (first, *own_words(answered))
        return result

    def _note(self, detail: str) -> None:
        """Record once that a part of a prompt was dropped."""
        note = Failure(kind="context_cut", detail=detail)
        if note not in self.failures:
            self.failures.append(note)

    def _fail(self, kind: str, detail: str) -> None:
        """Record a failure."""
        self.failures.append(Failure(kind=kind, detail=detail[:LONGEST_DETAIL]))


@protocols.register("stockbench")
class Stockbench(ModelProtocol):
    """The StockBench protocol of one episode."""

    Config = StockbenchConfig
    prompts = PROMPTS.files
    shown = (Limits, PromptPayload)

    def __init__(self, config: StockbenchConfig | None = None) -> None:
        """Create the protocol. Raises :class:`UserError` for a value that is out of bounds."""
        config = config or StockbenchConfig()
        # A config created in code is not validated. Coerce its values the way the file reader does.
        self.config = replace(config, **typed(asdict(config), StockbenchConfig))
        self._history = ActionHistory(self.config.history_days)

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        self._history = ActionHistory(self.config.history_days)

    def dialogue(self, observation: Observation) -> Dialogue:
        return _DayConversation(self.briefing(observation)).play()

    def briefing(self, observation: Observation) -> Briefing:
        """Return today's briefing: the information that the model may see."""
        return Briefing(observation, self.config, self._history.shown(observation.since_last))

    def remember(self, observation: Observation, decision: Decision) -> None:
        self._history.remember(observation, decision)
