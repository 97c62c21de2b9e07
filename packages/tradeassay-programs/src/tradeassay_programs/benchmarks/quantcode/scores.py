"""Compute the totals of a QuantCode run: rates, turns, failures, judges, copies, and costs."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import chain
from typing import Final

import msgspec

from tradeassay.core.measure import Measure, not_scored
from tradeassay.metrics import rate_measure
from tradeassay_bench.benchmarks.code_protocol import CodeItem, CodeRow, unranked_model
from tradeassay_bench.play.dialogue_log import Spending
from tradeassay_programs.benchmarks.quantcode.dialogue import TaskOutcome, failure_of
from tradeassay_programs.code.checks import FAILURES
from tradeassay_programs.code.collapse import CollapseConfig, CollapseReport, collapse
from tradeassay_programs.code.task import CodeTask

GROUPINGS: Final = ("source", "difficulty", "timeframe", "family")
"""The properties of a task by which results are grouped."""
_NOBODY = "no item has a result"
FAILURE_TITLES: dict[str, str] = {info.id: info.title for info in FAILURES}
"""The failure classes: the paper's in the order of its table, then this project's."""
FAILURE_WORDS: dict[str, str] = {info.id: info.description for info in FAILURES}


class StageRates(msgspec.Struct, frozen=True, kw_only=True):
    """The shares of items that passed each stage and all earlier stages.

    ``items`` is the number of items with a result. A program with a grave trick is counted as
    failed from the backtest on. A program that looks ahead fails the ``judge`` stage, which is
    passed exactly if the task is solved. ``unscored`` is the number of items that reached a judge
    that could not decide. These items are left out of ``judge`` alone.
    """

    items: int
    failed: int
    unscored: int
    compile: Measure
    backtest: Measure
    trade: Measure
    judge: Measure


class GroupRates(msgspec.Struct, frozen=True, kw_only=True):
    """Stage rates of the items whose property ``by`` has the value ``value``."""

    by: str
    value: str
    rates: StageRates


class JudgePair(msgspec.Struct, frozen=True, kw_only=True):
    """The verdicts of the two judges on the same programs.

    ``disagree`` lists item and turn of each disagreement.
    """

    both_passed: int = 0
    both_failed: int = 0
    only_behaviour_passed: int = 0
    only_language_passed: int = 0
    agreement: Measure
    disagree: tuple[tuple[str, int], ...] = ()


class CellScores(msgspec.Struct, frozen=True, kw_only=True):
    """The scores of one model with one setting: a row of the paper's Table 3 or 4.

    - ``by_turn`` is the share solved by the first, second ... turn.
    - ``ends`` counts the items by the stage at which they ended (Tables 5 and 7).
    - ``first_failures`` and ``last_failures`` count the classes of the first and of the last answer
      (Tables 6 and 8).
    - ``tricks`` counts items by the tricks in any of their programs, and ``look_ahead`` the items
      convicted of look-ahead.
    - ``collapse`` is over the last program of every task (of the first seed).
    """

    model: str
    wording: str
    framework: str
    setting: str
    rates: StageRates
    groups: tuple[GroupRates, ...]
    solved: int
    by_turn: tuple[Measure, ...]
    mean_turns: Measure
    ends: dict[str, int]
    first_failures: dict[str, int]
    last_failures: dict[str, int]
    judges: JudgePair
    tricks: dict[str, int]
    look_ahead: int
    collapse: CollapseReport
    writer: Spending
    judge: Spending
    tokens_per_solved: Measure
    usd_per_solved: Measure

    @property
    def name(self) -> str:
        return f"{self.model}, {self.setting}, {self.wording}, {self.framework}"

    def row(self) -> CodeRow:
        stages = {
            name: getattr(self.rates, name) for name in ("compile", "backtest", "trade", "judge")
        }
        cell = f"{self.setting}, {self.wording}, {self.framework}"
        measures = {**stages, "turns": self.mean_turns}
        return CodeRow(setting=cell, agent=self.model, measures=measures, unranked=self.unranked)

    @property
    def unranked(self) -> str | None:
        """The reason why the row is not ranked, or None if it may be ranked or no item has a
        result.
        """
        if not self.rates.items:
            return None
        return unranked_model(self.rates.failed, self.rates.items + self.rates.failed)


class QuantCodeScores(msgspec.Struct, frozen=True, kw_only=True):
    """The scores of a run: all rows, and ``notes`` that explain the intervals."""

    cells: tuple[CellScores, ...]
    notes: tuple[str, ...]


def quantcode_scores(
    episodes: Sequence[CodeItem],
    tasks: Mapping[str, CodeTask],
    records: Mapping[str, TaskOutcome],
    *,
    turns: int,
) -> QuantCodeScores:
    """Return the totals of a run's records, with rows in the order of the episodes.

    ``turns`` is the maximum number of turns of the agentic setting.
    """
    cells: dict[tuple[str, ...], list[CodeItem]] = {}
    for item in episodes:
        way = (
            item.model,
            item.protocol["setting"],
            item.protocol["wording"],
            item.protocol["framework"],
        )
        cells.setdefault(way, []).append(item)
    notes = ["intervals by Wilson's formula, at 95 %"]
    seeds = len({episode.seed for episode in episodes})
    if seeds > 1:
        notes.append(f"{seeds} answers to one task count as independent: intervals are too narrow")
    rows = tuple(_cell(cell, these, tasks, records, turns) for cell, these in cells.items())
    return QuantCodeScores(cells=rows, notes=tuple(notes))


def stage_rates(episodes: Sequence[CodeItem], records: Mapping[str, TaskOutcome]) -> StageRates:
    found = [records.get(episode.key) for episode in episodes]
    told = [record for record in found if record is not None and record.stage != "no_answer"]
    scored = [record for record in told if record.solved is not None]
    last = [end for end in (record.turns[-1].evaluation for record in told) if end is not None]
    honest = [end for end in last if not end.grave_tricks]
    passed = (
        sum(end.compile.passed for end in last),
        sum(end.backtest.passed for end in honest),
        sum(end.trade.passed for end in honest),
    )
    compiled, ran, traded = (rate_measure(one, len(told), nothing=_NOBODY) for one in passed)
    return StageRates(
        items=len(told),
        failed=len(found) - len(told),
        unscored=len(told) - len(scored),
        compile=compiled,
        backtest=ran,
        trade=traded,
        judge=rate_measure(
            sum(record.solved is True for record in scored), len(scored), nothing=_NOBODY
        ),
    )


def _cell(
    cell: tuple[str, ...],
    episodes: Sequence[CodeItem],
    tasks: Mapping[str, CodeTask],
    records: Mapping[str, TaskOutcome],
    turns: int,
) -> CellScores:
    model, setting, wording, framework = cell
    found = {episode.key: records[episode.key] for episode in episodes if episode.key in records}
    told = {key: record for key, record in found.items() if record.stage != "no_answer"}
    ended, answers = (
        list(told.values()),
        list(chain.from_iterable(record.turns for record in found.values())),
    )
    scored = [record for record in ended if record.solved is not None]
    at = [record.solved_at for record in scored if record.solved_at is not None]
    solved = sum(record.solved is True for record in ended)
    verdicts = [turn.evaluation.judge_language for turn in answers if turn.evaluation is not None]
    writer = reduce(Spending.plus, (turn.usage for turn in answers), Spending())
    asked = (verdict.usage for verdict in verdicts if verdict is not None and verdict.attempts)
    programs = {}
    for episode in (one for one in episodes if one.seed == episodes[0].seed and one.key in told):
        if codes := [turn.code for turn in told[episode.key].turns if turn.code is not None]:
            programs[episode.task] = codes[-1]
    mean = not_scored(_NOBODY)
    if ended:
        turned = sum(len(record.turns) for record in ended) / len(ended)
        mean = Measure(value=turned, n=len(ended), note="a mean over all items, no interval")
    return CellScores(
        model=model,
        wording=wording,
        framework=framework,
        setting=setting,
        rates=stage_rates(episodes, records),
        groups=_groups(episodes, tasks, records),
        solved=solved,
        by_turn=tuple(
            rate_measure(sum(turn <= most for turn in at), len(scored), nothing=_NOBODY)
            for most in range(1, (turns if setting == "agentic" else 1) + 1)
        ),
        mean_turns=mean,
        ends=_counts(record.stage for record in ended),
        first_failures=_counts(failure_of(record.turns[0]) for record in ended),
        last_failures=_counts(failure_of(record.turns[-1]) for record in ended),
        judges=_judges(told),
        tricks=_counts(chain.from_iterable(_tricks_of(record) for record in ended)),
        look_ahead=sum(any(turn.stage == "lookahead" for turn in record.turns) for record in ended),
        # Unreadable answers are counted as a stage. This report is about many tasks with one
        # program.
        collapse=collapse(programs, CollapseConfig(unreadable=1.0)),
        writer=writer,
        judge=reduce(Spending.plus, asked, Spending()),
        tokens_per_solved=_per_solved(float(writer.tokens), solved, ""),
        usd_per_solved=_per_solved(writer.known_usd, solved, "the price of an answer is unknown"),
    )


def _groups(
    episodes: Sequence[CodeItem], tasks: Mapping[str, CodeTask], records: Mapping[str, TaskOutcome]
) -> tuple[GroupRates, ...]:
    found: list[GroupRates] = []
    for by in GROUPINGS:
        values: dict[str, list[CodeItem]] = {}
        for episode in episodes:
            values.setdefault(str(getattr(tasks[episode.task], by) or "not said"), []).append(
                episode
            )
        order = sorted(values, key=lambda value: _ORDER.get(value, 99))
        found += [
            GroupRates(by=by, value=value, rates=stage_rates(values[value], records))
            for value in order
        ]
    return tuple(found)


_ORDER: Final = {
    name: place
    for place, name in enumerate(("easy", "medium", "hard", "1d", "1h", "30m", "15m", "5m", "1m"))
}


def _judges(records: Mapping[str, TaskOutcome]) -> JudgePair:
    said: Counter[tuple[str, str]] = Counter()
    disagree: list[tuple[str, int]] = []
    for key, record in records.items():
        for turn in record.turns:
            found = turn.evaluation
            if found is None or found.judge_behaviour is None or found.judge_language is None:
                continue
            pair = (found.judge_behaviour.status, found.judge_language.status)
            if "not_scored" in pair:
                continue
            said[pair] += 1
            if found.judges_disagree:
                disagree.append((key, turn.number))
    agree = said["passed", "passed"] + said["failed", "failed"]
    return JudgePair(
        both_passed=said["passed", "passed"],
        both_failed=said["failed", "failed"],
        only_behaviour_passed=said["passed", "failed"],
        only_language_passed=said["failed", "passed"],
        agreement=rate_measure(agree, sum(said.values()), nothing="no program was judged by both"),
        disagree=tuple(disagree),
    )


def _per_solved(amount: float | None, solved: int, unknown: str) -> Measure:
    if amount is None:
        return not_scored(unknown)
    if not solved:
        return not_scored("no task was solved")
    return Measure(
        value=amount / solved, n=solved, note="all that was spent, over the items that were solved"
    )


def _tricks_of(record: TaskOutcome) -> set[str]:
    """Return the names of the tricks in a record's programs."""
    names: set[str] = set()
    for turn in record.turns:
        if turn.evaluation:
            names |= {trick.name for trick in turn.evaluation.tricks}
    return names


