"""Provide the eighteen factor models of KTD-Fin through Qlib: features, training, storage, trading.

Qlib is imported when a model is trained or used. Install it with ``pip install
'tradeassay[qlib]'``.
"""

from __future__ import annotations

from tradeassay_bench.agents.factor_models.agent import (
    FactorModelAgent as FactorModelAgent,
    FactorModelConfig as FactorModelConfig,
)
from tradeassay_bench.agents.factor_models.catalogue import (
    FACTOR_MODELS as FACTOR_MODELS,
    FactorModel as FactorModel,
    Size as Size,
    factor_model as factor_model,
)
