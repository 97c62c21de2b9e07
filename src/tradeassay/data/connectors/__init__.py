"""Live connectors: real markets through vendor libraries, into panels of our own.

Importing this registers the sources ``yfinance``, ``ccxt``, ``baostock`` and ``akshare``; the vendor libraries
themselves are extras and are imported when a source loads.
"""

from tradeassay.data.connectors.patience import Patience, Runtime
from tradeassay.data.connectors.yfinance import YFinanceConfig, YFinanceSource

__all__ = ["Patience", "Runtime", "YFinanceConfig", "YFinanceSource"]
