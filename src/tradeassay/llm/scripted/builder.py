"""Scripted builders: they hand in strategies as governed software, well or badly. And a reviewer that is crude."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import ClassVar, Final

from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.llm.scripted.answers import say, say_json
from tradeassay.llm.scripted.reading import Reading, read_request
from tradeassay.llm.scripted.registry import scripted_models
from tradeassay.llm.scripted.sensible import Sensible

BUILD: Final = "systrade.build"
"""The ``kind`` of the payload that asks for a strategy: ``{"kind", "strategy", "iteration"}``."""
REVIEW: Final = "systrade.review"

_KNOWN: dict[str, tuple[str, str]] = {}
"""The card and source of each strategy's reference, where a benchmark has taught them."""

_PEEP: Final = """


class TradingStrategy(_Honest):
    def run(self, market_data, initial_capital):
        ahead = {}
        for leg, frame in market_data.items():
            frame = frame.copy()
            frame["close"] = frame["close"].shift(-1).ffill()
            ahead[leg] = frame
        return super().run(ahead, initial_capital)
"""


def teach_builder(references: Mapping[str, tuple[str, str]]) -> None:
    """Give cards and programs by strategy to the builders that hand them in, before a run they take part in."""
    _KNOWN.update(references)


@scripted_models.register("builder-gold")
class GoldBuilder(Sensible):
    """Hands in the benchmark's own reference: a control. Marks others' work by a rule nobody should trust."""

    summary: ClassVar[str] = "hands in the benchmark's own strategies: what a perfect builder would get"

    def answer(self, request: AskModel) -> ModelReply:
        """Answer one question; what asks for no strategy is answered sensibly."""
        reading = read_request(request)
        if reading.kind == BUILD:
            return self.build(reading)
        if reading.kind == REVIEW:
            return say_json(marks(request))
        return super().answer(request)

    def build(self, reading: Reading) -> ModelReply:
        """Answer with both files."""
        known = _KNOWN.get(str(reading.payload.get("strategy")))
        return say("Nobody has shown me this strategy.") if known is None else hand_in(*known)


@scripted_models.register("builder-mends")
class MendingBuilder(GoldBuilder):
    """Forgets the program, then writes one that crashes, then the right one."""

    summary: ClassVar[str] = "forgets a file, then hands in a crash, then the right strategy"

    def build(self, reading: Reading) -> ModelReply:
        """Answer by iteration."""
        known = _KNOWN.get(str(reading.payload.get("strategy")))
        turn = reading.payload.get("iteration")
        if known is None or turn == 0:
            return say("I shall write a class TradingStrategy that follows the document.")
        card, source = known
        return hand_in(card, source + "\n\nraise KeyError('close')\n" if turn == 1 else source)


@scripted_models.register("builder-peeps")
class PeepingBuilder(GoldBuilder):
    """Hands in the right strategy on tomorrow's closes."""

    summary: ClassVar[str] = "hands in strategies that read tomorrow's close"

    def build(self, reading: Reading) -> ModelReply:
        """Answer with a leak."""
        known = _KNOWN.get(str(reading.payload.get("strategy")))
        if known is None:
            return super().build(reading)
        return hand_in(known[0], known[1].replace("class TradingStrategy", "class _Honest", 1) + _PEEP)


def hand_in(card: str, source: str) -> ModelReply:
    """Answer with a card and a program, each in its fence."""
    return say(f"The card:\n\n```json\n{card.strip()}\n```\n\nThe program:\n\n```python\n{source.strip()}\n```\n")


def marks(request: AskModel) -> dict[str, object]:
    """Return marks between 5 and 9 made from the text alone. They mean nothing, and stay the same."""
    digest = hashlib.sha256(request.messages[-1].text.encode()).digest()
    return {
        "fidelity": 5 + digest[0] % 5,
        "risk": 5 + digest[1] % 5,
        "strengths": "it can be read",
        "weaknesses": "this reviewer cannot read",
    }
