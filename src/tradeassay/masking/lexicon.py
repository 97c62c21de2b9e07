"""How symbols and company names may be written, and the search for every spelling of them in a text.

The time a search takes does not depend on the number of names. Words that are also tickers or parts of company
names must not be torn out of ordinary prose: a ticker among :data:`ORDINARY` is replaced where a field holds
identifiers, and in prose only where it is written as a ticker (``$D``, ``NYSE: D``, ``(D)``, ``"D"``). A word
among :data:`GENERIC` or :data:`ORDINARY` does not give a company away by itself; the company's whole name does.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from typing import Literal, NamedTuple

import msgspec

from tradeassay.core.errors import UNDECODABLE
from tradeassay.core.instruments import Instrument
from tradeassay.data.names import cn_names, is_cn, is_us, us_names
from tradeassay.masking.folding import FOLD

_FENCE = re.compile(r"^[ \t]*```[ \t]*json[^\n`]*\n(.*?)^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL)
_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_OPENING = re.compile(r"\s*(?:\{|\[\s*[\[{\"])")


class JsonSpans:
    """The JSON parts of a text: fenced ``json`` blocks, or all of it when it is an object or an array of such.

    What only looks like JSON does not count: nobody parses the digits in it as numbers.
    """

    def __init__(self, text: str) -> None:
        regions = [(0, len(text))] if _OPENING.match(text) and _is_json(text) else []
        if not regions and "```" in text:
            regions = [found.span(1) for found in _FENCE.finditer(text) if _is_json(found[1])]
        self._regions = regions
        self._literals = [found.span() for start, end in regions for found in _LITERAL.finditer(text, start, end)]
        self._starts = [start for start, _ in self._literals]

    def bare(self, at: int) -> bool:
        """Tell whether a position lies in JSON but not inside a string of it."""
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


WORD = re.compile(r"[A-Za-z0-9À-ɏ]+")
"""A token: letters and digits. Chinese characters do not count: names written in them are searched for whole."""
CHINESE = re.compile(r"[㐀-鿿]")
Case = Literal["any", "upper", "capital", "ticker"]
"""When a term counts: in any case, in capitals only, with a capital first letter, or when written as a ticker."""

_SIX = re.compile(r"(\d{6})(?:\.([A-Z]{2,4}))?")
_MARKETS = ("sh", "sz", "bj")
_QUOTES = ("usd", "usdt", "usdc")
_CHINESE_TAIL = re.compile(r"(?:股份有限公司|有限责任公司|有限公司|公司|集团股份|集团|股份|控股|Ａ|Ａ股)+$")
_CHINESE_TAIL_OR_CLASS = re.compile(_CHINESE_TAIL.pattern[:-3] + "|[AB]股?|-?[UW])+$")
_CHINESE_PLACE = re.compile(
    r"^(?:中国|北京|上海|天津|重庆|深圳|广州|广东|浙江|江苏|山东|山西|河南|河北|湖南|湖北|四川|安徽|福建|江西|云南"
    r"|贵州|陕西|甘肃|青海|海南|辽宁|吉林|黑龙江|内蒙古|广西|西藏|宁夏|新疆|香港|杭州|南京|苏州|宁波|青岛|厦门)"
)
_CHINESE_GENERIC = frozenset(
    "银行 证券 保险 科技 股份 集团 石油 石化 电力 水电 能源 煤业 煤炭 钢铁 有色 黄金 医药 生物 电子 汽车 建筑 地产"
    " 铁路 高速 机场 航空 海运 港口 通信 联通 电信 移动 软件 信息 传媒 文化 食品 白酒 酒业 农业 化工 材料 机械"
    " 重工 环保 资源 投资 发展 实业 控股 国际 股票 市场 中国 公司 技术 核电 船舶 中车 建设 交通".split()
)


class Term(NamedTuple):
    """A run of tokens (lower case) that stands for a symbol."""

    tokens: tuple[str, ...]
    symbol: str
    case: Case


def tokens_of(text: str) -> tuple[str, ...]:
    """Return the tokens of a text in lower case."""
    return tuple(WORD.findall(text.lower()))


def symbol_terms(instrument: Instrument) -> Iterator[Term]:
    """Yield the ways in which a symbol is written."""
    symbol = instrument.symbol
    tokens = tokens_of(symbol)
    if not tokens:
        return
    six = _SIX.fullmatch(symbol)
    if six is None:
        yield Term(tokens, symbol, _symbol_case(symbol, tokens))
    if six is not None:
        # With a market before or after it ("sh.600519") a code is found by the code itself.
        yield Term((six[1],), symbol, "any")
        for market in _MARKETS:
            yield Term((market + six[1],), symbol, "any")
    elif instrument.kind == "crypto":
        base = tokens[0]
        yield Term((base,), symbol, _symbol_case(base, (base,)))
        for quote in _QUOTES:
            yield Term((base, quote), symbol, "any")
            yield Term((base + quote,), symbol, "any")


def _symbol_case(symbol: str, tokens: tuple[str, ...]) -> Case:
    if len(tokens) > 1 or not symbol.isalpha():
        return "any"
    if is_ordinary(symbol):
        return "ticker"
    return "any" if len(symbol) > 3 else "upper"


def name_terms(instruments: Sequence[Instrument]) -> Iterator[Term]:
    """Yield the ways in which companies are named: the whole name, without its legal form, and telling words.

    A telling word is one that is neither generic nor ordinary and occurs in the names of at most three instruments
    (two share classes have one name); it then stands for the first of them. For a fund only the whole name counts,
    because the rest of it is the name of an index.
    """
    named = [item for item in instruments if item.name and item.name != item.symbol]
    yield from (Term(tokens_of(item.name), item.symbol, "any") for item in named if item.kind == "index")
    cores = [(item.symbol, tokens_of(item.name), core_of(item.name)) for item in named if item.kind != "index"]
    uses = Counter(word for _, _, core in cores for word in set(core))
    for symbol, whole, core in cores:
        if len(whole) > 1:
            yield Term(whole, symbol, "any")
        if len(core) > 1 and not all(word in GENERIC or word in ORDINARY for word in core):
            yield Term(core, symbol, "any")
        elif len(core) > 1:
            yield Term(core, symbol, "capital")
        elif core and core != whole:
            yield from (Term((*core, form), symbol, "any") for form in ("inc", "corp", "co", "company", "ltd"))
        for word in core:
            if is_telling(word) and uses[word] <= 3:
                yield Term((word,), symbol, "any" if len(word) >= 6 else "capital")


def core_of(name: str) -> tuple[str, ...]:
    """Return the tokens of a name without a leading article and without its legal form."""
    words = [word for word in tokens_of(name)]
    while words and words[0] == "the":
        del words[0]
    while len(words) > 1 and words[-1] in LEGAL:
        del words[-1]
    return tuple(words)


def is_telling(word: str) -> bool:
    """Tell whether a word (lower case) points at one company by itself."""
    return len(word) >= 3 and not word.isdigit() and not (word in GENERIC or word in ORDINARY or word in LEGAL)


def known_terms(instruments: Sequence[Instrument]) -> Iterator[Term]:
    """Yield the spellings that the house knows of companies in one of the markets, in the data or not.

    Where there is neither a US nor a Chinese stock, nothing is known. A company that is not in the data is hidden
    too: who trades what with whom would tell the market and the year.
    """
    if any(map(is_cn, instruments)):
        codes = {item.symbol[:6]: item.symbol for item in instruments if is_cn(item)}
        for code, spellings in cn_names().items():
            for spelling in spellings:
                tokens = tokens_of(spelling)
                if spelling.isascii() and len(tokens) == 1:  # pinyin and acronyms are no English words
                    yield Term(tokens, codes.get(code, code), "any")
                elif spelling.isascii():
                    yield from _spelled(tokens, codes.get(code, code), spelling)
    if not any(map(is_us, instruments)):
        return
    for item in instruments:
        tokens = tokens_of(item.symbol)
        if is_us(item) and len(tokens) == 2 and len(tokens[1]) == 1:
            yield Term(("".join(tokens),), item.symbol, "upper")  # BRKB
    listed = {item.symbol.upper().replace("-", ".").replace("/", "."): item.symbol for item in instruments}
    every = us_names()
    for ticker in sorted(every, key=lambda name: name not in listed):
        for spelling in every[ticker]:
            tokens = tokens_of(spelling)
            if tokens:
                yield from _spelled(tokens, listed.get(ticker, ticker), spelling)


def _spelled(tokens: tuple[str, ...], symbol: str, spelling: str) -> Iterator[Term]:
    if len(tokens) > 1:
        plain = all(word in GENERIC or word in ORDINARY or len(word) == 1 for word in tokens)
        yield Term(tokens, symbol, "capital" if plain else "any")
        return
    (word,) = tokens
    if spelling.isupper():
        yield Term(tokens, symbol, "upper")
        return
    odd = any(letter.isupper() for letter in spelling[1:])  # iPad, eBay: nothing else is written so
    case: Case = "any" if odd or word in _NO_WORDS or (len(word) >= 6 and is_telling(word)) else "capital"
    yield Term(tokens, symbol, case)
    yield Term((f"{word}s",), symbol, case)


_NO_WORDS = frozenset("tesla exxon aflac cigna cisco merck citi ebay hulu".split())
"""Short names that mean nothing else in small letters."""
_WIDE: dict[Case, int] = {"any": 3, "capital": 2, "upper": 1, "ticker": 0}
_SHORTEST_JOINED = 8
"""A name of several words is also looked for without blanks when it then has this many letters."""
_TAG = re.compile(r"[#@][A-Za-z][A-Za-z0-9_]{2,}")
_TAG_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_MIXED = re.compile("[a-z][01345]|[01345][a-z]")
_DIGITS_FOR_LETTERS = [str.maketrans("01345", letters) for letters in ("oleas", "oieas")]
_SHORTEST_GLUED = 5
"""A word of at least this length is looked for at the start of a longer one: AppleTV, GoogleMaps."""
_CHINESE_HEAD = re.compile(r"^(?:\*?ST|S\*ST|SST|XD|XR|DR|N|C|U|W)(?=[㐀-鿿])")


_BETWEEN = re.compile(r"[ \t·・.*_\-]")
"""What may stand between the signs of a Chinese name."""
_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz")
_LETTER_BY_LETTER = re.compile(r"(?<![A-Za-z0-9])(?:[A-Za-z][ .\-_*·/|]{1,2}){2,}[A-Za-z](?![A-Za-z0-9])")
_ADDRESS = re.compile(r"\.(?:com|cn|net|org|io|co|ai)(?![a-z0-9])")
_LINK = re.compile(r"(?:https?://|www\.)[^\s\"'<>)\]}]+", re.IGNORECASE)
_NUMBERED = re.compile(r"(?<![A-Za-z])(?:ISIN|CUSIP|SEDOL|FIGI|CIK|LEI|WKN)(?: (?:no\.?|number|code))?[\s:#=]{0,3}"
                       r"(?=[A-Z0-9]*\d)[A-Z0-9]{6,20}(?![A-Za-z0-9])", re.IGNORECASE)  # fmt: skip
_NUMBERS = frozenset("isin cusip sedol figi cik lei wkn".split())


def _plain_chinese(name: str) -> str:
    """Return a Chinese name as it is spelled without blanks, full-width letters and the exchange's marks."""
    return _CHINESE_HEAD.sub("", re.sub(r"\s", "", name.translate(FOLD)))


