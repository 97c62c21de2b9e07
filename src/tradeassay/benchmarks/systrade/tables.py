"""What is shown of a SysTradeBench run: gates, quality, strategies, iterations, reviews, every item with its
scorecard, and the paper's tables with our rows in them.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from tradeassay.benchmarks.exhibits import (
    UNTIMED,
    Curves,
    Filled,
    PaperPage,
    fill_paper,
    filled_groups,
    grouped,
    mean_of,
)
from tradeassay.benchmarks.programs import (
    Ending,
    Item,
    ItemShown,
    Section,
    Shown,
    Step,
    SubmissionCard,
    overlap,
    reliable_section,
)
from tradeassay.benchmarks.systrade.data import DAYS, splits_of
from tradeassay.benchmarks.systrade.loading import SYSTB
from tradeassay.benchmarks.systrade.published import published, why_not_comparable
from tradeassay.benchmarks.systrade.scores import ModelRow, SystradeScores, half_of
from tradeassay.benchmarks.systrade.spec import Iteration, StrategyOutcome, SystradeSpec
from tradeassay.benchmarks.tables import Cell, Row, Table, amount, counted, figure, line
from tradeassay.code.gates import GATES, PAPER_GATES
from tradeassay.code.review import ReviewBoard, both_marks, vendor_of
from tradeassay.code.scores import DIMENSIONS, Scorecard, Windows
from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics.reliability import Play, PlayWords, reliability

_PLAYED: Final = PlayWords(passes="holds all gates", score="overall scores", window="task")
_BOARD_GATES: Final = ("exec", "leak", "audit")


def systrade_tables(
    spec: SystradeSpec,
    items: Sequence[Item],
    scores: SystradeScores,
    records: Mapping[str, StrategyOutcome],
    endings: Mapping[str, Ending],
) -> Shown:
    models = sorted(scores.models, key=lambda row: (-(row.valid.value or 0.0), -(row.overall.value or 0.0)))
    headline, support = _in_words(models, sum(row.drifted for row in scores.iterations))
    reliable = reliability(_plays(items, records), called=_PLAYED)
    return Shown(
        question="Whose submissions are governed software?",
        headline=headline,
        support=support,
        sub=f"{counted(len(scores.strategies), 'strategy', 'strategies')}, {counted(len(items), 'item')} · "
        "governed strategies written by models, run in a sandbox",
        badges=(
            ("synthetic", "synthetic data") if spec.dataset is None else ("plain", f"data: {spec.dataset}"),
            *((("plain", counted(len(spec.reviewers), "reviewer")),) if spec.reviewers else ()),
        ),
        board=_board(models),
        board_lines=(*_board_lines(scores), *(reliable.sentences if reliable else ())),
        sections=(
            *reliable_section(reliable),
            _gates(models),
            Section(id="quality", title="Quality and dollars", tables=tuple(_quality(models))),
            _strategies(scores),
            Section(id="iterations", title="Iterations", tables=tuple(_iterations(scores, models))),
            Section(
                id="reviews",
                title="Review board",
                text="Nobody reviewed; name reviewers with `--reviewer`."
                if scores.reviews is None
                else review_words(scores.reviews),
                tables=()
                if scores.reviews is None
                else tuple(review_tables(scores.reviews, {row.model: row for row in scores.models})),
            ),
        ),
        reliability=reliable,
        paper=systrade_paper(spec, scores, records, UNTIMED),
        items={item.key: _item(records.get(item.key), endings.get(item.key)) for item in items},
        cards=dict(_cards(records)),
        method="Iterations were guided by the development year and scored on the test year, which no model was "
        "shown.",
    )


def _plays(items: Sequence[Item], records: Mapping[str, StrategyOutcome]) -> Iterator[Play]:
    """Yield every item that has ended; its task is its window. Look-ahead that is not cleared is no pass."""
    for item in items:
        found = records.get(item.key)
        if found is not None:
            last = found.last
            yield Play(
                model=item.model,
                wording=", ".join(map(str, item.protocol.values())),
                window=item.task,
                seed=item.seed,
                passed=last is not None and last.scorecard.gates.valid,
                score=0.0 if last is None else last.scorecard.overall.value,
            )


def _in_words(models: Sequence[ModelRow], drifted: int) -> tuple[str, tuple[str, ...]]:
    """Say whose submissions pass most gates, whether the lead is real, and what iterations brought."""
    told = [row for row in models if row.valid.value is not None]
    if not told:
        return "No model has a result.", ()
    best = told[0]
    headline = f"{best.model}: {best.valid.value:.1%} of {best.valid.n} submissions hold the paper's six gates."
    support = []
    if len(told) > 1:
        apart = overlap(best.valid, told[1].valid)
        support.append(f"Next is {told[1].model} with {told[1].valid.value:.1%}; {apart}.")
    leaks = [row.model for row in told if (row.gates["leak"].value or 0.0) < (row.gates["exec"].value or 0.0)]
    if leaks:
        support.append(f"Submissions that run and look ahead: {', '.join(leaks)}.")
    if drifted:
        support.append(f"{counted(drifted, 'patch', 'patches')} changed the strategy and were set aside.")
    return headline, tuple(support)


def _board(models: Sequence[ModelRow]) -> Table:
    rows = [
        line(
            row.model,
            amount(row.items),
            *(figure(row.gates[name], "share") for name in _BOARD_GATES),
            figure(row.valid, "share", bar=True),
            *(figure(row.scores[name]) for name in DIMENSIONS),
            figure(row.overall),
            amount(row.usd_per_strategy, "dollars"),
            Cell(row.worth),
        )
        for row in models
    ]
    columns = ("model", "items", *_BOARD_GATES, "valid", *DIMENSIONS, "overall", "$/strategy", "worth")
    caption = "Counted submissions, one per item. Valid: the paper's six gates hold. D1 to D4: means, 0 to 10."
    return Table(title="Models", columns=columns, rows=tuple(rows), caption=caption)


def _board_lines(scores: SystradeScores) -> Iterator[str]:
    for row in scores.iterations:
        if row.items and row.tokens.value is not None and row.reached_goal.value is not None:
            yield (
                f"iteration {row.iteration}: {row.tokens.value:,.0f} tokens a submission, "
                f"{row.reached_goal.value:.1%} of {row.reached_goal.n} reached the goal"
            )
    held = {row.model: row.gates["leak"].value for row in scores.models}
    for one in scores.reviews.standings if scores.reviews is not None else ():
        share = held.get(one.author)
        mark = f"; leak gate held in {share:.1%}" if share is not None and share < 1.0 else ""
        yield (
            f"{one.author}: {_text(one.peers)} by others (place {one.peer_place or 'n/a'}), "
            f"{_text(one.everyone)} in all reviews (place {one.everyone_place or 'n/a'}){mark}"
        )
    if scores.reviews is not None:
        given = ", ".join(f"{desk.reviewer} {_text(desk.mean)}" for desk in scores.reviews.desks)
        yield f"mean marks given to others, the strictest first: {given}"


def _gates(models: Sequence[ModelRow]) -> Section:
    rows = []
    for row in models:
        small = f"{row.unanswered} without an answer" if row.unanswered else ""
        shares = (figure(measure, "share") for measure in (*(row.gates[name] for name in GATES), row.valid))
        last = (amount(row.not_cleared), figure(row.windows, "share"))
        rows.append(line(row.model, Cell(f"{row.items}", small=small), *shares, *last))
    table = Table(
        title="Gates",
        columns=("Model", "Items", *GATES, "Valid", "Not cleared", "Ten-bar tests"),
        rows=tuple(rows),
        caption="Share of counted submissions, one per item, that held the gate; 95% intervals (Wilson) in "
        "small print. Valid: the paper's six gates. Scenarios and agreement are ours. An item without an answer "
        "is in no rate. Not cleared: nobody could tell whether it looks ahead; neither valid nor invalid. Ten-bar "
        "tests: pieces of ten bars of the test data that valid submissions ran through.",
    )
    return Section(id="models", title="Gates", tables=(table,))


def _quality(models: Sequence[ModelRow]) -> Iterator[Table]:
    rows = [
        line(
            row.model,
            *(figure(row.scores[name]) for name in DIMENSIONS),
            figure(row.overall),
            *(figure(row.paper[name]) for name in DIMENSIONS),
            figure(row.overall_paper),
            amount(row.usd_per_strategy, "dollars"),
            Cell(row.paper_tier),
            Cell(row.worth),
        )
        for row in models
    ]
    printed = (*(f"{name} as printed" for name in DIMENSIONS), "Overall as printed")
    yield Table(
        title="Quality and dollars",
        columns=("Model", *DIMENSIONS, "Overall", *printed, "Dollars per strategy", "Paper's tier", "Worth"),
        rows=tuple(rows),
        caption="Means over counted submissions, 0 to 10: measured, and as the paper's formulas and reviewers "
        "would have it. Overall is the mean of the measured four, for submissions where all four are scored. "
        "The paper's tiers, against the best overall score: balanced has 88% of it for half its price, premium "
        "costs more, budget gives less for at most that price.",
    )


def _strategies(scores: SystradeScores) -> Section:
    rows = [
        line(
            row.strategy,
            amount(row.complexity, "{:.2f}"),
            amount(row.items),
            figure(row.valid, "share"),
            *(figure(row.scores[name]) for name in DIMENSIONS),
            figure(row.overall),
            figure(row.pbo),
            figure(row.spa_p, "{:.3f}"),
        )
        for row in scores.strategies
    ]
    rows.append(
        line("Spearman's rho of complexity and overall", *[Cell()] * 7, figure(scores.complexity), *[Cell()] * 2)
    )
    table = Table(
        title="Strategies",
        columns=("Strategy", "C", "Items", "Valid", *DIMENSIONS, "Overall", "PBO", "SPA p"),
        rows=tuple(rows),
        caption="C is the paper's complexity. PBO: probability that the best submission of a strategy is "
        "overfitted (CSCV). SPA: p-value of the hypothesis that none beats buy and hold.",
    )
    return Section(id="strategies", title="Strategies", tables=(table,))


def _iterations(scores: SystradeScores, models: Sequence[ModelRow]) -> Iterator[Table]:
    reached = [row for row in scores.iterations if row.items]
    rows = [
        line(
            f"{row.iteration}",
            amount(row.items),
            *(figure(row.scores[name]) for name in DIMENSIONS),
            figure(row.gain, "{:+.2f}"),
            *(figure(one, "share") for one in (row.alike, row.same_outcome, row.test_return)),
            figure(row.ensemble),
            Cell(f"{row.repaired} repaired, {row.drifted} drifted"),
            figure(row.reached_goal, "share"),
        )
        for row in reached
    ]
    found = ("Gain", "Code alike", "Same outcome", "Test return", "Mix", "Patches", "Reached the goal")
    yield Table(
        title="Iterations",
        columns=("Iteration", "Items", *DIMENSIONS, *found),
        rows=tuple(rows),
        caption="Gain: overall against the iteration before. Alike: shared lines of two models' programs for "
        "one strategy. Same outcome: pairs whose test year ended equal. Mix: how much an equal mix of a "
        "strategy's submissions varies relative to a single one; at 1 the mix is no steadier. Goal of the last "
        "iteration: D1 to D3 of 8.5, a Sharpe ratio of 1.5 and a return of 10% on the test year at the lowest "
        "cost level.",
    )
    tokens = []
    for row in models:
        used = [
            Cell(f"{one.request:,.0f} + {one.answer:,.0f}", small=counted(one.items, "item")) for one in row.tokens
        ]
        tokens.append(line(row.model, *used, *[Cell("n/a")] * (len(reached) - len(used))))
    yield Table(
        title="Tokens",
        columns=("Model", *(f"Iteration {row.iteration}" for row in reached)),
        rows=tuple(tokens),
        caption="Tokens a submission took on average: of the request, and of the answer.",
    )


def review_words(board: ReviewBoard) -> str:
    tau = board.agreement
    note = tau.reason or tau.note
    words = "Reviewers did not know whose work they marked. Agreement between reviewers (mean Kendall tau): "
    words += _text(tau)
    interval = f" ({tau.low:.2f} to {tau.high:.2f})" if tau.low is not None and tau.high is not None else ""
    unread = f" {counted(board.unanswered, 'review')} could not be read." if board.unanswered else ""
    return f"{words}{interval}{f'; {note}' if note else ''}.{unread}"


def review_tables(board: ReviewBoard, gated: Mapping[str, ModelRow] | None = None) -> Iterator[Table]:
    """Yield marks and ratings, whom reviewers favour, the standings, and who marked whom how. With ``gated``, what
    the gates found stands beside an author's place: a reader may rank first what reads tomorrow's close.
    """
    unrated = not_scored("not compared")
    authors = sorted(board.fidelity, key=lambda name: -(board.rating.get(name, unrated).value or 0.0))
    yield Table(
        title="Marks",
        columns=("Author", "Rating", "Fidelity", "Risk", *(_REVIEW_GATES if gated else ())),
        rows=tuple(
            line(
                name,
                figure(board.rating.get(name, unrated), "{:.0f}"),
                figure(board.fidelity[name]),
                figure(board.risk[name]),
                *_gates_beside(gated, name),
            )
            for name in authors
        ),
        caption="Marks for one's own work are kept but not counted. The rating is Bradley-Terry on the Elo "
        "scale, with a bootstrap interval.",
    )
    yield Table(
        title="Bias",
        columns=("Bias", "Of", "Fidelity", "Risk"),
        rows=tuple(
            line(kind, Cell(one.who), figure(one.fidelity, "{:+.2f}"), figure(one.risk, "{:+.2f}"))
            for kind, biases in (("own work", board.own_bias), ("same vendor", board.vendor_bias))
            for one in biases
        ),
        caption="How much higher the marks are than those of others.",
    )
    yield Table(
        title="Standings",
        columns=("Author", "By others", "Place", "All reviews", "Place in all", *(_REVIEW_GATES if gated else ())),
        rows=_standings(board, gated),
        caption="Mean of both marks and the place that follows from it: by others alone, and with the marks "
        "that authors gave their own work.",
    )
    yield Table(
        title="Reviewers",
        columns=("Reviewer", "Mean given", *(one.author for one in board.standings)),
        rows=tuple(
            line(desk.reviewer, figure(desk.mean), *(figure(desk.marks[one.author]) for one in board.standings))
            for desk in board.desks
        ),
        caption="Who marked whom how: the mean of both marks, the strictest reviewer first. The mean leaves a "
        "reviewer's own work out.",
    )


def _item(record: StrategyOutcome | None, ending: Ending | None) -> ItemShown:
    last = None if record is None else record.last
    tone = "above" if last is not None and last.scorecard.gates.passed else "below"
    words = "" if ending is None else ending.words
    if record is None:
        return ItemShown(chip=(tone, words))
    overall = "" if last is None else f"overall {_text(last.scorecard.overall)} · "
    path = " → ".join(_iteration_words(one) for one in record.iterations)
    steps = tuple(
        Step(
            title=f"Iteration {one.number}",
            chip=("same", _iteration_words(one)),
            small=f"{one.usage.input_tokens:,} tokens in, {one.usage.output_tokens:,} out",
            checks=()
            if one.scored is None
            else tuple(
                (gate.name, gate.status, gate.reason if gate.failed else "")
                for gate in one.scored.scorecard.gates.gates
            ),
            lines=(one.reason,) if one.reason else (),
        )
        for one in record.iterations
    )
    return ItemShown(chip=(tone, words), value=f"{overall}{path} · stopped by {record.stopped}", steps=steps)


def _iteration_words(one: Iteration) -> str:
    if one.scored is None:
        return "no submission"
    failure = one.scored.scorecard.gates.first_failure
    words = "held" if failure is None else f"failed at {failure.name}"
    drift = "" if one.scored.drift is None else f", {one.scored.drift.kind}"
    return f"{words}{drift}{', set aside' if one.set_aside else ''}"


def _cards(records: Mapping[str, StrategyOutcome]) -> Iterator[tuple[str, SubmissionCard]]:
    """Yield a scorecard for every item: of the submission that counts, the last one not set aside."""
    for key, record in records.items():
        for one in reversed(record.iterations):
            if one.scored is not None and one.submission is not None and not one.set_aside:
                yield (
                    key,
                    SubmissionCard(
                        scorecard=one.scored.scorecard,
                        trail=one.scored.trail,
                        submission=one.submission,
                        drift=one.scored.drift,
                        reviews=one.reviews,
                        iteration=one.number,
                    ),
                )
                break


def _text(measure: Measure, form: str = "{:.2f}") -> str:
    return "n/a" if measure.value is None else form.format(measure.value)


# The paper's tables


def systrade_paper(
    spec: SystradeSpec, scores: SystradeScores, records: Mapping[str, StrategyOutcome], latency: Filled
) -> PaperPage:
    """Return SysTradeBench with what a run fills of it; ``latency`` is what only the cassettes say."""
    paper = published()
    why = why_not_comparable(
        strategies=len(scores.strategies),
        iterations=spec.iterations,
        real_data=_stored_data(spec),
        reviewed=bool(spec.reviewers),
        systb=spec.benchmark == "systrade-systb-v1",
    )
    makers: dict[str, Callable[[], Filled]] = {
        "table-2": lambda: _paper_splits(spec),
        "table-3": lambda: Filled(tables=(_paper_gates(scores),), reasons=why),
        "table-4": lambda: Filled(tables=(_paper_strategies(scores, records),), reasons=why),
        "section-5-3": lambda: _paper_reviews(scores, why),
        "section-5-4-1": lambda: Filled(tables=(_paper_windows(scores), _exceptions(records)), reasons=why),
        "section-5-4-2": lambda: _paper_returns(records, why),
        "figure-2": lambda: _learning(scores, records, why),
        "figure-3": lambda: _token_map(scores),
        "section-5-6": lambda: Filled(tables=(_paper_costs(scores),), reasons=why),
        "figure-5": lambda: _review_maps(records),
        "latency": lambda: latency,
        "groups": lambda: _kinds(scores),
    }
    return fill_paper("systrade", makers, source=paper.source, notes=paper.notes)


def _stored_data(spec: SystradeSpec) -> bool:
    """Tell whether every data set of a run is stored, and not a synthetic world."""
    return spec.dataset is not None and "synthetic/" not in spec.dataset


def _pairs(*names: str) -> tuple[str, ...]:
    return ("", *(f"{name}, {whose}" for name in names for whose in ("ours", "printed")))


def _paper_splits(spec: SystradeSpec) -> Filled:
    rows = []
    for name, span in splits_of(spec.splits).items():
        theirs = splits_of(DAYS)[name]
        ours = "a synthetic year" if spec.dataset is None else f"{span.first} to {span.last}"
        rows.append(line(name, Cell(ours), Cell(f"{theirs.first} to {theirs.last}"), ours=True))
    data = "synthetic years" if spec.dataset is None else f"stored bars of {spec.dataset}"
    table = Table(
        title="Splits",
        columns=("", "ours", "printed"),
        rows=tuple(rows),
        note=f"data: {data}; the last day is excluded",
    )
    reasons = () if _stored_data(spec) and spec.splits == DAYS else (f"our data are {data}",)
    return Filled(tables=(table,), reasons=reasons)


def _paper_gates(scores: SystradeScores) -> Table:
    paper = published()
    ours = (
        line(row.model, *(figure(row.gates[name], "share") for name in PAPER_GATES), ours=True)
        for row in scores.models
    )
    printed = (
        line(
            f"{row.model} ({row.submitted} of {paper.strategies} submitted)",
            *(amount(getattr(row, name) / 100.0, "share") for name in PAPER_GATES),
        )
        for row in paper.gates
    )
    return Table(
        title="Submissions that pass each gate",
        columns=("", *PAPER_GATES),
        rows=(*ours, *printed),
        note="Not comparable: parse and schema ask nearly the same, the other gates more than the paper's.",
    )


def _cards_by(records: Mapping[str, StrategyOutcome], name: str) -> dict[str, list[Scorecard]]:
    found: dict[str, list[Scorecard]] = {}
    for record in records.values():
        cards = found.setdefault(str(getattr(record, name)), [])
        cards += [] if record.last is None else [record.last.scorecard]
    return found


def _paper_strategies(scores: SystradeScores, records: Mapping[str, StrategyOutcome]) -> Table:
    """Return the library: LLM is the reviewers' D1 and D2, QR the automatic D3 and D4, by the printed formulas."""
    paper, found = published(), {row.strategy.removeprefix(SYSTB): row for row in scores.strategies}
    cards = {name.removeprefix(SYSTB): these for name, these in _cards_by(records, "strategy").items()}
    not_run = amount(None, unknown="not run")
    rows = []
    for one in paper.by_strategy:
        mine = found.get(one.strategy)
        halves = [
            mean_of(half_of(card, names) for card in cards.get(one.strategy, ()))
            for names in (DIMENSIONS[:2], DIMENSIONS[2:])
        ]
        cells = (
            not_run if mine is None else amount(mine.complexity, "{:.2f}"),
            Cell(one.complexity),
            *(
                cell
                for half, value in zip(halves, (one.llm, one.qr), strict=True)
                for cell in (figure(half), Cell(f"{value:g}"))
            ),
            not_run if mine is None else figure(mine.overall),
            Cell(f"{one.overall:.2f}"),
            not_run if mine is None else figure(mine.valid, "share"),
            Cell(f"{one.valid}/{paper.attempts}"),
        )
        rows.append(line(one.strategy, *cells, ours=mine is not None))
    rho = (figure(scores.complexity), Cell(f"{paper.complexity.rho:+.2f}", small="printed"), Cell(), Cell())
    rows.append(line("Spearman's rho of complexity and overall", *[Cell()] * 6, *rho, ours=True))
    return Table(
        title="Strategies",
        columns=_pairs("C", "LLM", "QR", "overall", "valid"),
        rows=tuple(rows),
        note="Not comparable in value; the order of strategies may be. LLM and QR are of submissions that were "
        "marked; overall is the mean of our four measured dimensions.",
    )


