"""Verifying a season in its database: bookings are made again from decisions and prices, prices from the data.

What an entry decided is taken as recorded: nobody but the entry could give the decision again.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, select
from sqlalchemy.exc import SQLAlchemyError

from tradeassay.account.daily_target import Booking, DailyTarget, SharedTarget
from tradeassay.arena.rounds.feed import PREFIX, SnapshotFeed
from tradeassay.arena.season import Season
from tradeassay.arena.state.engine import open_engine
from tradeassay.arena.state.tables import bookings, decisions, rewards, rounds, seasons
from tradeassay.core.arena import Action
from tradeassay.core.errors import RunError, TradeassayError
from tradeassay.core.hashing import sha256_bytes
from tradeassay.core.time import parse_iso
from tradeassay.runs.outcome import ClaimOutcome, Violation, Word
from tradeassay.runs.verification import VerifyReport

DECISIONS = "decisions as recorded by the runner, not re-derivable"
_MONEY = Booking.__struct_fields__


def verify_arena(db: str, *, home: Path | None = None) -> VerifyReport:
    """Return what becomes of the claims of all seasons in a database.

    Raises :class:`RunError` for a file that is not an arena's database.
    """
    with tempfile.TemporaryDirectory() as place:
        try:
            with open_engine(_copied(db, Path(place)), durable=False).connect() as connection:
                found = [_Season(connection, row, home) for row in connection.execute(select(seasons))]
                for one in found:
                    one.check()
        except SQLAlchemyError as error:
            what = str(error).partition("\n")[0]
            raise RunError(f"{db} cannot be read as an arena: {what}", mend="name an arena's database") from error
    return VerifyReport(
        folder=db,
        episodes=len(found),
        steps=sum(one.slots for one in found),
        claims=tuple(claim for one in found for claim in one.claims),
        violations=tuple(violation for one in found for violation in one.violations),
        notes=("pages and standings are computed from the database whenever they are shown",),
    )


def _copied(db: str, place: Path) -> str:
    """Return a copy of an SQLite file, with what is not yet in it: opening an old one would rewrite it."""
    if "://" in db:
        return db
    for name in (db, f"{db}-wal"):
        if Path(name).is_file():
            shutil.copyfile(name, place / f"arena.db{name.removeprefix(db)}")
    return str(place / "arena.db")


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
        except (msgspec.DecodeError, TradeassayError) as error:
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
        self._settled("information", self._packets(played))
        self._check_prices(season, played)
        self._settled("account", self._bookings(season, {row.id: row for row in played}))
        self._say("decisions", "cannot be checked", DECISIONS)

    def _packets(self, played: list[Row[Any]]) -> Iterator[tuple[str, str]]:
        for row in played:
            if sha256_bytes(row.packet.encode()) != row.packet_sha256:
                yield _where(row), "what entries were shown is not what the round's hash says"

    def _check_prices(self, season: Season, played: list[Row[Any]]) -> None:
        if any(asset.dataset.startswith(PREFIX) for asset in season.assets):
            self._say("prices", "cannot be checked", "a live source is asked once; its answer is as recorded")
            return
        try:
            feed = SnapshotFeed.open(season, self._home)
        except TradeassayError as error:
            self._say("prices", "cannot be checked", error.message)
            return
        self._settled("prices", self._prices(season, feed, played))

    def _prices(self, season: Season, feed: SnapshotFeed, played: list[Row[Any]]) -> Iterator[tuple[str, str]]:
        dividends = season.convention == "sound"
        last: dict[str, Row[Any]] = {}
        for row in played:
            asset, at = season.asset(row.asset), parse_iso(row.decision_time)
            facts = feed.facts(asset, row.session, at, season.news_days)
            if facts is None or facts.price != row.price or facts.momentum != row.momentum:
                yield _where(row), f"the data has another price or momentum than {row.price:g}"
                continue
            before = last.get(row.asset)
            if before is not None and before.phase == "settled":
                base = feed.comparable(asset, before.session, at, dividends=dividends) or before.price
                if (base, facts.price) != (before.base_price, before.next_price):
                    yield _where(before), f"it was settled from {before.base_price} to {before.next_price}"
            last[row.asset] = row

    def _bookings(self, season: Season, played: dict[int, Row[Any]]) -> Iterator[tuple[str, str]]:
        own = DailyTarget(hold=season.money.hold, fee_bp=season.money.fee_bp)
        shared = SharedTarget(hold=season.money.hold, fee_bp=season.money.fee_bp)
        slots = {row.id: row for row in self._db.execute(select(decisions).where(decisions.c.season == season.id))}
        self.slots = len(slots)
        state: dict[tuple[str, ...], tuple[int, float]] = {}
        value: dict[tuple[str, str], float] = {}
        held: dict[tuple[str, str], dict[str, float]] = {}
        executed: dict[int, Booking] = {}
        earned: dict[int, float] = {}
        for row in self._db.execute(
            select(bookings).where(bookings.c.season == season.id).order_by(bookings.c.id)
        ):
            slot = slots.get(row.slot)
            round = None if slot is None else played.get(slot.round)
            if (
                slot is None
                or round is None
                or (slot.entry, slot.asset, slot.stage) != (row.entry, row.asset, row.stage)
            ):
                yield f"booking {row.id}", "it belongs to no decision"
                continue
            where, account = f"{_where(round)}, {slot.entry}", (row.stage, row.entry)
            mine = held.setdefault(account, {})
            worth = value.get(account, 1.0)
            if row.kind == "executed":
                action: Action = slot.action or "HOLD"
                if season.rules.cross_asset:
                    share = 1.0 / len(season.assets) if slot.allocation is None else slot.allocation
                    others = sum(abs(money) for asset, money in mine.items() if asset != row.asset)
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
        if season.rules.feedback:
            for row in self._db.execute(select(rewards).where(rewards.c.season == season.id)):
                if row.reward != earned.get(row.slot):
                    yield f"reward of slot {row.slot}", "it is not what the decision earned"

    def _unbooked(
        self, played: dict[int, Row[Any]], slots: dict[int, Row[Any]], executed: Any, earned: Any
    ) -> Iterator[tuple[str, str]]:
        for slot in slots.values():
            round = played.get(slot.round)
            phase = "" if round is None else round.phase
            if phase in ("executed", "settled") and slot.id not in executed:
                yield f"{_where(round)}, {slot.entry}", "the decision was never carried out"
            if phase == "settled" and slot.id not in earned:
                yield f"{_where(round)}, {slot.entry}", "the decision was never settled"

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
