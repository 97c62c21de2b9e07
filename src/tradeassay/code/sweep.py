"""Many backtests at once: variants of strategies on many tapes, every one at all cost levels.

A strategy decides once per variant and tape; cost levels only re-price what it decided. Compiled code releases
Python's lock, so threads share the tapes; on Ray the same batches run on other machines and give the same bytes.
"""

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import msgspec
import numpy as np

from tradeassay.account.shares import COSTS_BP
from tradeassay.code.semantics.compiler import KernelTape, run_compiled
from tradeassay.code.semantics.interpreter import Semantics
from tradeassay.core.executors import Spread
from tradeassay.core.executors.task import ExecutorName, cores


@dataclass(frozen=True, slots=True)
class Batch:
    """One strategy on one tape, with all its variants (parameters by name)."""

    semantics: Semantics
    tape: KernelTape
    tape_name: str
    variants: tuple[Mapping[str, float], ...]


class Backtested(msgspec.Struct, frozen=True, kw_only=True):
    """One backtest: what 1 became, what was paid, what was traded, and in how many decisions."""

    strategy: str
    tape: str
    variant: int
    cost_bp: float
    final: float
    fees: float
    traded: float
    decisions: int


def run_batch(batch: Batch, costs_bp: Sequence[float] = COSTS_BP) -> tuple[Backtested, ...]:
    """Return the backtests of a batch, by variant and cost."""
    from tradeassay.account.compiled.shares import price_decisions

    found = []
    for number, variant in enumerate(batch.variants):
        decisions = run_compiled(batch.semantics, batch.tape, variant)
        priced = price_decisions(decisions, batch.tape.close, costs_bp)
        figures = (getattr(priced, name).tolist() for name in ("final", "fees", "traded"))
        for cost, final, fees, traded in zip(costs_bp, *figures, strict=True):
            found.append(
                Backtested(
                    strategy=batch.semantics.id,
                    tape=batch.tape_name,
                    variant=number,
                    cost_bp=cost,
                    final=final,
                    fees=fees,
                    traded=traded,
                    decisions=len(decisions),
                )
            )
    return tuple(found)


def sweep(
    batches: Iterable[Batch],
    costs_bp: Sequence[float] = COSTS_BP,
    *,
    workers: int | None = None,
    executor: ExecutorName = "local",
) -> tuple[Backtested, ...]:
    """Return all backtests in the order of the batches; ``local`` are threads, for kernels drop Python's lock."""
    listed = tuple(batches)
    one = partial(run_batch, costs_bp=tuple(costs_bp))
    if executor == "local":
        with ThreadPoolExecutor(workers or cores()) as pool:
            parts = list(pool.map(one, listed))
    else:
        parts = Spread(executor=executor, workers=workers).map(one, listed)
    return tuple(row for part in parts for row in part)


def spread_parameters(semantics: Semantics, count: int, seed: int = 0) -> tuple[dict[str, float], ...]:
    """Return ``count`` settings around the frozen ones, which come first."""
    generator = np.random.default_rng(seed)
    found: list[dict[str, float]] = [{}]
    while len(found) < count:
        changed = {}
        for name, parameter in semantics.parameters.items():
            value = parameter.value * float(generator.uniform(0.7, 1.3))
            changed[name] = float(max(2, round(value))) if parameter.kind == "int" else value
        found.append(changed)
    return tuple(found)
