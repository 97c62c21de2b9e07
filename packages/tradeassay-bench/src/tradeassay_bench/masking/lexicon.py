"""List the spellings of symbols and company names, and search for them in a text.

The time of a search does not depend on the number of names. Ordinary words that are also tickers or
parts of company names must not be removed from prose. A ticker among :data:`ORDINARY` is replaced
in fields for identifiers, and in prose only if it is written as a ticker (``$D``, ``NYSE: D``,
``(D)``, ``"D"``). A word among :data:`GENERIC` or :data:`ORDINARY` does not identify a company on
its own. The company's whole name does.
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from functools import cache
from html import unescape
from importlib.resources import files
from itertools import chain, combinations
from typing import Literal, NamedTuple

import msgspec

from tradeassay.core.errors import UNDECODABLE
from tradeassay_bench.core.view import Instrument
from tradeassay_bench.data.names import cn_names, is_cn, is_us, us_names, us_ticker
from tradeassay_bench.masking.dates import DateHit, DatesWanted, find_dates

LISTS = {
    name: words.split()
    for name, words in tomllib.loads(
        (files(__package__) / "words.toml").read_text(encoding="utf-8")
    ).items()
}
GENERIC = frozenset(LISTS["generic"])
"""Words that many company names share."""
LEGAL = frozenset(LISTS["legal"])
"""Words of the legal form at the end of a company's registered name."""
ORDINARY = frozenset((*LISTS["ticker_words"], *LISTS["acronyms"]))
"""Ordinary words and abbreviations that are also tickers, in lower case."""
_IDIOMS = frozenset(LISTS["idioms"])
_EXCHANGES = frozenset(LISTS["exchanges"])
_PHRASES = re.compile(
    r"(?<![a-z])(?:delta (?:variant|wave|surge|strain)|big apple|amazon (?:rain "
    r"?forest|river|basin))"
)
"""Phrases that begin with a company's name and mean something else."""


class _Folding(dict[int, int]):
    """A table for ``str.translate`` that computes the entry of a sign on first use."""

    def __missing__(self, code: int) -> int:
        same = unicodedata.normalize("NFKC", chr(code))
        bare = unicodedata.normalize("NFD", same)
        accented = (
            bare[0].isascii() and bare[0].isalpha() and all(map(unicodedata.combining, bare[1:]))
        )
        found = code
        if code >= 128 and accented:
            found = ord(bare[0])
        elif code >= 128 and len(same) == 1:
            found = ord(same)
        self[code] = found
        return found


FOLD = _Folding({ord(pair[0]): ord(pair[1]) for pair in LISTS["same"]})
"""Maps full-width, styled and accented letters to plain letters.

Hyphens and apostrophes get one form, and traditional Chinese becomes simplified. Every sign is
replaced by exactly one sign, so positions in a folded text equal positions in the text.
"""

_FENCE = re.compile(
    r"^[ \t]*```[ \t]*json[^\n`]*\n(.*?)^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL
)
_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_OPENING = re.compile(r"\s*(?:\{|\[\s*[\[{\"])")


class JsonSpans:
    """The JSON parts of a text: fenced ``json`` blocks, or the whole text if it is JSON.

    Invalid JSON is ignored, because a reader would not interpret its digits as numbers.
    """

    def __init__(self, text: str) -> None:
        regions = [(0, len(text))] if _OPENING.match(text) and _is_json(text) else []
        if not regions and "```" in text:
            regions = [found.span(1) for found in _FENCE.finditer(text) if _is_json(found[1])]
        self._regions = regions
        self._literals = []
        for start, end in regions:
            self._literals += [found.span() for found in _LITERAL.finditer(text, start, end)]
        self._starts = [start for start, _ in self._literals]

    def bare(self, at: int) -> bool:
        """Return whether a position is in JSON but not inside a JSON string."""
        if not any(start <= at < end for start, end in self._regions):
            return False
        before = bisect_right(self._starts, at) - 1
        return before < 0 or at >= self._literals[before][1]


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except UNDECODABLE:
        return False
    return True


# -- spellings -------------------------------------------------------------------------------------

