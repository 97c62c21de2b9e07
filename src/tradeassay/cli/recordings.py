"""``tradeassay recordings``: make, list and check recorded answers of models."""

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

if TYPE_CHECKING:
    from tradeassay.runs.store.archive import OpenRecording, RecordingLabel


_MANY = 10


@click.group(cls=CommandGroup)
def recordings() -> None:
    """Recorded answers of real models: make, list, check and replay them.

    \b
    tradeassay recordings list
    tradeassay run ktdfin-v1 --cassettes recorded/qwen2.5-coder-1.5b --replay
    """


@recordings.command(cls=opt.FoldedCommand)
@opt.spec
@opt.page("recording", required=True, metavar="FILE.tar.xz")
@opt.advanced(
    "--engine=TEXT", "What ran the model, e.g. 'vLLM 0.20, H200'.", default="not stated", show_default=False
)
@opt.advanced("--precision=TEXT", "Of its weights, e.g. bf16 or Q4_K_M.", default="not stated", show_default=False)
@opt.asking
@opt.out
@json_option
def record(out: Path, page: Path, engine: str, precision: str, as_json: bool, **described: Any) -> int:
    """Play a spec with a model, or take a run that was played, and pack the answers into one file.

    \b
    tradeassay recordings record ktdfin-v1 -m openai/gpt-5 --window W4 --max-usd 20 -o gpt-5.tar.xz
    tradeassay recordings record runs/quantcode -o gpt-5-quantcode.tar.xz
    tradeassay recordings record arena.db -o gpt-5-arena.tar.xz

    The file holds replies and hashes of messages, but none of the texts that the model was shown. Exits with 1
    when an episode failed; its answers are packed anyway.
    """
    from tradeassay.runs import load_run, run as run_spec
    from tradeassay.runs.store.archive import command_of, pack_recording

    asking = opt.take_asking(described, out)
    command = command_of(sys.argv[1:])
    named, *others = described["what"]
    file = Path(named)
    if not others and file.is_file() and opt.holds_an_arena(file):
        from tradeassay.runs.seasons import arena

        _tell(page, arena().pack(file, page, engine=engine, precision=precision, command=command), as_json)
        return 0
    played = "/" in named or (out / named).is_dir() or (file / "manifest.json").is_file()
    if played and not others:
        folder = opt.find_run(named, out)
    else:
        spec = opt.build_spec(**described)
        folder = out / spec.slug
        run_spec(spec, folder, progress="auto", asking=asking)
    _tell(page, pack_recording(folder, page, engine=engine, precision=precision, command=command), as_json)
    if failed := load_run(folder).failed:
        say(f"{len(failed)} episodes failed: {', '.join(list(failed)[:3])}")
    return 1 if failed else 0


def _tell(file: Path, label: RecordingLabel, as_json: bool) -> None:
    if as_json:
        print_json(label)
    else:
        say(f"{file}: {label.answers} answers of {', '.join(label.models)}, {file.stat().st_size / 1e6:.1f} MB")


@recordings.command("list")
@json_option
def list_command(as_json: bool) -> None:
    """List the recordings that are installed."""
    from tradeassay.runs.store.archive import AUDIT, GET_RECORDINGS, list_recordings

    found, audits = list_recordings(), list_recordings(AUDIT)
    if as_json:
        print_json([*found, *audits])
        return
    rows = []
    for one in found:
        label = one.label
        made = (label.engine, label.precision, label.recorded, "yes" if label.complete else "no")
        counted = (", ".join(label.benchmarks), str(label.answers), str(label.output_tokens))
        rows.append((f"recorded/{one.name}", *counted, *made, f"{one.megabytes:.2f}"))
    columns = ("name", "benchmarks", "answers", "tokens out", "engine", "precision", "recorded", "whole", "MB")
    print_table("recordings", columns, rows)
    asked = [
        (f"recorded/{one.name}", str(one.label.answers), one.label.recorded, f"{one.megabytes:.2f}")
        for one in audits
    ]
    title = "what models remember (memory recall --cassettes recorded/MODEL --replay)"
    print_table(title, ("name", "answers", "recorded", "MB"), asked)
    if not found:
        say(f"none is installed; {GET_RECORDINGS}")


@recordings.command()
@click.argument("recording")
@opt.flag("--no-replay", "Only hashes, prompts and texts; no replay.")
@opt.option(
    "--programs", "Of recorded programs, judge so many again, spread over all; not all.", type=click.IntRange(1)
)
@json_option
def check(recording: str, no_replay: bool, programs: int | None, as_json: bool) -> int:
    """Check a recording as it would be checked on arrival: hashes, label, texts, keys, prompts, and a replay.

    Exits with 1 and names what is wrong.
    """
    from tradeassay.runs.store.archive import (
        changed_facts,
        find_recording,
        is_our_command,
        open_recording,
        recording_faults,
    )

    opened = open_recording(find_recording(recording))
    if opened.is_season:
        from tradeassay.runs.seasons import arena

        seasons = arena()
        facts, again, chosen = seasons.changed_facts(opened), seasons.replay_differences, seasons.choices(opened)
    else:
        from tradeassay.runs.verify.freedom import freedom_of

        facts, again = changed_facts(opened), functools.partial(_played_again, programs=programs)
        chosen = freedom_of(opened.folder, opened.manifest, alone=True).sentence
    command = opened.label.command
    again_with = f": record it again with: {command}" if is_our_command(command) else ""
    found = [f"{name} has changed since{again_with}" for name in facts] + recording_faults(opened)
    if not found and not no_replay:
        if not opened.label.complete:
            raise UserError("the run was not finished: it has no scores to compare", hint="check with --no-replay")
        found += again(opened)
    if as_json:
        print_json({"label": opened.label, "problems": found, "chosen": chosen})
    else:
        for line in found[:50]:
            click.echo(line)
        say(chosen)
        say("holds" if not found else f"{len(found)} claims do not hold")
    return 1 if found else 0


def _played_again(opened: OpenRecording, programs: int | None) -> list[str]:
    from tradeassay.runs.store.archive import (
        manifest_differences,
        recorded_spec,
        replay_recording,
        score_differences,
    )

    tasks = getattr(recorded_spec(opened.folder), "tasks", ())
    if programs is not None and not tasks:
        raise UserError("this recording names no tasks to draw from", hint="leave --programs out")
    if programs is None and len(tasks) > _MANY:
        say(
            f"{opened.label.answers} programs are judged again, at 5 to 20 s of processor time each (--programs 5)"
        )
    some = tasks[:: max(1, len(tasks) // programs)][:programs] if programs else ()
    with tempfile.TemporaryDirectory() as place:
        again = Path(place) / "replay"
        replay_recording(opened, again, tasks=some)
        if some:
            say(f"{len(some)} of {len(tasks)} tasks were judged again")
            return score_differences(opened, again, tasks=some)
        return score_differences(opened, again) + manifest_differences(opened, again)
