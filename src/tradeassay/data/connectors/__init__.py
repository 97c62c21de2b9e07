"""Live connectors: real markets through vendor libraries, into panels of our own.

Importing this registers the sources ``yfinance``, ``ccxt``, ``baostock`` and ``akshare``; the vendor libraries
themselves are extras and are imported when a source loads.
"""

from tradeassay.data.connectors.akshare import AkshareConfig, AkshareSource
from tradeassay.data.connectors.baostock import BaostockConfig, BaostockSource
from tradeassay.data.connectors.ccxt import CcxtConfig, CcxtSource
from tradeassay.data.connectors.common import RetryPolicy, Runtime
from tradeassay.data.connectors.yfinance import YFinanceConfig, YFinanceSource
