"""Starting and continuing runs: prepare the data, play what has not ended, score, write.

Starting a spec whose folder already holds that very run continues it, so a run that was killed at any point is
continued by giving the same command again, or by :func:`resume`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tradeassay.agents import agents, make_agent
from tradeassay.benchmarks import Benchmark, benchmarks
from tradeassay.core.errors import RunError
from tradeassay.core.files import remove_temporaries, sync_folder, write_atomic
from tradeassay.runs.episode import Episode, expand
from tradeassay.runs.executors import ExecutorName, make_executor
from tradeassay.runs.layout import DEFAULT_PARENT, RunFolder
from tradeassay.runs.lock import RunLock
from tradeassay.runs.manifest import build_manifest, encode_manifest, played_as, read_manifest, refuse_changes
from tradeassay.runs.models import Asking, refuse_bad_models
from tradeassay.runs.phases import Phases
from tradeassay.runs.progress import ProgressChoice, RunEnded, listener
from tradeassay.runs.recorded import Run
from tradeassay.runs.scores import encode_scores
from tradeassay.runs.spec import RunSpec
from tradeassay.runs.tasks import ENTRY
from tradeassay.runs.timing import add_timing
from tradeassay.runs.versions import present_versions


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a run is carried out. Nothing here changes a byte of its result, a budget that runs out excepted."""

    executor: ExecutorName
    workers: int | None
    home: str | None
    retry_failed: bool = False
    asking: Asking = Asking()


def run(
    spec: RunSpec,
    folder: Path | str | None = None,
    *,
    executor: ExecutorName = "local",
    workers: int | None = None,
    progress: ProgressChoice = "none",
    home: Path | str | None = None,
    asking: Asking | None = None,
) -> Run:
    """Run a spec in ``folder`` (default ``runs/<slug>``), or continue it there.

    ``executor`` is ``local`` (processes), ``inline`` (this process) or ``ray``. ``workers`` defaults to the cores
    of this machine; one local worker is the calling process itself. ``home`` is the data store's root. ``asking``
    says how models are asked: how many at once, for how many dollars at most, or from recorded answers only.

    Episodes that fail are recorded as failed and the others go on; see :attr:`Run.failed`. Raises
    :class:`~tradeassay.core.errors.UserError` for a wrong name or parameter before anything is written,
    :class:`RunError` when the folder holds another run or something else, and on Ctrl-C ``KeyboardInterrupt``
    with the command that continues the run.
    """
    place = RunFolder(Path(folder) if folder is not None else DEFAULT_PARENT / spec.slug)
    options = Options(executor=executor, workers=workers, home=_text(home), asking=asking or Asking())
    return _run(spec, place, progress, options)


def resume(
    folder: Path | str,
    *,
    executor: ExecutorName = "local",
    workers: int | None = None,
    progress: ProgressChoice = "none",
    home: Path | str | None = None,
    retry_failed: bool = False,
    asking: Asking | None = None,
) -> Run:
    """Continue the run in ``folder``; it ends with the same bytes as if it had never stopped.

    With ``retry_failed`` the episodes that failed are played again from their start; what a model has answered
    already is not asked again. Raises :class:`RunError` when
    there is no run, or when data, benchmark, agent code or versions are no longer what its manifest says.
    """
    place = RunFolder(Path(folder))
    options = Options(
        executor=executor,
        workers=workers,
        home=_text(home),
        retry_failed=retry_failed,
        asking=asking or Asking(),
    )
    return _run(read_manifest(place.manifest).spec, place, progress, options)


