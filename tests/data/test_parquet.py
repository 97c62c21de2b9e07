"""Out to Parquet and back: the same content hash."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet
import pytest

from tradeassay.core.errors import DataError, UserError
from tradeassay.data.panel import Panel
from tradeassay.data.parquet import export_parquet, import_parquet
from tradeassay.data.store.write import write_snapshot


def test_the_round_trip_keeps_the_content(tmp_path: Path, panel: Panel) -> None:
    manifest = write_snapshot(panel, tmp_path / "s")
    files = export_parquet(tmp_path / "s", tmp_path / "out")
    assert {"bars.parquet", "minutes.parquet", "news.parquet", "facts.json"} <= {path.name for path in files}
    bars = pyarrow.parquet.read_table(tmp_path / "out" / "bars.parquet")
    assert bars.column_names[:3] == ["session", "symbol", "open"] and bars.num_rows == 16 * 6
    assert import_parquet(tmp_path / "out", tmp_path / "back").sha256 == manifest.sha256


def test_wrong_folders(tmp_path: Path, panel: Panel) -> None:
    write_snapshot(panel, tmp_path / "s")
    export_parquet(tmp_path / "s", tmp_path / "out")
    with pytest.raises(UserError, match="is not empty"):
        export_parquet(tmp_path / "s", tmp_path / "out")
    (tmp_path / "out" / "news.parquet").write_bytes(b"x")
    with pytest.raises(DataError, match=r"news\.parquet was altered"):
        import_parquet(tmp_path / "out", tmp_path / "back")
    (tmp_path / "out" / "news.parquet").unlink()
    with pytest.raises(DataError, match=r"news\.parquet is missing"):
        import_parquet(tmp_path / "out", tmp_path / "back")
    (tmp_path / "out" / "facts.json").unlink()
    with pytest.raises(DataError, match=r"has no facts\.json"):
        import_parquet(tmp_path / "out", tmp_path / "back")
