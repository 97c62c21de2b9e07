"""Keys never reach a disk or a screen.

What counts as a secret is what was *configured* as one: API keys, tokens and passwords in the environment, the
password in the address of a server or a database, and whatever a caller hands to :func:`remember`. A server that
echoes a key must not get it into a record: everything foreign is cleaned where it enters, before it is read
(:func:`clean_foreign`, :func:`clean_record`, :func:`scrub`), and every writer cleans what it writes once more
(:func:`clean_bytes`). A secret is found as itself, whole or as any considerable piece, its first or last eight
signs included; reversed, in either case, by 13 places, with anything but letters and digits between its signs;
behind the escapes of JSON, URLs, HTML, mail, programs and terminals, some or all of its signs, layers deep; in
base64, base32, base85, hexadecimal, octal, decimal and binary codes, and inside base64 or hexadecimal texts that
hold any of these, compressed or not. In what came from outside it is also found torn over fields, in any order, or
with one to three letters between each two of its own. With letters mixed in irregularly, in an alphabet of
somebody's own, or encrypted, it is not. :data:`REMOVED`, or a zero for a number, takes its place.

Text that merely looks like a key (``sk-...``, ``Bearer ...``) but is not configured here is left alone
and counted.

This module is loaded by every command: what only a configured secret needs is imported, and patterns are compiled,
where they are used (``re`` keeps what it has compiled).
"""

from __future__ import annotations

import math
import os
import re
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from tradeassay.core.secret_search import SecretSearch

REMOVED = "[secret removed]"
SHORTEST = 8
"""A value with fewer characters than this is never taken for a secret."""
SHORTEST_WORDS = 12
"""The same for a value that consists of words ("not-needed" is a placeholder, not a key)."""
PIECE = 12
"""A piece of a long key with this many characters is removed; for a shorter key, half of it is enough."""

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
_PATH = r"[~.]{0,2}/|[A-Za-z]:\\"
_LOOKS = (
    rb"\bsk-[A-Za-z0-9_-]{16,}|\bxox[abeoprs]-[A-Za-z0-9-]{10,}|\bA(?:KI|SI)A[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_-]{30,}"
    rb"|\bgh[pousr]_[A-Za-z0-9]{30,}|\bhf_[A-Za-z0-9]{30,}|\bBearer\s+[A-Za-z0-9._~+/-]{16,}"
    rb"|\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\."
)

T = TypeVar("T")

_GIVEN = (
    r"(?i)(?:^|\s)(?:--?[\w-]*(?:api-?key|token|password|secret)|\w*(?:API_?KEY|TOKEN|PASSWORD|SECRET))[= ]"
    r"(?![-$])\S{8,}"
)
"""A key that is given to a command in its arguments, or as a variable before it."""


class Secrets:
    """The secrets a process knows. Safe to share between threads; nothing is ever forgotten."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._search: SecretSearch | None = None
        self.lookalikes = 0

    def __bool__(self) -> bool:
        return self._search is not None

    def add(self, value: str | None) -> None:
        """Remember a value, unless it is too short or too plain to be a secret."""
        value = (value or "").strip()
        value = value.partition(" ")[2].strip() if value.lower().startswith(("bearer ", "basic ")) else value
        if not _is_secret(value):
            return
        from tradeassay.core.secret_search import SecretSearch

        with self._lock:
            search = self._search or SecretSearch(REMOVED.encode())
            if value.encode("utf-8", "surrogatepass") not in search:
                self._search = search.with_secret(value, _public(value), _piece(value))

    def add_settings(self, settings: Mapping[str, str]) -> None:
        """Remember values whose names say key, token or password, and passwords inside addresses."""
        for name, value in settings.items():
            if "://" in value:
                self.add_address(value)
            elif _named(name) and not re.compile(_PATH).match(value):
                self.add(value)

    def add_address(self, address: str | None) -> None:
        """Remember the password of an address such as ``https://user:password@host``, and keys in its query."""
        from urllib.parse import parse_qsl, unquote, urlsplit

        for one in re.findall(r"[a-zA-Z][\w+.-]*://[^\s,;\"'<>]+", address or ""):
            try:
                parts = urlsplit(one)
                user, password, query = parts.username, parts.password, parse_qsl(parts.query)
            except ValueError:
                continue
            given = [password] if password else [user]
            for part in (*given, *(value for name, value in query if names_secret(name))):
                self.add(part)
                self.add(unquote(part) if part else part)

    def clean(self, data: bytes, *, shreds: bool = False) -> bytes:
        """Return bytes without any configured secret; the same object when it holds none.

        ``shreds`` also looks for a secret torn into short pieces with other text between them, with a sign or
        more between each two of its own.
        """
        return data if self._search is None or not data else self._search.clean(data, shreds=shreds)

    def count_lookalikes(self, data: bytes) -> None:
        """Count what looks like a key in bytes that were cleaned already."""
        self.lookalikes += len(re.compile(_LOOKS).findall(data))


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
    return any(map(names_secret, queries)) or bool(
        re.compile(_LOOKS).search(text.encode()) or re.compile(_GIVEN).search(text)
    )


def looks_like_key(data: bytes) -> bool:
    """Tell whether there is something in a text that is formed like a provider's key, configured or not."""
    return re.compile(_LOOKS).search(data) is not None


def _is_secret(value: str) -> bool:
    if len(value) < SHORTEST or value == len(value) * value[0] or value.isdigit():
        return False
    if re.compile(_WORDS).fullmatch(value):
        single = value.isalpha()
        return len(value) >= (16 if single else SHORTEST_WORDS)
    return True


def _piece(value: str) -> int:
    """Return how many characters of a secret, after its public prefix, give it away."""
    if re.compile(_WORDS).fullmatch(value):
        return len(value) - _public(value)  # a part of it is an ordinary word
    body = len(value) - _public(value)
    return min(body, max(SHORTEST, min(PIECE, math.ceil(body / 2))))


def _public(value: str) -> int:
    start = re.compile(_PUBLIC_START).match(value)
    return start.end() if start and len(value) - start.end() >= SHORTEST else 0


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


def clean_foreign(data: bytes, *, count: bool = True) -> bytes:
    """Return what came from outside without configured secrets, torn ones included; lookalikes are counted."""
    if not _read:
        refresh()
    cleaned = KNOWN.clean(data, shreds=True)
    if count:
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


def clean_foreign_tree(value: Any) -> Any:
    """Return JSON-like data from outside without secrets, also where one is torn over several texts of it."""
    import msgspec

    if not KNOWN:
        return value
    try:
        raw = msgspec.json.encode(value)
        cleaned = clean_foreign(raw, count=False)
        return value if cleaned is raw else msgspec.json.decode(cleaned)
    except (TypeError, ValueError):  # no plain data, or no longer JSON
        return clean_tree(value)


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
