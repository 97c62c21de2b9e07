"""Programs written from the Strategy Docs alone, in two hands: right ones, and ones that are wrong in one word."""

from tradeassay.benchmarks.systrade.loading import bookkeeping, load_reference
from tradeassay.code.submission import Submission

_HEAD = """
import math
import pandas as pd


def eq(a, b):
    return abs(a - b) <= 1e-9 * max(abs(a), abs(b)) + 1e-10


def gt(a, b):
    return a == a and b == b and a > b and not eq(a, b)


def lt(a, b):
    return gt(b, a)


def ge(a, b):
    return a == a and b == b and (a > b or eq(a, b))


def le(a, b):
    return ge(b, a)


class TradingStrategy:
    def run(self, market_data, initial_capital):
        book = Book(market_data, initial_capital)
"""

# A hand that thinks in frames.
FRAMES = {
    "bollinger": """
        c = market_data["X"]["close"]
        mid = c.rolling(20).mean()
        sd = c.rolling(20).apply(lambda w: w.std(ddof=0), raw=True)
        sd = sd.where(c.rolling(20).max() > c.rolling(20).min(), 0.0).where(mid.notna())
        up, lo = mid + 2.0 * sd, mid - 2.0 * sd
        pos, entry = 0, None
        for t, p in enumerate(c):
            m, u, l = mid.iloc[t], up.iloc[t], lo.iloc[t]
            if pos == 1 and le(p, entry * (1 - 0.1)):
                pos = 0; book.aim(t, {"X": 0.0}, "STOP_LONG")
            elif pos == -1 and ge(p, entry * (1 + 0.1)):
                pos = 0; book.aim(t, {"X": 0.0}, "STOP_SHORT")
            elif pos == 1 and ge(p, m):
                pos = 0; book.aim(t, {"X": 0.0}, "EXIT_LONG")
            elif pos == -1 and le(p, m):
                pos = 0; book.aim(t, {"X": 0.0}, "EXIT_SHORT")
            elif pos == 0 and lt(p, l):
                pos, entry = 1, p; book.aim(t, {"X": 1.0}, "ENTER_LONG")
            elif pos == 0 and gt(p, u):
                pos, entry = -1, p; book.aim(t, {"X": -1.0}, "ENTER_SHORT")
        return book.logs()
""",
    "double-ma": """
        c = market_data["X"]["close"]
        quick, calm = c.rolling(20).mean(), c.rolling(60).mean()
        pos = 0
        for t in range(len(c)):
            if pos != 1 and gt(quick.iloc[t], calm.iloc[t]):
                pos = 1; book.aim(t, {"X": 1.0}, "LONG")
            elif pos != -1 and lt(quick.iloc[t], calm.iloc[t]):
                pos = -1; book.aim(t, {"X": -1.0}, "SHORT")
        return book.logs()
""",
    "turtle": """
        d = market_data["X"]
        c, h, l = d["close"], d["high"], d["low"]
        tr = pd.concat([h - l, (h - c.shift(1)).abs(), (l - c.shift(1)).abs()], axis=1).max(axis=1)
        tr.iloc[0] = np.nan
        n = np.full(len(c), np.nan)
        for t in range(len(c)):
            if t == 20:
                n[t] = tr.iloc[1:21].mean()
            elif t > 20:
                n[t] = n[t - 1] + (tr.iloc[t] - n[t - 1]) / 20
        top, bottom = h.shift(1).rolling(20).max(), l.shift(1).rolling(20).min()
        xl, xh = l.shift(1).rolling(10).min(), h.shift(1).rolling(10).max()
        pos, units = 0, 0
        for t, p in enumerate(c):
            if pos == 1 and le(p, halt):
                pos = 0; book.aim(t, {"X": 0.0}, "STOP_LONG")
            elif pos == -1 and ge(p, halt):
                pos = 0; book.aim(t, {"X": 0.0}, "STOP_SHORT")
            elif pos == 1 and lt(p, xl.iloc[t]):
                pos = 0; book.aim(t, {"X": 0.0}, "EXIT_LONG")
            elif pos == -1 and gt(p, xh.iloc[t]):
                pos = 0; book.aim(t, {"X": 0.0}, "EXIT_SHORT")
            elif pos == 1 and units < 4 and ge(p, last + 0.5 * n0):
                units, last, halt = units + 1, p, p - 2.0 * n0
                book.aim(t, {"X": units * unit}, "ADD_LONG")
            elif pos == -1 and units < 4 and le(p, last - 0.5 * n0):
                units, last, halt = units + 1, p, p + 2.0 * n0
                book.aim(t, {"X": -units * unit}, "ADD_SHORT")
            elif pos == 0 and gt(n[t], 0) and gt(p, top.iloc[t]):
                pos, units, last, n0 = 1, 1, p, n[t]
                unit, halt = min(0.25, 0.01 * p / n0), p - 2.0 * n0
                book.aim(t, {"X": unit}, "ENTER_LONG")
            elif pos == 0 and gt(n[t], 0) and lt(p, bottom.iloc[t]):
                pos, units, last, n0 = -1, 1, p, n[t]
                unit, halt = min(0.25, 0.01 * p / n0), p + 2.0 * n0
                book.aim(t, {"X": -unit}, "ENTER_SHORT")
        return book.logs()
""",
    "dual-thrust": """
        d = market_data["X"]
        day = d.index.normalize()
        daily = d.groupby(day).agg({"high": "max", "low": "min", "close": "last", "open": "first"})
        hh, ll = daily["high"].shift(1).rolling(5).max(), daily["low"].shift(1).rolling(5).min()
        hc, lc = daily["close"].shift(1).rolling(5).max(), daily["close"].shift(1).rolling(5).min()
        rng = pd.concat([hh - lc, hc - ll], axis=1).max(axis=1, skipna=False)
        up = (daily["open"] + 0.2 * rng).reindex(day).to_numpy()
        lo = (daily["open"] - 0.2 * rng).reindex(day).to_numpy()
        pos = 0
        for t, (p, end) in enumerate(zip(d["close"], d["session_last"])):
            if end:
                if pos:
                    pos = 0; book.aim(t, {"X": 0.0}, "DAY_END")
            elif pos != 1 and gt(p, up[t]):
                pos = 1; book.aim(t, {"X": 1.0}, "LONG")
            elif pos != -1 and lt(p, lo[t]):
                pos = -1; book.aim(t, {"X": -1.0}, "SHORT")
        return book.logs()
""",
    "r-breaker": """
        d = market_data["X"]
        day = d.index.normalize()
        daily = d.groupby(day).agg({"high": "max", "low": "min", "close": "last"}).shift(1).reindex(day)
        h, l, c = (daily[name].to_numpy() for name in ("high", "low", "close"))
        ss, bs = h + 0.35 * (c - l), l - 0.35 * (h - c)
        se, be = (1 + 0.07) / 2 * (h + l) - 0.07 * l, (1 + 0.07) / 2 * (h + l) - 0.07 * h
        bb, sb = ss + 0.25 * (ss - bs), bs - 0.25 * (ss - bs)
        top, low = d["high"].groupby(day).cummax().to_numpy(), d["low"].groupby(day).cummin().to_numpy()
        pos = 0
        for t, (p, end) in enumerate(zip(d["close"], d["session_last"])):
            if end:
                if pos:
                    pos = 0; book.aim(t, {"X": 0.0}, "DAY_END")
            elif pos != 1 and gt(p, bb[t]):
                pos = 1; book.aim(t, {"X": 1.0}, "BREAK_UP")
            elif pos != -1 and lt(p, sb[t]):
                pos = -1; book.aim(t, {"X": -1.0}, "BREAK_DOWN")
            elif pos == 1 and gt(top[t], ss[t]) and lt(p, se[t]):
                pos = -1; book.aim(t, {"X": -1.0}, "TURN_DOWN")
            elif pos == -1 and lt(low[t], bs[t]) and gt(p, be[t]):
                pos = 1; book.aim(t, {"X": 1.0}, "TURN_UP")
        return book.logs()
""",
    "spread": """
        gap = np.log(market_data["X"]["close"]) - np.log(market_data["Y"]["close"])
        centre = gap.rolling(30).mean()
        sd = gap.rolling(30).apply(lambda w: w.std(ddof=1), raw=True)
        z = ((gap - centre) / sd).where(sd > 1e-10, 0.0).where(sd.notna())
        pos = 0
        for t, v in enumerate(z):
            if pos == 1 and ge(v, -0.5):
                pos = 0; book.aim(t, {"X": 0.0, "Y": 0.0}, "CLOSE_LONG")
            elif pos == -1 and le(v, 0.5):
                pos = 0; book.aim(t, {"X": 0.0, "Y": 0.0}, "CLOSE_SHORT")
            elif pos == 0 and lt(v, -2.0):
                pos = 1; book.aim(t, {"X": 0.5, "Y": -0.5}, "OPEN_LONG")
            elif pos == 0 and gt(v, 2.0):
                pos = -1; book.aim(t, {"X": -0.5, "Y": 0.5}, "OPEN_SHORT")
        return book.logs()
""",
    "index-enhancement": """
        mom = market_data["X"]["close"].pct_change(5)
        state = None
        for t, m in enumerate(mom):
            if m != m:
                continue
            new = "UP" if gt(m, 0.0035) else "DOWN" if lt(m, -0.0035) else "BASE"
            if new != state:
                state = new
                book.aim(t, {"X": {"UP": 0.8 + 0.2, "DOWN": 0.8 - 0.2, "BASE": 0.8}[new]}, new)
        return book.logs()
""",
    "cross-asset-momentum": """
        mom = pd.DataFrame({leg: market_data[leg]["close"].pct_change(60) for leg in "ABC"})
        inside = None
        for t in range(len(mom)):
            row = mom.iloc[t]
            if row.isna().any():
                continue
            best = row.max()
            if not gt(best, 0.0):
                if inside:
                    inside = None; book.aim(t, dict.fromkeys("ABC", 0.0), "RISK_OFF")
                continue
            leader = next(leg for leg in "ABC" if eq(row[leg], best))
            if leader != inside:
                inside = leader
                book.aim(t, {leg: float(leg == leader) for leg in "ABC"}, "HOLD_" + leader)
        return book.logs()
""",
    "vol-target": """
        ret = market_data["X"]["close"].pct_change()
        sd = ret.rolling(20).apply(lambda w: w.std(ddof=1), raw=True)
        moved = ret.rolling(20).max() - ret.rolling(20).min()
        vol = sd.where(moved > 1e-12, 0.0).where(sd.notna()) * math.sqrt(252)
        aimed = 0.0
        for t, v in enumerate(vol):
            if v != v:
                continue
            want = min(1.0, 0.1 / v) if gt(v, 0) else 1.0
            if gt(abs(want - aimed), 0.05):
                aimed = want; book.aim(t, {"X": want}, "RESIZE")
        return book.logs()
""",
    "pairs": """
        x, y = np.log(market_data["X"]["close"]), np.log(market_data["Y"]["close"])
        cov = (x * y).rolling(30).apply(np.mean, raw=True)
        cov -= x.rolling(30).apply(np.mean, raw=True) * y.rolling(30).apply(np.mean, raw=True)
        var = (y * y).rolling(30).apply(np.mean, raw=True) - y.rolling(30).apply(np.mean, raw=True) ** 2
        beta = (cov / var).where(var > 2e-10, 1.0).where(var.notna())
        gap = x - beta * y
        sd = gap.rolling(30).apply(lambda w: w.std(ddof=1), raw=True)
        z = ((gap - gap.rolling(30).mean()) / sd).where(sd > 1e-10, 0.0).where(sd.notna())
        pos = 0
        for t, v in enumerate(z):
            b = beta.iloc[t]
            wx, wy = 1 / (1 + abs(b)), b / (1 + abs(b))
            if pos == 1 and ge(v, -0.5):
                pos = 0; book.aim(t, {"X": 0.0, "Y": 0.0}, "CLOSE_LONG")
            elif pos == -1 and le(v, 0.5):
                pos = 0; book.aim(t, {"X": 0.0, "Y": 0.0}, "CLOSE_SHORT")
            elif pos == 0 and lt(v, -2.0):
                pos = 1; book.aim(t, {"X": wx, "Y": -wy}, "OPEN_LONG")
            elif pos == 0 and gt(v, 2.0):
                pos = -1; book.aim(t, {"X": -wx, "Y": wy}, "OPEN_SHORT")
        return book.logs()
""",
    "rsi-macd": """
        c = market_data["X"]["close"]

        def seeded(x, k, weight):
            x = pd.Series(x)
            out, start = x * np.nan, x.first_valid_index()
            if start is None or len(x) < start + k:
                return out
            out.iloc[start + k - 1] = x.iloc[start : start + k].mean()
            for t in range(start + k, len(x)):
                out.iloc[t] = out.iloc[t - 1] + weight * (x.iloc[t] - out.iloc[t - 1])
            return out

        move = np.diff(c.to_numpy(), prepend=np.nan)
        gain = seeded(np.where(np.isnan(move), np.nan, np.maximum(move, 0)), 14, 1 / 14)
        loss = seeded(np.where(np.isnan(move), np.nan, np.maximum(-move, 0)), 14, 1 / 14)
        rsi = (100 * gain / (gain + loss)).where(gain + loss > 1e-10, 50.0).where(gain.notna())
        macd = seeded(c.to_numpy(), 12, 2 / 13) - seeded(c.to_numpy(), 26, 2 / 27)
        gap = macd - seeded(macd, 9, 2 / 10)
        pos = 0
        for t in range(len(c)):
            g, b, r = gap.iloc[t], gap.iloc[t - 1] if t else np.nan, rsi.iloc[t]
            if pos == 1 and (lt(g, 0) or gt(r, 70)):
                pos = 0; book.aim(t, {"X": 0.0}, "EXIT_LONG")
            elif pos == -1 and (gt(g, 0) or lt(r, 30)):
                pos = 0; book.aim(t, {"X": 0.0}, "EXIT_SHORT")
            elif pos == 0 and le(b, 0) and gt(g, 0) and lt(r, 70):
                pos = 1; book.aim(t, {"X": 1.0}, "ENTER_LONG")
            elif pos == 0 and ge(b, 0) and lt(g, 0) and gt(r, 30):
                pos = -1; book.aim(t, {"X": -1.0}, "ENTER_SHORT")
        return book.logs()
""",
}

