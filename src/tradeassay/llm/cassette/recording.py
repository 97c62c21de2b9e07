"""A model whose answers are written down. What was answered already is not asked again."""

from __future__ import annotations

from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.llm.cassette.key import asked, key_of
from tradeassay.llm.cassette.store import CassetteStore
from tradeassay.llm.model import Model, Place
from tradeassay.llm.params import ModelParams

ANSWERS = frozenset({None, "refused", "context"})
"""Error kinds that are the model's answer. After any other one a resumed run asks again."""


class RecordingModel:
    """Answers from the cassette where it can, else asks, and records before it answers.

    A failure is recorded like any answer, because a replay must repeat it; a resumed run asks again where nobody
    had answered (no network, no key, no money), and the newer line counts from then on.
    """

    def __init__(self, inner: Model, params: ModelParams, store: CassetteStore) -> None:
        self._inner = inner
        self._params = params
        self._store = store

    @property
    def name(self) -> str:
        """The model's full name."""
        return self._inner.name

    async def ask(self, request: AskModel, place: Place) -> ModelReply:
        """Answer one request."""
        question = asked(self.name, self._params, request, place)
        key = key_of(question)
        known = self._store.find(place.episode, key)
        if known is not None and known.error_kind in ANSWERS:
            return known
        reply = await self._inner.ask(request, place)
        self._store.record(place.episode, key, question, request, reply)
        return reply
