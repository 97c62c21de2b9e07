"""Let a foreign agent run a benchmark through the same questions as a model.

A request is one JSON object. It contains the question to a model (``messages``, ``tools``,
``must_call``) and the same question as data (``rules``, ``observation``, ``answer_schema``,
``feedback``). An answer is ``{"text": "..."}``, ``{"answer": {...}}`` in the requested form, or
``{"calls": [{"name": "...", "arguments": {...}}]}``. The benchmark evaluates the answer and decides
about feedback and further attempts. Over a pipe or HTTP an answer also repeats the request's
``id``. Without the id, one surplus line would silently shift all later answers by a session. The
answer to a different question is the failure ``stray``.

An unreadable answer never raises. It becomes a reply with an error of the kind ``timeout``,
``unreachable``, ``status``, ``too_large``, ``parse``, ``schema``, ``stray`` or ``agent``. An
unreachable agent ends its episode, which can be resumed. Any other failure costs only that day.
"""

from __future__ import annotations

import os
import shlex
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from tradeassay.core.errors import UNDECODABLE, UserError
from tradeassay.core.hashing import sha256_of
from tradeassay.core.secrets import clean_foreign, holds_key
from tradeassay_bench.agents.foreign.transport import (
    EVERYWHERE,
    HttpTransport,
    PipeTransport,
    PythonCaller,
    Transport,
    Unusable,
    check_id,
    load_class,
    parse_target,
    quoted,
)
from tradeassay_bench.agents.registry import AgentConfig, Opening, agents
from tradeassay_bench.core.dialogue import AskModel, Given, Message, ModelReply, ToolCall, Usage
from tradeassay_bench.llm import Model, ModelParams, QuestionPlace
from tradeassay_bench.llm.budget import MOST_TOKENS
from tradeassay_bench.llm.model import failed_reply
from tradeassay_bench.llm.recording import RecordingModel, ReplayingModel

PROTOCOL = "tradeassay-conversation-1"
MAX_ANSWER = 1024 * 1024
"""Maximum size of an answer, in bytes."""
TIMEOUT_S = 120.0
_KINDS = {"start": "unreachable", "forbidden": "unreachable", "exit": "agent", "redirect": "status"}
"""The benchmark's kind of failure for some of the transport's kinds."""


class ToolShown(msgspec.Struct, frozen=True, kw_only=True):
    """A tool that the agent may call now. ``arguments`` is a JSON schema."""

    name: str
    description: str
    arguments: msgspec.Raw


class Request(msgspec.Struct, frozen=True, kw_only=True):
    """One question.

    ``id`` consists of the episode, the step, and the number within the step. ``episode`` is an
    opaque id, salted with the run's secret. All questions of an episode share it. ``session`` is
    the session as the benchmark displays it. Under a mask it is not a date. ``stage`` is the
    purpose of the question. ``attempt`` starts at 1. ``feedback`` describes the error of the
    previous attempt.
    """

    protocol: str
    id: str
    benchmark: str
    episode: str
    step: int
    session: str | None
    stage: str
    attempt: int
    rules: msgspec.Raw
    observation: msgspec.Raw
    messages: tuple[Message, ...]
    tools: tuple[ToolShown, ...]
    must_call: str | None
    answer_schema: msgspec.Raw
    feedback: msgspec.Raw


class ForeignCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call in an answer."""

    name: str
    arguments: dict[str, object] = {}


Tokens = Annotated[int, Meta(ge=0, le=MOST_TOKENS)]


class ForeignUsage(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens and dollars of an answer, if the agent reports them."""

    input_tokens: Tokens = 0
    output_tokens: Tokens = 0
    usd: Annotated[float, Meta(ge=0, le=1e9)] | None = None


class ForeignReply(msgspec.Struct, frozen=True, kw_only=True):
    """An answer in the format of the wire. Unknown fields are ignored."""

    id: str | None = None
    text: str | None = None
    answer: dict[str, object] | None = None
    calls: tuple[ForeignCall, ...] | None = None
    usage: dict[str, object] | None = None


_DECODER = msgspec.json.Decoder(ForeignReply, strict=True)


def question_id(place: QuestionPlace, salt: str) -> str:
    """Return the id of a question, which is unique in the run: episode, step, number."""
    return f"e-{sha256_of((salt, place.episode))[:12]}/{place.step}/{place.index}"


