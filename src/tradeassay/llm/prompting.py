"""What all dialogues with models share: prompts as files, plain tables, the JSON inside an answer, asking again.

A fence ends only at the start of a line. A line break inside a JSON string is written ``\\n``, so three
backticks in a quoted text (news, an agent's own reasons) can never end the block they are in.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from string import Template
from typing import Generic, TypeVar

import msgspec

from tradeassay.core.dialogue import AskModel, Message, ModelReply
from tradeassay.core.errors import UNDECODABLE
from tradeassay.core.hashing import sha256_bytes

_ROOT = "tradeassay."


class PromptFolder:
    """The prompts of one protocol: text files ``<name>.<version>.txt`` in a package of their own. A change of one
    word is a new version of the files and of the benchmark."""

    def __init__(self, package: str, version: str, names: tuple[str, ...]) -> None:
        self.package, self.version, self.names = package, version, names

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


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a plain table, one row per line, cells between bars. What is not known is a dash."""
    lines = [" | ".join(columns)]
    lines.extend(" | ".join(map(cell, row)) for row in rows)
    return "\n".join(lines)


def cell(value: object) -> str:
    """Return one cell: numbers without needless digits, an unknown one as a dash."""
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else repr(value)
    if value is None:
        return "-"
    return str(value) if not isinstance(value, bool) else "yes" if value else "no"


_OPEN = re.compile(r"^[ \t]*+```[ \t]*+([\w.+-]*+)[^\n`]*+\n", re.MULTILINE)
FENCE_END = re.compile(r"^[ \t]*+```[ \t]*+$", re.MULTILINE)
_BRACES = {"{": "}", "[": "]"}
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*+"', re.DOTALL)
_SLIPS = (
    (re.compile(r"<[^<>\n]*>"), "a < > of the form stands in it where a value belongs"),
    (re.compile(r",\s*[}\]]"), "there is a comma before a closing bracket"),
    (re.compile(r"'"), "names and texts need double quotation marks"),
    (re.compile(r"//|#|/\*"), "there is a comment in it"),
    (re.compile(r"\}\s*\S"), "something follows its last bracket, or a comma is missing"),
)
"""Common slips, looked for outside of quoted texts."""


class Fenced(msgspec.Struct, frozen=True, kw_only=True):
    """One fenced block: what follows the opening fence on its line, and the text between the fences."""

    label: str
    text: str


def fenced_blocks(text: str) -> tuple[Fenced, ...]:
    """Return the fenced blocks of a text in order. A fence that is never closed is not a block."""
    if "```" not in text:
        return ()
    return tuple(
        Fenced(label=opened[1].lower(), text=text[opened.end() : closed.start()].strip())
        for opened, closed in pairs(text, _OPEN, FENCE_END)
    )


def pairs(
    text: str, opening: re.Pattern[str], closing: re.Pattern[str]
) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
    """Yield each beginning with the first end behind it, left to right, in time that grows with the text. One
    pattern for both would look for the end of every beginning again, up to the end of the text: minutes for an
    answer that loops."""
    at = 0
    while (opened := opening.search(text, at)) and (closed := closing.search(text, opened.end())):
        yield opened, closed
        at = closed.end()


def parse_object(text: str) -> dict[str, object] | None:
    """Return the JSON object that ``text`` is, or None when it is not one (numbers stay as JSON has them)."""
    body = text.strip()
    if not body.startswith("{") or not body.endswith("}"):
        return None
    try:
        value = msgspec.json.decode(body)
    except UNDECODABLE:
        return None
    return value if isinstance(value, dict) else None


def outer_objects(text: str) -> Iterator[str]:
    """Yield the outermost ``{...}`` spans of a text, braces in JSON strings not counted, left to right."""
    start = text.find("{")
    while start >= 0:
        end = _closing(text, start)
        if end is None:
            return
        yield text[start : end + 1]
        start = text.find("{", end + 1)


def unreadable(text: str) -> str:
    """Return in words why a text holds no JSON object that can be read. Nothing of the text is repeated."""
    start = text.find("{")
    if start < 0:
        return "it is empty" if not text.strip() else "there is no { in it"
    open_ones: list[str] = []
    if _closing(text, start, open_ones) is None and open_ones:
        if open_ones[-1] == '"':
            return "a quotation mark is opened and not closed"
        missing = "".join(reversed(open_ones))
        return f"{missing} is missing at its end: not every bracket that is opened is closed"
    # In words of ours: those of a JSON library change with its version, and a recorded question would too.
    bare = _QUOTED.sub('""', text[start:])
    return next((said for sign, said in _SLIPS if sign.search(bare)), "it breaks the rules of JSON")


def _closing(text: str, start: int, left_open: list[str] | None = None) -> int | None:
    """Return where the bracket at ``start`` is closed, or None: ``left_open`` then says what is not."""
    stack = [] if left_open is None else left_open
    inside = False
    at = start
    while at < len(text):
        char = text[at]
        if inside:
            if char == "\\":
                at += 1
            elif char == '"':
                inside = False
        elif char == '"':
            inside = True
        elif char in _BRACES:
            stack.append(_BRACES[char])
        elif char in "}]":
            if not stack or stack.pop() != char:
                stack.clear()
                return None
            if not stack:
                return at
        at += 1
    if inside:
        stack.append('"')
    return None


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


_HALF, _COMPLAINTS = 3_000, 12
"""How much of both ends of a long answer stays in the conversation, and how many complaints are listed."""


def own_words(reply: ModelReply, *, calls: bool = False) -> Tail:
    """Return a refused answer as it stays in the conversation, bounded, with its ``calls`` where tools are
    offered. Nothing where it is empty, because providers refuse empty messages."""
    text = reply.text
    if len(text) > 2 * _HALF:
        # The end of an answer is what was wrong most often, its beginning says what it is about.
        text = f"{text[:_HALF]} [...] {text[-_HALF:]}"
    made = reply.calls if calls else ()
    return (Message(role="assistant", text=text, calls=made),) if text.strip() or made else ()


def listed(complaints: Sequence[str]) -> str:
    """Return complaints as a list, one line each, not more than a model can make use of."""
    every = list(dict.fromkeys(complaints))
    lines = [f"- {line}" for line in every[:_COMPLAINTS]]
    if len(every) > _COMPLAINTS:
        lines.append(f"- and {len(every) - _COMPLAINTS} more of the same kind")
    return "\n".join(lines)


def left_in_words(left: int) -> str:
    return "This is the last attempt." if left == 1 else f"{left} attempts are left."
