"""By which rules a program is examined. A rule that moves a score belongs to a version of the benchmark.

Version 1 is kept as it was, so that old runs can be verified and replayed. Version 2 draws its markets from a
secret of the run, scores Backtrader programs from bars that were fed one at a time, feeds programs on frames in
growing frames, compares decisions instead of money, and leaves what a program prints alone.
"""

from __future__ import annotations

from functools import cache
from typing import Final, Literal

import msgspec

from tradeassay.code.program_source import LONGEST_SOURCE
from tradeassay.core.draws import draw_secret, refuse_bad_secret


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """``secret`` is what markets are drawn from (version 2): whoever knows it knows the examination.

    ``steps`` bounds how often orders are matched with bars when a run is carried out, ``longest_source`` the
    characters of a program: both are what a program can make the examiner pay for. Raises UserError for a secret
    that is none.
    """

    version: Literal[1, 2] = 2
    secret: str = ""
    steps: int = 600_000
    longest_source: int = 60_000

    def __post_init__(self) -> None:
        if self.version == 2:
            refuse_bad_secret(self.secret)

    @property
    def believes_print(self) -> bool:
        """Whether a printed line that poses as a result counts against a program."""
        return self.version == 1


V1: Final = Rules(version=1, steps=5_000_000, longest_source=LONGEST_SOURCE)
"""The rules of ``quantcode-v1``."""


def rules_of(secret: str | None) -> Rules:
    """Return today's rules with a run's secret. Without one it is drawn, once in a process: all programs of one
    session are compared on the same markets, and those of the next on others.
    """
    return Rules(secret=_own_secret() if secret is None else secret)


@cache
def _own_secret() -> str:
    return draw_secret()
