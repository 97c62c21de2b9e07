"""Models as the house sees them: their names and parameters, what one attempt returns, and trying again."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Annotated, Literal, Protocol

import msgspec
from msgspec import Meta

from tradeassay.core.dialogue import AskModel, ModelReply, Usage
from tradeassay.core.errors import RunError, UserError


class QuestionPlace(msgspec.Struct, frozen=True, kw_only=True):
    """Where in a run a question is asked. Two questions of one run never share a place. ``sample`` tells
    repetitions of an episode apart (its seed), ``index`` counts the questions within a step."""

    episode: str
    step: int
    sample: int
    index: int


class Model(Protocol):
    """A model that can be asked. A bad answer, a refusal, a time-out, an exhausted budget: all of them are
    replies, never exceptions."""

    @property
    def name(self) -> str: ...

    async def ask(self, request: AskModel, place: QuestionPlace) -> ModelReply:
        """Answer one request. May be called by many tasks at once."""


def failed_reply(kind: str, error: str, *, billed: bool = False) -> ModelReply:
    """Return the reply that stands for no answer. It cost nothing, unless it was ``billed``: the provider may have
    worked on it, at a cost nobody knows."""
    usage = Usage() if billed else Usage(usd=0.0)
    return ModelReply(stop="error", error=error, error_kind=kind, usage=usage)


def request_texts(request: AskModel) -> list[str]:
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
    """Sampling parameters and limits of one model. None means "the provider's own default"; it is then not sent.
    ``timeout_s`` limits one attempt, from sending to the last byte."""

    temperature: Annotated[float, Meta(ge=0.0, le=2.0)] | None = 0.0
    max_tokens: Annotated[int, Meta(ge=1, le=10_000_000)] = 4096
    timeout_s: Annotated[float, Meta(gt=0.0, le=604_800.0)] = 120.0
    top_p: Annotated[float, Meta(gt=0.0, le=1.0)] | None = None
    seed: int | None = None
    reasoning_effort: ReasoningEffort | None = None
    reasoning_tokens: Annotated[int, Meta(ge=0, le=10_000_000)] | None = None

    def sent(self) -> dict[str, float | int | str | None]:
        """Return what the model sees of these: everything but the time limit, which changes no answer."""
        return {name: value for name, value in msgspec.structs.asdict(self).items() if name != "timeout_s"}


Route = Literal["scripted", "local", "inspect"]
_ROUTES: dict[str, Route] = {"scripted": "scripted", "local": "local"}


class ModelName(msgspec.Struct, frozen=True, kw_only=True):
    """A model's name, taken apart. ``rest`` is what follows the first slash, ``gguf`` the model file that
    ``local//path/to/file.gguf`` points at."""

    full: str
    route: Route
    provider: str
    rest: str
    gguf: Path | None = None


def parse_name(name: str) -> ModelName:
    """Take a model's name apart; raises :class:`UserError` when it has no provider or no model."""
    provider, slash, rest = name.partition("/")
    if not slash or not provider or not rest or name != name.strip():
        hint = "write provider/model, e.g. openai/gpt-5, scripted/sensible or local/smollm2"
        raise UserError(f"'{name}' is not a model name", hint=hint)
    gguf = Path(rest) if provider == "local" and rest.startswith("/") else None
    return ModelName(full=name, route=_ROUTES.get(provider, "inspect"), provider=provider, rest=rest, gguf=gguf)


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of one attempt. ``again`` says that another one may do better, ``wait_s`` how long the provider
    asks to be left alone, ``seconds`` how long the answer took where the provider knows better than its caller."""

    reply: ModelReply
    again: bool = False
    wait_s: float | None = None
    seconds: float | None = None


class Provider(Protocol):
    """Something that can be asked once: a company's servers, a program, a model on this machine."""

    name: str

    async def attempt(self, request: AskModel, place: QuestionPlace) -> Attempt:
        """Ask once. A provider's failures come back as replies; only a bug raises."""


class RetryPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """Exponential waits between attempts. A provider's own Retry-After is honoured up to ``patience_s``. A longer
    one ends the attempts: a caller told to come back in an hour should not hold a connection. After ``silences``
    time-outs in a row in one episode the run is stopped, to be resumed: waiting out every question of a provider
    that has gone silent would take days, and each would count as a day without an answer. None never stops."""

    attempts: Annotated[int, Meta(ge=1)] = 6
    first_s: Annotated[float, Meta(ge=0.0)] = 1.0
    longest_s: Annotated[float, Meta(ge=0.0)] = 60.0
    patience_s: Annotated[float, Meta(ge=0.0)] = 300.0
    silences: Annotated[int, Meta(ge=1)] | None = 5

    def wait(self, failed: int, wanted_s: float | None, place: QuestionPlace) -> float | None:
        """Return the seconds to wait after the ``failed``-th attempt (from 1), or None to give up. Waits double,
        and are spread over their upper half so that callers do not all come back at once. The spread follows from
        the place of the call: no clock and no random numbers are read."""
        if failed >= self.attempts or (wanted_s is not None and wanted_s > self.patience_s):
            return None
        full = min(self.longest_s, self.first_s * 2.0 ** (failed - 1))
        where = f"{place.episode}\0{place.step}\0{place.sample}\0{place.index}\0{failed}"
        fraction = int.from_bytes(hashlib.sha256(where.encode()).digest()[:8], "big") / 2.0**64
        spread = full * (0.5 + 0.5 * fraction)
        return spread if wanted_s is None else max(wanted_s, spread)


Sleep = Callable[[float], Awaitable[None]]


class AskingModel:
    """Asks a provider with at most ``connections`` requests at a time, shared by all callers. A caller keeps its
    connection while it waits to try again: being told to slow down should not let another caller in instead."""

    def __init__(
        self, provider: Provider, *, connections: int, retry: RetryPolicy, sleep: Sleep = asyncio.sleep
    ) -> None:
        if connections < 1:
            raise UserError(f"{connections} connections cannot carry a question", hint="give 1 or more")
        self.name = provider.name
        self._provider, self._retry, self._sleep = provider, retry, sleep
        self._slots = asyncio.Semaphore(connections)
        self._silent: dict[str, int] = {}
        self._seconds: dict[QuestionPlace, float] = {}

    async def ask(self, request: AskModel, place: QuestionPlace) -> ModelReply:
        """Answer one request, trying again as the policy says. Raises :class:`RunError` when the provider has gone
        silent: what is recorded stays, the run can be resumed."""
        async with self._slots:
            failed = 0
            wait: float | None = 0.0
            while wait is not None:
                if failed:
                    await self._sleep(wait)
                began = time.perf_counter()
                attempt = await self._provider.attempt(request, place)
                whole = time.perf_counter() - began
                self._seconds[place] = whole if attempt.seconds is None else attempt.seconds
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

    def took(self, place: QuestionPlace) -> float:
        """Return the seconds of a question's last attempt, once: neither queueing nor earlier attempts count."""
        return self._seconds.pop(place, 0.0)
