"""Live prices are known twice: for which session, and since when. A revision is booked, never slipped in.

Rounds are decided and settled on what was published at their decision times. Whenever the vendor is asked again,
its closes are compared with those that were used; where one differs, its session's price becomes the new one,
every account is played again from its own decisions on the corrected prices, and the difference is booked as a
correction. So after the last revision an account is worth what the same decisions make on the vendor's final
prices.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from math import log
from typing import Any, NamedTuple

import msgspec
from sqlalchemy import Connection, func, insert, select, update

from tradeassay.account.daily_target import Booking, DailyTarget, DecisionPlayed, SharedTarget, Step, replay
from tradeassay.arena.rounds.held_bars import end_hold, held_bar, held_bars_of, hold_bar
from tradeassay.arena.season import Season
from tradeassay.arena.state.rows import Round, Stage, read_round
from tradeassay.arena.state.store import Store, tell
from tradeassay.arena.state.tables import (
    bookings,
    corrections,
    decisions,
    price_vintages,
    rewards,
    rounds,
    seasons,
)
from tradeassay.core.time import SECOND, parse_iso

SAME = 1e-14
"""Relative difference up to which two prices are the same: adjusting for a split and back costs a few roundings.
"""


class Close(msgspec.Struct, frozen=True, kw_only=True):
    """A session's close as traded, and in terms of a share of today (splits, or dividends too, undone)."""

    close: float
    adjusted: float


Closes = Mapping[str, Close]
"""A vendor's closes by session, oldest first, as it tells them now."""


class Revision(msgspec.Struct, frozen=True, kw_only=True):
    """A session's price that the vendor has changed, and how many decisions have earned something else by it."""

    asset: str
    session: str
    old: float
    new: float
    known_at: str
    restated: int


_RESCALED = 1e-6


def carried(round: Round, closes: Closes, session: str, before: Round | None = None) -> float:
    """Return a round's own price in terms of a share of a later session: the price it was decided on is kept.

    ``before`` is the round before it. A vendor that restates all of its past after a split has moved both prices
    by one factor; that is another unit, not another price.
    """
    here, there = closes.get(round.session), closes.get(session)
    if here is None or there is None:
        return round.price
    earlier = None if before is None else closes.get(before.session)
    scale = here.close / round.price
    restated = (
        before is not None and earlier is not None and abs(earlier.close / before.price / scale - 1.0) < _RESCALED
    )
    if here.close == round.price or (restated and abs(scale - 1.0) > _RESCALED):
        return here.adjusted * (there.close / there.adjusted) if there.adjusted != there.close else here.adjusted
    return round.price * (here.adjusted / here.close) * (there.close / there.adjusted)


def record_closes(store: Store, season: str, asset: str, closes: Closes, now: str, *, used: Iterable[str]) -> None:
    """Keep what a vendor says about the sessions in ``used`` and those already on record, where it is new."""
    with store.write("prices") as db:
        _record(db, season, asset, closes, now, frozenset(used))


def _record(
    db: Connection, season: str, asset: str, closes: Closes, now: str, used: frozenset[str]
) -> dict[str, tuple[float, float]]:
    """Append vintages; return (old, new) by session for those that changed."""
    mine = (price_vintages.c.season == season, price_vintages.c.asset == asset)
    newest = select(price_vintages.c.session, func.max(price_vintages.c.number).label("number"))
    newest = newest.where(*mine, price_vintages.c.session >= min(closes, default="")).group_by(
        price_vintages.c.session
    )
    last = newest.subquery()
    same = (price_vintages.c.session == last.c.session) & (price_vintages.c.number == last.c.number)
    query = select(price_vintages.c.session, price_vintages.c.number, price_vintages.c.close)
    known = {row.session: row for row in db.execute(query.join(last, same).where(*mine))}
    changed: dict[str, tuple[float, float]] = {}
    rows = []
    for session, told in closes.items():
        there = known.get(session)
        if there is None and session not in used:
            continue
        if there is not None and _same(there.close, told.close):
            continue
        if there is not None:
            changed[session] = (there.close, told.close)
        rows.append(
            {
                "season": season,
                "asset": asset,
                "session": session,
                "close": told.close,
                "known_at": now,
                "number": 0 if there is None else there.number + 1,
                "used": int(session in used),
            }
        )
    if rows:
        db.execute(insert(price_vintages), rows)
    return changed


