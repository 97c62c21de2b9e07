"""Record live prices, book revised prices as corrections, and hold bars that look wrong.

A live price belongs to a session and to the time at which it was known.

Rounds are decided and settled on the prices published at their decision times. Each later answer of
the vendor is compared with the closes that were used. If a close differs, its session gets the new
price. Every account is then replayed from its decisions on the corrected prices, and the difference
is booked as a correction. After the last revision an account equals the same decisions on the
vendor's final prices.

A bar that looks wrong delays its round until an operator or a second look accepts the bar. The
delay and the acceptance are on record.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from math import log
from typing import Any, Literal, NamedTuple

import msgspec
from sqlalchemy import Connection, insert, select, update

from tradeassay.core.errors import UserError
from tradeassay_arena.daily_target import DailyTarget, DecisionPlayed, SharedTarget, replay
from tradeassay_arena.season import Season
from tradeassay_arena.state import tables as t
from tradeassay_arena.state.rows import Round, Stage, read_row
from tradeassay_arena.state.store import ROUND, Store, add_event, add_unless_there, insert_unless
from tradeassay_bench.core.arena import Action
from tradeassay_bench.core.errors import SourceError
from tradeassay_bench.core.time import SECOND, parse_iso

SAME = 1e-14
"""Relative difference below which two prices are equal. Adjusting for a split and back adds
rounding errors.
"""


class Close(msgspec.Struct, frozen=True, kw_only=True):
    """A session's close as traded, and the close adjusted to today's share.

    The adjustment is for splits, or for splits and dividends.
    """

    close: float
    adjusted: float


Closes = Mapping[str, Close]
"""A vendor's present closes by session, oldest first."""


class Revision(msgspec.Struct, frozen=True, kw_only=True):
    """A price that the vendor has changed.

    ``restated`` is the number of decisions whose return changed in the same correction.
    """

    asset: str
    session: str
    old: float
    new: float
    known_at: str
    restated: int


def carried(
    round: Round, closes: Closes, session: str, before: tuple[str, float] | None = None
) -> float:
    """Return a round's price, converted to the share of a later session.

    The round keeps the price of its decision, even if the vendor has revised that price. ``before``
    is an earlier session with the price that was known at the decision. A vendor that restates all
    of its past after a split multiplies both prices by one factor. This changes the unit and is not
    a revision.
    """
    here, there = closes.get(round.session), closes.get(session)
    if here is None or there is None:
        return round.price
    earlier = None if before is None else closes.get(before[0])
    scale = here.close / round.price
    restated = (
        before is not None
        and earlier is not None
        and abs(earlier.close / before[1] / scale - 1.0) < 1e-6
    )
    if here.close == round.price or (restated and abs(scale - 1.0) > 1e-6):
        return (
            here.adjusted * (there.close / there.adjusted)
            if there.adjusted != there.close
            else here.adjusted
        )
    return round.price * (here.adjusted / here.close) * (there.close / there.adjusted)


def record_closes(
    db: Connection, season: str, asset: str, closes: Closes, now: str, *, used: Collection[str]
) -> None:
    """Append new or changed closes for the sessions in ``used`` and for recorded sessions.

    ``used`` are the sessions whose closes a round uses.
    """
    own, since = t.price_vintages.c, min(closes, default="")
    query = select(own.session, own.number, own.close).filter_by(season=season, asset=asset)
    query = query.where(own.session >= since).order_by(own.number)
    known = {row.session: row for row in db.execute(query)}  # the newest close of each session
    rows = []
    for session, told in closes.items():
        there = known.get(session)
        if session not in used if there is None else _same(there.close, told.close):
            continue
        row = {
            "season": season,
            "asset": asset,
            "session": session,
            "close": told.close,
            "known_at": now,
        }
        number = 0 if there is None else there.number + 1
        rows.append({**row, "number": number, "used": int(session in used)})
    if (
        rows
    ):  # another worker may have written the same closes. The next look records a different close
        db.execute(insert_unless(db, t.price_vintages).on_conflict_do_nothing(), rows)


