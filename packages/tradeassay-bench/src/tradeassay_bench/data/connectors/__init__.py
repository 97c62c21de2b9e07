"""Fetch real market data through vendor libraries.

Importing this package registers the sources ``yfinance``, ``ccxt`` and ``baostock``. The vendor
libraries are extras and are imported when a source loads.
"""

from tradeassay_bench.data.connectors.baostock import (
    BaostockConfig as BaostockConfig,
    BaostockSource as BaostockSource,
)
from tradeassay_bench.data.connectors.ccxt import CcxtConfig as CcxtConfig, CcxtSource as CcxtSource
from tradeassay_bench.data.connectors.common import RetryPolicy as RetryPolicy, Runtime as Runtime
from tradeassay_bench.data.connectors.yfinance import (
    YFinanceConfig as YFinanceConfig,
    YFinanceSource as YFinanceSource,
)
