"""The program inside an answer."""

import pytest
from hypothesis import given, strategies as st

from tradeassay.code.extraction import extract

CODE = "import backtrader as bt\n\n\nclass S(bt.Strategy):\n    def next(self):\n        self.buy()\n"


@pytest.mark.parametrize("label", ["python", "py", "", "Python3"])
def test_one_fenced_block(label):
    found = extract(f"Here it is:\n```{label}\n{CODE}```\nGood luck!")
    assert (found.code, found.form, found.blocks) == (CODE, "fenced", 1)


def test_the_last_block_with_a_strategy_wins_over_examples_of_use():
    first = CODE.replace("buy", "sell")
    answer = (
        f"```python\n{first}```\nBetter:\n```python\n{CODE}```\nRun:\n```python\nprint(1)\n```\n```text\nout\n```"
    )
    found = extract(answer)
    assert found.code == CODE and found.blocks == 4


def test_among_blocks_without_a_strategy_the_last_python_one():
    assert extract("```\nx = 1\n```\n```\nnot python at all\n```").code == "x = 1\n"
    assert extract("```\nno no\n```\n```\nthis neither\n```").code == "this neither\n"


def test_a_block_in_another_language_is_no_code():
    assert extract('```json\n{"a": 1}\n```').missing == "prose"


def test_a_fence_that_never_closes_is_a_program_cut_off():
    found = extract(f"```python\n{CODE}        self.sel", cut_off=True)
    assert found.form == "unclosed" and found.code is not None and found.code.startswith(CODE)


def test_a_fence_inside_a_longer_fence_does_not_end_it():
    inner = CODE + '\nNOTE = """\n```\n"""\n'
    assert extract(f"````python\n{inner}````").code == inner


def test_bare_code_and_bare_code_after_prose():
    assert extract(CODE).form == "bare"
    found = extract(f"Sure. My plan is simple.\n\n{CODE}\nThis buys every bar, which is what you asked for.")
    assert found.code is not None and found.code.strip() == CODE.strip()


def test_bare_code_with_a_mistake_stays_a_program():
    found = extract(CODE.replace("def next(self):", "def next(self)"))
    assert found.form == "bare" and "def next(self)\n" in (found.code or "")


def test_thoughts_are_no_answer():
    assert extract(f"<think>```python\nx = 1\n```</think>\n```python\n{CODE}```").code == CODE
    looping = extract(f"<think>maybe ```python\n{CODE}``` or not", cut_off=True)
    assert looping.code is None and looping.missing == "loop"


@pytest.mark.parametrize(
    ("answer", "cut_off", "missing"),
    [
        ("", False, "empty"),
        ("  \n", True, "cut off"),
        ("I cannot do that.", False, "prose"),
        ("Let me think about it", True, "cut off"),
        ("Wait, let me reconsider.\n" * 40, True, "loop"),
    ],
)
def test_no_code_has_its_own_kinds(answer, cut_off, missing):
    found = extract(answer, cut_off=cut_off)
    assert (found.code, found.form, found.missing) == (None, "none", missing)


@given(st.text(alphabet="`~abc \n\tpython<think>/:=()", max_size=200), st.booleans())
def test_any_text_has_code_or_a_reason_for_none(text, cut_off):
    found = extract(text, cut_off=cut_off)
    assert (found.code is None) == (found.form == "none") == bool(found.missing)
