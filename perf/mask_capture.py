# ruff: noqa: E501 (lists of words)
"""Every byte that a model is shown under every mask, searched with a finder that knows nothing of the masks' tables.

    python perf/mask_capture.py [--days 6] [--workers 4] [--datasets synthetic/ashare:7,synthetic/us:7,sp500-news]

Every KTD-Fin benchmark of version 2 x its data set (and those named) x mask x mode x hardening is played by scripted
models that behave and misbehave. What is sent (messages, tools, schemas, and the observation as data) is searched for:
codes and names of the raw data set; a list of well-known companies, products and people that is written down here;
days in any usual spelling, years, quarters and festivals. Without a mask all of these must be found, or the finder is
blind. Prints one line per cell and every hit; exits 1 for any.
"""

from __future__ import annotations

import argparse
import itertools
import re
import sys
from concurrent.futures import ProcessPoolExecutor

import msgspec

from tradeassay.benchmarks import benchmarks
from tradeassay.core.dialogue import AskModel, Given, ModelReply
from tradeassay.core.errors import UserError
from tradeassay.data import Snapshot
from tradeassay.frontends.plots import plots_for
from tradeassay.llm import scripted_models
from tradeassay.play import Asked
from tradeassay.runs.play import conversation

MASKS = ("stock-blind", "date-blind", "blinded")
MODES = ("memory-only", "fixed-candidate", "open-research")
HARD = {"rebase_prices": True, "scale_volumes": True, "scrub_news": True}
PLAYERS = ("sensible", "future-asker", "overspender", "injector", "broken-json")
COMPANIES = """Apple, Microsoft, Amazon, Alphabet, Google, Facebook, Meta Platforms, Tesla, Nvidia, Netflix, Intel,
Cisco, Oracle, IBM, Adobe, Salesforce, PayPal, Qualcomm, Broadcom, Micron, Texas Instruments, AMD, Boeing, Airbus,
Lockheed Martin, Raytheon, Northrop Grumman, General Electric, General Motors, Ford Motor, Caterpillar, Deere, 3M,
Honeywell, FedEx, UPS, Delta Air Lines, American Airlines, United Airlines, Southwest Airlines, Walmart, Costco, Target
Corporation, Home Depot, Lowe's, Best Buy, Starbucks, McDonald's, Chipotle, Nike, Coca-Cola, PepsiCo, Procter & Gamble,
Colgate, Kraft Heinz, Mondelez, General Mills, Kellogg, Johnson & Johnson, Pfizer, Merck, AbbVie, Bristol-Myers, Eli
Lilly, Amgen, Gilead, Biogen, Regeneron, Moderna, UnitedHealth, CVS Health, Walgreens, Anthem, Cigna, Humana, Medtronic,
JPMorgan, Goldman Sachs, Morgan Stanley, Citigroup, Bank of America, Wells Fargo, BlackRock, Charles Schwab, American
Express, Mastercard, Berkshire Hathaway, Exxon, Chevron, ConocoPhillips, Schlumberger, Halliburton, Occidental, Verizon,
AT&T, T-Mobile, Comcast, Walt Disney, Disney, ViacomCBS, Twitter, eBay, Booking Holdings, Expedia, Marriott, Hilton,
Carnival, Royal Caribbean, Las Vegas Sands, Union Pacific, CSX, Norfolk Southern, Dow Inc, DuPont, Freeport-McMoRan,
Newmont, Nucor, iPhone, iPad, YouTube, Instagram, WhatsApp, Azure, AWS, Alexa, Elon Musk, Tim Cook, Jeff Bezos, Mark
Zuckerberg, Warren Buffett, Jamie Dimon, Satya Nadella, Sundar Pichai, 贵州茅台, 茅台, 五粮液, 宁德时代, 比亚迪, 招商银行,
中国平安, 工商银行, 建设银行, 农业银行, 中国银行, 中信证券, 东方财富, 隆基, 美的集团, 格力电器, 海康威视, 恒瑞医药, 药明康德,
万科, 中国石油, 中国石化, 中国神华, 长江电力, 伊利股份, 泸州老窖, 沪深300, 上证"""
DAYS = re.compile(
    r"\b(?:19|20)\d\d[-/.年](?:0?[1-9]|1[0-2])(?:[-/.月](?:0?[1-9]|[12]\d|3[01])日?)?(?!\d)|\b[0-3]?\d[./][01]?\d[./]"
    r"(?:19|20)?\d\d\b|\b(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.? \d{1,2}(?:st|nd|rd|th)?\b(?!\s*%)|"
    r"\b\d{1,2} (?:January|February|March|April|June|July|August|September|October|November|December)\b|"
    r"\bQ[1-4][ ']?(?:19|20)?\d\d\b|\b(?:19|20)?\d\d ?Q[1-4]\b|\b(?:in|since|of|for|by|FY|fiscal) ?(?:19|20)\d\d\b|"
    r"[一二三四五六七八九十]{1,3}月[一二三四五六七八九十]{1,3}[日号]|二[〇零]二[〇零一二三四五六]年|"
    r"春节|国庆|中秋|端午|清明|元旦|Thanksgiving|Christmas|Black Friday|Memorial Day|Labor Day|Super Bowl"
)
NUMBERS = re.compile(r"(?<=\| )[-\d.,%]+(?= \||$)|(?<=[:\[, ])-?\d+(?:\.\d+)?(?=[,\]}\s])", re.MULTILINE)
BENIGN = frozenset(
    "A ALL ARE BE BEST BIG CAN CAR CAT COST D DAY DATE DO DOW EAT F FAST FOR G GAP GE HAS HAD HE HES HOLX IT J K KEY L LOW "
    "LOVE M MAR MO MS NOW NET O ON ONE OPEN OR OUT PAY PEAK PLAY R RE REAL S SEE SO T TAP TECH TELL TRUE V W WELL X Y ID "
    "BUY SELL HOLD NAV ETF USD CNY JSON API PM AM CEO IPO US".split()
)  # fmt: skip


