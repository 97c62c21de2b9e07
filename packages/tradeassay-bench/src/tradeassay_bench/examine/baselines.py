"""Train the eighteen factor-model baselines of KTD-Fin and compare them with chance.

The models use nine factors. Samples are read from a snapshot through as-of views, once per window
length, and every model is trained on them. Results are stored by content hash. A trained baseline
trades as the agent ``factor-model`` with its key. The same model trained on shuffled outcomes shows
whether the baseline learned anything.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal

import msgspec
import numpy as np
from msgspec import Meta

from tradeassay.core.arrays import Floats, Ints
from tradeassay.core.errors import DataError, UserError
from tradeassay.core.hashing import sha256_bytes
from tradeassay.factors import standardise
from tradeassay.metrics.agreement import spearman_rho
from tradeassay_bench.agents.factor_models.catalogue import FactorModel, Size, factor_model
from tradeassay_bench.agents.factor_models.features import (
    FEATURES_VERSION,
    Matrix,
    Samples,
    factor_history,
    features,
)
from tradeassay_bench.agents.factor_models.fitting import (
    FACTS_FILE,
    FitConfig,
    FittedModel,
    RankIC,
    TrainedBaseline,
    TrainingRecipe,
    baselines_folder,
    check_installed,
    fit,
    load_trained,
    model_module,
    store_facts,
    store_trained,
)
from tradeassay_bench.core.executors import HERE, Spread
from tradeassay_bench.core.time import parse_day
from tradeassay_bench.data import Snapshot, load_dataset
from tradeassay_bench.play import Universe

Device = Literal["auto", "cpu", "gpu"]


class Span(msgspec.Struct, frozen=True):
    """A window from a first to a last ISO day, both included.

    Raises :class:`UserError` if it ends before it starts.
    """

    first: str
    last: str

    def __post_init__(self) -> None:
        if parse_day(self.first) > parse_day(self.last):
            raise UserError(
                f"the window {self.first}..{self.last} ends before it starts", hint="swap the days"
            )

    def __str__(self) -> str:
        return f"{self.first}..{self.last}"


def parse_span(text: str) -> Span:
    """Return the window in a text such as ``2015-01-05..2022-12-30``.

    Raises :class:`UserError` for any other text.
    """
    first, dots, last = text.partition("..")
    if not dots or not first or not last:
        raise UserError(f"'{text}' is not a window", hint="write it as 2015-01-05..2022-12-30")
    return Span(first, last)


class BaselineSpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The factor models to train, and their training data.

    A sample of session t has factors up to the close of t - 1. Its outcome is the return from the
    open of t to the open ``horizon`` sessions later. A sample belongs to a window if its outcome is
    known ``purge`` sessions before the window ends. This keeps the data of the next window out of
    it.

    ``valid`` decides when training stops. ``test`` is only measured. If ``test`` is None, it runs
    from the day after ``valid`` to the end of the data. If ``universe`` is None, it is the index
    IDX if the data has it, else all listed names. ``device`` "auto" uses a GPU if one is available.
    Scores are always computed on the CPU. ``shuffled`` trains on outcomes that are shuffled among
    the names of a day.

    Raises :class:`UserError` for an unknown model or windows that overlap.
    """

    dataset: str
    models: tuple[str, ...]
    train: Span
    valid: Span
    test: Span | None = None
    universe: str | None = None
    horizon: Annotated[int, Meta(ge=1)] = 5
    purge: Annotated[int, Meta(ge=0)] = 5
    size: Size = "full"
    seed: Annotated[int, Meta(ge=0)] = 0
    threads: Annotated[int, Meta(ge=1)] = 2
    device: Device = "auto"
    shuffled: bool = False

    def __post_init__(self) -> None:
        if not self.models:
            raise UserError("no factor model is given", hint="e.g. lightgbm,linear, or all")
        for name in self.models:
            factor_model(name)
        spans = [
            ("train", self.train),
            ("valid", self.valid),
            *([("test", self.test)] if self.test else []),
        ]
        for (one, earlier), (other, later) in pairwise(spans):
            if parse_day(later.first) <= parse_day(earlier.last):
                raise UserError(
                    f"the {other} window {later} starts before the {one} window {earlier} ends",
                    hint="choose consecutive windows",
                )
        if self.horizon < 1 or self.purge < 0:
            hint = "horizon >= 1, purge >= 0"
            raise UserError(
                f"no outcome can be computed with horizon {self.horizon} and purge {self.purge}",
                hint=hint,
            )


