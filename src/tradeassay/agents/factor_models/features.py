"""What a factor model is shown of a name: its nine factors, made comparable across the names of the day.

Training and trading go through :func:`features`, so that a model is asked about what it was taught. A sample of
session t holds factors up to the close of t - 1 and nothing later.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tradeassay.core.view import Bools, Days, Floats, Ints, MarketView
from tradeassay.factors import FACTOR_NAMES, FactorBars, compute_all, last_row_of, standardise

FEATURES_VERSION = "features-1"
"""Changes whenever the same bars would give other features."""
YEAR = 252
"""The longest look back of a factor, in bars."""
LEAST_KNOWN = 5
"""A name with fewer of the nine factors on the last day is not scored."""

Matrix = NDArray[np.float32]


def features(raw: Floats) -> tuple[Matrix, Bools]:
    """Return one row of features per name, and which names know enough to be scored.

    ``raw`` are factor values of the names that may be bought, shape (9, sessions, names), oldest session first.
    Each session's values are winsorised and z-scored across these names; what is missing counts as average.
    Columns go by factor, then by session, as Qlib's sequence models read them.
    """
    known = np.isfinite(raw[:, -1]).sum(axis=0) >= LEAST_KNOWN
    scaled = np.nan_to_num(standardise(raw), nan=0.0)
    factors, sessions, names = raw.shape
    matrix: Matrix = scaled.transpose(2, 0, 1).reshape(names, factors * sessions).astype(np.float32)
    return matrix, known


def feature_names(window: int) -> list[str]:
    """Return the columns' names: factor and how many sessions back (0 = the last close)."""
    return [f"{name}_{back}" for name in FACTOR_NAMES for back in range(window - 1, -1, -1)]


def factor_history(view: MarketView, sessions: int | None = None) -> Floats:
    """Return the factors of the last completed sessions (all without a count), shape (9, sessions, columns).

    Fewer sessions come back when history is shorter.
    """
    rows = None if sessions is None else sessions + YEAR
    bars = FactorBars(
        open=view.bars("open", rows),
        high=view.bars("high", rows),
        close=view.bars("close", rows),
        volume=view.bars("volume", rows),
        amount=view.bars("amount", rows),
    )
    values = compute_all(bars)
    stacked = np.stack([values[name] for name in FACTOR_NAMES])
    return stacked if sessions is None else stacked[:, -sessions:]


class FeatureFeed:
    """Follows an episode's views and keeps the last ``window`` sessions of factors.

    A day that was left out starts it afresh from the view's own history.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._last: np.datetime64 | None = None
        self._raw: Floats = np.empty((len(FACTOR_NAMES), 0, 0))

    def raw(self, view: MarketView, columns: Ints) -> Floats | None:
        """Return the raw factors of some columns, shape (9, window, names); None while history is too short."""
        days = view.sessions(2)
        if days.size == 0:
            return None
        if self._last is None or days[-1] != self._last:
            self._raw = self._advanced(view, days)
            self._last = days[-1]
        if self._raw.shape[1] < self._window:
            return None
        return self._raw[:, :, columns]

    def _advanced(self, view: MarketView, days: Days) -> Floats:
        if self._window == 1:
            return last_row_of(view)[:, None, :]
        follows = days.size == 2 and days[0] == self._last and self._raw.shape[1] > 0
        if not follows:
            return factor_history(view, self._window)
        # Columns never move; names listed since are appended, and have no past.
        listed = len(view.symbols) - self._raw.shape[2]
        past = np.pad(self._raw, ((0, 0), (0, 0), (0, listed)), constant_values=np.nan)
        return np.concatenate([past, last_row_of(view)[:, None, :]], axis=1)[:, -self._window :]
