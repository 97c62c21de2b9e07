"""Keys never reach a disk or a screen.

What counts as a secret is what was *configured* as one: API keys, tokens and passwords in the environment, the
password in the address of a server or a database, and whatever a caller hands to :func:`remember`. A server that
echoes a key must not get it into a record: everything foreign is cleaned where it enters, before it is read
(:func:`clean_foreign`, :func:`clean_record`, :func:`scrub`), and every writer cleans what it writes once more
(:func:`clean_bytes`). A secret is found as itself and as encoded in base64, hexadecimal, JSON, URLs and HTML,
reversed, in either case, whole or as any considerable piece; :data:`REMOVED` then takes its place.

Text that merely looks like a key (``sk-...``, ``Bearer ...``) but is not configured here is left alone
and counted.

This module is loaded by every command: what only a configured secret needs is imported where it is used.
"""

from __future__ import annotations

import math
import os
import re
import struct
import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

REMOVED = "[secret removed]"
SHORTEST = 8
"""A value with fewer characters than this is never taken for a secret."""
SHORTEST_WORDS = 12
"""The same for a value that consists of words ("not-needed" is a placeholder, not a key)."""
PIECE = 12
"""A piece of a long key with this many characters is removed; for a shorter key, half of it is enough."""

_GRAM = 4
_REMOVED = REMOVED.encode()
_SECRET_NAME = re.compile(
    r"(?:^|_)(?:API_?KEY|AUTH_?KEY|ACCESS_KEY|PRIVATE_KEY|SECRET|TOKEN|PASSWORD|PASSWD|CREDENTIALS?|BEARER"
    r"|AUTHORIZATION)(?:_|$)|(?:APIKEY|APITOKEN|PASSWORD)$",
    re.IGNORECASE,
)
_PUBLIC_START = re.compile(
    r"sk-(?:ant-[a-z]+\d+-|proj-|svcacct-|admin-|or-v\d-|lf-)?|pk-lf-|xai-|gsk_|hf_|r8_|AIza(?:Sy)?|pplx-|fw_|gh[pousr]_"
    r"|github_pat_|glpat-|xox[abeoprs]-|AKIA|ASIA|nvapi-|bs-"
)
_WORDS = re.compile(r"[A-Za-z][a-z]*(?:[-_. ][A-Za-z][a-z]*)*|[A-Z]+(?:[-_. ][A-Z]+)*")
_PATH = re.compile(r"[~.]{0,2}/|[A-Za-z]:\\")
_LOOKS = re.compile(
    rb"\bsk-[A-Za-z0-9_-]{16,}|\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bA(?:KI|SI)A[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_-]{30,}"
    rb"|\bgh[pousr]_[A-Za-z0-9]{30,}|\bhf_[A-Za-z0-9]{30,}|\bBearer\s+[A-Za-z0-9._~+/-]{16,}"
    rb"|\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\."
)

T = TypeVar("T")


class _Form:
    """One spelling of a secret, in lower case; ``least`` bytes after its public prefix give it away."""

    def __init__(self, spelled: bytes, public: int, least: int) -> None:
        self.spelled = spelled
        self.public = public
        self.least = least

    def grams(self) -> Iterator[bytes]:
        for at in range(self.public, len(self.spelled) - _GRAM + 1):
            yield self.spelled[at : at + _GRAM]

    def runs(self, text: bytes, at: int) -> Iterator[tuple[int, int]]:
        """Yield where in a text a considerable piece of this spelling lies around the gram at ``at``."""
        gram, start = text[at : at + _GRAM], self.public
        while (start := self.spelled.find(gram, start)) >= 0:
            left, right = 0, _GRAM
            while left < min(at, start) and text[at - left - 1] == self.spelled[start - left - 1]:
                left += 1
            most = min(len(text) - at, len(self.spelled) - start)
            while right < most and text[at + right] == self.spelled[start + right]:
                right += 1
            if start + right - max(start - left, self.public) >= self.least:
                yield at - left, at + right
            start += 1


