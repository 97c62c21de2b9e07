"""Scripted models that trade.

``sensible`` makes no mistake. Each of the remaining models makes one.

A model is a table of topics and the functions that answer them. ``sensible`` has an answer for
every topic of the benchmarks and the arena. :data:`MODELS` lists the differences of the remaining
models. An observation of unknown form is answered with a sentence.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping
from itertools import product
from typing import ClassVar

from tradeassay_bench.core.dialogue import AskModel, ModelReply
from tradeassay_bench.llm.prompting import parse_object
from tradeassay_bench.llm.scripted.model import (
    Calls,
    Json,
    Question,
    call,
    say,
    scripted_models,
)

Way = Callable[[Question], object]
"""A function that answers one topic.

It returns arguments for the required tool, else the content of the answer, or a complete reply.
"""


# The daily benchmarks: every fifth session, hold the names with the highest returns.

DAILY_NAMES, DAILY_EVERY, DAILY_INVESTED, DAILY_WORTH = 8, 5, 0.9, 0.25


def daily_orders(asked: Question) -> Json:
    """Return the orders of the daily benchmarks: equal weights in the names that rose most."""
    day = asked.payload
    if not day or asked.attempt > 1:
        return {"orders": [], "reason": "nothing is worth another try"}
    if day["step"] % DAILY_EVERY:
        return {"orders": [], "reason": "holds until the next look"}
    known = [name for name in day["names"] if name["tradable"] and name.get("r20") is not None]
    ranked = [
        name["symbol"] for name in sorted(known, key=lambda name: (-name["r20"], name["symbol"]))
    ]
    weights = {holding["symbol"]: holding["weight"] for holding in day["positions"]}
    kept = [symbol for symbol in ranked[: 2 * DAILY_NAMES] if symbol in weights]
    chosen = [*kept, *(symbol for symbol in ranked if symbol not in weights)][:DAILY_NAMES]
    share = round(DAILY_INVESTED / DAILY_NAMES, 4)
    moved = [
        symbol for symbol in chosen if abs(weights.get(symbol, 0.0) - share) > DAILY_WORTH * share
    ]
    wanted = [(symbol, 0.0, "fell behind") for symbol in weights if symbol not in chosen]
    wanted += [(symbol, share, "among those that rose most") for symbol in moved]
    orders = [
        {"symbol": s, "unit": "target_weight", "amount": a, "reason": why} for s, a, why in wanted
    ]
    return {"orders": orders, "reason": "holds what rose most over twenty sessions"}


# KTD-Fin: look at the account, screen, compare, check the risk, submit. The policy holds the names
# with the highest momentum, equally weighted. It sells a holding only when it has dropped out of
# the top twice as many names. That is enough to trade, hold, sell and abstain.

KTDFIN_NAMES, KTDFIN_INVESTED, LEAST_REASON = 8, 0.9, 40
FACTORS = ("MOM_12_1", "HIGH_52W")
SPENDABLE = 0.95
"""The fraction of the available cash that is spent.

The rest is a reserve, because tomorrow's open may be above today's close.
"""


def ktdfin_research(asked: Question, enough: str = "I have seen enough.") -> ModelReply:
    """Return the next tool calls of KTD-Fin's research, or a text if nothing is left to call."""
    called = [name for name, _, _ in asked.results]
    left = [name for name in asked.tools if name not in called]
    screen = {"factors": list(FACTORS), "top_k": 2 * KTDFIN_NAMES}
    calls: Calls = [
        one for one in (("portfolio_state", {}), ("screen_candidates", screen)) if one[0] in left
    ]
    if not calls:
        ranked = ktdfin_ranking(asked)
        if "compare_candidates" in left and len(ranked) >= 2:
            calls = [
                ("compare_candidates", {"stock_ids": ranked[:KTDFIN_NAMES], "dims": list(FACTORS)})
            ]
        elif "risk_check" in left and (targets := ktdfin_targets(asked)[1]):
            calls = [("risk_check", {"target_weights": targets})]
    return call(asked.request, calls) if calls else say(enough)


def ktdfin_ranking(asked: Question) -> list[str]:
    """Return the names in order of preference.

    The order is the order of the screening if there is one, else of the table of factors, else of
    the list.
    """
    screened = asked.last("screen_candidates").get("candidates")
    rows = screened or asked.payload.get("candidates") or []
    if not screened:
        unknown, momentum = float("-inf"), FACTORS[0]
        rows = sorted(
            rows,
            key=lambda row: unknown if (m := row["factors"].get(momentum)) is None else m,
            reverse=True,
        )
    return [row["stock_id"] for row in rows] or list(asked.payload.get("universe") or [])


