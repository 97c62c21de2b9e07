"""Define the configuration and the findings of a leak test."""

from __future__ import annotations

import math
from typing import Annotated, Final, Literal, get_args

import msgspec
from msgspec import Meta

from tradeassay.core.measure import FILES_OPEN, Measure, at_most, not_scored

Channel = Literal[
    "bars",
    "index levels",
    "index membership",
    "listings",
    "corporate actions",
    "news",
    "fundamentals",
]
CHANNELS: tuple[Channel, ...] = get_args(Channel)
"""The channels through which future data could leak. Each is rewritten separately."""
Kind = Literal["counterfactual", "canary", "time stamp"]
Count = Annotated[int, Meta(ge=1)]


class LeakTestConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The size of a leak test: the number of decisions tested, and the seed of all draws.

    If ``sessions`` is None, every session of the window is tested, and a model is queried for
    :data:`ASKED` sessions. Every session gets two alternative futures: one with reversed prices and
    one with noise.
    """

    sessions: Count | None = None
    seed: int = 0


ASKED = 40
"""The default number of sessions for which a model is queried. Each session costs money."""


class LeakFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One leak.

    ``channel`` is the kind of data that leaked. It is None if a decision changed only when all
    channels were replaced together, or if a time stamp alone revealed the leak. ``through`` is the
    place of the leak: ``decision`` for a rule, ``prompt`` or ``tool <name>`` for a model.
    ``session`` and ``step`` are the first session with the leak. ``days`` is the number of days
    with the leak.
    """

    kind: Kind
    channel: Channel | None
    through: str
    session: str
    step: int
    detail: str
    days: int = 1


def moved_share(moved: int, sessions: int) -> Measure:
    """Return the share of sessions that changed, with its one-sided upper bound at 95 %.

    The bound is by Clopper and Pearson. If no session changed, the bound equals
    :attr:`LeakTestReport.undetected`.
    """
    from scipy.special import betaincinv  # slow to import

    if not sessions:
        return not_scored("nothing was played")
    high = 1.0 if moved == sessions else float(betaincinv(moved + 1, sessions - moved, 0.95))
    note = "one-sided interval by Clopper and Pearson"
    return Measure(value=moved / sessions, low=0.0, high=high, level=0.95, n=sessions, note=note)


def undetected_after(sessions: int) -> float:
    """Return the share of leaking days that ``sessions`` sessions overlook with probability 5 %."""
    return 1.0 - math.exp(math.log(0.05) / sessions)


NO_ANSWER: Final = (
    "does not repeat itself: no planted fact was seen, more cannot be told.",
    "there was nothing that could move.",
)
"""The end of the sentence about a test that could not detect a leak."""


def nothing_found(sessions: int, *, whole: bool, files_open: bool) -> str:
    """Return the sentence for a test that found no leak."""
    every = "every one of" if whole else "the first"
    return (
        f"No leak was found: other futures moved nothing in {every} {sessions} sessions; "
        f"leaks on more than {at_most(undetected_after(sessions))} of days are excluded"
        + (f", but {FILES_OPEN}." if files_open else ".")
    )


class LeakTestReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a leak test.

    In each of ``sessions`` sessions, all data after the decision was replaced by ``futures``
    alternatives. ``moved`` is, by channel, the share of sessions whose decision, or whose messages
    to a model, changed. The upper bound of the share states what the number of sessions can exclude
    (:func:`moved_share`). ``untested`` lists the channels that the data does not have.
    ``repeatable`` is False for an agent that gives different answers to the same questions. For
    such an agent only planted facts and time stamps are used. ``whole`` is true if the test covered
    the whole window. ``files_open`` is true if the agent is a user's own code with access to files.
    The test does not cover data that the agent reads from files.
    """

    agent: str
    benchmark: str
    dataset: str
    sessions: int
    decisions_with_orders: int
    futures: int
    repeatable: bool
    whole: bool
    findings: tuple[LeakFinding, ...]
    moved: dict[str, Measure]
    untested: dict[str, str]
    withheld: int
    notes: tuple[str, ...] = ()
    files_open: bool = False

    @property
    def leaks(self) -> bool:
        """Return whether a leak was found."""
        return bool(self.findings)

    @property
    def undetected(self) -> float | None:
        """Return the share of leaking days that the test could have missed, at 95 % confidence.

        Returns None if the share is unknown. A leak on a share p of all days remains undetected in
        n sessions with probability (1 - p)^n. Days without an order are included, because the test
        would detect an order that an alternative future causes.
        """
        if self.findings or not self.repeatable or not self.decisions_with_orders:
            return None
        return undetected_after(self.sessions)

    @property
    def sentence(self) -> str:
        """Return the result in one sentence that claims no more than the test shows."""
        if self.findings:
            places: dict[str, None] = {}
            for one in self.findings:
                channel = one.channel or (
                    "time stamp" if one.kind == "time stamp" else "no single channel"
                )
                places[
                    channel if one.through == "decision" else f"{channel} through {one.through}"
                ] = None
            where = ", ".join(places)
            days = max(finding.days for finding in self.findings)
            return (
                f"{self.agent} leaks: what lies after the clock reached it ({where}), "
                f"in {days} of {self.sessions} sessions."
            )
        if not self.repeatable:
            return f"{self.agent} {NO_ANSWER[0]}"
        if not self.decisions_with_orders:
            return f"{self.agent} never traded in {self.sessions} sessions: {NO_ANSWER[1]}"
        return nothing_found(self.sessions, whole=self.whole, files_open=self.files_open)
