"""Make the changes that an operator may make while a season runs.

An amendment is a dated event of the journal and appears on the page of rules. It never changes a
round that was opened before.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

import msgspec

from tradeassay.core.errors import UNDECODABLE, TradeassayError, UserError
from tradeassay_arena.agents import OUTSIDE, check_entries
from tradeassay_arena.rounds.feed import SnapshotFeed, check_data, is_live
from tradeassay_arena.rounds.spending import check_prices
from tradeassay_arena.season import (
    AMENDABLE,
    BASELINE,
    Amendment,
    Asset,
    Change,
    Entry,
    Season,
    amended,
    check_text,
    check_written,
)
from tradeassay_arena.state.store import Store
from tradeassay_bench.core.time import parse_day


class AmendmentRequest(msgspec.Struct, frozen=True, kw_only=True):
    """An operator's request for a change.

    ``day`` is the first or last session of the change, or None for the earliest possible session.
    ``values`` are the new settings.
    """

    change: Change
    what: str
    day: str | None = None
    values: dict[str, Any] = {}
    by: str = "operator"
    now: str


def amend(store: Store, season: Season, asked: AmendmentRequest) -> tuple[Amendment, ...]:
    """Amend a season and return the new amendments.

    Raises :class:`UserError` if the target does not exist, if the same change was made before, or
    if the change would alter rounds that were opened before.
    """
    check_text("name of the person who amends", asked.by, 64)
    if season.amendments and asked.now < season.amendments[-1].at:
        raise UserError(
            f"the newest amendment is of {season.amendments[-1].at}",
            hint="set this machine's clock",
        )
    newest = {asset.symbol: store.last_round(season.id, asset.symbol) for asset in season.assets}
    played = {symbol: round.session for symbol, round in newest.items() if round is not None}
    value = ""
    if asked.change == "reopen":
        places = [(asset, asked.what) for asset in _skipped(store, season, asked.what, played)]
    else:
        what, day, value = _MAKES[asked.change](season, asked, played)
        places = [(what, day)]
    made: list[Amendment] = []
    for number, (what, day) in enumerate(places, len(season.amendments) + 1):
        told = {"at": asked.now, "by": asked.by, "change": asked.change, "what": what, "day": day}
        made.append(Amendment(number=number, **told, value=value))  # type: ignore[arg-type]  # texts, all of them
    becomes = amended(msgspec.structs.replace(season, founded=""), made)
    try:
        check_written(becomes)
        check_entries(becomes, tuple(e.id for e in becomes.entries if e.architecture in OUTSIDE))
        check_prices(becomes)
        look = check_data if is_live(becomes) else SnapshotFeed.open
        if asked.change == "add":
            look(becomes)
    except TradeassayError as error:
        raise UserError(
            f"the season cannot be amended: {error.message}", hint=error.hint
        ) from error
    store.amend(season, made)
    return tuple(made)


def _skipped(store: Store, season: Season, session: str, played: dict[str, str]) -> list[str]:
    parse_day(session)
    assets = [gap.asset for gap in store.skipped(season.id) if gap.session == session]
    if not assets:
        hint = "tradeassay arena health and the page /health list skipped sessions"
        raise UserError(f"no session {session} of season '{season.id}' was skipped", hint=hint)
    found = [asset for asset in assets if played.get(asset, "") < session]
    if not found:
        raise UserError(
            f"{assets[0]} has been played after {session}",
            hint="reopen a session before a later one is played",
        )
    return found


def _day(season: Season, asked: AmendmentRequest, reached: str, *, begins: bool) -> str:
    """Return the session of an amendment. The default is the first free session, or the last played
    session for a change that ends something.

    Raises :class:`UserError` for a day that has been played or is after the season's end.
    """
    if asked.day is not None:
        day = str(parse_day(asked.day))
    elif begins:
        day = str(parse_day(reached) + timedelta(days=1)) if reached else season.first
    else:
        day = reached or asked.now[:10]
    if reached and (day <= reached if begins else day < reached):
        free = "a later one" if begins else "that day or a later one"
        raise UserError(f"{reached} has been played", hint=f"name {free}: day=DAY")
    if season.last is not None and reached and day > season.last:
        raise UserError(
            f"season '{season.id}' ends on {season.last}, before {day}", hint="extend it first"
        )
    return day


def _check_label(season: Season, id: str, label: str) -> None:
    """Raise :class:`UserError` for a label that is another entry's name."""
    named = {}
    for one in season.all_entries:
        for name in (one.id, one.label):
            if name:
                named[_plain(name)] = one.id
    if (other := named.get(_plain(label), id)) != id:
        raise UserError(f"the label '{label}' belongs to '{other}'", hint="choose another label")


