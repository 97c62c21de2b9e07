"""Playing days with replies from a list or from a function."""

import json
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tradeassay_bench.benchmarks.ktdfin import Ktdfin, KtdfinConfig
from tradeassay_bench.core.agent import EpisodeInfo, Observation
from tradeassay_bench.core.dialogue import AskModel, ModelReply, ToolCall
from tradeassay_bench.core.drive import drive
from tradeassay_bench.core.orders import Decision
from tradeassay_bench.data import Snapshot
from tradeassay_bench.play import Market, MarketConfig

HISTORY, DAYS = 256, 24
REASON = "because its momentum leads"
Answerer = Callable[[AskModel], ModelReply]


def call(*wanted: tuple[str, Any], text: str = "") -> ModelReply:
    """Return a reply with calls; arguments that are a text are sent as they are."""
    return ModelReply(
        text=text,
        calls=tuple(
            ToolCall(
                id=f"c{n}", name=name, arguments=args if isinstance(args, str) else json.dumps(args)
            )
            for n, (name, args) in enumerate(wanted)
        ),
    )


def order(stock: str, side: str = "BUY", **changes: Any) -> dict[str, Any]:
    """Return one order of an action."""
    given = {"stock_id": stock, "side": side, "confidence": 0.6, "reason": REASON}
    if "shares" not in changes and "target_weight" not in changes:
        given["target_weight"] = 0.05
    return {**given, **changes}


def submit(*orders: dict[str, Any], **changes: Any) -> ModelReply:
    """Return a submission."""
    return call(("submit_action", {"orders": list(orders), "overall_reason": REASON, **changes}))


DONE = ModelReply(text="I know enough.")
REMINDER = "No tool was called."
"""How words are answered in place of a first call; lists of replies mean what they say."""


class Game:
    """One episode."""

    def __init__(
        self,
        snapshot: Snapshot,
        config: KtdfinConfig | None = None,
        *,
        seed: int = 3,
        **market: Any,
    ) -> None:
        days = [str(day) for day in snapshot.sessions]
        venue = "us-v1" if snapshot.calendar == "XNYS" else "ashare-flat-v1"
        given = {
            "venue": venue,
            "universe": "IDX",
            "index": "IDX",
            "first": days[HISTORY],
            "last": days[-1],
            "max_weight": 0.10,
            "max_positions": 20,
            **market,
        }
        self.config = config or KtdfinConfig()
        self.market = Market(snapshot, MarketConfig(**given))
        self.protocol = Ktdfin(self.config)
        self.seen: Observation | None = self.market.reset()
        self.protocol.begin(
            EpisodeInfo(episode="e", seed=seed, rules=self.market.rules),
            np.random.default_rng(seed),
        )
        self.asked: list[AskModel] = []

    @property
    def now(self) -> Observation:
        assert self.seen is not None
        return self.seen

    def shown(self, symbol: str) -> str:
        """Return the id under which a symbol is shown."""
        return self.protocol.wire(self.now).gate.alias(symbol)

    def decide(self, answer: Answerer | Iterable[ModelReply]) -> Decision:
        """Talk the present day through; the asked requests are kept."""
        if not callable(answer):
            replies = iter(answer)

            def answer(request: AskModel) -> ModelReply:
                if request.messages[-1].text.startswith(REMINDER):
                    return DONE
                for reply in replies:
                    return reply
                raise AssertionError("the day wants more replies than there are")

        def asked(request: AskModel) -> ModelReply:
            self.asked.append(request)
            return answer(request)

        return drive(self.protocol.dialogue(self.now), asked)

    def go(self, decision: Decision) -> None:
        """Carry a decision out and go on to the next day."""
        self.protocol.remember(self.now, decision)
        self.record, self.seen = self.market.step(decision)

    def ask(self, tool: str, arguments: Any = "{}") -> dict[str, Any]:
        """Call one tool today and return its answer."""
        self.decide([call((tool, arguments)), DONE, submit()])
        results = [message for message in self.asked[-1].messages if message.role == "tool"]
        answer: dict[str, Any] = json.loads(results[0].text)
        return answer

    def symbols(self, count: int) -> list[str]:
        """Return some symbols that can be bought: members, trading, not at a limit."""
        day_view = self.protocol.day_view(self.now)
        columns = self.now.columns
        fine = columns[
            day_view.tradable[columns]
            & ~day_view.at_limit_up[columns]
            & ~day_view.at_limit_down[columns]
        ]
        cheap = sorted(fine.tolist(), key=lambda column: day_view.last_close[column])
        return [day_view.roster.symbols[column] for column in cheap[:count]]

    def buy(self, count: int, weight: float = 0.08) -> list[str]:
        """Buy some names today, go on, and return their symbols."""
        chosen = self.symbols(count)
        orders = [order(self.shown(symbol), target_weight=weight) for symbol in chosen]
        replies = (
            [submit(*orders)] if self.config.mode != "open-research" else [DONE, submit(*orders)]
        )
        decision = self.decide(replies)
        assert decision.status == "ok", decision
        self.go(decision)
        return chosen