WORD = re.compile(r"[A-Za-z0-9À-ɏ]+")
"""The pattern of a token: letters and digits.

It excludes Chinese characters, because Chinese names are searched as a whole.
"""
CHINESE = re.compile(r"[㐀-鿿]")
Case = Literal["any", "upper", "capital", "ticker"]
"""The spelling that a term requires: any case, capitals only, a capital first letter, or a ticker.
"""
_WIDE: dict[Case, int] = {"any": 3, "capital": 2, "upper": 1, "ticker": 0}
_SIX = re.compile(r"(\d{6})(?:\.([A-Z]{2,4}))?")
_CHINESE_HEAD = re.compile(r"^(?:\*?ST|S\*ST|SST|XD|XR|DR|N|C|U|W)(?=[㐀-鿿])")
_CHINESE_TAIL = re.compile(
    r"(?:股份有限公司|有限责任公司|有限公司|公司|集团股份|集团|股份|控股|Ａ|Ａ股|[AB]股?|-?[UW])+$"
)
_CHINESE_PLACE = re.compile(
    r"^(?:中国|北京|上海|天津|重庆|深圳|广州|广东|浙江|江苏|山东|山西|河南|河北|湖南|湖北|四川|安徽|福建|江西|云南"
    r"|贵州|陕西|甘肃|青海|海南|辽宁|吉林|黑龙江|内蒙古|广西|西藏|宁夏|新疆|香港|杭州|南京|苏州|宁波|青岛|厦门)"
)
_NO_WORDS = frozenset("tesla exxon aflac cigna cisco merck citi ebay hulu".split())
"""Short names that have no other meaning in small letters."""


class Term(NamedTuple):
    """A sequence of tokens (lower case) that denotes a symbol."""

    tokens: tuple[str, ...]
    symbol: str
    case: Case


def is_ordinary(ticker: str) -> bool:
    """Return whether a ticker is also an ordinary word, a trade abbreviation or a single letter."""
    return len(ticker) == 1 or ticker.lower() in ORDINARY


def is_telling(word: str) -> bool:
    lists = (GENERIC, ORDINARY, LEGAL, _IDIOMS)
    return len(word) >= 3 and not word.isdigit() and not any(word in words for words in lists)


def tokens_of(text: str) -> tuple[str, ...]:
    return tuple(WORD.findall(text.lower()))


def core_of(name: str) -> tuple[str, ...]:
    """Return the tokens of a name without a leading article and without its legal form."""
    words = list(tokens_of(name))
    while words and words[0] == "the":
        del words[0]
    while len(words) > 1 and words[-1] in LEGAL:
        del words[-1]
    return tuple(words)


def symbol_terms(instrument: Instrument) -> Iterator[Term]:
    """Yield the spellings of an instrument's symbol."""
    symbol = instrument.symbol
    tokens = tokens_of(symbol)
    six = _SIX.fullmatch(symbol)
    if six is not None:
        # A code with a market before or after it ("sh.600519") is found by its digits.
        yield from (Term((market + six[1],), symbol, "any") for market in ("", "sh", "sz", "bj"))
        return
    bases = [(symbol, tokens)] if tokens else []
    if tokens and instrument.kind == "crypto":
        bases.append((tokens[0], tokens[:1]))
        for quote in ("usd", "usdt", "usdc"):
            yield Term((tokens[0], quote), symbol, "any")
            yield Term((tokens[0] + quote,), symbol, "any")
    for written, words in bases:
        plain = len(words) > 1 or not written.isalpha()
        case: Case = "any" if plain or len(written) > 3 else "upper"
        yield Term(words, symbol, "ticker" if not plain and is_ordinary(written) else case)


