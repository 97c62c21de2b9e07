"""Counting without a tokenizer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llm_asking import PLAIN, SUBMIT

from tradeassay.llm import estimate_request, estimate_tokens, most_request, most_tokens

PROSE = (
    "Momentum is the tendency of assets that have performed well over the past year to continue to do so, and it "
    "has been documented in equities, bonds, currencies and commodities across many countries and decades."
)
JSON = '{"symbol":"AAPL","open":187.25,"closes":[185.1,186.42,184.9,187.77,188.01,186.5,187.0],"position":null}'


def test_estimates_are_about_right() -> None:
    # 36 words; a JSON text full of numbers has a token for about every two characters
    assert 30 <= estimate_tokens(PROSE) <= 45
    assert 45 <= estimate_tokens(JSON) <= 75
    assert estimate_tokens("") == 0


@given(st.text())
def test_the_bound_is_bytes_and_never_below_the_estimate(text: str) -> None:
    assert most_tokens(text) == len(text.encode("utf-8", "surrogatepass"))
    assert estimate_tokens(text) <= most_tokens(text) + 1


@pytest.mark.parametrize("request_", [PLAIN, SUBMIT])
def test_a_request_counts_its_tools_and_frames(request_: object) -> None:
    assert 0 < estimate_request(request_) < most_request(request_)  # type: ignore[arg-type]


def test_tools_cost() -> None:
    assert most_request(SUBMIT) > most_request(PLAIN) + sum(len(tool.schema) for tool in SUBMIT.tools)
