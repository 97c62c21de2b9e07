"""Something about a recorded run that does not hold."""

from __future__ import annotations

import msgspec


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """Where (None = the run as a whole), which check, and what."""

    check: str
    what: str
    episode: str | None = None
    step: int | None = None

    def __str__(self) -> str:
        """Return it as one line."""
        where = self.episode or "run"
        return f"{where}{'' if self.step is None else f', step {self.step}'}: {self.check}: {self.what}"
