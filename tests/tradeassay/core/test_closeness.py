"""Numbers that are computed again, and texts with such numbers in them."""

import pytest

from tradeassay_bench.core.closeness import close, close_text


@pytest.mark.parametrize(
    ("number", "other", "same"),
    [
        (0.1 + 0.2, 0.3, True),
        (1e6, 1e6 * (1 + 1e-8), False),
        (1e-17, 0.0, True),
        (1e-9, 0.0, False),
    ],
)
def test_numbers_are_the_same_to_their_last_digits(number, other, same):
    assert close(number, other) is same


@pytest.mark.parametrize(
    ("text", "other", "same"),
    [
        ('"nav": 0.30000000000000004,', '"nav": 0.3,', True),
        ('"nav": 0.3000001,', '"nav": 0.3,', False),
        ('"nav": -0.3,', '"nav": 0.3,', False),
        ('"n": 252', '"n": 253', False),
        ('"n": 10000000001', '"n": 10000000002', False),  # counts have no last digits
        ("numpy 1.10", "numpy 1.1", False),  # neither have versions
        ('"a": 0.30000000000000004', '"b": 0.3', False),
        ('"sha256": "12345e400"', '"sha256": "12345e900"', False),
        ("9e4000000000 shares", "9e5000000000 shares", False),
        ("[0.30000000000000004, 2.0]", "[0.3]", False),
    ],
)
def test_texts_are_the_same_but_for_last_digits(text, other, same):
    assert close_text(text, other) is same
