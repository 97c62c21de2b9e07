"""Run QuantCode: its episodes, dialogues, examinations of programs, and scores."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import msgspec

from tradeassay.core.errors import DataError, UserError
from tradeassay.core.hashing import sha256_bytes, sha256_of
from tradeassay.core.registry import refuse_unknown
from tradeassay_bench.benchmarks.code_protocol import (
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
    check_grid_size,
    installed_versions,
)
from tradeassay_bench.benchmarks.exhibits import Filled, PaperPage
from tradeassay_bench.core.dialogue import AskModel, ModelReply
from tradeassay_bench.core.drive import relay
from tradeassay_bench.data import load_dataset
from tradeassay_bench.llm.scripted import teach_coder
from tradeassay_programs.benchmarks.quantcode import load_public_tasks, load_tasks
from tradeassay_programs.benchmarks.quantcode.dialogue import (
    Answer,
    QuantCodeSettings,
    Request,
    TaskOutcome,
    TaskShown,
    opaque_id,
    play,
)
from tradeassay_programs.benchmarks.quantcode.families import generated_task
from tradeassay_programs.benchmarks.quantcode.loading import on_stored_bars
from tradeassay_programs.benchmarks.quantcode.prompts import PROMPTS, judge_prompts
from tradeassay_programs.benchmarks.quantcode.scores import QuantCodeScores, quantcode_scores
from tradeassay_programs.benchmarks.quantcode.spec import QUANTCODE, QuantCodeSpec
from tradeassay_programs.benchmarks.quantcode.tables import quantcode_paper, quantcode_tables
from tradeassay_programs.code.bars import TaskBars
from tradeassay_programs.code.evaluation import (
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
from tradeassay_programs.code.judges.language import judge_dialogue
from tradeassay_programs.code.reward import reward_of
from tradeassay_programs.code.running import (
    ExamSettings,
    exam_settings,
    open_code_executor,
    reference_of,
    require_code_extra,
)
from tradeassay_programs.code.task import CodeTask
from tradeassay_programs.sandbox import JobExecutor, TimeoutTeller

_COMPUTING = ("backtrader", "numpy", "pandas", "scipy", "TA-Lib")
"""Packages that programs use. A different version may give different orders."""
_MOST_KEPT = 4096


class QuantCodeProtocol(CodeProtocol):
    """The protocol of QuantCode for one spec. Judged markets are drawn from the run's secret."""

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
        self.rules: ExamSettings = exam_settings(spec.secret or None)
        self.stored: dict[str, TaskBars] = {}
        self._examined: dict[tuple[str, str, str], Evaluation] = {}
        if not spec.dataset:
            return
        snapshot = load_dataset(spec.dataset)
        for name, task in self.tasks.items():
            try:
                self.tasks[name], self.stored[name] = on_stored_bars(task, snapshot)
            except (UserError, DataError) as error:
                # The task runs on a drawn market, which its record states.
                lacks = (*task.lacks, f"stored bars: {error.message}")
                self.tasks[name] = msgspec.structs.replace(task, lacks=lacks)

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes on missing wordings and on tasks that run on synthetic bars.

        A task runs on synthetic bars if the data set lacks its symbol.
        """
        notes, count, dataset = [], len(self.tasks), self.spec.dataset
        for framework, wording in product(self.spec.frameworks, self.spec.wordings):
            missing = sum(task.text(wording, framework) is None for task in self.tasks.values())
            if missing:
                notes.append(
                    f"{missing} of {count} tasks have no {wording} wording for {framework}"
                )
        if dataset and len(self.stored) < count:
            synthetic = count - len(self.stored)
            notes.append(
                f"{synthetic} of {count} tasks run on synthetic bars: '{dataset}' has none for them"
            )
        return tuple(notes)

    def episodes(self) -> tuple[CodeItem, ...]:
        """Return one episode for every combination of the spec.

        Tasks without a wording are left out.
        """
        spec, items = self.spec, list[CodeItem]()
        variants = len(spec.frameworks) * len(spec.wordings) * len(spec.settings)
        check_grid_size(variants * len(spec.models) * len(self.tasks) * len(spec.seeds))
        for framework, wording, model, setting, task, seed in product(
            spec.frameworks,
            spec.wordings,
            spec.models,
            spec.settings,
            self.tasks.values(),
            spec.seeds,
        ):
            if task.text(wording, framework) is not None:
                protocol: dict[str, str] = {
                    "wording": wording,
                    "framework": framework,
                    "setting": setting,
                }
                items.append(CodeItem(model=model, task=task.id, seed=seed, protocol=protocol))
        return tuple(items)

    def facts(self) -> dict[str, str]:
        """Return the hashes of tasks, prompts, rules and configuration, and the versions of
        packages.
        """
        facts = {}
        for name, task in sorted(self.tasks.items()):
            # The list of constants that cannot matter changes no score, so it is not hashed.
            hashed = msgspec.structs.replace(task, cannot_matter=msgspec.UNSET)
            facts[f"task {name}"] = sha256_of(hashed)
        facts |= {f"prompt {name}": digest for name, digest in sorted(PROMPTS.hashes.items())}
        facts["evaluation"] = sha256_of(self.spec.evaluate)
        facts |= installed_versions(_COMPUTING)
        # Unset options are left out, so that a new option does not change the hashes of earlier
        # runs.
        draws = {
            name: value for name, value in msgspec.to_builtins(DRAWS).items() if value is not None
        }
        facts["rules"] = sha256_of([self.rules, DECISIONS, draws])
        return facts | {f"data {name}": bars.sha256 for name, bars in self.stored.items()}

    def roles(self, item: Item) -> dict[str, Role]:
        """Return the models of the writer and, if the spec names one, of the language judge."""
        roles = {"writer": Role(model=item.model, params=self.spec.params)}
        if self.spec.judge is not None:
            roles["judge"] = Role(model=self.spec.judge, params=self.spec.judge_params)
        return roles

    def settings(self, item: Item) -> QuantCodeSettings:
        """Return the settings of an item's dialogue."""
        turns = {"turns": self.spec.turns, "history": self.spec.history}
        return msgspec.convert({**item.protocol, **turns}, QuantCodeSettings)

    def dialogue(self, item: Item) -> CodeDialogue[TaskOutcome]:
        """Conduct the dialogue of an item, and return its outcome.

        The language judge, if the spec names one, judges programs that reach the judge stage.
        """
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
            evaluation: Evaluation = yield Examine(request=request)
            judge = self.spec.judge
            if judge is None or evaluation.grave_tricks or not wants_language_judge(evaluation):
                return evaluation
            case = judge_case(
                task, request.source, framework=settings.framework, wording=settings.wording
            )
            prompts, config = judge_prompts(settings.framework), self.spec.evaluate
            judging = judge_dialogue(case, prompts, judge=judge, config=config.language)
            verdict = yield from relay(judging, ask)
            return with_language(evaluation, verdict, config)

        return (yield from relay(play(task, settings), answer))

    def check_installed(self) -> None:
        """Raise MissingExtra if a package that programs need is not installed."""
        require_code_extra()

    def open_executor(self, workers: int) -> JobExecutor:
        """Return an open sandbox for programs."""
        return open_code_executor(workers)

    def with_timeout_callback(
        self, executor: JobExecutor, on_timeout: Callable[[], None]
    ) -> JobExecutor:
        """Return an executor that calls ``on_timeout`` for every program that runs out of time."""
        return TimeoutTeller(executor, on_timeout)

    def examine(self, item: Item, request: EvaluateRequest, executor: JobExecutor) -> Evaluation:
        """Return the evaluation of a program.

        A program that was already submitted for the same task is not run again. Processor seconds
        are not recorded, because they differ from run to run.
        """
        key = (item.task, request.framework, request.source)
        if key in self._examined:
            return self._examined[key]
        evaluation = examine(
            self.tasks[item.task],
            request.source,
            executor=executor,
            config=self.spec.evaluate,
            framework=request.framework,
            rules=self.rules,
            strict=self.spec.strict,
            home=self.stored.get(item.task),
        )
        evaluation = msgspec.structs.replace(
            evaluation, usage=EvaluationUsage(runs=evaluation.usage.runs)
        )
        if len(self._examined) < _MOST_KEPT:
            self._examined[key] = evaluation
        return evaluation

    def ended(self, record: TaskOutcome) -> Ending:
        """Return how an episode ended. An episode without an answer from the model has failed."""
        if record.stage == "no_answer":
            return Ending(status="failed", reason=record.reason, words="no answer")
        words = record.stage.replace("_", " ")
        if record.solved_at and record.setting == "agentic":
            words += f" at turn {record.solved_at}"
        return Ending(reason=record.reason, words=words)

    def inconsistencies(self, record: TaskOutcome) -> Iterator[tuple[int, str]]:
        """Yield turns whose recorded verdict is about a different program, with the reason."""
        for place, turn in enumerate(record.turns):
            if turn.code is None:
                continue
            hashes = {turn.code_sha256, sha256_bytes(turn.code.encode("utf-8", "surrogatepass"))}
            if turn.evaluation is not None:
                hashes.add(turn.evaluation.source_sha256)
            if len(hashes) > 1:
                yield place, f"turn {turn.number}: the verdict is about another program"

    def score(self, records: Mapping[str, TaskOutcome]) -> QuantCodeScores:
        """Return the scores of a run from its records."""
        return quantcode_scores(self.episodes(), self.tasks, records, turns=self.spec.turns)

    @classmethod
    def rows(cls, scores: QuantCodeScores) -> tuple[CodeRow, ...]:
        """Return the rows of a leaderboard, one for each model and setting."""
        return tuple(cell.row() for cell in scores.cells)

    @classmethod
    def rewards(cls, record: TaskOutcome) -> dict[int, AnswerReward]:
        """Return the reward of each turn, from its recorded verdict.

        The record does not contain a program's closeness to the reference, so this part of the
        reward is missing.
        """
        rewards = {}
        for place, turn in enumerate(record.turns):
            if turn.evaluation is None:
                value = 0.0 if turn.stage in ("no_code", "cut_off") else None
                rewards[place] = AnswerReward(
                    value=value, reason=turn.reason, evidence={"stage": turn.stage}
                )
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
            rewards[place] = AnswerReward(
                value=reward.value, reason=reward.reason, evidence=evidence
            )
        return rewards

    @classmethod
    def paper(cls, runs: Sequence[FinishedRun], latency: Filled) -> PaperPage:
        """Return the exhibits of QuantCode-Bench, filled from runs."""
        cells = []
        for run in runs:
            cells.extend(run.scores.cells)
        specs = [(run.spec, len({item.task for item in run.episodes})) for run in runs]
        return quantcode_paper(specs, cells, latency)

    @classmethod
    def paper_spec(cls, request: PaperRequest) -> QuantCodeSpec:
        """Return the spec of the paper's single-turn runs, and with ``grid`` of its agentic runs
        too.
        """
        # The public tasks have no reference, so only a language judge can decide them, as in the
        # paper.
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
    """Return the tasks of a spec, sorted by id.

    Raises :class:`UserError` for an unknown id or a missing file.
    """
    tasks = load_tasks() if spec.task_file is None else load_public_tasks(Path(spec.task_file))
    by_id = {task.id: task for task in tasks}
    for name in spec.tasks:
        if name not in by_id and spec.task_file is None:
            generated = generated_task(name)
            if generated is not None:
                by_id[name] = generated
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
    variants = list(product(spec.wordings, spec.frameworks))
    playable = [
        task for task in chosen if any(task.text(*variant) is not None for variant in variants)
    ]
    if spec.sample >= len(playable):
        return tuple(playable)
    # The list is sorted by id. An evenly spread sample has about the same shares of timeframes and
    # kinds.
    return tuple(playable[place * len(playable) // spec.sample] for place in range(spec.sample))
