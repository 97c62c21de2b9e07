"""An agent behind HTTP (the AMA contract). Run it with: uvicorn http_agent:app --port 8000"""

from typing import Any

from fastapi import FastAPI

app = FastAPI()


@app.post("/trading_action/")
def decide(asked: dict[str, Any]) -> dict[str, str]:
    symbol = asked["symbol"][0]
    past = [point["price"] for point in asked["history_price"][symbol]]
    if not past:
        return {"recommended_action": "HOLD", "reasoning": "no history yet"}
    usual = sum(past) / len(past)
    action = "BUY" if asked["price"][symbol] > usual else "SELL"
    return {
        "recommended_action": action,
        "reasoning": f"the last {len(past)} closes average {usual:.2f}",
    }
