"""How a secret is found in a text, however it is spelled.

:mod:`tradeassay.core.secrets` says which spellings those are, and loads this when there is a first secret.
"""

from __future__ import annotations

import base64
import bz2
import codecs
import html
import json
import lzma
import re
import struct
import unicodedata
import zlib
from binascii import a2b_base64, unhexlify
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator

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
_HEX = rb"[0-9a-fA-F]"
_CODED = (
    rb"%%(?:u00%(x)s{2}|(?:25)*%(x)s{2})|=(?:%(x)s{2}|\r?\n|(?:\\r)?\\n)"
    rb"|\\\\*(?:u001[bB]\[[0-9;]*[a-zA-Z]|u00%(x)s{2}|u[fF][fF](?:1[0-9]|[24][1-9a-fA-F]|[35][0-9aA])|u24%(x)s{2}|ud83[5cC]\\+ud%(x)s{3}"
    rb"|U%(x)s{8}|x(?:00)?1[bB]\[[0-9;]*[a-zA-Z]|[ux]\{%(x)s{1,6}\}|x%(x)s{2}|[0-7]{2,3})"
    rb"|&(?:#[0-9]{1,7}|#[xX]%(x)s{1,6}|[a-zA-Z]{2,31});|<[^<>]{1,120}>"
    rb"|\x1b\[[0-9;]*[a-zA-Z]|\xef(?:\xbc[\x90-\x99\xa1-\xba]|\xbd[\x81-\x9a])|\xe2[\x91-\x93][\x80-\xbf]"
    rb"|\xf0(?:\x9d[\x90-\x9f]|\x9f[\x84\x85])[\x80-\xbf]"
) % {b"x": _HEX}
"""Signs written as codes, every alternative with a sign of its own first; and what a page or a terminal hides."""
_CODES = rb"(?:%(code)s)%(plain)s(?:(?:%(code)s)%(plain)s)+" % {b"code": _CODED, b"plain": rb"[\w+/.~#; -]{0,16}"}
"""Where a secret may be that is not found without them: codes further apart leave considerable pieces of it."""
_LAYERS = 4
_AROUND = 64
_QUOTED = rb'[\\\s,:\[\]{}]*"[\\\s",:\[\]{}]*'
"""Where one string of a JSON text ends and the next begins."""
_DIGITS = rb"[0-9]+"
_STEPS = (2, 3, 4)
_PACKED = rb"[A-Za-z0-9+/_-]{16,}(?:(?:(?:\\+r)?\\+n|\r?\n)[A-Za-z0-9+/_-]{4,})*"
"""What may be base64 or hexadecimal, in one line or several."""
_IN_WORDS = bytes(sign if sign in _ALNUM + b"+/_-" else 32 for sign in range(256))
_HEXADECIMAL = b"0123456789abcdefABCDEF"
_PRINTED = bytes(range(32, 127)) + b"\0\t\n\r"
_MOST_INFLATED = 1 << 16
_DIGESTS = (16, 20, 28, 32, 48, 64)


