"""What is common to all connectors: the registry, options, extras, and the guard of these tests."""

import socket
import sys
from pathlib import Path

import msgspec
import pytest

from tradeassay.core.errors import MissingExtra, UserError
from tradeassay.data import connectors
from tradeassay.data.datasets import fetch_dataset, make_source
from tradeassay.data.source import sources

NAMES = ("akshare", "baostock", "ccxt", "yfinance")
EXTRAS = {"akshare": "ashare", "baostock": "ashare", "ccxt": "crypto", "yfinance": "us"}
OPTIONS = {
    "akshare": {"symbols": ["600000"]},
    "baostock": {"symbols": ["600000"]},
    "ccxt": {"symbols": ["BTC/USDT"]},
    "yfinance": {"symbols": ["AAPL"]},
}


@pytest.mark.parametrize("name", NAMES)
def test_registered_with_a_frozen_config_a_summary_and_an_extra(name):
    source = sources.get(name)
    assert source.extra == EXTRAS[name]
    assert source.summary and "\n" not in source.summary
    config = source.Config(**OPTIONS[name], first="2024-01-02")
    with pytest.raises(AttributeError):
        config.first = "2020-01-01"
    assert isinstance(make_source(name, {**OPTIONS[name], "first": "2024-01-02"}), source)


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_library_names_the_extra(name, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, name, None)
    options = {**OPTIONS[name], "first": "2024-01-02", "last": "2024-01-05"}
    with pytest.raises(MissingExtra, match=rf"tradeassay\[{EXTRAS[name]}\]"):
        fetch_dataset(name, "panel", options, home=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"symbols": ["A"]}, "required field `first`"),
        ({"symbols": "A", "first": "2024-01-02"}, r"Expected `array`.*\$.symbols"),
        ({"symbols": ["A", "A"], "first": "2024-01-02"}, "asked twice for A"),
        ({"symbols": ["SPY"], "indices": ["SPY"], "first": "2024-01-02"}, "asked twice for SPY"),
        ({"symbols": ["A"], "first": "02.01.2024"}, "is not a date"),
        ({"symbols": ["A"], "first": "2024-01-02", "last": "2024-01-01"}, "lies before first"),
    ],
)
def test_wrong_options_are_named(options, message):
    with pytest.raises(UserError, match=message):
        make_source("yfinance", options)


def test_symbols_are_a_list_with_something_in_it():
    with pytest.raises(UserError, match=r"write \('AAPL',\)"):
        connectors.YFinanceConfig(symbols="AAPL", first="2024-01-02")
    for name in ("akshare", "ccxt", "yfinance"):
        source = sources.get(name)
        with pytest.raises(UserError, match="no symbols"):
            source(source.Config(first="2024-01-02", last="2024-01-05")).load()


def test_the_query_can_be_asked_again():
    config = connectors.CcxtConfig(symbols=("BTC/USDT",), first="2024-01-02", exchange="kraken")
    from tradeassay.core.hashing import canonical_json

    assert msgspec.json.decode(canonical_json(config), type=connectors.CcxtConfig) == config


def test_the_guard_lets_nobody_out():
    with socket.socket() as one, pytest.raises(AssertionError, match="connects to"):
        one.connect(("192.0.2.1", 80))
    with pytest.raises(AssertionError, match="connects to"):
        socket.create_connection(("192.0.2.1", 80), timeout=0.1)


def test_every_option_is_on_the_page():
    page = (Path(__file__).parents[3] / "docs" / "howto" / "fetch-live-data.md").read_text()
    for name in NAMES:
        assert f"`{name}`" in page
        for field in msgspec.structs.fields(sources.get(name).Config):
            assert f"`{field.name}`" in page, f"{name}'s option {field.name} is not explained"
