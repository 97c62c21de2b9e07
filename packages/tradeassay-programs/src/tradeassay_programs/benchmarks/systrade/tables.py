"""Build the tables of a SysTradeBench run.

The tables are gates, quality, strategies, iterations, reviews and items. The module also fills the
paper's tables with rows of this project's runs.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, product
from typing import Final

import msgspec
import numpy as np

from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.tables import Cell, counted
from tradeassay.metrics.agreement import correlation_measure, spearman_rho
from tradeassay.metrics.reliability import PlayWords, reliability
from tradeassay_bench.benchmarks.code_protocol import (
    Ending,
    Item,
    ItemShown,
    Section,
    Shown,
    Step,
    overlap,
    play_of,
    reliable_section,
)
from tradeassay_bench.benchmarks.exhibits import (
    UNTIMED,
    Curves,
    Filled,
    PaperPage,
    fill_paper,
    group_table,
    groups_exhibit,
    load_published,
    mean_of,
)
from tradeassay_bench.core.tables import Row, Table, amount, figure, figures, line, table
from tradeassay_programs.benchmarks.programs import SubmissionCard
from tradeassay_programs.benchmarks.systrade.data import DAYS, splits_of
from tradeassay_programs.benchmarks.systrade.loading import SYSTB
from tradeassay_programs.benchmarks.systrade.scores import ModelRow, SystradeScores, half_of
from tradeassay_programs.benchmarks.systrade.spec import (
    SYSTRADE_SYSTB,
    Iteration,
    StrategyOutcome,
    SystradeSpec,
)
from tradeassay_programs.code.gates import GATES, PAPER_GATES
from tradeassay_programs.code.review import Review, ReviewBoard, both_marks, vendor_of
from tradeassay_programs.code.scores import DIMENSIONS, Scorecard, Windows

_PLAYED: Final = PlayWords(passes="holds all gates", score="overall scores", window="task")
_BOARD_GATES: Final = ("exec", "leak", "audit")


def systrade_tables(
    spec: SystradeSpec,
    items: Sequence[Item],
    scores: SystradeScores,
    records: Mapping[str, StrategyOutcome],
    endings: Mapping[str, Ending],
) -> Shown:
    """Return the page of a run: its headline, its boards and tables, and its items."""
    models = _in_order(scores.models)
    headline, support = _in_words(models, sum(row.drifted for row in scores.iterations))
    plays = []
    for item in items:
        record = records.get(item.key)
        if record is None:
            continue
        if record.last is None:
            plays.append(play_of(item, passed=False, score=0.0))
            continue
        # A submission whose look-ahead is not cleared does not pass.
        card = record.last.scorecard
        plays.append(play_of(item, passed=card.gates.valid, score=card.overall.value))
    reliable = reliability(plays, called=_PLAYED)
    board, gates, quality = _model_tables(models)
    reviewed, marks = (
        "No submission was reviewed. Name reviewers with `--reviewer`.",
        tuple[Table, ...](),
    )
    if scores.reviews is not None:
        reviewed = _review_sentence(scores.reviews)
        marks = tuple(review_tables(scores.reviews, {row.model: row for row in scores.models}))
    return Shown(
        question="Which models submit governed software?",
        headline=headline,
        support=support,
        sub=f"{counted(len(scores.strategies), 'strategy', 'strategies')}, "
        f"{counted(len(items), 'item')} · "
        "governed strategies written by models, run in a sandbox",
        badges=(
            ("synthetic", "synthetic data")
            if spec.dataset is None
            else ("plain", f"data: {spec.dataset}"),
            *((("plain", counted(len(spec.reviewers), "reviewer")),) if spec.reviewers else ()),
        ),
        board=board,
        board_lines=(*_board_lines(scores), *(reliable.sentences if reliable else ())),
        sections=(
            *reliable_section(reliable),
            Section(id="models", title="Gates", tables=(gates,)),
            Section(id="quality", title="Quality and dollars", tables=(quality,)),
            _strategies(scores),
            Section(id="iterations", title="Iterations", tables=tuple(_iterations(scores, models))),
            Section(id="reviews", title="Review board", text=reviewed, tables=marks),
        ),
        reliability=reliable,
        paper=systrade_paper(spec, scores, records, UNTIMED),
        items={item.key: _item(records.get(item.key), endings.get(item.key)) for item in items},
        cards=_cards(records),
        method="Iterations were guided by the development year and scored on the test year, which "
        "no model saw.",
    )


def _review_sentence(reviews: ReviewBoard) -> str:
    """Return a sentence on the agreement between reviewers, and on the unreadable reviews."""
    tau, unread = reviews.agreement, reviews.unanswered
    interval = ""
    if tau.low is not None and tau.high is not None:
        interval = f" ({tau.low:.2f} to {tau.high:.2f})"
    note = tau.reason or tau.note
    remark = f"; {note}" if note else ""
    text = (
        "Reviewers did not know the authors. Agreement between reviewers (mean Kendall tau): "
        f"{_text(tau)}{interval}{remark}."
    )
    if unread:
        text += f" {counted(unread, 'review')} could not be read."
    return text


def _in_order(models: Sequence[ModelRow]) -> list[ModelRow]:
    """Return models by the share of valid submissions, then by overall score.

    Models without a rank come last.
    """
    return sorted(
        models,
        key=lambda row: (
            row.unranked is not None,
            -(row.valid.value or 0.0),
            -(row.overall.value or 0.0),
        ),
    )


def _in_words(models: Sequence[ModelRow], drifted: int) -> tuple[str, tuple[str, ...]]:
    """Return the headline of a run, and sentences on the lead, on look-ahead and on patches."""
    ranked = [row for row in models if row.valid.value is not None and row.unranked is None]
    if not ranked:
        if any(row.unranked for row in models):
            return "No model is ranked: too many items had no answer.", ()
        return "No model has a result.", ()
    best = ranked[0]
    headline = (
        f"{best.model}: {best.valid.value:.1%} of {best.valid.n} submissions pass the "
        "paper's six gates."
    )
    support = []
    if len(ranked) > 1:
        second = ranked[1]
        apart = overlap(best.valid, second.valid)
        support.append(f"Next is {second.model} with {second.valid.value:.1%}; {apart}.")
    leaks = [
        row.model
        for row in ranked
        if (row.gates["leak"].value or 0.0) < (row.gates["exec"].value or 0.0)
    ]
    if leaks:
        support.append(f"Submissions that run and look ahead: {', '.join(leaks)}.")
    if drifted:
        support.append(
            f"{counted(drifted, 'patch', 'patches')} changed the strategy and were set aside."
        )
    return headline, tuple(support)


def _board_lines(scores: SystradeScores) -> Iterator[str]:
    """Yield the lines below the board: iterations, ranks by review, and reviewers."""
    for row in scores.iterations:
        if row.items and row.tokens.value is not None and row.reached_goal.value is not None:
            yield (
                f"iteration {row.iteration}: {row.tokens.value:,.0f} tokens per submission, "
                f"{row.reached_goal.value:.1%} of {row.reached_goal.n} reached the goal"
            )
    held = {row.model: row.gates["leak"].value for row in scores.models}
    if scores.reviews is None:
        return
    for standing in scores.reviews.standings:
        share = held.get(standing.author)
        mark = f"; leak gate passed in {share:.1%}" if share is not None and share < 1.0 else ""
        yield (
            f"{standing.author}: {_text(standing.peers)} by others (rank "
            f"{standing.peer_place or 'n/a'}), "
            f"{_text(standing.everyone)} in all reviews (rank "
            f"{standing.everyone_place or 'n/a'}){mark}"
        )
    means = ", ".join(f"{row.reviewer} {_text(row.mean)}" for row in scores.reviews.reviewers)
    yield f"mean marks given to others, the strictest first: {means}"


def _model_tables(models: Sequence[ModelRow]) -> tuple[Table, Table, Table]:
    """Return three tables of models: the board, the shares of passed gates, and quality with its
    price.
    """
    board, gates, quality = [], [], []
    for row in models:
        scores = (*_means(row.scores, row.items), *_means({"overall": row.overall}, row.items))
        dollars = amount(row.usd_per_strategy, "dollars")
        held = (*figures(row.gates, _BOARD_GATES, "share"), figure(row.valid, "share", bar=True))
        shown = (amount(row.items), *held, *scores, dollars, Cell(row.worth))
        board.append(line(row.model, *shown, unranked=row.unranked))
        unanswered = f"{row.unanswered} without an answer" if row.unanswered else ""
        items = Cell(f"{row.items}", small=unanswered)
        shares = (*figures(row.gates, GATES, "share"), figure(row.valid, "share"))
        rest = (amount(row.not_cleared), figure(row.windows, "share"))
        gates.append(line(row.model, items, *shares, *rest, unranked=row.unranked))
        paper = (*_means(row.paper, row.items), *_means({"overall": row.overall_paper}, row.items))
        worth = (dollars, Cell(row.paper_tier), Cell(row.worth))
        quality.append(line(row.model, *scores, *paper, *worth, unranked=row.unranked))
    as_printed = (*(f"{name} as printed" for name in DIMENSIONS), "Overall as printed")
    return (
        table(
            "Models",
            (
                "model",
                "items",
                *_BOARD_GATES,
                "valid",
                *DIMENSIONS,
                "overall",
                "$/strategy",
                "worth",
            ),
            board,
            "Counted submissions, one per item. Valid: the paper's six gates passed. D1 to D4: "
            "means, 0 to "
            "10. A mean over fewer submissions than items shows its number of submissions. "
            "Overall: the mean "
            "of all four dimensions, over submissions with all four scored.",
        ),
        table(
            "Gates",
            ("Model", "Items", *GATES, "Valid", "Not cleared", "Ten-bar tests"),
            gates,
            "Share of counted submissions, one per item, that passed the gate. 95% intervals "
            "(Wilson) are in "
            "small print. Valid: the paper's six gates. The gates scenarios and agreement are "
            "ours. An item "
            "without an answer is excluded from all rates. Not cleared: look-ahead is neither "
            "proven nor "
            "excluded, so the submission is neither valid nor invalid. Ten-bar tests: pieces of "
            "ten bars of "
            "the test data that valid submissions completed.",
        ),
        table(
            "Quality and dollars",
            (
                "Model",
                *DIMENSIONS,
                "Overall",
                *as_printed,
                "Dollars per strategy",
                "Paper's tier",
                "Worth",
            ),
            quality,
            "Means over counted submissions, 0 to 10: measured, and by the paper's formulas and "
            "reviewers. "
            "Overall is the mean of the four measured dimensions, over submissions with all four "
            "scored. The "
            "paper's tiers are relative to the best overall score: balanced has 88% of it for half "
            "its price, "
            "premium costs more, and budget has less for at most that price.",
        ),
    )


def _means(measures: Mapping[str, Measure], items: int) -> list[Cell]:
    """Return means as cells. A mean over fewer items than its row shows its number of items."""
    cells = []
    for measure in measures.values():
        if measure.n is None or measure.n == items:
            cells.append(figure(measure))
            continue
        plain = msgspec.structs.replace(measure, note=None)
        cells.append(msgspec.structs.replace(figure(plain), small=f"{measure.n} of {items}"))
    return cells


def _strategies(scores: SystradeScores) -> Section:
    rows = []
    for row in scores.strategies:
        about = (amount(row.complexity, "{:.2f}"), amount(row.items), figure(row.valid, "share"))
        scored = (*_means(row.scores, row.items), *_means({"overall": row.overall}, row.items))
        rows.append(
            line(row.strategy, *about, *scored, figure(row.pbo), figure(row.spa_p, "{:.3f}"))
        )
    rho = (*[Cell()] * 7, figure(scores.complexity), *[Cell()] * 2)
    rows.append(line("Spearman's rho of complexity and overall", *rho))
    columns = ("Strategy", "C", "Items", "Valid", *DIMENSIONS, "Overall", "PBO", "SPA p")
    caption = (
        "C is the paper's complexity. PBO: probability that the best submission of a strategy is "
        "overfitted (CSCV). SPA: p-value of the hypothesis that none beats buy and hold."
    )
    return Section(
        id="strategies", title="Strategies", tables=(table("Strategies", columns, rows, caption),)
    )


def _iterations(scores: SystradeScores, models: Sequence[ModelRow]) -> Iterator[Table]:
    reached = [row for row in scores.iterations if row.items]
    rows = []
    for row in reached:
        gained = (*_means(row.scores, row.items), figure(row.gain, "{:+.2f}"))
        shares = (figure(one, "share") for one in (row.alike, row.same_outcome, row.test_return))
        patches = Cell(f"{row.repaired} repaired, {row.drifted} drifted")
        rest = (figure(row.ensemble), patches, figure(row.reached_goal, "share"))
        rows.append(line(f"{row.iteration}", amount(row.items), *gained, *shares, *rest))
    found = (
        "Gain",
        "Code alike",
        "Same outcome",
        "Test return",
        "Mix",
        "Patches",
        "Reached the goal",
    )
    yield table(
        "Iterations",
        ("Iteration", "Items", *DIMENSIONS, *found),
        rows,
        "Gain: overall score minus the previous iteration's. Alike: shared lines of two models' "
        "programs "
        "for one strategy. Same outcome: pairs with the same result in the test year. Mix: "
        "variation of an "
        "equal mix of a strategy's submissions relative to a single submission; at 1 the mix is no "
        "steadier. Goal of the last iteration: D1 to D3 of 8.5, a Sharpe ratio of 1.5 and a return "
        "of 10% "
        "on the test year at the lowest cost level.",
    )
    tokens = []
    for model in models:
        used = [
            Cell(f"{one.request:,.0f} + {one.answer:,.0f}", small=counted(one.items, "item"))
            for one in model.tokens
        ]
        tokens.append(line(model.model, *used, *[Cell("n/a")] * (len(reached) - len(used))))
    caption = "Mean tokens per submission, of the request and of the answer."
    yield table(
        "Tokens", ("Model", *(f"Iteration {row.iteration}" for row in reached)), tokens, caption
    )


def review_tables(
    board: ReviewBoard, gated: Mapping[str, ModelRow] | None = None
) -> Iterator[Table]:
    """Yield tables of marks and ratings, biases, standings, and each reviewer's marks.

    With ``gated`` the tables also show the authors' gates, because reviewers may prefer a program
    that looks ahead.
    """
    unrated = not_scored("not compared")
    gate_columns = ("Leak gate passed", "Valid") if gated else ()
    rows = []
    for name in sorted(
        board.fidelity, key=lambda name: -(board.rating.get(name, unrated).value or 0.0)
    ):
        marks = (
            figure(board.fidelity[name]),
            figure(board.risk[name]),
            *_gate_cells(gated, name),
        )
        row = (gated or {}).get(name)
        why = None if row is None else row.unranked
        rows.append(
            line(name, figure(board.rating.get(name, unrated), "{:.0f}"), *marks, unranked=why)
        )
    rows.sort(key=lambda row: row.unranked is not None)
    caption = (
        "Marks for one's own work are kept but not counted. The rating is Bradley-Terry on the Elo "
        "scale, with a bootstrap interval."
    )
    yield table("Marks", ("Author", "Rating", "Fidelity", "Risk", *gate_columns), rows, caption)
    biases = []
    for kind, kind_biases in (("own work", board.own_bias), ("same vendor", board.vendor_bias)):
        for bias in kind_biases:
            gaps = (figure(bias.fidelity, "{:+.2f}"), figure(bias.risk, "{:+.2f}"))
            biases.append(line(kind, Cell(bias.who), *gaps))
    caption = "Difference from the marks given by others."
    yield table("Bias", ("Bias", "Of", "Fidelity", "Risk"), biases, caption)
    yield table(
        "Standings",
        ("Author", "By others", "Place", "All reviews", "Place in all", *gate_columns),
        _standings(board, gated),
        "Mean of both marks and the resulting rank: by others alone, and including the authors' "
        "marks of "
        "their own work.",
    )
    authors = [one.author for one in board.standings]
    reviewers = (
        line(row.reviewer, figure(row.mean), *figures(row.marks, authors))
        for row in board.reviewers
    )
    caption = (
        "Each reviewer's marks by author: the mean of both marks, the strictest reviewer first. "
        "The mean "
        "excludes the reviewer's own work."
    )
    yield table("Reviewers", ("Reviewer", "Mean given", *authors), reviewers, caption)


def _item(record: StrategyOutcome | None, ending: Ending | None) -> ItemShown:
    words = "" if ending is None else ending.words
    if record is None:
        return ItemShown(chip=("below", words))
    last = record.last
    tone = "above" if last is not None and last.scorecard.gates.passed else "below"
    overall = "" if last is None else f"overall {_text(last.scorecard.overall)} · "
    steps = []
    for one in record.iterations:
        came, gates = "no submission", tuple[tuple[str, str, str], ...]()
        if one.scored is not None:
            report, drift = one.scored.scorecard.gates, one.scored.drift
            failure = report.first_failure
            came = "held" if failure is None else f"failed at {failure.name}"
            came += "" if drift is None else f", {drift.kind}"
            came += ", set aside" if one.set_aside else ""
            gates = tuple(
                (gate.name, gate.status, gate.reason if gate.failed else "")
                for gate in report.gates
            )
        step = Step(
            title=f"Iteration {one.number}",
            chip=("same", came),
            small=f"{one.usage.input_tokens:,} tokens in, {one.usage.output_tokens:,} out",
            checks=gates,
            lines=(one.reason,) if one.reason else (),
        )
        steps.append(step)
    path = " → ".join(step.chip[1] for step in steps)
    value = f"{overall}{path} · stopped by {record.stopped}"
    return ItemShown(chip=(tone, words), value=value, steps=tuple(steps))


def _cards(records: Mapping[str, StrategyOutcome]) -> dict[str, SubmissionCard]:
    """Return a scorecard for every item, from its last submission that was not set aside."""
    cards = {}
    for key, record in records.items():
        for iteration in record.iterations:
            scored, submission = iteration.scored, iteration.submission
            if scored is None or submission is None or iteration.set_aside:
                continue
            # A later iteration replaces an earlier one.
            cards[key] = SubmissionCard(
                scorecard=scored.scorecard,
                trail=scored.trail,
                submission=submission,
                drift=scored.drift,
                reviews=iteration.reviews,
                iteration=iteration.number,
            )
    return cards


def _text(measure: Measure) -> str:
    """Return a measure with two digits."""
    return "n/a" if measure.value is None else f"{measure.value:.2f}"


# The paper's tables.


def why_not_comparable(
    *, strategies: int, iterations: int, real_data: bool, reviewed: bool, systb: bool = False
) -> tuple[str, ...]:
    """Return every reason why this project's figures are not comparable with the paper's.

    The result is never empty: the paper's leak guard finds none of the leaks that it is meant to
    find.
    """
    whose = (
        "its twelve strategies are stated from the parameters and rules of the authors' public "
        "repository "
        "(YgcCoder/SysTB), in our words and with our semantics; the paper itself prints one "
        "Strategy Doc"
        if systb
        else "the strategies share the paper's names and defaults, but what it leaves open is "
        "pinned by us; "
        "systrade-systb-v1 has the twelve strategies from the authors' public repository"
    )
    found = [
        whose,
        "its leak gate is a guard that vectorised code never triggers; ours compares runs, so it "
        "fails more",
        "its D3 and D4 count words and patterns in the source; ours in the same column are "
        "measured by running it",
    ]
    if iterations > 1:
        found.append(
            "its Table 3 is about first submissions; ours counts each item's last one not set aside"
        )
    if not real_data:
        found.append("its data are 14 instruments of 2024 and 2025; these are synthetic")
    if strategies < (every := load_published("systrade")["strategies"]):
        found.append(
            f"{strategies} of its {every} strategies {'was' if strategies == 1 else 'were'} run"
        )
    if not reviewed:
        found.append("these submissions were not reviewed, so the paper's D1 and D2 are not scored")
    return tuple(found)


def systrade_paper(
    spec: SystradeSpec,
    scores: SystradeScores,
    records: Mapping[str, StrategyOutcome],
    latency: Filled,
) -> PaperPage:
    """Return the exhibits of SysTradeBench, filled with the results of a run.

    ``latency`` is the response time, which only the recordings contain.
    """
    paper = load_published("systrade")
    why = why_not_comparable(
        strategies=len(scores.strategies),
        iterations=spec.iterations,
        real_data=_stored_data(spec),
        reviewed=bool(spec.reviewers),
        systb=spec.benchmark == SYSTRADE_SYSTB,
    )
    gates, windows, tokens, costs = _paper_of_models(scores)
    kinds = {
        row.model: (row.model, [row.valid, *(row.scores[name] for name in DIMENSIONS)])
        for row in scores.models
    }
    columns = [("valid", "share"), *((name, "{:.2f}") for name in DIMENSIONS)]
    makers: dict[str, Callable[[], Filled]] = {
        "table-2": lambda: _paper_splits(spec),
        "table-3": lambda: Filled(tables=(gates,), reasons=why),
        "table-4": lambda: Filled(tables=(_paper_strategies(scores, records),), reasons=why),
        "section-5-3": lambda: _paper_reviews(scores, why),
        "section-5-4-1": lambda: Filled(tables=(windows, _exceptions(records)), reasons=why),
        "section-5-4-2": lambda: _paper_returns(scores, records, why),
        "figure-2": lambda: _learning(scores, records, why),
        "figure-3": lambda: Filled(tables=(tokens,)),
        "section-5-6": lambda: Filled(tables=(costs,), reasons=why),
        "figure-5": lambda: _review_maps(records),
        "latency": lambda: latency,
        "groups": lambda: groups_exhibit(group_table("Groups of models", columns, kinds)),
    }
    return fill_paper("systrade", makers, source=paper["source"], notes=paper["notes"])


def _stored_data(spec: SystradeSpec) -> bool:
    """Return whether every data set of a run is stored and not a synthetic world."""
    return spec.dataset is not None and "synthetic/" not in spec.dataset


def _pairs(*names: str) -> tuple[str, ...]:
    return ("", *(f"{name}, {whose}" for name, whose in product(names, ("ours", "printed"))))


def _paper_splits(spec: SystradeSpec) -> Filled:
    rows = []
    for name, span in splits_of(spec.splits).items():
        theirs = splits_of(DAYS)[name]
        ours = "a synthetic year" if spec.dataset is None else f"{span.first} to {span.last}"
        rows.append(line(name, Cell(ours), Cell(f"{theirs.first} to {theirs.last}"), ours=True))
    data = "synthetic years" if spec.dataset is None else f"stored bars of {spec.dataset}"
    made = table(
        "Splits", ("", "ours", "printed"), rows, note=f"data: {data}; the last day is excluded"
    )
    reasons = () if _stored_data(spec) and spec.splits == DAYS else (f"our data are {data}",)
    return Filled(tables=(made,), reasons=reasons)


def _paper_of_models(scores: SystradeScores) -> tuple[Table, Table, Table, Table]:
    """Return four tables: gates, tests on ten bars, tokens by iteration, and cost."""
    paper = load_published("systrade")
    gates, windows, tokens, costs = [], [], [], []
    for row in sorted(scores.models, key=lambda row: row.unranked is not None):
        held = figures(row.gates, PAPER_GATES, "share")
        gates.append(line(row.model, *held, ours=True, unranked=row.unranked))
        windows.append(line(row.model, figure(row.windows, "share"), Cell(), ours=True))
        dollars = amount(row.usd_per_strategy, "dollars")
        bought = (dollars, figure(row.overall), Cell(row.paper_tier))
        costs.append(line(row.model, *bought, ours=True, unranked=row.unranked))
        for one in row.tokens:
            cells = (amount(value) for value in (one.items, one.request, one.answer))
            tokens.append(line(f"{row.model}, iteration {one.iteration}", *cells, ours=True))
    for one in paper["gates"]:
        shares = (amount(one[name] / 100.0, "share") for name in PAPER_GATES)
        gates.append(
            line(f"{one['model']} ({one['submitted']} of {paper['strategies']} submitted)", *shares)
        )
    passed, tests = (paper["out_of_sample"][name] for name in ("passed", "tests"))
    words = Cell(f"{passed / tests:.1%}", small=f"{passed} of {tests}")
    windows.append(line("all valid submissions", figure(scores.windows, "share"), words, ours=True))
    for tier in paper["tiers"]:
        dollars = Cell(
            f"${tier['usd_low']:.2f} to ${tier['usd_high']:.2f}", small="first iteration"
        )
        scored = Cell(f"{tier['overall_low']} to {tier['overall_high']}")
        costs.append(line(f"tier '{tier['name']}'", dollars, scored, Cell(tier["name"])))
    asked = (
        "Not comparable: parse and schema are nearly the paper's, and the other gates are stricter."
    )
    kind = (
        "Comparable in kind: ours are five pieces of each valid submission's test data, at "
        "random positions."
    )
    priced = "Dollars are comparable at the prices of the day; overall scores are not."
    columns = ("", "items", "tokens of the request", "tokens of the answer")
    bought_for = ("", "dollars per strategy", "overall", "tier")
    return (
        table("Submissions that pass each gate", ("", *PAPER_GATES), gates, note=asked),
        table("Tests that were completed", ("", "ours", "printed"), windows, note=kind),
        table("Tokens", columns, tokens, note="means over items"),
        table("Dollars per strategy, and overall scores", bought_for, costs, note=priced),
    )


def _paper_strategies(scores: SystradeScores, records: Mapping[str, StrategyOutcome]) -> Table:
    """Return the library of strategies with their marks by the paper's formulas.

    LLM is the reviewers' D1 and D2, and QR the automatic D3 and D4.
    """
    paper, found = (
        load_published("systrade"),
        {row.strategy.removeprefix(SYSTB): row for row in scores.strategies},
    )
    cards: dict[str, list[Scorecard]] = {}
    for record in records.values():
        if record.last is not None:
            cards.setdefault(record.strategy.removeprefix(SYSTB), []).append(record.last.scorecard)
    not_run = amount(None, unknown="not run")
    rows = []
    complexities, overall = list[float](), list[float]()
    for one in paper["by_strategy"]:
        name = one["strategy"]
        mine = found.get(name)
        marked, automatic = (
            mean_of((half_of(card, half) for card in cards.get(name, ())), nothing)
            for half, nothing in (
                (DIMENSIONS[:2], "no reviewer marked it"),
                (DIMENSIONS[2:], "nothing was scored"),
            )
        )
        both = _both(marked, automatic)
        complexities.append(np.nan if mine is None else mine.complexity)
        overall.append(np.nan if both.value is None else both.value)
        cells = (
            not_run if mine is None else amount(mine.complexity, "{:.2f}"),
            Cell(one["complexity"]),
            *(figure(marked), Cell(f"{one['llm']:g}"), figure(automatic), Cell(f"{one['qr']:g}")),
            not_run if mine is None else figure(both),
            Cell(f"{one['overall']:.2f}"),
            not_run if mine is None else figure(mine.valid, "share"),
            Cell(f"{one['valid']}/{paper['attempts']}"),
        )
        rows.append(line(name, *cells, ours=mine is not None))
    ordered = correlation_measure(spearman_rho, np.array(complexities), np.array(overall))
    rho = (
        figure(ordered),
        Cell(f"{paper['complexity']['rho']:+.2f}", small="printed"),
        Cell(),
        Cell(),
    )
    rows.append(line("Spearman's rho of complexity and overall", *[Cell()] * 6, *rho, ours=True))
    note = (
        "Not comparable in value; the order of strategies may be. LLM is the mean of the "
        "reviewers' marks, QR of "
        "the automatic D3 and D4, both over the submissions that have them. Overall is (LLM + QR) "
        "/ 2 of the row."
    )
    return table("Strategies", _pairs("C", "LLM", "QR", "overall", "valid"), rows, note=note)


def _both(marked: Measure, automatic: Measure) -> Measure:
    """Return the paper's overall score, (LLM + QR) / 2, or the reason why a part is missing."""
    for measure in (marked, automatic):
        if measure.value is None:
            return measure
    return Measure(value=((marked.value or 0.0) + (automatic.value or 0.0)) / 2.0)


