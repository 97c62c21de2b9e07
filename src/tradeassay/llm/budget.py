"""A purse with a hard bottom, shared by everybody who asks at the same time.

Before a call the most it can cost is *reserved*; afterwards the reservation is *settled* with what it did cost.
A call whose reservation does not fit waits while other calls may still give money back, and is refused when
nothing is under way any more. Spent plus reserved never exceeds the cap, however many callers there are.
"""

from __future__ import annotations

import asyncio
from collections import deque

from tradeassay.core.errors import UserError

_ROUNDING = 1e-9


class Reservation:
    """Money put aside for one call. It is settled exactly once."""

    __slots__ = ("open", "usd")

    def __init__(self, usd: float) -> None:
        self.usd = usd
        self.open = True


class Budget:
    """Dollars that may be spent in all. ``max_usd`` None counts without a cap.

    ``spent_usd`` is what an earlier part of the same run has spent already. One budget may serve several models,
    but only one event loop.
    """

    def __init__(self, max_usd: float | None = None, *, spent_usd: float = 0.0) -> None:
        if max_usd is not None and not max_usd > 0:
            raise UserError(
                f"a budget of {max_usd} dollars buys nothing", mend="give a positive amount, or none at all"
            )
        self.max_usd = max_usd
        self.spent_usd = spent_usd
        self.reserved_usd = 0.0
        self.uncertain_usd = 0.0
        self.unpriced_calls = 0
        self._waiting: deque[tuple[float, asyncio.Future[bool]]] = deque()
        self._under_way = 0

    @property
    def left_usd(self) -> float | None:
        """What may still be reserved, or None without a cap."""
        return None if self.max_usd is None else max(0.0, self.max_usd - self.spent_usd - self.reserved_usd)

    async def reserve(self, usd: float) -> Reservation | None:
        """Put money aside; return None when the cap cannot hold it and no call under way could give some back.

        Callers are served in the order they came: a small call does not slip past a big one that waits.
        """
        if usd < 0:
            raise ValueError(f"cannot reserve {usd} dollars")
        if not self._waiting and self._fits(usd):
            return self._take(usd)
        if self._under_way == 0:
            return None
        answer: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        entry = (usd, answer)
        self._waiting.append(entry)
        try:
            granted = await answer
        except asyncio.CancelledError:
            if entry in self._waiting:
                self._waiting.remove(entry)
            elif answer.done() and not answer.cancelled() and answer.result():
                self._give_back(usd)
            self._serve()
            raise
        return Reservation(usd) if granted else None

    def settle(self, reservation: Reservation, usd: float | None) -> None:
        """Replace a reservation by what the call cost.

        None means that the call may have been billed and nobody knows how much (a time-out, a lost answer): the
        whole reservation is then counted as spent, and as uncertain.
        """
        if not reservation.open:
            raise ValueError("a reservation is settled once")
        reservation.open = False
        self._give_back(reservation.usd)
        self.spent_usd += reservation.usd if usd is None else usd
        if usd is None:
            self.uncertain_usd += reservation.usd
        self._serve()

    def _fits(self, usd: float) -> bool:
        return self.max_usd is None or self.spent_usd + self.reserved_usd + usd <= self.max_usd + _ROUNDING

    def _take(self, usd: float) -> Reservation:
        self.reserved_usd += usd
        self._under_way += 1
        return Reservation(usd)

    def _give_back(self, usd: float) -> None:
        self._under_way -= 1
        # With nothing under way nothing is reserved: rounding must not pile up over thousands of calls.
        self.reserved_usd = self.reserved_usd - usd if self._under_way else 0.0

    def _serve(self) -> None:
        while self._waiting:
            usd, answer = self._waiting[0]
            if answer.done():
                self._waiting.popleft()
            elif self._fits(usd):
                self._waiting.popleft()
                self._take(usd)
                answer.set_result(True)
            elif self._under_way == 0:
                self._waiting.popleft()
                answer.set_result(False)
            else:
                return
