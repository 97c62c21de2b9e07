"""Compute the totals of a SysTradeBench run.

The totals are validity, quality, gains, convergence, reviews, and costs.
"""

import math
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from itertools import chain, combinations
from typing import Final

import msgspec
import numpy as np

from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics.agreement import correlation_measure, spearman_rho
from tradeassay.metrics.intervals import rate_measure
from tradeassay_bench.benchmarks.code_protocol import CodeItem, CodeRow, unranked_model
from tradeassay_programs.benchmarks.systrade.spec import Iteration, StrategyOutcome
from tradeassay_programs.benchmarks.systrade.wording import LAST_RETURN, LAST_SHARPE
from tradeassay_programs.code.bars import TaskBars
from tradeassay_programs.code.gates import GATES
from tradeassay_programs.code.review import Review, ReviewBoard, review_board
from tradeassay_programs.code.scores import DIMENSIONS, Scorecard, cohort, complexity, daily_curve
from tradeassay_programs.code.semantics.interpreter import calendar_of
from tradeassay_programs.code.submission import StrategySpec


class TokenRow(msgspec.Struct, frozen=True, kw_only=True):
    """Mean tokens of the requests and answers of one iteration, over the items that reached it."""

    iteration: int
    items: int
    request: float
    answer: float


class ModelRow(msgspec.Struct, frozen=True, kw_only=True):
    """One model: the share of its last submissions that pass each gate, and their mean scores.

    - ``not_cleared`` submissions are counted separately, neither valid nor invalid.
    - ``overall_paper`` is the paper's mean of the reviewers' part (D1, D2) and the automatic part.
    - ``paper_tier`` is one of the paper's three tiers (see :func:`paper_tier`), and ``tokens`` its
      Fig. 3.
    - ``windows`` is the share of tests on ten bars of the test data that valid submissions
      completed (section 5.4.1).
    """

    model: str
    items: int
    unanswered: int
    gates: dict[str, Measure]
    valid: Measure
    scores: dict[str, Measure]
    paper: dict[str, Measure]
    overall: Measure
    usd: float | None
    usd_per_strategy: float | None
    worth: str
    not_cleared: int
    overall_paper: Measure
    paper_tier: str
    tokens: tuple[TokenRow, ...]
    windows: Measure

    @property
    def unranked(self) -> str | None:
        """The reason why the model is not ranked, or None if it may be ranked or no item has an
        answer.
        """
        if self.unanswered == self.items:
            return None
        return unranked_model(self.unanswered, self.items)

    def row(self) -> CodeRow:
        measures = {"valid": self.valid, **self.scores, "overall": self.overall}
        return CodeRow(
            setting="all strategies", agent=self.model, measures=measures, unranked=self.unranked
        )


class StrategyRow(msgspec.Struct, frozen=True, kw_only=True):
    """One strategy over all models."""

    strategy: str
    complexity: float
    items: int
    valid: Measure
    scores: dict[str, Measure]
    overall: Measure
    pbo: Measure
    spa_p: Measure


class IterationRow(msgspec.Struct, frozen=True, kw_only=True):
    """One iteration over all items that reached it.

    It has mean scores, the gain over the previous iteration, and the similarity of submissions:

    - ``alike`` is the mean similarity of code between models on the same strategy.
    - ``same_outcome`` is the share of pairs with the same result in the test year.
    - ``ensemble`` is the volatility of an equal mix of all submissions relative to a single
      submission. If it is near 1, the mix is no steadier than a single submission.
    - ``tokens`` is the mean number of tokens per submission.
    - ``reached_goal`` is the share of submissions that meet the goal of the last iteration: D1 to
      D3, a Sharpe ratio of 1.5 and a return of 10 % on the test year, at the lowest cost level.
    """

    iteration: int
    items: int
    scores: dict[str, Measure]
    gain: Measure
    alike: Measure
    same_outcome: Measure
    test_return: Measure
    ensemble: Measure
    drifted: int
    repaired: int
    tokens: Measure
    reached_goal: Measure


