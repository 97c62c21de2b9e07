"""What the leak check found, and what it is worth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from tradeassay.code.leak.trace import Trace

Method = Literal["truncation", "other future", "perturbation", "block splice"]
Verdict = Literal["leaky", "clean", "not_checked"]
Cause = Literal["", "run_failed", "nondeterministic", "fails_on_prefixes", "too_slow", "too_short"]

PASSING: Final = (
    "Passing is evidence, not proof: a leak that acts on very few bars can be missed. "
    "Only a strategy that is fed bar by bar cannot look ahead."
)


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """One decision that changed when only the rows after it did.

    ``cut_row`` is the last row that was the same in both runs, ``row`` the bar of the first decision that
    differs; ``scored`` and ``other`` say in words what each run decided there.
    """

    method: Method
    cut_row: int
    row: int
    scored: str
    other: str

    @property
    def text(self) -> str:
        """One line for a report."""
        how = {
            "truncation": f"with no rows after {self.cut_row}",
            "other future": f"with other rows after {self.cut_row}",
            "perturbation": f"with other prices after {self.cut_row}, same length",
            "block splice": f"with rows of elsewhere after {self.cut_row}",
        }[self.method]
        return (
            f"{self.method}: on bar {self.row} the scored run decides {self.scored}; {how} it decides {self.other}"
        )


class Placebo(msgspec.Struct, frozen=True, kw_only=True):
    """How many of the scored run's actions come again on other prices with the same dates.

    Near 1 the code goes by dates and not by prices: a calendar rule, or remembered history. Not a verdict.
    """

    actions: int
    repeated: int

    @property
    def share(self) -> float | None:
        """Repeated actions over all actions; None without any."""
        return self.repeated / self.actions if self.actions else None


class LeakRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a report that is written down.

    ``fed`` says what feeding the program bar by bar showed, where that was done: ``same`` decisions as in the
    scored run (then ``clean`` is a proof), or others (``differs``).
    """

    verdict: Verdict
    reason: str
    cause: Cause = ""
    evidence: tuple[Evidence, ...] = ()
    runs: int = 0
    bars: int = 0
    cuts: tuple[int, ...] = ()
    failed_runs: int = 0
    screened: int = 0
    unconfirmed: int = 0
    placebo: Placebo | None = None
    fed: Literal["", "same", "differs"] = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakReport:
    """The verdict with its evidence, and the scored run that was compared with all others.

    ``scored`` is None only when there was no such run. ``record`` is what goes to disk: ``reason`` in one line,
    the ``runs`` made and ``bars`` spent, where it was cut, how many runs failed, how many places the splice
    screen tried and how many of its hits were not confirmed.
    """

    record: LeakRecord
    scored: Trace | None

    @property
    def verdict(self) -> Verdict:
        """Leaky, clean, or not checked."""
        return self.record.verdict

    @property
    def reason(self) -> str:
        """Why, in one line."""
        return self.record.reason

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """What convicts it; empty unless leaky."""
        return self.record.evidence

    @property
    def leaky(self) -> bool:
        """Whether a decision was seen to depend on later rows."""
        return self.record.verdict == "leaky"
