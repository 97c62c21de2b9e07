"""Define commands for runs: ``run``, ``resume``, ``verify``, ``seal``, ``compare``, ``report``."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from tradeassay.cli import _options as opt
from tradeassay.cli._output import json_option, print_json, print_table, say, write_file
from tradeassay.core.errors import UserError, require
from tradeassay.core.printable import printable_line
from tradeassay_bench.cli import _run_options as run_opt
from tradeassay_bench.cli._run_output import exit_4_on_internal_error, finish, show_verification

if TYPE_CHECKING:
    from tradeassay_bench.runs import CodeRun
    from tradeassay_bench.runs.summary import RunSummary
    from tradeassay_bench.runs.verify.report import VerifyReport


@click.command(cls=opt.FoldedCommand)
@run_opt.spec
@opt.flag("--plan", "Only estimate the run: calls, tokens, dollars, time, disk.")
@opt.advanced(
    "--with extra_test",
    "After the run, ask its models what they remember, and use the answers in the verdict.",
    type=click.Choice(["recall"]),
)
@run_opt.asking
@run_opt.out
@opt.workers
@opt.executor("local")
@json_option
def run(plan: bool, extra_test: str | None, out: Path, **spec_options: Any) -> int:
    """Run agents on benchmarks, score them, and write the page.

    \b
    tradeassay run daily-us-v1 daily-ashare-v1 -a momentum-12-1:k=10 -a random --seeds 3
    tradeassay run my-grid.toml
    tradeassay run ktdfin-v1 -m openai/gpt-5 --mask bright,blinded --window W4 --max-usd 20
    tradeassay run ktdfin-v1 --recordings recorded/qwen2.5-coder-1.5b --replay

    The same command continues a stopped run. Exits with 1 if an episode failed. --plan queries no
    model. It measures prompts with a scripted model. The length and speed of answers are taken from
    earlier runs, or assumed if there are none.
    """
    import msgspec

    from tradeassay_bench.runs import RunSpec, plan as plan_spec, run as run_spec
    from tradeassay_bench.runs.store.archive import recorded_spec

    as_json = spec_options.pop("as_json")
    options = {name: spec_options.pop(name) for name in ("executor", "workers")}
    recordings_path, targets = spec_options["recordings"], spec_options["what"]
    name = spec_options["name"]
    asking = run_opt.take_asking(spec_options, out, targets[0])
    # With only a benchmark's id, and perhaps a name, a recording determines the settings.
    defaults = {"what": targets, "name": name, "seeds": 1}
    other_options = any(value for key, value in spec_options.items() if value != defaults.get(key))
    only_benchmark_given = (
        len(targets) == 1 and not run_opt.is_spec_file(targets[0]) and not other_options
    )
    code_spec, asks_recall = run_opt.program_spec(targets), False
    if (
        not plan
        and asking.replay
        and only_benchmark_given
        and asking.recordings
        and recordings_path not in (None, asking.recordings)
    ):
        # A model may have recordings of several benchmarks. Each replay is a separate run.
        parts = [part for part in recordings_path.parts[-2:] if part != "recorded"]
        parts = [part.removesuffix(".tar.xz") for part in parts]
        options.pop("executor")
        spec: Any = recorded_spec(asking.recordings)
        folder = out / (name or "-".join(("replay", targets[0], *parts)))
        if isinstance(spec, RunSpec):
            # The run has the name of its folder, so that the name on its page can be used in
            # commands.
            spec = msgspec.structs.replace(spec, name=folder.name)
    elif code_spec is not None and not plan:
        spec = code_spec
        folder = out / (name or Path(targets[0]).stem.removesuffix(".plan.spec"))
    else:
        spec = run_opt.build_spec(**spec_options)
        folder, asks_recall = out / spec.name, extra_test == "recall"
    if plan:
        planned = plan_spec(spec, asking=asking, runs=out)
        if as_json:
            print_json(planned)
        else:
            print_table(f"plan of '{planned.name}'", ("what", "how much"), planned.rows())
        return 0
    finished: Any = run_spec(spec, folder, progress="auto", asking=asking, **options)
    if asks_recall and not finished.failed:
        from tradeassay_bench.examine.assay_file import record_assay
        from tradeassay_bench.examine.judge import assay
        from tradeassay_bench.examine.memory import ask_models

        memory = ask_models(finished, asking, say=say)
        record_assay(finished, assay(finished, memory=memory, say=say), memory)
    return finish(finished, as_json=as_json)


@click.command()
@click.argument("run")
@run_opt.out
@opt.workers
@opt.executor("local")
@run_opt.asking
@opt.flag("--retry-failed", "Run failed episodes again; recorded answers are reused.")
@json_option
def resume(run: str, out: Path, as_json: bool, **how: Any) -> int:
    """Continue a stopped run.

    The result is identical to an uninterrupted run, byte for byte. It is an error if data, rules,
    prompts or versions differ from the manifest.
    """
    from tradeassay_bench.runs import resume as resume_run

    asking = run_opt.take_asking(how, out)
    return finish(
        resume_run(run_opt.find_run(run, out), progress="auto", asking=asking, **how),
        as_json=as_json,
    )


_folder = click.Path(path_type=Path, file_okay=False, exists=True)


@click.command()
@click.argument("run")
@run_opt.out
@opt.workers
@opt.flag("--no-programs", "Do not examine the programs of a code run again.")
@opt.option("--plan=FILE", "Check the run against this sealed plan.", type=opt.THERE)
@opt.page("run's page, with the result of every claim")
@opt.option(
    "--task-file=FILE.json",
    "Your copy of the task file; paths in a recorded run are never opened.",
    type=opt.THERE,
)
@opt.option(
    "--agent-files=DIR",
    "Your copies of the files of the run's own agents.",
    type=_folder,
)
@opt.option(
    "--pages=DIR",
    "For an arena: check the pages in this folder against its journal.",
    type=_folder,
)
@json_option
@exit_4_on_internal_error
def verify(
    run: str, out: Path, workers: int | None, page: Path | None, as_json: bool, **check_options: Any
) -> int:
    """Replay a recorded run from its data, rules and recorded replies, and compare every claim.

    RUN is a run's folder or name, a sealed run (one file, see ``seal``), the database of an arena
    (a file, or the address of a PostgreSQL database), or a paper's folder (see ``reproduce``),
    whose runs are verified.

    Rules decide again, conversations are replayed with the recorded replies, programs are examined
    again, and scores are computed again, all under the rules registered here.

    Exits with 0 if everything was re-derived, with 1 if something is contradicted (every
    contradiction is listed), with 3 if something cannot be checked, such as the replies of a live
    model, and with 4 if verify itself fails, which is no evidence about the run.
    """
    from tradeassay_bench.runs import load_run
    from tradeassay_bench.runs.play.progress import PacedCount
    from tradeassay_bench.runs.verify.plans import verify_anything
    from tradeassay_bench.runs.verify.report import verify as verify_run

    plan, pages = check_options["plan"], check_options["pages"]
    if page is not None and Path(run).is_file():
        raise click.UsageError(
            "-o is only valid with a run's folder: drop it for an archive or an arena"
        )
    sealed, verification = None, _verify_other(run, out, pages, workers, has_plan=plan is not None)
    path = Path(run)
    if verification is None:
        if pages is not None:
            raise click.UsageError("--pages is only valid with an arena: drop it for a run")
        path = path if path.is_file() else run_opt.find_run(run, out)
        check = partial(
            verify_run,
            workers=workers,
            programs=not check_options["no_programs"],
            progress=PacedCount(say),
            copies=check_options["task_file"] or check_options["agent_files"],
        )
        sealed, verification = verify_anything(path, plan=plan, check=check)
        if verification is not None and not path.is_file() and not verification.contradicted:
            from tradeassay_bench.report.verifying import check_beside

            verification = check_beside(load_run(path), verification)
    status = 0 if verification is None else verification.exit_code
    if as_json:
        print_json({"seal": sealed, "verification": verification, "exit_code": status})
    else:
        show_verification(verification, sealed)
    if page is not None and (path / "manifest.json").is_file():
        from tradeassay_bench.report import write_html

        say(f"report: {write_html(load_run(path), page, verified=verification)}")
    return status


def _verify_other(
    run: str, runs: Path, pages: Path | None, workers: int | None, *, has_plan: bool
) -> VerifyReport | None:
    """Return the verification of an arena or a paper's folder, or None for any other run.

    ``has_plan`` is True if a plan was given, which is an error for arenas and papers.
    """
    folder = Path(run) if Path(run).is_dir() else runs / run
    season = "://" in run or (Path(run).is_file() and run_opt.holds_an_arena(Path(run)))
    paper = (folder / "paper.html").is_file()
    if not season and ((folder / "manifest.json").is_file() or not paper):
        return None
    if has_plan:
        raise click.UsageError("--plan is only valid with a run: drop it")
    from tradeassay_bench.report.verifying import read_paper, verify_paper
    from tradeassay_bench.runs.play.progress import PacedCount
    from tradeassay_bench.runs.verify.report import verify as verify_run

    record = None if season else read_paper(folder)
    files = (
        []
        if record is None
        else [folder / name for name in record.runs if (folder / name).is_file()]
    )
    if not all(map(run_opt.holds_an_arena, files)):
        problem = f"{folder} contains files that are neither runs nor seasons"
        raise UserError(problem, hint="reproduce the paper again")
    if record is not None and not files:
        return verify_paper(
            folder, record, partial(verify_run, workers=workers, progress=PacedCount(say))
        )
    from tradeassay_bench.runs.seasons import arena

    seasons = arena()
    if record is None:
        return seasons.verify(run, pages=pages)
    return verify_paper(folder, record, lambda db: seasons.verify(str(db)))


@click.command()
@click.argument("run")
@run_opt.out
@opt.flag("--plan", "RUN is a spec file; commit to it before the first answer.")
@opt.page("seal. Default: the run's name with .seal")
@json_option
def seal(run: str, out: Path, plan: bool, page: Path | None, as_json: bool) -> None:
    """Write a finished run into one file, and print its root hash.

    \b
    tradeassay seal runs/study
    tradeassay seal --plan my-grid.toml
    tradeassay verify study.seal

    After you publish the root hash, nobody can change the sealed files unnoticed. --plan seals a
    run before it starts. It commits to spec, secret, seeds, rules, prompts, agents' code and the
    hashes of the data, but not to missing data or to replies of models. The spec with its secret is
    written next to the seal, to be run later.
    """
    from tradeassay_bench.runs.verify.seal import seal_run

    if plan:
        import msgspec

        from tradeassay_bench.runs import load_spec
        from tradeassay_bench.runs.verify.plans import seal_plan

        spec = run_opt.program_spec((run,)) or load_spec(Path(run))
        target = page or out / f"{getattr(spec, 'name', Path(run).stem)}.plan.seal"
        target.parent.mkdir(parents=True, exist_ok=True)
        spec_file = target.with_suffix(".spec.json")
        sealed, committed = seal_plan(spec, target)
        write_file(
            spec_file, msgspec.json.format(msgspec.json.encode(committed.asked), indent=1) + b"\n"
        )
        hashes = sum(name.startswith("data set ") for name in committed.facts)
        say(
            f"plan:   {len(committed.episodes)} episodes, their rules and agents, "
            f"the hashes of {hashes} data sets"
        )
        for name in committed.open:
            say(f"        not committed to: {name}")
        say(f"spec:   {spec_file} (run it with: tradeassay run {spec_file})")
    else:
        folder = run_opt.find_run(run, out)
        target = page or Path(f"{folder.name}.seal")
        sealed = seal_run(folder, target)
    say(f"sealed: {target}, {sealed.files} files")
    if as_json:
        print_json(sealed)
    else:
        click.echo(sealed.root)


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="FIRST OTHER...")
@run_opt.out
@json_option
def compare(runs: tuple[str, ...], out: Path, as_json: bool) -> None:
    """Compare runs, with a paired test if they have the same sessions.

    Every other run is compared with the FIRST. --json prints one comparison, or a list of several.
    """
    from tradeassay_bench.runs import compare as compare_runs

    if len(runs) < 2:
        raise UserError("there is only one run to compare", hint="name two or more runs")
    first, *others = (run_opt.find_run(name, out) for name in runs)
    comparisons = [compare_runs(first, other) for other in others]
    if as_json:
        print_json(comparisons[0] if len(comparisons) == 1 else comparisons)
        return
    from tradeassay_bench.report import print_comparison

    for comparison in comparisons:
        print_comparison(comparison)


def _show_status(recorded: Any, *, as_json: bool) -> None:
    """Print the progress of every episode of an unfinished run, and its latest refused answers."""
    from tradeassay_bench.report.paste_cells import paste_cell
    from tradeassay_bench.runs.summary.reading import run_status

    episodes = run_status(recorded)
    if as_json:
        print_json({"unfinished": True, "episodes": episodes})
        return
    ended = sum(episode.ended for episode in episodes)
    say(
        f"unfinished: {ended} of {len(episodes)} episodes have ended; "
        f"to continue: tradeassay resume {recorded.folder}"
    )
    rows = [
        (
            episode.key,
            "yes" if episode.ended else "no",
            str(episode.steps),
            str(episode.lost),
            paste_cell(episode.ahead, "change").text,
            ", ".join(f"{kind} {count}" for kind, count in episode.failures.items()) or "-",
        )
        for episode in episodes
    ]
    ahead = "excess return over its baseline, per year (valid at any time)"
    print_table("so far", ("episode", "ended", "sessions", "lost", ahead, "failures"), rows)
    for episode in episodes:
        for refused in episode.refused:
            reason, text = printable_line(refused.reason[:300]), printable_line(refused.text[:300])
            say(f"\n{episode.key}, {refused.session}\n  why: {reason}\n  answer: {text}")


@click.command()
@click.argument("run")
@opt.page()
@opt.option(
    "--format form",
    (
        "Print to stdout instead: tables with intervals and footnotes to paste; card for a model's "
        "page; "
        "sft, dpo, rl for training data (questions, answers, rewards) as JSON lines."
    ),
    type=click.Choice(["md", "latex", "bibtex", "csv", "json", "card", "sft", "dpo", "rl"]),
)
@opt.option("--columns=NAME,NAME", "With --format: only these columns, in this order.")
@opt.option(
    "--to",
    "Log numbers and page to a tracker ([tracking]); nowhere only prints them.",
    type=click.Choice(["mlflow", "wandb", "nowhere"]),
)
@opt.option("--project", "The tracker's experiment or project.", default="tradeassay")
@run_opt.out
@json_option
def report(
    run: str,
    page: Path | None,
    form: Any,
    columns: str | None,
    to: Any,
    project: str,
    out: Path,
    as_json: bool,
) -> None:
    """Show a recorded run's leaderboard and the paper's tables, and write its page.

    The page is one file that works offline. For an unfinished run, the progress of every episode
    and the latest refused answers are shown.

    --json prints the scores, the paper's tables, the agents that are not ranked and why, and, for
    runs that trade, tiers of agents in each setting and tests over several markets.
    """
    from tradeassay_bench.papers import paper_pages
    from tradeassay_bench.report import paste, print_leaderboard, write_html
    from tradeassay_bench.report.code_page import shown_run
    from tradeassay_bench.report.paper_page import print_paper
    from tradeassay_bench.runs import Run, load_run
    from tradeassay_bench.runs.summary import summary_of
    from tradeassay_bench.runs.summary.trajectories import training_lines

    if to in ("mlflow", "wandb"):
        require(to, "tracking")
    recorded = load_run(run_opt.find_run(run, out))
    if to is not None:
        _track(recorded, to, project, as_json=as_json)
        return
    if form is None and not (recorded.folder / "scores.json").is_file():
        _show_status(recorded, as_json=as_json)
        return
    if columns is not None and form is None:
        raise click.UsageError("--columns is only valid with --format")
    if form is not None:
        if page is not None:
            raise click.UsageError(
                "-o is not valid with --format, which writes no page: use > FILE to keep its output"
            )
        if as_json:
            raise click.UsageError(
                "--json is not valid with --format: choose one (--format json has the tables)"
            )
        if form in ("sft", "dpo", "rl"):
            for line in training_lines(recorded, form):
                click.echo(json.dumps(line))
            return
        click.echo(paste(recorded, form, run_opt.split_list(columns)), nl=False)
        return
    summary = summary_of(recorded) if isinstance(recorded, Run) else None
    papers = paper_pages(recorded) if isinstance(recorded, Run) else ()
    if as_json:
        contests = (
            {} if summary is None else {setting.id: setting.contest for setting in summary.settings}
        )
        markets = () if summary is None else summary.over_markets
        reliable = (
            summary.reliability if summary else shown_run(cast("CodeRun", recorded)).reliability
        )
        print_json(
            {
                "scores": recorded.scores,
                "names": recorded.names,
                "contests": contests,
                "unranked": _unranked(recorded, summary),
                "over_markets": markets,
                "reliability": reliable,
                "papers": papers,
            }
        )
    else:
        print_leaderboard(summary or recorded)
        for paper in papers:
            print_paper(paper, only=True)
    say(f"report: {write_html(recorded, page, summary=summary)}")


def _unranked(recorded: Any, summary: RunSummary | None) -> dict[str, dict[str, str]]:
    """Return the reasons why agents are not ranked, by setting and agent."""
    rows: list[tuple[str, str, str | None]] = []
    if summary is None:
        for row in recorded.kind.rows(recorded.scores):
            rows.append((row.setting, row.agent, row.unranked))
    else:
        for setting in summary.settings:
            rows += [(setting.id, agent.name, agent.unranked) for agent in setting.agents]
    reasons: dict[str, dict[str, str]] = {}
    for setting_id, name, reason in rows:
        if reason is not None:
            reasons.setdefault(setting_id, {})[name] = reason
    return reasons


def _track(recorded: Any, tracker: Any, project: str, *, as_json: bool) -> None:
    """Log a run's numbers to a tracker, or only print the numbers."""
    from tradeassay_bench.report.tracking import track, tracked

    params, numbers = tracked(recorded)
    sent = None if tracker == "nowhere" else track(recorded, tracker, project=project)
    if as_json or sent is None:
        print_json({"params": params, "numbers": numbers, "tracker": tracker, "id": sent})
    if sent is not None:
        say(f"logged to {tracker} as {sent}")
