"""How often somebody may knock: a bucket of requests that fills up again with time."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable

import msgspec

from tradeassay.core.errors import UserError


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What the doors bear. ``per_minute`` and ``burst`` hold for each agent, ``strangers`` for each address
    that sends wrong tokens (per minute). ``body`` is in bytes."""

    per_minute: float = 120.0
    burst: int = 30
    strangers: float = 30.0
    body: int = 64 * 1024

    def __post_init__(self) -> None:
        if not (self.per_minute > 0 and self.burst >= 1 and self.strangers > 0 and self.body > 0):
            raise UserError("limits must let something through", mend="give numbers above 0")


class Limiter:
    """Buckets by key, kept in this process. The least recently used are forgotten above ``most`` keys."""

    def __init__(
        self, per_minute: float, burst: int, *, most: int = 10_000, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate, self._burst, self._most, self._clock = per_minute / 60.0, float(burst), most, clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, key: str) -> float:
        """Take one request out of a bucket: 0 when it may pass, else the seconds until it may."""
        left, now = self._filled(key)
        wait = 0.0 if left >= 1.0 else (1.0 - left) / self._rate
        self._buckets[key] = (left - 1.0 if wait == 0.0 else left, now)
        self._buckets.move_to_end(key)
        while len(self._buckets) > self._most:
            self._buckets.popitem(last=False)
        return wait

    def empty(self, key: str) -> float:
        """Return the seconds until a bucket has something again, without taking from it; 0 when it has."""
        left, _ = self._filled(key)
        return 0.0 if left >= 1.0 else (1.0 - left) / self._rate

    def _filled(self, key: str) -> tuple[float, float]:
        now = self._clock()
        left, since = self._buckets.get(key, (self._burst, now))
        return min(self._burst, left + (now - since) * self._rate), now
