"""Compute the input of factor models: features by name and day, and samples for training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradeassay.core.arrays import Bools, Days, Floats, Ints
from tradeassay.factors import FACTOR_NAMES, FactorBars, compute_all, last_row_of, standardise
from tradeassay_bench.core.view import Field, MarketView

_BARS: tuple[Field, ...] = ("open", "high", "close", "volume", "amount")
FEATURES_VERSION = "features-1"
"""Version of the features. It changes whenever the same bars would produce different features."""
YEAR = 252
"""Longest lookback of a factor, in bars."""
LEAST_KNOWN = 5
"""Minimum number of the nine factors that a name needs on the last day to be scored."""

Matrix = NDArray[np.float32]


def features(raw: Floats) -> tuple[Matrix, Bools]:
    """Return one row of features per name, and a mask of names with enough factors to be scored.

    ``raw`` contains factor values of the names that may be bought, shape (9, sessions, names),
    oldest session first. Each session's values are winsorised and z-scored across these names.
    Missing values are replaced by the average. Columns are ordered by factor, then by session, as
    Qlib's sequence models expect them.
    """
    known = np.isfinite(raw[:, -1]).sum(axis=0) >= LEAST_KNOWN
    scaled = np.nan_to_num(standardise(raw), nan=0.0)
    factors, sessions, names = raw.shape
    matrix: Matrix = scaled.transpose(2, 0, 1).reshape(names, factors * sessions).astype(np.float32)
    return matrix, known


def feature_names(window: int) -> list[str]:
    """Return the names of the columns.

    A name consists of the factor and the number of sessions back (0 = the last close).
    """
    return [f"{name}_{back}" for name, back in product(FACTOR_NAMES, range(window - 1, -1, -1))]


def factor_history(view: MarketView, sessions: int | None = None) -> Floats:
    """Return the factors of the last completed sessions, shape (9, sessions, columns).

    Without ``sessions`` the whole history is returned. A shorter history has fewer sessions.
    """
    rows = None if sessions is None else sessions + YEAR
    values = compute_all(FactorBars(*(view.bars(field, rows) for field in _BARS)))
    stacked = np.stack([values[name] for name in FACTOR_NAMES])
    return stacked if sessions is None else stacked[:, -sessions:]


class FeatureFeed:
    """Collect the last ``window`` sessions of factors from an episode's views.

    After a skipped day the sessions are rebuilt from the history of the view.
    """

    def __init__(self, window: int) -> None:
        self._window = window
        self._last: np.datetime64 | None = None
        self._raw: Floats = np.empty((len(FACTOR_NAMES), 0, 0))

    def raw(self, view: MarketView, columns: Ints) -> Floats | None:
        """Return the raw factors of some columns, shape (9, window, names).

        Return None while the history is too short.
        """
        days = view.sessions(2)
        if days.size == 0:
            return None
        if self._last is None or days[-1] != self._last:
            follows = days.size == 2 and days[0] == self._last and self._raw.shape[1] > 0
            if self._window == 1:
                self._raw = last_row_of(view)[:, None, :]
            elif not follows:
                self._raw = factor_history(view, self._window)
            else:
                # Columns never move. Names listed later are appended and have no past factors.
                listed = len(view.symbols) - self._raw.shape[2]
                past = np.pad(self._raw, ((0, 0), (0, 0), (0, listed)), constant_values=np.nan)
                self._raw = np.concatenate([past, last_row_of(view)[:, None, :]], axis=1)[
                    :, -self._window :
                ]
            self._last = days[-1]
        if self._raw.shape[1] < self._window:
            return None
        return self._raw[:, :, columns]


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples for training, ordered by session and then by column of the view.

    ``days`` and ``columns`` are the session and the name of each row. ``features`` are known before
    the session. ``returns`` are the name's returns after it. ``labels`` are these returns,
    normalised across the names of the day.
    """

    days: Days
    columns: Ints
    features: Matrix
    returns: Floats
    labels: Floats

    def __len__(self) -> int:
        return int(self.days.size)

    def shuffled(self, rng: np.random.Generator) -> Samples:
        """Return the samples with their outcomes shuffled within each day, as a control."""
        order = np.arange(len(self))
        for rows in self.by_day():
            order[rows] = rng.permutation(order[rows])
        return replace(self, returns=self.returns[order], labels=self.labels[order])

    def by_day(self) -> list[slice]:
        """Return the slice of rows of each session."""
        starts = (
            np.flatnonzero(np.r_[True, self.days[1:] != self.days[:-1]])
            if len(self)
            else np.empty(0, int)
        )
        ends = [*starts[1:].tolist(), len(self)]
        return [slice(start, end) for start, end in zip(starts.tolist(), ends, strict=True)]


class QlibDataset:
    """A dataset with the ``prepare`` method of Qlib's ``DatasetH``.

    The segments are train, valid and test. The test segment is empty, but some models request it
    during training.
    """

    def __init__(self, train: Samples, valid: Samples, window: int) -> None:
        none = slice(0)
        parts = (train.days, train.columns, train.features, train.returns, train.labels)
        nothing = Samples(*(part[none] for part in parts))  # type: ignore[arg-type]  # arrays of several kinds
        self._window = window
        self.segments = {"train": train, "valid": valid, "test": nothing}
        self.segments |= {"pretrain": train, "pretrain_validation": valid}

    def prepare(
        self,
        segments: str | Sequence[str],
        col_set: str | Sequence[str] = "feature",
        data_key: str = "infer",
        **_: Any,
    ) -> Any:
        """Return the frame of a segment, or a list of frames.

        Columns are (feature, ...) and (label, LABEL). Rows are indexed by datetime and instrument.
        With ``data_key="raw"`` the label is the raw return.
        """
        import pandas as pd

        if not isinstance(segments, str):
            return [self.prepare(segment, col_set, data_key) for segment in segments]
        samples = self.segments[segments]
        index = pd.MultiIndex.from_arrays(
            [samples.days.astype("datetime64[ns]"), samples.columns],
            names=["datetime", "instrument"],
        )
        columns = pd.MultiIndex.from_tuples(
            [("feature", name) for name in feature_names(self._window)]
        )
        frame = pd.DataFrame(samples.features, index=index, columns=columns)
        frame[("label", "LABEL")] = (
            samples.returns if data_key == "raw" else samples.labels
        ).astype(np.float32)
        return frame[col_set] if isinstance(col_set, str) else frame[list(col_set)]


class QlibQuestion:
    """One cross-section to score, as a Qlib dataset with features only."""

    def __init__(self, features: Matrix, window: int) -> None:
        self._features, self._window = features, window

    def prepare(
        self,
        segments: str,
        col_set: str | Sequence[str] = "feature",
        data_key: str = "infer",
        **_: Any,
    ) -> Any:
        import pandas as pd

        rows = len(self._features)
        index = pd.MultiIndex.from_arrays(
            [np.zeros(rows, "datetime64[ns]"), np.arange(rows)], names=["datetime", "instrument"]
        )
        return pd.DataFrame(self._features, index=index, columns=feature_names(self._window))
