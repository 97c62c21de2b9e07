"""Train one of the eighteen models, compute its scores, and store it.

The same samples, seed and threads produce the same model. Qlib is imported late, its output is
suppressed, and it is patched where it does not support nine factors. Everything that training
changes outside the model (random generators, thread counts, the environment, module globals) is
restored.

Each trained baseline has a folder named by the hash of all its inputs. ``<home>/baselines/<key>/``
contains ``baseline.json`` (its recipe and rank correlation) and ``model.bin`` (the fitted model, a
Python pickle whose hash is in ``baseline.json``).
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import os
import pickle
import random
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.errors import UNDECODABLE, DataError, UserError, absent
from tradeassay.core.files import data_home, write_atomic
from tradeassay.core.hashing import sha256_bytes, sha256_of
from tradeassay_bench.agents.factor_models.catalogue import (
    FactorModel,
    Settings,
    Size,
    factor_model,
)
from tradeassay_bench.agents.factor_models.features import (
    Matrix,
    QlibDataset,
    QlibQuestion,
    Samples,
)

EXTRA = "qlib"
_MODULES = {"scikit-learn": "sklearn"}


def check_installed(model: FactorModel) -> None:
    """Raise :class:`MissingExtra` if Qlib or a package of the model is not installed."""
    for package in ("qlib", *model.packages):
        if find_spec(_MODULES.get(package, package)) is None:
            raise absent(package, EXTRA, f"the factor model '{model.name}'")


def model_module(model: FactorModel) -> Any:
    """Return the Qlib module of a model. Raises :class:`MissingExtra` if it is not installed."""
    check_installed(model)
    # Qlib imports mlflow, which would send usage data to its developers.
    os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        return importlib.import_module(f"qlib.contrib.model.{model.module}")


class _NoRecorder:
    """Replaces Qlib's recorder, which would write an experiment to the working directory."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_, **__: self


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Suppress prints, warnings and experiment records of Qlib's models in a ``with`` block."""
    from qlib.workflow import R

    before = R._provider
    R._provider = _NoRecorder()
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
    """Seed every generator that a model may use, and fix the thread count, in a ``with`` block.

    The generators and the thread count are restored afterwards. On a GPU torch is set to
    deterministic algorithms. On a CPU a fixed number of threads is enough.
    """
    import torch

    python, numpy_state, torch_state = (
        random.getstate(),
        np.random.get_state(),  # noqa: NPY002
        torch.get_rng_state(),
    )
    count, strict = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    environment = {
        name: os.environ.get(name) for name in ("CUDA_VISIBLE_DEVICES", "CUBLAS_WORKSPACE_CONFIG")
    }
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
    """Yield a model's class, patched during its training.

    The patches solve five problems of Qlib. ADARNN's loader expects six features of sixty days.
    DoubleEnsemble orders its features by iterating over a set of strings, whose order differs
    between processes. CatBoost uses a GPU without being configured to. MLP logs a correlation that
    nothing reads. MLP also starts a debugger on days with fewer than fifty names.
    """
    import pandas as pd
    import torch

    cls = getattr(module, model.cls)

    def loader(frame: Any, batch_size: int) -> Any:
        features = frame["feature"].to_numpy()
        sequences = features.reshape(len(features), -1, window).transpose(0, 2, 1)
        pairs = torch.utils.data.TensorDataset(
            torch.tensor(np.ascontiguousarray(sequences), dtype=torch.float32),
            torch.tensor(frame["label"].to_numpy().reshape(-1), dtype=torch.float32),
        )
        return torch.utils.data.DataLoader(pairs, batch_size=batch_size, shuffle=True)

    def feature_selection(self: Any, df_train: Any, loss_values: Any) -> Any:
        chosen = set(cls.feature_selection(self, df_train, loss_values))
        return pd.Index([name for name in df_train["feature"].columns if name in chosen])

    patches: dict[str, tuple[str, Any]] = {
        "adarnn": ("get_stock_loader", loader),
        "mlp": ("ICLoss", lambda: _unmeasured),
    }
    if not gpu:
        patches["catboost"] = ("get_gpu_device_count", lambda: 0)
    if model.name == "doubleensemble":
        yield type(cls.__name__, (cls,), {"feature_selection": feature_selection})
    elif model.name in patches:
        name, value = patches[model.name]
        before = getattr(module, name)
        setattr(module, name, value)
        try:
            yield cls
        finally:
            setattr(module, name, before)
    else:
        yield cls


