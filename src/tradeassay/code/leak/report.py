"""How hard to look for a leak, what the check found, and how much that proves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import msgspec

from tradeassay.code.leak.trace import Trace
from tradeassay.core.errors import UserError


class WholeSeries(msgspec.Struct, frozen=True, kw_only=True):
    """How a whole series is looked at (``leak/whole.py``).

    Up to ``every_bar`` rows a false next bar is put behind every bar. Longer series get ``runs`` runs with changes
    in place, ``gap`` rows apart at first, and ``cuts`` runs whose whole rest differs. ``confirmations`` bounds how
    many hits are tried again, each on the true past; the budget for them is kept. Prices of other futures lie on
    the grid of the true ones; runs that fail and hits that could not be tried leave the code *not cleared*.
    """

    every_bar: int = 3_000
    runs: int = 4
    gap: int = 250
    cuts: int = 3
    confirmations: int = 12


class LeakConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Where and how often to cut. The bench is measured with the defaults.

    ``mode`` ``every`` cuts at every bar (micro-scenarios); ``sampled`` takes ``warm_up_cuts`` in the first
    ``warm_up_rows``, ``change_cuts`` where the scored run decides something and ``random_cuts`` anywhere; each
    cut is run truncated and with another future. ``perturbations`` runs keep the full length. ``splice_runs``
    screens try ``splice_rows`` rows each, in pieces of ``piece_rows``; ``confirmations`` bounds how many of a
    screen's hits are retried on the true past. ``placebo`` adds one run on other prices.

    ``short_rows``: on longer series cuts are taken from this many first rows, except the mid-sample truncation
    and the perturbations. ``tail_rows``: how much other future follows a cut. ``end_rows``: the last rows of a
    truncated table, on which closing everything because the data ends is allowed. ``budget_bars`` bounds all rows
    given to the code beyond the scored run and its repetition; None means ten times the length, at least 400,000.
    ``rtol``: floats that differ by less are one decision (libraries of linear algebra may round the last digit
    by the length of their input); everything else is compared exactly.

    ``probe``: from 20,000 rows on, run 5,000 and 20,000 first, and refuse code whose scored run would take more
    than ``run_s`` seconds. ``whole`` looks at the whole series instead of splices.
    """

    mode: Literal["sampled", "every"] = "sampled"
    warm_up_cuts: int = 4
    warm_up_rows: int = 120
    change_cuts: int = 8
    random_cuts: int = 4
    perturbations: int = 2
    splice_runs: int = 3
    splice_rows: int = 8_000
    piece_rows: int = 120
    confirmations: int = 12
    placebo: bool = False
    short_rows: int = 4_000
    tail_rows: int = 64
    end_rows: int = 1
    budget_bars: int | None = None
    rtol: float = 1e-9
    probe: bool = True
    run_s: float = 60.0
    whole: WholeSeries | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        for name in (
            "warm_up_cuts",
            "change_cuts",
            "random_cuts",
            "perturbations",
            "splice_runs",
            "confirmations",
        ):
            if getattr(self, name) < 0:
                raise UserError(f"'{name}' cannot be negative", hint="0 leaves it out")
        for name in ("warm_up_rows", "splice_rows", "piece_rows", "short_rows", "tail_rows", "end_rows", "run_s"):
            if getattr(self, name) <= 0:
                raise UserError(f"'{name}' must be more than 0", hint="leave it out to take the default")
        if not 0 <= self.rtol < 1e-3:
            raise UserError(f"rtol {self.rtol} is outside 0 .. 0.001")

    def budget(self, bars: int) -> int:
        """Return how many rows may be spent on a series of ``bars`` rows."""
        return max(400_000, 10 * bars) if self.budget_bars is None else self.budget_bars


Method = Literal["truncation", "other future", "perturbation", "block splice", "in place", "next bar"]
Verdict = Literal["leaky", "clean", "not_checked", "not_cleared"]
Cause = Literal[
    "", "run_failed", "nondeterministic", "fails_on_prefixes", "too_slow", "too_short", "untried", "length"
]

PASSING: Final = (
    "Passing is evidence, not proof: a leak that acts on very few bars can be missed. "
    "Only a strategy that is fed bar by bar cannot look ahead."
)


class ChangedDecision(msgspec.Struct, frozen=True, kw_only=True):
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
            "in place": f"with a few other rows after {self.cut_row}, everything else the same",
            "next bar": f"with one false bar after {self.cut_row}",
        }[self.method]
        return (
            f"{self.method}: on bar {self.row} the scored run decides {self.scored}; {how} it decides {self.other}"
        )


class Placebo(msgspec.Struct, frozen=True, kw_only=True):
    """How many of the scored run's actions recur on other prices with the same dates.

    Near 1 the code follows dates and not prices: a calendar rule, or remembered history. Not a verdict.
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
    scored run (then ``clean`` is a proof), or others (``differs``). ``cleared`` is how many bars were tried and
    found to decide the same, ``bound`` the number of leaking bars from which on a leak would have been met with
    95 % chance; both only where the whole series was looked at.
    """

    verdict: Verdict
    reason: str
    cause: Cause = ""
    evidence: tuple[ChangedDecision, ...] = ()
    runs: int = 0
    bars: int = 0
    cuts: tuple[int, ...] = ()
    failed_runs: int = 0
    screened: int = 0
    unconfirmed: int = 0
    placebo: Placebo | None = None
    fed: Literal["", "same", "differs"] = ""
    notes: tuple[str, ...] = ()
    cleared: int | msgspec.UnsetType = msgspec.UNSET
    bound: int | msgspec.UnsetType = msgspec.UNSET


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
    def evidence(self) -> tuple[ChangedDecision, ...]:
        """What convicts it; empty unless leaky."""
        return self.record.evidence

    @property
    def leaky(self) -> bool:
        """Whether a decision was seen to depend on later rows."""
        return self.record.verdict == "leaky"