def _paper_windows(scores: SystradeScores) -> Table:
    printed = published().out_of_sample
    words = Cell(f"{printed.passed / printed.tests:.1%}", small=f"{printed.passed} of {printed.tests}")
    rows = [line(row.model, figure(row.windows, "share"), Cell(), ours=True) for row in scores.models]
    rows.append(line("all valid submissions", figure(scores.windows, "share"), words, ours=True))
    return Table(
        title="Tests that ran through",
        columns=("", "ours", "printed"),
        rows=tuple(rows),
        note="Comparable in kind: ours are five pieces of each valid submission's test data, at drawn places.",
    )


_EXCEPTION: Final = re.compile(r"\b([A-Z][A-Za-z]*(?:Error|Exception|Interrupt|Exit|Iteration|Warning))\b")


def _exceptions(records: Mapping[str, StrategyOutcome]) -> Table:
    """Return by which exception submissions failed: in the run on the test year, and on pieces of ten bars."""
    counts: dict[tuple[str, str], list[int]] = {}
    for record in records.values():
        card = None if record.last is None else record.last.scorecard
        if card is None:
            continue
        gate = card.gates.first_failure
        said = [(gate.reason, 0)] if gate is not None and gate.name in ("parse", "exec") else []
        said += [(text, 1) for text in (card.windows.failures if isinstance(card.windows, Windows) else ())]
        for text, place in said:
            named = _EXCEPTION.search(text)
            counts.setdefault((named.group(1) if named else "no exception named", record.strategy), [0, 0])[
                place
            ] += 1
    rows = [
        line(name, Cell(strategy), *map(amount, found), ours=True)
        for (name, strategy), found in sorted(counts.items(), key=lambda one: -sum(one[1]))
    ]
    return Table(
        title="Failures by exception",
        columns=("", "strategy", "submissions", "tests on ten bars"),
        rows=tuple(rows),
        note="printed: KeyError and TypeError, most in Calendar Spread and Turtle"
        + ("" if rows else "; ours: none failed so"),
    )