def ktdfin_targets(asked: Question) -> tuple[Json, dict[str, float]]:
    """Return the arguments of ``submit_action`` and the resulting weights.

    Names with an objection from a risk check or earlier feedback are left alone. After a rejection
    the weights are smaller. From the third attempt on there are no orders.
    """
    if asked.attempt >= 3:
        reason = "nothing today: what I wanted was turned down twice".ljust(LEAST_REASON, ".")
        return {"orders": [], "overall_reason": reason}, {}
    limits = asked.payload.get("constraints", {})
    checked = asked.last("risk_check").get("violations", ())
    avoid = {one.get("stock_id") for one in checked} | asked.objected
    account = asked.last("portfolio_state") or asked.payload.get("account", {})
    held = {row["stock_id"]: row for row in account.get("positions", ()) if row["shares"] > 0}
    ranked = ktdfin_ranking(asked)
    count = max(0, min(KTDFIN_NAMES, int(limits.get("max_positions", 20))))
    # Whole lots and tomorrow's open must not push a position over its limit: stay a little below.
    whole = min(KTDFIN_INVESTED / count, 0.95 * limits.get("max_weight", 0.1)) if count else 0.0
    weight = whole / asked.attempt
    free = [
        stock for stock, row in held.items() if row.get("sellable", row["shares"]) >= row["shares"]
    ]
    sold = [
        stock
        for stock in free
        if stock not in avoid and ranked and stock not in ranked[: 2 * count]
    ]
    kept = [stock for stock in held if stock not in sold]
    money = account["cash"] / account["nav"] if account.get("nav", 0.0) > 0 else 0.0
    money += math.fsum(held[stock]["weight"] for stock in sold)
    room = min(count - len(kept), int(money * SPENDABLE / weight) if weight > 0 else 0)
    best = [stock for stock in ranked if stock not in avoid][:count]
    bought = [stock for stock in best if stock not in held][: max(0, room)]
    among = len(ranked)
    fell = f"fell out of the {among} names that rank highest by momentum"
    wanted = [(stock, "SELL", 0.6, fell, 0.0) for stock in sold]
    for stock in bought:
        rank = ranked.index(stock)
        reason = f"ranked {rank + 1} of {among} by momentum near its yearly high"
        wanted.append(
            (stock, "BUY", round(0.75 - 0.25 * rank / max(1, among), 3), reason, round(weight, 4))
        )
    fields = ("stock_id", "side", "confidence", "reason", "target_weight")
    orders = [
        dict(zip(fields, one, strict=True))
        for one in wanted[: int(limits.get("max_candidates", 30))]
    ]
    for order in orders:
        order["reason"] = str(order["reason"]).ljust(LEAST_REASON, ".")
    targets = {str(order["stock_id"]): order["target_weight"] for order in orders}
    targets |= {stock: held[stock]["weight"] for stock in kept}
    buys = sum(order["side"] == "BUY" for order in orders)
    overall = f"{buys} bought, {len(orders) - buys} sold, {len(kept)} kept of {among} ranked names"
    return {"orders": orders, "overall_reason": overall.ljust(LEAST_REASON, ".")}, targets


def ktdfin_action(asked: Question) -> Json:
    return ktdfin_targets(asked)[0]


# StockBench: analyse the names that moved most, then overweight the names that rose. The policy
# holds the better half of the names by the return over the closes shown, equally weighted. It
# trades only when a target is worth the cost, and keeps a twentieth in cash.

INVESTED, LEAST_HOLDING_DAYS = 0.95, 5
WORTH_TRADING = 0.2
"""The minimum relative deviation from a target position that is traded."""


def stockbench_rows(asked: Question) -> list[Json]:
    """Return the names with a price: their change over the closes shown, and their holding."""
    rows = []
    for raw in asked.payload["symbols"]:
        shown = [close for close in raw.get("closes") or () if close and close > 0]
        own = raw.get("position") or {}
        change = shown[-1] / shown[0] - 1 if len(shown) >= 2 else 0.0
        days = int(own.get("holding_days", LEAST_HOLDING_DAYS))
        row = {
            "symbol": raw["symbol"],
            "change": change,
            "value": own.get("value") or 0.0,
            "days": days,
        }
        rows += (
            [row | {"buyable": raw.get("buyable") is not False}]
            if (raw.get("open") or 0.0) > 0
            else []
        )
    return rows