def _unmeasured(*_: Any) -> Any:
    import torch

    return torch.zeros(())


BATCH: dict[Size, int] = {"full": 2000, "small": 512}
"""Batch sizes by size of model. ``qlib`` models use the default of their class."""
_TABNET_VBS = 2048
"""TabNet's default number of rows normalised together. It must not exceed the batch size."""
LEAST_SAMPLES = 256
"""Minimum number of samples for training and for validation."""


class FitConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one training. ``gpu`` affects only neural networks and CatBoost."""

    size: Size = "full"
    seed: int = 0
    threads: int = 2
    gpu: bool = False


class FittedModel:
    """A trained Qlib model that scores the names of one session."""

    def __init__(self, model: FactorModel, window: int, fitted: Any) -> None:
        self.model = model
        self.window = window
        self._fitted = fitted

    def scores(self, features: Matrix) -> Floats:
        """Return a score per row.

        A higher score means a higher expected return. Raises :class:`DataError` for a wrong number
        of columns.
        """
        rows, width = features.shape
        if width % self.window or width == 0:
            raise DataError(
                f"{self.model.title} was trained on windows of {self.window} sessions, got {width} "
                "columns"
            )
        if rows == 0:
            return np.empty(0)
        # Qlib's networks drop the axis of a batch of one. A second row preserves it.
        batch = features if rows > 1 else np.repeat(features, 2, axis=0)
        if hasattr(self._fitted, "batch_size"):
            self._fitted.batch_size = len(batch)
        with quiet(), repeatable(0, 1):
            if self.model.name == "xgboost":
                # Qlib trains without column names and predicts with them, which XGBoost refuses.
                scores = self._fitted.model.inplace_predict(batch)
            else:
                scores = self._fitted.predict(QlibQuestion(batch, self.window), "test").to_numpy()
        return np.asarray(scores, dtype=np.float64)[:rows]

    def to_bytes(self) -> bytes:
        """Return the model as bytes: a Python pickle, with all numbers on the CPU."""
        import torch

        buffer = io.BytesIO()
        torch.save({"name": self.model.name, "window": self.window, "fitted": self._fitted}, buffer)
        return buffer.getvalue()

    @classmethod
    def from_bytes(cls, content: bytes) -> FittedModel:
        """Return the model stored by :meth:`to_bytes`.

        Raises :class:`DataError` for any other bytes.

        A pickle can run code. Only read models that were trained on this machine or by a person you
        trust.
        """
        import torch

        try:
            stored = torch.load(io.BytesIO(content), map_location="cpu", weights_only=False)
            fitted = cls(factor_model(stored["name"]), stored["window"], stored["fitted"])
        except (
            pickle.UnpicklingError,
            EOFError,
            KeyError,
            AttributeError,
            RuntimeError,
            TypeError,
        ) as error:
            raise DataError(
                f"the file is not a trained factor model: {error}", hint="train it again"
            ) from error
        return fitted


def fit(name: str, train: Samples, valid: Samples, config: FitConfig) -> FittedModel:
    """Train a model and return it.

    ``valid`` determines when training stops early.

    Raises :class:`UserError` for an unknown model or too few samples, and :class:`MissingExtra`
    without Qlib.
    """
    model = factor_model(name)
    module = model_module(model)
    for title, samples in (("training", train), ("validation", valid)):
        if len(samples) < LEAST_SAMPLES:
            hint = "use a longer window or more names"
            raise UserError(f"{len(samples)} samples are too few for {title}", hint=hint)
    import torch

    window = model.window(config.size)
    with (
        tempfile.TemporaryDirectory() as folder,
        repeatable(config.seed, config.threads, gpu=config.gpu),
    ):
        with mended(module, model, window=window, gpu=config.gpu) as cls, quiet():
            usual = inspect.signature(cls).parameters.get("batch_size")
            batch = BATCH.get(config.size) or (2**31 if usual is None else int(usual.default))
            batch = min(batch, len(train) // 4, len(valid))
            fitted = cls(**_settings(model, config, batch, window, Path(folder)))
            networks = [
                value for value in vars(fitted).values() if isinstance(value, torch.nn.Module)
            ]
            parts = []
            for network in networks:
                parts += [part for part in network.modules() if hasattr(part, "device")]
            # All parts of a network must be on its device. ADARNN's inner network selects any GPU.
            for part in parts:
                part.device = fitted.device
            arguments = model.fit_settings(config.size)
            parameters = inspect.signature(fitted.fit).parameters
            if "save_path" in parameters:
                # Without a path Qlib writes a file to a folder "tmp" in the user's home.
                arguments["save_path"] = str(Path(folder) / "best")
            if "evals_result" in parameters:
                arguments["evals_result"] = {}
            fitted.fit(QlibDataset(train, valid, window), **arguments)
    # Drop the parts used only in training, and move the numbers to the CPU.
    networks = [value for value in vars(fitted).values() if isinstance(value, torch.nn.Module)]
    for network in networks:
        network.to("cpu")
        for part in network.modules():
            if hasattr(part, "device"):
                part.device = torch.device("cpu")
    if networks:
        fitted.device = torch.device("cpu")
        for unneeded in ("train_optimizer", "pretrain_optimizer", "scheduler", "tabnet_decoder"):
            if hasattr(fitted, unneeded):
                setattr(fitted, unneeded, None)
    # Another process cannot find a patched class by name, so the model gets its original class
    # back.
    fitted.__class__ = getattr(module, model.cls)
    return FittedModel(model, window, fitted)


def _settings(
    model: FactorModel, config: FitConfig, batch: int, window: int, folder: Path
) -> Settings:
    """Return the arguments of a model's class for one training."""
    import torch

    settings = model.settings(config.size)
    if model.torch:
        # Qlib drops incomplete batches, so a batch may not exceed the training or validation
        # samples.
        settings |= {"batch_size": batch, "seed": config.seed, "GPU": 0 if config.gpu else -1}
    if model.name == "mlp":
        # Qlib's own schedule, set here because Qlib compares torch versions incorrectly from 2.10
        # on.
        slower = dict(mode="min", factor=0.5, patience=10, threshold=1e-4, min_lr=1e-5)
        settings["scheduler"] = partial(torch.optim.lr_scheduler.ReduceLROnPlateau, **slower)
    if model.name == "tabnet":
        settings["pretrain_file"] = str(folder / "pretrained")
        settings["vbs"] = min(settings.get("vbs", _TABNET_VBS), batch)
    if model.name == "adarnn":
        settings["len_seq"] = window
    seeds = {"lightgbm": ("seed", "num_threads"), "doubleensemble": ("seed", "num_threads")}
    seeds |= {"xgboost": ("seed", "nthread"), "catboost": ("random_seed", "thread_count")}
    if model.name in seeds:
        settings |= dict(zip(seeds[model.name], (config.seed, config.threads), strict=True))
    return settings


