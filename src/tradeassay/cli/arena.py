"""``tradeassay arena``."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tradeassay.cli._group import CommandGroup
from tradeassay.cli._options import NATURAL, Advanced, FoldedCommand, advanced, option, several
from tradeassay.cli._output import json_option, print_json, print_rows, print_table, say

if TYPE_CHECKING:
    from tradeassay.arena.rounds.health import Health
    from tradeassay.arena.season import Season
    from tradeassay.arena.standings import Standing
    from tradeassay.arena.state.store import Store


@click.group(cls=CommandGroup)
def arena() -> None:
    """Play a season of the arena and watch it: standings, decisions, information. Paper trading only."""


def _without_password(context: click.Context, option: click.Parameter, db: str) -> str:
    given = context.get_parameter_source(option.name or "") is click.core.ParameterSource.COMMANDLINE
    if given and re.match(r"[^/]+://[^/@]*:[^/@]+@", db):
        say("the password stands in the list of processes, for everybody here; set TRADEASSAY_ARENA_DB instead")
    return db


_db = option(
    "--db",
    default="arena.db",
    metavar="URL",
    envvar="TRADEASSAY_ARENA_DB",
    show_envvar=True,
    callback=_without_password,
    help="A file, or postgresql+psycopg://...",
)
_season_id = click.option("--season", "id", metavar="ID", help="A season's id (without it: the newest).")
_replay = click.option(
    "--replay", type=click.Choice(["synthetic"]), help="Play the built-in season: no key, no data."
)
_season = click.option(
    "--season", "file", type=click.Path(path_type=Path), help="Play the season in this TOML file."
)
_speed = option("--speed", default="1d/2s", help="Replayed time per real time, or max.")
_convention = option(
    "--convention", type=click.Choice(["sound", "paper"]), default="sound", help="For the built-in season."
)
_seed = option("--seed", type=NATURAL, default=7, help="For the built-in season.")
_allow = several("--allow", metavar="NETWORK", help="A private network where agents may be, e.g. 127.0.0.0/8.")
_pages = click.option(
    "--pages",
    metavar="DIR",
    default="",
    help="Folder of the public pages (default: the database's name with .pages).",
)

_renamed = several("--renamed", metavar="OLD=NEW", help="A live symbol that its vendor has renamed, e.g. FB=META.")


@arena.command(cls=FoldedCommand)
@_replay
@_season
@_speed
@_db
@_convention
@_seed
@option("--host", default="127.0.0.1", help="Where to listen.")
@option("--port", type=click.IntRange(1, 65535), default=8000)
@click.option("--expert", "experts", multiple=True, help="Someone who may judge news; their key is shown once.")
@click.option("--register", is_flag=True, help="Allow registration over HTTP; the operator's key is shown once.")
@click.option("--apply", is_flag=True, help="Anybody may ask to be let in; the operator approves.")
@_allow
@advanced(
    "--proxy",
    "proxies",
    multiple=True,
    metavar="NETWORK",
    help="A proxy that says whose request it passes on (X-Forwarded-For), e.g. 127.0.0.1.",
)
@_renamed
@_pages
@click.option(
    "--embed",
    cls=Advanced,
    metavar="ORIGIN",
    default="",
    envvar="TRADEASSAY_ARENA_EMBED",
    show_envvar=True,
    help="Pages of this origin (or *) may frame these.",
)
@click.option(
    "--webhook",
    cls=Advanced,
    metavar="URL",
    default="",
    envvar="TRADEASSAY_ARENA_WEBHOOK",
    show_envvar=True,
    help="Post what begins to fail here, as JSON with a text.",
)
@click.option(
    "--open",
    "wait",
    is_flag=True,
    help="Allow registration (as --register) and begin when the first agent has registered.",
)
def serve(
    replay: str | None, file: Path | None, convention: str, seed: int, register: bool, wait: bool, **served: Any
) -> None:
    """Show an arena in the browser, and play a season beside it when one is named.

    Ctrl-C stops; the same command continues. Without a season the database is only shown. The pages are files in
    a folder, which any other static server may serve as well.
    """
    _need_extra()
    from tradeassay.arena.web.serving import Serving, serve

    how = Serving(register=register or wait, wait=wait, **served)
    season = _chosen(replay, file, convention, seed)
    if wait:
        season = _with_seat(season)
    _or_stalled(lambda: serve(season, how, say))


@arena.command()
@_replay
@_season
@option("--speed", default="max", help="Replayed time per real time, or max.")
@_db
@_convention
@_seed
@click.option("--until", help="Stop after this day (ISO date).")
@click.option("--worker", help="This process's name where several play one database; keep it across restarts.")
@click.option(
    "--cassettes",
    metavar="FILE|recorded/MODEL",
    help="Play a recorded season again from its answers: no network, no key.",
)
@_allow
@_renamed
@json_option
def run(
    replay: str | None,
    file: Path | None,
    speed: str,
    db: str,
    convention: str,
    seed: int,
    until: str | None,
    worker: str | None,
    cassettes: str | None,
    allow: tuple[str, ...],
    renamed: tuple[str, ...],
    as_json: bool,
) -> None:
    """Play a season without pages; the same command continues a stopped one.

    \b
    tradeassay arena run --replay synthetic
    tradeassay arena run --cassettes recorded/qwen2.5-coder-1.5b --db again.db
    """
    _need_extra()
    import asyncio

    from tradeassay.agents.foreign.transport import parse_networks
    from tradeassay.arena.clock import parse_speed
    from tradeassay.arena.state.engine import open_engine
    from tradeassay.arena.state.store import Store
    from tradeassay.arena.web.serving import PlayOptions, play
    from tradeassay.core.errors import UserError
    from tradeassay.core.time import DAY, midnight, parse_day

    season, opener = _chosen(replay, file, convention, seed), None
    if cassettes is not None:
        from tradeassay.arena.recording import recorded_season, replaying
        from tradeassay.benchmarks.ama import AMA
        from tradeassay.runs.store.archive import find_recording, open_recording

        if season is not None:
            raise UserError("a recording has its own season", hint="leave out --season and --replay")
        opened = open_recording(find_recording(cassettes, AMA))
        season, opener = recorded_season(opened), replaying(opened)
    if season is None:
        raise UserError("no season was named", hint="add --replay synthetic, --season FILE or --cassettes FILE")
    end = None if until is None else midnight(parse_day(until)) + DAY
    store = Store(open_engine(db))
    try:
        pace, networks = parse_speed(speed), parse_networks(allow)

        def hear(health: Health) -> None:
            health.say = say

        how = PlayOptions(allow=networks, worker=worker, opener=opener, renamed=renamed, on_health=hear)
        done = _or_stalled(lambda: asyncio.run(play(season, store, pace, end, how)))
    except KeyboardInterrupt as stop:
        said = f"stopped; the same command continues season '{season.id}' in {db}"
        say(said)
        raise KeyboardInterrupt(said) from stop
    finally:
        store.engine.dispose()
    if as_json:
        print_json({"season": season.id, "rounds": done, "db": db})
    say(f"season '{season.id}': {done} rounds finished now; see tradeassay arena standings --db {db}")


@arena.command()
@_db
@_season_id
@click.option("--asset", "assets", multiple=True, help="Only this asset.")
@click.option("--model", "models", multiple=True, help="Only this model.")
@click.option("--architecture", "architectures", multiple=True, help="Only this architecture.")
@click.option("--from", "first", help="From this day on.")
@click.option("--to", "last", help="Up to this day.")
@click.option("--rewards", "rewarded", metavar="ENTRY", help="Show this entry's reward log instead.")
@json_option
def standings(db: str, id: str | None, rewarded: str | None, as_json: bool, **wanted: Any) -> None:
    """Show the standings, with intervals and the probability of being first.

    --rewards shows what an entry was told about its decisions, in a season with the rule feedback.
    """
    _need_extra()
    if rewarded is not None:
        _show_rewards(db, id, rewarded, as_json)
        return
    from tradeassay.arena.queries.seasons import opened_season
    from tradeassay.arena.queries.snapshot import board_of
    from tradeassay.arena.season import BASELINE
    from tradeassay.arena.standings import Filter
    from tradeassay.arena.web.pages import names_of
    from tradeassay.arena.web.words import words

    board = board_of(db, id, Filter(**{name: value or None for name, value in wanted.items()}))
    if as_json:
        print_json(board)
        return
    days = f", {board.first} to {board.last}" if board.first else ""
    with opened_season(db, board.season) as (_, season):
        names = names_of(words("en"), season)  # as its page calls them
    rows = [_row(row, names.get(row.entry, row.label)) for row in board.rows]
    print_table(f"season '{board.season}'{days}", _COLUMNS, rows, heads=2)
    for row in board.rows:
        if row.rank is None and row.entry != BASELINE:
            say(f"{names.get(row.entry, row.label)}: {row.best.reason}")
    missing = dict.fromkeys(row.excess.note for row in board.rows if row.excess.low is None and row.excess.note)
    for note in filter(None, (board.note, *(f"against buy and hold: {one}" for one in missing))):
        say(note)


_AMENDS = {
    "join": "ENTRY [NAME=VALUE...]",
    "withdraw": "ENTRY",
    "rename": "ENTRY label=TEXT",
    "add": "ASSET [NAME=VALUE...]",
    "retire": "ASSET",
    "reopen": "SESSION",
    "extend": "DAY",
    "rule": "NAME=VALUE",
}
_DOORS = {"register": "ENTRY", "revoke": "ENTRY", "approve": "ENTRY", "decline": "ENTRY"}
_ACTIONS = {
    **{name: ("day", "by", "key") for name in (*_AMENDS, "approve")},
    "register": ("address", "renew"),
    "bar": ("by",),
    "key": ("revoke",),
    **dict.fromkeys(("revoke", "decline", "applicants"), ()),
}
"""What an operator can do, and the options that belong to it."""


@arena.command()
@click.argument("action", type=click.Choice(list(_ACTIONS)))
@click.argument("what", nargs=-1)
@_season_id
@click.option("--address", help="register: where the agent is asked (http or https); without one it polls.")
@click.option("--renew", is_flag=True, help="register: give a new token; the old one stops working.")
@click.option("--revoke", is_flag=True, help="key: revoke it instead.")
@click.option(
    "--day", metavar="DAY", help="The first session of what begins, the last of what ends. Default: now."
)
@click.option("--by", metavar="NAME", help="Who decides or amends. Default: operator.")
@click.option(
    "--sign",
    "key",
    metavar="KEY",
    envvar="TRADEASSAY_ARENA_KEY",
    show_envvar=True,
    help="The private SSH key of the operator that the season's spec names.",
)
@_db
@json_option
def amend(action: str, what: tuple[str, ...], id: str | None, db: str, as_json: bool, **given: Any) -> None:
    """Act on a season as its operator.

    \b
    join ENTRY architecture=http       an entry joins; settings as in a season's file
    withdraw ENTRY                     it is not asked any more; its position stays
    rename ENTRY label=TEXT            another label; its id stays
    add ASSET kind=stock dataset=...   an asset is traded from now on
    retire ASSET                       it has no more sessions; its last decision is still settled
    reopen SESSION                     play a skipped session after all, if no later one was played
    extend DAY                         the season lasts longer
    rule fee_bp=3                      a rule changes; also window_s, timeout_s, delay_s, news_days
    register ENTRY                     let an entry decide outside; its token is printed once
    revoke ENTRY                       its token stops working
    applicants                         list who asks to be let in (arena serve --apply)
    approve ENTRY                      let an applicant join; decline ENTRY does not
    bar                                list live bars that look wrong and hold up their rounds
    bar ASSET SESSION accept|refuse    its round continues, or waits for another bar
    key operator|expert [NAME]         give a key, shown only once; an older one stops working
    """
    _need_extra()
    from tradeassay.arena.queries.seasons import opened_season

    for name, value in given.items():
        if value and name != "key" and name not in _ACTIONS[action]:
            raise click.UsageError(f"--{name} means nothing to 'amend {action}'")
    if action == "key":
        _give_key(what, db, revoke=given["revoke"], as_json=as_json)
        return
    takes = _AMENDS.get(action) or _DOORS.get(action)
    if takes is not None and (not what or (len(what) > 1 and "=" not in takes)):
        raise click.UsageError(f"amend {action} takes {'one ' if '=' not in takes else ''}{takes}")
    with opened_season(db, id) as (store, season):
        if action in _AMENDS:
            _amend(store, season, action, what, given, as_json=as_json)
        elif action == "bar":
            _bars(store, season, what, given["by"] or "operator", as_json=as_json)
        else:
            _doors(store, season, action, what, given, as_json=as_json)


def _amend(
    store: Store, season: Season, action: str, what: tuple[str, ...], given: dict[str, Any], *, as_json: bool
) -> None:
    from tradeassay.arena.amending import Asked, amend, parse_values
    from tradeassay.core.time import WallClock, iso

    name = what[0].partition("=")[0] if action == "rule" else what[0]
    asked = Asked(
        change=action,  # type: ignore[arg-type]  # one of the changes
        what=name,
        values=parse_values(what if action == "rule" else what[1:]),
        day=given["day"],
        by=given["by"] or "operator",
        now=iso(WallClock().now()),
        key=Path(given["key"]) if given["key"] else None,
    )
    made = amend(store, season, asked)
    if as_json:
        print_json(made)
    for one in made:
        signed = "signed" if one.signature else "not signed"
        say(f"season '{season.id}', amendment {one.number}: {one.change} {one.what}, {one.day} ({signed})")


def _doors(
    store: Store, season: Season, action: str, what: tuple[str, ...], given: dict[str, Any], *, as_json: bool
) -> None:
    from tradeassay.arena.api.doors import Doors
    from tradeassay.core.errors import UserError
    from tradeassay.core.time import WallClock, iso

    doors, now = Doors(store), iso(WallClock().now())
    if action == "applicants":
        found = doors.applicants(season.id)
        columns = ("entry", "status", "at", "label", "address", "contact")
        rows = [(one.entry, one.status, one.at, one.label, one.address or "polls", one.contact) for one in found]
        print_rows(found, as_json, f"applicants of '{season.id}'", columns, rows)
        return
    entry = what[0]
    if action == "register":
        if given["renew"] and given["address"] is not None:
            raise UserError("an address is given once, at registration", hint="leave out --address or --renew")
        if given["renew"]:
            token = doors.renew(season.id, entry)
        else:
            token = doors.register(season.id, entry, now=now, address=given["address"])
        if as_json:
            print_json({"season": season.id, "entry": entry, "token": token})
        else:
            click.echo(token)
        return
    if action == "revoke" and not doors.revoke(season.id, entry, now=now):
        raise UserError(f"entry '{entry}' has no token", hint="tradeassay arena amend register gives one")
    if action == "approve":
        settings = doors.applicant(season.id, entry)
        wanted = ["architecture=http", *([f"label={settings.label}"] if settings.label else [])]
        if all(one.id != entry for one in season.entries):
            _amend(store, season, "join", (entry, *wanted), given, as_json=as_json)
    if action in ("approve", "decline"):
        doors.judge(season.id, entry, approve=action == "approve", now=now)
    say(f"{entry}: {action}d" if action.endswith("e") else f"{entry}: {action}")


def _give_key(what: tuple[str, ...], db: str, *, revoke: bool, as_json: bool) -> None:
    from tradeassay.arena.api.doors import house_key

    if not 1 <= len(what) <= 2 or what[0] not in ("operator", "expert"):
        raise click.UsageError("amend key takes operator or expert, and a NAME")
    kind, name = what[0], what[-1] if len(what) == 2 else "operator"
    made = house_key(db, "operator" if kind == "operator" else "expert", name, revoke=revoke)
    if as_json:
        print_json({"kind": kind, "name": name, "key": made})
    elif made is not None:
        click.echo(made)
    else:
        say(f"the key of {kind} '{name}' is revoked")


def _bars(store: Store, season: Season, what: tuple[str, ...], by: str, *, as_json: bool) -> None:
    from tradeassay.arena.rounds.prices import held_bars_of, say_word
    from tradeassay.core.time import WallClock, iso

    if not what:
        found = held_bars_of(store, season.id)
        columns = ("asset", "session", "price", "since", "word", "reason")
        rows = [(b.asset, b.session, f"{b.price:g}", b.since, b.word or "waiting", b.reason) for b in found]
        print_rows(found, as_json, f"held bars of '{season.id}'", columns, rows)
        return
    if len(what) != 3 or what[2] not in ("accept", "refuse"):
        raise click.UsageError("amend bar takes ASSET, SESSION and accept or refuse")
    asset, session, word = what
    now = iso(WallClock().now())
    say_word(store, season.id, asset, session, "accept" if word == "accept" else "refuse", by, now)
    if as_json:
        print_json({"season": season.id, "asset": asset, "session": session, "word": word, "by": by})
    else:
        say(f"{asset} {session}: {word}")


@arena.command()
@_db
@json_option
def health(db: str, as_json: bool) -> None:
    """Show the state of every worker of an arena. Exits with 1 when one is stalled."""
    _need_extra()
    from tradeassay.arena.queries.seasons import opened_store
    from tradeassay.arena.rounds.health import read_workers

    with opened_store(db) as store:
        found = read_workers(store)
    rows = []
    for one in found:
        troubles = "; ".join(f"{trouble.part}: {trouble.text}" for trouble in one.troubles)
        state, heard = f"{one.state} since {one.since}", f"{one.silent_s:.0f} s"
        rows.append((one.season, one.worker, state, heard, str(one.rounds), troubles))
    columns = ("season", "worker", "state", "last heard", "rounds", "troubles")
    print_rows(found, as_json, "workers", columns, rows)
    if any(one.state == "stalled" for one in found):
        raise click.exceptions.Exit(1)


def _show_rewards(db: str, season: str | None, entry: str, as_json: bool) -> None:
    from tradeassay.arena.queries.decisions import experiences
    from tradeassay.arena.queries.seasons import opened_season

    with opened_season(db, season) as (store, chosen):
        found = experiences(store, chosen.id, entry)
    rows = [
        (one.packet.symbol, one.packet.date, one.action, str(one.position), f"{one.reward:+.5f}") for one in found
    ]
    columns = ("asset", "session", "action", "position", "reward")
    print_rows(found, as_json, f"rewards of '{entry}'", columns, rows)


_COLUMNS = (
    *(">rank", "agent", ">return (95% interval)", ">against buy and hold"),
    *(">Sharpe", ">max drawdown", ">P(first)", ">failed", ">missed"),
)


def _row(row: Standing, name: str) -> tuple[str, ...]:
    """Return a standing in the forms of the season's page."""
    from tradeassay.arena.web.pages import FORMS
    from tradeassay.report.formatting import paste_cell, shown

    single = (("SR", row.measures["SR"]), ("MDD", row.measures["MDD"]), ("best", row.best))
    return (
        "" if row.rank is None else str(row.rank),
        name,
        paste_cell(row.measures["CR"], FORMS["CR"]).text,
        paste_cell(row.excess, FORMS["excess"]).text,
        *(shown(measure, FORMS[name]).text for name, measure in single),
        str(row.failed),
        str(row.missed),
    )


