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
    ``torch`` models can train on a GPU and take ``batch_size`` and ``seed`` from the training.
    """

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
        """Return how many sessions of factors one sample holds."""
        return WINDOW[size] if self.sequence else 1

    def settings(self, size: Size) -> Settings:
        """Return the arguments of the class: the full ones, overridden by the small ones, or Qlib's defaults."""
        if size == "qlib":
            return dict(self.forced)
        return dict(self.full) if size == "full" else {**self.full, **self.small}

    def fit_settings(self, size: Size) -> Settings:
        """Return the arguments of ``fit``."""
        return dict(self.fit.get(size, {}))


_ROUNDS: dict[Size, Settings] = {
    "full": {"num_boost_round": 1000, "early_stopping_rounds": 50, "verbose_eval": False},
    "small": {"num_boost_round": 60, "early_stopping_rounds": 20, "verbose_eval": False},
    "qlib": {"verbose_eval": False},
}
_SAME_BITS: Settings = {"deterministic": True, "force_row_wise": True, "verbosity": -1}
_LEAVES: Settings = {
    "num_leaves": 31,
    "max_depth": 6,
    "min_data_in_leaf": 200,
    "feature_fraction": 0.9,
    "bagging_fraction": 0.9,
    "bagging_freq": 1,
    "lambda_l2": 10.0,
    **_SAME_BITS,
}
_FEW_LEAVES: Settings = {"num_leaves": 15, "max_depth": 4, "min_data_in_leaf": 50}
_EPOCHS: Settings = {"n_epochs": 100, "early_stop": 10, "lr": 1e-3}
_FEW_EPOCHS: Settings = {"n_epochs": 8, "early_stop": 4, "lr": 3e-3}
_RNN: Settings = {**_EPOCHS, "d_feat": _FACTORS, "hidden_size": 64, "num_layers": 2}
_SMALL_RNN: Settings = {**_FEW_EPOCHS, "hidden_size": 16, "num_layers": 1}
_ATTENTION: Settings = {**_EPOCHS, "d_feat": _FACTORS, "d_model": 64, "nhead": 2, "num_layers": 2, "dropout": 0.1}
_SMALL_ATTENTION: Settings = {**_FEW_EPOCHS, "d_model": 16, "num_layers": 1}


def _net(name: str, title: str, module: str, cls: str, full: Settings, small: Settings) -> FactorModel:
    """Return a neural network over a window of sessions."""
    return FactorModel(
        name=name,
        title=title,
        module=module,
        cls=cls,
        packages=("torch",),
        sequence=True,
        torch=True,
        full=full,
        small=small,
        forced={name: full[name] for name in ("d_feat", "fea_dim") if name in full},
    )


