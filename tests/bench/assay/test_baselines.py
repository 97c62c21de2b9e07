"""Factor-model baselines on a world with a planted signal: they learn it, cannot see ahead, and
trade it.
"""

import shutil
from dataclasses import dataclass, replace

import msgspec
import numpy as np
import pytest
import scipy  # whose parts are loaded when they are first used

from tradeassay.core.errors import UserError
from tradeassay_bench import api
from tradeassay_bench.agents import make_agent
from tradeassay_bench.agents.factor_models.catalogue import FACTOR_MODELS
from tradeassay_bench.agents.factor_models.fitting import list_trained, load_trained
from tradeassay_bench.benchmarks import day, play_day
from tradeassay_bench.core.agent import EpisodeInfo
from tradeassay_bench.core.events import ENCODER
from tradeassay_bench.data import Panel, Snapshot, open_snapshot, synthetic, write_snapshot
from tradeassay_bench.data.datasets import snapshot_folder
from tradeassay_bench.data.synthetic.universe import PlantedStyles
from tradeassay_bench.examine import baselines as training
from tradeassay_bench.examine.baselines import (
    BaselineSpec,
    Span,
    contrast,
    daily_rank_ic,
    make_samples,
    mean_rank_ic,
    newey_west,
    parse_span,
    train_baselines,
)
from tradeassay_bench.play import Market, MarketConfig
from tradeassay_bench.runs.verify.report import verify
from tradeassay_bench.testing.agent import rewrite_after

QUICK = ("linear", "lightgbm", "gru")
TRAIN, VALID, TEST = (255, 450), (451, 520), (521, 619)
CUT = 12
"""The decision of the test window after which the other future differs."""


@dataclass(frozen=True)
class Planted:
    panel: Panel
    snapshot: Snapshot
    other: Snapshot
    spec: BaselineSpec
    days: list[str]


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """A world in which eight times the usual style premia are paid, with a home of its own."""
    usual = PlantedStyles()
    styles = PlantedStyles(
        premia=tuple(8 * value for value in usual.premia),
        volatility=tuple(value / 2 for value in usual.volatility),
    )
    config = synthetic.preset(
        "ashare",
        seed=11,
        names=60,
        sessions=620,
        new_listings=1,
        delistings=1,
        fundamentals=False,
        styles=styles,
    )
    panel = replace(synthetic.generate(config).panel, name="planted")
    home = tmp_path_factory.mktemp("home")
    write_snapshot(panel, home / "planted")
    other = rewrite_after(panel, TEST[0] + CUT, np.random.default_rng(5))
    write_snapshot(other, home / "other", allow_faults=True)
    days = [str(one) for one in panel.sessions]
    spec = BaselineSpec(
        dataset=str(home / "planted"),
        models=QUICK,
        train=Span(days[TRAIN[0]], days[TRAIN[1]]),
        valid=Span(days[VALID[0]], days[VALID[1]]),
        size="small",
        threads=1,
        device="cpu",
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRADEASSAY_HOME", str(home))
        yield Planted(
            panel, open_snapshot(home / "planted"), open_snapshot(home / "other"), spec, days
        )


@pytest.fixture(scope="module")
def compared(planted):
    pytest.importorskip("qlib", reason="factor models need pip install 'tradeassay[qlib]'")
    return {one.trained.recipe.model: one for one in contrast(planted.spec)}


@pytest.mark.slow
def test_each_beats_its_own_training_on_shuffled_outcomes(compared):
    for name, found in compared.items():
        assert found.beats and found.gain.mean > 0.05, name
        assert found.trained.test_ic.mean > 0.05 and found.trained.valid_ic.mean > 0.05, name
        assert found.shuffled.recipe.shuffled and not found.trained.recipe.shuffled
        assert found.trained.seen_until == found.trained.recipe.valid[1] < found.trained.test[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(FACTOR_MODELS))
def test_all_eighteen_train_with_qlibs_defaults(planted, name, monkeypatch):
    pytest.importorskip("qlib", reason="factor models need pip install 'tradeassay[qlib]'")
    model = FACTOR_MODELS[name]
    if model.sequence or name == "tabnet":
        # Two hundred epochs are Qlib's default; one shows that the rest of it works.
        short = {"n_epochs": 1, "pre_epoch": 1} if name == "adarnn" else {"n_epochs": 1}
        short |= {"pretrain_n_epochs": 1} if name == "tabnet" else {}
        monkeypatch.setitem(
            FACTOR_MODELS, name, msgspec.structs.replace(model, forced=model.forced | short)
        )
    (trained,) = train_baselines(msgspec.structs.replace(planted.spec, models=(name,), size="qlib"))
    assert trained.recipe.size == "qlib" and trained.recipe.window == model.window("qlib")
    assert np.isfinite(trained.test_ic.mean)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(FACTOR_MODELS) - set(QUICK)))