FRAMES["calendar-spread"] = (
    FRAMES["spread"]
    .replace('np.log(market_data["X"]["close"])', 'market_data["X"]["close"]')
    .replace('np.log(market_data["Y"]["close"])', 'market_data["Y"]["close"]')
    .replace('"X"', '"NEAR"')
    .replace('"Y"', '"FAR"')
)


def _changes(table: str) -> tuple[tuple[str, str, str], ...]:
    """Read lines of a strategy, a piece of its program, and what is written instead."""
    lines = (line.replace("\\n", "\n").partition(": ") for line in table.splitlines() if line)
    return tuple((strategy, *words.split(" -> ")) for strategy, _, words in lines)


_LOOPS = _changes("""
bollinger: c.rolling(20).mean() -> pd.Series([np.nan] * 19 + [math.fsum(c.iloc[i - 19 : i + 1]) / 20 for i in \
range(19, len(c))], c.index)
double-ma: c.rolling(20).mean(), c.rolling(60).mean() -> (pd.Series(np.convolve(c, np.ones(n) / n)[: \
len(c)]).where(np.arange(len(c)) > n - 2) for n in (20, 60))
turtle: n[t - 1] + (tr.iloc[t] - n[t - 1]) / 20 -> (19 * n[t - 1] + tr.iloc[t]) / 20
dual-thrust: daily["open"] + 0.2 * rng -> daily["open"] + rng / 5
r-breaker: (1 + 0.07) / 2 * (h + l) - 0.07 * l -> 0.535 * h + 0.465 * l
spread: np.log(market_data["X"]["close"]) - np.log(market_data["Y"]["close"]) -> \
np.log(market_data["X"]["close"] / market_data["Y"]["close"])
calendar-spread: (gap - centre) / sd -> gap / sd - centre / sd
index-enhancement: market_data["X"]["close"].pct_change(5) -> np.exp(np.log(market_data["X"]["close"]).diff(5)) - 1
cross-asset-momentum: market_data[leg]["close"].pct_change(60) -> (market_data[leg]["close"] - \
market_data[leg]["close"].shift(60)) / market_data[leg]["close"].shift(60)
vol-target: w.std(ddof=1) -> math.sqrt(((w - w.mean()) ** 2).sum() / 19)
pairs: w.std(ddof=1) -> math.sqrt(((w - w.mean()) ** 2).sum() / 29)
rsi-macd: out.iloc[t - 1] + weight * (x.iloc[t] - out.iloc[t - 1]) -> weight * x.iloc[t] + (1 - weight) * \
out.iloc[t - 1]
""")
"""A hand that writes loops over lists; what it computes differs from the other in the last bits."""

