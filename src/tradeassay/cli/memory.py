"""``tradeassay memory``: what models remember, and what a mask hides."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradeassay.cli._group import CommandGroup
from tradeassay.cli._options import (
    COUNT,
    FILE,
    FOLDER,
    NATURAL,
    FoldedCommand,
    advanced,
    find_run,
    option,
    out_option,
    page_option,
    several,
    split_list,
)
from tradeassay.cli._output import json_option, plain_number, print_json, print_table, say
from tradeassay.core.errors import UserError

if TYPE_CHECKING:
    from tradeassay.assay.memory.harden import Hardened
    from tradeassay.assay.probe import ProbeReport
    from tradeassay.core.measure import Measure
    from tradeassay.runs import Run


@click.group(cls=CommandGroup)
def memory() -> None:
    """What models remember, and what a mask hides from them."""


_cassettes = click.option(
    "--cassettes", type=FOLDER, metavar="FOLDER", help="Record answers here, and ask nothing twice."
)
_replay = click.option("--replay", is_flag=True, help="Recorded answers only: no network, no key.")
_max_usd = click.option("--max-usd", type=float, metavar="DOLLARS", help="Hard cap on what all models may spend.")
_concurrency = option("--concurrency", type=COUNT, default=16, help="Questions asked at the same time.")


@memory.command(cls=FoldedCommand)
@several(
    "-m", "--model", "models", metavar="PROVIDER/MODEL", help="The model; of a run, its only one where not given."
)
@click.option("--dataset", metavar="NAME", help="The data set to ask about.")
@click.option("--run", metavar="RUN", help="Ask about the names and days that the model traded in a run.")
@option("--questions", type=COUNT, default=500, help="How many, about.")
@advanced("--wordings", type=click.IntRange(1, 4), default=2, help="Ways to ask each fact.")
@advanced("--samples", type=COUNT, default=2, help="Answers to each wording.")
@advanced(
    "--horizon", type=click.Choice(["day", "week", "month"]), default="week", help="Of the moves asked for a run."
)
@advanced(
    "--every",
    type=COUNT,
    metavar="SESSIONS",
    help="How often a move asked for a run begins; as often as one ends where not given.",
)
@advanced(
    "--logprobs",
    type=NATURAL,
    default=40,
    help="Facts whose log-probabilities are asked for too, where the server gives them.",
)
@advanced("--first", metavar="DAY", help="First day to ask about.")
@advanced("--last", metavar="DAY", help="Last day to ask about.")
@click.option(
    "--cutoff", type=click.DateTime(["%Y-%m-%d"]), metavar="DAY", help="The day the model's knowledge ends."
)
@advanced("--seed", type=NATURAL, default=0, help="Draws other questions.")
@click.option("--plan", "only_plan", is_flag=True, help="Say what it would cost, and ask nothing.")
@_max_usd
@click.option(
    "--cassettes",
    type=FOLDER,
    metavar="FOLDER|recorded/MODEL",
    help="Record answers here, and ask nothing twice; or a recorded audit.",
)
@_replay
@_concurrency
@page_option("page; the record is written beside it, as .json")
@out_option
@json_option
def recall(
    models: tuple[str, ...],
    dataset: str | None,
    run: str | None,
    only_plan: bool,
    max_usd: float | None,
    cassettes: Path | None,
    replay: bool,
    concurrency: int,
    page: Path | None,
    out: Path,
    as_json: bool,
    **asked: Any,
) -> None:
    """Ask a model what it remembers, without showing it any price.

    Closes, moves, best and worst of five names, index levels and years are asked by name and date, before and
    after the model's cutoff, of real names and of invented ones, and scored against chance.
    """
    from tradeassay.assay.memory import RecallConfig, plan_recall, recall_audit
    from tradeassay.report.recall_page import write_recall
    from tradeassay.runs import Asking, Run
    from tradeassay.runs.store.archive import find_audit

    played = None if run is None else Run.load(find_run(run, out))
    asked["cutoff"] = None if asked["cutoff"] is None else asked["cutoff"].date()
    config = RecallConfig(**asked)
    if len(models) > 1:
        raise UserError("one model is asked at a time", hint="give -m once")
    named = models[0] if models else _only_model(played)
    if only_plan:
        plan = plan_recall(named, dataset, run=played, config=config)
        say(plan.sentence)
        if plan.left_out:
            say(plan.left_out)
        return
    if cassettes is not None and cassettes.parts[0] == "recorded":
        cassettes = find_audit(str(cassettes), str(dataset))
    asking = Asking(max_usd=max_usd, cassettes=cassettes, replay=replay, concurrency=concurrency)
    report = recall_audit(named, dataset, run=played, config=config, asking=asking, say=say)
    if as_json:
        print_json(report)
    else:
        rows = []
        for one in report.scores:
            shares = map(_share, (one.refused, one.hit))
            rows.append([one.kind, one.names, one.period, str(one.asked), *shares, _ratio(one.correlation)])
        columns = ("question", "names", "period", "asked", "refused", "right", "correlation")
        print_table(f"{report.model} on {report.dataset}", columns, rows)
        weighed = () if report.propensity is None else (report.propensity.sentence,)
        for note in (report.sentence, *weighed, *report.notes):
            say(note)
    usual = Path(f"recall-{re.sub(r'[^A-Za-z0-9.]+', '-', named)}.html")
    _write(report, write_recall, page or (None if as_json else usual))


@memory.command()
@click.argument("run")
@click.option("--agent", metavar="NAME", help="Whose decisions; the run's only model where not given.")
@option(
    "--share",
    type=click.FloatRange(0.0, 1.0, min_open=True),
    default=0.2,
    help="Of the decisions, asked again in every changed market.",
)
@option(
    "--arms",
    default="again,prices,names,news,date",
    metavar="ARM[,ARM]",
    help="What is changed; again is nothing.",
)
@option("--seed", type=NATURAL, default=0, help="Draws other decisions.")
@_max_usd
@_cassettes
@_replay
@_concurrency
@page_option("page; the record is written beside it, as .json")
@out_option
@json_option
def counterfactual(
    run: str,
    agent: str | None,
    share: float,
    arms: str,
    seed: int,
    page: Path | None,
    out: Path,
    as_json: bool,
    **asking: Any,
) -> None:
    """Ask a run's decisions again with the shown past changed.

    Returns are mirrored, names exchanged, good news turned into bad, the date made false. Whoever reads must
    decide otherwise; whoever answers by name or date does not.
    """
    from tradeassay.assay.memory import CounterfactualConfig, counterfactual_study
    from tradeassay.report.recall_page import write_counterfactual
    from tradeassay.runs import Asking, Run

    played = Run.load(find_run(run, out))
    chosen: Any = split_list(arms)
    report = counterfactual_study(
        played,
        agent or _only_model(played, "no model decided in this run: name another run"),
        config=CounterfactualConfig(share=share, seed=seed, arms=chosen),
        asking=Asking(**asking),
        say=say,
    )
    if as_json:
        print_json(report)
    else:
        rows = [[one.arm, one.how, str(one.asked), _ratio(one.same), _ratio(one.depends)] for one in report.arms]
        print_table(
            f"{report.model} in {report.run}", ("arm", "what is changed", "asked", "same", "depends"), rows
        )
        for note in (report.sentence, *report.notes):
            say(note)
    _write(
        report,
        write_counterfactual,
        page or (None if as_json else Path(f"counterfactual-{played.spec.slug}.html")),
    )


def _write(report: Any, write: Callable[[Any, Path], Path], place: Path | None) -> None:
    """Write a page, and the record beside it."""
    import msgspec

    from tradeassay.core.files import write_atomic

    if place is not None:
        say(f"page: {write(report, place)}")
        write_atomic(place.with_suffix(".json"), msgspec.json.format(msgspec.json.encode(report), indent=1))


def _only_model(run: Run | None, otherwise: str = "e.g. -m openai/gpt-5") -> str:
    models = [] if run is None else [*dict.fromkeys(one.label for one in run.episodes if one.by_model)]
    if len(models) != 1:
        raise UserError("no model is named", hint=f"one of {', '.join(models)}" if models else otherwise)
    return models[0]


@memory.command()
@option("--benchmark", metavar="ID", default="ktdfin-v1", help="A benchmark with masks.")
@click.option("--dataset", metavar="NAME", help="A data set other than the benchmark's own.")
@option(
    "--mask", "masks", default="blinded", metavar="LEVEL[,LEVEL]", help="bright, stock-blind, date-blind, blinded."
)
@option(
    "--hardening",
    "hardenings",
    default="plain",
    metavar="NAME[,NAME]",
    help="plain, rebased, scaled, scrubbed, or all; each includes those before it.",
)
@option(
    "--attackers", default="levels,grid", metavar="NAME[,NAME]", help="Models. All programs are always included."
)
@option("--probes", type=COUNT, default=200, help="Pairs of stock and day.")
@option(
    "--mode",
    type=click.Choice(["memory-only", "fixed-candidate", "open-research"]),
    default="open-research",
    help="What the model is shown.",
)
@click.option(
    "--window", "windows", default="", metavar="CODE[,CODE]", help="Named windows. Default: all short ones."
)
@option("--seed", type=NATURAL, default=0, help="Draws other pairs.")
@_max_usd
@_cassettes
@_replay
@click.option(
    "--answers",
    type=FILE,
    metavar="FILE",
    help="Write every answer here, with the truth, one JSON object per line.",
)
@click.option(
    "--harden",
    "against",
    metavar="ATTACKER",
    help="Harden the mask round by round until this attacker falls to chance, and say what that cost.",
)
@json_option
def probe(
    benchmark: str,
    dataset: str | None,
    attackers: str,
    max_usd: float | None,
    cassettes: Path | None,
    replay: bool,
    answers: Path | None,
    against: str | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Try to identify the stock and the day from what a mask shows.

    The same pairs are shown to every attacker under every mask, exactly as a model would get them. Ten programs
    are always among them; for every mask the most that any of them knew is given, without and with the archive.
    """
    from tradeassay.assay.memory.harden import harden
    from tradeassay.assay.probe import probe_mask
    from tradeassay.runs import Asking

    def progress(attacker: str, done: int, whole: int) -> None:
        if done == whole or done % max(1, whole // 20) == 0:  # about twenty times
            say(f"{attacker}: {done} of {whole} answers")

    config, asking = _probe_config(**asked), Asking(max_usd=max_usd, cassettes=cassettes, replay=replay)
    if not (replay or cassettes) and "/" in (attackers if against is None else against):
        say("answers are not kept: with --cassettes FOLDER nothing is asked twice")
    if against is not None:
        _refuse_beside_harden()
        _show_hardened(harden(against, benchmark, dataset=dataset, config=config, asking=asking, say=say), as_json)
        return
    if answers is not None:
        # A place that cannot be written is told before anybody is paid.
        answers.parent.mkdir(parents=True, exist_ok=True)
    report = probe_mask(
        benchmark, split_list(attackers), dataset=dataset, config=config, asking=asking, listen=progress
    )
    if as_json:
        print_json(report)
    else:
        _show_probe(report)
    if answers is not None:
        import msgspec

        from tradeassay.core.files import write_atomic

        write_atomic(answers, b"".join(msgspec.json.encode(one) + b"\n" for one in report.answers))


def _refuse_beside_harden() -> None:
    """Raise :class:`UserError` for options of the plain probe that hardening would ignore."""
    given = click.get_current_context().get_parameter_source
    for name, flag in (("hardenings", "--hardening"), ("attackers", "--attackers"), ("answers", "--answers")):
        if given(name) is click.core.ParameterSource.COMMANDLINE:
            raise UserError(
                f"{flag} does not go with --harden, which tries every hardening against one attacker",
                hint=f"leave out {flag}, or --harden",
            )


def _show_probe(report: ProbeReport) -> None:
    from tradeassay.assay.probe import METRICS
    from tradeassay.benchmarks.tables import counted

    chance = ["" if (by := report.random[name].value) is None else f"{by:.1%}" for name in _SHARES]
    rows = [["by chance", "", "", *chance]]
    for row in report.rows:
        mask = row.mask if row.hardening == "plain" else f"{row.mask}, {row.hardening}"
        rows.append([row.attacker, mask, _share(row.response), *(_share(row.of_all[name]) for name in _SHARES)])
    print_table(f"{report.benchmark} on {report.dataset}", _PROBE, rows)
    bounds = [
        [
            bound.mask if bound.hardening == "plain" else f"{bound.mask}, {bound.hardening}",
            METRICS[bound.metric],
            "with" if bound.archive else "without",
            _share(bound.share),
            f"{bound.times_chance:.1f}",
            bound.attacker,
        ]
        for bound in report.bounds
    ]
    print_table("the most that any attacker knew", _BOUNDS, bounds)
    say("shares of all probes; --json also has those among the probes that were answered")
    for attacker in dict.fromkeys(row.attacker for row in report.rows if row.kind == "model"):
        hits = [one for one in report.answers if one.attacker == attacker]
        names = dict.fromkeys(one.symbol for one in hits if "top_1" in one.hits)
        days = dict.fromkeys(one.session for one in hits if "date_7" in one.hits)
        if any(one.tickers or one.date for one in hits):
            say(f"{attacker} recognised {_listed(names)}; days: {_listed(days)}")
        else:
            why = next((f": {one.wrong[-1]}" for one in hits if one.wrong), "")
            say(f"{attacker} named no stock and no day in {counted(len(hits), 'answer')}{why}")
    for note in report.notes:
        say(note)


def _listed(things: Iterable[str]) -> str:
    known = [*things]
    more = f" and {len(known) - 10} more" if len(known) > 10 else ""
    return (", ".join(known[:10]) or "none") + more


def _show_hardened(made: Hardened, as_json: bool) -> None:
    if as_json:
        print_json(made)
        return
    rows = [
        [one.hardening, *map(_share, one.found.values()), *map(plain_number, (one.levels, one.returns))]
        for one in made.rounds
    ]
    columns = ("mask", "top 1", "top 5", "day ±7", "joint", "levels kept", "returns kept")
    print_table(f"{made.attacker} against '{made.mask}', {made.benchmark} on {made.dataset}", columns, rows)
    for one in made.rounds:
        say(f"{one.hardening}: recognised {_listed(one.names)}; days: {_listed(one.days)}")
    say(made.sentence)


def _probe_config(masks: str, hardenings: str, windows: str, **rest: Any) -> Any:
    from tradeassay.assay.probe import HARDENINGS, ProbeConfig

    chosen = tuple(HARDENINGS) if hardenings == "all" else split_list(hardenings)
    levels: Any = split_list(masks)
    return ProbeConfig(masks=levels, hardenings=chosen, windows=split_list(windows), **rest)


_SHARES = ("top_1", "top_5", "date_1", "date_7", "date_30", "sector", "board", "joint")
_BOUNDS = ("mask", "what", "archive", "share", "times chance", "by")
_DAYS = ("day ±1", "day ±7", "day ±30")
_PROBE = ("attacker", "mask", "answers", "top 1", "top 5", *_DAYS, "sector", "board", "joint")


def _share(measure: Measure) -> str:
    from tradeassay.report.formatting import in_line

    return in_line(measure, "{:.0%}")


def _ratio(measure: Measure) -> str:
    from tradeassay.report.formatting import in_line

    return in_line(measure, "{:.2f}")
