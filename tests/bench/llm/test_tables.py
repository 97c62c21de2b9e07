"""Prices and cutoffs: dated, sourced, overridable, and unknown when unknown."""

from datetime import date

import pytest
from hypothesis import given, strategies as st
from llm_asking import PLAIN, SUBMIT

from tradeassay.core.errors import UserError
from tradeassay_bench.llm import (
    Price,
    Tokens,
    estimate_request,
    estimate_tokens,
    load_cutoffs,
    load_prices,
    most_request,
    most_tokens,
)
from tradeassay_bench.llm.prompting import PromptFolder, answer_object


def test_every_entry_says_where_and_when():
    prices = load_prices().prices
    cutoffs = load_cutoffs().cutoffs
    assert len(prices) > 30 and len(cutoffs) > 30
    for entry in (*prices.values(), *cutoffs.values()):
        assert entry.source and date(2024, 1, 1) < entry.as_of < date(2030, 1, 1)
    for name, price in prices.items():
        assert price.input <= price.output, name
        assert price.cache_read is None or price.cache_read < price.input, name
    for name, cutoff in cutoffs.items():
        assert date(2020, 1, 1) < cutoff.last_day < cutoff.as_of, name


def test_lookup():
    prices = load_prices()
    assert prices.of("openai/gpt-4o") is prices.of("openai/gpt-4o-2024-11-20")
    assert prices.of("openai/gpt-4o-2024-05-13") is not prices.of("openai/gpt-4o")
    assert prices.of("anthropic/claude-3-5-haiku-20241022") is prices.of(
        "anthropic/claude-3-5-haiku-latest"
    )
    assert prices.of("openai/gpt-99") is None
    assert prices.of("openrouter/openai/gpt-4o") is None  # somebody else's price list
    free = prices.of("scripted/sensible")
    assert free is not None and free.usd(Tokens(plain=10**6, output=10**6)) == 0.0
    cutoffs = load_cutoffs()
    assert cutoffs.of("openrouter/openai/gpt-4o") is cutoffs.of("openai/gpt-4o")
    assert cutoffs.of("openai/gpt-99") is None and cutoffs.of("nothing") is None


def test_arithmetic():
    price = Price(
        input=3.0, output=15.0, cache_read=0.3, cache_write=3.75, source="x", as_of=date(2025, 1, 1)
    )
    tokens = Tokens(plain=1000, cache_read=2000, cache_write=400, output=100)
    assert tokens.input == 3400
    assert price.usd(tokens) == pytest.approx((3000 + 600 + 1500 + 1500) / 1e6)
    assert price.worst_usd(1000, 100) == pytest.approx((3750 + 1500) / 1e6)
    limited = Price(input=1.0, output=1.0, input_limit=100, source="x", as_of=date(2025, 1, 1))
    assert limited.usd(Tokens(plain=100)) is not None and limited.usd(Tokens(plain=101)) is None


def test_a_file_of_ones_own(tmp_path):
    path = tmp_path / "prices.toml"
    path.write_text(
        '[prices."openai/gpt-99"]\ninput = 1\noutput = 2.5\nsource = "my contract"\nas_of = '
        "2026-01-01\n"
        '[prices."openai/gpt-4o"]\ninput = 0.5\noutput = 1\nsource = "my contract"\nas_of = '
        "2026-01-01\n"
        '[cutoffs."openai/gpt-99"]\nlast_day = 2026-05-31\nsource = "a guess"\nas_of = 2026-06-01\n'
    )
    prices = load_prices(path)
    ours, theirs = prices.of("openai/gpt-99"), prices.of("openai/gpt-4o")
    assert ours is not None and ours.output == 2.5
    assert theirs is not None and theirs.input == 0.5 and theirs.cache_read is None
    assert prices.of("openai/gpt-4o-mini") == load_prices().of("openai/gpt-4o-mini")
    cutoff = load_cutoffs(path).of("openai/gpt-99")
    assert cutoff is not None and cutoff.last_day == date(2026, 5, 31)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[prices", "not a TOML"),
        ('[prices."a/b"]\ninput = 1\n', "missing required field"),
        ('[prices."a/b"]\ninput = -1\noutput = 1\nsource = ""\nas_of = 2026-01-01\n', ">= 0.0"),
        (
            '[prices."a/b"]\ninput = 1\noutput = 1\nsource = ""\nas_of = 2026-01-01\nper = "k"\n',
            "unknown field",
        ),
        ("prices = 3\n", "is not a table"),
    ],
)
def test_a_bad_file_is_named(tmp_path, text, complaint):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=r"mine\.toml") as caught:
        load_prices(path)
    assert complaint in str(caught.value)
    with pytest.raises(UserError, match="cannot read"):
        load_prices(tmp_path / "absent.toml")