def correct(
    store: Store, season: Season, asset: str, closes: Closes, now: str, *, without: Collection[str]
) -> tuple[Revision, ...]:
    """Compare a vendor's closes with the prices of settled rounds, and book every difference.

    Returns the booked revisions. The whole correction is one transaction, and a second call with
    the same closes does nothing. Only settled rounds change: an open round uses its price until it
    is settled and is corrected afterwards. The closes of sessions in ``without`` are doubtful and
    not booked yet (:func:`doubted_revisions`).
    """
    if not closes:
        return ()
    mine = t.corrections.c.season == season.id
    with store.read() as db:  # usually nothing has changed, and a read takes no lock
        # In an account over all assets, an open position is sized by the account before the
        # correction.
        again = (
            season.rules.cross_asset
            and db.execute(select(t.corrections.c.id).where(mine).limit(1)).first()
        )
        if not again and not _moved(_settled(db, season, asset, closes), without):
            return ()
    with store.write("corrected") as db:
        store.lock_season(db, season.id)
        found = _settled(db, season, asset, closes)
        moved = _moved(found, without)
        if not moved and not again:
            return ()
        used = {one.round.session for one in found}
        record_closes(db, season.id, asset, closes, now, used=used)
        for one in moved:
            values = dict(zip(("base_price", "next_price"), one.new, strict=True))
            db.execute(update(t.rounds).where(t.rounds.c.id == one.round.id).values(**values))
        stages = {one.round.stage for one in (found if again else moved)}
        restated = sum(_book(db, season, asset, stage) for stage in sorted(stages))
        own, told = t.price_vintages.c, dict[str, tuple[float, float]]()
        query = (
            select(own.session, own.close)
            .filter_by(season=season.id, asset=asset)
            .order_by(own.number)
        )
        for session, close in db.execute(
            query
        ):  # the last close before the present one, and the present one
            if session in closes and not _same(close, closes[session].close):
                told[session] = (close, closes[session].close)
        made = []
        for session, (old, new) in sorted(_revised(found, moved).items()):
            # Show the vendor's two prices if it gave two. The prices of the accounts may be in
            # another unit.
            old, new = told.get(session, (old, new))
            row: dict[str, Any] = {"asset": asset, "session": session, "old": old, "new": new}
            row["restated"] = restated
            db.execute(insert(t.corrections).values(season=season.id, known_at=now, **row))
            add_event(db, season.id, "corrected", now, row)
            made.append(Revision(known_at=now, **row))
        return tuple(made)


def doubted_revisions(
    store: Store, season: Season, asset: str, closes: Closes, now: str
) -> frozenset[str]:
    """Return the sessions whose closes have doubtful revisions that are not accepted yet.

    A revision is doubtful if it changes a settled return by more than a bar may jump. The revision
    is held like a bar. It is booked if an operator accepts it, or if a later look finds it again
    after the same delay. A revision that has disappeared by then changes no account.
    """

    with store.read() as db:
        found = _settled(db, season, asset, closes)
    moved = _moved(found)
    told = _revised(found, moved)
    limit = season.prices.jump(season.asset(asset).kind)
    far = set()
    for one in moved:
        if abs((one.new[1] / one.new[0]) / (one.old[1] / one.old[0]) - 1.0) > limit:
            ends = [end for end in one.sessions if end in told]
            far.add(max(ends, key=lambda end: abs(log(told[end][1] / told[end][0]))))
    for bar in held_bars_of(store, season.id):
        if (
            bar.asset == asset
            and bar.word is None
            and bar.session in closes
            and bar.session not in far
        ):
            end_hold(store, season.id, asset, bar.session, "replaced", now)
    doubted = set()
    for end in far:
        old, new = told[end]
        reason = f"the vendor says {new:g} now for a close of {old:g}"
        if not hold_or_accept(store, season, asset, end, new, reason, now, adjusted=True):
            doubted.add(end)
    return frozenset(doubted)


