"""The command ``tradeassay arena``."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from tradeassay.cli import _options as opt
from tradeassay.cli._group import CommandGroup
from tradeassay.cli._output import json_option, print_json, print_rows, print_table, say
from tradeassay.core.errors import UserError, require

if TYPE_CHECKING:
    from tradeassay_arena.rounds.health import Health
    from tradeassay_arena.season import Season
    from tradeassay_arena.state.store import Store


@click.group(cls=CommandGroup)
def arena() -> None:
    """Play a season of the arena and watch it: standings, decisions, information. Paper trading
    only.
    """


def _without_password(context: click.Context, option: click.Parameter, db: str) -> str:
    given = (
        context.get_parameter_source(option.name or "") is click.core.ParameterSource.COMMANDLINE
    )
    if given and re.match(r"[^/]+://[^/@]*:[^/@]+@", db):
        say(
            "other users of this machine can see the password in the list of processes; set "
            "TRADEASSAY_ARENA_DB instead"
        )
    return db


_db = opt.option(
    "--db=URL",
    "A file, or postgresql+psycopg://...",
    default="arena.db",
    envvar="TRADEASSAY_ARENA_DB",
    show_envvar=True,
    callback=_without_password,
)
_season_id = opt.option("--season=ID id", "A season's id (default: the newest).")
_replay = opt.option(
    "--replay",
    "Play the built-in season. It needs no key and no data.",
    type=click.Choice(["synthetic"]),
)
_season = opt.option(
    "--season file", "Play the season in this TOML file.", type=click.Path(path_type=Path)
)
_speed = opt.option("--speed", "Replayed time per real time, or max.", default="1d/2s")
_convention = opt.option(
    "--convention",
    "For the built-in season.",
    type=click.Choice(["corrected", "paper"]),
    default="corrected",
)
_seed = opt.option("--seed", "For the built-in season.", type=opt.NATURAL, default=7)
_allow = opt.several(
    "--allow=NETWORK", "A private network in which agents may be called, e.g. 127.0.0.0/8."
)
_pages = opt.option(
    "--pages=DIR",
    "Folder of the public pages (default: the database's name with .pages).",
    default="",
)

_renamed = opt.several(
    "--renamed=OLD=NEW", "A live symbol that its vendor has renamed, e.g. FB=META."
)


@arena.command(cls=opt.FoldedCommand)
@_replay
@_season
@_speed
@_db
@_convention
@_seed
@opt.option("--host", "Where to listen.", default="127.0.0.1")
@opt.option("--port", type=click.IntRange(1, 65535), default=8000)
@opt.several("--expert experts", "A person who may judge news; their key is shown once.")
@opt.flag("--register", "Allow registration over HTTP; the operator's key is shown once.")
@opt.flag("--apply", "Let anybody apply for an entry; the operator approves.")
@_allow
@opt.advanced(
    "--proxy=NETWORK proxies",
    "A proxy whose X-Forwarded-For header is trusted, e.g. 127.0.0.1.",
    multiple=True,
)
@_renamed
@_pages
@opt.advanced(
    "--embed=ORIGIN",
    "Pages of this origin (or *) may frame these.",
    default="",
    envvar="TRADEASSAY_ARENA_EMBED",
    show_envvar=True,
)
@opt.advanced(
    "--webhook=URL",
    "Send alerts to this address, as JSON with a text.",
    default="",
    envvar="TRADEASSAY_ARENA_WEBHOOK",
    show_envvar=True,
)
@opt.flag(
    "--open wait",
    "Allow registration (as --register) and start when the first agent has registered.",
)
def serve(
    replay: str | None,
    file: Path | None,
    convention: str,
    seed: int,
    register: bool,
    wait: bool,
    **served: Any,
) -> None:
    """Show an arena in the browser. With --replay or --season, play that season as well.

    Ctrl-C stops the arena, and the same command continues it. Without a season the database is only
    shown. The pages are files in a folder, which any other static server may serve as well.
    """
    _need_extra()
    from tradeassay_arena.web.serving import Serving, serve

    how = Serving(register=register or wait, wait=wait, **served)
    season = _chosen(replay, file, convention, seed)
    if wait:
        season = _with_outside_entry(season)
    _or_stalled(lambda: serve(season, how, say))


@arena.command()
@_replay
@_season
@opt.option("--speed", "Replayed time per real time, or max.", default="max")
@_db
@_convention
@_seed
@opt.option("--until", "Stop after this day (ISO date).")
@opt.option(
    "--worker", "Name of this process if several play one database; keep it across restarts."
)
@opt.option(
    "--recordings=FILE|recorded/MODEL",
    "Play a recorded season again from its answers: no network, no key.",
)
@_allow
@_renamed
@json_option
def run(
    replay: str | None,
    file: Path | None,
    db: str,
    convention: str,
    seed: int,
    recordings: str | None,
    as_json: bool,
    **given: Any,
) -> None:
    """Play a season without pages; the same command continues a stopped one.

    \b
    tradeassay arena run --replay synthetic
    tradeassay arena run --recordings recorded/qwen2.5-coder-1.5b --db again.db

    Exits with 1 if decisions of models failed without an answer: no money left, no connection, no
    time.
    """
    _need_extra()
    import asyncio

    from tradeassay_arena.clock import parse_speed
    from tradeassay_arena.rounds.spending import failed_decisions
    from tradeassay_arena.state.engine import open_engine
    from tradeassay_arena.state.store import Store
    from tradeassay_arena.web.serving import PlayOptions, play
    from tradeassay_bench.agents.foreign.transport import parse_networks
    from tradeassay_bench.core.time import DAY, midnight, parse_day

    season, opener = _chosen(replay, file, convention, seed), None
    if recordings is not None:
        from tradeassay_arena.benchmarks.ama import AMA
        from tradeassay_arena.recording import recorded_season, replaying
        from tradeassay_bench.runs.store.archive import find_recording, open_recording

        if season is not None:
            raise UserError(
                "a recording contains its own season", hint="leave out --season and --replay"
            )
        opened = open_recording(find_recording(recordings, AMA))
        season, opener = recorded_season(opened), replaying(opened)
    if season is None:
        raise UserError(
            "no season was named", hint="add --replay synthetic, --season FILE or --recordings FILE"
        )
    until = given["until"]
    end = None if until is None else midnight(parse_day(until)) + DAY
    store = Store(open_engine(db))
    try:
        pace, networks = parse_speed(given["speed"]), parse_networks(given["allow"])

        def hear(health: Health) -> None:
            health.say = say

        own = {"worker": given["worker"], "renamed": given["renamed"]}
        how = PlayOptions(allow=networks, opener=opener, on_health=hear, **own)
        done = _or_stalled(lambda: asyncio.run(play(season, store, pace, end, how)))
        failed, made = failed_decisions(store, season)
    except KeyboardInterrupt as stop:
        said = f"stopped; the same command continues season '{season.id}' in {db}"
        say(said)
        raise KeyboardInterrupt(said) from stop
    finally:
        store.engine.dispose()
    if as_json:
        print_json({"season": season.id, "rounds": done, "db": db, "failed": failed})
    say(
        f"season '{season.id}': {done} rounds finished now; see tradeassay arena standings --db "
        f"{db}"
    )
    if failed:
        causes = ", ".join(f"{count} {kind}" for kind, count in failed.most_common())
        say(f"{failed.total()} of {made} decisions of models failed: {causes}")
        if opener is None:  # a recorded season fails again where it failed
            raise click.exceptions.Exit(1)


@arena.command()
@_db
@_season_id
@opt.several("--asset assets", "Only this asset.")
@opt.several("--model models", "Only this model.")
@opt.several("--architecture architectures", "Only this architecture.")
@opt.option("--from first", "From this day on.")
@opt.option("--to last", "Up to this day.")
@opt.option("--rewards=ENTRY rewarded", "Show this entry's reward log instead.")
@json_option
def standings(db: str, id: str | None, rewarded: str | None, as_json: bool, **wanted: Any) -> None:
    """Show the standings, with intervals and the probability of being first.

    --rewards shows the rewards that an entry received for its decisions, in a season with the rule
    feedback.
    """
    _need_extra()
    from tradeassay_arena.queries.seasons import opened_season

    if rewarded is not None:
        from tradeassay_arena.queries.decisions import experiences

        with opened_season(db, id) as (store, season):
            paid = experiences(store, season.id, rewarded)
        told = [
            (p.packet.symbol, p.packet.date, p.action, str(p.position), f"{p.reward:+.5f}")
            for p in paid
        ]
        columns = ("asset", "session", "action", "position", "reward")
        print_rows(paid, as_json, f"rewards of '{rewarded}'", columns, told)
        return
    from tradeassay.report.formatting import shown
    from tradeassay_arena.queries.snapshot import board_of
    from tradeassay_arena.season import BASELINE, NO_LIVE_RANKS
    from tradeassay_arena.standings import Filter
    from tradeassay_arena.web.pages import FORMS, names_of
    from tradeassay_arena.web.words import words
    from tradeassay_bench.report.paste_cells import paste_cell

    board = board_of(db, id, Filter(**{name: value or None for name, value in wanted.items()}))
    if as_json:
        print_json(board)
        return
    days = f", {board.first} to {board.last}" if board.first else ""
    with opened_season(db, board.season) as (_, season):
        names = names_of(words("en"), season)  # under the names of the season's page
    rows = []  # in the forms of the season's page
    for row in board.rows:
        spans = (("CR", row.measures["CR"]), ("excess", row.excess))
        single = (("SR", row.measures["SR"]), ("MDD", row.measures["MDD"]), ("best", row.best))
        cells = [paste_cell(measure, FORMS[name]).text for name, measure in spans]
        cells += [shown(measure, FORMS[name]).text for name, measure in single]
        rank = "" if row.rank is None else str(row.rank)
        rows.append(
            (rank, names.get(row.entry, row.label), *cells, str(row.failed), str(row.missed))
        )
    print_table(f"season '{board.season}'{days}", _COLUMNS, rows, heads=2)
    for row in board.rows:
        if (
            row.rank is None and row.entry != BASELINE and row.best.reason != NO_LIVE_RANKS
        ):  # the note on all entries states this
            say(f"{names.get(row.entry, row.label)}: {row.best.reason}")
    missing = dict.fromkeys(
        row.excess.note for row in board.rows if row.excess.low is None and row.excess.note
    )
    for note in filter(
        None, (board.note, *(f"return over buy and hold: {one}" for one in missing))
    ):
        say(note)


_AMENDS = {
    **{"join": "ENTRY [NAME=VALUE...]", "withdraw": "ENTRY", "rename": "ENTRY label=TEXT"},
    **{"add": "ASSET [NAME=VALUE...]", "retire": "ASSET"},
    **{"reopen": "SESSION", "extend": "DAY", "rule": "NAME=VALUE"},
}
_REGISTRATION = dict.fromkeys(("register", "revoke", "approve", "decline"), "ENTRY")
_ACTIONS = {
    **{name: ("day", "by") for name in (*_AMENDS, "approve")},
    "register": ("address", "renew"),
    "bar": ("by",),
    "key": ("revoke",),
    **dict.fromkeys(("revoke", "decline", "applicants"), ()),
}
"""The operator's actions, and the options of each action."""


