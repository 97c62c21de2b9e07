"""Programs of tests that are fed rows of one number, and jobs that run them.

They read the pipe themselves while they are loaded, so the harness that is named finds no row left.
What they answer to a row is empty, unless they say otherwise.
"""

import struct
from collections.abc import Callable, Sequence

from tradeassay_programs.code.harness.wire import GROWING, GROWING_MODULE
from tradeassay_programs.sandbox import FrameFeed, Job, JobLimits, SandboxConfig

CONFIG = SandboxConfig(preload=("numpy",), harnesses=(GROWING_MODULE,))
PARAMS = {
    "columns": "close",
    "format": "<d",
    "bars": 1,
    "pass_as": "columns",
    "most": 1,
    "all": False,
    "whole": False,
}

LOOP = """
import os, struct

def tell(payload=b""):
    os.write(8, struct.pack("<I", len(payload)) + payload)

def signals(rows):
    return rows

number = 0
while len(frame := os.read(7, 8)) == 8:
    (close,) = struct.unpack("<d", frame)
    number += 1
    {body}
"""


def fed_program(body: str = "tell()") -> str:
    """Return a program that does ``body`` on every row; it knows ``close``, the row's ``number``
    from 1 and ``tell``, which answers.
    """
    return LOOP.replace("{body}", body.strip().replace("\n", "\n    "))


def fed_job(
    source: str,
    values: Sequence[float] = (1.0, 2.0, 3.0),
    *,
    until: Callable[[int, bytes], bool] | None = None,
    limits: JobLimits | None = None,
) -> Job:
    """Return a job that is fed ``values`` one at a time."""
    feed = FrameFeed(frames=struct.pack(f"<{len(values)}d", *values), size=8, until=until)
    return Job(
        source=source, harness=GROWING, params=PARAMS, feed=feed, limits=limits or JobLimits()
    )