FACTS_FILE, MODEL_FILE = "baseline.json", "model.bin"
KEY_LENGTH = 16
LEAST_KEY = 6
"""Minimum number of characters in an abbreviated key."""


class RankIC(msgspec.Struct, frozen=True, kw_only=True):
    """The mean daily rank correlation of scores and outcomes over ``days`` sessions.

    ``error`` is the standard error of the mean, corrected for overlapping outcomes (Newey-West). It
    is None if there are fewer than two days.
    """

    mean: float
    error: float | None
    days: int


class TrainingRecipe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that determines a trained model.

    The data set's name is informational only. Windows are ISO days, both ends included.
    ``settings`` are the arguments of Qlib's class. ``versions`` are the versions of the packages
    used in training. ``shuffled`` is True if outcomes were permuted among the names of each day.
    """

    model: str
    dataset: str
    data_sha256: str
    universe: str
    features: str
    window: int
    train: tuple[str, str]
    valid: tuple[str, str]
    horizon: int
    purge: int
    size: Size
    settings: dict[str, object]
    seed: int
    threads: int
    gpu: bool
    shuffled: bool
    versions: dict[str, str]

    @property
    def key(self) -> str:
        """Return the hash of everything except the data set's name."""
        return sha256_of(msgspec.structs.replace(self, dataset=""))[:KEY_LENGTH]


