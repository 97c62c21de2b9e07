"""Verifying a season in its database: bookings are made again from decisions and prices, prices from the data.

What an entry decided is taken as recorded: nobody but the entry could give the decision again.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import msgspec
from sqlalchemy import Connection, Row, bindparam, select
from sqlalchemy.exc import SQLAlchemyError

from tradeassay.account.daily_target import Booking, DailyTarget, DecisionPlayed, SharedTarget, replay
from tradeassay.arena.rounds.feed import PREFIX, AssetFacts, SnapshotFeed
from tradeassay.arena.season import Season
from tradeassay.arena.state.engine import open_engine
from tradeassay.arena.state.tables import bookings, decisions, rewards, rounds, seasons, skipped
from tradeassay.core.arena import Action, Packet
from tradeassay.core.errors import UNDECODABLE, RunError, TradeassayError
from tradeassay.core.hashing import canonical_json, sha256_bytes
from tradeassay.core.sums import plain_sum
from tradeassay.core.time import Instant, parse_iso
from tradeassay.data import load_stored
from tradeassay.runs.store.outcome import ClaimOutcome, Violation, Word
from tradeassay.runs.verify.report import VerifyReport

DECISIONS = "decisions as recorded by the runner, not re-derivable"
_MONEY = Booking.__struct_fields__


def verify_arena(db: str, *, home: Path | None = None) -> VerifyReport:
    """Return what becomes of the claims of all seasons in a database.

    Raises :class:`RunError` for a file that is not an arena's database.
    """
    with tempfile.TemporaryDirectory() as place:
        try:
            copy = copied_database(db, Path(place))
            with open_engine(copy, durable=False, keep="://" in db).connect() as connection:
                found = [_Season(connection, row, home) for row in connection.execute(select(seasons))]
                for one in found:
                    one.check()
        except SQLAlchemyError as error:
            what = str(error).partition("\n")[0]
            raise RunError(f"{db} cannot be read as an arena: {what}", hint="name an arena's database") from error
    return VerifyReport(
        folder=db,
        episodes=len(found),
        steps=sum(one.slots for one in found),
        claims=tuple(claim for one in found for claim in one.claims),
        violations=tuple(violation for one in found for violation in one.violations),
        notes=("pages and standings are computed from the database whenever they are shown",),
    )


def copied_database(db: str, place: Path) -> str:
    """Return a copy of an SQLite file, with what is not yet in it: opening an old one would rewrite it.

    Raises :class:`RunError` for a database that computes.
    """
    if "://" in db:
        return db
    for name in (db, f"{db}-wal"):
        if Path(name).is_file():
            shutil.copyfile(name, place / f"arena.db{name.removeprefix(db)}")
    copy = place / "arena.db"
    try:
        with closing(sqlite3.connect(copy)) as connection:
            held = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    except sqlite3.Error:
        held = []  # whoever reads it next says why
    for kind, name, sql in held:
        # A database that computes is refused: reading a view may never end, or give anything. The view of slots is
        # for pages; nothing here reads it.
        computes = kind not in ("table", "index") or str(sql).upper().startswith("CREATE VIRTUAL")
        if computes and (kind, name) != ("view", "slots"):
            raise RunError(f"{db} holds a {kind} '{str(name)[:80]}', which no arena has", hint="do not open it")
    return str(copy)


class _Season:
    """One season being checked."""

    def __init__(self, db: Connection, row: Row[Any], home: Path | None) -> None:
        self.claims: list[ClaimOutcome] = []
        self.violations: list[Violation] = []
        self.slots = 0
        self._db, self._row, self._home = db, row, home

    def check(self) -> None:
        """Check the spec, then prices, then every booking in the order in which it was made."""
        try:
            season = msgspec.json.decode(self._row.spec, type=Season)
        except (TradeassayError, *UNDECODABLE) as error:
            self._broken("season", f"its spec cannot be read: {error}")
            self._say("season", "contradicted")
            return
        if sha256_bytes(self._row.spec.encode()) != self._row.sha256 or season.id != self._row.id:
            self._broken("season", "its spec is not the one under whose hash it is frozen")
        self._say("season", "contradicted" if self.violations else "re-derived")
        played = list(
            self._db.execute(
                select(rounds).where(rounds.c.season == season.id).order_by(rounds.c.session, rounds.c.id)
            )
        )
        self._settled("information", self._packets(season, played))
        self._settled("rounds", self._rounds(season, played))
        self._check_prices(season, played)
        self._settled("account", self._bookings(season, {row.id: row for row in played}))
        self._say("decisions", "cannot be checked", DECISIONS)

    def _packets(self, season: Season, played: list[Row[Any]]) -> Iterator[tuple[str, str]]:
        """What entries were shown is hashed, written as we write it, and speaks of its own round."""
        for row in played:
            if sha256_bytes(row.packet.encode()) != row.packet_sha256:
                yield _where(row), "what entries were shown is not what the round's hash says"
                continue
            try:
                packet = msgspec.json.decode(row.packet, type=Packet)
                kind = season.asset(row.asset).kind
            except (TradeassayError, *UNDECODABLE) as error:
                yield _where(row), f"what entries were shown cannot be read: {error}"
                continue
            if not _written_by_us(row.packet, packet):
                yield _where(row), "what entries were shown is not written as tradeassay writes it"
            is_ = {
                "season": season.id,
                "date": row.session,
                "decided_at": row.decision_time,
                "symbol": row.asset,
                "price": row.price,
                "momentum": row.momentum,
                "phase": row.stage,
                "kind": kind,
                "position": 0,
                "outcomes": (),
                "others": (),
            }
            if any(getattr(packet, name) != value for name, value in is_.items()):
                yield _where(row), "what entries were shown speaks of another round, price or stage"

    def _rounds(self, season: Season, played: list[Row[Any]]) -> Iterator[tuple[str, str]]:
        """Every round but an asset's last is settled, to the next one, and stages follow the season's rules."""
        by_asset: dict[str, list[Row[Any]]] = {}
        for row in played:
            by_asset.setdefault(row.asset, []).append(row)
        gone = {(row.asset, row.session) for row in self._db.execute(_SKIPPED, {"season": season.id})}
        for asset, mine in by_asset.items():
            past = sorted({row.session for row in mine} | {day for name, day in gone if name == asset})
            for row, following in zip(mine, [*mine[1:], None], strict=True):
                number = past.index(row.session)
                warming = season.warming(season.asset(asset), row.session, number)
                if row.stage != ("warm-up" if warming else "live"):
                    yield _where(row), f"it is called {row.stage}, which the season's rules do not say"
                prices = (row.base_price, row.next_price, row.next_session)
                if row.phase == "settled":
                    if None in prices or row.next_session <= row.session:
                        yield _where(row), "it is settled without a later price"
                elif row.phase not in ("opened", "executed") or prices != (None, None, None):
                    yield _where(row), "it has a price to be settled at and is not settled"
                elif following is not None:
                    yield _where(row), "a later round was opened before it was settled"
                if following is not None and row.next_session not in (None, following.session):
                    if (asset, following.session) not in gone and row.next_session > following.session:
                        yield _where(row), f"it was settled at {row.next_session}, after the next round"
                if not season.rules.cross_asset and row.shared is not None:
                    yield _where(row), "it tells of an account over all assets, which the season does not have"

    def _check_prices(self, season: Season, played: list[Row[Any]]) -> None:
        if any(asset.dataset.startswith(PREFIX) for asset in season.assets):
            self._say("prices", "cannot be checked", "a live source is asked once; its answer is as recorded")
            return
        try:
            for name in {asset.dataset for asset in season.assets}:
                load_stored(name, self._home)  # never a folder that came with the database
            feed = SnapshotFeed.open(season, self._home)
        except TradeassayError as error:
            self._say("prices", "cannot be checked", error.message)
            return
        self._settled("prices", self._prices(season, feed, played))

    def _prices(self, season: Season, feed: SnapshotFeed, played: list[Row[Any]]) -> Iterator[tuple[str, str]]:
        last: dict[str, Row[Any]] = {}

        def settled(row: Row[Any], at: Instant, price: float, session: str) -> Iterator[tuple[str, str]]:
            dividends = season.convention == "sound"
            base = feed.comparable(season.asset(row.asset), row.session, at, dividends=dividends) or row.price
            if (base, price, session) != (row.base_price, row.next_price, row.next_session):
                yield _where(row), f"it was settled from {row.base_price} to {row.next_price}"

        for row in played:
            at = parse_iso(row.decision_time)
            facts = feed.facts(season.asset(row.asset), row.session, at, season.news_days)
            if facts is None or facts.price != row.price or facts.momentum != row.momentum:
                yield _where(row), f"the data has another price or momentum than {row.price:g}"
                continue
            yield from _same_facts(row, facts)
            before = last.get(row.asset)
            if before is not None and before.phase == "settled":
                yield from settled(before, at, facts.price, row.session)
            last[row.asset] = row
        # An asset's last decision was settled at the price of a session that the season has.
        dues = {(due.asset, due.session): due for due in feed.due(season)}
        for row in (row for row in last.values() if row.phase == "settled"):
            due = dues.get((row.asset, str(row.next_session)))
            asset = season.asset(row.asset)
            facts = None if due is None else feed.facts(asset, due.session, due.at, season.news_days)
            if due is None or facts is None:
                yield _where(row), f"the season has no session {row.next_session} to settle it at"
            else:
                yield from settled(row, due.at, facts.price, due.session)

    def _bookings(self, season: Season, played: dict[int, Row[Any]]) -> Iterator[tuple[str, str]]:
        own = DailyTarget(hold=season.money.hold, fee_bp=season.money.fee_bp)
        shared = SharedTarget(hold=season.money.hold, fee_bp=season.money.fee_bp)
        slots = {row.id: row for row in self._db.execute(select(decisions).where(decisions.c.season == season.id))}
        self.slots = len(slots)
        for made in slots.values():
            if made.action not in get_args(Action) and (made.action is not None or made.status == "decided"):
                yield f"decision {made.id}, {made.entry}", f"{made.action!r} is not an action"
        state: dict[tuple[str, ...], tuple[int, float]] = {}
        value: dict[tuple[str, str], float] = {}
        held: dict[tuple[str, str], dict[str, float]] = {}
        executed: dict[int, Booking] = {}
        earned: dict[int, float] = {}
        booked = list(
            self._db.execute(select(bookings).where(bookings.c.season == season.id).order_by(bookings.c.id))
        )
        revised = {_account(season, row) for row in booked if row.kind == "corrected"}
        yield from self._revised(season, booked, slots, played, revised)
        for row in booked:
            slot = slots.get(row.slot)
            round = None if slot is None else played.get(slot.round)
            named = (row.entry, row.asset, row.stage)
            if slot is None or round is None or (slot.entry, slot.asset, slot.stage) != named:
                yield f"booking {row.id}", "it belongs to no decision"
                continue
            if _account(season, row) in revised:
                if row.kind == "executed":
                    executed[row.slot] = Booking(**{name: getattr(row, name) for name in _MONEY})
                else:
                    earned[row.slot] = row.earned or 0.0
                continue
            if row.restated_before is not None or row.number != (0 if row.kind == "executed" else 1):
                yield f"booking {row.id}", "it restates what was never revised"
            where, account = f"{_where(round)}, {slot.entry}", (row.stage, row.entry)
            mine = held.setdefault(account, {})
            worth = value.get(account, 1.0)
            if row.kind == "executed":
                action: Action = slot.action or "HOLD"
                if season.rules.cross_asset:
                    share = 1.0 / len(season.assets) if slot.allocation is None else slot.allocation
                    others = plain_sum(abs(money) for asset, money in mine.items() if asset != row.asset)
                    again = shared.execute(
                        action, share, value=worth, before=mine.get(row.asset, 0.0), others=others
                    )
                else:
                    again = own.execute(action, *state.get((*account, row.asset), (0, 1.0)))
                executed[row.slot] = again
            elif row.slot not in executed or round.base_price is None or round.next_price is None:
                yield where, "it was settled without being executed, or without a price"
                continue
            else:
                moved, first = round.next_price / round.base_price - 1.0, executed[row.slot]
                again = (
                    shared.settle(first, worth, moved) if season.rules.cross_asset else own.settle(first, moved)
                )
                earned[row.slot] = again.earned or 0.0
            if again != Booking(**{name: getattr(row, name) for name in _MONEY}):
                yield where, f"decision and price give a value of {again.nav:.12g}, not {row.nav:.12g}"
            state[(*account, row.asset)] = (again.position, again.nav)
            value[account] = again.nav
            mine[row.asset] = again.exposure or 0.0
        yield from self._unbooked(played, slots, executed, earned)
        yield from self._rewards(season, slots, earned)

    def _rewards(self, season: Season, slots: dict[int, Row[Any]], earned: Any) -> Iterator[tuple[str, str]]:
        told = list(self._db.execute(select(rewards).where(rewards.c.season == season.id)))
        if not season.rules.feedback:
            if told:
                yield "rewards", "the season's rules tell nobody what a decision earned"
            return
        for row in told:
            slot = slots.get(row.slot)
            named = (row.entry, row.asset, row.session)
            if slot is None or named != (slot.entry, slot.asset, slot.session):
                yield f"reward of slot {row.slot}", "it is not of the decision that it names"
            elif row.reward != earned.get(row.slot):
                yield f"reward of slot {row.slot}", "it is not what the decision earned"
        if {row.slot for row in told} != set(earned):
            yield "rewards", "some decisions that were settled have none, or others have"

    def _unbooked(
        self, played: dict[int, Row[Any]], slots: dict[int, Row[Any]], executed: Any, earned: Any
    ) -> Iterator[tuple[str, str]]:
        for slot in slots.values():
            round = played.get(slot.round)
            phase = "" if round is None else round.phase
            named = (slot.asset, slot.session, slot.stage)
            if round is None or named != (round.asset, round.session, round.stage):
                yield f"decision {slot.id}", "it is not of the round that it names"
                continue
            where = f"{_where(round)}, {slot.entry}"
            if slot.status not in ("open", "decided", "failed", "missed"):
                yield where, f"its status is {slot.status!r}"
            if slot.action is None if slot.status == "decided" else slot.action not in (None, "HOLD"):
                yield where, "it is decided without an action, or acts undecided"
            if (phase == "opened" and slot.id in executed) or (phase != "settled" and slot.id in earned):
                yield where, f"it was booked although its round is {phase}"
            if phase in ("executed", "settled") and slot.id not in executed:
                yield where, "the decision was never carried out"
            if phase == "settled" and slot.id not in earned:
                yield where, "the decision was never settled"

    def _revised(
        self,
        season: Season,
        booked: list[Row[Any]],
        slots: dict[int, Row[Any]],
        played: dict[int, Row[Any]],
        revised: set[tuple[str, ...]],
    ) -> Iterator[tuple[str, str]]:
        """Accounts whose prices a vendor revised: the newest lines are those of the newest prices."""
        if not revised:
            return
        why = "prices were revised by their source: what was booked before a revision is as recorded"
        self._say("bookings before a revision", "cannot be checked", why)
        kind = SharedTarget if season.rules.cross_asset else DailyTarget
        policy = kind(hold=season.money.hold, fee_bp=season.money.fee_bp)
        for account in sorted(revised):
            mine = [row for row in booked if _account(season, row) == account and row.slot in slots]
            steps = []
            for row in mine:
                slot, round = slots[row.slot], played.get(slots[row.slot].round)
                if row.number > 1 or round is None:
                    continue
                moved = (
                    round.next_price / round.base_price - 1.0 if round.next_price and round.base_price else None
                )
                share = 1.0 / len(season.assets) if slot.allocation is None else slot.allocation
                action: Action = slot.action or "HOLD"
                one = DecisionPlayed(slot=row.slot, asset=row.asset, action=action, share=share, moved=moved)
                steps.append((row.kind, one))
            again, last = replay(policy, steps), {row.slot: row for row in mine}
            where = ", ".join(account)
            worth = 1.0
            for row in mine:
                if row.kind != "settled" and not _close(row.nav_before, worth):
                    yield where, f"booking {row.id} begins at {row.nav_before:.12g}, not at {worth:.12g}"
                worth = row.nav
            for number, made in again.items():
                row = last[number]
                if made.kind == "settled" and not _close(made.earned or 0.0, row.earned or 0.0):
                    yield where, f"decision {number} earned {made.earned}, not {row.earned}"
                elif (row.number > 1 or season.rules.cross_asset) and not _restates(row, made):
                    yield where, f"decision {number} is not restated as the newest prices say"
                elif (row.position_before, row.position) != (made.position_before, made.position):
                    yield where, f"decision {number} is booked with another position than it takes"
            if steps and not _close(again[steps[-1][1].slot].nav, mine[-1].nav):
                yield where, f"the newest prices give {again[steps[-1][1].slot].nav:.12g}, not {mine[-1].nav:.12g}"

    def _settled(self, claim: str, found: Iterator[tuple[str, str]]) -> None:
        before = len(self.violations)
        for where, what in found:
            self._broken(claim, f"{where}: {what}")
        self._say(claim, "contradicted" if len(self.violations) > before else "re-derived")

    def _say(self, claim: str, outcome: Word, why: str = "") -> None:
        self.claims.append(ClaimOutcome(claim=f"{self._row.id} {claim}", outcome=outcome, why=why))

    def _broken(self, check: str, what: str) -> None:
        self.violations.append(Violation(check=check, what=what, episode=self._row.id))


def _where(row: Any) -> str:
    return f"{row.asset} {row.session}"


_SKIPPED = select(skipped.c.asset, skipped.c.session).where(skipped.c.season == bindparam("season"))


def _account(season: Season, row: Any) -> tuple[str, ...]:
    """The account that a booking belongs to: one over all assets, or one for each."""
    return (row.stage, row.entry) if season.rules.cross_asset else (row.stage, row.entry, row.asset)


def _restates(row: Any, made: Booking) -> bool:
    """Whether a line says what the newest prices say of a decision, and of the account before it."""
    if row.number <= 1:  # never corrected: only the account before it must still be what the prices say
        return row.kind != "settled" or _close(row.nav_before, made.nav_before)
    then = (row.restated_before, row.fee, row.exposure_before, row.exposure)
    now = (made.nav_before, made.fee, made.exposure_before, made.exposure)
    return all(_close(one or 0.0, other or 0.0) for one, other in zip(then, now, strict=True))


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= 1e-9 * max(1.0, abs(one), abs(other))


def _written_by_us(text: str, packet: Packet) -> bool:
    """Whether a packet holds nothing but what is read from it; fields that came later stand at their defaults."""
    raw, again = msgspec.json.decode(text), msgspec.json.decode(msgspec.json.encode(packet))
    if not isinstance(raw, dict) or canonical_json(raw) != text.encode():
        return False
    return all(key in again and again[key] == value for key, value in raw.items())


def _same_facts(row: Any, facts: AssetFacts) -> Iterator[tuple[str, str]]:
    """History and reports in a packet are those of the data. News may have come from a desk that has ended."""
    try:
        packet = msgspec.json.decode(row.packet, type=Packet)
    except UNDECODABLE:
        return  # it is named already
    told = (packet.history, packet.annual_report, packet.quarterly_report)
    if told != (facts.history, facts.annual_report, facts.quarterly_report):
        yield _where(row), "the data has another history or other reports than entries were shown"
