"""What factor models see and how their agent behaves, as far as it can be said without Qlib."""

import msgspec
import numpy as np
import pytest

from tradeassay.core.errors import DataError, MissingExtra, UserError
from tradeassay.core.hashing import sha256_bytes
from tradeassay_bench.agents import make_agent
from tradeassay_bench.agents.factor_models import (
    FACTOR_MODELS,
    factor_model,
    fitting as world_of_qlib,
)
from tradeassay_bench.agents.factor_models.features import (
    FeatureFeed,
    Samples,
    factor_history,
    feature_names,
    features,
)
from tradeassay_bench.agents.factor_models.fitting import (
    RankIC,
    TrainedBaseline,
    TrainingRecipe,
    baselines_folder,
    find_trained,
    list_trained,
    load_trained,
    store_trained,
)
from tradeassay_bench.core.agent import AskDecision, EpisodeInfo
from tradeassay_bench.core.errors import AgentError
from tradeassay_bench.play import Market
from tradeassay_bench.testing.agent import small_world

EIGHTEEN = (
    "LightGBM, XGBoost, CatBoost, DoubleEnsemble, Linear, MLP, TabNet, LSTM, GRU, ALSTM, "
    "Transformer, "
    "Localformer, TCN, SFM, ADARNN, KRNN, Sandwich, ADD"
)


def test_the_eighteen_of_the_paper_are_there():
    assert [model.title for model in FACTOR_MODELS.values()] == EIGHTEEN.split(", ")
    assert sum(model.sequence for model in FACTOR_MODELS.values()) == 11
    with pytest.raises(UserError, match="lightgbm"):
        factor_model("lightgmb")


def test_features_are_z_scores_by_factor_then_by_session():
    raw = np.zeros((9, 2, 3))
    raw[0, 0] = [1.0, 2.0, 3.0]
    raw[0, 1] = [5.0, 5.0, 8.0]
    raw[4, 1] = [np.nan, 1.0, 3.0]
    matrix, known = features(raw)
    # One and three are cut at the 1 % and 99 % quantiles, 1.02 and 2.98, which cancels when they are scaled.
    np.testing.assert_allclose(matrix[:, 0], np.array([-1, 0, 1]) / np.sqrt(2 / 3), rtol=1e-6)
    names = feature_names(2)
    assert names[:2] == ["MOM_12_1_1", "MOM_12_1_0"] and len(names) == matrix.shape[1] == 18
    np.testing.assert_allclose(matrix[:, names.index("MOM_ID_0")], [0.0, -1.0, 1.0], atol=1e-6)
    assert known.all() and np.isfinite(matrix).all()
    few = np.random.default_rng(0).normal(size=(9, 1, 3))
    few[:4, 0, 0] = few[:5, 0, 1] = np.nan
    assert features(few)[1].tolist() == [True, False, True], (
        "a name with fewer than five factors is not scored"
    )


def test_following_views_gives_what_history_gives():
    world = small_world("ashare")
    first = int(np.searchsorted(world.snapshot.sessions, np.datetime64(world.config.first)))
    feed, skipping = FeatureFeed(4), FeatureFeed(4)
    for row in range(first, first + 12):
        view = world.snapshot.at(row, "pre_open")
        columns = np.arange(len(view.symbols))
        fresh = factor_history(view, 4)
        np.testing.assert_allclose(feed.raw(view, columns), fresh, rtol=1e-9)
        if row % 3 == 0:
            np.testing.assert_allclose(skipping.raw(view, columns), fresh, rtol=1e-9)
    early = world.snapshot.at(2, "pre_open")
    assert FeatureFeed(4).raw(early, np.arange(3)) is None
    assert FeatureFeed(4).raw(world.snapshot.at(0, "pre_open"), np.arange(3)) is None


def test_shuffling_deals_outcomes_out_within_a_day():
    days = np.repeat(np.array(["2024-01-01", "2024-01-02"], dtype="datetime64[D]"), [40, 30])
    values = np.arange(70.0)
    samples = Samples(
        days=days,
        columns=np.arange(70),
        features=np.zeros((70, 9), np.float32),
        returns=values,
        labels=-values,
    )
    mixed = samples.shuffled(np.random.default_rng(0))
    for day in (slice(40), slice(40, None)):
        assert sorted(mixed.returns[day]) == values[day].tolist()
    assert (mixed.labels == -mixed.returns).all() and (mixed.returns != values).sum() > 50
    assert [(rows.start, rows.stop) for rows in samples.by_day()] == [(0, 40), (40, 70)]


