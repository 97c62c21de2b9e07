"""JSON values, orders, decisions and events through the gate and back."""

import msgspec
import numpy as np
import pytest
from hypothesis import given, strategies as st

from tradeassay.core.errors import DataError
from tradeassay_bench.core import events as ev
from tradeassay_bench.core.dialogue import AskModel, Message, ModelReply, ToolCall, ToolSpec
from tradeassay_bench.core.errors import FutureDataError
from tradeassay_bench.core.orders import Decision, Failure, Order
from tradeassay_bench.data import Snapshot
from tradeassay_bench.masking import LEVELS, Gate, Mask, MaskConfig, Truth, UnknownAlias, find_leaks

ROW = 60
SYMBOLS = (
    "000001.SZ",
    "600519.SH",
    "A",
    "AAPL",
    "ALL",
    "BRK.B",
    "COST",
    "D",
    "GE",
    "IT",
    "ON",
    "TGT",
)
DAYS = ("2023-11-01", "2023-12-29", "2024-01-02", "2024-01-26", "2024-02-01", "2024-03-28")


def opened(market: Snapshot, level: str = "blinded", seed: int = 0, **options: bool) -> Gate:
    config = MaskConfig(level=level, **options)  # type: ignore[arg-type]
    mask = Mask(config, market, "2024-01-02", "2024-03-28", np.random.default_rng(seed))
    return mask.gate(market.at(ROW, "open"))


@pytest.fixture
def gate(market):
    return opened(market)


@given(
    symbol=st.sampled_from(SYMBOLS),
    day=st.sampled_from(DAYS),
    level=st.sampled_from(LEVELS),
    seed=st.integers(0, 99),
)
def test_names_and_days_come_back(market, symbol, day, level, seed):
    made = opened(market, level, seed)
    assert made.symbol(made.alias(symbol)) == symbol
    assert made.real_day(made.day(day)) == day
    text = f"{made.alias(symbol)} on {made.day(day)}"
    assert made.incoming(text) == f"{symbol} on {day}"


symbols, days = st.sampled_from(SYMBOLS), st.sampled_from(DAYS)
numbers = st.one_of(
    st.integers(-(10**9), 10**9),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.none(),
)
words = st.sampled_from(
    ["rank 3, low volatility", "momentum up 5.2%", "hold all of it on target", ""]
)
payloads = st.fixed_dictionaries(
    {
        "stock_id": symbols,
        "symbols": st.lists(symbols),
        "date": days,
        "sessions": st.lists(days, max_size=3),
        "target_weights": st.dictionaries(symbols, numbers, max_size=5),
        "orders": st.lists(
            st.fixed_dictionaries({"stock_id": symbols, "reason": words, "shares": numbers}),
            max_size=3,
        ),
        "grid": st.dictionaries(symbols, st.fixed_dictionaries({"MOM_12_1": numbers}), max_size=3),
        "note": words,
        "series": st.lists(numbers, max_size=4),
    }
)


@given(payload=payloads, level=st.sampled_from(LEVELS))
def test_json_comes_back_and_holds_nothing_real_between(market, payload, level):
    made = opened(market, level)
    shown = made.outgoing(payload)
    assert made.incoming(shown) == payload
    assert find_leaks(shown, Truth.of(market.at(ROW, "open"), made.config, ahead=90)) == []
    assert made.outgoing(shown) == shown
    text = msgspec.json.encode(shown).decode()
    assert made.outgoing(text) == text
    assert made.outgoing(msgspec.json.encode(payload).decode()) == text


def test_hand_worked_json(gate):
    d, apple = gate.alias("D"), gate.alias("AAPL")
    shown = gate.outgoing(
        {
            "as_of_date": "2024-01-26",
            "candidates": [{"stock_id": "D", "grade": "D"}, {"stock_id": "AAPL", "grade": "A"}],
            "news": [{"published_at": 1_705_762_800_000_000_000, "title": "Apple and D"}],
            "D": 1,
            "AAPL": 2,
            "by_day": {"2024-01-26": 1.5},
            "volume": 600519,
        }
    )
    assert shown == {
        "as_of_date": "day_+18",
        "candidates": [{"stock_id": d, "grade": "D"}, {"stock_id": apple, "grade": "A"}],
        "news": [{"published_at": "day_+13", "title": f"{apple} and D"}],
        "D": 1,
        apple: 2,
        "by_day": {"day_+18": 1.5},
        "volume": 600519,
    }


@pytest.mark.parametrize(
    "arguments",
    [
        {"alias": "AAPL"},
        {"aliases": ["600519"]},
        {"stock_id": 600519},
        {"stock_id": "asset_12"},
        {"symbol": ""},
        {"date": "2024-01-26"},
        {"since": "January 26, 2024"},
        {"orders": [{"stock_id": "Apple"}]},
    ],
)
def test_real_names_are_refused_and_not_repeated(gate, arguments):
    with pytest.raises(UnknownAlias) as caught:
        gate.incoming(arguments)
    said = gate.error(caught.value)
    for word in ("AAPL", "Apple", "600519", "2024", "January"):
        assert word not in said
    assert gate.alias("AAPL") not in said and gate.alias("600519.SH") not in said


def test_errors_of_every_kind_are_masked(gate, market):
    view = market.at(ROW, "open")
    for ask in (
        lambda: view.column("ZZNW"),
        lambda: view.news(view.clock + 10**15),
        lambda: view.session_bars(),
        lambda: view.minutes("AAPL", 3),
        lambda: view.bars("vwap"),  # type: ignore[arg-type]
    ):
        with pytest.raises(Exception) as caught:
            ask()
        assert not find_leaks(gate.error(caught.value), Truth.of(view, gate.config, ahead=90))
    assert gate.alias("AAPL") in gate.error(DataError("no minute bars of 'AAPL'"))
    assert gate.error(FutureDataError("2024-02-01T10:00:00Z lies ahead")) == "day_+22 lies ahead"
    assert gate.error(KeyError("AAPL")) == f"'{gate.alias('AAPL')}'"
    assert gate.error(ValueError()) == "ValueError"


