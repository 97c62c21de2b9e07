"""Commands about a run: ``run``, ``resume``, ``verify``, ``seal``, ``compare``, ``report``."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from tradeassay.cli import _options as opt
from tradeassay.cli._output import (
    finish,
    json_option,
    own_fault,
    print_json,
    print_table,
    say,
    show_verification,
    write_file,
    written_page,
)
from tradeassay.core.errors import UserError, require
from tradeassay.core.printable import printable_line

if TYPE_CHECKING:
    from tradeassay.runs import CodeRun
    from tradeassay.runs.summary import RunSummary
    from tradeassay.runs.verify.report import VerifyReport


@click.command(cls=opt.FoldedCommand)
@opt.spec
@opt.flag("--plan", "Only estimate what it would take: calls, tokens, dollars, time, disk.")
@opt.advanced("--beacon=VALUE", "Value of the beacon that the spec draws its secret from, as hex.")
@opt.advanced(
    "--with beside",
    "Ask its models what they remember when it is over, and judge it with that.",
    type=click.Choice(["recall"]),
)
@opt.asking
@opt.out
@opt.workers
@opt.executor("local")
@json_option
def run(plan: bool, beside: str | None, beacon: str | None, out: Path, **described: Any) -> int:
    """Run agents over benchmarks, score them, write the page.

    \b
    tradeassay run daily-us-v1 daily-ashare-v1 -a momentum-12-1:k=10 -a random --seeds 3
    tradeassay run my-grid.toml
    tradeassay run ktdfin-v1 -m openai/gpt-5 --mask bright,blinded --window W4 --max-usd 20
    tradeassay run ktdfin-v1 --cassettes recorded/qwen2.5-coder-1.5b --replay

    Giving the same command again continues a stopped run. Exits with 1 when an episode failed. --plan asks no
    model: prompts are measured with a scripted one; the length and speed of answers are those of earlier runs, or
    assumed if there are none.
    """
    import msgspec

    from tradeassay.runs import RunSpec, plan as plan_spec, run as run_spec
    from tradeassay.runs.store.archive import recorded_spec

    as_json, how = described.pop("as_json"), {name: described.pop(name) for name in ("executor", "workers")}
    recorded, what, slug = described["cassettes"], described["what"], described["slug"]
    asking = opt.take_asking(described, out, what[0])
    # Nothing but a benchmark's id, and perhaps a name: then a recording says what is played.
    usual = {"what": what, "slug": slug, "seeds": 1}
    bare = len(what) == 1 and not opt.is_spec_file(what[0])
    bare = bare and not any(value for key, value in described.items() if value != usual.get(key))
    code, remembered = opt.program_spec(what), False
    if not plan and asking.replay and bare and asking.cassettes and recorded not in (None, asking.cassettes):
        # One model's recordings of several benchmarks are runs of their own.
        named = [part.removesuffix(".tar.xz") for part in recorded.parts[-2:] if part != "recorded"]
        how.pop("executor")
        played: Any = recorded_spec(asking.cassettes)
        folder = out / (slug or "-".join(("replay", what[0], *named)))
        if isinstance(played, RunSpec):  # named here as its folder, so that it is found by the name on its page
            played = msgspec.structs.replace(played, slug=folder.name)
    elif code is not None and not plan:
        played = opt.with_beacon(code, beacon)
        folder = out / (slug or Path(what[0]).stem.removesuffix(".plan.spec"))
    else:
        played = opt.with_beacon(opt.build_spec(**described), beacon)
        folder, remembered = out / played.slug, beside == "recall"
    if plan:
        planned = plan_spec(played, asking=asking, runs=out)
        if as_json:
            print_json(planned)
        else:
            print_table(f"plan of '{planned.slug}'", ("what", "how much"), planned.rows())
        return 0
    done: Any = run_spec(played, folder, progress="auto", asking=asking, **how)
    if remembered and not done.failed:
        from tradeassay.assay.assay_file import record_assay
        from tradeassay.assay.judge import assay
        from tradeassay.assay.memory import ask_models

        memory = ask_models(done, asking, say=say)
        record_assay(done, assay(done, memory=memory, say=say), memory)
    return finish(done, as_json=as_json)


@click.command()
@click.argument("run")
@opt.out
@opt.workers
@opt.executor("local")
@opt.asking
@opt.flag("--retry-failed", "Play failed episodes again; recorded answers are reused.")
@json_option
def resume(run: str, out: Path, as_json: bool, **how: Any) -> int:
    """Continue a stopped run. It ends with the same bytes as one that was never stopped.

    Refuses when data, rules, prompts or versions are no longer what the manifest says.
    """
    from tradeassay.runs import resume as resume_run

    asking = opt.take_asking(how, out)
    return finish(resume_run(opt.find_run(run, out), progress="auto", asking=asking, **how), as_json=as_json)


_folder = click.Path(path_type=Path, file_okay=False, exists=True)


@click.command()
@click.argument("run")
@opt.out
@opt.workers
@opt.flag("--no-programs", "Do not examine the programs of a code run again.")
@opt.option("--plan=FILE", "The run must be the one that this sealed plan commits to.", type=opt.THERE)
@opt.option(
    "--allowed-signers=FILE",
    "A sealed run must be signed by someone in this file (see ssh-keygen).",
    type=opt.THERE,
)
@opt.option("--signer=NAME", "... and by this signer in particular.")
@opt.page("run's page, with the outcome of every claim")
@opt.option(
    "--task-file=FILE.json",
    "Your copy of the file that the tasks came from: no path in a recorded run is opened.",
    type=opt.THERE,
)
@opt.option("--agent-files=DIR", "Your copies of the files that the run's own agents are made of.", type=_folder)
@opt.option("--pages=DIR", "Of an arena: the pages in this folder must be those of its journal.", type=_folder)
@opt.option("--beacon=VALUE", "The run's secret must be drawn from this value of its beacon.")
@json_option
@own_fault
def verify(run: str, out: Path, workers: int | None, page: Path | None, as_json: bool, **bound: Any) -> int:
    """Make a recorded run again from its data, rules and recorded replies, and compare, claim by claim.

    RUN is a run's folder or name, a sealed run (one file, see ``seal``), the database of an arena (a file, or the
    address of a PostgreSQL one), a paper's folder (see ``reproduce``), or a site of the runs in --runs: pages are
    written again from their records, and compared.

    Rules are asked, conversations replayed with the recorded replies, programs examined and scores computed again,
    all under the rules registered here. Exits with 0 when everything was re-derived, with 1 when something is
    contradicted (every contradiction is named), with 3 when something cannot be checked, such as what a live
    model replied, and with 4 when verify itself fails, which says nothing about the run.
    """
    from tradeassay.runs import load_run
    from tradeassay.runs.play.progress import PacedCount
    from tradeassay.runs.verify.plans import verify_anything
    from tradeassay.runs.verify.report import verify as verify_run
    from tradeassay.runs.verify.seal import Signers

    plan, allowed, signer, pages = (bound[name] for name in ("plan", "allowed_signers", "signer", "pages"))
    if signer is not None and allowed is None:
        raise click.UsageError("a signer without a file of signers: give --allowed-signers FILE as well")
    if page is not None and Path(run).is_file():
        raise click.UsageError("-o writes the page of a run's folder: leave it out for an archive or an arena")
    sealed, found = None, _verify_other(run, out, pages, workers, bound=bool(plan or allowed or signer))
    path = Path(run)
    if found is None:
        if pages is not None:
            raise click.UsageError("--pages are those of an arena: leave it out for a run")
        path = path if path.is_file() else opt.find_run(run, out)
        check = partial(
            verify_run,
            workers=workers,
            programs=not bound["no_programs"],
            progress=PacedCount(say),
            copies=bound["task_file"] or bound["agent_files"],
            beacon=bound["beacon"],
        )
        signers = None if allowed is None else Signers(allowed, signer)
        sealed, found = verify_anything(path, plan=plan, signers=signers, check=check)
        if found is not None and not path.is_file() and not found.contradicted:
            from tradeassay.report.verifying import check_beside

            found = check_beside(load_run(path), found)
    status = 0 if found is None else found.exit_code
    if as_json:
        print_json({"seal": sealed, "verification": found, "exit_code": status})
    else:
        show_verification(found, sealed)
    if page is not None and (path / "manifest.json").is_file():
        from tradeassay.report import write_html

        say(f"report: {write_html(load_run(path), page, verified=found)}")
    return status


def _verify_other(
    run: str, runs: Path, pages: Path | None, workers: int | None, *, bound: bool
) -> VerifyReport | None:
    """Verify an arena, a paper's folder or a site; None for others. ``bound``: a plan or a signer is named."""
    folder = Path(run) if Path(run).is_dir() else runs / run
    season = "://" in run or (Path(run).is_file() and opt.holds_an_arena(Path(run)))
    paper, site = (folder / "paper.html").is_file(), (folder / "board.json").is_file()
    if not season and ((folder / "manifest.json").is_file() or not (paper or site)):
        return None
    if bound:
        raise click.UsageError("only a run has a plan or a signature: leave these options out")
    from tradeassay.report.verifying import read_paper, verify_paper, verify_site
    from tradeassay.runs.play.progress import PacedCount
    from tradeassay.runs.verify.attested import attest, attestation

    if site and not season:
        return verify_site(folder, runs, workers=workers, progress=PacedCount(say))
    record = None if season else read_paper(folder)
    files = [] if record is None else [folder / name for name in record.runs if (folder / name).is_file()]
    if not all(map(opt.holds_an_arena, files)):
        found = f"{folder} holds files that are neither runs nor seasons"
        raise UserError(found, hint="reproduce the paper again")
    if record is not None and not files:
        return verify_paper(folder, record, partial(attest, workers=workers, progress=PacedCount(say)))
    from tradeassay.runs.seasons import arena

    seasons = arena()
    if record is None:
        return seasons.verify(run, pages=pages)
    return verify_paper(folder, record, lambda db: attestation(seasons.verify(str(db)), ""), seasons.compose_paper)