def _by_iteration(records: Mapping[str, StrategyOutcome]) -> dict[str, dict[int, list[Iteration]]]:
    found: dict[str, dict[int, list[Iteration]]] = {}
    for record in records.values():
        mine = found.setdefault(record.model, {})
        for one in record.iterations:
            if one.scored is not None:
                mine.setdefault(one.number, []).append(one)
    return found


def _paper_returns(records: Mapping[str, StrategyOutcome], why: tuple[str, ...]) -> Filled:
    """Return return and trades on the test data by model and iteration, with what is printed for three models."""
    printed = {row.iteration: row for row in published().iterations}
    rows = []
    for model, by_number in _by_iteration(records).items():
        for number, these in sorted(by_number.items()):
            scored = [one.scored for one in these if one.scored is not None]
            total = mean_of(
                (None if one.scorecard.year is None else one.scorecard.year.costs[0].total for one in scored),
                "no account on the test year",
            )
            trades = mean_of(
                (None if one.trail is None else float(one.trail.trades) for one in scored),
                "no run on the test year",
            )
            theirs = printed.get(number)
            cells = (
                amount(len(these)),
                figure(total, "change"),
                Cell("" if theirs is None else f"{theirs.test_return:+.1f}%"),
                figure(trades, "{:.1f}"),
            )
            rows.append(line(f"{model}, iteration {number}", *cells, ours=True))
    table = Table(
        title="Return and trades by iteration",
        columns=("", "submissions", "return, ours", "return, printed", "trades"),
        rows=tuple(rows),
        note="means over submissions at the lowest cost level; printed: three models, one strategy, ten bars",
    )
    return (
        Filled(tables=(table, *_on_instruments(records)), reasons=why)
        if rows
        else Filled(missing="nothing was scored")
    )