def test_all_eighteen_do(planted, name):
    pytest.importorskip("qlib", reason="factor models need pip install 'tradeassay[qlib]'")
    (found,) = contrast(msgspec.structs.replace(planted.spec, models=(name,)))
    assert found.beats


@pytest.mark.slow
def test_what_is_there_is_not_trained_again_and_training_repeats(
    planted, compared, monkeypatch, tmp_path
):
    spec = msgspec.structs.replace(planted.spec, models=("lightgbm", "gru"))
    again = train_baselines(spec, home=tmp_path)
    for one in again:
        before = compared[one.recipe.model].trained
        assert (one.key, one.valid_ic, one.test_ic) == (before.key, before.valid_ic, before.test_ic)
    monkeypatch.setattr(training, "fit", lambda *_: pytest.fail("was trained again"))
    assert [one.key for one in train_baselines(spec)] == [one.key for one in again]
    assert {one.trained.key for one in compared.values()} < {one.key for one in list_trained()}
    narrower = msgspec.structs.replace(spec, test=Span(planted.days[TEST[0]], planted.days[560]))
    (measured, *_) = train_baselines(narrower)
    assert measured.key == again[0].key
    assert measured.test_ic.days == 560 - TEST[0] - planted.spec.horizon + 1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["linear", "gru"])
def test_the_agent_s_scores_are_those_of_the_measurement(planted, compared, name):
    key = compared[name].trained.key
    _, fitted = load_trained(key)
    rows = range(TEST[0], TEST[0] + 30)
    samples = make_samples(planted.snapshot, "IDX", rows, window=fitted.window, horizon=5)
    market = Market(planted.snapshot, _market(planted))
    agent = make_agent("factor-model", {"key": key})
    agent.begin(EpisodeInfo(episode="e", seed=0, rules=market.rules), np.random.default_rng(0))
    seen, checked = market.reset(), 0
    while seen is not None and seen.step < 20:
        scores = agent.scores(seen)
        here = samples.days == np.datetime64(seen.session)
        expected = fitted.scores(samples.features[here])
        place = {column: at for at, column in enumerate(seen.columns.tolist())}
        found = scores[[place[column] for column in samples.columns[here].tolist()]]
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
        checked += int(here.sum())
        seen = market.step(play_day(day(seen), agent)).observation
    assert checked > 500


def _market(planted):
    first, last = (planted.days[TEST[0] + k] for k in (0, 20))
    return MarketConfig(venue="ashare-flat-v1", universe="IDX", index="IDX", first=first, last=last)


def _decisions(snapshot, config, key):
    market, agent = Market(snapshot, config), make_agent("factor-model", {"key": key, "k": 8})
    agent.begin(EpisodeInfo(episode="e", seed=0, rules=market.rules), np.random.default_rng(0))
    seen, lines = market.reset(), []
    while seen is not None:
        decision = play_day(day(seen), agent)
        lines.append(ENCODER.encode(decision))
        seen = market.step(decision).observation
    return lines


@pytest.mark.slow
@pytest.mark.parametrize("name", ["lightgbm", "gru"])
def test_another_future_leaves_the_agent_s_past_alone(planted, compared, name):
    key = compared[name].trained.key
    here, there = (
        _decisions(one, _market(planted), key) for one in (planted.snapshot, planted.other)
    )
    assert here[: CUT + 1] == there[: CUT + 1] and here != there
    assert b'"target_weight"' in here[0]


def test_samples_do_not_reach_beyond_their_window(planted):
    rows = range(300, 400)
    samples = make_samples(planted.snapshot, "IDX", rows, window=5, horizon=4, purge=3)
    assert (
        str(samples.days[0]) == planted.days[300]
        and str(samples.days[-1]) == planted.days[399 - 4 - 3]
    )
    column, row = int(samples.columns[0]), 300
    opens = planted.snapshot.at(399, "close").bars("open", adjust="total")
    assert samples.returns[0] == opens[row + 4, column] / opens[row, column] - 1.0


