"""Keys never reach a disk or a screen.

What counts as a secret is what was *configured* as one: API keys, tokens and passwords in the environment, the
password in the address of a server or a database, and whatever a caller hands to :func:`remember`. The enemy is an
honest but careless server or log: it echoes the key it was called with. So everything foreign is cleaned where it
enters, before it is read, and every writer cleans what it writes once more. A secret is found whole or as any
considerable piece (which is what a message split in two leaves), plain, in base64 and in hexadecimal, and behind
the escapes of addresses, JSON, Python and HTML: every sign of it or some, and up to four times over. Every other
disguise is outside the threat and stays.

Text that merely looks like a key (``sk-...``, ``Bearer ...``) but is not configured here stays and is counted.
"""

from __future__ import annotations

import math
import os
import re
import sys
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, TypeVar

REMOVED = "[secret removed]"
SHORTEST = 8
"""A value with fewer characters than this is never taken for a secret."""
SHORTEST_WORDS = 12
"""The same for a value that consists of words ("not-needed" is a placeholder, not a key)."""
PIECE = 12
"""A piece of a long key with this many characters is removed; for a shorter key, half of it is enough."""

_NAMES = (
    r"_(?:API_?KEYS?|AUTH_?KEY|ACCESS_KEY|PRIVATE_KEY|SECRET|TOKEN|PASS|PASSWORD|PASSWD|PASSPHRASE|PAT|JWT|CREDENTIALS?"
    r"|BEARER|AUTHORIZATION)_|^_KEY_$|(?:APIKEY|SECRETKEY|TOKEN|PASSWORD)_$"
)
"""What the name of a key has in it, as :func:`_called` writes names."""
# Every command loads this module: patterns stay texts until they are needed, and ``re`` keeps what it compiled.
_WORDS = r"[A-Za-z][a-z]*(?:[-_. ][A-Za-z][a-z]*)*|[A-Z]+(?:[-_. ][A-Z]+)*"
_PLAIN = rb"[A-Za-z][a-z]*|[A-Z]+|[^A-Za-z\x80-\xff]+"
"""A piece that is no key's alone: one word, a number, a date, a ruler."""
_LOOKS = (
    rb"\bsk-[A-Za-z0-9_-]{16,}|\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bA(?:KI|SI)A[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_-]{30,}"
    rb"|\bgh[pousr]_[A-Za-z0-9]{30,}|\bhf_[A-Za-z0-9]{30,}|\bBearer\s+[A-Za-z0-9._~+/-]{16,}"
    rb"|\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\."
)
_GIVEN = (
    r"(?i)(?:^|\s)(?:--?[\w-]*(?:api-?key|token|password|secret)|\w*(?:API_?KEY|TOKEN|PASSWORD|SECRET))[= ]"
    r"(?![-$])\S{8,}"
)
"""A key that is given to a command in its arguments, or as a variable before it."""

_ESCAPE = (
    rb"[%%\\&](?:"
    rb"(?<=%%)(?:[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4})"
    rb"|(?<=\\)(?:[%s]|u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}"
    rb"|u\{[0-9A-Fa-f]{1,6}\}|x[0-9A-Fa-f]{2}|U[0-9A-Fa-f]{8})"
    rb"|(?<=&)(?!(?:%s);)(?:(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});?|[A-Za-z][A-Za-z0-9]{1,31};)"
    rb")"
)
"""An escape of addresses (as %2F), of JSON and Python (as a backslash and u002f), or of HTML (as &#47;, which
browsers read without the semicolon too). To be filled in: the signs that may stand behind a backslash, and the
entities that are left alone."""
_SIMPLE = {
    b"\\": b"\\",
    b'"': b'"',
    b"'": b"'",
    b"/": b"/",
    b"b": b"\b",
    b"f": b"\f",
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
}
"""What stands behind a backslash, and what it means."""
_COMMON = {b"lt": b"<", b"gt": b">", b"quot": b'"', b"#34": b'"', b"#39": b"'"}
"""The entities that every page is full of."""
_DEEPEST = 4
"""How often a text may be escaped again."""

