"""The record of an episode's end (done, or failed with the reason), and of what does not hold about it.

A failed episode has no return and no verdict."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from tradeassay.core.errors import UNDECODABLE, RunError
from tradeassay.core.files import write_atomic
from tradeassay.core.hashing import canonical_json
from tradeassay.play.dialogue_log import Spending

Status = Literal["done", "failed"]
Answers = Literal["scripted", "replayed", "live"]


class ModelPart(msgspec.Struct, frozen=True, kw_only=True):
    """Whose answers an episode was played with, and what they cost.

    ``roles`` breaks this down by model: the writer of a program, its judge, its reviewers."""

    answers: Answers
    spending: Spending
    roles: dict[str, Spending] | msgspec.UnsetType = msgspec.UNSET


class ProgramPart(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a code episode in a word or two, the reason, and the benchmark's own record as JSON."""

    words: str
    reason: str
    record: msgspec.Raw


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """``error`` says in one line why an episode failed; ``traceback`` is for the author of the agent.

    ``events_sha256`` is the hash of the whole journal. ``model`` describes a model's part, ``program`` what came
    of the programs it wrote (unset if the episode broke)."""

    status: Status
    steps: int
    events_sha256: str
    error: str | None = None
    traceback: str | None = None
    model: ModelPart | msgspec.UnsetType = msgspec.UNSET
    program: ProgramPart | msgspec.UnsetType = msgspec.UNSET

    @property
    def spending(self) -> Spending | None:
        """What the models' answers cost; None when no model played."""
        return None if isinstance(self.model, msgspec.UnsetType) else self.model.spending

    @property
    def answers(self) -> Answers | Literal["none"]:
        return "none" if isinstance(self.model, msgspec.UnsetType) else self.model.answers

    @property
    def words(self) -> str:
        if isinstance(self.program, msgspec.UnsetType):
            return "done" if self.status == "done" else "broke"
        return self.program.words

    @property
    def reason(self) -> str:
        """Why it ended this way, in one line; empty when there is nothing to say."""
        return self.error or ("" if isinstance(self.program, msgspec.UnsetType) else self.program.reason)


class Played(msgspec.Struct, frozen=True, kw_only=True, tag="played"):
    """How an episode ended (None: it was stopped), and how long it took."""

    outcome: Outcome | None
    seconds: float


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """Something about a recorded run that does not hold: where (None = the whole run), which check, and what."""

    check: str
    what: str
    episode: str | None = None
    step: int | None = None

    def __str__(self) -> str:
        where = self.episode or "run"
        return f"{where}{'' if self.step is None else f', step {self.step}'}: {self.check}: {self.what}"


Word = Literal["re-derived", "consistent", "cannot be checked", "contradicted"]
"""What became of a claim: made again from what it is made of; free of contradictions, but not made again; not
open to any check here; shown to be wrong."""


class ClaimOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one claim of a run, or of so many ``episodes`` of it; ``why`` says why not more."""

    claim: str
    outcome: Word
    why: str = ""
    episodes: int = 0

    def __str__(self) -> str:
        where = f" ({self.episodes} episodes)" if self.episodes else ""
        return f"{self.claim}: {self.outcome}{where}{f': {self.why}' if self.why else ''}"


def read_outcome(path: Path) -> Outcome | None:
    """Return the outcome in a file, None when the episode has not ended; raises :class:`RunError` if damaged."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        content.decode()  # a decoder of records does not look into names that it does not know
        return msgspec.json.decode(content, type=Outcome)
    except UNDECODABLE as error:
        raise RunError(
            f"{path} is damaged: {error}", hint="delete it and resume: recorded answers are not asked again"
        ) from error


def write_outcome(path: Path, outcome: Outcome) -> None:
    write_atomic(path, canonical_json(outcome))
