"""Trained baselines on disk: one folder each, named by the hash of everything that made it.

``<home>/baselines/<key>/`` holds ``baseline.json`` (what it is, and how well it ranked) and ``model.bin`` (the
fitted model, a Python pickle whose hash is in the former).
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tradeassay.agents.factor_models.catalogue import FactorModel, Size, factor_model
from tradeassay.agents.factor_models.fitting import FittedModel, check_installed
from tradeassay.core.errors import UNDECODABLE, DataError, UserError
from tradeassay.core.files import data_home
from tradeassay.core.hashing import sha256_bytes, sha256_of

FACTS_FILE, MODEL_FILE = "baseline.json", "model.bin"
KEY_LENGTH = 16
LEAST_KEY = 6
"""A prefix of a key is enough to name it, if it has at least this many characters."""


class RankIC(msgspec.Struct, frozen=True, kw_only=True):
    """Mean daily rank correlation of scores and outcomes over ``days`` sessions.

    ``error`` is its standard error, with the overlap of outcomes allowed for (Newey-West); None below two days."""

    mean: float
    error: float | None
    days: int


class TrainingRecipe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that decides what a trained model is; the name of the data set is for people only.

    Windows are ISO days, both ends included. ``settings`` are the arguments of Qlib's class, ``versions`` the
    packages that compute. ``shuffled`` outcomes were permuted among the names of each day."""

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
        """The hash of everything but the data set's name: equal content, equal key."""
        return sha256_of(msgspec.structs.replace(self, dataset=""))[:KEY_LENGTH]


class TrainedBaseline(msgspec.Struct, frozen=True, kw_only=True):
    """A trained factor model. ``seen_until`` is the last day that training or early stopping saw."""

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
    """Write a trained baseline, whole or not at all, and return its folder."""
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
    path = baselines_folder(home) / facts.key / FACTS_FILE
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    temporary.write_bytes(_encoded(facts))
    os.replace(temporary, path)


def _encoded(facts: TrainedBaseline) -> bytes:
    return msgspec.json.format(msgspec.json.encode(facts, order="sorted"), indent=2) + b"\n"


def list_trained(home: Path | None = None) -> tuple[TrainedBaseline, ...]:
    """Return the trained baselines, by data set, model and key; a damaged one is left out."""
    found = sorted(
        _readable(baselines_folder(home)), key=lambda one: (one.recipe.dataset, one.recipe.model, one.key)
    )
    return tuple(found)


def _readable(root: Path) -> Iterator[TrainedBaseline]:
    if not root.is_dir():
        return
    for folder in root.iterdir():
        if not folder.name.startswith(".") and (folder / FACTS_FILE).exists():
            try:
                yield _read_facts(folder)
            except DataError:
                continue


def find_trained(key: str, home: Path | None = None) -> TrainedBaseline:
    """Return the baseline whose key starts with ``key``.

    Raises :class:`UserError` when there is none, or more than one."""
    root = baselines_folder(home)
    hint = "see: tradeassay baselines"
    if len(key) < LEAST_KEY or not key.isalnum():
        raise UserError(f"'{key}' is not the key of a trained baseline", hint=hint)
    places = [place for place in sorted(root.glob(f"{key}*")) if (place / FACTS_FILE).exists()]
    if not places:
        raise UserError(f"no trained baseline '{key}' in {root}", hint=f"{hint}; train one: tradeassay baselines")
    if len(places) > 1:
        raise UserError(f"'{key}' is the start of {len(places)} keys", hint="write more of it")
    return _read_facts(places[0])


def _read_facts(folder: Path) -> TrainedBaseline:
    path = folder / FACTS_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=TrainedBaseline)
    except (OSError, *UNDECODABLE) as error:
        raise DataError(f"{path} is damaged: {error}", hint=f"delete {folder} and train again") from error


def load_trained(key: str, home: Path | None = None) -> tuple[TrainedBaseline, FittedModel]:
    """Return a trained baseline and its model.

    Raises :class:`UserError` for an unknown key, :class:`MissingExtra` without Qlib, and :class:`DataError` when
    the model's file is not the one that was trained."""
    facts = find_trained(key, home)
    check_installed(facts.model)
    path = baselines_folder(home) / facts.key / MODEL_FILE
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror}", hint="train it again") from error
    if sha256_bytes(content) != facts.model_sha256:
        raise DataError(f"{path} is not the file that was trained", hint=f"delete {path.parent} and train again")
    return facts, FittedModel.from_bytes(content)
