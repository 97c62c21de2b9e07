"""QuantCode as a benchmark of programs: what is asked for, its episodes and dialogues, the examination."""

from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import msgspec

from tradeassay.benchmarks.code_protocol import (
    AnswerReward,
    AskRole,
    CodeAsk,
    CodeDialogue,
    CodeItem,
    CodeProtocol,
    CodeRow,
    Ending,
    Examine,
    FinishedRun,
    Item,
    PaperRequest,
    Role,
    installed_versions,
    refuse_large_grid,
)
from tradeassay.benchmarks.exhibits import Filled, PaperPage
from tradeassay.benchmarks.quantcode import load_public_tasks, load_tasks
from tradeassay.benchmarks.quantcode.dialogue import (
    Answer,
    QuantCodeSettings,
    Request,
    TaskOutcome,
    TaskShown,
    opaque_id,
    play,
)
from tradeassay.benchmarks.quantcode.families import generated_task
from tradeassay.benchmarks.quantcode.loading import on_stored_bars
from tradeassay.benchmarks.quantcode.prompts import PROMPTS, judge_prompts
from tradeassay.benchmarks.quantcode.scores import QuantCodeScores, quantcode_scores
from tradeassay.benchmarks.quantcode.spec import QUANTCODE, QuantCodeSpec
from tradeassay.benchmarks.quantcode.tables import quantcode_paper, quantcode_tables
from tradeassay.code.bars import TaskBars
from tradeassay.code.evaluation import (
    DECISIONS,
    DRAWS,
    EvaluateConfig,
    EvaluateRequest,
    Evaluation,
    EvaluationUsage,
    examine,
    judge_case,
    wants_language_judge,
    with_language,
)
from tradeassay.code.judges.language import judge_dialogue
from tradeassay.code.reward import reward_of
from tradeassay.code.running import Rules, open_code_executor, reference_of, require_code_extra, rules_of
from tradeassay.code.task import CodeTask
from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.core.drive import relay
from tradeassay.core.errors import DataError, UserError
from tradeassay.core.hashing import sha256_bytes, sha256_of
from tradeassay.core.registry import refuse_unknown
from tradeassay.data import load_dataset
from tradeassay.llm.scripted import teach_coder
from tradeassay.sandbox import JobExecutor

_COMPUTING = ("backtrader", "numpy", "pandas", "scipy", "TA-Lib")
"""Packages that programs run on: another version may give different orders."""
_MOST_KEPT = 4096


