"""Robustness: what is left of a result when the market, its costs or its news are disturbed."""

from __future__ import annotations

from tradeassay.assay.robustness.study import (
    Disturbance as Disturbance,
    RobustnessConfig as RobustnessConfig,
    RobustnessReport as RobustnessReport,
    robustness_of_run as robustness_of_run,
)
