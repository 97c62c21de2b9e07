"""What decisions do to accounts: execution at the decision's price, settlement at the next one."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, Connection, bindparam, func, select, update

from tradeassay.arena.rounds.shared_account import execute_shared, settle_shared
from tradeassay.arena.season import Season
from tradeassay.arena.state.records import Round, Slot, Stage, read_slot
from tradeassay.arena.state.store import Store, reward
from tradeassay.arena.state.tables import rounds, slots
from tradeassay.benchmarks.ama.rules import fee_factor, next_position

_SHOWN = "id round season asset session stage entry status action position earned nav nav_before".split()
_BRIEF: tuple[Column[Any], ...] = tuple(slots.c[name] for name in _SHOWN)


def execute(store: Store, season: Season, round: Round, now: str) -> bool:
    """Take the positions of a round whose slots are all closed; False when some are open or it was done before."""
    if season.rules.cross_asset:
        return execute_shared(store, season, round, now)

    def moves(db: Connection) -> dict[str, Any] | None:
        if db.execute(select(func.count()).where(slots.c.round == round.id, slots.c.status == "open")).scalar():
            return None
        before = _accounts(db, season.id, round)
        changed = 0
        written = []
        for slot in _slots(db, round):
            held, nav = before.get(slot.entry, (0, 1.0))
            position = next_position(slot.action or "HOLD", held, season.money.hold)
            changed += position != held
            paid = nav * fee_factor(held, position, season.money.fee_bp)
            values = {"position_before": held, "position": position, "nav_before": nav}
            written.append({"which": slot.id, **values, "fee": nav - paid, "nav": paid})
        _write(db, written)
        return {"changed": changed}

    return store.advance(round, moves, "executed", now)


def settle(store: Store, season: Season, round: Round, base: float, price: float, now: str) -> bool:
    """Credit what the positions of an executed round earned from ``base`` to ``price``; False when done before."""
    if season.rules.cross_asset:
        return settle_shared(store, season, round, base, price, now)

    def moves(db: Connection) -> dict[str, Any] | None:
        moved = price / base - 1.0
        written = []
        for slot in _slots(db, round):
            assert slot.nav is not None and slot.nav_before is not None and slot.position is not None
            # A short that loses more than everything ends at nothing: paper trading has no debtors.
            nav = max(slot.nav * (1.0 + slot.position * moved), 0.0)
            earned = nav / slot.nav_before - 1.0 if slot.nav_before > 0 else 0.0
            written.append({"which": slot.id, "earned": earned, "nav": nav})
            if season.rules.feedback:
                reward(db, slot, earned)
        _write(db, written)
        prices = {"base_price": base, "next_price": price}
        db.execute(update(rounds).where(rounds.c.id == round.id).values(**prices))
        return {"moved": moved}

    return store.advance(round, moves, "settled", now)


def _slots(db: Connection, round: Round) -> list[Slot]:
    query = select(*_BRIEF).where(slots.c.round == round.id).order_by(slots.c.id)
    return [read_slot(row) for row in db.execute(query)]


def _write(db: Connection, rows: list[dict[str, Any]]) -> None:
    """Update several slots with one statement; every row names the same columns."""
    if rows:
        columns: dict[str, Any] = {name: bindparam(f"b_{name}") for name in rows[0] if name != "which"}
        statement = update(slots).where(slots.c.id == bindparam("which")).values(columns)
        db.execute(statement, [{n if n == "which" else f"b_{n}": v for n, v in row.items()} for row in rows])


def accounts(store: Store, season: str, round: Round) -> dict[str, tuple[int, float]]:
    """Return every entry's position and value just before a round is executed."""
    with store.read() as db:
        return _accounts(db, season, round)


def _accounts(db: Connection, season: str, round: Round) -> dict[str, tuple[int, float]]:
    """Return what the last earlier round of the same stage left; a new stage starts with nothing held and 1."""
    last = _previous(db, season, round.asset, round.session, round.stage)
    if last is None:
        return {}
    query = select(slots.c.entry, slots.c.position, slots.c.nav).where(slots.c.round == last)
    return {row.entry: (row.position, row.nav) for row in db.execute(query)}


def _previous(db: Connection, season: str, asset: str, session: str, stage: Stage) -> int | None:
    where = (
        rounds.c.season == season,
        rounds.c.asset == asset,
        rounds.c.session < session,
        rounds.c.stage == stage,
    )
    query = select(rounds.c.id).where(*where).order_by(rounds.c.session.desc()).limit(1)
    found: int | None = db.execute(query).scalar()
    return found


def histories(db: Connection, season: str, asset: str, before: str, most: int) -> dict[str, list[Slot]]:
    """Return every entry's slots in the last settled rounds of an asset before a session, oldest first."""
    where = (rounds.c.season == season, rounds.c.asset == asset, rounds.c.session < before)
    last = select(rounds.c.id).where(*where, rounds.c.phase == "settled")
    ids = [row.id for row in db.execute(last.order_by(rounds.c.session.desc()).limit(most))]
    found: dict[str, list[Slot]] = {}
    for row in db.execute(select(*_BRIEF).where(slots.c.round.in_(ids)).order_by(slots.c.session)):
        found.setdefault(row.entry, []).append(read_slot(row))
    return found
