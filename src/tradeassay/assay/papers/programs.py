"""The two papers about programs, from one or several runs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tradeassay.assay.papers.cells import latency
from tradeassay.benchmarks.exhibits import PaperPage
from tradeassay.core.errors import UserError
from tradeassay.runs import CodeRun


def programs_page(runs: Sequence[CodeRun]) -> PaperPage:
    """Return the paper with what some runs of one benchmark fill of it.

    Raises :class:`UserError` where two runs had different tasks of SysTradeBench: they have no common table.
    """
    from tradeassay.benchmarks.quantcode.tables import quantcode_paper
    from tradeassay.benchmarks.systrade.tables import systrade_paper

    times = latency(runs)
    if runs[0].benchmark.startswith("quantcode-"):
        cells = [cell for run in runs for cell in run.scores.cells]
        specs = [(run.spec, len({item.task for item in run.episodes})) for run in runs]
        return quantcode_paper(specs, cells, times)
    first = runs[0]
    if len(runs) == 1:
        return systrade_paper(first.spec, first.scores, first.records(), times)
    if len({(run.benchmark, run.spec.chosen, run.spec.dataset, run.spec.seeds) for run in runs}) > 1:
        raise UserError("the runs have other strategies, data or seeds", hint="name runs of the same items")
    records = {key: record for run in runs for key, record in run.records().items()}
    models = tuple(dict.fromkeys(model for run in runs for model in run.spec.models))
    iterations = max(run.spec.iterations for run in runs)
    reviewers = tuple(dict.fromkeys(one for run in runs for one in run.spec.reviewers))
    merged = msgspec.structs.replace(first.spec, models=models, iterations=iterations, reviewers=reviewers)
    return systrade_paper(merged, first.kind(merged).score(records), records, times)
