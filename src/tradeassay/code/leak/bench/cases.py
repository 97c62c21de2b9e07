"""The cases of the bench: source texts, and how they are run and replayed."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from functools import lru_cache
from importlib.resources import files
from typing import Any

import msgspec
import numpy as np

from tradeassay.code.leak.bench.data import Data
from tradeassay.code.leak.feeds import TIME, Feeds
from tradeassay.code.leak.futures import PRICES
from tradeassay.code.leak.subject import FunctionSubject
from tradeassay.code.leak.trace import Array, Columns, Trace


class BenchCase(msgspec.Struct, frozen=True, kw_only=True):
    """One strategy as source text: ``run(frame)`` returns the position after each row. ``what`` says why it is
    leaky, or why it is not.
    """

    name: str
    what: str
    source: str
    leaky: bool
    data: Data = "daily"

    def subject(self) -> FunctionSubject:
        """Return the strategy, to be run in this process: it ships with the project."""
        decide = self.decide()
        return FunctionSubject(lambda columns: Trace.of_rows(decide(columns)))

    def decide(self) -> Callable[[Columns], dict[str, Array]]:
        """Return a function from columns to decisions by row."""
        from tradeassay.sandbox.strategy import Call, parse, run_code

        code, parsed = parse(self.source, None)
        if code is None:
            raise ValueError(f"bench case '{self.name}': {parsed.syntax}")

        def decide(columns: Columns) -> dict[str, Array]:
            returned = run_code(code, Call(), columns, None)
            return {name: np.asarray(values) for name, values in returned.items()}

        return decide


@lru_cache(maxsize=1)
def load_bench() -> tuple[BenchCase, ...]:
    """Return all cases, leaky ones first."""
    cases: list[BenchCase] = []
    for name, leaky in (("leaky", True), ("honest", False)):
        text = files("tradeassay.code.leak.bench").joinpath(f"{name}.toml").read_text(encoding="utf-8")
        for entry in tomllib.loads(text)["case"]:
            cases.append(msgspec.convert({**entry, "leaky": leaky}, BenchCase))
    return tuple(cases)


def replay(decide: Callable[[Columns], dict[str, Any]], columns: Columns, rows: Iterable[int]) -> dict[str, Array]:
    """Return what the code decides on each of ``rows`` when it knows that row and those before it, no others.

    One flat bar follows, at the time of the true next one: closing out at the end of the data happens there, and
    it tells nothing that was not known. ``rows`` must leave out the last row.
    """
    feeds = Feeds.of(columns)
    decided: dict[str, list[Any]] = {}
    for row in rows:
        for name, values in decide(_with_flat_bar(feeds, row)).items():
            decided.setdefault(name, []).append(values[row])
    return {name: np.asarray(values) for name, values in decided.items()}


def _with_flat_bar(feeds: Feeds, row: int) -> dict[str, Array]:
    grown = {name: values.copy() for name, values in feeds.head(row + 2).items()}
    for feed, group in feeds.groups.items():
        prefix = f"{feed}/" if feed else ""
        for name in group:
            if name == TIME:
                continue
            known = f"{prefix}close" if name in PRICES and "close" in group else f"{prefix}{name}"
            grown[f"{prefix}{name}"][-1] = grown[known][-2]
    return grown