class SystradeScores(msgspec.Struct, frozen=True, kw_only=True):
    """The totals of a run.

    ``windows`` is over all valid submissions, as in :class:`ModelRow`.
    """

    models: tuple[ModelRow, ...]
    strategies: tuple[StrategyRow, ...]
    iterations: tuple[IterationRow, ...]
    complexity: Measure
    reviews: ReviewBoard | None
    windows: Measure


def systrade_scores(
    episodes: Sequence[CodeItem],
    strategies: Mapping[str, StrategySpec],
    years: Mapping[str, TaskBars],
    records: Mapping[str, StrategyOutcome],
    *,
    iterations: int,
) -> SystradeScores:
    """Return the totals of the records by model, strategy and iteration."""
    by_model: dict[str, list[StrategyOutcome]] = {episode.model: [] for episode in episodes}
    by_strategy: dict[str, list[StrategyOutcome]] = {name: [] for name in strategies}
    for episode in episodes:
        if episode.key in records:
            by_model[episode.model].append(records[episode.key])
            by_strategy[episode.task].append(records[episode.key])
    rows = tuple(
        _strategy(strategies[name], found, years[name]) for name, found in by_strategy.items()
    )
    # These are the marks of the submission that counts. Earlier marks are about a different
    # program.
    every: list[Review] = []
    for record in records.values():
        every += next(
            (one.reviews for one in record.iterations if one.scored and one.scored is record.last),
            (),
        )
    quality = np.array([np.nan if row.overall.value is None else row.overall.value for row in rows])
    models = [_model(name, found) for name, found in by_model.items()]
    priced = [
        (row.usd_per_strategy, row.overall.value, row.model)
        for row in models
        if row.overall.value is not None
        and row.usd_per_strategy is not None
        and row.unranked is None
    ]
    usd, overall = max(priced, key=lambda one: one[1], default=(None, None, ""))[:2]
    for place, row in enumerate(models):
        worth, cost, quality_of = "not scored", row.usd_per_strategy, row.overall.value
        if row.unranked is not None:
            models[place] = msgspec.structs.replace(
                row, worth="not ranked", paper_tier="not ranked"
            )
            continue
        # The position relative to the Pareto front of quality over dollars.
        if cost is not None and quality_of is not None:
            better = [
                name
                for price, value, name in priced
                if price <= cost and value >= quality_of and (price, value) != (cost, quality_of)
            ]
            worth = f"{better[0]} gives as much for no more" if better else "worth its price"
        tier = paper_tier(cost, quality_of, usd, overall)
        models[place] = msgspec.structs.replace(row, worth=worth, paper_tier=tier)
    return SystradeScores(
        models=tuple(models),
        strategies=rows,
        iterations=tuple(
            _iteration(number, list(records.values())) for number in range(iterations)
        ),
        complexity=correlation_measure(
            spearman_rho, np.array([row.complexity for row in rows]), quality
        ),
        reviews=review_board(every, [row.model for row in models if row.unranked])
        if every
        else None,
        windows=_ten_bars(_last_cards(list(records.values()))),
    )


def _last_cards(found: Sequence[StrategyOutcome]) -> list[Scorecard]:
    return [record.last.scorecard for record in found if record.last is not None]


def _means(cards: Sequence[Scorecard]) -> dict[str, Measure]:
    return {name: _mean([card.corrected[name].value for card in cards]) for name in DIMENSIONS}


def _mean(values: Sequence[float | None]) -> Measure:
    known = [value for value in values if value is not None]
    if not known:
        return not_scored("nothing was scored")
    note = (
        None
        if len(known) == len(values)
        else f"{len(values) - len(known)} of {len(values)} not scored"
    )
    return Measure(value=float(np.mean(known)), n=len(known), note=note)


