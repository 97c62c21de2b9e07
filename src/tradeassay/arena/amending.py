"""What an operator may change while a season runs: an asset is retired, an entry withdrawn, a session reopened.

Everything is dated, hashed behind the season's spec, told in the journal and shown on the page of rules.
"""

from __future__ import annotations

from typing import Literal

from tradeassay.arena.season import BASELINE, Amendment, Season
from tradeassay.arena.state.store import Store
from tradeassay.core.errors import UserError
from tradeassay.core.time import parse_day

Change = Literal["retire", "withdraw", "reopen"]


def amend(
    store: Store, season: Season, change: Change, what: str, *, last: str | None = None, by: str, now: str
) -> tuple[Amendment, ...]:
    """Retire an asset, withdraw an entry after the day ``last`` (None: the newest session), or reopen a session.

    Raises :class:`UserError` for what is not there, was done before, or would change what has been played.
    """
    newest = {asset.symbol: store.last_round(season.id, asset.symbol) for asset in season.assets}
    played = {symbol: round.session for symbol, round in newest.items() if round is not None}
    if change == "reopen":
        parse_day(what)
        assets = [gap.asset for gap in store.skipped(season.id) if gap.session == what]
        if not assets:
            hint = "tradeassay arena health and the page /health list those that were"
            raise UserError(f"no session {what} of season '{season.id}' was skipped", hint=hint)
        places = [(asset, what) for asset in assets if played.get(asset, "") < what]
        if not places:
            raise UserError(f"{assets[0]} has been played after {what}", hint="accounts are not played again")
    else:
        name = season.asset(what).symbol if change == "retire" else season.entry(what).id
        if name == BASELINE and change == "withdraw":
            raise UserError(f"every season has '{BASELINE}'", hint="name another entry")
        if any((one.change, one.what) == (change, name) for one in store.amendments(season.id)):
            raise UserError(f"'{name}' has been {'retired' if change == 'retire' else 'withdrawn'} already")
        reached = played.get(name, "") if change == "retire" else max(played.values(), default="")
        day = str(parse_day(last)) if last is not None else reached or now[:10]
        if day < reached:
            raise UserError(f"{reached} has been played", hint="name that day or a later one with --last")
        places = [(name, day)]
    made = [Amendment(number=0, at=now, by=by[:64], change=change, what=name, day=day) for name, day in places]
    return store.amend(season, made)
