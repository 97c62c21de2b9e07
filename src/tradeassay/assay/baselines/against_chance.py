"""Does a model know anything? The same model, trained on true and on shuffled outcomes, side by side."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tradeassay.agents.factor_models.trained import RankIC, TrainedBaseline, load_trained
from tradeassay.assay.baselines.rank_ic import mean_rank_ic
from tradeassay.assay.baselines.spec import BaselineSpec
from tradeassay.assay.baselines.train import Listener, Workshop
from tradeassay.core.errors import UserError

ONE_SIDED = 1.6449
"""Errors above zero at which a one-sided test at 5 % rejects."""


class Contrast(msgspec.Struct, frozen=True, kw_only=True):
    """A model against itself with shuffled outcomes, on the test window.

    ``gain`` is the mean daily difference of the two rank correlations; ``beats`` says that it is above zero at
    5 %, one-sided.
    """

    trained: TrainedBaseline
    shuffled: TrainedBaseline
    gain: RankIC
    beats: bool


def contrast(
    spec: BaselineSpec, *, home: Path | None = None, listen: Listener | None = None
) -> tuple[Contrast, ...]:
    """Train every model of ``spec`` twice and compare them day by day on the test window.

    Raises :class:`UserError` when nothing is left to test on.
    """
    true = Workshop(msgspec.structs.replace(spec, shuffled=False), home=home, listen=listen)
    null = Workshop(msgspec.structs.replace(spec, shuffled=True), home=home, listen=listen)
    return tuple(_compare(true, null, name) for name in spec.models)


def _compare(true: Workshop, null: Workshop, name: str) -> Contrast:
    trained, shuffled = true.baseline(name), null.baseline(name)
    one = true.test_days(load_trained(trained.key, true.home)[1])
    other = true.test_days(load_trained(shuffled.key, true.home)[1])
    if one is None or other is None:
        raise UserError("no session is left to test on", mend="end the validation window earlier")
    gain = mean_rank_ic(one - other, true.spec.horizon)
    return Contrast(
        trained=trained,
        shuffled=shuffled,
        gain=gain,
        beats=gain.error is not None and gain.mean > ONE_SIDED * gain.error,
    )
