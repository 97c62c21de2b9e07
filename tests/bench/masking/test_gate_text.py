"""Free text: every spelling of a name or a date goes, ordinary prose stays; and the scanner of
leaks.
"""

import json
from datetime import date

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tradeassay_bench.masking import Gate, Mask, MaskConfig, Truth, find_leaks
from tradeassay_bench.masking.leaks import date_forms

ROW = 60


@pytest.fixture
def gate(mask, market):
    assert str(market.sessions[ROW]) == "2024-01-26"

    def make(level: str = "blinded", **options: bool) -> Gate:
        return mask(level, **options).gate(market.at(ROW, "open"))

    return make


SPELLINGS = {
    "AAPL": "AAPL|aapl rose|AAPL_close|x=AAPL;|Apple Inc. rose|Apple's margin|APPLE",
    "BRK.B": "BRK.B|BRK-B|Berkshire|BERKSHIRE HATHAWAY",
    "GE": "GE up|General Electric|General\nElectric Company",
    "D": '$D|(D)|"D"|NYSE: D|ticker D|Dominion|Dominion Energy',
    "COST": "NASDAQ:COST|Costco",
    "ALL": "$ALL|Allstate",
    "IT": "(IT)|Gartner",
    "ON": "ON Semiconductor",
    "A": "(A)|Agilent",
    "MCD": "McDonald's|McDonald’s",
    "TGT": "Target Corporation|Target Corp|TGT",
    "GOOG": "Alphabet",
    "GOOGL": "GOOGL",
    "600519.SH": "600519|600519.SH|sh600519|SH.600519|600519,|holdings:600519,858"
    "|买入600519。|贵州茅台|茅台|茅台股份",
    "300750.SZ": "宁德时代（300750）",
    "000001.SZ": "平安银行|000001.SZ",
}


@pytest.mark.parametrize(
    ("text", "symbol"),
    [(text, symbol) for symbol, texts in SPELLINGS.items() for text in texts.split("|")],
)
def test_every_spelling_of_a_name_becomes_its_alias(gate, text, symbol):
    made = gate("stock-blind")
    for framed in (
        text,
        f"We hold {text} now",
        f"好的，{text}，买入",
        f"[{text}]",
        f"line\n{text}\nline",
    ):
        shown = made.outgoing(framed)
        assert made.alias(symbol) in shown
        assert not find_leaks(shown, Truth((symbol,))), shown


@pytest.mark.parametrize(
    "prose",
    [
        "It all depends on the cost of a target. A GDP of D or IT: ALL is on.",
        "ALL positions are ON target; the cost is LOW, and IT is a D grade.",
        "General remarks: electric cars, an apple, dominions, the target weight, a gap.",
        "Moved by 1.600519 or 10.300750 points, ¥600519 in cash, 600519.5 in all, 000001% off",
        "The agile and the costly appleseed, ge and brk.",
        "银行和科技板块上涨",
        "2024 shares, 2,024 lots, $2024, 2024.5, 12024 and ratio 3/5 or 10-12",
        "you may 5 times march on; 3 of 12; version 1.2.3; 10:30; day_+12, day_-3 and asset_2024",
        "近3个月 10年期 5日均线",
    ],
)
def test_ordinary_prose_and_numbers_stay(gate, prose):
    assert gate().outgoing(prose) == prose


