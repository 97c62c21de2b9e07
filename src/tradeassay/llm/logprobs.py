"""Log-probabilities of a text's own tokens, from a server that echoes a prompt (vLLM's form of ``/completions``).

They are asked for like any answer, so that they are recorded, replayed and bounded like one: the question is the
text, the answer its tokens and their log-probabilities as JSON.
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

from tradeassay.core.dialogue import AskModel, Message, ModelReply, Usage
from tradeassay.core.errors import UNDECODABLE, UserError, require
from tradeassay.core.secrets import remember, without_secrets
from tradeassay.llm.budget import Budget, BudgetedProvider, estimate_request
from tradeassay.llm.cassette import CassetteStore, RecordingModel, ReplayingModel
from tradeassay.llm.local import LocalSettings
from tradeassay.llm.model import AskingModel, Attempt, Model, ModelParams, QuestionPlace, failed_reply, parse_name
from tradeassay.llm.open import Access, read_env_file
from tradeassay.llm.tables import Price, Tokens, load_prices

PARAMS = ModelParams(temperature=0.0, max_tokens=1)
_TIMEOUT_S = 120.0


class TokenLogprobs(msgspec.Struct, frozen=True, kw_only=True):
    """A text's tokens and the log-probability of each after those before it; None where the server gave none, as
    it does of the first."""

    tokens: tuple[str, ...]
    logprobs: tuple[float | None, ...]

    @property
    def missing(self) -> int:
        return sum(one is None for one in self.logprobs[1:])


def logprobs_of(reply: ModelReply) -> TokenLogprobs | str:
    """Return what a server said of a text, or why it said nothing."""
    if reply.error is not None:
        return reply.error
    try:
        return msgspec.json.decode(reply.text, type=TokenLogprobs)
    except UNDECODABLE:
        return "the answer holds no log-probabilities"


def logprob_request(text: str) -> AskModel:
    return AskModel(purpose="logprobs", messages=(Message(role="user", text=text),))


class EchoProvider:
    """Asks ``/completions`` to echo a text with its log-probabilities."""

    def __init__(self, name: str, served: str, base_url: str, key: str, price: Price | None) -> None:
        self.name = name
        self._served, self._key, self._price = served, key, price
        self._address = base_url.rstrip("/") + "/completions"

    async def attempt(self, request: AskModel, place: QuestionPlace) -> Attempt:
        text = request.messages[0].text
        attempt = await asyncio.to_thread(self._post, text)
        if self._price is None or attempt.reply.error is not None:
            return attempt
        # One token is written behind the text: no server accepts a limit of none.
        tokens = Tokens(plain=max(attempt.reply.usage.input_tokens, estimate_request(request)), output=1)
        usage = msgspec.structs.replace(attempt.reply.usage, usd=self._price.usd(tokens))
        return msgspec.structs.replace(attempt, reply=msgspec.structs.replace(attempt.reply, usage=usage))

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
        asked = urllib.request.Request(self._address, json.dumps(body).encode(), headers)
        try:
            with urllib.request.urlopen(asked, timeout=_TIMEOUT_S) as response:
                return _read(json.load(response), text)
        except urllib.error.HTTPError as error:
            again = error.code in (429, 500, 502, 503, 504)
            words = f"the server refuses to score a text (HTTP {error.code})"
            return Attempt(reply=failed_reply("rate_limited" if again else "status", words), again=again)
        except (OSError, ValueError) as error:
            return Attempt(reply=failed_reply("unreachable", without_secrets(str(error))), again=True)


def _read(answer: Any, text: str) -> Attempt:
    try:
        found = answer["choices"][0]["logprobs"]
        tokens, values = found["tokens"], found["token_logprobs"]
        offsets = found.get("text_offset")
    except (KeyError, IndexError, TypeError):
        return Attempt(reply=failed_reply("status", "the server gives no log-probabilities of a text"))
    if offsets and len(offsets) == len(tokens):
        inside = sum(offset < len(text) for offset in offsets)
    else:
        inside, length = 0, 0
        while inside < len(tokens) and length < len(text):
            length += len(str(tokens[inside]))
            inside += 1
    kept = tuple(map(str, tokens[:inside]))
    # Servers that do not echo return the tokens they wrote themselves.
    if not kept or (sum(map(len, kept)) < len(text) // 2 and not offsets):
        return Attempt(reply=failed_reply("status", "the server scores what it writes, not the text it is given"))
    numbers = tuple(None if one is None else float(one) for one in values[:inside])
    made = msgspec.json.encode(TokenLogprobs(tokens=kept, logprobs=numbers)).decode()
    return Attempt(reply=ModelReply(text=made, usage=Usage(input_tokens=inside, usd=None)))


@asynccontextmanager
async def open_logprobs(
    name: str,
    *,
    cassette: CassetteStore | None,
    replay: bool,
    budget: Budget | None = None,
    connections: int,
    access: Access,
) -> AsyncIterator[Model]:
    """Open a model's log-probabilities, paid for out of ``budget``.

    Raises :class:`UserError` where its provider is known to give none, or for a cap on a model without a known
    price."""
    if replay:
        if cassette is None:
            raise UserError(f"{name} cannot be replayed without recorded answers", hint="give cassettes=")
        yield ReplayingModel(name, PARAMS, cassette)
        return
    parsed = parse_name(name)
    service = parsed.rest.partition("/")[0].upper().replace("-", "_")
    key = "none"
    if parsed.route == "local":
        base, served = access.base_url or LocalSettings().server, parsed.rest
        why = "llama.cpp scores what it writes only; name a server: TRADEASSAY_LOCAL_SERVER"
    else:
        require("dotenv", "models")
        read_env_file()
        base, served = access.base_url or os.environ.get(f"{service}_BASE_URL"), parsed.rest.partition("/")[2]
        key = os.environ.get(f"{service}_API_KEY", key)
        remember(key)
        why = f"{parsed.provider} gives no log-probabilities of a text"
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
    if cassette is None:
        yield asking
        return
    lost = paid.lost if isinstance(paid, BudgetedProvider) else None
    yield RecordingModel(asking, PARAMS, cassette, lost=lost)
