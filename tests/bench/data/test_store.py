"""Writing, opening, altering, damaging and racing for snapshots; damage is one line that names
the file.
"""

import bz2
import gzip
import json
import lzma
import os
import pickle
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest

from tradeassay.core.errors import DataError, TradeassayError, UserError
from tradeassay.core.hashing import sha256_file
from tradeassay_bench.core.errors import DataRefused
from tradeassay_bench.core.files import holds_own_hash
from tradeassay_bench.core.view import FIELDS, CorporateAction, Fundamental, Instrument, NewsItem
from tradeassay_bench.data.snapshot import open_snapshot
from tradeassay_bench.data.source import Listing, Membership
from tradeassay_bench.data.store.manifest import (
    LISTINGS,
    MANIFEST_FILE,
    RECORDS,
    content_sha256,
    read_manifest,
)
from tradeassay_bench.data.store.read import read_panel, verify_snapshot
from tradeassay_bench.data.store.write import normalised, write_snapshot
from tradeassay_bench.data.synthetic import AnswerKey, generate, preset
from tradeassay_bench.data.tables.files import FilesConfig
from tradeassay_bench.data.tables.folder import read_files


def test_a_panel_comes_back_as_it_was(tmp_path, panel):
    manifest = write_snapshot(panel, tmp_path / "s")
    back = read_panel(tmp_path / "s")
    assert back.listings == panel.listings and back.facts == panel.facts and back.name == "small"
    for field in FIELDS:
        assert np.array_equal(back.bars[field], panel.bars[field], equal_nan=True)
        assert back.minutes is not None and panel.minutes is not None
        assert np.array_equal(back.minutes.bars[field], panel.minutes.bars[field], equal_nan=True)
    assert np.array_equal(back.sessions, panel.sessions) and np.array_equal(
        back.suspended, panel.suspended
    )
    assert set(back.actions) == set(panel.actions) and set(back.memberships) == set(
        panel.memberships
    )
    assert back.fundamentals == panel.fundamentals and back.news == panel.news
    assert manifest == read_manifest(tmp_path / "s") == verify_snapshot(tmp_path / "s")
    assert (
        manifest.shapes.sessions == 16
        and manifest.shapes.minutes == 48
        and manifest.shapes.news == 16
    )


def test_a_field_is_a_memory_map_of_the_file(snapshot):
    window = snapshot.at(15, "close").bars("close", adjust="none")
    assert not window.flags.owndata and not window.flags.writeable


def test_the_hash_is_of_the_content(tmp_path, panel, make_panel):
    first = write_snapshot(panel, tmp_path / "a")
    again = make_panel()
    facts = msgspec.structs.replace(
        again.facts, query="another way", retrieved_at="2025-01-01T00:00:00Z"
    )
    shuffled = replace(
        again, name="b", facts=facts, news=again.news[::-1], actions=again.actions[::-1]
    )
    assert write_snapshot(shuffled, tmp_path / "b").sha256 == first.sha256
    assert write_snapshot(make_panel(1), tmp_path / "c").sha256 != first.sha256
    bars = {
        **again.bars,
        "volume": np.where(np.isnan(again.bars["volume"]), -np.nan, again.bars["volume"]),
    }
    assert content_sha256(normalised(replace(again, bars=bars))) == first.sha256, (
        "one NaN, one byte pattern"
    )
    one, *others = again.actions
    odd = msgspec.structs.replace(one, value=np.float64(one.value), known_at=np.int64(one.known_at))
    assert content_sha256(normalised(replace(again, actions=(odd, *others)))) == first.sha256, (
        "a number is a number"
    )
    changed = msgspec.structs.replace(again.fundamentals[0], value=77.0)
    other = replace(again, fundamentals=(changed, *again.fundamentals[1:]))
    assert content_sha256(normalised(other)) != first.sha256


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        *((name, None, name) for name in ("bars.arrow", "news.arrow", "manifest.json")),
        ("bars.arrow", lambda whole: whole[:-100], r"bars\.arrow has \d+ bytes"),
        (
            "bars.arrow",
            lambda whole: whole[:5000] + bytes([whole[5000] ^ 1]) + whole[5001:],
            "was altered",
        ),
        ("bars.arrow", lambda whole: b"x" * len(whole), r"bars\.arrow was altered"),
        ("manifest.json", lambda _: b"{", "is damaged"),
        ("manifest.json", lambda _: b'{"format": "other"}', "not a snapshot manifest"),
        (
            "manifest.json",
            lambda _: b'{"format": 3, "format_version": 3}',
            "not a snapshot manifest",
        ),
        (
            "manifest.json",
            lambda _: b'{"format": "tradeassay-snapshot", "format_version": 99}',
            "has format 99",
        ),
    ],
)
def test_what_is_missing_or_damaged_is_found_when_it_is_opened_and_by_verify(
    tmp_path, panel, name, change, said
):
    write_snapshot(panel, tmp_path / "s")
    path = tmp_path / "s" / name
    if change is None:
        path.unlink()
    else:
        path.write_bytes(change(path.read_bytes()))
    for read in (open_snapshot, verify_snapshot):
        with pytest.raises(DataError, match=said):
            read(tmp_path / "s")


