"""What came of one stage."""

from __future__ import annotations

from typing import Literal

import msgspec

Status = Literal["passed", "failed", "not_reached", "not_scored"]


class StageResult(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One stage's verdict. ``reason`` is empty only when it passed.

    ``not_reached``: an earlier stage failed. ``not_scored``: nobody could tell, and the reason says why; it is
    neither a pass nor a failure. ``error_class`` is a short name to count by (``SyntaxError``, ``cpu_timeout``);
    ``claimed`` says that it rests on the program's own word.
    """

    status: Status
    reason: str = ""
    error_class: str = ""
    line: int | None = None
    claimed: bool = False

    @property
    def passed(self) -> bool:
        """Whether the stage was passed."""
        return self.status == "passed"

    @property
    def failed(self) -> bool:
        """Whether the stage was reached and not passed."""
        return self.status == "failed"


PASSED = StageResult(status="passed")


def failed(reason: str, error_class: str, *, line: int | None = None, claimed: bool = False) -> StageResult:
    """Return a failure."""
    return StageResult(status="failed", reason=reason, error_class=error_class, line=line, claimed=claimed)


def not_reached(after: str) -> StageResult:
    """Return the result of a stage that an earlier one kept from being tried."""
    return StageResult(status="not_reached", reason=after)


def not_scored(reason: str) -> StageResult:
    """Return the result of a stage that nobody could decide."""
    return StageResult(status="not_scored", reason=reason)
