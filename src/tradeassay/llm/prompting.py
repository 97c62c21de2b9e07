"""What all dialogues with models share: prompts as files, the JSON object inside an answer, asking again."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template
from typing import Generic, TypeVar

from tradeassay.core.dialogue import AskModel, Message, ModelReply
from tradeassay.core.hashing import sha256_bytes
from tradeassay.llm.json_text import fenced_blocks, outer_objects, parse_object

_ROOT = "tradeassay."


class PromptFolder:
    """The prompts of one protocol: text files ``<name>.<version>.txt`` in a package of their own. A change of one
    word is a new version of the files and of the benchmark."""

    def __init__(self, package: str, version: str, names: tuple[str, ...]) -> None:
        self.package = package
        self.version = version
        self.names = names

    @property
    def files(self) -> tuple[str, ...]:
        folder = self.package.removeprefix(_ROOT).replace(".", "/")
        return tuple(f"{folder}/{name}.{self.version}.txt" for name in self.names)

    @property
    def hashes(self) -> dict[str, str]:
        names = [f"{name}.{self.version}" for name in self.names]
        return {name: sha256_bytes((files(self.package) / f"{name}.txt").read_bytes()) for name in names}

    def text(self, name: str) -> str:
        return (files(self.package) / f"{name}.{self.version}.txt").read_text(encoding="utf-8")

    def fill(self, name: str, **values: object) -> str:
        """Return a prompt with its blanks filled in; a blank without a value raises :class:`KeyError`."""
        pieces = _pieces(self.package, f"{name}.{self.version}.txt")
        return "".join([str(values[piece]) if blank else piece for piece, blank in pieces])


@cache
def _pieces(package: str, file: str) -> tuple[tuple[str, bool], ...]:
    """Return a prompt in pieces, texts and names of blanks (``$name``, ``${name}``; ``$$`` is a dollar)."""
    text, pieces, at = (files(package) / file).read_text(encoding="utf-8"), [], 0
    for found in Template.pattern.finditer(text):
        if found["invalid"] is not None:
            raise ValueError(f"{file}: a lone dollar at character {found.start()}; write $$")
        name = found["named"] or found["braced"]
        pieces += [(text[at : found.start()], False), (name or "$", name is not None)]
        at = found.end()
    return (*pieces, (text[at:], False))


def answer_object(text: str, key: str) -> dict[str, object] | None:
    """Return the JSON object that a text answers with, None when there is none. The search order is: the whole
    text, the last fenced block, the last ``{...}`` in the prose. Where several blocks are objects, the last one
    that has ``key`` wins: a model that thinks aloud concludes at the end."""
    whole = parse_object(text)
    if whole is not None:
        return whole
    blocks = [parse_object(block.text) for block in fenced_blocks(text)]
    found = [body for body in blocks if body is not None]
    if not found:
        found = [body for body in map(parse_object, outer_objects(text)) if body is not None]
    keyed = [body for body in found if key in body]
    return keyed[-1] if keyed else found[-1] if found else None


def unclosed_object(text: str) -> dict[str, object] | None:
    """Return the JSON object that a text is, fences aside, but for its last brace; None for anything else."""
    inner = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    return None if inner.endswith("}") else parse_object(f"{inner}}}") or None


T = TypeVar("T")
Tail = tuple[Message, ...]
"""What is added to the question since it was first asked."""

CUT_OFF = "cut_off"
"""The kind of failure of an answer that ended at the token limit before it could be used."""
REPEATED = "repeated"
"""The kind of failure that notes that the same wrong answer came twice in a row."""
GIVE_UP = "give_up"
"""The kind of failure that notes that the attempts are used up."""
UNREAD = frozenset(("parse", "schema", "stray", "too_large"))
"""Kinds of error of an agent that did answer."""
FINAL = frozenset(("over_budget",))
"""Kinds of error after which asking again is pointless."""


class Refused(Exception):
    """An answer that cannot be used: the kind of failure, and everything that is wrong with it."""

    def __init__(self, kind: str, *lines: str) -> None:
        super().__init__("; ".join(lines))
        self.kind, self.lines = kind, lines


class GaveUp(Exception):
    """No usable answer came; its text says what came instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry(Generic[T]):
    """One question and the rules of asking it again.

    ``ask`` makes the request from the tail and the number of the attempt; ``read`` returns what an answer says or
    raises :class:`Refused`. ``again`` says what was wrong, with how many attempts are left, and returns the new
    tail; ``cut`` does so for an answer that was cut off (None: that is a wrong answer as any other). ``count``
    takes note of a failure's kind and detail. ``lost`` may change the tail after an error, or raise
    :class:`GaveUp`.

    ``silences`` is how many answers may be missing or cut off; then it ends, or, unless ``cuts_end``, a cut answer
    counts as a wrong one."""

    ask: Callable[[Tail, int], AskModel]
    read: Callable[[ModelReply], T]
    again: Callable[[ModelReply, Refused, int], Tail]
    count: Callable[[str, str], None]
    cut: Callable[[ModelReply], Tail] | None = None
    lost: Callable[[ModelReply, Tail], Tail] = lambda reply, tail: tail
    attempts: int
    silences: int
    cuts_end: bool = True
    what: str = "answer"


