"""QuantCode as a code protocol: its items, its conversations, and the examination of a program."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from tradeassay.benchmarks.quantcode import load_public_tasks, load_tasks
from tradeassay.benchmarks.quantcode.dialogue import TaskOutcome, opaque_id, play
from tradeassay.benchmarks.quantcode.prompts import judge_prompts, prompt_hashes
from tradeassay.benchmarks.quantcode.settings import QuantCodeSettings
from tradeassay.code.evaluation import (
    EvaluateRequest,
    Evaluation,
    EvaluationUsage,
    examine,
    judge_case,
    wants_language_judge,
    with_language,
)
from tradeassay.code.judges.language import judge_dialogue
from tradeassay.code.judges.verdict import LanguageVerdict
from tradeassay.code.running import open_code_executor, reference_of
from tradeassay.code.task import CodeTask
from tradeassay.core.dialogue import AskModel
from tradeassay.core.errors import MissingExtra
from tradeassay.core.hashing import sha256_of
from tradeassay.llm.scripted import teach_coder
from tradeassay.runs.code.protocol import Ask, CodeItem, Compute, Ended, Role, Talk, code_protocols
from tradeassay.runs.code.quantcode_scores import QuantCodeScores, quantcode_scores
from tradeassay.runs.code.quantcode_spec import QUANTCODE, CodeRunSpec, choose_tasks
from tradeassay.runs.spec import safe_name
from tradeassay.sandbox import Executor

_COMPUTING = ("backtrader", "numpy", "pandas", "scipy", "TA-Lib")
"""Packages that programs run on: another version may give other orders."""

_MOST_KEPT = 4096


@code_protocols.register(QUANTCODE)
class QuantCodeProtocol:
    """QuantCode for one spec."""

    Spec: ClassVar[type[msgspec.Struct]] = CodeRunSpec
    Record: ClassVar[type[msgspec.Struct]] = TaskOutcome
    Result: ClassVar[type[msgspec.Struct]] = Evaluation
    Scores: ClassVar[type[msgspec.Struct]] = QuantCodeScores

    def __init__(self, spec: CodeRunSpec) -> None:
        self.spec = spec
        self.tasks = {task.id: task for task in tasks_of(spec)}
        self._examined: dict[tuple[str, str, str], Evaluation] = {}

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out because a task does not have it."""
        return self._planned[1]

    def items(self) -> tuple[CodeItem, ...]:
        """Return every combination that the tasks have."""
        return self._planned[0]

    def facts(self) -> dict[str, str]:
        """Return the hashes of tasks, prompts and configuration, and the versions that programs run on."""
        found = {f"task {name}": sha256_of(task) for name, task in sorted(self.tasks.items())}
        found |= {f"prompt {name}": digest for name, digest in sorted(prompt_hashes().items())}
        found["evaluation"] = sha256_of(self.spec.evaluate)
        found |= {f"package {name}": _version(name) for name in _COMPUTING}
        return found

    def roles(self, item: CodeItem) -> dict[str, Role]:
        """Return the writer and, where one is named, the judge."""
        roles = {"writer": Role(model=item.model, params=self.spec.params)}
        if self.spec.judge is not None:
            roles["judge"] = Role(model=self.spec.judge, params=self.spec.judge_params)
        return roles

    def talk(self, item: CodeItem) -> Talk:
        """Carry the benchmark's conversation, with the language judge asked where a program gets so far."""
        task, settings = self.tasks[item.task], self.settings(item)
        reference = reference_of(task, settings.framework)
        if reference:
            teach_coder({(opaque_id(task), settings.framework): reference})
        talk = play(task, settings)
        request = next(talk)
        try:
            while True:
                if isinstance(request, AskModel):
                    answer: Any = yield Ask(role="writer", request=request)
                else:
                    found = yield Compute(request=request)
                    answer = yield from self._judged(task, settings, request.source, found)
                request = talk.send(answer)
        except StopIteration as done:
            return done.value

    def open_executor(self, workers: int) -> Executor:
        """Open the sandbox; raises :class:`MissingExtra` without Backtrader, SandboxRefused without walls."""
        require_code_extra()
        return open_code_executor(workers)

    def compute(self, item: CodeItem, request: EvaluateRequest, executor: Executor) -> Evaluation:
        """Examine a program, or give back what was found when the same one was handed in for the same task.

        Processor seconds are left out of the record: they are never the same twice.
        """
        key = (item.task, request.framework, request.source)
        if key in self._examined:
            return self._examined[key]
        found = examine(
            self.tasks[item.task],
            request.source,
            executor=executor,
            config=self.spec.evaluate,
            framework=request.framework,
        )
        found = msgspec.structs.replace(found, usage=EvaluationUsage(runs=found.usage.runs))
        if len(self._examined) < _MOST_KEPT:
            self._examined[key] = found
        return found

    def ended(self, record: TaskOutcome) -> Ended:
        """A model that did not answer has no result."""
        if record.stage == "no_answer":
            return Ended(status="failed", reason=record.reason, words="no answer")
        where = f" at turn {record.solved_at}" if record.solved_at and record.setting == "agentic" else ""
        return Ended(reason=record.reason, words=f"{record.stage.replace('_', ' ')}{where}")

    def score(self, records: Mapping[str, TaskOutcome]) -> QuantCodeScores:
        """Sum up a run."""
        return quantcode_scores(self.spec, self.items(), self.tasks, records)

    def settings(self, item: CodeItem) -> QuantCodeSettings:
        """Return how an item's task is put to its model."""
        return msgspec.convert(
            {**item.labels, "turns": self.spec.turns, "history": self.spec.history}, QuantCodeSettings
        )

    def _judged(
        self, task: CodeTask, settings: QuantCodeSettings, source: str, found: Evaluation
    ) -> Generator[Ask, Any, Evaluation]:
        if self.spec.judge is None or found.grave_tricks or not wants_language_judge(found):
            return found
        case = judge_case(task, source, framework=settings.framework, wording=settings.wording)
        dialogue = judge_dialogue(
            case, judge_prompts(settings.framework), judge=self.spec.judge, config=self.spec.evaluate.language
        )
        verdict = yield from _ask_judge(dialogue)
        return with_language(found, verdict, self.spec.evaluate)

    @cached_property
    def _planned(self) -> tuple[tuple[CodeItem, ...], tuple[str, ...]]:
        spec = self.spec
        items: list[CodeItem] = []
        lacking: dict[str, int] = {}
        for framework in spec.frameworks:
            for wording in spec.wordings:
                these = [task for task in self.tasks.values() if task.text(wording, framework) is not None]
                missing = len(self.tasks) - len(these)
                if missing:
                    lacking[f"no {wording} wording for {framework}"] = missing
                items += [
                    _item(model, task.id, {"wording": wording, "framework": framework, "setting": setting}, seed)
                    for model in spec.models
                    for setting in spec.settings
                    for task in these
                    for seed in spec.seeds
                ]
        notes = tuple(f"{count} of {len(self.tasks)} tasks have {what}" for what, count in lacking.items())
        return tuple(items), notes


