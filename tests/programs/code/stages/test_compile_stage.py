"""Compiles, and defines exactly one strategy."""

import pytest

from tradeassay_programs.code.program_source import LONGEST_SOURCE, check_compiles, terms_set

ONE = "import backtrader as bt\nclass S(bt.Strategy):\n    pass\n"


@pytest.mark.parametrize(
    "source",
    [
        ONE,
        "import backtrader\nclass S(backtrader.Strategy): pass",
        "from backtrader import Strategy\nclass S(Strategy): pass",
        "from backtrader import Strategy as Base\nclass S(Base): pass",
        "from backtrader import *\nclass S(Strategy): pass",
        "import backtrader as bt\nclass S(bt.SignalStrategy): pass",
        ONE + "class T(S):\n    pass\n",  # a base class of one's own does not count
        ONE + "class I(bt.Indicator):\n    lines = ('x',)\n",
        ONE + "X = '\\d'\n",  # a warning is no failure
    ],
)
def test_one_strategy_passes(source):
    assert check_compiles(source).passed


@pytest.mark.parametrize(
    ("source", "error_class"),
    [
        ("class S(", "SyntaxError"),
        ("def f():\nreturn 1", "IndentationError"),
        ("return 1", "SyntaxError"),  # parses, does not compile
        ("x = '\0'", "SyntaxError"),
        ("import backtrader as bt\nx = 1", "no_strategy"),
        ("class Strategy: pass\nclass S(Strategy): pass", "no_strategy"),
        (ONE + "class T(bt.Strategy): pass", "many_strategies"),
        ("#" * (LONGEST_SOURCE + 1), "too_long"),
        ("x = " + "(" * 5_000 + ")" * 5_000, None),
        ("x = " + "-" * 100_000 + "1", None),
    ],
)
def test_everything_else_fails_with_its_class(source, error_class):
    result = check_compiles(source)
    assert result.failed and result.reason
    assert error_class is None or result.error_class in (error_class, "ValueError")


def test_the_line_of_a_syntax_error_is_told_and_a_frame_program_needs_its_function():
    assert check_compiles("x = 1\ny = = 2\n").line == 2
    signals = "def signals(frame):\n    return 0\n"
    assert (
        check_compiles(signals, "frame").passed
        and check_compiles(f"\ufeff{signals}", "frame").passed
    )
    assert check_compiles(ONE, "frame").error_class == "no_strategy"
    assert check_compiles(signals * 2, "frame").error_class == "many_strategies"


def test_terms_of_an_account_are_named_with_their_lines():
    own = "self.broker.setcash(1)\nx.broker.set_coc(False)\nx.broker.set_coc(on)\nx.set_shortcash(False)\n"
    assert terms_set(own) == {"setcash": 1, "set_coc": 3, "set_shortcash": 4}
    assert terms_set("bt.Cerebro(cheat_on_open=True)\nbt.Cerebro(coc=False)") == {
        "cheat_on_open": 1
    }
    assert terms_set("self.broker.getcash()\nsetcash = 5\n") == {} == terms_set("def (")
