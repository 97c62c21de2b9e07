"""Where a run of programs keeps things on disk.

::

    runs/<slug>/
      manifest.json             spec, hashes, versions, items
      items/<key>/outcome.json  how an item ended: every turn's code, stage, verdicts and feedback
      items/<key>/work.jsonl    only while an item is under way: what was worked out so far
      models/<key>.jsonl        cassettes: every recorded answer of writer and judge
      scores.json               every number with its interval, or null and the reason
      timing.json               wall times (a sidecar: never compared)
      report.html               written by the report
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tradeassay.runs.layout import RunFolder


@dataclass(frozen=True, slots=True)
class CodeFolder:
    """The paths inside one run's folder."""

    path: Path

    @property
    def run(self) -> RunFolder:
        """The paths that every kind of run has."""
        return RunFolder(self.path)

    def item(self, key: str) -> Path:
        """Return an item's folder."""
        return self.path / "items" / key

    def outcome(self, key: str) -> Path:
        """Return the file that says how an item ended."""
        return self.item(key) / "outcome.json"

    def work(self, key: str) -> Path:
        """Return the file of results that are not yet part of an outcome."""
        return self.item(key) / "work.jsonl"
