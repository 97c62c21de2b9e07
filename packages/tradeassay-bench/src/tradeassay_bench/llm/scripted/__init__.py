"""Scripted models are programs that answer like a model. They are deterministic and free.

They support every protocol of tradeassay. ``scripted/sensible`` trades well enough to demonstrate a
run. To add a model, register a class with ``summary`` and ``answer`` under a name::

    @scripted_models.register("coin")
    class Coin:
        summary = "buys on even days"

        def answer(self, request):
            ...

The fields of a request are described in :mod:`tradeassay_bench.llm.scripted.model`.
"""

from __future__ import annotations

from tradeassay_bench.llm.scripted.coders import (
    teach_builder as teach_builder,
    teach_coder as teach_coder,
)
from tradeassay_bench.llm.scripted.model import (
    Question as Question,
    ScriptedModel as ScriptedModel,
    scripted_models as scripted_models,
)
from tradeassay_bench.llm.scripted.traders import Sensible as Sensible
