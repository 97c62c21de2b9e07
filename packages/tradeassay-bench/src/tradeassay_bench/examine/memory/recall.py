"""Audit a model's recall: query it about the past, and score its answers.

The scores are compared with chance and with controls.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec
import numpy as np

from tradeassay.core.errors import UserError
from tradeassay.core.measure import Measure, above, below, not_scored
from tradeassay.metrics.intervals import between
from tradeassay.verdict.recalled import RecallWord
from tradeassay_bench.core.dialogue import ModelReply
from tradeassay_bench.data import Snapshot, load_dataset, load_verified
from tradeassay_bench.examine.asking import Asker
from tradeassay_bench.examine.attribute import account_days
from tradeassay_bench.examine.memory.propensity import DECOYS, Propensity, weigh
from tradeassay_bench.examine.memory.questions import (
    CHANCE,
    HORIZONS,
    LONGEST,
    PriceTruth,
    RecallAnswer,
    RecallConfig,
    RecallQuestion,
    draw_for_pairs,
    draw_questions,
    form_of,
    is_near,
    points,
    read_answer,
    request_of,
)
from tradeassay_bench.examine.memory.scoring import clustered_mean, clustered_rate, sizes_recalled
from tradeassay_bench.llm import (
    ModelParams,
    PriceTable,
    QuestionPlace,
    estimate_request,
    load_cutoffs,
    load_prices,
)
from tradeassay_bench.play import AddressedQuestion
from tradeassay_bench.runs.spec.episode import Asking

if TYPE_CHECKING:
    from tradeassay_bench.runs import EpisodeSpec, Run

FORMAT = "recall-v1"
ANSWER_TOKENS = 48
"""The maximum number of tokens of an answer. The question asks for a word or a number."""
RecallPeriod = Literal["all", "before", "after"]
_LOOKS = 3
_DRAWS = 500
_LITTLE = 0.1
"""The maximum share of possible knowledge that is considered no recall."""
_ENOUGH = 0.25
"""The minimum share of possible knowledge that the answers of a test must be able to show."""


class RecallScore(msgspec.Struct, frozen=True, kw_only=True):
    """The score of one kind of question about real or invented names, in one period.

    ``answered``, ``refused`` and ``unread`` are shares of all questions. ``hit`` is the share of
    right answers among the parsed answers. ``chance`` is that share for guesses. ``rising`` and
    ``falling`` are hits on rising and on falling prices, which reveal a model that always answers
    "up". ``correlation`` is the correlation of recalled and true moves. ``error`` is the median
    relative distance of a close or a level, or the distance of a move. ``steady`` is the share of
    facts whose answers agree. Intervals allow for days in common.
    """

    kind: str
    names: Literal["real", "invented"]
    period: RecallPeriod
    asked: int
    answered: Measure
    refused: Measure
    unread: Measure
    hit: Measure
    chance: float | None
    rising: Measure
    falling: Measure
    correlation: Measure
    error: Measure
    steady: Measure


class RecallMonth(msgspec.Struct, frozen=True, kw_only=True):
    """Recall in a period of months that begins with ``first``.

    ``recall`` is 0 for guesses and 1 if every move and best name is known. ``control`` is the same
    score for invented names. ``near`` is the share of stated closes within 5 % of the true close.
    """

    first: str
    recall: Measure
    control: Measure
    near: Measure


class RecallPlan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The cost of an audit.

    ``usd`` is None if the model's price is unknown. ``left_out`` states the share of a run's
    holdings that the questions omit, and the option that includes all holdings.
    """

    questions: int
    facts: int
    input_tokens: int
    output_tokens: int
    usd: float | None
    left_out: str = ""

    @property
    def sentence(self) -> str:
        price = "its price is not known" if self.usd is None else f"at most about ${self.usd:.2f}"
        return (
            f"{self.questions:,} questions about {self.facts:,} facts, about "
            f"{self.input_tokens + self.output_tokens:,} tokens, {price}"
        )


