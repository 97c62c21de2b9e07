"""One StockBench day as a sans-I/O generator: overview, analysis, decision, validation.

Every retry, every piece of feedback and every counted failure of the benchmark is decided here;
docs/reference/stockbench.md lists the kinds of failure. Prompts are prose and plain tables and end with what is
asked; refusals are prose that names what to change, with the form where it was not kept; sound decisions are
kept when others are refused (under ``sound``; those are counted by kind); an error of the provider or a cut-off
answer is no attempt; the same wrong answer twice ends the attempts; only the last refused answer stays in the
conversation. Nothing is enforced with a provider's JSON mode: how often a model breaks the form is one of the
results.
"""

from collections.abc import Callable, Generator, Sequence
from itertools import chain
from typing import TypeVar

import numpy as np
from msgspec.structs import asdict, replace

from tradeassay.benchmarks.protocol import ModelProtocol, protocols
from tradeassay.benchmarks.stockbench.answers import (
    DECISIONS_SCHEMA,
    PICKED_SCHEMA,
    AnswerComplaint,
    AnswerFeedback,
    AnswerRefused,
    in_words,
    read_decisions,
    read_picks,
    sift_orders,
)
from tradeassay.benchmarks.stockbench.briefing import ActionHistory, Briefing, Name
from tradeassay.benchmarks.stockbench.payload import (
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
from tradeassay.benchmarks.stockbench.prompts import PROMPTS
from tradeassay.benchmarks.stockbench.stockbench_config import StockbenchConfig
from tradeassay.core.agent import EpisodeInfo, Observation
from tradeassay.core.arguments import typed
from tradeassay.core.dialogue import AskModel, Dialogue, Given, Message, ModelReply
from tradeassay.core.orders import Decision, Failure, Order
from tradeassay.llm.prompting import (
    CUT_OFF,
    GaveUp,
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
"""Failures that are the model's own, in the order in which an answer is judged."""
LONGEST_DETAIL = 2_000
MOST_COMPLAINTS = 20
"""At most this many of the things wrong with an answer are reported back."""
_STAGES: dict[str, tuple[Parts, Callable[[str, StockbenchConfig], str], str, str | None]] = {
    "overview": (OVERVIEW, overview_in_words, PICK_FORM, PICKED_SCHEMA),
    "analysis": (ANALYSIS, analysis_in_words, NOTES_FORM, None),
    "decision": (DECISION, decision_in_words, DECISION_FORM, DECISIONS_SCHEMA),
}
"""What each stage shows, what puts it into words, and the form and the schema of the answer."""


class _Talk:
    """The state of a day's conversation. ``talk`` holds the stages that are over, by name."""

    def __init__(self, briefing: Briefing) -> None:
        self.briefing, self.config = briefing, briefing.config
        self.failures: list[Failure] = []
        self.talk: dict[str, tuple[Message, ...]] = {}
        self.cuts = 0
        self.rules = encode(Limits.of(briefing.rules, self.config))
        rules = self.briefing.rules
        costs = {"buy_cost": f"{rules.buy_cost * 100:g} %", "sell_cost": f"{rules.sell_cost * 100:g} %"}
        self.system = Message(role="system", text=PROMPTS.fill(f"system.{self.config.prompt}", **costs))

    def play(self) -> Dialogue:
        """Ask for one day's decision. It has failed, and trades nothing, when none was accepted."""
        briefing = self.briefing
        try:
            picked = yield from self._ask("overview", briefing.names, self._picks)
            if picked:
                some = tuple(briefing.by_symbol[symbol] for symbol in picked)
                # The notes are for the model's own use: any words will do, and leaving them out is not a mistake.
                yield from self._ask("analysis", some, str)
            orders = yield from self._ask("decision", briefing.names, self._orders)
        except GaveUp as gave_up:
            reason = f"{gave_up}; everything is held"
            return Decision(status="failed", reason=reason, failures=tuple(self.failures))
        reason = f"changes {len(orders)} of {len(briefing.names)} positions" if orders else "holds everything"
        return Decision(orders=orders, reason=reason, failures=tuple(self.failures))

    # -- the stages ----------------------------------------------------------------------------------------------

    def _picks(self, answer: str) -> tuple[str, ...]:
        names, wrong = read_picks(answer, self.briefing.by_symbol, self.config.max_names)
        self._leave_out(wrong, some_stand=bool(names))
        return names

    def _orders(self, answer: str) -> tuple[Order, ...]:
        decided, unread = read_decisions(answer, self.briefing.by_symbol)
        orders, stand, broken = sift_orders(decided, self.briefing)
        self._leave_out((*unread, *broken), some_stand=stand > 0)
        without = sum(order.unit == "target_value" for order in orders)
        if without:
            self._fail("no_target_shares", f"{without} of {len(orders)} changes come without target_shares")
        return orders

    def _leave_out(self, wrong: Sequence[AnswerComplaint], *, some_stand: bool) -> None:
        """Count what cannot stand; raise :class:`AnswerRefused` where nothing does or the paper's rule holds."""
        if wrong and not (some_stand and self.config.keeps_sound_decisions):
            raise AnswerRefused(*(complaint for complaint in wrong if complaint.kind == wrong[0].kind))
        for complaint in wrong:
            self._fail(complaint.kind, in_words(complaint))

    # -- asking --------------------------------------------------------------------------------------------------

    def _ask(
        self, purpose: str, names: tuple[Name, ...], read: Callable[[str], T]
    ) -> Generator[AskModel, ModelReply, T]:
        """Ask until an answer can be used; raises :class:`GaveUp` when the attempts are used up.

        ``purpose`` is one of the stages, ``names`` those that are shown, ``read`` reads the answer (raises
        :class:`AnswerRefused`)."""
        (parts, in_words_of, form, schema), feedback = _STAGES[purpose], None
        first, answered = Message(role="user", text=""), ModelReply()

        def ask(tail: Tail, attempt: int) -> AskModel:
            # A request that fits the context limit. Left out, in this order: earlier stages, parts of the payload.
            nonlocal first
            talk, cuts, room = dict(self.talk), self.cuts, self.config.room
            while True:
                shown = encode(make_payload(self.briefing, parts, names, cuts))
                first = Message(role="user", text=in_words_of(shown, self.config))
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
            wrong = listed([in_words(one) for one in complaints])
            # Whoever broke a rule of the market has shown that the form is known.
            shown = f" {PROMPTS.fill('form', form=form)}" if refused.kind == "schema" else ""
            text = PROMPTS.fill("again", wrong=wrong, left=left_in_words(left), form=shown)
            return (*own_words(reply), Message(role="user", text=text))

        def cut(reply: ModelReply) -> Tail:
            self._fail(CUT_OFF, f"{purpose}: the answer was cut off at the token limit")
            return (Message(role="user", text=PROMPTS.fill("cut", form=form)),)

        def lost(reply: ModelReply, tail: Tail) -> Tail:
            # Less is shown next time, where the model's own limit is smaller than ours.
            if reply.error_kind == "context":
                if self.talk:
                    self._note(f"{purpose}: without what was said before")
                    self.talk.clear()
                self.cuts = min(self.cuts + 1, len(CUTS))
            return tail

        inquiry = Inquiry(
            ask=ask,
            read=read_reply,
            again=again,
            cut=cut,
            count=lambda kind, detail: self._fail(kind, f"{purpose}: {detail}"),
            lost=lost,
            attempts=self.config.attempts,
            silences=self.config.attempts,
        )
        try:
            result = yield from ask_until_read(inquiry)
        except GaveUp as gave_up:
            raise GaveUp(f"{purpose}: {gave_up}") from None
        self.talk[purpose] = (first, *own_words(answered))
        return result

    def _note(self, what: str) -> None:
        note = Failure(kind="context_cut", detail=what)
        if note not in self.failures:
            self.failures.append(note)

    def _fail(self, kind: str, detail: str) -> None:
        self.failures.append(Failure(kind=kind, detail=detail[:LONGEST_DETAIL]))


@protocols.register("stockbench")
class Stockbench(ModelProtocol):
    """The conversation rules of one episode."""

    Config = StockbenchConfig
    prompts = PROMPTS.files
    shown = (Limits, PromptPayload)

    def __init__(self, config: StockbenchConfig | None = None) -> None:
        """Raise :class:`UserError` for a value that is out of bounds."""
        config = config or StockbenchConfig()
        # What is made in code has not been read: its values become those that a file with them would give.
        self.config = replace(config, **typed(asdict(config), StockbenchConfig))
        self._history = ActionHistory(self.config.history_days)

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        self._history = ActionHistory(self.config.history_days)

    def dialogue(self, observation: Observation) -> Dialogue:
        return _Talk(self.briefing(observation)).play()

    def briefing(self, observation: Observation) -> Briefing:
        """Return what the model may know today."""
        return Briefing(observation, self.config, self._history.shown(observation.since_last))

    def remember(self, observation: Observation, decision: Decision) -> None:
        self._history.remember(observation, decision)
