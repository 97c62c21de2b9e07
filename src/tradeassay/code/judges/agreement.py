"""How far two runs on the same bars agree: one number in 0 .. 1 with a definition.

Fills of one asset on one bar are netted. What is left is split into *events* by what it does to the position: an
*entry* opens or enlarges it, an *exit* reduces or closes it, and a reversal is an exit and an entry. Two events
match when asset, kind and direction are the same, their bars differ by at most ``bar_tolerance`` and their
sizes by at most ``size_tolerance`` of the larger one; each event matches once.

- ``fills`` = 2 x matched / (events of one + events of the other), the F1 score; 1 when neither has any.
- ``exposure`` = 1 - sum |a - b| / sum (|a| + |b|) over bars and assets, where a and b are the values of the
  positions held at each close; 1 when neither ever holds anything.
- ``value`` is the smaller of the two: the same trades, and the same position in between.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from tradeassay.core.view import Floats

_NOTHING = 1e-9
"""Units of an asset that are rounding, not a position."""
_FEW_BARS = 3
_CLEAR = 0.25
"""A hint is given when dropping one condition lifts the agreement by this much."""


class AgreementConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``size_tolerance`` is a share of the larger size. ``bar_tolerance`` 0 asks for the same bar."""

    bar_tolerance: int = 0
    size_tolerance: float = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class FillTable:
    """Fills of one run: bar number, asset number and signed size of each, in the order in which they came."""

    bar: NDArray[np.int64]
    asset: NDArray[np.int64]
    size: Floats

    def flipped(self) -> FillTable:
        """Return the fills with buys and sells swapped."""
        return FillTable(bar=self.bar, asset=self.asset, size=-self.size)


class PositionChange(msgspec.Struct, frozen=True):
    """One change of a position. ``direction`` is that of the position, even for the exit that ends it."""

    bar: int
    asset: int
    kind: Literal["entry", "exit"]
    direction: int
    size: float


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """The number and its parts. ``entries`` and ``exits`` are None where neither run has any."""

    value: float
    fills: float
    exposure: float
    entries: float | None
    exits: float | None
    matched: int
    candidate: int
    reference: int


def agreement(
    candidate: FillTable, reference: FillTable, closes: Floats, config: AgreementConfig | None = None
) -> Agreement:
    """Return how far two runs agree; ``closes`` has shape (bars, assets)."""
    config = config or AgreementConfig()
    bars, assets = closes.shape
    mine, mine_held = _events(candidate, bars, assets)
    theirs, theirs_held = _events(reference, bars, assets)
    matched = _matched(mine, theirs, config)
    fills = _f1(len(matched), len(mine), len(theirs))
    exposure = _overlap(mine_held * closes, theirs_held * closes)
    return Agreement(
        value=min(fills, exposure),
        fills=fills,
        exposure=exposure,
        entries=_part("entry", mine, theirs, matched),
        exits=_part("exit", mine, theirs, matched),
        matched=len(matched),
        candidate=len(mine),
        reference=len(theirs),
    )


def hints(
    candidate: FillTable, reference: FillTable, closes: Floats, config: AgreementConfig | None = None
) -> tuple[str, ...]:
    """Say in general terms how two runs differ, without a bar, a price or a rule of the reference."""
    config = config or AgreementConfig()
    plain = agreement(candidate, reference, closes, config)
    if plain.value > 1.0 - _NOTHING:
        return ()
    found: list[str] = []
    if not plain.candidate:
        return ("it does not trade here, although the task's rules do",)
    if agreement(candidate.flipped(), reference, closes, config).fills > plain.fills + _CLEAR:
        found.append("it buys where it should sell and sells where it should buy")
    sizeless = msgspec.structs.replace(config, size_tolerance=1.0)
    if agreement(candidate, reference, closes, sizeless).fills > plain.fills + _CLEAR:
        found.append("it trades on the right bars with other sizes than the task's")
    late = msgspec.structs.replace(config, bar_tolerance=config.bar_tolerance + _FEW_BARS)
    if agreement(candidate, reference, closes, late).fills > plain.fills + _CLEAR:
        found.append("many of its trades come a few bars too early or too late")
    if plain.entries is not None and plain.exits is not None and abs(plain.entries - plain.exits) > _CLEAR:
        good, bad = ("entries", "exits") if plain.entries > plain.exits else ("exits", "entries")
        found.append(f"its {good} agree better with the task than its {bad}")
    if plain.candidate > 1.5 * plain.reference:
        found.append("it trades much more often than the task's rules do")
    elif plain.reference > 1.5 * plain.candidate:
        found.append("it trades much less often than the task's rules do")
    return tuple(found) or ("its trades are not those of the task's rules",)


