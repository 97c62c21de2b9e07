"""Define the interface of a model: names, parameters, attempts and retries."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Literal, Protocol

import msgspec
from msgspec import Meta

from tradeassay.core.errors import UserError
from tradeassay_bench.core.dialogue import AskModel, ModelReply, Usage
from tradeassay_bench.core.errors import RunError


class QuestionPlace(msgspec.Struct, frozen=True, kw_only=True):
    """The unique address of a question in a run.

    ``sample`` distinguishes repetitions of an episode (its seed). ``index`` counts the questions
    within a step.
    """

    episode: str
    step: int
    sample: int
    index: int


class Model(Protocol):
    """A model that answers questions.

    Bad answers, refusals, time-outs and an exhausted budget are replies, never exceptions.
    """

    @property
    def name(self) -> str: ...

    async def ask(self, request: AskModel, place: QuestionPlace) -> ModelReply:
        """Return the reply to one request. The method may be called concurrently."""


def failed_reply(kind: str, error: str, *, billed: bool = False) -> ModelReply:
    """Return the reply for an attempt without an answer.

    Its cost is zero. If ``billed``, the provider may have charged an unknown amount.
    """
    usage = Usage() if billed else Usage(usd=0.0)
    return ModelReply(stop="error", error=error, error_kind=kind, usage=usage)


def request_texts(request: AskModel) -> list[str]:
    """Return all texts of a request: messages, tool calls, tools and the schema of the answer."""
    texts = [message.text for message in request.messages]
    for message in request.messages:
        for call in message.calls:
            texts += (call.name, call.arguments)
    for tool in request.tools:
        texts += (tool.name, tool.description, tool.schema)
    if request.answer_schema is not None:
        texts.append(request.answer_schema)
    return texts


ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh"]


class ModelParams(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Sampling parameters and limits of one model.

    None means the provider's own default, and the parameter is not sent. ``timeout_s`` limits one
    attempt, from the request to the last byte of the answer.
    """

    temperature: Annotated[float, Meta(ge=0.0, le=2.0)] | None = 0.0
    max_tokens: Annotated[int, Meta(ge=1, le=10_000_000)] = 4096
    timeout_s: Annotated[float, Meta(gt=0.0, le=604_800.0)] = 120.0
    top_p: Annotated[float, Meta(gt=0.0, le=1.0)] | None = None
    seed: int | None = None
    reasoning_effort: ReasoningEffort | None = None
    reasoning_tokens: Annotated[int, Meta(ge=0, le=10_000_000)] | None = None

    def sent(self) -> dict[str, float | int | str | None]:
        """Return the parameters that can change an answer: all except the time limit."""
        return {
            name: value
            for name, value in msgspec.structs.asdict(self).items()
            if name != "timeout_s"
        }


Route = Literal["scripted", "local", "inspect"]
_ROUTES: dict[str, Route] = {"scripted": "scripted", "local": "local"}


