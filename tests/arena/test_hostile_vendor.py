"""A vendor that lies: which bars hold their round at first sight, with a second source and without
one.

What gets through without a second source is what one series cannot tell: a tick that is wrong by
less than the limit, another symbol's bar of about the same price. The shares are printed in
docs/evidence/arena.md.
"""

import math
import random
from collections.abc import Callable

from tradeassay_arena.rounds.feed import AssetFacts, VendorBar, doubt
from tradeassay_arena.season import Asset, PriceRules

ALONE = Asset(symbol="ONE", kind="stock", dataset="live/a")
PAIRED = Asset(symbol="ONE", kind="stock", dataset="live/a", second="b")
RULES = PriceRules()


def bar(close: float, drawn: random.Random, /, **changed: float) -> dict[str, float]:
    spread = close * abs(drawn.gauss(0, 0.01)) if math.isfinite(close) else 0.0
    volume = round(drawn.uniform(1e5, 1e7))
    made = {
        "open": close,
        "high": close + spread,
        "low": close - spread,
        "close": close,
        "volume": volume,
    }
    return made | changed


Lie = Callable[[float, dict[str, float], random.Random], dict[str, float]]
LIES: dict[str, Lie] = {
    "honest": lambda true, before, drawn: bar(true, drawn),
    "not a number": lambda true, before, drawn: bar(true, drawn, close=math.nan),
    "negative": lambda true, before, drawn: bar(-true, drawn),
    "zero": lambda true, before, drawn: bar(true, drawn, close=0.0),
    "close outside the range": lambda true, before, drawn: bar(
        true, drawn, high=true * 0.98, low=true * 0.97
    ),
    "stale repeat": lambda true, before, drawn: dict(before),
    "wrong tick, times 10": lambda true, before, drawn: bar(
        true * drawn.choice((10.0, 0.1, 95.0)), drawn
    ),
    "split told late": lambda true, before, drawn: bar(
        true / drawn.choice((2.0, 3.0, 10.0)), drawn
    ),
    "wrong tick, 5 to 30 %": lambda true, before, drawn: bar(
        true * (1 + drawn.choice((-1, 1)) * drawn.uniform(0.05, 0.3)), drawn
    ),
    "another symbol's bar": lambda true, before, drawn: bar(
        before["close"] * math.exp(drawn.gauss(0, 1.0)), drawn
    ),
}
"""The bar that a vendor gives for a session that closed at ``true``."""


def through(kind: str, *, second: bool, tries: int = 300) -> float:
    """Return the share of bars that are believed at first sight."""
    drawn, passed = random.Random(kind), 0
    for _ in range(tries):
        last = 100 * math.exp(drawn.gauss(0, 0.5))
        true = last * math.exp(drawn.gauss(0, 0.02))
        before = bar(last, drawn)
        given = LIES[kind](true, before, drawn)
        told = VendorBar(
            **given, previous=VendorBar(**before), second=true * 1.001 if second else None
        )
        rest = {
            "history": (),
            "momentum": None,
            "news": (),
            "annual_report": None,
            "quarterly_report": None,
        }
        facts = AssetFacts(price=given["close"], bar=told, **rest)
        passed += doubt(PAIRED if second else ALONE, facts, RULES) is None
    return passed / tries


def test_what_cannot_be_true_never_gets_through_and_honest_bars_are_believed():
    believed = {
        kind: (through(kind, second=False), through(kind, second=True)) for kind in list(LIES)[:8]
    }
    assert believed.pop("honest") == (1.0, 1.0)
    assert believed == dict.fromkeys(believed, (0.0, 0.0))


def test_a_second_source_catches_what_one_series_cannot():
    assert through("wrong tick, 5 to 30 %", second=False) == 1.0  # such days happen
    assert through("wrong tick, 5 to 30 %", second=True) == 0.0
    assert 0.1 < through("another symbol's bar", second=False) < 0.5
    assert through("another symbol's bar", second=True) < 0.05
