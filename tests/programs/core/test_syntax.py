"""Sources are read in several threads at once: in the event loop's, and in those that examine
programs.
"""

import ast
import gc
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from tradeassay.core.syntax import expression_tree, syntax_tree
from tradeassay_programs.code.program_source import read_source

SOURCE = "\n".join(
    f"def f{n}(a, b):\n    return [(a + {n}) * (b - {n}) for a in range(b) if a > {n}]"
    for n in range(99)
)


@pytest.fixture
def busy():
    """Let garbage be collected in the middle of a tree, and another thread go on meanwhile."""
    interval, often = sys.getswitchinterval(), gc.get_threshold()

    def notice(phase: str, info: dict[str, int]) -> None:
        sum(range(500))

    gc.callbacks.append(notice)
    sys.setswitchinterval(1e-5)
    gc.set_threshold(100, 1000, 1000)
    yield
    gc.set_threshold(*often)
    sys.setswitchinterval(interval)
    gc.callbacks.remove(notice)


def test_threads_do_not_disturb_each_others_trees(busy):
    with ThreadPoolExecutor(3) as threads:
        read = [threads.submit(read_source, SOURCE, compiles=True) for _ in range(12)]
        made = [threads.submit(syntax_tree, SOURCE) for _ in range(12)]
        values = [threads.submit(expression_tree, "(1 + 2) * close[3]") for _ in range(50)]
        found = [one.result() for one in (*read, *made)]
        assert all(isinstance(one.result(), ast.BinOp) for one in values)
    assert {type(one) for one in found} == {ast.Module}
