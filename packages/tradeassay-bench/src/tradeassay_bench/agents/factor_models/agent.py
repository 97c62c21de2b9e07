"""Trade on the scores of a trained factor model.

The model is trained and stored beforehand (``tradeassay baselines``). Scores are computed every
session from the nine factors of the observation's view. The agent therefore has the same
information as any other agent, and future prices cannot change today's decision. Trading a session
that was used for training is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, ClassVar

import numpy as np
from msgspec import Meta

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import UserError
from tradeassay_bench.agents.factor_models.features import FeatureFeed, features
from tradeassay_bench.agents.registry import AgentConfig, agents
from tradeassay_bench.agents.rules import Abstain, PortfolioConfig, Rebalancer, buyable, rotate
from tradeassay_bench.core.agent import EpisodeInfo, Observation
from tradeassay_bench.core.errors import AgentError
from tradeassay_bench.core.orders import Decision, Failure


class FactorModelConfig(PortfolioConfig, frozen=True, kw_only=True):
    """Settings for a trained baseline, with the portfolio rule of KTD-Fin's baselines."""

    model: Annotated[
        str, Meta(description="which of the eighteen models; must match the key's model")
    ] = ""
    key: Annotated[
        str, Meta(description="key of the trained baseline, from: tradeassay baselines")
    ] = ""
    k: Annotated[
        int, Meta(ge=1, description="names to hold (never more than a third of the universe)")
    ] = 20
    keep: Annotated[
        float, Meta(ge=1, description="a held name stays while it ranks in the first keep x k")
    ] = 2.0
    every: Annotated[int, Meta(ge=1, description="sessions from one rebalancing to the next")] = 1


NAME = "factor-model"
"""The registered name."""


@agents.register(NAME)
class FactorModelAgent(Rebalancer[FactorModelConfig]):
    """Hold the names with the highest scores in equal weights.

    To save costs, a held name stays while it ranks among the first ``keep`` x ``k``. A weight is
    corrected only if it is off by more than ``band``.
    """

    summary: ClassVar[str] = (
        "holds the names a trained factor model (Qlib) scores highest, equal weights"
    )
    plays_alone: ClassVar[bool] = False  # the agent needs the key of a trained model
    Config: ClassVar[type[AgentConfig]] = FactorModelConfig

    def __init__(self, config: FactorModelConfig) -> None:
        """Load the facts about the baseline.

        Raises :class:`UserError` for a wrong key and :class:`MissingExtra` without Qlib.
        """
        super().__init__(config)
        self._facts = None
        if config.key:
            from tradeassay_bench.agents.factor_models.fitting import check_installed, find_trained

            self._facts = find_trained(config.key)
            if config.model and config.model != self._facts.recipe.model:
                raise UserError(
                    f"baseline '{config.key}' is a {self._facts.recipe.model}, not a "
                    f"{config.model}",
                    hint="see: tradeassay baselines",
                )
            check_installed(self._facts.model)

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        super().begin(info, rng)
        if self._facts is not None:
            from tradeassay_bench.agents.factor_models.fitting import load_trained

            _, self._fitted = load_trained(self._facts.key)
            self._feed = FeatureFeed(self._fitted.window)

    def decide(self, observation: Observation) -> Decision:
        """Return the orders that move the account towards the names with the highest scores.

        Raises :class:`AgentError` on a day that was used for training.
        """
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
        chosen = rotate(observation, scores, self.config.k, self.config.keep)
        return chosen or Abstain("no name of the universe has enough factors yet")

    def scores(self, observation: Observation) -> Floats | None:
        """Return the universe's scores, or None if the history is too short.

        A name that cannot be scored or traded has the score NaN.
        """
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
