"""Keep keys off disks and screens.

A secret is a value that was *configured* as one: API keys, tokens and passwords in the environment,
passwords in the addresses of servers and databases, and values that a caller passes to
:func:`remember`. The threat is an honest but careless server or log that echoes the key it was
called with. Therefore all external content is cleaned on entry, before it is read. Every writer
cleans its output again.

A text is searched in its original form and decoded: from URL escapes, JSON escapes, base64,
hexadecimal, and any two of them in turn. A secret is found whole or as any sufficiently long piece,
because a split message contains only pieces. All other disguises are outside the threat model and
are not removed.

Text that resembles a key (``sk-...``, ``Bearer ...``) but is not configured on this machine is
counted and not removed.
"""

from __future__ import annotations

import math
import os
import re
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple, TypeVar

REMOVED = "[secret removed]"
_SHORTEST = 8
"""Minimum number of characters of a secret."""
_SHORTEST_WORDS = 12
"""Minimum number of characters of a secret that consists of words.

Shorter words may be placeholders such as "not-needed".
"""
_PIECE = 12
"""Number of characters of a long key that identify it. For a shorter key, half of them do."""

_NAMES = (
    r"_(?:API_?KEYS?|AUTH_?KEY|ACCESS_KEY|PRIVATE_KEY|SECRET|TOKEN|PASS|PASSWORD|PASSWD|PASSPHRASE|PAT|JWT|CREDENTIALS?"
    r"|BEARER|AUTHORIZATION)_|^_KEY_$|(?:APIKEY|SECRETKEY|TOKEN|PASSWORD)_$"
)
"""Pattern of the names of keys, in the form that :func:`_called` returns."""
# Every command loads this module. Patterns stay strings until they are needed, and ``re`` caches
# compiled patterns.
_WORDS = r"[A-Za-z][a-z]*(?:[-_. ][A-Za-z][a-z]*)*|[A-Z]+(?:[-_. ][A-Z]+)*"
_PLAIN = rb"[A-Za-z][a-z]*|[A-Z]+|[^A-Za-z\x80-\xff]+"
"""Pattern of pieces that do not identify a key.

They are a word, a number, a date, or a line of a single repeated character.
"""
_LOOKS = (
    rb"\bsk-[A-Za-z0-9_-]{16,}|\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bA(?:KI|SI)A[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_-]{30,}"
    rb"|\bgh[pousr]_[A-Za-z0-9]{30,}|\bhf_[A-Za-z0-9]{30,}|\bBearer\s+[A-Za-z0-9._~+/-]{16,}"
    rb"|\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\."
)
_GIVEN = (
    r"(?i)(?:^|\s)(?:--?[\w-]*(?:api-?key|token|password|secret)"
    r"|\w*(?:API_?KEY|TOKEN|PASSWORD|SECRET))[= ]"
    r"(?![-$])\S{8,}"
)
"""Pattern of a key in the arguments of a command, or in a variable before the command."""

_PERCENT = rb"%[0-9A-Fa-f]{2}"
_JSON = (
    rb"\\(?:u[dD][89abAB][0-9A-Fa-f]{2}\\u[dD][c-fC-F][0-9A-Fa-f]{2}"
    rb"|u[0-9A-Fa-f]{4}|[\"\\/bfnrt])"
)
_BASE64 = rb"[A-Za-z0-9+/_-]{10,}"
_HEX = rb"[0-9A-Fa-f]{16,}"
"""Pattern of hexadecimal characters that are long enough to contain a secret."""
_LAYERS = 2
"""Maximum number of successive decodings of a text."""

_T = TypeVar("_T")
_Words = TypeVar("_Words", str, bytes)
_Place = tuple[int, int]
"""Start and end of a place in a text."""


class _Secret(NamedTuple):
    """A secret, and the number of its bytes that suffice to identify it."""

    raw: bytes
    enough: int


class _Search(NamedTuple):
    """A pattern of blocks of secrets, all with ``size`` bytes, and the origin of each block.

    The origin is the list of secrets that contain the block, with its position. Every piece that
    identifies a secret contains at least one of its blocks.
    """

    pattern: re.Pattern[bytes]
    places: dict[bytes, list[tuple[_Secret, int]]]
    size: int


