import pytest

from tradeassay.core.syntax import syntax_tree
from tradeassay_programs.sandbox.strategy import (
    ImportFound,
    allowed_modules,
    first_forbidden,
    is_allowed,
)

ALLOWED = allowed_modules({"numpy", "pandas"})


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import numpy as np\nimport math, statistics", None),
        ("from pandas.core import frame", None),
        ("import math, socket", ImportFound("socket", 1)),
        ("def f():\n    from urllib.request import urlopen", ImportFound("urllib.request", 2)),
        ("import requests\nimport socket", ImportFound("requests", 1)),
        ("from . import other", None),
        ("class A:\n    import ctypes.util", ImportFound("ctypes.util", 2)),
        ("__import__('socket')", None),
        ("try:\n    import numba\nexcept ImportError:\n    numba = None", None),
        (
            "try:\n    import numba\nexcept (KeyError, ModuleNotFoundError):\n    import socket",
            ImportFound("socket", 4),
        ),
        ("try:\n    import numba\nexcept KeyError:\n    pass", ImportFound("numba", 2)),
    ],
)
def test_first_forbidden_import(source, found):
    assert first_forbidden(syntax_tree(source), ALLOWED) == found


def test_the_list_knows_the_top_of_a_dotted_name():
    assert is_allowed("numpy.random", ALLOWED)
    assert not is_allowed("numpyx", ALLOWED)
    assert not is_allowed("polars", ALLOWED)