def revisions(store: Store, season: str, most: int = 200) -> tuple[Revision, ...]:
    """Return the newest corrections of a season, newest first."""
    query = (
        select(t.corrections)
        .filter_by(season=season)
        .order_by(t.corrections.c.id.desc())
        .limit(most)
    )
    return tuple(read_row(Revision, row) for row in store.rows(query))


def _same(one: float, other: float) -> bool:
    return abs(one - other) <= SAME * max(abs(one), abs(other))


class _Repriced(NamedTuple):
    """A settled round, its two sessions, the prices of its settlement and the present prices."""

    round: Round
    sessions: tuple[str, str]
    old: tuple[float, float]
    new: tuple[float, float]


def _settled(db: Connection, season: Season, asset: str, closes: Closes) -> list[_Repriced]:
    """Return the settled rounds whose two sessions have a vendor's close, oldest first.

    Prices are per share of the later session.
    """
    query = select(*ROUND).filter_by(season=season.id, asset=asset, phase="settled")
    query = query.where(t.rounds.c.session >= min(closes, default="~")).order_by(t.rounds.c.session)
    found = []
    for row in db.execute(query):
        round = read_row(Round, row)
        sessions = round.session, round.next_session or ""
        here, there = map(closes.get, sessions)
        if here is None or there is None or round.base_price is None or round.next_price is None:
            continue
        now = (here.adjusted * (there.close / there.adjusted), there.close)
        found.append(_Repriced(round, sessions, (round.base_price, round.next_price), now))
    return found


def _moved(found: Iterable[_Repriced], without: Collection[str] = ()) -> list[_Repriced]:
    """Return the rounds whose return has changed, except rounds with a session in ``without``.

    A change of unit is not a revision, because returns stay equal. For example, a vendor halves all
    earlier prices after a split.
    """
    return [
        one
        for one in found
        if not _same(one.new[1] / one.new[0], one.old[1] / one.old[0])
        and not set(one.sessions) & set(without)
    ]


def _revised(
    found: Iterable[_Repriced], moved: Iterable[_Repriced]
) -> dict[str, tuple[float, float]]:
    """Return the old and the new price of each revised session in the rounds of ``moved``.

    Prices are in the vendor's present unit. If the vendor multiplied all earlier prices by one
    factor, the most common ratio of new to old prices is this factor.
    """
    units = Counter(_ratio(one.new[0], one.old[0]) for one in found)
    often = max(units.values(), default=0)
    # A single price cannot show a change of unit.
    unit = 1.0 if often < 2 or units[1.0] == often else units.most_common(1)[0][0]
    told: dict[str, tuple[float, float]] = {}
    for one in moved:
        ends = zip(one.sessions, one.old, one.new, strict=True)
        changed = {
            end: (old * unit, new) for end, old, new in ends if _ratio(new, old * unit) != 1.0
        }
        told |= changed or {one.sessions[0]: (one.old[0], one.new[0])}
    return told


def _ratio(one: float, other: float) -> float:
    """Return the ratio of two prices to nine significant digits, which removes rounding errors."""
    return float(f"{one / other:.9g}")


