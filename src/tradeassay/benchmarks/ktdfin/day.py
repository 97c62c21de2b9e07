"""One KTD-Fin day as a sans-I/O generator: research, then a forced submission.

Every retry, every piece of feedback and every counted failure of the benchmark is decided here. Failure kinds:

- ``parse``: a research call whose arguments are not JSON or break the schema;
- ``tool``: a research call with an unknown tool, an unknown name, a future day or an impossible request;
- ``tool_budget``: a research call beyond the budget;
- ``schema``, ``constraint``, ``no_submit``: a submission that breaks the form, breaks a rule, or never came;
- ``refused``, ``timeout``, ``unreachable``, ``rate_limited``, ``over_budget``, ``context``: no answer came;
- ``give_up``: the attempts are used up and nothing is traded.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping
from typing import ClassVar

import msgspec

from tradeassay.benchmarks.ktdfin.account import Performance
from tradeassay.benchmarks.ktdfin.action import NAME, SUBMIT, ActionViolation, check_orders, read_action
from tradeassay.benchmarks.ktdfin.desk import Desk
from tradeassay.benchmarks.ktdfin.observation import observe
from tradeassay.benchmarks.ktdfin.prompts import V1
from tradeassay.benchmarks.ktdfin.tools import BY_NAME, TOOLS, AnyTool
from tradeassay.benchmarks.ktdfin.wire import BadArguments, Stock, Wire
from tradeassay.benchmarks.protocol import schema_of
from tradeassay.core.dialogue import AskModel, Dialogue, Given, Message, ModelReply, ToolCall, ToolSpec
from tradeassay.core.errors import TradeassayError
from tradeassay.core.orders import Decision, Failure
from tradeassay.masking import UnknownAlias

SPECS: tuple[ToolSpec, ...] = tuple(
    ToolSpec(name=tool.name, description=tool.description, schema=schema_of(tool.arguments)) for tool in TOOLS
)
FINAL = frozenset(("over_budget",))
"""Kinds of error after which asking again is pointless."""


class Complaint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing wrong with a submission, as told to the model. ``rule`` names the constraint, if it is one."""

    kind: str
    detail: str
    rule: str | None = None
    stock_id: Stock | None = None


class Feedback(msgspec.Struct, frozen=True, kw_only=True):
    """Everything wrong with a submission."""

    failures: tuple[Complaint, ...]
    kind: str = "feedback"


