"""Support dialogues with models: prompt files, plain tables, JSON in answers, and retries.

A fence ends only at the start of a line. A line break inside a JSON string is written ``\\n``, so
three backticks in a quoted text (news, an agent's own reasons) never end the block around them.
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

from tradeassay.core.errors import UNDECODABLE
from tradeassay.core.hashing import sha256_bytes
from tradeassay_bench.core.dialogue import AskModel, Message, ModelReply


class PromptFolder:
    """The prompts of one protocol: text files ``<name>.<version>.txt`` in a separate package.

    Any changed word requires a new version of the files and of the benchmark.
    """

    def __init__(self, package: str, version: str, names: tuple[str, ...]) -> None:
        self.package, self.version, self.names = package, version, names

    @property
    def files(self) -> tuple[str, ...]:
        """Return the paths of the files below the outermost package.

        Recorded runs refer to prompts by these paths.
        """
        folder = self.package.partition(".")[2].replace(".", "/")
        return tuple(f"{folder}/{name}.{self.version}.txt" for name in self.names)

    @property
    def hashes(self) -> dict[str, str]:
        names = [f"{name}.{self.version}" for name in self.names]
        return {
            name: sha256_bytes((files(self.package) / f"{name}.txt").read_bytes()) for name in names
        }

    def text(self, name: str) -> str:
        return (files(self.package) / f"{name}.{self.version}.txt").read_text(encoding="utf-8")

    def fill(self, name: str, **values: object) -> str:
        """Return a prompt with its placeholders filled in.

        Raises :class:`KeyError` for a placeholder without a value.
        """
        pieces = _pieces(self.package, f"{name}.{self.version}.txt")
        return "".join([str(values[piece]) if blank else piece for piece, blank in pieces])


@cache
def _pieces(package: str, file: str) -> tuple[tuple[str, bool], ...]:
    """Return a prompt as texts and names of placeholders. Names are marked True.

    A placeholder is ``$name`` or ``${name}``. ``$$`` is a dollar sign.
    """
    text = (files(package) / file).read_text(encoding="utf-8")
    pieces: list[tuple[str, bool]] = []
    at = 0
    for match in Template.pattern.finditer(text):
        if match["invalid"] is not None:
            raise ValueError(f"{file}: a lone dollar at character {match.start()}; write $$")
        name = match["named"] or match["braced"]
        pieces += [(text[at : match.start()], False), (name or "$", name is not None)]
        at = match.end()
    return (*pieces, (text[at:], False))


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a plain table, one row per line, cells between bars. Unknown values are a dash."""
    lines = [" | ".join(columns)]
    lines.extend(" | ".join(map(cell, row)) for row in rows)
    return "\n".join(lines)


def cell(value: object) -> str:
    """Return the text of a cell: numbers without needless digits, None as a dash."""
    if isinstance(value, float):
        return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else repr(value)
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


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
"""Common errors in JSON and their explanations. The search skips quoted texts."""


class Fenced(msgspec.Struct, frozen=True, kw_only=True):
    """One fenced block: the label after the opening fence, and the text between the fences."""

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
    """Yield each opening match with the first closing match after it, left to right.

    The time is linear in the length of the text. A single pattern for both would search for the end
    of every opening again, up to the end of the text. That takes minutes for an answer that loops.
    """
    at = 0
    while (opened := opening.search(text, at)) and (closed := closing.search(text, opened.end())):
        yield opened, closed
        at = closed.end()


def parse_object(text: str) -> dict[str, object] | None:
    """Return a text that is a JSON object as a dictionary, or None for any other text."""
    body = text.strip()
    if not body.startswith("{") or not body.endswith("}"):
        return None
    try:
        value = msgspec.json.decode(body)
    except UNDECODABLE:
        return None
    return value if isinstance(value, dict) else None


def outer_objects(text: str) -> Iterator[str]:
    """Yield the outermost ``{...}`` spans of a text, left to right.

    Braces in JSON strings do not count.
    """
    start = text.find("{")
    while start >= 0:
        end = _closing(text, start)
        if end is None:
            return
        yield text[start : end + 1]
        start = text.find("{", end + 1)


def unreadable(text: str) -> str:
    """Return a sentence on why a text contains no readable JSON object.

    It quotes nothing from the text.
    """
    start = text.find("{")
    if start < 0:
        return "it is empty" if not text.strip() else "there is no { in it"
    open_ones: list[str] = []
    if _closing(text, start, open_ones) is None and open_ones:
        if open_ones[-1] == '"':
            return "a quotation mark is opened and not closed"
        missing = "".join(reversed(open_ones))
        return f"{missing} is missing at its end: not every bracket that is opened is closed"
    # These sentences are our own. The messages of a JSON library change with its version, and
    # recorded questions would change with them.
    bare = _QUOTED.sub('""', text[start:])
    for pattern, explanation in _SLIPS:
        if pattern.search(bare):
            return explanation
    return "it breaks the rules of JSON"


def _closing(text: str, start: int, left_open: list[str] | None = None) -> int | None:
    """Return the position of the bracket that closes the bracket at ``start``, or None.

    With None, ``left_open`` receives the missing closing brackets.
    """
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
    """Return the JSON object in a model's answer, or None.

    The search order is: the whole text, the last fenced block, the last ``{...}`` in the prose. Of
    several objects the last one with ``key`` is used, because a model that reasons in its answer
    concludes at the end.
    """
    answer = parse_object(text)
    if answer is not None:
        return answer
    blocks = [parse_object(block.text) for block in fenced_blocks(text)]
    objects = [block for block in blocks if block is not None]
    if not objects:
        objects = [body for body in map(parse_object, outer_objects(text)) if body is not None]
    with_key = [body for body in objects if key in body]
    if with_key:
        return with_key[-1]
    return objects[-1] if objects else None


