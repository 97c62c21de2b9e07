"""Probe masks for de-anonymisation: can a masked payload be traced to its stock and its day?"""

from __future__ import annotations

from tradeassay_bench.examine.probe.payloads import (
    HARDENINGS as HARDENINGS,
    METRICS as METRICS,
    ProbeConfig as ProbeConfig,
    ProbeReport as ProbeReport,
)
from tradeassay_bench.examine.probe.probe import probe_mask as probe_mask
