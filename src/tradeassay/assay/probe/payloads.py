"""Which stocks and days are probed, and the exact texts that a model would get of them under a mask."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from tradeassay.assay.probe.probe_result import HARDENINGS, ProbeConfig
from tradeassay.benchmarks import Benchmark, NamedWindow, find_window, window_sets
from tradeassay.benchmarks.ktdfin import Ktdfin
from tradeassay.benchmarks.ktdfin.wire import Stock
from tradeassay.core.agent import Observation
from tradeassay.core.dialogue import Given, Message, ModelReply, ToolCall
from tradeassay.core.drive import Ended, advance
from tradeassay.core.errors import UserError
from tradeassay.core.orders import Decision
from tradeassay.data import AsOfView, Snapshot
from tradeassay.masking import Level
from tradeassay.play import Episode as Play
from tradeassay.play.universe import Universe, most_traded
from tradeassay.runs.play.episodes import conversation_rng
from tradeassay.runs.spec.episode import EpisodeSpec, open_protocol, protocol_of, with_protocol
from tradeassay.runs.spec.run_spec import AgentSpec

_LONG = "long"


@dataclass(frozen=True, slots=True)
class Probe:
    """One pair and its truth. ``row`` is the session, ``step`` its number in the window, ``names`` how many
    stocks it could have been."""

    number: int
    window: str
    first: str
    last: str
    row: int
    step: int
    symbol: str
    session: str
    sector: str | None
    board: str
    names: int


class ProbeWindow(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of sessions to draw from."""

    code: str
    first: str
    last: str


def windows_of(benchmark: Benchmark, snapshot: Snapshot, codes: tuple[str, ...]) -> tuple[ProbeWindow, ...]:
    """Return the benchmark's windows on a data set: those named, else all short ones, else its whole period."""
    found: tuple[NamedWindow, ...] = ()
    if codes:
        found = tuple(find_window(benchmark.protocol, code, snapshot, benchmark.convention) for code in codes)
    elif benchmark.protocol in window_sets:
        every = window_sets.get(benchmark.protocol)(snapshot, benchmark.convention)
        found = tuple(window for window in every if window.code != _LONG)
    if not found:
        return (ProbeWindow(code="all", first=benchmark.market.first, last=benchmark.market.last),)
    return tuple(ProbeWindow(code=window.code, first=window.first, last=window.last) for window in found)


def draw_probes(benchmark: Benchmark, snapshot: Snapshot, config: ProbeConfig) -> tuple[Probe, ...]:
    """Draw the pairs; raises :class:`UserError` when there is nothing to draw from."""
    rng = np.random.default_rng(config.seed)
    strata = _strata(benchmark, snapshot, windows_of(benchmark, snapshot, config.windows))
    if not strata:
        raise UserError("no stock can be bought in any window", hint="choose another data set or window")
    probes: list[Probe] = []
    seen: set[tuple[int, str]] = set()
    tries = 0
    # Strata take turns, so that they differ by one probe at most; a pair is not asked twice while others are left.
    while len(probes) < config.probes:
        window, board, universe = strata[len(probes) % len(strata)]
        rows = snapshot.rows(window.first, window.last)
        step = int(rng.integers(len(rows)))
        view = snapshot.at(rows[step], "pre_open")
        choice = universe.at(view).symbols
        inside = [symbol for symbol in choice if view.instrument(symbol).board.value == board]
        tries += 1
        if not inside and tries < 100 * config.probes:
            continue
        symbol = (inside or list(choice))[int(rng.integers(len(inside or choice)))]
        if (rows[step], symbol) in seen and tries < 100 * config.probes:
            continue
        seen.add((rows[step], symbol))
        probes.append(_probe(len(probes), window, rows[step], step, view, symbol, len(choice)))
    return tuple(probes)


def _strata(
    benchmark: Benchmark, snapshot: Snapshot, windows: tuple[ProbeWindow, ...]
) -> list[tuple[ProbeWindow, str, Universe]]:
    strata = []
    for window in windows:
        rows = snapshot.rows(window.first, window.last)
        universe = Universe(
            benchmark.market.universe, most_traded(benchmark.market.universe, snapshot.at(rows[0], "pre_open"))
        )
        view = snapshot.at(rows[0], "pre_open")
        boards = sorted({view.instrument(symbol).board.value for symbol in universe.at(view).symbols})
        strata += [(window, board, universe) for board in boards]
    return strata


