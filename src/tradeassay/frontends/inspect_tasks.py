"""``inspect eval tradeassay/ktdfin`` and ``tradeassay/stockbench``: the same conversations, driven by Inspect.
``tradeassay/quantcode`` and ``tradeassay/systrade`` are in :mod:`tradeassay.frontends.inspect_code`.

Market, protocol and rules are those of :mod:`tradeassay.runs`; Inspect brings the model, its connections and its
log. A sample is an episode. The journal is in the sample's store under ``tradeassay:events``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig

from tradeassay.core.draws import draw_secret
from tradeassay.core.errors import UserError
from tradeassay.frontends.inspect_code import quantcode, systrade
from tradeassay.frontends.inspect_episode import outcome_scorer, play_episode
from tradeassay.frontends.prepared import PreparedEpisode, plots_for
from tradeassay.runs.spec.models import params_for
from tradeassay.runs.spec.run_spec import ParamValue

__all__ = ["ktdfin", "quantcode", "stockbench", "systrade"]


@task
def ktdfin(
    mask: str = "blinded",
    mode: str = "open-research",
    benchmark: str = "ktdfin-v1",
    window: str | None = None,
    dataset: str | None = None,
    seeds: int = 1,
    days: int | None = None,
    settings: dict[str, ParamValue] | None = None,
) -> Task:
    """KTD-Fin: a model trades while a mask hides names, dates or both.

    Args:
        mask: What is hidden: bright, stock-blind, date-blind or blinded.
        mode: What the model is given: memory-only, fixed-candidate or open-research.
        benchmark: Which of the family, e.g. ktdfin-us-v1.
        window: Named sessions, e.g. W4; all of the benchmark's without it.
        dataset: A data set other than the benchmark's own.
        seeds: Episodes with other aliases each.
        days: Stop after this many sessions.
        settings: Anything else of the conversation.
    """
    changed: dict[str, ParamValue] = {"mask": mask, "mode": mode, **(settings or {})}
    return _task(benchmark, changed, window=window, dataset=dataset, seeds=seeds, days=days)


@task
def stockbench(
    benchmark: str = "stockbench-v1",
    dataset: str | None = None,
    seeds: int = 1,
    days: int | None = None,
    settings: dict[str, ParamValue] | None = None,
) -> Task:
    """StockBench: four stages a day over a small universe of US stocks.

    Args:
        benchmark: Which of the family, e.g. stockbench-paper-v1.
        dataset: A data set other than the benchmark's own.
        seeds: Repetitions.
        days: Stop after this many sessions.
        settings: Inputs, prompt and whatever else the conversation takes.
    """
    return _task(benchmark, settings or {}, window=None, dataset=dataset, seeds=seeds, days=days)


def _task(
    benchmark: str,
    settings: Mapping[str, ParamValue],
    *,
    window: str | None,
    dataset: str | None,
    seeds: int,
    days: int | None,
) -> Task:
    if seeds < 1 or (days is not None and days < 1):
        raise UserError("seeds and days count from 1", hint="give a positive number")
    secret = draw_secret()
    plots = plots_for(benchmark, settings, window=window, dataset=dataset, seeds=seeds, secret=secret)
    first = plots[0]
    params = params_for(first.episode, first.benchmark)
    return Task(
        dataset=MemoryDataset([_sample(plot, days) for plot in plots], name=benchmark),
        solver=play_episode({plot.episode.key: plot for plot in plots}, days),
        scorer=outcome_scorer(),
        # Defaults of the benchmark; the command line takes precedence.
        config=GenerateConfig(
            temperature=params.temperature, max_tokens=params.max_tokens, attempt_timeout=round(params.timeout_s)
        ),
        metadata={"benchmark": benchmark, "settings": dict(first.benchmark.protocol_params), "secret": secret},
        # One episode that breaks must not end the others; whether all were played is what the scorer counts.
        fail_on_error=False,
    )


def _sample(plot: PreparedEpisode, days: int | None) -> Sample:
    market = plot.benchmark.market
    sessions = f"the first {days} sessions" if days is not None else "all sessions"
    metadata: dict[str, Any] = {"episode": plot.episode.key, "seed": plot.episode.seed}
    return Sample(
        id=plot.episode.key,
        input=f"{plot.benchmark.title}: {sessions} from {market.first} to {market.last}.",
        metadata=metadata,
    )
