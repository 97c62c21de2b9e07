"""Models that are programs: deterministic, free, and able to play every protocol of the house.

``scripted/sensible`` plays well enough to show what a run looks like; each of the others makes one kind of
mistake on purpose. A model of one's own is a class with ``summary`` and ``answer``, registered under a name::

    @scripted_models.register("coin")
    class Coin:
        summary = "buys on even days"

        def answer(self, request):
            ...

What a request holds, and what an answer must look like, is said in :mod:`tradeassay.llm.scripted.reading`.
"""

from __future__ import annotations

from tradeassay.llm.scripted.broken_json import BrokenJson
from tradeassay.llm.scripted.builder import GoldBuilder, MendingBuilder, PeepingBuilder, teach_builder
from tradeassay.llm.scripted.code_judge import CodeJudge
from tradeassay.llm.scripted.coder import GoldCoder, MendingCoder, SmaCoder, teach_coder
from tradeassay.llm.scripted.coder_faults import Away, CheatingCoder, SilentCoder
from tradeassay.llm.scripted.contrarian import Contrarian
from tradeassay.llm.scripted.future_asker import FutureAsker
from tradeassay.llm.scripted.injector import Injector
from tradeassay.llm.scripted.never_submits import NeverSubmits
from tradeassay.llm.scripted.overspender import Overspender
from tradeassay.llm.scripted.provider import ScriptedProvider
from tradeassay.llm.scripted.reading import Reading, ToolResult, read_request
from tradeassay.llm.scripted.registry import ScriptedModel, scripted_models
from tradeassay.llm.scripted.sensible import Sensible
from tradeassay.llm.scripted.slow import Slow

__all__ = [
    "Away",
    "BrokenJson",
    "CheatingCoder",
    "CodeJudge",
    "Contrarian",
    "FutureAsker",
    "GoldBuilder",
    "GoldCoder",
    "Injector",
    "MendingBuilder",
    "MendingCoder",
    "NeverSubmits",
    "Overspender",
    "PeepingBuilder",
    "Reading",
    "ScriptedModel",
    "ScriptedProvider",
    "Sensible",
    "SilentCoder",
    "Slow",
    "SmaCoder",
    "ToolResult",
    "read_request",
    "scripted_models",
    "teach_builder",
    "teach_coder",
]
