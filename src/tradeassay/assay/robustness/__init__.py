"""Robustness: what is left of a result when the market, its costs or its news are disturbed."""

from __future__ import annotations

from tradeassay.assay.robustness.study import (
    DISTURBANCES,
    Disturbance,
    RobustnessConfig,
    RobustnessReport,
    RobustnessScore,
    SizeScaling,
    robustness_of_run,
)

__all__ = [
    "DISTURBANCES",
    "Disturbance",
    "RobustnessConfig",
    "RobustnessReport",
    "RobustnessScore",
    "SizeScaling",
    "robustness_of_run",
]
