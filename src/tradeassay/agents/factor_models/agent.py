"""The agent that trades on a trained factor model's scores, and the features that such models are fed.

The model is fitted beforehand (``tradeassay baselines``) and stored. The scores are not: every session they
are computed from the nine factors of the observation's own view, so that the agent knows only what any other agent
knows, and tomorrow's market cannot change what it does today. A session that training has seen is refused.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from tradeassay.agents.registry import AgentConfig, agents
from tradeassay.agents.rules import Abstain, PortfolioConfig, Rebalancer, buyable, how_many, rotate
from tradeassay.core.agent import EpisodeInfo, Observation
from tradeassay.core.errors import AgentError, UserError
from tradeassay.core.orders import Decision, Failure
from tradeassay.core.view import Bools, Days, Floats, Ints, MarketView
from tradeassay.factors import FACTOR_NAMES, FactorBars, compute_all, last_row_of, standardise

if TYPE_CHECKING:
    import pandas as pd

FEATURES_VERSION = "features-1"
"""Bumped whenever the same bars would give other features."""
YEAR = 252
"""The longest lookback of a factor, in bars."""
LEAST_KNOWN = 5
"""A name with fewer than this many of the nine factors on the last day is not scored."""

Matrix = NDArray[np.float32]


def features(raw: Floats) -> tuple[Matrix, Bools]:
    """Return one row of features per name, and which names have enough of them to be scored.

    ``raw`` are factor values of the names that may be bought, shape (9, sessions, names), oldest session first.
    Each session's values are winsorised and z-scored across these names; what is missing counts as average.
    Columns go by factor, then by session, as Qlib's sequence models read them."""
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

    Fewer sessions come back when history is shorter."""
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

    After a skipped day it starts afresh from the view's own history."""

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


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples by session, then by column of the view.

    ``days`` and ``columns`` say which session and name a row is about, ``features`` what is known before it,
    ``returns`` what the name then earned, ``labels`` the same made comparable across the names of the day."""

    days: Days
    columns: Ints
    features: Matrix
    returns: Floats
    labels: Floats

    def __len__(self) -> int:
        return int(self.days.size)

    def shuffled(self, rng: np.random.Generator) -> Samples:
        """Return the samples with outcomes shuffled among each day's names: nothing is left to learn."""
        order = np.arange(len(self))
        for rows in self.by_day():
            order[rows] = rng.permutation(order[rows])
        return replace(self, returns=self.returns[order], labels=self.labels[order])

    def by_day(self) -> list[slice]:
        starts = np.flatnonzero(np.r_[True, self.days[1:] != self.days[:-1]]) if len(self) else np.empty(0, int)
        ends = [*starts[1:].tolist(), len(self)]
        return [slice(start, end) for start, end in zip(starts.tolist(), ends, strict=True)]


class QlibDataset:
    """Answers ``prepare`` as Qlib's ``DatasetH`` does, for the segments train, valid and test.

    Models that ask for a test segment while they are trained get an empty one."""

    def __init__(self, train: Samples, valid: Samples, window: int) -> None:
        empty = np.zeros(0, dtype=np.int64)
        nothing = Samples(
            days=train.days[:0],
            columns=empty,
            features=train.features[:0],
            returns=train.returns[:0],
            labels=train.labels[:0],
        )
        self._window = window
        self.segments = {
            "train": train,
            "valid": valid,
            "test": nothing,
            "pretrain": train,
            "pretrain_validation": valid,
        }

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
    """One cross-section to be scored, as a dataset with features only."""

    def __init__(self, features: Matrix, window: int) -> None:
        self._features, self._window = features, window

    def prepare(
        self, segments: str, col_set: str | Sequence[str] = "feature", data_key: str = "infer", **_: Any
    ) -> Any:
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


class FactorModelConfig(PortfolioConfig, frozen=True, kw_only=True):
    """Which trained baseline, and the portfolio rule of KTD-Fin's baselines."""

    model: Annotated[str, Meta(description="which of the eighteen; the key must be one of its kind")] = ""
    key: Annotated[str, Meta(description="the trained baseline, from: tradeassay baselines")] = ""
    k: Annotated[int, Meta(ge=1, description="names to hold (never more than a third of the universe)")] = 20
    keep: Annotated[float, Meta(ge=1, description="a held name stays while it ranks in the first keep x k")] = 2.0
    every: Annotated[int, Meta(ge=1, description="sessions from one rebalancing to the next")] = 1


NAME = "factor-model"
"""The registered name."""


@agents.register(NAME)
class FactorModelAgent(Rebalancer[FactorModelConfig]):
    """Holds the names with the highest scores in equal weights.

    To save costs, a held name stays while it ranks among the first ``keep`` x ``k``, and a weight is only
    corrected when it is off by more than ``band``."""

    summary: ClassVar[str] = "holds the names a trained factor model (Qlib) scores highest, equal weights"
    plays_alone: ClassVar[bool] = False  # it needs the key of a trained model
    Config: ClassVar[type[AgentConfig]] = FactorModelConfig

    def __init__(self, config: FactorModelConfig) -> None:
        """Look up the baseline; raises :class:`UserError` for a wrong key, :class:`MissingExtra` without Qlib."""
        super().__init__(config)
        self._facts = None
        if config.key:
            from tradeassay.agents.factor_models.fitting import check_installed, find_trained

            self._facts = find_trained(config.key)
            if config.model and config.model != self._facts.recipe.model:
                raise UserError(
                    f"baseline '{config.key}' is a {self._facts.recipe.model}, not a {config.model}",
                    hint="see: tradeassay baselines",
                )
            check_installed(self._facts.model)

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        super().begin(info, rng)
        if self._facts is not None:
            from tradeassay.agents.factor_models.fitting import load_trained

            _, self._fitted = load_trained(self._facts.key)
            self._feed = FeatureFeed(self._fitted.window)

    def decide(self, observation: Observation) -> Decision:
        """Trade towards the best scores; raises :class:`AgentError` on a day that training has seen."""
        if self._facts is None:
            return _UNTRAINED
        if observation.session <= self._facts.seen_until:
            raise AgentError(
                f"baseline '{self._facts.key}' has seen the market up to {self._facts.seen_until} "
                f"and may not trade on {observation.session}",
                hint="trade later, or train on an earlier window",
            )
        return super().decide(observation)

    def targets(self, observation: Observation) -> Mapping[str, float] | Abstain:
        scores = self.scores(observation)
        if scores is None:
            return Abstain(f"needs {self._fitted.window} sessions of factors")
        k = how_many(self.config.k, len(observation.universe))
        chosen = rotate(observation, scores, k, int(self.config.keep * k))
        if not chosen:
            return Abstain("no name of the universe has enough factors yet")
        return dict.fromkeys(chosen, 1.0 / k)

    def scores(self, observation: Observation) -> Floats | None:
        """Return the universe's scores, NaN where a name cannot be scored or traded; None on a short history."""
        raw = self._feed.raw(observation.view, observation.columns)
        if raw is None:
            return None
        matrix, known = features(raw)
        known &= buyable(observation)
        scores = np.full(len(matrix), np.nan)
        if known.any():
            scores[known] = self._fitted.scores(matrix[known])
        return scores


_UNTRAINED = Decision(
    status="failed",
    reason="no trained baseline was named: give key=..., see tradeassay baselines",
    failures=(Failure(kind="agent", detail="no key"),),
)
