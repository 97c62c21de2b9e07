"""The papers' own tables and figures, from recorded runs: every one of them in the paper's order, with ours in it.

Everything is computed from journals, scores and the hashed data, and asks no model. Cells are measures: a number
with its interval, or a reason. What some runs do not hold (one mask, no factor models) is said in its place.
"""

from __future__ import annotations

from collections.abc import Sequence

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
    """Return the paper of a benchmark of programs with what some runs fill of it.

    Raises :class:`UserError` where two runs had different tasks: they have no common table."""
    return runs[0].kind.paper(runs, latency(runs))