class _Form:
    """One spelling of a secret, in lower case; ``least`` bytes after its public prefix give it away."""

    def __init__(self, spelled: bytes, public: int, least: int, *, numbers: bool = False, ends: int = 0) -> None:
        self.spelled = spelled
        self.public = public
        self.least = least
        self.ends = ends or least  # this much of its beginning or its end is enough
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
            first, last = max(start - left, self.public), start + right
            if last - first >= self.least or (last - first >= self.ends and self._is_end(first, last)):
                yield at - left, at + right
            start += 1

    def _is_end(self, first: int, last: int) -> bool:
        """Tell whether a piece begins or ends the secret and is no word or number."""
        piece = self.spelled[first:last]
        return (first == self.public or last == len(self.spelled)) and not (piece.isalpha() or piece.isdigit())


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
        step = min((form.ends for form in self._all), default=self._size) - self._size + 1
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

    def clean(self, data: bytes, *, shreds: bool = False, within: int = 0) -> bytes:
        """Return bytes without any of the secrets; the same object when it holds none.

        ``shreds`` also looks for a secret torn into short pieces with other text between them, with a sign or
        more between each two of its own. ``within`` says how many texts in base64 or hexadecimal the bytes lay in.
        """
        spans = list(self._exact.spans(data.lower())) if self._exact else []
        plain = _blanked(data)
        spans += self._spans(data, plain, mixed=shreds)
        spans += [(*span, False) for span in self._packed(data, shreds, within)]
        for found in re.compile(_CODES).finditer(data):
            if len(found[0]) < _SHORTEST:
                continue
            first = max(found.start() - _AROUND, 0)
            coded = self._coded(data[first : found.end() + _AROUND], shreds, within)
            spans += [(first + start, first + end, numbers) for start, end, numbers in coded]
        cuts = [part for span in spans for part in self._parts(data, *span)]
        if shreds:
            cuts += [(*span, self._instead) for torn in self._values.values() for span in torn.spans(plain)]
        return _cut(data, cuts) if cuts else data

    def _spans(self, data: bytes, plain: bytes, *, mixed: bool) -> list[tuple[int, int, bool]]:
        """Return where a text holds a secret when only its letters and digits are read."""
        low = plain.lower()
        squashed = low.translate(None, _OTHER)
        hits = [*self._short.spans(squashed), *self._long.spans(squashed)]
        between = list(self._interleaved(squashed)) if mixed else []
        if not hits and not between:
            return []
        place = [at for at, sign in enumerate(low) if sign in _ALNUM]
        spans = [(place[start], place[end - 1] + 1, numbers) for start, end, numbers in hits]
        return spans + [(*_whole_word(data, place[start], place[end - 1] + 1), False) for start, end in between]

    def _interleaved(self, squashed: bytes) -> Iterator[tuple[int, int]]:
        """Yield where a secret lies with the same number of other letters between each two of its own."""
        for step in _STEPS:
            for first in range(step):
                for start, end, numbers in self._short.spans(squashed[first::step]):
                    if not numbers:
                        yield first + step * start, first + step * (end - 1) + 1

    def _coded(self, data: bytes, shreds: bool, within: int) -> Iterator[tuple[int, int, bool]]:
        """Yield where a text holds a secret when its codes are read as the signs they stand for."""
        layers: list[_Layer] = []
        while len(layers) < _LAYERS and (layer := _decoded(layers[-1].text if layers else data)) is not None:
            if not layers and not layer.hides:
                return
            layers.append(layer)
            spans = self._spans(layer.text, _blanked(layer.text), mixed=False)
            spans += [(*span, False) for span in self._packed(layer.text, shreds, within)]
            for start, end, numbers in spans:
                for outer in reversed(layers):
                    start, end = outer.origin(start, end)
                yield start, end, numbers

    def _packed(self, data: bytes, shreds: bool, within: int) -> Iterator[tuple[int, int]]:
        """Yield where a text holds base64 or hexadecimal in which a secret lies, compressed or not."""
        words = data.translate(_IN_WORDS).split() if within < _LAYERS else []
        if not any(len(word) >= 16 and (not word.islower() or not word.strip(_HEXADECIMAL)) for word in words):
            return
        for found in re.compile(_PACKED).finditer(data):
            # Only outside may other signs stand before it without a gap: the work must not grow with every layer.
            for content in _unpacked(found[0], 1 if within else 4):
                if self.clean(content, shreds=shreds, within=within + 1) is not content:
                    yield found.span()
                    break

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


class _Layer:
    """A text whose codes were replaced by the signs they stand for, and where each of its signs came from."""

    def __init__(self, text: bytes, codes: list[tuple[int, int, int, int]]) -> None:
        self.text = text
        self._codes = codes  # where a code's sign begins and ends here, and where the code itself does

    @property
    def hides(self) -> bool:
        """Tell whether there is anything but digits among the signs: many texts have full-width numbers."""
        return not all(self.text[start:stop].isdigit() for start, stop, _, _ in self._codes)

    def origin(self, start: int, end: int) -> tuple[int, int]:
        """Return the span in the text this was made of."""
        return self._place(start)[0], self._place(end - 1)[1]

    def _place(self, at: int) -> tuple[int, int]:
        before = bisect_right(self._codes, at, key=lambda code: code[0]) - 1
        if before < 0:
            return at, at + 1
        _, stop, first, last = self._codes[before]
        return (first, last) if at < stop else (last + at - stop, last + at - stop + 1)


def _decoded(data: bytes) -> _Layer | None:
    """Return a text with the signs that its codes stand for, or None where there is no code."""
    parts: list[bytes] = []
    codes: list[tuple[int, int, int, int]] = []
    at = size = 0
    for found in re.compile(_CODED).finditer(data):
        first, last = found.span()
        sign = _sign(found[0])
        parts += (data[at:first], sign)
        size += first - at
        codes.append((size, size + len(sign), first, last))
        size += len(sign)
        at = last
    return _Layer(b"".join([*parts, data[at:]]), codes) if codes else None


