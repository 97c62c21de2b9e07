"""What an agent remembers, in a form a person can read."""

from __future__ import annotations

from typing import Any

import msgspec

from tradeassay.arena.season import Season
from tradeassay.arena.state.store import Store


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """One remembered thing: its layer or kind, when it was made, how much it matters."""

    group: str
    text: str
    when: str = ""
    importance: float | None = None


class AssetMemory(msgspec.Struct, frozen=True, kw_only=True):
    """An agent's memory about an asset. ``raw`` is the whole of it as JSON where it is JSON."""

    asset: str
    items: tuple[Memory, ...]
    size: int
    raw: str


class EntryMemory(msgspec.Struct, frozen=True, kw_only=True):
    """An entry's memories; ``sealed``: others who play could read them, so they stay closed until the end."""

    entry: str
    sealed: bool
    assets: tuple[AssetMemory, ...]


def entry_memory(store: Store, season: Season, entry: str, *, sealed: bool) -> EntryMemory:
    """Return what an entry remembers about every asset, those without a memory left out."""
    if sealed:
        return EntryMemory(entry=entry, sealed=True, assets=())
    found = []
    for asset in season.assets:
        body = store.memory(season.id, entry, asset.symbol)
        if body is not None:
            found.append(_asset(asset.symbol, body))
    return EntryMemory(entry=entry, sealed=False, assets=tuple(found))


def _asset(asset: str, body: bytes) -> AssetMemory:
    try:
        value = msgspec.json.decode(body)
        raw = msgspec.json.format(body, indent=2).decode()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return AssetMemory(asset=asset, items=(), size=len(body), raw=body.decode("utf-8", "replace"))
    return AssetMemory(asset=asset, items=_items(value), size=len(body), raw=raw)


def _items(value: Any) -> tuple[Memory, ...]:
    """Return the parts of the shapes our architectures write: layered items, or a journal of own decisions."""
    if not isinstance(value, dict):
        return ()
    found = []
    for item in _dicts(value.get("items")):
        weight = item.get("importance")
        found.append(
            Memory(
                group=str(item.get("layer", "")),
                text=str(item.get("text", "")),
                when=str(item.get("made", "")),
                importance=float(weight) if isinstance(weight, int | float) else None,
            )
        )
    for item in _dicts(value.get("entries")):
        earned = item.get("earned")
        outcome = f" ({earned:+.2%})" if isinstance(earned, int | float) else ""
        found.append(
            Memory(
                group="journal",
                text=f"{item.get('action', '')}{outcome}: {item.get('reasoning', '')}",
                when=str(item.get("date", "")),
            )
        )
    return tuple(found)


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
