"""One flipped bit at a time in everything that is stored or read: no signal, no traceback, nothing believed.

    python perf/fuzz_files.py --kinds run seal --first 0 --count 500
    python perf/fuzz_files.py --show

Every kind of file is made once and its flips are numbered. A flip is read in a child process, so that a signal is
seen as one; what became of each part is kept in ``--place``. Wanted: one line of error, or a contradiction. Where
a file holds no hash of its own (a table to be imported) another value may be read; the manifest of a run has
fields that ``verify`` does not cover, which are listed with the reason.
"""

from __future__ import annotations

import gzip
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet

sys.path.append(str(Path(__file__).parents[1] / "tests" / "runs"))  # where the forger lives

from forger import field_at, why_uncovered

import tradeassay
from numbered_parts import ask, gather
from tradeassay.core.errors import TradeassayError
from tradeassay.data import FilesConfig, open_snapshot, write_snapshot
from tradeassay.data.store.read import read_panel
from tradeassay.data.synthetic import generate, preset
from tradeassay.data.tables.folder import read_files
from tradeassay.runs import Run, run
from tradeassay.runs.verify.plans import seal_plan
from tradeassay.runs.verify.report import verify
from tradeassay.runs.verify.seal import open_seal, seal_run

TOGETHER = 250
"""Flips per child process, after which what became of them is written down."""
CSV = "date,open,high,low,close,volume\n" + "".join(
    f"2024-{month:02d}-{day:02d},{9 + day}.25,{10 + day}.5,{8 + day}.75,{9 + day}.5,{day}00\n"
    for month in (1, 2, 3)
    for day in range(1, 29)
)


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """How some numbered flips of one kind of file ended."""

    kind: str
    first: int
    ended: dict[str, int]


def verified(kept: dict[str, Any], folder: Path) -> str:
    """Verify a run; returns the word for what it found."""
    found = verify(folder, workers=1, examined=kept)
    return "contradicted" if found.contradicted else "believed"


def loaded(folder: Path) -> str:
    """Read a run as a page does."""
    found = Run.load(folder)
    for episode in found.episodes:
        found.outcome(episode.key), list(found.dialogue(episode.key))
        found.series(episode.key)
    msgspec.to_builtins(found.scores)
    return "read"


def opened(folder: Path) -> str:
    """Open the seals in a folder."""
    for file in sorted(folder.iterdir()):
        with open_seal(file) as (_, sealed):
            assert sealed.root
    return "read"


def stored(folder: Path) -> str:
    """Open a snapshot and read everything in it."""
    open_snapshot(folder)
    read_panel(folder)
    return "believed"


def imported(folder: Path) -> str:
    """Read tables of a vendor, file by file."""
    for file in sorted(folder.iterdir()):
        read_files(FilesConfig(path=str(file)))
    return "read"


def make(kind: str, folder: Path) -> None:
    """Write the files of a kind."""
    if kind in ("run", "page", "seal"):
        spec = tradeassay.make_spec(
            "stockbench-v1", models=("scripted/sensible",), first="2022-03-01", last="2022-03-02", slug="f"
        )
        done = run(spec, folder if kind != "seal" else folder.with_name("sealed"), workers=1, executor="inline")
        if kind == "seal":
            folder.mkdir()
            seal_run(done.folder, folder / "r.seal")
            seal_plan(done.spec, folder / "p.seal")
    elif kind == "import":
        folder.mkdir()
        (folder / "AAA.csv").write_text(CSV)
        (folder / "BBB.csv.gz").write_bytes(gzip.compress(CSV.encode(), mtime=0))
        rows = [line.split(",") for line in CSV.splitlines()]
        columns = {name: [row[at] for row in rows[1:]] for at, name in enumerate(rows[0])}
        pa.parquet.write_table(pa.table(columns), folder / "CCC.parquet")
    else:
        world = generate(preset("crypto", seed=3, sessions=60, names=6, new_listings=0, delistings=0))
        write_snapshot(world.panel, folder, allow_faults=True)


