"""Keys never reach a disk or a screen.

What counts as a secret is what was *configured* as one: API keys, tokens and passwords in the environment, the
password in the address of a server or a database, and whatever a caller hands to :func:`remember`. A server that
echoes a key must not get it into a record: everything foreign is cleaned where it enters, before it is read
(:func:`clean_foreign`, :func:`clean_record`, :func:`scrub`), and every writer cleans what it writes once more
(:func:`clean_bytes`). A secret is found as itself and as encoded in base64 (twice, or of hexadecimal), base32,
base85, hexadecimal, octal, decimal and binary codes, JSON, URLs, HTML, full-width letters or by 13 places;
reversed, in either case, with anything but letters and digits between its signs, whole or as any considerable
piece; in what came from outside also torn over fields, in any order. :data:`REMOVED`, or a zero for a number,
takes its place. In what came from outside it is also found compressed, or with one to three letters between each
two of its own; with letters mixed in irregularly, or encrypted, it is not.

Text that merely looks like a key (``sk-...``, ``Bearer ...``) but is not configured here is left alone
and counted.

This module is loaded by every command: what only a configured secret needs is imported, and patterns are compiled,
where they are used (``re`` keeps what it has compiled).
"""

from __future__ import annotations

import math
import os
import re
import struct
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

REMOVED = "[secret removed]"
SHORTEST = 8
"""A value with fewer characters than this is never taken for a secret."""
SHORTEST_WORDS = 12
"""The same for a value that consists of words ("not-needed" is a placeholder, not a key)."""
PIECE = 12
"""A piece of a long key with this many characters is removed; for a shorter key, half of it is enough."""

_SHORT, _LONG = 4, 12
"""Sizes of the grams by which spellings are found: long ones where digits are, of which any data is full."""
_REMOVED = REMOVED.encode()
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
_ALNUM = bytes(sign for sign in range(128) if chr(sign).isalnum())
_IN_KEYS = _ALNUM + b"-_+/=.~"
_OTHER = bytes(sign for sign in range(256) if sign not in _ALNUM)
_BETWEEN = rb"\\+u(?!00[2-7])[0-9a-fA-F]{4}|</?[a-z]{1,10}[0-9]?>"
_ESCAPED_BLANKS = (rb"\n", rb"\r", rb"\t", rb"\b", rb"\f")
"""What may stand between the letters of a text without being seen: escaped signs and blanks, and tags."""
_WIDE = rb"(?i)\xef(?:\xbc[\x81-\xbf]|\xbd[\x80-\x9e])|\\uff[0-5][0-9a-f]"
_QUOTED = rb'[\\\s,:\[\]{}]*"[\\\s",:\[\]{}]*'
"""Where one string of a JSON text ends and the next begins."""
_DIGITS = rb"[0-9]+"
_STEPS = (2, 3, 4)
_PACKED = rb"(?:e[JNAF]|H4sI)[A-Za-z0-9+/_-]{16,}={0,2}|(?i:78(?:9c|da|01|5e)|1f8b08)[0-9A-Fa-f]{24,}"
"""How bytes begin that zlib or gzip made."""
_MOST_INFLATED = 1 << 16


class _Form:
    """One spelling of a secret, in lower case; ``least`` bytes after its public prefix give it away."""

    def __init__(self, spelled: bytes, public: int, least: int, *, numbers: bool = False) -> None:
        self.spelled = spelled
        self.public = public
        self.least = least
        self.numbers = numbers
        self.gram = (
            _LONG if least >= 2 * SHORTEST and spelled.translate(None, b"0123456789abcdefux") == b"" else _SHORT
        )

    def grams(self) -> Iterator[bytes]:
        for at in range(self.public, len(self.spelled) - self.gram + 1):
            yield self.spelled[at : at + self.gram]

    def runs(self, text: bytes, at: int) -> Iterator[tuple[int, int]]:
        """Yield where in a text a considerable piece of this spelling lies around the gram at ``at``."""
        gram, start = text[at : at + self.gram], self.public
        while (start := self.spelled.find(gram, start)) >= 0:
            left, right = 0, self.gram
            while left < min(at, start) and text[at - left - 1] == self.spelled[start - left - 1]:
                left += 1
            most = min(len(text) - at, len(self.spelled) - start)
            while right < most and text[at + right] == self.spelled[start + right]:
                right += 1
            if start + right - max(start - left, self.public) >= self.least:
                yield at - left, at + right
            start += 1