_ALL = (
    FactorModel(
        name="lightgbm",
        title="LightGBM",
        module="gbdt",
        cls="LGBModel",
        packages=("lightgbm",),
        full={**_LEAVES, "learning_rate": 0.02, "num_boost_round": 1000, "early_stopping_rounds": 50},
        small={**_FEW_LEAVES, "learning_rate": 0.1, "num_boost_round": 60, "early_stopping_rounds": 20},
        forced=_SAME_BITS,
        fit={size: {"verbose_eval": 0} for size in WINDOW},
    ),
    FactorModel(
        name="xgboost",
        title="XGBoost",
        module="xgboost",
        cls="XGBModel",
        packages=("xgboost",),
        full={
            "eta": 0.02,
            "max_depth": 6,
            "subsample": 0.9,
            "colsample_bytree": 0.9,
            "lambda": 10.0,
            "min_child_weight": 200,
            "tree_method": "hist",
        },
        small={"eta": 0.1, "max_depth": 4, "min_child_weight": 50},
        fit=_ROUNDS,
    ),
    FactorModel(
        name="catboost",
        title="CatBoost",
        module="catboost_model",
        cls="CatBoostModel",
        packages=("catboost",),
        full={"learning_rate": 0.02, "depth": 6, "l2_leaf_reg": 10.0, "allow_writing_files": False},
        small={"learning_rate": 0.1, "depth": 4},
        forced={"allow_writing_files": False},
        fit=_ROUNDS,
    ),
    FactorModel(
        name="doubleensemble",
        title="DoubleEnsemble",
        module="double_ensemble",
        cls="DEnsembleModel",
        packages=("lightgbm",),
        full={
            **_LEAVES,
            "learning_rate": 0.05,
            "num_models": 6,
            "epochs": 200,
            "decay": 0.5,
            "early_stopping_rounds": 20,
        },
        small={**_FEW_LEAVES, "learning_rate": 0.1, "num_models": 3, "epochs": 30, "early_stopping_rounds": 10},
        # Qlib's default for the decay is None, which its own training cannot compute with; its example has 0.5.
        forced={**_SAME_BITS, "decay": 0.5},
    ),
    FactorModel(
        name="linear",
        title="Linear",
        module="linear",
        cls="LinearModel",
        packages=("scikit-learn",),
        full={"estimator": "ridge", "alpha": 1.0},
    ),
    FactorModel(
        name="mlp",
        title="MLP",
        module="pytorch_nn",
        cls="DNNModelPytorch",
        packages=("torch",),
        torch=True,
        full={
            "lr": 1e-3,
            "max_steps": 3000,
            "eval_steps": 50,
            "early_stop_rounds": 10,
            "optimizer": "adam",
            "weight_decay": 1e-4,
            "pt_model_kwargs": {"input_dim": _FACTORS, "layers": [64, 32]},
        },
        small={
            "lr": 3e-3,
            "max_steps": 200,
            "eval_steps": 20,
            "pt_model_kwargs": {"input_dim": _FACTORS, "layers": [16]},
        },
        forced={"pt_model_kwargs": {"input_dim": _FACTORS, "layers": [256]}},
    ),
    FactorModel(
        name="tabnet",
        title="TabNet",
        module="pytorch_tabnet",
        cls="TabnetModel",
        packages=("torch",),
        torch=True,
        full={
            "d_feat": _FACTORS,
            "out_dim": 64,
            "n_steps": 5,
            "n_epochs": 100,
            "pretrain_n_epochs": 20,
            "early_stop": 10,
            "lr": 5e-3,
            "vbs": 512,
        },
        small={
            "out_dim": 16,
            "n_steps": 3,
            "n_epochs": 8,
            "pretrain_n_epochs": 2,
            "early_stop": 4,
            "lr": 1e-2,
            "vbs": 128,
        },
        forced={"d_feat": _FACTORS},
    ),
    _net("lstm", "LSTM", "pytorch_lstm", "LSTM", _RNN, _SMALL_RNN),
    _net("gru", "GRU", "pytorch_gru", "GRU", _RNN, _SMALL_RNN),
    _net("alstm", "ALSTM", "pytorch_alstm", "ALSTM", {**_RNN, "rnn_type": "GRU"}, _SMALL_RNN),
    _net("transformer", "Transformer", "pytorch_transformer", "TransformerModel", _ATTENTION, _SMALL_ATTENTION),
    _net("localformer", "Localformer", "pytorch_localformer", "LocalformerModel", _ATTENTION, _SMALL_ATTENTION),
    _net(
        "tcn",
        "TCN",
        "pytorch_tcn",
        "TCN",
        {**_EPOCHS, "d_feat": _FACTORS, "n_chans": 64, "kernel_size": 5, "num_layers": 3, "dropout": 0.2},
        {**_FEW_EPOCHS, "n_chans": 16, "kernel_size": 3, "num_layers": 2},
    ),
    _net(
        "sfm",
        "SFM",
        "pytorch_sfm",
        "SFM",
        {**_EPOCHS, "d_feat": _FACTORS, "hidden_size": 64, "freq_dim": 10, "optimizer": "adam"},
        {**_FEW_EPOCHS, "hidden_size": 16, "freq_dim": 4, "lr": 1e-2},
    ),
    _net(
        "adarnn",
        "ADARNN",
        "pytorch_adarnn",
        "ADARNN",
        # Qlib's "mse" for this model is the mean of the signed errors; the rank correlation is what is wanted.
        {**_EPOCHS, "d_feat": _FACTORS, "hidden_size": 64, "num_layers": 2, "pre_epoch": 20, "metric": "ric"},
        {**_FEW_EPOCHS, "hidden_size": 16, "num_layers": 1, "pre_epoch": 4},
    ),
    _net(
        "krnn",
        "KRNN",
        "pytorch_krnn",
        "KRNN",
        {**_EPOCHS, "fea_dim": _FACTORS, "cnn_dim": 64, "rnn_dim": 64, "rnn_dups": 3, "rnn_layers": 2},
        {**_FEW_EPOCHS, "cnn_dim": 16, "rnn_dim": 16, "rnn_dups": 2, "rnn_layers": 1},
    ),
    _net(
        "sandwich",
        "Sandwich",
        "pytorch_sandwich",
        "Sandwich",
        {
            **_EPOCHS,
            "fea_dim": _FACTORS,
            "cnn_dim_1": 64,
            "cnn_dim_2": 32,
            "rnn_dim_1": 32,
            "rnn_dim_2": 16,
            "rnn_dups": 3,
            "rnn_layers": 2,
        },
        {
            **_FEW_EPOCHS,
            "cnn_dim_1": 16,
            "cnn_dim_2": 8,
            "rnn_dim_1": 8,
            "rnn_dim_2": 8,
            "rnn_dups": 2,
            "rnn_layers": 1,
        },
    ),
    _net(
        "add",
        "ADD",
        "pytorch_add",
        "ADD",
        {**_RNN, "base_model": "GRU", "dec_dropout": 0.1, "metric": "ric", "mu": 0.05},
        {**_SMALL_RNN},
    ),
)

FACTOR_MODELS: dict[str, FactorModel] = {model.name: model for model in _ALL}


def factor_model(name: str) -> FactorModel:
    """Return one of the eighteen by name; raises :class:`UserError` with near names when there is none."""
    try:
        return FACTOR_MODELS[name]
    except KeyError:
        hint = did_you_mean(name.lower(), FACTOR_MODELS, f"one of {', '.join(FACTOR_MODELS)}")
        raise UserError(f"no factor model '{name}'", hint=hint) from None
