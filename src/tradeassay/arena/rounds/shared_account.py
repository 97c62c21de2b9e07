"""One account per entry over all assets (the optional rule ``cross_asset``).

An entry starts its stage with 1. A decision to BUY or SELL asks for ``allocation`` of the account behind the asset
(without one: an equal share per asset); what other assets already bind is not available, so the sum of all
exposures never exceeds the account. HOLD leaves the exposure as it is, or closes it, as the convention says.

An asset is revalued at its own sessions, at the prices of its own rounds. The fee is paid on the money that
changes hands, also where a short that has shrunk or grown is brought back to size. All of it happens in the
transaction of the round's phase, so a killed process leaves either all or nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from sqlalchemy import Connection, func, insert, select, update

from tradeassay.arena.season import Season
from tradeassay.arena.state.records import Round, Slot, read_slot
from tradeassay.arena.state.store import Store, reward
from tradeassay.arena.state.tables import purses, rounds, slots, stakes
from tradeassay.core.arena import Action


class Trade(NamedTuple):
    """What an execution does to an account: the money behind the asset afterwards, and the fee."""

    exposure: float
    fee: float


def size(
    action: Action,
    share: float,
    *,
    value: float,
    before: float,
    others: float,
    hold: str,
    fee_bp: float,
) -> Trade:
    """Return the trade of a decision.

    ``value`` is the account before the trade, ``before`` the signed money behind the asset, ``others`` the money
    that other assets bind (the sum of absolute exposures). The new exposure is scaled by what the fee leaves.
    """
    if value <= 0:
        return Trade(0.0, 0.0)
    if action == "HOLD":
        if hold == "keep":
            return Trade(before, 0.0)
        target = 0.0
    else:
        room = max(value - others, 0.0)
        target = min(share * value, room) * (1.0 if action == "BUY" else -1.0)
    fee = min(abs(target - before) * fee_bp / 10_000.0, value)
    return Trade(target * (value - fee) / value, fee)


def execute_shared(store: Store, season: Season, round: Round, now: str) -> bool:
    """Take the positions of a round whose slots are all closed; False when some are open or it was done before."""

    def moves(db: Connection) -> dict[str, Any] | None:
        if db.execute(select(func.count()).where(slots.c.round == round.id, slots.c.status == "open")).scalar():
            return None
        values = _values(db, season, round)
        held = _held(db, season, round)
        changed = 0
        for slot in _slots(db, round):
            mine = held.get(slot.entry, {})
            before = mine.get(round.asset, 0.0)
            value = values[slot.entry]
            trade = size(
                slot.action or "HOLD",
                1.0 / len(season.assets) if slot.allocation is None else slot.allocation,
                value=value,
                before=before,
                others=sum(abs(money) for asset, money in mine.items() if asset != round.asset),
                hold=season.money.hold,
                fee_bp=season.money.fee_bp,
            )
            changed += _sign(trade.exposure) != _sign(before)
            _execute_one(db, slot, before, trade, value)
        return {"changed": changed}

    return store.advance(round, moves, "executed", now)


def settle_shared(store: Store, season: Season, round: Round, base: float, price: float, now: str) -> bool:
    """Credit what the exposures of an executed round earned from ``base`` to ``price``; False when done before."""

    def moves(db: Connection) -> dict[str, Any] | None:
        moved = price / base - 1.0
        values = _values(db, season, round)
        staked = {row.slot: row for row in db.execute(select(stakes).where(stakes.c.round == round.id))}
        for slot in _slots(db, round):
            assert slot.nav_before is not None and slot.fee is not None
            stake, value = staked[slot.id], values[slot.entry]
            # An account that is gone stays gone: paper trading has no debtors.
            after = max(value + stake.exposure * moved, 0.0) if value > 0 else 0.0
            gained = after - value - slot.fee
            earned = gained / slot.nav_before if slot.nav_before > 0 else 0.0
            carried = stake.exposure * (1.0 + moved) if after > 0 else 0.0
            db.execute(update(stakes).where(stakes.c.slot == slot.id).values(carried=carried))
            db.execute(update(slots).where(slots.c.id == slot.id).values(earned=earned, nav=after))
            _put(db, slot, after)
            if season.rules.feedback:
                reward(db, slot, earned)
        prices = {"base_price": base, "next_price": price}
        db.execute(update(rounds).where(rounds.c.id == round.id).values(**prices))
        return {"moved": moved}

    return store.advance(round, moves, "settled", now)


def shared_accounts(store: Store, season: Season, round: Round) -> dict[str, dict[str, Any]]:
    """Return what each entry is told of its account in a round: its value, and the money behind each asset."""
    query = select(purses.c.entry, purses.c.value).where(
        purses.c.season == season.id, purses.c.stage == round.stage
    )
    with store.read() as db:
        values = {row.entry: row.value for row in db.execute(query)}
        held = _held(db, season, round)
    return {
        entry.id: {
            "account": values.get(entry.id, 1.0),
            "exposures": {asset: money for asset, money in sorted(held.get(entry.id, {}).items()) if money},
        }
        for entry in season.everyone
    }


def _execute_one(db: Connection, slot: Slot, before: float, trade: Trade, value: float) -> None:
    left = value - trade.fee
    place = {name: getattr(slot, name) for name in ("round", "season", "entry", "asset", "stage")}
    db.execute(insert(stakes).values(slot=slot.id, before=before, exposure=trade.exposure, **place))
    db.execute(
        update(slots)
        .where(slots.c.id == slot.id)
        .values(
            position_before=_sign(before),
            position=_sign(trade.exposure),
            nav_before=value,
            fee=trade.fee,
            nav=left,
        )
    )
    _put(db, slot, left)


def _values(db: Connection, season: Season, round: Round) -> dict[str, float]:
    """Return every entry's account; missing ones are opened with 1. Where it matters the rows are locked."""
    query = select(purses.c.entry, purses.c.value).where(
        purses.c.season == season.id, purses.c.stage == round.stage
    )
    if db.dialect.name == "postgresql":
        query = query.order_by(purses.c.entry).with_for_update()
    found: dict[str, float] = {row.entry: row.value for row in db.execute(query)}
    new = [entry.id for entry in season.everyone if entry.id not in found]
    if new:
        rows = [{"season": season.id, "entry": id, "stage": round.stage, "value": 1.0} for id in new]
        db.execute(insert(purses), rows)
        found.update(dict.fromkeys(new, 1.0))
    return found


def _held(db: Connection, season: Season, round: Round) -> Mapping[str, dict[str, float]]:
    """Return the signed money every entry has behind every asset: what its newest stake has become."""
    stage = (stakes.c.season == season.id, stakes.c.stage == round.stage)
    newest = select(func.max(stakes.c.slot)).where(*stage).group_by(stakes.c.entry, stakes.c.asset)
    found: dict[str, dict[str, float]] = {}
    for row in db.execute(select(stakes).where(stakes.c.slot.in_(newest))):
        money = row.exposure if row.carried is None else row.carried
        found.setdefault(row.entry, {})[row.asset] = money
    return found


def _put(db: Connection, slot: Slot, value: float) -> None:
    mine = (purses.c.season == slot.season, purses.c.entry == slot.entry, purses.c.stage == slot.stage)
    db.execute(update(purses).where(*mine).values(value=value))


def _slots(db: Connection, round: Round) -> list[Slot]:
    return [
        read_slot(row) for row in db.execute(select(slots).where(slots.c.round == round.id).order_by(slots.c.id))
    ]


def _sign(money: float) -> int:
    return (money > 0) - (money < 0)