@click.command()
@click.argument("run")
@opt.out
@opt.flag("--plan", "RUN is a spec file: commit to it before the first answer.")
@opt.page("seal. Default: the run's name with .seal")
@opt.option("--sign=KEY", "Sign the root with this SSH key (ssh-keygen -Y).", type=opt.THERE)
@opt.option("--author=NAME", "With --plan: whose plan it is, in the log of plans beside it.")
@json_option
def seal(
    run: str, out: Path, plan: bool, page: Path | None, sign: Path | None, author: str | None, as_json: bool
) -> None:
    """Write a finished run into one file, and print the root of its hashes.

    \b
    tradeassay seal runs/study --sign ~/.ssh/id_ed25519
    tradeassay seal --plan my-grid.toml
    tradeassay verify study.seal

    Publish the root, and the sealed files cannot be changed unnoticed. With --plan nothing has been played yet:
    spec, secret, seeds, rules, prompts, agents' code and the hashes of the data are committed to, and the spec
    with its secret is written beside the seal, to be run later. A spec with beacon = {source = "...", round =
    "..."} has its secret drawn from a public value that is not known yet (run --beacon). Data that is not here
    yet is not committed to, and neither is what a model will reply. Every plan is appended to plans.jsonl beside
    it, a chain of hashes that `site` publishes: plans that are never revealed count too.
    """
    from tradeassay.runs.verify.seal import seal_run

    if plan:
        import msgspec

        from tradeassay.runs import load_spec
        from tradeassay.runs.verify.plans import LOG, PlanLog, append_plan, seal_plan

        spec = opt.program_spec((run,)) or load_spec(Path(run))
        target = page or out / f"{getattr(spec, 'slug', Path(run).stem)}.plan.seal"
        target.parent.mkdir(parents=True, exist_ok=True)
        log, beside = target.parent / LOG, target.with_suffix(".spec.json")
        author = author or PlanLog.read(log).author
        sealed, committed = seal_plan(spec, target, author=author, key=sign)
        write_file(beside, msgspec.json.format(msgspec.json.encode(committed.asked), indent=1) + b"\n")
        line = append_plan(log, sealed.root, author)
        say(f"log:    {log}, plan {line.number}, of {line.author}")
        hashes = sum(name.startswith("data set ") for name in committed.facts)
        what = f"{len(committed.episodes)} episodes, their rules and agents, the hashes of {hashes} data sets"
        say(f"plan:   {what}")
        for name in committed.open:
            say(f"        not committed to: {name}")
        say(f"spec:   {beside} (run this one: tradeassay run {beside})")
    else:
        folder = opt.find_run(run, out)
        target = page or Path(f"{folder.name}.seal")
        sealed = seal_run(folder, target, key=sign)
    say(f"sealed: {target}, {sealed.files} files, {sealed.signature}")
    if as_json:
        print_json(sealed)
    else:
        click.echo(sealed.root)


