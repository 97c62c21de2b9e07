"""Leaky and honest strategies for long series, and a paper's two checks, to compare with ours.

The checks are rebuilt from appendix B.3 of the SysTradeBench paper. The source rules match negative
shifts, a forward index in a loop, a reversed slice from a row and four words. The guard is a proxy
whose ``[]`` refuses a slice or an integer beyond the current bar. It passes all other accesses on
to the data.
"""

from __future__ import annotations

import ast
import io
import re
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np

from tradeassay_programs.code.lookahead.bench import BenchCase
from tradeassay_programs.code.lookahead.grow import LeakConfig, check_leaks
from tradeassay_programs.code.lookahead.trace import Array, Columns

_HERE: Final = Path(__file__).parent


@lru_cache(maxsize=3)
def long_columns(bars: int) -> dict[str, Array]:
    """Return bars with two decimals: business days, or minutes of 2025 for more than 10,000."""
    rng = np.random.default_rng(bars)
    spell = np.exp(0.4 * np.sin(np.arange(bars) / 90) + 0.2 * rng.standard_normal(bars))
    step = 0.01 if bars <= 10_000 else 0.0008
    close = np.round(100 * np.exp(np.cumsum(step * spell * rng.standard_normal(bars))), 2)
    opened = np.round(
        np.concatenate([[100.0], close[:-1]]) * np.exp(0.1 * step * rng.standard_normal(bars)), 2
    )
    high = np.round(
        np.maximum(opened, close) * np.exp(np.abs(0.4 * step * rng.standard_normal(bars))), 2
    )
    low = np.round(
        np.minimum(opened, close) * np.exp(-np.abs(0.4 * step * rng.standard_normal(bars))), 2
    )
    if bars <= 10_000:
        first = np.datetime64("2016-01-04")
        times = np.busday_offset(first, np.arange(bars)).astype("M8[ns]")
    else:
        times = (np.datetime64("2025-01-01T00:00") + np.arange(bars)).astype("M8[ns]")
    return {
        "time": np.asarray(times),
        "open": opened,
        "high": np.maximum.reduce([high, opened, close]),
        "low": np.minimum.reduce([low, opened, close]),
        "close": close,
        "volume": np.rint(1e5 * spell * rng.uniform(0.5, 1.5, bars)),
    }


@lru_cache(maxsize=1)
def load_long_bench() -> tuple[BenchCase, ...]:
    """Return the cases for long series, leaky ones first. All of them run on any number of bars."""
    return tuple(
        msgspec.convert({**one, "leaky": kind == "leaky"}, BenchCase)
        for kind in ("leaky", "honest")
        for one in tomllib.loads((_HERE / f"leak_long_{kind}.toml").read_text(encoding="utf-8"))[
            "case"
        ]
    )


def held_out() -> tuple[BenchCase, ...]:
    """Return the held-out cases, leaky ones first."""
    read = tomllib.loads((_HERE / "leak_held_out.toml").read_text(encoding="utf-8"))
    return tuple(
        msgspec.convert(
            {**one, "source": f"{read['head']}\n{one['source']}", "leaky": kind == "leaky"},
            BenchCase,
        )
        for kind in ("leaky", "honest")
        for one in read[kind]
    )


def leaking_share(case: BenchCase, columns: Columns) -> float | None:
    """Return the share of rows on which a case decides differently from the same code without its
    leak, or None if there is no such code.
    """
    if "def honest(frame):" not in case.source:
        return None
    honest = msgspec.structs.replace(case, source=f"{case.source}\n\nrun = honest\n")
    one, two = (next(iter(each.decide()(columns).values())) for each in (case, honest))
    return float(
        np.mean(np.abs(np.asarray(one, dtype=float) - np.asarray(two, dtype=float)) > 1e-12)
    )


class LongLine(msgspec.Struct, frozen=True, kw_only=True):
    """One case on one length: the share of leaking bars, the verdict of the check, and its
    bound.
    """

    name: str
    bars: int
    leaky: bool
    length: bool
    share: float | None
    verdict: str | None
    cause: str
    method: str
    bound: int | None
    runs: int

    @property
    def right(self) -> bool:
        """Whether the verdict is right.

        Leaks in 0.1 % of the bars or more must not pass. Honest code must pass. Code that depends
        on the length must be reported as such.
        """
        if self.leaky:
            small = (
                self.share is not None
                and self.bound is not None
                and self.share * self.bars < self.bound
            )
            return self.verdict != "clean" or (small and (self.share or 0.0) < 0.001)
        if self.length:
            return self.cause == "length"
        return self.verdict == "clean"


