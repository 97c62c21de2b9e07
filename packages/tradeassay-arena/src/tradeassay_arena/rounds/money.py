"""Book decisions: ``execute`` sets positions and pays fees, ``settle`` books returns.

:func:`execute` books at the decision's price, and :func:`settle` at the next price. The account
rules are in :mod:`tradeassay_arena.daily_target`. All bookings of a round are appended in the
transaction that moves the round to its next phase, so a killed process leaves all or none of them.
"""

from __future__ import annotations

import math
from typing import Any

from sqlalchemy import ColumnElement, Connection, Select, bindparam, func, select, update

from tradeassay_arena.daily_target import Booking, DailyTarget, SharedTarget
from tradeassay_arena.season import Season
from tradeassay_arena.state.rows import Round, Slot, Stage, read_row
from tradeassay_arena.state.store import Store, book
from tradeassay_arena.state.tables import bookings, decisions, rounds, slots
from tradeassay_bench.core.arena import SettledOutcome

_BRIEF = "id round season asset session stage entry status action allocation".split()
_SLOTS = select(*decisions.c[*_BRIEF]).filter_by(round=bindparam("round")).order_by(decisions.c.id)
_OPEN = select(func.count(decisions.c.id)).filter_by(round=bindparam("round"), status="open")
_OF_SLOT = decisions.c.id == bookings.c.slot
_EXECUTED = select(bookings).join(decisions, _OF_SLOT)
_EXECUTED = _EXECUTED.where(decisions.c.round == bindparam("round"), bookings.c.number == 0)


def _newest(*accounts: ColumnElement[str]) -> Select[Any]:
    """Return a query for the newest booking of every account of a stage.

    ``accounts`` are the columns that identify an account.
    """
    mine = select(func.max(bookings.c.id)).filter_by(
        season=bindparam("season"), stage=bindparam("stage")
    )
    return select(*bookings.c["entry", "asset", "nav", "exposure"]).where(
        bookings.c.id.in_(mine.group_by(*accounts))
    )


_VALUES, _EXPOSURES = _newest(bookings.c.entry), _newest(bookings.c.entry, bookings.c.asset)
_ROUNDS = select(rounds.c.id).filter_by(season=bindparam("season"), asset=bindparam("asset"))
_BEFORE = _ROUNDS.where(rounds.c.session < bindparam("session")).order_by(rounds.c.session.desc())
_PREVIOUS = _BEFORE.filter_by(stage=bindparam("stage")).limit(1)
_SETTLED = _BEFORE.filter_by(phase="settled").limit(bindparam("most"))
_PRICED = update(rounds).filter_by(id=bindparam("which"))
_PRICED = _PRICED.values(
    {name: bindparam(f"b_{name}") for name in ("base_price", "next_price", "next_session")}
)
_LATER = bookings.alias("later")
# The account's newest booking, which may be a correction of an older decision.
_NAV = select(_LATER.c.nav).where(
    *(_LATER.c[name] == decisions.c[name] for name in ("season", "stage", "entry", "asset"))
)
_HELD = (
    select(
        decisions.c.entry,
        bookings.c.position,
        _NAV.order_by(_LATER.c.id.desc()).limit(1).scalar_subquery().label("nav"),
    )
    .join(bookings, _OF_SLOT & (bookings.c.number == 0))
    .where(decisions.c.round == bindparam("round"))
)
_PAST = select(*slots.c["entry", "session", "action", "position", "earned"]).order_by(
    slots.c.session
)
_PAST = _PAST.where(slots.c.round.in_(bindparam("rounds", expanding=True)))


def execute(store: Store, season: Season, round: Round, now: str) -> bool:
    """Set the positions of a round whose slots are all closed, and pay the fees.

    Returns whether the round was executed. Returns False if a slot is still open or the round was
    executed before.
    """

    def moves(db: Connection) -> dict[str, Any] | None:
        if db.execute(_OPEN, {"round": round.id}).scalar():
            return None
        then, taken = season.on(round.session), []
        money = then.money
        if season.rules.cross_asset:
            # Rounds of two assets book to the same accounts, so only one of them may book at a
            # time.
            store.lock_season(db, season.id)
            shared = SharedTarget(hold=money.hold, fee_bp=money.fee_bp)
            values, held = _values(db, then, round.stage), _exposures(db, then, round.stage)
            for slot in _slots(db, round):
                mine = held.get(slot.entry, {})
                booking = shared.execute(
                    slot.action or "HOLD",
                    1.0 / len(then.assets) if slot.allocation is None else slot.allocation,
                    value=values[slot.entry],
                    before=mine.get(round.asset, 0.0),
                    others=math.fsum(
                        abs(money) for asset, money in mine.items() if asset != round.asset
                    ),
                )
                taken.append((slot, booking))
        else:
            policy = DailyTarget(hold=money.hold, fee_bp=money.fee_bp)
            before = accounts(db, season, round)
            for slot in _slots(db, round):
                booking = policy.execute(slot.action or "HOLD", *before.get(slot.entry, (0, 1.0)))
                taken.append((slot, booking))
        book(db, taken)
        return {"changed": sum(made.position != made.position_before for _, made in taken)}

    return store.advance(round, moves, "executed", now)


