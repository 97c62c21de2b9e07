"""Make the assay of a recorded run or of a user's own tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from tradeassay.core.errors import UserError
from tradeassay.core.measure import not_scored
from tradeassay.metrics import BootstrapConfig
from tradeassay.metrics.ranks import places
from tradeassay.verdict import diagnostics, evidence
from tradeassay.verdict.judge import judge
from tradeassay.verdict.own_account import OwnAccount
from tradeassay.verdict.own_returns import assay_own
from tradeassay.verdict.record import (
    AgentAssay,
    AgentFindings,
    Alpha,
    Assay,
    Dollars,
    LeakEvidence,
    LuckEvidence,
    MaskPrice,
    MemoryEvidence,
    Ranks,
    VerdictConfig,
)
from tradeassay.verdict.returns import WATCHED, JudgingContext, run_tests
from tradeassay_bench.agents import files_open
from tradeassay_bench.agents.own_file import CLOSED
from tradeassay_bench.core.executors import HERE, Spread
from tradeassay_bench.examine import run_evidence
from tradeassay_bench.examine.agent_rows import (
    AgentRow,
    agent_row,
    masked_twin,
    mostly_unanswered,
)
from tradeassay_bench.examine.attribute import RunAttribution, attribute_run
from tradeassay_bench.examine.luck.luck import Luck, LuckConfig, luck_of_episode
from tradeassay_bench.examine.mask_price import mask_prices
from tradeassay_bench.runs.score import NET_RETURN
from tradeassay_bench.runs.store.run import shown_title
from tradeassay_bench.runs.summary.figures import option_words
from tradeassay_bench.runs.summary.models import calibration_of, journals_of

if TYPE_CHECKING:
    from tradeassay_bench.examine.leaks.leak_result import LeakTestReport
    from tradeassay_bench.examine.memory import MemoryRecord
    from tradeassay_bench.runs import AgentSpec, Run

PAPER = "the run follows the paper's convention; the account's own returns are judged"
FILES_SHUT = (
    "its program had no access to files or network while it ran, enforced by the kernel: "
    "it saw only the view"
)


@dataclass(frozen=True, slots=True)
class OutsideFacts:
    """The facts of an assay that are not from its run.

    These are the number of tries in the run's folder at the time of the assay, and the result of a
    leak test (None without a test).
    """

    tried: diagnostics.Tried = diagnostics.NO_TRIES
    leaks: LeakEvidence | None = None
    price: MaskPrice | None = None


def assay_run(
    run: Run,
    config: VerdictConfig,
    *,
    agents: Sequence[str] = (),
    leaks: Mapping[str, LeakTestReport] | None = None,
    memory: Sequence[MemoryRecord] = (),
    mask_price: Sequence[Run] = (),
    say: Callable[[str], None] | None = None,
    spread: Spread = HERE,
    outside: Mapping[tuple[str, str], OutsideFacts] | None = None,
) -> Assay:
    """Return the assay of a run (see :func:`assay`).

    All agents of a setting count as comparisons, whether displayed or not. The account's net
    returns are attributed, whatever the run's convention. To recompute an earlier assay, pass its
    ``outside`` facts by setting and agent name. Raises :class:`UserError` for an agent that the run
    does not have, and :class:`~tradeassay_bench.core.errors.RunError` while the run is unfinished.
    """
    scores = run.scores.agents
    labels = dict.fromkeys(row.agent for row in scores)
    for name in (*agents, *(leaks or ())):
        if name not in labels:
            raise UserError(
                f"no agent '{name}' in {run.folder}", hint=f"it has {', '.join(labels)}"
            )
    for record in memory:
        from tradeassay_bench.examine.memory.records import check_about

        check_about(run, record)
    say = say or (lambda _: None)
    bootstrap = BootstrapConfig(level=config.level, draws=config.draws)
    say(f"attributing {len(run.episodes)} episodes ...")
    attribution = attribute_run(
        run, convention="corrected", bootstrap=bootstrap, spread=spread, intervals=False
    )
    rows = [agent_row(run, scored, attribution) for scored in scores]
    if outside is not None:
        stated = {place: facts.tried for place, facts in outside.items()}
        places = [(row.scores.setting, run.names[row.scores.agent]) for row in rows]
        rows = [
            replace(row, tried=stated.get(place, diagnostics.NO_TRIES))
            for row, place in zip(rows, places, strict=True)
        ]
    elif config.folder:  # the other tries in the folder on the same data and sessions
        windows = [(row.scores.dataset, row.sessions) for row in rows]
        tried = {
            place: run_evidence.tried_elsewhere(run, *place) for place in dict.fromkeys(windows)
        }
        rows = [replace(row, tried=tried[place]) for row, place in zip(rows, windows, strict=True)]
    selected = [row for row in rows if not agents or row.scores.agent in agents]
    ranks, contrast = (
        _ranks(rows),
        run_evidence.contrast_of(run, [row.mask for row in rows], config),
    )
    prices: dict[tuple[str, str], MaskPrice] = {}
    if mask_price:
        say("measuring the mask's price ...")
        prices = mask_prices(run, rows, selected, mask_price, config, spread=spread)
    luck: dict[str, Luck] = {}
    if config.portfolios:
        keys = list(
            chain.from_iterable(row.scores.episodes for row in selected if row.daily is not None)
        )
        drawn = LuckConfig(portfolios=config.portfolios, seed=config.seed)
        each = spread.map(partial(luck_of_episode, run, config=drawn, stop_early=True), keys)
        luck = dict(zip(keys, each, strict=True))
    judged: list[AgentAssay] = []
    for row in selected:
        say(
            f"judging {run.names[row.scores.agent]} ({len(judged) + 1} of "
            f"{len(agents) or len(rows)}) ..."
        )
        findings = _findings(run, row, rows, attribution, ranks, config, leaks or {}, luck)
        findings = msgspec.structs.replace(findings, agent=run.names[findings.agent])
        facts = None if outside is None else outside.get((findings.setting, findings.agent))
        if facts is not None and facts.leaks is not None:
            stated_leaks = msgspec.structs.replace(
                facts.leaks, files_open=findings.leaks.files_open
            )
            findings = msgspec.structs.replace(findings, leaks=stated_leaks)
        findings = run_evidence.with_contrast(findings, contrast, row.mode)
        price = prices.get((row.scores.setting, row.scores.agent))
        if facts is not None and facts.price is not None:
            price = facts.price
        if price is not None and findings.memory is not None:
            priced = evidence.with_price(findings.memory, price)
            findings = msgspec.structs.replace(findings, memory=priced)
        findings = run_evidence.with_recall(
            findings, run, scores=row.scores, mask=row.mask, records=memory
        )
        judged.append(judge(findings, config))
    return Assay(
        title=run.spec.name,
        source="run",
        config=config,
        agents=tuple(judged),
        badges={
            setting: run.setting_badges(setting)
            for setting in dict.fromkeys(row.scores.setting for row in rows)
        },
        titles=_titles(run, rows),
        notes=((PAPER,) if run.manifest.convention == "paper" else ())
        + ((WATCHED,) if config.watched else ()),
    )


def _titles(run: Run, rows: Sequence[AgentRow]) -> dict[str, str]:
    """Return the titles of settings: the benchmark suite, with the options that differ."""
    first = {row.scores.setting: run.episode(row.scores.episodes[0]) for row in rows}
    titles = {}
    for setting, episode in first.items():
        of_benchmark = [other for other in first.values() if other.benchmark == episode.benchmark]
        options = [
            option_words(key, value)
            for key, value in episode.protocol.items()
            if len({str(other.protocol.get(key)) for other in of_benchmark}) > 1
        ]
        windows, datasets = (
            {other.window for other in of_benchmark},
            {other.dataset for other in of_benchmark},
        )
        several = ((episode.window, windows), (episode.dataset, datasets))
        differing = [value for value, others in several if value and len(others) > 1]
        title = shown_title(run.manifest.benchmark(episode), episode.dataset)
        titles[setting] = ", ".join(
            [title, *options, *(value for value in differing if not title.startswith(value))]
        )
    return titles


def _findings(
    run: Run,
    row: AgentRow,
    rows: Sequence[AgentRow],
    attribution: RunAttribution,
    ranks: Mapping[tuple[str, str], Ranks],
    config: VerdictConfig,
    leaks: Mapping[str, LeakTestReport],
    luck: Mapping[str, Luck],
) -> AgentFindings:
    """Return the findings on one agent for the verdict."""
    scores, agent = row.scores, run.episode(row.scores.episodes[0]).agent
    peers = sum(peer.scores.setting == scores.setting and not peer.scores.baseline for peer in rows)
    per_episode = [run.scores.episode(key) for key in scores.episodes]
    reason = None
    if row.daily is None and row.complete:
        reason = "the seeds ended in different sessions"
    elif row.daily is None:
        lost = []
        for series in map(run.series, scores.episodes):
            ruined = f"everything was lost by {series.ruined}" if series.ruined else ""
            lost.append(series.failure or ruined)
        reason = "; ".join(filter(None, dict.fromkeys(lost))) or "no episode has a result"
    nothing = not_scored(reason or "nothing was played")
    spent, net, dollars = scores.inference, scores.measures.get(NET_RETURN), None
    if not isinstance(spent, msgspec.UnsetType) and not spent.unstated:
        dollars = Dollars(
            usd=spent.usd,
            calls=spent.calls,
            tokens=spent.input_tokens + spent.output_tokens,
            net_return=not_scored("no model played") if net is None else net.median,
        )
    plain = AgentFindings(
        setting=scores.setting,
        benchmark=scores.benchmark,
        dataset=scores.dataset,
        agent=scores.agent,
        by_model=row.by_model,
        baseline=scores.baseline,
        seeds=len(row.complete),
        failed_seeds=len(scores.episodes) - len(row.complete),
        sessions=len(row.sessions),
        first=row.complete[0].first if row.complete else None,
        last=row.complete[0].last if row.complete else None,
        mask=row.mask,
        failure=reason,
        total=nothing,
        market=nothing,
        versus=scores.versus_baseline,
        luck=LuckEvidence(percentile=not_scored(reason or "not asked for"), p=None),
        leaks=_leaks(leaks.get(scores.agent), by=agent),
        calibration=calibration_of(run, journals_of(run, scores)) if row.by_model else None,
        failures=_counted([episode.failures for episode in per_episode]),
        failure_rate=scores.measures["failure_rate"].median,
        rejections=_counted([episode.rejections for episode in per_episode]),
        dollars=dollars,
        ranks=ranks[scores.setting, scores.agent],
        notes=(
            *dict.fromkeys(chain.from_iterable(part.notes for part in row.complete)),
            *((FILES_SHUT,) if agent.params.get("files") == CLOSED else ()),
        ),
        badges=run.badges(scores.episodes[0]),
    )
    if row.daily is None:
        return plain
    context = JudgingContext(peers=max(1, peers), tried=row.tried, attributions=row.complete)
    measured = run_tests(plain, row.daily, row.year, config, context)
    assert measured.alpha is not None
    recorded, total = scores.measures["cumulative_return"].median, measured.total
    # The total is the recorded return up to rounding. The attribution's record also has an
    # interval.
    if (
        recorded.value is not None
        and total.value is not None
        and abs(recorded.value - total.value) < 1e-9
    ):
        total = recorded
    place = plain.luck
    if config.portfolios:
        place = run_evidence.luck_evidence([luck[key] for key in scores.episodes])
    return msgspec.structs.replace(
        measured,
        total=total,
        exposures=next(
            summed.preferences
            for summed in attribution.agents
            if scores.episodes[0] in summed.episodes
        ),
        luck=place,
        memory=_memory(row, rows, config, measured.alpha),
        biases=run.setting_badges(scores.setting).biases,
    )


def _leaks(report: LeakTestReport | None, by: AgentSpec) -> LeakEvidence:
    if report is None:
        return LeakEvidence(tested=False, files_open=files_open(by.name, by.params))
    return LeakEvidence(
        tested=report.leaks or (report.repeatable and report.decisions_with_orders > 0),
        findings=tuple(
            dict.fromkeys(finding.channel or finding.kind for finding in report.findings)
        ),
        sentence=report.sentence,
        bound=report.undetected,
        files_open=report.files_open,
    )


def _memory(
    row: AgentRow, rows: Sequence[AgentRow], config: VerdictConfig, alpha: Alpha
) -> MemoryEvidence | None:
    """Return the comparison of an agent with the same agent under a mask.

    Returns None for a rule, and for an agent that ran under a mask.
    """
    if not row.by_model or row.mask not in (None, evidence.BRIGHT):
        return None

    twin = masked_twin(row, rows)
    if twin is None:
        return evidence.no_memory("it was not run under a mask")
    if (
        row.daily is None
        or twin.daily is None
        or twin.daily["total"].size != row.daily["total"].size
    ):
        return evidence.no_memory("the masked run has no result over the same sessions")
    unanswered = mostly_unanswered(twin, config)
    if unanswered is not None:
        return evidence.no_memory(f"the masked run {unanswered}")
    test = evidence.MeanTest(row.year, config, alpha.comparisons, alpha.tries)
    return evidence.memory_evidence(row.daily, twin.daily, test, against=str(twin.mask))


def _counted(parts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    counts = Counter[str]()
    for part in parts:
        counts.update(part)
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _ranks(rows: Sequence[AgentRow]) -> dict[tuple[str, str], Ranks]:
    """Return the ranks of all agents, by setting and label."""
    ranks = {}
    for setting in dict.fromkeys(row.scores.setting for row in rows):
        inside = [row for row in rows if row.scores.setting == setting]
        ranked = [row for row in inside if row.daily is None or row.scores.unranked is None]
        returned = [row.scores.measures["cumulative_return"].median.value for row in ranked]
        chosen = [
            None if row.daily is None else float(np.mean(row.daily["selection"])) for row in ranked
        ]
        of = sum(row.daily is not None for row in ranked)
        for row in inside:
            unplaced = Ranks(of=of, by_return=None, by_selection=None, unranked=row.scores.unranked)
            ranks[setting, row.scores.agent] = unplaced
        for row, first, second in zip(ranked, places(returned), places(chosen), strict=True):
            ranks[setting, row.scores.agent] = Ranks(of=of, by_return=first, by_selection=second)
    return ranks


def assay(
    what: Run | OwnAccount | Path | str | object,
    config: VerdictConfig | None = None,
    *,
    agents: Sequence[str] = (),
    leaks: Mapping[str, LeakTestReport] | None = None,
    memory: Sequence[MemoryRecord] = (),
    mask_price: Sequence[Run] = (),
    home: Path | str | None = None,
    say: Callable[[str], None] | None = None,
    spread: Spread = HERE,
) -> Assay:
    """Return the assay of a result: how much is skill, luck, style, leaked future or memory.

    ``what`` is a run, a run's folder, a table of returns or weights, or an :class:`OwnAccount`. A
    table is a file or a pandas or polars table. An :class:`OwnAccount` names its comparison.
    ``agents`` selects agents of a run. ``leaks`` contains leak tests of the agents. ``memory``
    contains recall audits and counterfactual studies of the models. ``home`` is the data store.
    ``say`` is called with the progress. ``spread`` distributes a run's episodes.

    Raises :class:`~tradeassay.core.errors.UserError` or
    :class:`~tradeassay_bench.core.errors.RunError` with one line for input that cannot be read.
    """
    from tradeassay_bench.runs import Run

    config = config or VerdictConfig()
    if isinstance(what, Path | str):
        path = Path(what)
        if not path.exists():
            raise UserError(
                f"no run and no table at {path}",
                hint="give a run's folder, or a Parquet or CSV file",
            )
        what = Run.load(path, home=home) if path.is_dir() else str(path)
    if isinstance(what, Run):
        return assay_run(
            what,
            config,
            agents=agents,
            leaks=leaks,
            memory=memory,
            mask_price=mask_price,
            say=say,
            spread=spread,
        )
    if mask_price:
        raise UserError(
            "'mask_price' is valid only with a run, not with a table", hint="leave it out"
        )
    if not isinstance(what, OwnAccount):
        what = OwnAccount(returns=what, home=None if home is None else str(home))
    return assay_own(what, config)
