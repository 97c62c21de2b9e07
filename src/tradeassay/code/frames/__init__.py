"""Plain vectorised signals on a pandas frame: the second framework.

A program defines ``signals(frame)`` (one asset) or ``signals(frames)`` (a dict of frames) and returns target
positions, row by row. It runs in the sandbox; the host turns changes of the target into market orders for the next
open.
"""

from __future__ import annotations

from tradeassay.code.frames.desk import orders_for
from tradeassay.code.frames.runner import FrameJob, many_frames, run_frame
from tradeassay.code.frames.subject import FrameSubject
from tradeassay.code.frames.targets import BadTargets, read_targets

__all__ = [
    "BadTargets",
    "FrameJob",
    "FrameSubject",
    "many_frames",
    "orders_for",
    "read_targets",
    "run_frame",
]