def name_terms(instruments: Sequence[Instrument]) -> Iterator[Term]:
    """Yield the terms of company names: the whole name, without legal form, and identifying words.

    An identifying word is neither generic nor ordinary and occurs in the names of at most three
    instruments (two share classes have one name). It denotes the first of them. For a fund only the
    whole name counts, because parts of it are the name of an index.
    """
    named = [item for item in instruments if item.name and item.name != item.symbol]
    yield from (
        Term(tokens_of(item.name), item.symbol, "any") for item in named if item.kind == "index"
    )
    cores = [
        (item.symbol, tokens_of(item.name), core_of(item.name))
        for item in named
        if item.kind != "index"
    ]
    uses = Counter(chain.from_iterable(set(core) for _, _, core in cores))
    for symbol, whole, core in cores:
        if len(whole) > 1:
            yield Term(whole, symbol, "any")
        if len(core) > 1:
            plain = all(word in GENERIC or word in ORDINARY for word in core)
            yield Term(core, symbol, "capital" if plain else "any")
        elif core and core != whole:
            yield from (
                Term((*core, form), symbol, "any")
                for form in ("inc", "corp", "co", "company", "ltd")
            )
        for word in core:
            if is_telling(word) and uses[word] <= 3:
                yield Term((word,), symbol, "any" if len(word) >= 6 else "capital")


def known_terms(instruments: Sequence[Instrument]) -> Iterator[Term]:
    """Yield the spellings in our tables for companies of the markets in the data.

    The tables cover US and Chinese stocks. Companies that are not in the data are also hidden,
    because their names would reveal the market and the year.
    """
    if any(map(is_cn, instruments)):
        codes = {item.symbol[:6]: item.symbol for item in instruments if is_cn(item)}
        for code, spellings in cn_names().items():
            for spelling in filter(str.isascii, spellings):
                tokens, symbol = tokens_of(spelling), codes.get(code, code)
                # Pinyin and acronyms are not English words.
                yield from (
                    [Term(tokens, symbol, "any")]
                    if len(tokens) == 1
                    else _spelled(tokens, symbol, spelling)
                )
    if not any(map(is_us, instruments)):
        return
    for item in instruments:
        tokens = tokens_of(item.symbol)
        if is_us(item) and len(tokens) == 2 and len(tokens[1]) == 1:
            yield Term(("".join(tokens),), item.symbol, "upper")  # BRKB
    listed = {us_ticker(item.symbol): item.symbol for item in instruments}
    every = us_names()
    for ticker in sorted(every, key=lambda name: name not in listed):
        for spelling in every[ticker]:
            if tokens := tokens_of(spelling):
                yield from _spelled(tokens, listed.get(ticker, ticker), spelling)


def _spelled(tokens: tuple[str, ...], symbol: str, spelling: str) -> Iterator[Term]:
    if len(tokens) > 1:
        plain = all(word in GENERIC or word in ORDINARY or len(word) == 1 for word in tokens)
        yield Term(tokens, symbol, "capital" if plain else "any")
    elif spelling.isupper():
        yield Term(tokens, symbol, "upper")
    else:
        (word,) = tokens
        odd = any(
            letter.isupper() for letter in spelling[1:]
        )  # only names are written like iPad or eBay
        case: Case = (
            "any"
            if odd or word in _NO_WORDS or (len(word) >= 6 and is_telling(word))
            else "capital"
        )
        yield Term(tokens, symbol, case)
        yield Term((f"{word}s",), symbol, case)


def chinese_terms(instruments: Sequence[Instrument]) -> Iterator[tuple[str, str]]:
    """Yield (Chinese spelling, symbol).

    Spellings are the whole name, the name without its legal form, and this form without its place.
    """
    listed = {item.symbol[:6]: item for item in instruments if is_cn(item)}
    unlisted = {
        code: spelled for code, spelled in cn_names().items() if listed and code not in listed
    }
    if any(map(is_us, instruments)):  # American companies also have Chinese names
        unlisted |= us_names()
    # Companies that are not in the data are also hidden.
    for code, spellings in unlisted.items():
        yield from ((spelling, code) for spelling in spellings if not spelling.isascii())
    for item in instruments:
        if not CHINESE.search(item.name):
            continue
        # Exchanges print names with blanks, full-width letters and marks (ST, XD).
        name = _CHINESE_HEAD.sub("", re.sub(r"\s", "", item.name.translate(FOLD)))
        short = _CHINESE_TAIL.sub("", name)
        other_names = cn_names().get(item.symbol[:6], ()) if is_cn(item) else ()
        chinese = (spelling for spelling in other_names if not spelling.isascii())
        for spelling in dict.fromkeys((name, short, _CHINESE_PLACE.sub("", short), *chinese)):
            if len(spelling) >= 2 and spelling not in LISTS["chinese_generic"]:
                yield spelling, item.symbol


