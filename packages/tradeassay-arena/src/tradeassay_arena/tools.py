"""Implement the arena's part of the commands for runs and seasons.

See :mod:`tradeassay_bench.runs.seasons`. Each method imports its own modules, because a command
uses only one method.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tradeassay.core.errors import require
from tradeassay_bench.runs.seasons import PaperPlay, SeasonTools

if TYPE_CHECKING:
    from tradeassay_bench.papers.ama import SeasonExport
    from tradeassay_bench.report.verifying import PaperRecord
    from tradeassay_bench.runs import Asking, VerifyReport
    from tradeassay_bench.runs.store.archive import OpenRecording, RecordingLabel


class ArenaTools(SeasonTools):
    """Runs, verifies and displays the seasons of a database."""

    def verify(self, db: str, *, pages: Path | None = None) -> VerifyReport:
        from tradeassay_arena.verifying import verify_arena

        return verify_arena(db, pages=pages)

    def write_site(self, db: str, folder: Path) -> int:
        for module in ("sqlalchemy", "fastapi"):
            require(module, "arena")
        from tradeassay_arena.queries.seasons import opened_store
        from tradeassay_arena.web.site import PageWriter

        with opened_store(db) as store:
            return PageWriter(store, folder).update(everything=True)

    def serve_mcp(
        self, db: str, host: str, port: int, say: Callable[[str], None], hosts: Sequence[str]
    ) -> None:
        for module in ("sqlalchemy", "uvicorn"):
            require(module, "arena")
        from tradeassay_arena.api.mcp_server import serve_entries

        serve_entries(db, host, port, say, hosts)

    def pack(
        self, db: Path, file: Path, *, engine: str, precision: str, command: str
    ) -> RecordingLabel:
        from tradeassay_arena.recording import pack_season

        return pack_season(db, file, engine=engine, precision=precision, command=command)

    def changed_facts(self, opened: OpenRecording) -> list[str]:
        from tradeassay_arena.recording import changed_season_facts

        return changed_season_facts(opened)

    def replay_differences(self, opened: OpenRecording) -> list[str]:
        from tradeassay_arena.recording import replayed_differences

        return replayed_differences(opened)

    def choices(self, opened: OpenRecording) -> str:
        from tradeassay_arena.recording import recorded_season
        from tradeassay_arena.verifying import operators_choice

        return operators_choice(recorded_season(opened))

    def play_paper(self, request: PaperPlay, asking: Asking) -> tuple[PaperRecord, bool]:
        from tradeassay_arena.reproduce import play_seasons

        return play_seasons(request, asking)

    def export(self, db: Path) -> SeasonExport:
        from tradeassay_arena.queries.export import export_database

        return export_database(db)


TOOLS = ArenaTools()