def _on_instruments(records: Mapping[str, StrategyOutcome]) -> Iterator[Table]:
    """Yield what the last programs returned by strategy and instrument, where a run has several."""
    found: dict[str, dict[str, list[float | None]]] = {}
    for record in records.values():
        ran = record.last.instruments if record.last is not None else ()
        for one in ran or ():
            found.setdefault(record.strategy, {}).setdefault(one.symbols[0], []).append(one.total)
    names = list(dict.fromkeys(name for by in found.values() for name in by))
    if names:
        rows = [
            line(strategy, *(figure(mean_of(by.get(n, ()), "not run"), "change") for n in names), ours=True)
            for strategy, by in found.items()
        ]
        note = "last programs on the test days, means over models and seeds, before costs, by the first leg"
        yield Table(title="Return by strategy and instrument", columns=("", *names), rows=tuple(rows), note=note)


def _learning(scores: SystradeScores, records: Mapping[str, StrategyOutcome], why: tuple[str, ...]) -> Filled:
    """Return every model's dimensions by iteration, as curves and as a table, and what iterations gain."""
    rows, lines, most = [], [], 0
    for model, by_number in _by_iteration(records).items():
        means = {
            number: {
                name: mean_of(one.scored.scorecard.sound[name].value for one in these if one.scored is not None)
                for name in DIMENSIONS
            }
            for number, these in sorted(by_number.items())
        }
        most = max(most, *means) if means else most
        for number, found in means.items():
            rows.append(line(f"{model}, iteration {number}", *(figure(found[n]) for n in DIMENSIONS), ours=True))
        for name in DIMENSIONS:
            path = [means[n][name].value if n in means else None for n in range(max(means, default=-1) + 1)]
            if any(value is not None for value in path):
                lines.append(
                    (f"{model}, {name}", tuple(None if value is None else value / 10.0 for value in path))
                )
    if not rows:
        return Filled(missing="nothing was scored")
    curves = Curves(x=tuple(str(n) for n in range(most + 1)), lines=tuple(lines), steps=True)
    table = Table(
        title="Dimensions by model and iteration",
        columns=("", *DIMENSIONS),
        rows=tuple(rows),
        note="means, 0 to 10",
    )
    return Filled(tables=(table, _paper_iterations(scores)), curves=(curves,), reasons=why)


