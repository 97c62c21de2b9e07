"""The four worlds that come ready made. Sizes are fields: ``preset("us", seed=7, names=300)``."""

from __future__ import annotations

from typing import Any

import msgspec

from tradeassay.core.errors import UserError
from tradeassay.data.synthetic.config import (
    ActionModel,
    MarketModel,
    NewsModel,
    NoiseModel,
    RegimeSpan,
    StyleModel,
    SyntheticConfig,
    TradingModel,
)

US = SyntheticConfig()

ASHARE = SyntheticConfig(
    preset="ashare",
    calendar="XSHG",
    currency="CNY",
    names=120,
    index_members=90,
    new_listings=5,
    delistings=2,
    market=MarketModel(
        volatility=0.18,
        bull=0.30,
        bear=-0.34,
        regimes=(
            RegimeSpan(kind="flat", share=0.20),
            RegimeSpan(kind="bull", share=0.25),
            RegimeSpan(kind="bear", share=0.20),
            RegimeSpan(kind="v", share=0.20),
            RegimeSpan(kind="bull", share=0.15),
        ),
    ),
    noise=NoiseModel(low=0.26, high=0.50, arch=0.10, garch=0.87),
    trading=TradingModel(overnight=0.22, turnover=0.012, suspensions=0.15),
    actions=ActionModel(payers=0.7, per_year=1, dividend_yield=0.018, splits=0.06),
)

CRYPTO = SyntheticConfig(
    preset="crypto",
    calendar="24/7",
    first="2021-01-01",
    names=12,
    index_members=8,
    new_listings=2,
    delistings=1,
    fundamentals=False,
    market=MarketModel(volatility=0.50, bull=0.90, bear=-0.90, depth=0.40, sector_volatility=0.12),
    styles=StyleModel(volatility=(0.10, 0.10, 0.05, 0.05, 0.05, 0.03, 0.05, 0.08, 0.05)),
    noise=NoiseModel(low=0.35, high=0.75, arch=0.10, garch=0.87, df=5, alpha=0.05),
    trading=TradingModel(overnight=0.01, turnover=0.03, suspensions=0.0),
    actions=ActionModel(payers=0.0, per_year=0, dividend_yield=0.0, splits=0.0),
    news=NewsModel(events=14.0, noise=24.0, rumours=8.0, effect=0.045),
)

# Two chains of contracts; the number of names does not matter there.
FUTURES = SyntheticConfig(
    preset="futures",
    calendar="XSHG",
    currency="CNY",
    names=24,
    index_members=24,
    new_listings=0,
    delistings=0,
    fundamentals=False,
    market=ASHARE.market,
    noise=NoiseModel(low=0.20, high=0.35),
    trading=TradingModel(overnight=0.22, turnover=0.012, suspensions=0.0),
    actions=ActionModel(payers=0.0, per_year=0, dividend_yield=0.0, splits=0.0),
    news=NewsModel(events=24.0, noise=36.0, rumours=10.0, effect=0.015),
)

PRESETS: dict[str, SyntheticConfig] = {"us": US, "ashare": ASHARE, "crypto": CRYPTO, "futures": FUTURES}


def preset(name: str, *, seed: int = 0, **changes: Any) -> SyntheticConfig:
    """Return a ready-made world's config with changes; raises :class:`UserError` for an unknown name or field.

    A smaller or greater number of ``names`` scales the index, unless ``index_members`` is given too.
    """
    if name not in PRESETS:
        raise UserError(f"no synthetic world '{name}'", mend=f"one of {', '.join(PRESETS)}")
    base = PRESETS[name]
    unknown = sorted(set(changes) - set(base.__struct_fields__))
    if unknown:
        raise UserError(
            f"a synthetic world has no setting '{unknown[0]}'", mend=f"one of {', '.join(base.__struct_fields__)}"
        )
    if "names" in changes and "index_members" not in changes:
        changes["index_members"] = max(1, changes["names"] * base.index_members // base.names)
    return msgspec.structs.replace(base, seed=seed, **changes)
