import math
from importlib.resources import files

import pytest

from tradeassay_programs.code.scores import complexity, d3, d4
from tradeassay_programs.code.semantics.interpreter import read_semantics


def semantics(folder: str):
    body = (
        files("tradeassay_programs.benchmarks.systrade") / "strategies" / folder / "semantics.json"
    )
    return read_semantics(body.read_bytes())


def test_d3_by_hand():
    bad = "import random\nx = df.shift(-1)\ny = df.rolling(3).mean()\nz = close[i + 1]\n"
    found = d3(bad)
    assert found.parts["det"] == 7.0
    assert found.parts["leak"] == 10 - 2 - 1 - 2
    assert found.parts["qual"] == 10 - 2 - 2 - 1
    expected = 0.3 * 7 + 0.3 * 5 + 0.25 * found.parts["log"] + 0.15 * 5
    assert found.score == pytest.approx(expected)


def test_d4_by_hand():
    assert d4("x = 1").parts == {"logic": 7.0, "overfit": 10.0, "gen": 10.0}
    many = "\n".join(f"if x > {n}:\n    signal = entry = {n}" for n in range(40))
    found = d4("import numpy\n" + many).parts
    assert found == {"logic": 9.0, "overfit": 8.0, "gen": 10.0}
    assert d4("def broken(").score > 0


def test_complexity_by_the_formula():
    assert complexity(semantics("double_ma")) == pytest.approx(0.5 * math.log2(3))
    assert complexity(semantics("pairs")) == pytest.approx(1.0 + 0.5 * math.log2(4))
    assert complexity(semantics("dual_thrust")) == pytest.approx(0.5 + 0.5 * math.log2(4))


def test_incomplete_logs_lower_d3_as_printed():
    whole, half = d3("x = 1", 1.0), d3("x = 1", 0.45)
    assert half.parts["penalty"] == pytest.approx(-1.0) and half.score == pytest.approx(
        whole.score - 1.0
    )
    assert "penalty" not in d3("x = 1").parts
