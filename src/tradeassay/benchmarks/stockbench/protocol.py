"""An episode of StockBench: one conversation per day, and the memory of the model's own actions."""

from __future__ import annotations

from typing import ClassVar

import msgspec
import numpy as np

from tradeassay.benchmarks.protocol import ProtocolConfig, protocols
from tradeassay.benchmarks.stockbench.briefing import ActionHistory, Briefing
from tradeassay.benchmarks.stockbench.day import dialogue
from tradeassay.benchmarks.stockbench.payload import Limits, PromptPayload
from tradeassay.benchmarks.stockbench.prompts import PROMPTS
from tradeassay.benchmarks.stockbench.stockbench_config import StockbenchConfig
from tradeassay.core.agent import EpisodeInfo, Observation
from tradeassay.core.dialogue import Dialogue, ToolSpec
from tradeassay.core.errors import UserError
from tradeassay.core.orders import Decision


@protocols.register("stockbench")
class Stockbench:
    """The conversation rules of one episode. See :class:`~tradeassay.benchmarks.protocol.ModelProtocol`."""

    Config: ClassVar[type[ProtocolConfig]] = StockbenchConfig
    prompts: ClassVar[tuple[str, ...]] = PROMPTS.files
    tools: ClassVar[tuple[ToolSpec, ...]] = ()
    shown: ClassVar[tuple[type[msgspec.Struct], type[msgspec.Struct]]] = (Limits, PromptPayload)

    def __init__(self, config: StockbenchConfig | None = None) -> None:
        """Raise :class:`UserError` for a value that is out of bounds."""
        # A struct does not check its field limits when it is built in code, only when it is decoded.
        chosen = StockbenchConfig() if config is None else config
        try:
            self.config = msgspec.convert(msgspec.structs.asdict(chosen), StockbenchConfig)
        except msgspec.ValidationError as error:
            raise UserError(f"StockBench: {error}", hint="correct the parameter") from error
        self._history = ActionHistory(self.config.history_days)

    def begin(self, info: EpisodeInfo, rng: np.random.Generator) -> None:
        """Start an episode. Nothing is random: the same answers give the same episode."""
        self._history = ActionHistory(self.config.history_days)

    def dialogue(self, observation: Observation) -> Dialogue:
        """Return today's conversation; its messages start afresh every day."""
        return dialogue(self.briefing(observation))

    def briefing(self, observation: Observation) -> Briefing:
        """Return what the model may know today."""
        return Briefing(observation, self.config, self._history.shown(observation.since_last))

    def remember(self, observation: Observation, decision: Decision) -> None:
        """Take note of a day that is over."""
        self._history.remember(observation, decision)