def settle(
    store: Store, season: Season, round: Round, base: float, price: float, session: str, now: str
) -> bool:
    """Book the returns of an executed round, from the price ``base`` to the price ``price``.

    ``session`` is the session of ``price``. Returns whether the round was settled. Returns False if
    it was settled before.
    """
    money = season.money

    def moves(db: Connection) -> dict[str, Any] | None:
        moved = price / base - 1.0
        executed = {
            r.slot: read_row(Booking, r) for r in db.execute(_EXECUTED, {"round": round.id})
        }
        held = [(slot, executed[slot.id]) for slot in _slots(db, round)]
        if season.rules.cross_asset:
            store.lock_season(db, season.id)
            values, shared = (
                _values(db, season, round.stage),
                SharedTarget(hold=money.hold, fee_bp=money.fee_bp),
            )
            made = [(slot, shared.settle(last, values[slot.entry], moved)) for slot, last in held]
        else:
            own = DailyTarget(hold=money.hold, fee_bp=money.fee_bp)
            made = [(slot, own.settle(last, moved)) for slot, last in held]
        book(db, made, rewarded=season.rules.feedback)
        prices = {"b_base_price": base, "b_next_price": price, "b_next_session": session}
        db.execute(_PRICED, {"which": round.id, **prices})
        return {"moved": moved}

    return store.advance(round, moves, "settled", now)


def shared_accounts(store: Store, season: Season, stage: Stage) -> dict[str, dict[str, Any]]:
    """Return each entry's account over all assets, for its packet.

    An account has its value (1 at the start) and the signed money invested in each asset.
    """
    with store.read() as db:
        values, held = _values(db, season, stage), _exposures(db, season, stage)
    return {
        entry.id: {
            "account": values[entry.id],
            "exposures": {
                asset: money for asset, money in sorted(held.get(entry.id, {}).items()) if money
            },
        }
        for entry in season.all_entries
    }


def outcomes(
    db: Connection, season: str, asset: str, before: str, most: int
) -> dict[str, list[SettledOutcome]]:
    """Return each entry's actions and returns in settled rounds of an asset, oldest first.

    The rounds are the last ``most`` settled rounds before the session ``before``.
    """
    asked = {"season": season, "asset": asset, "session": before, "most": most}
    ids = list(db.execute(_SETTLED, asked).scalars())
    found: dict[str, list[SettledOutcome]] = {}
    for entry, session, action, position, earned in db.execute(_PAST, {"rounds": ids}).all():
        outcome = SettledOutcome(
            date=session, action=action or "HOLD", position=position or 0, earned=earned or 0.0
        )
        found.setdefault(entry, []).append(outcome)
    return found


def accounts(db: Connection, season: Season, round: Round) -> dict[str, tuple[int, float]]:
    """Return every entry's position and account value just before a round is executed.

    Both are taken after the last earlier round of the same stage. In the first live round of a
    season that keeps positions, the position is taken from the end of the warm-up and the value
    is 1. Entries without an earlier booking are left out. Their accounts start with 1 and no
    position.
    """
    asked = {
        "season": season.id,
        "asset": round.asset,
        "session": round.session,
        "stage": round.stage,
    }
    last = db.execute(_PREVIOUS, asked).scalar()
    if last is not None:
        return {
            entry: (position, nav) for entry, position, nav in db.execute(_HELD, {"round": last})
        }
    if round.stage != "live" or not season.keeps_position:
        return {}
    last = db.execute(_PREVIOUS, {**asked, "stage": "warm-up"}).scalar()
    if last is None:
        return {}
    return {entry: (position, 1.0) for entry, position, _ in db.execute(_HELD, {"round": last})}


def _values(db: Connection, season: Season, stage: Stage) -> dict[str, float]:
    """Return the value of every entry's account over all assets.

    An account without a booking has the value 1.
    """
    found = dict.fromkeys((entry.id for entry in season.all_entries), 1.0)
    rows = db.execute(_VALUES, {"season": season.id, "stage": stage})
    return {**found, **{row.entry: row.nav for row in rows}}


def _exposures(db: Connection, season: Season, stage: Stage) -> dict[str, dict[str, float]]:
    """Return the signed money that every entry has invested in every asset."""
    found: dict[str, dict[str, float]] = {}
    for row in db.execute(_EXPOSURES, {"season": season.id, "stage": stage}):
        found.setdefault(row.entry, {})[row.asset] = row.exposure
    return found


def _slots(db: Connection, round: Round) -> list[Slot]:
    return [Slot(**row) for row in db.execute(_SLOTS, {"round": round.id}).mappings().all()]
