"""Query the log-probabilities of the tokens of a text from a server that echoes a prompt.

The server must support vLLM's form of ``/completions``. Log-probabilities are requested like any
answer, so they are recorded, replayed and budgeted in the same way. The question is the text. The
answer is its tokens and their log-probabilities as JSON.
"""

from __future__ import annotations

import asyncio
import json
import os
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import msgspec

from tradeassay.core.errors import UNDECODABLE, UserError, require
from tradeassay.core.secrets import remember, without_secrets
from tradeassay_bench.core.dialogue import AskModel, Message, ModelReply, Usage
from tradeassay_bench.llm.budget import Budget, BudgetedProvider, estimate_request
from tradeassay_bench.llm.local import LocalSettings
from tradeassay_bench.llm.model import (
    AskingModel,
    Attempt,
    Model,
    ModelParams,
    QuestionPlace,
    failed_reply,
    parse_name,
)
from tradeassay_bench.llm.open import Access, read_env_file
from tradeassay_bench.llm.recording import RecordingModel, RecordingStore, ReplayingModel
from tradeassay_bench.llm.tables import Price, Tokens, load_prices

PARAMS = ModelParams(temperature=0.0, max_tokens=1)
_TIMEOUT_S = 120.0


class TokenLogprobs(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens of a text and the log-probability of each token, given the previous tokens.

    A log-probability is None if the server returned none, as for the first token.
    """

    tokens: tuple[str, ...]
    logprobs: tuple[float | None, ...]

    @property
    def missing(self) -> int:
        return sum(logprob is None for logprob in self.logprobs[1:])


def logprobs_of(reply: ModelReply) -> TokenLogprobs | str:
    """Return the log-probabilities in a reply, or a sentence that states why there are none."""
    if reply.error is not None:
        return reply.error
    try:
        return msgspec.json.decode(reply.text, type=TokenLogprobs)
    except UNDECODABLE:
        return "the answer contains no log-probabilities"


def logprob_request(text: str) -> AskModel:
    return AskModel(purpose="logprobs", messages=(Message(role="user", text=text),))


class EchoProvider:
    """A provider that makes ``/completions`` echo a text with its log-probabilities."""

    def __init__(
        self, name: str, served: str, base_url: str, key: str, price: Price | None
    ) -> None:
        self.name = name
        self._served, self._key, self._price = served, key, price
        self._address = base_url.rstrip("/") + "/completions"

    async def attempt(self, request: AskModel, place: QuestionPlace) -> Attempt:
        text = request.messages[0].text
        attempt = await asyncio.to_thread(self._post, text)
        if self._price is None or attempt.reply.error is not None:
            return attempt
        # The server writes one token after the text, because no server accepts a limit of 0.
        tokens = Tokens(
            plain=max(attempt.reply.usage.input_tokens, estimate_request(request)), output=1
        )
        usage = msgspec.structs.replace(attempt.reply.usage, usd=self._price.usd(tokens))
        return msgspec.structs.replace(
            attempt, reply=msgspec.structs.replace(attempt.reply, usage=usage)
        )

    def _post(self, text: str) -> Attempt:
        body = {
            "model": self._served,
            "prompt": text,
            "echo": True,
            "logprobs": 1,
            "max_tokens": 1,
            "temperature": 0,
        }
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {self._key}"}
        request = urllib.request.Request(self._address, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as response:
                return _read(json.load(response), text)
        except urllib.error.HTTPError as error:
            again = error.code in (429, 500, 502, 503, 504)
            words = f"the server refuses to score a text (HTTP {error.code})"
            return Attempt(
                reply=failed_reply("rate_limited" if again else "status", words), again=again
            )
        except (OSError, ValueError) as error:
            return Attempt(
                reply=failed_reply("unreachable", without_secrets(str(error))), again=True
            )


def _read(answer: Any, text: str) -> Attempt:
    try:
        scores = answer["choices"][0]["logprobs"]
        tokens, values = scores["tokens"], scores["token_logprobs"]
        offsets = scores.get("text_offset")
    except (KeyError, IndexError, TypeError):
        return Attempt(
            reply=failed_reply("status", "the server returns no log-probabilities of a text")
        )
    if offsets and len(offsets) == len(tokens):
        inside = sum(offset < len(text) for offset in offsets)
    else:
        inside, length = 0, 0
        while inside < len(tokens) and length < len(text):
            length += len(str(tokens[inside]))
            inside += 1
    echoed = tuple(map(str, tokens[:inside]))
    # Servers that do not echo return the tokens that they generated.
    if not echoed or (sum(map(len, echoed)) < len(text) // 2 and not offsets):
        return Attempt(
            reply=failed_reply("status", "the server scores its own output, not the given text")
        )
    logprobs = tuple(None if value is None else float(value) for value in values[:inside])
    result = msgspec.json.encode(TokenLogprobs(tokens=echoed, logprobs=logprobs)).decode()
    return Attempt(reply=ModelReply(text=result, usage=Usage(input_tokens=inside, usd=None)))


@asynccontextmanager
async def open_logprobs(
    name: str,
    *,
    recording: RecordingStore | None,
    replay: bool,
    budget: Budget | None = None,
    connections: int,
    access: Access,
) -> AsyncIterator[Model]:
    """Open a model for requests of log-probabilities, charged to ``budget``.

    Raises :class:`UserError` if its provider has no log-probabilities, and for a spending cap on a
    model without a known price.
    """
    if replay:
        if recording is None:
            raise UserError(
                f"{name} cannot be replayed without recorded answers", hint="give recordings="
            )
        yield ReplayingModel(name, PARAMS, recording)
        return
    parsed = parse_name(name)
    service = parsed.rest.partition("/")[0].upper().replace("-", "_")
    key = "none"
    if parsed.route == "local":
        base, served = access.base_url or LocalSettings().server, parsed.rest
        why = "llama.cpp scores only its own output; set a server: TRADEASSAY_LOCAL_SERVER"
    else:
        require("dotenv", "models")
        read_env_file()
        base, served = (
            access.base_url or os.environ.get(f"{service}_BASE_URL"),
            parsed.rest.partition("/")[2],
        )
        key = os.environ.get(f"{service}_API_KEY", key)
        remember(key)
        why = f"{parsed.provider} returns no log-probabilities of a text"
    if base is None:
        raise UserError(f"{name} has no log-probabilities: {why}")
    price = (access.prices or load_prices()).of(name)
    provider = EchoProvider(name, served or parsed.rest, base, key, price)
    paid = provider if budget is None else BudgetedProvider(provider, PARAMS, budget, price)
    asking = AskingModel(
        paid,
        connections=connections,
        retry=access.retry,
        sleep=access.sleep,
    )
    if recording is None:
        yield asking
        return
    unbilled = paid.unbilled_usd if isinstance(paid, BudgetedProvider) else None
    yield RecordingModel(asking, PARAMS, recording, unbilled_usd=unbilled)
