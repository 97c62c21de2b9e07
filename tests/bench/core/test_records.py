"""Events, decisions, measures and hashes: what is written is what is read."""

import pickle
import subprocess
import sys

import msgspec
import pytest
from hypothesis import given, strategies as st

from tradeassay.core.errors import DataError, MissingExtra, TradeassayError, require
from tradeassay.core.hashing import canonical_json, sha256_of
from tradeassay.core.measure import Measure, not_scored
from tradeassay_bench.core.events import (
    ENCODER,
    STEP_DECODER,
    Event,
    Filled,
    Marked,
    Rejected,
    StepRecord,
)
from tradeassay_bench.core.orders import Decision, Order

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(amount=finite, price=finite, text=st.text(max_size=30))
def test_a_step_survives_the_journal_to_the_bit(amount, price, text):
    events: tuple[Event, ...] = (
        Filled("0.0", "AAA", amount, price, price, 0.0, 0.0, -price),
        Rejected("0.1", text, "lot", text),
        Marked(price, amount, price, ("AAA",)),
    )
    decision = Decision(orders=(Order(symbol=text, amount=amount, side="BUY"),), reason=text)
    record = StepRecord(
        step=0, session="2025-03-03", decided_at=1, opening=(), decision=decision, events=events
    )
    line = ENCODER.encode(record)
    assert b"\n" not in line
    assert STEP_DECODER.decode(line) == record
    assert ENCODER.encode(STEP_DECODER.decode(line)) == line


def test_records_cannot_be_changed():
    assert all(
        kind.__struct_config__.frozen for kind in (*Event.__args__, Decision, Order, StepRecord)
    )
    with pytest.raises(AttributeError):
        Decision().reason = "later"  # type: ignore[misc]


def test_a_measure_has_a_value_or_a_reason_never_both_or_neither():
    assert not_scored("no index").value is None
    with pytest.raises(ValueError, match="either a value or a reason"):
        Measure(value=None)
    with pytest.raises(ValueError, match="either a value or a reason"):
        Measure(value=1.0, reason="why")


def test_canonical_json_does_not_depend_on_key_order():
    assert canonical_json({"b": 1, "a": 2}) == canonical_json({"a": 2, "b": 1}) == b'{"a":2,"b":1}'
    assert sha256_of({"b": 1, "a": 2}) == sha256_of({"a": 2, "b": 1})
    assert sha256_of(1.0) != sha256_of(1.5)


def test_errors_keep_their_mend_across_processes():
    error = pickle.loads(pickle.dumps(DataError("no file x", hint="make one")))
    assert type(error) is DataError
    assert (error.message, error.hint) == ("no file x", "make one")
    assert str(error) == "no file x (make one)"


def test_a_missing_extra_is_named():
    with pytest.raises(MissingExtra, match=r"pip install 'tradeassay\[moon\]'"):
        require("no_such_module_anywhere", "moon")
    assert require("msgspec", "moon") is msgspec
    assert issubclass(MissingExtra, TradeassayError)


_DECLARED = """
from typing import Annotated
import msgspec

{before}
from tradeassay_bench.core.dialogue import schema_text

class Answer(msgspec.Struct):
    weight: Annotated[float, msgspec.Meta(ge=0, le=1)]
    size: Annotated[float, msgspec.Meta(gt=0.5)] = 1.0

print(schema_text(Answer))
"""


@pytest.mark.parametrize(
    "before",
    [
        "",
        "Annotated[float, msgspec.Meta(ge=0.0, le=1.0)]",
        "Annotated[float, msgspec.Meta(ge=0, le=1.0)]",
    ],
)
def test_bounds_are_written_one_way(before):
    said = subprocess.run(
        [sys.executable, "-c", _DECLARED.format(before=before)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert '"minimum":0,' in said
    assert '"maximum":1}' in said
    assert '"exclusiveMinimum":0.5' in said
    assert '"default":1.0' in said, "a default is a value, not a bound"