_EXCEPTION: Final = re.compile(
    r"\b([A-Z][A-Za-z]*(?:Error|Exception|Interrupt|Exit|Iteration|Warning))\b"
)


def _exceptions(records: Mapping[str, StrategyOutcome]) -> Table:
    """Return the exceptions of failed submissions, on the test year and on pieces of ten bars."""
    counts: dict[tuple[str, str], list[int]] = {}
    for record in records.values():
        card = None if record.last is None else record.last.scorecard
        if card is None:
            continue
        gate = card.gates.first_failure
        said = [(gate.reason, 0)] if gate is not None and gate.name in ("parse", "exec") else []
        said += [
            (text, 1)
            for text in (card.windows.failures if isinstance(card.windows, Windows) else ())
        ]
        for text, place in said:
            named = _EXCEPTION.search(text)
            key = (named.group(1) if named else "no exception named", record.strategy)
            counts.setdefault(key, [0, 0])[place] += 1
    rows = [
        line(name, Cell(strategy), *map(amount, found), ours=True)
        for (name, strategy), found in sorted(counts.items(), key=lambda one: -sum(one[1]))
    ]
    note = "printed: KeyError and TypeError, most in Calendar Spread and Turtle"
    note += "" if rows else "; ours: no submission failed this way"
    return table(
        "Failures by exception",
        ("", "strategy", "submissions", "tests on ten bars"),
        rows,
        note=note,
    )