T = TypeVar("T")
Words = TypeVar("Words", str, bytes)
_Search = tuple[re.Pattern[bytes], dict[bytes, list[tuple[bytes, int, int, bool]]], list[int], re.Pattern[bytes]]
"""A pattern of pieces of secrets; of each piece the spellings that hold it, where in them, how much of them gives
them away, and whether that has to be more than :data:`_PLAIN`; the sizes of pieces; a pattern of escapes."""


class Secrets:
    """The secrets a process knows. Safe to share between threads; nothing is ever forgotten."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.values: tuple[str, ...] = ()
        self._search: _Search | None = None
        self.lookalikes = 0

    def add(self, value: str | None) -> None:
        """Remember a value, unless it is too short or too plain to be a secret."""
        value = re.sub(r"(?i)^(bearer|basic) +", "", (value or "").strip())
        least = SHORTEST_WORDS if re.fullmatch(_WORDS, value) else SHORTEST
        if len(value) >= least and len(set(value)) > 1 and not value.isdigit() and value not in self.values:
            with self._lock:
                self.values += (value,)
                self._search = None

    def add_settings(self, settings: Mapping[str, str]) -> None:
        """Remember values whose names say key, token or password, and passwords inside addresses."""
        for name, value in settings.items():
            if "://" in value:
                self.add_address(value)
                continue
            # Whatever ends in KEY is a key unless it is public, or a date or a number: what is sorted by one.
            called = _called(name)
            named = called.endswith("_KEY_") and "_PUBLIC_" not in called and any(map(str.isalpha, value))
            named |= (called.endswith("_PWD_") and called != "_PWD_") or names_secret(name)
            if named and not re.match(r"[~.]{0,2}/|[A-Za-z]:\\|[\w-]*(?:ssh|ecdsa)-[\w@.-]+ AAAA", value):
                self.add(value)

    def add_address(self, address: str | None) -> None:
        """Remember the password of an address such as ``https://user:password@host``, and keys in its query."""
        from urllib.parse import parse_qsl, unquote, urlsplit

        # SQLAlchemy takes any sign but @ in a password; digits before a slash are a port.
        found = re.findall(r"://[^\s/?#@:]*:(?!\d+[/?#])((?:(?!://)[^\s@])+)@", address or "")
        for one in re.findall(r"[a-zA-Z][\w+.-]*://[^\s,;\"'<>]+", address or ""):
            try:
                parts = urlsplit(one)
                found.append(parts.password or parts.username or "")
                said = parse_qsl(parts.query) + parse_qsl(parts.fragment)
            except ValueError:
                continue
            found += [value for name, value in said if names_secret(name)]
        for part in found:
            self.add(part)
            self.add(unquote(part))

    def clean(self, data: bytes) -> bytes:
        """Return bytes without any configured secret; the same object when it holds none."""
        if not self.values:
            return data
        found = [*self._find(data), *self._find_escaped(data)]
        return _without(data, found) if found else data

    def _find_escaped(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield where secrets are that are found only after the escapes of a text are read."""
        escapes = (self._search or self._prepare())[3]
        layers: list[_Unescaped] = []
        text = data
        while len(layers) < _DEEPEST and (layer := _unescape(text, escapes)) is not None:
            layers.append(layer)
            text = layer.text
            for first, last in self._find(text):
                for outer in reversed(layers):
                    first, last = outer.origin(first, last)
                yield first, last

    def _find(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield where secrets and considerable pieces of them are, in any order; places may overlap."""
        pattern, places, sizes, _ = self._search or self._prepare()
        at = 0
        while found := pattern.search(data, at):
            at = found.start() + 1
            first, last = at, 0  # from where to where there is enough of a secret to give it away
            # Of pieces that begin here the pattern finds one; another may be of a key that begins alike.
            pieces = (data[found.start() : found.start() + size] for size in sizes)
            for piece, (spelled, low, enough, text) in (
                (one, place) for one in pieces for place in places.get(one, ())
            ):
                start, end, high = found.start(), found.start() + len(piece), low + len(piece)
                while start and low and data[start - 1] == spelled[low - 1]:
                    start, low = start - 1, low - 1
                while end < len(data) and high < len(spelled) and data[end] == spelled[high]:
                    end, high = end + 1, high + 1
                plain = text and re.fullmatch(_PLAIN, data[start:end])
                if end - start == len(spelled) or (end - start >= enough and not plain):
                    first, last = min(first, start), max(last, end)
            if last:
                # Of a key that goes on behind this one, a piece begins there or later.
                at = max(at, last - 2 * sizes[-1])
                yield first, last

    def _prepare(self) -> _Search:
        """Return what finds pieces of all secrets; it is kept until one is added."""
        with self._lock:
            places: dict[bytes, list[tuple[bytes, int, int, bool]]] = {}
            for value in self.values:
                for spelled, (enough, text) in _spellings(value).items():
                    # Whatever has ``enough`` bytes holds a whole piece of half that size at a multiple of it.
                    size = (enough + 1) // 2
                    for at in range(0, len(spelled) - size + 1, size):
                        places.setdefault(spelled[at : at + size], []).append((spelled, at, enough, text))
            # Alternatives stand by their first byte: ``re`` tries one after the other at every place of a text.
            rests: dict[bytes, list[bytes]] = {}
            for piece in places:
                rests.setdefault(re.escape(piece[:1]), []).append(re.escape(piece[1:]))
            found = b"|".join(first + b"(?:" + b"|".join(rest) + b")" for first, rest in rests.items())
            # The escape of a sign that no secret has, such as a line's end, is not read: most are of these.
            signs = {byte for held in places.values() for spelled, *_ in held for byte in spelled} | {*b"\\"}
            simple = b"".join(re.escape(name) for name, sign in _SIMPLE.items() if sign[0] in signs)
            common = b"|".join(name for name, sign in _COMMON.items() if sign[0] not in signs)
            escapes = re.compile(_ESCAPE % (simple, common))
            self._search = re.compile(found), places, sorted({len(piece) for piece in places}), escapes
            return self._search


def _spellings(value: str) -> dict[bytes, tuple[int, bool]]:
    """Return how a secret may be written, with how many bytes of that give it away, and whether it is text."""
    import base64
    import json
    from urllib.parse import quote

    def percent(sign: str) -> str:
        return quote(sign.encode("utf-8", "surrogatepass"), safe="")

    def escaped(sign: str) -> str:
        return json.dumps(sign)[1:-1]

    in_json: tuple[Callable[[str], str], ...] = (
        escaped,
        lambda sign: "\\/" if sign == "/" else escaped(sign),
        lambda sign: json.dumps(sign, ensure_ascii=False)[1:-1],
        lambda sign: f"\\u{ord(sign):04x}" if sign in "<>&'" else escaped(sign),  # as where it may stand in HTML
        # .NET's writer escapes these, and all beyond ASCII, in capitals.
        lambda sign: f"\\u{ord(sign):04X}" if sign in "<>&'+`\"" or sign > "~" else escaped(sign),
    )
    in_addresses: tuple[Callable[[str], str], ...] = (
        lambda sign: sign if percent(sign) == sign else percent(sign).lower(),
        lambda sign: sign if sign == "/" else percent(sign),
        lambda sign: "+" if sign == " " else percent(sign),
    )
    writers: tuple[Callable[[str], str], ...] = (str, percent, *in_json, *in_addresses)
    once = [[write(sign) for sign in value] for write in writers]
    twice = [list(map(escaped, signs)) for signs in once[2 : 2 + len(in_json)]]  # JSON inside JSON
    # Of a passphrase a part is an ordinary word, of a key every considerable piece is the key's.
    enough = len(value) if re.fullmatch(_WORDS, value) else max(SHORTEST, min(PIECE, math.ceil(len(value) / 2)))
    texts: dict[bytes, int] = {}
    for spelled in (*once, *twice):
        signs = [sign.encode("utf-8", "surrogatepass") for sign in spelled]
        pieces = (signs[at : at + enough] for at in range(len(value) - enough + 1))
        texts[b"".join(signs)] = min(len(b"".join(piece)) for piece in pieces)
    found = {text: (size, True) for text, size in texts.items()}
    raw = value.encode("utf-8", "surrogatepass")
    found |= dict.fromkeys((raw.hex().encode(), raw.hex().upper().encode()), (2 * texts[raw], False))
    for text, size in list(texts.items())[:3]:
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            for shift in range(3):  # the key may begin at any of the three bytes of a group
                inner = encode(b"\0" * shift + text)[-(-shift * 4 // 3) : (shift + len(text)) * 4 // 3]
                found[inner] = min(len(inner), max(SHORTEST, size * 4 // 3 - 2)), False
    return found


class _Unescaped:
    """A text whose escapes were read once, and where each of its bytes comes from."""

    def __init__(self, text: bytes, escapes: list[tuple[int, int, int, int]]) -> None:
        self.text = text
        self._escapes = escapes  # of each escape its place here, and its place in the escaped text
        self._starts = [start for start, _, _, _ in escapes]

    def origin(self, first: int, last: int) -> tuple[int, int]:
        """Return the place in the escaped text of what is here from ``first`` to before ``last``."""
        return self._origin(first)[0], self._origin(last - 1)[1]

    def _origin(self, at: int) -> tuple[int, int]:
        before = bisect_right(self._starts, at) - 1
        if before < 0:
            return at, at + 1
        _, end, first, last = self._escapes[before]
        if at < end:
            return first, last
        return last + at - end, last + at - end + 1


def _unescape(data: bytes, pattern: re.Pattern[bytes]) -> _Unescaped | None:
    """Read the escapes in a text once; None where it has none."""
    parts: list[bytes] = []
    escapes: list[tuple[int, int, int, int]] = []
    done = size = 0
    for found in pattern.finditer(data):
        sign = _read_escape(found[0])
        if sign is None:
            continue
        first, last = found.span()
        size += first - done
        escapes.append((size, size + len(sign), first, last))
        parts += [data[done:first], sign]
        done, size = last, size + len(sign)
    return _Unescaped(b"".join([*parts, data[done:]]), escapes) if escapes else None


@lru_cache(4096)
def _read_escape(escape: bytes) -> bytes | None:
    """Return what an escape stands for; None where it stands for nothing."""
    kind, rest = escape[:1], escape[1:].decode()
    if kind == b"%" and rest[0] != "u":
        return bytes.fromhex(rest)
    if kind == b"&":
        import html

        sign = html.unescape(escape.decode())
        return None if sign.encode() == escape else sign.encode()
    if escape[1:] in _SIMPLE:
        return _SIMPLE[escape[1:]]
    if kind == b"\\" and "\\" in rest:  # a pair of surrogates is one sign
        high, low = rest[1:5], rest[7:11]
        return bytes.fromhex(high + low).decode("utf-16-be").encode()
    number = int(rest[1:].strip("{}"), 16)
    return chr(number).encode("utf-8", "surrogatepass") if number <= sys.maxunicode else None


def _without(data: bytes, found: Iterable[tuple[int, int]]) -> bytes:
    """Return bytes without what is at some places; those that touch are one."""
    made: list[bytes] = []
    done = 0
    for first, last in sorted(found):
        # A backslash goes or stays with what it escapes, so that JSON stays JSON.
        last += _begins_escape(data[first:last])
        first -= _begins_escape(data[done:first])
        if first > done or not made:
            made += [data[done:first], REMOVED.encode()]
        done = max(done, last)
    return b"".join([*made, data[done:]])


def _begins_escape(data: bytes) -> bool:
    """Tell whether the last byte is a backslash that escapes what follows."""
    return (len(data) - len(data.rstrip(b"\\"))) % 2 == 1


def _called(name: str) -> str:
    """Return a name as words between underscores: ``apiKey`` is ``_API_KEY_``."""
    return f"_{re.sub(r'(?<=[a-z0-9])(?=[A-Z])', '_', name).upper().replace('-', '_')}_"


def names_secret(name: str) -> bool:
    """Tell whether a setting or a part of a query is called like a key, a token or a password."""
    return re.search(_NAMES, _called(name)) is not None


def holds_key(text: str) -> bool:
    """Tell whether an address or a command has a key in it, configured or not."""
    from urllib.parse import parse_qsl, urlsplit

    queries = [name for one in text.split() for name, _ in parse_qsl(urlsplit(one).query)] if "?" in text else []
    return any(map(names_secret, queries)) or looks_like_key(text.encode()) or re.search(_GIVEN, text) is not None


def looks_like_key(data: bytes) -> bool:
    """Tell whether there is something in a text that is formed like a provider's key, configured or not."""
    return re.search(_LOOKS, data) is not None


KNOWN = Secrets()
"""The secrets of this process. The environment is read on first use and whenever something is opened."""
remember, remember_settings, remember_address = KNOWN.add, KNOWN.add_settings, KNOWN.add_address
_read = False


def refresh() -> None:
    """Read the environment again: a key may have been set, or loaded from a file, since."""
    global _read
    _read = True
    KNOWN.add_settings(os.environ)


def without_secrets(value: T) -> T:
    """Return text, bytes or JSON-like data without configured secrets; the same object when it holds none.

    The last step of every writer.
    """
    if not _read:
        refresh()
    made: Any = value
    if not KNOWN.values:
        return value
    if isinstance(value, bytes):
        made = KNOWN.clean(value)
    elif isinstance(value, str):
        raw = value.encode("utf-8", "surrogatepass")
        made = value if (cleaned := KNOWN.clean(raw)) is raw else cleaned.decode("utf-8", "surrogatepass")
    elif isinstance(value, dict):
        made = {without_secrets(key): without_secrets(inner) for key, inner in value.items()}
    elif isinstance(value, list | tuple):
        made = getattr(type(value), "_make", type(value))(map(without_secrets, value))  # a named tuple has a maker
    return value if made is value or made == value else made  # what else an exception carries may not compare


def clean_foreign(words: Words) -> Words:
    """Return what came from outside without configured secrets; what only looks like a key is counted."""
    cleaned = without_secrets(words)
    raw = cleaned.encode("utf-8", "surrogatepass") if isinstance(cleaned, str) else cleaned
    KNOWN.lookalikes += len(re.findall(_LOOKS, raw))
    return cleaned


def lookalikes() -> str | None:
    """Return one line saying that foreign answers held what looks like a key, or None when they did not."""
    said = f"what came back holds {KNOWN.lookalikes} text(s) that look like a key but match none configured here"
    return f"warning: {said}; they are kept as they are" if KNOWN.lookalikes else None


def scrub(error: BaseException) -> None:
    """Take configured secrets out of an exception, what it carries, and what it was raised from."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        link = waiting.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        link.args = without_secrets(link.args)
        for name in (*getattr(link, "__dict__", {}), "strerror", "filename", "filename2"):
            value = getattr(link, name, None)
            if isinstance(value, str | dict | list) and (cleaned := without_secrets(value)) is not value:
                setattr(link, name, cleaned)
        waiting += [link.__cause__, link.__context__, *getattr(link, "exceptions", ())]
