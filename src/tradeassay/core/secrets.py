"""Keys never reach a disk or a screen.

What counts as a secret is what was *configured* as one: API keys, tokens and passwords in the environment, the
password in the address of a server or a database, and whatever a caller hands to :func:`remember`. The enemy is an
honest but careless server or log: it echoes the key it was called with. So everything foreign is cleaned where it
enters, before it is read, and every writer cleans what it writes once more. A secret is found whole or as any
considerable piece (which is what a message split in two leaves), plain, percent-encoded, with the escapes of JSON,
in base64 and in hexadecimal. Ciphers, other alphabets and keys torn into letters are outside the threat and stay.

Text that merely looks like a key (``sk-...``, ``Bearer ...``) but is not configured here stays and is counted.
"""

from __future__ import annotations

import math
import os
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import logging

    from rich.console import Console


REMOVED = "[secret removed]"
SHORTEST = 8
"""A value with fewer characters than this is never taken for a secret."""
SHORTEST_WORDS = 12
"""The same for a value that consists of words ("not-needed" is a placeholder, not a key)."""
PIECE = 12
"""A piece of a long key with this many characters is removed; for a shorter key, half of it is enough."""

# Every command loads this module: patterns stay texts until they are needed, and ``re`` keeps what it compiled.
_SECRET_NAME = (
    r"(?i)(?:^|_)(?:API_?KEY|AUTH_?KEY|ACCESS_KEY|PRIVATE_KEY|SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIALS?|BEARER"
    r"|AUTHORIZATION)(?:_|$)|(?:APIKEY|APITOKEN|PASSWORD)$"
)
_IN_SECRET_NAMES = ("KEY", "SECRET", "TOKEN", "PASSW", "CREDENTIAL", "BEARER", "AUTHORIZATION")
_PUBLIC_START = (
    r"sk-(?:ant-[a-z]+\d+-|proj-|svcacct-|admin-|or-v\d-|lf-)?|pk-lf-|xai-|gsk_|hf_|r8_|AIza(?:Sy)?|pplx-|fw_|gh[pousr]_"
    r"|github_pat_|glpat-|xox[abeoprs]-|AKIA|ASIA|nvapi-|bs-"
)
_WORDS = r"[A-Za-z][a-z]*(?:[-_. ][A-Za-z][a-z]*)*|[A-Z]+(?:[-_. ][A-Z]+)*"
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

T = TypeVar("T")


class Secrets:
    """The secrets a process knows. Safe to share between threads; nothing is ever forgotten."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: frozenset[str] = frozenset()
        self._search: tuple[re.Pattern[bytes], dict[bytes, list[tuple[bytes, int, int]]]] | None = None
        self.lookalikes = 0

    def __bool__(self) -> bool:
        return self._search is not None

    def add(self, value: str | None) -> None:
        """Remember a value, unless it is too short or too plain to be a secret."""
        value = (value or "").strip()
        value = value.partition(" ")[2].strip() if value.lower().startswith(("bearer ", "basic ")) else value
        plain = re.fullmatch(_WORDS, value) is not None
        least = (16 if value.isalpha() else SHORTEST_WORDS) if plain else SHORTEST
        if len(value) < least or value == len(value) * value[0] or value.isdigit() or value in self._values:
            return
        with self._lock:
            found = {gram: [*places] for gram, places in (self._search[1] if self._search else {}).items()}
            for spelled, public, enough in _spellings(value, whole=plain):
                # Any piece of ``enough`` bytes holds a whole gram of half that size at a multiple of that size.
                size = (enough + 1) // 2
                for at in range(public, len(spelled) - size + 1, size):
                    found.setdefault(spelled[at : at + size], []).append((spelled, at, enough))
            self._search = re.compile(_any_of(found)), found
            self._values |= {value}

    def add_settings(self, settings: Mapping[str, str]) -> None:
        """Remember values whose names say key, token or password, and passwords inside addresses."""
        for name, value in settings.items():
            if "://" in value:
                self.add_address(value)
            elif _named(name) and not re.match(r"[~.]{0,2}/|[A-Za-z]:\\", value):  # the path of a file is public
                self.add(value)

    def add_address(self, address: str | None) -> None:
        """Remember the password of an address such as ``https://user:password@host``, and keys in its query."""
        from urllib.parse import parse_qsl, unquote, urlsplit

        for one in re.findall(r"[a-zA-Z][\w+.-]*://[^\s,;\"'<>]+", address or ""):
            try:
                parts = urlsplit(one)
                given, query = parts.password or parts.username, parse_qsl(parts.query)
            except ValueError:
                continue
            for part in (given or "", *(value for name, value in query if names_secret(name))):
                self.add(part)
                self.add(unquote(part))

    def clean(self, data: bytes) -> bytes:
        """Return bytes without any configured secret; the same object when it holds none."""
        if self._search is None or not data:
            return data
        pattern, grams = self._search
        made: list[bytes] = []
        done = at = 0
        while found := pattern.search(data, at):
            at = found.start() + 1
            first, last = found.span()
            for spelled, place, enough in grams[found[0]]:
                start, end, low, high = *found.span(), place, place + len(found[0])
                while start > done and low and data[start - 1] == spelled[low - 1]:
                    start, low = start - 1, low - 1
                while end < len(data) and high < len(spelled) and data[end] == spelled[high]:
                    end, high = end + 1, high + 1
                if end - start >= enough and (end > at or start < first):
                    first, last, at = min(start, first), max(end, last), max(end, at)
            if at == found.start() + 1:
                continue
            # A backslash goes or stays with what it escapes, so that JSON stays JSON.
            head, gone = data[done:first], data[first:last]
            head = head[: len(head) - (len(head) - len(head.rstrip(b"\\"))) % 2]
            made += [head, REMOVED.encode()] if head or not made else []
            done = at = last + (len(gone) - len(gone.rstrip(b"\\"))) % 2
        return b"".join([*made, data[done:]]) if made else data