WRONG = _changes("""
bollinger: w.std(ddof=0) -> w.std(ddof=1)
bollinger: pos == 1 and ge(p, m) -> pos == 1 and ge(p, u)
bollinger: pos == -1 and le(p, m) -> pos == -1 and lt(p, m)
bollinger: 1 - 0.1 -> 1 - 0.11
double-ma: rolling(20) -> rolling(21)
double-ma: rolling(60) -> rolling(59)
double-ma: c.rolling(20).mean() -> c.ewm(span=20, min_periods=20).mean()
double-ma: gt(quick.iloc[t], calm.iloc[t]) -> ge(quick.iloc[t], calm.iloc[t])
turtle: units, last, halt = units + 1, p, p - 2.0 * n0 -> n0 = n[t]; units, last, halt = units + 1, p, p - 2.0 * n0
turtle: h.shift(1).rolling(20).max(), l -> h.shift(1).rolling(20).max(), c
turtle: n[t] = tr.iloc[1:21].mean() -> n[t] = tr.iloc[2:21].mean()
turtle: p - 2.0 * n0\\n                book.aim(t, {"X": units -> last - 2.0 * n0\\n                book.aim(t, \
{"X": units
turtle: units < 4 and ge -> units < 5 and ge
dual-thrust: hc, lc = daily["close"] -> hc, lc = daily["high"]
dual-thrust: pos != 1 and gt(p, up[t]) -> pos == 0 and gt(p, up[t])
dual-thrust: rolling(5) -> rolling(4)
r-breaker: elif pos == 1 and gt(top[t], ss[t]) -> elif pos != -1 and gt(top[t], ss[t])
r-breaker: 0.25 * (ss - bs), bs -> 0.26 * (ss - bs), bs
r-breaker: 0.35 * (c - l), l -> 0.35 * (c - l), c
spread: w.std(ddof=1) -> w.std(ddof=0)
spread: pos == 1 and ge(v, -0.5) -> pos == 1 and ge(v, 0.0)
calendar-spread: w.std(ddof=1) -> w.std(ddof=0)
calendar-spread: lt(v, -2.0) -> lt(v, -2.05)
index-enhancement: pct_change(5) -> pct_change(6)
index-enhancement: if new != state: -> book.target["X"] = None\\n            if True:
cross-asset-momentum: pct_change(60) -> pct_change(61)
cross-asset-momentum: for leg in "ABC" if eq -> for leg in "CBA" if eq
cross-asset-momentum: not gt(best, 0.0) -> not ge(best, 0.0)
vol-target: gt(abs(want - aimed), 0.05) -> gt(abs(want - book.held["X"] * book.close["X"][t] / book.equity(t)), \
0.05)
vol-target: w.std(ddof=1) -> w.std(ddof=0)
vol-target: math.sqrt(252) -> math.sqrt(250)
pairs: w.std(ddof=1) -> w.std(ddof=0)
pairs: gap.rolling(30).mean() -> gap.rolling(29).mean()
rsi-macd: 14, 1 / 14)\\n        loss -> 14, 2 / 15)\\n        loss
rsi-macd: out.iloc[start + k - 1] = x.iloc[start : start + k].mean() -> out.iloc[start + k - 1] = x.iloc[start]
rsi-macd: 2 / 27 -> 2 / 26
rsi-macd: le(b, 0) and gt(g, 0) and lt(r, 70) -> gt(g, 0) and lt(r, 70)

bollinger: le(p, entry * (1 - 0.1)) -> lt(p, entry * (1 - 0.1))
bollinger: pos == 0 and lt(p, l) -> pos == 0 and lt(p, l) and t and ge(c.iloc[t - 1], lo.iloc[t - 1])
bollinger: pos == 0 and gt(p, u) -> pos == 0 and ge(p, u)
bollinger: pos = 0; book.aim(t, {"X": 0.0}, "EXIT_SHORT") -> pos, entry = (1, p) if lt(p, l) else (0, None); \
book.aim(t, {"X": 1.0 if pos else 0.0}, "EXIT_SHORT")
bollinger: elif pos == -1 and ge(p, entry * (1 + 0.1)) -> elif pos == -1 and ge(p, entry / (1 - 0.1))
bollinger: mid - 2.0 * sd -> mid - 2.0 * sd.shift(1)
double-ma: c.rolling(60).mean() -> c.shift(1).rolling(60).mean()
double-ma: if pos != 1 and gt(quick.iloc[t], calm.iloc[t]) -> if pos != 1 and gt(quick.iloc[t], calm.iloc[t]) \
and (pos or t > 60)
turtle: h.shift(1).rolling(20).max() -> h.shift(1).rolling(19).max()
turtle: h - l, (h - c.shift(1)).abs(), (l - c.shift(1)).abs() -> h - l, (h - c.shift(1)).abs()
turtle: tr.iloc[t] - n[t - 1]) / 20 -> tr.iloc[t] - n[t - 1]) / 21
turtle: {"X": units * unit}, "ADD_LONG" -> {"X": min(units * unit, 0.75)}, "ADD_LONG"
turtle: book.aim(t, {"X": units * unit}, "ADD_LONG") -> book.aim(t, {"X": book.held["X"] * p / book.equity(t) + \
unit}, "ADD_LONG")
turtle: units, last, halt = units + 1, p, p + 2.0 * n0 -> units, last, halt = units + 1, p, halt
turtle: pos == 1 and lt(p, xl.iloc[t]) -> pos == 1 and le(p, xl.iloc[t])
turtle: units < 4 and ge(p, last + 0.5 * n0) -> units < 4 and gt(p, last + 0.5 * n0)
turtle: pos, units, last, n0 = -1, 1, p, n[t] -> pos, units, last, n0 = -1, 1, p, n[t - 1]
dual-thrust: pd.concat([hh - lc, hc - ll], axis=1) -> pd.concat([hh - lc, hh - ll], axis=1)
dual-thrust: lo = (daily["open"] - 0.2 -> lo = (daily["close"].shift(1) - 0.2
dual-thrust: pos = 0; book.aim(t, {"X": 0.0}, "DAY_END") -> pos = 1 if gt(p, up[t]) else 0; book.aim(t, {"X": \
float(pos)}, "DAY_END")
r-breaker: d["high"].groupby(day).cummax() -> d["close"].groupby(day).cummax()
r-breaker: 0.07 * l, (1 + 0.07) / 2 * (h + l) - 0.07 * h -> 0.07 * l, (1 + 0.07) / 2 * (h + l) - 0.07 * l
r-breaker: lt(low[t], bs[t]) -> lt(p, bs[t] + 1e9)
r-breaker: elif pos != -1 and lt(p, sb[t]) -> elif pos == 1 and lt(p, sb[t])
spread: pos == 1 and ge(v, -0.5) -> pos == 1 and le(abs(v), 0.5)
spread: centre = gap.rolling(30).mean() -> centre = gap.shift(1).rolling(30).mean()
spread: {"X": 0.5, "Y": -0.5} -> {"X": 0.5, "Y": -0.5 + 1e-5}
spread: pos == 0 and gt(v, 2.0) -> pos == 0 and ge(v, 2.0)
calendar-spread: gap.rolling(30).mean() -> gap.rolling(30).median()
calendar-spread: gap = market_data["NEAR"]["close"] - market_data["FAR"]["close"] -> gap = \
np.log(market_data["NEAR"]["close"] / market_data["FAR"]["close"])
index-enhancement: market_data["X"]["close"].pct_change(5) -> np.log(market_data["X"]["close"]).diff(5)
index-enhancement: lt(m, -0.0035) -> le(m, -0.0035)
index-enhancement: "DOWN": 0.8 - 0.2 -> "DOWN": 0.8 / 1.2
index-enhancement: state = None -> state = "BASE"
cross-asset-momentum: if not gt(best, 0.0): -> if not gt(best, 0.0) or (inside and not gt(row[inside], 0.0)):
cross-asset-momentum: if leader != inside: -> if leader != inside and not (inside and eq(row[inside], best)):
vol-target: market_data["X"]["close"].pct_change() -> np.log(market_data["X"]["close"]).diff()
vol-target: w.std(ddof=1) -> math.sqrt((w**2).sum() / 19)
vol-target: gt(abs(want - aimed), 0.05) -> gt(abs(want - aimed), 0.05 * (aimed or 1.0))
vol-target: gt(abs(want - aimed), 0.05) -> ge(abs(want - aimed), 0.05)
vol-target: if gt(v, 0) else 1.0 -> if gt(v, 0) else 0.0
pairs: gap = x - beta * y -> gap = x - beta.shift(1) * y
pairs: z = ((gap - gap.rolling(30).mean()) / sd) -> z = ((gap - (x.rolling(30).mean() - beta * \
y.rolling(30).mean())) / sd)
pairs: wx, wy = 1 / (1 + abs(b)), b / (1 + abs(b)) -> wx, wy = 1 / (1 + abs(b)), abs(b) / (1 + abs(b))
pairs: beta = (cov / var) -> beta = (cov / (x * x).rolling(30).apply(np.var, raw=True).combine(var, min))
rsi-macd: lt(g, 0) or gt(r, 70) -> lt(g, 0) or ge(r, 70)
rsi-macd: lt(g, 0) or gt(r, 70) -> lt(g, 0) or gt(r, 71)
rsi-macd: 100 * gain / (gain + loss) -> 100 * gain.rolling(2).mean() / (gain + loss)
rsi-macd: seeded(macd, 9, 2 / 10) -> seeded(macd, 9, 2 / 11)
rsi-macd: gap.iloc[t - 1] if t else np.nan -> gap.fillna(0.0).iloc[t - 1] if t else np.nan
rsi-macd: ge(b, 0) and lt(g, 0) and gt(r, 30) -> ge(b, 0) and lt(g, 0) and ge(r, 30)
""")
"""What somebody wrote instead; below the empty line a second reader's list, written without mutants or gate."""