class _Torn:
    """A secret to be found as short pieces in their original order, with other text between them."""

    def __init__(self, low: bytes, least: int) -> None:
        self.least = least
        self._low = low
        signs = b"".join(re.escape(bytes([sign])) for sign in sorted(set(low)))
        self._pieces = re.compile(rb"[%s]{%d,}" % (signs, _GRAM))

    def spans(self, text: bytes) -> list[tuple[int, int]]:
        """Return where the pieces lie if together they make up most of the secret."""
        found: list[tuple[int, int]] = []
        chain: list[tuple[int, int]] = []
        reached = covered = 0
        for match in self._pieces.finditer(text):
            piece = match[0]
            start = reached if self._low.startswith(piece, reached) else self._low.find(piece)
            if start < 0:
                continue
            if start != reached:
                chain, covered = [], 0
            chain.append(match.span())
            reached, covered = start + len(piece), covered + len(piece)
            if len(chain) > 1 and covered >= max(self.least, 2 * len(self._low) // 3):
                found += chain
        return found


class Secrets:
    """The secrets a process knows. Safe to share between threads; nothing is ever forgotten."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[bytes, _Torn] = {}
        self._forms: dict[bytes, list[_Form]] = {}
        self._grams: frozenset[tuple[bytes]] = frozenset()
        self._sample = struct.Struct(f"{_GRAM}s")
        self.lookalikes = 0

    def __bool__(self) -> bool:
        return bool(self._forms)

    def add(self, value: str | None) -> None:
        """Remember a value, unless it is too short or too plain to be a secret."""
        value = (value or "").strip()
        value = value.partition(" ")[2].strip() if value.lower().startswith(("bearer ", "basic ")) else value
        raw = value.encode("utf-8", "surrogatepass")
        if not _is_secret(value) or raw in self._values:
            return
        with self._lock:
            least = _piece(value)
            found = {gram: list(forms) for gram, forms in self._forms.items()}
            for form in _spellings(value, least):
                for gram in set(form.grams()):
                    found.setdefault(gram, []).append(form)
            self._values = {**self._values, raw: _Torn(raw.lower(), least)}
            # A piece of n bytes holds a whole gram at one of any n - gram + 1 neighbouring places.
            step = min(one.least for one in self._values.values()) - _GRAM + 1
            self._sample = struct.Struct(f"{_GRAM}s{step - _GRAM}x")
            self._grams = frozenset((gram,) for gram in found)
            self._forms = found

    def add_settings(self, settings: Mapping[str, str]) -> None:
        """Remember values whose names say key, token or password, and passwords inside addresses."""
        for name, value in settings.items():
            if "://" in value:
                self.add_address(value)
            elif _SECRET_NAME.search(name) and not _PATH.match(value):
                self.add(value)

    def add_address(self, address: str | None) -> None:
        """Remember the password of an address such as ``https://user:password@host``."""
        from urllib.parse import unquote, urlsplit

        for one in re.findall(r"[a-zA-Z][\w+.-]*://[^\s,;\"'<>]+", address or ""):
            try:
                parts = urlsplit(one)
                user, password = parts.username, parts.password
            except ValueError:
                continue
            for part in (password,) if password else (user,):
                self.add(part)
                self.add(unquote(part) if part else part)

    def clean(self, data: bytes, *, shreds: bool = False) -> bytes:
        """Return bytes without any configured secret; the same object when it holds none.

        ``shreds`` also looks for a secret torn into short pieces, in order, with other text between them.
        """
        if not self._forms or not data:
            return data
        low = data.lower()
        spans = self._spans(low)
        if shreds:
            spans += [span for torn in self._values.values() for span in torn.spans(low)]
        return _cut(data, spans) if spans else data

    def count_lookalikes(self, data: bytes) -> None:
        """Count what looks like a key in bytes that were cleaned already."""
        self.lookalikes += len(_LOOKS.findall(data))

    def _spans(self, low: bytes) -> list[tuple[int, int]]:
        forms, sample = self._forms, self._sample
        whole = low + b"\0" * (-len(low) % sample.size)
        if self._grams.isdisjoint(sample.iter_unpack(whole)):
            return []
        return [
            run
            for at, (gram,) in enumerate(sample.iter_unpack(whole))
            if gram in forms
            for form in forms[gram]
            for run in form.runs(low, at * sample.size)
        ]


def _is_secret(value: str) -> bool:
    if len(value) < SHORTEST or value == len(value) * value[0] or value.isdigit():
        return False
    if _WORDS.fullmatch(value):
        single = value.isalpha()
        return len(value) >= (16 if single else SHORTEST_WORDS)
    return True


def _piece(value: str) -> int:
    """Return how many characters of a secret, after its public prefix, give it away."""
    if _WORDS.fullmatch(value):
        return len(value) - _public(value)  # a part of it is an ordinary word
    body = len(value) - _public(value)
    return min(body, max(SHORTEST, min(PIECE, math.ceil(body / 2))))


def _public(value: str) -> int:
    start = _PUBLIC_START.match(value)
    return start.end() if start and len(value) - start.end() >= SHORTEST else 0


def _spellings(value: str, least: int) -> Iterator[_Form]:
    import base64
    import html
    import json
    from urllib.parse import quote, quote_plus

    raw = value.encode("utf-8", "surrogatepass")
    public = _public(value)
    plain = {
        raw,
        json.dumps(value)[1:-1].encode(),
        json.dumps(value, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass"),
        quote(raw, safe="").encode(),
        quote_plus(raw).encode(),
        html.escape(value).encode("utf-8", "surrogatepass"),
    }
    for spelled in {one.lower() for one in plain}:
        yield _Form(spelled, public, least)
    yield _Form(raw[::-1].lower(), 0, least)
    yield _Form(raw.hex().encode(), 2 * public, 2 * least)
    yield _Form("".join(f"%{byte:02x}" for byte in raw).encode(), 3 * public, 3 * least)
    yield _Form("".join(f"\\u{ord(sign):04x}" for sign in value).encode(), 6 * public, 6 * least)
    for shift in range(3):
        # What precedes the key decides how its bytes fall into base64's groups of three.
        coded = base64.b64encode(b"\0" * shift + raw).rstrip(b"=")
        inner = coded[(0, 2, 3)[shift] :]
        inner = inner if (shift + len(raw)) % 3 == 0 else inner[:-1]
        start, enough = math.ceil(public * 4 / 3), min(len(inner), max(SHORTEST, least * 4 // 3 - 2))
        for spelled in {inner.lower(), inner.translate(bytes.maketrans(b"+/", b"-_")).lower()}:
            yield _Form(spelled, min(start, len(inner) - enough), enough)


def _cut(data: bytes, spans: Iterable[tuple[int, int]]) -> bytes:
    """Replace spans with :data:`REMOVED`; a backslash goes or stays with what it escapes."""
    made: list[bytes] = []
    done = 0
    for start, end in _joined(spans):
        head = data[done:start]
        head = head[: len(head) - (len(head) - len(head.rstrip(b"\\"))) % 2]
        inner = data[start:end]
        made += [head, _REMOVED]
        done = end + (len(inner) - len(inner.rstrip(b"\\"))) % 2
    return b"".join([*made, data[done:]])


def _joined(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((start, end))
    return joined


KNOWN = Secrets()
"""The secrets of this process. The environment is read on first use and whenever something is opened."""
_read = False


def refresh() -> None:
    """Read the environment again: a key may have been set, or loaded from a file, since."""
    global _read
    _read = True
    KNOWN.add_settings(os.environ)


def remember(value: str | None) -> None:
    """Remember a secret that is not in the environment."""
    KNOWN.add(value)


def remember_settings(settings: Mapping[str, str]) -> None:
    """Remember the secrets among settings or environment variables, by their names."""
    KNOWN.add_settings(settings)


def remember_address(address: str | None) -> None:
    """Remember the password inside an address, if there is one."""
    KNOWN.add_address(address)


def clean_bytes(data: bytes) -> bytes:
    """Return bytes without configured secrets; the last step of every writer."""
    if not _read:
        refresh()
    return KNOWN.clean(data)


def clean_text(text: str) -> str:
    """Return a text without configured secrets."""
    if not _read:
        refresh()
    if not KNOWN:
        return text
    raw = text.encode("utf-8", "surrogatepass")
    cleaned = KNOWN.clean(raw)
    return text if cleaned is raw else cleaned.decode("utf-8", "surrogatepass")


def clean_foreign(data: bytes) -> bytes:
    """Return what came from outside without configured secrets, torn ones included; lookalikes are counted."""
    if not _read:
        refresh()
    cleaned = KNOWN.clean(data, shreds=True)
    KNOWN.count_lookalikes(cleaned)
    return cleaned


def clean_words(text: str) -> str:
    """Do what :func:`clean_foreign` does with a text."""
    raw = text.encode("utf-8", "surrogatepass")
    cleaned = clean_foreign(raw)
    return text if cleaned is raw else cleaned.decode("utf-8", "surrogatepass")


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
        same = len(made) == len(value) and all(
            a is b and c is d for (a, c), (b, d) in zip(made.items(), value.items(), strict=True)
        )
        return value if same else made
    if isinstance(value, list | tuple):
        items = [clean_tree(inner) for inner in value]
        same = all(a is b for a, b in zip(items, value, strict=True))
        return value if same else items if isinstance(value, list) else tuple(items)
    return clean_bytes(value) if isinstance(value, bytes) else value


def scrub(error: BaseException) -> None:
    """Remove configured secrets from an exception and everything it wraps, in place."""
    if not _read:
        refresh()
    if not KNOWN:
        return
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
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