class Secrets:
    """The secrets that a process knows. Thread-safe. Secrets are never removed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.values: tuple[str, ...] = ()
        self.prepared: _Search | None = None
        self.lookalikes = 0

    def add(self, value: str | None) -> None:
        """Store a value, unless it is too short or too common to be a secret."""
        value = re.sub(r"(?i)^(bearer|basic) +", "", (value or "").strip())
        least = _SHORTEST_WORDS if re.fullmatch(_WORDS, value) else _SHORTEST
        if (
            len(value) >= least
            and len(set(value)) > 1
            and not value.isdigit()
            and value not in self.values
        ):
            with self._lock:
                self.values += (value,)
                self.prepared = None

    def add_settings(self, settings: Mapping[str, str]) -> None:
        """Store values with names like key, token or password, and passwords inside addresses."""
        for name, value in settings.items():
            if "://" in value:
                self.add_address(value)
                continue
            # A name ending in KEY names a key, unless it is public or its value is a date or a
            # number, as a sort key has.
            called = _called(name)
            named = (
                called.endswith("_KEY_")
                and "_PUBLIC_" not in called
                and any(map(str.isalpha, value))
            )
            named |= (called.endswith("_PWD_") and called != "_PWD_") or names_secret(name)
            if named and not re.match(
                r"[~.]{0,2}/|[A-Za-z]:\\|[\w-]*(?:ssh|ecdsa)-[\w@.-]+ AAAA", value
            ):
                self.add(value)

    def add_address(self, address: str | None) -> None:
        """Store the password of an address such as ``https://user:password@host``.

        Also store the keys in its query.
        """
        from urllib.parse import parse_qsl, unquote, urlsplit

        # SQLAlchemy allows any character but @ in a password. Digits before a slash are a port.
        passwords = re.findall(r"://[^\s/?#@:]*:(?!\d+[/?#])((?:(?!://)[^\s@])+)@", address or "")
        for url in re.findall(r"[a-zA-Z][\w+.-]*://[^\s,;\"'<>]+", address or ""):
            try:
                parts = urlsplit(url)
                passwords.append(parts.password or parts.username or "")
                parameters = parse_qsl(parts.query) + parse_qsl(parts.fragment)
            except ValueError:
                continue
            passwords += [value for name, value in parameters if names_secret(name)]
        for part in passwords:
            self.add(part)
            self.add(unquote(part))

    def clean(self, data: bytes) -> bytes:
        """Return bytes without configured secrets; the same object if it contains none."""
        if not self.values:
            return data
        places = list(self._find(data, _LAYERS))
        return _without(data, places) if places else data

    def _find(self, data: bytes, layers: int) -> Iterator[_Place]:
        """Yield the places of secrets in a text, plain and decoded up to ``layers`` times."""
        yield from self._find_pieces(data)
        if layers == 0:
            return
        for decoded in self._decoded(data):
            yield from map(decoded.source, self._find(decoded.text, layers - 1))

    def _decoded(self, data: bytes) -> Iterator[_Unescaped | _Runs]:
        """Yield the result of each decoder for a text."""
        if b"%" in data:
            yield _Unescaped(data, _PERCENT, _read_percent)
        if b"\\" in data:
            yield _Unescaped(data, _JSON, _read_json)
        if b"+" in data and any(
            " " in value for value in self.values
        ):  # a form encodes a space as a plus
            yield _Unescaped(data.replace(b"+", b" "), _PERCENT, _read_percent)
        # A secret may begin at any offset in a run: within a group of two hexadecimal digits or of
        # four base64 characters.
        for pattern, read, group, size in ((_HEX, _read_hex, 2, 1), (_BASE64, _read_base64, 4, 3)):
            runs = [run.span() for run in re.finditer(pattern, data)]
            for skipped in range(group) if runs else ():
                yield _Runs(
                    data, [(first + skipped, last) for first, last in runs], read, (group, size)
                )

    def _find_pieces(self, data: bytes) -> Iterator[_Place]:
        """Yield the places of secrets and of sufficiently long pieces, in any order.

        Places may overlap.
        """
        pattern, places, size = self.prepared or self._prepare()
        at = 0
        while block := pattern.search(data, at):
            at = block.start() + 1
            for secret, low in places[block[0]]:
                first, last, high = block.start(), block.end(), low + size
                while first and low and data[first - 1] == secret.raw[low - 1]:
                    first, low = first - 1, low - 1
                while (
                    last < len(data) and high < len(secret.raw) and data[last] == secret.raw[high]
                ):
                    last, high = last + 1, high + 1
                while (
                    data[first] & 0xC0 == 0x80
                ):  # Keep the bytes of a non-ASCII character together.
                    first += 1
                while data[last - 1] >= 0x80 and last < len(data) and data[last] & 0xC0 == 0x80:
                    last -= 1
                whole = last - first == len(secret.raw)
                if whole or (
                    last - first >= secret.enough and not re.fullmatch(_PLAIN, data[first:last])
                ):
                    yield first, last

    def _prepare(self) -> _Search:
        """Return the search for pieces of all secrets. It is cached until a secret is added."""
        with self._lock:
            secrets = list(map(_secret, self.values))
            size = min((secret.enough + 1) // 2 for secret in secrets)
            places: dict[bytes, list[tuple[_Secret, int]]] = {}
            for secret in secrets:
                for at in range(0, len(secret.raw) - size + 1, size):
                    places.setdefault(secret.raw[at : at + size], []).append((secret, at))
            self.prepared = _Search(re.compile(b"|".join(map(re.escape, places))), places, size)
            return self.prepared


def _secret(value: str) -> _Secret:
    """Return a secret as bytes. A passphrase is identified only by its whole text."""
    if re.fullmatch(_WORDS, value):
        enough = len(value)
    else:
        enough = max(_SHORTEST, min(_PIECE, math.ceil(len(value) / 2)))
    pieces = [value[at : at + enough] for at in range(len(value) - enough + 1)]
    return _Secret(_utf8(value), min(len(_utf8(piece)) for piece in pieces))


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


class _Unescaped:
    """A text after one pass of unescaping, with the origin of each byte."""

    def __init__(self, data: bytes, pattern: bytes, read: Callable[[bytes], bytes]) -> None:
        self._starts: list[
            int
        ] = []  # for each escape, its position in the text and in the escaped text
        self._escapes: list[tuple[int, int, int]] = []
        parts: list[bytes] = []
        done, size = 0, 0
        for found in re.finditer(pattern, data):
            sign = read(found[0])
            size += found.start() - done
            self._starts.append(size)
            self._escapes.append((size + len(sign), *found.span()))
            parts += [data[done : found.start()], sign]
            done, size = found.end(), size + len(sign)
        self.text = b"".join([*parts, data[done:]])

    def source(self, place: _Place) -> _Place:
        """Return the position in the escaped text for a position in this text."""
        first, last = place
        return self._origin(first)[0], self._origin(last - 1)[1]

    def _origin(self, at: int) -> _Place:
        """Return the position of one byte in the escaped text."""
        before = bisect_right(self._starts, at) - 1
        if before < 0:
            return at, at + 1
        end, first, last = self._escapes[before]
        if at < end:
            return first, last
        return last + at - end, last + at - end + 1


def _read_percent(escape: bytes) -> bytes:
    return bytes.fromhex(escape[1:].decode())


@lru_cache(4096)
def _read_json(escape: bytes) -> bytes:
    import json

    return _utf8(json.loads(b'"' + escape + b'"'))


class _Runs:
    """The decoded runs of base64 or hexadecimal in a text, one per line."""

    def __init__(
        self,
        data: bytes,
        runs: list[_Place],
        read: Callable[[bytes], bytes],
        group: tuple[int, int],
    ) -> None:
        self._runs = runs
        self._signs, self._bytes = group  # this many characters encode this many bytes
        decoded = [read(data[first:last]) for first, last in runs]
        self._starts = [0, *accumulate(len(part) + 1 for part in decoded)]
        self.text = b"\n".join(decoded)

    def source(self, place: _Place) -> _Place:
        """Return the position in the encoded text for a position in this text.

        It includes every character that encodes a part of the place.
        """
        number = bisect_right(self._starts, place[0]) - 1
        first, last = ((at - self._starts[number]) * self._signs for at in place)
        start, end = self._runs[number]
        return start + first // self._bytes, min(start - (-last // self._bytes), end)


def _read_hex(run: bytes) -> bytes:
    return bytes.fromhex(run[: len(run) // 2 * 2].decode())


def _read_base64(run: bytes) -> bytes:
    import binascii

    if len(run) % 4 == 1:  # six bits alone are not a byte
        run = run[:-1]
    return binascii.a2b_base64(run.translate(_URL_SAFE) + b"=" * (-len(run) % 4))


_URL_SAFE = bytes.maketrans(b"-_", b"+/")


def _without(data: bytes, found: Iterable[tuple[int, int]]) -> bytes:
    """Return bytes without the given places. Adjacent places are merged."""
    kept: list[bytes] = []
    done = 0
    for first, last in sorted(found):
        # Remove or keep a backslash together with the character that it escapes, so that JSON stays
        # valid.
        last += _begins_escape(data[first:last])
        while (
            last < len(data) and data[last] & 0xC0 == 0x80
        ):  # the escaped character has more bytes
            last += 1
        first -= _begins_escape(data[done:first])
        if first > done or not kept:
            kept += [data[done:first], REMOVED.encode()]
        done = max(done, last)
    return b"".join([*kept, data[done:]])


def _begins_escape(data: bytes) -> bool:
    """Return whether the last byte is a backslash that escapes the next character."""
    return (len(data) - len(data.rstrip(b"\\"))) % 2 == 1


def _called(name: str) -> str:
    """Return a name as words between underscores: ``apiKey`` becomes ``_API_KEY_``."""
    return f"_{re.sub(r'(?<=[a-z0-9])(?=[A-Z])', '_', name).upper().replace('-', '_')}_"


def names_secret(name: str) -> bool:
    """Return whether the name of a setting or query parameter suggests a key, token or password."""
    return re.search(_NAMES, _called(name)) is not None


def holds_key(text: str) -> bool:
    """Return whether an address or a command contains a key, configured or not."""
    from urllib.parse import parse_qsl, urlsplit

    queries = (
        [name for one in text.split() for name, _ in parse_qsl(urlsplit(one).query)]
        if "?" in text
        else []
    )
    return (
        any(map(names_secret, queries))
        or looks_like_key(text.encode())
        or re.search(_GIVEN, text) is not None
    )


def looks_like_key(data: bytes) -> bool:
    """Return whether a text contains something shaped like a provider's key, configured or not."""
    return re.search(_LOOKS, data) is not None


