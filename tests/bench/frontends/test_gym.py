"""The market as a Gymnasium environment."""

import warnings
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from tradeassay.core.errors import UserError
from tradeassay_bench.data import Snapshot, open_snapshot, write_snapshot
from tradeassay_bench.data.synthetic import generate, preset
from tradeassay_bench.frontends.gym_env import COLUMNS, INVESTED, DailyMarket

ACTIONS = ("weights", "discrete")
WORLD = preset(
    "us", seed=3, names=10, sessions=110, new_listings=1, delistings=1, fundamentals=False
)


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    folder = tmp_path_factory.mktemp("gym") / "world"
    write_snapshot(generate(WORLD).panel, folder)
    return open_snapshot(folder)


def small(snapshot: Snapshot, **changed: Any) -> DailyMarket:
    return DailyMarket(snapshot, **{"assets": 3, "sessions": 12, **changed})


@pytest.mark.parametrize("actions", ACTIONS)
@pytest.mark.parametrize("venue", ["us-fractional-v1", "us-margin-v1"])
def test_gymnasiums_own_checker_finds_nothing(snapshot, actions, venue):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(small(snapshot, actions=actions, venue=venue), skip_render_check=True)


def test_it_is_registered_by_name(snapshot):
    name = "tradeassay_bench.frontends.gym_env:tradeassay/Daily-v1"
    env = gymnasium.make(name, dataset=snapshot, assets=2, sessions=3)
    observed, info = env.reset(seed=0)
    assert observed.shape == (2, len(COLUMNS)) and len(info["symbols"]) == 2
    *_, ended, cut, _ = [env.step(env.action_space.sample()) for _ in range(3)][-1]
    assert cut and not ended


def play(env: DailyMarket, seed: int, action: Any = None) -> list[Any]:
    observed, info = env.reset(seed=seed)
    env.action_space.seed(seed)
    found, over = [(observed.tobytes(), info["session"])], False
    while not over:
        observed, reward, ended, cut, info = env.step(
            env.action_space.sample() if action is None else action
        )
        found.append((observed.tobytes(), reward, info["session"], info["value"]))
        over = ended or cut
    return found


@pytest.mark.parametrize("actions", ACTIONS)
def test_a_seed_decides_everything(snapshot, actions):
    env = small(snapshot, actions=actions)
    assert play(env, 5) == play(small(snapshot, actions=actions), 5) == play(env, 5)
    assert len({play(env, seed)[0][1] for seed in range(8)}) > 3


def test_rewards_add_up_to_the_account(snapshot):
    found = play(small(snapshot), 2)
    assert len(found) == 1 + 12
    assert sum(step[1] for step in found[1:]) == pytest.approx(
        np.log(found[-1][3] / 100_000.0), abs=1e-12
    )


def test_a_decision_is_paid_from_this_close_to_the_next(snapshot):
    """All in one name at the close of day t: the reward is that name's next move, less the cost
    of buying.
    """
    env = small(snapshot, assets=1)
    _, info = env.reset(options={"first": str(snapshot.sessions[40])})
    (symbol,) = info["symbols"]
    _, reward, *_, info = env.step(np.array([1.0], dtype=np.float32))
    view = snapshot.at(41, "close")
    before, after = view.bars("close", 2, adjust="none")[:, view.column(symbol)]
    cost = 3e-4  # 1 bp fee, 2 bp slippage
    assert np.exp(reward) - 1 == pytest.approx(INVESTED * (after / before - 1 - cost), abs=2e-5)
    assert info["session"] == str(snapshot.sessions[41])


def test_doing_nothing_earns_nothing(snapshot):
    assert all(
        step[1] == 0.0 for step in play(small(snapshot), 1, np.zeros(3, dtype=np.float32))[1:]
    )
    assert all(
        step[1] == 0.0
        for step in play(small(snapshot, actions="discrete"), 1, np.ones(3, dtype=int))[1:]
    )


def test_observations_do_not_know_the_future(tmp_path, snapshot):
    """Another future after row 60 changes nothing that is observed up to it."""
    panel = generate(WORLD).panel
    bars = {field: values.copy() for field, values in panel.bars.items()}
    for field in ("open", "high", "low", "close"):
        bars[field][61:] *= 1.5
    write_snapshot(replace(panel, bars=bars), tmp_path / "other", allow_faults=True)
    other = open_snapshot(tmp_path / "other")
    day = {"first": str(snapshot.sessions[50])}
    seen = []
    for data in (snapshot, other):
        env = small(data, actions="discrete")
        rows = [env.reset(options=day)[0].tobytes()]
        rows += [env.step(np.full(3, 2))[0].tobytes() for _ in range(11)]
        seen.append(rows)
    assert seen[0][:11] == seen[1][:11]
    assert seen[0][11] != seen[1][11]


def test_weights_beyond_the_account_are_scaled_and_shorts_need_a_venue(snapshot):
    env = small(snapshot)
    env.reset(seed=1)
    observed, *_ = env.step(np.ones(3, dtype=np.float32))
    assert 0.9 < float(observed[:, 0].sum()) < 1.05
    short = small(snapshot, venue="us-margin-v1")
    assert short.action_space.low.min() == -1.0 and env.action_space.low.min() == 0.0
    short.reset(seed=1)
    observed, *_ = short.step(np.array([-0.5, 0.0, 0.0], dtype=np.float32))
    assert observed[0, 0] < -0.3


@pytest.mark.parametrize(
    "changed", [{"sessions": 110}, {"assets": 0}, {"sessions": 2.5}, {"actions": "orders"}]
)
def test_a_market_that_cannot_be_is_refused(snapshot, changed):
    with pytest.raises(UserError) as refused:
        small(snapshot, **changed)
    assert refused.value.hint


@pytest.mark.parametrize(
    ("actions", "action"),
    [
        *(
            ("weights", one)
            for one in (
                [np.nan, 0, 0],
                [np.inf, 0, 0],
                [0.1, 0.1],
                0.3,
                ["buy"] * 3,
                {"A": 1},
                None,
            )
        ),
        *(("discrete", one) for one in ([1, 1, 3], [1, 1, 1.5], [np.nan, 1, 1], [1], ["buy"] * 3)),
    ],
)
def test_what_is_no_action_is_refused_and_changes_nothing(snapshot, actions, action):
    env = small(snapshot, actions=actions)
    before = env.reset(seed=1)[1]
    with pytest.raises(UserError, match="give 3 ") as refused:
        env.step(action)
    assert "\n" not in str(refused.value)
    assert env.step([1, 1, 1])[-1]["session"] > before["session"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"frist": "2022-03-01"}, "first"),
        (["first"], "first"),
        ({"first": "soon"}, "is not a date"),
        ({"first": 2022}, "is not a date"),
        ({"first": "1999-01-04"}, "choose a day from"),
        ({"first": "2999-01-04"}, "choose a day from"),
    ],
)
def test_an_episode_begins_where_it_was_asked_to_or_not_at_all(snapshot, options, said):
    with pytest.raises(UserError, match=said):
        small(snapshot).reset(options=options)


def test_days_may_be_dates_and_a_step_needs_a_start(snapshot):
    env = small(snapshot, first=snapshot.sessions[40].item())
    with pytest.raises(UserError, match="reset"):
        env.step(np.zeros(3))
    for day in (snapshot.sessions[41], snapshot.sessions[41].item()):
        assert env.reset(options={"first": day})[1]["session"] == str(snapshot.sessions[41])