def finder(snapshot: Snapshot, mask: str) -> list[tuple[str, re.Pattern[str]]]:
    """Return what must not be found under a mask, from the raw data set and from this file."""
    wanted: list[tuple[str, re.Pattern[str]]] = []
    if mask != "date-blind":
        instruments = [
            one
            for one in snapshot.at(len(snapshot.sessions) - 1, "close").instruments
            if one.kind in ("stock", "index")
        ]
        codes = {one.symbol for one in instruments} | {one.symbol.split(".")[0] for one in instruments}
        codes = {code for code in codes if len(code) > 2 and code not in BENIGN}
        names = {one.name for one in instruments if len(one.name) > 3}
        names |= {" ".join(name.split()).strip() for name in COMPANIES.split(",")}
        wanted.append(("code", _any(codes, flags=0)))
        wanted.append(("name", _any(names, flags=re.IGNORECASE)))
    if mask != "stock-blind":
        wanted.append(("day", DAYS))
    return wanted


def _any(words: set[str], flags: int) -> re.Pattern[str]:
    told = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    return re.compile(rf"(?<![A-Za-z0-9_])(?:{told})(?![A-Za-z0-9])", flags)


class Capturing:
    """Asks a scripted model and keeps every text that it was shown."""

    def __init__(self, player: str) -> None:
        self._model = scripted_models.get(player)()
        self.said: set[str] = set()

    def answer(self, asked: Asked[AskModel]) -> ModelReply:
        """Keep what is shown and answer."""
        request = asked.request
        self.said |= {message.text for message in request.messages if message.role != "assistant"}
        self.said |= {msgspec.json.encode(tool).decode() for tool in request.tools}
        if isinstance(request.given, Given):
            given = (request.given.session, request.given.observation, request.given.feedback)
            self.said |= {text for text in given if text is not None}
        return self._model.answer(request)


def capture(cell: tuple[str, str | None, str, str, bool, int]) -> tuple[str, int, int, list[str]]:
    """Play one cell with every player; return its name, texts, bytes and hits."""
    benchmark, dataset, mask, mode, hard, days = cell
    title = f"{benchmark} {dataset or benchmarks.get(benchmark).dataset} {mask} {mode}{' hard' if hard else ''}"
    settings = {"mask": mask, "mode": mode, **(HARD if hard else {})}
    texts = size = 0
    hits: list[str] = []
    try:
        plot = plots_for(benchmark, settings, window=None, dataset=dataset, seeds=1, secret="c0ffee" * 10)[0]
        wanted = finder(plot.snapshot, mask)
        for player in PLAYERS:
            play = conversation(plot.snapshot, plot.benchmark, plot.episode, plot.secret)
            play.open()
            model = Capturing(player)
            for _ in itertools.islice(play.records(model.answer), days):
                pass
            texts, size = texts + len(model.said), size + sum(map(len, model.said))
            for text in model.said:
                plain = NUMBERS.sub("", text)
                for kind, pattern in wanted:
                    for found in itertools.islice(pattern.finditer(plain), 3):
                        around = plain[max(0, found.start() - 40) : found.end() + 30].replace("\n", " ")
                        hits.append(f"{title}, {player}: {kind} {found[0]!r} in ...{around}...")
    except UserError as error:
        return f"{title}: refused: {error}", 0, 0, []
    return title, texts, size, hits


def main() -> int:
    """Capture all cells."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--days", type=int, default=6)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--datasets", default="")
    parser.add_argument("--only", default="", help="a part of the benchmark's id")
    taken = parser.parse_args()
    named = [name for name in taken.datasets.split(",") if name]
    listed = [one for one, _ in benchmarks.items() if one.startswith("ktdfin") and one.endswith("-v2")]
    cells = [
        (one, dataset, mask, mode, hard, taken.days)
        for one in listed
        if taken.only in one
        for dataset in (named or [None])
        for mask in MASKS
        for mode in MODES
        for hard in (False, True)
    ]
    total = bytes_seen = 0
    leaks: list[str] = []
    controls = [
        (one, named[0] if named else None, "bright", mode, False, 2) for one in listed for mode in MODES[1:]
    ]
    shown = [hit for control in controls if taken.only in control[0] for hit in capture(control)[3]]
    kinds = {kind: sum(f": {kind} " in hit for hit in shown) for kind in ("code", "name", "day")}
    print(f"without a mask there are these hits: {kinds}")
    if not (kinds["code"] and kinds["day"]):
        print("the finder is blind")
        return 2
    with ProcessPoolExecutor(taken.workers) as pool:
        for title, texts, size, hits in pool.map(capture, cells):
            print(f"{title}: {texts} texts, {size:,} bytes, {len(hits)} hits", flush=True)
            total, bytes_seen = total + texts, bytes_seen + size
            leaks += hits
    for hit in sorted(set(leaks))[:200]:
        print(hit)
    print(f"{len(cells)} cells, {total:,} texts, {bytes_seen:,} bytes, {len(leaks)} hits")
    return 1 if leaks else 0


if __name__ == "__main__":
    sys.exit(main())