def _any_of(grams: Iterable[bytes]) -> bytes:
    """Return a pattern that finds the first of these that fits, as if they were alternatives in their order.

    They stand by their first byte, because ``re`` tries one alternative after the other at every place of a text:
    with the keys of ten providers that is hundreds.
    """
    rests: dict[bytes, list[bytes]] = {}
    for gram in grams:
        rests.setdefault(gram[:1], []).append(re.escape(gram[1:]))
    return b"|".join(re.escape(first) + b"(?:" + b"|".join(rest) + b")" for first, rest in rests.items())


def _spellings(value: str, *, whole: bool) -> Iterator[tuple[bytes, int, int]]:
    """Yield how a secret may be written, how much of that is a public prefix, and how much of it gives it away."""
    import base64
    import json
    from urllib.parse import quote

    start = re.match(_PUBLIC_START, value)
    public = start.end() if start and len(value) - start.end() >= SHORTEST else 0
    body = len(value) - public
    # Of a passphrase a part is an ordinary word, of a key every considerable piece is the key's.
    enough = body if whole else min(body, max(SHORTEST, min(PIECE, math.ceil(body / 2))))
    prefix, escaped = value[:public], json.dumps(value)[1:-1]
    texts = {value, quote(value), quote(value, safe=""), escaped, json.dumps(value, ensure_ascii=False)[1:-1]}
    texts |= {value.replace("/", "\\/"), json.dumps(escaped)[1:-1], quote(quote(value, safe=""), safe="")}
    for text in texts:
        skipped = len(prefix) if text.startswith(prefix) else 0
        yield text.encode("utf-8", "surrogatepass"), skipped, enough + (len(text) - len(value) if whole else 0)
    raw = value.encode("utf-8", "surrogatepass")
    for form, size in (("%02x", 2), ("%02X", 2), ("%%%02X", 3), ("\\u%04x", 6)):
        yield "".join(form % byte for byte in raw).encode(), size * public, size * enough
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        for shift in range(3):  # the key may begin at any of the three bytes of a group
            code64 = encode(b"\0" * shift + raw)
            inner = code64[-(-shift * 4 // 3) : (shift + len(raw)) * 4 // 3]
            needed = min(len(inner), max(SHORTEST, enough * 4 // 3 - 2))
            yield inner, min(-(-public * 4 // 3), len(inner) - needed), needed


def names_secret(name: str) -> bool:
    """Tell whether a setting or a part of a query is called like a key, a token or a password."""
    return name.lower() == "key" or _named(name.replace("-", "_"))


def _named(name: str) -> bool:
    upper = name.upper()
    return any(word in upper for word in _IN_SECRET_NAMES) and re.search(_SECRET_NAME, name) is not None


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
_read = False


def refresh() -> None:
    """Read the environment again: a key may have been set, or loaded from a file, since."""
    global _read
    _read = True
    KNOWN.add_settings(os.environ)


def remember(value: str | None) -> None:
    KNOWN.add(value)


def remember_settings(settings: Mapping[str, str]) -> None:
    KNOWN.add_settings(settings)


def remember_address(address: str | None) -> None:
    KNOWN.add_address(address)


def clean_bytes(data: bytes) -> bytes:
    """Return bytes without configured secrets; the last step of every writer."""
    if not _read:
        refresh()
    return KNOWN.clean(data)


def clean_foreign(data: bytes) -> bytes:
    """Return what came from outside without configured secrets; what only looks like a key is counted."""
    cleaned = clean_bytes(data)
    KNOWN.lookalikes += len(re.findall(_LOOKS, cleaned))
    return cleaned


def clean_text(text: str) -> str:
    """Return a text without configured secrets; the same object when it holds none."""
    raw = text.encode("utf-8", "surrogatepass")
    cleaned = clean_bytes(raw)
    return text if cleaned is raw else cleaned.decode("utf-8", "surrogatepass")


def clean_words(text: str) -> str:
    return clean_foreign(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")


def clean_record(record: T) -> T:
    """Return a struct that came from outside without configured secrets in any of its texts."""
    import msgspec

    raw = msgspec.json.encode(record)
    cleaned = clean_foreign(raw)
    return record if cleaned is raw else msgspec.json.decode(cleaned, type=type(record))


def clean_tree(value: Any) -> Any:
    """Return JSON-like data without configured secrets; the same object when it holds none."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, dict):
        made = {clean_tree(key): clean_tree(inner) for key, inner in value.items()}
        return (
            value if list(map(id, (*made, *made.values()))) == list(map(id, (*value, *value.values()))) else made
        )
    if isinstance(value, list | tuple):
        items = [clean_tree(inner) for inner in value]
        return value if list(map(id, items)) == list(map(id, value)) else type(value)(items)
    return clean_bytes(value) if isinstance(value, bytes) else value


def scrub(error: BaseException) -> None:
    if not _read:
        refresh()
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error] if KNOWN else []
    while waiting:
        link = waiting.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        link.args = tuple(clean_tree(part) for part in link.args)
        for name, value in list(getattr(link, "__dict__", {}).items()):
            if isinstance(value, str | dict | list) and (cleaned := clean_tree(value)) is not value:
                setattr(link, name, cleaned)
        waiting += [link.__cause__, link.__context__]


def lookalikes() -> str | None:
    """Return one line saying that foreign answers held what looks like a key, or None when they did not."""
    if not KNOWN.lookalikes:
        return None
    return (
        f"warning: what came back holds {KNOWN.lookalikes} text(s) that look like a key but match none configured "
        "here; they are kept as they are"
    )


class _CleanStream:
    """A text or binary stream that removes configured secrets from everything written to it."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def write(self, data: Any) -> int:
        if isinstance(data, str):
            self._inner.write(clean_text(data))
        else:
            self._inner.write(clean_bytes(bytes(data)))
        return len(data)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    @property
    def buffer(self) -> _CleanStream:
        return _CleanStream(self._inner.buffer)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._inner)


@contextmanager
def clean_screen() -> Iterator[None]:
    """Keep secrets out of standard output and standard error while the block runs."""
    output, errors = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = _clean(output), _clean(errors)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = output, errors


@contextmanager
def clean_log() -> Iterator[None]:
    """Keep secrets out of log records that are made while the block runs."""
    import logging

    factory = logging.getLogRecordFactory()
    logging.setLogRecordFactory(_clean_records(factory))
    try:
        yield
    finally:
        logging.setLogRecordFactory(factory)


def _clean(stream: Any) -> Any:
    return stream if stream is None or isinstance(stream, _CleanStream) else _CleanStream(stream)


def _clean_records(factory: Any) -> Any:
    def make(*args: Any, **named: Any) -> logging.LogRecord:
        record: logging.LogRecord = factory(*args, **named)
        said = record.getMessage() if record.args else str(record.msg)
        cleaned = clean_text(said)
        if cleaned is not said:
            record.msg, record.args = cleaned, ()
        if record.exc_info and record.exc_info[1] is not None:
            import traceback

            told = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
            if (shown := clean_text(told)) is not told:
                record.exc_text = shown
        return record

    return make


def stdout() -> Console:
    """Return the console that prints tables on stdout; a pipe gets them at a fixed width."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else 160, highlight=False)
