"""Fill the papers' tables and figures with results of recorded runs, in the papers' order.

Everything is computed from journals, scores and the hashed data. No model is queried. A cell is a
number with its interval, or the reason why there is none. An exhibit that the runs cannot fill, for
example because they have a single mask, is replaced by a reason.
"""

from __future__ import annotations

from collections.abc import Sequence

from tradeassay.core.errors import UserError
from tradeassay_bench.benchmarks.exhibits import PaperPage
from tradeassay_bench.examine.probe import ProbeReport
from tradeassay_bench.papers.cells import latency
from tradeassay_bench.papers.ktdfin import ktdfin_page
from tradeassay_bench.papers.stockbench import stockbench_page
from tradeassay_bench.runs import CodeRun, Run


def paper_page(
    runs: Sequence[Run | CodeRun], *, attribution: bool = True, probe: ProbeReport | None = None
) -> PaperPage:
    """Return the page of a paper, filled with results of some runs of its benchmarks.

    ``attribution`` decomposes every account, which KTD-Fin's exhibits of parts and exposures need.
    ``probe`` is the report of the attacks on KTD-Fin's masks.

    Raises :class:`UserError` if the runs belong to no paper or to several, and
    :class:`~tradeassay_bench.core.errors.RunError` for a run without scores.
    """
    trading = [run for run in runs if isinstance(run, Run)]
    papers: set[str] = set()
    for run in runs:
        papers.update(papers_of(run))
    if len(papers) != 1:
        names = ", ".join(sorted(papers)) or "none"
        raise UserError(
            f"expected runs of one paper, got runs of {names}", hint="give runs of one benchmark"
        )
    paper = papers.pop()
    if paper == "ktdfin":
        return ktdfin_page(trading, attribution=attribution, probe=probe)
    if paper == "stockbench":
        return stockbench_page(trading)
    return programs_page([run for run in runs if isinstance(run, CodeRun)])


def papers_of(run: Run | CodeRun) -> tuple[str, ...]:
    """Return the ids of the papers whose benchmarks a run contains."""
    if isinstance(run, CodeRun):
        if run.benchmark.startswith(("quantcode-", "systrade-")):
            return (run.benchmark.partition("-")[0],)
        return ()
    protocols = {run.manifest.benchmark(episode).protocol for episode in run.episodes}
    return tuple(paper for paper in ("ktdfin", "stockbench") if paper in protocols)


def paper_pages(run: Run) -> tuple[PaperPage, ...]:
    """Return the pages that one run fills, without attribution.

    There is no page for a benchmark without a paper.
    """
    pages = []
    for paper in papers_of(run):
        if paper == "ktdfin":
            pages.append(ktdfin_page([run], attribution=False))
        else:
            pages.append(stockbench_page([run]))
    return tuple(pages)


def programs_page(runs: Sequence[CodeRun]) -> PaperPage:
    """Return the page of a paper about programs, filled with results of some runs.

    Raises :class:`UserError` for runs with different tasks, which have no common table.
    """
    return runs[0].kind.paper(runs, latency(runs))
