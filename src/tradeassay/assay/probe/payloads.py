"""The exact texts that a model would get under a mask, made by the protocol itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec

from tradeassay.assay.probe.config import HARDENINGS, ProbeConfig
from tradeassay.assay.probe.sample import Probe
from tradeassay.benchmarks import Benchmark
from tradeassay.benchmarks.ktdfin import Ktdfin
from tradeassay.benchmarks.ktdfin.words import Stock
from tradeassay.core.agent import EpisodeInfo, Observation
from tradeassay.core.dialogue import Message, ModelReply, ToolCall
from tradeassay.core.errors import UserError
from tradeassay.core.orders import Decision
from tradeassay.data import Snapshot
from tradeassay.masking import Level
from tradeassay.play import Market
from tradeassay.runs.conversation import open_protocol, protocol_of, with_protocol
from tradeassay.runs.episode import Episode
from tradeassay.runs.model_play import conversation_rng
from tradeassay.runs.spec import AgentSpec


@dataclass(frozen=True, slots=True)
class Payload:
    """What was shown, and how the stock is called in it. It holds nothing of the truth."""

    number: int
    alias: str
    messages: tuple[Message, ...]

    @property
    def text(self) -> str:
        """All messages in one text."""
        return "\n\n".join(f"[{message.role}]\n{message.text}" for message in self.messages if message.text)


def require_masks(benchmark: Benchmark) -> None:
    """Raise :class:`UserError` for a benchmark whose conversation has no masks."""
    if not issubclass(protocol_of(benchmark), Ktdfin):
        raise UserError(f"benchmark '{benchmark.id}' has no masks", mend="probe one that has, e.g. ktdfin-v1")


def make_payloads(
    benchmark: Benchmark,
    snapshot: Snapshot,
    probes: Sequence[Probe],
    variant: tuple[Level, str],
    config: ProbeConfig,
) -> tuple[Payload, ...]:
    """Return every probe's payload under one mask, in the order of the probes.

    Each window is one episode of an agent that never trades, with a mask of its own. In open research the model
    is taken to have asked for the market's context and for the stock's bars.
    """
    mask, hardening = variant
    played = with_protocol(benchmark, {"mask": mask, "mode": config.mode, **HARDENINGS[hardening]})
    made: list[Payload] = []
    for window in dict.fromkeys((probe.window, probe.first, probe.last) for probe in probes):
        inside = [probe for probe in probes if (probe.window, probe.first, probe.last) == window]
        market = msgspec.structs.replace(played.market, first=window[1], last=window[2])
        made += _episode(msgspec.structs.replace(played, market=market), snapshot, inside, config)
    return tuple(sorted(made, key=lambda payload: payload.number))


def _episode(
    benchmark: Benchmark, snapshot: Snapshot, probes: Sequence[Probe], config: ProbeConfig
) -> Iterator[Payload]:
    protocol = open_protocol(benchmark)
    assert isinstance(protocol, Ktdfin)
    market = Market(snapshot, benchmark.market)
    key = f"probe {benchmark.market.first}"
    episode = Episode(
        key=key, cell=key, benchmark=benchmark.id, dataset=f"{snapshot.name} {key}",
        agent=AgentSpec(name="model"), seed=config.seed,
    )  # fmt: skip
    protocol.begin(
        EpisodeInfo(episode=key, seed=config.seed, rules=market.rules), conversation_rng(episode, episode.dataset)
    )
    last = max(probe.step for probe in probes)
    seen: Observation | None = market.reset()
    while seen is not None and seen.step <= last:
        for probe in probes:
            if probe.step == seen.step:
                yield _payload(protocol, seen, probe, config)
        step = market.step(Decision(reason="holds nothing"))
        protocol.remember(seen, Decision())
        seen = step.observation


def _payload(protocol: Ktdfin, seen: Observation, probe: Probe, config: ProbeConfig) -> Payload:
    alias = protocol.wire(seen).stock_id(Stock(probe.symbol))
    dialogue = protocol.dialogue(seen)
    try:
        request = next(dialogue)
        if config.mode == "open-research":
            asked = msgspec.json.encode({"alias": alias, "lookback": config.lookback}).decode()
            calls = (
                ToolCall(id="context", name="get_market_context", arguments="{}"),
                ToolCall(id="bars", name="get_stock_snapshot", arguments=asked),
            )
            request = dialogue.send(ModelReply(calls=calls, stop="tool_calls"))
    finally:
        dialogue.close()
    return Payload(number=probe.number, alias=alias, messages=request.messages)
