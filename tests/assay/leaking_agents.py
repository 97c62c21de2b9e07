"""Agents that reach past their clock, each through one channel, and a small market to catch them in."""

from collections.abc import Generator
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import msgspec
import numpy as np

from tradeassay.benchmarks import KTDFIN, Benchmark, protocols
from tradeassay.benchmarks.ktdfin import Ktdfin
from tradeassay.core.agent import AskDecision, EpisodeInfo, Observation
from tradeassay.core.dialogue import AskModel, Message, ModelReply
from tradeassay.core.orders import Decision, Order
from tradeassay.core.time import DAY
from tradeassay.data import Snapshot, open_snapshot, write_snapshot
from tradeassay.data.synthetic import generate, preset

SESSIONS = 276
FIRST = 262


@lru_cache(maxsize=1)
def world() -> Snapshot:
    panel = generate(preset("ashare", seed=3, names=10, sessions=SESSIONS, new_listings=1, delistings=1)).panel
    folder = Path(mkdtemp(prefix="leaks-")) / "world"
    write_snapshot(panel, folder, allow_faults=True)
    return open_snapshot(folder)


def benchmark(**protocol: Any) -> Benchmark:
    days = world().sessions
    market = msgspec.structs.replace(KTDFIN.market, first=str(days[FIRST]), last=str(days[-1]))
    return msgspec.structs.replace(
        KTDFIN, id="tiny-leaks", market=market, protocol_params={**KTDFIN.protocol_params, **protocol}
    )


class Holder:
    """Buys whatever ``pick`` names, every day; honest as long as that is."""

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        self.rng = rng

    def answer(self, request: AskDecision) -> Decision:
        seen = request.observation
        chosen = [symbol for symbol in self.pick(seen) if symbol in seen.universe][:4]
        orders = tuple(
            Order(symbol=symbol, amount=0.05 * (k + 1) / 4, unit="target_weight")
            for k, symbol in enumerate(chosen)
        )
        return Decision(orders=orders, reason=self.why(seen))

    def pick(self, seen: Observation) -> list[str]:
        closes = seen.view.bars("close", 6)
        return [seen.view.symbols[k] for k in np.argsort(-(closes[-1] / closes[0]))]

    def why(self, seen: Observation) -> str:
        return "ranked by the last five sessions"


def _future(seen: Observation) -> Any:
    return seen.view._history  # type: ignore[attr-defined]  # reaching behind the view is what is planted


class BarsPeek(Holder):
    def pick(self, seen: Observation) -> list[str]:
        closes = _future(seen).fields["close"]
        row = seen.view.row  # type: ignore[attr-defined]  # as above
        moves = closes[row, : len(seen.view.symbols)] / closes[row - 1, : len(seen.view.symbols)]
        return [seen.view.symbols[k] for k in np.argsort(-np.nan_to_num(moves))]


class NewsPeek(Holder):
    def _items(self, seen: Observation) -> list[Any]:
        table = _future(seen).news
        return [
            table.record(row) for row in range(*map(table.up_to, (seen.view.clock, seen.view.clock + 2 * DAY)))
        ]

    def pick(self, seen: Observation) -> list[str]:
        return sorted({symbol for item in self._items(seen) for symbol in item.symbols})

    def why(self, seen: Observation) -> str:
        return "; ".join(item.title for item in self._items(seen)[:2])


class FiguresPeek(Holder):
    def pick(self, seen: Observation) -> list[str]:
        history, names = _future(seen), seen.view.symbols
        last = {
            name: history.known_figures(name, history.fundamentals.count_of_symbol(name, 10**9)) for name in names
        }
        return sorted(names, key=lambda name: -(last[name][-1].value if last[name] else 0.0))


class MembersPeek(Holder):
    def pick(self, seen: Observation) -> list[str]:
        row = min(seen.view.row + 2, SESSIONS - 1)  # type: ignore[attr-defined]  # as above
        stays = set(_future(seen).members_at("IDX", row))
        return [symbol for symbol in seen.universe if symbol not in stays] + list(seen.universe)


class IndexPeek(Holder):
    def pick(self, seen: Observation) -> list[str]:
        levels = _future(seen).levels["IDX"]
        row = seen.view.row  # type: ignore[attr-defined]  # as above
        return list(seen.universe) if levels[row] > levels[row - 1] else list(reversed(seen.universe))


class Fickle(Holder):
    """Not repeatable: its dice are not the episode's."""

    def pick(self, seen: Observation) -> list[str]:
        return [seen.universe[k] for k in np.random.default_rng().permutation(len(seen.universe))]


class LeakyTools(Ktdfin):
    """KTD-Fin whose ``screen_candidates`` knows tomorrow: with its date, or without."""

    stamped = True

    def dialogue(self, observation: Observation) -> Generator[AskModel, ModelReply, Decision]:
        inner = super().dialogue(observation)
        request = next(inner)
        while True:
            reply = yield msgspec.structs.replace(
                request, messages=tuple(self._spoil(one, request, observation) for one in request.messages)
            )
            try:
                request = inner.send(reply)
            except StopIteration as done:
                decision: Decision = done.value
                return decision

    def _spoil(self, message: Message, request: AskModel, seen: Observation) -> Message:
        names = {call.id: call.name for one in request.messages for call in one.calls}
        if names.get(message.call_id or "") != "screen_candidates":
            return message
        body = msgspec.json.decode(message.text)
        row = seen.view.row  # type: ignore[attr-defined]  # as above
        body["next_close"] = float(np.nansum(_future(seen).fields["close"][row]))
        if self.stamped:
            body["next"] = {"day": f"day_+{seen.step + 1}"}
        return msgspec.structs.replace(message, text=msgspec.json.encode(body).decode())


class UnstampedTools(LeakyTools):
    stamped = False


def register() -> None:
    for name, kind in (("test-leaky", LeakyTools), ("test-leaky-unstamped", UnstampedTools)):
        if name not in protocols:
            protocols.add(name, kind)


def spoiled(name: str) -> Benchmark:
    register()
    return msgspec.structs.replace(benchmark(), protocol=name)
