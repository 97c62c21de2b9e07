"""Does a decision depend on bars that came after it? Truncate, replace the future, splice; compare the decisions.

``report = check_leaks(subject, columns, LeakConfig(), seed=7)``; a :class:`LeakSubject` turns columns into a
:class:`Trace`. See ``docs/concepts/look-ahead.md``.
"""

from __future__ import annotations

from tradeassay.code.leak.check import check_leaks
from tradeassay.code.leak.report import PASSING, ChangedDecision, LeakConfig, LeakRecord, LeakReport, Placebo
from tradeassay.code.leak.subject import (
    FunctionSubject,
    JobSubject,
    LeakSubject,
    RunFailure,
    SpeedProbe,
    probe_speed,
)
from tradeassay.code.leak.trace import Columns, Trace

__all__ = [
    "PASSING",
    "ChangedDecision",
    "Columns",
    "FunctionSubject",
    "JobSubject",
    "LeakConfig",
    "LeakRecord",
    "LeakReport",
    "LeakSubject",
    "Placebo",
    "RunFailure",
    "SpeedProbe",
    "Trace",
    "check_leaks",
    "probe_speed",
]
