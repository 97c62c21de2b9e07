"""What a memory contrast is asked and what it says: frozen records that can be written as JSON."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from tradeassay.core.measure import Measure
from tradeassay.metrics import PairedTest

PARTS = ("total", "market", "style", "selection", "trading")
"""What a return is made of, as the tables name it."""
Period = Literal["before", "after", "across", "unknown", "any"]
"""Where a window lies: before or after what a model may have read, across that day, or unknown; ``any`` for
an agent that has read nothing."""
Told = Literal["memory", "worse unmasked", "no gap", "cannot be told", "not compared"]
Inference = Literal["windows", "sessions"]


class MemoryConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """``level`` of all intervals; ``negligible`` is the selection return per window that nobody would care about.

    With at least ``least_windows`` windows that do not overlap, windows are what chance is measured on; with
    fewer, sessions are. ``draws`` resamples of sessions.
    """

    level: Annotated[float, Meta(gt=0, lt=1)] = 0.95
    negligible: Annotated[float, Meta(ge=0)] = 0.01
    least_windows: Annotated[int, Meta(ge=2)] = 6
    draws: Annotated[int, Meta(ge=100)] = 1000


class MemoryArm(msgspec.Struct, frozen=True, kw_only=True):
    """One agent under one mask, before or after its knowledge ends: the mean return per window, in parts.

    ``arm`` is the mask with its hardening (``blinded``, ``blinded+rebase_prices``) or ``control``: nothing hidden,
    but told not to use memory. ``missing`` counts episodes without a result.
    """

    agent: str
    by_model: bool
    mode: str
    arm: str
    period: Period
    episodes: int
    windows: int
    missing: int
    parts: dict[str, Measure]

    @property
    def title(self) -> str:
        """The arm as a table names it."""
        named = {"bright": "unmasked", "blinded": "masked"}.get(self.arm, self.arm)
        when = {"before": ", before the cutoff", "after": ", after the cutoff", "across": ", across the cutoff"}
        return f"{named}{when.get(self.period, '')}"


class MemoryGap(msgspec.Struct, frozen=True, kw_only=True):
    """Unmasked minus ``masked``, paired over window and seed, in every part.

    The memory gap is the part ``selection``. ``test`` is the signed-rank test clustered by window, ``plain`` the
    one that papers print. ``p_value`` belongs to the interval's own ``inference``; ``p_adjusted`` is Holm's over
    all models of the table. ``control`` marks an agent that a mask cannot change.
    """

    agent: str
    by_model: bool
    control: bool
    mode: str
    period: Period
    masked: str
    pairs: int
    windows: int
    parts: dict[str, Measure]
    inference: Inference | None
    test: PairedTest | None
    plain: PairedTest | None
    p_value: float | None
    p_adjusted: float | None
    told: Told
    sentence: str

    @property
    def gap(self) -> Measure:
        """Selection unmasked minus selection masked."""
        return self.parts["selection"]


class Fade(msgspec.Struct, frozen=True, kw_only=True):
    """Selection unmasked before the cutoff minus after it. The windows differ, so the markets do too."""

    agent: str
    mode: str
    selection: Measure


class DirectProbe(msgspec.Struct, frozen=True, kw_only=True):
    """Trading with nothing but ids and the account: whatever is earned by selection was known before.

    ``p_value`` tests selection against zero.
    """

    agent: str
    arm: str
    period: Period
    total: Measure
    selection: Measure
    p_value: float | None
    told: Told
    sentence: str


class MemoryContrast(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that masks say about memory in recorded runs.

    ``controls_hold`` is False when an agent that cannot remember shows a gap: then the instrument is broken, and
    no gap in it is reported as memory. None when no control was run.
    """

    config: MemoryConfig
    arms: tuple[MemoryArm, ...]
    gaps: tuple[MemoryGap, ...]
    fades: tuple[Fade, ...]
    direct: tuple[DirectProbe, ...]
    controls_hold: bool | None
    notes: tuple[str, ...]

    def gap_of(self, agent: str, *, masked: str = "blinded", mode: str | None = None) -> MemoryGap | None:
        """Return an agent's main gap: before its cutoff where that is known, else over all windows."""
        order = ("before", "unknown", "any", "across", "after")
        found = [
            gap
            for gap in self.gaps
            if gap.agent == agent and gap.masked == masked and (mode is None or gap.mode == mode)
        ]
        return min(found, key=lambda gap: order.index(gap.period), default=None)