READERS: dict[str, Callable[[], Callable[[Path], str]]] = {
    "run": lambda: partial(verified, {}),
    "page": lambda: loaded,
    "seal": lambda: opened,
    "store": lambda: stored,
    "import": lambda: imported,
}


def files_of(folder: Path) -> list[Path]:
    """Return the files that are flipped: all that belong to the record."""
    return sorted(one for one in folder.rglob("*") if one.is_file() and one.name not in ("timing.json", ".lock"))


def flip(number: int, files: list[Path]) -> tuple[Path, bytes, bytes]:
    """Return the file of a flip, its content and the changed content; every file equally often."""
    rng = random.Random(number)
    path = files[number % len(files)]
    whole = path.read_bytes()
    place = rng.randrange(len(whole))
    return path, whole, whole[:place] + bytes([whole[place] ^ (1 << rng.randrange(8))]) + whole[place + 1 :]


def attempt(read: Callable[[Path], str], folder: Path, files: list[Path], number: int) -> str:
    """Make one flip, read, put the file back; return how it ended."""
    path, whole, broken = flip(number, files)
    names = {one: one.stat().st_size for one in files if one != path}
    (folder.parent / "whole").write_bytes(whole)  # for whoever finds a child that did not end well
    path.write_bytes(broken)
    try:
        ended = read(folder)
    except TradeassayError as error:
        ended = "refused" if "\n" not in str(error) else f"SEVERAL LINES in {path.name}"
    except Exception as error:
        ended = f"TRACEBACK in {path.name}: {type(error).__name__} {error}"
    if ended == "believed":
        where = field_at(path, whole, broken)
        reason = None if where is None else why_uncovered(where)
        ended = f"not covered: {reason}" if reason else f"BELIEVED {where or path.name}"
    if path.read_bytes() != broken or any(one.stat().st_size != size for one, size in names.items()):
        ended = f"LOST: reading changed a file beside {path.name}"
    path.write_bytes(whole)
    return ended


def part(kind: str, folder: Path, first: int, count: int) -> Part:
    """Try flips in child processes; a signal costs one flip and a new child."""
    ended: Counter[str] = Counter()
    at = first
    while at < first + count:
        command = [sys.executable, __file__, "--child", kind, str(folder), str(at), str(first + count)]
        ran = subprocess.run(command, stdout=subprocess.PIPE, check=False)
        said = ran.stdout.decode(errors="replace").splitlines()
        ended.update(said)
        at += len(said)
        if at < first + count:
            path, whole = files_of(folder)[at % len(files_of(folder))], (folder.parent / "whole")
            ended[f"ENDED with {ran.returncode} in {path.name}"] += 1
            path.write_bytes(whole.read_bytes())
            at += 1
    return Part(kind=kind, first=first, ended=dict(ended))


def child(kind: str, folder: Path, first: int, end: int) -> None:
    """Try flips and say how each ended, a line each."""
    files, read = files_of(folder), READERS[kind]()
    for number in range(first, end):
        print(attempt(read, folder, files, number).replace("\n", " ")[:300], flush=True)


def main() -> None:
    """Try a part of the flips of every kind, or print how all of them ended."""
    asked = ask(__doc__.split("\n", 1)[0], tuple(READERS), "flip", TOGETHER, "fuzz-files")

    def open_kind(kind: str) -> Callable[[int, int], Part]:
        if not (asked.place / kind).exists():
            make(kind, asked.place / kind)
        work = asked.place / "work" / kind
        shutil.rmtree(work, ignore_errors=True)
        shutil.copytree(asked.place / kind, work)
        return partial(part, kind, work)

    parts = gather(asked, Part, TOGETHER, open_kind)
    totals: dict[str, Counter[str]] = {kind: Counter() for kind in READERS}
    for one in parts:
        totals[one.kind].update(one.ended)
    for kind, ended in totals.items():
        words = ", ".join(f"{count:,} {what}" for what, count in ended.most_common(30))
        print(f"{kind}: {ended.total():,} flips: {words}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        child(sys.argv[2], Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
    else:
        main()