# -- the search ------------------------------------------------------------------------------------

_SHORTEST_JOINED = 8
"""The minimum number of letters for a search of a name without its blanks."""
_SHORTEST_GLUED = 5
"""The minimum length for a search of a name at the start of a longer word: AppleTV."""
_TAG = re.compile(r"[#@][A-Za-z][A-Za-z0-9_]{2,}")
_TAG_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_BETWEEN = re.compile(r"[ \t·・.*_\-]")
"""Signs that may stand between the characters of a Chinese name."""
_INITIALS = re.compile(r"(?<![A-Za-z0-9.])(?:[A-Z]\.){2,}[A-Z](?![A-Za-z0-9])\.?")
_ADDRESS = re.compile(r"\.(?:com|cn|net|org|io|co|ai)(?![a-z0-9])")
_LINK = re.compile(r"(?:https?://|www\.)[^\s\"'<>)\]}]+", re.IGNORECASE)
_NUMBERED = re.compile(
    r"(?<![A-Za-z])(?:ISIN|CUSIP|SEDOL|FIGI|CIK|LEI|WKN)(?: (?:no\.?|number|code))?[\s:#=]{0,3}"
    r"(?=[A-Z0-9]*\d)[A-Z0-9]{6,20}(?![A-Za-z0-9])",
    re.IGNORECASE,
)
_NUMBERS = frozenset("isin cusip sedol figi cik lei wkn".split())
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz")
_BEFORE_TICKER = re.compile(
    r"(?:\b(?:NYSE|NASDAQ|Nasdaq|AMEX|ARCA|BATS|CBOE|LSE|TSX|OTC|SSE|SZSE|SHA|SHE|[Tt]icker|[Ss]ymbol)"
    r"(?:\s+(?:Arca|American))?\s*[:=]?\s*[\"'“‘]?|[$#])$"
)
_AFTER_TICKER = re.compile(r"\.(?:N|O|US|OQ|K|L)\b|[ :](?:US|UN|UW) (?:[Ee]quity|EQUITY)\b")
_MARKET_BEHIND = re.compile(r"\.(?:sh|sz|bj|ss|xshg|xshe)(?![a-z0-9])")
_MARKET_BEFORE = re.compile(r"(?<![a-z0-9])(?:sh|sz|bj|ss|xshg|xshe)[.:]$")
_GAP = re.compile(r"[^A-Za-z0-9À-ɏ]{1,3}")
_PAIRS = {
    "(": ")",
    '"': '"',
    "'": "'",
    "“": "”",
    "‘": "’",
    "[": "]",
    "`": "`",
    "（": "）",
    "「": "」",
    "『": "』",
}


class Hit(NamedTuple):
    """A place in a text with a name of a symbol."""

    start: int
    end: int
    symbol: str


