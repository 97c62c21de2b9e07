"""A benchmark: a frozen statement of what is played, on which data, under which rules, against what."""

from __future__ import annotations

import msgspec

from tradeassay.account import venues
from tradeassay.benchmarks.daily import DayConfig
from tradeassay.core.measure import Convention
from tradeassay.core.registry import Registry
from tradeassay.play import MarketConfig


class Benchmark(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark. Whatever changes a score changes the version at the end of ``id``.

    ``dataset`` is the data set played unless a run names another; ``baseline`` the agent results are compared
    with. The index is part of ``market``. ``protocol`` names the conversation that a model has in a session (see
    :mod:`tradeassay.benchmarks.protocol`), ``protocol_params`` what differs from its defaults; rule agents
    answer ``day`` under the same market rules.
    ``takes_secret``: aliases and other draws are derived from a secret of the run, so that nobody who knows this
    program knows them beforehand. ``seed_word`` is what all draws are derived from beside the secret; the id where
    it is empty. A benchmark that is given another name keeps its draws by it.
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
    takes_secret: bool = True
    seed_word: str = ""

    @property
    def dice(self) -> str:
        """The word that the draws of its episodes are derived from."""
        return self.seed_word or self.id

    @property
    def index(self) -> str | None:
        """The index results are compared with, if the market has one."""
        return self.market.index

    @property
    def periods_per_year(self) -> int:
        """Sessions in a year of the venue, for annualising."""
        return venues.get(self.market.venue).periods_per_year


benchmarks: Registry[Benchmark] = Registry("benchmark")
