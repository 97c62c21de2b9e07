"""De-anonymisation probe: can anybody tell from a masked payload which stock it is, and which day?"""

from __future__ import annotations

from tradeassay.assay.probe.payloads import (
    HARDENINGS as HARDENINGS,
    METRICS as METRICS,
    ProbeConfig as ProbeConfig,
    ProbeReport as ProbeReport,
)
from tradeassay.assay.probe.probe import probe_mask as probe_mask