class _Table:
    """Spellings by their grams: one look into a set for every few bytes of a text."""

    def __init__(self, forms: Iterable[_Form] = ()) -> None:
        self._forms: dict[bytes, list[_Form]] = {}
        self._all = list(forms)
        for form in self._all:
            for gram in set(form.grams()):
                self._forms.setdefault(gram, []).append(form)
        # A piece of n bytes holds a whole gram at one of any n - gram + 1 neighbouring places.
        self._size = self._all[0].gram if self._all else _SHORT
        step = min((form.least for form in self._all), default=self._size) - self._size + 1
        self._sample = struct.Struct(f"{self._size}s{max(step - self._size, 0)}x")
        self._phases = range(0, self._size, max(step, 1)) if step < self._size else range(1)
        self._grams = frozenset((gram,) for gram in self._forms)

    def __bool__(self) -> bool:
        return bool(self._all)

    def with_forms(self, forms: Iterable[_Form]) -> _Table:
        """Return a table that also finds these."""
        return _Table([*self._all, *forms])

    def spans(self, low: bytes) -> Iterator[tuple[int, int, bool]]:
        """Yield where a text holds a considerable piece of a spelling, and whether that consists of numbers."""
        for phase in self._phases if self._all else ():
            part = low[phase:] if phase else low
            whole = part + b"\0" * (-len(part) % self._sample.size)
            if self._grams.isdisjoint(self._sample.iter_unpack(whole)):
                continue
            for at, (gram,) in enumerate(self._sample.iter_unpack(whole)):
                for form in self._forms.get(gram, ()):
                    for start, end in form.runs(low, phase + at * self._sample.size):
                        yield start, end, form.numbers