def test_a_crash_while_writing_leaves_nothing_behind(tmp_path, panel, monkeypatch):
    def fail(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("tradeassay_bench.data.store.write.write_manifest", fail)
    with pytest.raises(OSError, match="disk full"):
        write_snapshot(panel, tmp_path / "s")
    assert list(tmp_path.iterdir()) == []


def test_writing_the_same_again_is_harmless_and_another_is_refused(tmp_path, panel, make_panel):
    first = write_snapshot(panel, tmp_path / "s")
    inode = (tmp_path / "s" / "bars.arrow").stat().st_ino
    assert write_snapshot(panel, tmp_path / "s") == first
    assert (tmp_path / "s" / "bars.arrow").stat().st_ino == inode
    with pytest.raises(UserError, match="already contains a different snapshot"):
        write_snapshot(make_panel(1), tmp_path / "s")
    opened = open_snapshot(tmp_path / "s")
    second = write_snapshot(make_panel(1), tmp_path / "s", replace_existing=True)
    assert open_snapshot(tmp_path / "s").sha256 == second.sha256 != first.sha256
    assert opened.at(3, "close").bars("close").shape == (4, 5), (
        "a reader of the old one is not disturbed"
    )
    assert os.listdir(tmp_path) == ["s"]


def test_writers_may_race(tmp_path, make_panel):
    with ThreadPoolExecutor(8) as pool:
        manifests = list(
            pool.map(lambda _: write_snapshot(make_panel(), tmp_path / "s"), range(16))
        )
    assert len({manifest.sha256 for manifest in manifests}) == 1
    assert os.listdir(tmp_path) == ["s"] and verify_snapshot(tmp_path / "s") == manifests[0]


def test_a_snapshot_can_be_sent_to_another_process(snapshot):
    copy = pickle.loads(pickle.dumps(snapshot))
    assert copy.sha256 == snapshot.sha256
    assert np.array_equal(
        copy.at(3, "close").bars("open"), snapshot.at(3, "close").bars("open"), equal_nan=True
    )


def test_rows_of_days(snapshot):
    assert snapshot.rows() == range(16)
    assert snapshot.rows("2024-01-06", "2024-01-09") == range(5, 7)
    assert snapshot.rows(first="2024-01-20") == range(15, 16)
    with pytest.raises(UserError, match="it has sessions from 2024-01-01 to 2024-01-22"):
        snapshot.rows("2025-01-01", "2025-02-01")
    with pytest.raises(UserError, match="is not a date"):
        snapshot.rows("yesterday")


def test_a_snapshot_shows_no_market_data_of_its_own(snapshot):
    shown = "as_of at calendar facts folder manifest name news_begin rows sessions sha256".split()
    assert {name for name in dir(snapshot) if not name.startswith("_")} == set(shown)


def _listing(symbol: str, listed: str = "2024-01-01", delisted: str | None = None) -> Listing:
    return Listing(instrument=Instrument(symbol=symbol), listed=listed, delisted=delisted)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda p: {"sessions": p.sessions[::-1]}, "sessions are not strictly increasing"),
        (lambda p: {"open_time": p.close_time}, "closes before it opens"),
        (lambda p: {"open_time": p.open_time[1:]}, "differ in length"),
        (lambda p: {"listings": p.listings[:-1]}, "open of the bars has shape"),
        (lambda p: {"listings": p.listings[::-1]}, "not sorted by"),
        (lambda p: {"listings": (p.listings[0], *p.listings[:-1])}, "S0 is listed twice"),
        (
            lambda p: {"listings": (_listing("S0", delisted="2023-01-01"), *p.listings[1:])},
            "delisted before",
        ),
        (lambda p: {"bars": {"close": p.bars["close"]}}, "bars have no open"),
        (lambda p: {"suspended": p.suspended[1:]}, "suspended has shape"),
        (lambda p: {"indices": {"IDX": np.ones(3)}}, "index IDX has 3 levels"),
        (lambda p: {"minutes": replace(p.minutes, symbols=("S0", "ZZ"))}, "minute bars of ZZ"),
        (
            lambda p: {"minutes": replace(p.minutes, close_time=p.minutes.close_time[::-1])},
            "minute closing times",
        ),
        (
            lambda p: {"actions": (msgspec.structs.replace(p.actions[0], symbol="ZZ"),)},
            "an action of ZZ",
        ),
        (
            lambda p: {"actions": (msgspec.structs.replace(p.actions[0], value=0.0),)},
            "has value 0.0",
        ),
        (
            lambda p: {
                "actions": (msgspec.structs.replace(p.actions[0], known_at=int(p.open_time[5])),)
            },
            "known only after it",
        ),
        (
            lambda p: {"memberships": (msgspec.structs.replace(p.memberships[0], symbol="ZZ"),)},
            "a membership of ZZ",
        ),
        (lambda p: {"news": (p.news[0], p.news[0])}, "the same id"),
        (
            lambda p: {
                "sessions": p.sessions[:0],
                "open_time": p.open_time[:0],
                "close_time": p.close_time[:0],
            },
            "0 se",
        ),
    ],
)
def test_a_panel_of_the_wrong_form_is_named(tmp_path, panel, change, problem):
    with pytest.raises(DataError, match=problem):
        write_snapshot(replace(panel, **change(panel)), tmp_path / "s", allow_faults=True)