def _by_iteration(
    scores: SystradeScores, records: Mapping[str, StrategyOutcome]
) -> dict[str, dict[int, list[Iteration]]]:
    """Return the scored iterations by model and iteration. Unranked models are last."""
    found: dict[str, dict[int, list[Iteration]]] = {}
    for record in records.values():
        mine = found.setdefault(record.model, {})
        for one in record.iterations:
            if one.scored is not None:
                mine.setdefault(one.number, []).append(one)
    behind = {row.model for row in scores.models if row.unranked is not None}
    return {model: found[model] for model in sorted(found, key=lambda model: model in behind)}


def _paper_returns(
    scores: SystradeScores, records: Mapping[str, StrategyOutcome], why: tuple[str, ...]
) -> Filled:
    """Return tables of test-data return and trades by model and iteration.

    They include the paper's three models.
    """
    paper = {row["iteration"]: row for row in load_published("systrade")["iterations"]}
    rows = []
    for model, by_number in _by_iteration(scores, records).items():
        for number, these in sorted(by_number.items()):
            scored = [one.scored for one in these if one.scored is not None]
            totals = [
                None if one.scorecard.year is None else one.scorecard.year.costs[0].total
                for one in scored
            ]
            counts = [None if one.trail is None else float(one.trail.trades) for one in scored]
            total = mean_of(totals, "no account on the test year")
            trades = mean_of(counts, "no run on the test year")
            theirs = Cell(f"{paper[number]['test_return']:+.1f}%" if number in paper else "")
            # Each mean is shown with its number of submissions.
            returned = (amount(total.n or 0), figure(total, "change"))
            traded = (amount(trades.n or 0), figure(trades, "{:.1f}"))
            name = f"{model}, iteration {number}"
            rows.append(line(name, amount(len(these)), *returned, theirs, *traded, ours=True))
    if not rows:
        return Filled(missing="nothing was scored")
    columns = (
        "",
        "submissions",
        "with a return",
        "return, ours",
        "return, printed",
        "with a run",
        "trades",
    )
    note = (
        "means over the given numbers of submissions, returns at the lowest cost level; printed: "
        "three "
        "models, one strategy, ten bars"
    )
    tables = [table("Return and trades by iteration", columns, rows, note=note)]
    # The last programs' returns by strategy and instrument, if a run has several instruments.
    found: dict[str, dict[str, list[float | None]]] = {}
    for record in records.values():
        ran = record.last.instruments if record.last is not None else ()
        for one in ran or ():
            found.setdefault(record.strategy, {}).setdefault(one.symbols[0], []).append(one.total)
    names = list(dict.fromkeys(chain.from_iterable(by for by in found.values())))
    if names:
        rows = [
            line(
                strategy,
                *(figure(mean_of(by.get(n, ()), "not run"), "change") for n in names),
                ours=True,
            )
            for strategy, by in found.items()
        ]
        note = (
            "last programs on the test days, means over models and seeds, before costs, by the "
            "first leg"
        )
        tables.append(table("Return by strategy and instrument", ("", *names), rows, note=note))
    return Filled(tables=tuple(tables), reasons=why)