class Lexicon:
    """Every spelling of every instrument that is visible so far."""

    def __init__(self, instruments: Sequence[Instrument]) -> None:
        terms: dict[tuple[str, ...], Term] = {}

        def folded(found: Iterator[Term]) -> list[Term]:
            return [
                term._replace(tokens=tuple(token.translate(FOLD) for token in term.tokens))
                for term in found
            ]

        symbols = list(chain.from_iterable(symbol_terms(item) for item in instruments))
        for term in (*symbols, *folded(name_terms(instruments))):
            terms.setdefault(term.tokens, term)
        known = folded(known_terms(instruments))
        for term in known:
            # For a ticker that is also the company's name (AON, Aon), the more general spelling
            # is used.
            held = terms.get(term.tokens)
            if held is None or (held.symbol == term.symbol and _WIDE[term.case] > _WIDE[held.case]):
                terms[term.tokens] = term
        for name in _EXCHANGES:
            # An exchange gets no alias: "(NASDAQ: X)" with an alias in it would reveal the alias of
            # a company.
            if (held := terms.get((name,))) is not None and tokens_of(held.symbol) != (name,):
                terms[name,] = held._replace(symbol=name.upper())
        self._glued: dict[str, str] = {}
        for term in known:
            joined = "".join(term.tokens)
            if len(term.tokens) > 1 and len(joined) >= _SHORTEST_JOINED:  # HomeDepot
                terms.setdefault((joined,), Term((joined,), term.symbol, "any"))
            elif len(term.tokens) == 1 and len(joined) >= _SHORTEST_GLUED:
                self._glued.setdefault(joined, term.symbol)
        self._by_first: dict[str, list[Term]] = {}
        for term in sorted(terms.values(), key=lambda term: -len(term.tokens)):
            self._by_first.setdefault(term.tokens[0], []).append(term)
        self._first_words = frozenset(self._by_first)
        self._chinese: dict[str, str] = {}
        for spelling, symbol in chinese_terms(instruments):
            self._chinese.setdefault(spelling, symbol)
        between = _BETWEEN.pattern + "{0,2}"
        longest = [
            between.join(map(re.escape, name))
            for name in sorted(self._chinese, key=len, reverse=True)
        ]
        self._chinese_pattern = re.compile("|".join(longest)) if longest else None

    def find(
        self, text: str, low: str, words: Set[str], is_number: Callable[[int], bool]
    ) -> list[Hit]:
        """Return the names of instruments in a text, left to right and without overlap.

        ``low`` is the text in lower case, letter by letter. ``words`` are its tokens. Only tokens
        that begin a name are looked up, so that a text without names costs almost nothing.
        ``is_number`` returns whether the digits at a place are a JSON number. Escapes of JSON
        strings (``\\n``) must have been replaced by blanks.
        """
        initials = len(_LETTERS.intersection(words)) > 2
        long = [word for word in words if len(word) > _SHORTEST_GLUED] if self._glued else []
        numbered = not _NUMBERS.isdisjoint(words)
        firsts = self._first_words.intersection(words)
        if not (firsts or initials or long or numbered) and low.isascii():
            return []
        found = list(
            chain.from_iterable(self._places(text, low, word, is_number) for word in firsts)
        )
        if self._chinese_pattern is not None and not text.isascii():
            for match in self._chinese_pattern.finditer(text):
                found.append(Hit(*match.span(), self._chinese[_BETWEEN.sub("", match[0])]))
        for word in long:
            found += self._glued_places(text, low, word)
        if "://" in text or "www." in low:
            found += self._links(text, low)
        if "#" in text or "@" in text:
            found += self._tags(text)
        if initials:
            for match in _INITIALS.finditer(text):  # I.B.M.
                word = match[0].replace(".", "").lower()
                terms = () if is_ordinary(word) else self._by_first.get(word, ())
                found += [
                    Hit(*match.span(), term.symbol) for term in terms if len(term.tokens) == 1
                ]
        if numbered:
            found += [Hit(*match.span(), match[0]) for match in _NUMBERED.finditer(text)]
        hits: list[Hit] = []
        at = 0
        idle = {match.start() for match in _PHRASES.finditer(low)}
        for hit in sorted(found, key=lambda hit: (hit.start, -hit.end)):
            if hit.start >= at and hit.start not in idle:
                hits.append(hit)
                at = hit.end
        return hits

    def _places(
        self, text: str, low: str, word: str, is_number: Callable[[int], bool]
    ) -> Iterator[Hit]:
        """Yield the places where a name begins with ``word``, with the longest name that fits."""
        for at in _whole_words(low, word):
            end = at + len(word)
            if low[at - 6 : at] == "asset_":
                continue
            for term in self._by_first[word]:
                stop = _end_of(low, end, term.tokens)
                if stop is None:
                    continue
                address = (
                    term.case == "capital" and len(term.tokens) == 1 and _ADDRESS.match(low, stop)
                )
                if address or _is_meant(term, text, (at, end, stop), is_number):  # apple.com
                    start = at
                    if stop - at == 6 and low[at:stop].isdigit():
                        # The market before or after a six-digit code belongs to it.
                        before = _MARKET_BEFORE.search(low, max(0, at - 6), at)
                        behind = _MARKET_BEHIND.match(low, stop)
                        start, stop = (
                            before.start() if before else at,
                            behind.end() if behind else stop,
                        )
                    yield Hit(start, stop, term.symbol)
                    break

    def _glued_places(self, text: str, low: str, word: str) -> Iterator[Hit]:
        """Yield the places where a longer word begins with a name: AppleTV, iPhone13."""
        for length in range(_SHORTEST_GLUED, len(word)):
            symbol = self._glued.get(word[:length])
            if symbol is not None:
                for at in _whole_words(low, word):
                    after = text[at + length]
                    if text[at].isalnum() and (after.isupper() or after.isdigit()):
                        yield Hit(at, at + len(word), symbol)

    def _links(self, text: str, low: str) -> Iterator[Hit]:
        """Yield links that contain a company name.

        Case is ignored, because links repeat headlines in lower case.
        """
        for match in _LINK.finditer(text):
            for word in WORD.finditer(low, *match.span()):
                fits = (
                    term
                    for term in self._by_first.get(word[0], ())
                    if (len(term.tokens) > 1 or len(word[0]) > 3)
                    and _end_of(low, word.end(), term.tokens)
                )
                if (term := next(fits, None)) is not None:
                    yield Hit(*match.span(), term.symbol)
                    break

    def _tags(self, text: str) -> Iterator[Hit]:
        """Yield hashtags and handles with a name among their words: #BuyTesla, @elonmusk."""
        for match in _TAG.finditer(text):
            parts = _TAG_PART.findall(match[0])
            wanted = ("".join(parts[i:j]) for i, j in combinations(range(len(parts) + 1), 2))
            for word in wanted:
                whole = len(word) == len(match[0]) - 1
                terms = (
                    term for term in self._by_first.get(word.lower(), ()) if len(term.tokens) == 1
                )
                term = next(terms, None)
                if term and len(word) > 3 and (whole or term.case == "any" or word[0].isupper()):
                    yield Hit(match.start() + 1, match.end(), term.symbol)
                    break