@pytest.mark.parametrize(
    "form",
    [*date_forms("2024-03-05"), "2024-03-05T14:30:00Z", "2024-03-05 09:30", "二〇二四年三月五日"],
)
def test_every_spelling_of_a_date_becomes_its_label(gate, form):
    made = gate("date-blind")
    expected = made.day("2024-03-05")
    for frame in (
        "{}",
        "On {} it rose",
        "（{}）",
        "until {}.",
        "({}), then",
        "a {}; b",
        "end.{}\nnext",
    ):
        assert made.outgoing(frame.format(form)) == frame.format(
            expected + "." * form.endswith(".")
        )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("in 2024 we", "in [year] we"),
        ("2024年", "[year]"),
        *((period, "[period]") for period in ("Q1 2024", "FY24", "1Q24", "2024Q1")),
        *((month, "[month]") for month in ("March 2024", "2024年3月", "3月", "2024-03")),
        ("in May", "in [month]"),
        ("by 2025", "by [year]"),
        ("since January", "since [month]"),
        ("the 2020s", "the 2020s"),
        ("draws = 2000 since 1929", "draws = 2000 since 1929"),
        ("on 1929-10-29", "on [date]"),
        ("September 15, 2008", "[date]"),
        ("2200-01-13", "day_+12"),
    ],
)
def test_lone_years_and_far_dates(gate, text, shown):
    assert gate().outgoing(text) == shown


def test_lone_years_can_be_left(gate):
    assert (
        gate(bare_dates=False).outgoing("in 2024, Q1 2024, on 2024-01-26")
        == "in 2024, Q1 2024, on day_+18"
    )


def test_numbers_inside_json_are_never_touched(gate):
    made = gate()
    body = (
        '{"volume": 600519, "n": 2024, "id": "600519", "list": [600519, 20240105], "day": '
        '"20240105"}'
    )
    alias, day = made.alias("600519.SH"), made.day("2024-01-05")
    masked = (
        f'{{"volume": 600519, "n": 2024, "id": "{alias}", "list": [600519, 20240105], "day": '
        f'"{day}"}}'
    )
    assert made.outgoing(body) == masked
    assert (
        made.outgoing(f"600519:\n```json\n{body}\n```\n600519")
        == f"{alias}:\n```json\n{masked}\n```\n{alias}"
    )


def test_escapes_hide_nothing(gate):
    made = gate()
    escaped = r'{"t": "x\nAAPL\t\u8d35\u5dde\u8305\u53f0 \u0041APL"}'
    moutai, apple = made.alias("600519.SH"), made.alias("AAPL")
    assert made.outgoing(escaped) == rf'{{"t": "x\n{apple}\t{moutai} {apple}"}}'


def test_levels_hide_what_they_say(gate):
    text = "AAPL on 2024-01-05"
    bright, stock, day = gate("bright"), gate("stock-blind"), gate("date-blind")
    assert bright.outgoing(text) == text
    assert stock.outgoing(text) == f"{stock.alias('AAPL')} on 2024-01-05"
    assert day.outgoing(text) == "AAPL on day_+3"


def test_what_a_model_guesses_is_not_confirmed(gate):
    made = gate()
    alias = made.alias("AAPL")
    said = made.incoming(f"{alias} must be Apple (AAPL), 贵州茅台 on March 5, 2024")
    assert said == "AAPL must be [name] ([name]), [name] on [date]"
    assert made.outgoing(said) == f"{alias} must be [name] ([name]), [name] on [date]"


def test_unknown_aliases_in_prose_stay(gate):
    made = gate()
    unknown = next(
        f"asset_{i:04d}" for i in range(100) if made.incoming(f"asset_{i:04d}") == f"asset_{i:04d}"
    )
    assert made.incoming(f"{unknown} day_+0") == f"{unknown} 2024-01-02"


PROSE = "It rose|on the cost of all|because of|板块上涨|，买入|and|target 5%|10.5|IT|1,234|n=3|may"
NAMES = (
    "AAPL|aapl|Apple Inc.|Apple|APPLE INC.|BRK.B|BRK-B|Berkshire Hathaway|$D|(D)|"
    '"ALL"|NYSE: A|Dominion Energy, Inc.|GE|General Electric '
    "Company|600519|SH600519|600519.SH|sz.000001|"
    "贵州茅台|茅台|宁德时代|平安银行股份有限公司|平安银行|McDonald's|GOOGL|Alphabet|Costco|NASDAQ: COST|TGT"
)
WORDS = st.one_of(*(st.sampled_from(words.split("|")) for words in (PROSE, NAMES)))
DAYS = st.dates(date(2023, 11, 1), date(2024, 4, 10)).flatmap(
    lambda day: st.sampled_from(date_forms(day.isoformat()))
)
GLUE = st.sampled_from(
    [" ", ", ", "\n", "。", "（", "）", "; ", " - ", "/ ", ": ", "|", " \t", "\u3000", ".  "]
)


