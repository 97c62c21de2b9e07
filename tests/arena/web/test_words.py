"""The two catalogues say the same things, and every text a template asks for is there."""

import re
import string
from importlib import resources

from tradeassay_arena.web.words import catalogue, words


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_both_languages_have_the_same_keys_and_values_to_fill_in():
    english, chinese = catalogue("en"), catalogue("zh")
    assert english.keys() == chinese.keys()
    assert {k for k in english if fields(english[k]) != fields(chinese[k])} == set()
    assert all(text.strip() for text in (*english.values(), *chinese.values()))


def test_templates_ask_for_nothing_that_is_not_there():
    folder = resources.files("tradeassay_arena.web").joinpath("templates")
    asked = set()
    for page in folder.iterdir():
        asked |= set(
            re.findall(r"""\bt\(["']([\w.-]+)["'][,)]""", page.read_text(encoding="utf-8"))
        )
    assert len(asked) > 120
    assert asked - catalogue("en").keys() == set()


def test_the_librarys_reasons_are_translated_and_unknown_ones_kept():
    few = "fewer than 20 sessions: ranks carry no probability"
    assert words("zh").reason(few) not in ("", few) and words("zh").reason(few).isascii() is False
    assert words("zh").reason("something new") == "something new"
    assert words("en").reason("no settled session") == "no settled session"
    assert words("zh").reason(None) == ""
    nested = "the bar was doubted: 9 is +80% from the close before, 5; 40% is the limit"
    assert words("zh").reason(nested).isascii() is False and "close" not in words("zh").reason(
        nested
    )
    said = words("zh").reason("close to Wire, noon; something new; close to Ledger, night")
    assert said == "与 Wire 于 noon 的消息相近；something new；与 Ledger 于 night 的消息相近"