def _book(db: Connection, season: Season, asset: str, stage: Stage) -> int:
    """Replay all accounts of a stage with bookings in an asset, and book the corrections.

    Returns the number of restated decisions.
    """
    shared, on = season.rules.cross_asset, cache(season.on)
    kind = SharedTarget if shared else DailyTarget
    policy = kind(hold=season.money.hold, fee_bp=season.money.fee_bp)
    mine = [t.bookings.c.season == season.id, t.bookings.c.stage == stage]
    if not shared:
        mine.append(t.bookings.c.asset == asset)
    columns = (
        *t.decisions.c["action", "allocation", "session"],
        *t.rounds.c["base_price", "next_price"],
    )
    query = select(t.bookings, *columns).join(t.decisions, t.decisions.c.id == t.bookings.c.slot)
    query = (
        query.join(t.rounds, t.rounds.c.id == t.decisions.c.round)
        .where(*mine)
        .order_by(t.bookings.c.id)
    )
    booked: dict[str, list[Any]] = {}
    for row in db.execute(query):
        booked.setdefault(row.entry, []).append(row)
    return sum(
        _correct_account(db, policy, booked[entry], on, season.rules.feedback)
        for entry in sorted(booked)
    )


def decision_played(
    on_day: Season, slot: int, decision: Any, round: Any, action: Action
) -> DecisionPlayed:
    """Return a decision with its round's present return, for a replay of its account.

    ``on_day`` is the season with the rules of the decision's day.
    """
    return DecisionPlayed(
        slot=slot,
        asset=decision.asset,
        action=action,
        share=1.0 / len(on_day.assets) if decision.allocation is None else decision.allocation,
        moved=round.next_price / round.base_price - 1.0
        if round.next_price and round.base_price
        else None,
        fee_bp=on_day.money.fee_bp,
    )


def _correct_account(
    db: Connection,
    policy: DailyTarget | SharedTarget,
    booked: list[Any],
    on: Callable[[str], Season],
    rewarded: bool,
) -> int:
    """Append the corrections of one account, and return the number of restated decisions.

    Only the last appended line changes the account's value. The other lines restate returns.
    """
    steps = [
        (row.kind, decision_played(on(row.session), row.slot, row, row, row.action or "HOLD"))
        for row in booked
        if row.number <= 1
    ]
    # A live account begins with the position of its warm-up, which prices do not change.
    made_again = replay(policy, steps, booked[0].position_before)
    again = {played.slot: made for (_, played), made in zip(steps, made_again, strict=True)}
    last = {row.slot: row for row in booked}
    behind_now = {row.asset: row.exposure for row in booked}  # the journal's newest exposure
    # The newest decision of each asset has its present exposure.
    newest = {row.asset: row.slot for row in sorted(booked, key=lambda row: row.slot)}
    held = {slot: behind_now[asset] for asset, slot in newest.items()}
    restated = []
    for slot, made in again.items():
        row = last[slot]
        if made.kind != "settled":
            continue
        one, two = made.earned or 0.0, row.earned or 0.0
        other = abs(one - two) > SAME * max(1.0, abs(one), abs(two))
        behind = (
            made.exposure is not None
            and slot in held
            and not _same(made.exposure, held[slot] or 0.0)
        )
        # In an account over all assets, the value before the decision changes with every other
        # asset.
        before = row.nav_before if row.restated_before is None else row.restated_before
        worth = made.exposure is not None and not _same(made.nav_before, float(before))
        if other or behind or worth:
            restated.append((row, made))
    value, rows = booked[-1].nav, []
    for row, made in restated:
        copied = {
            name: getattr(row, name) for name in ("slot", "season", "stage", "entry", "asset")
        }
        line = {
            **msgspec.structs.asdict(made),
            "kind": "corrected",
            "nav_before": value,
            "nav": value,
        }
        rows.append(
            {**copied, **line, "number": row.number + 1, "restated_before": made.nav_before}
        )
        if rewarded:
            db.execute(update(t.rewards).filter_by(slot=row.slot).values(reward=made.earned))
    if rows:
        rows[-1]["nav"] = made_again[-1].nav
        db.execute(insert(t.bookings), rows)
    return len(rows)


# -- bars that look wrong --------------------------------------------------------------------------

Word = Literal["accept", "refuse"]
End = Literal["believed", "replaced", "missed"]
"""The way in which a hold ends without an operator.

``believed``: a second look found the price again. ``replaced``: the vendor sent a plausible price.
``missed``: the session's time was over.
"""


