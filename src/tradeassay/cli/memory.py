"""``tradeassay memory``: what models remember, and what a mask hides."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradeassay.cli import _options as opt
from tradeassay.cli._group import CommandGroup
from tradeassay.cli._output import json_option, print_json, print_table, say
from tradeassay.core.errors import UserError

if TYPE_CHECKING:
    from tradeassay.assay.probe import ProbeReport
    from tradeassay.core.measure import Measure
    from tradeassay.runs import Run


@click.group(cls=CommandGroup)
def memory() -> None:
    """What models remember, and what a mask hides from them."""


_cassettes = opt.option("--cassettes=FOLDER", "Record answers here, and ask nothing twice.", type=opt.FOLDER)
_replay = opt.flag("--replay", "Recorded answers only: no network, no key.")
_max_usd = opt.option("--max-usd=DOLLARS", "Hard cap on what all models may spend.", type=opt.NUMBER)
_concurrency = opt.option("--concurrency", "Questions asked at the same time.", type=opt.COUNT, default=16)


@memory.command(cls=opt.FoldedCommand)
@opt.several("-m --model=PROVIDER/MODEL models", "The model; of a run, its only one where not given.")
@opt.option("--dataset=NAME", "The data set to ask about.")
@opt.option("--run=RUN", "Ask about the names and days that the model traded in a run.")
@opt.option("--questions", "How many, about.", type=opt.COUNT, default=500)
@opt.advanced("--wordings", "Ways to ask each fact.", type=click.IntRange(1, 4), default=2)
@opt.advanced("--samples", "Answers to each wording.", type=opt.COUNT, default=2)
@opt.advanced(
    "--horizon", "Of the moves asked for a run.", type=click.Choice(["day", "week", "month"]), default="week"
)
@opt.advanced(
    "--every=SESSIONS",
    "How often a move asked for a run begins; as often as one ends where not given.",
    type=opt.COUNT,
)
@opt.advanced(
    "--logprobs",
    "Facts whose log-probabilities are asked for too, where the server gives them.",
    type=opt.NATURAL,
    default=40,
)
@opt.advanced("--first=DAY", "First day to ask about.")
@opt.advanced("--last=DAY", "Last day to ask about.")
@opt.option("--cutoff=DAY", "The day the model's knowledge ends.", type=click.DateTime(["%Y-%m-%d"]))
@opt.advanced("--seed", "Draws other questions.", type=opt.NATURAL, default=0)
@opt.flag("--plan only_plan", "Say what it would cost, and ask nothing.")
@_max_usd
@opt.option(
    "--cassettes=FOLDER|recorded/MODEL",
    "Record answers here, and ask nothing twice; or a recorded audit.",
    type=opt.FOLDER,
)
@_replay
@_concurrency
@opt.page("page; the record is written beside it, as .json")
@opt.out
@json_option
def recall(
    models: tuple[str, ...],
    dataset: str | None,
    run: str | None,
    only_plan: bool,
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

    played = None if run is None else Run.load(opt.find_run(run, out))
    how = {name: asked.pop(name) for name in ("max_usd", "cassettes", "replay", "concurrency")}
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
    if how["cassettes"] is not None and how["cassettes"].parts[0] == "recorded":
        how["cassettes"] = find_audit(str(how["cassettes"]), str(dataset))
    asking = Asking(**how)
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
@opt.option("--agent=NAME", "Whose decisions; the run's only model where not given.")
@opt.option(
    "--share",
    "Of the decisions, asked again in every changed market.",
    type=opt.Fraction(0.0, 1.0, min_open=True),
    default=0.2,
)
@opt.option("--arms=ARM[,ARM]", "What is changed; again is nothing.", default="again,prices,names,news,date")
@opt.option("--seed", "Draws other decisions.", type=opt.NATURAL, default=0)
@_max_usd
@_cassettes
@_replay
@_concurrency
@opt.page("page; the record is written beside it, as .json")
@opt.out
@json_option
def counterfactual(
    run: str, agent: str | None, arms: str, page: Path | None, out: Path, as_json: bool, **asking: Any
) -> None:
    """Ask a run's decisions again with the shown past changed.

    Returns are mirrored, names exchanged, good news turned into bad, the date made false. Whoever reads must
    decide otherwise; whoever answers by name or date does not.
    """
    from tradeassay.assay.memory import CounterfactualConfig, counterfactual_study
    from tradeassay.report.recall_page import write_counterfactual
    from tradeassay.runs import Asking, Run

    played = Run.load(opt.find_run(run, out))
    chosen: Any = opt.split_list(arms)
    config = CounterfactualConfig(share=asking.pop("share"), seed=asking.pop("seed"), arms=chosen)
    who = agent or _only_model(played, "no model decided in this run: name another run")
    report = counterfactual_study(played, who, config=config, asking=Asking(**asking), say=say)
    if as_json:
        print_json(report)
    else:
        rows = [[one.arm, one.how, str(one.asked), _ratio(one.same), _ratio(one.depends)] for one in report.arms]
        columns = ("arm", "what is changed", "asked", "same", "depends")
        print_table(f"{report.model} in {report.run}", columns, rows)
        for note in (report.sentence, *report.notes):
            say(note)
    usual = Path(f"counterfactual-{played.spec.slug}.html")
    _write(report, write_counterfactual, page or (None if as_json else usual))


def _write(report: Any, write: Callable[[Any, Path], Path], place: Path | None) -> None:
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
@opt.option("--benchmark=ID", "A benchmark with masks.", default="ktdfin-v1")
@opt.option("--dataset=NAME", "A data set other than the benchmark's own.")
@opt.option("--mask=LEVEL[,LEVEL] masks", "bright, stock-blind, date-blind, blinded.", default="blinded")
@opt.option(
    "--hardening=NAME[,NAME] hardenings",
    "plain, rebased, scaled, scrubbed, or all; each includes those before it.",
    default="plain",
)
@opt.option("--attackers=NAME[,NAME]", "Models. All programs are always included.", default="levels,grid")
@opt.option("--probes", "Pairs of stock and day.", type=opt.COUNT, default=200)
@opt.option(
    "--mode",
    "What the model is shown.",
    type=click.Choice(["memory-only", "fixed-candidate", "open-research"]),
    default="open-research",
)
@opt.option("--window=CODE[,CODE] windows", "Named windows. Default: all short ones.", default="")
@opt.option("--seed", "Draws other pairs.", type=opt.NATURAL, default=0)
@_max_usd
@_cassettes
@_replay
@opt.option("--answers=FILE", "Write every answer here, with the truth, one JSON object per line.", type=opt.FILE)
@json_option
def probe(
    benchmark: str,
    dataset: str | None,
    attackers: str,
    answers: Path | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Try to identify the stock and the day from what a mask shows.

    The same pairs are shown to every attacker under every mask, exactly as a model would get them. Ten programs
    are always among them; for every mask the most that any of them knew is given, without and with the archive.
    """
    from tradeassay.assay.probe import HARDENINGS, ProbeConfig, probe_mask
    from tradeassay.runs import Asking

    def progress(attacker: str, done: int, whole: int) -> None:
        if done == whole or done % max(1, whole // 20) == 0:  # about twenty times
            say(f"{attacker}: {done} of {whole} answers")

    how = {name: asked.pop(name) for name in ("max_usd", "cassettes", "replay")}
    config: Any = ProbeConfig(
        masks=opt.split_list(asked.pop("masks")),  # type: ignore[arg-type]  # checked there
        hardenings=tuple(HARDENINGS) if asked["hardenings"] == "all" else opt.split_list(asked["hardenings"]),
        windows=opt.split_list(asked.pop("windows")),
        **{name: asked[name] for name in ("probes", "mode", "seed")},
    )
    asking = Asking(**how)
    if not (how["replay"] or how["cassettes"]) and "/" in attackers:
        say("answers are not kept: with --cassettes FOLDER nothing is asked twice")
    if answers is not None:
        # A place that cannot be written is told before anybody is paid.
        answers.parent.mkdir(parents=True, exist_ok=True)
    report = probe_mask(
        benchmark, opt.split_list(attackers), dataset=dataset, config=config, asking=asking, listen=progress
    )
    if as_json:
        print_json(report)
    else:
        _show_probe(report)
    if answers is not None:
        import msgspec

        from tradeassay.core.files import write_atomic

        write_atomic(answers, b"".join(msgspec.json.encode(one) + b"\n" for one in report.answers))


def _show_probe(report: ProbeReport) -> None:
    from tradeassay.assay.probe import METRICS
    from tradeassay.core.tables import counted

    def mask_of(row: Any) -> str:
        return row.mask if row.hardening == "plain" else f"{row.mask}, {row.hardening}"

    found = ("top_1", "top_5", "date_1", "date_7", "date_30", "sector", "board", "joint")
    titles = ("top 1", "top 5", "day ±1", "day ±7", "day ±30", "sector", "board", "joint")
    chance = ["" if (by := report.random[name].value) is None else f"{by:.1%}" for name in found]
    rows = [["by chance", "", "", *chance]]
    for row in report.rows:
        shares = (_share(row.of_all[name]) for name in found)
        rows.append([row.attacker, mask_of(row), _share(row.response), *shares])
    print_table(f"{report.benchmark} on {report.dataset}", ("attacker", "mask", "answers", *titles), rows)
    rows = []
    for one in report.bounds:
        archive = "with" if one.archive else "without"
        most = (_share(one.share), f"{one.times_chance:.1f}", one.attacker)
        rows.append([mask_of(one), METRICS[one.metric], archive, *most])
    columns = ("mask", "what", "archive", "share", "times chance", "by")
    print_table("the most that any attacker knew", columns, rows)
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


def _share(measure: Measure) -> str:
    from tradeassay.report.formatting import in_line

    return in_line(measure, "{:.0%}")


def _ratio(measure: Measure) -> str:
    from tradeassay.report.formatting import in_line

    return in_line(measure, "{:.2f}")