class RecallReport(msgspec.Struct, frozen=True, kw_only=True):
    """A recall audit.

    ``recall`` is the share of moves and best names known beyond chance, before the cutoff if that
    is known. ``beyond`` is ``recall`` minus the control with invented names. ``after`` is
    ``recall`` after the cutoff. ``closes`` is the share of right closes minus the share if the same
    answers are assigned to different questions. ``admitted`` is the share of facts that were
    refused if a refusal was allowed and right if an estimate was required.

    ``told`` is the finding as a keyword. ``sentence`` is the finding with its numbers. The model
    *recalls* if moves and best names, closes, or log-probabilities show it. The three tests share
    one error rate, so each has a wider interval. Moves show recall by their signs, or by sizes that
    correlate with the true sizes.
    """

    format: str = FORMAT
    model: str
    dataset: str
    run: str | None
    config: RecallConfig
    cutoff: date | None
    plan: RecallPlan
    usd: float | None
    told: RecallWord
    sentence: str
    recall: Measure
    closes: Measure
    beyond: Measure
    after: Measure
    admitted: Measure
    scores: tuple[RecallScore, ...]
    months: tuple[RecallMonth, ...]
    notes: tuple[str, ...]
    answers: tuple[RecallAnswer, ...]
    propensity: Propensity | None = None


Answer = Callable[[RecallQuestion], ModelReply]
"""A function that answers in place of a language model: a program with a known memory."""


def recall_audit(
    model: str,
    dataset: str | Snapshot | None = None,
    *,
    run: Run | None = None,
    config: RecallConfig | None = None,
    asking: Asking | None = None,
    home: Path | None = None,
    say: Callable[[str], None] | None = None,
    answer: Answer | None = None,
) -> RecallReport:
    """Query a model about its memory of a data set, or of the names and days of a ``run``.

    Answers are recorded in ``asking.recordings``. With ``asking.replay`` they are read from that
    folder only. ``answer`` replaces the model. Raises :class:`UserError` for bad input and
    :class:`ModelError` if the model does not answer.
    """
    config, say, asker = config or RecallConfig(), say or (lambda _: None), Asker(asking, home)
    if run is not None and answer is None:
        model = episodes_of(run, model)[0].model  # an agent's name may differ from its model's
    audit = _prepare(model, dataset, run, config, home, asker.access.prices)
    questions = audit.questions
    say(f"{audit.plan.sentence}; the questions contain no price")
    if audit.plan.left_out:
        say(audit.plan.left_out)
    if answer is not None:
        return audit.report([read_answer(one, answer(one)) for one in questions], None, 0.0)
    replies = asyncio.run(_ask_all(model, questions, config, asker, say))
    answers = [read_answer(*pair) for pair in zip(questions, replies, strict=True)]
    say("log-probabilities ...")
    weighed = weigh(
        model, answers, audit.truth, most=config.logprobs, asker=asker, level=_shared(config.level)
    )
    return audit.report(answers, weighed, asker.usd)


def recall_again(run: Run, record: RecallReport, asked: bool) -> RecallReport:
    """Recompute an audit from its seed and return the result.

    If ``asked`` is true, the model is queried again. Otherwise the recorded answers are scored
    again. Raises :class:`UserError` if its questions differ from those that its seed draws.
    """
    home = Path(run.home) if run.home else None
    played = None if record.run is None else run
    data = None if played else load_verified(record.dataset, home)
    if asked:
        again = recall_audit(record.model, data, run=played, config=record.config, home=home)
        return msgspec.structs.replace(again, usd=record.usd)
    audit = _prepare(record.model, data, played, record.config, home, None)
    given = {(one.fact, one.wording, one.sample): one for one in record.answers}
    if {*given} != {(one.fact, one.wording, one.sample) for one in audit.questions}:
        raise UserError(
            "its questions differ from those drawn with its seed", hint="do not rely on this audit"
        )
    answers = []
    for one in audit.questions:
        then = given[one.fact, one.wording, one.sample]
        reply = ModelReply(text=then.said, error_kind="refused" if then.refused else None)
        # Only the beginning of a long answer is stored, so its parsed value is accepted.
        answers.append(read_answer(one, reply) if len(then.said) < LONGEST else then)
    report = audit.report(answers, record.propensity, record.usd)
    return msgspec.structs.replace(
        report, plan=msgspec.structs.replace(report.plan, usd=record.plan.usd)
    )


