"""The program inside an answer."""

import pytest
from hypothesis import given, strategies as st

from tradeassay_programs.code.extraction import extract

CODE = (
    "import backtrader as bt\n\n\nclass S(bt.Strategy):\n    def next(self):\n        self.buy()\n"
)


SELLS, NOTE = CODE.replace("buy", "sell"), CODE + '\nNOTE = """\n```\n"""\n'
AFTER = "Run:\n```python\nprint(1)\n```\n```text\nout\n```"


@pytest.mark.parametrize(
    ("answer", "code", "blocks"),
    [
        *(
            (f"Here it is:\n```{label}\n{CODE}```\nGood luck!", CODE, 1)
            for label in ("python", "py", "", "Python3")
        ),
        (f"```python\n{SELLS}```\nBetter:\n```python\n{CODE}```\n{AFTER}", CODE, 4),
        ("```\nx = 1\n```\n```\nnot python at all\n```", "x = 1\n", 2),
        ("```\nno no\n```\n```\nthis neither\n```", "this neither\n", 2),
        (f"````python\n{NOTE}````", NOTE, 1),  # a fence inside a longer fence does not end it
        (f"<think>```python\nx = 1\n```</think>\n```python\n{CODE}```", CODE, 1),
    ],
)
def test_the_last_fence_with_a_strategy_wins_else_the_last_python_else_the_last(
    answer, code, blocks
):
    found = extract(answer)
    assert (found.code, found.form, found.blocks) == (code, "fenced", blocks)


def test_a_fence_that_never_closes_is_a_program_cut_off():
    found = extract(f"```python\n{CODE}        self.sel", cut_off=True)
    assert found.form == "unclosed" and found.code is not None and found.code.startswith(CODE)


def test_bare_code_and_bare_code_after_prose():
    assert extract(CODE).form == "bare"
    found = extract(
        f"Sure. My plan is simple.\n\n{CODE}\nThis buys every bar, which is what you asked for."
    )
    assert found.code is not None and found.code.strip() == CODE.strip()


def test_bare_code_with_a_mistake_stays_a_program():
    found = extract(CODE.replace("def next(self):", "def next(self)"))
    assert found.form == "bare" and "def next(self)\n" in (found.code or "")


@pytest.mark.parametrize(
    ("answer", "cut_off", "missing"),
    [
        ("", False, "empty"),
        ("  \n", True, "cut off"),
        ("I cannot do that.", False, "prose"),
        ('```json\n{"a": 1}\n```', False, "prose"),
        (f"<think>maybe ```python\n{CODE}``` or not", True, "loop"),
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
