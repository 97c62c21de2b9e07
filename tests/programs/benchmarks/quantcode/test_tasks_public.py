"""The public task file: records of its shape, written here, and broken ones."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from tradeassay.core.errors import DataError, UserError
from tradeassay_programs.benchmarks.quantcode import load_public_tasks
from tradeassay_programs.benchmarks.quantcode.loading import PUBLIC_KEYS


def record(**changes: Any) -> dict[str, Any]:
    whole = {
        "id": 7,
        "reformulated_task": "**Assignment:**\n\n**Name:** Buy dips\n\nBuy a low close, sell a "
        "high one.",
        "source": "reddit",
        "difficulty": "easy",
        "ticker": "generic",
        "yf_symbol": "AAPL",
        "timeframe": "1h",
        "original_ticker": None,
        "original_timeframe": None,
        "was_reformulated": False,
    }
    assert tuple(whole) == PUBLIC_KEYS
    return whole | changes


def written(folder: Path, content: Any) -> Path:
    file = folder / "public.json"
    file.write_text(content if isinstance(content, str) else json.dumps(content))
    return file


def test_a_record_becomes_a_task(tmp_path):
    (task,) = load_public_tasks(written(tmp_path, [record()]))
    assert (task.id, task.source, task.difficulty, task.timeframe) == (
        "public-007",
        "reddit",
        "easy",
        "1h",
    )
    assert task.title == "Name: Buy dips"
    assert task.formal == record()["reformulated_task"]
    assert task.wordings == ("formal",)
    assert (task.market, task.symbol, task.family) == ("us", "AAPL", None)
    assert (task.sizing.kind, task.sizing.value, task.cash, task.commission) == (
        "fixed",
        1.0,
        10_000.0,
        0.001,
    )
    assert not task.has_reference
    assert task.lacks == ("a conversational wording", "a reference program", "decoys")
    assert task.expect.order_kinds == ()


def test_what_is_missing_or_spelled_otherwise_is_said(tmp_path):
    bare = {
        "reformulated_task": "Buy the close.",
        "difficulty": "brutal",
        "timeframe": "4h",
        "novel_key": 1,
    }
    (task,) = load_public_tasks(written(tmp_path, {"tasks": [bare]}))
    assert (task.id, task.difficulty, task.timeframe, task.source) == (
        "public-001",
        "medium",
        "1d",
        "public",
    )
    assert task.market == "us" and task.symbol is None
    said = " ".join(task.lacks)
    assert "'brutal'" in said and "'4h'" in said and "an id" in said and "a source" in said
    others = [record(id="a b", timeframe="Daily"), record(id=2, timeframe="M5")]
    tasks = load_public_tasks(written(tmp_path, others))
    assert {task.id: task.timeframe for task in tasks} == {"public-a-b": "1d", "public-002": "5m"}
    symbols = {
        "BTC-USD": "crypto",
        "eth-usd": "crypto",
        "EURUSD=X": "futures",
        "ES=F": "futures",
        "SPY": "us",
    }
    records = [record(id=place, yf_symbol=symbol) for place, symbol in enumerate(symbols)]
    assert [task.market for task in load_public_tasks(written(tmp_path, records))] == [
        *symbols.values()
    ]


def test_a_broken_file_is_refused(tmp_path):
    for content, said in (
        ("{", "not JSON"),
        ("[]", "not contain a list of tasks"),
        ('{"rows": []}', "not contain a list of tasks"),
        ("[3]", "record 1 is not an object"),
        ('[{"id": 1, "reformulated_tasks": "x"}]', "did you mean"),
        ('[{"id": 1, "reformulated_task": " "}]', "record 1"),
    ):
        with pytest.raises(DataError, match=said):
            load_public_tasks(written(tmp_path, content))
    with pytest.raises(UserError, match="no task file"):
        load_public_tasks(tmp_path / "nothing.json")
    with pytest.raises(UserError, match="two tasks have the id 'public-007'"):
        load_public_tasks(written(tmp_path, [record(), record()]))


_JSON = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=12)
    | st.lists(st.integers(), max_size=2)
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.dictionaries(st.sampled_from(PUBLIC_KEYS), _JSON))
def test_odd_values_never_break_the_loader(tmp_path, values):
    try:
        (task,) = load_public_tasks(written(tmp_path, [values]))
    except DataError as error:
        assert "record 1" in str(error)
    else:
        assert task.formal == values["reformulated_task"]


def test_what_a_public_task_needs_and_does_not_get_is_said(tmp_path):
    texts = {
        1: "Buy when the price of 45,000 is crossed. Sell 5 % below.",
        2: "Buy on positive news sentiment.",
        3: "A pairs trading strategy on two stocks.",
        4: "Buy when RSI(14) is below 30 and sell above 70, stop at 2 %.",
    }
    records = [
        record(id=number, reformulated_task=text, timeframe="30m") for number, text in texts.items()
    ]
    file = written(tmp_path, records)
    found = {task.id: " ".join(task.lacks) for task in load_public_tasks(file)}
    assert "price levels" in found["public-001"] and "external data" in found["public-002"]
    assert "several assets" in found["public-003"]
    assert not any(word in found["public-004"] for word in ("price levels", "external", "several"))
    assert {task.timeframe for task in load_public_tasks(file)} == {"30m"}
