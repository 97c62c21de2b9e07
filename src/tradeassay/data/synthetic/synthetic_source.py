"""The registered source ``synthetic``."""

from __future__ import annotations

from typing import Any, ClassVar

from tradeassay.data.panel import Panel
from tradeassay.data.source import SourceConfig, sources
from tradeassay.data.synthetic.world import generate
from tradeassay.data.synthetic.world_config import Market, preset


class SyntheticQuery(SourceConfig, frozen=True, kw_only=True):
    """Which world: a preset and a seed; omitted sizes are the preset's. ``first`` is an ISO day."""

    preset: Market = "us"
    seed: int = 0
    names: int | None = None
    sessions: int | None = None
    first: str | None = None
    minutes: int | None = None


@sources.register("synthetic")
class SyntheticSource:
    """A generated market; the same query gives the same bytes everywhere."""

    Config: ClassVar[type[SourceConfig]] = SyntheticQuery
    summary: ClassVar[str] = "seeded worlds with known truth: us, ashare, crypto, futures"
    extra: ClassVar[str | None] = None

    def __init__(self, config: SyntheticQuery) -> None:
        self.config = config

    def load(self) -> Panel:
        """Generate the panel; raises :class:`UserError` for sizes that make no market."""
        asked = self.config
        sizes: dict[str, Any] = {
            name: value
            for name in ("names", "sessions", "first", "minutes")
            if (value := getattr(asked, name)) is not None
        }
        return generate(preset(asked.preset, seed=asked.seed, **sizes)).panel