def _events(fills: FillTable, bars: int, assets: int) -> tuple[list[PositionChange], Floats]:
    """Return the events, and the position of every asset at every close."""
    change = np.zeros((bars, assets))
    inside = (fills.bar >= 0) & (fills.bar < bars)
    np.add.at(change, (fills.bar[inside], fills.asset[inside]), fills.size[inside])
    held = np.cumsum(change, axis=0)
    held[np.abs(held) < _NOTHING] = 0.0
    events: list[PositionChange] = []
    for bar, asset in np.argwhere(np.abs(change) >= _NOTHING).tolist():
        before = float(held[bar - 1, asset]) if bar else 0.0
        after = float(held[bar, asset])
        events += _steps(bar, asset, before, after)
    return events, held


def _steps(bar: int, asset: int, before: float, after: float) -> list[PositionChange]:
    if before * after < 0:
        return [
            PositionChange(bar, asset, "exit", _sign(before), abs(before)),
            PositionChange(bar, asset, "entry", _sign(after), abs(after)),
        ]
    if abs(after) > abs(before):
        return [PositionChange(bar, asset, "entry", _sign(after), abs(after) - abs(before))]
    return [PositionChange(bar, asset, "exit", _sign(before), abs(before) - abs(after))]


def _matched(
    mine: list[PositionChange], theirs: list[PositionChange], config: AgreementConfig
) -> list[PositionChange]:
    """Return those of ``mine`` that have a partner. Equal bars go first: a late event must not take the partner of
    one that is on time.
    """
    free: dict[tuple[int, str, int, int], list[PositionChange]] = defaultdict(list)
    for event in theirs:
        free[event.asset, event.kind, event.direction, event.bar].append(event)
    matched: list[PositionChange] = []
    for reach in range(config.bar_tolerance + 1):
        taken = {id(event) for event in matched}
        for event in mine:
            if id(event) not in taken and _take_partner(event, free, reach, config.size_tolerance):
                matched.append(event)
    return matched


def _take_partner(
    event: PositionChange,
    free: dict[tuple[int, str, int, int], list[PositionChange]],
    reach: int,
    tolerance: float,
) -> bool:
    for bar in sorted({event.bar - reach, event.bar + reach}):
        partners = free.get((event.asset, event.kind, event.direction, bar), [])
        for partner in partners:
            if abs(partner.size - event.size) <= tolerance * max(partner.size, event.size):
                partners.remove(partner)
                return True
    return False


def _part(
    kind: str, mine: list[PositionChange], theirs: list[PositionChange], matched: list[PositionChange]
) -> float | None:
    own, other = (sum(event.kind == kind for event in events) for events in (mine, theirs))
    return _f1(sum(event.kind == kind for event in matched), own, other) if own + other else None


def _f1(matched: int, mine: int, theirs: int) -> float:
    return 2.0 * matched / (mine + theirs) if mine + theirs else 1.0


def _overlap(mine: Floats, theirs: Floats) -> float:
    whole = float(np.abs(mine).sum() + np.abs(theirs).sum())
    return 1.0 if whole == 0.0 else max(0.0, 1.0 - float(np.abs(mine - theirs).sum()) / whole)


def _sign(value: float) -> int:
    return 1 if value > 0 else -1