@click.command()
@click.argument("runs", nargs=-1, required=True, metavar="FIRST OTHER...")
@opt.out
@json_option
def compare(runs: tuple[str, ...], out: Path, as_json: bool) -> None:
    """Compare runs, with a paired test where the sessions coincide.

    Every other run is compared with the FIRST. --json prints one comparison, or a list when there are several.
    """
    from tradeassay.runs import compare as compare_runs

    if len(runs) < 2:
        raise UserError("there is only one run to compare", hint="name two or more")
    first, *others = (opt.find_run(name, out) for name in runs)
    made = [compare_runs(first, other) for other in others]
    if as_json:
        print_json(made[0] if len(made) == 1 else made)
        return
    from tradeassay.report import print_comparison

    for comparison in made:
        print_comparison(comparison)


def _show_status(recorded: Any, *, as_json: bool) -> None:
    """Show an unfinished run: how far every episode has come, and the latest answers that were refused."""
    from tradeassay.report.formatting import paste_cell
    from tradeassay.runs.summary.reading import run_status

    episodes = run_status(recorded)
    if as_json:
        print_json({"unfinished": True, "episodes": episodes})
        return
    ended = sum(one.ended for one in episodes)
    say(f"unfinished: {ended} of {len(episodes)} episodes have ended; tradeassay resume {recorded.folder} goes on")
    rows = [
        (
            one.key,
            "yes" if one.ended else "no",
            str(one.steps),
            str(one.lost),
            paste_cell(one.ahead, "change").text,
            ", ".join(f"{kind} {count}" for kind, count in one.failures.items()) or "-",
        )
        for one in episodes
    ]
    ahead = "ahead of its baseline a year, however often one looks"
    print_table("so far", ("episode", "ended", "sessions", "lost", ahead, "failures"), rows)
    for one in episodes:
        for refused in one.refused:
            why, text = (printable_line(words[:300]) for words in (refused.reason, refused.text))
            say(f"\n{one.key}, {refused.session}\n  why: {why}\n  answer: {text}")