def _spaced(spelling: str) -> str:
    """Return a pattern for a Chinese name that may have blanks or dots between its signs."""
    return (_BETWEEN.pattern + "{0,2}").join(map(re.escape, spelling))


def chinese_terms(instruments: Sequence[Instrument], *, all_spellings: bool = True) -> Iterator[tuple[str, str]]:
    """Yield (Chinese spelling, symbol): the whole name, without legal form, without the place it begins with."""
    listed = {item.symbol[:6]: item for item in instruments if is_cn(item)} if all_spellings else {}
    unlisted = {code: spelled for code, spelled in cn_names().items() if listed and code not in listed}
    if all_spellings and any(map(is_us, instruments)):  # American companies have Chinese names too
        unlisted |= us_names()
    for code, spellings in unlisted.items():  # hidden too, as American companies are that are not in the data
        yield from ((spelling, code) for spelling in spellings if not spelling.isascii())
    for item in instruments:
        if not CHINESE.search(item.name):
            continue
        name = _plain_chinese(item.name) if all_spellings else item.name.strip()
        short = (_CHINESE_TAIL_OR_CLASS if all_spellings else _CHINESE_TAIL).sub("", name)
        rest = _CHINESE_PLACE.sub("", short)
        known = cn_names().get(item.symbol[:6], ()) if all_spellings and is_cn(item) else ()
        for spelling in dict.fromkeys((name, short, rest, *(one for one in known if not one.isascii()))):
            if len(spelling) >= 2 and spelling not in _CHINESE_GENERIC:
                yield spelling, item.symbol


