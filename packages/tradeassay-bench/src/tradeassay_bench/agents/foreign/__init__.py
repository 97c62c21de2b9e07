"""Connect foreign agents: a web server, a program on a pipe, or a user's Python class.

A *transport* exchanges bytes with the agent and classifies failures (:mod:`.transport`). It carries
one of two *wires*. :mod:`.ama` is the arena's contract, with a packet as input and a choice as
output. :mod:`.conversation` is a benchmark's own conversation, with the questions and answers of a
model.
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
