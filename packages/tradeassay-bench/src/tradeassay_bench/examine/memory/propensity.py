"""Measure memory by log-probabilities: the familiarity of a question and the rank of the truth.

The truth is ranked among decoys. A further test is whether answers to familiar questions are right
more often. This method finds memory that open questions miss, because a model may refuse to state
its memory.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import msgspec
import numpy as np

from tradeassay.core.errors import TradeassayError
from tradeassay.core.measure import Measure, above, not_scored
from tradeassay.metrics.intervals import significant
from tradeassay_bench.core.errors import ModelError
from tradeassay_bench.core.view import NewsItem
from tradeassay_bench.examine.asking import Asker
from tradeassay_bench.examine.memory.questions import (
    CHANCE,
    HORIZONS,
    PriceTruth,
    RecallAnswer,
    points,
    question_text,
)
from tradeassay_bench.examine.memory.scoring import clustered_mean, clustered_rate
from tradeassay_bench.llm import Model, QuestionPlace, RecordingMismatch
from tradeassay_bench.llm.logprobs import TokenLogprobs, logprob_request, logprobs_of, open_logprobs
from tradeassay_bench.runs.spec.episode import CapReached

DECOYS = 4
HEADLINE = "headline"


class Sentence(NamedTuple):
    """A sentence to complete, with five possible ends. The first end is the truth.

    ``asked`` is the question of the sentence. ``words`` contains the name and the days in it.
    """

    fact: int
    kind: str
    day: str
    invented: bool
    asked: str | None
    begun: str
    ends: tuple[str, ...]
    words: tuple[str, ...] = ()


class WeighedFact(msgspec.Struct, frozen=True, kw_only=True):
    """The log-probability scores of one fact.

    ``min_k`` is the familiarity of its question. ``rank`` is the rank of the truth among five ends
    (1 is the most likely).
    """

    fact: int
    kind: str
    day: str
    invented: bool
    min_k: float | None = None
    rank: int | None = None


class Propensity(msgspec.Struct, frozen=True, kw_only=True):
    """The findings from log-probabilities. A measure without a value has a reason.

    ``familiar`` is Min-K% of questions about real names minus Min-K% of questions about invented
    names. ``first`` is the share of facts whose truth is the most likely of the five ends (20 % by
    chance). ``closes``, ``moves`` and ``headlines`` are the same share by kind of fact.
    ``interaction`` is the increase of right answers, beyond chance, per standard deviation of
    familiarity.
    """

    familiar: Measure
    first: Measure
    closes: Measure
    moves: Measure
    headlines: Measure
    interaction: Measure
    sentence: str
    facts: tuple[WeighedFact, ...] = ()


def _no_propensity(reason: str) -> Propensity:
    none, sentence = not_scored(reason), f"There are no log-probabilities: {reason}."
    return Propensity(
        familiar=none,
        first=none,
        closes=none,
        moves=none,
        headlines=none,
        interaction=none,
        sentence=sentence,
    )


def min_k(found: TokenLogprobs, asked: Sentence) -> float | None:
    """Return the mean log-probability of the least likely tokens of a question's name and days.

    Returns None if the server left tokens out. The remaining words of the question are ours. They
    make a name less likely that the model has read in different words.
    """
    named = [
        place.span()
        for place in re.finditer("|".join(map(re.escape, asked.words)), asked.asked or "")
    ]
    each = zip(found.tokens, accumulate(map(len, found.tokens)), found.logprobs, strict=True)
    values = sorted(
        value
        for token, end, value in each
        if value is not None
        and any(first < end and end - len(token) < last for first, last in named)
    )
    if found.missing or not values:
        return None
    return float(np.mean(values[: max(1, round(0.2 * len(values)))]))  # K is 20


def weigh(
    model: str,
    answers: Sequence[RecallAnswer],
    truth: PriceTruth,
    *,
    most: int,
    asker: Asker,
    level: float,
) -> Propensity:
    """Query the log-probabilities of at most ``most`` facts and score them.

    Every missing measure has its reason.
    """
    facts = {one.fact: one for one in answers if one.wording == 0 and one.sample == 0}
    chosen = [one for one in facts.values() if one.kind in ("close", *HORIZONS)]
    real = [one for one in chosen if not one.invented][:most]
    chosen = [*real, *[one for one in chosen if one.invented][: max(1, most // 2)]]
    if most < 1 or not real:
        return _no_propensity(
            "none were asked for" if most < 1 else "no close and no move was asked for"
        )
    told = [continuations(one, truth) for one in chosen]
    news = headlines(truth, max(2, most // 2), len(answers))
    try:
        weighed = asyncio.run(_ask(model, [*told, *news], asker))
    except TradeassayError as error:
        return _no_propensity(str(error))
    why = "no headline was recorded" if news else "the data set has no headlines"
    return score_propensity(weighed, answers, level, no_headlines=why)


def headlines(truth: PriceTruth, most: int, first: int) -> list[Sentence]:
    """Return sentences that complete a headline of a name and day.

    The decoys are four headlines about the name from different days.
    """
    by_name: dict[str, list[NewsItem]] = {}
    for item in truth.news:
        if item.symbols and item.symbols[0] in truth.symbols:
            by_name.setdefault(item.symbols[0], []).append(item)
    names = [
        symbol for symbol, items in by_name.items() if len({one.title for one in items}) > DECOYS
    ]
    rng = np.random.default_rng([first, 33])
    made = []
    for number in range(most if names else 0):
        symbol = names[int(rng.integers(len(names)))]
        items = by_name[symbol]
        true = items[int(rng.integers(len(items)))]
        others = sorted({one.title for one in items} - {true.title})
        ends = [true.title, *(others[int(k)] for k in rng.permutation(len(others))[:DECOYS])]
        day = str(np.datetime64(true.published_at, "ns").astype("datetime64[D]"))
        begun = f"A headline of {day} about {truth.title(symbol)}: "
        made.append(Sentence(first + number, HEADLINE, day, False, None, begun, tuple(ends)))
    return made


def continuations(one: RecallAnswer, truth: PriceTruth) -> Sentence:
    """Return a sentence that states the truth of a question, with decoys."""
    rng = np.random.default_rng([one.fact, 32])
    assert one.truth is not None
    if one.kind == "close":
        begun = f"On {one.day} the shares of {one.title} closed at "
        # Decoys are as near as prices are within a few weeks, on both sides, and as round as the
        # prices of this data.
        factors = np.exp(rng.uniform(0.02, 0.2, DECOYS) * rng.permutation([1, -1, 1, -1]))
        prices = (
            one.truth,
            *(round(one.truth * float(factor), truth.decimals) for factor in factors),
        )
        ends = tuple(f"{price:.2f}" for price in prices)
    else:
        begun = f"From {one.day} to {one.until} the shares of {one.title} went "
        length = HORIZONS[one.kind]
        moves = (truth.closes[length:] / truth.closes[:-length] - 1.0).ravel()
        moves = moves[np.isfinite(moves) & (np.abs(moves - one.truth) > 0.002)]
        drawn = rng.choice(moves, DECOYS) if moves.size else rng.normal(0.0, 0.03, DECOYS)
        ends = tuple(
            f"{'up' if end > 0 else 'down'} {abs(end) * 100:.1f}%" for end in (one.truth, *drawn)
        )
    words = (one.title, one.day, one.until)
    return Sentence(
        one.fact, one.kind, one.day, one.invented, question_text(one), begun, ends, words
    )


async def _ask(model: str, chosen: Sequence[Sentence], asker: Asker) -> list[WeighedFact]:
    """Return the scores of all sentences.

    Raises :class:`ModelError` if the model does not return log-probabilities.
    """
    how = asker.asking
    async with open_logprobs(
        model,
        recording=asker.store,
        replay=how.replay,
        budget=asker.budget,
        connections=how.concurrency,
        access=asker.access,
    ) as opened:
        first = await _scored(
            opened, chosen[0].fact, chosen[0].asked or chosen[0].begun + chosen[0].ends[0], 0
        )
        if isinstance(first, str):
            raise ModelError(first)
        made = list(await asyncio.gather(*(_weighed(opened, one) for one in chosen)))
    asked = [one.min_k for one in made if one.kind != HEADLINE]
    if (partial := asked.count(None)) > len(asked) // 2:
        raise ModelError(f"the server omits tokens in {partial} of {len(asked)} questions")
    return made


async def _scored(model: Model, fact: int, text: str, index: int) -> TokenLogprobs | str:
    place = QuestionPlace(episode="recall-logprobs", step=fact, sample=0, index=index)
    try:
        reply = await model.ask(logprob_request(text), place)
        if reply.error_kind == "over_budget":
            raise CapReached(
                f"log-probabilities were not queried: {reply.error}",
                hint="give a larger cap on dollars",
            )
        return logprobs_of(reply)
    except RecordingMismatch:  # a recording may be older than some of the questions
        return "none were recorded"


async def _weighed(model: Model, one: Sentence) -> WeighedFact:
    texts = [*([one.asked] if one.asked else []), *(one.begun + end for end in one.ends)]
    found = await asyncio.gather(
        *(_scored(model, one.fact, text, index) for index, text in enumerate(texts))
    )
    asked, sums = found[0] if one.asked else "this is no question", []
    for each in found[-len(one.ends) :]:
        if not isinstance(each, str) and not each.missing:
            # The mean over the end of a sentence, so that longer ends are not less likely.
            reached = zip(accumulate(map(len, each.tokens)), each.logprobs, strict=True)
            values = [
                value for length, value in reached if length > len(one.begun) and value is not None
            ]
            sums.append(float(np.mean(values)) if values else float("-inf"))
    # Ties have the worse rank: a truth as likely as a decoy is not known.
    rank = 1 + sum(value >= sums[0] for value in sums[1:]) if len(sums) == len(one.ends) else None
    least = None if isinstance(asked, str) else min_k(asked, one)
    return WeighedFact(
        fact=one.fact, kind=one.kind, day=one.day, invented=one.invented, min_k=least, rank=rank
    )


def score_propensity(
    weighed: Sequence[WeighedFact],
    answers: Sequence[RecallAnswer],
    level: float,
    *,
    no_headlines: str,
) -> Propensity:
    """Return the findings from log-probabilities.

    ``answers`` state which answers were right. Headlines are not prices and are scored separately.
    """
    real = [one for one in weighed if not one.invented]
    ranked = [one for one in real if one.rank is not None]

    def first(kinds: Sequence[str], none: str) -> Measure:
        here = [one for one in ranked if one.kind in kinds]
        return clustered_rate(
            [one.rank == 1 for one in here], [one.day for one in here], level, none
        )

    whole = first(("close", *HORIZONS), "no continuation could be scored")
    read = first((HEADLINE,), no_headlines)
    known = [(one, one.min_k) for one in real if one.min_k is not None]
    made_up = [one.min_k for one in weighed if one.invented and one.min_k is not None]
    familiar = not_scored("no invented name was weighed")
    if known and made_up:
        away = np.array([value for _, value in known]) - float(np.mean(made_up))
        familiar = clustered_mean(away, [one.day for one, _ in known], level)
    interaction = _interaction(known, answers, level)
    words = []
    if whole.value is not None and whole.low is not None:
        told = "above" if above(whole, 1.0 / (DECOYS + 1)) else "not certainly above"
        words.append(
            f"the truth is the likeliest of five in {whole.value:.0%} of {whole.n} facts, {told} "
            "chance (20%)"
        )
    if read.value is not None and read.low is not None:
        words.append(f"the true headline of a day in {read.value:.0%} of {read.n}")
    if interaction.value is not None and interaction.low is not None:
        tied = (
            "it is right where questions are familiar"
            if above(interaction)
            else "being right is not tied to it"
        )
        words.append(f"{tied} ({interaction.value:+.0%} for one standard deviation of Min-K%)")
    sentence = (
        f"By log-probabilities {'; '.join(words)}."
        if words
        else f"Nothing can be told: {whole.reason}."
    )
    return Propensity(
        familiar=familiar,
        first=whole,
        closes=first(("close",), "no close was asked for"),
        moves=first(tuple(HORIZONS), "no move was asked for"),
        headlines=read,
        interaction=interaction,
        sentence=sentence,
        facts=tuple(weighed),
    )


def _interaction(
    known: Sequence[tuple[WeighedFact, float]], answers: Sequence[RecallAnswer], level: float
) -> Measure:
    """Return the slope of right answers, beyond chance, on standardised Min-K%."""
    by_fact: dict[int, list[float]] = {}
    for one in answers:
        if one.kind in CHANCE and not one.invented and one.right is not None:
            by_fact.setdefault(one.fact, []).append(points(one))
    pairs = [
        (value, float(np.mean(by_fact[one.fact])), one.day)
        for one, value in known
        if one.fact in by_fact
    ]
    if len(pairs) < 12:
        return not_scored(f"{len(pairs)} moves were answered and weighed, 12 are needed")
    x, y = np.array([one[0] for one in pairs]), np.array([one[1] for one in pairs])
    if x.std() == 0.0 or y.std() == 0.0:
        return not_scored("all questions are as familiar, or all answers as right")
    z = (x - x.mean()) / x.std()
    slope = float((z * y).mean())
    # The slope is a mean of z times the residual, so that its interval is an interval over days.
    spread = clustered_mean(
        slope + z * (y - y.mean() - slope * z), [one[2] for one in pairs], level
    )
    return Measure(
        value=significant(slope),
        low=spread.low,
        high=spread.high,
        level=level,
        n=len(pairs),
        note=spread.note,
    )