def encode_request(
    request: AskModel,
    place: QuestionPlace,
    benchmark: str,
    salt: str = "",
    failed: Unusable | None = None,
) -> bytes:
    """Return a question as JSON. ``failed`` is the error of the previous attempt, if any."""
    given = request.given if isinstance(request.given, Given) else None
    question = question_id(place, salt)
    feedback = _raw(given.feedback if given is not None else None)
    if failed is not None:
        failure = {"kind": _KINDS.get(failed.kind, failed.kind), "detail": failed.text}
        feedback = msgspec.Raw(msgspec.json.encode({"failures": [failure]}))
    return msgspec.json.encode(
        Request(
            protocol=PROTOCOL,
            id=question,
            benchmark=benchmark,
            episode=question.partition("/")[0],
            step=place.step,
            session=None if given is None else given.session,
            stage=request.purpose,
            attempt=request.attempt,
            rules=_raw(None if given is None else given.rules),
            observation=_raw(None if given is None else given.observation),
            messages=request.messages,
            tools=tuple(
                ToolShown(name=tool.name, description=tool.description, arguments=_raw(tool.schema))
                for tool in request.tools
            ),
            must_call=request.must_call,
            answer_schema=_raw(
                request.answer_schema or (None if given is None else given.answer_schema)
            ),
            feedback=feedback,
        )
    )


def read_reply(
    body: bytes, request: AskModel, place: QuestionPlace, salt: str = "", *, must_name: bool = False
) -> ModelReply:
    """Return a foreign agent's answer as a model's reply.

    Raises :class:`Unusable` for an unreadable answer or the answer to a different question. With
    ``must_name`` it also raises for an answer without the question's id.
    """
    if len(body) > MAX_ANSWER:
        raise Unusable("too_large", f"the answer has more than {MAX_ANSWER} bytes")
    try:
        answer = _DECODER.decode(clean_foreign(body))
        # Depending on the agent's library, counts may also be floats, strings or null.
        counts = {key: value for key, value in (answer.usage or {}).items() if value is not None}
        usage = msgspec.convert({"usage": counts}, dict[str, ForeignUsage], strict=False)["usage"]
    except msgspec.ValidationError as error:
        raise Unusable("schema", str(error).replace("$[...]", "$.usage")) from error
    except UNDECODABLE as error:
        raise Unusable("parse", f"the answer is not JSON ({error}){quoted(body)}") from error
    check_id(answer.id, question_id(place, salt), must_name=must_name)
    if (answer.answer is not None) + (answer.text is not None or answer.calls is not None) != 1:
        raise Unusable("schema", "give one of text, answer and calls")
    calls = answer.calls or ()
    text = answer.text or ""
    if answer.answer is not None and request.must_call is not None:
        calls = (ForeignCall(name=request.must_call, arguments=answer.answer),)
    elif answer.answer is not None:
        text = msgspec.json.encode(answer.answer).decode()
    return ModelReply(
        text=text,
        calls=tuple(
            ToolCall(
                id=f"call-{place.step}-{place.index}-{number}",
                name=call.name,
                arguments=msgspec.json.encode(call.arguments).decode(),
            )
            for number, call in enumerate(calls)
        ),
        stop="tool_calls" if calls else "stop",
        usage=Usage(
            input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, usd=usage.usd
        ),
    )


def _raw(text: str | None) -> msgspec.Raw:
    return msgspec.Raw(b"null" if text is None else text.encode())


class ForeignModel:
    """A foreign agent that takes a model's place in one episode and gets the same questions."""

    def __init__(
        self, name: str, transport: Transport, benchmark: str, salt: str, *, must_name: bool
    ) -> None:
        self.name = name
        self._transport = transport
        self._benchmark, self._salt, self._must_name = benchmark, salt, must_name
        self._wrong: tuple[int, Unusable] | None = None

    async def ask(self, request: AskModel, place: QuestionPlace) -> ModelReply:
        """Send a question and return the reply. A failure becomes a reply with an error."""
        # All later questions of the step report the failure, because a benchmark need not repeat a
        # question without an answer.
        failed = (
            self._wrong[1] if self._wrong is not None and self._wrong[0] == place.step else None
        )
        try:
            body = encode_request(request, place, self._benchmark, self._salt, failed)
            answer = await self._transport.exchange(body)
            reply = read_reply(answer, request, place, self._salt, must_name=self._must_name)
        except Unusable as error:
            self._wrong = (place.step, error)
            await self._transport.reset()
            kind = _KINDS.get(error.kind, error.kind)
            return failed_reply(kind, clean_foreign(error.text), billed=kind != "unreachable")
        self._wrong = None
        return reply

    def recall(self, place: QuestionPlace, reply: ModelReply) -> None:
        """Register a recorded answer.

        If the answer was a failure, later questions of the step report it, also after an
        interruption.
        """
        self._wrong = None
        if reply.error_kind is not None:
            failure = Unusable(str(reply.error_kind), reply.error or "")
            self._wrong = (place.step, failure)