_TICKER_WORDS = """
a i ad ai all am an and any app are art as at auto away back ball band bank bar base be beat bed ben best big
bill bit blue body bold book boom boot box bro bud bug buy by cake call can cap car card care case cash cat
cave chat city clean clear co coin cold comm cook cool core corn cost cross cut cute dare data dash dawn day
deal deck deep desk dig dish do doc dog doing door dot down dow dream drop dry duo earn ease east easy eat
edge edit ego else energy eve ever exit eye face fact fair fall farm fast fate fee feel few fill find fine
fire fit five fix flag flat flex flow fly foil fold food for fork form four fox free from fuel full fun fund
gain gap game gas gate gem get go gold golf good got grab grow guess gulf had hall ham hand hard has have he
heal hear heart heat help her here hi high him his hit hog hold home hood hope host hot how hug huge hut ice
idea if in inn info ink into is it item its jack jam job join joy jump just keep key kind king know kite lab
lad lake land last law lay lead leaf left leg less let life light like line link list live load loan lock log
long look loop loss love low luck lung made main make man many map mar mark market mask mass match mat may me
meet men metal mid mile mill mind mini miss mix mod mode moon more most move much must my name near need net
new news next nice nine no none north not note now number nut oak of off oil old on one only open or orb order
our out over own pack page paid pair park part pass path pay peak pen pet pick pie pin pit place plan plant
play plug plus point pool pop port post power price prime pro pump push put race rail rain ram range rate read
real red rent rest rich ride right ring rise risk road rock role roll roof room root rose row rule run rush
safe sage sail sale salt sam same sand save say sea seat see seed sell send set seven shake share shift ship
shoe shop short show side sign sim sit site six size ski skin sky slow small smart snap snow so sofa soft soil
sold sole some son song sort soul south span spark spin spot spring spy star start stay steel stem step stock
stop store strong such sum sun sure surf swim swing table tag take talk tall tank tap target task tax tea team
tear tech tell ten term test text than that the them then they thin this thread three tile time tin tip to ton
too tool top total touch tour town toy track trade train tree trend trip true trust try turn twin two type
ugly unit up upon us use van vast very via view vote wait walk wall want war warm was wash watch water wave
way we wear web week well west what when who why wide will win wind wing wire wise wish with wolf wood word
work world worth yard year yes yet you young your zero zip zone progressive southern general american national
united international dollar block square discover equity public republic
""".split()
_ACRONYMS = """
api apr aug avg bps bse buy ceo cfo ci cny cpi csi csv cto dec de diff div ema ebit ebitda eps es est etc etf
eu eur eq esg ex fed feb fda fx fy gaap gdp gmt hhi hk hkd hr html http id ids ipo iq ir irr jan jpy json jul
jun ko lot ltd ma macd max md mdd mean min mo mom ms na nan nav nov nyse oct ok ohlc otc pb pc pe pct pm pmi
pnl pr ps qoq re rev rmb roa roe roi rsi rv sec sep sh skew sma sql std sz tbd tv uk un url usa usd utc var
vix vol vs vwap wls yoy ytd
""".split()
GENERIC: frozenset[str] = frozenset(
    """
acquisition advanced advisors aerospace africa agricultural air airlines alliance allied alpha america
americas american analytics animal appliances applied asia asset assets atlantic australia auto automation
automotive aviation bancorp bancshares bank bankers banking banks basic basket bay beauty beijing beverage
beverages bio biologics biopharma biosciences biotech biotechnology brands broadcasting brothers building
business cable california canada canadian capital care cement central chain chemical chemicals china chinese
city clean cloud coal coffee coin commerce commercial commodities communications community component
components computer construction consolidated consulting consumer container control controls credit cruise
dairy data defense delivery dental design development devices diagnostics digital direct display distribution
diversified east eastern education electric electrical electronic electronics energy engineering enterprise
enterprises entertainment environmental equipment equity estate estates europe european exchange express
federal fiber finance financial financials first fitness flight foods freight fund funds future futures gas
genetics global gold grand great green growth health healthcare heavy high holdings home homes hong hospital
hotel hotels house hydropower income india industrial industries industry information infrastructure
innovation innovations institute instruments insurance integrated interactive international internet
investment investments investors iron island japan jiangsu kingdom kong laboratories land large latin leasing
leisure life light line lines liquor logistics london machine machinery machines management manufacturing
marine market marketing markets master materials media medical medicine metal metals micro mid midstream
mineral minerals mining mobile modern mortgage motor motors multi mutual national natural network networks new
north northern nuclear oil one online optical optics orient outdoor outdoors pacific packaging paper partners
parts petroleum pharma pharmaceutical pharmaceuticals pipeline plastics platform plus ports power precision
premier premium products property properties public quality quantum rail railway real realty regional
reinsurance renewable rental research residential resorts resource resources restaurants retail royal rural
sciences science securities security select semiconductor semiconductors senior service services settlement
shanghai shenzhen shipping small smart social software solar solution solutions south southern specialty
sports state states steel storage stores strategic strategies summit supply surgical swap systems technologies
technology telecom telecommunications telephone television textile therapeutics timber tobacco tools toronto
total trading transport transportation travel trucking union united universal university usa utilities utility
vault vehicle ventures vision water waste wealth wellness west western wireless wood works world worldwide
york zhejiang north-east and of the for de la le du von van el los las das di del
""".split()
)
"""Words that many company names share."""
LEGAL: frozenset[str] = frozenset(
    """ inc incorporated corp corporation co company companies ltd limited plc
llc lp llp sa nv ag se spa ab asa oyj as kk bhd group holdings holding trust class common stock ordinary share
shares adr ads reit units unit index fund etf cl a b c d
""".split()
)
"""Words that end a company's registered name without saying which company it is."""
ORDINARY: frozenset[str] = frozenset(_TICKER_WORDS) | frozenset(_ACRONYMS)
"""Ordinary words and abbreviations, in lower case."""


