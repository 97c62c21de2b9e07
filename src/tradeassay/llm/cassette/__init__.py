"""Recorded answers: every question and what came back, so that a run can be replayed without the model."""

from __future__ import annotations

from tradeassay.llm.cassette.difference import first_difference
from tradeassay.llm.cassette.key import answer_key
from tradeassay.llm.cassette.recording import RecordingModel
from tradeassay.llm.cassette.replaying import CassetteMismatch, ReplayingModel
from tradeassay.llm.cassette.store import CassetteStore, Recorded

__all__ = [
    "CassetteMismatch",
    "CassetteStore",
    "Recorded",
    "RecordingModel",
    "ReplayingModel",
    "answer_key",
    "first_difference",
]