@arena.command()
@click.argument("action", type=click.Choice(list(_ACTIONS)))
@click.argument("what", nargs=-1)
@_season_id
@opt.option(
    "--address",
    "register: address (http or https) at which the agent is called; without an address it polls.",
)
@opt.flag("--renew", "register: create a new token; the old one stops working.")
@opt.flag("--revoke", "key: revoke the key.")
@opt.option(
    "--day=DAY",
    "First session of a change that begins, last session of one that ends. Default: now.",
)
@opt.option("--by=NAME", "Name of the person who decides or amends. Default: operator.")
@_db
@json_option
def amend(action: str, what: tuple[str, ...], id: str | None, db: str, **given: Any) -> None:
    """Act on a season as its operator.

    \b
    join ENTRY architecture=http       an entry joins; settings as in a season's file
    withdraw ENTRY                     an entry stops deciding; its position stays
    rename ENTRY label=TEXT            another label; its id stays
    add ASSET kind=stock dataset=...   an asset is traded from now on
    retire ASSET                       an asset has no more sessions; its last decision is still
    settled
    reopen SESSION                     play a skipped session after all, if no later one was played
    extend DAY                         the season lasts until DAY
    rule fee_bp=3                      a rule changes; also window_s, timeout_s, delay_s, news_days
    register ENTRY                     let an entry decide outside; its token is shown once
    revoke ENTRY                       its token stops working
    applicants                         list the waiting applicants (arena serve --apply)
    approve ENTRY                      let an applicant join; decline ENTRY does not
    bar                                list live bars that look wrong and delay their rounds
    bar ASSET SESSION accept|refuse    its round continues, or waits for another bar
    key operator|expert [NAME]         create a key, shown only once; an older one stops working
    """
    _need_extra()
    from tradeassay_arena.queries.seasons import opened_season
    from tradeassay_arena.state.engine import existing_engine, reading_engine
    from tradeassay_bench.core.time import WallClock, iso

    for name, value in given.items():
        if value and name not in ("as_json", *_ACTIONS[action]):
            raise click.UsageError(f"--{name} is not valid with 'amend {action}'")
    if action == "key":
        from tradeassay_arena.api.agent_api import change_key

        if not 1 <= len(what) <= 2 or what[0] not in ("operator", "expert"):
            raise click.UsageError("amend key takes operator or expert, and a NAME")
        kind, name = what[0], what[-1] if len(what) == 2 else "operator"
        made = change_key(
            db, "operator" if kind == "operator" else "expert", name, revoke=given["revoke"]
        )
        if given["as_json"]:
            print_json({"kind": kind, "name": name, "key": made})
        elif made is not None:
            click.echo(made)
        else:
            say(f"the key of {kind} '{name}' is revoked")
        return
    takes, given["now"] = _AMENDS.get(action) or _REGISTRATION.get(action), iso(WallClock().now())
    if takes is not None and (not what or (len(what) > 1 and "=" not in takes)):
        raise click.UsageError(f"amend {action} takes {'one ' if '=' not in takes else ''}{takes}")
    only_read = action == "applicants" or (action == "bar" and not what)
    with opened_season(db, id, reading_engine if only_read else existing_engine) as (store, season):
        if action in _AMENDS:
            _amend(store, season, action, what, given)
        elif action == "bar":
            _bars(store, season, what, given)
        else:
            _api(store, season, action, what, given)