def correct(
    store: Store, season: Season, asset: str, closes: Closes, now: str, *, without: Collection[str] = ()
) -> tuple[Revision, ...]:
    """Compare a vendor's closes with those that settled rounds stand on, and book every difference.

    All in one transaction; called again with the same closes it does nothing. Only settled rounds are touched: one
    that is still open keeps its price until it is settled, and is corrected afterwards. What is said about the
    sessions in ``without`` is not believed yet (:func:`doubted_revisions`).
    """
    if not closes:
        return ()
    mine = corrections.c.season == season.id
    with store.read() as db:  # nearly always there is nothing to do, and nobody has to wait for that
        # Where one account spans all assets, what was under way during a correction is sized by what it was then.
        again = season.rules.cross_asset and db.execute(select(corrections.c.id).where(mine).limit(1)).first()
        if not again and not _moved(_settled(db, season, asset, closes), without):
            return ()
    with store.write("corrected") as db:
        if db.dialect.name == "postgresql":
            db.execute(select(seasons.c.id).where(seasons.c.id == season.id).with_for_update())
        found = _settled(db, season, asset, closes)
        moved = _moved(found, without)
        if not moved and not again:
            return ()
        _record(db, season.id, asset, closes, now, frozenset(one.round.session for one in found))
        for one in moved:
            values = dict(zip(("base_price", "next_price"), one.new, strict=True))
            db.execute(update(rounds).where(rounds.c.id == one.round.id).values(**values))
        stages = {one.round.stage for one in (found if again else moved)}
        restated = sum(_book(db, season, asset, stage) for stage in sorted(stages))
        made = []
        for session, (old, new) in sorted(_revised(found, moved).items()):
            row = {"season": season.id, "asset": asset, "session": session, "old": old, "new": new}
            db.execute(insert(corrections).values(**row, known_at=now, restated=restated))
            made.append(Revision(asset=asset, session=session, old=old, new=new, known_at=now, restated=restated))
            body = {"asset": asset, "session": session, "old": old, "new": new, "restated": restated}
            tell(db, season.id, "corrected", now, body)
        return tuple(made)


def doubted_revisions(store: Store, season: Season, asset: str, closes: Closes, now: str) -> frozenset[str]:
    """Return the settled sessions whose close a vendor has changed by more than a bar may jump.

    Such a revision is held like a bar: it is booked once an operator accepts it or a later look, after the same
    delay, finds it again. One that is gone by then was a mistake, and nobody's account has seen it.
    """
    with store.read() as db:
        found = _settled(db, season, asset, closes)
    moved = _moved(found)
    told = _revised(found, moved)
    limit = season.prices.jump(season.asset(asset).kind)
    far = set()
    for one in moved:
        if abs((one.new[1] / one.new[0]) / (one.old[1] / one.old[0]) - 1.0) > limit:
            ends = [end for end, _, _ in one.ends if end in told]
            far.add(max(ends, key=lambda end: abs(log(told[end][1] / told[end][0]))))
    for bar in held_bars_of(store, season.id):
        if bar.asset == asset and bar.word is None and bar.session in closes and bar.session not in far:
            end_hold(store, season.id, asset, bar.session, "replaced", now)
    return frozenset(end for end in far if not _agreed(store, season, asset, end, told[end], now))


def _agreed(store: Store, season: Season, asset: str, session: str, told: tuple[float, float], now: str) -> bool:
    """Return whether a large revision may be booked; one that is new is held."""
    (old, new), place = told, (season.id, asset, session)
    known = held_bar(store, *place)
    if known is None or not _same(known.price, new):
        reason = f"the vendor says {new:g} now for a close of {old:g}"
        hold_bar(store, *place, price=new, reason=reason, now=now)
        return False
    waited = parse_iso(now) - parse_iso(known.since)
    if known.word is None and waited >= season.prices.look_again_s * SECOND:
        end_hold(store, *place, "believed", now)
        return True
    return known.word in ("accept", "believed")


