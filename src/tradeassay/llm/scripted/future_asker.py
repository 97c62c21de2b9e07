"""The scripted model that wants to know tomorrow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.llm.json_text import parse_object
from tradeassay.llm.scripted import ktdfin
from tradeassay.llm.scripted.answers import call, dump, say
from tradeassay.llm.scripted.reading import STOCKBENCH_OVERVIEW, Reading
from tradeassay.llm.scripted.registry import scripted_models
from tradeassay.llm.scripted.sensible import Sensible

FAR = ("2099-12-31", "day_+9999")


@scripted_models.register("future-asker")
class FutureAsker(Sensible):
    """Asks every tool for dates that have not come yet, in every way it can think of, then plays on sensibly."""

    summary: ClassVar[str] = "asks tools for future dates before it plays sensibly"

    def research(self, request: AskModel, reading: Reading) -> ModelReply:
        """Ask for the future once, then do ordinary research."""
        if not reading.results:
            return call(request, [(name, arguments) for name, arguments in _demands(reading)])
        calls = ktdfin.next_research(_without_first_round(reading))
        return call(request, calls) if calls else say("I have seen enough of the past.")

    def stage(self, request: AskModel, reading: Reading) -> ModelReply:
        """Answer a stage; in the overview, ask for tomorrow's prices beside it."""
        reply = super().stage(request, reading)
        if reading.kind != STOCKBENCH_OVERVIEW:
            return reply
        wanted = {"as_of": FAR[0], "want": "closes of the next 5 days"}
        return ModelReply(text=dump({**(parse_object(reply.text) or {}), **wanted}))


def _demands(reading: Reading) -> list[tuple[str, Mapping[str, object]]]:
    some = (ktdfin.ranking(reading) or list(ktdfin.held(reading)) or ["asset_0001"])[:2]
    ways: dict[str, Mapping[str, object]] = {
        "get_market_context": {"as_of": FAR[0]},
        "screen_candidates": {"factors": list(ktdfin.FACTORS), "top_k": 5, "as_of": FAR[1]},
        "get_stock_snapshot": {"alias": some[0], "lookback": -5},
        "compare_candidates": {"aliases": some, "dims": ["NEXT_DAY_RETURN"]},
        "portfolio_state": {"as_of": FAR[0]},
    }
    return [(name, arguments) for name, arguments in ways.items() if name in reading.tools]


def _without_first_round(reading: Reading) -> Reading:
    kept = tuple(result for result in reading.results if not _of_the_future(result.arguments))
    return msgspec.structs.replace(reading, results=kept)


def _of_the_future(arguments: str) -> bool:
    return any(far in arguments for far in FAR) or '"lookback":-' in arguments or "NEXT_DAY" in arguments