def _learning(
    scores: SystradeScores, records: Mapping[str, StrategyOutcome], why: tuple[str, ...]
) -> Filled:
    """Return every model's dimensions by iteration, and the gains of iterations.

    The dimensions are shown as curves and as a table.
    """
    rows, lines, most = [], [], 0
    for model, by_number in _by_iteration(scores, records).items():
        means = {
            number: {
                name: mean_of(
                    one.scored.scorecard.corrected[name].value
                    for one in these
                    if one.scored is not None
                )
                for name in DIMENSIONS
            }
            for number, these in sorted(by_number.items())
        }
        most = max(most, *means) if means else most
        for number, found in means.items():
            rows.append(
                line(f"{model}, iteration {number}", *figures(found, DIMENSIONS), ours=True)
            )
        for name in DIMENSIONS:
            path = [
                means[n][name].value if n in means else None
                for n in range(max(means, default=-1) + 1)
            ]
            if any(value is not None for value in path):
                shares = tuple(None if value is None else value / 10.0 for value in path)
                lines.append((f"{model}, {name}", shares))
    if not rows:
        return Filled(missing="nothing was scored")
    curves = Curves(x=tuple(str(n) for n in range(most + 1)), lines=tuple(lines), steps=True)
    made = table(
        "Dimensions by model and iteration", ("", *DIMENSIONS), rows, note="means, 0 to 10"
    )
    paper = {row["iteration"]: row for row in load_published("systrade")["iterations"]}
    rows = []
    for row in (row for row in scores.iterations if row.items):
        one = paper.get(row.iteration, {})
        gain = (
            Measure(value=row.gain.value / 10.0, n=row.gain.n)
            if row.gain.value is not None
            else row.gain
        )
        similar = Cell(f"{one['similarity']:.1f}%" if "similarity" in one else "")
        gains = (figure(gain, "{:+.3f}"), Cell(f"{one['gain']:+.2f}" if one else ""))
        rows.append(
            line(
                f"iteration {row.iteration}", *gains, figure(row.alike, "share"), similar, ours=True
            )
        )
    title = "Gains of iterations (scores on 0 to 1)"
    note = (
        "Not comparable: the paper followed three models on one strategy, on windows of ten bars."
    )
    brought = table(title, _pairs("gain", "code alike"), rows, note=note)
    return Filled(tables=(made, brought), curves=(curves,), reasons=why)


