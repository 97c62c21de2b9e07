"""Define the probe's configuration and findings, its stocks and days, and the texts for a model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta

from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure
from tradeassay.core.registry import refuse_unknown
from tradeassay.factors import FACTOR_NAMES
from tradeassay_bench.agents.foreign.conversation import encode_request
from tradeassay_bench.benchmarks import Benchmark, NamedWindow, find_window, window_sets
from tradeassay_bench.benchmarks.ktdfin import Ktdfin
from tradeassay_bench.benchmarks.ktdfin.tools import BY_NAME
from tradeassay_bench.benchmarks.ktdfin.wire import Stock
from tradeassay_bench.core.agent import Observation
from tradeassay_bench.core.dialogue import AskModel, Given, Message, ModelReply, ToolCall
from tradeassay_bench.core.drive import Ended, advance
from tradeassay_bench.core.orders import Decision
from tradeassay_bench.core.run_secret import draw_secret
from tradeassay_bench.data import Snapshot
from tradeassay_bench.llm import QuestionPlace
from tradeassay_bench.masking import LEVELS, Level
from tradeassay_bench.play import Episode as Play
from tradeassay_bench.play.market import Universe
from tradeassay_bench.runs.play.episodes import conversation_rng
from tradeassay_bench.runs.spec.episode import EpisodeSpec, open_protocol, with_protocol
from tradeassay_bench.runs.spec.run_spec import AgentSpec

Mode = Literal["memory-only", "fixed-candidate", "open-research"]
HARDENINGS: dict[str, dict[str, bool]] = {
    "plain": {},
    "rebased": {"rebase_prices": True},
    "scaled": {"rebase_prices": True, "scale_volumes": True},
    "scrubbed": {"rebase_prices": True, "scale_volumes": True, "scrub_news": True},
}
"""Levels of hardening beyond the published mask. Each level includes all previous levels."""
PROGRAMS = {
    "match": "matches the shown returns against the price archive",
    "levels": "matches the shown price and turnover against the archive",
    "grid": "searches for the scale under which shown prices are whole cents, then matches price "
    "and turnover",
    "reader": "repeats names and dates that are plainly shown, and looks for companies it knows in "
    "headlines",
    "hash": "tries every window against the id of the episode in the request",
    "factors": "turns ILLIQ back into turnover and names who usually trades that much",
    "oracle": "searches with risk_check for the price of a lot, and matches it against known "
    "prices",
    "calendar": "fits volumes, swings and quarters of headlines to half days, expiries, seasons "
    "and busy times",
    "idioms": "names the alias that stands where prose allows one word only (Wall ..., (...: "
    "TICKER))",
    "order": "takes the order of equal scores in a screen for the alphabet's",
}
"""Attackers that are programs and not language models. All of them always run."""
WITH_ARCHIVE = frozenset({"match"})
"""Attackers that have the returns of every name on every day.

All other attackers know names, calendars and price levels only.
"""


class ProbeConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The configuration of one probe.

    ``probes`` is the number of pairs, drawn with ``seed`` and spread evenly over windows and
    boards. ``masks`` and ``hardenings`` are compared on the same pairs. A bright market cannot be
    hardened. ``windows`` names some of the benchmark's windows. If it is empty, all short windows
    are used. In open research, ``lookback`` sessions of a stock are shown. Raises
    :class:`UserError` for an unknown mask or hardening, and if nothing is left to compare.
    """

    probes: Annotated[int, Meta(ge=1)] = 200
    seed: int = 0
    masks: tuple[Level, ...] = ("blinded",)
    hardenings: tuple[str, ...] = ("plain",)
    windows: tuple[str, ...] = ()
    mode: Mode = "open-research"
    lookback: Annotated[int, Meta(ge=2)] = 60
    level: Annotated[float, Meta(gt=0, lt=1)] = 0.95

    def __post_init__(self) -> None:
        for given, known, what in (
            (self.masks, LEVELS, "mask"),
            (self.hardenings, HARDENINGS, "hardening"),
        ):
            if not given:
                raise UserError(f"no {what} is given", hint=f"one of {', '.join(known)}")
            for name in given:
                refuse_unknown(name, known, f"no {what} '{name}'")
        if not self.variants:
            hint = "choose a different mask, or hardenings=('plain',)"
            raise UserError("a bright market cannot be hardened", hint=hint)

    @property
    def variants(self) -> tuple[tuple[Level, str], ...]:
        """Return every pair of a mask and a hardening that can be combined."""
        return tuple(
            (mask, hardening)
            for mask, hardening in product(self.masks, self.hardenings)
            if mask != "bright" or hardening == "plain"
        )


METRICS = {
    "top_1": "the stock, first guess",
    "top_5": "the stock, among five",
    "date_1": "the day, within 1 session",
    "date_7": "the day, within 7 sessions",
    "date_30": "the day, within 30 sessions",
    "sector": "the sector",
    "board": "the board (which a mask leaves visible)",
    "joint": "the stock among five, and the day within 7 sessions",
}
"""Titles of the metrics that are counts, by key, in the order of the tables."""


