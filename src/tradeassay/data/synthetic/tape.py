"""What the day loop leaves behind."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tradeassay.core.view import Bools, Floats, Ints
from tradeassay.data.synthetic.universe import Universe


@dataclass(frozen=True, slots=True)
class Action:
    """A corporate action that took place, between rows of the loop.

    ``value`` is in ticks per share (dividend) or new shares per old one (split).
    """

    column: int
    kind: str
    announced: int
    ex: int
    value: float


@dataclass(frozen=True, slots=True)
class Tape:
    """Arrays of shape (rows, names), hidden rows first; prices in ticks, NaN without trade.

    ``last`` is the last close so far (0 before listing), ``shares`` thousands of shares, ``scale`` the product of
    split ratios so far, ``exposures`` (rows, 9, names) what was known before each session, ``residual`` the
    idiosyncratic return.
    """

    open: Floats
    high: Floats
    low: Floats
    close: Floats
    volume: Floats
    amount: Floats
    last: Floats
    shares: Ints
    scale: Floats
    trading: Bools
    exposures: Floats
    residual: Floats
    actions: tuple[Action, ...]


def make_tape(
    universe: Universe, bars: Floats, trading: Bools, exposures: Floats, residual: Floats, actions: list[Action]
) -> Tape:  # fmt: skip
    """Complete the loop's arrays (``bars`` in the loop's order: open, high, close, volume, amount, low)."""
    opened, high, close, volume, amount, low = (np.ascontiguousarray(bars[:, k]) for k in range(6))
    shares = np.broadcast_to(universe.shares, close.shape).copy()
    scale = np.ones(close.shape)
    for action in actions:
        if action.kind == "split":
            scale[action.ex :, action.column] *= action.value
            shares[action.ex :, action.column] = int(shares[action.ex - 1, action.column] * action.value)
    return Tape(
        open=opened,
        high=high,
        low=low,
        close=close,
        volume=volume,
        amount=amount,
        last=_carried(close),
        shares=shares,
        scale=scale,
        trading=trading,
        exposures=exposures,
        residual=residual,
        actions=tuple(actions),
    )


def _carried(close: Floats) -> Floats:
    """Return the last close present so far; 0 before the first."""
    rows = np.arange(close.shape[0])[:, None]
    at = np.maximum.accumulate(np.where(np.isnan(close), -1, rows), axis=0)
    return np.where(at < 0, 0.0, np.take_along_axis(close, np.maximum(at, 0), axis=0))
