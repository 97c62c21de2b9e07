"""Reading format 1 of a run on disk as the present format.

In format 1 a manifest of a trading run did not say what kind of run it was, and a run of programs had files of
its own: ``items`` in its manifest, ``items/<key>/outcome.json`` with another outcome, and no journal. Only this
module knows about it. Runs are always written in the present format.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from tradeassay.core.hashing import canonical_json, sha256_bytes
from tradeassay.play.dialogue_log import Spending, total
from tradeassay.runs.code_protocol import code_episode

ITEMS: Final = "items"
"""The folder that held the episodes of a run of programs."""


class _Item(msgspec.Struct, frozen=True, kw_only=True):
    key: str
    model: str
    task: str
    labels: dict[str, str]
    seed: int


class _ItemOutcome(msgspec.Struct, frozen=True, kw_only=True):
    status: str
    reason: str
    words: str
    answers: str
    spent: dict[str, Spending]
    record: msgspec.Raw


def manifest_from_1(content: bytes) -> bytes:
    """Return the content of a format-1 ``manifest.json`` in the present format; raises msgspec's errors."""
    raw: dict[str, Any] = msgspec.json.decode(content)
    raw["format"] = 2
    if raw.setdefault("kind", "trading") == "code":
        items = msgspec.convert(raw.pop("items"), tuple[_Item, ...])
        raw["episodes"] = [
            code_episode(one.key, str(raw["benchmark"]), one.model, one.task, way=one.labels, seed=one.seed)
            for one in items
        ]
        raw["episodes_in"] = ITEMS
    return canonical_json(raw)


def outcome_from_1(content: bytes) -> bytes:
    """Return a format-1 outcome of a program in the present format; raises msgspec's errors for anything else."""
    old = msgspec.json.decode(content, type=_ItemOutcome)
    broke = bytes(old.record) == b"null"
    program = {"words": old.words, "reason": old.reason, "record": old.record}
    return msgspec.json.encode(
        {
            "status": old.status,
            "steps": 0,
            "events_sha256": sha256_bytes(b""),
            "error": old.reason if old.status == "failed" else None,
            "model": {"answers": old.answers, "spending": total(old.spent.values()), "roles": old.spent},
            **({} if broke else {"program": program}),
        }
    )
