"""A model that is only a recording. It reaches no network, and does not guess."""

from __future__ import annotations

from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.core.errors import ModelError
from tradeassay.llm.cassette.difference import first_difference
from tradeassay.llm.cassette.key import Asked, asked, key_of
from tradeassay.llm.cassette.store import CassetteStore
from tradeassay.llm.model import Place
from tradeassay.llm.params import ModelParams


class CassetteMismatch(ModelError):
    """A replay asked something that was not recorded."""


class ReplayingModel:
    """Answers from the cassette alone; raises :class:`CassetteMismatch` for a question that is not in it."""

    def __init__(self, name: str, params: ModelParams, store: CassetteStore) -> None:
        self._name = name
        self._params = params
        self._store = store

    @property
    def name(self) -> str:
        """The model's full name."""
        return self._name

    async def ask(self, request: AskModel, place: Place) -> ModelReply:
        """Return the recorded answer."""
        question = asked(self._name, self._params, request, place)
        known = self._store.find(place.episode, key_of(question))
        if known is not None:
            return known
        raise self._mismatch(question, request, place)

    def _mismatch(self, question: Asked, request: AskModel, place: Place) -> CassetteMismatch:
        where = f"episode {place.episode}, step {place.step}, sample {place.sample}, question {place.index}"
        recorded = self._store.recorded(place.episode)
        there = [record for record in recorded if record.asked.place == question.place]
        if not there:
            return CassetteMismatch(
                f"nothing was recorded for {where} ({request.purpose}, {self._name})",
                mend="run it without replay first, or replay with the settings it was recorded with",
            )
        same_model = [record for record in there if record.asked.model == self._name] or there
        difference = first_difference(question, request, same_model[-1])
        return CassetteMismatch(
            f"the recording for {where} answers another question: {difference}",
            mend="replay with the settings and the code it was recorded with, or record anew",
        )
