"""Export a run as data frames of polars or pandas. Every row contains the key of its episode."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from tradeassay.core.errors import UserError

_WHO = {"episode": "str", "benchmark": "str", "dataset": "str", "agent": "str", "seed": "int"}
_WHEN = {**_WHO, "step": "int", "session": "date"}
_TRADE = "quantity:float price:float reference:float fee:float tax:float cash:float forced:bool"
_SCORE = "value:float low:float high:float level:float n:int reason:str note:str"
SCHEMAS: dict[str, dict[str, str]] = {
    name: {**who, **dict(column.split(":") for column in columns.split())}
    for name, who, columns in (
        ("nav", _WHEN, "nav:float cash:float positions:float"),
        ("trades", _WHEN, f"order_id:str symbol:str side:str {_TRADE}"),
        ("rejections", _WHEN, "order_id:str symbol:str reason:str detail:str quantity:float"),
        ("decisions", _WHEN, "status:str orders:int failures:int reason:str"),
        (
            "positions",
            _WHEN,
            "symbol:str quantity:float cost:float mark:float value:float weight:float",
        ),
        ("scores", _WHO, f"status:str measure:str {_SCORE}"),
    )
}
"""The columns of each frame, with the type of each column."""


@dataclass(frozen=True, slots=True)
class Frames:
    """Six tables of one run, all from polars or all from pandas.

    ``nav``: one row per session, and a first row (step -1, no session) with the initial value.
    ``trades``: one row per fill.
    ``rejections``: one row per rejected order.
    ``decisions``: one row per session.
    ``positions``: one row per holding at the end of a session.
    ``scores``: one row per episode and measure, with its interval or the reason for its absence.
    """

    nav: Any
    trades: Any
    rejections: Any
    decisions: Any
    positions: Any
    scores: Any

    def __getitem__(self, name: str) -> Any:
        """Return a frame by its name. Raises :class:`UserError` for an unknown name."""
        if name not in SCHEMAS:
            raise UserError(f"no frame '{name}'", hint=f"one of {', '.join(SCHEMAS)}")
        return getattr(self, name)

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return ((field.name, getattr(self, field.name)) for field in fields(self))
