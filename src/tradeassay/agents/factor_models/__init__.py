"""The eighteen factor models of KTD-Fin, through Qlib: what they see, how they are fitted, stored and traded.

Qlib itself is imported when a model is trained or asked, and comes with ``pip install 'tradeassay[qlib]'``.
"""

from __future__ import annotations

from tradeassay.agents.factor_models.agent import (
    FactorModelAgent as FactorModelAgent,
    FactorModelConfig as FactorModelConfig,
)
from tradeassay.agents.factor_models.catalogue import (
    FACTOR_MODELS as FACTOR_MODELS,
    FactorModel as FactorModel,
    Size as Size,
    factor_model as factor_model,
)
