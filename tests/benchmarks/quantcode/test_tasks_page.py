"""The page about the tasks tells the truth."""

from __future__ import annotations

import runpy
from pathlib import Path

import msgspec

from tradeassay.code.task import CodeTask, Decoy, Expectations, Sizing

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "reference" / "quantcode-tasks.md").read_text()


def test_the_tables_are_those_of_the_files() -> None:
    render = runpy.run_path(str(ROOT / "scripts" / "quantcode_tasks_page.py"))["render"]
    assert render(PAGE) == PAGE, "run scripts/quantcode_tasks_page.py"


def test_every_key_is_on_the_page() -> None:
    missing = [
        field.name
        for part in (CodeTask, Sizing, Expectations, Decoy)
        for field in msgspec.structs.fields(part)
        if f"`{field.name}`" not in PAGE and f"[{field.name}]" not in PAGE
    ]
    assert missing == []
