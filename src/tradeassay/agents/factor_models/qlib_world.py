"""Qlib as it is needed here: imported late, kept quiet, and patched where it cannot take nine factors.

Whatever training touches outside the model (random generators, thread counts, the environment, module globals) is
put back afterwards.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import os
import random
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import numpy as np

from tradeassay.agents.factor_models.catalogue import FactorModel
from tradeassay.core.errors import absent

EXTRA = "qlib"
_MODULES = {"scikit-learn": "sklearn"}


def check_installed(model: FactorModel) -> None:
    """Raise :class:`MissingExtra` when Qlib, or what a model is computed with, is not installed."""
    for package in ("qlib", *model.packages):
        if find_spec(_MODULES.get(package, package)) is None:
            raise absent(package, EXTRA, f"the factor model '{model.name}'")


def model_module(model: FactorModel) -> Any:
    """Return the module of Qlib that holds a model; raises :class:`MissingExtra`."""
    check_installed(model)
    # Qlib imports mlflow, which would send usage data to its makers.
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        return importlib.import_module(f"qlib.contrib.model.{model.module}")


class _Deaf:
    """Takes the place of Qlib's recorder, which would write an experiment folder into the working directory."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: self


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress prints, warnings and experiment records of Qlib's models inside the block."""
    from qlib.workflow import R

    before = R._provider
    R._provider = _Deaf()
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        R._provider = before


@contextlib.contextmanager
def repeatable(seed: int, threads: int, *, gpu: bool = False) -> Iterator[None]:
    """Seed every generator a model may draw from and fix the thread count; put all of it back afterwards.

    On a GPU torch is told to use deterministic algorithms; on a CPU these models repeat anyway, given the threads.
    """
    import torch

    python, numpy_state, torch_state = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    count, strict = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    environment = {name: os.environ.get(name) for name in ("CUDA_VISIBLE_DEVICES", "CUBLAS_WORKSPACE_CONFIG")}
    os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    torch.manual_seed(seed)
    torch.set_num_threads(threads)
    if gpu:
        torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy_state)  # noqa: NPY002
        torch.set_rng_state(torch_state)
        torch.set_num_threads(count)
        if gpu:
            torch.use_deterministic_algorithms(strict)
        for name, value in environment.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


@contextlib.contextmanager
def mended(module: Any, model: FactorModel, *, window: int, gpu: bool) -> Iterator[type[Any]]:
    """Yield a model's class, patched for use here while it is trained.

    ADARNN's loader is written for six features of sixty days. DoubleEnsemble orders its features by iterating over
    a set of strings, which differs from process to process. CatBoost takes a GPU unasked. MLP logs a correlation
    that starts a debugger where days have fewer than fifty names; nothing reads it.
    """
    cls = getattr(module, model.cls)
    if model.name == "adarnn":
        with _replaced(module, "get_stock_loader", lambda df, batch_size: _loader(df, batch_size, window)):
            yield cls
    elif model.name == "doubleensemble":
        yield _ordered(cls)
    elif model.name == "mlp":
        with _replaced(module, "ICLoss", lambda: _unmeasured):
            yield cls
    elif model.name == "catboost" and not gpu:
        with _replaced(module, "get_gpu_device_count", lambda: 0):
            yield cls
    else:
        yield cls


@contextlib.contextmanager
def _replaced(module: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def _loader(frame: Any, batch_size: int, window: int) -> Any:
    import torch

    features = frame["feature"].to_numpy()
    sequences = features.reshape(len(features), -1, window).transpose(0, 2, 1)
    pairs = torch.utils.data.TensorDataset(
        torch.tensor(np.ascontiguousarray(sequences), dtype=torch.float32),
        torch.tensor(frame["label"].to_numpy().reshape(-1), dtype=torch.float32),
    )
    return torch.utils.data.DataLoader(pairs, batch_size=batch_size, shuffle=True)


def _unmeasured(*_: Any) -> Any:
    import torch

    return torch.zeros(())


def _ordered(cls: type[Any]) -> type[Any]:
    """Return DoubleEnsemble with the features of a sub-model in a fixed order."""
    import pandas as pd

    def feature_selection(self: Any, df_train: Any, loss_values: Any) -> Any:
        chosen = set(cls.feature_selection(self, df_train, loss_values))
        kept = [name for name in df_train["feature"].columns if name in chosen]
        return pd.Index(kept)

    return type(cls.__name__, (cls,), {"feature_selection": feature_selection})
