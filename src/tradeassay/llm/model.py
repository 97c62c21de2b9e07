"""The one thing that everybody who wants an answer holds: a model."""

from __future__ import annotations

from typing import Protocol

import msgspec

from tradeassay.core.dialogue import AskModel, ModelReply, Usage


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where in a run a question is asked. Two questions of one run never share a place.

    ``sample`` tells repetitions of an episode apart (its seed), ``index`` counts the questions within a step.
    """

    episode: str
    step: int
    sample: int
    index: int


class Model(Protocol):
    """A model that can be asked.

    A bad answer, a refusal, a time-out, an empty purse: all of them are replies, never exceptions.
    """

    @property
    def name(self) -> str:
        """The model's full name."""
        ...

    async def ask(self, request: AskModel, place: Place) -> ModelReply:
        """Answer one request. May be called by many tasks at once."""
        ...


def failed_reply(kind: str, error: str, *, billed: bool = False) -> ModelReply:
    """Return the reply that stands for no answer.

    It cost nothing, unless it was ``billed``: the provider may have worked on it, and nobody knows for how much.
    """
    usage = Usage() if billed else Usage(usd=0.0)
    return ModelReply(stop="error", error=error, error_kind=kind, usage=usage)
