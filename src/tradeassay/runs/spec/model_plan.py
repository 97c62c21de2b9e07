"""What a model's episodes would take: calls, tokens, dollars, hours. No model is asked.

The conversation is played for a few days with the scripted model that does everything right, and its prompts are
measured. How much a real model writes, and how fast, is assumed, unless earlier runs of the same conversation with
the same model say so.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import msgspec

from tradeassay.benchmarks import Benchmark
from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.core.errors import UNDECODABLE
from tradeassay.data import Snapshot
from tradeassay.llm import estimate_request, load_prices, parse_name, scripted_models
from tradeassay.llm.tables import Tokens
from tradeassay.llm.tokens import estimate_reply
from tradeassay.play import Asked
from tradeassay.play.dialogue_log import Spending, total
from tradeassay.play.journal import encode_line
from tradeassay.runs.play.episodes import conversation
from tradeassay.runs.spec.episode import EpisodeSpec
from tradeassay.runs.spec.models import model_config, params_for
from tradeassay.runs.store.folder import RunFolder, read_timing
from tradeassay.runs.store.outcome import Outcome

SAMPLE_DAYS = 20
"""Days of a conversation that are measured; the first days, when everything is bought, are the longest."""
OUTPUT_PER_CALL = 400
"""Tokens a real model is assumed to write per answer, at least; its own limit if that is lower."""
SECONDS_PER_CALL = 2.0
TOKENS_PER_SECOND = 60.0
"""How fast a real model is assumed to answer."""


class Before(msgspec.Struct, frozen=True, kw_only=True):
    """What a model's days took in earlier runs; ``seconds`` is None when no live day was timed."""

    runs: int
    days: int
    calls: float
    input_tokens: float
    output_tokens: float
    seconds: float | None


class _Played(msgspec.Struct):
    """What is read of an earlier run's manifest."""

    episodes: tuple[EpisodeSpec, ...] = ()


def measured_before(folder: Path, episode: EpisodeSpec) -> Before | None:
    """Return what a day of this conversation with this model took in the runs of a folder; None if in none."""
    spent, seconds, timed, days, runs = Spending(), 0.0, 0, 0, 0
    for manifest in sorted(folder.glob("*/manifest.json")):
        place = RunFolder(manifest.parent)
        try:
            played = msgspec.json.decode(manifest.read_bytes(), type=_Played).episodes
        except (OSError, *UNDECODABLE):  # somebody else's file
            continue
        timing, earlier = read_timing(place.timing), days
        for other in played:
            if (other.benchmark, other.model, other.protocol) != (
                episode.benchmark,
                episode.model,
                episode.protocol,
            ):
                continue
            try:
                ended = msgspec.json.decode(place.outcome(other.key).read_bytes(), type=Outcome)
            except (OSError, *UNDECODABLE):
                continue
            if ended.status != "done" or isinstance(ended.model, msgspec.UnsetType) or not ended.steps:
                continue
            spent, days = total((spent, ended.model.spending)), days + ended.steps
            if ended.model.answers == "live" and len(timing.starts) == 1 and other.key in timing.episodes:
                seconds, timed = seconds + timing.episodes[other.key], timed + ended.steps
        runs += days > earlier
    if not days:
        return None
    return Before(
        runs=runs,
        days=days,
        calls=spent.calls / days,
        input_tokens=spent.input_tokens / days,
        output_tokens=spent.output_tokens / days,
        seconds=seconds / timed if timed else None,
    )


class Talked(msgspec.Struct, frozen=True, kw_only=True):
    """What one day of a conversation takes on average. ``usd`` is None when the price is unknown."""

    calls: float
    input_tokens: float
    output_tokens: float
    usd: float | None
    seconds: float
    bytes: float
    source: str = "prompts measured, answers assumed"


def measure_conversation(
    episode: EpisodeSpec,
    benchmark: Benchmark,
    snapshot: Snapshot,
    *,
    prices: Path | None = None,
    runs: Path | None = None,
) -> Talked:
    """Play a few days in memory and return what a day takes; ``benchmark`` is as the episode plays it.

    What the runs in the folder ``runs`` took goes before what would have to be assumed.
    """
    play = conversation(snapshot, benchmark, episode)
    play.open()
    counter = _Counter()
    records = list(islice(play.records(counter.answer), SAMPLE_DAYS))
    days, size = len(records), sum(len(encode_line(record)) + 1 for record in records)
    before = None if runs is None else measured_before(runs, episode)
    return _per_day(episode, benchmark, counter, days, size, prices, before)


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
    episode: EpisodeSpec,
    benchmark: Benchmark,
    counter: _Counter,
    days: int,
    size: int,
    prices: Path | None,
    before: Before | None,
) -> Talked:
    name = model_config(episode).model
    calls, written, output = counter.calls / days, counter.input / days, counter.output / days
    seconds, source = 0.0, Talked.__struct_defaults__[-1]
    live = parse_name(name).route != "scripted"
    if before is not None:
        calls, written, output = before.calls, before.input_tokens, before.output_tokens
        speed = "" if before.seconds is not None or not live else "; their speed is assumed"
        source = f"as in {before.days:,} days of {before.runs} earlier run(s){speed}"
    elif live:
        most = params_for(episode, benchmark).max_tokens
        output = max(output, calls * min(OUTPUT_PER_CALL, most))
    if live:
        assumed = calls * SECONDS_PER_CALL + output / TOKENS_PER_SECOND
        seconds = assumed if before is None or before.seconds is None else before.seconds
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
        source=source,
    )
