"""Micro-scenarios as files: closes chosen by hand, the bars made of them, and the trace that is expected."""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
import numpy as np

from tradeassay.code.bars import TaskBars
from tradeassay.code.engine.decisions import DecisionList, decision_list
from tradeassay.code.gates.spec import Scenario
from tradeassay.code.semantics import Semantics
from tradeassay.code.task import Timeframe
from tradeassay.core.errors import UserError

_START: Final = np.datetime64("2024-01-01", "D")
_OPENING: Final = 570
"""A session opens at 09:30."""

Action = tuple[int, str, float, str]
"""The bar, the leg, the share of equity wanted there, the signal."""


class ScenarioFile(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One scenario as it is stored.

    A bar opens at the close before (the first at its own), unless ``opens`` says where; high and low lie ``wick``
    beyond open and close. ``session`` is the number of bars a day for intraday scenarios; 0 makes daily bars.
    """

    name: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9-]+$")]
    what: str
    closes: dict[str, tuple[float, ...]]
    opens: dict[str, dict[str, float]] = {}
    wick: float = 0.25
    session: int = 0
    expected: tuple[Action, ...] = ()


def read_scenarios(body: bytes, semantics: Semantics) -> tuple[Scenario, ...]:
    """Return the scenarios in a file; raises :class:`UserError` when it does not fit the strategy."""
    try:
        stored = msgspec.json.decode(body, type=tuple[ScenarioFile, ...])
    except msgspec.MsgspecError as error:
        raise UserError(f"the scenarios of '{semantics.id}' cannot be read: {error}") from error
    return tuple(
        Scenario(one.name, one.what, bars_of(one, semantics), _expected(one, semantics)) for one in stored
    )


def bars_of(stored: ScenarioFile, semantics: Semantics) -> TaskBars:
    """Return the bars of a scenario; raises :class:`UserError` when its legs are not the strategy's."""
    legs = semantics.inputs.legs
    if set(stored.closes) != set(legs):
        raise UserError(f"scenario '{stored.name}' has closes of {sorted(stored.closes)}, not of {sorted(legs)}")
    count = len(stored.closes[legs[0]])
    times = _times(count, stored.session)
    feeds = {}
    for leg in legs:
        close = np.array(stored.closes[leg])
        opening = np.concatenate([close[:1], close[:-1]])
        for row, price in stored.opens.get(leg, {}).items():
            opening[int(row)] = price
        feeds[leg] = {
            "time": times,
            "open": opening,
            "high": np.maximum(opening, close) + stored.wick,
            "low": np.minimum(opening, close) - stored.wick,
            "close": close,
            "volume": np.full(count, 1000.0),
        }
    timeframe: Timeframe = "15m" if stored.session else "1d"
    return TaskBars(feeds, timeframe, "exchange", f"scenario {stored.name}")


def actions_of(decisions: DecisionList, semantics: Semantics) -> tuple[Action, ...]:
    """Return decisions in the form in which they are stored."""
    found = zip(decisions.row, decisions.leg, decisions.fraction, decisions.signal, strict=True)
    return tuple(
        (int(row), semantics.inputs.legs[leg], float(share), semantics.rules[signal].signal)
        for row, leg, share, signal in found
    )


def _times(count: int, session: int) -> np.ndarray:
    if not session:
        return (_START + np.arange(count)).astype("M8[ns]")
    days = (_START + np.arange(count) // session).astype("M8[m]")
    return (days + _OPENING + 15 * (np.arange(count) % session)).astype("M8[ns]")


def _expected(stored: ScenarioFile, semantics: Semantics) -> DecisionList:
    legs = semantics.inputs.legs
    signals = [rule.signal for rule in semantics.rules]
    found = [(row, legs.index(leg), share, signals.index(name)) for row, leg, share, name in stored.expected]
    return decision_list(found)
