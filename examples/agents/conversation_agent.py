"""An agent for a benchmark's own conversation: tradeassay run -a
python:class=conversation_agent:Mine
"""

from typing import Any


class Mine:
    """Buys the name that rose most, a little of it, and leaves the rest to cash."""

    def reply(self, asked: dict[str, Any]) -> dict[str, Any]:
        seen = asked["observation"]
        if asked["stage"] == "orders":  # the daily benchmarks ask once
            best = max(seen["names"], key=lambda name: (name["r20"] or 0, name["symbol"]))
            order = {"symbol": best["symbol"], "unit": "target_weight", "amount": 0.1}
            return {"answer": {"orders": [order], "reason": "it rose most over 20 sessions"}}
        if asked["stage"] == "submit":  # KTD-Fin: research with tools, then one submission
            return {"answer": {"orders": [], "overall_reason": "nothing is worth a trade today"}}
        if asked["stage"] == "decision":  # StockBench: overview, analysis, decision
            return {"answer": {"decisions": {}}}
        return (
            {"answer": {"analyse": []}}
            if asked["stage"] == "overview"
            else {"text": "I have seen enough."}
        )
