"""Training baselines: samples once per length of window, every model on them, everything kept by content hash."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec
import numpy as np

from tradeassay.agents.factor_models.catalogue import FactorModel, factor_model
from tradeassay.agents.factor_models.dataset import Samples
from tradeassay.agents.factor_models.features import FEATURES_VERSION
from tradeassay.agents.factor_models.fitting import FitConfig, FittedModel, fit
from tradeassay.agents.factor_models.qlib_world import check_installed, model_module
from tradeassay.agents.factor_models.trained import (
    FACTS_FILE,
    RankIC,
    Recipe,
    TrainedBaseline,
    baselines_folder,
    load_trained,
    store_facts,
    store_trained,
)
from tradeassay.assay.baselines.rank_ic import daily_rank_ic, mean_rank_ic, score_samples
from tradeassay.assay.baselines.samples import make_samples, resolve_universe
from tradeassay.assay.baselines.spec import BaselineSpec, Span
from tradeassay.core.errors import DataError, UserError
from tradeassay.core.hashing import sha256_bytes
from tradeassay.data import Snapshot, load_dataset

Listener = Callable[[str], None]
"""Is told, in words, what is being done."""
_COMPUTING = ("pyqlib", "numpy")
_DISTRIBUTIONS = {"xgboost": ("xgboost", "xgboost-cpu")}


def train_baselines(
    spec: BaselineSpec, *, home: Path | None = None, listen: Listener | None = None
) -> tuple[TrainedBaseline, ...]:
    """Train what is not there yet, measure it on the test window, and return all of it in the order asked for.

    Raises :class:`UserError` for data that is too short or a GPU that is not there, and :class:`MissingExtra`
    without Qlib.
    """
    for name in spec.models:
        check_installed(factor_model(name))
    work = Workshop(spec, home=home, listen=listen)
    return tuple(work.baseline(name) for name in spec.models)


class Workshop:
    """One spec at work. Samples are made when first needed and shared by the models that see the same window."""

    def __init__(self, spec: BaselineSpec, *, home: Path | None = None, listen: Listener | None = None) -> None:
        self.spec = spec
        self.home = home
        self._say = listen or (lambda _: None)
        self.snapshot = load_dataset(spec.dataset, home)
        self.universe = resolve_universe(self.snapshot, spec.universe)
        self._rows = {
            "train": self.snapshot.rows(spec.train.first, spec.train.last),
            "valid": self.snapshot.rows(spec.valid.first, spec.valid.last),
        }
        test = spec.test or _rest(self.snapshot, self._rows["valid"][-1])
        self.test = test
        if test is not None:
            self._rows["test"] = self.snapshot.rows(test.first, test.last)
        self._made: dict[tuple[str, int], Samples] = {}

    def baseline(self, name: str) -> TrainedBaseline:
        """Return a trained baseline, from the store when it is there."""
        model = factor_model(name)
        recipe = self.recipe(model)
        key = recipe.key
        stored = self._stored(key)
        if stored is not None:
            self._say(f"{model.title}: {key} is there")
        facts, fitted = stored if stored is not None else self._train(model, recipe, key)
        wanted = None if self.test is None else (self.test.first, self.test.last)
        if facts.test != wanted:
            facts = msgspec.structs.replace(facts, test=wanted, test_ic=self._test_ic(fitted))
            store_facts(facts, self.home)
        return facts

    def recipe(self, model: FactorModel) -> Recipe:
        """Return everything that decides what a trained model will be."""
        spec = self.spec
        return Recipe(
            model=model.name,
            dataset=self.snapshot.name,
            data_sha256=self.snapshot.sha256,
            universe=self.universe,
            features=FEATURES_VERSION,
            window=model.window(spec.size),
            train=(spec.train.first, spec.train.last),
            valid=(spec.valid.first, spec.valid.last),
            horizon=spec.horizon,
            purge=spec.purge,
            size=spec.size,
            settings={**model.settings(spec.size), "fit": model.fit_settings(spec.size)},
            seed=spec.seed,
            threads=spec.threads,
            gpu=use_gpu(spec, model),
            shuffled=spec.shuffled,
            versions=_versions(model),
        )

    def samples(self, part: str, window: int) -> Samples:
        """Return the samples of ``train``, ``valid`` or ``test``."""
        if (part, window) not in self._made:
            self._made[part, window] = make_samples(
                self.snapshot, self.universe, self._rows[part], window=window, horizon=self.spec.horizon,
                purge=0 if part == "test" else self.spec.purge,
            )  # fmt: skip
        return self._made[part, window]

    def test_days(self, fitted: FittedModel) -> np.ndarray[tuple[int], np.dtype[np.float64]] | None:
        """Return the daily rank correlations on the test window; None without one."""
        if self.test is None:
            return None
        samples = self.samples("test", fitted.window)
        return daily_rank_ic(score_samples(fitted, samples), samples)

    def _test_ic(self, fitted: FittedModel) -> RankIC | None:
        daily = self.test_days(fitted)
        return None if daily is None else mean_rank_ic(daily, self.spec.horizon)

    def _train(self, model: FactorModel, recipe: Recipe, key: str) -> tuple[TrainedBaseline, FittedModel]:
        train, valid = self.samples("train", recipe.window), self.samples("valid", recipe.window)
        self._say(f"{model.title}: training on {len(train)} samples ...")
        taught = (train, valid)
        if recipe.shuffled:
            rng = np.random.default_rng([recipe.seed, 1])
            taught = (train.shuffled(rng), valid.shuffled(rng))
        model_module(model)
        begun = time.process_time()
        config = FitConfig(size=recipe.size, seed=recipe.seed, threads=recipe.threads, gpu=recipe.gpu)
        fitted = fit(model.name, *taught, config)
        spent = time.process_time() - begun
        daily = daily_rank_ic(score_samples(fitted, valid), valid)
        facts = TrainedBaseline(
            key=key,
            recipe=recipe,
            seen_until=recipe.valid[1],
            train_samples=len(train),
            valid_samples=len(valid),
            valid_ic=mean_rank_ic(daily, recipe.horizon),
            model_sha256=sha256_bytes(content := fitted.to_bytes()),
            cpu_seconds=round(spent, 3),
        )
        store_trained(facts, content, self.home)
        return facts, fitted

    def _stored(self, key: str) -> tuple[TrainedBaseline, FittedModel] | None:
        if not (baselines_folder(self.home) / key / FACTS_FILE).exists():
            return None
        try:
            return load_trained(key, self.home)
        except DataError:
            # A damaged one is trained again.
            return None


def use_gpu(spec: BaselineSpec, model: FactorModel) -> bool:
    """Return whether a model is trained on a GPU; raises :class:`UserError` when one is asked for and missing."""
    if spec.device == "cpu" or not model.torch:
        return False
    import torch

    found = bool(torch.cuda.is_available())
    if spec.device == "gpu" and not found:
        raise UserError("no GPU is found here", mend="use --device cpu, or install a CUDA build of torch")
    return found


def _rest(snapshot: Snapshot, last_valid: int) -> Span | None:
    """Return what comes after the validation window; None when nothing does."""
    days = snapshot.sessions
    return None if last_valid + 1 >= days.size else Span(str(days[last_valid + 1]), str(days[-1]))


def _versions(model: FactorModel) -> dict[str, str]:
    found = {}
    for package in (*_COMPUTING, *model.packages):
        for distribution in _DISTRIBUTIONS.get(package, (package,)):
            try:
                found[package] = version(distribution)
            except PackageNotFoundError:
                continue
            break
    return found