def _sign(code: bytes) -> bytes:
    """Return the ASCII sign of a code; nothing for a tag, a colour or a soft break, a blank for anything else."""
    body = code.lstrip(b"\\%=&#_;")
    if code[:1] == b"&" and code[1:2] != b"#":
        text = html.unescape(code.decode())
    elif code[0] > 127:
        text = code.decode()
    elif code[:1] in b"<\x1b" or b"[" in code or (code[:1] == b"=" and len(body) != 2) or not body:
        return b""
    elif body[:2].lower() == b"ud":
        text = bytes.fromhex((body[1:5] + body[-4:]).decode()).decode("utf-16-be", "replace")
    else:
        digits = body.strip(b"uUxX{}_;")
        while code[:1] == b"%" and len(digits) > 2:
            digits = digits.removeprefix(b"25") if digits[:2] == b"25" else digits[-2:]
        decimal = code[:1] == b"&" and body[:1] not in b"xX"
        octal = code[:1] == b"\\" and body[:1] in b"01234567"
        value = int(digits, 10 if decimal else 8 if octal else 16)
        text = chr(value) if value < 0x110000 else " "
    if not text.isascii():
        text = unicodedata.normalize("NFKC", text)
    return text.encode() if text.isascii() else b" "


def _whole_word(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Widen a span to what it is a part of: the signs of a key that are no letters put its rhythm out."""
    while start and data[start - 1] in _IN_KEYS:
        start -= 1
    while end < len(data) and data[end] in _IN_KEYS:
        end += 1
    return start, end


def _unpacked(text: bytes, starts: int) -> Iterator[bytes]:
    """Yield what a text may be the base64 or hexadecimal of, where that can be read or was compressed.

    Base64 may begin at any of the first ``starts`` signs.
    """
    text = re.sub(rb"\\+r\\+n|\\+n|\s", b"", text)
    if not text.strip(_HEXADECIMAL):
        tried = [unhexlify(text[: len(text) // 2 * 2])]
    elif text.islower() or text.isupper():  # words, not base64
        return
    else:
        text = text.translate(bytes.maketrans(b"-_", b"+/"))
        ends = (len(text) - (len(text) - skipped) % 4 for skipped in range(starts))
        tried = [a2b_base64(text[skipped:end]) for skipped, end in enumerate(ends)]
        if (left := len(text) % 4) > 1:
            tried[0] += a2b_base64(text[-left:] + b"==")
    for content in tried:
        if len(content.translate(None, _PRINTED)) * 4 <= len(content):
            yield content
    if inflated := _inflated(tried[0]):
        yield inflated


def _inflated(packed: bytes) -> bytes:
    """Return the beginning of what was compressed, or nothing where nothing was."""
    try:
        if packed[:3] == b"BZh":
            return bz2.BZ2Decompressor().decompress(packed, _MOST_INFLATED)
        if packed[:5] == b"\xfd7zXZ":
            return lzma.LZMADecompressor(memlimit=1 << 26).decompress(packed, _MOST_INFLATED)
        headed = packed[:2] == b"\x1f\x8b" or (packed[:1] == b"x" and int.from_bytes(packed[:2]) % 31 == 0)
        if not headed and len(packed) in _DIGESTS:
            return b""
        return zlib.decompressobj(wbits=47 if headed else -15).decompress(packed, _MOST_INFLATED)
    except (zlib.error, lzma.LZMAError, OSError, EOFError, ValueError):
        return b""


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
        shown = min(len(one.translate(None, _OTHER)) for one in (body[:_SHORTEST], body[-_SHORTEST:]))
        ends = max(shown, _SHORTEST - 1) if least < len(body) else enough
        forms = [_Form(kept.lower(), start, enough, ends=min(ends, enough)), _Form(kept[::-1].lower(), 0, enough)]
        forms.append(_Form(codecs.encode(kept.decode(), "rot13").lower().encode(), start, enough))
    for form, size in (("%02x", 2), ("0x%02x", 4), ("%06x", 6), ("%03o", 3)):
        spelled = "".join(form % sign for sign in raw).encode()
        forms.append(_Form(spelled, size * public, size * least, numbers=form == "%03o"))
    for form in ("%d", "{0:08b}", "{0:b}"):
        of_each = [(form % sign if "%" in form else form.format(sign)) for sign in raw]
        spelled, skipped = "".join(of_each).encode(), len("".join(of_each[:public]))
        forms.append(_Form(spelled, skipped, min(2 * least, len(spelled) - skipped), numbers=True))
    coded = _coded(raw, public, least, 3, base64.b64encode) + _coded(raw, public, least, 5, base64.b32encode)
    back = raw[::-1]
    forms += [_Form(back.hex().encode(), 0, 2 * least), _Form(raw.hex()[::-1].encode(), 0, 2 * least)]
    coded += _coded(back, 0, least, 3, base64.b64encode) + _coded(raw, public, least, 5, base64.b32hexencode)
    coded += _coded(value.encode("utf-16-le", "surrogatepass"), 2 * public, 2 * least, 3, base64.b64encode)
    turned = [(one[0][::-1], 0, one[2]) for one in _coded(raw, public, least, 3, base64.b64encode)]
    for spelled, skipped, enough in coded + turned:
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
