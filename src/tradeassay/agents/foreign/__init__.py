"""Agents outside this process's trust: a web server, a program on a pipe, somebody's Python class.

A *transport* carries bytes there and back and names what went wrong (:mod:`.transport`). Over it goes one of two
*wires*: the arena's contract (:mod:`.ama`: a packet in, a choice out) or a benchmark's own conversation
(:mod:`.conversation`: what a model would be asked, and what it may answer).
"""

from __future__ import annotations

from tradeassay.agents.foreign.conversation import (
    ForeignAgent as ForeignAgent,
    ForeignModel as ForeignModel,
    OverHttp as OverHttp,
    OverPipe as OverPipe,
    OverPython as OverPython,
)
from tradeassay.agents.foreign.transport import Unusable as Unusable
