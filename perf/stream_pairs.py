"""Pairs of texts with known truth: repeats of one story, and stories that only look alike.

From three places: the wording of the synthetic world (``wording.toml``: one theme told in a good and in a bad
tone), frames in English and Chinese into which opposite words are put, and, where the store has it, real news
(``tradeassay data get sp500-news``) repeated with the furniture of wires, abridged, or with one word turned.
"""

from __future__ import annotations

import random
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple


class Pair(NamedTuple):
    """Two texts, whether they tell one story, where they come from, and their language."""

    one: str
    other: str
    same: bool
    origin: str
    language: str


OPPOSITES = {
    "en": (
        "approved/rejected met/missed won/lost accelerated/slowed expanded/narrowed opened/shut beat/trailed "
        "confirmed/denied resumed/suspended strengthened/weakened bought/sold joined/left raised/trimmed "
        "upgraded/downgraded "
        "surged/cratered embraced/shunned passed/flunked rose/fell climbed/slid gained/dropped extended/cancelled "
        "backed/opposed cleared/blocked launched/scrapped doubled/halved improved/worsened tightened/loosened "
        "inflows/outflows profit/loss surplus/shortfall"
    ).split(),
    "zh": (
        "批准/否决 上涨/下跌 流入/流出 盈利/亏损 增持/减持 超出/不及 上调/下调 恢复/暂停 "
        "中标/落选 扩大/收窄 加快/放缓 支持/反对 获得/失去 看好/看淡 加入/退出 确认/否认 "
        "提前/推迟 走强/走弱 增加/减少 买入/卖出 成功/失败 开放/关闭 提高/降低 通过/驳回"
    ).split(),
}
FRAMES = {
    "en": (
        "{co} said on Tuesday that its largest customer {w} the offer for the second plant near the harbour.",
        "Regulators wrote in a statement that {co} {w} in the review of its northern terminals this week.",
        "{co}: demand {w} in the third quarter, the chief financial officer told analysts in a call.",
        "The union at {co} {w} the plan to change shifts at the eastern works, two people with knowledge said.",
    ),
    "zh": (
        "{co}周二公告称，公司第二工厂的扩建方案在股东会上{w}，相关文件已提交交易所。",
        "据知情人士透露，{co}的主要客户本周{w}了北部码头的合作协议，双方未披露金额。",
        "{co}首席财务官在电话会上表示，第三季度东部业务的需求{w}，管理层将继续关注。",
    ),
}
NAMES = {
    "en": ("Harlow Foods", "Brightwater Energy", "Castell Motors"),
    "zh": ("江海食品", "明川能源", "卡斯汽车"),
}
FURNITURE = {
    "en": ("Recap: {}", "UPDATE 2: {}", "{} - what we know", "Breaking: {}"),
    "zh": ("快讯：{}", "更新: {}", "最新: {}"),
}
REWORDED = {
    "en": (
        (" said ", " reported "),
        ("this week", "in the current week"),
        ("told analysts in a call", "told analysts"),
    ),
    "zh": (("公告称", "公告表示"), ("据知情人士透露", "知情人士透露"), ("表示", "称")),
}


def framed(language: str) -> list[Pair]:
    """Return pairs out of frames: opposite words, repeats, repeats in other words."""
    found = []
    for number, words in enumerate(OPPOSITES[language]):
        good, bad = words.split("/")
        frame = FRAMES[language][number % len(FRAMES[language])]
        name = NAMES[language][number % len(NAMES[language])]
        one, other = (frame.format(co=name, w=word) for word in (good, bad))
        found.append(Pair(one, other, False, "frames", language))
        negated = one.replace(good, f"did not {good}" if language == "en" else f"未{good}")
        found.append(Pair(one, negated, False, "frames", language))
        wrapped = FURNITURE[language][number % len(FURNITURE[language])].format(other)
        found.append(Pair(other, wrapped, True, "frames", language))
        old, new = next((pair for pair in REWORDED[language] if pair[0] in one), ("", ""))
        if old:
            found.append(Pair(one, one.replace(old, new), True, "frames", language))
    return found


def worded() -> list[Pair]:
    """Return pairs out of the synthetic world's wording: opposite tones of one theme, and repeats."""
    text = files("tradeassay.data.synthetic").joinpath("wording.toml").read_text(encoding="utf-8")
    texts = tomllib.loads(text)["texts"]
    themes: dict[tuple[str, str], list[dict[str, object]]] = {}
    for one in texts:
        themes.setdefault((one["group"], one["theme"]), []).append(one)
    found = []
    for told in themes.values():
        whole = [(_filled(one), int(one["tone"])) for one in told]
        for place, (one, tone) in enumerate(whole):
            found.append(Pair(one, FURNITURE["en"][place % 4].format(one), True, "wording", "en"))
            for other, turned in whole[place + 1 :]:
                if tone * turned < 0:
                    found.append(Pair(one, other, False, "wording", "en"))
    return found


def _filled(one: dict[str, object]) -> str:
    class Blanks(dict[str, str]):
        def __missing__(self, key: str) -> str:
            return "12" if "pct" in key or "n" == key else "Harlow Foods"

    return f"{one['title']}\n{one['body']}".format_map(Blanks())


TURNS = tuple(
    tuple(pair.split("/"))
    for pair in (
        "rises/falls rise/fall gains/losses higher/lower beats/misses upgrades/downgrades raises/cuts up/down "
        "outperforms/underperforms buy/sell bullish/bearish beat/miss jumps/drops surges/plunges"
    ).split()
)


def real(count: int = 200, seed: int = 0) -> list[Pair]:
    """Return pairs out of real news where the store has them, else none."""
    from tradeassay.core.errors import TradeassayError
    from tradeassay.core.time import DAY
    from tradeassay.data import load_dataset

    try:
        snapshot = load_dataset("sp500-news")
    except TradeassayError:
        return []
    view = snapshot.at(len(snapshot.sessions) - 1, "close")
    items = [item for item in view.news(view.clock - 700 * DAY, limit=20_000) if len(item.title) > 40]
    generator = random.Random(seed)
    generator.shuffle(items)
    found: list[Pair] = []
    for item in items:
        body = " ".join(item.body.split()[:80])
        text = f"{item.title}\n{body}"
        words = item.title.split()
        turned = [dict(TURNS).get(w.lower(), {b: a for a, b in TURNS}.get(w.lower(), w)) for w in words]
        # "buy and sell" turned is "sell and buy", which says the same.
        if sorted(map(str.lower, turned)) != sorted(map(str.lower, words)):
            found.append(Pair(text, f"{' '.join(turned)}\n{body}", False, "real news", "en"))
        elif len(found) % 2:
            found.append(
                Pair(text, f"UPDATE 1: {item.title}\n{' '.join(body.split()[:55])}", True, "real news", "en")
            )
        if len(found) >= count:
            break
    return found


def fresh() -> list[Pair]:
    """Return the pairs of ``stream_fresh.toml``, which were written to attack the check."""
    found = []
    text = (Path(__file__).parent / "stream_fresh.toml").read_text(encoding="utf-8")
    for name, part in tomllib.loads(text).items():
        told = [(frame.format(one), frame.format(other), False) for frame, one, other in part["opposites"]]
        told += [(one, other, True) for one, other in part["repeats"]]
        for one, other, same in told:
            language = "zh" if any("\u3400" <= letter <= "\u9fff" for letter in one) else "en"
            found.append(Pair(one, other, same, f"{name} attack", language))
    return found


def all_pairs() -> list[Pair]:
    """Return every pair."""
    return [*framed("en"), *framed("zh"), *worded(), *fresh(), *real()]
