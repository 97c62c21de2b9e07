"""Offer an episode to an MCP client: the conversation of a model, one call at a time.

The protocol of the benchmark suite decides the results of tools, the calls allowed per day, the
errors of an answer and the number of retries. A client receives the same texts as a model, under
the same mask.
"""

import asyncio
import itertools
import json
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import mcp_types as types
import msgspec
from mcp.server import Server
from mcp.server.stdio import stdio_server

from tradeassay.core.files import write_atomic
from tradeassay_bench.core.dialogue import (
    AskModel,
    Message,
    ModelReply,
    ToolCall,
    ToolSpec,
    as_text,
)
from tradeassay_bench.core.drive import Ended, advance
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.core.events import StepRecord
from tradeassay_bench.core.run_secret import draw_secret, refuse_bad_secret
from tradeassay_bench.frontends.prepared import PreparedEpisode, earned, plots_of, spec_for
from tradeassay_bench.llm import ModelParams, RecordingStore
from tradeassay_bench.llm.recording import AnswerLine, key_of, recorded_question
from tradeassay_bench.play import AddressedQuestion
from tradeassay_bench.runs import AgentSpec, Asking, run
from tradeassay_bench.runs.play.episodes import model_episode
from tradeassay_bench.runs.play.resume import refuse_other_content
from tradeassay_bench.runs.spec.episode import protocol_config, protocol_of
from tradeassay_bench.runs.spec.run_spec import ParamValue, Window, work_sha256
from tradeassay_bench.runs.store.folder import RunFolder
from tradeassay_bench.runs.store.manifest import read_manifest


class ToolReply(NamedTuple):
    """The answer to a call. ``wrong`` is true if the text describes an error of the call."""

    text: str
    wrong: bool = False


class ToolSession(Protocol):
    """A session that offers tools to a client."""

    @property
    def instructions(self) -> str: ...

    def tools(self) -> Sequence[ToolSpec]: ...

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolReply:
        """Answer a call. Never raises for any input of a client."""


SessionFor = Callable[[Any], ToolSession]
"""A function that returns the session of an HTTP request.

The request is None if there is only one client.
"""


def make_server(session_for: SessionFor, *, instructions: str) -> Any:
    async def list_tools(context: Any, params: Any) -> Any:
        tools = [
            types.Tool(
                name=tool.name, description=tool.description, input_schema=json.loads(tool.schema)
            )
            for tool in session_for(context.request).tools()
        ]
        return types.ListToolsResult(tools=tools)

    async def call_tool(context: Any, params: Any) -> Any:
        reply = await session_for(context.request).call(params.name, dict(params.arguments or {}))
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=reply.text)], is_error=reply.wrong
        )

    return Server(
        "tradeassay", instructions=instructions, on_list_tools=list_tools, on_call_tool=call_tool
    )


def server_for(session: ToolSession) -> Any:
    return make_server(lambda request: session, instructions=session.instructions)


async def serve_stdio(session: ToolSession) -> None:
    """Serve one client over standard input and output until the client disconnects."""
    server = server_for(session)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


CLIENT = "mcp/client"
"""The name of a client in its recorded answers."""
OBSERVE = ToolSpec(
    name="observe",
    description="Read today's observation, the rules, and everything said today so far. Free of "
    "charge.",
    schema='{"type": "object", "properties": {}, "additionalProperties": false}',
)
ANSWER = ToolSpec(
    name="answer",
    description="Answer the last question that observe shows: a JSON object of the form it asks "
    "for, or a text.",
    schema=(
        '{"type": "object", "properties": {"answer": {"type": "object"}, "text": {"type": '
        '"string"}}, '
        '"additionalProperties": false, "minProperties": 1, "maxProperties": 1}'
    ),
)
_WITH_TOOLS = (
    "You manage a paper-trading account over a number of sessions. Each session: call observe, "
    "research with the "
    "market's tools within today's budget, then submit_action. An accepted submission ends the "
    "session and shows "
    "the next one."
)
_BY_SUBMISSION = (
    "You manage a paper-trading account over a number of sessions. Each session: call observe, "
    "then "
    "submit_action. An accepted submission ends the session and shows the next one."
)
_BY_ANSWERS = (
    "You manage a paper-trading account over a number of sessions. Each session: call observe, "
    "then answer every "
    "question in the form it asks for. The last accepted answer ends the session and shows the "
    "next one."
)