class ModelName(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of a model's name.

    ``rest`` is the part after the first slash. ``gguf`` is the path in a name such as
    ``local//path/to/file.gguf``, or None.
    """

    full: str
    route: Route
    provider: str
    rest: str
    gguf: Path | None = None


def parse_name(name: str) -> ModelName:
    """Parse a model's name. Raises :class:`UserError` if it has no provider or no model."""
    provider, slash, rest = name.partition("/")
    if not slash or not provider or not rest or name != name.strip():
        hint = "write provider/model, e.g. openai/gpt-5, scripted/sensible or local/smollm2"
        raise UserError(f"'{name}' is not a model name", hint=hint)
    gguf = Path(rest) if provider == "local" and rest.startswith("/") else None
    return ModelName(
        full=name, route=_ROUTES.get(provider, "inspect"), provider=provider, rest=rest, gguf=gguf
    )


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one attempt.

    ``again`` is true if another attempt may succeed. ``wait_s`` is the waiting time that the
    provider requests. ``seconds`` is the duration of the answer if the provider measured it.
    """

    reply: ModelReply
    again: bool = False
    wait_s: float | None = None
    seconds: float | None = None


class Provider(Protocol):
    """A source of answers, one attempt at a time: a server, a program, or a local model."""

    name: str

    async def attempt(self, request: AskModel, place: QuestionPlace) -> Attempt:
        """Make one attempt and return its outcome.

        Failures of the provider are replies. Only a bug raises.
        """


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """The number of attempts and the exponential waits between them.

    A provider's Retry-After is obeyed up to ``patience_s``. A longer one ends the attempts, because
    a caller with an hour to wait should not occupy a connection. After ``silences`` consecutive
    time-outs in one episode the run stops and can be resumed. Waiting for every question to a
    silent provider would take days, and each day would count as a day without an answer. With None
    the run never stops.
    """

    attempts: Annotated[int, Meta(ge=1)] = 6
    first_s: Annotated[float, Meta(ge=0.0)] = 1.0
    longest_s: Annotated[float, Meta(ge=0.0)] = 60.0
    patience_s: Annotated[float, Meta(ge=0.0)] = 300.0
    silences: Annotated[int, Meta(ge=1)] | None = 5

    def wait(self, failed: int, wanted_s: float | None, place: QuestionPlace) -> float | None:
        """Return the seconds to wait after the ``failed``-th attempt (from 1), or None to stop.

        Each wait is twice the previous one. Waits are spread over their upper half, so that callers
        do not all return at once. The spread is computed from the question's place, without a clock
        or random numbers.
        """
        if failed >= self.attempts or (wanted_s is not None and wanted_s > self.patience_s):
            return None
        full = min(self.longest_s, self.first_s * 2.0 ** (failed - 1))
        where = f"{place.episode}\0{place.step}\0{place.sample}\0{place.index}\0{failed}"
        fraction = int.from_bytes(hashlib.sha256(where.encode()).digest()[:8], "big") / 2.0**64
        spread = full * (0.5 + 0.5 * fraction)
        return spread if wanted_s is None else max(wanted_s, spread)


Sleep = Callable[[float], Awaitable[None]]


class AskingModel:
    """A model that queries a provider with at most ``connections`` concurrent requests.

    All callers share the connections. A caller occupies its connection while it waits for a retry,
    because a request to slow down must not admit another caller.
    """

    def __init__(
        self,
        provider: Provider,
        *,
        connections: int,
        retry: RetryPolicy,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        if connections < 1:
            raise UserError(
                f"expected 1 or more connections, got {connections}", hint="give 1 or more"
            )
        self.name = provider.name
        self._provider, self._retry, self._sleep = provider, retry, sleep
        self._slots = asyncio.Semaphore(connections)
        self._silent: dict[str, int] = {}
        self._seconds: dict[QuestionPlace, float] = {}

    async def ask(self, request: AskModel, place: QuestionPlace) -> ModelReply:
        """Return the reply to one request, with retries according to the policy.

        Raises :class:`RunError` if the provider no longer answers. Recorded answers are kept, and
        the run can be resumed.
        """
        async with self._slots:
            failed = 0
            wait: float | None = 0.0
            while wait is not None:
                if failed:
                    await self._sleep(wait)
                began = time.perf_counter()
                attempt = await self._provider.attempt(request, place)
                elapsed = time.perf_counter() - began
                self._seconds[place] = elapsed if attempt.seconds is None else attempt.seconds
                failed += 1
                wait = self._retry.wait(failed, attempt.wait_s, place) if attempt.again else None
        reply = attempt.reply
        silent = self._silent.get(place.episode, 0) + 1 if reply.error_kind == "timeout" else 0
        self._silent[place.episode] = silent
        if self._retry.silences is not None and silent >= self._retry.silences:
            raise RunError(
                f"{self.name} did not answer {silent} questions in a row within its time limit",
                hint="resume the run when it answers again; a longer timeout_s may help",
            )
        return reply

    def seconds_of(self, place: QuestionPlace) -> float:
        """Return the seconds of a question's last attempt and delete them.

        Queueing and earlier attempts are not included.
        """
        return self._seconds.pop(place, 0.0)
