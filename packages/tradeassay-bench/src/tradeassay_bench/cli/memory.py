"""Define the commands of ``tradeassay memory``: what models remember, and what a mask hides."""

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
from tradeassay_bench.cli import _run_options as run_opt

if TYPE_CHECKING:
    from tradeassay.core.measure import Measure
    from tradeassay_bench.examine.probe import ProbeReport
    from tradeassay_bench.runs import Run


@click.group(cls=CommandGroup)
def memory() -> None:
    """Test what models remember, and what a mask hides from them."""


_recordings = opt.option(
    "--recordings=FOLDER",
    "Record answers in this folder, so that no question is repeated.",
    type=opt.FOLDER,
)
_replay = opt.flag("--replay", "Use recorded answers only: no network, no key.")
_max_usd = opt.option("--max-usd=DOLLARS", "Spending cap of all models.", type=opt.NUMBER)
_concurrency = opt.option(
    "--concurrency", "Number of concurrent questions.", type=opt.COUNT, default=16
)


@memory.command(cls=opt.FoldedCommand)
@opt.several("-m --model=PROVIDER/MODEL models", "The model. Default: the run's only model.")
@opt.option("--dataset=NAME", "Data set for the questions.")
@opt.option("--run=RUN", "Ask about the names and days that the model traded in a run.")
@opt.option("--questions", "Approximate number of questions.", type=opt.COUNT, default=500)
@opt.advanced(
    "--wordings", "Number of wordings per question.", type=click.IntRange(1, 4), default=2
)
@opt.advanced("--samples", "Number of answers per wording.", type=opt.COUNT, default=2)
@opt.advanced(
    "--horizon",
    "For a run: length of the price moves in the questions, in sessions.",
    type=click.Choice(["day", "week", "month"]),
    default="week",
)
@opt.advanced(
    "--every=SESSIONS",
    "For a run: sessions between the starts of two moves. Default: the horizon.",
    type=opt.COUNT,
)
@opt.advanced(
    "--logprobs",
    "Number of facts for which log-probabilities are also requested, if the server has them.",
    type=opt.NATURAL,
    default=40,
)
@opt.advanced("--first=DAY", "First day to ask about.")
@opt.advanced("--last=DAY", "Last day to ask about.")
@opt.option("--cutoff=DAY", "Last day of the model's knowledge.", type=click.DateTime(["%Y-%m-%d"]))
@opt.advanced("--seed", "Seed of the questions.", type=opt.NATURAL, default=0)
@opt.flag("--plan only_plan", "Only estimate the cost; queries no model.")
@_max_usd
@opt.option(
    "--recordings=FOLDER|recorded/MODEL",
    "Record answers in this folder, so that no question is repeated; or replay a recorded audit.",
    type=opt.FOLDER,
)
@_replay
@_concurrency
@opt.page("page; the record is written next to it as .json")
@run_opt.out
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

    Each question contains a name and a date and asks for closes, moves, the best and worst of five
    names, index levels or years. The questions cover days before and after the model's cutoff, and
    real and invented names. The score compares the answers with chance.
    """
    from tradeassay_bench.examine.memory import RecallConfig, plan_recall, recall_audit
    from tradeassay_bench.report.recall_page import write_recall
    from tradeassay_bench.runs import Asking, Run
    from tradeassay_bench.runs.store.archive import find_audit

    played = None if run is None else Run.load(run_opt.find_run(run, out))
    access = {name: asked.pop(name) for name in ("max_usd", "recordings", "replay", "concurrency")}
    asked["cutoff"] = None if asked["cutoff"] is None else asked["cutoff"].date()
    config = RecallConfig(**asked)
    if len(models) > 1:
        raise UserError("only one model can be queried at a time", hint="give -m once")
    model = models[0] if models else _only_model(played)
    if only_plan:
        plan = plan_recall(model, dataset, run=played, config=config)
        say(plan.sentence)
        if plan.left_out:
            say(plan.left_out)
        return
    if access["recordings"] is not None and access["recordings"].parts[0] == "recorded":
        access["recordings"] = find_audit(str(access["recordings"]), str(dataset))
    asking = Asking(**access)
    report = recall_audit(model, dataset, run=played, config=config, asking=asking, say=say)
    if as_json:
        print_json(report)
    else:
        rows = []
        for score in report.scores:
            rows.append(
                [
                    score.kind,
                    score.names,
                    score.period,
                    str(score.asked),
                    _share(score.refused),
                    _share(score.hit),
                    ratio_text(score.correlation),
                ]
            )
        columns = ("question", "names", "period", "asked", "refused", "right", "correlation")
        print_table(f"{report.model} on {report.dataset}", columns, rows)
        say(report.sentence)
        if report.propensity is not None:
            say(report.propensity.sentence)
        for note in report.notes:
            say(note)
    default_page = Path(f"recall-{re.sub(r'[^A-Za-z0-9.]+', '-', model)}.html")
    _write(report, write_recall, page or (None if as_json else default_page))


@memory.command()
@click.argument("run")
@opt.option("--agent=NAME", "The agent to query again. Default: the run's only model.")
@opt.option(
    "--share",
    "Share of the decisions that is repeated under every change.",
    type=opt.Fraction(0.0, 1.0, min_open=True),
    default=0.2,
)
@opt.option(
    "--arms=ARM[,ARM]",
    "The changes; 'again' changes nothing, as a control.",
    default="again,prices,names,news,date",
)
@opt.option("--seed", "Seed of the sample of decisions.", type=opt.NATURAL, default=0)
@_max_usd
@_recordings
@_replay
@_concurrency
@opt.page("page; the record is written next to it as .json")
@run_opt.out
@json_option
def counterfactual(
    run: str,
    agent: str | None,
    arms: str,
    page: Path | None,
    out: Path,
    as_json: bool,
    **asking: Any,
) -> None:
    """Repeat a run's decisions after changing the past that the model sees.

    Returns are mirrored, names exchanged, good news replaced by bad news, the date changed. A model
    that uses its inputs decides differently. A model that answers by name or date does not.
    """
    from tradeassay_bench.examine.memory import CounterfactualConfig, counterfactual_study
    from tradeassay_bench.report.recall_page import write_counterfactual
    from tradeassay_bench.runs import Asking, Run

    played = Run.load(run_opt.find_run(run, out))
    names: Any = run_opt.split_list(arms)
    config = CounterfactualConfig(share=asking.pop("share"), seed=asking.pop("seed"), arms=names)
    label = agent or _only_model(played, "this run has no decisions of a model: name another run")
    report = counterfactual_study(played, label, config=config, asking=Asking(**asking), say=say)
    if as_json:
        print_json(report)
    else:
        rows = [
            [arm.arm, arm.how, str(arm.asked), ratio_text(arm.same), ratio_text(arm.depends)]
            for arm in report.arms
        ]
        columns = ("arm", "what is changed", "asked", "same", "depends")
        print_table(f"{report.model} in {report.run}", columns, rows)
        for note in (report.sentence, *report.notes):
            say(note)
    default_page = Path(f"counterfactual-{played.spec.name}.html")
    _write(report, write_counterfactual, page or (None if as_json else default_page))


def _write(report: Any, write: Callable[[Any, Path], Path], place: Path | None) -> None:
    """Write a page and its record as JSON next to it. Do nothing without a path."""
    import msgspec

    from tradeassay.core.files import write_atomic

    if place is not None:
        say(f"page: {write(report, place)}")
        write_atomic(
            place.with_suffix(".json"), msgspec.json.format(msgspec.json.encode(report), indent=1)
        )


def _only_model(run: Run | None, hint: str = "e.g. -m openai/gpt-5") -> str:
    """Return the only model of a run. Raises :class:`UserError` if there is not exactly one."""
    models: list[str] = []
    if run is not None:
        labels = (episode.label for episode in run.episodes if episode.by_model)
        models = list(dict.fromkeys(labels))
    if len(models) != 1:
        hint = f"one of {', '.join(models)}" if models else hint
        raise UserError("no model is named", hint=hint)
    return models[0]


@memory.command()
@opt.option("--suite=ID", "A benchmark suite with masks.", default="ktdfin-v1")
@opt.option("--dataset=NAME", "A data set other than the benchmark's own.")
@opt.option(
    "--mask=LEVEL[,LEVEL] masks", "bright, stock-blind, date-blind, blinded.", default="blinded"
)
@opt.option(
    "--hardening=NAME[,NAME] hardenings",
    "plain, rebased, scaled, scrubbed, or all; each includes the earlier ones.",
    default="plain",
)
@opt.option(
    "--attackers=NAME[,NAME]",
    "Models that attack the mask, in addition to all programs.",
    default="levels,grid",
)
@opt.option("--probes", "Number of pairs of stock and day.", type=opt.COUNT, default=200)
@opt.option(
    "--mode",
    "Data that the model sees.",
    type=click.Choice(["memory-only", "fixed-candidate", "open-research"]),
    default="open-research",
)
@opt.option("--window=CODE[,CODE] windows", "Named windows. Default: all short ones.", default="")
@opt.option("--seed", "Seed of the pairs.", type=opt.NATURAL, default=0)
@_max_usd
@_recordings
@_replay
@opt.option(
    "--answers=FILE",
    "Write every answer and the truth to this file, one JSON object per line.",
    type=opt.FILE,
)
@json_option
def probe(
    suite: str,
    dataset: str | None,
    attackers: str,
    answers: Path | None,
    as_json: bool,
    **asked: Any,
) -> None:
    """Try to identify the stock and the day behind a mask.

    Every attacker gets the same pairs under every mask, exactly as a model would see them. Ten
    programs are always among the attackers. The result is the best identification by any attacker
    under each mask, without and with the price archive.
    """
    from tradeassay_bench.examine.probe import HARDENINGS, ProbeConfig, probe_mask
    from tradeassay_bench.runs import Asking

    def progress(attacker: str, count: int, total: int) -> None:
        if count == total or count % max(1, total // 20) == 0:  # about twenty lines of progress
            say(f"{attacker}: {count} of {total} answers")

    access = {name: asked.pop(name) for name in ("max_usd", "recordings", "replay")}
    config: Any = ProbeConfig(
        masks=run_opt.split_list(asked.pop("masks")),  # type: ignore[arg-type]  # checked there
        hardenings=tuple(HARDENINGS)
        if asked["hardenings"] == "all"
        else run_opt.split_list(asked["hardenings"]),
        windows=run_opt.split_list(asked.pop("windows")),
        **{name: asked[name] for name in ("probes", "mode", "seed")},
    )
    asking = Asking(**access)
    if not (access["replay"] or access["recordings"]) and "/" in attackers:
        say("answers are not stored: use --recordings FOLDER to avoid repeated questions")
    if answers is not None:
        # Fail before any model is paid if the folder cannot be created.
        answers.parent.mkdir(parents=True, exist_ok=True)
    report = probe_mask(
        suite,
        run_opt.split_list(attackers),
        dataset=dataset,
        config=config,
        asking=asking,
        listen=progress,
    )
    if as_json:
        print_json(report)
    else:
        _show_probe(report)
    if answers is not None:
        import msgspec

        from tradeassay.core.files import write_atomic

        lines = [msgspec.json.encode(answer) + b"\n" for answer in report.answers]
        write_atomic(answers, b"".join(lines))


def _show_probe(report: ProbeReport) -> None:
    """Print the results of attacks on a mask."""
    from tradeassay.core.tables import counted
    from tradeassay_bench.examine.probe import METRICS

    def mask_of(row: Any) -> str:
        return row.mask if row.hardening == "plain" else f"{row.mask}, {row.hardening}"

    metrics = ("top_1", "top_5", "date_1", "date_7", "date_30", "sector", "board", "joint")
    titles = ("top 1", "top 5", "day ±1", "day ±7", "day ±30", "sector", "board", "joint")
    chances = [report.random[name].value for name in metrics]
    by_chance = ["" if chance is None else f"{chance:.1%}" for chance in chances]
    rows = [["by chance", "", "", *by_chance]]
    for row in report.rows:
        shares = (_share(row.of_all[name]) for name in metrics)
        rows.append([row.attacker, mask_of(row), _share(row.response), *shares])
    print_table(
        f"{report.benchmark} on {report.dataset}", ("attacker", "mask", "answers", *titles), rows
    )
    rows = []
    for bound in report.bounds:
        archive = "with" if bound.archive else "without"
        best = (_share(bound.share), f"{bound.times_chance:.1f}", bound.attacker)
        rows.append([mask_of(bound), METRICS[bound.metric], archive, *best])
    columns = ("mask", "what", "archive", "share", "times chance", "by")
    print_table("best identification by any attacker", columns, rows)
    say("shares of all probes; --json also has the shares of answered probes")
    for attacker in dict.fromkeys(row.attacker for row in report.rows if row.kind == "model"):
        answers = [answer for answer in report.answers if answer.attacker == attacker]
        symbols = dict.fromkeys(answer.symbol for answer in answers if "top_1" in answer.hits)
        days = dict.fromkeys(answer.session for answer in answers if "date_7" in answer.hits)
        if any(answer.tickers or answer.date for answer in answers):
            say(f"{attacker} recognised {_listed(symbols)}; days: {_listed(days)}")
        else:
            reason = next((f": {answer.wrong[-1]}" for answer in answers if answer.wrong), "")
            total = counted(len(answers), "answer")
            say(f"{attacker} identified no stock and no day in {total}{reason}")
    for note in report.notes:
        say(note)


def _listed(names: Iterable[str]) -> str:
    """Return the first ten names as text, with the number of the remaining names."""
    listed = list(names)
    more = f" and {len(listed) - 10} more" if len(listed) > 10 else ""
    return (", ".join(listed[:10]) or "none") + more


def _share(measure: Measure) -> str:
    """Return a measure as a percentage, with its interval."""
    from tradeassay_bench.report.paste_cells import in_line

    return in_line(measure, "{:.0%}")


def ratio_text(measure: Measure) -> str:
    """Return a measure with two decimals, with its interval."""
    from tradeassay_bench.report.paste_cells import in_line

    return in_line(measure, "{:.2f}")
