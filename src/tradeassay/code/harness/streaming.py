"""The child's side of a fed strategy: take a bar, ask the strategy, answer, and only then get the next.

Nothing here is trusted. The host counts the answers itself.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from tradeassay.code.harness.desk import BarDesk, Layout, pack_decisions
from tradeassay.sandbox.feed import answer, receive


def find_strategy(space: Mapping[str, Any]) -> Any:
    """Return an instance of the class ``Strategy``, or of the only class with ``on_bar``; LookupError without
    one.
    """
    found = space.get("Strategy")
    if found is None:
        made_here = [
            value
            for value in space.values()
            if isinstance(value, type) and callable(getattr(value, "on_bar", None))
        ]
        if len(made_here) != 1:
            raise LookupError("the code defines no class Strategy with a method on_bar(self, bar, desk)")
        found = made_here[0]
    if not callable(getattr(found, "on_bar", None)):
        raise LookupError("the class Strategy has no method on_bar(self, bar, desk)")
    return found()


def serve(module: ModuleType, columns: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    layout = Layout(str(params["columns"]).split("\n"))
    row = struct.Struct(str(params["format"]))
    strategy = find_strategy(vars(module))
    on_bar, make, unpack, size = strategy.on_bar, layout.bar, row.unpack, row.size
    desk = BarDesk(layout.feeds[0])
    feeds, decisions = layout.feeds, desk.decisions
    number = 0
    while (frame := receive(size)) is not None:
        desk.row = number
        on_bar(make(unpack(frame)), desk)
        if decisions:
            answer(pack_decisions(decisions, feeds))
            decisions.clear()
        else:
            answer()
        number += 1
    return {"bars": [number]}
