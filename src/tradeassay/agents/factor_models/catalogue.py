"""The eighteen models of KTD-Fin: where Qlib keeps each, and how it is set up here.

The classes and their training loops are Qlib's. The settings are ours: the sizes of Qlib's own examples, cut down
to nine factors. (The paper took those of Qlib's model zoo unchanged; pyqlib does not ship them.) ``small`` ones
train in seconds and are meant for trying things out.
``qlib`` ones have the defaults of Qlib's classes, but for what the data, the seed and the machine force.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from tradeassay.core.errors import UserError
from tradeassay.core.registry import did_you_mean
from tradeassay.factors import FACTOR_NAMES

Size = Literal["full", "small", "qlib"]
Settings = dict[str, Any]

WINDOW: dict[Size, int] = {"full": 20, "small": 5, "qlib": 60}
"""Sessions of factors that a sequence model sees; the others see the last one. Qlib's own data has sixty."""
_FACTORS = len(FACTOR_NAMES)


class FactorModel(msgspec.Struct, frozen=True, kw_only=True):
    """One of the eighteen.

    ``module`` and ``cls`` say where Qlib has it, ``packages`` what it is computed with. ``sequence`` models see a
    window of sessions. ``full`` and ``small`` are the arguments of the class, ``fit`` those of its ``fit``;
    ``forced`` are the only ones beside Qlib's defaults: nine features, no files, no chatter, the same bits again.
    ``torch`` models can train on a GPU and take ``batch_size`` and ``seed`` from the training."""

    name: str
    title: str
    module: str
    cls: str
    packages: tuple[str, ...]
    sequence: bool = False
    torch: bool = False
    full: Settings = {}
    small: Settings = {}
    forced: Settings = {}
    fit: dict[Size, Settings] = {}

    def window(self, size: Size) -> int:
        return WINDOW[size] if self.sequence else 1

    def settings(self, size: Size) -> Settings:
        """Return the arguments of the class: the full ones, overridden by the small ones, or Qlib's defaults."""
        if size == "qlib":
            return dict(self.forced)
        return dict(self.full) if size == "full" else {**self.full, **self.small}

    def fit_settings(self, size: Size) -> Settings:
        return dict(self.fit.get(size, {}))


_ROUNDS: dict[Size, Settings] = {
    "full": dict(num_boost_round=1000, early_stopping_rounds=50, verbose_eval=False),
    "small": dict(num_boost_round=60, early_stopping_rounds=20, verbose_eval=False),
    "qlib": dict(verbose_eval=False),
}
_SAME_BITS: Settings = dict(deterministic=True, force_row_wise=True, verbosity=-1)
_BAGS: Settings = dict(feature_fraction=0.9, bagging_fraction=0.9, bagging_freq=1, lambda_l2=10.0, **_SAME_BITS)
_LEAVES: Settings = dict(num_leaves=31, max_depth=6, min_data_in_leaf=200, **_BAGS)
_FEW_LEAVES: Settings = dict(num_leaves=15, max_depth=4, min_data_in_leaf=50, learning_rate=0.1)
_EPOCHS: Settings = dict(n_epochs=100, early_stop=10, lr=1e-3)
_FEW_EPOCHS: Settings = dict(n_epochs=8, early_stop=4, lr=3e-3)
_NINE: Settings = dict(_EPOCHS, d_feat=_FACTORS)
_RNN: Settings = dict(_NINE, hidden_size=64, num_layers=2)
_SMALL_RNN: Settings = dict(_FEW_EPOCHS, hidden_size=16, num_layers=1)
_ATTENTION: Settings = dict(_NINE, d_model=64, nhead=2, num_layers=2, dropout=0.1)
_SMALL_ATTENTION: Settings = dict(_FEW_EPOCHS, d_model=16, num_layers=1)
_SANDWICH: Settings = dict(cnn_dim_1=64, cnn_dim_2=32, rnn_dim_1=32, rnn_dim_2=16, rnn_dups=3, rnn_layers=2)
_SMALL_SANDWICH: Settings = dict(cnn_dim_1=16, cnn_dim_2=8, rnn_dim_1=8, rnn_dim_2=8, rnn_dups=2, rnn_layers=1)
_PERCEPTRON: Settings = dict(eval_steps=50, early_stop_rounds=10, optimizer="adam", weight_decay=1e-4)
_TABNET: Settings = dict(_NINE, out_dim=64, n_steps=5, pretrain_n_epochs=20, vbs=512)
_SMALL_TABNET: Settings = dict(_FEW_EPOCHS, out_dim=16, n_steps=3, pretrain_n_epochs=2, vbs=128)


def _trees(name: str, title: str, module: str, cls: str, package: str, **told: Any) -> FactorModel:
    return FactorModel(name=name, title=title, module=module, cls=cls, packages=(package,), **told)


def _net(
    name: str, title: str, cls: str, full: Settings, small: Settings, *, module: str = "", **told: Any
) -> FactorModel:
    """Return a neural network, over a window of sessions unless it is told otherwise."""
    forced = {key: full[key] for key in ("d_feat", "fea_dim") if key in full}
    told = {"sequence": True, "forced": forced, **told}
    where = module or f"pytorch_{name}"
    return _trees(name, title, where, cls, "torch", torch=True, full=full, small=small, **told)