class QuantCodeProtocol(CodeProtocol):
    """QuantCode for one spec: prompts for models alone, markets drawn from the run's secret."""

    title = "QuantCode: programs that do what they are asked"
    listing = "tradeassay code tasks"
    fixed = ("evaluate.language", "evaluate.leak", "evaluate.limits")
    Question = TaskShown
    Spec = QuantCodeSpec
    Record = TaskOutcome
    Result = Evaluation
    Scores = QuantCodeScores

    def __init__(self, spec: QuantCodeSpec) -> None:
        self.spec = spec
        self.tasks = {task.id: task for task in tasks_of(spec)}
        self.rules: Rules = rules_of(spec.secret or None)
        self.stored: dict[str, TaskBars] = {}
        self._examined: dict[tuple[str, str, str], Evaluation] = {}
        if not spec.dataset:
            return
        snapshot = load_dataset(spec.dataset)
        for name, task in self.tasks.items():
            try:
                self.tasks[name], self.stored[name] = on_stored_bars(task, snapshot)
            except (UserError, DataError) as error:
                # It runs on a drawn market, and says so.
                lacks = (*task.lacks, f"stored bars: {error.message}")
                self.tasks[name] = msgspec.structs.replace(task, lacks=lacks)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out, and how many tasks run on synthetic bars although stored ones were asked for."""
        said, every, dataset = [], len(self.tasks), self.spec.dataset
        for framework, wording in product(self.spec.frameworks, self.spec.wordings):
            missing = sum(task.text(wording, framework) is None for task in self.tasks.values())
            if missing:
                said.append(f"{missing} of {every} tasks have no {wording} wording for {framework}")
        if dataset and len(self.stored) < every:
            without = every - len(self.stored)
            said.append(f"{without} of {every} tasks run on synthetic bars: '{dataset}' has none for them")
        return tuple(said)

    def episodes(self) -> tuple[CodeItem, ...]:
        spec, items = self.spec, list[CodeItem]()
        ways = len(spec.frameworks) * len(spec.wordings) * len(spec.settings)
        refuse_large_grid(ways * len(spec.models) * len(self.tasks) * len(spec.seeds))
        for framework, wording, model, setting, task, seed in product(
            spec.frameworks, spec.wordings, spec.models, spec.settings, self.tasks.values(), spec.seeds
        ):
            if task.text(wording, framework) is not None:
                asked: dict[str, str] = {"wording": wording, "framework": framework, "setting": setting}
                items.append(CodeItem(model=model, task=task.id, seed=seed, protocol=asked))
        return tuple(items)

    def facts(self) -> dict[str, str]:
        """Return the hashes of tasks, prompts, rules and configuration, and the versions that programs run on."""
        found = {
            # What cannot matter moves no score.
            f"task {name}": sha256_of(msgspec.structs.replace(task, cannot_matter=msgspec.UNSET))
            for name, task in sorted(self.tasks.items())
        }
        found |= {f"prompt {name}": digest for name, digest in sorted(PROMPTS.hashes.items())}
        found["evaluation"] = sha256_of(self.spec.evaluate)
        found |= installed_versions(_COMPUTING)
        # Only what is set: an option that a run does not have must not change what earlier ones are known by.
        drawn = {name: value for name, value in msgspec.to_builtins(DRAWS).items() if value is not None}
        found["rules"] = sha256_of([self.rules, DECISIONS, drawn])
        return found | {f"data {name}": bars.sha256 for name, bars in self.stored.items()}

    def roles(self, item: Item) -> dict[str, Role]:
        """Return the writer and, where one is named, the judge."""
        roles = {"writer": Role(model=item.model, params=self.spec.params)}
        if self.spec.judge is not None:
            roles["judge"] = Role(model=self.spec.judge, params=self.spec.judge_params)
        return roles

    def settings(self, item: Item) -> QuantCodeSettings:
        """Return how an item's task is put to its model."""
        asked = {"turns": self.spec.turns, "history": self.spec.history}
        return msgspec.convert({**item.protocol, **asked}, QuantCodeSettings)

    def dialogue(self, item: Item) -> CodeDialogue[TaskOutcome]:
        """Carry the benchmark's conversation, asking the language judge about programs that get that far."""
        task, settings = self.tasks[item.task], self.settings(item)
        reference = reference_of(task, settings.framework)
        if reference:
            teach_coder({(opaque_id(task), settings.framework): reference})

        def ask(request: AskModel, role: str = "judge") -> Generator[CodeAsk, Any, ModelReply]:
            reply: ModelReply = yield AskRole(role=role, request=request)
            return reply

        def answer(request: Request) -> Generator[CodeAsk, Any, Answer]:
            if isinstance(request, AskModel):
                return (yield from ask(request, "writer"))
            found: Evaluation = yield Examine(request=request)
            if self.spec.judge is None or found.grave_tricks or not wants_language_judge(found):
                return found
            case = judge_case(task, request.source, framework=settings.framework, wording=settings.wording)
            prompts, config = judge_prompts(settings.framework), self.spec.evaluate
            judging = judge_dialogue(case, prompts, judge=self.spec.judge, config=config.language)
            return with_language(found, (yield from relay(judging, ask)), config)

        return (yield from relay(play(task, settings), answer))

    def check_installed(self) -> None:
        require_code_extra()

    def open_executor(self, workers: int) -> JobExecutor:
        return open_code_executor(workers)

    def examine(self, item: Item, request: EvaluateRequest, executor: JobExecutor) -> Evaluation:
        """Examine a program, or return the findings from when the same one was submitted for the same task.

        Processor seconds are left out of the record: they never repeat."""
        key = (item.task, request.framework, request.source)
        if key in self._examined:
            return self._examined[key]
        found = examine(
            self.tasks[item.task],
            request.source,
            executor=executor,
            config=self.spec.evaluate,
            framework=request.framework,
            rules=self.rules,
            strict=self.spec.strict,
            home=self.stored.get(item.task),
        )
        found = msgspec.structs.replace(found, usage=EvaluationUsage(runs=found.usage.runs))
        if len(self._examined) < _MOST_KEPT:
            self._examined[key] = found
        return found

    def ended(self, record: TaskOutcome) -> Ending:
        """A model that did not answer has no result."""
        if record.stage == "no_answer":
            return Ending(status="failed", reason=record.reason, words="no answer")
        where = f" at turn {record.solved_at}" if record.solved_at and record.setting == "agentic" else ""
        return Ending(reason=record.reason, words=f"{record.stage.replace('_', ' ')}{where}")

    def inconsistencies(self, record: TaskOutcome) -> Iterator[tuple[int, str]]:
        """Yield the turns whose verdict is about another program."""
        for place, turn in enumerate(record.turns):
            if turn.code is None:
                continue
            known = {turn.code_sha256, sha256_bytes(turn.code.encode("utf-8", "surrogatepass"))}
            known |= set() if turn.evaluation is None else {turn.evaluation.source_sha256}
            if len(known) > 1:
                yield place, f"turn {turn.number}: the verdict is about another program"

    def score(self, records: Mapping[str, TaskOutcome]) -> QuantCodeScores:
        return quantcode_scores(self.episodes(), self.tasks, records, turns=self.spec.turns)

    @classmethod
    def rows(cls, scores: QuantCodeScores) -> tuple[CodeRow, ...]:
        return tuple(cell.row() for cell in scores.cells)

    @classmethod
    def rewards(cls, record: TaskOutcome) -> dict[int, AnswerReward]:
        """Return what :func:`~tradeassay.code.reward.reward_of` gives for each turn's recorded verdict.

        The part for coming near is not recorded, so it is missing; ``agreement`` is in the evidence."""
        found = {}
        for place, turn in enumerate(record.turns):
            if turn.evaluation is None:
                value = 0.0 if turn.stage in ("no_code", "cut_off") else None
                found[place] = AnswerReward(value=value, reason=turn.reason, evidence={"stage": turn.stage})
                continue
            reward = reward_of(turn.evaluation, judged=True)
            behaviour = turn.evaluation.judge_behaviour
            evidence = {
                "task": record.task,
                "stage": turn.stage,
                "parts": reward.parts,
                "agreement": None if behaviour is None else behaviour.agreement,
                "code_sha256": turn.code_sha256,
            }
            found[place] = AnswerReward(value=reward.value, reason=reward.reason, evidence=evidence)
        return found

    @classmethod
    def paper(cls, runs: Sequence[FinishedRun], latency: Filled) -> PaperPage:
        """Return QuantCode-Bench with what some runs fill of it."""
        cells = [cell for run in runs for cell in run.scores.cells]
        specs = [(run.spec, len({item.task for item in run.episodes})) for run in runs]
        return quantcode_paper(specs, cells, latency)

    @classmethod
    def paper_spec(cls, request: PaperRequest) -> QuantCodeSpec:
        """Return the spec of the paper's single turns, and of its agentic turns too for the whole grid."""
        # The public tasks have no reference: only a language judge can decide them, as in the paper.
        by_language = request.judge is not None and request.data is not None
        return QuantCodeSpec(
            benchmark=QUANTCODE,
            models=request.models,
            task_file=request.data,
            sample=request.sample,
            settings=("single-turn", "agentic") if request.grid else ("single-turn",),
            seeds=request.seeds,
            judge=request.judge,
            evaluate=EvaluateConfig(decides="language") if by_language else EvaluateConfig(),
            dataset=request.dataset or msgspec.UNSET,
        )

    @classmethod
    def sampled(cls, spec: QuantCodeSpec, count: int) -> QuantCodeSpec:
        """Return a spec with ``count`` of its tasks, evenly spread."""
        return msgspec.structs.replace(spec, sample=count)

    tables = staticmethod(quantcode_tables)


