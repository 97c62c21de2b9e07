"""KTD-Fin: what is left of a trading model when it cannot recognise the stocks and the dates?"""

from __future__ import annotations

from tradeassay.benchmarks.ktdfin.config import MODES, BaselineConfig, KtdfinConfig, Mode
from tradeassay.benchmarks.ktdfin.protocol import Ktdfin

__all__ = ["MODES", "BaselineConfig", "Ktdfin", "KtdfinConfig", "Mode"]