def _run(spec: RunSpec, place: RunFolder, progress: ProgressChoice, options: Options) -> Run:
    episodes = expand(spec)
    for episode in episodes:
        make_agent(episode.agent.name, episode.agent.params)
    refuse_bad_models(episodes, options.asking, options.home)
    _refuse_other_content(place)
    new = [folder for folder in (place.path, place.path.parent) if not folder.exists()]
    place.path.mkdir(parents=True, exist_ok=True)
    listen = listener(progress)
    try:
        with RunLock(place.lock):
            remove_temporaries(place.path)
            _carry_out(spec, episodes, place, Phases(place, options.home, listen), options)
    except KeyboardInterrupt:
        hint = f"stopped; {how_to_go_on(place)}"
        listen(RunEnded(complete=False, hint=hint))
        # Exactly this type, not one of our own: Python then ends by the signal, which a shell shows as 130.
        raise KeyboardInterrupt(hint) from None
    except BaseException:
        listen(RunEnded(complete=False))
        _leave_nothing_behind(place, new)
        raise
    listen(RunEnded(complete=True))
    return Run.load(place.path, home=options.home)


def _leave_nothing_behind(place: RunFolder, new: Sequence[Path]) -> None:
    """Remove the folders made for a run that was refused before anything was recorded."""
    if place.manifest.exists() or not new:
        return
    place.lock.unlink(missing_ok=True)
    for folder in new:
        with contextlib.suppress(OSError):  # not empty: another run began meanwhile
            folder.rmdir()


def _text(home: Path | str | None) -> str | None:
    return None if home is None else str(Path(home).absolute())


def how_to_go_on(place: RunFolder) -> str:
    """Return what to do after a run was stopped."""
    if place.manifest.exists():
        return f"continue with: tradeassay resume {place.path}"
    return "nothing was played yet: give the same command again"


def _carry_out(
    spec: RunSpec, episodes: tuple[Episode, ...], place: RunFolder, phases: Phases, options: Options
) -> None:
    names, here = _modules(episodes)
    name: ExecutorName = "inline" if here and options.executor == "local" else options.executor
    with make_executor(name, entry=ENTRY, workers=options.workers, modules=names) as executor:
        ways = {episode.benchmark: _plainly(episode, spec) for episode in episodes}
        datasets = phases.prepare(executor, episodes, ways)
        manifest = build_manifest(spec, episodes, datasets, present_versions(), prices=options.asking.prices)
        if place.manifest.exists():
            known = read_manifest(place.manifest)
            refuse_changes(known, manifest, place.path)
            manifest = known
        else:
            write_atomic(place.manifest, encode_manifest(manifest))
            (place.path / "episodes").mkdir(exist_ok=True)
            sync_folder(place.path)
        played = phases.play(
            executor, manifest, datasets, retry_failed=options.retry_failed, asking=options.asking
        )
        if played or not place.scores.exists():
            scores = phases.score(executor, manifest)
            write_atomic(place.scores, encode_scores(scores))
    add_timing(place.timing, phases.episode_seconds, phases.phase_seconds)


def _plainly(episode: Episode, spec: RunSpec) -> Benchmark:
    return played_as(benchmarks.get(episode.benchmark), episode, spec.window)


def _modules(episodes: Sequence[Episode]) -> tuple[tuple[str, ...], bool]:
    """Return the modules that register the agents, and whether one of them is the caller's script itself."""
    found = dict.fromkeys(agents.get(episode.agent.name).__module__ for episode in episodes)
    outside = tuple(name for name in found if name.split(".")[0] != "tradeassay")
    return tuple(name for name in outside if name != "__main__"), "__main__" in outside


def _refuse_other_content(place: RunFolder) -> None:
    """Do not write a run among somebody's other files."""
    if place.manifest.exists() or not place.path.exists():
        return
    if not place.path.is_dir():
        raise RunError(f"{place.path} is a file", mend="choose another folder or slug")
    # A run killed before its manifest was written leaves its lock and half-written temporaries.
    # Recorded answers alone are no run yet: they may have been put there to be replayed.
    known = {place.models.name}
    strangers = [
        item.name for item in place.path.iterdir() if not item.name.startswith(".") and item.name not in known
    ]
    if strangers:
        raise RunError(
            f"{place.path} is not empty and holds no run ({sorted(strangers)[0]} ...)",
            mend="choose another folder or slug",
        )