def _amend(
    store: Store, season: Season, action: Any, what: tuple[str, ...], given: dict[str, Any]
) -> None:
    from tradeassay_arena.amending import AmendmentRequest, amend, parse_values

    asked = AmendmentRequest(
        change=action,
        what=what[0].partition("=")[0] if action == "rule" else what[0],
        values=parse_values(what if action == "rule" else what[1:]),
        day=given["day"],
        by=given["by"] or "operator",
        now=given["now"],
    )
    made = amend(store, season, asked)
    if given["as_json"]:
        print_json(made)
    for one in made:
        say(f"season '{season.id}', amendment {one.number}: {one.change} {one.what}, {one.day}")


def _api(
    store: Store, season: Season, action: str, what: tuple[str, ...], given: dict[str, Any]
) -> None:
    from tradeassay_arena.api.agent_api import AgentApi

    api, now, as_json = AgentApi(store), given["now"], given["as_json"]
    if action == "applicants":
        found = api.applicants(season.id)
        columns = ("entry", "status", "at", "label", "address", "contact")
        rows = [
            (one.entry, one.status, one.at, one.label, one.address or "polls", one.contact)
            for one in found
        ]
        print_rows(found, as_json, f"applicants of '{season.id}'", columns, rows)
        return
    entry = what[0]
    if action == "register":
        if given["renew"] and given["address"] is not None:
            raise UserError(
                "an address is given once, at registration", hint="leave out --address or --renew"
            )
        if given["renew"]:
            token = api.renew(season.id, entry)
        else:
            token = api.register(season.id, entry, now=now, address=given["address"])
        if as_json:
            print_json({"season": season.id, "entry": entry, "token": token})
        else:
            click.echo(token)
        return
    if action == "revoke" and not api.revoke(season.id, entry, now=now):
        raise UserError(
            f"entry '{entry}' has no token", hint="tradeassay arena amend register gives one"
        )
    if action == "approve" and all(one.id != entry for one in season.entries):
        label = api.applicant(season.id, entry).label
        wanted = ("architecture=http", *([f"label={label}"] if label else []))
        _amend(store, season, "join", (entry, *wanted), given)
    if action in ("approve", "decline"):
        api.judge(season.id, entry, approve=action == "approve", now=now)
    say(f"{entry}: {action}d" if action.endswith("e") else f"{entry}: {action}")


