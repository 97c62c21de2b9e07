"""Models that record their answers, and models that are only a recording."""

from __future__ import annotations

from tradeassay.core.dialogue import AskModel, Message, ModelReply
from tradeassay.core.errors import ModelError
from tradeassay.llm.cassette.store import ANSWERS, CassetteStore, RecordedAnswer, RecordedQuestion, asked, key_of
from tradeassay.llm.model import Model, ModelParams, QuestionPlace

_AROUND = 30


def first_difference(question: RecordedQuestion, request: AskModel, recorded: RecordedAnswer) -> str:
    """Return the first thing in which a question differs from a recorded one, in one sentence."""
    if not recorded.texts:
        return _hash_difference(question, request, recorded.asked)
    for number, (now, then) in enumerate(zip(request.messages, recorded.messages, strict=False)):
        if now != then:
            return f"message {number} ({now.role}) differs: {_message_difference(now, then)}"
    ours, theirs = len(request.messages), len(recorded.messages)
    if ours != theirs:
        longer, word = (request.messages, "new") if ours > theirs else (recorded.messages, "missing")
        at = min(ours, theirs)
        return f"message {at} ({longer[at].role}) is {word}: {_excerpt(longer[at].text, 0)}"
    if request.tools != recorded.tools:
        return f"the tools differ: {_tools_difference(request, recorded)}"
    return _setting_difference(question, recorded.asked)


_SETTINGS = ("model", "params", "must_call", "answer_schema", "purpose", "attempt", "step", "sample", "index")


def _setting_difference(question: RecordedQuestion, recorded: RecordedQuestion) -> str:
    for field in _SETTINGS:
        now, then = getattr(question, field), getattr(recorded, field)
        if now != then:
            return f"{field} is {now!r}, recorded was {then!r}"
    return "nothing differs"


def _hash_difference(question: RecordedQuestion, request: AskModel, recorded: RecordedQuestion) -> str:
    """Return the first difference from a question of which only the hashes are kept."""
    for number, (now, then) in enumerate(zip(question.messages, recorded.messages, strict=False)):
        if now != then:
            text = _excerpt(request.messages[number].text, 0)
            return f"message {number} ({request.messages[number].role}) is another text: {text}"
    if len(question.messages) != len(recorded.messages):
        return f"it has {len(question.messages)} messages, recorded were {len(recorded.messages)}"
    if question.tools != recorded.tools:
        return "the tools differ"
    return _setting_difference(question, recorded)


def _message_difference(now: Message, then: Message) -> str:
    if now.role != then.role:
        return f"recorded was a {then.role} message"
    if now.text != then.text:
        at = _departure(now.text, then.text)
        return f"at character {at} it has {_excerpt(now.text, at)}, recorded was {_excerpt(then.text, at)}"
    if now.calls != then.calls:
        names = ", ".join(call.name for call in now.calls) or "none"
        before = ", ".join(call.name for call in then.calls) or "none"
        if names != before:
            return f"it calls {names}, recorded was {before}"
        for mine, theirs in zip(now.calls, then.calls, strict=True):
            if mine.arguments != theirs.arguments:
                at = _departure(mine.arguments, theirs.arguments)
                return (
                    f"in the arguments of {mine.name}, at character {at}, it has "
                    f"{_excerpt(mine.arguments, at)}, recorded was {_excerpt(theirs.arguments, at)}"
                )
        return "the ids of its calls differ, or where they were found"
    return f"it answers call {now.call_id!r}, recorded was {then.call_id!r}"


def _tools_difference(request: AskModel, recorded: RecordedAnswer) -> str:
    for now, then in zip(request.tools, recorded.tools, strict=False):
        if now.name != then.name:
            return f"'{now.name}' stands where '{then.name}' was"
        if now != then:
            part = "description" if now.description != then.description else "schema"
            return f"the {part} of '{now.name}' changed"
    return f"there are {len(request.tools)}, recorded were {len(recorded.tools)}"


def _departure(now: str, then: str) -> int:
    for at, (a, b) in enumerate(zip(now, then, strict=False)):
        if a != b:
            return at
    return min(len(now), len(then))


def _excerpt(text: str, at: int) -> str:
    if at >= len(text):
        return "its end"
    start = max(0, at - _AROUND // 2)
    piece = text[start : at + _AROUND]
    return f"{'…' if start else ''}{piece!r}{'…' if at + _AROUND < len(text) else ''}"


class RecordingModel:
    """Answers from the cassette where it can, else asks, and records before it answers.

    A failure is recorded like any answer, because a replay must repeat it; a resumed run asks again where no
    answer came (no network, no key, no money), and the newer line counts from then on.
    """

    def __init__(self, inner: Model, params: ModelParams, store: CassetteStore) -> None:
        self._inner = inner
        self._params = params
        self._store = store

    @property
    def name(self) -> str:
        """The model's full name."""
        return self._inner.name

    async def ask(self, request: AskModel, place: QuestionPlace) -> ModelReply:
        """Answer one request."""
        question = asked(self.name, self._params, request, place)
        key = key_of(question)
        known = self._store.find(place.episode, key)
        if known is not None and known.error_kind in ANSWERS:
            return known
        reply = await self._inner.ask(request, place)
        self._store.record(place.episode, key, question, request, reply)
        await self._store.settle(place.episode)
        return reply


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

    async def ask(self, request: AskModel, place: QuestionPlace) -> ModelReply:
        """Return the recorded answer."""
        question = asked(self._name, self._params, request, place)
        known = self._store.find(place.episode, key_of(question))
        if known is not None:
            return known
        raise self._mismatch(question, request, place)

    def _mismatch(self, question: RecordedQuestion, request: AskModel, place: QuestionPlace) -> CassetteMismatch:
        where = f"episode {place.episode}, step {place.step}, sample {place.sample}, question {place.index}"
        recorded = self._store.recorded(place.episode)
        there = [record for record in recorded if record.asked.place == question.place]
        if not there:
            return CassetteMismatch(
                f"nothing was recorded for {where} ({request.purpose}, {self._name})",
                hint="run it without replay first, or replay with the settings it was recorded with",
            )
        same_model = [record for record in there if record.asked.model == self._name] or there
        difference = first_difference(question, request, same_model[-1])
        return CassetteMismatch(
            f"the recording for {where} answers another question: {difference}",
            hint="replay with the settings and the code it was recorded with, or record anew",
        )
