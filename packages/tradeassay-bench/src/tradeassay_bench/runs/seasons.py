"""Connect the commands for a run or a season to the arena's seasons.

A season is not a run. It is stored in a database, and the arena's package runs, checks and displays
it. The commands ``verify``, ``site``, ``mcp``, ``recordings`` and ``reproduce`` find that code
through a registry. Without the arena's package they still work on runs.
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
    """A request to run a paper: its size, its models and the folder of the result."""

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
    """The arena's implementation of commands for a run or a season.

    ``db`` is a database's file or URL.
    """

    def verify(self, db: str, *, pages: Path | None = None) -> VerifyReport:
        """Replay every season of a database and compare it with the record and with its
        ``pages``.
        """
        ...

    def write_site(self, db: str, folder: Path) -> int:
        """Write all public pages of a database. Return the number of files that changed."""
        ...

    def serve_mcp(
        self, db: str, host: str, port: int, say: Callable[[str], None], hosts: Sequence[str]
    ) -> None:
        """Serve the entries of a database to clients of the Model Context Protocol until
        stopped.
        """
        ...

    def pack(
        self, db: Path, file: Path, *, engine: str, precision: str, command: str
    ) -> RecordingLabel:
        """Pack the answers of the latest season into a recording."""
        ...

    def changed_facts(self, opened: OpenRecording) -> list[str]:
        """Return the prompts that have changed since a season was recorded."""
        ...

    def replay_differences(self, opened: OpenRecording) -> list[str]:
        """Replay a recorded season from its answers. Return the differences."""
        ...

    def choices(self, opened: OpenRecording) -> str:
        """Return one sentence on the operator's choices of options in a recorded season."""
        ...

    def play_paper(self, request: PaperPlay, asking: Asking) -> tuple[Any, bool]:
        """Run the seasons of a paper.

        Return its record, and whether a season stopped at the cap.
        """
        ...

    def export(self, db: Path) -> Any:
        """Return the newest season of a database for the page of the paper."""
        ...


season_tools: Registry[SeasonTools] = Registry("season_tool")
"""The installed arena (entry point ``arena`` of ``tradeassay.season_tools``)."""


def arena() -> SeasonTools:
    """Return the arena's tools. Raises :class:`MissingExtra` if its package is not installed."""
    if "arena" not in season_tools:
        raise MissingExtra("seasons need the arena", hint="pip install 'tradeassay[arena]'")
    return season_tools.get("arena")