def _paper_iterations(scores: SystradeScores) -> Table:
    printed = {row.iteration: row for row in published().iterations}
    rows = []
    for row in scores.iterations:
        one = printed.get(row.iteration)
        gain = Measure(value=row.gain.value / 10.0, n=row.gain.n) if row.gain.value is not None else row.gain
        similar = "" if one is None or one.similarity is None else f"{one.similarity:.1f}%"
        cells = (
            figure(gain, "{:+.3f}"),
            Cell("" if one is None else f"{one.gain:+.2f}"),
            figure(row.alike, "share"),
            Cell(similar),
        )
        if row.items:
            rows.append(line(f"iteration {row.iteration}", *cells, ours=True))
    return Table(
        title="What iterations bring (scores on 0 to 1)",
        columns=_pairs("gain", "code alike"),
        rows=tuple(rows),
        note="Not comparable: the paper followed three models on one strategy, on windows of ten bars.",
    )


def _token_map(scores: SystradeScores) -> Filled:
    rows = [
        line(
            f"{row.model}, iteration {one.iteration}",
            amount(one.items),
            amount(one.request),
            amount(one.answer),
            ours=True,
        )
        for row in scores.models
        for one in row.tokens
    ]
    columns = ("", "items", "tokens of the request", "tokens of the answer")
    return Filled(tables=(Table(title="Tokens", columns=columns, rows=tuple(rows), note="means over items"),))