def plan_recall(
    model: str,
    dataset: str | Snapshot | None = None,
    *,
    run: Run | None = None,
    config: RecallConfig | None = None,
) -> RecallPlan:
    """Return the cost of an audit without querying the model."""
    return _prepare(model, dataset, run, config or RecallConfig(), None, None).plan


@dataclass(frozen=True, slots=True)
class _Audit:
    """The questions of an audit, and the parts of its report that do not depend on answers."""

    truth: PriceTruth
    questions: tuple[RecallQuestion, ...]
    config: RecallConfig
    model: str
    dataset: str
    run: str | None
    cutoff: date | None
    plan: RecallPlan

    def report(
        self, answers: Sequence[RecallAnswer], propensity: Propensity | None, usd: float | None
    ) -> RecallReport:
        notes = []
        if self.truth.synthetic:
            notes.append("the names are invented: a model that knows them was shown this data")
        if self.cutoff is None:
            why = f"the cutoff of {self.model} is not known"
            notes.append(f"{why}, so there are no results by distance to it; give --cutoff DATE")
        about = {
            name: getattr(self, name)
            for name in ("config", "model", "dataset", "run", "cutoff", "plan")
        }
        return score_recall(answers, propensity=propensity, usd=usd, notes=notes, **about)


def _prepare(
    model: str,
    dataset: str | Snapshot | None,
    run: Run | None,
    config: RecallConfig,
    home: Path | None,
    prices: PriceTable | None,
) -> _Audit:
    """Return the questions of an audit and the parts of its report that need no answers.

    Raises :class:`UserError` if neither a data set nor a run is given.
    """
    known = []
    if run is not None:
        played = episodes_of(run, model)
        snapshot = run.snapshot(played[0].key)
        known = [
            found.cutoff
            for one in played
            if (found := run.manifest.models.get(one.label)) and found.cutoff
        ]
    elif dataset is None:
        raise UserError(
            "neither a data set nor a run is given", hint="give dataset=NAME or run=RUN"
        )
    else:
        snapshot = dataset if isinstance(dataset, Snapshot) else load_dataset(dataset, home)
    listed = load_cutoffs().of(model)
    cutoff = config.cutoff or next(iter(known), None if listed is None else listed.last_day)
    truth, left_out = PriceTruth.of(snapshot), ""
    if run is None:
        questions = draw_questions(truth, config, cutoff)
    else:
        pairs, left_out = _pairs_of_run(run, model, truth, config)
        questions = draw_for_pairs(truth, pairs, config)
    sent = sum(estimate_request(request_of(one)) for one in questions)
    given = ANSWER_TOKENS * len(questions)
    price = (prices or load_prices()).of(model)
    plan = RecallPlan(
        questions=len(questions),
        facts=len({one.fact for one in questions}),
        input_tokens=sent,
        output_tokens=given,
        usd=None if price is None else price.worst_usd(sent, given),
        left_out=left_out,
    )
    run_name = None if run is None else run.spec.name
    return _Audit(truth, questions, config, model, snapshot.name, run_name, cutoff, plan)


def episodes_of(run: Run, model: str) -> list[EpisodeSpec]:
    """Return the episodes of a model. Raises :class:`UserError` if there are none."""
    found = [
        one
        for one in run.episodes
        if model in (one.label, run.names[one.label], one.model if one.by_model else None)
    ]
    if not found:
        known = (
            ", ".join(dict.fromkeys(one.label for one in run.episodes if one.by_model))
            or "no model"
        )
        raise UserError(f"{model} has no episode in {run.folder}", hint=f"it has {known}")
    return found


