"""Define a run's folder on disk: its paths, its lock, its wall times and its versions.

::

    runs/<name>/
      manifest.json             spec, hashes, versions
      episodes/<key>/
        events.jsonl            one line per decision; state is its replay
        outcome.json            done or failed, and the journal's hash
        dialogue.jsonl          questions to a model and its answers, one line per question
      models/<key>.jsonl        recordings: every recorded answer, by the hash of its question
      scores.json               every number with its interval, or null and the reason
      timing.json               wall times (a sidecar: never compared)
      report.html               written by the report

A step of a trading episode is a session. A step of a code episode is one examined program.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shlex
import socket
import stat
import sys
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

from tradeassay.core.errors import UNDECODABLE
from tradeassay.core.files import naming, write_atomic
from tradeassay.core.hashing import canonical_json
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.core.files import take_lock

DEFAULT_PARENT = Path("runs")


def folder_in_commands(folder: Path) -> str:
    """Return a run's folder as text for the commands on a page, quoted for a shell.

    A relative path is unchanged. An absolute path is reduced to its last two parts, because pages
    are shared and must not contain paths of the machine that wrote them.
    """
    shown = Path(*folder.parts[-2:]) if folder.is_absolute() else folder
    return shlex.quote(str(shown))


class RunFolder:
    """The paths in a run's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest = path / "manifest.json"
        self.scores = path / "scores.json"
        self.timing = path / "timing.json"
        self.report = path / "report.html"
        self.lock = path / ".lock"
        self.models = path / "models"

    def episode(self, key: str) -> Path:
        """Return the path of an episode's folder."""
        return self.path / "episodes" / key

    def events(self, key: str) -> Path:
        """Return the path of an episode's journal."""
        return self.episode(key) / "events.jsonl"

    def outcome(self, key: str) -> Path:
        """Return the path of the file with an episode's outcome."""
        return self.episode(key) / "outcome.json"

    def dialogue(self, key: str) -> Path:
        """Return the path of the file with an episode's conversations."""
        return self.episode(key) / "dialogue.jsonl"


def refuse_changed_line_ends(place: RunFolder) -> None:
    """Check that the record has no Windows line ends. Raises :class:`RunError` otherwise.

    Tradeassay writes Unix line ends, but git can change them on checkout. All hashes would then
    differ, and a verification would report many forgeries.
    """
    files = [
        place.manifest,
        place.scores,
        *place.episode("").glob("*/*.json*"),
        *place.models.glob("*.jsonl"),
    ]
    changed = []
    for file in files:
        with contextlib.suppress(OSError), file.open("rb") as content:
            if content.readline().endswith(b"\r\n"):
                changed.append(file.relative_to(place.path).as_posix())
    if changed:
        more = f" and {len(changed) - 1} more files" if len(changed) > 1 else ""
        raise RunError(
            f"{place.path} has Windows line ends (CRLF) in {changed[0]}{more}, added by git or a "
            "copy",
            hint="add the line '* -text' to .gitattributes and check the run out again, or copy it "
            "unchanged",
        )


LARGEST_FILE = 1 << 30
"""The maximum size of a file in a run, in bytes. Files are read into memory as a whole."""


def refuse_odd_files(path: Path) -> None:
    """Check that all files of a run can be read to their end.

    Raises :class:`RunError` for pipes, devices, links to them, and huge files.
    """
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            status = os.lstat(os.path.join(folder, name))
            is_file = stat.S_ISREG(status.st_mode)
            if stat.S_ISDIR(status.st_mode) or (is_file and status.st_size <= LARGEST_FILE):
                continue
            what = "is too large to be read" if is_file else "is neither a file nor a folder"
            raise RunError(
                f"{folder}/{name} {what}", hint="it was not written by tradeassay: remove it"
            )


@contextlib.contextmanager
def run_lock(path: Path) -> Iterator[None]:
    """Lock a run for the duration of the block.

    Raises :class:`RunError` if a different process has locked the run. The lock file is never
    deleted and names the last process. The run is locked only while the kernel's lock is held, so
    the file of a dead process locks nothing.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        known = os.pread(descriptor, 200, 0).decode(errors="replace")
        # Any other text is not displayed, because an attacker may have written it.
        ours = re.fullmatch(r"process \d+ on [\w.-]+", known, re.ASCII)
        take_lock(descriptor, str(path.parent), holder=known if ours else "another process")
        with naming(path):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
        yield
    finally:
        os.close(descriptor)


class RunTiming(msgspec.Struct, frozen=True, kw_only=True):
    """Wall times in seconds: the last attempt of each episode, and each start of the run."""

    episodes: dict[str, float] = {}
    starts: tuple[dict[str, float], ...] = ()


def read_timing(path: Path) -> RunTiming:
    """Return the recorded wall times.

    They are empty if the file is missing or damaged, because no result depends on them.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=RunTiming)
    except (FileNotFoundError, *UNDECODABLE):
        return RunTiming()


def add_timing(path: Path, episodes: dict[str, float], phases: dict[str, float]) -> None:
    """Add the wall times of one start of the run to a file.

    ``episodes`` and ``phases`` contain seconds.
    """
    before = read_timing(path)
    after = RunTiming(
        episodes={
            **before.episodes,
            **{key: round(seconds, 4) for key, seconds in episodes.items()},
        },
        starts=(*before.starts, {phase: round(seconds, 4) for phase, seconds in phases.items()}),
    )
    write_atomic(path, msgspec.json.format(canonical_json(after), indent=1) + b"\n")


COMPUTING = ("tradeassay", "numpy")
"""The packages that determine results. A run is resumed only with the same versions."""
RECORDED = ("msgspec", "polars", "pyarrow", "exchange-calendars", "ray")


class Versions(msgspec.Struct, frozen=True, kw_only=True):
    """The versions of installed packages and of Python, the platform and the machine's type."""

    packages: dict[str, str]
    python: str
    platform: str
    machine: str


@cache
def present_versions() -> Versions:
    """Return the installed versions."""
    packages = {}
    for name in (*COMPUTING, *RECORDED):
        with contextlib.suppress(PackageNotFoundError):
            packages[name] = version(name)
    python = platform.python_version()
    return Versions(
        packages=packages, python=python, platform=sys.platform, machine=platform.machine()
    )


def version_changes(then: Versions, now: Versions) -> list[str]:
    """Return the changes of versions that prevent a resume, as texts."""
    changes = [
        f"{name} was {then.packages.get(name, 'not installed')}, is "
        f"{now.packages.get(name, 'not installed')}"
        for name in COMPUTING
        if then.packages.get(name) != now.packages.get(name)
    ]
    before, after = (".".join(versions.python.split(".")[:2]) for versions in (then, now))
    if before != after:
        changes.append(f"Python was {before}, is {after}")
    if then.machine != now.machine:
        changes.append(f"the machine was {then.machine}, is {now.machine}")
    return changes