def _paper_reviews(scores: SystradeScores, why: tuple[str, ...]) -> Filled:
    figures, board = published().reviews, scores.reviews
    if board is None:
        return Filled(missing="needs reviewers: --reviewer MODEL, twice or more")

    def spread(biases: Sequence[Measure]) -> Cell:
        values = [one.value for one in biases if one.value is not None]
        if not values:
            return figure(biases[0]) if biases else Cell("n/a")
        return Cell(f"{min(values):+.2f} to {max(values):+.2f}", small=f"{len(values)} authors")

    pairwise = f"{figures.tau_low} to {figures.tau_high} pairwise"
    rows = (
        ("Agreement (mean Kendall tau)", figure(board.agreement), Cell(f"{figures.tau_mean}", small=pairwise)),
        (
            "Own work marked higher by",
            spread([one.fidelity for one in board.own_bias]),
            Cell(f"{figures.own_bias_low} to {figures.own_bias_high}"),
        ),
        (
            "Work of the same vendor marked higher by",
            spread([one.fidelity for one in board.vendor_bias]),
            Cell(f"{figures.vendor_bias_low} to {figures.vendor_bias_high}"),
        ),
    )
    summary = Table(
        title="Reviewers",
        columns=("", "ours", "printed"),
        rows=tuple(line(name, ours, printed, ours=True) for name, ours, printed in rows),
        note="Comparable where real models reviewed; marks of scripted reviewers mean nothing.",
    )
    ranking = Table(
        title="Ranking with and without bias",
        columns=("", "by others", "place", "with own marks", "place with own marks"),
        rows=_standings(board, ours=True),
        note="printed: the first three places are the same under both",
    )
    return Filled(tables=(summary, ranking), reasons=why)


