"""A benchmark: a frozen statement of what is played, on which data, under which rules, against what."""

from __future__ import annotations

import msgspec

from tradeassay.account import venues
from tradeassay.benchmarks.daily import DayConfig
from tradeassay.benchmarks.windows import family_of
from tradeassay.core.badges import Convention
from tradeassay.core.registry import Registry
from tradeassay.metrics.baseline import Inference
from tradeassay.play import MarketConfig


class Benchmark(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark. Whatever changes a score changes the version at the end of ``id``.

    ``dataset`` is the data set played unless a run names another; ``baseline`` the agent results are compared
    with. The index is part of ``market``. ``protocol`` names the conversation that a model has in a session (see
    :mod:`tradeassay.benchmarks.protocol`), ``protocol_params`` what differs from its defaults; rule agents
    answer ``day`` under the same market rules.
    """

    id: str
    title: str
    description: str
    dataset: str
    market: MarketConfig
    baseline: str = "equal-weight"
    convention: Convention = "sound"
    day: DayConfig = DayConfig()
    protocol: str = "daily"
    protocol_params: dict[str, bool | int | float | str] = {}

    @property
    def index(self) -> str | None:
        """The index results are compared with, if the market has one."""
        return self.market.index

    @property
    def periods_per_year(self) -> int:
        """Sessions in a year of the venue, for annualising."""
        return venues.get(self.market.venue).periods_per_year

    @property
    def family(self) -> str:
        """The protocol without its version: ``stockbench`` of ``stockbench-v2``."""
        return family_of(self.protocol)

    @property
    def inference(self) -> Inference:
        """How results are tested against the baseline; first versions keep what they were scored with."""
        return "percentile" if self.id.endswith("-v1") else "cosine"


def of_family(
    protocol: str,
    version: int,
    about: tuple[str, str, str],
    dataset: str,
    market: MarketConfig,
    convention: Convention,
    **settings: bool | int | float | str,
) -> Benchmark:
    """Return one benchmark of a family whose versions share their words; ``about`` is name, title, description."""
    name, title, description = about
    return Benchmark(
        id=f"{name}-v{version}",
        title=title,
        description=description,
        dataset=dataset,
        market=market,
        convention=convention,
        protocol=protocol if version == 1 else f"{protocol}-v{version}",
        protocol_params={"convention": convention, **settings},
    )


benchmarks: Registry[Benchmark] = Registry("benchmark")
