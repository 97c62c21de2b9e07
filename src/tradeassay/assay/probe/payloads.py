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
from tradeassay.core.agent import Observation
from tradeassay.core.dialogue import Message, ModelReply, ToolCall
from tradeassay.core.drive import Ended, advance
from tradeassay.core.errors import UserError
from tradeassay.core.orders import Decision
from tradeassay.data import Snapshot
from tradeassay.masking import Level
from tradeassay.play import Episode as Play
from tradeassay.runs.conversation import open_protocol, protocol_of, with_protocol
from tradeassay.runs.episode import Episode
from tradeassay.runs.play import conversation_rng
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
    key = f"probe {benchmark.market.first}"
    episode = Episode(
        key=key, cell=key, benchmark=benchmark.id, dataset=f"{snapshot.name} {key}",
        agent=AgentSpec(name="model"), seed=config.seed,
    )  # fmt: skip
    rng = conversation_rng(episode, episode.dataset)
    play = Play(snapshot, benchmark.market, protocol, key=key, seed=config.seed, rng=rng)
    last = max(probe.step for probe in probes)
    play.open()
    while (seen := play.observation) is not None and seen.step <= last:
        for probe in probes:
            if probe.step == seen.step:
                yield _payload(protocol, seen, probe, config)
        play.decide(Decision(reason="holds nothing"))


def _payload(protocol: Ktdfin, seen: Observation, probe: Probe, config: ProbeConfig) -> Payload:
    alias = protocol.wire(seen).stock_id(Stock(probe.symbol))
    dialogue = protocol.dialogue(seen)
    request = advance(dialogue)
    if config.mode == "open-research":
        asked = msgspec.json.encode({"alias": alias, "lookback": config.lookback}).decode()
        calls = (
            ToolCall(id="context", name="get_market_context", arguments="{}"),
            ToolCall(id="bars", name="get_stock_snapshot", arguments=asked),
        )
        request = advance(dialogue, ModelReply(calls=calls, stop="tool_calls"))
    dialogue.close()
    assert not isinstance(request, Ended)
    return Payload(number=probe.number, alias=alias, messages=request.messages)