def test_another_future_leaves_samples_alone(planted):
    rows = range(TEST[0] - 60, TEST[0] + CUT)
    here, there = (
        make_samples(one, "IDX", rows, window=5, horizon=5)
        for one in (planted.snapshot, planted.other)
    )
    for field in ("days", "columns", "features", "returns", "labels"):
        np.testing.assert_array_equal(getattr(here, field), getattr(there, field))


def test_rank_correlation_by_hand(planted):
    samples = make_samples(planted.snapshot, "IDX", range(300, 312), window=1, horizon=5)
    exact = daily_rank_ic(samples.returns, samples)
    np.testing.assert_allclose(exact, 1.0)
    np.testing.assert_allclose(daily_rank_ic(-samples.returns, samples), -1.0)
    assert not daily_rank_ic(np.zeros(len(samples)), samples).any()
    scores = np.round(np.random.default_rng(1).normal(size=len(samples)))  # with many ties
    wanted = [
        scipy.stats.spearmanr(scores[rows], samples.returns[rows]).statistic
        for rows in samples.by_day()
    ]
    np.testing.assert_allclose(daily_rank_ic(scores, samples), wanted, atol=1e-12)
    assert mean_rank_ic(exact, 5).days == 7


def test_the_error_of_a_mean_by_hand():
    series = np.array([1.0, 2.0, 3.0, 6.0])
    gap = series - 3.0
    plain = (gap @ gap) / 4
    lagged = plain + 2 * 0.5 * (gap[1:] @ gap[:-1]) / 4
    assert newey_west(series, 0) == pytest.approx(np.sqrt(plain / 4))
    assert newey_west(series, 1) == pytest.approx(np.sqrt(lagged / 4))
    assert newey_west(series[:1], 1) is None


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"models": ()}, "no factor model is given"),
        ({"models": ("lgbm",)}, "unknown factor model 'lgbm'"),
        ({"valid": Span("2021-06-01", "2021-07-01")}, "starts before"),
        ({"test": Span("2022-03-01", "2022-07-01")}, "starts before"),
        ({"horizon": 0}, "no outcome can be computed"),
    ],
)
def test_a_spec_that_cannot_be_is_refused(changes, complaint):
    spans = {"train": Span("2021-01-01", "2021-12-31"), "valid": Span("2022-01-01", "2022-06-30")}
    good = {"dataset": "d", "models": ("linear",), **spans}
    BaselineSpec(**good)
    with pytest.raises(UserError, match=complaint):
        BaselineSpec(**{**good, **changes})


def test_windows_are_read_and_a_universe_that_is_given_is_never_replaced(planted):
    assert parse_span("2021-01-04..2021-06-30") == Span("2021-01-04", "2021-06-30")
    for wrong in ("2021-01-04", "..2021-01-04", "2021-06-30..2021-01-04"):
        with pytest.raises(UserError):
            parse_span(wrong)
    with pytest.raises(UserError, match="there are no samples"):  # there are no factors yet
        make_samples(planted.snapshot, "IDX", range(3, 12), window=5, horizon=2)
    for given, taken in ((None, "IDX"), ("all", "all"), ("", "")):
        assert (
            training.Workshop(msgspec.structs.replace(planted.spec, universe=given)).universe
            == taken
        )


@pytest.mark.slow
def test_it_trades_in_a_run_like_any_other_agent(planted, compared, tmp_path):
    # In the store, because verify opens no folder that a run names.
    shutil.copytree(planted.spec.dataset, snapshot_folder("planted"))
    agent = {
        "name": "factor-model",
        "params": {"key": compared["lightgbm"].trained.key},
        "label": "lightgbm",
    }
    # The first two sessions belong to the validation window: nothing may be traded there.
    done = api.run(
        "ktdfin-v1",
        agents=[agent],
        dataset="planted",
        first=planted.days[TEST[0] - 2],
        last=planted.days[TEST[0] + 7],
        folder=tmp_path / "run",
        executor="inline",
        progress="none",
    )
    (episode,) = [one for one in done.episodes if one.agent.label == "lightgbm"]
    records = list(done.records(episode.key))
    assert [record.decision.status for record in records[:3]] == ["failed", "failed", "ok"]
    assert "has seen the market" in records[0].decision.failures[0].detail
    assert not records[1].decision.orders and len(records[2].decision.orders) > 10
    assert verify(done.folder).ok
