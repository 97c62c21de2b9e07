"""Five hundred companies as headlines spell them, none of which may pass a mask; Chinese
spellings and days.
"""

import re
from functools import cache

import pytest

from tradeassay_bench.core.view import Instrument
from tradeassay_bench.data.names import company_name, us_names
from tradeassay_bench.masking.dates import DateHit
from tradeassay_bench.masking.lexicon import Lexicon, Scrubber, Words

KNOWN = us_names()
LISTED = [Instrument(symbol=ticker) for ticker in list(KNOWN)[::2]]
WORDS = Words(lambda symbol: "#", lambda hit: f"<{hit.kind}>")
SPELLED = {
    "day": "２０２４年９月２４日|二〇二四年九月二十四日|九月二十四日|24.9.2024|9月24日|Sept. 24, 2024|2024-09-24",
    "period": "24Q3|3Q24|三季度",
    "festival": "国庆|春节|Thanksgiving|Chinese New Year|Black Friday",
}


@cache
def lexicon(instruments: tuple[Instrument, ...]) -> Lexicon:
    return Lexicon(instruments)


def scrubber(instruments: list[Instrument], *, dates: bool = False) -> Scrubber:
    return Scrubber(
        lexicon(tuple(instruments)), dates=dates, bare=True, years=range(2018, 2027), today=19_990
    )


def headlines(spelling: str) -> list[str]:
    wide = "".join(
        chr(ord(letter) + 0xFEE0) if "!" <= letter <= "~" else letter for letter in spelling
    )
    hidden = f"{spelling[:2]}\u200b{spelling[2:]}"
    return [
        f"{spelling} shares fall after guidance",
        f"Why {spelling}'s outlook matters",
        f"{spelling.upper()} BEATS",
        f"Analysts on “{spelling}” and others",
        f"Is {spelling.replace(chr(39), chr(8217))} a buy?",
        f"Bull case: {wide}",
        f"Watch {hidden} today",
    ]


def test_five_hundred_companies_in_every_spelling():
    assert len(KNOWN) >= 500 and company_name("BRK-B") == "Berkshire Hathaway"
    scrub = scrubber(LISTED).scrub
    through: list[str] = []
    tried = 0
    for spellings in KNOWN.values():
        for spelling in spellings:
            seen = re.compile(
                rf"(?<![A-Za-z0-9]){re.escape(spelling)}(?![A-Za-z0-9])", re.IGNORECASE
            )
            for text in headlines(spelling):
                tried += 1
                shown = scrub(text, WORDS)
                if seen.search(shown) or "#" not in shown:
                    through.append(shown)
    assert tried > 7_500 and not through, through[:20]


def test_a_company_that_is_not_in_the_data_is_hidden_too():
    text = "Apple sues Samsung while Tesla and FedEx watch AppleTV"
    shown = scrubber([Instrument(symbol="AAPL")]).scrub(text, WORDS)
    assert shown == "# sues Samsung while # and # watch #"


def test_ordinary_words_stay_and_american_names_where_no_stock_is_american():
    text = (
        "an apple a day; the target of the visa office; a ford across the river; gap risk; the "
        "home depot opened"
    )
    plain = scrubber([Instrument(symbol="AAPL")]).scrub(text, WORDS)
    assert "apple a day" in plain and "ford across" in plain and "gap risk" in plain
    shares = [Instrument(symbol="600519.SH", name="贵州茅台", currency="CNY")]
    assert scrubber(shares).scrub("Apple and 贵州茅台", WORDS) == "Apple and #"


@pytest.mark.parametrize(
    "text",
    [
        "万科A涨停",
        "万 科Ａ涨停",
        "万科Ａ涨停",
        "万科涨停",
        "万　科Ａ",
        "*ST康美复牌",
        "XD康美",
        "康 美",
    ],
)
def test_chinese_names_as_exchanges_print_them(text):
    shares = [
        Instrument(symbol="000002.SZ", name="万 科Ａ", currency="CNY"),
        Instrument(symbol="600518.SH", name="ST康美", currency="CNY"),
    ]
    shown = scrubber(shares).scrub(text, WORDS)
    assert "#" in shown and not re.search("万|科|康|美", shown)


@pytest.mark.parametrize(
    ("text", "kind"), [(text, kind) for kind, texts in SPELLED.items() for text in texts.split("|")]
)
def test_days_in_the_spellings_of_two_languages(text, kind):
    found: list[DateHit] = []

    def note(hit: DateHit) -> str:
        found.append(hit)
        return "@"

    shown = scrubber(LISTED, dates=True).scrub(f"Sales on {text} rose", Words(str, note))
    assert shown == "Sales on @ rose" and found[0].kind == kind