def _probe(
    number: int, window: ProbeWindow, row: int, step: int, view: AsOfView, symbol: str, names: int
) -> Probe:
    instrument = view.instrument(symbol)
    return Probe(
        number=number,
        window=window.code,
        first=window.first,
        last=window.last,
        row=row,
        step=step,
        symbol=symbol,
        session=view.session,
        sector=instrument.sector,
        board=instrument.board.value,
        names=names,
    )


@dataclass(frozen=True, slots=True)
class ProbePayload:
    """What was shown, and what the stock is called in it. It contains nothing of the truth.

    ``observation`` is the day's message as data (the same, under the same mask), for attackers that are programs.
    """

    number: int
    alias: str
    messages: tuple[Message, ...]
    observation: str | None = None

    @property
    def text(self) -> str:
        """All messages in one text."""
        return "\n\n".join(f"[{message.role}]\n{message.text}" for message in self.messages if message.text)


def require_masks(benchmark: Benchmark) -> None:
    """Raise :class:`UserError` for a benchmark whose conversation has no masks."""
    if not issubclass(protocol_of(benchmark), Ktdfin):
        raise UserError(f"benchmark '{benchmark.id}' has no masks", hint="probe one that has, e.g. ktdfin-v1")


def make_payloads(
    benchmark: Benchmark,
    snapshot: Snapshot,
    probes: Sequence[Probe],
    variant: tuple[Level, str],
    config: ProbeConfig,
) -> tuple[ProbePayload, ...]:
    """Return every probe's payload under one mask, in the order of the probes.

    Each window is one episode of an agent that never trades, with a mask of its own. In open research the model
    is taken to have asked for the market's context and for the stock's bars.
    """
    mask, hardening = variant
    played = with_protocol(benchmark, {"mask": mask, "mode": config.mode, **HARDENINGS[hardening]})
    made: list[ProbePayload] = []
    for window in dict.fromkeys((probe.window, probe.first, probe.last) for probe in probes):
        inside = [probe for probe in probes if (probe.window, probe.first, probe.last) == window]
        market = msgspec.structs.replace(played.market, first=window[1], last=window[2])
        made += _episode(msgspec.structs.replace(played, market=market), snapshot, inside, config)
    return tuple(sorted(made, key=lambda payload: payload.number))


def _episode(
    benchmark: Benchmark, snapshot: Snapshot, probes: Sequence[Probe], config: ProbeConfig
) -> Iterator[ProbePayload]:
    protocol = open_protocol(benchmark)
    assert isinstance(protocol, Ktdfin)
    key = f"probe {benchmark.market.first}"
    episode = EpisodeSpec(
        key=key, cell=key, benchmark=benchmark.id, dataset=f"{snapshot.name} {key}",
        agent=AgentSpec(name="model"), seed=config.seed,
    )  # fmt: skip
    rng = conversation_rng(benchmark, episode, episode.dataset)
    play = Play(snapshot, benchmark.market, protocol, key=key, seed=config.seed, rng=rng)
    last = max(probe.step for probe in probes)
    play.open()
    while (seen := play.observation) is not None and seen.step <= last:
        for probe in probes:
            if probe.step == seen.step:
                yield _payload(protocol, seen, probe, config)
        play.decide(Decision(reason="holds nothing"))


def _payload(protocol: Ktdfin, seen: Observation, probe: Probe, config: ProbeConfig) -> ProbePayload:
    alias = protocol.wire(seen).stock_id(Stock(probe.symbol))
    dialogue = protocol.dialogue(seen)
    request = advance(dialogue)
    if config.mode == "open-research":
        asked = msgspec.json.encode({"stock_id": alias, "lookback": config.lookback}).decode()
        calls = (
            ToolCall(id="context", name="get_market_context", arguments="{}"),
            ToolCall(id="bars", name="get_stock_snapshot", arguments=asked),
        )
        request = advance(dialogue, ModelReply(calls=calls, stop="tool_calls"))
    dialogue.close()
    assert not isinstance(request, Ended)
    observation = request.given.observation if isinstance(request.given, Given) else None
    return ProbePayload(number=probe.number, alias=alias, messages=request.messages, observation=observation)
