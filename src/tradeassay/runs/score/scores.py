"""``scores.json``: every number with its interval, or null and the reason.

The file depends only on the spec (its slug aside), the data and the journals: no time, no path, no machine.
Scoring the same run again gives the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import msgspec

from tradeassay.core.errors import UNDECODABLE, RunError
from tradeassay.core.hashing import canonical_json
from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics import AgainstBaseline, EpisodeSeries, SeedSummary, significant
from tradeassay.play.dialogue_log import total
from tradeassay.runs.store.outcome import Outcome, Status

S = TypeVar("S", bound=msgspec.Struct)
SCORES_FORMAT = 1
NET_RETURN = "return_net_of_inference"
"""Last value less the dollars spent on answers / initial value - 1."""


class Inference(msgspec.Struct, frozen=True, kw_only=True):
    """Calls, tokens and dollars of a model, in all and per decision. ``usd`` is None when a price is unknown."""

    calls: int
    decisions: int
    input_tokens: int
    output_tokens: int
    usd: float | None
    calls_per_decision: float | None
    tokens_per_decision: float | None
    usd_per_decision: float | None


class EpisodeScores(msgspec.Struct, frozen=True, kw_only=True):
    """One episode. ``reason`` says why a failed one has no result; ``inference`` what a model's answers cost."""

    key: str
    cell: str
    benchmark: str
    dataset: str
    agent: str
    seed: int
    baseline: bool
    status: Status
    reason: str | None
    steps: int
    events_sha256: str
    measures: dict[str, Measure]
    rejections: dict[str, int] = {}
    failures: dict[str, int] = {}
    inference: Inference | msgspec.UnsetType = msgspec.UNSET


class AgentScores(msgspec.Struct, frozen=True, kw_only=True):
    """One agent in one cell, over its seeds: a row of the leaderboard.

    ``versus_baseline`` is None for the baseline itself. ``p_adjusted`` is its p-value after Holm's correction for
    the number of agents that were compared in the cell; ``added`` marks a baseline that the spec did not name.
    """

    cell: str
    benchmark: str
    dataset: str
    agent: str
    baseline: bool
    added: bool
    episodes: tuple[str, ...]
    failed: int
    measures: dict[str, SeedSummary]
    versus_baseline: AgainstBaseline | None
    p_adjusted: float | None = None
    inference: Inference | msgspec.UnsetType = msgspec.UNSET


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """All numbers of a run: ``episodes`` in the spec's order, ``agents`` likewise."""

    format: int = SCORES_FORMAT
    work_sha256: str
    episodes: tuple[EpisodeScores, ...]
    agents: tuple[AgentScores, ...]

    def episode(self, key: str) -> EpisodeScores:
        """Return one episode's scores; raises :class:`RunError` when the key is unknown."""
        for episode in self.episodes:
            if episode.key == key:
                return episode
        raise RunError(f"no episode '{key}' in the scores", hint="see run.episodes for the keys")


def encode_scores(scores: Scores) -> bytes:
    """Return the exact content of ``scores.json``."""
    return msgspec.json.format(canonical_json(scores), indent=1) + b"\n"


def read_scores(path: Path, kind: type[S]) -> S:
    """Read ``scores.json``; raises :class:`RunError` when it is missing or damaged."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except FileNotFoundError:
        raise RunError(f"{path.parent} has no scores yet", hint=f"tradeassay resume {path.parent}") from None
    except UNDECODABLE as error:
        raise RunError(f"{path} is damaged: {error}", hint="delete it and resume: it is computed again") from error


def inference_of(outcomes: Sequence[Outcome]) -> Inference | None:
    """Return the inference cost of one agent's episodes; None when no model played."""
    parts = [(one, spending) for one in outcomes if (spending := one.spending) is not None]
    if not parts:
        return None
    decisions = sum(outcome.steps for outcome, _ in parts)
    spent = total(spending for _, spending in parts)
    usd = spent.known_usd
    return Inference(
        calls=spent.calls,
        decisions=decisions,
        input_tokens=spent.input_tokens,
        output_tokens=spent.output_tokens,
        usd=None if usd is None else significant(usd),
        calls_per_decision=_per(spent.calls, decisions),
        tokens_per_decision=_per(spent.tokens, decisions),
        usd_per_decision=None if usd is None else _per(usd, decisions),
    )


def net_return(series: EpisodeSeries, outcome: Outcome, currency: str) -> Measure:
    """Return the return when the account pays for the answers, or why it is unknown.

    Dollars are taken at the end; a model's answers are not reinvested. Accounts in another currency would need an
    exchange rate, which the data does not have.
    """
    if series.failure is not None:
        return not_scored(str(series.failure))
    spent = outcome.spending
    if spent is None or not len(series.sessions) or not series.nav[0] > 0:
        return not_scored("no model played" if spent is None else "there is no return")
    usd = spent.known_usd
    if usd is None:
        return not_scored(f"the price of {spent.unpriced} of {spent.calls} answers is unknown")
    if usd > 0 and currency not in ("USD", "USDT", "USDC"):
        return not_scored(f"answers cost dollars, the account is in {currency}, and no exchange rate is known")
    value = (float(series.nav[-1]) - usd) / float(series.nav[0]) - 1.0
    return Measure(value=significant(value), n=len(series.sessions), note="no interval: a cost is no sample")


def _per(amount: float, decisions: int) -> float | None:
    return significant(amount / decisions) if decisions else None
