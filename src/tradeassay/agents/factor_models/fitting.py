"""Training one of the eighteen, and asking it for scores. Same samples, seed and threads: same model."""

from __future__ import annotations

import inspect
import pickle
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tradeassay.agents.factor_models.catalogue import FactorModel, Settings, Size, factor_model
from tradeassay.agents.factor_models.features import Matrix, QlibDataset, QlibQuestion, Samples
from tradeassay.agents.factor_models.qlib_world import mended, model_module, quiet, repeatable
from tradeassay.core.errors import DataError, UserError
from tradeassay.core.view import Floats

BATCH: dict[Size, int] = {"full": 2000, "small": 512}
"""Under Qlib's defaults a batch is as large as the class has it."""
_TABNET_VBS = 2048
"""Rows that TabNet's default normalises together; more than a batch has are none at all."""
LEAST_SAMPLES = 256
"""Fewer samples than this, in training or validation, are refused."""


class FitConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How a model is trained. ``gpu`` only affects the neural networks and CatBoost."""

    size: Size = "full"
    seed: int = 0
    threads: int = 2
    gpu: bool = False


class FittedModel:
    """A trained model of Qlib that scores the names of one session."""

    def __init__(self, model: FactorModel, window: int, fitted: Any) -> None:
        self.model = model
        self.window = window
        self._fitted = fitted

    def scores(self, features: Matrix) -> Floats:
        """Return a score per row (higher = expected to earn more); raises :class:`DataError` for a wrong width."""
        rows, width = features.shape
        if width % self.window or width == 0:
            raise DataError(
                f"{self.model.title} was trained on windows of {self.window} sessions, got {width} columns"
            )
        if rows == 0:
            return np.empty(0)
        # Qlib's networks drop the axis of a batch of one; a second row keeps it.
        asked = features if rows > 1 else np.repeat(features, 2, axis=0)
        if hasattr(self._fitted, "batch_size"):
            self._fitted.batch_size = len(asked)
        with quiet(), repeatable(0, 1):
            found = self._predict(asked)
        return np.asarray(found, dtype=np.float64)[:rows]

    def _predict(self, features: Matrix) -> Any:
        if self.model.name == "xgboost":
            # Qlib trains on bare numbers and asks with column names, which XGBoost now refuses.
            return self._fitted.model.inplace_predict(features)
        return self._fitted.predict(QlibQuestion(features, self.window), "test").to_numpy()

    def to_bytes(self) -> bytes:
        """Return the model as bytes: a Python pickle, with all numbers on the CPU."""
        import io

        import torch

        buffer = io.BytesIO()
        torch.save({"name": self.model.name, "window": self.window, "fitted": self._fitted}, buffer)
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> FittedModel:
        """Read what :meth:`to_bytes` gave; raises :class:`DataError` for anything else.

        A pickle can run code: only read what was trained on this machine or comes from somebody you trust.
        """
        import io

        import torch

        try:
            stored = torch.load(io.BytesIO(content), map_location="cpu", weights_only=False)
            fitted = cls(factor_model(stored["name"]), stored["window"], stored["fitted"])
        except (pickle.UnpicklingError, EOFError, KeyError, AttributeError, RuntimeError, TypeError) as error:
            raise DataError(f"this is not a trained factor model: {error}", hint="train it again") from error
        return fitted


def fit(name: str, train: Samples, valid: Samples, config: FitConfig) -> FittedModel:
    """Train a model; ``valid`` decides when to stop.

    Raises :class:`UserError` for an unknown model or too few samples, :class:`MissingExtra` without Qlib.
    """
    model = factor_model(name)
    module = model_module(model)
    for title, samples in (("training", train), ("validation", valid)):
        if len(samples) < LEAST_SAMPLES:
            raise UserError(
                f"{len(samples)} samples are too few for {title}", hint="take a longer window or more names"
            )
    window = model.window(config.size)
    dataset = QlibDataset(train, valid, window)
    with tempfile.TemporaryDirectory() as folder, repeatable(config.seed, config.threads, gpu=config.gpu):
        with mended(module, model, window=window, gpu=config.gpu) as cls, quiet():
            batch = min(BATCH.get(config.size) or _default_batch(cls), len(train) // 4, len(valid))
            settings = _settings(model, config, batch, window, Path(folder))
            fitted = cls(**settings)
            _on_one_device(fitted)
            fitted.fit(dataset, **_fit_settings(model, config.size, fitted, Path(folder)))
    _strip(fitted)
    return FittedModel(model, window, _plain(fitted, module, model))


def _default_batch(cls: type[Any]) -> int:
    given = inspect.signature(cls).parameters.get("batch_size")
    return 2**31 if given is None else int(given.default)


def _settings(model: FactorModel, config: FitConfig, batch: int, window: int, folder: Path) -> Settings:
    settings = model.settings(config.size)
    if model.torch:
        # Qlib drops incomplete batches, so a batch may not be larger than the training or validation samples.
        settings |= {"batch_size": batch, "seed": config.seed, "GPU": 0 if config.gpu else -1}
    if model.name == "mlp":
        settings["scheduler"] = _slower_when_stuck
    if model.name == "tabnet":
        settings["pretrain_file"] = str(folder / "pretrained")
        settings["vbs"] = min(settings.get("vbs", _TABNET_VBS), batch)
    if model.name == "adarnn":
        settings["len_seq"] = window
    if model.name in ("lightgbm", "doubleensemble"):
        settings |= {"seed": config.seed, "num_threads": config.threads}
    if model.name == "xgboost":
        settings |= {"seed": config.seed, "nthread": config.threads}
    if model.name == "catboost":
        settings |= {"random_seed": config.seed, "thread_count": config.threads}
    return settings


def _slower_when_stuck(optimizer: Any) -> Any:
    """Return Qlib's own schedule; its comparison of version numbers goes wrong from torch 2.10 on."""
    import torch

    return torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, mode="min", factor=0.5, patience=10, threshold=1e-4, min_lr=1e-5
    )


def _fit_settings(model: FactorModel, size: Size, fitted: Any, folder: Path) -> Settings:
    settings = model.fit_settings(size)
    taken = inspect.signature(fitted.fit).parameters
    if "save_path" in taken:
        # Without a path Qlib leaves a file in a folder "tmp" of the user's home.
        settings["save_path"] = str(folder / "best")
    if "evals_result" in taken:
        settings["evals_result"] = {}
    return settings


def _networks(fitted: Any) -> list[Any]:
    import torch

    return [value for value in vars(fitted).values() if isinstance(value, torch.nn.Module)]


def _on_one_device(fitted: Any) -> None:
    """Put a network's parts on the device of the whole: ADARNN's inner one takes any GPU it can see."""
    for network in _networks(fitted):
        for part in network.modules():
            if hasattr(part, "device"):
                part.device = fitted.device


def _strip(fitted: Any) -> None:
    """Move a model to the CPU and drop what only training needs."""
    import torch

    for network in _networks(fitted):
        network.to("cpu")
        for part in network.modules():
            if hasattr(part, "device"):
                part.device = torch.device("cpu")
    if _networks(fitted):
        fitted.device = torch.device("cpu")
        for name in ("train_optimizer", "pretrain_optimizer", "scheduler", "tabnet_decoder"):
            if hasattr(fitted, name):
                setattr(fitted, name, None)


def _plain(fitted: Any, module: Any, model: FactorModel) -> Any:
    """Give a patched model its original class back, which another process can find by name."""
    original = getattr(module, model.cls)
    if type(fitted) is not original:
        fitted.__class__ = original
    return fitted
