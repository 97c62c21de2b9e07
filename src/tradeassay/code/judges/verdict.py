"""What the two judges said."""

from __future__ import annotations

from typing import Literal

import msgspec

from tradeassay.core.dialogue import Usage

CriterionName = Literal["indicators", "logic", "relevance"]
CRITERIA: tuple[CriterionName, ...] = ("indicators", "logic", "relevance")
JudgeStatus = Literal["passed", "failed", "not_scored"]


class Criterion(msgspec.Struct, frozen=True, kw_only=True):
    """One question to the language judge, and its answer with the reason."""

    name: CriterionName
    verdict: Literal["pass", "fail"]
    reason: str


class LanguageVerdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a language model found by reading a program. Passed when every criterion is.

    ``not_scored``: no judge, no answer, or no answer in the right form; ``reason`` says which. ``answers`` are its
    texts as they came, ``prompts`` is the hash of what it was asked with.
    """

    status: JudgeStatus
    reason: str = ""
    criteria: tuple[Criterion, ...] = ()
    judge: str = ""
    prompts: str = ""
    attempts: int = 0
    answers: tuple[str, ...] = ()
    usage: Usage = Usage()


class MarketAgreement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far candidate and reference agree on one market, all numbers in 0 .. 1.

    ``value`` is the smaller of ``fills`` (F1 of matched fills) and ``exposure`` (overlap of positions).
    ``entries`` and ``exits`` split the first; None where neither has any. ``failure`` is why the candidate did
    not run here; the value is then 0. Decisions are compared: ``value`` and ``fills`` are the F1 score of
    events, ``stray`` events have no partner, ``forgiven`` ones lie in the warm-up.
    """

    market: str
    value: float
    fills: float
    exposure: float
    entries: float | None = None
    exits: float | None = None
    matched: int = 0
    candidate_events: int = 0
    reference_events: int = 0
    failure: str = ""
    stray: int = 0
    forgiven: int = 0


class BehaviourVerdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What running candidate and reference side by side showed.

    ``agreement`` is the mean over ``markets`` (version 2: the lowest); passed when it reaches ``threshold`` and
    no expectation of the task is violated. ``hints`` say in general terms what differs, without giving the
    reference away.
    """

    status: JudgeStatus
    reason: str = ""
    agreement: float | None = None
    threshold: float | None = None
    markets: tuple[MarketAgreement, ...] = ()
    violations: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