def test_the_lines_to_add_are_read_from_the_user_s_own_file(tmp_path, monkeypatch):
    from tradeassay_bench.llm.tables import cutoff_line, own_file, price_line

    monkeypatch.setenv("TRADEASSAY_HOME", str(tmp_path))
    assert load_prices().of("new/model") is None
    price = price_line("new/model").replace("DOLLARS_PER_MILLION", "2.0")
    cutoff = cutoff_line("new/model").replace("YYYY-MM-DD", "2026-03-31")
    own_file().write_text(f"{price}\n{cutoff}\n")
    found = load_prices().of("new/model")
    assert found is not None and (found.input, found.output) == (2.0, 2.0)
    known = load_cutoffs().of("new/model")
    assert known is not None and known.last_day.isoformat() == "2026-03-31"
    named = tmp_path / "named.toml"
    named.write_text(price.replace("input = 2.0", "input = 3.0"))
    over = load_prices(named).of("new/model")
    assert over is not None and over.input == 3.0
    own_file().write_text(price_line("new/model"))
    with pytest.raises(UserError, match="is not a TOML file"):
        load_prices()


PROSE = (
    "Momentum is the tendency of assets that have performed well over the past year to continue to "
    "do so, and it "
    "has been documented in equities, bonds, currencies and commodities across many countries and "
    "decades."
)
JSON = '{"symbol":"AAPL","open":187.25,"closes":[185.1,186.42,184.9,187.77,188.01,186.5,187.0],"position":null}'


def test_estimates_are_about_right() -> None:
    # 36 words; a JSON text full of numbers has a token for about every two characters
    assert 30 <= estimate_tokens(PROSE) <= 45
    assert 45 <= estimate_tokens(JSON) <= 75
    assert estimate_tokens("") == 0


@given(st.text())
def test_the_bound_is_bytes_and_never_below_the_estimate(text):
    assert most_tokens(text) == len(text.encode("utf-8", "surrogatepass"))
    assert estimate_tokens(text) <= most_tokens(text) + 1


def test_a_request_counts_its_tools_and_frames():
    for request in (PLAIN, SUBMIT):
        assert 0 < estimate_request(request) < most_request(request)
    assert most_request(SUBMIT) > most_request(PLAIN) + sum(
        len(tool.schema) for tool in SUBMIT.tools
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a": 1}', {"a": 1}),
        ('  {"b": 1}\n', {"b": 1}),
        ('```json\n{"a": 1}\n```', {"a": 1}),
        ('```\n{"a": 1}\n```\nor\n```json\n{"a": 2}\n```', {"a": 2}),
        ('```json\n{"a": 1}\n```\nsee\n```json\n{"b": 2}\n```', {"a": 1}),
        ('I say {"a": {"b": 1}} and that is it', {"a": {"b": 1}}),
        ('first {"a": 1}, no, {"a": 2}', {"a": 2}),
        ('```json\n{"a": 1\n```', None),
        ("[1, 2]", None),
        ("", None),
        ("{'a': 1}", None),
    ],
)
def test_an_answer_is_found_where_it_stands(text, found):
    assert answer_object(text, "a") == found


def test_a_folder_knows_its_files():
    folder = PromptFolder("tradeassay_bench.benchmarks.stockbench.prompts", "v1", ("news",))
    assert folder.files == ("benchmarks/stockbench/prompts/news.v1.txt",)
    assert "Nothing much." in folder.fill("news", lines="Nothing much.", days=3)
