"""What the information pages hold."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from tradeassay.arena.reading.reader import SeasonReader
from tradeassay.arena.stream import Wanted, items, quality
from tradeassay.arena.web import show
from tradeassay.arena.web.house import asset_of
from tradeassay.arena.web.stream_api import one_item
from tradeassay.arena.web.words import Words
from tradeassay.core.errors import UserError

FATES = ("published", "merged", "rejected")
SHOWN = 40


def information(reader: SeasonReader, words: Words, request: Request) -> dict[str, Any]:
    """What agents were told, what was held back and why, and how good the checks are."""
    query = request.query_params
    status = query.get("status") or None
    if status is not None and status not in FATES:
        raise UserError(f"no status '{status[:40]}'", mend=f"one of {', '.join(FATES)}")
    asset = asset_of(reader, query["asset"]) if query.get("asset") else None
    found = quality(reader.store, reader.season.id)
    wanted = Wanted(asset=asset, status=status)  # type: ignore[arg-type]  # one of FATES
    return {
        "given": reader.information(),
        "quality": found if found.news or found.kinds else None,
        "shares": {
            name: show.cell(words, "share", getattr(found, name))
            for name in ("published", "merged", "rejected", "contradicting", "confirmed", "rightly_rejected")
        },
        "agreement": show.cell(words, "alpha", found.agreement),
        "checks": [
            (check, show.cell(words, "share", check.precision), show.cell(words, "share", check.recall))
            for check in found.checks
            if check.part != "all"
        ],
        "items": items(reader.store, reader.season.id, wanted, limit=SHOWN),
        "asset": asset,
        "status": status,
        "fates": FATES,
    }


def item(reader: SeasonReader, words: Words, request: Request) -> dict[str, Any]:
    """One item with where it was found, what the checks said and what experts say."""
    return {"found": one_item(reader, request.path_params["item"])}
