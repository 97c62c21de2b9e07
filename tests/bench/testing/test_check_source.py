"""The shipped checker for sources: content with ours, and able to find what is wrong."""

import random
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import msgspec
import numpy as np
import pytest

from tradeassay.core.errors import UserError
from tradeassay_bench.core.errors import CheckFailed
from tradeassay_bench.data import Panel, SourceConfig, sources
from tradeassay_bench.data.synthetic import generate, preset
from tradeassay_bench.testing import check_source


class Config(SourceConfig, frozen=True, kw_only=True):
    """Nothing to ask."""


class Made:
    """A source around a function."""

    Config: ClassVar[type[SourceConfig]] = Config
    summary: ClassVar[str] = "made for a test"
    extra: ClassVar[str | None] = None

    def __init__(self, make: Callable[[], Any]) -> None:
        self.make = make

    def load(self) -> Panel:
        return self.make()


@pytest.fixture(scope="module")
def good() -> Panel:
    return generate(preset("crypto", seed=1, names=12, sessions=60)).panel


def real(panel: Panel) -> Panel:
    return replace(panel, facts=msgspec.structs.replace(panel.facts, kind="real", biases=()))


def test_the_sources_are_registered():
    assert {"csv", "parquet", "packaged", "synthetic", "yfinance", "ccxt"} <= set(sources.names())


@pytest.mark.parametrize("market", ["us", "ashare", "crypto"])
def test_synthetic_worlds_pass(market):
    panel = check_source("synthetic", {"preset": market, "seed": 3, "sessions": 120, "names": 40})
    assert panel.facts.kind == "synthetic"


def test_files_pass(tmp_path):
    rows = "date,open,high,low,close,volume\n2024-01-02,1,2,1,2,5\n2024-01-03,2,2,1,2,5\n"
    (tmp_path / "AAA.csv").write_text(rows)
    for name in ("csv", "parquet"):
        assert check_source(name, {"path": str(tmp_path)}).symbols == ("AAA",)


def test_wrong_options_are_the_users_fault():
    with pytest.raises(UserError, match="no option 'color'"):
        check_source("synthetic", {"color": "red"})


def broken(panel: Panel, field: str, **change: Any) -> Panel:
    if field == "facts":
        return replace(panel, facts=msgspec.structs.replace(panel.facts, **change))
    return replace(panel, **{field: change["to"]})


@pytest.mark.parametrize(
    ("plant", "problem"),
    [
        (lambda p: "no panel", "returned a str, not a Panel"),
        (
            lambda p: broken(p, "bars", to={**p.bars, "open": p.bars["open"].astype(np.float32)}),
            "has type float32",
        ),
        (
            lambda p: broken(p, "sessions", to=p.sessions.astype("datetime64[s]")),
            r"datetime64\[s\], not datetime64\[D\]",
        ),
        (lambda p: broken(p, "listings", to=p.listings[::-1]), "not sorted by"),
        (lambda p: broken(p, "facts", calendar="XLON"), "calendar 'XLON'"),
        (lambda p: broken(p, "facts", source=" "), "facts.source empty"),
        (lambda p: broken(p, "facts", biases=("two\nlines",)), "one plain sentence"),
        (lambda p: broken(p, "facts", retrieved_at="yesterday"), "retrieved_at"),
        (lambda p: broken(p, "name", to=""), "a panel without a name"),
        (
            lambda p: broken(p, "bars", to={**p.bars, "high": p.bars["high"] * 0.5}),
            "generates faulty data",
        ),
        (
            lambda p: real(broken(p, "bars", to={**p.bars, "high": p.bars["high"] * 0.5})),
            "states no bias",
        ),
    ],
)
def test_what_is_wrong_is_named(good, plant, problem):
    with pytest.raises(CheckFailed, match=problem):
        check_source(Made(lambda: plant(good)))


def test_a_synthetic_source_must_repeat_itself(good):
    rng = np.random.default_rng(1)

    def drift() -> Panel:
        return broken(
            good, "indices", to={name: v + rng.random() for name, v in good.indices.items()}
        )

    with pytest.raises(CheckFailed, match="two loads differ"):
        check_source(Made(drift))


@pytest.mark.parametrize("touch", [random.random, partial(np.random.seed, 1)])
def test_global_random_state_must_be_left_alone(good, touch):
    def careless() -> Panel:
        touch()
        return good

    with pytest.raises(CheckFailed, match="global random state"):
        check_source(Made(careless))


@pytest.mark.parametrize(("fact", "value"), [("summary", ""), ("Config", dict), ("extra", 5)])
def test_the_class_must_say_what_it_is(good, fact, value):
    with pytest.raises(CheckFailed, match=fact):
        check_source(type("Odd", (Made,), {fact: value})(lambda: good))
