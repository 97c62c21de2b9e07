"""The compiled form of semantics decides what the interpreter of the same semantics does."""

import json

import numpy as np
import pytest

from tradeassay.account.shares import DecisionList
from tradeassay.benchmarks.systrade import STRATEGIES, load_semantics
from tradeassay.code.bars import make_bars
from tradeassay.code.semantics.compiler import Kernel, KernelTape, run_compiled
from tradeassay.code.semantics.interpreter import Semantics, check_semantics, interpret, read_semantics
from tradeassay.code.sweep import spread_parameters
from tradeassay.core.errors import UserError


def tape_and_feeds(spec: Semantics, timeframe: str, seed: int):
    legs = spec.inputs.legs
    market = "pairs" if len(legs) == 2 else ("us", "crypto", "trend", "volatile")[seed % 4]
    bars = make_bars(market, timeframe, len(legs), 300 if timeframe == "1d" else 1700, seed)
    feeds = {leg: bars.feeds[asset] for leg, asset in zip(legs, bars.feeds, strict=True)}
    return feeds, bars.times, KernelTape(feeds, legs, bars.times)


def same(fast: DecisionList, slow: DecisionList, where: object = None) -> None:
    assert fast.row.tolist() == slow.row.tolist(), where
    assert fast.leg.tolist() == slow.leg.tolist(), where
    assert fast.signal.tolist() == slow.signal.tolist(), where
    assert fast.fraction == pytest.approx(slow.fraction, rel=1e-9), where


@pytest.mark.parametrize("id", STRATEGIES)
def test_every_strategy_decides_as_the_interpreter(id):
    spec = load_semantics(id)
    for timeframe in spec.inputs.timeframes:
        for seed, variant in enumerate(spread_parameters(spec, 2, seed=5)):
            feeds, times, tape = tape_and_feeds(spec, timeframe, seed)
            slow = interpret(spec, feeds, times, parameters=variant)
            same(run_compiled(spec, tape, variant), slow, (timeframe, seed))


def made(indicators: dict[str, str], rules: list[dict[str, object]], **other: object) -> Semantics:
    body = {
        "id": "made",
        "version": 1,
        "title": "Made",
        "inputs": {"legs": ["X", "Y"], "timeframes": ["1d"]},
        "parameters": {"n": {"value": 5, "kind": "int"}, "close": {"value": 0.5, "kind": "float"}},
        "indicators": indicators,
        "states": ["flat", "in"],
        "registers": {"seen": 0.0},
        "rules": rules,
        "constraints": {"max_exposure": 2.0, "max_trades_per_bar": 2},
        "conventions": {},
        **other,
    }
    found = read_semantics(json.dumps(body).encode())
    check_semantics(found)
    return found


def rule(id: str, given: str, when: str, to: str, target: dict[str, str], **sets: str) -> dict[str, object]:
    return {"id": id, "from": [given], "when": when, "to": to, "signal": id, "target": target, "set": sets}


IN, OUT = {"X": "close", "Y": "-held_X - close / 2"}, {"X": "0", "Y": "0"}
ODD = {
    "windows over expressions": """a: mean(X.close - Y.close, n); b: sum(abs(X.close - X.open), n + 1);
        c: std(prev(a, 2), n, 0) | c > 0 and a < b * 999 | not (a < b) or c != c or row > 40""",
    "windows over windows": """a: highest(X.high, n); b: lowest(a, n); c: prev(prev(b, 1), n)
        | X.close >= b | c > X.close""",
    "means of means": """a: ema(X.close, n); b: wilder(prev(a, 1), 3); c: ema(b - a, 4)
        | a > b and c < 0 | isnan(c) or a <= b <= X.high""",
    "sessions": """a: day_high(X.high, 2) - day_low(X.low); b: day_open(X.open) + close * a; c: low_so_far(X.low);
        day: day_close(X.close) - day_min_close(X.close, 2) + day_max_close(X.close)
        | X.close > b - 9 * a and not (session_first and row < 9) | session_last or c < day""",
    "nothing known": "a: where(isnan(prev(X.close, n)), row, 0) | a > 2 | row > 20 and max(a, seen) == seen",
    "two lengths": """a: mean(X.close, n); b: mean(X.close, 9)
        | X.close > a or X.close < b | X.close < a and X.close < b""",
}
"""Indicators, when to go in, when to go out."""


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("timeframe", ["1d", "1h"])
def test_the_whole_language_compiles(name, timeframe):
    given, enter, leave = (part.strip() for part in ODD[name].split("|"))
    indicators = dict(one.strip().split(": ") for one in given.split(";"))
    rules = [
        rule("leave", "in", leave, "flat", OUT, seen="seen + 1"),
        rule("enter", "flat", enter, "in", IN, seen="row"),
    ]
    spec = made(indicators, rules)
    for seed in (1, 2):
        bars = make_bars("pairs", timeframe, 2, 260, seed)
        feeds = dict(zip(("X", "Y"), bars.feeds.values(), strict=True))
        slow = interpret(spec, feeds, bars.times)
        assert len(slow) >= 2
        same(run_compiled(spec, KernelTape(feeds, ("X", "Y"), bars.times)), slow, seed)


def test_what_cannot_be_compiled_or_aimed_at_is_said():
    spec = load_semantics("double-ma")
    tape = tape_and_feeds(spec, "1d", 1)[2]
    with pytest.raises(UserError, match="no parameter 'colour'"):
        run_compiled(spec, tape, {"colour": 1.0})
    with pytest.raises(UserError, match="volume"):
        Kernel(made({"a": "mean(X.volume, n)"}, [rule("enter", "flat", "a > 0", "in", IN)])).source()
    lost = made({"a": "prev(X.close, 99) * 0"}, [rule("enter", "flat", "row > 3", "in", {"X": "a"})])
    bars = make_bars("pairs", "1d", 2, 20, 1)
    feeds = dict(zip(("X", "Y"), bars.feeds.values(), strict=True))
    with pytest.raises(UserError, match="has no target in bar 4"):
        interpret(lost, feeds, bars.times)
    with pytest.raises(UserError, match="has no target in bar 4"):
        run_compiled(lost, KernelTape(feeds, ("X", "Y"), bars.times))
    gap = {**feeds, "X": {**feeds["X"], "close": np.where(np.arange(20) == 3, np.nan, feeds["X"]["close"])}}
    with pytest.raises(UserError, match="a close is missing"):
        KernelTape(gap, ("X", "Y"), bars.times)
