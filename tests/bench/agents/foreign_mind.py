"""An agent that plays every conversation, on a pipe when it is run:

``python foreign_mind.py [LOG]``.

It trades a little, so that its results differ from doing nothing, and remembers nothing: what it
says depends on the request alone. With ``LOG`` every request is written there.
"""

import json
import sys
from typing import Any


def reply(asked: dict[str, Any]) -> dict[str, Any]:
    """Answer one request, by name."""
    return {"id": asked["id"], **answer(asked)}


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    stage, seen, step = asked["stage"], asked["observation"], asked["step"]
    if stage == "overview":
        names = [row["symbol"] for row in seen["symbols"] if row["buyable"]]
        return {"answer": {"analyse": names[:1], "reason": "it stands first"}}
    if stage == "analysis":
        return {"text": "It has moved little."}
    if stage == "decision":
        return {"answer": {"decisions": decisions(seen, step)}}
    if stage == "research":
        if asked["attempt"] == 1:
            return {
                "calls": [
                    {
                        "name": "screen_candidates",
                        "arguments": {"factors": ["MOM_12_1"], "top_k": 3},
                    }
                ]
            }
        return {"text": "I have seen enough."}
    if stage == "submit":
        return {"answer": submission(asked)}
    if stage == "orders":
        symbol = seen["names"][step % len(seen["names"])]["symbol"]
        return {"answer": {"orders": [{"symbol": symbol, "unit": "target_weight", "amount": 0.02}]}}
    raise ValueError(stage)


def decisions(seen: dict[str, Any], step: int) -> dict[str, Any]:
    free = [row for row in seen["symbols"] if row["buyable"] and row["position"] is None]
    if step > 3 or not free:
        return {}
    amount = round(seen["nav"] * 0.05, 2)
    more = {
        "action": "increase",
        "target_cash_amount": amount,
        "reasons": ["a start"],
        "confidence": 0.6,
    }
    return {free[0]["symbol"]: more}


def submission(asked: dict[str, Any]) -> dict[str, Any]:
    """Buy the first name that screening found, once; the first attempt of step 1 breaks the
    form.
    """
    if asked["step"] == 1 and asked["feedback"] is None:
        return {"orders": "none"}
    found = [message for message in asked["messages"] if message["role"] == "tool"]
    rows = json.loads(found[0]["text"]).get("candidates", []) if found else []
    held = {row["stock_id"] for row in asked["observation"]["account"]["positions"]}
    new = [row["stock_id"] for row in rows if row["stock_id"] not in held]
    orders = [
        {
            "stock_id": stock,
            "side": "BUY",
            "confidence": 0.6,
            "reason": "high in the list",
            "target_weight": 0.04,
        }
        for stock in new[:1]
    ]
    return {"orders": orders, "overall_reason": "one small position at a time"}


class Mind:
    """The same as a class."""

    def reply(self, asked: dict[str, Any]) -> dict[str, Any]:
        return reply(asked)


class Waits:
    """The same, awaited."""

    async def reply(self, asked: dict[str, Any]) -> dict[str, Any]:
        return reply(asked)


class Breaks:
    """Raises on every other session."""

    def reply(self, asked: dict[str, Any]) -> dict[str, Any]:
        if asked["step"] % 2:
            raise RuntimeError("no idea")
        return reply(asked)


class Silent:
    """Has no method that could be called."""


if __name__ == "__main__":
    for line in sys.stdin:
        if len(sys.argv) > 1:
            with open(sys.argv[1], "a", encoding="utf-8") as log:
                log.write(line)
        print(json.dumps(reply(json.loads(line))), flush=True)
