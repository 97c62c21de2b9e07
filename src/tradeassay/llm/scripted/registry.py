"""The door for scripted models."""

from __future__ import annotations

from typing import ClassVar, Protocol, runtime_checkable

from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.core.registry import Registry


class ScriptedModel(Protocol):
    """A program that answers as a model would. The same request must get the same answer, always."""

    summary: ClassVar[str]

    def answer(self, request: AskModel) -> ModelReply:
        """Answer one request. Usage is filled in by whoever calls."""
        ...


@runtime_checkable
class Slowly(Protocol):
    """A scripted model that takes its time."""

    def seconds(self, request: AskModel) -> float:
        """Return how long the answer to a request takes."""
        ...


scripted_models: Registry[type[ScriptedModel]] = Registry("scripted_model")
"""All scripted models. Other packages add theirs through the entry-point group ``tradeassay.scripted_models``."""