_REVIEW_GATES: Final = ("Leak gate held", "Valid")


def _gates_beside(gated: Mapping[str, ModelRow] | None, author: str) -> tuple[Cell, ...]:
    row = (gated or {}).get(author)
    return () if row is None else (figure(row.gates["leak"], "share"), figure(row.valid, "share"))


def _standings(
    board: ReviewBoard, gated: Mapping[str, ModelRow] | None = None, *, ours: bool = False
) -> tuple[Row, ...]:
    """Return each author's mean mark and place, by others alone and with its own marks."""
    return tuple(
        line(
            one.author,
            figure(one.peers),
            Cell(f"{one.peer_place or 'n/a'}"),
            figure(one.everyone),
            Cell(f"{one.everyone_place or 'n/a'}"),
            *_gates_beside(gated, one.author),
            ours=ours,
        )
        for one in board.standings
    )


def _review_maps(records: Mapping[str, StrategyOutcome]) -> Filled:
    """Return who marked whom how at the first iteration: reviewers by authors, and the same by vendors."""
    reviews = [
        r for record in records.values() for one in record.iterations if one.number == 0 for r in one.reviews
    ]
    if not reviews:
        return Filled(missing="needs reviewers: --reviewer MODEL, twice or more")
    tables = []
    for title, of in (("Reviewers by authors", str), ("Vendors by vendors", vendor_of)):
        authors, reviewers = sorted({of(r.author) for r in reviews}), sorted({of(r.reviewer) for r in reviews})
        rows = []
        for reviewer in reviewers:
            given = [r for r in reviews if of(r.reviewer) == reviewer]
            marks = [both_marks([r for r in given if of(r.author) == author]) for author in authors]
            rows.append(line(reviewer, *(_toned(one) for one in marks), ours=True))
        tables.append(
            Table(
                title=title, columns=("reviewer", *authors), rows=tuple(rows), note="means of both marks, 1 to 10"
            )
        )
    return Filled(tables=tuple(tables))


