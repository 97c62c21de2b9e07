"""Where a run keeps things on disk.

::

    runs/<slug>/
      manifest.json             spec, hashes, versions
      episodes/<key>/
        events.jsonl            one line per decision; state is its replay
        outcome.json            done or failed, and the journal's hash
        dialogue.jsonl          what a model was asked and what it said, one line per question
      models/<key>.jsonl        cassettes: every recorded answer, by the hash of its question
      scores.json               every number with its interval, or null and the reason
      timing.json               wall times (a sidecar: never compared)
      report.html               written by the report
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

DEFAULT_PARENT = Path("runs")


@dataclass(frozen=True, slots=True)
class RunFolder:
    """The paths inside one run's folder."""

    path: Path

    @property
    def manifest(self) -> Path:
        """What was run, on what, with what."""
        return self.path / "manifest.json"

    @property
    def scores(self) -> Path:
        """The numbers."""
        return self.path / "scores.json"

    @property
    def timing(self) -> Path:
        """Wall times."""
        return self.path / "timing.json"

    @property
    def report(self) -> Path:
        """The page."""
        return self.path / "report.html"

    @property
    def lock(self) -> Path:
        """Held by the process that writes."""
        return self.path / ".lock"

    @property
    def models(self) -> Path:
        """The cassettes of the run's models."""
        return self.path / "models"

    def dialogue(self, key: str) -> Path:
        """Return the file that holds an episode's conversations."""
        return self.episode(key) / "dialogue.jsonl"

    def episode(self, key: str) -> Path:
        """Return an episode's folder."""
        return self.path / "episodes" / key

    def events(self, key: str) -> Path:
        """Return an episode's journal."""
        return self.episode(key) / "events.jsonl"

    def outcome(self, key: str) -> Path:
        """Return the file that says how an episode ended."""
        return self.episode(key) / "outcome.json"
