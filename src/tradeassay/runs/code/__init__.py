"""Runs of programs that models write: a frozen spec becomes items, items become records, records become scores.

``run_code`` starts or continues, ``resume_code`` continues, ``verify_code`` checks, ``CodeRun.load`` reads.
The loop
is the same for every benchmark of programs; :class:`CodeProtocol` is what such a benchmark brings. The names are
imported on first use, because some of them are heavy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tradeassay.runs.code.manifest import CodeManifest, is_code_run
    from tradeassay.runs.code.outcome import ItemOutcome
    from tradeassay.runs.code.protocol import Ask, CodeItem, CodeProtocol, Compute, Ended, Role, code_protocols
    from tradeassay.runs.code.quantcode import QuantCodeProtocol
    from tradeassay.runs.code.quantcode_scores import QuantCodeScores
    from tradeassay.runs.code.quantcode_spec import CodeRunSpec
    from tradeassay.runs.code.recorded import CodeRun
    from tradeassay.runs.code.runner import ItemEnded, resume_code, run_code
    from tradeassay.runs.code.systrade import SystradeProtocol
    from tradeassay.runs.code.systrade_examine import SubmissionCheck, check_submission
    from tradeassay.runs.code.systrade_scores import SystradeScores
    from tradeassay.runs.code.systrade_spec import SystradeSpec
    from tradeassay.runs.code.verification import verify_code

_HOMES = {
    "Ask": "protocol",
    "CodeItem": "protocol",
    "CodeManifest": "manifest",
    "CodeProtocol": "protocol",
    "CodeRun": "recorded",
    "CodeRunSpec": "quantcode_spec",
    "Compute": "protocol",
    "Ended": "protocol",
    "ItemEnded": "runner",
    "ItemOutcome": "outcome",
    "QuantCodeProtocol": "quantcode",
    "QuantCodeScores": "quantcode_scores",
    "Role": "protocol",
    "SubmissionCheck": "systrade_examine",
    "SystradeProtocol": "systrade",
    "SystradeScores": "systrade_scores",
    "SystradeSpec": "systrade_spec",
    "check_submission": "systrade_examine",
    "code_protocols": "protocol",
    "is_code_run": "manifest",
    "resume_code": "runner",
    "run_code": "runner",
    "verify_code": "verification",
}

__all__ = [
    "Ask",
    "CodeItem",
    "CodeManifest",
    "CodeProtocol",
    "CodeRun",
    "CodeRunSpec",
    "Compute",
    "Ended",
    "ItemEnded",
    "ItemOutcome",
    "QuantCodeProtocol",
    "QuantCodeScores",
    "Role",
    "SubmissionCheck",
    "SystradeProtocol",
    "SystradeScores",
    "SystradeSpec",
    "check_submission",
    "code_protocols",
    "is_code_run",
    "resume_code",
    "run_code",
    "verify_code",
]


_BENCHMARKS = ("quantcode", "systrade")
"""Modules whose benchmark registers itself when it is imported."""


def __getattr__(name: str) -> Any:
    """Import a public name from the module that holds it."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in ("run_code", "resume_code", "verify_code", "CodeRun", "code_protocols"):
        for benchmark in _BENCHMARKS:
            importlib.import_module(f"{__name__}.{benchmark}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