def _is_edge(low: str, at: int) -> bool:
    return not 0 <= at < len(low) or WORD.match(low, at) is None


def _whole_words(low: str, word: str) -> Iterator[int]:
    at = low.find(word)
    while at >= 0:
        end = at + len(word)
        if _is_edge(low, at - 1) and _is_edge(low, end):
            yield at
        at = low.find(word, end)


def _end_of(low: str, at: int, tokens: tuple[str, ...]) -> int | None:
    """Return the end of a name whose first token ends at ``at``, or None if the next words
    differ.
    """
    for token in tokens[1:]:
        gap = _GAP.match(low, at)
        if gap is None or not low.startswith(token, gap.end()):
            return None
        at = gap.end() + len(token)
        if not _is_edge(low, at):
            return None
    return at


def _is_meant(
    term: Term, text: str, place: tuple[int, int, int], is_number: Callable[[int], bool]
) -> bool:
    """Return whether the words at a place mean the term.

    ``place`` contains the start, the end of the first word, and the end.
    """
    start, stop, end = place
    word = text[start:stop]
    if term.case == "any":
        if not word.isdigit() or len(term.tokens) > 1:
            return True
        # Digits in a decimal, a price, a percentage or a JSON number are not a code.
        before, after = text[max(0, start - 2) : start], text[end : end + 2]
        decimal = (before[-1:] == "." and before[:1].isdigit()) or (
            after[:1] == "." and after[1:].isdigit()
        )
        return not (
            decimal or before[-1:] in ("$", "¥", "€", "£") or after[:1] == "%" or is_number(start)
        )
    if term.case == "capital":
        return word[0].isupper()
    if not word.isupper() or term.case == "upper":
        return word.isupper()
    before = text[start - 1 : start]
    if before in _PAIRS and text[end : end + 1] == _PAIRS[before]:
        return True
    return bool(
        _BEFORE_TICKER.search(text[max(0, start - 24) : start]) or _AFTER_TICKER.match(text, end)
    )