def is_ordinary(ticker: str) -> bool:
    """Tell whether a ticker is also an ordinary word, a trade abbreviation or a single letter."""
    return len(ticker) == 1 or ticker.lower() in ORDINARY


_BEFORE_TICKER = re.compile(
    r"(?:\b(?:NYSE|NASDAQ|Nasdaq|AMEX|ARCA|BATS|CBOE|LSE|TSX|OTC|SSE|SZSE|SHA|SHE|[Tt]icker|[Ss]ymbol)"
    r"(?:\s+(?:Arca|American))?\s*[:=]?\s*[\"'“‘]?|[$#])$"
)
_AFTER_TICKER = re.compile(r"\.(?:N|O|US|OQ|K|L)\b|[ :](?:US|UN|UW) (?:[Ee]quity|EQUITY)\b")
_MARKET_BEHIND = re.compile(r"\.(?:sh|sz|bj|ss|xshg|xshe)(?![a-z0-9])")
_MARKET_BEFORE = re.compile(r"(?<![a-z0-9])(?:sh|sz|bj|ss|xshg|xshe)[.:]$")
_GAP = re.compile(r"[^A-Za-z0-9À-ɏ]{1,3}")
_PAIRS = {"(": ")", '"': '"', "'": "'", "“": "”", "‘": "’", "[": "]", "`": "`", "（": "）", "「": "」", "『": "』"}


