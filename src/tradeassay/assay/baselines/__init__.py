"""Factor-model baselines: the eighteen of KTD-Fin, trained on nine factors, stored and compared with chance.

A trained baseline trades as the agent ``factor-model`` with its key.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tradeassay.agents.factor_models.trained import (
        RankIC,
        Recipe,
        TrainedBaseline,
        find_trained,
        list_trained,
        load_trained,
    )
    from tradeassay.assay.baselines.against_chance import Contrast, contrast
    from tradeassay.assay.baselines.samples import make_samples
    from tradeassay.assay.baselines.spec import BaselineSpec, Span, parse_span
    from tradeassay.assay.baselines.train import train_baselines

_TRAINED = "tradeassay.agents.factor_models.trained"
_HOMES = {
    "BaselineSpec": f"{__name__}.spec",
    "Contrast": f"{__name__}.against_chance",
    "RankIC": _TRAINED,
    "Recipe": _TRAINED,
    "Span": f"{__name__}.spec",
    "TrainedBaseline": _TRAINED,
    "contrast": f"{__name__}.against_chance",
    "find_trained": _TRAINED,
    "list_trained": _TRAINED,
    "load_trained": _TRAINED,
    "make_samples": f"{__name__}.samples",
    "parse_span": f"{__name__}.spec",
    "train_baselines": f"{__name__}.train",
}
"""Where each public name lives."""

__all__ = [
    "BaselineSpec",
    "Contrast",
    "RankIC",
    "Recipe",
    "Span",
    "TrainedBaseline",
    "contrast",
    "find_trained",
    "list_trained",
    "load_trained",
    "make_samples",
    "parse_span",
    "train_baselines",
]


def __getattr__(name: str) -> Any:
    """Import a public name from the module that holds it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
