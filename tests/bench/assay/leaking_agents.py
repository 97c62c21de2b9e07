"""Agents that reach past their clock, each through one channel, and a small market to catch them
in.
"""

from collections.abc import Callable, Generator
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import msgspec
import numpy as np

from tradeassay_bench.benchmarks import KTDFIN, Benchmark, protocols
from tradeassay_bench.benchmarks.ktdfin import Ktdfin
from tradeassay_bench.core.agent import AskDecision, EpisodeInfo, Observation
from tradeassay_bench.core.dialogue import AskModel, Message, ModelReply
from tradeassay_bench.core.orders import Decision, Order
from tradeassay_bench.core.time import DAY
from tradeassay_bench.data import Snapshot, open_snapshot, write_snapshot
from tradeassay_bench.data.synthetic import generate, preset

SESSIONS = 276
FIRST = 262


@lru_cache(maxsize=1)
def world() -> Snapshot:
    panel = generate(
        preset("ashare", seed=3, names=10, sessions=SESSIONS, new_listings=1, delistings=1)
    ).panel
    folder = Path(mkdtemp(prefix="leaks-")) / "world"
    write_snapshot(panel, folder, allow_faults=True)
    return open_snapshot(folder)


def benchmark(protocol: str = KTDFIN.protocol) -> Benchmark:
    days = world().sessions
    market = msgspec.structs.replace(KTDFIN.market, first=str(days[FIRST]), last=str(days[-1]))
    return msgspec.structs.replace(KTDFIN, id="tiny-leaks", market=market, protocol=protocol)


class Holder:
    """Buys whatever ``pick`` names, every day; honest as long as that is."""

    def __init__(
        self,
        pick: Callable[[Observation], list[str]],
        why: Callable[[Observation], str] = lambda _: "ranked",
    ) -> None:
        self.pick, self.why = pick, why

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        """Need no dice."""

    def answer(self, request: AskDecision) -> Decision:
        seen = request.observation
        chosen = [symbol for symbol in self.pick(seen) if symbol in seen.universe][:4]
        orders = [
            Order(symbol=symbol, amount=0.05 * (k + 1) / 4, unit="target_weight")
            for k, symbol in enumerate(chosen)
        ]
        return Decision(orders=tuple(orders), reason=self.why(seen))


def _ranked(seen: Observation, scores: Any) -> list[str]:
    return [seen.view.symbols[k] for k in np.argsort(-np.nan_to_num(scores))]


def _future(seen: Observation) -> tuple[Any, int]:
    """Reach behind the view: all of the history, and the row of today."""
    view: Any = seen.view
    return view._history, view.row


def _last_five(seen: Observation) -> list[str]:
    closes = seen.view.bars("close", 6)
    return _ranked(seen, closes[-1] / closes[0])


def _coming_news(seen: Observation) -> list[Any]:
    table = _future(seen)[0].news
    return [
        table.record(row)
        for row in range(*map(table.up_to, (seen.view.clock, seen.view.clock + 2 * DAY)))
    ]


def _coming_bars(seen: Observation) -> list[str]:
    history, row = _future(seen)
    closes = history.fields["close"][row - 1 : row + 1, : len(seen.view.symbols)]
    return _ranked(seen, closes[1] / closes[0])


def _coming_figures(seen: Observation) -> list[str]:
    history, names = _future(seen)[0], seen.view.symbols
    last = {
        name: history.known_figures(name, history.fundamentals.count_of_symbol(name, 10**9))
        for name in names
    }
    return sorted(names, key=lambda name: -(last[name][-1].value if last[name] else 0.0))


def _coming_members(seen: Observation) -> list[str]:
    history, row = _future(seen)
    stays = set(history.members_at("IDX", min(row + 2, SESSIONS - 1)))
    return [*(symbol for symbol in seen.universe if symbol not in stays), *seen.universe]


def _coming_level(seen: Observation) -> list[str]:
    history, row = _future(seen)
    levels = history.levels["IDX"]
    return list(seen.universe) if levels[row] > levels[row - 1] else list(reversed(seen.universe))


PLANTED: dict[str, Callable[[], Holder]] = {
    "bars": lambda: Holder(_coming_bars),
    "news": lambda: Holder(
        lambda seen: sorted({symbol for item in _coming_news(seen) for symbol in item.symbols}),
        lambda seen: "; ".join(item.title for item in _coming_news(seen)[:2]),
    ),
    "fundamentals": lambda: Holder(_coming_figures),
    "index membership": lambda: Holder(_coming_members),
    "index levels": lambda: Holder(_coming_level),
}
"""Who peeks, by the channel through which it does."""


def honest() -> Holder:
    return Holder(_last_five)


class Counting(Holder):
    """Counts in its own settings, which another play must not see: an honest agent, given as a
    class.
    """

    class Config(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
        names: int = 1
        days: int = 0

    def __init__(self, config: Config) -> None:
        super().__init__(lambda seen: list(seen.universe[config.days % config.names :]))
        self.config = config

    def answer(self, request: AskDecision) -> Decision:
        self.config.days += 1
        return super().answer(request)


def fickle() -> Holder:
    """Return one who does not repeat itself: its dice are not the episode's."""
    return Holder(
        lambda seen: [str(name) for name in np.random.default_rng().permutation(seen.universe)]
    )


class LeakyTools(Ktdfin):
    """KTD-Fin whose ``screen_candidates`` knows tomorrow: with its date, or without."""

    stamped = True

    def dialogue(self, observation: Observation) -> Generator[AskModel, ModelReply, Decision]:
        inner = super().dialogue(observation)
        request = next(inner)
        while True:
            spoiled = tuple(self._spoil(one, request, observation) for one in request.messages)
            reply = yield msgspec.structs.replace(request, messages=spoiled)
            try:
                request = inner.send(reply)
            except StopIteration as done:
                decision: Decision = done.value
                return decision

    def _spoil(self, message: Message, request: AskModel, seen: Observation) -> Message:
        names = {call.id: call.name for one in request.messages for call in one.calls}
        if names.get(message.call_id or "") != "screen_candidates":
            return message
        history, row = _future(seen)
        body = msgspec.json.decode(message.text)
        body["next_close"] = float(np.nansum(history.fields["close"][row]))
        if self.stamped:
            body["next"] = {"day": f"day_+{seen.step + 1}"}
        return msgspec.structs.replace(message, text=msgspec.json.encode(body).decode())


class UnstampedTools(LeakyTools):
    stamped = False


for name, kind in (("test-leaky", LeakyTools), ("test-leaky-unstamped", UnstampedTools)):
    if name not in protocols:
        protocols.add(name, kind)