class EpisodeSession:
    """One episode with an MCP client as the agent.

    Every answer is recorded in ``answers`` before it has any effect. Recorded questions are not
    repeated. ``ended`` is called at the end of the last session.
    """

    def __init__(
        self,
        plot: PreparedEpisode,
        *,
        sessions: int | None = None,
        answers: RecordingStore | None = None,
        ended: Callable[[], None] | None = None,
    ) -> None:
        """Open the episode. Raises :class:`UserError` for a benchmark without a conversation."""
        self.journal: list[StepRecord] = []
        self._answers, self._ended = answers, ended
        stages: tuple[ToolSpec, ...] = getattr(protocol_of(plot.benchmark), "tools", ())
        # Without research a model is only offered the last tool, which submits the day.
        researches = (
            getattr(protocol_config(plot.benchmark), "mode", "open-research") == "open-research"
        )
        self._stages = stages if researches else stages[-1:]
        self.play = model_episode(plot.snapshot, plot.benchmark, plot.episode, plot.secret)
        self._sessions = len(self.play.market) if sessions is None else sessions
        self._turn = asyncio.Lock()
        self._ids = itertools.count(1)
        self._step: Generator[AddressedQuestion[AskModel], ModelReply, StepRecord]
        self._now: AddressedQuestion[AskModel] | None = None
        self.play.open()
        self._open()

    @property
    def instructions(self) -> str:
        return (_BY_ANSWERS, _BY_SUBMISSION, _WITH_TOOLS)[min(len(self._stages), 2)]

    @property
    def over(self) -> bool:
        return self._now is None

    @property
    def earned(self) -> float | None:
        """Return the return so far; None before the first session is over."""
        return earned(self.journal)

    def tools(self) -> Sequence[ToolSpec]:
        """Return ``observe`` and the conversation's own tools, or ``answer`` if it has none."""
        return (OBSERVE, *(self._stages or (ANSWER,)))

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolReply:
        async with self._turn:
            if self._now is None:
                over = f"The episode is over after {len(self.journal)} sessions."
                return ToolReply(over, wrong=name != OBSERVE.name)
            if name == OBSERVE.name:
                return ToolReply(_joined(self._now.request.messages))
            if not self._stages and name == ANSWER.name:
                text = as_text(arguments.get("answer", arguments.get("text")))
                return self._pass_on(self._now, ModelReply(text=text))
            call = ToolCall(id=f"mcp-{next(self._ids)}", name=name, arguments=as_text(arguments))
            return self._pass_on(self._now, ModelReply(calls=(call,), stop="tool_calls"), call)

    def _pass_on(
        self, at: AddressedQuestion[AskModel], reply: ModelReply, call: ToolCall | None = None
    ) -> ToolReply:
        """Send an answer to the episode and return the text for the client.

        The text contains the result of a tool, the errors of the answer, or the next question.
        """
        later = {tool.name for tool in self._stages} - {tool.name for tool in at.request.tools}
        if call is not None and at.request.must_call is None and call.name in later:
            # The client has finished this stage, because it called a tool of a later stage.
            self._send(at, ModelReply())
            assert self._now is not None
            at = self._now
        record, before = self._send(at, reply), at.request
        if record is not None:
            # The session is over. Add its record to the journal and continue with the next session.
            self.journal.append(record)
            self._open()
            accepted = record.decision.status == "ok"
            first = (
                "Accepted." if accepted else "Nothing is traded today: the attempts are used up."
            )
            following = (
                "The episode is over." if self._now is None else _joined(self._now.request.messages)
            )
            return ToolReply(f"{first}\n\n{following}", wrong=not accepted)
        assert self._now is not None
        now = self._now.request
        # A retry may drop the last attempt. The new messages are those after the common beginning.
        pairs = enumerate(zip(before.messages, now.messages, strict=False))
        shorter = min(len(before.messages), len(now.messages))
        common = next((index for index, (old, new) in pairs if old != new), shorter)
        new = [message for message in now.messages[common:] if message.role != "assistant"]
        free = bool(now.tools) and now.must_call is None
        if not free and now.purpose == before.purpose and now.attempt > 1:
            return ToolReply(_joined(new), wrong=True)
        results = [message for message in new if call is not None and message.call_id == call.id]
        answer = _joined(results or new)
        return ToolReply(answer, wrong=answer.startswith('{"error":'))

    def _send(self, at: AddressedQuestion[AskModel], reply: ModelReply) -> StepRecord | None:
        if self._answers is not None:
            question = recorded_question(CLIENT, ModelParams(), at.request, at.place)
            answer = AnswerLine(key=key_of(question), asked=question, reply=reply)
            self._answers.record(at.place.episode, at.request, answer)
        return self._advance(reply)

    def _advance(self, reply: ModelReply | None = None) -> StepRecord | None:
        """Continue with the next question.

        Return the record of a session that is over, else None.
        """
        now = advance(self._step, reply)
        if isinstance(now, Ended):
            record: StepRecord = now.result
            return record
        self._now = now
        return None

    def _open(self) -> None:
        """Continue with the next question that has no recorded answer."""
        while self.play.observation is not None and len(self.journal) < self._sessions:
            self._step = self.play.step()
            record = self._advance()
            while record is None:
                reply = None
                if self._answers is not None and self._now is not None:
                    # The client may have answered before the server was restarted.
                    request, place = self._now
                    reply = self._answers.find(
                        place.episode,
                        key_of(recorded_question(CLIENT, ModelParams(), request, place)),
                    )
                if reply is None:
                    return
                record = self._advance(reply)
            self.journal.append(record)
        self._now = None
        if self._ended is not None:
            self._ended()


