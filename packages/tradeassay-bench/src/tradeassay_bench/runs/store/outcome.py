"""The outcomes of episodes (done, or failed with a reason) and of a run's claims.

A failed episode has no return and no verdict.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import msgspec

from tradeassay.core.errors import UNDECODABLE
from tradeassay.core.files import write_atomic
from tradeassay.core.hashing import canonical_json
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.play.dialogue_log import Spending

Status = Literal["done", "failed"]
Answers = Literal["scripted", "replayed", "live"]


class ModelPart(msgspec.Struct, frozen=True, kw_only=True):
    """The source of an episode's answers and their cost.

    ``roles`` contains the cost by role in a run of programs: author, judge and reviewers.
    """

    answers: Answers
    spending: Spending
    roles: dict[str, Spending] | msgspec.UnsetType = msgspec.UNSET


class ProgramPart(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a code episode.

    ``words`` is the result as a short phrase. ``record`` is the benchmark's own record as JSON.
    """

    words: str
    reason: str
    record: msgspec.Raw


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of an episode.

    ``steps`` is the number of lines in the journal, and ``events_sha256`` is the hash of the whole
    journal. ``error`` is the reason for a failure in one line. ``traceback`` is meant for the
    author of the agent. ``model`` describes the source of a model's answers. ``program`` is the
    result of the episode's programs. It is unset if the episode raised an error.
    """

    status: Status
    steps: int
    events_sha256: str
    error: str | None = None
    traceback: str | None = None
    model: ModelPart | msgspec.UnsetType = msgspec.UNSET
    program: ProgramPart | msgspec.UnsetType = msgspec.UNSET

    @property
    def spending(self) -> Spending | None:
        """Return the cost of the models' answers; None without a model."""
        return None if isinstance(self.model, msgspec.UnsetType) else self.model.spending

    @property
    def answers(self) -> Answers | Literal["none"]:
        """Return the source of the models' answers, or "none" without a model."""
        return "none" if isinstance(self.model, msgspec.UnsetType) else self.model.answers

    @property
    def words(self) -> str:
        """Return the result as a short phrase."""
        if isinstance(self.program, msgspec.UnsetType):
            return "done" if self.status == "done" else "broke"
        return self.program.words

    @property
    def reason(self) -> str:
        """Return the reason for the outcome in one line; empty if there is none."""
        return self.error or (
            "" if isinstance(self.program, msgspec.UnsetType) else self.program.reason
        )


class Played(msgspec.Struct, frozen=True, kw_only=True, tag="played"):
    """The outcome of an episode (None if it was stopped) and its wall time."""

    outcome: Outcome | None
    seconds: float


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """A false statement of a recorded run.

    ``check`` is the name of the check, ``what`` is the contradiction. ``episode`` and ``step`` are
    None if the statement concerns the whole run or the whole episode.
    """

    check: str
    what: str
    episode: str | None = None
    step: int | None = None

    def __str__(self) -> str:
        where = self.episode or "run"
        return (
            f"{where}{'' if self.step is None else f', step {self.step}'}: {self.check}: "
            f"{self.what}"
        )


ClaimStatus = Literal["re-derived", "consistent", "cannot be checked", "contradicted"]
"""The result of checking a claim.

``re-derived``: the claim was recomputed from its sources. ``consistent``: the claim was not
recomputed, and contains no contradiction. ``cannot be checked``: the claim cannot be checked here.
``contradicted``: the claim is false.
"""


class ClaimOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one claim of a run, or of ``episodes`` such claims.

    ``episodes`` is 0 for a claim of the whole run. ``why`` states the limits of the check.
    """

    claim: str
    outcome: ClaimStatus
    why: str = ""
    episodes: int = 0

    def __str__(self) -> str:
        where = f" ({self.episodes} episodes)" if self.episodes else ""
        return f"{self.claim}: {self.outcome}{where}{f': {self.why}' if self.why else ''}"


def read_outcome(path: Path) -> Outcome | None:
    """Return the outcome in a file, or None if the episode has not ended.

    Raises :class:`RunError` if the file is damaged.
    """
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    try:
        content.decode()  # The JSON decoder skips unknown fields, so it would accept invalid UTF-8.
        return msgspec.json.decode(content, type=Outcome)
    except UNDECODABLE as error:
        raise RunError(
            f"{path} is damaged: {error}",
            hint="delete it and resume: recorded answers are not requested again",
        ) from error


def write_outcome(path: Path, outcome: Outcome) -> None:
    """Write an outcome to a file, which ends the episode."""
    write_atomic(path, canonical_json(outcome))
