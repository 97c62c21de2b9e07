"""Samples in memory, in the form in which Qlib's models ask for them. No data files of Qlib are needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tradeassay.agents.factor_models.features import Matrix, feature_names
from tradeassay.core.view import Days, Floats, Ints

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples by session, then by column of the view.

    ``days`` and ``columns`` say which session and name a row is about, ``features`` what is known before it,
    ``returns`` what the name then earned, ``labels`` the same made comparable across the names of the day.
    """

    days: Days
    columns: Ints
    features: Matrix
    returns: Floats
    labels: Floats

    def __len__(self) -> int:
        return int(self.days.size)

    def shuffled(self, rng: np.random.Generator) -> Samples:
        """Return the samples with outcomes dealt out anew among each day's names: nothing is left to learn."""
        order = np.arange(len(self))
        for rows in self.by_day():
            order[rows] = rng.permutation(order[rows])
        return replace(self, returns=self.returns[order], labels=self.labels[order])

    def by_day(self) -> list[slice]:
        """Return the rows of each session."""
        starts = np.flatnonzero(np.r_[True, self.days[1:] != self.days[:-1]]) if len(self) else np.empty(0, int)
        ends = [*starts[1:].tolist(), len(self)]
        return [slice(start, end) for start, end in zip(starts.tolist(), ends, strict=True)]


class QlibDataset:
    """Answers ``prepare`` as Qlib's ``DatasetH`` does, for the segments train, valid and test.

    Models that ask for a test segment while they are trained get an empty one.
    """

    def __init__(self, train: Samples, valid: Samples, window: int) -> None:
        empty = np.zeros(0, dtype=np.int64)
        nothing = Samples(
            days=train.days[:0], columns=empty, features=train.features[:0], returns=train.returns[:0],
            labels=train.labels[:0],
        )  # fmt: skip
        self._window = window
        self.segments = {
            "train": train, "valid": valid, "test": nothing, "pretrain": train, "pretrain_validation": valid,
        }  # fmt: skip

    def prepare(
        self,
        segments: str | Sequence[str],
        col_set: str | Sequence[str] = "feature",
        data_key: str = "infer",
        **_: Any,
    ) -> Any:
        """Return the frame of a segment, or a list of them; ``data_key`` "raw" has outcomes as they were."""
        if not isinstance(segments, str):
            return [self.prepare(one, col_set, data_key) for one in segments]
        frame = sample_frame(self.segments[segments], self._window, raw=data_key == "raw")
        return frame[col_set] if isinstance(col_set, str) else frame[list(col_set)]


class QlibQuestion:
    """One cross-section to be scored, as a dataset with nothing but features."""

    def __init__(self, features: Matrix, window: int) -> None:
        self._features, self._window = features, window

    def prepare(
        self, segments: str, col_set: str | Sequence[str] = "feature", data_key: str = "infer", **_: Any
    ) -> Any:
        """Return the features, whatever the segment is called."""
        import pandas as pd

        rows = len(self._features)
        index = pd.MultiIndex.from_arrays(
            [np.zeros(rows, "datetime64[ns]"), np.arange(rows)], names=["datetime", "instrument"]
        )
        return pd.DataFrame(self._features, index=index, columns=feature_names(self._window))


def sample_frame(samples: Samples, window: int, *, raw: bool) -> pd.DataFrame:
    """Return samples with the columns (feature, ...) and (label, LABEL), indexed by datetime and instrument."""
    import pandas as pd

    index = pd.MultiIndex.from_arrays(
        [samples.days.astype("datetime64[ns]"), samples.columns], names=["datetime", "instrument"]
    )
    columns = [("feature", name) for name in feature_names(window)]
    table = pd.DataFrame(samples.features, index=index, columns=pd.MultiIndex.from_tuples(columns))
    table[("label", "LABEL")] = (samples.returns if raw else samples.labels).astype(np.float32)
    return table
