"""A season's rules, read off its frozen spec: nobody writes them by hand, so they cannot be out of date."""

from __future__ import annotations

from typing import Any

import msgspec

from tradeassay.arena.season import Entry, OptionalRules, Season
from tradeassay.benchmarks.ama.rules import AmaRules


class AssetRule(msgspec.Struct, frozen=True, kw_only=True):
    """An asset, where its prices come from and how many sessions make its year."""

    symbol: str
    kind: str
    dataset: str
    year: int


class SeasonRules(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that decides the standings, and the hash it is frozen under."""

    season: str
    sha256: str
    first: str
    last: str | None
    warmup: int
    cash: float
    window_s: int
    timeout_s: int
    news_days: int
    seed: int
    temperature: float
    max_tokens: int
    money: AmaRules
    optional: OptionalRules
    assets: tuple[AssetRule, ...]
    entries: tuple[Entry, ...]


def season_rules(season: Season) -> SeasonRules:
    """Return the rules of a season."""
    names = "first last warmup cash window_s timeout_s news_days seed temperature max_tokens".split()
    plain: dict[str, Any] = {name: getattr(season, name) for name in names}
    return SeasonRules(
        season=season.id,
        sha256=season.sha256,
        **plain,
        money=season.money,
        optional=season.rules,
        assets=tuple(
            AssetRule(
                symbol=asset.symbol,
                kind=asset.kind,
                dataset=asset.dataset,
                year=season.money.periods_per_year(asset.kind),
            )
            for asset in season.assets
        ),
        entries=tuple(_without_secrets(entry) for entry in season.everyone),
    )


_OPEN = frozenset(("rule", "remembered", "rounds", "recall", "personas"))
"""Settings that are shown. An outside agent's may hold addresses or commands, which concern nobody."""


def _without_secrets(entry: Entry) -> Entry:
    shown = {name: value for name, value in entry.params.items() if name in _OPEN}
    return msgspec.structs.replace(entry, params=shown)
