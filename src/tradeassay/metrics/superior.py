"""Is any of many strategies better than the benchmark, and which of them cannot be told apart from the best?

Hansen's test for superior predictive ability (2005), Romano and Wolf's StepM (2005) and the model confidence
set of Hansen, Lunde and Nason (2011), all by the package ``arch``. Resamples are seeded by the numbers
themselves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np

from tradeassay.core.errors import UserError
from tradeassay.core.view import Floats
from tradeassay.metrics.bootstrap import BootstrapConfig, choose_block, content_seed
from tradeassay.metrics.intervals import significant

DEFAULT = BootstrapConfig()


class Superior(msgspec.Struct, frozen=True, kw_only=True):
    """``p_value``: of the hypothesis that none beats the benchmark (consistent; ``lower`` and ``upper`` bound it).

    ``better`` names the strategies that StepM finds better, with a chance of at most 1 - level of even one
    false alarm. None and a ``reason`` where nothing could be tested.
    """

    p_value: float | None
    lower: float | None
    upper: float | None
    better: tuple[str, ...]
    level: float
    reason: str | None = None


class ConfidenceSet(msgspec.Struct, frozen=True, kw_only=True):
    """``included``: strategies that cannot be told apart from the best at ``level``; ``p_values`` by name.

    A strategy is in the set when its p-value is above 1 - level.
    """

    included: tuple[str, ...]
    excluded: tuple[str, ...]
    p_values: dict[str, float]
    level: float
    reason: str | None = None


def superior(
    returns: Floats, benchmark: Floats, names: Sequence[str] | None = None, *, bootstrap: BootstrapConfig = DEFAULT
) -> Superior:
    """Test whether any strategy has a higher mean return than the benchmark.

    ``returns`` has shape (n, strategies), ``benchmark`` (n,). Give log growth to compare growth. Strategies
    that equal the benchmark are left out. Raises :class:`UserError` for shapes that do not fit or missing
    numbers.
    """
    table, base = _checked(returns), np.asarray(benchmark, dtype=np.float64)
    if base.shape != table.shape[:1] or not np.isfinite(base).all():
        raise UserError(
            f"{base.shape} benchmark returns for {table.shape}", mend="give one per session, without gaps"
        )
    labels = _labels(names, table.shape[1])
    gap = table - base[:, None]
    moving = np.flatnonzero(gap.std(axis=0) > 1e-15)
    none = Superior(p_value=None, lower=None, upper=None, better=(), level=bootstrap.level)
    if table.shape[0] < bootstrap.least:
        return msgspec.structs.replace(
            none, reason=f"{table.shape[0]} sessions, at least {bootstrap.least} are needed"
        )
    if not moving.size:
        return msgspec.structs.replace(none, reason="no strategy differs from the benchmark")
    from arch.bootstrap import SPA, StepM

    settings = _settings(gap[:, moving], bootstrap)
    # arch compares losses: a return is a negative loss.
    test = SPA(-base, -table[:, moving], **settings)
    test.compute()
    steps = StepM(-base, -table[:, moving], size=1.0 - bootstrap.level, **settings)
    steps.compute()
    better = tuple(labels[moving[int(place)]] for place in steps.superior_models)
    lower, consistent, upper = (significant(float(test.pvalues[one])) for one in ("lower", "consistent", "upper"))
    return Superior(p_value=consistent, lower=lower, upper=upper, better=better, level=bootstrap.level)


def model_confidence_set(
    returns: Floats, names: Sequence[str] | None = None, *, bootstrap: BootstrapConfig = DEFAULT
) -> ConfidenceSet:
    """Return the strategies that cannot be told apart from the best by their mean return.

    ``returns`` has shape (n, strategies). Raises :class:`UserError` for another shape, gaps, or fewer than two
    strategies.
    """
    table = _checked(returns)
    labels = _labels(names, table.shape[1])
    if table.shape[1] < 2:
        raise UserError("one strategy is its own confidence set", mend="give at least two")
    if table.shape[0] < bootstrap.least:
        reason = f"{table.shape[0]} sessions, at least {bootstrap.least} are needed"
        return ConfidenceSet(included=labels, excluded=(), p_values={}, level=bootstrap.level, reason=reason)
    twins = [(a, b) for b in range(table.shape[1]) for a in range(b) if np.array_equal(table[:, a], table[:, b])]
    if twins:
        a, b = twins[0]
        raise UserError(f"'{labels[a]}' and '{labels[b]}' are the same series", mend="give it once")
    from arch.bootstrap import MCS

    spread = table - table.mean(axis=1, keepdims=True)
    test = MCS(-table, size=1.0 - bootstrap.level, **_settings(spread, bootstrap))
    test.compute()
    found = {int(place): float(p) for place, p in test.pvalues["Pvalue"].items()}
    return ConfidenceSet(
        included=tuple(labels[place] for place in sorted(int(one) for one in test.included)),
        excluded=tuple(labels[place] for place in sorted(int(one) for one in test.excluded)),
        p_values={labels[place]: significant(found[place]) for place in sorted(found)},
        level=bootstrap.level,
    )


def _settings(gap: Floats, config: BootstrapConfig) -> dict[str, Any]:
    block = max(choose_block(np.ascontiguousarray(gap[:, k]), config) for k in range(gap.shape[1]))
    return {
        "block_size": max(1, round(block)),
        "reps": config.draws,
        "bootstrap": "stationary",
        "seed": content_seed(config, gap) % 2**32,
    }


def _checked(returns: Floats) -> Floats:
    table = np.asarray(returns, dtype=np.float64)
    if table.ndim != 2 or not table.size or not np.isfinite(table).all():
        raise UserError(
            f"{table.shape} returns with gaps, or not two-dimensional", mend="give (sessions, strategies)"
        )
    return table


def _labels(names: Sequence[str] | None, count: int) -> tuple[str, ...]:
    labels = tuple(str(place) for place in range(count)) if names is None else tuple(names)
    if len(labels) != count or len(set(labels)) != count:
        raise UserError(f"{len(labels)} names for {count} strategies", mend="give each its own name")
    return labels
