"""One KTD-Fin day as it is played from ``-v2`` on: words instead of blocks, and rules that a model can satisfy.

What differs from :mod:`~tradeassay.benchmarks.ktdfin.day`: the prompt is prose and plain tables and ends with what
is asked; an action handed in during the research counts if it is right and else ends the research; words instead
of a first call are answered once with how to call; refusals are prose with the smallest complete example; a sound
order stands beside one that is not (under ``sound``); an error of the provider or a cut-off answer is no attempt;
the same wrong answer twice ends the attempts; only the last refused answer stays in the conversation.

Further failure kinds: ``cut_off`` (an answer that ended at the token limit), ``repeated`` (the same wrong answer
again), ``dropped`` (an order that broke a rule and was left out of an action that stands).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tradeassay.benchmarks.ask_again import CUT_OFF, REPEATED, Patience, left_in_words, listed, shortened, was_cut
from tradeassay.benchmarks.ktdfin.account import Performance
from tradeassay.benchmarks.ktdfin.action import NAME, SUBMIT_V2, ActionViolation, read_submission, sift
from tradeassay.benchmarks.ktdfin.day import FINAL, Complaint, Feedback, KtdfinTalk
from tradeassay.benchmarks.ktdfin.desk import Desk
from tradeassay.benchmarks.ktdfin.observation import HIDDEN_LOT, observe
from tradeassay.benchmarks.ktdfin.prompts import V2
from tradeassay.benchmarks.ktdfin.tools import BY_NAME_V2, TOOLS_V2
from tradeassay.benchmarks.ktdfin.wire import BadArguments, Wire
from tradeassay.benchmarks.ktdfin.words import day_in_words, example_action, holds_in_words, rules_in_words
from tradeassay.benchmarks.protocol import schema_of
from tradeassay.core.dialogue import AskModel, Dialogue, Given, Message, ModelReply, ToolCall, ToolSpec
from tradeassay.core.orders import Decision, Failure

DROPPED = "dropped"
SPECS_V2: tuple[ToolSpec, ...] = tuple(
    ToolSpec(name=tool.name, description=tool.description, schema=schema_of(tool.arguments)) for tool in TOOLS_V2
)


def day_v2(desk: Desk, wire: Wire, performance: Performance, not_sent: Sequence[str] = ()) -> Dialogue:
    """Ask a model for one day's decision; ``not_sent`` are yesterday's orders that were left out, with reasons."""
    return _DayV2(desk, wire, not_sent).play(performance)


class _DayV2(KtdfinTalk):
    """The state of a day's conversation."""

    specs = SPECS_V2
    tools = BY_NAME_V2

    def __init__(self, desk: Desk, wire: Wire, not_sent: Sequence[str]) -> None:
        super().__init__(desk, wire)
        self.not_sent = not_sent
        self.patience = Patience(self.config.retries + 1)
        self.handed_in: Decision | None = None
        self.reminded = False
        self.holds, self.held_words = False, ""

    # -- the start -----------------------------------------------------------------------------------------------

    def _opening(self, performance: Performance) -> list[Message]:
        desk, config, gate = self.desk, self.config, self.wire.gate
        seen = observe(desk, self.wire, performance, self.not_sent)
        self.given = Given(
            session=gate.day(desk.today.iso),
            rules=self.wire.encode(seen.constraints),
            observation=self.wire.encode(seen),
        )
        shown = msgspec.json.decode(self.given.observation)
        self.holds, self.held_words = holds_in_words(shown)
        lot = seen.constraints.lot
        blanks = {"rules": rules_in_words(config, desk.rules, 1.0 if lot == HIDDEN_LOT else lot)}
        if config.mode != "memory-only":
            blanks["factors"] = V2.fill("factors")
        if config.mode == "open-research":
            blanks["tool_calls"] = str(config.tool_calls)
        system = V2.fill(f"system.{config.mode}", **blanks)
        if config.control:
            system += V2.fill("control")
        research = config.mode == "open-research"
        task = V2.fill("research", tool_calls=config.tool_calls) if research else self._asked()
        cutoff = "none" if desk.as_of is None else gate.day(desk.as_of.iso)
        user = day_in_words(shown, self.given.session, cutoff, task)
        return [Message(role="system", text=system), Message(role="user", text=user)]

    def _asked(self) -> str:
        example = example_action(self.holds)
        return V2.fill("submit", held=self.held_words, min_reason=self.config.min_reason, example=example)

    # -- research ------------------------------------------------------------------------------------------------

    def _ends_research(self, reply: ModelReply) -> bool:
        """An action that is handed in early is taken as one if it is right; else the research is over.

        Its form has not been shown by then, so a wrong one is no attempt, and it is not kept to be copied.
        """
        if any(call.name == NAME for call in reply.calls):
            judged = self._judge_v2(reply)
            self.handed_in = judged if isinstance(judged, Decision) else None
            return True
        if was_cut(reply) and not reply.calls:
            self._fail(CUT_OFF, "research: the answer was cut off at the token limit")
        ended = super()._ends_research(reply)
        if ended and self.calls == 0 and not self.reminded:
            # Small models announce their calls: they are told once a day that none came.
            self.reminded = True
            self.talk.append(Message(role="user", text=V2.fill("no_call")))
            return False
        return ended

    def _result(self, call: ToolCall) -> str:
        if call.name == NAME:
            return self._error("tool", "it is judged by itself", counted=False)
        return super()._result(call)

    def _arguments(self, call: ToolCall) -> object:
        tool = self.tools[call.name]
        return self.wire.decode_plainly(call.arguments, tool.arguments, tool.arguments.__struct_fields__)

    # -- submission ----------------------------------------------------------------------------------------------

    def _submission(self) -> Dialogue:
        return self.handed_in or (yield from self._asked_for())

    def _asked_for(self) -> Dialogue:
        if self.config.mode == "open-research":
            self.talk.append(Message(role="user", text=self._asked()))
        base, patience = tuple(self.talk), self.patience
        given = msgspec.structs.replace(self.given, answer_schema=SUBMIT_V2.schema)
        tail: tuple[Message, ...] = ()
        reply: ModelReply | None = None
        while True:
            if reply is None:
                reply = yield self._ask((*self.opening, *base, *tail), given)
            if reply.error_kind is not None or reply.error is not None:
                kind = self._count_error(reply)
                if kind in FINAL or patience.silence():
                    return self._failed("no answer came")
                if kind == "context":
                    base, tail = self._without_research(), ()
                reply = None
                continue
            outcome = self._judge_v2(reply)
            if isinstance(outcome, Decision):
                return outcome
            if was_cut(reply):
                self._fail(CUT_OFF, "the answer was cut off at the token limit")
                if patience.silence():
                    return self._failed("every answer was cut off at the token limit")
                tail = (Message(role="user", text=V2.fill("cut", example=self._smallest())),)
                reply = None
                continue
            self._complaints(outcome)
            if patience.refuse(reply):
                self._fail(REPEATED, "the same answer came again; there is no point in asking once more")
            if patience.left <= 0:
                tried = f"no usable action in {patience.attempts} attempts"
                self._fail("give_up", tried)
                return self._failed(tried)
            tail = self._refusal(reply, outcome)
            given = msgspec.structs.replace(given, feedback=self.wire.encode(Feedback(failures=outcome)))
            reply = None

    def _ask(self, messages: tuple[Message, ...], given: Given) -> AskModel:
        return AskModel(
            purpose="submit",
            messages=messages,
            tools=(SUBMIT_V2,),
            must_call=NAME,
            attempt=self.patience.number,
            given=given,
        )

    def _judge_v2(self, reply: ModelReply) -> Decision | tuple[Complaint, ...]:
        """Return the decision, or what is wrong."""
        call = next((call for call in reply.calls if call.name == NAME), None)
        if call is None:
            return (Complaint(kind="no_submit", detail="submit_action was not called"),)
        try:
            read = read_submission(call.arguments, self.wire, self.config.min_reason)
        except BadArguments as error:
            return (Complaint(kind="schema", detail=str(error)),)
        kept, broken = sift(read.orders, self.desk)
        wrong = (
            *(Complaint(kind="schema", detail=line) for line in read.unread),
            *(Complaint(kind="constraint", rule=b.rule, detail=b.detail, stock_id=b.stock_id) for b in broken),
        )
        if wrong and not (kept and self.config.keeps_sound_orders):
            return wrong
        self.failures += [Failure(kind=DROPPED, detail=line) for line in read.unread]
        self.failures += [Failure(kind=DROPPED, detail=_in_true_words(violation)) for violation in broken]
        return Decision(orders=kept, reason=read.reason, failures=tuple(self.failures), tool_calls=self.calls)

    def _refusal(self, reply: ModelReply, complaints: tuple[Complaint, ...]) -> tuple[Message, ...]:
        """Return the refused answer and what is wrong with it: all that is kept of an attempt."""
        messages: list[Message] = []
        if reply.text.strip() or reply.calls:
            messages.append(Message(role="assistant", text=shortened(reply.text), calls=reply.calls))
        for call in reply.calls:
            told = "This was not accepted." if call.name == NAME else "Only submit_action can be called now."
            messages.append(Message(role="tool", text=told, call_id=call.id))
        text = V2.fill(
            "refused",
            wrong=listed(map(self._in_words, complaints)),
            left=left_in_words(self.patience.left),
            example=self._smallest(),
        )
        return (*messages, Message(role="user", text=text))

    def _in_words(self, complaint: Complaint) -> str:
        whom = "" if complaint.stock_id is None else f"{self.wire.stock_id(complaint.stock_id)}: "
        return f"{whom}{complaint.detail}"

    def _smallest(self) -> str:
        return example_action(self.holds, smallest=True)

    def _without_research(self) -> tuple[Message, ...]:
        """Return the talk without its research, because it exceeds the model's context."""
        return (self.talk[-1],) if self.config.mode == "open-research" else ()


def _in_true_words(violation: ActionViolation) -> str:
    assert violation.stock_id is not None
    return f"{violation.stock_id.symbol}: {violation.detail}"
