"""De-anonymisation probe: can anybody tell from a masked payload which stock it is, and which day?"""

from __future__ import annotations

from tradeassay.assay.probe.payloads import (
    HARDENINGS,
    METRICS,
    PROGRAMS,
    ProbeBound,
    ProbeConfig,
    ProbeReport,
    ProbeRow,
)
from tradeassay.assay.probe.probe import probe_mask
from tradeassay.assay.probe.programs import Guess

__all__ = [
    "HARDENINGS",
    "METRICS",
    "PROGRAMS",
    "Guess",
    "ProbeBound",
    "ProbeConfig",
    "ProbeReport",
    "ProbeRow",
    "probe_mask",
]
