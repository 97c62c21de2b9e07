"""How a scripted model plays KTD-Fin: look at the account, screen, compare, check the risk, submit.

It holds the names that rank highest by momentum, equally weighted, and sells a holding only when it has
dropped out of the top twice as many: enough of a policy to trade, hold, sell and abstain.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tradeassay.llm.scripted.reading import Json, Reading, mapping, number, objects, texts

NAMES = 8
"""How many names are held."""
INVESTED = 0.9
"""The share of the account that is invested."""
FACTORS = ("MOM_12_1", "HIGH_52W")
SPENDABLE = 0.95
"""The share of the available cash that is spent: tomorrow's open may be above today's close."""
LEAST_REASON = 40


class ScriptedOrder(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One order of an action, as the protocol wants it."""

    stock_id: str
    side: str
    confidence: float
    reason: str
    target_weight: float


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What the model wants to hold, and what it would do today to get there."""

    targets: dict[str, float]
    orders: tuple[ScriptedOrder, ...]
    reason: str

    def action(self) -> dict[str, object]:
        """Return the arguments of ``submit_action``."""
        return {"orders": list(self.orders), "overall_reason": self.reason}


def next_research(reading: Reading) -> list[tuple[str, Mapping[str, object]]]:
    """Return the research calls to make now; an empty list means that the research is done."""
    offered = set(reading.tools)
    look: list[tuple[str, Mapping[str, object]]] = []
    if "portfolio_state" in offered and not reading.called("portfolio_state"):
        look.append(("portfolio_state", {}))
    if "screen_candidates" in offered and not reading.called("screen_candidates"):
        look.append(("screen_candidates", {"factors": list(FACTORS), "top_k": 2 * NAMES}))
    if look:
        return look
    ranked = ranking(reading)
    if "compare_candidates" in offered and not reading.called("compare_candidates") and len(ranked) >= 2:
        names = "stock_ids" if reading.one_word else "aliases"
        return [("compare_candidates", {names: ranked[:NAMES], "dims": list(FACTORS)})]
    if "risk_check" in offered and not reading.called("risk_check"):
        targets = wish(reading).targets
        if targets:
            return [("risk_check", {"target_weights": targets})]
    return []


def wish(reading: Reading) -> Wish:
    """Return what the model wants, from whatever it was told so far.

    It leaves alone what a risk check or the feedback on an earlier answer objected to; when it was rejected it
    wants less, and from the third attempt on nothing at all.
    """
    if reading.tries >= 3:
        return Wish(targets={}, orders=(), reason=_long("nothing today: what I wanted was turned down twice"))
    limits = mapping(reading.payload.get("constraints"))
    avoid = _told_off(reading)
    positions = held(reading)
    ranked = ranking(reading)
    count = max(0, min(NAMES, int(number(limits.get("max_positions"), 20))))
    weight = _weight(count, number(limits.get("max_weight"), 0.1)) / reading.tries
    sold = [stock for stock, row in positions.items() if stock not in avoid and _leaves(stock, row, ranked, count)]
    kept = [stock for stock in positions if stock not in sold]
    money = _cash_share(reading) + sum(number(positions[stock].get("weight")) for stock in sold)
    room = min(count - len(kept), int(money * SPENDABLE / weight) if weight > 0 else 0)
    best = [stock for stock in ranked if stock not in avoid][:count]
    bought = [stock for stock in best if stock not in positions][: max(0, room)]
    orders = [_sell(stock, len(ranked)) for stock in sold]
    orders += [_buy(stock, weight, ranked.index(stock), len(ranked)) for stock in bought]
    orders = orders[: int(number(limits.get("max_candidates"), 30))]
    targets = {order.stock_id: order.target_weight for order in orders}
    targets |= {stock: number(positions[stock].get("weight")) for stock in kept}
    return Wish(targets=targets, orders=tuple(orders), reason=_overall(orders, kept, ranked))


def ranking(reading: Reading) -> list[str]:
    """Return the names in order of preference: as screened, as given in the table, or as listed."""
    screened = reading.last("screen_candidates")
    rows = objects((screened or {}).get("candidates")) or objects(reading.payload.get("candidates"))
    if rows:
        if screened is None:
            rows = sorted(rows, key=_momentum, reverse=True)
        return [str(row["stock_id"]) for row in rows if isinstance(row.get("stock_id"), str)]
    return texts(reading.payload.get("universe"))


def _momentum(row: Json) -> float:
    return number(mapping(row.get("factors")).get(FACTORS[0]), float("-inf"))


def held(reading: Reading) -> dict[str, Json]:
    """Return the positions of the account, by name."""
    account = reading.last("portfolio_state") or mapping(reading.payload.get("account"))
    return {
        str(row["stock_id"]): row for row in objects(account.get("positions")) if number(row.get("shares")) > 0
    }


def account(reading: Reading) -> Json:
    """Return the account as last seen."""
    return reading.last("portfolio_state") or mapping(reading.payload.get("account"))


def _told_off(reading: Reading) -> set[str]:
    violations = objects((reading.last("risk_check") or {}).get("violations"))
    names = {row["stock_id"] for row in violations if isinstance(row.get("stock_id"), str)}
    return {str(name) for name in names} | {complaint.name for complaint in reading.feedback if complaint.name}


def _leaves(stock: str, row: Json, ranked: list[str], count: int) -> bool:
    """Tell whether a holding is sold: it dropped out of the ranking, and none of it was bought too recently."""
    whole = number(row.get("sellable"), number(row.get("shares"))) >= number(row.get("shares"))
    return bool(ranked) and whole and stock not in ranked[: 2 * count]


def _cash_share(reading: Reading) -> float:
    state = account(reading)
    nav = number(state.get("nav"))
    return number(state.get("cash")) / nav if nav > 0 else 0.0


def _weight(count: int, cap: float) -> float:
    # Whole lots and tomorrow's open must not push a position over its limit: stay a little below.
    return 0.0 if count == 0 else min(INVESTED / count, 0.95 * cap)


def _buy(stock: str, weight: float, rank: int, among: int) -> ScriptedOrder:
    confidence = round(0.75 - 0.25 * rank / max(1, among), 3)
    reason = f"ranked {rank + 1} of {among} by momentum near its yearly high"
    return ScriptedOrder(
        stock_id=stock, side="BUY", target_weight=round(weight, 4), confidence=confidence, reason=_long(reason)
    )


def _sell(stock: str, among: int) -> ScriptedOrder:
    reason = f"fell out of the {among} names that rank highest by momentum"
    return ScriptedOrder(stock_id=stock, side="SELL", target_weight=0.0, confidence=0.6, reason=_long(reason))


def _overall(orders: list[ScriptedOrder], keep: list[str], ranked: list[str]) -> str:
    bought = sum(order.side == "BUY" for order in orders)
    return _long(f"{bought} bought, {len(orders) - bought} sold, {len(keep)} kept of {len(ranked)} ranked names")


def _long(reason: str) -> str:
    return reason if len(reason) >= LEAST_REASON else reason.ljust(LEAST_REASON, ".")