class Held(SourceError):
    """Raised while a bar or a revision is held and not yet accepted."""


class HeldBar(msgspec.Struct, frozen=True, kw_only=True):
    """A bar that is or was held: its price, the reason, and the start and end of the hold.

    ``word`` is None while the bar is held. It is then the operator's word, or the way in which the
    hold ended without an operator.
    """

    asset: str
    session: str
    price: float
    reason: str
    since: str
    word: Word | End | None
    word_by: str | None
    word_at: str | None


def held_bar(store: Store, season: str, asset: str, session: str) -> HeldBar | None:
    """Return the bar that is or was held for a session, or None."""
    found = store.rows(select(t.held_bars).filter_by(season=season, asset=asset, session=session))
    return read_row(HeldBar, found[0]) if found else None


def held_bars_of(store: Store, season: str) -> tuple[HeldBar, ...]:
    """Return all bars of a season that were ever held, newest first."""
    query = select(t.held_bars).filter_by(season=season).order_by(t.held_bars.c.since.desc())
    return tuple(read_row(HeldBar, row) for row in store.rows(query))


def hold_or_accept(
    store: Store,
    season: Season,
    asset: str,
    session: str,
    price: float,
    why: str,
    now: str,
    *,
    alone: bool = True,
    adjusted: bool = False,
) -> bool:
    """Return whether a doubtful price is accepted, and hold it otherwise.

    The price is accepted if an operator accepted it, or if a later look found it again and
    ``alone`` allows this. A held price is recorded with the reason ``why``. A different price
    starts a new hold. An ``adjusted`` price may differ from the held price by a rounding error. Any
    other price must be equal.
    """
    known = held_bar(store, season.id, asset, session)
    if known is not None and (known.price == price or (adjusted and _same(known.price, price))):
        waited = parse_iso(now) - parse_iso(known.since)
        if alone and known.word is None and waited >= season.prices.look_again_s * SECOND:
            end_hold(store, season.id, asset, session, "believed", now)
            return True
        return known.word in ("accept", "believed")
    place = {"season": season.id, "asset": asset, "session": session}
    row = {
        "price": price,
        "reason": why,
        "since": now,
        "word": None,
        "word_by": None,
        "word_at": None,
    }
    told = {"asset": asset, "session": session, "price": price, "reason": why}
    with store.write("hold") as db:
        if known is None:
            held = add_unless_there(
                db, t.held_bars, {**place, **row}
            )  # unless another worker was first
        else:
            db.execute(update(t.held_bars).filter_by(**place).values(**row))
            held = True
        if held:
            add_event(db, season.id, "held", now, told)
    return False


def judge_bar(
    store: Store, season: str, asset: str, session: str, word: Word, by: str, now: str
) -> HeldBar:
    """Record that an operator accepts or refuses a held bar, and return the bar.

    Raises :class:`UserError` if no bar was held for the session.
    """
    said = {"word": word, "word_by": by[:64], "word_at": now}
    mine = update(t.held_bars).filter_by(season=season, asset=asset, session=session)
    with store.write("word") as db:
        if db.execute(mine.values(**said)).rowcount:
            add_event(
                db,
                season,
                "word",
                now,
                {"asset": asset, "session": session, "word": word, "by": by[:64]},
            )
    found = held_bar(store, season, asset, session)
    if found is None:
        what = f"no bar of {asset} is held for {session} in season '{season}'"
        raise UserError(what, hint="list held bars with tradeassay arena amend bar")
    return found


def end_hold(store: Store, season: str, asset: str, session: str, end: End, now: str) -> None:
    """Record how a hold ended without an operator. A hold that has ended is not changed."""
    waiting = update(t.held_bars).filter_by(season=season, asset=asset, session=session, word=None)
    with store.write("hold") as db:
        db.execute(waiting.values(word=end, word_at=now))