def _counts(names: Iterable[str | None]) -> dict[str, int]:
    return dict(sorted(Counter(name for name in names if name is not None).items()))


ENDS: Final = (
    "solved judge lookahead trade backtest compile trick cut_off no_code not_scored".split()
)
"""The stages at which an item can end, best first."""


class PooledRates(msgspec.Struct, frozen=True, kw_only=True):
    """Rates over several rows.

    - ``ends`` is the share of items by the stage at which they ended, from :data:`ENDS`.
    - ``first`` and ``last`` are the shares of the failure classes of first and last answers among
      all answers.
    - ``lost`` is the shares of the classes of last answers among the unsolved items.
    - ``counts`` are the numbers of last answers by class.
    """

    ends: dict[str, Measure]
    first: dict[str, Measure]
    last: dict[str, Measure]
    lost: dict[str, Measure]
    counts: dict[str, int]


def pooled_rates(cells: Sequence[CellScores]) -> PooledRates:
    """Return the rates of all rows together. Classes that never occurred have a rate of zero."""

    def rates(
        counts: Counter[str], names: Iterable[str], total: int, nothing: str = ""
    ) -> dict[str, Measure]:
        why = nothing or "this run has no such answers"
        return {
            name: rate_measure(counts[name], total, nothing=why)
            for name in dict.fromkeys((*names, *counts))
        }

    ends, first, last = (
        sum((Counter(getattr(cell, field)) for cell in cells), Counter[str]())
        for field in ("ends", "first_failures", "last_failures")
    )
    answers = sum(cell.rates.items for cell in cells)
    return PooledRates(
        ends=rates(ends, ENDS, ends.total()),
        first=rates(first, FAILURE_TITLES, answers),
        last=rates(last, FAILURE_TITLES, answers),
        lost=rates(last, FAILURE_TITLES, last.total(), "no conversation ended in a failure"),
        counts=dict(sorted(last.items(), key=lambda pair: -pair[1])),
    )