def test_qlibs_defaults_are_changed_in_nothing_but_what_the_data_forces():
    forced = {"d_feat", "fea_dim", "pt_model_kwargs", "allow_writing_files"}
    forced |= {"deterministic", "force_row_wise", "verbosity"}
    for model in FACTOR_MODELS.values():
        more = (
            {"decay"} if model.name == "doubleensemble" else set()
        )  # Qlib's own default does not train
        assert set(model.settings("qlib")) <= forced | more and set(model.fit_settings("qlib")) <= {
            "verbose_eval"
        }
        assert model.window("qlib") == (60 if model.sequence else 1)
        assert model.settings("full") != model.settings("qlib")


@pytest.fixture
def stored(tmp_path, monkeypatch):
    """A baseline with a model file that nobody can read, where Qlib seems to be installed."""
    monkeypatch.setenv("TRADEASSAY_HOME", str(tmp_path))
    monkeypatch.setattr(world_of_qlib, "find_spec", lambda name: object())
    what = {
        "model": "linear",
        "dataset": "d",
        "data_sha256": "0",
        "universe": "IDX",
        "features": "f",
        "window": 1,
    }
    when = {
        "train": ("2020-01-01", "2020-06-01"),
        "valid": ("2020-06-02", "2020-09-01"),
        "horizon": 5,
        "purge": 5,
    }
    how = {"size": "small", "seed": 0, "threads": 1, "gpu": False, "shuffled": False}
    facts = TrainedBaseline(
        key="abcdef0123456789",
        recipe=TrainingRecipe(**what, **when, **how, settings={}, versions={}),
        seen_until="2020-09-01",
        train_samples=1,
        valid_samples=1,
        valid_ic=RankIC(mean=0.1, error=None, days=1),
        model_sha256=sha256_bytes(b"x"),
        cpu_seconds=0.0,
    )
    store_trained(facts, b"x")
    return facts


def test_a_stored_baseline_is_found_by_the_start_of_its_key(stored):
    assert list_trained() == (stored,) and find_trained("abcdef") == stored
    store_trained(msgspec.structs.replace(stored, key="abcdef9999999999"), b"x")
    with pytest.raises(UserError, match="matches 2 keys"):
        find_trained("abcdef")
    for wrong in ("", "abc", "../../x", "ffffffff"):
        with pytest.raises(UserError, match="tradeassay baselines"):
            find_trained(wrong)


def test_a_damaged_baseline_is_refused_and_not_listed(stored):
    folder = baselines_folder() / stored.key
    (folder / "model.bin").write_bytes(b"y")
    with pytest.raises(DataError, match="differs from the model that was trained"):
        load_trained(stored.key)
    (folder / "baseline.json").write_text("{")
    assert list_trained() == ()
    with pytest.raises(DataError, match="damaged"):
        find_trained(stored.key)


def test_what_cannot_play_is_refused_before_a_run(stored, monkeypatch):
    for params, said in (
        ({"key": "0000000000"}, "no trained baseline"),
        ({"key": stored.key, "model": "gru"}, "is a linear, not a gru"),
    ):
        with pytest.raises(UserError, match=said):
            make_agent("factor-model", params)
    monkeypatch.setattr(world_of_qlib, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"tradeassay\[qlib\]"):
        make_agent("factor-model", {"key": stored.key})


def test_a_day_that_training_has_seen_is_refused_and_without_a_key_nothing_decided(stored):
    world = small_world("ashare")
    market = Market(world.snapshot, world.config)
    request = AskDecision(market.reset())
    store_trained(
        msgspec.structs.replace(stored, key="bbbbbb", seen_until=request.observation.session), b"x"
    )
    with pytest.raises(AgentError, match="has seen the market up to"):
        make_agent("factor-model", {"key": "bbbbbb"}).answer(request)
    agent = make_agent("factor-model")
    agent.begin(EpisodeInfo(episode="e", seed=1, rules=market.rules), np.random.default_rng(1))
    decision = agent.answer(request)
    assert decision.status == "failed" and "key" in decision.reason and not decision.orders
