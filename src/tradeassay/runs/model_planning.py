"""What a model's episodes would take: calls, tokens, dollars, hours. No model is asked.

The conversation is played for a few days with the scripted model that does everything right, and its prompts are
measured. How much a real model writes, and how fast, is unknown before it is asked; both are assumed.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import msgspec

from tradeassay.benchmarks import Benchmark
from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.data import Snapshot
from tradeassay.llm import estimate_request, load_prices, parse_name, scripted_models
from tradeassay.llm.tables import Tokens
from tradeassay.llm.tokens import estimate_reply
from tradeassay.play import Asked
from tradeassay.play.journal import encode_line
from tradeassay.runs.episode import EpisodeSpec
from tradeassay.runs.models import model_config, params_for
from tradeassay.runs.play import conversation

SAMPLE_DAYS = 20
"""Days of a conversation that are measured; the first days, when everything is bought, are the longest."""
OUTPUT_PER_CALL = 400
"""Tokens a real model is assumed to write per answer, at least; its own limit if that is lower."""
SECONDS_PER_CALL = 2.0
TOKENS_PER_SECOND = 60.0
"""How fast a real model is assumed to answer."""


class Talked(msgspec.Struct, frozen=True, kw_only=True):
    """What one day of a conversation takes on average. ``usd`` is None when the price is unknown."""

    calls: float
    input_tokens: float
    output_tokens: float
    usd: float | None
    seconds: float
    bytes: float


def measure_conversation(
    episode: EpisodeSpec, benchmark: Benchmark, snapshot: Snapshot, *, prices: Path | None = None
) -> Talked:
    """Play a few days in memory and return what a day takes; ``benchmark`` is as the episode plays it."""
    play = conversation(snapshot, benchmark, episode)
    play.open()
    counter = _Counter()
    records = list(islice(play.records(counter.answer), SAMPLE_DAYS))
    days, size = len(records), sum(len(encode_line(record)) + 1 for record in records)
    return _per_day(episode, benchmark, counter, days, size, prices)


class _Counter:
    """Answers with the scripted model and adds up what is exchanged."""

    def __init__(self) -> None:
        self.calls = self.input = self.output = self.characters = 0
        self._model = scripted_models.get("sensible")()

    def answer(self, asked: Asked[AskModel]) -> ModelReply:
        """Answer one question."""
        request = asked.request
        reply = self._model.answer(request)
        self.calls += 1
        self.input += estimate_request(request)
        self.output += estimate_reply(reply)
        # Every answer is written twice (cassette and dialogue), a question only as far as it is new.
        self.characters += 2 * len(reply.text) + sum(2 * len(call.arguments) for call in reply.calls)
        self.characters += 2 * len(request.messages[-1].text) if request.messages else 0
        return reply


def _per_day(
    episode: EpisodeSpec, benchmark: Benchmark, counter: _Counter, days: int, size: int, prices: Path | None
) -> Talked:
    name = model_config(episode).model
    calls, written, output = counter.calls / days, counter.input / days, counter.output / days
    seconds = 0.0
    if parse_name(name).route != "scripted":
        most = params_for(episode, benchmark).max_tokens
        output = max(output, calls * min(OUTPUT_PER_CALL, most))
        seconds = calls * SECONDS_PER_CALL + output / TOKENS_PER_SECOND
    price = load_prices(prices).of(name)
    # A price that depends on the request's size is looked up per request, then scaled.
    per_call = Tokens(plain=round(written / calls), output=round(output / calls)) if calls else Tokens()
    usd = None if price is None else price.usd(per_call)
    return Talked(
        calls=calls,
        input_tokens=written,
        output_tokens=output,
        usd=None if usd is None else usd * calls,
        seconds=seconds,
        bytes=(size + counter.characters) / days,
    )
