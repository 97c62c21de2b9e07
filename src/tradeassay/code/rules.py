"""By which rules a program is examined. A rule that moves a score belongs to a version of the benchmark.

Markets are drawn from a secret of the run, Backtrader programs are scored from bars that were fed one at a time,
programs on frames are fed growing frames, decisions are compared instead of money, and what a program prints is
left alone.
"""

from __future__ import annotations

from functools import cache

import msgspec

from tradeassay.core.hashing import draw_secret, refuse_bad_secret


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """``secret`` is what markets are drawn from: whoever knows it knows the examination.

    ``steps`` bounds how often orders are matched with bars when a run is carried out, ``longest_source`` the
    characters of a program: both are what a program can make the examiner pay for. Raises UserError for a secret
    that is none.
    """

    secret: str
    steps: int = 600_000
    longest_source: int = 60_000

    def __post_init__(self) -> None:
        refuse_bad_secret(self.secret)


def rules_of(secret: str | None) -> Rules:
    """Return today's rules. Without a secret one is drawn, once in a process: all programs of one session meet
    the same markets.
    """
    return Rules(secret=_own_secret() if secret is None else secret)


@cache
def _own_secret() -> str:
    return draw_secret()
