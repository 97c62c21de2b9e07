"""Define the commands of ``tradeassay recordings``: record, list and check answers of models."""

from __future__ import annotations

import functools
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tradeassay.cli import _options as opt
from tradeassay.cli._group import CommandGroup
from tradeassay.cli._output import json_option, print_json, print_table, say
from tradeassay.core.errors import UserError
from tradeassay_bench.cli import _run_options as run_opt

if TYPE_CHECKING:
    from tradeassay_bench.runs.store.archive import OpenRecording, RecordingLabel


_MANY = 10
"""Number of programs above which a message announces a slow replay."""


@click.group(cls=CommandGroup)
def recordings() -> None:
    """Record, list, check and replay answers of real models.

    \b
    tradeassay recordings list
    tradeassay run ktdfin-v1 --recordings recorded/qwen2.5-coder-1.5b --replay
    """


@recordings.command(cls=opt.FoldedCommand)
@run_opt.spec
@opt.page("recording", required=True, metavar="FILE.tar.xz")
@opt.advanced(
    "--engine=TEXT",
    "The engine that ran the model, e.g. 'vLLM 0.20, H200'.",
    default="not stated",
    show_default=False,
)
@opt.advanced(
    "--precision=TEXT",
    "The precision of its weights, e.g. bf16 or Q4_K_M.",
    default="not stated",
    show_default=False,
)
@run_opt.asking
@run_opt.out
@json_option
def record(
    out: Path, page: Path, engine: str, precision: str, as_json: bool, **described: Any
) -> int:
    """Run a spec with a model, or take a finished run, and pack the answers into one file.

    \b
    tradeassay recordings record ktdfin-v1 -m openai/gpt-5 --max-usd 20 -o gpt-5.tar.xz
    tradeassay recordings record runs/quantcode -o gpt-5-quantcode.tar.xz
    tradeassay recordings record arena.db -o gpt-5-arena.tar.xz

    The file contains replies and hashes of messages, but not the texts that the model saw. Exits
    with 1 if an episode failed. Its answers are packed anyway.
    """
    from tradeassay_bench.runs import load_run, run as run_spec
    from tradeassay_bench.runs.store.archive import command_of, pack_recording

    asking = run_opt.take_asking(described, out)
    command = command_of(sys.argv[1:])
    name, *others = described["what"]
    file = Path(name)
    if not others and file.is_file() and run_opt.holds_an_arena(file):
        from tradeassay_bench.runs.seasons import arena

        label = arena().pack(file, page, engine=engine, precision=precision, command=command)
        _show_label(page, label, as_json)
        return 0
    is_run = "/" in name or (out / name).is_dir() or (file / "manifest.json").is_file()
    if is_run and not others:
        folder = run_opt.find_run(name, out)
    else:
        spec = run_opt.build_spec(**described)
        folder = out / spec.name
        run_spec(spec, folder, progress="auto", asking=asking)
    label = pack_recording(folder, page, engine=engine, precision=precision, command=command)
    _show_label(page, label, as_json)
    if failed := load_run(folder).failed:
        say(f"{len(failed)} episodes failed: {', '.join(list(failed)[:3])}")
    return 1 if failed else 0


def _show_label(file: Path, label: RecordingLabel, as_json: bool) -> None:
    if as_json:
        print_json(label)
    else:
        say(
            f"{file}: {label.answers} answers of {', '.join(label.models)}, "
            f"{file.stat().st_size / 1e6:.1f} MB"
        )