class ForeignConfig(AgentConfig, frozen=True, kw_only=True):
    """The settings shared by all foreign agents."""

    timeout_s: Annotated[float, Meta(gt=0, description="seconds to wait for an answer")] | None = (
        None
    )


class ForeignAgent(ABC):
    """A foreign agent that is queried through the benchmark's conversation.

    Each episode has one connection.
    """

    Config: ClassVar[type[AgentConfig]]
    asked: ClassVar[Literal["conversation"]] = "conversation"
    kind: ClassVar[str]
    must_name: ClassVar[bool] = True
    """True if an answer must repeat the question's id. The return value of a Python method need not
    repeat the id.
    """

    def __init__(self, config: Any) -> None:
        self.config = config

    @abstractmethod
    def transport(self, timeout_s: float) -> Transport:
        """Return a new connection to the agent."""

    @asynccontextmanager
    async def open(self, opening: Opening) -> AsyncIterator[Model]:
        """Open the agent for one episode. A replay uses recorded answers and queries no agent."""
        name, params = f"{self.kind}/{opening.label}", ModelParams()
        if opening.replay:
            if opening.recording is None:
                hint = "name the run that contains them"
                raise UserError(f"{name} cannot be replayed without recorded answers", hint=hint)
            yield ReplayingModel(name, params, opening.recording)
            return
        timeout_s = self.config.timeout_s
        if timeout_s is None:
            timeout_s = getattr(opening.settings, "timeout_s", TIMEOUT_S)
        transport = self.transport(float(timeout_s))
        try:
            model = ForeignModel(
                name, transport, opening.benchmark, opening.salt, must_name=self.must_name
            )
            if opening.recording is None:
                yield model
            else:
                yield RecordingModel(model, params, opening.recording, on_recorded=model.recall)
        finally:
            await transport.close()


class HttpConfig(ForeignConfig, frozen=True, kw_only=True):
    """The server's address and token."""

    url: Annotated[str, Meta(description="the address that receives the questions by POST")] = ""
    token_env: Annotated[
        str, Meta(description="the environment variable whose value is sent as a bearer token")
    ] = ""


@agents.register("http")
class OverHttp(ForeignAgent):
    """A web server. Needs ``httpx``.

    Private addresses are allowed, because the agent belongs to the user.
    """

    summary: ClassVar[str] = (
        "your own agent behind a web server, through the benchmark's conversation"
    )
    Config: ClassVar[type[AgentConfig]] = HttpConfig
    kind: ClassVar[str] = "http"
    needs: ClassVar[tuple[tuple[str, str], ...]] = (("httpx", "arena"),)

    def __init__(self, config: HttpConfig) -> None:
        parse_target(config.url)
        if holds_key(config.url):
            hint = "put the key into an environment variable and name the variable: token_env=NAME"
            raise UserError(
                "the agent's address contains a key, which the run would record", hint=hint
            )
        self.config = config

    def transport(self, timeout_s: float) -> Transport:
        token = _from_environment(self.config.token_env) if self.config.token_env else None
        url = self.config.url
        return HttpTransport(
            url, timeout_s=timeout_s, allow=EVERYWHERE, max_answer=MAX_ANSWER, token=token
        )


class PipeConfig(ForeignConfig, frozen=True, kw_only=True):
    """The command that starts the program, and its environment variables."""

    command: Annotated[
        str,
        Meta(
            description="the command of a program that reads and writes JSON lines, in shell syntax"
        ),
    ] = ""
    env: Annotated[
        str, Meta(description="environment variables to pass to the program, separated by commas")
    ] = ""