_ESCAPED = re.compile(r"\\u([0-9a-fA-F]{4})")
_BLANKS = re.compile(r"\\[nrtbf/]")
_SPACES = {code: " " for code in range(128) if not chr(code).isalnum()}
Depth = Literal["plain", "thorough"]
_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff\u202a-\u202e]")
_ENTITIES = re.compile(r"&(?:#\d{1,6}|#[xX][0-9a-fA-F]{1,5}|[a-zA-Z]{2,8});")


class Words(NamedTuple):
    """The replacements of a name and of a date."""

    name: Callable[[str], str]
    date: Callable[[DateHit], str]


class _Read(NamedTuple):
    """A text prepared for the search of names and dates. All signs keep their positions."""

    probe: str
    low: str
    tokens: frozenset[str]
    is_number: Callable[[int], bool]


class Scrubber:
    """Removes names and dates from free text, for one mask at one moment.

    ``lexicon`` is None if names are displayed. ``dates`` is False if dates are displayed. ``years``
    are the years that are replaced without a day or month (with ``bare``, and in thorough
    scrubbing). ``today`` (days since 1970-01-01) determines the year of dates without a year.
    """

    def __init__(
        self, lexicon: Lexicon | None, *, dates: bool, bare: bool, years: range, today: int
    ) -> None:
        self._lexicon = lexicon
        self._dates = dates
        self._bare = years if bare else None
        self._years = years
        self._today = today

    def scrub(self, text: str, words: Words, depth: Depth = "plain") -> str:
        """Return the text with every name and date that must be hidden replaced."""
        if not text.isascii():
            # Invisible signs and separate accents would split a name.
            text = unicodedata.normalize("NFC", _UNSEEN.sub("", text))
        if "\\" in text:
            # A letter written as its code would hide a name from the search. A line break written
            # as backslash and n would be joined to the next word.
            text = _ESCAPED.sub(_letter, text)
        read = _read(text)
        hits = self._named(read)
        if "&" in text and self._lexicon is not None:
            # HTML entities (AT&amp;T) are unchanged unless they hide a name.
            opened = _ENTITIES.sub(lambda found: unescape(found[0]), text)
            other = _read(opened)
            more = self._named(other)
            if sum(hit.end - hit.start for hit in more) > sum(hit.end - hit.start for hit in hits):
                text, read, hits = opened, other, more
        cuts = [(hit.start, hit.end, words.name(hit.symbol)) for hit in hits]
        if self._dates:
            thorough = depth == "thorough"
            wanted = DatesWanted(self._years if thorough else self._bare, thorough)
            cuts += [
                (hit.start, hit.end, words.date(hit))
                for hit in find_dates(*read, self._today, wanted)
            ]
        parts: list[str] = []
        at = 0
        for start, end, word in sorted(cuts):
            if end > at:
                parts += (text[at:start], word) if start >= at else (" ", word)
                at = end
        return "".join((*parts, text[at:]))

    def _named(self, read: _Read) -> list[Hit]:
        return [] if self._lexicon is None else self._lexicon.find(*read)


def _read(text: str) -> _Read:
    probe = _BLANKS.sub("  ", text) if "\\" in text else text
    if not probe.isascii():
        probe = probe.translate(FOLD)
    low = lowered(probe)
    tokens = frozenset(low.translate(_SPACES).split() if low.isascii() else WORD.findall(low))
    spans = cache(lambda: JsonSpans(text))
    return _Read(probe, low, tokens, lambda at: spans().bare(at))


def lowered(text: str) -> str:
    """Return a text in lower case with all letters at their positions.

    The few letters with a longer lower case are unchanged.
    """
    low = text.lower()
    if len(low) == len(text):
        return low
    return "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in text)


def _letter(found: re.Match[str]) -> str:
    code = int(found[1], 16)
    plain = code >= 0x20 and code not in (0x22, 0x5C) and not 0xD800 <= code <= 0xDFFF
    return chr(code) if plain else found[0]