@pytest.fixture(scope="module")
def gate_and_truth(market):
    """One gate, and what must not pass it; both take longer to make than to use."""
    config, view = MaskConfig(), market.at(ROW, "open")
    mask = Mask(config, market, "2024-01-02", "2024-03-28", np.random.default_rng(1))
    return mask.gate(view), Truth.of(view, config, history=80, ahead=90)


@given(parts=st.lists(st.tuples(WORDS | DAYS, GLUE), max_size=12))
def test_nothing_real_is_left_in_any_text(parts, gate_and_truth):
    made, truth = gate_and_truth
    text = "".join(word + glue for word, glue in parts)
    shown = made.outgoing(text)
    assert find_leaks(shown, truth) == []
    assert made.outgoing(shown) == shown
    back = made.incoming(text)
    assert find_leaks(made.outgoing(back), truth) == []


# -- the scanner that the tests above trust --------------------------------------------------------

TRUTH = Truth(
    symbols=("AAPL", "GE", "D", "ALL", "600519.SH", "BRK.B"),
    names=("Apple Inc.", "General Electric Company", "Dominion Energy, Inc."),
    chinese=("贵州茅台", "茅台"),
    days=("2024-03-05", "2024-05-01"),
)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        *(
            (one, "symbol")
            for one in "buy AAPL.|x_AAPL_y|GE|$D|(ALL)|NYSE: D|600519|sh600519|BRK-B|买600519吧".split(
                "|"
            )
        ),
        *(
            (one, "name")
            for one in "Apple rose|APPLE|General Electric Company|Dominion|买入贵州茅台|茅台".split(
                "|"
            )
        ),
        (r'{"t": "\u8d35\u5dde\u8305\u53f0"}', "name"),
        (r'{"t": "a\nAAPL"}', "symbol"),
        *((f"on {form}.", "date") for form in date_forms("2024-03-05")),
    ],
)
def test_planted_leaks_are_found(text, kind):
    found = find_leaks(text, TRUTH)
    assert found and found[0].kind == kind
    assert found[0].where


@pytest.mark.parametrize(
    "text",
    [
        "It all depends on ALL the cost, grade D; applesauce, generalised, GEM, AAPLX",
        "asset_0007 on day_+12, day_-3 at 12:30, 3/4, 2024.5, 1.600519x2",
        "",
    ],
)
def test_prose_is_left_alone(text):
    assert find_leaks(text, TRUTH) == []


def test_json_is_searched_by_field():
    body = {
        "stock_id": "D",
        "grade": "D",
        "rows": [{"aliases": ["ALL"]}, {"AAPL": 1}],
        "when": "2024-03-05",
    }
    found = [(leak.kind, leak.truth) for leak in find_leaks(body, TRUTH)]
    assert found == [("symbol", "D"), ("symbol", "ALL"), ("symbol", "AAPL"), ("date", "2024-03-05")]
    assert find_leaks(json.dumps({"n": 1}), TRUTH) == []


def test_the_truth_of_a_moment(market):
    view = market.at(60, "open")
    all_of_it = Truth.of(view, MaskConfig())
    assert (
        all_of_it.symbols == view.symbols
        and "2024-01-20" in all_of_it.days
        and "贵州茅台" in all_of_it.chinese
    )
    assert Truth.of(view, MaskConfig(level="stock-blind")).days == ()
    assert Truth.of(view, MaskConfig(level="date-blind")).symbols == ()
    assert Truth.of(view, MaskConfig(level="bright")) == Truth()
