"""A hand-written market of three names, and ways to answer a day from a list."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tradeassay_bench.benchmarks.stockbench import Stockbench, StockbenchConfig
from tradeassay_bench.core.agent import EpisodeInfo, Observation
from tradeassay_bench.core.dialogue import AskModel, Dialogue, Given, ModelReply
from tradeassay_bench.core.drive import drive
from tradeassay_bench.core.events import StepRecord
from tradeassay_bench.core.orders import Decision
from tradeassay_bench.core.view import CorporateAction, Fundamental, Instrument, NewsItem
from tradeassay_bench.data import Listing, Panel, PanelFacts
from tradeassay_bench.play import Market, MarketConfig

HOUR = 3_600_000_000_000
FIRST = np.datetime64("2024-01-01")
ROWS = 20
START = 10
"""The first session that is traded: 2024-01-11."""
PRICES = {"A": 10.0, "B": 20.0, "C": 50.0}


def day_of(row: int) -> str:
    return str(FIRST + row)


def at(row: int, hour: float) -> int:
    return int((FIRST + row).astype("datetime64[ns]").astype(np.int64) + hour * HOUR)


def small_panel(**more: Any) -> Panel:
    """Three names at 10, 20 and 50, whose prices never move; C does not trade in the third
    session.
    """
    halted = np.zeros((ROWS, len(PRICES)), dtype=bool)
    halted[START + 2, 2] = True
    price = np.where(halted, np.nan, [*PRICES.values()])
    volume = np.where(halted, np.nan, 1e9)
    days = FIRST + np.arange(ROWS)
    midnights = days.astype("datetime64[ns]").astype(np.int64)
    bars = dict.fromkeys(("open", "high", "low", "close"), price)
    fields = {"bars": {**bars, "volume": volume, "amount": volume * price}, "suspended": halted}
    return Panel(
        name="three",
        facts=PanelFacts(
            kind="synthetic", source="hand", query="", currency="USD", calendar="24/7"
        ),
        listings=tuple(Listing(instrument=Instrument(symbol=s), listed=day_of(0)) for s in PRICES),
        sessions=days,
        open_time=midnights + 9 * HOUR,
        close_time=midnights + 16 * HOUR,
        **(fields | more),
    )


def item(n: int, row: int, hour: float, *symbols: str, body: str = "") -> NewsItem:
    return NewsItem(
        id=f"n{n}", published_at=at(row, hour), symbols=symbols, title=f"title {n}", body=body
    )


def figure(
    symbol: str, name: str, row: int, value: float, period: str = "2023-12-31"
) -> Fundamental:
    return Fundamental(
        symbol=symbol, field=name, period_end=period, known_at=at(row, 8.0), value=value
    )


def action(symbol: str, kind: Any, row: int, value: float) -> CorporateAction:
    return CorporateAction(
        symbol=symbol, kind=kind, ex_date=day_of(row), known_at=at(row, 7.0), value=value
    )


def small_market(
    snapshot: Any, *, convention: str = "corrected", cash: float = 1000.0, **more: Any
) -> Market:
    venue = "us-stockbench-v1" if convention == "paper" else "us-fractional-v1"
    settings: dict[str, Any] = {
        "first": day_of(START),
        "last": day_of(ROWS - 1),
        "cash": cash,
        **more,
    }
    mark = "open" if convention == "paper" else "close"
    return Market(
        snapshot, MarketConfig(venue=venue, decide="at_open", fill="open", mark=mark, **settings)
    )


def protocol(market: Market, **changes: Any) -> Stockbench:
    made = Stockbench(StockbenchConfig(**changes))
    made.begin(EpisodeInfo(episode="e", seed=0, rules=market.rules), np.random.default_rng(0))
    return made


Answer = str | ModelReply | dict[str, Any]


def answer(dialogue: Dialogue, answers: Sequence[Answer]) -> tuple[Decision, list[AskModel]]:
    """Answer from a list, which must hold exactly as many answers as are asked for."""
    asked, left = [], list(answers)

    def said(request: AskModel) -> ModelReply:
        asked.append(request)
        raw = left.pop(0)
        if isinstance(raw, ModelReply):
            return raw
        return ModelReply(text=raw if isinstance(raw, str) else json.dumps(raw))

    decision = drive(dialogue, said)
    assert not left, f"{len(left)} answers too many"
    return decision, asked


def pick(*symbols: str) -> dict[str, Any]:
    return {"analyse": list(symbols), "reason": "why not"}


def decide(**names: dict[str, Any]) -> dict[str, Any]:
    return {"decisions": names}


def do(act: str, target: float | None = None, **more: Any) -> dict[str, Any]:
    made: dict[str, Any] = {"action": act, "reasons": ["because"], "confidence": 0.7, **more}
    return made if target is None else made | {"target_cash_amount": target}


def payload_of(request: AskModel) -> dict[str, Any]:
    """Return what a request shows, as data."""
    assert isinstance(request.given, Given)
    return json.loads(request.given.observation)


def play(
    market: Market,
    made: Stockbench,
    model: Callable[[AskModel], ModelReply],
    days: int | None = None,
) -> tuple[list[StepRecord], list[list[AskModel]]]:
    """Play an episode with a function from request to reply; return the records and each day's
    requests.
    """
    seen: Observation | None = market.reset()
    records: list[StepRecord] = []
    asked: list[list[AskModel]] = []

    def said(request: AskModel) -> ModelReply:
        asked[-1].append(request)
        return model(request)

    while seen is not None and (days is None or len(records) < days):
        asked.append([])
        decision = drive(made.dialogue(seen), said)
        made.remember(seen, decision)
        record, seen = market.step(decision)
        records.append(record)
    return records, asked