class ToolError(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a failed call."""

    error: str
    kind: str


def day(desk: Desk, wire: Wire, performance: Performance) -> Dialogue:
    """Ask a model for one day's decision, in the configured mode.

    The returned decision is in true terms. It has failed when no submission was accepted.
    """
    return KtdfinTalk(desk, wire).play(performance)


class KtdfinTalk:
    """The state of a day's conversation."""

    specs: ClassVar[tuple[ToolSpec, ...]] = SPECS
    tools: ClassVar[Mapping[str, AnyTool]] = BY_NAME

    def __init__(self, desk: Desk, wire: Wire) -> None:
        self.desk, self.wire, self.config = desk, wire, desk.config
        self.failures: list[Failure] = []
        self.calls = 0
        self.opening: list[Message] = []
        self.talk: list[Message] = []
        self.given = Given(session="", rules="{}", observation="{}")

    def play(self, performance: Performance) -> Dialogue:
        """Ask, and return the decision."""
        self.opening = self._opening(performance)
        hopeless = False
        if self.config.mode == "open-research":
            hopeless = yield from self._research()
        if hopeless:
            return self._failed("the model cannot be asked any more")
        return (yield from self._submission())

    # -- the start -----------------------------------------------------------------------------------------------

    def _opening(self, performance: Performance) -> list[Message]:
        desk, config = self.desk, self.config
        system = V1.fill(
            f"system.{config.mode}",
            **({"tool_calls": config.tool_calls} if config.mode == "open-research" else {}),
            retries=config.retries,
        )
        if config.control:
            system += V1.fill("control")
        gate = self.wire.gate
        seen = observe(desk, self.wire, performance)
        self.given = Given(
            session=gate.day(desk.today.iso),
            rules=self.wire.encode(seen.constraints),
            observation=self.wire.encode(seen),
        )
        user = V1.fill(
            "user",
            day=self.given.session,
            cutoff="none" if desk.as_of is None else gate.day(desk.as_of.iso),
            payload=self.given.observation,
            task=V1.fill("research") if config.mode == "open-research" else "",
        )
        return [Message(role="system", text=system), Message(role="user", text=user)]

    # -- research ------------------------------------------------------------------------------------------------

    def _research(self) -> Generator[AskModel, ModelReply, bool]:
        """Answer calls until the model is done or the budget is spent; return whether going on is pointless."""
        turn = 0
        while self.calls < self.config.tool_calls:
            turn += 1
            reply = yield AskModel(
                purpose="research",
                messages=(*self.opening, *self.talk),
                tools=self.specs,
                attempt=turn,
                given=self.given,
            )
            if reply.error_kind is not None or reply.error is not None:
                return self._count_error(reply) in FINAL
            if self._ends_research(reply):
                return False
        return False

    def _ends_research(self, reply: ModelReply) -> bool:
        """Answer a reply's calls; return whether it was the last of the research."""
        self._keep(reply)
        self.talk += [self._answer(call) for call in reply.calls]
        return not reply.calls or any(call.name == NAME for call in reply.calls)

    def _answer(self, call: ToolCall) -> Message:
        return Message(role="tool", text=self._result(call), call_id=call.id)

    def _result(self, call: ToolCall) -> str:
        if call.name == NAME:
            return self._error("tool", "the submission comes next, on its own", counted=False)
        if self.calls >= self.config.tool_calls:
            return self._error("tool_budget", f"all {self.config.tool_calls} tool calls of today are used up")
        self.calls += 1
        tool = self.tools.get(call.name)
        if tool is None:
            return self._error("tool", f"there is no such tool; there are {', '.join(self.tools)}")
        try:
            return self.wire.encode(tool.answer(self.desk, self._arguments(call)))
        except BadArguments as error:
            return self._error("parse", f"{tool.name}: {self.wire.error(error)}")
        except TradeassayError as error:
            return self._error("tool", f"{tool.name}: {self.wire.error(error)}", str(error))

    def _arguments(self, call: ToolCall) -> object:
        return self.wire.decode(call.arguments, self.tools[call.name].arguments)

    def _error(self, kind: str, shown: str, detail: str | None = None, *, counted: bool = True) -> str:
        if counted:
            self._fail(kind, detail or shown)
        return self.wire.encode(ToolError(error=shown, kind=kind))

    # -- submission ----------------------------------------------------------------------------------------------

    def _submission(self) -> Dialogue:
        config = self.config
        self.talk.append(Message(role="user", text=V1.fill("submit", min_reason=config.min_reason)))
        attempts = config.retries + 1
        given = msgspec.structs.replace(self.given, answer_schema=SUBMIT.schema)
        for attempt in range(1, attempts + 1):
            reply = yield AskModel(
                purpose="submit",
                messages=(*self.opening, *self.talk),
                tools=(SUBMIT,),
                must_call=NAME,
                attempt=attempt,
                given=given,
            )
            if reply.error_kind is not None or reply.error is not None:
                kind = self._count_error(reply)
                if kind in FINAL:
                    return self._failed("the model cannot be asked any more")
                if kind == "context":
                    self._shorten()
                continue
            outcome = self._judge(reply)
            if isinstance(outcome, Decision):
                return outcome
            feedback = self._refuse(reply, outcome, attempts - attempt)
            given = msgspec.structs.replace(given, feedback=feedback)
        if self.failures and self.failures[-1].kind in ("schema", "constraint", "no_submit"):
            self._fail("give_up", f"no usable action in {attempts} attempts")
        return self._failed(f"no usable action in {attempts} attempts")

    def _judge(self, reply: ModelReply) -> Decision | tuple[Complaint, ...]:
        """Return the decision, or what is wrong."""
        call = next((call for call in reply.calls if call.name == NAME), None)
        if call is None:
            cut = " before the token limit" if reply.stop == "length" else ""
            return self._complaints([Complaint(kind="no_submit", detail=f"submit_action was not called{cut}")])
        try:
            orders, reason = read_action(call.arguments, self.wire, self.config.min_reason)
        except BadArguments as error:
            return self._complaints([Complaint(kind="schema", detail=self.wire.error(error))])
        except UnknownAlias as error:
            return self._complaints([Complaint(kind="constraint", rule="universe", detail=self.wire.error(error))])
        violations = check_orders(orders, self.desk)
        if violations:
            return self._complaints(_constraint(violation) for violation in violations)
        return Decision(orders=orders, reason=reason, failures=tuple(self.failures), tool_calls=self.calls)

    def _complaints(self, complaints: Iterable[Complaint]) -> tuple[Complaint, ...]:
        """Count one failure per refused submission, whatever the number of things wrong with it."""
        found = tuple(complaints)
        self._fail(found[0].kind, "; ".join(map(_in_words, found)))
        return found

    def _refuse(self, reply: ModelReply, complaints: tuple[Complaint, ...], left: int) -> str:
        """Say what is wrong, and return it as JSON."""
        self._keep(reply)
        for call in reply.calls:
            wrong = "not accepted, see below" if call.name == NAME else "only submit_action can be called now"
            text = self.wire.encode(ToolError(error=wrong, kind=complaints[0].kind))
            self.talk.append(Message(role="tool", text=text, call_id=call.id))
        attempts = f"{left} attempt{'' if left == 1 else 's'}"
        payload = self.wire.encode(Feedback(failures=complaints))
        self.talk.append(Message(role="user", text=V1.fill("feedback", left=attempts, payload=payload)))
        return payload

    # -- small things --------------------------------------------------------------------------------------------

    def _keep(self, reply: ModelReply) -> None:
        """Put the model's own words back into the conversation, unless empty: providers refuse empty messages."""
        if reply.text.strip() or reply.calls:
            self.talk.append(Message(role="assistant", text=reply.text, calls=reply.calls))

    def _shorten(self) -> None:
        """Drop everything said so far but the request to submit, because it exceeds the model's context."""
        self.talk = [Message(role="user", text=V1.fill("submit", min_reason=self.config.min_reason))]

    def _count_error(self, reply: ModelReply) -> str:
        kind = reply.error_kind or "unreachable"
        self._fail(kind, reply.error or "no answer")
        return kind

    def _fail(self, kind: str, detail: str) -> None:
        self.failures.append(Failure(kind=kind, detail=detail))

    def _failed(self, reason: str) -> Decision:
        return Decision(status="failed", reason=reason, failures=tuple(self.failures), tool_calls=self.calls)


def _constraint(violation: ActionViolation) -> Complaint:
    return Complaint(kind="constraint", rule=violation.rule, detail=violation.detail, stock_id=violation.stock_id)


def _in_words(complaint: Complaint) -> str:
    whom = "" if complaint.stock_id is None else f"{complaint.stock_id.symbol}: "
    rule = "" if complaint.rule is None else f"{complaint.rule}: "
    return f"{whom}{rule}{complaint.detail}"
