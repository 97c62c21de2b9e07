"""An unfinished run, as far as it has come: what was played, what failed, and the answers that were refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from tradeassay.core.errors import UNDECODABLE
from tradeassay.play.dialogue_log import DialogueLine
from tradeassay.runs.store.run import CodeRun, Run

S = TypeVar("S", bound=msgspec.Struct)
SHOWN = 3
"""Refused answers that are kept of an episode, the latest ones."""


class RefusedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A model's own words that could not be used, and why."""

    session: str
    reason: str
    text: str


class EpisodeStatus(msgspec.Struct, frozen=True, kw_only=True):
    """``steps`` sessions were played, ``lost`` of them without a decision; ``failures`` counts by kind."""

    key: str
    ended: bool
    steps: int
    lost: int
    failures: dict[str, int]
    refused: tuple[RefusedAnswer, ...] = ()


class _Failure(msgspec.Struct, frozen=True):
    kind: str
    detail: str = ""


class _Decision(msgspec.Struct, frozen=True):
    status: str = "ok"
    failures: tuple[_Failure, ...] = ()


class _Step(msgspec.Struct, frozen=True):
    step: int
    session: str
    decision: _Decision = _Decision()


def run_status(run: Run | CodeRun) -> tuple[EpisodeStatus, ...]:
    """Return every episode of a run as far as it has come; a last line that is half written is left out."""
    return tuple(_episode(run.folder / "episodes" / one.key, one.key) for one in run.episodes)


def _episode(folder: Path, key: str) -> EpisodeStatus:
    steps = list(_lines(folder / "events.jsonl", _Step))
    said = {line.step: line for line in _lines(folder / "dialogue.jsonl", DialogueLine)}
    refused = []
    for one in steps:
        if one.decision.failures and one.step in said:
            reply = said[one.step].reply
            words = (reply.text.strip(), *(f"{call.name}({call.arguments})" for call in reply.calls))
            reason = "; ".join(f"{failure.kind}: {failure.detail}" for failure in one.decision.failures)
            text = " ".join(part for part in words if part)
            refused.append(RefusedAnswer(session=one.session, reason=reason, text=text))
    return EpisodeStatus(
        key=key,
        ended=(folder / "outcome.json").is_file(),
        steps=len(steps),
        lost=sum(one.decision.status == "failed" for one in steps),
        failures=dict(Counter(failure.kind for one in steps for failure in one.decision.failures)),
        refused=tuple(refused[-SHOWN:]),
    )


def _lines(file: Path, kind: type[S]) -> Iterator[S]:
    if not file.is_file():
        return
    for line in file.read_bytes().splitlines():
        try:
            yield msgspec.json.decode(line, type=kind)
        except UNDECODABLE:
            return
