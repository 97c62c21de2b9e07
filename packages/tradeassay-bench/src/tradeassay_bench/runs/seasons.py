"""Let commands that accept runs also accept the arena's seasons.

A season is stored in a database, not in a folder, and the arena's package runs, checks and displays
seasons. The commands ``verify``, ``site``, ``mcp``, ``recordings`` and ``reproduce`` find that
package through a registry. Without the arena's package these commands accept only runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tradeassay.core.errors import MissingExtra
from tradeassay.core.registry import Registry

if TYPE_CHECKING:
    from tradeassay_bench.runs.spec.episode import Asking
    from tradeassay_bench.runs.store.archive import OpenRecording, RecordingLabel
    from tradeassay_bench.runs.verify.report import VerifyReport


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperPlay:
    """A request to reproduce a paper: the size, the models and the folder of the result."""

    paper: str
    data: str | None
    models: tuple[str, ...]
    seeds: int
    sample: int | None
    grid: bool
    folder: Path
    workers: int | None
    recordings: tuple[tuple[str, OpenRecording], ...]
    options: dict[str, Any]
    say: Callable[[str], None]


class SeasonTools(Protocol):
    """The operations on seasons that the arena implements.

    ``db`` is the file or the URL of a database.
    """

    def verify(self, db: str, *, pages: Path | None = None) -> VerifyReport:
        """Replay every season of a database and compare it with the record.

        ``pages`` is a folder of the season's published pages, which are also compared.
        """
        ...

    def write_site(self, db: str, folder: Path) -> int:
        """Write all public pages of a database. Return the number of files that changed."""
        ...

    def serve_mcp(
        self, db: str, host: str, port: int, say: Callable[[str], None], hosts: Sequence[str]
    ) -> None:
        """Serve the entries of a database over the Model Context Protocol until stopped."""
        ...

    def pack(
        self, db: Path, file: Path, *, engine: str, precision: str, command: str
    ) -> RecordingLabel:
        """Pack the answers of the latest season into a recording and return its label."""
        ...

    def changed_facts(self, opened: OpenRecording) -> list[str]:
        """Return the names of the prompts that have changed since a season was recorded."""
        ...

    def replay_differences(self, opened: OpenRecording) -> list[str]:
        """Replay a recorded season from its answers. Return the differences."""
        ...

    def choices(self, opened: OpenRecording) -> str:
        """Return a sentence about the options that the operator of a recorded season chose."""
        ...

    def play_paper(self, request: PaperPlay, asking: Asking) -> tuple[Any, bool]:
        """Run the seasons of a paper.

        Returns the record of the paper, and whether a season stopped at the cap on dollars.
        """
        ...

    def export(self, db: Path) -> Any:
        """Return the newest season of a database, in the form for the page of the paper."""
        ...


season_tools: Registry[SeasonTools] = Registry("season_tool")
"""The registry with the arena (entry point ``arena`` of the group ``tradeassay.season_tools``)."""


def arena() -> SeasonTools:
    """Return the arena's tools. Raises :class:`MissingExtra` if its package is not installed."""
    if "arena" not in season_tools:
        raise MissingExtra("seasons need the arena", hint="pip install 'tradeassay[arena]'")
    return season_tools.get("arena")