KNOWN = Secrets()
"""The secrets of this process. The environment is read on first use and before each opening."""
remember, remember_settings, remember_address = KNOWN.add, KNOWN.add_settings, KNOWN.add_address
environment_read = False


def refresh() -> None:
    """Read the environment again.

    A key may have been set, or loaded from a file, in the meantime.
    """
    global environment_read
    environment_read = True
    KNOWN.add_settings(os.environ)


def without_secrets(value: _T) -> _T:
    """Return text, bytes or JSON-like data without configured secrets.

    Returns the same object if it contains none. Every writer calls this last.
    """
    if not environment_read:
        refresh()
    result: Any = value
    if not KNOWN.values:
        return value
    if isinstance(value, bytes):
        result = KNOWN.clean(value)
    elif isinstance(value, str):
        raw = _utf8(value)
        result = (
            value
            if (cleaned := KNOWN.clean(raw)) is raw
            else cleaned.decode("utf-8", "surrogatepass")
        )
    elif isinstance(value, dict):
        result = {without_secrets(key): without_secrets(inner) for key, inner in value.items()}
    elif isinstance(value, list | tuple):
        result = getattr(type(value), "_make", type(value))(
            map(without_secrets, value)
        )  # a named tuple has _make
    return (
        value if result is value or result == value else result
    )  # other attributes of an exception may not support comparison


def clean_foreign(words: _Words) -> _Words:
    """Return external text without configured secrets.

    Text that only resembles a key is counted.
    """
    cleaned = without_secrets(words)
    raw = _utf8(cleaned) if isinstance(cleaned, str) else cleaned
    KNOWN.lookalikes += len(re.findall(_LOOKS, raw))
    return cleaned


def lookalikes() -> str | None:
    """Return a warning if external answers contained text that resembles a key, or None."""
    warning_text = (
        f"answers contain {KNOWN.lookalikes} text(s) that look like a key but match no "
        "configured key"
    )
    return f"warning: {warning_text}; they are stored unchanged" if KNOWN.lookalikes else None


def scrub(error: BaseException) -> None:
    """Remove configured secrets from an exception, its attributes and its causes."""
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
            if (
                isinstance(value, str | dict | list)
                and (cleaned := without_secrets(value)) is not value
            ):
                setattr(link, name, cleaned)
        waiting += [link.__cause__, link.__context__, *getattr(link, "exceptions", ())]
