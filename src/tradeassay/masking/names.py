"""Whether a mask can hide the companies of a data set in texts about them."""

from __future__ import annotations

from tradeassay.core.errors import UserError
from tradeassay.core.view import MarketView
from tradeassay.data.names import known_names


def nameless(view: MarketView) -> tuple[str, ...]:
    """Return the stocks whose company nobody here can name: a text about them cannot be masked."""
    stocks = (item for symbol in view.symbols if (item := view.instrument(symbol)).kind == "stock")
    return tuple(item.symbol for item in stocks if item.name in ("", item.symbol) and not known_names(item))


def refuse_nameless(view: MarketView) -> None:
    """Raise :class:`UserError` for data with texts but without company names: a headline would name them."""
    unknown = nameless(view)
    if unknown:
        some = ", ".join(unknown[:5]) + (", ..." if len(unknown) > 5 else "")
        raise UserError(
            f"{len(unknown)} of {len(view.symbols)} stocks have no company name ({some}); news would show it",
            hint="import the data with names (see docs/howto/import-data.md), or leave news out (-p news=false)",
        )
