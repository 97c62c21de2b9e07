"""Datasets by name, and the cache of synthetic worlds."""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import pytest

from tradeassay.core.errors import DataError, UserError
from tradeassay_bench.data.datasets import (
    data_home,
    list_datasets,
    load_dataset,
    snapshot_folder,
    store_folder,
)
from tradeassay_bench.data.store.read import verify_snapshot
from tradeassay_bench.data.store.write import write_snapshot


def test_where_the_home_is(tmp_path, monkeypatch):
    monkeypatch.delenv("TRADEASSAY_HOME", raising=False)
    assert data_home() == Path.home() / ".local" / "share" / "tradeassay"
    monkeypatch.setenv("TRADEASSAY_HOME", str(tmp_path / "env"))
    assert data_home() == tmp_path / "env" and store_folder() == tmp_path / "env" / "store"
    assert data_home(tmp_path) == tmp_path
    for wrong in ("../x", "/etc", "a/b/c", "", ".hidden", "a b"):
        with pytest.raises(UserError, match="is not a dataset name"):
            snapshot_folder(wrong, tmp_path)


def test_a_stored_dataset_by_name_and_by_path(tmp_path, panel, monkeypatch):
    manifest = write_snapshot(panel, snapshot_folder("small", tmp_path))
    assert load_dataset("small", tmp_path).sha256 == manifest.sha256
    assert load_dataset(str(tmp_path / "store" / "small")).sha256 == manifest.sha256
    monkeypatch.chdir(tmp_path / "store")
    assert load_dataset("./small").sha256 == manifest.sha256
    assert load_dataset("small", tmp_path / "elsewhere").sha256 == manifest.sha256, (
        "a folder with a manifest"
    )


def test_an_unknown_name_gets_near_ones(tmp_path, panel):
    with pytest.raises(UserError, match="stored: none"):
        load_dataset("small", tmp_path)
    write_snapshot(panel, snapshot_folder("small", tmp_path))
    assert (
        load_dataset(snapshot_folder("small", tmp_path)).name
        == load_dataset("small", tmp_path).name
    )
    with pytest.raises(UserError, match=r"rows\('2025-03-03'\)"):
        load_dataset("small", tmp_path).at("2024-01-02", "close")
    for name, kind, said in (
        ("smal", UserError, r"no dataset 'smal' in .*did you mean small\?"),
        ("fakestockdata", UserError, r"not stored yet \(tradeassay data get fakestockdata\)"),
        ("synthetic/us", UserError, "preset:seed"),
        ("synthetic/moon:1", UserError, "moon"),
        (str(tmp_path / "nowhere"), DataError, r"nowhere does not exist \(name a data set"),
    ):
        with pytest.raises(kind, match=said):
            load_dataset(name, tmp_path)


def test_listing_names_what_is_damaged(tmp_path, make_panel):
    assert list_datasets(tmp_path) == ()
    for name in ("b", "a"):
        write_snapshot(replace(make_panel(), name=name), snapshot_folder(name, tmp_path))
    (tmp_path / "store" / "b" / "manifest.json").write_text("{")
    first, second = list_datasets(tmp_path)
    assert (first.name, first.problem, first.sessions, first.news) == ("a", None, 16, 16)
    assert second.name == "b" and second.problem is not None and "damaged" in second.problem


def test_a_synthetic_world_is_made_once(tmp_path):
    first = load_dataset("synthetic/crypto:3", tmp_path)
    assert first.name == "synthetic/crypto:3" and first.facts.kind == "synthetic"
    changed = first.folder.stat().st_mtime_ns
    second = load_dataset("synthetic/crypto:3", tmp_path)
    assert second.sha256 == first.sha256 and second.folder.stat().st_mtime_ns == changed
    assert load_dataset("synthetic/crypto:4", tmp_path).sha256 != first.sha256
    assert [info.name for info in list_datasets(tmp_path)] == [
        "synthetic/crypto:3",
        "synthetic/crypto:4",
    ]


def made(home: Path) -> str:
    return load_dataset("synthetic/crypto:5", home).sha256


@pytest.mark.journey
def test_processes_may_ask_for_the_same_world_at_once(tmp_path):
    with ProcessPoolExecutor(2, get_context("fork")) as pool:
        (sha256,) = set(pool.map(made, [tmp_path] * 2))
    (folder,) = (tmp_path / "store" / "synthetic").iterdir()
    assert verify_snapshot(folder).sha256 == sha256
