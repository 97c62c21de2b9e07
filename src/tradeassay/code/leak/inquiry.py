"""What a leak check has learned so far, and what it has spent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tradeassay.code.leak.compare import first_difference
from tradeassay.code.leak.config import LeakConfig
from tradeassay.code.leak.report import PASSING, Cause, Evidence, LeakRecord, LeakReport, Method, Placebo
from tradeassay.code.leak.subject import RunFailure
from tradeassay.code.leak.trace import Trace


class _Trial(Protocol):
    @property
    def method(self) -> Method: ...
    @property
    def cut(self) -> int: ...
    @property
    def before(self) -> int: ...


class Inquiry:
    """The running account of one check. Mutable, and gone when the report is written."""

    def __init__(self, bars: int, config: LeakConfig) -> None:
        self.bars = bars
        self.scored: Trace | None = None
        self.middle: int | None = None
        self.evidence: list[Evidence] = []
        self.placebo: Placebo | None = None
        self.compared = self.screened = self.unconfirmed = self.untried = 0
        self._config = config
        self._left = config.budget(bars)
        self._runs = self._bars = self._unaffordable = 0
        self._cuts: set[int] = set()
        self._failures: list[tuple[int, RunFailure]] = []
        self._notes: list[str] = []

    def spend(self, rows: Sequence[int], *, free: bool = False) -> None:
        """Book runs of so many rows each; ``free`` ones do not count against the budget."""
        self._runs += len(rows)
        self._bars += sum(rows)
        self._left -= 0 if free else sum(rows)

    def afford(self, rows: int) -> bool:
        """Book a run of ``rows`` rows if the budget allows it."""
        if rows > self._left:
            self._unaffordable += 1
            return False
        self.spend([rows])
        return True

    def note(self, text: str) -> None:
        """Keep a remark for the report."""
        self._notes.append(text)

    def screen_failed(self, failure: RunFailure) -> None:
        """Note that a splice could not be run; code may well refuse a series of pieces."""
        self.note(f"a block-splice screen failed and found nothing out: {failure.text}")

    def take(self, trial: _Trial, outcome: Trace | RunFailure) -> None:
        """Compare one run with the scored one."""
        if isinstance(outcome, RunFailure):
            self._failures.append((trial.cut, outcome))
            return
        assert self.scored is not None
        self.compared += 1
        self._cuts.add(trial.cut)
        found = first_difference(self.scored, outcome, trial.before, self._config.rtol)
        if found is not None:
            row, scored, other = found
            self.evidence.append(
                Evidence(method=trial.method, cut_row=trial.cut, row=row, scored=scored, other=other)
            )

    def not_checked(self, cause: Cause, reason: str) -> LeakReport:
        """Return the report of a check that could not be made."""
        record = LeakRecord(
            verdict="not_checked",
            reason=reason,
            cause=cause,
            runs=self._runs,
            bars=self._bars,
            notes=tuple(self._notes),
        )
        return LeakReport(record=record, scored=self.scored)

    def verdict(self) -> LeakReport:
        """Return the report of a check that was made."""
        failed = len(self._failures)
        if not self.evidence and (self.middle not in self._cuts or failed > self.compared):
            _, last = max(self._failures, key=lambda pair: pair[0], default=(0, None))
            why = f"the last of them says: {last.text}" if last is not None else "the budget is too small"
            tried = failed + self.compared
            return self.not_checked(
                "fails_on_prefixes", f"{failed} of {tried} runs on other futures failed; {why}"
            )
        if self.evidence:
            reason = self.evidence[0].text
        else:
            reason = f"no decision changed in {self.compared} comparisons. {PASSING}"
        record = LeakRecord(
            verdict="leaky" if self.evidence else "clean",
            reason=reason,
            evidence=tuple(self.evidence),
            runs=self._runs,
            bars=self._bars,
            cuts=tuple(sorted(self._cuts)),
            failed_runs=failed,
            screened=self.screened,
            unconfirmed=self.unconfirmed,
            placebo=self.placebo,
            notes=tuple(self._closing_notes()),
        )
        return LeakReport(record=record, scored=self.scored)

    def _closing_notes(self) -> list[str]:
        notes = list(self._notes)
        if self.scored is not None and not len(self.scored):
            notes.append("the scored run decided nothing")
        if self._unaffordable:
            notes.append(f"{self._unaffordable} runs were left out for want of budget")
        if self.untried > 0:
            notes.append(f"{self.untried} hits of the block-splice screen were not tried")
        if self._failures:
            notes.append(f"{len(self._failures)} runs on other futures failed: {self._failures[0][1].text}")
        return notes
