"""How scripted models answer the roles of the arena: by the month's return, the words of the news, and votes.

Which way a role leans is coloured by a hash of its name, so that sixteen personas do not all say the same thing.
"""

from __future__ import annotations

import hashlib
from typing import Final

from tradeassay.llm.scripted.reading import Json, Reading, mapping, number, objects

OPINION: Final = "ama.opinion"
ARGUMENT: Final = "ama.argument"
RISK: Final = "ama.risk"
VERDICT: Final = "ama.verdict"
LESSON: Final = "ama.lesson"
SUMMARY: Final = "stream.summary"

_GOOD = ("rise", "rises", "beat", "beats", "record", "growth", "gain", "gains", "wins", "strong", "raises", "up")
_BAD = ("fall", "falls", "miss", "misses", "trouble", "loss", "losses", "short", "worries", "weak", "cuts", "down")


def answer(reading: Reading) -> dict[str, object] | None:
    """Return the answer to a role's question, or None when the question is not one of the arena's."""
    payload = reading.payload
    if reading.kind == OPINION:
        return _opinion(payload)
    if reading.kind == ARGUMENT:
        return {"argument": _argument(payload)}
    if reading.kind == RISK:
        return _risk(payload)
    if reading.kind == VERDICT:
        return _verdict(payload)
    if reading.kind == LESSON:
        return _lesson(payload)
    if reading.kind == SUMMARY:
        return _summary(payload)
    return None


def _opinion(payload: Json) -> dict[str, object]:
    lean = _trend(payload) + _mood(payload) + _colour(payload)
    view = "bullish" if lean > 0.15 else "bearish" if lean < -0.15 else "neutral"
    return {"view": view, "confidence": _sure(lean), "reason": f"the evidence leans {lean:+.2f}"}


def _argument(payload: Json) -> str:
    side = str(payload.get("role", ""))
    wanted = "bullish" if side == "bull" else "bearish"
    found = [str(o.get("role")) for o in objects(payload.get("opinions")) if o.get("view") == wanted]
    return f"{', '.join(found) or 'nobody'} supports the {side} case"


def _risk(payload: Json) -> dict[str, object]:
    losses = [number(o.get("earned")) for o in objects(payload.get("outcomes"))][-3:]
    bad = sum(losses) < -0.10
    return {
        "allow_long": True,
        "allow_short": not bad,
        "max_exposure": 0.5 if bad else 1.0,
        "reason": "three bad days" if bad else "nothing unusual",
    }


def _verdict(payload: Json) -> dict[str, object]:
    votes = 0.0
    for said in objects(payload.get("opinions")):
        sign = {"bullish": 1.0, "bearish": -1.0}.get(str(said.get("view")), 0.0)
        votes += sign * number(said.get("confidence"), 0.5)
    lean = votes / 2 if payload.get("opinions") else _trend(payload) + _mood(payload)
    for item in objects(payload.get("memory")):
        lean += 0.05 * _words(str(item.get("text", "")))
    proposal = mapping(payload.get("proposal")).get("action")
    if isinstance(proposal, str):
        lean += {"BUY": 0.2, "SELL": -0.2}.get(proposal, 0.0)
    risk = mapping(payload.get("risk"))
    action = "BUY" if lean > 0.1 else "SELL" if lean < -0.1 else "HOLD"
    if action == "SELL" and risk.get("allow_short") is False:
        action = "HOLD"
    return {
        "action": action,
        "confidence": _sure(lean),
        "reasoning": f"all in all {lean:+.2f}",
        "allocation": _sure(lean),
        "message": None,
    }


def _lesson(payload: Json) -> dict[str, object]:
    earned = sum(number(o.get("earned")) for o in objects(payload.get("outcomes")))
    word = "paid" if earned > 0 else "cost money"
    return {"lesson": f"acting on this kind of news {word}", "importance": min(1.0, 0.3 + 5 * abs(earned))}


def _summary(payload: Json) -> dict[str, object]:
    """The item's title and its first sentence, verbatim."""
    text = str(payload.get("text", ""))
    first = text.replace("。", "。\n").replace(". ", ".\n").split("\n")[0]
    title = str(payload.get("title", ""))
    return {"title": title, "summary": first[:400] or title}


def _trend(payload: Json) -> float:
    return max(-1.0, min(1.0, 5 * number(payload.get("momentum"))))


def _mood(payload: Json) -> float:
    texts = [f"{item.get('title', '')} {item.get('text', '')}" for item in objects(payload.get("news"))]
    lines = payload.get("headlines")
    if isinstance(lines, list):
        texts += [str(line[-1]) for line in lines if isinstance(line, list) and line]
    return max(-1.0, min(1.0, 0.3 * sum(_words(text) for text in texts)))


def _words(text: str) -> int:
    found = text.lower().replace(".", " ").replace(",", " ").split()
    return sum(word in _GOOD for word in found) - sum(word in _BAD for word in found)


def _colour(payload: Json) -> float:
    name = f"{payload.get('role')}/{payload.get('date')}/{payload.get('symbol')}"
    return hashlib.sha256(name.encode()).digest()[0] / 255 - 0.5


def _sure(lean: float) -> float:
    return round(min(0.95, 0.5 + abs(lean) / 3), 3)
