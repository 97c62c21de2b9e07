"""Records one small run of every benchmark and both tracks, and what they say, below ``v1/``.

Call it from the repository's root, once per format of a run on disk::

    PYTHONPATH=tests/recorded python tests/recorded/record.py [NAME ...]

Everything is synthetic and every model scripted: no network, no key. What is already recorded is never recorded
again (delete its folder first): a recording made by newer code proves nothing.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from doors import benchmark_hashes, play, play_season, prompt_hashes, said, season_said, venue_hashes

HERE = Path(__file__).parent / "v1"

_ASK = ("--first", "2022-06-27", "--last", "2022-06-29")
_KTDFIN = ("--first", "2022-03-01", "--last", "2022-03-02")
RUNS: dict[str, tuple[str, ...]] = {
    "daily": (
        "run", "daily-us-v1", "daily-ashare-v1", "daily-crypto-v1",
        "-a", "momentum-12-1:k=3,every=2", "-a", "random:k=4,every=2", "-a", "min-variance:every=3",
        "-a", "index-hold",
        "--first", "2022-03-01", "--last", "2022-03-09",
    ),
    "stockbench": (
        "run", "stockbench-v1", "-a", "random:k=4",
        "-m", "scripted/sensible", "-m", "scripted/broken-json", "-m", "scripted/away", *_ASK,
    ),
    "stockbench-paper": (
        "run", "stockbench-paper-v1", "-m", "scripted/overspender", *_ASK,
    ),
    "ktdfin": (
        "run", "ktdfin-v1", "-m", "scripted/sensible",
        "--mask", "bright,blinded", "--mode", "memory-only,fixed-candidate,open-research", *_KTDFIN,
    ),
    "ktdfin-us": (
        "run", "ktdfin-us-v1", "-a", "reversal:k=5,every=1", "-m", "scripted/never-submits",
        "-m", "scripted/future-asker", "-m", "scripted/broken-json",
        "--mask", "blinded", "--mode", "open-research", *_KTDFIN,
    ),
    "ktdfin-paper": (
        "run", "ktdfin-paper-v1", "-m", "scripted/sensible", "--mask", "date-blind", "--mode", "open-research",
        *_KTDFIN,
    ),
    "quantcode": (
        "code", "run", "quantcode-v1", "-m", "scripted/coder-mends", "-m", "scripted/coder-sma",
        "-m", "scripted/coder-cheat", "-t", "d-ibs-long", "--setting", "agentic", "--turns", "4",
        "--judge", "scripted/code-judge",
    ),
    "quantcode-frame": (
        "code", "run", "quantcode-v1", "-m", "scripted/coder-gold", "-m", "scripted/coder-silent",
        "-t", "d-sma-cross-long", "-t", "h-band-short", "--framework", "frame", "--wording", "conversational",
    ),
    "systrade": (
        "code", "run", "systrade-v1", "-m", "scripted/builder-mends", "--strategy", "bollinger",
        "--iterations", "3",
    ),
    "systrade-peeps": (
        "code", "run", "systrade-v1", "-m", "scripted/builder-peeps", "--strategy", "double-ma",
        "--iterations", "1",
    ),
}  # fmt: skip
"""Name of the recording -> the command that made it."""
SEASONS = ("arena", "arena-paper")
"""Recorded seasons; each folder holds the ``season.toml`` that was played."""


def record_run(name: str) -> None:
    """Play one run and keep its folder, without pages and wall times, and what it says."""
    with tempfile.TemporaryDirectory() as place:
        play(RUNS[name], Path(place), name)
        made = Path(place) / name
        for page in (*made.glob("*.html"), made / "timing.json", made / ".lock"):
            page.unlink(missing_ok=True)
        shutil.rmtree(made / "cards", ignore_errors=True)
        shutil.copytree(made, HERE / name / "run")
    _write(HERE / name / "expected.json", said(HERE / name / "run"))


def record_season(name: str) -> None:
    """Play one season and keep what it says; one database is kept too, to be read by later code."""
    folder = HERE / name
    play_season(folder / "season.toml", folder / "arena.db")
    _write(folder / "expected.json", season_said(folder / "arena.db"))
    with closing(sqlite3.connect(folder / "arena.db")) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("VACUUM")
    if name != "arena":
        (folder / "arena.db").unlink()


def record_hashes() -> None:
    """Freeze the hashes of venues, benchmarks and prompts."""
    found = {"venues": venue_hashes(), "benchmarks": benchmark_hashes(), "prompts": prompt_hashes()}
    (HERE / "hashes.json").write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


def _write(path: Path, value: object) -> None:
    path.write_text(json.dumps(value, sort_keys=True, default=str) + "\n")


if __name__ == "__main__":
    wanted = sys.argv[1:] or [*RUNS, *SEASONS, "hashes"]
    for each in wanted:
        if each == "hashes":
            record_hashes()
        elif (HERE / each / "expected.json").exists():
            print(f"{each} is recorded already", file=sys.stderr)
        elif each in SEASONS:
            record_season(each)
        else:
            record_run(each)
