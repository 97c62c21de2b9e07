"""An agent behind a firewall: it fetches its packets and posts its choices.

No address of its own is needed.

ARENA_TOKEN is what ``tradeassay arena amend register`` printed; ARENA_URL says where the arena is,
if not here.
"""

import os
import time
import uuid

import httpx

with httpx.Client(
    base_url=os.environ.get("ARENA_URL", "http://127.0.0.1:8000"), timeout=30
) as arena:
    arena.headers["Authorization"] = f"Bearer {os.environ['ARENA_TOKEN']}"
    while True:
        try:
            found = arena.get("/agents/me/packet", params={"wait": 20})
        except httpx.TransportError:  # the arena is not up yet, or starts again
            print(f"no arena at {arena.base_url} (ARENA_URL); trying again", flush=True)
            found = httpx.Response(503)
        if (said := found.status_code) in (204, 429) or said >= 500:
            time.sleep(0 if said == 204 else 2)
            continue
        told = found.raise_for_status().json()
        answer = {name: told[name] for name in ("slot", "packet_sha256")} | {
            "reasoning": "the trend of a month"
        }
        answer["recommended_action"] = "BUY" if (told["packet"]["momentum"] or 0) > 0 else "SELL"
        arena.post("/agents/me/choice", json=answer, headers={"Idempotency-Key": uuid.uuid4().hex})