def revisions(store: Store, season: str, most: int = 200) -> tuple[Revision, ...]:
    """Return the newest corrections of a season, newest first."""
    query = select(corrections).where(corrections.c.season == season).order_by(corrections.c.id.desc()).limit(most)
    names = Revision.__struct_fields__
    with store.read() as db:
        return tuple(Revision(**{name: getattr(row, name) for name in names}) for row in db.execute(query))


def _same(one: float, other: float) -> bool:
    return abs(one - other) <= SAME * max(abs(one), abs(other))


class _Repriced(NamedTuple):
    """A settled round: the prices it was settled on, and the same two as the vendor tells them now."""

    round: Round
    old: tuple[float, float]
    new: tuple[float, float]

    @property
    def same(self) -> bool:
        # A restated unit (all of the past halved after a split) is no revision: only what was earned counts.
        return _same(self.new[1] / self.new[0], self.old[1] / self.old[0])

    @property
    def ends(self) -> tuple[tuple[str, float, float], tuple[str, float, float]]:
        """Both sessions, with the old price and the new one."""
        here, there = self.round.session, self.round.next_session or ""
        return (here, self.old[0], self.new[0]), (there, self.old[1], self.new[1])


def _settled(db: Connection, season: Season, asset: str, closes: Closes) -> list[_Repriced]:
    """Return the settled rounds that a vendor's closes reach, oldest first, in terms of their later session."""
    query = select(*(rounds.c[name] for name in Round.__struct_fields__)).where(
        rounds.c.season == season.id,
        rounds.c.asset == asset,
        rounds.c.phase == "settled",
        rounds.c.session >= min(closes, default="~"),
    )
    found = []
    for row in db.execute(query.order_by(rounds.c.session)):
        round = read_round(row)
        here, there = closes.get(round.session), closes.get(round.next_session or "")
        if here is None or there is None or round.base_price is None or round.next_price is None:
            continue
        now = (here.adjusted * (there.close / there.adjusted), there.close)
        found.append(_Repriced(round, (round.base_price, round.next_price), now))
    return found


def _moved(found: Iterable[_Repriced], without: Collection[str] = ()) -> list[_Repriced]:
    """Return the rounds that have earned something else than they were settled on."""
    return [
        one for one in found if not one.same and not {one.round.session, one.round.next_session} & set(without)
    ]


def _revised(found: Iterable[_Repriced], moved: Iterable[_Repriced]) -> dict[str, tuple[float, float]]:
    """Return which sessions' prices have changed, (old, new), where rounds have moved.

    In the vendor's present unit: where all of the past was restated by one factor, most of its prices say which.
    """
    units = Counter(_ratio(one.new[0], one.old[0]) for one in found)
    often = max(units.values(), default=0)
    unit = 1.0 if units[1.0] == often else units.most_common(1)[0][0]
    told: dict[str, tuple[float, float]] = {}
    for one in moved:
        changed = [(end, old * unit, new) for end, old, new in one.ends if _ratio(new, old * unit) != 1.0]
        told |= {end: (old, new) for end, old, new in changed or one.ends[:1]}
    return told


def _ratio(one: float, other: float) -> float:
    """Return a ratio of two prices without what rounding leaves in it."""
    return float(f"{one / other:.9g}")


