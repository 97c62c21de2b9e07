"""Live connectors: real markets through vendor libraries, into panels of our own.

Importing this registers the sources ``yfinance``, ``ccxt``, ``baostock`` and ``akshare``; the vendor libraries
themselves are extras and are imported when a source loads.
"""

from tradeassay.data.connectors.akshare import AkshareConfig as AkshareConfig, AkshareSource as AkshareSource
from tradeassay.data.connectors.baostock import BaostockConfig as BaostockConfig, BaostockSource as BaostockSource
from tradeassay.data.connectors.ccxt import CcxtConfig as CcxtConfig, CcxtSource as CcxtSource
from tradeassay.data.connectors.common import RetryPolicy as RetryPolicy, Runtime as Runtime
from tradeassay.data.connectors.yfinance import YFinanceConfig as YFinanceConfig, YFinanceSource as YFinanceSource
