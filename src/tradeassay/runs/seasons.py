"""What commands do with a season of the arena, as the arena's package offers it.

A season is no run: it lies in a database, and other code plays, checks and shows it. The commands that take a run
or a season (``verify``, ``site``, ``mcp``, ``recordings``, ``reproduce``) find that code through a registry. They
work on runs without the arena's package."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tradeassay.core.errors import MissingExtra
from tradeassay.core.registry import Registry

if TYPE_CHECKING:
    from tradeassay.benchmarks.exhibits import PaperPage
    from tradeassay.runs.spec.episode import Asking
    from tradeassay.runs.store.archive import OpenRecording, RecordingLabel
    from tradeassay.runs.verify.report import VerifyReport

Badges = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperPlay:
    """A paper, how much of it is to be played with whom, and where the result goes."""

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
    """The arena's side of the commands that take a run or a season; ``db`` is a database's file or URL."""

    def verify(self, db: str, *, pages: Path | None = None) -> VerifyReport:
        """Make every season of a database again and compare, with the ``pages`` that were written from it."""
        ...

    def write_site(self, db: str, folder: Path) -> int:
        """Write all public pages of a database; returns how many files changed."""
        ...

    def serve_mcp(self, db: str, host: str, port: int, say: Callable[[str], None], hosts: Sequence[str]) -> None:
        """Serve the entries of a database to clients of the Model Context Protocol until stopped."""
        ...

    def pack(self, db: Path, file: Path, *, engine: str, precision: str, command: str) -> RecordingLabel:
        """Pack the answers of the newest season into a recording."""
        ...

    def changed_facts(self, opened: OpenRecording) -> list[str]:
        """Return the prompts that have changed since a season was recorded."""
        ...

    def replay_differences(self, opened: OpenRecording) -> list[str]:
        """Play a recorded season again from its answers, and return where it differs."""
        ...

    def choices(self, opened: OpenRecording) -> str:
        """Say in one sentence which settings of a recorded season its operator chose."""
        ...

    def play_paper(self, request: PaperPlay, asking: Asking) -> tuple[Any, bool]:
        """Play the seasons of a paper's page; returns its record, and whether one stopped at the cap."""
        ...

    def compose_paper(self, folder: Path, record: Any) -> tuple[PaperPage, Badges]:
        """Put the played seasons of a paper together, with what a reader must know of them."""
        ...


season_tools: Registry[SeasonTools] = Registry("season_tool")
"""The installed arena (entry point ``arena`` of ``tradeassay.season_tools``)."""


def arena() -> SeasonTools:
    """Return the arena's tools; raises :class:`MissingExtra` where its package is not installed."""
    if "arena" not in season_tools:
        raise MissingExtra("seasons need the arena", hint="pip install 'tradeassay[arena]'")
    return season_tools.get("arena")
