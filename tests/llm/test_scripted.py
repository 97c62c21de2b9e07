"""Scripted models, refereed by small copies of the two protocols they must be able to play."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from llm_asking import place

from tradeassay.benchmarks.ktdfin import Ktdfin, KtdfinConfig
from tradeassay.benchmarks.stockbench import Stockbench, StockbenchConfig
from tradeassay.benchmarks.stockbench.panel import NOTES
from tradeassay.core.agent import EpisodeInfo
from tradeassay.core.dialogue import AskModel, Given, Message, ModelReply, ToolSpec
from tradeassay.data import Snapshot, open_snapshot, synthetic, write_snapshot
from tradeassay.llm import Access, ModelParams, open_model, scripted_models
from tradeassay.llm.scripted.traders import INSTRUCTION, Injector, Question, Sensible, Slow
from tradeassay.play import Market, MarketConfig

NAMES = (
    "broken-json",
    "code-judge",
    "contrarian",
    "future-asker",
    "news-reader",
    "injector",
    "never-submits",
    "overspender",
    "sensible",
    "slow",
)
BUILDERS = ("builder-gold", "builder-mends", "builder-peeps")
CODERS = ("away", "coder-cheat", "coder-gold", "coder-mends", "coder-silent", "coder-sma")
TOOLS = tuple(
    ToolSpec(name=name, description=name, schema='{"type":"object"}')
    for name in (
        "get_market_context",
        "screen_candidates",
        "get_stock_snapshot",
        "compare_candidates",
        "portfolio_state",
        "risk_check",
    )
)
SUBMIT = (ToolSpec(name="submit_action", description="", schema='{"type":"object"}'),)


def beside(payload: dict[str, Any], *failures: dict[str, Any]) -> Given:
    """What travels beside a question: the observation as data, and what was wrong with the answer before."""
    feedback = json.dumps({"failures": failures}) if failures else None
    return Given(session="", rules="{}", observation=json.dumps(payload), feedback=feedback)


# -- KTD-Fin


def ktdfin_day(
    model: Any, account: dict[str, Any], ranked: list[str], mode: str = "open-research", **more: Any
) -> dict:
    """Play a day: research until the model is done, then up to four submissions. Returns what was seen."""
    limits = {"max_weight": 0.1, "max_positions": 20, "max_candidates": 30, "lot": 100, "min_reason_length": 10}
    payload = {"kind": "ktdfin.observation", "mode": mode, "account": account, "constraints": limits, **more}
    messages = [Message(role="system", text="Trade."), Message(role="user", text="Here is your day.")]
    seen: dict[str, Any] = {"calls": [], "errors": [], "attempts": []}
    answers = {
        "portfolio_state": account,
        "screen_candidates": {"candidates": [{"stock_id": name, "factors": {"MOM_12_1": 0.1}} for name in ranked]},
        "compare_candidates": {"grid": {}},
        "risk_check": {"violations": [{"rule": "lot", "detail": "x", "stock_id": ranked[0]}] if ranked else []},
        "get_market_context": {"indices": []},
    }
    for turn in range(1, 13 if mode == "open-research" else 1):
        reply = model.answer(
            AskModel(
                purpose="research", messages=tuple(messages), tools=TOOLS, attempt=turn, given=beside(payload)
            )
        )
        if not reply.calls:
            break
        messages.append(Message(role="assistant", text=reply.text, calls=reply.calls))
        for call in reply.calls:
            arguments = json.loads(call.arguments)
            seen["calls"].append((call.name, arguments))
            wrong = "as_of" in arguments or arguments.get("lookback", 1) < 1 or "NEXT" in call.arguments
            result = {"error": "that day is not over yet"} if wrong else answers.get(call.name, {"error": "?"})
            seen["errors"] += [call.name] if wrong else []
            messages.append(Message(role="tool", text=json.dumps(result), call_id=call.id))
    messages.append(Message(role="user", text="Submit now."))
    complaints: list[dict[str, Any]] = []
    for attempt in range(1, 5):
        reply = model.answer(
            AskModel(
                purpose="submit",
                messages=tuple(messages),
                tools=SUBMIT,
                must_call="submit_action",
                attempt=attempt,
                given=beside(payload, *complaints),
            )
        )
        problem = ktdfin_problem(reply, account, ranked)
        seen["attempts"].append(problem[0] if problem else "ok")
        if problem is None:
            seen["action"] = json.loads(reply.calls[0].arguments)
            break
        complaint = {"kind": problem[0], "detail": problem[1]} | ({"stock_id": problem[2]} if problem[2] else {})
        complaints.append(complaint)
    return seen


def ktdfin_problem(
    reply: ModelReply, account: dict[str, Any], ranked: list[str]
) -> tuple[str, str, str | None] | None:
    call = next((call for call in reply.calls if call.name == "submit_action"), None)
    if call is None:
        return "no_submit", "submit_action was not called", None
    try:
        action = json.loads(call.arguments)
    except ValueError:
        return "schema", "no JSON", None
    assert set(action) == {"orders", "overall_reason"} and len(action["overall_reason"]) >= 10
    held = {row["stock_id"]: row for row in account["positions"]}
    cash = account["cash"]
    for order in action["orders"]:
        assert set(order) == {"stock_id", "side", "confidence", "reason", "target_weight"}
        assert 0 <= order["confidence"] <= 1 and len(order["reason"]) >= 10
        now = held.get(order["stock_id"], {}).get("weight", 0.0)
        if order["target_weight"] > 0.1:
            return "constraint", "too heavy", order["stock_id"]
        if (order["side"] == "BUY") != (order["target_weight"] > now):
            return "constraint", "wrong side", order["stock_id"]
        if order["side"] == "SELL" and held[order["stock_id"]]["sellable"] < held[order["stock_id"]]["shares"]:
            return "constraint", "locked", order["stock_id"]
        cash -= (order["target_weight"] - now) * account["nav"]
    return ("constraint", "no cash", None) if cash < 0 else None


def position(name: str, weight: float, nav: float, locked: bool = False) -> dict[str, Any]:
    return {
        "stock_id": name,
        "shares": 1000,
        "sellable": 0 if locked else 1000,
        "price": weight * nav / 1000,
        "value": weight * nav,
        "weight": weight,
    }


EMPTY = {"cash": 1e6, "nav": 1e6, "positions": []}
RANKED = [f"asset_{at:04d}" for at in range(16)]


def test_every_name_of_the_contract_is_there_and_says_what_it_does() -> None:
    # Other tests register models of their own under names that begin with tiny-.
    known = [name for name in scripted_models.names() if not name.startswith("tiny-")]
    assert sorted(known) == sorted(NAMES + CODERS + BUILDERS)
    assert all(len(scripted_models.get(name).summary) > 20 for name in known)


def test_the_sensible_one_researches_with_four_calls_and_buys_what_ranks_highest() -> None:
    seen = ktdfin_day(Sensible(), EMPTY, RANKED)
    assert [name for name, _ in seen["calls"]] == [
        "portfolio_state",
        "screen_candidates",
        "compare_candidates",
        "risk_check",
    ]
    assert seen["attempts"] == ["ok"] and not seen["errors"]
    bought = [order["stock_id"] for order in seen["action"]["orders"]]
    assert bought == RANKED[1:9]  # the first one did not pass the risk check
    assert sum(order["target_weight"] for order in seen["action"]["orders"]) <= 0.9


def test_it_sells_what_fell_out_and_keeps_what_is_locked() -> None:
    nav = 1e6
    account = {
        "cash": 7e5,
        "nav": nav,
        "positions": [
            position(RANKED[2], 0.1, nav),
            position("asset_0900", 0.1, nav),
            position("asset_0901", 0.1, nav, locked=True),
        ],
    }
    orders = {order["stock_id"]: order for order in ktdfin_day(Sensible(), account, RANKED)["action"]["orders"]}
    assert orders["asset_0900"]["side"] == "SELL" and orders["asset_0900"]["target_weight"] == 0.0
    assert "asset_0901" not in orders and RANKED[2] not in orders


def test_it_plays_the_other_modes() -> None:
    rows = [{"stock_id": name, "factors": {"MOM_12_1": float(at)}} for at, name in enumerate(RANKED)]
    seen = ktdfin_day(Sensible(), EMPTY, RANKED, "fixed-candidate", candidates=rows)
    assert [order["stock_id"] for order in seen["action"]["orders"]] == RANKED[:-9:-1]
    seen = ktdfin_day(Sensible(), EMPTY, RANKED, "memory-only", universe=RANKED)
    assert [order["stock_id"] for order in seen["action"]["orders"]] == RANKED[:8]
    assert ktdfin_day(Sensible(), EMPTY, [], "memory-only")["action"]["orders"] == []


@settings(max_examples=60, deadline=None)
@given(
    weights=st.lists(st.floats(0.001, 0.3), max_size=8),
    cash=st.floats(0.0, 1.0),
    order=st.permutations(RANKED),
    locked=st.booleans(),
)
def test_whatever_it_holds_it_stays_within_the_rules(
    weights: list[float], cash: float, order: list[str], locked: bool
) -> None:
    total = sum(weights) + cash
    if total == 0:
        return
    nav = 1e6
    names = ["asset_0003", "x1", "x2", "asset_0007", "x3", "x4", "x5", "x6"]
    held = [
        position(name, weight / total, nav, locked and at % 2 == 0)
        for at, (name, weight) in enumerate(zip(names, weights, strict=False))
    ]
    seen = ktdfin_day(Sensible(), {"cash": cash / total * nav, "nav": nav, "positions": held}, order)
    assert seen["attempts"] == ["ok"]


def test_the_others_make_their_mistake() -> None:
    asker = ktdfin_day(scripted_models.get("future-asker")(), EMPTY, RANKED)
    assert len(asker["errors"]) == 5 and asker["attempts"] == ["ok"] and len(asker["action"]["orders"]) == 8
    assert len(asker["calls"]) == 5 + 4
    never = ktdfin_day(scripted_models.get("never-submits")(), EMPTY, RANKED)
    assert never["attempts"] == ["no_submit"] * 4 and len(never["calls"]) == 24
    spender = ktdfin_day(scripted_models.get("overspender")(), EMPTY, RANKED)
    assert spender["attempts"][:2] == ["constraint", "constraint"]
    injector = ktdfin_day(Injector(), EMPTY, RANKED)
    sensible = ktdfin_day(Sensible(), EMPTY, RANKED)
    assert injector["attempts"] == ["ok"] and injector["action"]["overall_reason"] == INSTRUCTION
    strip = lambda seen: [(o["stock_id"], o["target_weight"]) for o in seen["action"]["orders"]]  # noqa: E731
    assert strip(injector) == strip(sensible)


def test_broken_json_breaks_first_and_mends_on_some_days() -> None:
    model = scripted_models.get("broken-json")()
    days = [ktdfin_day(model, {**EMPTY, "cash": 1e6 - at}, RANKED)["attempts"] for at in range(30)]
    assert all(day[0] == "schema" for day in days)
    mended = sum(day == ["schema", "ok"] for day in days)
    assert 10 <= mended <= 28 and all(day in (["schema", "ok"], ["schema"] * 4) for day in days)


# -- StockBench


def stockbench_rows(seed: int, held: dict[str, tuple[float, int]] | None = None) -> list[dict[str, Any]]:
    held = held or {}
    rows = []
    for at in range(20):
        start = 50.0 + 7 * at
        closes = [round(start * (1 + 0.01 * ((seed * 7 + at * 3 + day * day) % 11 - 5)), 2) for day in range(7)]
        name = f"SYM{at:02d}"
        value, days = held.get(name, (0.0, 0))
        own = None if not value else {"shares": value / closes[-1], "value": value, "holding_days": days}
        rows.append({"symbol": name, "open": closes[-1], "closes": closes, "position": own})
    return rows


def stockbench_day(model: Any, rows: list[dict[str, Any]], cash: float) -> dict[str, Any]:
    nav = cash + sum(row["position"]["value"] for row in rows if row["position"])
    seen: dict[str, Any] = {"attempts": []}

    def ask(purpose: str, payload: dict[str, Any], attempt: int = 1) -> ModelReply:
        messages = (Message(role="system", text="Trade."), Message(role="user", text="Go on."))
        return model.answer(AskModel(purpose=purpose, messages=messages, attempt=attempt, given=beside(payload)))  # type: ignore[no-any-return]

    common = {"cash": cash, "nav": nav, "symbols": rows}
    overview = ask("overview", {"kind": "stockbench.overview", "max_names": 5, **common})
    seen["overview"] = overview.text
    seen["analysis"] = ask("analysis", {"kind": "stockbench.analysis", **common}).text
    for attempt in range(1, 4):
        reply = ask("decision", {"kind": "stockbench.decision", **common}, attempt)
        problem = stockbench_problem(reply.text, rows, cash)
        seen["attempts"].append(problem or "ok")
        if problem is None:
            seen["decisions"] = json.loads(reply.text)["decisions"]
            break
    return seen


def stockbench_problem(text: str, rows: list[dict[str, Any]], cash: float) -> str | None:
    try:
        decisions = json.loads(text)["decisions"]
    except (ValueError, KeyError, TypeError):
        return "schema"
    values = {row["symbol"]: row["position"]["value"] if row["position"] else 0.0 for row in rows}
    if set(decisions) - set(values):
        return "schema"
    bought = sold = 0.0
    for name, decided in decisions.items():
        if set(decided) != {"action", "target_cash_amount", "reasons", "confidence"}:
            return "schema"
        target, now = decided["target_cash_amount"], values[name]
        fits = {
            "increase": target > now,
            "decrease": 0 < target < now,
            "close": target == 0 and now > 0,
            "hold": target == now,
        }[decided["action"]]
        if not fits:
            return "arithmetic"
        bought += max(0.0, target - now)
        sold += max(0.0, now - target)
    return "liquidity" if bought > cash + sold else None


@settings(max_examples=50, deadline=None)
@given(seed=st.integers(0, 50), count=st.integers(0, 12), cash=st.floats(0.0, 1e5), days=st.integers(0, 20))
def test_sensible_is_valid_in_stockbench(seed: int, count: int, cash: float, days: int) -> None:
    held = {f"SYM{(seed + 3 * at) % 20:02d}": (4000.0 + 700 * at, days) for at in range(count)}
    seen = stockbench_day(Sensible(), stockbench_rows(seed, held), cash)
    assert seen["attempts"] == ["ok"]
    picked = json.loads(seen["overview"])
    assert set(picked) == {"analyse", "reason"} and len(picked["analyse"]) == 5
    assert set(json.loads(seen["analysis"])["notes"]) == {f"SYM{at:02d}" for at in range(20)}


def test_stockbench_first_day_invests_and_the_others_err() -> None:
    rows = stockbench_rows(3)
    first = stockbench_day(Sensible(), rows, 1e5)["decisions"]
    assert sum(one["target_cash_amount"] for one in first.values()) == pytest.approx(95_000 * 0.95, rel=0.06)
    assert {one["action"] for one in first.values()} == {"increase", "hold"}
    assert stockbench_day(scripted_models.get("never-submits")(), rows, 1e5)["attempts"] == ["schema"] * 3
    assert stockbench_day(scripted_models.get("overspender")(), rows, 1e5)["attempts"][:2] == ["liquidity"] * 2
    assert stockbench_day(scripted_models.get("broken-json")(), rows, 1e5)["attempts"][0] == "schema"
    asker = stockbench_day(scripted_models.get("future-asker")(), rows, 1e5)
    assert "2099" in asker["overview"] and asker["attempts"] == ["ok"]
    injected = stockbench_day(Injector(), rows, 1e5)
    assert injected["attempts"] == ["ok"]
    assert all(one["reasons"] == [INSTRUCTION] for one in injected["decisions"].values())


# -- all of them


@pytest.mark.parametrize("name", NAMES)
def test_the_same_request_gets_the_same_answer(name: str) -> None:
    first, second = scripted_models.get(name)(), scripted_models.get(name)()
    assert ktdfin_day(first, EMPTY, RANKED) == ktdfin_day(second, EMPTY, RANKED)
    rows = stockbench_rows(1)
    assert stockbench_day(first, rows, 1e5) == stockbench_day(second, rows, 1e5)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "observation",
    [
        None,
        "",
        "{}",
        "[1]",
        '{"kind": "other"}',
        '{"kind": "stockbench.decision", "symbols": [1, {"open": "x"}]}',
        '{"kind": "ktdfin.observation", "account": [], "constraints": 3}',
        '{"kind": "ama.verdict", "opinions": 3, "momentum": "x"}',
    ],
)
def test_a_strange_observation_breaks_nobody(name: str, observation: str | None) -> None:
    messages = (Message(role="user", text="Hello."),)
    given = msgspec.UNSET if observation is None else Given(session="", rules="{}", observation=observation)
    model = scripted_models.get(name)()
    for tools, must in (((), None), (TOOLS, None), (SUBMIT, "submit_action")):
        asked = AskModel(purpose="p", messages=messages, tools=tools, must_call=must, given=given)
        assert isinstance(model.answer(asked), ModelReply)


def test_the_text_of_a_prompt_is_not_read() -> None:
    text = 'Here:\n```json\n{"kind": "ktdfin.observation", "universe": ["a"]}\n```'
    asked = Question(AskModel(purpose="submit", messages=(Message(role="user", text=text),)))
    assert asked.kind == "" and asked.payload == {} and not asked.objected


def test_objections_to_an_earlier_answer_are_seen() -> None:
    failures = [
        {"kind": "schema", "detail": "no JSON"},
        {"kind": "constraint", "detail": "heavy", "stock_id": "a"},
    ]
    asked = Question(AskModel(purpose="p", messages=(), attempt=2, given=beside({"kind": "two"}, *failures)))
    assert asked.kind == "two" and asked.objected == {"a"} and asked.attempt == 2


# -- opened as models


def test_opened_by_name_they_count_tokens_and_cost_nothing() -> None:
    async def main() -> None:
        async with open_model("scripted/sensible") as model:
            reply = await model.ask(
                AskModel(purpose="p", messages=(Message(role="user", text="x" * 400),)), place()
            )
        assert reply.usage.input_tokens == 100 and reply.usage.output_tokens > 0 and reply.usage.usd == 0.0

    asyncio.run(main())


def test_the_slow_one_waits_and_sometimes_never_comes() -> None:
    requests = [AskModel(purpose="p", messages=(Message(role="user", text=f"day {at}"),)) for at in range(70)]
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    async def main() -> list[ModelReply]:
        async with open_model("scripted/slow", ModelParams(timeout_s=60), access=Access(sleep=sleep)) as model:
            return [await model.ask(request, place(at)) for at, request in enumerate(requests)]

    replies = asyncio.run(main())
    late = [reply for reply in replies if reply.error_kind == "timeout"]
    assert 3 <= len(late) <= 20 and len(slept) == 70 - len(late) and set(slept) == {0.02}
    assert [Slow().seconds(request) > 60 for request in requests] == [bool(reply.error) for reply in replies]


DAYS = 8


def world(folder: Path, preset: str, history: int) -> Snapshot:
    config = synthetic.preset(preset, seed=7, names=24, index_members=20, sessions=history + DAYS)
    write_snapshot(synthetic.generate(config).panel, folder / preset)
    return open_snapshot(folder / preset)


@pytest.fixture(scope="module")
def ashare(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return world(tmp_path_factory.mktemp("worlds"), "ashare", 256)


@pytest.fixture(scope="module")
def us(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return world(tmp_path_factory.mktemp("worlds"), "us", 60)


def play(name: str, protocol: Any, market: Market) -> tuple[Counter[str], Counter[str], int]:
    """Return how the days ended, what failed, and how many orders were given."""
    model = scripted_models.get(name)()
    seen = market.reset()
    protocol.begin(EpisodeInfo(episode="e", seed=0, rules=market.rules), np.random.default_rng(0))
    ends: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    orders = 0
    while seen is not None:
        dialogue = protocol.dialogue(seen)
        request = next(dialogue)
        while True:
            try:
                request = dialogue.send(model.answer(request))
            except StopIteration as stop:
                decision = stop.value
                break
        ends[decision.status] += 1
        failures.update(failure.kind for failure in decision.failures if failure.kind not in NOTES)
        orders += len(decision.orders)
        protocol.remember(seen, decision)
        seen = market.step(decision).observation
    return ends, failures, orders


def ktdfin_market(snapshot: Snapshot) -> Market:
    return Market(snapshot, config(snapshot, venue="ashare-flat-v1", max_weight=0.1, max_positions=20))


def stockbench_market(snapshot: Snapshot) -> Market:
    return Market(snapshot, config(snapshot, venue="us-v1", cash=100_000.0, decide="at_open", fill="open"))


def config(snapshot: Snapshot, **more: Any) -> MarketConfig:
    first, last = str(snapshot.sessions[-DAYS]), str(snapshot.sessions[-1])
    return MarketConfig(universe="IDX", index="IDX", first=first, last=last, **more)


@pytest.mark.parametrize("mode", ["open-research", "fixed-candidate", "memory-only"])
def test_sensible_plays_ktdfin_without_a_mistake(ashare: Snapshot, mode: Any) -> None:
    ends, failures, orders = play("sensible", Ktdfin(KtdfinConfig(mode=mode)), ktdfin_market(ashare))
    assert ends == {"ok": DAYS} and not failures and orders >= 5


def test_sensible_plays_stockbench_without_a_mistake(us: Snapshot) -> None:
    ends, failures, orders = play("sensible", Stockbench(StockbenchConfig()), stockbench_market(us))
    assert ends == {"ok": DAYS} and not failures and orders >= 10


@pytest.mark.parametrize(
    ("name", "in_ktdfin", "in_stockbench"),
    [
        ("broken-json", "schema", "schema"),
        ("future-asker", "tool", None),
        ("never-submits", "no_submit", "schema"),
        ("overspender", "constraint", "liquidity"),
        ("injector", None, None),
    ],
)
def test_the_others_are_caught(
    ashare: Snapshot, us: Snapshot, name: str, in_ktdfin: str | None, in_stockbench: str | None
) -> None:
    for kind, protocol, market in (
        (in_ktdfin, Ktdfin(KtdfinConfig()), ktdfin_market(ashare)),
        (in_stockbench, Stockbench(StockbenchConfig()), stockbench_market(us)),
    ):
        ends, failures, _ = play(name, protocol, market)
        assert not failures if kind is None else failures[kind] >= DAYS, failures
        # Who is refused twice in the same words is not asked a third time: the overspender gets no further either.
        assert (ends["ok"] == 0) == (name in ("never-submits", "overspender")), (name, ends)
