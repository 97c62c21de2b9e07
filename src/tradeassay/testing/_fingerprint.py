"""Everything an agent can read from an observation, as one hash: equal hash, equal sight."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any, get_args

import msgspec
import numpy as np

from tradeassay.core.agent import Observation
from tradeassay.core.errors import DataError
from tradeassay.core.view import FIELDS, Adjustment, MarketView

_ENCODER = msgspec.json.Encoder(order="sorted")


def fingerprint(observation: Observation, index: str | None = None) -> str:
    """Return a hash over the observation and everything its view gives out."""
    digest = hashlib.sha256()
    seen = observation
    facts = (seen.step, seen.session, seen.time, seen.universe, seen.account, seen.rules, seen.since_last)
    digest.update(_ENCODER.encode((*facts, seen.sessions_left)))
    _add(digest, seen.columns)
    _read(digest, seen.view, index)
    return digest.hexdigest()


def _read(digest: Any, view: MarketView, index: str | None) -> None:
    symbols = view.symbols
    digest.update(_ENCODER.encode((view.clock, symbols, [view.instrument(symbol) for symbol in symbols])))
    _add(digest, view.sessions())
    for field in FIELDS:
        for adjust in get_args(Adjustment):
            _add(digest, view.bars(field, adjust=adjust))
    opens = view.opens()
    _add(digest, np.empty(0) if opens is None else opens)
    _add(digest, view.tradable())
    digest.update(_ENCODER.encode([view.news(0), view.actions(0)]))
    digest.update(_ENCODER.encode([_or_error(view.fundamentals, symbol) for symbol in symbols]))
    if index is not None:
        digest.update(_ENCODER.encode(view.members(index)))
        _add(digest, view.index_levels(index))


def _or_error(ask: Callable[[str], object], symbol: str) -> object:
    try:
        return ask(symbol)
    except DataError as error:
        return str(error)


def _add(digest: Any, array: np.ndarray[Any, Any]) -> None:
    digest.update(f"{array.shape}{array.dtype}".encode())
    digest.update(np.ascontiguousarray(array).tobytes())