orders = st.builds(
    Order,
    symbol=symbols,
    amount=st.integers(1, 500).map(lambda lots: 100.0 * lots),
    unit=st.sampled_from(["shares", "target_weight", "target_shares", "dollars"]),
    side=st.sampled_from(["BUY", "SELL", None]),
    limit_price=st.one_of(st.none(), st.floats(1, 1000)),
    reason=words,
)


@given(batch=st.lists(orders, max_size=4), level=st.sampled_from(LEVELS), rebase=st.booleans())
def test_decisions_come_back(market, batch, level, rebase):
    made = opened(market, level, rebase_prices=rebase and level != "bright")
    decision = Decision(orders=tuple(batch), reason="low volatility")
    back = made.real_decision(made.decision(decision))
    assert len(back.orders) == len(batch)
    for order, again in zip(batch, back.orders, strict=True):
        if order.limit_price is not None:
            assert again.limit_price == pytest.approx(order.limit_price, rel=1e-12)
            again = msgspec.structs.replace(again, limit_price=order.limit_price)
        assert again == order


def test_a_decision_may_not_name_what_is_hidden(gate):
    with pytest.raises(UnknownAlias):
        gate.real_decision(Decision(orders=(Order(symbol="AAPL", amount=1.0),)))
    failed = Failure(kind="schema", detail="2024-01-26 AAPL")
    said = gate.real_decision(Decision(reason="Apple", failures=(failed,)))
    assert (said.reason, said.failures[0].detail) == ("[name]", "[date] [name]")


def test_every_event_is_masked(gate, market):
    made: list[ev.Event] = [
        ev.Deposited(cash=1e6),
        ev.Filled(
            order_id="0.0", symbol="AAPL", quantity=10, price=5, reference=5, fee=1, tax=0, cash=-51
        ),
        ev.Rejected(
            order_id="0.1",
            symbol="D",
            reason="lot",
            detail="D (2024-01-26): Dominion trades in lots",
        ),
        ev.Trimmed(order_id="0.2", symbol="GE", asked=10, filled=5, reason="no_volume"),
        ev.Rested(order_id="0.3", symbol="A", quantity=5),
        ev.Expired(order_id="0.4", symbol="A"),
        ev.DividendPaid(symbol="AAPL", per_share=0.5, quantity=10, cash=5),
        ev.SplitApplied(symbol="D", ratio=2, quantity=20, cash=0),
        ev.Delisted(symbol="D", quantity=1, price=2, cash=2),
        ev.BorrowCharged(symbol="IT", cash=-1),
        ev.InterestCharged(cash=-1),
        ev.MarginCalled(equity=1, required=2),
        ev.Marked(cash=1, positions=2, nav=3, stale=("D",), marks={"D": 1.0, "AAPL": 2.0}),
    ]
    assert {type(event) for event in made} == set(ev.Event.__args__)
    truth = Truth.of(market.at(ROW, "open"), gate.config)
    for event in made:
        shown = gate.event(event)
        assert type(shown) is type(event)
        assert find_leaks(msgspec.to_builtins(shown), truth) == []
    filled = gate.event(made[1])
    assert (
        isinstance(filled, ev.Filled) and filled.symbol == gate.alias("AAPL") and filled.price == 5
    )
    assert gate.event(made[-1]).marks == {gate.alias("D"): 1.0, gate.alias("AAPL"): 2.0}  # type: ignore[union-attr]


def test_requests_and_replies(gate):
    apple = gate.alias("AAPL")
    own = Message(
        role="assistant",
        text="I think of AAPL",
        calls=(ToolCall(id="1", name="t", arguments="{}"),),
    )
    asked = gate.ask(
        AskModel(
            purpose="research",
            messages=(
                Message(role="user", text="AAPL"),
                own,
                Message(role="tool", text='{"error": "AAPL"}', call_id="1"),
            ),
            tools=(ToolSpec(name="t", description="e.g. AAPL", schema='{"enum": ["AAPL", "D"]}'),),
            answer_schema='{"enum": ["D"]}',
        )
    )
    assert [message.text for message in asked.messages] == [
        apple,
        "I think of AAPL",
        f'{{"error": "{apple}"}}',
    ]
    assert asked.messages[1] == own
    assert asked.tools[0].description == f"e.g. {apple}"
    assert asked.tools[0].schema == f'{{"enum": ["{apple}", "{gate.alias("D")}"]}}'
    assert asked.answer_schema == f'{{"enum": ["{gate.alias("D")}"]}}'
    call = ToolCall(
        id="1", name="t", arguments=f'{{"alias": "{apple}", "day": "day_+0", "x": "Apple"}}'
    )
    reply = gate.reply(ModelReply(text=f"{apple}, not Apple", calls=(call,)))
    assert reply.text == "AAPL, not [name]"
    assert reply.calls[0].arguments == '{"alias": "AAPL", "day": "2024-01-02", "x": "[name]"}'


def test_bright_changes_nothing(market, mask):
    made = opened(market, "bright", control=True)
    payload = {"symbol": "AAPL", "date": "2024-01-26"}
    assert made.outgoing(payload) is payload and made.incoming(payload) is payload
    view = market.at(ROW, "open")
    assert mask("bright").view(view) is view
