"""Programs on frames that look ahead, written before the check was read: a reward without a judge pays none.

One with a judge asks on some rows only: it pays none but some of those that peek on a row of their choice.
"""

from collections.abc import Iterator

import pytest

from tradeassay.benchmarks.quantcode import load_task
from tradeassay.code.reward import reward
from tradeassay.code.running import open_code_executor
from tradeassay.sandbox import JobExecutor, SandboxRefused

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
    "zero-phase filter": (
        "from scipy.signal import butter, filtfilt\n"
        "    own[:] = (close < filtfilt(*butter(2, 0.2), close)) * 1.0 if len(close) > 12 else 0.0"
    ),
    "local polynomial": (
        "from scipy.signal import savgol_filter\n"
        "    own[:] = (savgol_filter(close, 7, 2, deriv=1) > 0) * 1.0 if len(close) > 7 else 0.0"
    ),
    "central differences": (
        "own = pd.Series((np.gradient(close.to_numpy()) > 0) * 1.0, frame.index) if len(close) > 1 else own"
    ),
    "detrended": (
        "from scipy.signal import detrend\n    own = pd.Series((detrend(close) < 0) * 1.0, frame.index)"
    ),
    "low frequencies": (
        "f = np.fft.rfft(close)\n    f[12:] = 0\n"
        "    own = pd.Series((np.fft.irfft(f, len(close)) > close) * 1.0, frame.index) if len(close) > 3 else own"
    ),
    "swing lows": (
        "from scipy.signal import argrelextrema\n    at = argrelextrema(close.to_numpy(), np.less, order=3)[0]\n"
        "    own[:] = np.isin(np.arange(len(close)), at) * 1.0\n    own = own.rolling(5, min_periods=1).max()"
    ),
    "matched forward": (
        "weeks = close[frame.index.dayofweek == 4].rename('later').reset_index()\n"
        "    met = pd.merge_asof(frame.reset_index(), weeks, on=weeks.columns[0], direction='forward')\n"
        "    own = pd.Series((met['later'] > met['close']).to_numpy() * 1.0, frame.index)"
    ),
    "equal bins of all": "own = (pd.cut(close, 5, labels=False) < 2).astype(float)",
    "clusters of all": (
        "from scipy.cluster.vq import kmeans2\n    r = close.pct_change().fillna(0.0).to_numpy()[:, None]\n"
        "    own = pd.Series(kmeans2(r, 2, seed=1, minit='points')[1] * 1.0, frame.index) if len(r) > 9 else own"
    ),
    "size of the next move": "own = own.where(close.pct_change().abs().shift(-1).fillna(0.0) < 0.012, 0.0)",
    "next volume alone": "own = own.where(~(frame['volume'].shift(-1) > 1.2 * frame['volume']), 0.0)",
    "drawdown to come": "own = (close[::-1].cummin()[::-1] > 0.97 * close).astype(float)",
    "late, from row 200": (
        "ahead = (close.shift(-1) > close).astype(float)\n    own = own.where(np.arange(len(own)) < 200, ahead)"
    ),
    "at exits alone": ("out = (own.diff() < 0) & (close.shift(-1) > close)\n    own = own.where(~out, 1.0)"),
    "one row, size alone": "own.iloc[90:91] = 0.5 + 0.01 * (UP(close, 90) - 0.5)",
    "on its first call, which every call is": (
        "calls = signals.__dict__.setdefault('calls', [])\n    calls.append(len(close))\n"
        "    own = own if len(calls) > 1 else (close.shift(-1) > close).astype(float)"
    ),
    "as a bit of the target": "own = own * (1 - 1e-3 * (close.shift(-1) > close))",
}
HONEST = {
    "averages": OWN,
    "what it left in its module is no row": (
        "rows = signals.__dict__.setdefault('rows', [])\n    rows.extend(own)\n"
        "    own = pd.Series(rows, frame.index)"
    ),
    "breakout": "own = (close >= close.rolling(20).max()).astype(float)",
    "weekly, labelled right": (
        "w = close.resample('W').last().shift(1).reindex(frame.index, method='ffill')\n"
        "    own = (close > w).astype(float)"
    ),
    "expanding rank": "own = (close.expanding().rank(pct=True) > 0.6).astype(float)",
    "by volume": "own = (frame['volume'] > frame['volume'].rolling(20).quantile(0.6)).astype(float)",
    "exponential": "own = (close > close.ewm(span=15).mean()).astype(float)",
    "causal filter": (
        "from scipy.signal import lfilter\n    own[:] = (close > lfilter([0.2], [1, -0.8], close)) * 1.0"
    ),
    "nothing on short tables": "own = own if len(close) > 9 else pd.Series(0.0, frame.index)",
    "months so far": (
        "m = close.groupby([frame.index.year, frame.index.month]).cummax()\n    own = (close >= m).astype(float)"
    ),
    "bins of the past": "own = (close.rolling(60, min_periods=5).rank(pct=True) < 0.5).astype(float)",
}