def test_faults_are_refused_unless_accepted_and_then_become_a_badge(tmp_path, panel):
    low = panel.bars["low"].copy()
    low[3, 0] = panel.bars["high"][3, 0] + 5
    broken = replace(panel, bars={**panel.bars, "low": low})
    with pytest.raises(
        DataRefused, match=r"1 fault: 1 high below low: small/bars:4: S0 on 2024-01-04: high"
    ):
        write_snapshot(broken, tmp_path / "s")
    manifest = write_snapshot(broken, tmp_path / "s", allow_faults=True)
    assert manifest.faults.counts == {"high below low": 1}
    assert "data faults accepted: 1 high below low" in open_snapshot(tmp_path / "s").facts.biases


def test_every_field_of_every_record_is_stored():
    schemas = {
        Instrument: LISTINGS,
        CorporateAction: RECORDS["actions"],
        Membership: RECORDS["memberships"],
        Fundamental: RECORDS["fundamentals"],
        NewsItem: RECORDS["news"],
    }
    for record, schema in schemas.items():
        assert set(record.__struct_fields__) <= set(schema.names), record


def test_writing_and_reading_need_no_pandas(tmp_path):
    code = (
        "import sys; from pathlib import Path; from tradeassay_bench.data import load_dataset, "
        "verify_snapshot\n"
        "snapshot = load_dataset('synthetic/crypto:1', Path(sys.argv[1]))\n"
        "view = snapshot.at(100, 'close')\n"
        "view.session_bars(), view.news(0), view.bars('close'), "
        "view.fundamentals(view.symbols[0])\n"
        "verify_snapshot(snapshot.folder)\n"
        "print([name for name in ('pandas', 'polars', 'exchange_calendars') if name in "
        "sys.modules])"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    assert (
        subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )


# -- damage: never a signal, a traceback or a silent pass ------------------------------------------

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
    """Draw (file, byte, bit), every file equally often: a small manifest matters as much as a
    large matrix.
    """
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
    with pytest.raises(
        TradeassayError, match=rf"bars\.arrow was altered: sha256 {sha256_file(path)[:12]}"
    ):
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
