"""What a leak test is asked and what it finds: frozen records that can be written as JSON."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from tradeassay.core.measure import Measure

Channel = Literal[
    "bars", "index levels", "index membership", "listings", "corporate actions", "news", "fundamentals",
]  # fmt: skip
CHANNELS: tuple[Channel, ...] = (
    "bars", "index levels", "index membership", "listings", "corporate actions", "news", "fundamentals",
)  # fmt: skip
"""Where the future could come from, each rewritten on its own."""
Kind = Literal["counterfactual", "canary", "time stamp"]
Count = Annotated[int, Meta(ge=1)]


class LeakTestConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How hard the test looks: decisions played, moments after which the future is rewritten, seed of all draws.

    Every moment gets two other futures: one in which every price path is turned over, one that is noise.
    """

    sessions: Count = 40
    cuts: Count = 3
    seed: int = 0


class LeakFinding(msgspec.Struct, frozen=True, kw_only=True):
    """One leak.

    ``channel`` is the data that got through; None where only all channels together moved something, or where a
    time stamp alone gave it away. ``through`` says where it was seen: ``decision`` for a rule, ``prompt`` or
    ``tool <name>`` for a model. ``session`` and ``step`` are the first that showed it, ``cut`` the session from
    which everything was rewritten (None for a time stamp).
    """

    kind: Kind
    channel: Channel | None
    through: str
    session: str
    step: int
    cut: str | None
    detail: str


class LeakTestReport(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a test.

    ``moved`` is the share of rewritten futures that moved something which came before them, by channel; Wilson's
    interval says how much so few futures can exclude. ``untested`` names the channels that the data does not
    have. ``repeatable`` is False for an agent that answers differently to the same questions: then only planted
    facts and time stamps can tell.
    """

    agent: str
    benchmark: str
    dataset: str
    sessions: int
    decisions_with_orders: int
    cuts: tuple[str, ...]
    futures: int
    repeatable: bool
    findings: tuple[LeakFinding, ...]
    moved: dict[str, Measure]
    untested: dict[str, str]
    withheld: int
    notes: tuple[str, ...] = ()

    @property
    def leaks(self) -> bool:
        """Whether anything leaked."""
        return bool(self.findings)

    @property
    def channels(self) -> tuple[Channel, ...]:
        """The channels that leaked, each once."""
        found = {finding.channel for finding in self.findings}
        return tuple(channel for channel in CHANNELS if channel in found)

    @property
    def sentence(self) -> str:
        """The result in one sentence, no stronger than the test."""
        if self.findings:
            where = ", ".join(dict.fromkeys(_where(finding) for finding in self.findings))
            return f"{self.agent} leaks: what lies after the clock reached it ({where})."
        if not self.repeatable:
            return f"{self.agent} does not repeat itself: no planted fact was seen, more cannot be told."
        if not self.decisions_with_orders:
            return f"{self.agent} never traded in {self.sessions} sessions: there was nothing that could move."
        return f"No leak was found: {self.futures} other futures moved nothing that {self.agent} did before them."


def _where(finding: LeakFinding) -> str:
    channel = finding.channel or ("time stamp" if finding.kind == "time stamp" else "no single channel")
    return channel if finding.through == "decision" else f"{channel} through {finding.through}"
