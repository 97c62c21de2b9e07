"""``outcome.json``: how an item ended, what it took, and the benchmark's own record of it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from tradeassay.core.errors import RunError
from tradeassay.core.files import write_atomic
from tradeassay.core.hashing import sha256_bytes
from tradeassay.play.dialogue_log import Spending

Answers = Literal["scripted", "replayed", "live"]


class ItemOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """``record`` is the benchmark's own, as JSON; ``null`` when the item broke before there was one.

    ``spent`` holds what each role's answers took. ``words`` is the outcome in a word or two.
    """

    status: Literal["done", "failed"]
    reason: str
    words: str
    answers: Answers
    spent: dict[str, Spending]
    record: msgspec.Raw

    @property
    def has_record(self) -> bool:
        """Whether there is a record."""
        return bytes(self.record) != b"null"


def write_item(path: Path, outcome: ItemOutcome) -> None:
    """Write an outcome, whole or not at all."""
    write_atomic(path, msgspec.json.encode(outcome, order="deterministic") + b"\n")


def read_item(path: Path) -> ItemOutcome | None:
    """Return an outcome, None when the item has none; raises :class:`RunError` for a damaged file."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return msgspec.json.decode(content, type=ItemOutcome)
    except msgspec.DecodeError as error:
        raise RunError(
            f"{path} is damaged: {error}", mend="delete it and resume: recorded answers are not asked again"
        ) from error


def outcome_sha256(path: Path) -> str:
    """Return the hash under which the scores know an outcome."""
    return sha256_bytes(path.read_bytes())
