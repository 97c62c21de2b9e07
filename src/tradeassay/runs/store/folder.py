"""A run's folder on disk: where things are, who may write, how long it took, and which versions made it.

::

    runs/<slug>/
      manifest.json             spec, hashes, versions
      episodes/<key>/
        events.jsonl            one line per decision; state is its replay
        outcome.json            done or failed, and the journal's hash
        dialogue.jsonl          what a model was asked and what it said, one line per question
      models/<key>.jsonl        cassettes: every recorded answer, by the hash of its question
      scores.json               every number with its interval, or null and the reason
      timing.json               wall times (a sidecar: never compared)
      report.html               written by the report

A trading episode's step is a session; a code episode's step is one examined program."""

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

from tradeassay.core.errors import UNDECODABLE, RunError
from tradeassay.core.files import naming, take_lock, write_atomic
from tradeassay.core.hashing import canonical_json

DEFAULT_PARENT = Path("runs")


def folder_in_commands(folder: Path) -> str:
    """Return how the commands of a page name a folder, quoted for a shell.

    A relative folder is named as it was given. Of an absolute one only the last two names are shown, because a
    page is handed on and must not name a path of the machine that wrote it."""
    shown = Path(*folder.parts[-2:]) if folder.is_absolute() else folder
    return shlex.quote(str(shown))


class RunFolder:
    """The paths inside one run's folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.manifest = path / "manifest.json"
        self.scores = path / "scores.json"
        self.timing = path / "timing.json"
        self.report = path / "report.html"
        self.lock = path / ".lock"
        self.models = path / "models"

    def episode(self, key: str) -> Path:
        return self.path / "episodes" / key

    def events(self, key: str) -> Path:
        return self.episode(key) / "events.jsonl"

    def outcome(self, key: str) -> Path:
        return self.episode(key) / "outcome.json"

    def dialogue(self, key: str) -> Path:
        """Return the file that holds an episode's conversations."""
        return self.episode(key) / "dialogue.jsonl"


def refuse_changed_line_ends(place: RunFolder) -> None:
    """Raise :class:`RunError` where files of the record have Windows line ends.

    Tradeassay writes none, and git can change them on checkout. Hashes and forms then fit nowhere, which would
    read like a hundred forgeries."""
    files = [place.manifest, place.scores, *place.episode("").glob("*/*.json*"), *place.models.glob("*.jsonl")]
    changed = []
    for file in files:
        with contextlib.suppress(OSError), file.open("rb") as content:
            if content.readline().endswith(b"\r\n"):
                changed.append(file.relative_to(place.path).as_posix())
    if changed:
        more = f" and {len(changed) - 1} more files" if len(changed) > 1 else ""
        raise RunError(
            f"{place.path} has Windows line ends (CRLF) in {changed[0]}{more}, which git or a copy put there",
            hint="add the line '* -text' to .gitattributes and check the run out again, or copy it unchanged",
        )


LARGEST_FILE = 1 << 30
"""Bytes: a file of a run is read as a whole."""


def refuse_odd_files(path: Path) -> None:
    """Raise :class:`RunError` for what reading might never end at: pipes, devices, links to them, huge files."""
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            found = os.lstat(os.path.join(folder, name))
            if stat.S_ISDIR(found.st_mode) or (stat.S_ISREG(found.st_mode) and found.st_size <= LARGEST_FILE):
                continue
            what = "is too large to be read" if stat.S_ISREG(found.st_mode) else "is neither a file nor a folder"
            raise RunError(f"{folder}/{name} {what}", hint="it was not written by tradeassay: remove it")


@contextlib.contextmanager
def run_lock(path: Path) -> Iterator[None]:
    """Hold the lock of a run. Raises :class:`RunError` when a living process holds it.

    The file stays behind with the name of its last holder. Only the kernel's lock counts, so that the leftovers of
    a dead process do no harm."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        known = os.pread(descriptor, 200, 0).decode(errors="replace")
        # Anything else was written by another version, or by somebody who wants it shown.
        ours = re.fullmatch(r"process \d+ on [\w.-]+", known, re.ASCII)
        take_lock(descriptor, str(path.parent), holder=known if ours else "another process")
        with naming(path):
            os.ftruncate(descriptor, 0)
            os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
        yield
    finally:
        os.close(descriptor)


class RunTiming(msgspec.Struct, frozen=True, kw_only=True):
    """Seconds: per episode (the last time it was worked on), and per start of the run (one entry each)."""

    episodes: dict[str, float] = {}
    starts: tuple[dict[str, float], ...] = ()


def read_timing(path: Path) -> RunTiming:
    """Return the times so far; a missing or damaged file counts as empty, since nothing depends on it."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=RunTiming)
    except (FileNotFoundError, *UNDECODABLE):
        return RunTiming()


def add_timing(path: Path, episodes: dict[str, float], phases: dict[str, float]) -> None:
    before = read_timing(path)
    after = RunTiming(
        episodes={**before.episodes, **{key: round(seconds, 4) for key, seconds in episodes.items()}},
        starts=(*before.starts, {phase: round(seconds, 4) for phase, seconds in phases.items()}),
    )
    write_atomic(path, msgspec.json.format(canonical_json(after), indent=1) + b"\n")


COMPUTING = ("tradeassay", "numpy")
RECORDED = ("msgspec", "polars", "pyarrow", "exchange-calendars", "ray")


class Versions(msgspec.Struct, frozen=True, kw_only=True):
    """Package versions (only those installed), Python and the machine."""

    packages: dict[str, str]
    python: str
    platform: str
    machine: str


@cache
def present_versions() -> Versions:
    found = {}
    for name in (*COMPUTING, *RECORDED):
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    python = platform.python_version()
    return Versions(packages=found, python=python, platform=sys.platform, machine=platform.machine())


def version_changes(then: Versions, now: Versions) -> list[str]:
    """Return, in words, every change that forbids a resume."""
    changes = [
        f"{name} was {then.packages.get(name, 'not installed')}, is {now.packages.get(name, 'not installed')}"
        for name in COMPUTING
        if then.packages.get(name) != now.packages.get(name)
    ]
    before, after = (".".join(one.python.split(".")[:2]) for one in (then, now))
    if before != after:
        changes.append(f"Python was {before}, is {after}")
    if then.machine != now.machine:
        changes.append(f"the machine was {then.machine}, is {now.machine}")
    return changes