class _Torn:
    """A secret to be found as short pieces, in whatever order, with other text between them."""

    def __init__(self, raw: bytes, least: int) -> None:
        self._raw, self._enough = raw, max(least, 2 * len(raw) // 3)
        # A backslash is doubled, or stands before a break, wherever a text is escaped.
        signs = b"".join(re.escape(bytes([sign])) for sign in sorted({*raw} - {*b"\\"}))
        self._pieces = re.compile(rb"[%s]{3,}" % signs)
        within = {raw[at:end] for at in range(len(raw)) for end in range(at + 3, len(raw) + 1)}
        # Any table is full of short numbers.
        self._telling = {one for one in within if len(one) >= 6 or not (one.isdigit() or len(set(one)) == 1)}

    def spans(self, text: bytes) -> list[tuple[int, int]]:
        """Return where the pieces lie if together they make up most of the secret."""
        found = self._telling.intersection(self._pieces.findall(text))
        if sum(map(len, found)) < self._enough or len(found) < 2:
            return []
        covered = bytearray(len(self._raw))
        for piece in found:
            start = -1
            while (start := self._raw.find(piece, start + 1)) >= 0:
                covered[start : start + len(piece)] = b"\1" * len(piece)
        if sum(covered) < self._enough:
            return []
        return [match.span() for match in self._pieces.finditer(text) if match[0] in found]


class Secrets:
    """The secrets a process knows. Safe to share between threads; nothing is ever forgotten."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[bytes, _Torn] = {}
        self._exact, self._short, self._long = _Table(), _Table(), _Table()
        self.lookalikes = 0

    def __bool__(self) -> bool:
        return bool(self._values)

    def add(self, value: str | None) -> None:
        """Remember a value, unless it is too short or too plain to be a secret."""
        value = (value or "").strip()
        value = value.partition(" ")[2].strip() if value.lower().startswith(("bearer ", "basic ")) else value
        raw = value.encode("utf-8", "surrogatepass")
        if not _is_secret(value) or raw in self._values:
            return
        with self._lock:
            least = _piece(value)
            exact, forms = _spellings(value, least)
            self._exact = self._exact.with_forms(exact)
            self._short = self._short.with_forms(form for form in forms if form.gram == _SHORT)
            self._long = self._long.with_forms(form for form in forms if form.gram == _LONG)
            self._values = {**self._values, raw: _Torn(raw, least)}

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
        more between each two of its own, and compressed.
        """
        if not self._values or not data:
            return data
        spans = list(self._exact.spans(data.lower())) if self._exact else []
        plain = _blanked(data)
        low = plain.lower()
        squashed = low.translate(None, _OTHER)
        hits = [*self._short.spans(squashed), *self._long.spans(squashed)]
        mixed = list(self._interleaved(squashed)) if shreds else []
        if hits or mixed:
            place = [at for at, sign in enumerate(low) if sign in _ALNUM]
            spans += [(place[start], place[end - 1] + 1, numbers) for start, end, numbers in hits]
            spans += [(*_whole_word(data, place[start], place[end - 1] + 1), False) for start, end in mixed]
        cuts = [part for span in spans for part in _parts(data, *span)]
        if shreds:
            cuts += [(*span, _REMOVED) for torn in self._values.values() for span in torn.spans(plain)]
            cuts += [(*span, _REMOVED) for span in self._compressed(data)]
        made = _cut(data, cuts) if cuts else data
        if b"\xef\xbc" in made or b"\xef\xbd" in made or b"\\uff" in made:
            made = self._without_wide(made)
        return made

    def count_lookalikes(self, data: bytes) -> None:
        """Count what looks like a key in bytes that were cleaned already."""
        self.lookalikes += len(re.compile(_LOOKS).findall(data))

    def _interleaved(self, squashed: bytes) -> Iterator[tuple[int, int]]:
        """Yield where a secret lies with the same number of other letters between each two of its own."""
        for step in _STEPS:
            for first in range(step):
                for start, end, numbers in self._short.spans(squashed[first::step]):
                    if not numbers:
                        yield first + step * start, first + step * (end - 1) + 1

    def _compressed(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield where a text holds a secret that was compressed and written in base64 or hexadecimal."""
        for found in re.compile(_PACKED).finditer(data):
            content = _inflated(found[0])
            if self.clean(content) is not content:
                yield found.span()

    def _without_wide(self, data: bytes) -> bytes:
        """Return bytes without secrets in full-width letters."""
        found = list(re.compile(_WIDE).finditer(data))
        text = bytes(_narrow(match[0]) for match in found).lower()
        kept = [at for at, sign in enumerate(text) if sign in _ALNUM]
        hits = [*self._short.spans(text.translate(None, _OTHER))]
        if not hits:
            return data
        wide = [(found[kept[start]].start(), found[kept[end - 1]].end(), _REMOVED) for start, end, _ in hits]
        return _cut(data, wide)


def _whole_word(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Widen a span to what it is a part of: the signs of a key that are no letters put its rhythm out."""
    while start and data[start - 1] in _IN_KEYS:
        start -= 1
    while end < len(data) and data[end] in _IN_KEYS:
        end += 1
    return start, end


def _inflated(text: bytes) -> bytes:
    """Return the beginning of what was compressed, or nothing where nothing was."""
    import base64
    import binascii
    import zlib

    try:
        if text[:1] in b"71":
            packed = bytes.fromhex(text[: len(text) // 2 * 2].decode())
        else:
            packed = base64.b64decode(
                text.rstrip(b"=") + b"==", altchars=b"-_" if b"-" in text or b"_" in text else None
            )
        return zlib.decompressobj(wbits=47).decompress(packed, _MOST_INFLATED)
    except (binascii.Error, ValueError, zlib.error):
        return b""


def _narrow(wide: bytes) -> int:
    """Return the ASCII sign of a full-width one, which stands there as itself or escaped."""
    sign = ord(wide.decode()) if wide.startswith(b"\xef") else int(wide[2:], 16)
    return max(sign - 0xFEE0, 0x20) if sign < 0xFF5F else 0x20


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


def _blanked(data: bytes) -> bytes:
    """Return bytes of the same length, with blanks in place of what is not seen between letters."""
    if b"\\" in data:
        for seen in _ESCAPED_BLANKS:  # a backslash that is left before one is no letter either
            data = data.replace(seen, b"  ")
    if b"<" in data or b"\\u" in data:
        return re.compile(_BETWEEN).sub(lambda found: b" " * len(found[0]), data)
    return data


def _parts(data: bytes, start: int, end: int, numbers: bool) -> Iterator[tuple[int, int, bytes]]:
    """Yield what to cut of a span and what to put there: what is JSON stays JSON."""
    if numbers:
        for found in re.compile(_DIGITS).finditer(data, start, end):
            yield *found.span(), b"0"
        return
    for found in re.compile(_QUOTED).finditer(data, start, end):
        if start < found.start():
            yield start, found.start(), _REMOVED
        start = found.end()
    yield start, end, _REMOVED


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


def _spellings(value: str, least: int) -> tuple[list[_Form], list[_Form]]:
    """Return spellings to be found as they are, and those to be found in a text of which only letters are left."""
    import base64
    import codecs
    import html
    import json
    from urllib.parse import quote, quote_plus

    raw = value.encode("utf-8", "surrogatepass")
    public = _public(value)
    exact = []
    kept = raw.translate(None, _OTHER)
    start = len(raw[:public].translate(None, _OTHER))
    body = raw[public:]
    fewest = min(len(body[at : at + least].translate(None, _OTHER)) for at in range(len(body) - least + 1))
    if fewest < min(SHORTEST, least):  # too few letters and digits
        plain = {
            raw,
            json.dumps(value)[1:-1].encode(),
            json.dumps(value, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass"),
            html.escape(value).encode("utf-8", "surrogatepass"),
            raw[::-1],
        }
        exact = [
            _Form(spelled, public if spelled != raw[::-1] else 0, least)
            for spelled in {one.lower() for one in plain}
        ]
    forms = []
    if fewest >= _SHORT:
        enough = max(fewest, min(SHORTEST, len(kept) - start))
        forms = [_Form(kept.lower(), start, enough), _Form(kept[::-1].lower(), 0, enough)]
        forms.append(_Form(codecs.encode(kept.decode(), "rot13").lower().encode(), start, enough))
    quoted = {quote(raw, safe="").encode(), quote_plus(raw).encode()}
    for spelled in {one.translate(None, _OTHER).lower() for one in quoted} - {kept.lower()}:
        forms.append(_Form(spelled, start, max(least, _SHORT)))
    for form, size in (
        ("%02x", 2),
        ("x%02x", 3),
        ("0x%02x", 4),
        ("25%02x", 4),
        ("u%04x", 5),
        ("%06x", 6),
        ("%03o", 3),
    ):
        spelled = "".join(form % sign for sign in raw).encode()
        forms.append(_Form(spelled, size * public, size * least, numbers=form == "%03o"))
    for form in ("%d", "{0:08b}", "{0:b}"):
        of_each = [(form % sign if "%" in form else form.format(sign)) for sign in raw]
        spelled, skipped = "".join(of_each).encode(), len("".join(of_each[:public]))
        forms.append(_Form(spelled, skipped, min(2 * least, len(spelled) - skipped), numbers=True))
    coded = _coded(raw, public, least, 3, base64.b64encode) + _coded(raw, public, least, 5, base64.b32encode)
    twice = [
        again
        for inner, skipped, enough in _coded(raw, public, least, 3, base64.b64encode)
        for again in _coded(inner, skipped, enough, 3, base64.b64encode)
    ]
    for spelled in (raw.hex().encode(), raw.hex().upper().encode()):
        twice += _coded(spelled, 2 * public, 2 * least, 3, base64.b64encode)
    twice += [
        again
        for inner, skipped, enough in twice[: len(coded)]
        for again in _coded(inner, skipped, enough, 3, base64.b64encode)
    ]
    back = raw[::-1]
    forms += [_Form(back.hex().encode(), 0, 2 * least), _Form(raw.hex()[::-1].encode(), 0, 2 * least)]
    coded += _coded(back, 0, least, 3, base64.b64encode) + _coded(raw, public, least, 5, base64.b32hexencode)
    coded += _coded(value.encode("utf-16-le", "surrogatepass"), 2 * public, 2 * least, 3, base64.b64encode)
    turned = [(one[0][::-1], 0, one[2]) for one in _coded(raw, public, least, 3, base64.b64encode)]
    for spelled, skipped, enough in coded + twice + turned:
        left = spelled.translate(None, _OTHER).lower()
        skipped = len(spelled[:skipped].translate(None, _OTHER))
        enough = min(max(enough - (len(spelled) - len(left)), SHORTEST), len(left) - skipped)
        if enough >= _SHORT:
            forms.append(_Form(left, skipped, enough))
    for encode in (base64.b85encode, base64.a85encode):
        forms += _in_base85(raw, public, encode)
    return exact, forms


def _in_base85(raw: bytes, public: int, encode: Callable[[bytes], bytes]) -> Iterator[_Form]:
    """Yield how bytes look in base85, for every place at which they may begin in a group of four.

    A group that is shared with other bytes looks different every time; only whole ones count.
    """
    for skip in range(4):
        whole = raw[skip : skip + (len(raw) - skip) // 4 * 4]
        left = encode(whole).translate(None, _OTHER).lower()
        known = encode(whole[: max(public - skip, 0) // 4 * 4]).translate(None, _OTHER)
        if len(left) - len(known) >= SHORTEST:
            yield _Form(left, len(known), SHORTEST)


def _coded(
    raw: bytes, public: int, least: int, group: int, encode: Callable[[bytes], bytes]
) -> list[tuple[bytes, int, int]]:
    """Return how bytes look in base64 or base32, for every place at which they may begin in a group.

    With each stand how much of it is public, and how much of it gives it away.
    """
    made = []
    for shift in range(group):
        whole = encode(b"\0" * shift + raw).rstrip(b"=")
        signs = {3: 4, 5: 8}[group]
        first = -(-shift * signs // group)  # what precedes the key is part of the signs before
        last = (shift + len(raw)) * signs // group
        inner = whole[first:last]
        enough = min(len(inner), max(SHORTEST, least * signs // group - 2))
        made.append((inner, min(-(-public * signs // group), len(inner) - enough), enough))
    return made


def _cut(data: bytes, cuts: Iterable[tuple[int, int, bytes]]) -> bytes:
    """Replace parts of bytes; a backslash goes or stays with what it escapes."""
    made: list[bytes] = []
    done = 0
    for start, end, instead in _joined(cuts):
        head = data[done:start]
        head = head[: len(head) - (len(head) - len(head.rstrip(b"\\"))) % 2]
        inner = data[start:end]
        made += [head, instead]
        done = end + (len(inner) - len(inner.rstrip(b"\\"))) % 2
    return b"".join([*made, data[done:]])


def _joined(cuts: Iterable[tuple[int, int, bytes]]) -> list[tuple[int, int, bytes]]:
    joined: list[tuple[int, int, bytes]] = []
    for start, end, instead in sorted(cuts):
        if joined and start < joined[-1][1]:
            begun, until, first = joined[-1]
            joined[-1] = begun, max(end, until), first
        elif start < end:
            joined.append((start, end, instead))
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
