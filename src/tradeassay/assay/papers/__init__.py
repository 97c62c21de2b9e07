"""The papers' own tables and figures, from recorded runs: every one of them in the paper's order, with ours in it.

Everything is computed from journals, scores and the hashed data, and asks no model. Cells are measures: a number
with its interval, or a reason. What some runs do not hold (one mask, no factor models) is said in its place.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tradeassay.assay.papers.cells import latency
from tradeassay.assay.papers.ktdfin import ktdfin_page
from tradeassay.assay.papers.stockbench import stockbench_page
from tradeassay.assay.probe import ProbeReport
from tradeassay.benchmarks.exhibits import PaperPage
from tradeassay.core.errors import UserError
from tradeassay.runs import CodeRun, Run


def paper_page(
    runs: Sequence[Run | CodeRun], *, attribution: bool = True, probe: ProbeReport | None = None
) -> PaperPage:
    """Return a paper with everything that some runs of its benchmarks fill. ``attribution`` takes every account
    apart, for KTD-Fin's parts and exposures; ``probe`` is what attackers of its masks recovered. Raises
    :class:`UserError` for runs of no paper or of several, :class:`~tradeassay.core.errors.RunError` for one that
    has not been scored."""
    trading = [run for run in runs if isinstance(run, Run)]
    found = {paper for run in runs for paper in papers_of(run)}
    if len(found) != 1:
        named = ", ".join(sorted(found)) or "none"
        raise UserError(f"one paper's runs are wanted, these are of {named}", hint="name runs of one benchmark")
    paper = found.pop()
    if paper == "ktdfin":
        return ktdfin_page(trading, attribution=attribution, probe=probe)
    if paper == "stockbench":
        return stockbench_page(trading)
    return programs_page([run for run in runs if isinstance(run, CodeRun)])


def papers_of(run: Run | CodeRun) -> tuple[str, ...]:
    if isinstance(run, CodeRun):
        return (run.benchmark.partition("-")[0],) if run.benchmark.startswith(("quantcode-", "systrade-")) else ()
    protocols = {run.manifest.benchmark(episode).protocol for episode in run.episodes}
    return tuple(one for one in ("ktdfin", "stockbench") if one in protocols)


def paper_pages(run: Run) -> tuple[PaperPage, ...]:
    """Return the pages that one run fills, no account taken apart; none for a benchmark without a paper."""
    return tuple(
        ktdfin_page([run], attribution=False) if paper == "ktdfin" else stockbench_page([run])
        for paper in papers_of(run)
    )


def programs_page(runs: Sequence[CodeRun]) -> PaperPage:
    """Return the paper with what some runs of one benchmark fill of it. Raises :class:`UserError` where two runs
    had different tasks of SysTradeBench: they have no common table."""
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