def stockbench_overview(asked: Question) -> Json:
    """Return the names to analyse: holdings first, then the names that moved most."""
    ordered = sorted(
        stockbench_rows(asked),
        key=lambda row: (row["value"] <= 0, -abs(row["change"]), row["symbol"]),
    )
    most = max(0, int(asked.payload.get("max_names", 10)))
    return {
        "analyse": [row["symbol"] for row in ordered[:most]],
        "reason": "they moved most, or are held",
    }


def stockbench_analysis(asked: Question) -> Json:
    rows = stockbench_rows(asked)
    return {"notes": {row["symbol"]: f"{row['change']:+.2%} over the closes shown" for row in rows}}


def _decided(action: str, target: float, reason: str, confidence: float) -> Json:
    return {
        "action": action,
        "target_cash_amount": target,
        "reasons": [reason],
        "confidence": confidence,
    }


def stockbench_decision(asked: Question) -> Json:
    """Return a decision for every name.

    Purchases fit the cash and the proceeds of sales. After a rejection they are smaller. From the
    third attempt on everything is held.
    """
    names = stockbench_rows(asked)
    if asked.attempt >= 3:
        why = "what I wanted was turned down twice"
        return {
            "decisions": {row["symbol"]: _decided("hold", row["value"], why, 0.5) for row in names}
        }
    fit = [row for row in names if row["buyable"] and row["symbol"] not in asked.objected]
    best = sorted(fit, key=lambda row: (-row["change"], row["symbol"]))[
        : max(1, (len(names) + 1) // 2)
    ]
    wanted = {row["symbol"] for row in best}
    target = round(INVESTED * asked.payload["nav"] / max(1, len(best)), 2)
    made = {}
    for row in names:
        symbol, value = row["symbol"], row["value"]
        if symbol in asked.objected:
            made[symbol] = _decided("hold", value, "it was turned down", 0.5)
        elif value > 0 and symbol not in wanted and row["days"] >= LEAST_HOLDING_DAYS:
            made[symbol] = _decided(
                "close", 0.0, f"fell behind: {row['change']:+.2%} over the closes shown", 0.6
            )
        elif symbol in wanted and value > target * (1 + WORTH_TRADING):
            made[symbol] = _decided("decrease", target, "grew beyond its share", 0.55)
        else:
            why = "no change is worth its cost" if value > 0 else "not among the better half"
            made[symbol] = _decided("hold", value, why, 0.5)
    freed = math.fsum(row["value"] - made[row["symbol"]]["target_cash_amount"] for row in names)
    money = max(0.0, INVESTED * (asked.payload["cash"] + freed))
    buys = [row for row in best if row["value"] < target * (1 - WORTH_TRADING)]
    need = math.fsum(target - row["value"] for row in buys)
    share = min(1.0, money / need) / asked.attempt if need > 0 else 0.0
    for row in buys:
        aim = round(row["value"] + share * (target - row["value"]), 2)
        if aim > row["value"] * 1.01 + 1:
            reason = f"among the better half: {row['change']:+.2%} over the closes shown"
            made[row["symbol"]] = _decided("increase", aim, reason, 0.65)
    return {"decisions": made}


# The arena: decide by the month's return, the words of the news, and votes. A hash of a role's name
# shifts its view, so that sixteen personas do not all give the same answer.

_GOOD = {
    "rise",
    "rises",
    "beat",
    "beats",
    "record",
    "growth",
    "gain",
    "gains",
    "wins",
    "strong",
    "raises",
    "up",
}
_BAD = {
    "fall",
    "falls",
    "miss",
    "misses",
    "trouble",
    "loss",
    "losses",
    "short",
    "worries",
    "weak",
    "cuts",
    "down",
}


def arena_answer(asked: Question) -> Json:
    """Return the answer to a question of the arena, from momentum, news and earlier outcomes."""
    seen = asked.payload
    trend = max(-1.0, min(1.0, 5 * (seen.get("momentum") or 0.0)))
    told = [f"{item.get('title', '')} {item.get('text', '')}" for item in seen.get("news") or ()]
    told += [str(line[-1]) for line in seen.get("headlines") or () if line]
    mood = max(-1.0, min(1.0, 0.3 * math.fsum(map(_tone, told))))
    earned = [one["earned"] or 0.0 for one in seen.get("outcomes") or ()]
    match asked.kind:
        case "ama.opinion":
            name = f"{seen.get('role')}/{seen.get('date')}/{seen.get('symbol')}"
            lean = trend + mood + hashlib.sha256(name.encode()).digest()[0] / 255 - 0.5
            view = _by_lean(lean, 0.15, "bullish", "bearish", "neutral")
            return {
                "view": view,
                "confidence": _sure(lean),
                "reason": f"the evidence leans {lean:+.2f}",
            }
        case "ama.argument":
            side = str(seen.get("role", ""))
            view = "bullish" if side == "bull" else "bearish"
            agree = [
                str(one.get("role"))
                for one in seen.get("opinions") or ()
                if one.get("view") == view
            ]
            return {"argument": f"{', '.join(agree) or 'nobody'} supports the {side} case"}
        case "ama.risk":
            bad = math.fsum(earned[-3:]) < -0.10
            allowed = {
                "allow_long": True,
                "allow_short": not bad,
                "max_exposure": 0.5 if bad else 1.0,
            }
            return {**allowed, "reason": "three bad days" if bad else "nothing unusual"}
        case "ama.verdict":
            signs = {"bullish": 1.0, "bearish": -1.0}
            said = seen.get("opinions") or ()
            votes = [signs.get(one.get("view"), 0.0) * one.get("confidence", 0.5) for one in said]
            lean = math.fsum(votes) / 2 if votes else trend + mood
            for item in seen.get("memory") or ():
                lean += 0.05 * _tone(str(item.get("text", "")))
            lean += {"BUY": 0.2, "SELL": -0.2}.get(
                str((seen.get("proposal") or {}).get("action")), 0.0
            )
            action = _by_lean(lean, 0.1, "BUY", "SELL", "HOLD")
            if action == "SELL" and (seen.get("risk") or {}).get("allow_short") is False:
                action = "HOLD"
            decided = {
                "action": action,
                "confidence": _sure(lean),
                "reasoning": f"all in all {lean:+.2f}",
            }
            return {**decided, "allocation": _sure(lean), "message": None}
        case "ama.lesson":
            word = "paid" if math.fsum(earned) > 0 else "cost money"
            weight = min(1.0, 0.3 + 5 * abs(math.fsum(earned)))
            return {"lesson": f"acting on this kind of news {word}", "importance": weight}
        case _:  # summarise an item of the stream by its title and first sentence
            first = (
                str(seen.get("text", "")).replace("。", "。\n").replace(". ", ".\n").split("\n")[0]
            )
            return {"title": seen.get("title", ""), "summary": first[:400] or seen.get("title", "")}


def _tone(text: str) -> int:
    words = text.lower().replace(".", " ").replace(",", " ").split()
    return sum((word in _GOOD) - (word in _BAD) for word in words)


def _by_lean(lean: float, least: float, up: str, down: str, neither: str) -> str:
    if lean > least:
        return up
    return down if lean < -least else neither


def _sure(lean: float) -> float:
    return round(min(0.95, 0.5 + abs(lean) / 3), 3)


# news-reader: trades only on the news and figures shown in StockBench. It is the positive control
# of the input ablations: its profit must disappear with its inputs.

_GOOD_NEWS = (
    "more than expected|beats|strong|wins|raises|upgrade|above|record|approval|buyback".split("|")
)
_BAD_NEWS = "misses|falls short|weak|loses|cuts|downgrade|below|recall|investigation|lawsuit".split(
    "|"
)
CHEAP = 12.0
"""A stock is cheap at a price below this multiple of its yearly earnings."""


def read_news(asked: Question) -> Json:
    """Score every name by its news and figures.

    Names above 0 are held, equally weighted. Names below 0 are sold.
    """
    if asked.about == "stockbench.overview":
        told = [row["symbol"] for row in asked.payload["symbols"] if row.get("news")]
        rest = [name for name in stockbench_overview(asked)["analyse"] if name not in told]
        most = int(asked.payload.get("max_names", 10))
        return {"analyse": [*told, *rest][:most], "reason": "there is news about them"}
    if asked.about == "stockbench.analysis":
        notes: Json = {}
        for row in asked.payload["symbols"]:
            texts = [
                f"{item.get('title', '')} {item.get('text') or ''}".lower()
                for item in row.get("news") or ()
            ]
            score: float = sum(word in text for text, word in product(texts, _GOOD_NEWS))
            score -= sum(word in text for text, word in product(texts, _BAD_NEWS))
            score += (
                0.5 if 0.0 < ((row.get("fundamentals") or {}).get("pe") or 0.0) < CHEAP else 0.0
            )
            notes[row["symbol"]] = f"score {score:+.1f}"
        return {"notes": notes}
    spoken = [message.text for message in asked.request.messages if message.role == "assistant"]
    noted = [
        said for text in spoken if isinstance(said := (parse_object(text) or {}).get("notes"), dict)
    ]
    found = {
        name: re.search(r"score ([+-]\d+\.\d)", str(note))
        for name, note in (noted or [{}])[-1].items()
    }
    scores = {name: float(score[1]) for name, score in found.items() if score}
    rows = stockbench_rows(asked)
    wanted = {
        row["symbol"] for row in rows if row["buyable"] and scores.get(row["symbol"], 0.0) > 0.0
    }
    target = round(INVESTED * asked.payload["nav"] / max(10, len(wanted)), 2)
    money = asked.payload["cash"] * INVESTED
    made: Json = {}
    for row in rows:
        score = scores.get(row["symbol"], 0.0)
        why, lacking = f"news and figures: {score:+.1f}", target - row["value"]
        if row["value"] > 0 and score < 0.0:
            made[row["symbol"]] = _decided("close", 0.0, why, 0.6)
        elif (
            row["symbol"] in wanted
            and row["value"] < target * (1 - WORTH_TRADING)
            and money > lacking
        ):
            money -= lacking
            made[row["symbol"]] = _decided("increase", target, why, 0.6)
    return {"decisions": made}


def turned_verdict(asked: Question) -> Json:
    said = arena_answer(asked)
    turned = {"BUY": "SELL", "SELL": "BUY"}.get(said["action"], said["action"])
    return {**said, "action": turned, "reasoning": f"against: {said['reasoning']}"}


# The models and their answers by topic.

SENSIBLE: Mapping[str, Way] = {
    "research": ktdfin_research,
    "submit": ktdfin_action,
    "orders": daily_orders,
    "stockbench.overview": stockbench_overview,
    "stockbench.analysis": stockbench_analysis,
    "stockbench.decision": stockbench_decision,
    **dict.fromkeys(
        ("ama.opinion", "ama.argument", "ama.risk", "ama.verdict", "ama.lesson"), arena_answer
    ),
    "stream.summary": arena_answer,
}


@scripted_models.register("sensible")
class Sensible:
    """A model that reads, researches within its budget, and submits a valid decision every day."""

    summary: ClassVar[str] = "follows the rules: simple momentum, valid answers"
    ways: ClassVar[Mapping[str, Way]] = {}
    """The topics that a derived model answers differently."""

    def answer(self, request: AskModel) -> ModelReply:
        asked, unreadable = Question(request), say("There is nothing here that I can read.")
        way = {**SENSIBLE, **self.ways}.get(asked.about)
        if way is None:
            return unreadable
        try:
            said = way(asked)
        except (LookupError, TypeError, ValueError, AttributeError):
            if not getattr(way, "__module__", "").startswith(f"{__package__}."):
                raise  # an error in the code of another package must be visible
            return unreadable
        if isinstance(said, ModelReply):
            return said
        return (
            say(said) if request.must_call is None else call(request, [(request.must_call, said)])
        )


def add_models(models: Mapping[str, tuple[str, Mapping[str, Way]]]) -> None:
    """Register models that differ from the sensible model: name, summary, answers by topic."""
    for name, (summary, ways) in models.items():
        scripted_models.add(name, type(name, (Sensible,), {"summary": summary, "ways": ways}))


MODELS: Mapping[str, tuple[str, Mapping[str, Way]]] = {
    "news-reader": (
        "trades in StockBench on news and fundamentals alone: its profit goes away with them; "
        "sensible elsewhere",
        dict.fromkeys(
            ("stockbench.overview", "stockbench.analysis", "stockbench.decision"), read_news
        ),
    ),
    "contrarian": (
        "decides against what its analysts suggest in the arena; sensible elsewhere",
        {"ama.verdict": turned_verdict},
    ),
}
"""The remaining models: a summary, and the topics that each answers differently."""

add_models(MODELS)
