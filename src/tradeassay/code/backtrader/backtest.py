"""The outcome of running a strategy: its decisions, and what the host made of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from tradeassay.account.backtrader import EMPTY, Fill, OrderLog, RoundTrip, Status
from tradeassay.code.lookahead.trace import Trace
from tradeassay.core.errors import UserError
from tradeassay.sandbox import Failure, JobUsage, RefusedCall

_DECIDED: Final = (
    "action",
    "asset",
    "side",
    "size",
    "kind",
    "price",
    "pricelimit",
    "trailamount",
    "trailpercent",
    "valid",
    "given",
    "transmit",
    "tradeid",
)
_ENDS: Final = 2
"""The action in a trace that ends the run."""

TrickName = Literal[
    "patched-framework",
    "printed-result",
    "secrets-in-error",
    "future-index",
    "preloaded-array",
    "cheat-timer",
    "account-mismatch",
]


class Trick(msgspec.Struct, frozen=True, kw_only=True):
    """Something the code did that honest code does not do.

    A single ``grave`` one is enough for a score of zero. The others are pointers: an account that differs costs
    nothing (the host's counts), and whether future bars were *used* is for the look-ahead check to prove.
    """

    name: TrickName
    evidence: str
    grave: bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Backtest:
    """One run. With a ``failure`` there are no orders and no account.

    ``orders`` is what the strategy asked for; ``fills``, ``trades``, ``statuses`` (one per order) and ``equity``
    (the account's value after each bar) are the host's. ``ended`` is the bar count at which the strategy ended
    the run itself, None when it saw the last one. ``retried`` says why a first child was given up, if one was.
    ``log`` is what the code printed, for a reader.
    """

    failure: Failure | None = None
    orders: OrderLog = EMPTY
    fills: tuple[Fill, ...] = ()
    trades: tuple[RoundTrip, ...] = ()
    statuses: tuple[Status, ...] = ()
    equity: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    final_value: float | None = None
    ended: int | None = None
    tricks: tuple[Trick, ...] = ()
    usage: JobUsage
    attempts: tuple[RefusedCall, ...] = ()
    retried: str = ""
    log: bytes = b""

    @property
    def ok(self) -> bool:
        return self.failure is None

    @property
    def grave(self) -> tuple[Trick, ...]:
        return tuple(trick for trick in self.tricks if trick.grave)

    def trace(self) -> Trace:
        if self.failure is not None:
            raise UserError(f"a run that failed has no decisions: {self.failure.text}")
        log = self.orders
        # Refs depend on how many orders the whole run has had, so the distance to another order is used instead.
        place = {int(ref): k for k, ref in enumerate(log.ref.tolist()) if log.action[k] == 0}
        back = {
            name: np.array(
                [k - place[ref] if ref else 0 for k, ref in enumerate(getattr(log, name).tolist())], dtype=np.int64
            )
            for name in ("parent", "oco")
        }
        of = np.array([k - place[ref] for k, ref in enumerate(log.ref.tolist())], dtype=np.int64)
        # Everything the replay relies on is a decision: anything left out here could carry the future unseen.
        moment = 2 * (log.turn - log.decided) + (log.row - log.turn)
        fields = {name: getattr(log, name) for name in _DECIDED} | back | {"of": of, "moment": moment}
        rows = log.decided
        if self.ended is not None:
            rows = np.append(rows, max(self.ended - 1, 0))
            fields = {name: np.append(values, values.dtype.type(0)) for name, values in fields.items()}
            fields["action"][-1] = _ENDS
        return Trace(rows=rows, fields=fields, cpu_s=self.usage.cpu_s)
