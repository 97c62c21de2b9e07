"""Questions that go straight to the server: how likely is the truth, and does the shown table matter?

``likely`` ranks the true move of a week among four decoys by its log-probability and takes the Min-K% of the line;
``mirrored`` asks some recorded trading days again with every shown return turned round. Both return plain records.
"""

from __future__ import annotations

import json
import re
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from worlds import HISTORY, NAMES, TOLD, WEEK, World

ASKED = 24
"""Facts ranked in a world."""
DAYS = 6
"""Trading days asked again."""
SHARE = 0.2
"""The share of least likely tokens that Min-K% takes."""
_ROW = re.compile(r"^(\w+) \| none \| normal \| .*$", re.MULTILINE)


def post(server: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Ask the server."""
    request = urllib.request.Request(
        f"{server}/{path}", json.dumps(body).encode(), {"content-type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=180) as answer:
        return dict(json.load(answer))


def likely(world: World, server: str) -> list[dict[str, Any]]:
    """Return for some names and days how likely the true move is, and four decoys, with Min-K% of the truth."""
    rng = np.random.default_rng([34, world.number])
    every = [(day, name) for day in range(HISTORY, HISTORY + TOLD) for name in range(NAMES)]
    chosen = [every[int(k)] for k in rng.choice(len(every), ASKED, replace=False)]
    moves = [world.move(day, name, WEEK) or 0.0 for day, name in every]

    def one(fact: tuple[int, int]) -> dict[str, Any]:
        day, name = fact
        draw = np.random.default_rng([35, world.number, day, name])
        truth = world.move(day, name, WEEK) or 0.0
        others = [move for move in moves if abs(move - truth) > 0.5]
        decoys = [others[int(k)] for k in draw.choice(len(others), 4, replace=False)]
        start = f"From {world.days[day]} to {world.days[day + WEEK]}: {world.names[name]}"
        scores, least = [], None
        for move in (truth, *decoys):
            asked = {"prompt": f"{start} {move:+.1f}%", "echo": True, "logprobs": 1, "max_tokens": 0}
            found = post(server, "completions", asked)["choices"][0]["logprobs"]
            inside = [
                p for p, at in zip(found["token_logprobs"], found["text_offset"], strict=True) if at >= len(start)
            ]
            scores.append(sum(inside))
            if least is None:
                known = sorted(p for p in found["token_logprobs"] if p is not None)
                worst = known[: max(1, round(SHARE * len(known)))]
                least = sum(worst) / len(worst)
        rank = 1 + sum(score > scores[0] for score in scores[1:])
        rounded = [round(score, 3) for score in scores]
        return {
            "day": day,
            "name": name,
            "truth": round(truth, 1),
            "scores": rounded,
            "rank": rank,
            "min_k": least,
        }

    with ThreadPoolExecutor(4) as pool:
        return list(pool.map(one, chosen))


def _turned(row: str) -> str:
    cells = row.split(" | ")
    for place in (9, 10, 11, 15, 16):  # the returns, and the two factors that are mean returns
        if cells[place] not in ("-", "0"):
            cells[place] = cells[place][1:] if cells[place].startswith("-") else f"-{cells[place]}"
    return " | ".join(cells)


def mirrored(run: Path, server: str) -> list[dict[str, Any]]:
    """Return for some days of the bright episode what was answered, and what is answered to the turned table."""
    kept: dict[str, dict[str, str]] = {}
    answers = []
    for line in next((run / "models").glob("*mask=bright*")).open():
        entry = json.loads(line)
        if entry["type"] == "message":
            kept[entry["id"]] = entry["message"]
        elif entry["type"] == "answer" and entry["asked"]["attempt"] == 1:
            answers.append(entry)
    tools = _tools(run)
    places = np.unique(np.linspace(0, len(answers) - 1, DAYS).astype(int))

    def one(place: int) -> dict[str, Any]:
        entry = answers[place]
        messages = [
            {"role": kept[key]["role"], "content": kept[key]["text"]} for key in entry["asked"]["messages"]
        ]
        messages[0]["content"] += tools
        asked = messages[-1]["content"]
        messages[-1]["content"] = _ROW.sub(lambda found: _turned(found.group(0)), asked)
        body = {"messages": messages, "max_tokens": 600, "temperature": 0}
        said = post(server, "chat/completions", body)["choices"][0]["message"]["content"]
        return {"place": int(place), "before": entry["reply"].get("text", ""), "after": said}

    with ThreadPoolExecutor(3) as pool:
        return list(pool.map(one, places.tolist()))


def _tools(run: Path) -> str:
    """Return the tools as the text that a model without a place for them gets."""
    from tradeassay.core.dialogue import AskModel, Message, ToolSpec
    from tradeassay.llm.json_text import tools_into_text

    for line in next((run / "models").glob("*mask=bright*")).open():
        entry = json.loads(line)
        if entry["type"] == "tools":
            tools = tuple(ToolSpec(**one) for one in entry["tools"])
            asked = AskModel(
                purpose="submit", messages=(Message(role="system", text=""),), tools=tools, must_call=tools[0].name
            )
            return tools_into_text(asked).messages[0].text
    return ""