def _book(db: Connection, season: Season, asset: str, stage: Stage) -> int:
    """Play all accounts of a stage again that hold the asset; returns how many decisions are restated."""
    shared = season.rules.cross_asset
    kind = SharedTarget if shared else DailyTarget
    policy = kind(hold=season.money.hold, fee_bp=season.money.fee_bp)
    columns = (
        bookings.c.slot, bookings.c.entry, bookings.c.asset, bookings.c.kind, decisions.c.action,
        decisions.c.allocation, rounds.c.base_price, rounds.c.next_price,
    )  # fmt: skip
    query = select(*columns).join(decisions, decisions.c.id == bookings.c.slot)
    query = query.join(rounds, rounds.c.id == decisions.c.round).where(
        bookings.c.season == season.id, bookings.c.stage == stage, bookings.c.number <= 1
    )
    if not shared:
        query = query.where(bookings.c.asset == asset)
    steps: dict[str, list[Step]] = {}
    share = 1.0 / len(season.assets)
    for row in db.execute(query.order_by(bookings.c.id)):
        moved = None if row.next_price is None or not row.base_price else row.next_price / row.base_price - 1.0
        played = DecisionPlayed(
            slot=row.slot,
            asset=row.asset,
            action=row.action or "HOLD",
            share=share if row.allocation is None else row.allocation,
            moved=moved,
        )
        steps.setdefault(row.entry, []).append((row.kind, played))
    booked = _as_booked(db, season, stage, None if shared else asset)
    return sum(_correct_account(db, policy, steps[entry], booked[entry], season) for entry in sorted(steps))


def _as_booked(db: Connection, season: Season, stage: Stage, asset: str | None) -> dict[str, list[Any]]:
    """Return every booking of a stage by entry, in order."""
    query = select(bookings).where(bookings.c.season == season.id, bookings.c.stage == stage)
    if asset is not None:
        query = query.where(bookings.c.asset == asset)
    found: dict[str, list[Any]] = {}
    for row in db.execute(query.order_by(bookings.c.id)):
        found.setdefault(row.entry, []).append(row)
    return found


def _correct_account(
    db: Connection, policy: DailyTarget | SharedTarget, steps: list[Step], booked: list[Any], season: Season
) -> int:
    """Append what changes in one account. The money moves once, with the newest line; the others only restate."""
    again = replay(policy, steps)
    last: dict[int, Any] = {}
    newest: dict[str, int] = {}
    for row in booked:
        last[row.slot] = row
        newest[row.asset] = max(newest.get(row.asset, 0), row.slot)
    value = booked[-1].nav
    target = again[steps[-1][1].slot].nav
    held = {row.slot: _exposure(booked, row.asset) for row in booked if row.slot in newest.values()}
    restated = []
    for slot, made in again.items():
        row = last[slot]
        if made.kind != "settled":
            continue
        other = not _close(made.earned or 0.0, row.earned or 0.0)
        # What is behind an asset now is told with its newest decision.
        behind = made.exposure is not None and slot in held and not _same(made.exposure, held[slot] or 0.0)
        # One account over all assets: what it was worth before the decision changes with every other asset.
        worth = made.exposure is not None and not _same(made.nav_before, _before(row))
        if other or behind or worth:
            restated.append((row, made))
    if not restated:
        return 0
    rows = []
    for place, (row, made) in enumerate(restated):
        ends = place == len(restated) - 1
        line = Booking(
            kind="corrected",
            position_before=made.position_before,
            position=made.position,
            nav_before=value,
            fee=made.fee,
            nav=target if ends else value,
            earned=made.earned,
            exposure_before=made.exposure_before,
            exposure=made.exposure,
        )
        rows.append(
            {
                "slot": row.slot,
                "number": row.number + 1,
                "season": row.season,
                "stage": row.stage,
                "entry": row.entry,
                "asset": row.asset,
                "restated_before": made.nav_before,
                **msgspec.structs.asdict(line),
            }
        )
    db.execute(insert(bookings), rows)
    if season.rules.feedback:
        for row, made in restated:
            db.execute(update(rewards).where(rewards.c.slot == row.slot).values(reward=made.earned))
    return len(rows)


def _before(row: Any) -> float:
    return float(row.nav_before if row.restated_before is None else row.restated_before)


def _exposure(booked: list[Any], asset: str) -> float | None:
    """Return what the journal says is behind an asset now."""
    found = [row.exposure for row in booked if row.asset == asset]
    return found[-1] if found else None


def _close(one: float, other: float) -> bool:
    return abs(one - other) <= SAME * max(1.0, abs(one), abs(other))