class Hit(NamedTuple):
    """A place in a text that names a symbol."""

    start: int
    end: int
    symbol: str


class Lexicon:
    """Every spelling of every instrument that has come into view."""

    def __init__(self, instruments: Sequence[Instrument], *, all_spellings: bool = True) -> None:
        terms: dict[tuple[str, ...], Term] = {}
        for term in (t for item in instruments for t in symbol_terms(item)):
            terms.setdefault(term.tokens, term)
        for term in map(_folded, name_terms(instruments)) if all_spellings else name_terms(instruments):
            terms.setdefault(term.tokens, term)
        known = list(map(_folded, known_terms(instruments))) if all_spellings else []
        self._all_spellings = all_spellings
        for term in known:
            # A ticker that is also the company's name (AON, Aon) counts in the spelling that is met more often.
            held = terms.get(term.tokens)
            if held is None or (held.symbol == term.symbol and _WIDE[term.case] > _WIDE[held.case]):
                terms[term.tokens] = term
        for term in known:
            joined = "".join(term.tokens)
            if len(term.tokens) > 1 and len(joined) >= _SHORTEST_JOINED:  # HomeDepot
                terms.setdefault((joined,), Term((joined,), term.symbol, "any"))
        self._glued: dict[str, str] = {}
        for term in known:
            if len(term.tokens) == 1 and len(term.tokens[0]) >= _SHORTEST_GLUED:
                self._glued.setdefault(term.tokens[0], term.symbol)
        by_first: dict[str, list[Term]] = {}
        for term in terms.values():
            by_first.setdefault(term.tokens[0], []).append(term)
        self._by_first = {
            word: sorted(found, key=lambda term: -len(term.tokens)) for word, found in by_first.items()
        }
        self.first_words = frozenset(by_first)
        chinese: dict[str, str] = {}
        for spelling, symbol in chinese_terms(instruments, all_spellings=all_spellings):
            chinese.setdefault(spelling, symbol)
        self._chinese = chinese
        longest = sorted(chinese, key=len, reverse=True)
        spelled = [_spaced(name) if all_spellings else re.escape(name) for name in longest]
        self._chinese_pattern = re.compile("|".join(spelled)) if longest else None

    def may_hold(self, words: Set[str]) -> bool:
        """Tell whether a text with these tokens may name anything."""
        if not self.first_words.isdisjoint(words) or (self._all_spellings and _apart(words)):
            return True
        return bool(self._glued) and any(len(word) > _SHORTEST_GLUED for word in words)

    def find(self, text: str, low: str, words: Set[str], spans: Callable[[], JsonSpans]) -> list[Hit]:
        """Return the places that name an instrument, left to right, none inside another.

        ``low`` is the text in lower case, letter by letter; ``words`` are its tokens. Only tokens that begin a
        name are looked up, so that a text without names costs next to nothing. Escapes of JSON strings (``\\n``)
        must have been blanked out.
        """
        found = [
            hit for word in self.first_words.intersection(words) for hit in self._places(text, low, word, spans)
        ]
        if self._chinese_pattern is not None and not text.isascii():
            found += [
                Hit(*match.span(), self._chinese[_BETWEEN.sub("", match[0])])
                for match in self._chinese_pattern.finditer(text)
            ]
        if self._glued:
            found += [
                hit for word in words if len(word) > _SHORTEST_GLUED for hit in self._in_one(text, low, word)
            ]
        if self._all_spellings and ("://" in text or "www." in low):
            found += self._links(text, low)
        if self._all_spellings and ("#" in text or "@" in text):
            found += self._tags(text)
        if self._glued and _MIXED.search(low):
            found += self._misread(low, words)
        if self._all_spellings and _apart(words):
            found += self._letter_by_letter(text)
            found += [Hit(*match.span(), match[0]) for match in _NUMBERED.finditer(text)]
        hits: list[Hit] = []
        at = 0
        for hit in sorted(found, key=lambda hit: (hit.start, -hit.end)):
            if hit.start >= at:
                hits.append(hit)
                at = hit.end
        return hits

    def _is_address(self, term: Term, low: str, end: int) -> bool:
        """Tell whether a company's name goes on as an address: apple.com."""
        alone = self._all_spellings and term.case == "capital" and len(term.tokens) == 1
        return alone and _ADDRESS.match(low, end) is not None

    def _links(self, text: str, low: str) -> Iterator[Hit]:
        """Yield links that name a company in any case: what follows a host is a headline in small letters."""
        for match in _LINK.finditer(text):
            for word in WORD.finditer(low, *match.span()):
                fits = (
                    term
                    for term in self._by_first.get(word[0], ())
                    if (len(term.tokens) > 1 or len(word[0]) > 3) and _end_of(low, word.end(), term.tokens)
                )
                if (term := next(fits, None)) is not None:
                    yield Hit(*match.span(), term.symbol)
                    break

    def _letter_by_letter(self, text: str) -> Iterator[Hit]:
        """Yield where a name of one word is spelled out: A.A.P.L., A p p l e."""
        for match in _LETTER_BY_LETTER.finditer(text):
            word = "".join(filter(str.isalpha, match[0])).lower()
            if len(word) == 3 and (is_ordinary(word) or not re.fullmatch(r"(?:[A-Z]\.){2}[A-Z]", match[0])):
                continue
            for term in self._by_first.get(word, ()):
                if len(term.tokens) == 1:
                    yield Hit(*match.span(), term.symbol)

    def _tags(self, text: str) -> Iterator[Hit]:
        """Yield hashtags and handles that hold a name as one or more of their words: #BuyTesla, @elonmusk."""
        for match in _TAG.finditer(text):
            parts = _TAG_PART.findall(match[0])
            wanted = ("".join(parts[i:j]) for i in range(len(parts)) for j in range(i + 1, len(parts) + 1))
            for word in wanted:
                whole = len(word) == len(match[0]) - 1
                terms = (term for term in self._by_first.get(word.lower(), ()) if len(term.tokens) == 1)
                term = next(terms, None)
                if term and len(word) > 3 and (whole or term.case == "any" or word[0].isupper()):
                    yield Hit(match.start() + 1, match.end(), term.symbol)
                    break

    def _misread(self, low: str, words: Set[str]) -> Iterator[Hit]:
        """Yield names with digits in place of letters: App1e, G00gle."""
        for word in words:
            if len(word) < _SHORTEST_GLUED or word.isalpha() or word.isdigit():
                continue
            symbols = (self._glued.get(word.translate(letters)) for letters in _DIGITS_FOR_LETTERS)
            symbol = next(filter(None, symbols), None)
            at = low.find(word) if symbol else -1
            while at >= 0:
                if _is_edge(low, at - 1) and _is_edge(low, at + len(word)):
                    yield Hit(at, at + len(word), symbol or "")
                at = low.find(word, at + len(word))

    def _in_one(self, text: str, low: str, word: str) -> Iterator[Hit]:
        """Yield where a longer word begins with a name: AppleTV, iPhone13."""
        for length in range(_SHORTEST_GLUED, len(word)):
            symbol = self._glued.get(word[:length])
            if symbol is None:
                continue
            at = low.find(word)
            while at >= 0:
                after = text[at + length]
                if _is_edge(low, at - 1) and text[at].isalnum() and (after.isupper() or after.isdigit()):
                    yield Hit(at, at + len(word), symbol)
                at = low.find(word, at + len(word))

    def _places(self, text: str, low: str, word: str, spans: Callable[[], JsonSpans]) -> Iterator[Hit]:
        """Yield where a name begins with ``word``, each time the longest name that fits."""
        at = low.find(word)
        while at >= 0:
            end = at + len(word)
            if _is_edge(low, at - 1) and _is_edge(low, end) and low[at - 6 : at] != "asset_":
                for term in self._by_first[word]:
                    stop = _end_of(low, end, term.tokens)
                    if stop and (
                        _written(term, text[at:end], text, at, stop, spans) or self._is_address(term, low, stop)
                    ):
                        yield Hit(*_with_market(low, at, stop), term.symbol)
                        break
            at = low.find(word, end)