def _model(name: str, found: Sequence[StrategyOutcome]) -> ModelRow:
    cards = _last_cards(found)
    unanswered = sum(record.stopped == "no answer" and record.last is None for record in found)
    asked = len(found) - unanswered
    open_cards = sum(card.gates.not_cleared for card in cards)
    usd = [record.usage.usd for record in found]
    total = (
        None if any(value is None for value in usd) else math.fsum(value or 0.0 for value in usd)
    )
    by_number: dict[int, list[Iteration]] = {}
    for one in chain.from_iterable(record.iterations for record in found):
        by_number.setdefault(one.number, []).append(one)
    return ModelRow(
        model=name,
        items=len(found),
        unanswered=unanswered,
        gates={
            gate: rate_measure(
                sum(c.gates.gate(gate).passed for c in cards), asked, nothing="nothing was asked"
            )
            for gate in GATES
        },
        valid=rate_measure(
            sum(c.gates.valid for c in cards), asked - open_cards, nothing="nothing was asked"
        ),
        scores=_means(cards),
        paper={name: _mean([card.paper[name].value for card in cards]) for name in DIMENSIONS},
        overall=_mean([card.overall.value for card in cards]),
        usd=total,
        usd_per_strategy=None if total is None or not found else total / len(found),
        worth="",
        paper_tier="",
        not_cleared=open_cards,
        overall_paper=_mean([half_of(card, DIMENSIONS) for card in cards]),
        tokens=tuple(
            TokenRow(
                iteration=number,
                items=len(these),
                request=float(np.mean([one.usage.input_tokens for one in these])),
                answer=float(np.mean([one.usage.output_tokens for one in these])),
            )
            for number, these in sorted(by_number.items())
        ),
        windows=_ten_bars(cards),
    )


def _ten_bars(cards: Sequence[Scorecard]) -> Measure:
    tried = [card.windows for card in cards if card.windows is not msgspec.UNSET]
    passed, tests = sum(one.passed for one in tried), sum(one.tests for one in tried)
    return rate_measure(passed, tests, nothing="no valid submission")


def half_of(card: Scorecard, names: Sequence[str]) -> float | None:
    """Return the mean of some of the paper's marks, or None if a mark is missing.

    ``names`` are the reviewers' D1 and D2, the automatic D3 and D4, or all four.
    """
    known = [value for name in names if (value := card.paper[name].value) is not None]
    return float(np.mean(known)) if len(known) == len(names) else None


NEAR_BEST: Final = 0.88
"""Minimum share of the best score in the first two tiers.

The paper's second tier reaches 6.94 of the best 7.85.
"""
HALF_PRICE: Final = 0.5
"""Maximum share of the best model's cost in the second and third tier.

The paper's second tier costs 40 to 50 % of the first tier.
"""


def paper_tier(
    usd: float | None, overall: float | None, best_usd: float | None, best: float | None
) -> str:
    """Return the tier of section 5.6, measured against the model with the best overall score.

    - Balanced has at least :data:`NEAR_BEST` of the best score, for at most :data:`HALF_PRICE` of
      the best model's cost.
    - Premium has at least the same share of the best score, for a higher cost.
    - Budget has a lower score, for at most the cost of balanced.
    - A model with a lower score for a higher cost is in no tier.

    If the best model costs nothing, there are no tiers.
    """
    if usd is None or overall is None or not best_usd or best is None:
        return "not scored"
    cheap, near = usd <= HALF_PRICE * best_usd, overall >= NEAR_BEST * best
    if near:
        return "balanced" if cheap else "premium"
    return "budget" if cheap else "none: dearer than half the best, and worse"