def measure_long(
    bars: int, seed: int, cases: Iterable[BenchCase] | None = None, config: LeakConfig | None = None
) -> Iterator[LongLine]:
    """Yield a line for each case on so many bars."""
    columns = long_columns(bars)
    for case in load_long_bench() if cases is None else cases:
        record = check_leaks(case.subject(), columns, config, seed=seed)
        yield LongLine(
            name=case.name,
            bars=bars,
            leaky=case.leaky,
            length=case.length,
            share=leaking_share(case, columns) if case.leaky else None,
            verdict=record.verdict,
            cause=record.cause,
            method=record.evidence[0].method if record.evidence else "",
            bound=record.bound,
            runs=record.runs,
        )


_WORDS: Final = re.compile(r"future|forward|peek|next", re.IGNORECASE)


class LeakageError(Exception):
    """The guard refused an access."""


class LeakageGuard:
    """The paper's proxy. Undefined attributes go to the data, because few programs could run
    otherwise.
    """

    def __init__(self, data: Any, current: int) -> None:
        self._data = data
        self._current = current

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            if key.stop is None or key.stop > self._current:
                raise LeakageError(f"a slice beyond bar {self._current}")
        elif isinstance(key, int) and key > self._current:
            raise LeakageError(f"bar {key} is beyond {self._current}")
        return self._data[key]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._data, name)

    def __len__(self) -> int:
        return len(self._data)


def guard_objects(source: str, columns: Columns) -> bool:
    """Return whether the guard refuses an access when ``run`` receives the data through it.

    The current bar is placed in the middle and at the end, because the paper does not specify it
    for code that takes a whole table. For trusted source only: it runs in this process.
    """
    from tradeassay_programs.sandbox.strategy import shape

    frame = shape(columns, "frame")
    space: dict[str, Any] = {}
    exec(compile(source, "strategy.py", "exec"), space)
    for current in (len(frame) // 2, len(frame) - 1):
        try:
            with redirect_stdout(io.StringIO()):
                space["run"](LeakageGuard(frame, current))
        except LeakageError:
            return True
        except Exception:
            continue  # a proxy is not a frame and may break honest code; that is not a leak found
    return False


def paper_rules(source: str) -> tuple[str, ...]:
    """Return the paper's source rules that match."""
    tree = ast.parse(source)
    found = [name for name, rule in _RULES.items() if any(rule(node) for node in ast.walk(tree))]
    if any(_WORDS.search(word) for word in _names(tree)):
        found.append("suspicious word")
    return tuple(found)


def _negative_shift(node: ast.AST) -> bool:
    if not (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "shift"
    ):
        return False
    steps = [*node.args[:1], *(word.value for word in node.keywords if word.arg == "periods")]
    return any(isinstance(step, ast.UnaryOp) and isinstance(step.op, ast.USub) for step in steps)


def _ahead_in_loop(node: ast.AST) -> bool:
    if not isinstance(node, ast.For):
        return False
    names = {inner.id for inner in ast.walk(node.target) if isinstance(inner, ast.Name)}
    return any(
        isinstance(index, ast.BinOp)
        and isinstance(index.op, ast.Add)
        and getattr(index.left, "id", None) in names
        for inner in ast.walk(node)
        if isinstance(inner, ast.Subscript)
        for index in ast.walk(inner.slice)
    )


def _reversed_from_row(node: ast.AST) -> bool:
    """Match ``x[t:][::-1]``: a slice with a lower end, reversed."""
    if not (isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)):
        return False
    step = node.slice.step
    inner = node.value
    return (
        isinstance(step, ast.UnaryOp)
        and isinstance(step.op, ast.USub)
        and isinstance(inner, ast.Subscript)
        and isinstance(inner.slice, ast.Slice)
        and inner.slice.lower is not None
    )


def _names(tree: ast.AST) -> list[str]:
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names.append(node.id)
        elif isinstance(node, ast.Attribute):
            names.append(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.append(node.value)
    return names


_RULES: Final = {
    "negative shift": _negative_shift,
    "index ahead": _ahead_in_loop,
    "reversed slice": _reversed_from_row,
}
