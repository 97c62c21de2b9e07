"""Recorded answers: every question and what came back, so that a run can be replayed without the model."""

from __future__ import annotations

from tradeassay.llm.cassette.models import CassetteMismatch, RecordingModel, ReplayingModel, first_difference
from tradeassay.llm.cassette.store import CassetteStore, RecordedAnswer, answer_key, without_texts

__all__ = [
    "CassetteMismatch",
    "CassetteStore",
    "RecordedAnswer",
    "RecordingModel",
    "ReplayingModel",
    "answer_key",
    "first_difference",
    "without_texts",
]