def tasks_of(spec: CodeRunSpec) -> tuple[CodeTask, ...]:
    """Return the tasks that a spec asks for; raises :class:`UserError` for an id or a file that is not there."""
    every = load_tasks() if spec.task_file is None else load_public_tasks(Path(spec.task_file))
    return choose_tasks(spec, every)


def require_code_extra() -> None:
    """Raise :class:`MissingExtra` when what programs are run with is not installed."""
    for module in ("backtrader", "talib", "pandas"):
        if find_spec(module) is None:
            raise MissingExtra(
                f"running programs needs the package '{module}', which is not installed",
                mend="pip install 'tradeassay[code]'",
            )


def _ask_judge(
    dialogue: Generator[AskModel, Any, LanguageVerdict],
) -> Generator[Ask, Any, LanguageVerdict]:
    try:
        request = next(dialogue)
        while True:
            reply = yield Ask(role="judge", request=request)
            request = dialogue.send(reply)
    except StopIteration as done:
        verdict: LanguageVerdict = done.value
        return verdict


def _item(model: str, task: str, labels: dict[str, str], seed: int) -> CodeItem:
    parts = (safe_name(model), task, labels["wording"], labels["framework"], labels["setting"], f"s{seed}")
    return CodeItem(key="__".join(parts), model=model, task=task, labels=labels, seed=seed)


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
