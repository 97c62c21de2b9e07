"""A run as data frames, in polars or pandas. One row per thing, every row names its episode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, get_args

from tradeassay.core.errors import UserError
from tradeassay.core.lazy import OptionalPackage

if TYPE_CHECKING:
    import polars as pl
else:
    pl = OptionalPackage("polars", "polars", "a polars frame", instead="ask for 'pandas'")

Kind = Literal["polars", "pandas"]

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
        ("positions", _WHEN, "symbol:str quantity:float cost:float mark:float value:float weight:float"),
        ("scores", _WHO, f"status:str measure:str {_SCORE}"),
    )
}
"""Columns of each frame and their types."""


@dataclass(frozen=True, slots=True)
class Frames:
    """Six tables of one run, all polars or all pandas.

    ``nav``: one row per session, the initial value being step -1 with no session; ``trades``: one per fill;
    ``rejections``: one per refused order; ``decisions``: one per session; ``positions``: one per holding at the
    end of a session; ``scores``: one per episode and measure, with its interval or the reason it has none."""

    nav: Any
    trades: Any
    rejections: Any
    decisions: Any
    positions: Any
    scores: Any

    def __getitem__(self, name: str) -> Any:
        """Return a frame by its name; raises :class:`UserError` for an unknown one."""
        if name not in SCHEMAS:
            raise UserError(f"no frame '{name}'", hint=f"one of {', '.join(SCHEMAS)}")
        return getattr(self, name)

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return ((field.name, getattr(self, field.name)) for field in fields(self))


Row = Sequence[object]


def make_frame(kind: Kind, schema: Mapping[str, str], rows: Sequence[Row]) -> Any:
    """Return a polars or pandas frame with the columns and types of ``schema``; raises :class:`UserError` for an
    unknown kind."""
    if kind not in get_args(Kind):
        raise UserError(f"no data frames of kind '{kind}'", hint="choose polars or pandas")
    if kind == "polars":
        types = dict(str=pl.String, int=pl.Int64, float=pl.Float64, bool=pl.Boolean, date=pl.String)
        frame = pl.DataFrame(rows, schema={name: types[word] for name, word in schema.items()}, orient="row")
        dates = [name for name, word in schema.items() if word == "date"]
        return frame.with_columns(pl.col(name).str.to_date("%Y-%m-%d") for name in dates)
    import pandas as pd

    names = {"str": "string", "int": "Int64", "float": "float64", "bool": "boolean", "date": "datetime64[s]"}
    columns = list(zip(*rows, strict=True)) if rows else [() for _ in schema]
    pairs = zip(schema.items(), columns, strict=True)
    return pd.DataFrame({name: pd.Series(column, dtype=names[word]) for (name, word), column in pairs})
