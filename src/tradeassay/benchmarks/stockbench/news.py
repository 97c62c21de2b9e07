"""The news of the days before a session, per name."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from tradeassay.benchmarks.stockbench.config import StockbenchConfig
from tradeassay.core.time import DAY, iso, midnight, parse_day
from tradeassay.core.view import MarketView

_SPACE = re.compile(r"\s+")


class NewsShown(msgspec.Struct, frozen=True, kw_only=True):
    """One item. ``text`` is None where there is none, or where it had to be cut."""

    published: str
    title: str
    text: str | None


def recent_news(
    view: MarketView, session: str, symbols: Iterable[str], config: StockbenchConfig
) -> dict[str, tuple[NewsShown, ...]]:
    """Return the newest items of each name from the calendar days T-``news_days`` to T-1 (UTC), newest first.

    Nothing of the session's own day is shown, also when it was published before the open.
    """
    today = midnight(parse_day(session))
    start = today - config.news_days * DAY
    wanted = set(symbols)
    found: dict[str, list[NewsShown]] = {symbol: [] for symbol in wanted}
    for item in view.news(start - 1, symbols=sorted(wanted)):
        if item.published_at >= today:
            continue
        for symbol in item.symbols:
            shown = found.get(symbol)
            if shown is not None and len(shown) < config.news_items:
                shown.append(
                    NewsShown(
                        published=iso(item.published_at),
                        title=_plain(item.title, config.news_characters),
                        text=_plain(item.body, config.news_characters) or None,
                    )
                )
    return {symbol: tuple(items) for symbol, items in found.items()}


def _plain(text: str, longest: int) -> str:
    line = _SPACE.sub(" ", text).strip()
    return line if len(line) <= longest else line[: longest - 3].rstrip() + "..."