def _pairs_of_run(
    run: Run, model: str, truth: PriceTruth, config: RecallConfig
) -> tuple[list[tuple[str, str, str]], str]:
    """Return the (symbol, first day, last day) of the questions for a run, and a note.

    The periods of every name held cover all its sessions. Overlapping periods end after the last
    session, because the results of decisions do. If there are more periods than questions allowed,
    the names with the smallest holdings are left out, and the note states so.
    """
    row = {str(day): number for number, day in enumerate(truth.sessions)}
    held = np.zeros(len(truth.symbols))
    rows: set[int] = set()
    for episode in episodes_of(run, model):
        days = account_days(run.records(episode.key), truth.symbols)
        rows |= {row[session] for session in days.sessions}
        held += np.abs(days.weights).sum(axis=0)
    if not held.any():
        raise UserError(
            f"{model} held nothing in {run.folder}",
            hint="audit a data set instead: dataset=NAME",
        )
    step = HORIZONS[config.horizon]
    starts = range(max(0, min(rows) - 1), max(rows), config.every or step)
    last = max(rows) if config.every is None else len(truth.sessions) - 1
    spans = [
        (str(truth.sessions[at]), str(truth.sessions[min(at + step, last)]))
        for at in starts
        if at < last
    ]
    each = config.wordings * config.samples
    facts = max(1, config.questions // each * 4 // 5)
    most = max(2, facts // max(1, len(spans)))
    ranked = [int(k) for k in np.argsort(-held, kind="stable") if held[k] > 0.0]
    asked, left_out = ranked[:most], ""
    if len(asked) < len(ranked):
        made, of = len(asked) * len(spans), len(ranked) * len(spans)
        left_out = (
            f"asked about {made:,} of {of:,} moves of names that were held: {len(asked)} of "
            f"{len(ranked)} names, "
            f"{held[asked].sum() / held.sum():.0%} of what was held; --questions "
            f"{each * math.ceil(of * 5 / 4)} "
            "asks about all"
        )
    return [(truth.symbols[k], *span) for k, span in product(asked, spans)], left_out


async def _ask_all(
    model: str,
    questions: Sequence[RecallQuestion],
    config: RecallConfig,
    asker: Asker,
    say: Callable[[str], None],
) -> list[ModelReply]:
    asker.check(model)
    params = ModelParams(temperature=0.0 if config.samples == 1 else 0.7, max_tokens=ANSWER_TOKENS)
    done = 0
    async with asker.open(model, params) as ask:

        async def answer(one: RecallQuestion) -> ModelReply:
            nonlocal done
            place = QuestionPlace(
                episode="recall", step=one.fact, sample=one.sample, index=one.wording
            )
            reply = await ask(AddressedQuestion(request_of(one), place))
            done += 1
            if done == len(questions) or done % max(1, len(questions) // 10) == 0:
                say(f"{model}: {done:,} of {len(questions):,} answers")
            return reply

        return list(await asyncio.gather(*map(answer, questions)))


# Scoring ------------------------------------------------------------------------------------------


def score_recall(
    answers: Sequence[RecallAnswer],
    *,
    model: str,
    config: RecallConfig,
    cutoff: date | None,
    propensity: Propensity | None = None,
    notes: Sequence[str] = (),
    **about: object,
) -> RecallReport:
    """Return the report of an audit from its answers. No model is queried."""
    real = [one for one in answers if not one.invented]
    early = real if cutoff is None else [one for one in real if _before(one, cutoff)]
    late = [] if cutoff is None else [one for one in real if not _before(one, cutoff)]
    made_up = [one for one in answers if one.invented and (cutoff is None or _before(one, cutoff))]
    level, shared = config.level, _shared(config.level)
    recall = _known(early, shared)
    twins = {(one.stands_for, one.day, one.until, one.kind) for one in made_up}
    matched = [one for one in early if (one.symbol, one.day, one.until, one.kind) in twins]
    beyond = _difference(matched, made_up, level)
    after = not_scored("the cutoff is not known") if cutoff is None else _known(late, level)
    closes = _beyond_dealing(early, shared)
    told, sentence = _tell(model, recall, _beyond_chance(early, shared), beyond, after, early)
    shown = _shown_otherwise(sizes_recalled(early, shared), closes, propensity)
    if shown and told != "recalls":
        moves = (
            recall.reason if recall.value is None else f"{recall.value:.0%} of what can be known"
        )
        told, sentence = (
            "recalls",
            f"{model} recalls prices: {shown}; moves and best names: {moves}.",
        )
    if all(one.right is None for one in answers):
        notes = [*notes, f"{_why_none(answers)}: nothing can be scored"]
    return RecallReport(
        model=model,
        config=config,
        cutoff=cutoff,
        told=told,
        sentence=sentence,
        recall=recall,
        closes=closes,
        beyond=beyond,
        after=after,
        admitted=_admitted(real, level),
        scores=tuple(_scores(answers, cutoff, level)),
        months=tuple(_months(answers, level)),
        notes=tuple(notes),
        answers=tuple(answers),
        propensity=propensity,
        **about,  # type: ignore[arg-type]  # dataset, run, plan, usd
    )


def _shared(level: float) -> float:
    return 1.0 - (1.0 - level) / _LOOKS


def _before(one: RecallAnswer, cutoff: date) -> bool:
    return one.until <= cutoff.isoformat()


def _known(answers: Sequence[RecallAnswer], level: float) -> Measure:
    scored = [one for one in answers if one.kind in CHANCE]
    if not any(one.right is not None for one in scored):
        return not_scored(_why_none(scored))
    return clustered_mean(
        np.array([points(one) for one in scored]), [one.day for one in scored], level
    )


def _labels(one: RecallAnswer) -> tuple[int, int]:
    """Return the answer and the truth as category numbers."""
    if one.choices:
        return one.choices.index(str(one.chosen)), one.choices.index(str(one.named))
    return one.sign, 1 if (one.truth or 0.0) > 0.0 else -1


def _beyond_chance(answers: Sequence[RecallAnswer], level: float) -> tuple[Measure, float]:
    """Return the knowledge beyond the same answers assigned to all questions.

    The scale is the scale of recall. The second value is the most that these answers could have
    shown: nothing if all are equal, little if most are refused.
    """
    scored = [one for one in answers if one.kind in CHANCE]
    values, most = np.zeros(len(scored)), 0.0
    for chance in sorted({*CHANCE.values()}):
        places = [
            k
            for k, one in enumerate(scored)
            if one.right is not None and CHANCE[one.kind] == chance
        ]
        if not places:
            continue
        given, true = np.array([_labels(scored[k]) for k in places]).T
        words = np.unique([given, true])
        said, is_so = ((one[:, None] == words).mean(axis=0) for one in (given, true))
        right = np.array([float(bool(scored[k].right)) for k in places])
        values[places] = (right - said[np.searchsorted(words, true)]) / (1.0 - chance)
        most += (
            float(np.minimum(said, is_so).sum() - said @ is_so)
            / (1.0 - chance)
            * len(places)
            / len(scored)
        )
    if not scored:
        return not_scored(_why_none(scored)), 0.0
    return clustered_mean(values, [one.day for one in scored], level), most


def untold(audits: Sequence[RecallReport]) -> str | None:
    """Return why the answers of audits could not have revealed recall; None if they could."""
    most = max(
        _beyond_chance([a for a in one.answers if not a.invented], one.config.level)[1]
        for one in audits
    )
    return (
        None
        if most >= _ENOUGH
        else f"answers so few or so alike tell at most {most:.0%} beyond guessing"
    )


def _why_none(answers: Sequence[RecallAnswer]) -> str:
    if not answers:
        return "nothing of this was asked"
    if all(one.refused for one in answers):
        return "every answer is a refusal"
    return "no answer has the form that was asked for"


def _difference(
    real: Sequence[RecallAnswer], made_up: Sequence[RecallAnswer], level: float
) -> Measure:
    """Return the score of answers about real names minus the score about invented names.

    The answers are about the same days.
    """
    pairs: dict[tuple[str, str, str, int, int], list[float]] = {}
    for sign, side in ((1.0, real), (-1.0, made_up)):
        for one in side:
            if one.kind in CHANCE:
                key = (one.stands_for or one.symbol, one.day, one.kind, one.wording, one.sample)
                pairs.setdefault(key, []).append(sign * points(one))
    both = {key: sum(values) for key, values in pairs.items() if len(values) == 2}
    if not both:
        return not_scored("no move was asked of an invented name")
    return clustered_mean(np.array([*both.values()]), [day for _, day, *_ in both], level)


def _tell(
    model: str,
    recall: Measure,
    by_dealing: tuple[Measure, float],
    beyond: Measure,
    after: Measure,
    early: Sequence[RecallAnswer],
) -> tuple[RecallWord, str]:
    """Return the finding of an audit as a keyword and as a sentence."""
    if recall.value is None:
        return "cannot be told", f"What {model} remembers cannot be told: {recall.reason}."
    if recall.low is None or recall.high is None:
        return "cannot be told", f"What {model} remembers cannot be told from {recall.n} answers."
    # An interval over few days may exceed the possible range: all known, or all wrong.
    size = f"{recall.value:.0%} ({max(recall.low, -1.0):.0%} to {min(recall.high, 1.0):.0%})"
    moves, says = [one for one in early if one.kind in HORIZONS and one.right is not None], ""
    if moves:
        share = sum(bool(one.right) for one in moves) / len(moves)
        says = f"; it is right about {share:.0%} of the moves it answers for, half is chance"
    dealt, most = by_dealing
    if above(recall) and above(dealt):
        about = ""
        if beyond.low is not None:
            about = ", by name" if above(beyond) else ", perhaps by the date alone"
        late = ""
        if above(after):
            late = (
                " It does so after its cutoff too: the cutoff is later than stated, or it "
                "guesses well."
            )
        return (
            "recalls",
            f"{model} recalls {size} of what can be known beyond chance{about}{says}.{late}",
        )
    if most < _ENOUGH:
        says += f"; answers so few or so alike tell at most {most:.0%} beyond guessing"
    elif above(recall):
        says += "; the same answers dealt to other questions may be right as often"
    elif below(dealt, -_LITTLE):
        says += "; to be wrong that often takes knowing"
    elif below(recall, _LITTLE) and not above(dealt):
        said = f"No recall of {model} is shown: {size} of what can be known beyond chance{says}."
        return "no recall is shown", said
    return (
        "cannot be told",
        f"Whether {model} recalls cannot be told: {size} of what can be known{says}.",
    )


def _beyond_dealing(answers: Sequence[RecallAnswer], level: float) -> Measure:
    """Return the share of right closes beyond the share of exchanged answers.

    Exchanged answers are the same answers, assigned to the remaining questions.
    """
    priced = [(one, one.value) for one in answers if one.kind == "close" and one.value is not None]
    scores, days = [], []
    for one, value in priced:
        others = [is_near(other, one) for asked, other in priced if asked.fact != one.fact]
        if others:
            scores.append(float(is_near(value, one)) - sum(others) / len(others))
            days.append(one.day)
    if not scores:
        return not_scored("no two closes were given as numbers")
    return clustered_mean(np.array(scores), days, level)


def _shown_otherwise(sizes: Measure, closes: Measure, weighed: Propensity | None) -> str:
    """Return a sentence on recall shown by sizes of moves, by closes or by log-probabilities.

    The sentence is empty if none of the three shows recall.
    """
    found = []
    if above(sizes) and sizes.high is not None:
        found.append(
            f"the moves that it states go with the true ones, correlated by {sizes.value:.2f} "
            f"({sizes.low:.2f} to {min(sizes.high, 1.0):.2f}), where guesses have 0"
        )
    if above(closes):
        found.append(
            f"{closes.value:.0%} ({closes.low:.0%} to {closes.high:.0%}) more closes right than by "
            "dealing"
        )
    first = None if weighed is None else weighed.first
    if first is not None and above(first, 1.0 / (DECOYS + 1)):
        found.append(f"the truth is the likeliest of five in {first.value:.0%}")
    return " and ".join(found)


def _admitted(real: Sequence[RecallAnswer], level: float) -> Measure:
    """Return the share of facts refused if a refusal was allowed and right if it was not."""
    both = [group for group in _by_fact(real) if len({one.wording % 2 for one in group}) == 2]
    if not both:
        return not_scored("facts were not asked both ways: --wordings 2")
    hits = [
        any(one.refused for one in group if one.wording % 2 == 0)
        and any(bool(one.right) for one in group if one.wording % 2 == 1)
        for group in both
    ]
    return clustered_rate(hits, [group[0].day for group in both], level, "nothing was asked")


def _by_fact(answers: Iterable[RecallAnswer]) -> list[list[RecallAnswer]]:
    """Return the answers grouped by fact, over all wordings and samples."""
    found: dict[int, list[RecallAnswer]] = {}
    for one in answers:
        found.setdefault(one.fact, []).append(one)
    return [found[fact] for fact in sorted(found)]


def _scores(
    answers: Sequence[RecallAnswer], cutoff: date | None, level: float
) -> Iterator[RecallScore]:
    periods: tuple[RecallPeriod, ...] = ("all",) if cutoff is None else ("all", "before", "after")
    for kind in dict.fromkeys(("moves", *(one.kind for one in answers))):
        for names in ("real", "invented"):
            for period in periods:
                here = [
                    one
                    for one in answers
                    if (one.kind == kind or (kind == "moves" and one.kind in HORIZONS))
                    and one.invented == (names == "invented")
                    and (
                        cutoff is None
                        or period == "all"
                        or _before(one, cutoff) == (period == "before")
                    )
                ]
                if here:
                    yield _score(kind, names, period, here, level)


def _score(
    kind: str,
    names: Literal["real", "invented"],
    period: RecallPeriod,
    here: Sequence[RecallAnswer],
    level: float,
) -> RecallScore:
    """Return the score of the answers to one kind of question in one period."""
    read = [one for one in here if one.right is not None]
    none = _why_none(here)

    def rate(
        those: Sequence[RecallAnswer], of: Callable[[RecallAnswer], bool], why: str = none
    ) -> Measure:
        return clustered_rate([of(one) for one in those], [one.day for one in those], level, why)

    def right(one: RecallAnswer) -> bool:
        return bool(one.right)

    moves = [one for one in read if one.kind in HORIZONS]
    no_move = "this is no move" if not any(one.kind in HORIZONS for one in here) else none
    chances = {CHANCE.get(one.kind) for one in here}
    several = [group for group in _by_fact(read) if len(group) > 1]
    agree, days = [_agree(group) for group in several], [group[0].day for group in several]
    return RecallScore(
        kind=kind,
        names=names,
        period=period,
        asked=len(here),
        answered=rate(here, lambda one: one.right is not None),
        refused=rate(here, lambda one: one.refused),
        unread=rate(here, lambda one: not one.refused and one.right is None),
        hit=rate(read, right),
        chance=chances.pop() if len(chances) == 1 else None,
        rising=rate([one for one in moves if (one.truth or 0) > 0], right, no_move),
        falling=rate([one for one in moves if (one.truth or 0) < 0], right, no_move),
        correlation=_correlation(moves, level, no_move),
        error=_error(
            [one for one in read if one.value is not None and form_of(one.kind) != "year"], level
        ),
        steady=clustered_rate(agree, days, level, "no fact was answered twice"),
    )


def _correlation(moves: Sequence[RecallAnswer], level: float, none: str) -> Measure:
    # One pair per fact: several wordings of one answer are not several answers.
    facts = _by_fact(one for one in moves if one.value is not None and one.truth is not None)
    if len(facts) < 8:
        return not_scored(
            none if not moves else f"{len(facts)} moves were given with a size, 8 are needed"
        )
    x = np.array([np.mean([one.value for one in group]) for group in facts])
    y = np.array([group[0].truth for group in facts], dtype=np.float64)
    if x.std() == 0.0 or y.std() == 0.0:
        return not_scored("all moves that were recalled are the same")
    rows = np.random.default_rng(0).integers(len(facts), size=(_DRAWS, len(facts)))
    xs, ys = (one[rows] - one[rows].mean(axis=1, keepdims=True) for one in (x, y))
    with np.errstate(invalid="ignore", divide="ignore"):
        drawn = (xs * ys).sum(axis=1) / np.sqrt((xs**2).sum(axis=1) * (ys**2).sum(axis=1))
    ends = tuple(np.nanquantile(drawn, [(1.0 - level) / 2.0, (1.0 + level) / 2.0]))
    return between(float(np.corrcoef(x, y)[0, 1]), ends, level, len(facts))


def _error(read: Sequence[RecallAnswer], level: float) -> Measure:
    if not read:
        return not_scored("no number could be read")
    away = []
    for one in read:
        truths = [truth for truth in (one.truth, one.also) if truth is not None]
        value = one.value or 0.0
        if one.kind in HORIZONS:
            away.append(abs(value - truths[0]))
        else:
            away.append(min(abs(value / truth - 1.0) for truth in truths))
    sizes = np.array(away)
    rows = np.random.default_rng(0).integers(sizes.size, size=(_DRAWS, sizes.size))
    ends = tuple(
        np.quantile(np.median(sizes[rows], axis=1), [(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    )
    return between(float(np.median(sizes)), ends, level, sizes.size, "median")


def _agree(group: Sequence[RecallAnswer]) -> bool:
    """Return whether the answers about one fact are the same."""
    if group[0].choices or group[0].kind in HORIZONS:
        return len({(one.chosen, one.sign) for one in group}) == 1
    values = [one.value or 0.0 for one in group]
    return max(values) - min(values) <= 0.01 * abs(max(values))


def _months(answers: Sequence[RecallAnswer], level: float) -> list[RecallMonth]:
    """Return recall over time, in the shortest periods of months with enough answers each."""
    scored = [one for one in answers if one.kind in CHANCE or one.kind == "close"]
    if not scored:
        return []

    def months(one: RecallAnswer) -> int:
        return int(one.until[:4]) * 12 + int(one.until[5:7]) - 1

    step = 12
    for step in (1, 3, 6, 12):
        counts = np.unique(
            [months(one) // step for one in scored if not one.invented], return_counts=True
        )[1]
        if counts.size and counts.mean() >= 8:  # the minimum number of answers per period
            break
    made = []
    for place in sorted({months(one) // step for one in scored}):
        here = [one for one in scored if months(one) // step == place]
        closes = [
            (bool(one.right), one.day) for one in here if one.kind == "close" and not one.invented
        ]
        right, days = [right for right, _ in closes], [day for _, day in closes]
        made.append(
            RecallMonth(
                first=f"{place * step // 12:04d}-{place * step % 12 + 1:02d}-01",
                recall=_known([one for one in here if not one.invented], level),
                control=_known([one for one in here if one.invented], level),
                near=clustered_rate(right, days, level, "no close was asked for"),
            )
        )
    return made
