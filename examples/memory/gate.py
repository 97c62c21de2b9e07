"""Before a study is played: does the model do as it states, and claim to know what it has read, and
that alone?

    python practice.py gate.jsonl --groups held,strange
    python gate.py gate.jsonl http://127.0.0.1:8111/v1 [--out gate.json]

It is asked about days of worlds that it never practised: *held* ones, which it has read about, and
*strange* ones. What it missed is told, and the study is played whatever comes out. No world under
test is asked about. Several servers, with commas, take turns.
"""

from __future__ import annotations

import argparse
import itertools
import json
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from answers import claimed, read_off

BARS = {
    "follows": (0.97, 1.0),
    "claims_known": (0.80, 1.0),
    "claims_unknown": (0.0, 0.02),
    "rises": (-0.08, 0.08),
}
"""Orders that do as is stated; days claimed to be known, of worlds that were and were not read
about; rises stated less true ones, as shares of all that is stated of known days.
"""


def ask(server: str, messages: list[dict[str, str]]) -> str:
    """Return the model's answer."""
    body = {"model": "local", "messages": messages, "temperature": 0.0, "max_tokens": 512}
    asked = urllib.request.Request(
        f"{server}/chat/completions",
        json.dumps(body).encode(),
        {"content-type": "application/json"},
    )
    with urllib.request.urlopen(asked, timeout=300) as reply:
        return json.load(reply)["choices"][0]["message"]["content"] or ""


def measure(asked: list[dict[str, Any]], said: list[str]) -> dict[str, float | None]:
    """Return what the answers come to, beside those of the teacher; None where nothing of it was
    said.
    """
    found: dict[str, list[float]] = {name: [] for name in (*BARS, "right", "read_right", "unread")}
    for one, text in zip(asked, said, strict=True):
        truth, mine = claimed(one["answer"]), claimed(text)
        found["claims_unknown" if truth is None else "claims_known"].append(mine is not None)
        stated = (read_off(text) or []) if mine is None else mine[1]
        found["unread"].append(not stated)
        found["follows"] += [each.follows for each in stated]
        if (truth is None) != (mine is None):
            continue
        rises = {each.name: each.rises for each in stated}
        true = (read_off(one["answer"]) or []) if truth is None else truth[1]
        both = [(rises[each.name], each.rises) for each in true if each.name in rises]
        found["read_right" if truth is None else "right"] += [
            states == each for states, each in both
        ]
        if truth is not None:
            found["rises"] += [float(states) - float(each) for states, each in both]
    return {name: float(np.mean(values)) if values else None for name, values in found.items()}


def missed(found: dict[str, float | None]) -> list[str]:
    """Return the bars that are missed."""
    return [
        name
        for name, (least, most) in BARS.items()
        if (value := found[name]) is None or not least <= value <= most
    ]


def main() -> None:
    """Ask, and print what came out."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("server")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--at-once", type=int, default=96)
    arguments = parser.parse_args()
    asked = [json.loads(line) for line in arguments.file.open()]
    with ThreadPoolExecutor(arguments.at_once) as pool:
        servers = itertools.cycle(arguments.server.split(","))
        said = list(pool.map(lambda server, one: ask(server, one["messages"]), servers, asked))
    found = measure(asked, said)
    told = {"asked": len(asked), **found, "missed": missed(found), "answers": said[:8]}
    if arguments.out:
        arguments.out.write_text(json.dumps(told, indent=1))
    print(
        json.dumps({name: value for name, value in told.items() if name != "answers"}), flush=True
    )


if __name__ == "__main__":
    main()
