"""Events into dated texts. What an item is worth is in the answer key, never in its id, source or time."""

from __future__ import annotations

from tradeassay.core.instruments import Instrument, NewsItem
from tradeassay.data.synthetic import wording
from tradeassay.data.synthetic.config import Market, SyntheticConfig
from tradeassay.data.synthetic.draws import Draws
from tradeassay.data.synthetic.events import NewsEvent
from tradeassay.data.synthetic.fundamentals import SURPRISE

_GROUPS: dict[Market, str] = {"us": "company", "ashare": "company", "crypto": "coin", "futures": "index"}
_SCALE = 6.0
"""Percent that a typical fact of size 1 claims in its text."""


def write_news(
    config: SyntheticConfig, instruments: tuple[Instrument, ...], events: tuple[NewsEvent, ...]
) -> tuple[NewsItem, ...]:
    """Return one item per event, in the same order; ids number the items by time."""
    draws = Draws(config.seed, "sources")
    where = draws.below(100, len(events)).tolist()
    items: list[NewsItem] = []
    for position, event in enumerate(events):
        instrument = instruments[event.column]
        told = _told(config, event, instrument) if event.origin is None else _again(event, items[event.origin])
        number = f"{position + 1:06d}"
        items.append(
            NewsItem(
                id=f"n{number}",
                published_at=event.published_at,
                symbols=(instrument.symbol,),
                title=told[0],
                body=told[1],
                source=_source(event.kind, where[position]),
                url=f"https://news.example/{number}",
            )
        )
    return tuple(items)


def _told(config: SyntheticConfig, event: NewsEvent, instrument: Instrument) -> tuple[str, str]:
    scale = SURPRISE * 100.0 if event.theme == "earnings" else _SCALE
    percent = max(round(scale * event.size * 10.0), 1) / 10.0
    texts = wording.choices(_GROUPS[config.preset], event.theme, event.tone)
    text = texts[event.pick % len(texts)]
    words = {"name": instrument.name, "symbol": instrument.symbol, "pct": f"{percent:.1f}"}
    return text.title.format_map(words), text.body.format_map(words)


def _again(event: NewsEvent, first: NewsItem) -> tuple[str, str]:
    return wording.REPEATS[event.pick % len(wording.REPEATS)].format(title=first.title), first.body


def _source(kind: str, draw: int) -> str:
    for source, part in zip(wording.SOURCES, wording.SOURCE_PARTS[kind], strict=True):
        draw -= part
        if draw < 0:
            return source
    return wording.SOURCES[-1]