@pytest.fixture(scope="module")
def pool() -> Iterator[JobExecutor]:
    """The sandbox that rewards run in, with everything that programs are promised."""
    try:
        opened = open_code_executor()
    except SandboxRefused as refused:
        pytest.skip(str(refused))
    with opened:
        yield opened


def _source(line: str) -> str:
    body = f"    close = frame['close']\n    {OWN}\n    {line}\n    return own.fillna(0.0)\n"
    return f"import numpy as np\nimport pandas as pd\n\n\n{UP}\n\ndef signals(frame):\n{body}"


def _paid(pool: JobExecutor, line: str, secret: str) -> float | None:
    return reward(TASK, _source(line), executor=pool, framework="frame", secret=secret).value


SAMPLE = ("length, whole table", "one row by number", "one exit")


@pytest.mark.parametrize("name", [pytest.param(n, marks=() if n in SAMPLE else pytest.mark.slow) for n in LEAKS])
def test_a_leak_is_not_paid(pool, name):
    assert _paid(pool, LEAKS[name], "5e" * 16) == 0.0


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n == "averages" else pytest.mark.slow) for n in HONEST]
)
def test_an_honest_program_is_paid(pool, name):
    assert _paid(pool, HONEST[name], "5e" * 16) == 1.0


FEW = frozenset({"one row by number", "one row by volume", "one row by price", "one row, size alone"})
"""Peeks on one row: a judged reward meets them with a part of the secrets (``perf/reward_leaks.py --judged``)."""


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n in SAMPLE else pytest.mark.slow) for n in LEAKS if n not in FEW]
)
def test_a_leak_is_not_paid_by_a_judged_reward(pool, name):
    source = _source(LEAKS[name])
    assert reward(TASK, source, "behaviour", executor=pool, framework="frame", secret="5e" * 16).value == 0.0


AT_DECISIONS = {
    "on every entry": "at = np.flatnonzero((own.diff() > 0).to_numpy())",
    "on one entry": "at = np.flatnonzero((own.diff() > 0).to_numpy())[2:3]",
    "before an entry": "at = np.flatnonzero((own.diff() > 0).to_numpy())[3:4] - 1",
    "after an entry": "at = np.flatnonzero((own.diff() > 0).to_numpy())[1:2] + 1",
    "on one exit": "at = np.flatnonzero((own.diff() < 0).to_numpy())[1:2]",
    "before an exit": "at = np.flatnonzero((own.diff() < 0).to_numpy())[2:3] - 1",
}


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=() if n == "on one exit" else pytest.mark.slow) for n in AT_DECISIONS]
)
@pytest.mark.parametrize("secret", ["5e", "77"])
def test_a_peek_where_the_task_decides_is_met_whatever_the_secret(pool, name, secret):
    """The reference itself, which decides by the next close on rows that matter."""
    assert TASK.frame is not None
    honest = TASK.frame.reference.replace("def signals(", "def _own(")
    body = (
        "    close = frame['close']\n    own = pd.Series(_own(frame), frame.index).astype(float)\n"
        f"    {AT_DECISIONS[name]}\n    for row in at:\n        own.iloc[row] = UP(close, row)\n"
    )
    source = (
        f"import numpy as np\nimport pandas as pd\n{honest}\n\n{UP}\n\ndef signals(frame):\n{body}    return own\n"
    )
    assert reward(TASK, source, "behaviour", executor=pool, framework="frame", secret=secret * 16).value == 0.0
