"""Start and continue runs: the entry point of every trading run and every run of programs.

:func:`run` starts a spec, and :func:`resume` continues a run from its folder. Both write the
manifest, run the unfinished episodes and write the scores. If the folder already contains a run of
the same spec, :func:`run` continues that run. A run that was killed at any point can therefore be
continued by repeating the command.
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
from tradeassay_bench.runs.spec.episode import Asking, EpisodeSpec, Options, asking_or_default
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

    A :class:`RunSpec` describes a trading run. Any other spec describes a run of programs.
    ``executor`` is ``local`` (processes), ``inline`` (this process) or ``ray``. ``workers``
    defaults to the number of cores. With ``workers=1`` the executor ``local`` uses the calling
    process. ``home`` is the root of the data store. ``asking`` contains the options for access to
    models: the number of concurrent episodes, the cap in dollars, or recorded answers only.

    An episode that fails is recorded as failed (see :attr:`Run.failed`), and the other episodes
    continue. Raises :class:`~tradeassay.core.errors.UserError` for a wrong name or
    parameter before anything is written, and :class:`RunError` if the folder contains a different
    run or other files. On Ctrl-C it raises ``KeyboardInterrupt`` with the command that continues
    the run.
    """
    if folder is None:
        folder = DEFAULT_PARENT / (spec.name if isinstance(spec, RunSpec) else spec.benchmark)
    where = None if home is None else str(path_from("home", home).absolute())
    options = Options(
        executor=executor, workers=workers, home=where, asking=asking_or_default(asking)
    )
    return run_in_folder(spec, path_from("folder", folder), progress, options)


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
    """Continue the run in ``folder`` and return it.

    The journals and scores are the same bytes as without the interruption. With ``retry_failed``
    the failed episodes run again from their start. Recorded answers of a model are not requested
    again. Raises :class:`RunError` if the folder contains no run, or if data, tasks, prompts, agent
    code or versions differ from the manifest.
    """
    where = None if home is None else str(path_from("home", home).absolute())
    options = Options(
        executor=executor,
        workers=workers,
        home=where,
        retry_failed=retry_failed,
        asking=asking_or_default(asking),
    )
    path = folder_of(folder)
    manifest = read_manifest(path / "manifest.json")
    spec = manifest.spec if isinstance(manifest, RunManifest) else recorded_code_spec(manifest)
    return run_in_folder(spec, path, progress, options)


def run_in_folder(
    spec: RunSpec | CodeSpec, path: Path, progress: ProgressChoice, options: Options
) -> Run | CodeRun:
    """Prepare and lock the folder of a run, run or continue the spec there, and return the run."""
    spec, place = with_secret(spec, [path, options.asking.recordings]), RunFolder(path)
    kind = Trading(spec, options) if isinstance(spec, RunSpec) else Programs(spec, options)
    if isinstance(kind, Programs) and not place.manifest.exists():
        # Only new episodes need the installed packages. An existing run may need only scores.
        kind.check_installed()
    refuse_other_content(place)
    new = [folder for folder in (place.path, place.path.parent) if not folder.exists()]
    place.path.mkdir(parents=True, exist_ok=True)
    listen = listener(progress)
    try:
        with run_lock(place.lock):
            remove_temporaries(place.path)
            play_and_score(kind, place, RunWatch(listen), options)
    except KeyboardInterrupt:
        if place.manifest.exists():
            hint = f"stopped; continue with: tradeassay resume {place.path}"
        else:
            hint = "stopped before the first episode; repeat the same command"
        listen(RunEnded(complete=False, hint=hint))
        # Raise exactly this type, not a subclass. Python then exits by the signal, and a shell
        # displays the exit status 130.
        raise KeyboardInterrupt(hint) from None
    except BaseException:
        listen(RunEnded(complete=False))
        if new and not place.manifest.exists():  # refused before anything was recorded
            place.lock.unlink(missing_ok=True)
            for folder in new:
                with contextlib.suppress(OSError):  # not empty: a different run has started
                    folder.rmdir()
        raise
    listen(RunEnded(complete=True))
    return load_run(path, home=options.home)


def with_secret(spec: RunSpec | CodeSpec, before: Iterable[Path | None] = ()) -> RunSpec | CodeSpec:
    """Return a spec with the secret that seeds its draws, or without a secret if it has no draws.

    ``before`` lists the folders of the run to continue and of the run whose answers are replayed. A
    spec without a secret gets the first secret of these runs. If there is none, it gets a new
    secret.
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


def play_and_score(
    kind: Trading | Programs, place: RunFolder, watch: RunWatch, options: Options
) -> None:
    """Write the manifest of a run, run its unfinished episodes, and write its scores.

    If there is a manifest, it must match the run. Raises :class:`RunError` for a different run and
    for a journal that was changed.
    """
    with contextlib.ExitStack() as stack:
        manifest: Any = kind.prepare(watch, stack) if isinstance(kind, Trading) else kind.manifest
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
            # Scores cover all episodes, so an unfinished run has no scores.
            place.scores.unlink(missing_ok=True)
        sessions = kind.sessions(manifest, waiting) if isinstance(kind, Trading) else 0
        with watch.phase("play", total=len(waiting), sessions=sessions):
            if waiting:
                kind.play(manifest, place, waiting, watch)
        if waiting or not place.scores.exists():
            write_atomic(place.scores, kind.scores(manifest, place, watch))
    add_timing(place.timing, watch.episode_seconds, watch.phase_seconds)


def refuse_other_content(place: RunFolder) -> None:
    """Check that a path contains a run, does not exist, or is an empty folder.

    Hidden files and recorded answers are ignored. Raises :class:`RunError` for a file, or for a
    folder with other content.
    """
    if place.manifest.exists() or not place.path.exists():
        return
    if not place.path.is_dir():
        raise RunError(f"{place.path} is a file", hint="choose a different folder or name")
    # A run that was killed before it wrote its manifest leaves a lock and temporary files. Recorded
    # answers alone are not a run, because they may have been copied there for a replay.
    names = (entry.name for entry in place.path.iterdir() if entry.name != place.models.name)
    if strangers := sorted(name for name in names if not name.startswith(".")):
        what = f"{place.path} is not empty and does not contain a run ({strangers[0]} ...)"
        raise RunError(what, hint="choose a different folder or name")
