"""How a secret is found in a text, however it is spelled.

:mod:`tradeassay.core.secrets` says which spellings those are, and loads this when there is a first secret.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import html
import json
import re
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator
from urllib.parse import quote, quote_plus

_SHORT, _LONG = 4, 12
"""Sizes of the grams by which spellings are found: long ones where digits are, of which any data is full."""
_SHORTEST = 8
"""Fewer letters than this, however they are spelled, give no secret away."""
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
            _LONG if least >= 2 * _SHORTEST and spelled.translate(None, b"0123456789abcdefux") == b"" else _SHORT
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


class SecretSearch:
    """Finds the secrets it was given and puts ``instead`` in their place; it never changes."""

    def __init__(self, instead: bytes) -> None:
        self._instead = instead
        self._values: dict[bytes, _Torn] = {}
        self._exact, self._short, self._long = _Table(), _Table(), _Table()

    def __contains__(self, raw: bytes) -> bool:
        return raw in self._values

    def with_secret(self, value: str, public: int, least: int) -> SecretSearch:
        """Return a search that also finds this: ``least`` characters after its ``public`` ones give it away."""
        made = SecretSearch(self._instead)
        exact, forms = _spellings(value, public, least)
        made._exact = self._exact.with_forms(exact)
        made._short = self._short.with_forms(form for form in forms if form.gram == _SHORT)
        made._long = self._long.with_forms(form for form in forms if form.gram == _LONG)
        raw = value.encode("utf-8", "surrogatepass")
        made._values = {**self._values, raw: _Torn(raw, least)}
        return made

    def clean(self, data: bytes, *, shreds: bool = False) -> bytes:
        """Return bytes without any of the secrets; the same object when it holds none.

        ``shreds`` also looks for a secret torn into short pieces with other text between them, with a sign or
        more between each two of its own, and compressed.
        """
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
        cuts = [part for span in spans for part in self._parts(data, *span)]
        if shreds:
            cuts += [(*span, self._instead) for torn in self._values.values() for span in torn.spans(plain)]
            cuts += [(*span, self._instead) for span in self._compressed(data)]
        made = _cut(data, cuts) if cuts else data
        if b"\xef\xbc" in made or b"\xef\xbd" in made or b"\\uff" in made:
            made = self._without_wide(made)
        return made

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
        wide = [(found[kept[start]].start(), found[kept[end - 1]].end(), self._instead) for start, end, _ in hits]
        return _cut(data, wide)

    def _parts(self, data: bytes, start: int, end: int, numbers: bool) -> Iterator[tuple[int, int, bytes]]:
        """Yield what to cut of a span and what to put there: what is JSON stays JSON."""
        if numbers:
            for found in re.compile(_DIGITS).finditer(data, start, end):
                yield *found.span(), b"0"
            return
        for found in re.compile(_QUOTED).finditer(data, start, end):
            if start < found.start():
                yield start, found.start(), self._instead
            start = found.end()
        yield start, end, self._instead


def _whole_word(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Widen a span to what it is a part of: the signs of a key that are no letters put its rhythm out."""
    while start and data[start - 1] in _IN_KEYS:
        start -= 1
    while end < len(data) and data[end] in _IN_KEYS:
        end += 1
    return start, end


def _inflated(text: bytes) -> bytes:
    """Return the beginning of what was compressed, or nothing where nothing was."""
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


def _blanked(data: bytes) -> bytes:
    """Return bytes of the same length, with blanks in place of what is not seen between letters."""
    if b"\\" in data:
        for seen in _ESCAPED_BLANKS:  # a backslash that is left before one is no letter either
            data = data.replace(seen, b"  ")
    if b"<" in data or b"\\u" in data:
        return re.compile(_BETWEEN).sub(lambda found: b" " * len(found[0]), data)
    return data


def _spellings(value: str, public: int, least: int) -> tuple[list[_Form], list[_Form]]:
    """Return spellings to be found as they are, and those to be found in a text of which only letters are left."""
    raw = value.encode("utf-8", "surrogatepass")
    exact = []
    kept = raw.translate(None, _OTHER)
    start = len(raw[:public].translate(None, _OTHER))
    body = raw[public:]
    fewest = min(len(body[at : at + least].translate(None, _OTHER)) for at in range(len(body) - least + 1))
    if fewest < min(_SHORTEST, least):  # too few letters and digits
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
        enough = max(fewest, min(_SHORTEST, len(kept) - start))
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
        enough = min(max(enough - (len(spelled) - len(left)), _SHORTEST), len(left) - skipped)
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
        if len(left) - len(known) >= _SHORTEST:
            yield _Form(left, len(known), _SHORTEST)


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
        enough = min(len(inner), max(_SHORTEST, least * signs // group - 2))
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
