"""Represent the scorecard of one submission, for a separate page of a run."""

from __future__ import annotations

from dataclasses import dataclass

from tradeassay.core.measure import Measure
from tradeassay_programs.benchmarks.systrade.examine import Trail
from tradeassay_programs.code.drift import DriftReport
from tradeassay_programs.code.evaluation import Evaluation as Evaluation
from tradeassay_programs.code.review import Rated as Rated, Review, ReviewForm as ReviewForm
from tradeassay_programs.code.scores import Scorecard as Scorecard
from tradeassay_programs.code.submission import Submission


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmissionCard:
    """The scorecard of one submission, with its drift and its D4 over several years.

    ``drift`` is relative to the first submission of its run, or to a named earlier submission.
    ``years`` is D4 over several drawn years.
    """

    scorecard: Scorecard
    trail: Trail | None
    submission: Submission
    drift: DriftReport | None = None
    years: Measure | None = None
    reviews: tuple[Review, ...] = ()
    iteration: int | None = None
