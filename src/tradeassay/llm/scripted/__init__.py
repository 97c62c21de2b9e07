"""Models that are programs: deterministic, free, and able to play every protocol of the house.

``scripted/sensible`` plays well enough to show what a run looks like; each of the others makes one kind of
mistake on purpose. A model of your own is a class with ``summary`` and ``answer``, registered under a name::

    @scripted_models.register("coin")
    class Coin:
        summary = "buys on even days"

        def answer(self, request):
            ...

What a request holds is described in :mod:`tradeassay.llm.scripted.traders`.
"""

from __future__ import annotations

from tradeassay.llm.scripted.coders import teach_builder as teach_builder, teach_coder as teach_coder
from tradeassay.llm.scripted.traders import (
    Question as Question,
    ScriptedModel as ScriptedModel,
    Sensible as Sensible,
    scripted_models as scripted_models,
)
