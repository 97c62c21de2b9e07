"""Does a decision depend on bars that came after it? Truncate, replace the future, splice; compare the decisions.

``report = check_leaks(subject, columns, LeakConfig(), seed=7)``; a :class:`Subject` turns columns into a
:class:`Trace`. See ``docs/concepts/look-ahead.md``.
"""

from __future__ import annotations

from tradeassay.codegen.leak.check import check_leaks
from tradeassay.codegen.leak.config import LeakConfig
from tradeassay.codegen.leak.report import PASSING, Evidence, LeakRecord, LeakReport, Placebo
from tradeassay.codegen.leak.speed import SpeedProbe, probe_speed
from tradeassay.codegen.leak.subject import FunctionSubject, JobSubject, RunFailure, Subject
from tradeassay.codegen.leak.trace import Columns, Trace

__all__ = [
    "PASSING",
    "Columns",
    "Evidence",
    "FunctionSubject",
    "JobSubject",
    "LeakConfig",
    "LeakRecord",
    "LeakReport",
    "Placebo",
    "RunFailure",
    "SpeedProbe",
    "Subject",
    "Trace",
    "check_leaks",
    "probe_speed",
]
