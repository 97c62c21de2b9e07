"""Damaged files: one line that names the file; never a signal, a traceback or a silent pass.

Every reader runs in a child process, so that a signal is seen as one. The sample here is small; the slow test
flips ten thousand bits over every kind of file that is stored.
"""

import bz2
import gzip
import json
import lzma
import os
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from tradeassay.core.errors import TradeassayError
from tradeassay.core.files import holds_own_hash
from tradeassay.core.hashing import sha256_file
from tradeassay.data import open_snapshot, verify_snapshot, write_snapshot
from tradeassay.data.store.manifest import MANIFEST_FILE, read_manifest
from tradeassay.data.store.read import read_panel
from tradeassay.data.synthetic import AnswerKey, generate, preset
from tradeassay.data.tables.columns import FilesConfig
from tradeassay.data.tables.folder import read_files

Read = Callable[[Path], object]


@pytest.fixture(scope="module")
def shelf(tmp_path_factory):
    """One file or folder of every stored kind."""
    place = tmp_path_factory.mktemp("shelf")
    world = generate(preset("crypto", seed=3, sessions=60, names=6, new_listings=0, delistings=0))
    write_snapshot(world.panel, place / "store", allow_faults=True)
    world.key.save(place / "keys" / "answers")
    return place


def use(folder: Path) -> object:
    """Open a snapshot and read everything in it, as a run does."""
    snapshot = open_snapshot(folder)
    view = snapshot.at(len(snapshot.sessions) - 1, "close")
    view.news(0), [view.fundamentals(symbol) for symbol in view.symbols], view.session_bars()
    for symbol in view.symbols:
        try:
            view.minutes(symbol, 5)
        except TradeassayError:
            if "minutes.arrow" in snapshot.manifest.files:
                raise
    return read_panel(folder)


READERS: dict[str, Read] = {"store": use, "keys": lambda folder: AnswerKey.load(folder / "answers")}


def outcome(read: Read, folder: Path, path: Path, place: int, bit: int) -> str:
    """Flip one bit and read in a child process; return how the reading ended."""
    whole = path.read_bytes()
    broken = bytearray(whole)
    broken[place] ^= 1 << bit
    path.write_bytes(broken)
    child = os.fork()
    if child == 0:
        try:
            read(folder)
            os._exit(1)
        except TradeassayError as error:
            os._exit(2 if "\n" in str(error) else 0)
        except BaseException:
            os._exit(2)
    _, status = os.waitpid(child, 0)
    path.write_bytes(whole)
    if os.WIFSIGNALED(status):
        return "signal"
    return ("refused", "silent", "traceback")[os.WEXITSTATUS(status)]


def drawn(folder: Path, count: int, seed: int) -> list[tuple[Path, int, int]]:
    """Draw (file, byte, bit), every file equally often: a small manifest matters as much as a large matrix."""
    rng = np.random.default_rng(seed)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    result = []
    for number in range(count):
        path = files[number % len(files)]
        result.append((path, int(rng.integers(path.stat().st_size)), int(rng.integers(8))))
    return result


@pytest.mark.slow_for("store-3400-2", "keys-3400-2")
@pytest.mark.parametrize(("count", "seed"), [(45, 1), (3_400, 2)])
@pytest.mark.parametrize("kind", list(READERS))
def test_a_flipped_bit_is_a_clean_refusal(shelf, tmp_path, kind, count, seed):
    folder = shutil.copytree(shelf / kind, tmp_path / kind)
    ended = Counter(outcome(READERS[kind], folder, *flip) for flip in drawn(folder, count, seed))
    assert ended == {"refused": count}
    READERS[kind](folder)


@pytest.mark.parametrize("cut", [0, 1, 7, 100, -1])
def test_a_file_that_is_cut_short_is_a_clean_refusal(shelf, tmp_path, cut):
    folder = shutil.copytree(shelf / "store", tmp_path / "store")
    for path in sorted(folder.iterdir()):
        whole = path.read_bytes()
        path.write_bytes(whole[:cut])
        with pytest.raises(TradeassayError, match=path.name):
            use(folder)
        path.write_bytes(whole)
    use(folder)


def edited(path: Path, change: Callable[[dict], None]) -> None:
    facts = json.loads(path.read_text())
    change(facts)
    path.write_text(json.dumps(facts, indent=2) + "\n")


def test_a_bias_note_cannot_be_edited_out(shelf, tmp_path):
    panel = read_panel(shelf / "store")
    facts = msgspec.structs.replace(panel.facts, biases=("chosen with hindsight",))
    noted = write_snapshot(replace(panel, facts=facts), tmp_path / "store", allow_faults=True)
    path = tmp_path / "store" / MANIFEST_FILE
    before = path.read_bytes()
    edited(path, lambda facts: facts["facts"].update(biases=[]))
    with pytest.raises(TradeassayError, match="altered"):
        open_snapshot(tmp_path / "store")
    # Whoever also takes the manifest's own hash out is asked for the content hash, which the notes are part of.
    edited(path, lambda facts: facts.pop("own_sha256"))
    with pytest.raises(TradeassayError, match="content hash"):
        open_snapshot(tmp_path / "store")
    path.write_bytes(before)
    assert holds_own_hash(before)
    assert verify_snapshot(tmp_path / "store") == noted == read_manifest(tmp_path / "store")


def test_a_store_of_an_earlier_version_is_read_after_its_content_was_checked(shelf, tmp_path):
    folder = shutil.copytree(shelf / "store", tmp_path / "store")
    edited(folder / MANIFEST_FILE, lambda facts: facts.pop("own_sha256"))
    use(folder)
    edited(folder / MANIFEST_FILE, lambda facts: facts["facts"].update(kind="real"))
    with pytest.raises(TradeassayError, match="content hash"):
        use(folder)


def test_a_file_is_hashed_again_when_it_changed(shelf, tmp_path):
    folder = shutil.copytree(shelf / "store", tmp_path / "store")
    use(folder)
    path = folder / "bars.arrow"
    broken = bytearray(path.read_bytes())
    broken[len(broken) // 2] ^= 1
    path.write_bytes(broken)
    with pytest.raises(TradeassayError, match=rf"bars\.arrow was altered: sha256 {sha256_file(path)[:12]}"):
        use(folder)


PLAIN = b"date,open,high,low,close,volume\n2024-01-02,1,1,1,1,1\n2024-01-03,1,1,1,1,1\n"


@pytest.mark.parametrize(
    ("ending", "pack"), [(".gz", gzip.compress), (".bz2", bz2.compress), (".xz", lzma.compress)]
)
def test_a_broken_archive_is_one_line(tmp_path, ending, pack):
    whole = pack(PLAIN)
    for place in range(0, 90, 9):
        broken = bytearray(whole)
        broken[place % len(whole)] ^= 0x55
        for content in (bytes(broken), whole[:place]):
            (tmp_path / f"AAA.csv{ending}").write_bytes(content)
            try:
                read_files(FilesConfig(path=str(tmp_path)))
            except TradeassayError as error:
                assert "\n" not in str(error)