def _paper_reviews(scores: SystradeScores, why: tuple[str, ...]) -> Filled:
    paper, board = load_published("systrade")["reviews"], scores.reviews
    if board is None:
        return Filled(missing="needs reviewers: --reviewer MODEL, twice or more")

    def spread(biases: Sequence[Measure]) -> Cell:
        values = [one.value for one in biases if one.value is not None]
        if not values:
            return figure(biases[0]) if biases else Cell("n/a")
        return Cell(f"{min(values):+.2f} to {max(values):+.2f}", small=f"{len(values)} authors")

    tau = Cell(f"{paper['tau_mean']}", small=f"{paper['tau_low']} to {paper['tau_high']} pairwise")
    own, vendor = (
        spread([one.fidelity for one in found]) for found in (board.own_bias, board.vendor_bias)
    )
    own_printed = Cell(f"{paper['own_bias_low']} to {paper['own_bias_high']}")
    vendor_printed = Cell(f"{paper['vendor_bias_low']} to {paper['vendor_bias_high']}")
    rows = (
        line("Agreement (mean Kendall tau)", figure(board.agreement), tau, ours=True),
        line("Own work marked higher by", own, own_printed, ours=True),
        line("Work of the same vendor marked higher by", vendor, vendor_printed, ours=True),
    )
    note = "Comparable where real models reviewed; marks of scripted reviewers mean nothing."
    summary = table("Reviewers", ("", "ours", "printed"), rows, note=note)
    columns = ("", "by others", "place", "with own marks", "place with own marks")
    note = "printed: the first three places are the same under both"
    models = {row.model: row for row in scores.models}
    ranking = table(
        "Ranking with and without bias", columns, _standings(board, models, ours=True), note=note
    )
    return Filled(tables=(summary, ranking), reasons=why)