@recordings.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """List the installed recordings."""
    from tradeassay_bench.runs.store.archive import AUDIT, GET_RECORDINGS, list_recordings

    recordings, audits = list_recordings(), list_recordings(AUDIT)
    if as_json:
        print_json([*recordings, *audits])
        return
    rows = []
    for recording in recordings:
        label = recording.label
        rows.append(
            (
                f"recorded/{recording.name}",
                ", ".join(label.benchmarks),
                str(label.answers),
                str(label.output_tokens),
                label.engine,
                label.precision,
                label.recorded,
                "yes" if label.complete else "no",
                f"{recording.megabytes:.2f}",
            )
        )
    columns = (
        "name",
        "benchmarks",
        "answers",
        "tokens out",
        "engine",
        "precision",
        "recorded",
        "whole",
        "MB",
    )
    print_table("recordings", columns, rows)
    audit_rows = [
        (
            f"recorded/{audit.name}",
            str(audit.label.answers),
            audit.label.recorded,
            f"{audit.megabytes:.2f}",
        )
        for audit in audits
    ]
    title = "what models remember (memory recall --recordings recorded/MODEL --replay)"
    print_table(title, ("name", "answers", "recorded", "MB"), audit_rows)
    if not recordings:
        say(f"no recording is installed; {GET_RECORDINGS}")


@recordings.command()
@click.argument("recording")
@opt.flag("--no-replay", "Check only hashes, prompts and texts; do not replay.")
@opt.option(
    "--programs",
    "Judge only a sample of this many recorded programs again.",
    type=click.IntRange(1),
)
@json_option
def check(recording: str, no_replay: bool, programs: int | None, as_json: bool) -> int:
    """Check a recording: hashes, label, texts, keys, prompts, and a replay.

    New recordings have to pass the same checks. Exits with 1 and lists the problems if there are
    any.
    """
    from tradeassay_bench.runs.store.archive import (
        changed_facts,
        find_recording,
        is_our_command,
        open_recording,
        recording_faults,
    )

    opened = open_recording(find_recording(recording))
    if opened.is_season:
        from tradeassay_bench.runs.seasons import arena

        seasons = arena()
        facts = seasons.changed_facts(opened)
        replay = seasons.replay_differences
        choices = seasons.choices(opened)
    else:
        from tradeassay_bench.runs.verify.freedom import freedom_of

        facts = changed_facts(opened)
        replay = functools.partial(_replay_differences, programs=programs)
        choices = freedom_of(opened.folder, opened.manifest, alone=True).sentence
    command = opened.label.command
    advice = f": record it again with: {command}" if is_our_command(command) else ""
    problems = [
        f"{name} has changed since the recording{advice}" for name in facts
    ] + recording_faults(opened)
    if not problems and not no_replay:
        if not opened.label.complete:
            raise UserError(
                "the run is not finished and has no scores to compare",
                hint="check with --no-replay",
            )
        problems += replay(opened)
    if as_json:
        print_json({"label": opened.label, "problems": problems, "chosen": choices})
    else:
        for line in problems[:50]:
            click.echo(line)
        say(choices)
        say("passed all checks" if not problems else f"{len(problems)} claims failed")
    return 1 if problems else 0


def _replay_differences(opened: OpenRecording, programs: int | None) -> list[str]:
    """Replay a recording and return one sentence for each difference.

    With ``programs`` only a sample of that many tasks is judged again.
    """
    from tradeassay_bench.runs.store.archive import (
        manifest_differences,
        recorded_spec,
        replay_recording,
        score_differences,
    )

    tasks = getattr(recorded_spec(opened.folder), "tasks", ())
    if programs is not None and not tasks:
        raise UserError("this recording has no tasks to sample from", hint="leave --programs out")
    if programs is None and len(tasks) > _MANY:
        say(
            f"judging {opened.label.answers} programs again takes 5 to 20 s of processor time each "
            "(--programs 5)"
        )
    sample = tasks[:: max(1, len(tasks) // programs)][:programs] if programs else ()
    with tempfile.TemporaryDirectory() as temporary:
        replayed = Path(temporary) / "replay"
        replay_recording(opened, replayed, tasks=sample)
        if sample:
            say(f"{len(sample)} of {len(tasks)} tasks were judged again")
            return score_differences(opened, replayed, tasks=sample)
        return score_differences(opened, replayed) + manifest_differences(opened, replayed)
