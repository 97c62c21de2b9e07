"""How a symbol and a company's name may be written, so that every spelling is found."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple

from tradeassay.core.instruments import Instrument
from tradeassay.masking.ordinary import GENERIC, LEGAL, ORDINARY, is_ordinary

WORD = re.compile(r"[A-Za-z0-9À-ɏ]+")
"""A token: letters and digits. Chinese characters are none: names in them are looked for as they stand."""
CHINESE = re.compile(r"[㐀-鿿]")
Case = Literal["any", "upper", "capital", "ticker"]
"""When a term counts: in any case, in capitals only, with a capital first letter, or when written as a ticker."""

_SIX = re.compile(r"(\d{6})(?:\.([A-Z]{2,4}))?")
_MARKETS = ("sh", "sz", "bj")
_QUOTES = ("usd", "usdt", "usdc")
_CHINESE_TAIL = re.compile(r"(?:股份有限公司|有限责任公司|有限公司|公司|集团股份|集团|股份|控股|Ａ|Ａ股)+$")
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
        # With a market before or behind it ("sh.600519") a code is found by the code.
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
    (two share classes have one name); it then stands for the first of them. Of a fund only the whole name counts,
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


def chinese_terms(instruments: Iterable[Instrument]) -> Iterator[tuple[str, str]]:
    """Yield (Chinese spelling, symbol): the whole name, without legal form, without the place it begins with."""
    for item in instruments:
        if not CHINESE.search(item.name):
            continue
        name = item.name.strip()
        short = _CHINESE_TAIL.sub("", name)
        rest = _CHINESE_PLACE.sub("", short)
        for spelling in dict.fromkeys((name, short, rest)):
            if len(spelling) >= 2 and spelling not in _CHINESE_GENERIC:
                yield spelling, item.symbol