def _gate_cells(gated: Mapping[str, ModelRow] | None, author: str) -> tuple[Cell, ...]:
    row = (gated or {}).get(author)
    return () if row is None else (figure(row.gates["leak"], "share"), figure(row.valid, "share"))


def _standings(
    board: ReviewBoard,
    models: Mapping[str, ModelRow] | None = None,
    *,
    ours: bool = False,
) -> Iterator[Row]:
    """Yield each author's mean mark and rank, by peers alone and including self-reviews.

    ``models`` states which models are not ranked and, outside the paper's tables, the findings of
    the gates.
    """
    for one in board.standings:
        model = (models or {}).get(one.author)
        gates = () if ours else _gate_cells(models, one.author)
        peers = (figure(one.peers), Cell(f"{one.peer_place or 'n/a'}"))
        everyone = (figure(one.everyone), Cell(f"{one.everyone_place or 'n/a'}"))
        yield line(
            one.author,
            *(*peers, *everyone, *gates),
            ours=ours,
            unranked=None if model is None else model.unranked,
        )


def _review_maps(records: Mapping[str, StrategyOutcome]) -> Filled:
    """Return the reviewers' mean marks of each author, by model and by vendor.

    The marks are from the first iteration.
    """
    reviews: list[Review] = []
    for record in records.values():
        for one in record.iterations:
            if one.number == 0:
                reviews.extend(one.reviews)
    if not reviews:
        return Filled(missing="needs reviewers: --reviewer MODEL, twice or more")
    tables = []
    for title, of in (("Reviewers by authors", str), ("Vendors by vendors", vendor_of)):
        authors, reviewers = (
            sorted({of(r.author) for r in reviews}),
            sorted({of(r.reviewer) for r in reviews}),
        )
        rows = []
        for reviewer in reviewers:
            cells = []
            for author in authors:
                mark = both_marks(
                    [r for r in reviews if (of(r.reviewer), of(r.author)) == (reviewer, author)]
                )
                tone = "same" if mark.value is not None else ""
                if mark.value is not None and not 4 <= mark.value < 7:
                    tone = "above" if mark.value >= 7 else "below"
                cells.append(Cell(measure=mark, form="{:.2f}", tone=tone))
            rows.append(line(reviewer, *cells, ours=True))
        tables.append(
            table(title, ("reviewer", *authors), rows, note="means of both marks, 1 to 10")
        )
    return Filled(tables=tuple(tables))