def _layers(*sizes: int) -> Settings:
    return {"input_dim": _FACTORS, "layers": list(sizes)}


_ALL = (
    _trees(
        "lightgbm",
        "LightGBM",
        "gbdt",
        "LGBModel",
        "lightgbm",
        full=dict(_LEAVES, learning_rate=0.02, num_boost_round=1000, early_stopping_rounds=50),
        small=dict(_FEW_LEAVES, num_boost_round=60, early_stopping_rounds=20),
        forced=_SAME_BITS,
        fit={size: {"verbose_eval": 0} for size in WINDOW},
    ),
    _trees(
        "xgboost",
        "XGBoost",
        "xgboost",
        "XGBModel",
        "xgboost",
        full={"lambda": 10.0, "eta": 0.02, "max_depth": 6, "subsample": 0.9, "colsample_bytree": 0.9}
        | dict(min_child_weight=200, tree_method="hist"),
        small=dict(eta=0.1, max_depth=4, min_child_weight=50),
        fit=_ROUNDS,
    ),
    _trees(
        "catboost",
        "CatBoost",
        "catboost_model",
        "CatBoostModel",
        "catboost",
        full=dict(learning_rate=0.02, depth=6, l2_leaf_reg=10.0, allow_writing_files=False),
        small=dict(learning_rate=0.1, depth=4),
        forced=dict(allow_writing_files=False),
        fit=_ROUNDS,
    ),
    _trees(
        "doubleensemble",
        "DoubleEnsemble",
        "double_ensemble",
        "DEnsembleModel",
        "lightgbm",
        full=dict(_LEAVES, learning_rate=0.05, num_models=6, epochs=200, decay=0.5, early_stopping_rounds=20),
        small=dict(_FEW_LEAVES, num_models=3, epochs=30, early_stopping_rounds=10),
        # Qlib's default for the decay is None, which its own training cannot compute with; its example has 0.5.
        forced=dict(_SAME_BITS, decay=0.5),
    ),
    _trees("linear", "Linear", "linear", "LinearModel", "scikit-learn", full=dict(estimator="ridge", alpha=1.0)),
    _net(
        "mlp",
        "MLP",
        "DNNModelPytorch",
        dict(_PERCEPTRON, lr=1e-3, max_steps=3000, pt_model_kwargs=_layers(64, 32)),
        dict(lr=3e-3, max_steps=200, eval_steps=20, pt_model_kwargs=_layers(16)),
        module="pytorch_nn",
        sequence=False,
        forced={"pt_model_kwargs": _layers(256)},
    ),
    _net("tabnet", "TabNet", "TabnetModel", dict(_TABNET, lr=5e-3), dict(_SMALL_TABNET, lr=1e-2), sequence=False),
    _net("lstm", "LSTM", "LSTM", _RNN, _SMALL_RNN),
    _net("gru", "GRU", "GRU", _RNN, _SMALL_RNN),
    _net("alstm", "ALSTM", "ALSTM", dict(_RNN, rnn_type="GRU"), _SMALL_RNN),
    _net("transformer", "Transformer", "TransformerModel", _ATTENTION, _SMALL_ATTENTION),
    _net("localformer", "Localformer", "LocalformerModel", _ATTENTION, _SMALL_ATTENTION),
    _net(
        "tcn",
        "TCN",
        "TCN",
        dict(_NINE, n_chans=64, kernel_size=5, num_layers=3, dropout=0.2),
        dict(_FEW_EPOCHS, n_chans=16, kernel_size=3, num_layers=2),
    ),
    _net(
        "sfm",
        "SFM",
        "SFM",
        dict(_NINE, hidden_size=64, freq_dim=10, optimizer="adam"),
        dict(_FEW_EPOCHS, hidden_size=16, freq_dim=4, lr=1e-2),
    ),
    # Qlib's "mse" for this model is the mean of the signed errors; the rank correlation is what is wanted.
    _net("adarnn", "ADARNN", "ADARNN", dict(_RNN, pre_epoch=20, metric="ric"), dict(_SMALL_RNN, pre_epoch=4)),
    _net(
        "krnn",
        "KRNN",
        "KRNN",
        dict(_EPOCHS, fea_dim=_FACTORS, cnn_dim=64, rnn_dim=64, rnn_dups=3, rnn_layers=2),
        dict(_FEW_EPOCHS, cnn_dim=16, rnn_dim=16, rnn_dups=2, rnn_layers=1),
    ),
    _net(
        "sandwich",
        "Sandwich",
        "Sandwich",
        dict(_EPOCHS, fea_dim=_FACTORS, **_SANDWICH),
        dict(_FEW_EPOCHS, **_SMALL_SANDWICH),
    ),
    _net("add", "ADD", "ADD", dict(_RNN, base_model="GRU", dec_dropout=0.1, metric="ric", mu=0.05), _SMALL_RNN),
)

FACTOR_MODELS: dict[str, FactorModel] = {model.name: model for model in _ALL}


def factor_model(name: str) -> FactorModel:
    """Return one of the eighteen by name; raises :class:`UserError` with near names when there is none."""
    try:
        return FACTOR_MODELS[name]
    except KeyError:
        hint = did_you_mean(name.lower(), FACTOR_MODELS, f"one of {', '.join(FACTOR_MODELS)}")
        raise UserError(f"no factor model '{name}'", hint=hint) from None