def make_samples(
    snapshot: Snapshot, universe: str, rows: range, *, window: int, horizon: int, purge: int = 0
) -> Samples:
    """Return the samples of the sessions in ``rows`` with a known outcome.

    The outcome must be known ``purge`` sessions before the last session. All data is read from the
    view at the close of the last of these sessions. The names that could be bought on a day are
    read from the view before its open. Raises :class:`UserError` if no sample remains.
    """
    view = snapshot.at(rows[-1], "close")
    factors = factor_history(view)
    opens = view.bars("open", adjust="total")
    eligible = Universe(universe, snapshot.at(rows[0], "pre_open"))
    found: list[tuple[np.datetime64, Ints, Matrix, Floats]] = []
    for row in range(max(rows[0], window), rows[-1] - horizon - purge + 1):
        before = snapshot.at(row, "pre_open")
        columns = eligible.at(before).columns
        matrix, known = features(factors[:, row - window : row, columns])
        with np.errstate(all="ignore"):
            earned = opens[row + horizon, columns] / opens[row, columns] - 1.0
        kept = known & before.tradable()[columns] & np.isfinite(earned)
        if np.count_nonzero(kept) >= 5:  # too few names for a comparison of names
            found.append((snapshot.sessions[row], columns[kept], matrix[kept], earned[kept]))
    if not found:
        raise UserError(
            f"there are no samples from {snapshot.sessions[rows[0]]} to "
            f"{snapshot.sessions[rows[-1]]}",
            hint="start a year after the first session of the data, or use a longer window",
        )
    return Samples(
        days=np.concatenate([np.full(len(columns), day) for day, columns, _, _ in found]),
        columns=np.concatenate([columns for _, columns, _, _ in found]),
        features=np.concatenate([matrix for _, _, matrix, _ in found]),
        returns=np.concatenate([earned for _, _, _, earned in found]),
        labels=np.concatenate([standardise(earned[None])[0] for _, _, _, earned in found]),
    )


def score_samples(fitted: FittedModel, samples: Samples) -> Floats:
    """Return the score of every sample, computed in batches.

    The score of a name does not depend on the other names.
    """
    return np.concatenate(
        [fitted.scores(samples.features[k : k + 4096]) for k in range(0, len(samples), 4096)]
    )


def daily_rank_ic(scores: Floats, samples: Samples) -> Floats:
    """Return each day's Spearman correlation of scores and returns; 0 if all scores are equal."""
    daily = np.array(
        [spearman_rho(scores[rows], samples.returns[rows]) for rows in samples.by_day()]
    )
    return np.where(np.isnan(daily), 0.0, daily)


def mean_rank_ic(daily: Floats, horizon: int) -> RankIC:
    """Return the mean rank correlation with its standard error.

    Outcomes of ``horizon`` sessions overlap. The Newey-West error allows for that.
    """
    return RankIC(
        mean=float(daily.mean()), error=newey_west(daily, horizon - 1), days=int(daily.size)
    )


def newey_west(series: Floats, lags: int) -> float | None:
    """Return the standard error of a mean with ``lags`` autocovariances.

    Returns None for fewer than two values.
    """
    n = series.size
    if n < 2:
        return None
    gap = series - series.mean()
    variance = float(gap @ gap) / n
    for lag in range(1, min(lags, n - 1) + 1):
        variance += 2.0 * (1.0 - lag / (lags + 1.0)) * float(gap[lag:] @ gap[:-lag]) / n
    return math.sqrt(max(variance, 0.0) / n)


Listener = Callable[[str], None]
"""A function that is called with a line of progress."""
_DISTRIBUTIONS = {"xgboost": ("xgboost", "xgboost-cpu")}


def train_baselines(
    spec: BaselineSpec,
    *,
    home: Path | None = None,
    listen: Listener | None = None,
    spread: Spread = HERE,
) -> tuple[TrainedBaseline, ...]:
    """Train the models that are not in the store. Return all models in the order of the spec.

    The models are measured on the test window. ``spread`` distributes the training. Raises
    :class:`UserError` if the data is too short or a required GPU is missing, and
    :class:`MissingExtra` if Qlib is not installed.
    """
    for name in spec.models:
        check_installed(factor_model(name))
    work = Workshop(spec, home=home, listen=listen)
    if spread.executor == "inline":  # Models with the same window share its samples.
        return tuple(work.baseline(name) for name in spec.models)

    def tell(place: int, _: object) -> None:
        if listen is not None:
            listen(f"{factor_model(spec.models[place]).title} is done")

    return tuple(spread.map(partial(_trained, spec, home), spec.models, done=tell))


def _trained(spec: BaselineSpec, home: Path | None, name: str) -> TrainedBaseline:
    return Workshop(spec, home=home).baseline(name)