class TrainedBaseline(msgspec.Struct, frozen=True, kw_only=True):
    """A trained factor model.

    ``seen_until`` is the last day that training or early stopping used.
    """

    key: str
    recipe: TrainingRecipe
    seen_until: str
    train_samples: int
    valid_samples: int
    valid_ic: RankIC
    model_sha256: str
    cpu_seconds: float
    test: tuple[str, str] | None = None
    test_ic: RankIC | None = None

    @property
    def model(self) -> FactorModel:
        return factor_model(self.recipe.model)


def baselines_folder(home: Path | None = None) -> Path:
    return data_home(home) / "baselines"


def store_trained(facts: TrainedBaseline, fitted: bytes, home: Path | None = None) -> Path:
    """Write a trained baseline atomically and return its folder."""
    root = baselines_folder(home)
    root.mkdir(parents=True, exist_ok=True)
    place = root / facts.key
    making = Path(tempfile.mkdtemp(prefix=".making-", dir=root))
    try:
        (making / MODEL_FILE).write_bytes(fitted)
        (making / FACTS_FILE).write_bytes(_encoded(facts))
        if place.exists():
            shutil.rmtree(place)
        os.replace(making, place)
    finally:
        shutil.rmtree(making, ignore_errors=True)
    return place


def store_facts(facts: TrainedBaseline, home: Path | None = None) -> None:
    """Replace the facts about a baseline that is already stored."""
    write_atomic(baselines_folder(home) / facts.key / FACTS_FILE, _encoded(facts))


def _encoded(facts: TrainedBaseline) -> bytes:
    return msgspec.json.format(msgspec.json.encode(facts, order="sorted"), indent=2) + b"\n"


def list_trained() -> tuple[TrainedBaseline, ...]:
    """Return the trained baselines, sorted by data set, model and key.

    Damaged baselines are skipped.
    """
    baselines = []
    for file in baselines_folder().glob(f"[!.]*/{FACTS_FILE}"):
        with contextlib.suppress(DataError):
            baselines.append(_read_facts(file.parent))
    return tuple(
        sorted(baselines, key=lambda facts: (facts.recipe.dataset, facts.recipe.model, facts.key))
    )


def find_trained(key: str, home: Path | None = None) -> TrainedBaseline:
    """Return the baseline whose key starts with ``key``.

    Raises :class:`UserError` if no key or more than one key matches.
    """
    root = baselines_folder(home)
    hint = "see: tradeassay baselines"
    if len(key) < LEAST_KEY or not key.isalnum():
        raise UserError(f"'{key}' is not the key of a trained baseline", hint=hint)
    places = [place for place in sorted(root.glob(f"{key}*")) if (place / FACTS_FILE).exists()]
    if not places:
        raise UserError(
            f"no trained baseline '{key}' in {root}",
            hint=f"{hint}; train one: tradeassay baselines",
        )
    if len(places) > 1:
        raise UserError(
            f"'{key}' matches {len(places)} keys", hint="give more characters of the key"
        )
    return _read_facts(places[0])


def _read_facts(folder: Path) -> TrainedBaseline:
    path = folder / FACTS_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=TrainedBaseline)
    except (OSError, *UNDECODABLE) as error:
        raise DataError(
            f"{path} is damaged: {error}", hint=f"delete {folder} and train again"
        ) from error


def load_trained(key: str, home: Path | None = None) -> tuple[TrainedBaseline, FittedModel]:
    """Return a trained baseline and its model.

    Raises :class:`UserError` for an unknown key, :class:`MissingExtra` without Qlib, and
    :class:`DataError` if the model's file is damaged or was replaced.
    """
    facts = find_trained(key, home)
    check_installed(facts.model)
    path = baselines_folder(home) / facts.key / MODEL_FILE
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(
            f"{path} cannot be read: {error.strerror}", hint="train it again"
        ) from error
    if sha256_bytes(content) != facts.model_sha256:
        raise DataError(
            f"{path} differs from the model that was trained",
            hint=f"delete {path.parent} and train again",
        )
    return facts, FittedModel.from_bytes(content)
