"""A client of MCP that plays a season by itself.

A language model's client would call the same tools.
"""

import json
from typing import Any

from mcp import Client


async def play(server: Any, decisions: int) -> None:
    async with Client(server) as arena:
        while decisions:
            found = await arena.call_tool("next_decision", {"wait_s": 20})
            text = found.content[0].text
            if text.startswith("{"):
                told = json.loads(text)
                action = "BUY" if (told["momentum"] or 0) > 0 else "SELL"
                answer = {
                    "slot": told["slot"],
                    "recommended_action": action,
                    "reasoning": "the trend of a month",
                }
                await arena.call_tool("submit_action", answer)
                decisions -= 1