SAME = _changes("""
spread: np.log( -> np.log10(
spread: gap.rolling(30).apply(lambda w: w.std(ddof=1), raw=True) -> gap.rolling(30).std()
cross-asset-momentum: market_data[leg]["close"].pct_change(60) -> np.log(market_data[leg]["close"]).diff(60)
rsi-macd: (100 * gain / (gain + loss)) -> (100 - 100 / (1 + gain / loss))
rsi-macd: (100 * gain / (gain + loss)).where(gain + loss > 1e-10, 50.0) -> (100 * gain / (gain + loss))
bollinger: c.rolling(20).apply(lambda w: w.std(ddof=0), raw=True) -> c.rolling(20).std(ddof=0)
bollinger: lt(p, l) -> (gt(sd.iloc[t], 0) and lt((p - m) / sd.iloc[t], -2.0))
double-ma: c.rolling(20).mean(), c.rolling(60).mean() -> 3 * c.rolling(20).sum(), c.rolling(60).sum()
double-ma: c.rolling(20).mean(), c.rolling(60).mean() -> ((c.cumsum() - \
c.cumsum().shift(n).where(np.arange(len(c)) != n - 1, 0.0)) / n for n in (20, 60))
turtle: min(0.25, 0.01 * p / n0) -> 0.01 * p / max(n0, 0.04 * p)
turtle: le(p, last - 0.5 * n0) -> le((p - last) / n0, -0.5)
dual-thrust: daily["high"].shift(1).rolling(5).max() -> daily["high"].rolling(5).max().shift(1)
r-breaker: (1 + 0.07) / 2 * (h + l) - 0.07 * h -> (h + l) / 2 - 0.07 / 2 * (h - l)
r-breaker: bs - 0.25 * (ss - bs) -> 1.25 * bs - 0.25 * ss
index-enhancement: gt(m, 0.0035) -> gt(1 + m, 1.0035)
index-enhancement: 0.8 - 0.2 -> 0.6
vol-target: w.std(ddof=1) -> np.sqrt(20 / 19) * w.std()
vol-target: ret.rolling(20).apply(lambda w: w.std(ddof=1), raw=True) -> ret.rolling(20).std()
pairs: cov / var -> x.rolling(30).cov(y) / y.rolling(30).var()
calendar-spread: gap.rolling(30).mean() -> gap.rolling(30).sum() / 30

dual-thrust: max(axis=1, skipna=False) -> max(axis=1)
spread: elif pos == 0 and lt(v, -2.0) -> elif pos != 1 and lt(v, -2.0)
""")
"""Other words for the same, by the same reader; the last two were written as wrong."""


def submission(strategy: str, body: str) -> Submission:
    return Submission(source=f"{bookkeeping()}\n{_HEAD}{body}", card=load_reference(strategy).card, name=strategy)


def right_ones() -> list[tuple[str, Submission]]:
    made = [(strategy, submission(strategy, body)) for strategy, body in FRAMES.items()]
    for strategy, old, new in (*_LOOPS, *SAME):
        assert FRAMES[strategy].count(old) >= 1, strategy
        made.append((strategy, submission(strategy, FRAMES[strategy].replace(old, new))))
    return made


def wrong_ones() -> list[tuple[str, str, Submission]]:
    made = []
    for strategy, old, new in WRONG:
        assert old in FRAMES[strategy], (strategy, old)
        made.append((strategy, new, submission(strategy, FRAMES[strategy].replace(old, new))))
    return made