def ask_until_read(inquiry: Inquiry[T]) -> Generator[AskModel, ModelReply, T]:
    """Ask until an answer can be used; raises :class:`GaveUp` when none came."""
    refused, silent, last = 0, 0, None
    tail: Tail = ()
    while True:
        reply = yield inquiry.ask(tail, refused + 1)
        if reply.error is not None or reply.error_kind is not None:
            kind = reply.error_kind or "unreachable"
            inquiry.count(kind, reply.error or "no answer")
            silent += 1
            if kind in FINAL or silent >= inquiry.silences:
                raise GaveUp("no answer could be read" if kind in UNREAD else "no answer came")
            tail = inquiry.lost(reply, tail)
            continue
        try:
            return inquiry.read(reply)
        except Refused as wrong:
            if inquiry.cut is not None and reply.stop == "length":
                silent += 1
                if silent < inquiry.silences or inquiry.cuts_end:
                    tail = inquiry.cut(reply)
                    if silent < inquiry.silences:
                        last = _said(reply) if not inquiry.cuts_end else last
                        continue
                    raise GaveUp("every answer was cut off at the token limit") from None
            inquiry.count(wrong.kind, str(wrong))
            refused += 1
            said = _said(reply)
            if said == last:
                inquiry.count(REPEATED, "the same answer came again; there is no point in asking once more")
                refused = inquiry.attempts
            last = said
            if refused >= inquiry.attempts:
                tried = f"no usable {inquiry.what} in {inquiry.attempts} attempts"
                inquiry.count(GIVE_UP, tried)
                raise GaveUp(tried) from None
            tail = inquiry.again(reply, wrong, inquiry.attempts - refused)


def _said(reply: ModelReply) -> tuple[str, tuple[tuple[str, str], ...]]:
    return " ".join(reply.text.split()), tuple((call.name, call.arguments) for call in reply.calls)


def own_words(reply: ModelReply, *, calls: bool = False, longest: int = 6_000) -> Tail:
    """Return a refused answer as it stays in the conversation, bounded, with its ``calls`` where tools are
    offered. Nothing where it is empty, because providers refuse empty messages."""
    text = reply.text
    if len(text) > longest:
        # The end of an answer is what was wrong most often, its beginning says what it is about.
        text = f"{text[: longest // 2]} [...] {text[-(longest // 2) :]}"
    made = reply.calls if calls else ()
    return (Message(role="assistant", text=text, calls=made),) if text.strip() or made else ()


def listed(complaints: Sequence[str], most: int = 12) -> str:
    """Return complaints as a list, one line each, not more than a model can make use of."""
    every = list(dict.fromkeys(complaints))
    lines = [f"- {line}" for line in every[:most]]
    if len(every) > most:
        lines.append(f"- and {len(every) - most} more of the same kind")
    return "\n".join(lines)


def left_in_words(left: int) -> str:
    return "This is the last attempt." if left == 1 else f"{left} attempts are left."
