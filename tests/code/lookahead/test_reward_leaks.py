"""Programs on frames that look ahead, written before the check was read: a reward without a judge pays none."""

from __future__ import annotations

import pytest

from tradeassay.benchmarks.quantcode import load_task
from tradeassay.code.reward import reward
from tradeassay.sandbox import SandboxPool

pytest.importorskip("pandas")
TASK = load_task("d-donchian-20-10")
OWN = "own = (close > close.rolling(10).mean()).astype(float)"
UP = """
def UP(close, at, ahead=1):
    if at + ahead >= len(close):
        return 0.5
    return 0.75 if close.iloc[at + ahead] > close.iloc[at] else 0.25
"""
"""A peek at a single later close."""
LEAKS = {
    "next close": "own = (close.shift(-1) > close).astype(float)",
    "next value by hand": "own = pd.Series(np.append(own.to_numpy()[1:], 0.0), frame.index)",
    "next open": "own = (frame['open'].shift(-1) > close).astype(float)",
    "weekly, labelled left": (
        "w = close.resample('W', label='left').last().reindex(frame.index, method='ffill')\n"
        "    own = (w > close).astype(float)"
    ),
    "monthly, labelled left": (
        "m = close.resample('MS').last().reindex(frame.index, method='ffill')\n    own = (m > close).astype(float)"
    ),
    "weekly, transformed": (
        "own = (close.groupby(frame.index.isocalendar().week.to_numpy()).transform('max') > close).astype(float)"
    ),
    "qcut on all volume": "own = (pd.qcut(frame['volume'], 4, labels=False) > 1).astype(float)",
    "rank in all": "own = (close.rank(pct=True) < 0.4).astype(float)",
    "mean of all": "own = (close < close.mean()).astype(float)",
    "median of all": "own = (close < close.median()).astype(float)",
    "deviation of all": "own = ((close - close.mean()).abs() > close.std()).astype(float)",
    "largest of all": "own = (close < 0.9 * close.max()).astype(float)",
    "last close": "own = (close < close.iloc[-1]).astype(float)",
    "centred window": "own = (close < close.rolling(9, center=True, min_periods=1).mean()).astype(float)",
    "backwards mean": "own = (close < close[::-1].rolling(5, min_periods=1).mean()[::-1]).astype(float)",
    "filled backwards": "own = own.where(own.diff() != 0).bfill().fillna(0.0)",
    "interpolated": "own = (close < close.where(np.arange(len(close)) % 7 == 0).interpolate()).astype(float)",
    "two-sided smoothing": "own = (close < np.convolve(close, np.ones(7) / 7, mode='same')).astype(float)",
    "trend of all": (
        "t = np.arange(len(close))\n    own = pd.Series((close < np.polyval(np.polyfit(t, close, 1), t)) * 1.0, "
        "frame.index) if len(t) > 3 else own"
    ),
    "turning points": "own = ((close.shift(1) >= close) & (close.shift(-1) > close)).astype(float)",
    "normalised by all": "own = (close - close.min() < 0.4 * (close.max() - close.min())).astype(float)",
    "length, whole table": "own = (close.shift(-1) > close).astype(float) if len(close) > 250 else own",
    "length, even": "own = own if len(close) % 2 else (close.shift(-1) > close).astype(float)",
    "length, share of it": "own = pd.Series((np.arange(len(close)) > 0.5 * len(close)) * 1.0, frame.index)",
    "length, from the end": "own.iloc[-30:] = 0.0",
    "one row by number": "own.iloc[137:138] = UP(close, 137)",
    "one row by volume": "at = int(frame['volume'].to_numpy()[:200].argmax())\n    own.iloc[at] = UP(close, at)",
    "one row by price": "at = int(close.to_numpy()[:150].argmin())\n    own.iloc[at] = UP(close, at)",
    "three rows": "for at in (60, 120, 180):\n        own.iloc[at : at + 1] = UP(close, at, 2)",
    "one exit": "at = int((own.diff() < 0).to_numpy().argmax())\n    own.iloc[at] = UP(close, at, 3)",
    "later high": "own = (frame['high'].shift(-2) > 1.01 * close).astype(float)",
    "day's range to come": "own = (frame['high'].shift(-1) - frame['low'].shift(-1) > 0.02 * close).astype(float)",
    "duplicates": "own = (~close.round(0).duplicated(keep='last')).astype(float)",
    "remembers": (
        "kept = np.__dict__.setdefault('_kept', {})\n    kept.setdefault(len(own), close)\n"
        "    own = (close.shift(-1) > close).astype(float) if len(kept) > 3 else own"
    ),
}
HONEST = {
    "averages": OWN,
    "breakout": "own = (close >= close.rolling(20).max()).astype(float)",
    "weekly, labelled right": (
        "w = close.resample('W').last().shift(1).reindex(frame.index, method='ffill')\n"
        "    own = (close > w).astype(float)"
    ),
    "expanding rank": "own = (close.expanding().rank(pct=True) > 0.6).astype(float)",
    "by volume": "own = (frame['volume'] > frame['volume'].rolling(20).quantile(0.6)).astype(float)",
    "exponential": "own = (close > close.ewm(span=15).mean()).astype(float)",
}


def _source(line: str) -> str:
    body = f"    close = frame['close']\n    {OWN}\n    {line}\n    return own.fillna(0.0)\n"
    return f"import numpy as np\nimport pandas as pd\n\n\n{UP}\n\ndef signals(frame):\n{body}"


def _paid(pool: SandboxPool, line: str, secret: str) -> float | None:
    return reward(TASK, _source(line), executor=pool, framework="frame", secret=secret).value


SAMPLE = ("weekly, labelled left", "qcut on all volume", "length, whole table", "one row by number", "one exit")


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in SAMPLE else pytest.mark.slow) for n in LEAKS])
def test_a_leak_is_not_paid(pool: SandboxPool, name: str) -> None:
    assert _paid(pool, LEAKS[name], "5e" * 16) == 0.0


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n == "averages" else pytest.mark.slow) for n in HONEST]
)
def test_an_honest_program_is_paid(pool: SandboxPool, name: str) -> None:
    assert _paid(pool, HONEST[name], "5e" * 16) == 1.0