@click.command()
@click.argument("run")
@opt.page()
@opt.option(
    "--format form",
    (
        "Print tables to paste on stdout instead, with intervals and footnotes; card: for a model's page; "
        "sft, dpo, rl: questions, answers and rewards to train on, a JSON line each."
    ),
    type=click.Choice(["md", "latex", "bibtex", "csv", "json", "card", "sft", "dpo", "rl"]),
)
@opt.option("--columns=NAME,NAME", "With --format: only these columns, in this order.")
@opt.option(
    "--to",
    "Log numbers and page to a tracker ([tracking]); nowhere prints what would be logged.",
    type=click.Choice(["mlflow", "wandb", "nowhere"]),
)
@opt.option("--project", "The tracker's experiment or project.", default="tradeassay")
@opt.out
@json_option
def report(
    run: str, page: Path | None, form: Any, columns: str | None, to: Any, project: str, out: Path, as_json: bool
) -> None:
    """Show a recorded run's leaderboard and the paper's tables, and write its page (one file, read offline).

    For an unfinished run it shows how far every episode is, and the latest refused answers with the reason.
    A page that was not written on this machine came with the run, and is kept unless -o names it.

    --json prints the scores, the paper's tables, who is not ranked and why, and, for runs that trade, who is best
    in each cell (tiers) and over several markets (tests).
    """
    from tradeassay.assay.papers import paper_pages
    from tradeassay.report import paste, print_leaderboard
    from tradeassay.report.code_page import shown_run
    from tradeassay.report.paper_page import print_paper
    from tradeassay.runs import Run, load_run
    from tradeassay.runs.summary import summary_of
    from tradeassay.runs.summary.trajectories import training_lines

    if to in ("mlflow", "wandb"):
        require(to, "tracking")
    recorded = load_run(opt.find_run(run, out))
    if to is not None:
        _track(recorded, to, project, as_json=as_json)
        return
    if form is None and not (recorded.folder / "scores.json").is_file():
        _show_status(recorded, as_json=as_json)
        return
    if columns is not None and form is None:
        raise click.UsageError("--columns is about tables to paste: give --format too")
    if form is not None:
        if page is not None:
            raise click.UsageError("--format prints tables, which > FILE keeps, and writes no page: leave -o out")
        if as_json:
            raise click.UsageError("--format and --json are two forms: choose one (--format json has the tables)")
        if form in ("sft", "dpo", "rl"):
            for line in training_lines(recorded, form):
                click.echo(json.dumps(line))
            return
        click.echo(paste(recorded, form, opt.split_list(columns)), nl=False)
        return
    summary = summary_of(recorded) if isinstance(recorded, Run) else None
    papers = paper_pages(recorded) if isinstance(recorded, Run) else ()
    if as_json:
        contests = {} if summary is None else {cell.id: cell.contest for cell in summary.cells}
        markets = () if summary is None else summary.over_markets
        reliable = summary.reliability if summary else shown_run(cast("CodeRun", recorded)).reliability
        found: dict[str, Any] = {"contests": contests, "unranked": _unranked(recorded, summary)}
        found |= {"over_markets": markets, "reliability": reliable, "papers": papers}
        print_json({"scores": recorded.scores, "names": recorded.names, **found})
    else:
        print_leaderboard(summary or recorded)
        for one in papers:
            print_paper(one, only=True)
    say(f"report: {written_page(recorded, page, summary=summary)}")


def _unranked(recorded: Any, summary: RunSummary | None) -> dict[str, dict[str, str]]:
    """Return by cell why agents are not ranked."""
    if summary is None:
        rows = [(row.cell, row.agent, row.unranked) for row in recorded.kind.rows(recorded.scores)]
    else:
        rows = [(cell.id, agent.name, agent.unranked) for cell in summary.cells for agent in cell.agents]
    found: dict[str, dict[str, str]] = {}
    for cell, agent, why in rows:
        if why is not None:
            found.setdefault(cell, {})[agent] = why
    return found


def _track(recorded: Any, tracker: Any, project: str, *, as_json: bool) -> None:
    from tradeassay.report.tracking import track, tracked

    params, numbers = tracked(recorded)
    sent = None if tracker == "nowhere" else track(recorded, tracker, project=project)
    if as_json or sent is None:
        print_json({"params": params, "numbers": numbers, "tracker": tracker, "id": sent})
    if sent is not None:
        say(f"logged to {tracker} as {sent}")