class Workshop:
    """Trains the models of one spec.

    Samples are computed on first use and are shared by models with the same window.
    """

    def __init__(
        self, spec: BaselineSpec, *, home: Path | None = None, listen: Listener | None = None
    ) -> None:
        self.spec = spec
        self.home = home
        self._say = listen or (lambda _: None)
        self.snapshot = load_dataset(spec.dataset, home)
        self.universe = "IDX" if spec.universe is None else spec.universe
        if spec.universe is None:
            try:
                self.snapshot.at(len(self.snapshot.sessions) - 1, "pre_open").members("IDX")
            except DataError:
                self.universe = "all"
        self._rows = {
            "train": self.snapshot.rows(spec.train.first, spec.train.last),
            "valid": self.snapshot.rows(spec.valid.first, spec.valid.last),
        }
        after, days = self._rows["valid"][-1] + 1, self.snapshot.sessions
        self.test = spec.test or (
            Span(str(days[after]), str(days[-1])) if after < days.size else None
        )
        if self.test is not None:
            self._rows["test"] = self.snapshot.rows(self.test.first, self.test.last)
        self._made: dict[tuple[str, int], Samples] = {}

    def baseline(self, name: str) -> TrainedBaseline:
        """Return a trained baseline. It is trained only if it is not in the store."""
        model = factor_model(name)
        spec, versions = self.spec, dict[str, str]()
        for package in ("pyqlib", "numpy", *model.packages):
            for distribution in _DISTRIBUTIONS.get(package, (package,)):
                try:
                    versions[package] = version(distribution)
                    break
                except PackageNotFoundError:
                    continue
        # All inputs that determine a trained model.
        recipe = TrainingRecipe(
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
            versions=versions,
        )
        key, stored = recipe.key, None
        if (baselines_folder(self.home) / key / FACTS_FILE).exists():
            try:
                stored = load_trained(key, self.home)
                self._say(f"{model.title}: {key} is already trained")
            except DataError:  # A damaged baseline is trained again.
                pass
        facts, fitted = stored or self._train(model, recipe, key)
        wanted = None if self.test is None else (self.test.first, self.test.last)
        if facts.test != wanted:
            daily = self.test_days(fitted)
            measured = None if daily is None else mean_rank_ic(daily, self.spec.horizon)
            facts = msgspec.structs.replace(facts, test=wanted, test_ic=measured)
            store_facts(facts, self.home)
        return facts

    def samples(self, part: str, window: int) -> Samples:
        if (part, window) not in self._made:
            self._made[part, window] = make_samples(
                self.snapshot,
                self.universe,
                self._rows[part],
                window=window,
                horizon=self.spec.horizon,
                purge=0 if part == "test" else self.spec.purge,
            )
        return self._made[part, window]

    def test_days(self, fitted: FittedModel) -> Floats | None:
        """Return the daily rank correlations on the test window; None if there is no test
        window.
        """
        if self.test is None:
            return None
        samples = self.samples("test", fitted.window)
        return daily_rank_ic(score_samples(fitted, samples), samples)

    def _train(
        self, model: FactorModel, recipe: TrainingRecipe, key: str
    ) -> tuple[TrainedBaseline, FittedModel]:
        """Train a model, measure it on the validation window, store it, and return it."""
        train, valid = self.samples("train", recipe.window), self.samples("valid", recipe.window)
        self._say(f"{model.title}: training on {len(train)} samples ...")
        taught = (train, valid)
        if recipe.shuffled:
            rng = np.random.default_rng([recipe.seed, 1])
            taught = (train.shuffled(rng), valid.shuffled(rng))
        model_module(model)
        begun = time.process_time()
        config = FitConfig(
            size=recipe.size, seed=recipe.seed, threads=recipe.threads, gpu=recipe.gpu
        )
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


def use_gpu(spec: BaselineSpec, model: FactorModel) -> bool:
    """Return whether a model is trained on a GPU.

    Raises :class:`UserError` if the spec requires a GPU and none is available.
    """
    if spec.device == "cpu" or not model.torch:
        return False
    import torch

    found = bool(torch.cuda.is_available())
    if spec.device == "gpu" and not found:
        raise UserError(
            "no GPU is available on this machine",
            hint="use device='cpu', or install a CUDA build of torch",
        )
    return found


class ShuffleContrast(msgspec.Struct, frozen=True, kw_only=True):
    """A model compared with the same model trained on shuffled outcomes, on the test window.

    ``gain`` is the mean daily difference of the two rank correlations. ``beats`` is true if it is
    significantly above zero (5 %, one-sided).
    """

    trained: TrainedBaseline
    shuffled: TrainedBaseline
    gain: RankIC
    beats: bool


def contrast(
    spec: BaselineSpec,
    *,
    home: Path | None = None,
    listen: Listener | None = None,
    spread: Spread = HERE,
) -> tuple[ShuffleContrast, ...]:
    """Train every model of ``spec`` on true and on shuffled outcomes and compare the two.

    The comparison is daily, on the test window. ``spread`` distributes the training. Raises
    :class:`UserError` if the test window is empty.
    """
    true = msgspec.structs.replace(spec, shuffled=False)
    null = msgspec.structs.replace(spec, shuffled=True)
    if (
        spread.executor != "inline"
    ):  # Both models are trained and stored. Here they are only compared.
        for each in (true, null):
            train_baselines(each, home=home, listen=listen, spread=spread)
    one, other = Workshop(true, home=home, listen=listen), Workshop(null, home=home, listen=listen)
    found = []
    for name in spec.models:
        pair = one.baseline(name), other.baseline(name)
        taught, guessed = (one.test_days(load_trained(each.key, home)[1]) for each in pair)
        if taught is None or guessed is None:
            raise UserError(
                "the test window has no sessions", hint="end the validation window earlier"
            )
        gain = mean_rank_ic(taught - guessed, spec.horizon)
        beats = gain.error is not None and gain.mean > 1.6449 * gain.error  # one-sided, at 5 %
        found.append(ShuffleContrast(trained=pair[0], shuffled=pair[1], gain=gain, beats=beats))
    return tuple(found)
