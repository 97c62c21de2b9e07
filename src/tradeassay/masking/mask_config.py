"""How much of a market is hidden from an agent, and what it is told when it names something not in its mask."""

from __future__ import annotations

from typing import Literal

import msgspec

from tradeassay.core.errors import AgentError, DataError, UserError


class UnknownAlias(AgentError, DataError):
    """An agent named an asset or a day that does not exist under its mask.

    The message never repeats what was written unless that has the form of an alias: what goes back to the model
    is masked, so repeating a real name it guessed would tell it that name's alias.
    """


Level = Literal["bright", "stock-blind", "date-blind", "blinded"]
"""``bright`` shows everything; ``stock-blind`` hides names, ``date-blind`` hides dates, ``blinded`` hides both."""
LEVELS: tuple[Level, ...] = ("bright", "stock-blind", "date-blind", "blinded")


class MaskConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The mask of an episode. Everything but ``level`` goes beyond the published protocol and is off by default.

    ``control`` marks the control arm: nothing is hidden, the protocol adds an instruction not to use memory.
    ``rebase_prices`` gives every series another level, ``scale_volumes`` every name another scale of volume and
    turnover, both fixed for the episode. ``scrub_news`` removes the source, every year, quarter, month and
    weekday from the news, not only the names and dates that belong to the episode. ``bare_dates`` (on, where
    dates are hidden) also replaces years, months and quarters that stand alone in a text. ``time_of_day`` keeps
    the time of day beside the day label of an instant.

    Raises :class:`UserError` for a control arm that hides something, and for hardening of a bright market.
    """

    level: Level = "blinded"
    control: bool = False
    rebase_prices: bool = False
    scale_volumes: bool = False
    scrub_news: bool = False
    bare_dates: bool = True
    time_of_day: bool = False

    def __post_init__(self) -> None:
        if self.level not in LEVELS:
            raise UserError(f"no mask '{self.level}'", hint=f"one of {', '.join(LEVELS)}")
        if self.level != "bright":
            if self.control:
                raise UserError(f"a control arm cannot be '{self.level}'", hint="level: bright, or control: false")
        elif self.rebase_prices or self.scale_volumes or self.scrub_news:
            raise UserError("a bright market cannot be hardened", hint="choose another level")

    @property
    def hides_stocks(self) -> bool:
        return self.level in ("stock-blind", "blinded")

    @property
    def hides_dates(self) -> bool:
        return self.level in ("date-blind", "blinded")