def texts(requests: Iterable[AskModel]) -> list[str]:
    """Return everything that was said to a model: messages that are not its own, and tools."""
    said: dict[str, None] = {}
    for request in requests:
        for message in request.messages:
            if message.role != "assistant":
                said[message.text] = None
        for tool in request.tools:
            said[tool.description] = said[tool.schema] = None
    return list(said)


def mischief(stocks: list[str]) -> list[tuple[str, Any]]:
    """Return calls that go wrong in every way there is, and some that do not."""
    far = ("2099-12-31", "day_+9999", "day_+0", "2022-03-03", "day_-2")
    calls: list[tuple[str, Any]] = [("get_market_context", {}), ("portfolio_state", {})]
    calls += [("get_market_context", {"as_of": day}) for day in far]
    calls += [("get_stock_snapshot", {"stock_id": stock, "lookback": 30}) for stock in stocks[:2]]
    calls += [
        ("get_stock_snapshot", {"stock_id": stocks[0], "lookback": 5, "as_of": day}) for day in far
    ]
    calls += [
        ("get_stock_snapshot", {"stock_id": name, "lookback": 5})
        for name in ("asset_9999", "600519", "AAPL", "")
    ]
    calls += [
        ("get_stock_snapshot", {"stock_id": stocks[0], "lookback": n})
        for n in (-5, 0, 10_000, "many")
    ]
    calls += [
        ("screen_candidates", {"factors": f, "top_k": k})
        for f, k in (
            (["MOM_12_1", "-RV_60"], 8),
            (["TOMORROW"], 5),
            ([], 5),
            (["SKEW"], 0),
            (["SKEW"], 900),
        )
    ]
    calls += [("screen_candidates", {"factors": ["SKEW"], "date": day}) for day in far]
    calls += [
        (
            "compare_candidates",
            {"stock_ids": stocks[:3], "dims": ["RV_60", "return_20d", "drawdown_60d"]},
        ),
        ("compare_candidates", {"stock_ids": stocks[:3], "dims": ["ILLIQ", "volatility_20d"]}),
        ("compare_candidates", {"stock_ids": stocks[:2], "dims": ["NEXT_DAY_RETURN"]}),
        ("compare_candidates", {"stock_ids": [stocks[0], "600519"], "dims": ["SKEW"]}),
        ("compare_candidates", {"stock_ids": stocks * 9, "dims": ["SKEW"]}),
        ("risk_check", {"target_weights": {stocks[0]: 0.05, stocks[1]: 0.5}}),
        ("risk_check", {"target_weights": {"600519": 0.05}}),
        ("risk_check", {"target_weights": {}}),
        ("portfolio_state", {"date": "2099-12-31"}),
        ("portfolio_state", "{broken"),
        ("portfolio_state", "[]"),
        ("portfolio_state", '"text"'),
        ("no_such_tool", {}),
        ("600519", {}),
    ]
    return calls


def batches(calls: list[tuple[str, Any]], size: int) -> list[list[tuple[str, Any]]]:
    return [calls[start : start + size] for start in range(0, len(calls), size)]
