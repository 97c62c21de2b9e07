"""One StockBench day as it is played from ``-v2`` on: words instead of blocks, and rules that a model can satisfy.

What differs from :mod:`~tradeassay.benchmarks.stockbench.day`: prompts are prose and plain tables and end with
what is asked; refusals are prose with the smallest complete example; a sound decision stands beside one that is
not (under ``sound``; the others are counted by kind); an error of the provider or a cut-off answer is no attempt;
the same wrong answer twice ends the attempts; only the last refused answer stays in the conversation.

Further failure kinds: ``cut_off`` (an answer that ended at the token limit), ``repeated`` (the same wrong answer
again), and the note ``no_target_shares`` (changes without the number of shares, which the paper's check compares).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from tradeassay.benchmarks.ask_again import (
    CUT_OFF,
    REPEATED,
    Patience,
    left_in_words,
    listed,
    shortened,
    was_cut,
)
from tradeassay.benchmarks.stockbench.answers import (
    DECISIONS_SCHEMA,
    PICKED_SCHEMA,
    AnswerComplaint,
    AnswerFeedback,
    AnswerRefused,
    in_words,
    read_decisions_apart,
    read_picks_apart,
    sift_orders,
)
from tradeassay.benchmarks.stockbench.briefing import Briefing
from tradeassay.benchmarks.stockbench.day import MOST_COMPLAINTS, AskedStage, DayStopped, StockbenchTalk, T
from tradeassay.benchmarks.stockbench.payload import ANALYSIS, DECISION, OVERVIEW, encode
from tradeassay.benchmarks.stockbench.prompts import PROMPTS_V2
from tradeassay.benchmarks.stockbench.words import (
    DECISION_EXAMPLE,
    NOTES_EXAMPLE,
    PICK_EXAMPLE,
    analysis_in_words,
    decision_in_words,
    overview_in_words,
)
from tradeassay.core.dialogue import AskModel, Dialogue, Message, ModelReply
from tradeassay.core.orders import Order

NO_SHARES = "no_target_shares"
_EXAMPLES = {"overview": PICK_EXAMPLE, "analysis": NOTES_EXAMPLE, "decision": DECISION_EXAMPLE}


def dialogue_v2(briefing: Briefing) -> Dialogue:
    """Ask a model for one day's decision. It has failed, and trades nothing, when none was accepted."""
    return _DayV2(briefing).play()


class _DayV2(StockbenchTalk):
    """The state of a day's conversation."""

    def _system(self) -> Message:
        rules = self.briefing.rules
        costs = {"buy_cost": f"{rules.buy_cost * 100:g} %", "sell_cost": f"{rules.sell_cost * 100:g} %"}
        return Message(role="system", text=PROMPTS_V2.fill(f"system.{self.config.prompt}", **costs))

    # -- the stages ----------------------------------------------------------------------------------------------

    def _overview(self) -> AskedStage[tuple[str, ...]]:
        briefing, config = self.briefing, self.config
        return AskedStage(
            "overview",
            OVERVIEW,
            briefing.names,
            lambda payload: overview_in_words(payload, config),
            self._picks,
            PICKED_SCHEMA,
        )

    def _analysis(self, picked: tuple[str, ...]) -> AskedStage[str]:
        names = tuple(self.briefing.by_symbol[symbol] for symbol in picked)
        # The notes are for the model's own use: any words will do, and leaving them out is not a mistake.
        return AskedStage(
            "analysis", ANALYSIS, names, lambda payload: analysis_in_words(payload, self.config), str
        )

    def _decision(self) -> AskedStage[tuple[Order, ...]]:
        briefing, config = self.briefing, self.config
        return AskedStage(
            "decision",
            DECISION,
            briefing.names,
            lambda payload: decision_in_words(payload, config),
            self._orders,
            DECISIONS_SCHEMA,
        )

    def _picks(self, answer: str) -> tuple[str, ...]:
        names, wrong = read_picks_apart(answer, self.briefing.by_symbol, self.config.max_names)
        self._leave_out(wrong, some_stand=bool(names))
        return names

    def _orders(self, answer: str) -> tuple[Order, ...]:
        decided, unread = read_decisions_apart(answer, self.briefing.by_symbol)
        orders, stand, broken = sift_orders(decided, self.briefing)
        self._leave_out((*unread, *broken), some_stand=stand > 0)
        without = sum(order.unit == "target_value" for order in orders)
        if without:
            self._fail(NO_SHARES, f"{without} of {len(orders)} changes come without target_shares")
        return orders

    def _leave_out(self, wrong: Sequence[AnswerComplaint], *, some_stand: bool) -> None:
        """Count what cannot stand; raise :class:`AnswerRefused` where nothing does or the paper's rule holds."""
        if not wrong:
            return
        if not (some_stand and self.config.keeps_sound_decisions):
            first = wrong[0].kind
            raise AnswerRefused(*(complaint for complaint in wrong if complaint.kind == first))
        for complaint in wrong:
            self._fail(complaint.kind, in_words(complaint))

    # -- asking --------------------------------------------------------------------------------------------------

    def _ask(self, stage: AskedStage[T]) -> Generator[AskModel, ModelReply, T]:
        patience, example = Patience(self.config.attempts), _EXAMPLES[stage.purpose]
        tail: tuple[Message, ...] = ()
        feedback: str | None = None
        while True:
            messages, first, shown = self._messages(stage, [tail] if tail else [])
            given = self._given(stage, shown, feedback)
            reply = yield AskModel(purpose=stage.purpose, messages=messages, attempt=patience.number, given=given)
            if reply.error is not None or reply.error_kind is not None:
                self._count_error(reply, stage.purpose)
                if patience.silence():
                    raise DayStopped(f"no answer came to the {stage.purpose}; everything is held")
                continue
            said = (Message(role="assistant", text=shortened(reply.text)),) if reply.text.strip() else ()
            try:
                result = stage.read(reply.text)
            except AnswerRefused as refused:
                if was_cut(reply):
                    self._fail(CUT_OFF, f"{stage.purpose}: the answer was cut off at the token limit")
                    if patience.silence():
                        raise DayStopped(f"every answer to the {stage.purpose} was cut off") from None
                    tail = (Message(role="user", text=PROMPTS_V2.fill("cut", example=example)),)
                    continue
                self._fail(refused.kind, str(refused))
                if patience.refuse(reply):
                    self._fail(REPEATED, f"{stage.purpose}: the same answer came again")
                if patience.left <= 0:
                    tried = f"{stage.purpose}: no usable answer in {patience.attempts} attempts"
                    self._fail("give_up", tried)
                    raise DayStopped(f"{tried}; everything is held") from None
                complaints = refused.complaints[:MOST_COMPLAINTS]
                feedback = encode(AnswerFeedback(failures=complaints))
                text = PROMPTS_V2.fill(
                    "again",
                    wrong=listed(map(in_words, complaints)),
                    left=left_in_words(patience.left),
                    example=example,
                )
                tail = (*said, Message(role="user", text=text))
                continue
            self.talk[stage.purpose] = (first, *said)
            return result
