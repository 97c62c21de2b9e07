import msgspec
import numpy as np
import pytest
from hypothesis import given, strategies as st

from tradeassay.core.errors import DataError, UserError
from tradeassay_bench.core.errors import AgentError
from tradeassay_bench.core.time import DAY, HOUR
from tradeassay_bench.masking import (
    ANCHOR,
    HARDENINGS,
    LEVELS,
    AliasMap,
    DayMap,
    MaskConfig,
    UnknownAlias,
    mask_bound,
)


def aliases(seed: int, count: int) -> tuple[AliasMap, list[str]]:
    names = [f"S{i:04d}" for i in range(count)]
    made = AliasMap(np.random.default_rng(seed))
    made.extend(names)
    return made, names


def test_an_alias_has_four_digits_leads_back_and_follows_from_its_seed():
    made, names = aliases(0, 300)
    shown = [made.get(name) for name in names]
    assert len(set(shown)) == 300
    assert all(
        len(alias) == 10 and alias.startswith("asset_") and alias[6:].isdigit() for alias in shown
    )
    assert [made.symbol(alias) for alias in shown] == names
    # Later listings change nothing, another seed nearly everything.
    assert [aliases(0, 20)[0].get(name) for name in names[:20]] == shown[:20]
    assert (
        sum(aliases(1, 300)[0].get(name) == alias for name, alias in zip(names, shown, strict=True))
        < 5
    )


def test_the_order_of_aliases_says_nothing() -> None:
    # Under no relation the rank correlation of n pairs has standard deviation 1/sqrt(n-1).
    count, seeds = 60, 300
    correlations = []
    for seed in range(seeds):
        made, names = aliases(seed, count)
        numbers = np.array([int(made.get(n)[6:]) for n in names])
        ranks = numbers.argsort().argsort()
        correlations.append(np.corrcoef(np.arange(count), ranks)[0, 1])
    expected = 1 / np.sqrt(count - 1)
    assert abs(np.mean(correlations)) < 4 * expected / np.sqrt(seeds)
    assert 0.85 < np.std(correlations) / expected < 1.15


def test_numbers_do_not_tell_how_many_names_there_are():
    numbers = [
        int(made.get(n)[6:]) for seed in range(200) for made, ns in [aliases(seed, 10)] for n in ns
    ]
    assert max(numbers) > 9_800 and min(numbers) < 200
    assert abs(np.mean(numbers) - 4_999.5) < 4 * 2_887 / np.sqrt(len(numbers))


def test_more_names_than_four_digits_get_five():
    made, names = aliases(0, 10_003)
    assert len({made.get(n) for n in names}) == 10_003
    assert all(10_000 <= int(made.get(n)[6:]) < 100_000 for n in names[10_000:])


def test_what_is_no_alias_is_not_repeated_and_an_unknown_one_is():
    made, names = aliases(0, 3)
    unknown = next(f"asset_{i:04d}" for i in range(10) if made.find(f"asset_{i:04d}") is None)
    for written in ("AAPL", "asset_1", "", "600519.SH", unknown):
        with pytest.raises(UnknownAlias) as caught:
            made.symbol(written)
        said = str(caught.value)
        assert (written in said) == (written in ("", unknown)) and not any(
            name in said for name in names
        )
        assert isinstance(caught.value, AgentError) and isinstance(caught.value, DataError)


# -- days ------------------------------------------------------------------------------------------

SESSIONS = np.array(
    ["2024-02-07", "2024-02-08", "2024-02-19", "2024-02-20", "2024-02-21", "2024-02-23"],
    dtype="datetime64[D]",
)


def number(day: str) -> int:
    return int(np.datetime64(day, "D").astype(np.int64))


@pytest.mark.parametrize(
    ("day", "label"),
    [
        ("2024-02-19", "day_+0"),
        ("2024-02-20", "day_+1"),
        ("2024-02-08", "day_-1"),
        ("2024-02-07", "day_-2"),
        ("2024-02-12", "day_-1"),  # a holiday belongs to the session before it
        ("2024-02-22", "day_+2"),
        ("2024-02-06", "day_-3"),  # outside, every calendar day counts
        ("2024-02-25", "day_+5"),
    ],
)
def test_days_count_sessions(day, label):
    days = DayMap(SESSIONS, 2)
    assert days.label(number(day)) == label
    assert np.datetime64(day) not in SESSIONS or days.read(label) == number(day)


@pytest.mark.parametrize(
    "written", ["2024-02-19", "day_3", "day_+x", "yesterday", "", "day_+9999999"]
)
def test_what_is_no_label_is_refused(written):
    with pytest.raises(UnknownAlias, match="no day of this episode"):
        DayMap(SESSIONS, 2).read(written)


def test_shown_days_follow_each_other_from_the_anchor_and_keep_the_time_of_day():
    days = DayMap(SESSIONS, 2)
    shown = days.shown(SESSIONS)
    assert shown.tolist() == (ANCHOR + np.arange(-2, 4)).tolist() and not shown.flags.writeable
    at = number("2024-02-08") * DAY + 14 * HOUR + 30
    assert days.shown_instant(at) == int((ANCHOR - 1).astype(np.int64)) * DAY + 14 * HOUR + 30
    assert days.instant_label(at) == "day_-1"
    assert days.instant_label(at, time_of_day=True) == "day_-1 14:00"


instants = st.integers(number("2024-01-15") * DAY, number("2024-03-15") * DAY)


@given(at=instants, since=instants)
def test_instants_keep_their_order_and_one_is_later_exactly_when_it_is_shown_later(at, since):
    days = DayMap(SESSIONS, 2)
    shown, later = days.shown_instant(since), days.shown_instant(at)
    assert at < since or later >= shown
    assert (at > days.real_instant(shown)) == (later > shown)


@pytest.mark.parametrize("level", LEVELS)
def test_a_config_survives_its_encoding(level):
    config = MaskConfig(level=level)
    assert msgspec.json.decode(msgspec.json.encode(config), type=MaskConfig) == config
    assert config.hides_stocks == (level in ("stock-blind", "blinded"))
    assert config.hides_dates == (level in ("date-blind", "blinded"))


@pytest.mark.parametrize(
    "wrong",
    [
        {"level": "dim"},
        {"level": "blinded", "control": True},
        {"level": "bright", "rebase_prices": True},
    ],
)
def test_a_contradicting_config_is_refused(wrong):
    with pytest.raises(UserError):
        MaskConfig(**wrong)  # type: ignore[arg-type]


def test_a_bound_is_read_from_its_measurement():
    import tomllib
    from importlib.resources import files

    hardened = "+".join(("blinded", *HARDENINGS))
    record = tomllib.loads((files("tradeassay_bench.masking") / "bounds.toml").read_text())["bound"]
    without = [
        one
        for one in record
        if (one["arm"], one["metric"], one["archive"]) == (hardened, "top_5", False)
    ]
    assert len(without) == 3 and all(one["probes"] >= 200 for one in without)
    most = max(one["times_chance"] for one in without)
    assert all(
        one["times_chance"] <= 2.0
        for one in record
        if one["arm"] == hardened and not one["archive"]
    )
    assert f"at most {most:.1f} times chance" in mask_bound(hardened)
    assert "was not measured" in mask_bound("blinded+rebase_prices")
    assert "hides only names or only days" in mask_bound("stock-blind")