def _toned(mark: Measure) -> Cell:
    value = mark.value
    tone = "" if value is None else "above" if value >= 7 else "below" if value < 4 else "same"
    return Cell(measure=mark, form="{:.2f}", tone=tone)


def _paper_costs(scores: SystradeScores) -> Table:
    ours = (
        line(
            row.model,
            amount(row.usd_per_strategy, "dollars"),
            figure(row.overall),
            Cell(row.paper_tier),
            ours=True,
        )
        for row in scores.models
    )
    printed = (
        line(
            f"tier '{row.name}'",
            Cell(f"${row.usd_low:.2f} to ${row.usd_high:.2f}", small="first iteration"),
            Cell(f"{row.overall_low} to {row.overall_high}"),
            Cell(row.name),
        )
        for row in published().tiers
    )
    return Table(
        title="Dollars per strategy and what they buy",
        columns=("", "dollars per strategy", "overall", "tier"),
        rows=(*ours, *printed),
        note="Dollars are comparable at the prices of the day; overall scores are not.",
    )


def _kinds(scores: SystradeScores) -> Filled:
    models = {
        row.model: (row.model, [row.valid, *(row.scores[name] for name in DIMENSIONS)]) for row in scores.models
    }
    columns = [("valid", "share"), *((name, "{:.2f}") for name in DIMENSIONS)]
    return filled_groups(grouped("Groups of models", columns, models))