def _plain(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold().strip()


Made = tuple[str, str, str]  # what is changed, the day, and the value


def _end(season: Season, asked: AmendmentRequest, played: dict[str, str]) -> Made:
    retires = asked.change == "retire"
    name = season.asset(asked.what).symbol if retires else season.entry(asked.what).id
    if name == BASELINE and not retires:
        raise UserError(f"'{BASELINE}' cannot be changed", hint="name another entry")
    if any((one.change, one.what) == (asked.change, name) for one in season.amendments):
        raise UserError(f"'{name}' has been {'retired' if retires else 'withdrawn'} already")
    reached = played.get(name, "") if retires else max(played.values(), default="")
    return name, _day(season, asked, reached, begins=False), ""


def _begin(season: Season, asked: AmendmentRequest, played: dict[str, str]) -> Made:
    """Return the amendment that adds an entry or an asset.

    The settings in the request have the same names as in a season file.
    """
    kind: type[Entry] | type[Asset] = Entry if asked.change == "join" else Asset
    name = "id" if kind is Entry else "symbol"
    known = [getattr(one, name) for one in (season.all_entries if kind is Entry else season.assets)]
    if asked.what in known:
        raise UserError(
            f"season '{season.id}' has '{asked.what}' already", hint="choose another name"
        )
    given = dict(asked.values)
    if name in given:
        raise UserError(
            f"{asked.change} {asked.what}: its {name} is '{asked.what}'", hint=f"leave out {name}="
        )
    if kind is Entry:
        _check_label(season, asked.what, str(given.get("label", "")))
        own = {key: given.pop(key) for key in tuple(given) if key in Entry.__struct_fields__}
        given = {**own, "params": {**own.pop("params", {}), **given}}
    try:
        made = msgspec.convert({name: asked.what, **given}, type=kind)
    except msgspec.ValidationError as error:
        hint = (
            "NAME=VALUE as in a season's file: architecture=rule rule=trend, kind=stock "
            "dataset=live/yfinance"
        )
        raise UserError(f"{asked.change} {asked.what}: {error}", hint=hint) from error
    day = _day(season, asked, max(played.values(), default=""), begins=True)
    return asked.what, day, msgspec.json.encode(made).decode()


def _rename(season: Season, asked: AmendmentRequest, played: dict[str, str]) -> Made:
    entry, label = season.entry(asked.what), str(asked.values.get("label", ""))
    if entry.id == BASELINE or not label.strip():
        what = "rename needs one of the operator's entries and its new label"
        raise UserError(what, hint='rename ID label="..."')
    _check_label(season, entry.id, label)
    return entry.id, asked.now[:10], label


def _extend(season: Season, asked: AmendmentRequest, played: dict[str, str]) -> Made:
    day = str(parse_day(asked.what))
    if season.last is None:
        raise UserError(f"season '{season.id}' has no end", hint="there is nothing to extend")
    if day <= season.last:
        raise UserError(f"season '{season.id}' lasts until {season.last}", hint="name a later day")
    if is_live(season) and asked.now[:10] > season.last:
        raise UserError(f"season '{season.id}' ended on {season.last}", hint="start another season")
    if all(asset.last for asset in season.assets):
        raise UserError(
            f"every asset of season '{season.id}' has its own last day", hint="add one first"
        )
    return "last", day, ""


def _rule(season: Season, asked: AmendmentRequest, played: dict[str, str]) -> Made:
    if len(asked.values) > 1:
        raise UserError(f"{len(asked.values)} rules were given", hint="amend one rule at a time")
    if asked.what not in AMENDABLE or list(asked.values) != [asked.what]:
        hint = f"rules that may change: {', '.join(AMENDABLE)}; any other change needs a new season"
        raise UserError(f"the rule '{asked.what}' cannot be changed", hint=hint)
    value = asked.values[asked.what]
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UserError(
            f"{asked.what} = {value!r} is not a number", hint=f"for example: rule {asked.what}=5"
        )
    try:  # the same error as for the season's file
        check_written(
            msgspec.convert({**msgspec.to_builtins(season), asked.what: value}, type=Season)
        )
    except msgspec.ValidationError as error:
        raise UserError(f"{asked.what} = {value!r}: {error}", hint="give a whole number") from error
    day = _day(season, asked, max(played.values(), default=""), begins=True)
    return asked.what, day, msgspec.json.encode(value).decode()


_MAKES: dict[str, Callable[[Season, AmendmentRequest, dict[str, str]], Made]] = {
    "retire": _end,
    "withdraw": _end,
    "join": _begin,
    "add": _begin,
    "rename": _rename,
    "extend": _extend,
    "rule": _rule,
}


def parse_values(given: Sequence[str]) -> dict[str, Any]:
    """Return values by name, from texts of the form ``NAME=VALUE``.

    Numbers, true, false and lists are read as JSON, and other values as text. Raises
    :class:`UserError` for a text of another form.
    """
    found: dict[str, Any] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UserError(f"expected NAME=VALUE, got '{text}'", hint="for example: fee_bp=3")
        try:
            found[name] = msgspec.json.decode(value)
        except UNDECODABLE:
            found[name] = value
    return found