class ProbeRow(msgspec.Struct, frozen=True, kw_only=True):
    """The results of one attacker against one mask.

    ``response`` is the share of probes for which the attacker named a stock or a day.
    ``conditional`` is the hit rate among the probes with an answer to the question. ``of_all`` is
    the hit rate among all probes. An attacker that seldom answers can have a high first rate and a
    low second rate. ``above_random`` compares ``of_all`` with chance and is True if the whole
    interval is above it. A question that is not scored has no entry. ``strata`` is ``top_1`` of all
    probes by window and by board.
    """

    attacker: str
    kind: Literal["model", "program"]
    mask: str
    hardening: str
    probes: int
    response: Measure
    conditional: dict[str, Measure]
    of_all: dict[str, Measure]
    above_random: dict[str, bool]
    strata: dict[str, Measure]


class ProbeBound(msgspec.Struct, frozen=True, kw_only=True):
    """The best result of any attacker against one mask.

    ``share`` is the hit rate of the best attacker, with its interval. It is also given as a
    multiple of chance. ``archive`` is true if attackers with the price archive are included.
    """

    mask: str
    hardening: str
    metric: str
    archive: bool
    attacker: str
    share: Measure
    times_chance: float


class ProbeAnswer(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The answer of one attacker about one pair, with the truth.

    All counts of a report can be recomputed from its answers. ``said`` is the text of a model's
    answer (cut at 2,000 characters). ``wrong`` lists the parts that could not be parsed.
    """

    attacker: str
    mask: str
    hardening: str
    number: int
    symbol: str
    session: str
    tickers: tuple[str, ...] = ()
    date: str | None = None
    sector: str | None = None
    board: str | None = None
    hits: tuple[str, ...] = ()
    said: str = ""
    wrong: tuple[str, ...] = ()


class ProbeReport(msgspec.Struct, frozen=True, kw_only=True):
    """The results of all attackers against all masks, on the same pairs.

    ``random`` is the result of blind guessing. ``answers`` contains all answers in the order of the
    queries.
    """

    benchmark: str
    dataset: str
    config: ProbeConfig
    windows: tuple[str, ...]
    boards: tuple[str, ...]
    random: dict[str, Measure]
    rows: tuple[ProbeRow, ...]
    usd: float | None
    notes: tuple[str, ...]
    answers: tuple[ProbeAnswer, ...] = ()
    bounds: tuple[ProbeBound, ...] = ()

    def row(self, attacker: str, mask: str, hardening: str = "plain") -> ProbeRow | None:
        """Return the results of an attacker against a mask; None if it was not tried."""
        wanted = (attacker, mask, hardening)
        return next(
            (row for row in self.rows if (row.attacker, row.mask, row.hardening) == wanted), None
        )


@dataclass(frozen=True, slots=True)
class Probe:
    """One drawn pair of a stock and a day.

    ``row`` is the session, ``step`` its number in the window, and ``names`` the number of possible
    stocks.
    """

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


def windows_of(
    benchmark: Benchmark, snapshot: Snapshot, codes: tuple[str, ...]
) -> list[tuple[str, str, str]]:
    """Return code, first and last day of the benchmark's windows on a data set.

    These are the windows named in ``codes``. If ``codes`` is empty, they are all short windows. A
    benchmark without windows has its whole period.
    """
    found: tuple[NamedWindow, ...] = ()
    if codes:
        found = tuple(
            find_window(benchmark.protocol, code, snapshot, benchmark.convention) for code in codes
        )
    elif benchmark.protocol in window_sets:
        every = window_sets.get(benchmark.protocol)(snapshot, benchmark.convention)
        found = tuple(window for window in every if window.code != "long")
    whole = [("all", benchmark.market.first, benchmark.market.last)]
    return [(window.code, window.first, window.last) for window in found] or whole


def draw_probes(benchmark: Benchmark, snapshot: Snapshot, config: ProbeConfig) -> tuple[Probe, ...]:
    """Draw the pairs. Raises :class:`UserError` if no stock can be drawn."""
    rng = np.random.default_rng(config.seed)
    strata = []
    for window in windows_of(benchmark, snapshot, config.windows):
        rows = snapshot.rows(*window[1:])
        view = snapshot.at(rows[0], "pre_open")
        universe = Universe(benchmark.market.universe, view)
        boards = sorted(
            {view.instrument(symbol).board.value for symbol in universe.at(view).symbols}
        )
        strata += [(window, board, universe) for board in boards]
    if not strata:
        raise UserError(
            "no stock can be bought in any window", hint="choose a different data set or window"
        )
    probes: list[Probe] = []
    seen: set[tuple[int, str]] = set()
    tries = 0
    # Strata take turns, so that their sizes differ by at most one probe. No pair is repeated while
    # unused pairs remain.
    while len(probes) < config.probes:
        (code, first, last), board, universe = strata[len(probes) % len(strata)]
        rows = snapshot.rows(first, last)
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
        stock, number, row = view.instrument(symbol), len(probes), rows[step]
        about = (symbol, view.session, stock.sector, stock.board.value, len(choice))
        probes.append(Probe(number, code, first, last, row, step, *about))
    return tuple(probes)


@dataclass(frozen=True, slots=True)
class Evidence:
    """The tools' answers to a program.

    It contains bars of the stock and of other stocks, the smallest allowed weight, and the names
    with equal scores in the order of a screen, with their number.
    """

    bars: tuple[str, ...] = ()
    least_weight: float | None = None
    equals: tuple[str, ...] = ()
    screened: int = 0


@dataclass(frozen=True, slots=True)
class ProbePayload:
    """The texts shown, and the stock's alias in them. It does not contain the truth.

    Three fields are for attackers that are programs. ``observation`` is the day's message as data,
    under the same mask. ``request`` is the question in the form sent to an agent over a pipe.
    ``evidence`` contains the tools' answers.
    """

    number: int
    alias: str
    messages: tuple[Message, ...]
    observation: str = "{}"
    request: str = "{}"
    evidence: Evidence = Evidence()

    @property
    def text(self) -> str:
        """Return all messages as one text."""
        return "\n\n".join(
            f"[{message.role}]\n{message.text}" for message in self.messages if message.text
        )


def make_payloads(
    benchmark: Benchmark,
    snapshot: Snapshot,
    probes: Sequence[Probe],
    variant: tuple[Level, str],
    config: ProbeConfig,
) -> tuple[ProbePayload, ...]:
    """Return the payload of every probe under one mask, in the order of the probes.

    Each window is one episode of an agent that never trades, with a separate mask. In open research
    the model is assumed to have requested the market's context and the stock's bars.
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
    """Yield the payloads of the probes in one window, from an episode that never trades."""
    protocol = open_protocol(benchmark)
    assert isinstance(protocol, Ktdfin)
    key = f"probe {benchmark.market.first}"
    episode = EpisodeSpec(
        key=key,
        setting=key,
        benchmark=benchmark.id,
        dataset=f"{snapshot.name} {key}",
        agent=AgentSpec(name="model"),
        seed=config.seed,
    )
    rng = conversation_rng(benchmark, episode, episode.dataset)
    place, salt = QuestionPlace(episode=key, step=0, sample=0, index=0), draw_secret()
    named = benchmark.id if protocol.config.mask == "bright" else benchmark.protocol
    play = Play(snapshot, benchmark.market, protocol, key=key, seed=config.seed, rng=rng)
    last = max(probe.step for probe in probes)
    play.open()
    while (seen := play.observation) is not None and seen.step <= last:
        for probe in probes:
            if probe.step != seen.step:
                continue
            alias = protocol.wire(seen).stock_id(Stock(probe.symbol))
            request = _question(protocol, seen, alias, config)
            assert isinstance(request.given, Given)
            yield ProbePayload(
                number=probe.number,
                alias=alias,
                messages=request.messages,
                observation=request.given.observation,
                request=encode_request(request, place, named, salt).decode(),
                evidence=_evidence(protocol, seen, alias, probe, config),
            )
        play.decide(Decision(reason="holds nothing"))


def _question(protocol: Ktdfin, seen: Observation, alias: str, config: ProbeConfig) -> AskModel:
    """Return the question of a day to a model.

    In open research it follows the tool calls for the market and the stock.
    """
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
    return request


_CALLS = 12  # the number of calls of one tool in a row that a day allows


def _evidence(
    protocol: Ktdfin, seen: Observation, alias: str, probe: Probe, config: ProbeConfig
) -> Evidence:
    """Call the tools as a program would.

    The evidence is the bars of some names and the smallest allowed weight.
    """
    if config.mode != "open-research":
        return Evidence()
    desk, wire = protocol.day_view(seen), protocol.wire(seen)

    def ask(name: str, arguments: dict[str, object]) -> str:
        tool = BY_NAME[name]
        asked = wire.decode(
            msgspec.json.encode(arguments), tool.arguments, tool.arguments.__struct_fields__
        )
        return wire.encode(tool.answer(desk, asked))

    others = [symbol for symbol in seen.universe if symbol != probe.symbol]
    picked = np.random.default_rng((config.seed, probe.number)).permutation(len(others))[:_CALLS]
    names = (alias, *(wire.stock_id(Stock(others[place])) for place in picked.tolist()))
    low, high, met = 0.0, desk.config.max_weight, False
    for _ in range(_CALLS):
        middle = (low + high) / 2
        said = msgspec.json.decode(ask("risk_check", {"target_weights": {alias: middle}}))
        if any(one["rule"] == "lot" for one in said["violations"]):
            low, met = middle, True
        else:
            high = middle
    factor = FACTOR_NAMES[0]
    equals = ask(
        "screen_candidates", {"factors": [factor, f"-{factor}"], "top_k": desk.config.most_screened}
    )
    found = msgspec.json.decode(equals)
    return Evidence(
        bars=tuple(
            ask("get_stock_snapshot", {"stock_id": name, "lookback": config.lookback})
            for name in names
        ),
        least_weight=high if met else None,
        equals=tuple(row["stock_id"] for row in found["candidates"]),
        screened=len(seen.universe) - found["left_out"],
    )
