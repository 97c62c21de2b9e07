"""How an episode ended: done, or failed with the reason. A failed episode has no return."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import msgspec

from tradeassay.core.errors import RunError
from tradeassay.core.files import write_atomic
from tradeassay.core.hashing import canonical_json
from tradeassay.core.secrets import clean_text
from tradeassay.play.dialogue_log import Spending

Status = Literal["done", "failed"]
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}\b")


class ModelPart(msgspec.Struct, frozen=True, kw_only=True):
    """Whose answers an episode was played with, and what they took."""

    answers: Literal["scripted", "replayed", "live"]
    spending: Spending


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """``error`` says in one line why an episode failed; ``traceback`` is for the author of the agent.

    ``events_sha256`` is the hash of the whole journal. ``model`` says what a model's part in it was.
    """

    status: Status
    steps: int
    events_sha256: str
    error: str | None = None
    traceback: str | None = None
    model: ModelPart | msgspec.UnsetType = msgspec.UNSET


def read_outcome(path: Path) -> Outcome | None:
    """Return the outcome in a file, None when the episode has not ended; raises :class:`RunError` if damaged."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        return msgspec.json.decode(content, type=Outcome)
    except msgspec.DecodeError as error:
        raise RunError(f"{path} is damaged: {error}", mend="delete it and resume") from error


def write_outcome(path: Path, outcome: Outcome) -> None:
    """Record how an episode ended."""
    write_atomic(path, canonical_json(outcome))


def one_line(error: BaseException) -> str:
    """Return an error as one line that is the same in every process: no addresses, no line breaks."""
    text = " ".join(clean_text(f"{type(error).__name__}: {error}").split())
    return _ADDRESS.sub("0x…", text)
