"""The page about the tasks tells the truth."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tradeassay.code.task import CodeTask, Decoy, Expectations, Sizing

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "reference" / "quantcode-tasks.md").read_text()


def test_every_key_is_on_the_page() -> None:
    missing = [
        field.name
        for part in (CodeTask, Sizing, Expectations, Decoy)
        for field in msgspec.structs.fields(part)
        if f"`{field.name}`" not in PAGE and f"[{field.name}]" not in PAGE
    ]
    assert missing == []