def _bars(store: Store, season: Season, what: tuple[str, ...], given: dict[str, Any]) -> None:
    from tradeassay_arena.rounds.prices import held_bars_of, judge_bar

    as_json, by = given["as_json"], given["by"] or "operator"
    if not what:
        found = held_bars_of(store, season.id)
        columns = ("asset", "session", "price", "since", "word", "reason")
        rows = [
            (b.asset, b.session, f"{b.price:g}", b.since, b.word or "waiting", b.reason)
            for b in found
        ]
        print_rows(found, as_json, f"held bars of '{season.id}'", columns, rows)
        return
    if len(what) != 3 or what[2] not in ("accept", "refuse"):
        raise click.UsageError("amend bar takes ASSET, SESSION and accept or refuse")
    asset, session, word = what
    judge_bar(
        store,
        season.id,
        asset,
        session,
        "accept" if word == "accept" else "refuse",
        by,
        given["now"],
    )
    if as_json:
        print_json(
            {"season": season.id, "asset": asset, "session": session, "word": word, "by": by}
        )
    else:
        say(f"{asset} {session}: {word}")


@arena.command()
@_db
@json_option
def health(db: str, as_json: bool) -> None:
    """Show the state of every worker of an arena. Exits with 1 when one is stalled."""
    _need_extra()
    from tradeassay_arena.queries.seasons import opened_store
    from tradeassay_arena.rounds.health import read_workers

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