def _folded(term: Term) -> Term:
    return Term(tuple(token.translate(FOLD) for token in term.tokens), term.symbol, term.case)


def _apart(words: Set[str]) -> bool:
    """Tell whether a text may spell a name out or give a security's number."""
    return len(_LETTERS.intersection(words)) > 2 or not _NUMBERS.isdisjoint(words)


def _is_edge(low: str, at: int) -> bool:
    return not 0 <= at < len(low) or WORD.match(low, at) is None


def _with_market(low: str, start: int, end: int) -> tuple[int, int]:
    """Return the place of a six-digit code together with the market written before or after it."""
    if end - start != 6 or not low[start:end].isdigit():
        return start, end
    behind = _MARKET_BEHIND.match(low, end)
    before = _MARKET_BEFORE.search(low, max(0, start - 6), start)
    return before.start() if before else start, behind.end() if behind else end


def _end_of(low: str, at: int, tokens: tuple[str, ...]) -> int | None:
    """Return where a name ends whose first token ends at ``at``; None when other words follow."""
    for token in tokens[1:]:
        gap = _GAP.match(low, at)
        if gap is None or not low.startswith(token, gap.end()):
            return None
        at = gap.end() + len(token)
        if not _is_edge(low, at):
            return None
    return at


def _written(term: Term, word: str, text: str, start: int, end: int, spans: Callable[[], JsonSpans]) -> bool:
    """Tell whether the word at a place is meant as the term and not as something else."""
    if term.case == "any":
        return not (word.isdigit() and len(term.tokens) == 1 and _is_number(text, start, end, spans))
    if term.case == "upper":
        return word.isupper()
    if term.case == "capital":
        return word[0].isupper()
    return word.isupper() and _as_ticker(text, start, end)


def _as_ticker(text: str, start: int, end: int) -> bool:
    before = text[start - 1 : start]
    if before in _PAIRS and text[end : end + 1] == _PAIRS[before]:
        return True
    return bool(_BEFORE_TICKER.search(text[max(0, start - 24) : start]) or _AFTER_TICKER.match(text, end))


def _is_number(text: str, start: int, end: int, spans: Callable[[], JsonSpans]) -> bool:
    """Tell whether digits are part of a decimal or JSON number."""
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    if before[-1:] == "." and before[:1].isdigit():
        return True
    if after[:1] == "." and after[1:].isdigit():
        return True
    if before[-1:] in ("$", "¥", "€", "£") or after[:1] == "%":
        return True
    return spans().bare(start)