def unclosed_object(text: str) -> dict[str, object] | None:
    """Return the JSON object of a text that lacks only its last brace, or None.

    Fences around the object are ignored.
    """
    inner = text.strip().removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    return None if inner.endswith("}") else parse_object(f"{inner}}}") or None


T = TypeVar("T")
Tail = tuple[Message, ...]
"""The messages added to a question after its first attempt."""

CUT_OFF = "cut_off"
"""Kind of failure: an answer ended at the token limit and was unusable."""
REPEATED = "repeated"
"""Kind of failure: the same wrong answer was given twice in a row."""
GIVE_UP = "give_up"
"""Kind of failure: all attempts are used up."""
UNREAD = frozenset(("parse", "schema", "stray", "too_large"))
"""Kinds of error of an agent with an unreadable answer."""
FINAL = frozenset(("over_budget",))
"""Kinds of error after which a retry is pointless."""


class Refused(Exception):
    """Raised for an unusable answer, with the kind of failure and a list of complaints."""

    def __init__(self, kind: str, *lines: str) -> None:
        super().__init__("; ".join(lines))
        self.kind, self.lines = kind, lines


class Abandoned(Exception):
    """Raised for a question without a usable answer. The text is the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inquiry(Generic[T]):
    """One question and the rules of its retries.

    ``ask`` returns the request for a tail and the number of the attempt. ``read`` returns the
    content of an answer or raises :class:`Refused`. The remaining functions handle failures:

    - ``on_refusal`` receives a refused answer, the reasons and the number of attempts left. It
      returns the new tail.
    - ``on_cut`` does the same for an answer that was cut off. If it is None, a cut answer is
      refused.
    - ``on_error`` may change the tail after an error, or raise :class:`Abandoned`.
    - ``record`` receives the kind and the detail of every failure.

    ``silences`` is the number of missing or cut answers after which the inquiry ends. Without
    ``cuts_end`` a cut answer then counts as a refused answer. ``noun`` names the answer in the text
    of :class:`Abandoned`.
    """

    ask: Callable[[Tail, int], AskModel]
    read: Callable[[ModelReply], T]
    on_refusal: Callable[[ModelReply, Refused, int], Tail]
    record: Callable[[str, str], None]
    on_cut: Callable[[ModelReply], Tail] | None = None
    on_error: Callable[[ModelReply, Tail], Tail] = lambda reply, tail: tail
    attempts: int
    silences: int
    cuts_end: bool = True
    noun: str = "answer"


def ask_until_read(inquiry: Inquiry[T]) -> Generator[AskModel, ModelReply, T]:
    """Repeat a question until an answer is usable, and return its content.

    Raises :class:`Abandoned` if no answer was usable.
    """
    refused, silent, previous = 0, 0, None
    tail: Tail = ()
    while True:
        reply = yield inquiry.ask(tail, refused + 1)
        if reply.error is not None or reply.error_kind is not None:
            kind = reply.error_kind or "unreachable"
            inquiry.record(kind, reply.error or "no answer")
            silent += 1
            if kind in FINAL or silent >= inquiry.silences:
                raise Abandoned("no answer could be read" if kind in UNREAD else "no answer came")
            tail = inquiry.on_error(reply, tail)
            continue
        try:
            return inquiry.read(reply)
        except Refused as refusal:
            if inquiry.on_cut is not None and reply.stop == "length":
                silent += 1
                if silent < inquiry.silences or inquiry.cuts_end:
                    tail = inquiry.on_cut(reply)
                    if silent < inquiry.silences:
                        if not inquiry.cuts_end:
                            previous = _content(reply)
                        continue
                    raise Abandoned("every answer was cut off at the token limit") from None
            inquiry.record(refusal.kind, str(refusal))
            refused += 1
            content = _content(reply)
            if content == previous:
                inquiry.record(
                    REPEATED, "the same answer came again; there is no point in asking once more"
                )
                refused = inquiry.attempts
            previous = content
            if refused >= inquiry.attempts:
                reason = f"no usable {inquiry.noun} in {inquiry.attempts} attempts"
                inquiry.record(GIVE_UP, reason)
                raise Abandoned(reason) from None
            tail = inquiry.on_refusal(reply, refusal, inquiry.attempts - refused)


def _content(reply: ModelReply) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return the text and calls of a reply, for a comparison that ignores white space."""
    return " ".join(reply.text.split()), tuple((call.name, call.arguments) for call in reply.calls)


_HALF, _COMPLAINTS = 3_000, 12
"""Characters kept at each end of a long refused answer, and the maximum number of complaints."""


def own_words(reply: ModelReply, *, calls: bool = False) -> Tail:
    """Return a refused answer as a message of the conversation, shortened if it is long.

    With ``calls`` the message includes its tool calls. An empty answer returns no message, because
    providers refuse empty messages.
    """
    text = reply.text
    if len(text) > 2 * _HALF:
        # The error is usually at the end of an answer. The beginning shows its topic.
        text = f"{text[:_HALF]} [...] {text[-_HALF:]}"
    kept_calls = reply.calls if calls else ()
    if not text.strip() and not kept_calls:
        return ()
    return (Message(role="assistant", text=text, calls=kept_calls),)


def listed(complaints: Sequence[str]) -> str:
    """Return complaints as a list, one per line, limited to a number that a model can use."""
    every = list(dict.fromkeys(complaints))
    lines = [f"- {line}" for line in every[:_COMPLAINTS]]
    if len(every) > _COMPLAINTS:
        lines.append(f"- and {len(every) - _COMPLAINTS} more of the same kind")
    return "\n".join(lines)


def left_in_words(left: int) -> str:
    return "This is the last attempt." if left == 1 else f"{left} attempts are left."
