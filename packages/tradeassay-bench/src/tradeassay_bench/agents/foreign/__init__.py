"""Foreign agents: a web server, a program on a pipe, or a user's Python class.

A *transport* carries bytes to the agent and back and classifies failures (:mod:`.transport`). It
carries one of two *wires*: the arena's contract (:mod:`.ama`, a packet in, a choice out) or a
benchmark's own conversation (:mod:`.conversation`, the questions and answers of a model).
"""

from __future__ import annotations

from tradeassay_bench.agents.foreign.conversation import (
    ForeignAgent as ForeignAgent,
    ForeignModel as ForeignModel,
    OverHttp as OverHttp,
    OverPipe as OverPipe,
    OverPython as OverPython,
)
from tradeassay_bench.agents.foreign.transport import Unusable as Unusable
