"""Start and continue runs of both kinds.

A run is described, its open episodes run, and its scores are written. Starting a spec whose folder
already contains that run continues it. A run that was killed at any point is therefore continued by
repeating the command, or by :func:`resume`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, overload

import msgspec

from tradeassay.core.arguments import path_from
from tradeassay.core.files import sync_path, write_atomic
from tradeassay.core.hashing import sha256_file
from tradeassay_bench.benchmarks import benchmarks
from tradeassay_bench.benchmarks.code_protocol import CodeSpec
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.core.executors.task import ExecutorName
from tradeassay_bench.core.files import remove_temporaries
from tradeassay_bench.core.run_secret import draw_secret
from tradeassay_bench.runs.play.programs import Programs, recorded_code_spec
from tradeassay_bench.runs.play.progress import ProgressChoice, RunEnded, RunWatch, listener
from tradeassay_bench.runs.play.trading import Trading
from tradeassay_bench.runs.spec.episode import Asking, EpisodeSpec, Options, asking_of
from tradeassay_bench.runs.spec.run_spec import RunSpec
from tradeassay_bench.runs.store.folder import DEFAULT_PARENT, RunFolder, add_timing, run_lock
from tradeassay_bench.runs.store.manifest import (
    RunManifest,
    encode_manifest,
    read_manifest,
    refuse_changes,
)
from tradeassay_bench.runs.store.outcome import read_outcome
from tradeassay_bench.runs.store.run import CodeRun, Run, folder_of, load_run


@overload
def run(
    spec: RunSpec,
    folder: Path | str | None = None,
    *,
    executor: ExecutorName = "local",
    workers: int | None = None,
    progress: ProgressChoice = "none",
    home: Path | str | None = None,
    asking: Asking | None = None,
) -> Run: ...


@overload
def run(
    spec: CodeSpec,
    folder: Path | str,
    *,
    executor: ExecutorName = "local",
    workers: int | None = None,
    progress: ProgressChoice = "none",
    asking: Asking | None = None,
) -> CodeRun: ...


def run(
    spec: RunSpec | CodeSpec,
    folder: Path | str | None = None,
    *,
    executor: ExecutorName = "local",
    workers: int | None = None,
    progress: ProgressChoice = "none",
    home: Path | str | None = None,
    asking: Asking | None = None,
) -> Run | CodeRun:
    """Run a spec in ``folder`` (default ``runs/<name>``), or continue it there.

    A :class:`RunSpec` is for a trading run. Any other spec is for a benchmark of programs.
    ``executor`` is ``local`` (processes), ``inline`` (this process) or ``ray``. ``workers``
    defaults to the cores of this machine. One local worker is the calling process itself. ``home``
    is the data store's root. ``asking`` contains the options for queries to models: the number at a
    time, the cap in dollars, or recorded answers only.

    Episodes that fail are recorded as failed and the remaining ones continue. See
    :attr:`Run.failed`. Raises :class:`~tradeassay.core.errors.UserError` for a wrong name or
    parameter before anything is written, and :class:`RunError` if the folder contains a different
    run or other files. On Ctrl-C it raises ``KeyboardInterrupt`` with the command that continues
    the run.
    """
    if folder is None:
        folder = DEFAULT_PARENT / (spec.name if isinstance(spec, RunSpec) else spec.benchmark)
    where = None if home is None else str(path_from("home", home).absolute())
    options = Options(executor=executor, workers=workers, home=where, asking=asking_of(asking))
    return _run(spec, path_from("folder", folder), progress, options)


def resume(
    folder: Path | str,
    *,
    executor: ExecutorName = "local",
    workers: int | None = None,
    progress: ProgressChoice = "none",
    home: Path | str | None = None,
    retry_failed: bool = False,
    asking: Asking | None = None,
) -> Run | CodeRun:
    """Continue the run in ``folder``. It ends with the same bytes as without the interruption.

    With ``retry_failed`` the failed episodes run again from their start. Recorded answers of a
    model are not requested again. Raises :class:`RunError` if there is no run, or if data, tasks,
    prompts, agent code or versions differ from its manifest.
    """
    where = None if home is None else str(path_from("home", home).absolute())
    options = Options(
        executor=executor,
        workers=workers,
        home=where,
        retry_failed=retry_failed,
        asking=asking_of(asking),
    )
    path = folder_of(folder)
    manifest = read_manifest(path / "manifest.json")
    spec = manifest.spec if isinstance(manifest, RunManifest) else recorded_code_spec(manifest)
    return _run(spec, path, progress, options)


def _run(
    spec: RunSpec | CodeSpec, path: Path, progress: ProgressChoice, options: Options
) -> Run | CodeRun:
    """Prepare the folder of a run, check that it contains no different run, and execute the run."""
    spec, place = with_secret(spec, [path, options.asking.recordings]), RunFolder(path)
    kind = Trading(spec, options) if isinstance(spec, RunSpec) else Programs(spec, options)
    if isinstance(kind, Programs) and not place.manifest.exists():
        # A run that has ended is scored without the packages that its episodes need.
        kind.check_installed()
    refuse_other_content(place)
    new = [folder for folder in (place.path, place.path.parent) if not folder.exists()]
    place.path.mkdir(parents=True, exist_ok=True)
    listen = listener(progress)
    try:
        with run_lock(place.lock):
            remove_temporaries(place.path)
            _carry_out(kind, place, RunWatch(listen), options)
    except KeyboardInterrupt:
        if place.manifest.exists():
            hint = f"stopped; continue with: tradeassay resume {place.path}"
        else:
            hint = "stopped before the first episode; repeat the same command"
        listen(RunEnded(complete=False, hint=hint))
        # Exactly this type, not a subclass: Python then exits by the signal, which a shell shows as
        # 130.
        raise KeyboardInterrupt(hint) from None
    except BaseException:
        listen(RunEnded(complete=False))
        if new and not place.manifest.exists():  # the run was refused before anything was recorded
            place.lock.unlink(missing_ok=True)
            for folder in new:
                with contextlib.suppress(OSError):  # not empty: another run has begun meanwhile
                    folder.rmdir()
        raise
    listen(RunEnded(complete=True))
    return load_run(path, home=options.home)


def with_secret(spec: RunSpec | CodeSpec, before: Iterable[Path | None] = ()) -> RunSpec | CodeSpec:
    """Return a spec with the secret of its draws, or without a secret if nothing is drawn.

    A spec without a secret gets the secret of the run that it continues or whose answers it replays
    (the first of ``before`` with a secret), else a new one.
    """
    if isinstance(spec, RunSpec) and not any(
        benchmarks.get(name).takes_secret for name in spec.benchmarks
    ):
        return msgspec.structs.replace(spec, secret=msgspec.UNSET)
    if spec.secret:
        return spec
    manifests = (RunFolder(folder).manifest for folder in before if folder is not None)
    secrets = (read_manifest(manifest).secret for manifest in manifests if manifest.is_file())
    return msgspec.structs.replace(spec, secret=next(filter(None, secrets), None) or draw_secret())


def _carry_out(
    kind: Trading | Programs, place: RunFolder, watch: RunWatch, options: Options
) -> None:
    """Run the open episodes of a run and write its scores."""
    with contextlib.ExitStack() as stack:
        manifest: Any = kind.describe(watch, stack) if isinstance(kind, Trading) else kind.manifest
        if place.manifest.exists():
            recorded = read_manifest(place.manifest)
            refuse_changes(recorded, manifest, place.path)
            manifest = recorded
        else:
            write_atomic(place.manifest, encode_manifest(manifest))
            place.episode("").mkdir(exist_ok=True)
            sync_path(place.path)
        waiting: list[EpisodeSpec] = []
        for episode in manifest.episodes:
            key, outcome = episode.key, read_outcome(place.outcome(episode.key))
            events = place.events(key)
            if outcome is None:
                waiting.append(episode)
            elif options.retry_failed and outcome.status == "failed":
                for path in (place.outcome(key), events, place.dialogue(key)):
                    path.unlink(missing_ok=True)
                waiting.append(episode)
            elif not events.is_file() or sha256_file(events) != outcome.events_sha256:
                raise RunError(
                    f"the journal of {key} does not match its outcome.json",
                    hint=f"delete {place.episode(key)} and resume: the episode runs again",
                )
        if waiting:
            # Scores cover all episodes. While an episode is missing there are no scores.
            place.scores.unlink(missing_ok=True)
        sessions = kind.sessions(manifest, waiting) if isinstance(kind, Trading) else 0
        with watch.phase("play", total=len(waiting), sessions=sessions):
            if waiting:
                kind.play(manifest, place, waiting, watch)
        if waiting or not place.scores.exists():
            write_atomic(place.scores, kind.scores(manifest, place, watch))
    add_timing(place.timing, watch.episode_seconds, watch.phase_seconds)


def refuse_other_content(place: RunFolder) -> None:
    """Check that a path can contain a run.

    Raises :class:`RunError` for a file, or a folder with other content.
    """
    if place.manifest.exists() or not place.path.exists():
        return
    if not place.path.is_dir():
        raise RunError(f"{place.path} is a file", hint="choose a different folder or name")
    # A run killed before its manifest was written leaves its lock and incomplete temporary files.
    # Recorded answers alone are not a run: they may have been placed there for a replay.
    names = (entry.name for entry in place.path.iterdir() if entry.name != place.models.name)
    if strangers := sorted(name for name in names if not name.startswith(".")):
        what = f"{place.path} is not empty and does not contain a run ({strangers[0]} ...)"
        raise RunError(what, hint="choose a different folder or name")