def _strategy(spec: StrategySpec, found: Sequence[StrategyOutcome], year: TaskBars) -> StrategyRow:
    cards = _last_cards(found)
    # Results that need all submissions together. Buy and hold has all legs in equal parts.
    paths = {
        f"{card.submission} {n}": card.year.daily
        for n, card in enumerate(cards)
        if card.year is not None
    }
    closes = np.stack(
        [feed["close"] for feed in list(year.feeds.values())[: len(spec.semantics.inputs.legs)]]
    )
    session = None if year.timeframe == "1d" else calendar_of(year.times).session.astype(np.float64)
    held = daily_curve((closes / closes[:, :1]).mean(axis=0), session)
    benchmark = held[1:] / held[:-1] - 1.0
    table = np.array(list(paths.values())).T if paths else np.empty((benchmark.size, 0))
    together = cohort(list(paths), table, benchmark)
    alike = len(paths) > 1 and len(set(paths.values())) == 1
    return StrategyRow(
        strategy=spec.id,
        complexity=complexity(spec.semantics),
        items=len(found),
        valid=rate_measure(
            sum(c.gates.valid for c in cards), len(found), nothing="nothing was asked"
        ),
        scores=_means(cards),
        overall=_mean([card.overall.value for card in cards]),
        pbo=not_scored("all submissions had the same year: none was chosen")
        if alike
        else together.pbo,
        spa_p=together.spa_p,
    )


def _iteration(number: int, found: Sequence[StrategyOutcome]) -> IterationRow:
    here = [(r, r.iterations[number]) for r in found if len(r.iterations) > number]
    scored = [(r, one, one.scored) for r, one in here if one.scored is not None]
    cards = [what.scorecard for _, _, what in scored]
    gains, alike, same = [], [], []
    for record, _, after in scored if number else ():
        before = record.iterations[number - 1].scored
        earlier, later = (
            None if before is None else before.scorecard.overall.value,
            after.scorecard.overall.value,
        )
        gains.append(None if earlier is None or later is None else later - earlier)
    for (r, a, one), (s, b, other) in combinations(scored, 2):
        if r.strategy != s.strategy or r.model == s.model:
            continue
        if a.submission is not None and b.submission is not None:
            texts = a.submission.source.splitlines(), b.submission.source.splitlines()
            alike.append(SequenceMatcher(None, *texts).ratio())
        mine, theirs = _test_return(one.scorecard), _test_return(other.scorecard)
        same.append(None if mine is None or theirs is None else float(abs(mine - theirs) < 1e-9))
    drift = [what.drift.kind for _, _, what in scored if what.drift is not None]
    goal = [
        card
        for card in cards
        if card.year is not None
        and card.reached
        and card.year.costs[0].total >= LAST_RETURN
        and (card.year.costs[0].sharpe or 0.0) >= LAST_SHARPE
    ]
    return IterationRow(
        iteration=number,
        items=len(here),
        scores=_means(cards),
        gain=_mean(gains) if number else not_scored("the first iteration has none before it"),
        alike=_mean(alike),
        same_outcome=_mean(same),
        test_return=_mean([_test_return(card) for card in cards]),
        ensemble=_ensemble(cards),
        drifted=drift.count("drift"),
        repaired=drift.count("repair"),
        tokens=_mean([float(one.usage.input_tokens + one.usage.output_tokens) for _, one in here]),
        reached_goal=rate_measure(len(goal), len(cards), nothing="nothing was scored"),
    )


def _test_return(card: Scorecard) -> float | None:
    return None if card.year is None else card.year.costs[0].total


def _ensemble(cards: Sequence[Scorecard]) -> Measure:
    """Return the volatility of an equal mix of submissions relative to a single submission.

    The result is the mean over strategies.
    """
    by_strategy: dict[str, list[tuple[float, ...]]] = {}
    for card in cards:
        if card.year is not None:
            by_strategy.setdefault(card.strategy, []).append(card.year.daily)
    ratios = []
    for paths in by_strategy.values():
        table = np.array(paths)
        alone = float(table.std(axis=1).mean())
        if len(paths) > 1 and alone > 0:
            ratios.append(float(table.mean(axis=0).std()) / alone)
    return _mean(ratios) if ratios else not_scored("no strategy with two submissions that varied")
