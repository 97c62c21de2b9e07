"""Build data frames in polars or pandas, as the caller chooses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, get_args

from tradeassay.core.errors import UserError
from tradeassay.core.lazy import OptionalPackage

if TYPE_CHECKING:
    import polars as pl
else:
    pl = OptionalPackage("polars", "polars", "a polars frame", instead="ask for 'pandas'")

Kind = Literal["polars", "pandas"]

_Row = Sequence[object]


def make_frame(kind: Kind, schema: Mapping[str, str], rows: Sequence[_Row]) -> Any:
    """Return a polars or pandas frame with the columns and types of ``schema``.

    Raises :class:`UserError` for an unknown kind of frame.
    """
    if kind not in get_args(Kind):
        raise UserError(f"no data frames of kind '{kind}'", hint="choose polars or pandas")
    if kind == "polars":
        types = dict(str=pl.String, int=pl.Int64, float=pl.Float64, bool=pl.Boolean, date=pl.String)
        frame = pl.DataFrame(
            rows, schema={name: types[word] for name, word in schema.items()}, orient="row"
        )
        dates = [name for name, word in schema.items() if word == "date"]
        return frame.with_columns(pl.col(name).str.to_date("%Y-%m-%d") for name in dates)
    import pandas as pd

    names = {
        "str": "string",
        "int": "Int64",
        "float": "float64",
        "bool": "boolean",
        "date": "datetime64[s]",
    }
    columns = list(zip(*rows, strict=True)) if rows else [() for _ in schema]
    pairs = zip(schema.items(), columns, strict=True)
    return pd.DataFrame(
        {name: pd.Series(column, dtype=names[word]) for (name, word), column in pairs}
    )