def open_episode(
    benchmark: str = "ktdfin-v1",
    settings: Mapping[str, ParamValue] | None = None,
    *,
    window: str | None = None,
    dataset: str | None = None,
    sessions: int | None = None,
    secret: str | None = None,
) -> EpisodeSession:
    """Return a session of a new episode.

    Aliases are drawn from ``secret``. By default a new secret is drawn, so that the aliases cannot
    be computed from the code. Raises :class:`UserError` for the same invalid input as a run.
    """
    drawn = secret or draw_secret()
    spec = spec_for(benchmark, settings or {}, window=window, dataset=dataset, secret=drawn)
    return EpisodeSession(plots_of(spec)[0], sessions=sessions)


def serve_episode(
    benchmark: str,
    settings: Mapping[str, ParamValue],
    *,
    window: str | None = None,
    dataset: str | None = None,
    sessions: int | None = None,
    folder: Path | None = None,
) -> float | None:
    """Serve an episode over standard input and output until the client leaves.

    Returns the return of the account. With ``folder`` every answer is recorded next to it, in a
    folder that ends in ``.mcp``, together with the secret of the aliases. A restarted server
    continues after the last answer. When the last session is over, an ordinary run of these answers
    is written to ``folder``. Raises :class:`UserError` for the same invalid input as a run, and
    :class:`~tradeassay_bench.core.errors.RunError` if ``folder`` contains a different run.
    """
    if folder is None:
        session = open_episode(
            benchmark, settings, window=window, dataset=dataset, sessions=sessions
        )
        asyncio.run(serve_stdio(session))
        return session.earned
    kept = RunFolder(folder.with_name(f"{folder.name}.mcp"))
    agent = AgentSpec(name="mcp", label=CLIENT.partition("/")[2])
    secret_file, work_file = kept.path / "secret", kept.path / "work"
    secret = (
        secret_file.read_bytes().decode("ascii", "replace").strip()
        if secret_file.exists()
        else draw_secret()
    )
    refuse_bad_secret(secret)
    spec = spec_for(benchmark, settings, window=window, dataset=dataset, secret=secret, agent=agent)
    if sessions is not None:
        # A mask is drawn for the days of a run, so the days must be fixed before the client sees
        # anything.
        plot = plots_of(spec)[0]
        days = model_episode(
            plot.snapshot, plot.benchmark, plot.episode, plot.secret
        ).market.sessions
        only = Window(first=days[0], last=days[min(sessions, len(days)) - 1])
        spec = msgspec.structs.replace(spec, windows=(), window=only)

    # Record which episode is stored in the folder. It is an error if the folder has answers of a
    # different episode, or if ``folder`` contains a different run.
    place, work = RunFolder(folder), work_sha256(spec)
    refuse_other_content(place)
    if place.manifest.exists() and read_manifest(place.manifest).work_sha256 != work:
        raise RunError(f"{place.path} contains a different run", hint="choose another folder")
    if work_file.exists() and work_file.read_text(errors="replace") != work:
        hint = "use the options of the original start, or choose a different folder"
        raise RunError(f"{kept.path} contains the answers of a different episode", hint=hint)
    kept.models.mkdir(parents=True, exist_ok=True)
    write_atomic(work_file, work.encode())
    if not secret_file.exists():
        write_atomic(secret_file, secret.encode())
        secret_file.chmod(0o600)

    def make_run() -> None:
        run(spec, folder, executor="inline", asking=Asking(replay=True, recordings=kept.path))

    session = EpisodeSession(
        plots_of(spec)[0], answers=RecordingStore(kept.models, durable=True), ended=make_run
    )
    asyncio.run(serve_stdio(session))
    return session.earned


def _joined(messages: Sequence[Message]) -> str:
    return "\n\n".join(message.text for message in messages if message.text.strip())