def tasks_of(spec: QuantCodeSpec) -> tuple[CodeTask, ...]:
    """Return the tasks that a spec asks for, by id; raises :class:`UserError` for a missing id or file."""
    tasks = load_tasks() if spec.task_file is None else load_public_tasks(Path(spec.task_file))
    by_id = {task.id: task for task in tasks}
    for name in spec.tasks:
        if name not in by_id and spec.task_file is None and (drawn := generated_task(name)) is not None:
            by_id[name] = drawn
        refuse_unknown(name, by_id, f"there is no task '{name}'", "see tradeassay code tasks")
    chosen = [by_id[name] for name in sorted(spec.tasks)] if spec.tasks else list(tasks)
    filters = (
        ("difficulty", spec.difficulties),
        ("timeframe", spec.timeframes),
        ("family", spec.families),
        ("source", spec.sources),
    )
    for name, wanted in filters:
        chosen = [task for task in chosen if not wanted or getattr(task, name) in wanted]
    if spec.sample is None:
        return tuple(chosen)
    ways = [*product(spec.wordings, spec.frameworks)]
    kept = [task for task in chosen if any(task.text(*way) is not None for way in ways)]
    if spec.sample >= len(kept):
        return tuple(kept)
    # Spread over the list, which is sorted by id, so that timeframes and kinds keep about their shares.
    return tuple(kept[place * len(kept) // spec.sample] for place in range(spec.sample))
