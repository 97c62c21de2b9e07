"""Items get one spelling, one kind of time stamp and a language."""

import pytest

from tradeassay.core.errors import DataError
from tradeassay_arena.stream.items import clean, detect, parse_stamp, sentences
from tradeassay_bench.core.time import iso


def test_the_language_is_told_by_the_script():
    assert detect("Profit rose at the company") == "en"
    assert detect("公司净利润增长, Acme表示") == "zh"
    assert detect("会社の利益が増えた") == detect("Прибыль компании выросла") == "other"


def test_texts_and_stamps_are_made_alike():
    assert clean("<p>Profit&nbsp;“up” ５％</p><script>x()</script>") == 'Profit "up" 5%'
    parts = ("Mr. Lee of Acme Inc. left.", "U.S. sales rose.")
    assert sentences("Mr. Lee of Acme Inc. left. U.S. sales rose.") == parts
    assert iso(parse_stamp("Tue, 04 Mar 2025 21:00:00 +0800")) == "2025-03-04T13:00:00Z"
    assert iso(parse_stamp("2025-03-04T21:00", "Asia/Shanghai")) == "2025-03-04T13:00:00Z"
    with pytest.raises(DataError, match="no time zone"):
        parse_stamp("2025-03-04T21:00")
