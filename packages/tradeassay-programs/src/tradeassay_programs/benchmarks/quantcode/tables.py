"""Build the tables of a QuantCode run: solve rates, stages, failures, items, and the paper's
tables.

The paper's tables include rows of this project's runs.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

import msgspec

from tradeassay.core.measure import Measure
from tradeassay.core.tables import Cell, counted
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
    unmet_conditions,
)
from tradeassay_bench.core.tables import Row, Table, amount, figure, in_order, line, table
from tradeassay_programs.benchmarks.quantcode.dialogue import TaskOutcome, Turn
from tradeassay_programs.benchmarks.quantcode.scores import (
    ENDS,
    FAILURE_TITLES,
    FAILURE_WORDS,
    CellScores,
    QuantCodeScores,
    pooled_rates,
)
from tradeassay_programs.benchmarks.quantcode.spec import QuantCodeSpec
from tradeassay_programs.code.evaluation import STAGES as CHECKS
from tradeassay_programs.code.judges.decisions import BehaviourVerdict, LanguageVerdict

MOST_TURNS: Final = 3_000
"""Maximum number of turns whose programs a page contains, so that it does not become too long."""
STAGES: Final = ("compile", "backtest", "trade", "judge")
_COLUMNS: Final = ("Compiles", "Runs", "Trades", "Solved")
_CHIPS: Final = {
    "solved": ("above", "solved", "Solved"),
    "trick": ("failed", "trick", "Trick"),
    "compile": ("below", "does not compile", "Does not compile"),
    "backtest": ("below", "crashes", "Crashes while running"),
    "trade": ("below", "no trade", "No trade"),
    "lookahead": ("below", "looks ahead", "Looks ahead"),
    "judge": ("below", "rejected", "Rejected by the judge"),
    "no_code": ("below", "no code", "No code, reasoning loop"),
    "cut_off": ("below", "cut off", "Cut off by the token limit"),
    "not_scored": ("same", "not scored", "Not scored"),
    "no_answer": ("failed", "no answer", ""),
}
"""For each end of an answer: the tone and the label of its chip, and the row of the paper's
tables.
"""
_DECIDES: Final = {
    "reference-first": "the behavioural judge decides",
    "behaviour": "the behavioural judge decides",
    "language": "the language judge decides",
    "both": "both judges must agree",
}
_TURNS: Final = (1, 3, 5, 10)
_NOTHING: Final = Cell("–")
_PLAYED: Final = PlayWords(passes="solves its task", score="tasks solved", window="task")


def _place(cell: CellScores) -> tuple[bool, bool, float]:
    """Return a sort key of cells by the share of solved tasks.

    Cells without a rank or a result are last.
    """
    solved = cell.rates.judge.value
    return solved is None, cell.unranked is not None, -(solved or 0.0)


def way(cell: CellScores) -> str:
    """Return a phrase for the setting of a row, e.g. ``agentic · formal · backtrader``."""
    return f"{cell.setting} · {cell.wording} · {cell.framework}"


def quantcode_tables(
    spec: QuantCodeSpec,
    items: Sequence[Item],
    scores: QuantCodeScores,
    records: Mapping[str, TaskOutcome],
    endings: Mapping[str, Ending],
) -> Shown:
    cells = sorted(scores.cells, key=_place)
    headline, support = _in_words(cells)
    by_key = {item.key: item for item in items}
    tasks = len({item.task for item in items})
    failures = pooled_rates(cells).counts
    named = ", ".join(f"{FAILURE_TITLES[name].lower()} {count}" for name, count in failures.items())
    plays = [
        play_of(item, passed=bool(found.solved), score=float(bool(found.solved)))
        for item, found in ((item, records.get(item.key)) for item in items)
        if found is not None and (found.solved is not None or found.stage == "no_answer")
    ]
    reliable = reliability(plays, called=_PLAYED)
    board, costs, collapse = _of_cells(cells)
    data = ("plain", f"data: {spec.dataset}, if it has a task's symbol")
    return Shown(
        question="Who solves most?",
        headline=headline,
        support=support,
        sub=f"{counted(tasks, 'task')}, {counted(len(items), 'item')} · "
        "programs written by models, examined in a sandbox",
        badges=(
            data if spec.dataset else ("synthetic", "synthetic data"),
            ("plain", _DECIDES[spec.evaluate.decides]),
            ("plain", f"language judge: {spec.judge}" if spec.judge else "no language judge"),
        ),
        board=board,
        board_lines=(
            *([f"failures: {named}"] if named else []),
            *(reliable.sentences if reliable else ()),
        ),
        sections=(
            *reliable_section(reliable),
            *_sections(cells, costs, collapse, by_key, records, endings),
        ),
        reliability=reliable,
        paper=quantcode_paper([(spec, tasks)], cells, UNTIMED),
        items=dict(_items(items, records)),
        method="Programs ran in a sandbox on generated bars. The host computed fills, trades and "
        "money from "
        "their orders.",
        notes=scores.notes,
    )


def _in_words(cells: Sequence[CellScores]) -> tuple[str, tuple[str, ...]]:
    """Return a sentence on the model that solves most tasks, and sentences on its lead."""
    told = [cell for cell in cells if cell.rates.judge.value is not None and cell.unranked is None]
    if not told:
        if any(cell.unranked for cell in cells):
            return "No model is ranked: too many items had no answer.", ()
        return "No model has a result.", ()

    def solved(cell: CellScores) -> str:
        return f"{cell.solved} of {counted(cell.rates.judge.n or 0, 'task')}"

    best = told[0]
    headline = (
        f"{best.model} solves {solved(best)} ({best.setting}, {best.wording} wording, "
        f"{best.framework})."
    )
    support = []
    second = next((cell for cell in told[1:] if cell.model != best.model), None)
    if second is not None and not best.solved:
        headline = (
            f"No model solves a task: {', '.join(f'{one.model} {solved(one)}' for one in told)}."
        )
    elif second is not None:
        apart = overlap(best.rates.judge, second.rates.judge)
        support.append(f"Next is {second.model} with {solved(second)} ({second.setting}); {apart}.")
    collapsed = [cell.model for cell in told if cell.collapse.collapsed]
    if collapsed:
        support.append(f"Many tasks, one program: {', '.join(dict.fromkeys(collapsed))}.")
    tricks, leaks = (
        sum(sum(cell.tricks.values()) for cell in told),
        sum(cell.look_ahead for cell in told),
    )
    found = [counted(tricks, "trick")] if tricks else []
    found += [f"{counted(leaks, 'item')} that looked ahead"] if leaks else []
    if found:
        support.append(f"Found in programs: {' and '.join(found)}.")
    return headline, tuple(support)


def _of_cells(cells: Sequence[CellScores]) -> tuple[Table, Table, Table]:
    """Return three tables: the board, the costs of answers, and programs shared by many tasks."""
    board, costs, collapse = [], [], []
    for cell in cells:
        rates, paid, found = cell.rates, cell.writer, cell.collapse
        left_out = [f"{rates.failed} without an answer"] if rates.failed else []
        left_out += [f"{rates.unscored} not scored"] if rates.unscored else []
        counts = msgspec.structs.replace(amount(rates.items), small=", ".join(left_out))
        shares = (figure(getattr(rates, stage), "share", bar=True) for stage in STAGES)
        solved = (figure(cell.tokens_per_solved, "tokens"), figure(cell.usd_per_solved, "dollars"))
        turns = figure(cell.mean_turns, "{:.1f}")
        shown = (Cell(way(cell)), counts, *shares, turns, *solved)
        board.append(line(cell.model, *shown, unranked=cell.unranked))
        spent = (
            amount(paid.calls),
            amount(paid.tokens, "tokens"),
            amount(paid.known_usd, "dollars"),
        )
        judge = Cell(cell.judge.words() if cell.judge.calls else "not used")
        costs.append(line(f"{cell.model} ({way(cell)})", *spent, *solved, judge))
        same = (
            found.clusters[0].tasks if found.clusters and len(found.clusters[0].tasks) > 1 else ()
        )
        verdict = (
            Cell("collapsed", tone="below") if found.collapsed else Cell("not flagged", tone="same")
        )
        shapes = (
            amount(found.tasks),
            amount(len(found.clusters)),
            amount(found.largest_share, "share", found.reason),
        )
        collapse.append(
            line(f"{cell.model} ({way(cell)})", *shapes, verdict, Cell(", ".join(same[:6])))
        )
    solved_for = ("Tokens per solved task", "Dollars per solved task")
    return (
        table(
            "Results by stage",
            (
                "model",
                "setting",
                "items",
                *_COLUMNS,
                "turns",
                *(words.lower() for words in solved_for),
            ),
            board,
            "Each stage counts only if all earlier stages were passed. 95% intervals (Wilson) are "
            "in small "
            "print. An item without an answer is excluded from all rates. A trick fails the run "
            "and all later "
            "stages. Look-ahead fails the last column.",
        ),
        table(
            "Tokens and dollars",
            ("Model", "Answers", "Tokens", "Dollars", *solved_for, "Judge"),
            costs,
            "Total tokens and dollars divided by the number of solved items. The judge's cost is "
            "listed "
            "separately.",
        ),
        table(
            "Template collapse",
            ("Model", "Programs", "Shapes", "Largest group", "Verdict", "Same program for"),
            collapse,
        ),
    )


def _sections(
    cells: Sequence[CellScores],
    costs: Table,
    collapse: Table,
    items: Mapping[str, Item],
    records: Mapping[str, TaskOutcome],
    endings: Mapping[str, Ending],
) -> Iterator[Section]:
    agentic = [cell for cell in cells if cell.setting == "agentic" and cell.by_turn]
    if agentic:
        most = max(len(cell.by_turn) for cell in agentic)
        names = tuple(f"T{turn}" for turn in range(1, most + 1))
        turns = []
        for c in agentic:
            shares = (figure(one, "share") for one in c.by_turn)
            turns.append(line(_short(c), *shares, figure(c.mean_turns, "{:.1f}")))
        yield Section(
            id="turns",
            title="Solved by turn",
            curves=Curves(
                x=names,
                lines=tuple(
                    (_short(cell), tuple(one.value for one in cell.by_turn)) for cell in agentic
                ),
                steps=True,
            ),
            tables=(table("Share solved by turn", ("Model", *names, "Mean turns"), turns),),
        )
    yield Section(id="groups", title="Solve rate by kind of task", tables=tuple(_groups(cells)))
    yield _failures(cells, endings)
    yield _judges(cells, items, records)
    rows = [
        Row(
            _program(items, key, turn.number),
            (Cell(what), Cell(seen), Cell("yes" if grave else "no, a hint")),
        )
        for key, turn, what, seen, grave in findings(records)
    ]
    found = table("Tricks found", ("Program", "Finding", "Evidence", "Scores zero"), rows)
    yield Section(
        id="tricks",
        title="Look-ahead and tricks",
        text="None of these can change a result, because the host computes fills, trades and money "
        "from the "
        "orders. A trick that scores zero, or a decision that depends on later bars, voids the "
        "program." + ("" if rows else " None was found."),
        tables=(found,) if rows else (),
    )
    yield Section(id="costs", title="Tokens and dollars", tables=(costs,))
    yield Section(
        id="collapse",
        title="Many tasks, one program?",
        text="Programs are compared by shape, without constants and names. A model rewarded only "
        "for running "
        "and trading submits one program for every task.",
        tables=(collapse,),
    )
    yield _earned(items, records)


def _groups(cells: Sequence[CellScores]) -> Iterator[Table]:
    """Yield solve rates by wording, by framework, and by the properties of tasks.

    A wording or framework is left out if it is the only one.
    """
    for by, other in (("wording", "framework"), ("framework", "wording")):
        values = tuple(dict.fromkeys(str(getattr(cell, by)) for cell in cells))
        rows: dict[str, dict[str, CellScores]] = {}
        for cell in cells:
            name = f"{cell.model} · {cell.setting} · {getattr(cell, other)}"
            rows.setdefault(name, {})[getattr(cell, by)] = cell
        if len(values) > 1:
            made = []
            for name, r in rows.items():
                shares = (figure(r[v].rates.judge, "share") if v in r else _NOTHING for v in values)
                made.append(line(name, *shares))
            yield table(f"By {by}", ("Model", *values), made)
    groups = list(chain.from_iterable(cell.groups for cell in cells))
    for by in dict.fromkeys(group.by for group in groups):
        values = tuple(dict.fromkeys(group.value for group in groups if group.by == by))
        if len(values) < 2 and by != "difficulty":
            continue
        made = []
        for cell in cells:
            known = {group.value: group.rates for group in cell.groups if group.by == by}
            found = [
                msgspec.structs.replace(
                    figure(known[v].judge, "share"), small=counted(known[v].items, "item")
                )
                if v in known
                else _NOTHING
                for v in values
            ]
            made.append(line(f"{cell.model} · {way(cell)}", *found))
        yield table(f"By {by}", ("Model", *values), made, folded=by != "difficulty")


def _failures(cells: Sequence[CellScores], endings: Mapping[str, Ending]) -> Section:
    pooled = pooled_rates(cells)
    rows = []
    for name, count in pooled.counts.items():
        shown = (amount(count), figure(pooled.last[name], "share", bar=True))
        rows.append(Row(Cell(FAILURE_TITLES[name], small=FAILURE_WORDS[name]), shown))
    caption = "Failure classes of the last answers of unsolved items, over all models."
    made = table("Failures", ("Class", "Items", "Share"), rows, caption)
    missing = {key: ending for key, ending in endings.items() if ending.status == "failed"}
    without = (
        "Items without a result. A model without an answer has neither failed nor solved the task."
    )
    return Section(
        id="failures",
        title="Why programs fail",
        text=" ".join([*([] if rows else ["Nothing failed."]), *([without] if missing else [])]),
        tables=(made,) if rows else (),
        lines=tuple(Cell(f"{key}: {ending.reason}", item=key) for key, ending in missing.items()),
    )


def _judges(
    cells: Sequence[CellScores], items: Mapping[str, Item], records: Mapping[str, TaskOutcome]
) -> Section:
    pairs, disagree = [], []
    for cell in cells:
        said = cell.judges
        if said.agreement.value is None:
            continue
        counts = (
            said.both_passed,
            said.both_failed,
            said.only_behaviour_passed,
            said.only_language_passed,
        )
        pairs.append(
            line(
                f"{cell.model} ({way(cell)})", *map(amount, counts), figure(said.agreement, "share")
            )
        )
        for key, turn in said.disagree:
            found = records[key].turns[turn - 1].evaluation
            assert found is not None
            verdicts = (Cell(_said(found.judge_behaviour)), Cell(_said(found.judge_language)))
            disagree.append(Row(_program(items, key, turn), verdicts))
    only = ("Only behaviour passes", "Only language passes")
    columns = ("Programs of", "Both pass", "Both fail", *only, "Agreement")
    tables = [table("Agreement of the judges", columns, pairs)] if pairs else []
    if disagree:
        heads = ("Program", "Behavioural judge", "Language judge")
        tables.append(table("Where they disagree", heads, disagree))
    return Section(
        id="judges",
        title="The two judges",
        text="The behavioural judge runs a program and the task's reference on several markets and "
        "compares "
        "their decisions. The language judge reads the program. tradeassay code validate --judge "
        "MODEL "
        "measures their error rates on programs with a known verdict."
        + ("" if pairs else " No program was judged by both."),
        tables=tuple(tables),
    )


def _earned(items: Mapping[str, Item], records: Mapping[str, TaskOutcome]) -> Section:
    rows = []
    for key, record in records.items():
        found = record.turns[-1].evaluation if record.solved and key in items else None
        if found is not None and found.earned is not None:
            path, hold = found.earned.strategy, found.earned.hold
            cells = (
                Cell(items[key].model),
                amount(found.earned.trades),
                amount(path.total_return, "change", "not defined"),
                amount(hold.total_return, "change", "not defined"),
                amount(path.sharpe, "signed", "not defined"),
                amount(path.max_drawdown, "change", "not defined"),
            )
            rows.append(Row(Cell(items[key].task, item=key), cells))
    columns = ("Task", "Model", "Trades", "Return", "Buy and hold", "Sharpe ratio", "Max drawdown")
    made = table("Returns of solved programs", columns, rows, folded=True)
    return Section(
        id="earned",
        title="Returns of solved programs (not scored)",
        text="A task requires a program that follows its rules. These returns are on synthetic "
        "bars and are no "
        "evidence about a model." + ("" if rows else " No program solved its task."),
        tables=(made,) if rows else (),
    )


def findings(records: Mapping[str, TaskOutcome]) -> Iterator[tuple[str, Turn, str, str, bool]]:
    """Yield the findings in programs.

    Each has the item, the turn, the trick or look-ahead, the evidence, and whether it scores zero.
    """
    for key, record in records.items():
        for turn in record.turns:
            if turn.evaluation is not None:
                for trick in turn.evaluation.tricks:
                    yield key, turn, trick.name, trick.detail, trick.grave
                if turn.stage == "lookahead":
                    yield key, turn, "look-ahead", turn.evaluation.lookahead.reason, True


def _items(
    items: Sequence[Item], records: Mapping[str, TaskOutcome]
) -> Iterator[tuple[str, ItemShown]]:
    room = MOST_TURNS
    for item in items:
        record = records.get(item.key)
        if record is None:
            yield item.key, ItemShown(chip=_CHIPS["no_answer"][:2])
            continue
        shown = len(record.turns) <= room
        room -= len(record.turns) if shown else 0
        steps = tuple(map(_step, record.turns)) if shown else ()
        yield (
            item.key,
            ItemShown(
                chip=_CHIPS[record.stage][:2], value=counted(len(record.turns), "turn"), steps=steps
            ),
        )


def _step(turn: Turn) -> Step:
    found, lines, checks = turn.evaluation, [], []
    if found is None:
        lines += [turn.reason] if turn.reason else []
    else:
        for name in CHECKS:
            stage = found.stage(name)
            title = "look-ahead" if name == "lookahead" else name
            checks.append((title, stage.status, stage.reason if stage.failed else ""))
        lines += [f"{trick.name}: {trick.detail}" for trick in found.tricks]
        lines += [one.text for one in found.leak.evidence] if found.leak else []
        if found.judge_behaviour is not None:
            lines.append(f"Judge behaviour: {_said(found.judge_behaviour)}")
            each = [
                f"{one.market} {one.failure or f'{one.value:.3f}'}"
                for one in found.judge_behaviour.markets
            ]
            lines += [f"Agreement by market: {', '.join(each)}"] if each else []
        if found.judge_language is not None and found.judge_language.attempts:
            spoken = found.judge_language
            said = (
                "; ".join(f"{one.name} {one.verdict}: {one.reason}" for one in spoken.criteria)
                or spoken.reason
            )
            lines.append(
                f"Judge {spoken.judge or 'language'}: {spoken.status.replace('_', ' ')}; {said}"
            )
    texts = (
        ("Program", turn.code),
        ("Answer without a program", turn.raw),
        ("Feedback to the model", turn.feedback),
    )
    return Step(
        title=f"Turn {turn.number}",
        chip=_CHIPS[turn.stage][:2],
        small=f"{turn.usage.input_tokens:,} tokens in, {turn.usage.output_tokens:,} out",
        checks=tuple(checks),
        lines=tuple(lines),
        texts=tuple((title, text) for title, text in texts if text),
    )


def _short(cell: CellScores) -> str:
    return f"{cell.model} · {cell.wording} · {cell.framework}"


def _program(items: Mapping[str, Item], key: str, turn: int) -> Cell:
    return Cell(f"{items[key].model}: {items[key].task}", small=f"turn {turn}", item=key)


def _said(verdict: BehaviourVerdict | LanguageVerdict | None) -> str:
    assert verdict is not None
    agreed = verdict.agreement if isinstance(verdict, BehaviourVerdict) else None
    words = "every criterion passes" if agreed is None else f"agreement {agreed:.3f}"
    return f"{verdict.status.replace('_', ' ')}: {verdict.reason or words}"


# The paper's tables.


def why_not_comparable(
    *,
    public_tasks: bool,
    tasks: int,
    real_data: bool = False,
    turns: int = 10,
    decided_by: str = "behaviour",
    formal: bool = True,
) -> tuple[str, ...]:
    """Return every reason why this project's rates are not comparable with the paper's.

    The result is never empty: the paper does not name its judge, and its harness has neither a
    sandbox nor a look-ahead check like this project's.
    """
    checks = (
        (public_tasks, "our tasks are not the paper's"),
        (real_data, "our data is synthetic; the paper's is downloaded history"),
        (
            not public_tasks or tasks == load_published("quantcode")["tasks"],
            f"we ran {tasks} tasks, the paper 400",
        ),
        (turns == 10, f"we allow {turns} turns, the paper 10"),
        (decided_by == "language", "our judge stage is not decided by a language model alone"),
        (formal, "our wording is the conversational one"),
    )
    tricks = (
        "programs that look ahead or use tricks score zero here; the paper does not check for them"
    )
    return (*unmet_conditions(checks), "the paper does not name its judge", tricks)


def quantcode_paper(
    runs: Sequence[tuple[QuantCodeSpec, int]], cells: Sequence[CellScores], latency: Filled
) -> PaperPage:
    """Return the exhibits of QuantCode-Bench, filled with the results of runs.

    ``runs`` are the specs, each with its number of tasks. ``latency`` is the models' response time,
    which only the recordings contain.
    """
    paper = load_published("quantcode")
    single, agentic = (
        [cell for cell in cells if cell.setting == one] for one in ("single-turn", "agentic")
    )
    why: dict[str, dict[str, None]] = {"single-turn": {}, "agentic": {}}
    for spec, tasks in runs:
        for setting in spec.settings:
            reasons = why_not_comparable(
                public_tasks=spec.task_file is not None,
                tasks=tasks,
                real_data=bool(spec.dataset),
                turns=spec.turns if setting == "agentic" else 10,
                decided_by=spec.evaluate.decides,
                formal=spec.wordings == ("formal",),
            )
            why[setting] |= dict.fromkeys(reasons)
    alone, talking = pooled_rates(single), pooled_rates(agentic)
    failures = {row["class"]: row["share"] for row in paper["failures"]}
    both = {row["class"]: row for row in paper["failure_turns"]}
    stages = ("Compile", "Backtest", "Trade", "Judge")
    shares = ("Paper", "Ours, all models")
    cut_off = (
        "An answer cut off by the token limit has a separate row here. The paper does not "
        "distinguish it."
    )
    first_turn = (
        "Ours, turn 1: first answers of agentic conversations; the paper's are its single-turn "
        "answers. " + cut_off
    )

    def filled(
        setting: str, title: str, columns: Sequence[str], rows: Iterable[Row], note: str = ""
    ) -> Filled:
        if not (single if setting == "single-turn" else agentic):
            more = ": use --grid" if setting == "agentic" else ""
            return Filled(missing=f"needs {setting} answers{more}")
        return Filled(
            tables=(table(title, ("", *columns), rows, note=note),), reasons=(*why[setting],)
        )

    passed = [
        line(f"{c.model} ({way(c)})", *_stages(c), ours=True, unranked=c.unranked) for c in single
    ]
    passed += [line(r["model"], *_printed_stages(r)) for r in paper["single_turn"]]
    failed, failed_by_turn = [], []
    for name, words in FAILURE_TITLES.items():
        if name in failures or alone.last[name].value:
            failed.append(
                line(words, _percent(failures.get(name)), figure(alone.last[name], "share"))
            )
        if name in both or talking.first[name].value or talking.last[name].value:
            theirs = both.get(name, {})
            first = (_percent(theirs.get("turn_1")), figure(talking.first[name], "share"))
            last = (_percent(theirs.get("last_turn")), figure(talking.lost[name], "share"))
            failed_by_turn.append(line(words, *first, *last))
    by_turn = (*stages, "Mean turns", *(f"T{n}" for n in _TURNS))
    turns = ("Paper, turn 1", "Ours, turn 1", "Paper, last turn", "Ours, last turn")
    alone_ends = _ends(paper["single_turn_stages"], alone.ends)
    talking_ends = _ends(paper["agentic_stages"], talking.ends)
    makers: dict[str, Callable[[], Filled]] = {
        "table-1": lambda: _tasks(cells, "source"),
        "table-2": lambda: _tasks(cells, "difficulty"),
        "table-3": lambda: filled("single-turn", "Passed, single-turn", stages, _ranked(passed)),
        "table-4": lambda: filled(
            "agentic", "Passed, agentic", by_turn, _by_turn(agentic, paper["agentic"])
        ),
        "table-5": lambda: filled("single-turn", "Ends", shares, alone_ends, cut_off),
        "table-6": lambda: filled("single-turn", "Failures", shares, failed, cut_off),
        "table-7": lambda: filled("agentic", "Ends", shares, talking_ends, cut_off),
        "table-8": lambda: filled("agentic", "Failures", turns, failed_by_turn, first_turn),
        "latency": lambda: latency,
        "groups": lambda: _kinds(cells),
    }
    return fill_paper("quantcode", makers, source=paper["source"], notes=paper["notes"])


def _by_turn(agentic: Sequence[CellScores], theirs: Sequence[Mapping[str, Any]]) -> list[Row]:
    rows = []
    for c in agentic:
        turns = (
            figure(c.by_turn[n - 1], "share") if n <= len(c.by_turn) else _NOTHING for n in _TURNS
        )
        cells = (*_stages(c), figure(c.mean_turns, "{:.1f}"), *turns)
        rows.append(line(f"{c.model} ({way(c)})", *cells, ours=True, unranked=c.unranked))
    for r in theirs:
        turns = (_percent(r[f"t{n}"]) for n in _TURNS)
        rows.append(
            line(r["model"], *_printed_stages(r), amount(r["mean_turns"], "{:.1f}"), *turns)
        )
    return _ranked(rows)


def _tasks(cells: Sequence[CellScores], by: str) -> Filled:
    """Return the number of tasks by a property, in the runs and in the paper.

    Each task counts once.
    """
    ours: dict[str, int] = {}
    for cell in cells:
        for group in cell.groups:
            if group.by == by:
                ours[group.value] = max(
                    ours.get(group.value, 0), group.rates.items + group.rates.failed
                )
    printed_rows = load_published("quantcode")["sources"]
    levels = ("easy", "medium", "hard")
    if by == "source":
        theirs = {row["source"]: sum(row[name] for name in levels) for row in printed_rows}
    else:
        theirs = {name: sum(row[name] for row in printed_rows) for name in levels}
    names = dict.fromkeys((*theirs, *ours))
    rows = [
        line(
            name,
            amount(theirs.get(name), unknown="not in the paper"),
            amount(ours.get(name), unknown="none"),
        )
        for name in names
    ]
    tables = [table(f"Tasks by {by}", ("", "Paper", "Ours"), rows)]
    if by == "difficulty":
        made = [
            line(row["source"], *(amount(row[name]) for name in levels)) for row in printed_rows
        ]
        tables.append(table("As printed, by source", ("", *levels), made))
    return Filled(
        tables=tuple(tables), reasons=() if ours == theirs else ("our tasks are not the paper's",)
    )


def _kinds(cells: Sequence[CellScores]) -> Filled:
    tables = []
    for asked in dict.fromkeys(map(way, cells)):
        models = {
            cell.model: (cell.model, [getattr(cell.rates, stage) for stage in STAGES])
            for cell in cells
            if way(cell) == asked
        }
        tables.append(group_table(asked, [(title, "share") for title in _COLUMNS], models))
    return groups_exhibit(*tables)


def _stages(cell: CellScores) -> tuple[Cell, ...]:
    return tuple(figure(getattr(cell.rates, stage), "share") for stage in STAGES)


def _printed_stages(row: Mapping[str, Any]) -> tuple[Cell, ...]:
    return tuple(_percent(row[stage]) for stage in STAGES)


def _percent(share: float | None) -> Cell:
    return amount(None if share is None else share / 100.0, "share", "not in the paper")


def _ends(rows: Sequence[Mapping[str, Any]], ours: Mapping[str, Measure]) -> list[Row]:
    paper = {row["stage"]: row["share"] for row in rows}
    return [
        line(_CHIPS[stage][2], _percent(paper.get(stage)), figure(ours[stage], "share"))
        for stage in ENDS
        if stage in paper or ours[stage].value
    ]


def _ranked(rows: list[Row]) -> list[Row]:
    """Return rows sorted by the judge's column.

    The runs' rows are among the paper's, and unranked rows are last.
    """
    return in_order(rows, 3)