@agents.register("pipe")
class OverPipe(ForeignAgent):
    """A program that reads one question per line and writes one answer per line."""

    summary: ClassVar[str] = "your own program on a pipe, through the benchmark's conversation"
    Config: ClassVar[type[AgentConfig]] = PipeConfig
    kind: ClassVar[str] = "pipe"

    def __init__(self, config: PipeConfig) -> None:
        try:
            self._command = shlex.split(config.command)
        except ValueError as error:
            raise UserError(
                f"the command cannot be read: {error}", hint="close its quotes"
            ) from error
        PipeTransport(self._command)
        if holds_key(config.command):
            hint = "put the key into an environment variable and name the variable: env=NAME"
            raise UserError(
                "the agent's command contains a key, which the run would record", hint=hint
            )
        self.config = config

    def prove(self) -> None:
        """Raise :class:`UserError` if the program, or the script passed to it, does not exist."""
        if PipeTransport(self._command).program() is None:
            raise UserError(
                f"there is no program '{self._command[0]}'",
                hint="give its path, or add it to PATH",
            )
        script = next((word for word in self._command[1:] if not word.startswith("-")), "")
        if script.endswith((".py", ".sh", ".js", ".rb")) and not os.path.isfile(script):
            raise UserError(
                f"there is no file '{script}' in {os.getcwd()}",
                hint="give its path relative to the current folder",
            )

    def transport(self, timeout_s: float) -> Transport:
        """Return a new transport to the program. The first question starts the program."""
        names = [name for part in self.config.env.split(",") if (name := part.strip())]
        env = {name: _from_environment(name) for name in names}
        return PipeTransport(self._command, env=env, timeout_s=timeout_s, max_answer=MAX_ANSWER)


def _from_environment(name: str) -> str:
    """Return the value of an environment variable. Raises :class:`UserError` if it is not set."""
    value = os.environ.get(name)
    if value is None:
        raise UserError(f"environment variable {name} is not set", hint=f"export {name}=...")
    return value


@agents.register("mcp")
class OverMcp(ForeignAgent):
    """A client of the Model Context Protocol that drives its own episode.

    Such an agent cannot be queried. Only its recorded answers can be replayed.
    """

    summary: ClassVar[str] = "a client of MCP, recorded by tradeassay mcp"
    Config: ClassVar[type[AgentConfig]] = ForeignConfig
    kind: ClassVar[str] = "mcp"

    def transport(self, timeout_s: float) -> Transport:
        raise UserError(
            "a client of MCP cannot be queried", hint="tradeassay mcp BENCHMARK --run FOLDER"
        )


class PythonConfig(ForeignConfig, frozen=True, kw_only=True):
    """The class of the agent."""

    cls: Annotated[str, Meta(description="package.module:Class, with a method reply(request)")] = (
        msgspec.field(name="class", default="")
    )


@agents.register("python")
class OverPython(ForeignAgent):
    """An object in this process with ``reply(request)``, plain or ``async``.

    Every episode creates a new object. The class is imported only to run episodes. Replaying or
    verifying a run never imports classes named by the run.
    """

    summary: ClassVar[str] = "your own Python class, through the benchmark's conversation"
    Config: ClassVar[type[AgentConfig]] = PythonConfig
    kind: ClassVar[str] = "python"
    must_name: ClassVar[bool] = False

    def prove(self) -> None:
        """Raise :class:`UserError` if the class cannot be instantiated or has no ``reply``."""
        load_class(self.config.cls, "reply(request)")

    def transport(self, timeout_s: float) -> Transport:
        return _InProcess(load_class(self.config.cls, "reply(request)"), timeout_s)


class _InProcess:
    """A Python object used as a transport.

    Its ``reply`` receives the request as a dictionary and returns a dictionary or a string.
    """

    def __init__(self, agent: Any, timeout_s: float) -> None:
        self._caller = PythonCaller(agent.reply, timeout_s=timeout_s)

    async def exchange(self, body: bytes) -> bytes:
        answer = await self._caller.call(msgspec.json.decode(body))
        try:
            return msgspec.json.encode({"text": answer} if isinstance(answer, str) else answer)
        except TypeError as error:
            raise Unusable("schema", str(error)) from error

    async def reset(self) -> None: ...

    async def close(self) -> None: ...
