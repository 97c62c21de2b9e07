"""Models that are programs: deterministic, free, and able to play every protocol of the house.

``scripted/sensible`` plays well enough to show what a run looks like; each of the others makes one kind of
mistake on purpose. A model of your own is a class with ``summary`` and ``answer``, registered under a name::

    @scripted_models.register("coin")
    class Coin:
        summary = "buys on even days"

        def answer(self, request):
            ...

What a request holds is described in :mod:`tradeassay.llm.scripted.model`.
"""

from __future__ import annotations

from tradeassay.llm.scripted.coders import teach_builder as teach_builder, teach_coder as teach_coder
from tradeassay.llm.scripted.model import (
    Question as Question,
    ScriptedModel as ScriptedModel,
    scripted_models as scripted_models,
)
from tradeassay.llm.scripted.traders import Sensible as Sensible