_COLUMNS = (
    *(">rank", "agent", ">return (95% interval)", ">return over buy and hold"),
    *(">Sharpe ratio", ">max drawdown", ">P(first)", ">failed", ">missed"),
)


def _chosen(replay: str | None, file: Path | None, convention: str, seed: int) -> Season | None:
    import msgspec

    from tradeassay_arena.season import demo_season, load_season

    if replay is not None and file is not None:
        raise UserError("two seasons were named", hint="give --replay or --season, not both")
    if file is not None:
        return load_season(file)
    season = None if replay is None else demo_season(seed)
    if season is not None and convention == "paper":
        season = msgspec.structs.replace(season, id=f"{season.id}-paper", convention="paper")
    return season


def _with_outside_entry(season: Season | None) -> Season:
    """Return a season with an entry for an outside agent, which the built-in season lacks."""
    import msgspec

    from tradeassay_arena.agents import OUTSIDE
    from tradeassay_arena.season import Entry, demo_season

    season = season or demo_season()
    if any(entry.architecture in OUTSIDE for entry in season.entries):
        return season
    outside = Entry(id="you", architecture="http", label="Your agent")
    return msgspec.structs.replace(
        season, id=f"{season.id}-open"[:64], entries=(*season.entries, outside)
    )


_T = TypeVar("_T")


def _or_stalled(play: Callable[[], _T]) -> _T:
    """Call ``play``. A season that cannot continue ends the process with status 75, so that a
    supervisor starts it again later.
    """
    from sqlalchemy.exc import SQLAlchemyError

    from tradeassay_arena.rounds.running import Stalled

    try:
        return play()
    except UserError:
        raise
    except (Stalled, SQLAlchemyError, OSError) as error:
        say(f"error: {error}")
        raise click.exceptions.Exit(75) from error


def _need_extra() -> None:
    for module in ("sqlalchemy", "fastapi", "uvicorn"):
        require(module, "arena")
