"""Asking for worlds: presets, sizes, the registered source, and refusals."""

import warnings

import msgspec
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tradeassay.core.errors import DataError, UserError
from tradeassay.data.doctor import diagnose_panel
from tradeassay.data.source import sources
from tradeassay.data.store.write import check_form
from tradeassay.data.synthetic import PRESETS, SyntheticConfig, generate, preset
from tradeassay.data.synthetic.world import SyntheticQuery, SyntheticSource


def test_presets_carry_their_own_name() -> None:
    assert set(PRESETS) == {"us", "ashare", "crypto", "csi300", "futures"}
    for name, config in PRESETS.items():
        assert config.preset == ("ashare" if name == "csi300" else name), (
            "csi300 is an A-share world of 300 members"
        )
        assert msgspec.json.decode(msgspec.json.encode(config), type=SyntheticConfig) == config


def test_a_bigger_world_has_a_bigger_index() -> None:
    assert preset("us", seed=4, names=300).index_members == 240
    assert preset("us", names=300, index_members=50).index_members == 50
    assert preset("us", seed=4).seed == 4


def test_what_makes_no_world_is_refused() -> None:
    with pytest.raises(UserError, match="no synthetic world 'mars'"):
        preset("mars")
    with pytest.raises(UserError, match="no setting 'stonks'"):
        preset("us", stonks=3)
    with pytest.raises(UserError, match="negative"):
        preset("us", seed=-1)
    with pytest.raises(UserError, match="too few for a world"):
        preset("us", sessions=10)
    with pytest.raises(UserError, match="names are too few"):
        preset("us", names=6)
    with pytest.raises(UserError, match="cannot be drawn"):
        preset("us", index_members=101)
    with pytest.raises(UserError, match="minutes for 200"):
        preset("us", minutes=200)
    with pytest.raises(DataError, match="holidays of XSHG"):
        generate(preset("ashare", first="2100-01-01"))


def test_the_source_is_registered_and_loads() -> None:
    kind = sources.get("synthetic")
    assert kind is SyntheticSource and kind.extra is None and kind.summary
    panel = kind(SyntheticQuery(preset="crypto", seed=3, sessions=70, first="2022-02-01")).load()
    assert panel.sessions.size == 70 and str(panel.sessions[0]) == "2022-02-01"
    same = generate(preset("crypto", seed=3, sessions=70, first="2022-02-01")).panel
    assert np.array_equal(panel.bars["close"], same.bars["close"], equal_nan=True)


@settings(max_examples=12, deadline=None)
@given(
    name=st.sampled_from(["us", "ashare", "crypto", "futures"]),
    seed=st.integers(0, 2**40),
    names=st.integers(12, 25),
    sessions=st.integers(60, 130),
)
@example(name="crypto", seed=1043374604698, names=12, sessions=92)  # a review on the last session but one
def test_any_small_world_is_sound(name: str, seed: int, names: int, sessions: int) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        panel = generate(preset(name, seed=seed, names=names, sessions=sessions)).panel
    check_form(panel)
    assert all(np.isfinite(levels).all() and (levels > 0).all() for levels in panel.indices.values())
    assert [fault for fault in diagnose_panel(panel) if fault.severity == "error"] == []
    assert panel.sessions.size == sessions
    keys = [(entry.listed, entry.instrument.symbol) for entry in panel.listings]
    assert keys == sorted(keys)


def test_seeds_differ_and_repeat(world) -> None:
    first = generate(preset("us", seed=1, names=20, sessions=80)).panel
    again = generate(preset("us", seed=1, names=20, sessions=80)).panel
    other = generate(preset("us", seed=2, names=20, sessions=80)).panel
    assert np.array_equal(first.bars["close"], again.bars["close"], equal_nan=True)
    assert first.news == again.news and first.fundamentals == again.fundamentals
    assert first.symbols != other.symbols