SHARES = [
    Instrument(symbol="AAPL", name="Apple Inc."),
    Instrument(symbol="BRK.B", name="Berkshire Hathaway Inc."),
    Instrument(symbol="IBM"),
    Instrument(symbol="000002.SZ", name="万科A", currency="CNY"),
    Instrument(symbol="300750.SZ", name="宁德时代", currency="CNY"),
    Instrument(symbol="600519.SH", name="贵州茅台", currency="CNY"),
]
HIDDEN = """ÁPPLE|Applé|A\u0301pple|𝐀𝐩𝐩𝐥𝐞|Ⓐⓟⓟⓛⓔ|apple.com|$AAPL.O|BRKB|BRK/B|I.B.M.
ISIN US0378331005|CUSIP: 037833100|https://news.example/2024/apple-beats-estimates|www.apple.com/newsroom|@Apple
贵州茅臺|貴州茅台|寧德時代|贵-州-茅-台|贵·州·茅·台|萬科|Kweichow Moutai|Moutai|CATL|宁王|飞天茅台
迪王|比亚迪|BYD|China Vanke|SHSE.600519|600519.XSHG|６００５１９
#apple|#BuyApple|@Apple|&#65;pple|AT&amp;T|Procter &amp; Gamble
HomeDepot|BankofAmerica|CocaCola|tesla's|苹果公司|英伟達|微 软|#ExposeFacebook|@elonmusk
Zuck|Walgreen|KweichowMoutai|byd|Catl|vanke|招行|深发展|Ping An|&#33541;&#21488;"""


@pytest.mark.parametrize("spelled", HIDDEN.replace("\n", "|").split("|"))
def test_what_somebody_would_look_for(spelled):
    shown = scrubber(SHARES).scrub(f"shares of {spelled} rose", WORDS)
    assert "#" in shown and not re.search("茅|宁|寧|科|苹|软|0378|Moutai|pple|Gamble|AT&|yd", shown)
    assert scrubber(SHARES).scrub(shown, WORDS) == shown


@pytest.mark.parametrize(
    "honest",
    [
        "U.S. G.D.P. rose 2.1 %, a b c and d; see https://json-schema.org/draft and e.g. i.e. p.a.",
        "rated A- by S & P, options a) b) c) d), grades A B C D E F",
        "价格 1618.5 元, 成交 618000 股, 第一 第二 第三, 科技 银行 指数 涨 2.618%",
        "coordinates 1 2 3 4 5 6, CIK and ISIN are numbers of securities; the lei of a fund",
        "R&amp;D rose 5%20 &lt;b&gt; **bold** 2**3 <i>x</i> well-\nknown; #winning @home "
        "#pineapple C.E.O. a.b.c",
        "café, naïve, Zürich, São Paulo, Ελλάδα, Москва: 100 points",
        "the '45' column, 2020x, version 26.13.24, room 2024A, it's '7 of 9', MMX Technologies "
        "twenty times",
    ],
)
def test_honest_texts_stay_as_they_are(honest):
    for listed in (SHARES, LISTED):
        assert scrubber(listed, dates=True).scrub(honest, WORDS) == honest


@pytest.mark.parametrize(
    "spelled",
    (
        "Jan '24|'24|2024W04|2024-W04-5|2024M01|2024E|26.01.24|twenty twenty-four|甲辰年|龙年|Year of "
        "the Dragon|"
        "正月初五|腊月|两会|1H24|FY2024|Lunar New Year|618|除夕|Q3|4Q|third-quarter|first half"
    ).split("|"),
)
def test_years_and_seasons_as_somebody_would_hint_at_them(spelled):
    shown = scrubber(LISTED, dates=True).scrub(f"销量 sales of {spelled} rose", WORDS)
    assert shown.startswith("销量 sales of <") and shown.endswith("> rose")


@pytest.mark.parametrize(
    "text",
    [
        "Wall Street Rallies as the Delta Variant Fades",
        "3 Stocks to Tap the Cloud Gaming Market",
        "People Move to Texas and Boston",
        "An Under-the-Radar Payments Company",
        "Fortune 500 Firms Build Data Centers",
    ],
)
def test_an_idiom_is_no_alias(text):
    names = (
        "STT State Street|DAL Delta Air Lines|PENN Penn National Gaming|FITB Fifth Third|PBCT "
        "People's United"
    )
    names += "|TXN Texas Instruments|UAA Under Armour|REG Regency Centers"
    pairs = (one.partition(" ") for one in names.split("|"))
    made = [Instrument(symbol=symbol, name=name, kind="stock") for symbol, _, name in pairs]
    assert scrubber(made).scrub(text, WORDS) == text


def test_an_exchange_is_nobodys_alias():
    listed = [Instrument(symbol="NDAQ", name="Nasdaq, Inc.", kind="stock"), *LISTED]
    named = Words(lambda name: f"<{name}>", str)
    seen = scrubber(listed).scrub("Shares (NASDAQ: XYZW) and Nasdaq, Inc. (NDAQ)", named)
    assert seen == "Shares (<NASDAQ>: XYZW) and <NDAQ>. (<NDAQ>)"
