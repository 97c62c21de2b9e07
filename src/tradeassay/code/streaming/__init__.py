"""Strategies that are fed bar by bar, and so cannot look ahead.

``class Strategy`` with ``on_bar(self, bar, desk)``. :func:`stream` runs trusted code in this process,
:func:`stream_in_sandbox` feeds untrusted code from outside and certifies the result.
"""

from __future__ import annotations

from tradeassay.code.harness.desk import BarDecision, BarDesk
from tradeassay.code.streaming.run import HARNESS, Streamed, StreamingStrategy, stream, stream_in_sandbox, trace_of

__all__ = [
    "HARNESS",
    "BarDecision",
    "BarDesk",
    "Streamed",
    "StreamingStrategy",
    "stream",
    "stream_in_sandbox",
    "trace_of",
]