def _chosen(replay: str | None, file: Path | None, convention: str, seed: int) -> Season | None:
    from tradeassay.core.errors import UserError

    if replay is not None and file is not None:
        raise UserError("two seasons were named", hint="give --replay or --season, not both")
    if file is not None:
        from tradeassay.arena.season import load_season

        return load_season(file)
    if replay is None:
        return None
    import msgspec

    from tradeassay.arena.season import demo_season

    season = demo_season(seed)
    if convention == "paper":
        season = msgspec.structs.replace(season, id=f"{season.id}-paper", convention="paper")
    return season


SEAT = "you"
"""The entry of whoever joins the built-in season with --open."""


def _with_seat(season: Season | None) -> Season:
    """Return a season with a seat for an agent from outside, which the built-in one does not have."""
    import msgspec

    from tradeassay.arena.agents import OUTSIDE
    from tradeassay.arena.season import Entry, demo_season

    season = season or demo_season()
    if any(entry.architecture in OUTSIDE for entry in season.entries):
        return season
    seat = Entry(id=SEAT, architecture="http", label="Your agent")
    return msgspec.structs.replace(season, id=f"{season.id}-open"[:64], entries=(*season.entries, seat))


_T = TypeVar("_T")


def _or_stalled(play: Callable[[], _T]) -> _T:
    """Play; a season that cannot go on ends the process with 75, so that whatever runs it tries again later."""
    from sqlalchemy.exc import SQLAlchemyError

    from tradeassay.arena.rounds.running import Stalled
    from tradeassay.core.errors import UserError

    try:
        return play()
    except UserError:
        raise
    except (Stalled, SQLAlchemyError, OSError) as error:
        say(f"error: {error}")
        raise click.exceptions.Exit(75) from error


def _need_extra() -> None:
    from tradeassay.core.errors import require

    for module in ("sqlalchemy", "fastapi", "uvicorn"):
        require(module, "arena")
