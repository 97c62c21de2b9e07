"""Turns events into dated texts. What an item is worth is in the answer key, never in its id, source or time.

The wording is read from ``wording.toml`` beside this file.
"""

from __future__ import annotations

from functools import lru_cache
from importlib.resources import files

import msgspec

from tradeassay.core.instruments import Instrument, NewsItem
from tradeassay.data.synthetic.draws import Draws
from tradeassay.data.synthetic.events import NewsEvent
from tradeassay.data.synthetic.fundamentals import SURPRISE
from tradeassay.data.synthetic.world_config import Market, SyntheticConfig

SOURCES = ("Company Filings", "Harbour Wire", "Meridian News", "The Daily Ledger", "Streetside Talk")
SOURCE_PARTS: dict[str, tuple[int, ...]] = {
    "informative": (40, 32, 16, 8, 4),
    "noise": (18, 22, 20, 22, 18),
    "rumour": (4, 20, 16, 20, 40),
    "duplicate": (10, 30, 26, 22, 12),
}
"""How often each source carries each kind, in hundredths: every source carries every kind."""
REPEATS = ("Recap: {title}", "{title} - what we know", "In case you missed it: {title}", "{title}")


class Text(msgspec.Struct, frozen=True, kw_only=True):
    """One wording. ``group`` says what it can be about: a company, a coin, an index, or any of them."""

    group: str
    theme: str
    tone: int
    title: str
    body: str


class _File(msgspec.Struct, frozen=True):
    texts: tuple[Text, ...]


@lru_cache(maxsize=1)
def _all() -> dict[tuple[str, str, int], tuple[Text, ...]]:
    import tomllib

    content = files("tradeassay.data.synthetic").joinpath("wording.toml").read_text(encoding="utf-8")
    stored = msgspec.convert(tomllib.loads(content), _File)
    found: dict[tuple[str, str, int], tuple[Text, ...]] = {}
    for text in stored.texts:
        key = (text.group, text.theme, text.tone)
        found[key] = (*found.get(key, ()), text)
    return found


def choices(group: str, theme: str, tone: int) -> tuple[Text, ...]:
    """Return the wordings for a theme and a tone: those of the group, else those that fit any group."""
    texts = _all()
    return texts.get((group, theme, tone)) or texts["any", theme, tone]


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
    texts = choices(_GROUPS[config.preset], event.theme, event.tone)
    text = texts[event.pick % len(texts)]
    words = {"name": instrument.name, "symbol": instrument.symbol, "pct": f"{percent:.1f}"}
    return text.title.format_map(words), text.body.format_map(words)


def _again(event: NewsEvent, first: NewsItem) -> tuple[str, str]:
    return REPEATS[event.pick % len(REPEATS)].format(title=first.title), first.body


def _source(kind: str, draw: int) -> str:
    for source, part in zip(SOURCES, SOURCE_PARTS[kind], strict=True):
        draw -= part
        if draw < 0:
            return source
    return SOURCES[-1]
