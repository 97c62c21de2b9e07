"""QuantCode as a code protocol: what is asked for, its episodes, its dialogues, the examination of a program."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, ClassVar, Literal, get_args

import msgspec

from tradeassay.benchmarks.quantcode import load_public_tasks, load_tasks
from tradeassay.benchmarks.quantcode.dialogue import (
    Answer,
    QuantCodeSettings,
    Request,
    Setting,
    TaskOutcome,
    opaque_id,
    play,
)
from tradeassay.benchmarks.quantcode.prompts import PROMPTS, judge_prompts
from tradeassay.benchmarks.quantcode.stored import on_stored_bars
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
from tradeassay.code.rules import Rules, rules_of
from tradeassay.code.running import open_code_executor, reference_of, require_code_extra
from tradeassay.code.task import DIFFICULTIES, FAMILIES, TIMEFRAMES, CodeTask, Framework, Wording
from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.core.drive import relay
from tradeassay.core.errors import DataError, UserError
from tradeassay.core.hashing import sha256_bytes, sha256_of
from tradeassay.core.suggest import did_you_mean
from tradeassay.data import Snapshot, load_dataset
from tradeassay.llm import ModelParams
from tradeassay.llm.scripted import teach_coder
from tradeassay.runs.code_protocol import (
    AskRole,
    CodeAsk,
    CodeDialogue,
    CodeProtocolOf,
    CodeRow,
    CodeSpec,
    Ending,
    Examine,
    Role,
    code_episode,
    code_protocols,
)
from tradeassay.runs.score.quantcode_scores import QuantCodeScores, quantcode_scores
from tradeassay.runs.spec.episode import EpisodeSpec
from tradeassay.runs.spec.run_spec import safe_name
from tradeassay.sandbox import JobExecutor

QUANTCODE = "quantcode-v1"
LONG_ANSWERS = ModelParams(max_tokens=16_384, timeout_s=600.0)
"""A program, and the reasoning before it, needs more room and time than a trading decision."""

SETTINGS: tuple[Setting, ...] = get_args(Setting)
FRAMEWORKS: tuple[Framework, ...] = get_args(Framework)
WORDINGS: tuple[Wording, ...] = get_args(Wording)


class QuantCodeSpec(CodeSpec, frozen=True, kw_only=True):
    """A QuantCode run. Every combination of model, task, wording, framework, setting and seed is an episode.

    ``tasks`` names tasks; without it, all that match ``difficulties``, ``timeframes``, ``families`` and
    ``sources`` (empty: all) are taken, and ``sample`` keeps that many of them, evenly spread. ``task_file`` is a
    copy of the public 400-task file to be run instead of our tasks. ``judge`` is the model of the language judge;
    without one only the behavioural judge decides. By default a later turn sees the latest program and what was
    found in it (``history``), so that a conversation does not grow with its turns. ``strict`` fails a program for
    any call that the kernel refused. ``dataset`` has the tasks of a ``task_file`` run on stored bars of their
    symbols, where it has them. Raises :class:`UserError` for nonsensical values.
    """

    benchmark: str = QUANTCODE
    tasks: tuple[str, ...] = ()
    difficulties: tuple[str, ...] = ()
    timeframes: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    sample: int | None = None
    task_file: str | None = None
    wordings: tuple[Wording, ...] = ("formal",)
    frameworks: tuple[Framework, ...] = ("backtrader",)
    settings: tuple[Setting, ...] = ("single-turn",)
    turns: int = 10
    history: Literal["full", "last"] = "last"
    judge: str | None = None
    evaluate: EvaluateConfig = EvaluateConfig()
    params: ModelParams = LONG_ANSWERS
    judge_params: ModelParams = ModelParams()
    strict: bool = False
    dataset: str | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        judges = [self.judge] if self.judge else []
        self.refuse_bad(("wordings", "frameworks", "settings", "tasks"), judges, example="scripted/coder-sma")
        _known("wording", self.wordings, WORDINGS)
        _known("framework", self.frameworks, FRAMEWORKS)
        _known("setting", self.settings, SETTINGS)
        _known("difficulty", self.difficulties, DIFFICULTIES)
        _known("timeframe", self.timeframes, TIMEFRAMES)
        _known("family", self.families, FAMILIES)
        if not self.seeds or self.turns < 1 or (self.sample is not None and self.sample < 1):
            raise UserError("seeds, turns and samples count from 1", hint="give 1 or more")
        if self.judge is None and self.evaluate.decides in ("language", "both"):
            raise UserError(
                f"'{self.evaluate.decides}' decides, and no judge is named", hint="name one with judge"
            )
        if self.dataset and self.task_file is None:
            raise UserError(
                "a data set is for the tasks of a public file", hint="name the file too, or leave the data set out"
            )


_COMPUTING = ("backtrader", "numpy", "pandas", "scipy", "TA-Lib")
"""Packages that programs run on: another version may give different orders."""

_MOST_KEPT = 4096


@code_protocols.register(QUANTCODE)
class QuantCodeProtocol(CodeProtocolOf[QuantCodeSpec, EvaluateRequest, TaskOutcome, QuantCodeScores]):
    """QuantCode for one spec: prompts for models alone, markets drawn from the run's secret."""

    Spec: ClassVar[type[CodeSpec]] = QuantCodeSpec
    Record: ClassVar[type[msgspec.Struct]] = TaskOutcome
    Result: ClassVar[type[msgspec.Struct]] = Evaluation
    Scores: ClassVar[type[msgspec.Struct]] = QuantCodeScores

    def __init__(self, spec: QuantCodeSpec) -> None:
        self.spec = spec
        self.tasks = {task.id: task for task in tasks_of(spec)}
        self.stored: dict[str, TaskBars] = {}
        self._examined: dict[tuple[str, str, str], Evaluation] = {}
        if spec.dataset:
            self._take_stored(load_dataset(spec.dataset))

    def _take_stored(self, snapshot: Snapshot) -> None:
        """Find stored bars for every task; a task that has none says why, and runs on a drawn market."""
        for name, task in self.tasks.items():
            try:
                self.tasks[name], self.stored[name] = on_stored_bars(task, snapshot)
            except (UserError, DataError) as error:
                lacks = (*task.lacks, f"stored bars: {error.message}")
                self.tasks[name] = msgspec.structs.replace(task, lacks=lacks)

    @cached_property
    def rules(self) -> Rules:
        """The rules by which programs are examined, with the secret of this run."""
        return rules_of(self.spec.secret or None)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was left out, and how many tasks run on synthetic bars although stored ones were asked for."""
        without = len(self.tasks) - len(self.stored)
        if not (self.spec.dataset and without):
            return self._planned[1]
        said = (
            f"{without} of {len(self.tasks)} tasks run on synthetic bars: '{self.spec.dataset}' has none for them"
        )
        return (*self._planned[1], said)

    def episodes(self) -> tuple[EpisodeSpec, ...]:
        """Return every combination that the tasks have."""
        return self._planned[0]

    def facts(self) -> dict[str, str]:
        """Return the hashes of tasks, prompts, rules and configuration, and the versions that programs run on."""
        found = {
            # What cannot matter moves no score.
            f"task {name}": sha256_of(msgspec.structs.replace(task, cannot_matter=msgspec.UNSET))
            for name, task in sorted(self.tasks.items())
        }
        found |= {f"prompt {name}": digest for name, digest in sorted(PROMPTS.hashes.items())}
        found["evaluation"] = sha256_of(self.spec.evaluate)
        found |= {f"package {name}": installed_version(name) for name in _COMPUTING}
        found["rules"] = sha256_of([self.rules, DECISIONS, DRAWS])
        for name, bars in self.stored.items():
            digest = sha256_bytes(b"".join(column.tobytes() for column in bars.columns().values()))
            found[f"data {name}"] = sha256_of([bars.name, bars.rows, digest])
        return found

    def roles(self, episode: EpisodeSpec) -> dict[str, Role]:
        """Return the writer and, where one is named, the judge."""
        roles = {"writer": Role(model=episode.model, params=self.spec.params)}
        if self.spec.judge is not None:
            roles["judge"] = Role(model=self.spec.judge, params=self.spec.judge_params)
        return roles

    def dialogue(self, episode: EpisodeSpec) -> CodeDialogue[TaskOutcome]:
        """Carry the benchmark's conversation, asking the language judge about programs that get that far."""
        task, settings = self.tasks[episode.task], self.settings(episode)
        reference = reference_of(task, settings.framework)
        if reference:
            teach_coder({(opaque_id(task), settings.framework): reference})

        def answer(request: Request) -> Generator[CodeAsk, Any, Answer]:
            if isinstance(request, AskModel):
                reply: ModelReply = yield AskRole(role="writer", request=request)
                return reply
            found = yield Examine(request=request)
            return (yield from self._judged(task, settings, request.source, found))

        return (yield from relay(play(task, settings), answer))

    def check_installed(self) -> None:
        """Raise MissingExtra without Backtrader or TA-Lib."""
        require_code_extra()

    def open_executor(self, workers: int) -> JobExecutor:
        """Open the sandbox; raises :class:`MissingExtra` without Backtrader, SandboxRefused without isolation."""
        return open_code_executor(workers)

    def examine(self, episode: EpisodeSpec, request: EvaluateRequest, executor: JobExecutor) -> Evaluation:
        """Examine a program, or return the findings from when the same one was submitted for the same task.

        Processor seconds are left out of the record: they never repeat.
        """
        key = (episode.task, request.framework, request.source)
        if key in self._examined:
            return self._examined[key]
        found = examine(
            self.tasks[episode.task],
            request.source,
            executor=executor,
            config=self.spec.evaluate,
            framework=request.framework,
            rules=self.rules,
            strict=self.spec.strict,
            home=self.stored.get(episode.task),
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

    def score(self, records: Mapping[str, TaskOutcome]) -> QuantCodeScores:
        """Sum up a run."""
        return quantcode_scores(self.episodes(), self.tasks, records, turns=self.spec.turns)

    def inconsistencies(self, record: TaskOutcome) -> Iterator[tuple[int, str]]:
        """Yield the turns whose verdict is about another program."""
        for place, turn in enumerate(record.turns):
            if turn.code is None:
                continue
            digest = sha256_bytes(turn.code.encode("utf-8", "surrogatepass"))
            judged = turn.evaluation.source_sha256 if turn.evaluation is not None else digest
            if turn.code_sha256 != digest or judged != digest:
                yield place, f"turn {turn.number}: the verdict is about another program"

    def rows(self, scores: QuantCodeScores) -> tuple[CodeRow, ...]:
        """Return the stage rates of every model in every way of asking."""
        return tuple(cell.row() for cell in scores.cells)

    def settings(self, episode: EpisodeSpec) -> QuantCodeSettings:
        """Return how an episode's task is put to its model."""
        asked = {"turns": self.spec.turns, "history": self.spec.history}
        return msgspec.convert({**episode.protocol, **asked}, QuantCodeSettings)

    def _judged(
        self, task: CodeTask, settings: QuantCodeSettings, source: str, found: Evaluation
    ) -> Generator[AskRole, Any, Evaluation]:
        if self.spec.judge is None or found.grave_tricks or not wants_language_judge(found):
            return found
        case = judge_case(task, source, framework=settings.framework, wording=settings.wording)
        dialogue = judge_dialogue(
            case,
            judge_prompts(settings.framework),
            judge=self.spec.judge,
            config=self.spec.evaluate.language,
        )
        verdict = yield from relay(dialogue, _ask_judge)
        return with_language(found, verdict, self.spec.evaluate)

    @cached_property
    def _planned(self) -> tuple[tuple[EpisodeSpec, ...], tuple[str, ...]]:
        spec = self.spec
        episodes: list[EpisodeSpec] = []
        lacking: dict[str, int] = {}
        for framework in spec.frameworks:
            for wording in spec.wordings:
                these = [task for task in self.tasks.values() if task.text(wording, framework) is not None]
                missing = len(self.tasks) - len(these)
                if missing:
                    lacking[f"no {wording} wording for {framework}"] = missing
                episodes += [
                    _episode(
                        spec.benchmark,
                        model,
                        task.id,
                        {"wording": wording, "framework": framework, "setting": setting},
                        seed,
                    )
                    for model in spec.models
                    for setting in spec.settings
                    for task in these
                    for seed in spec.seeds
                ]
        notes = tuple(f"{count} of {len(self.tasks)} tasks have {what}" for what, count in lacking.items())
        return tuple(episodes), notes


def tasks_of(spec: QuantCodeSpec) -> tuple[CodeTask, ...]:
    """Return the tasks that a spec asks for; raises :class:`UserError` for a missing id or file."""
    if spec.task_file is None:
        return choose_tasks(spec, load_tasks())
    return choose_tasks(spec, load_public_tasks(Path(spec.task_file)))


def _ask_judge(request: AskModel) -> Generator[AskRole, Any, ModelReply]:
    reply: ModelReply = yield AskRole(role="judge", request=request)
    return reply


def _episode(benchmark: str, model: str, task: str, way: dict[str, str], seed: int) -> EpisodeSpec:
    parts = (safe_name(model), task, way["wording"], way["framework"], way["setting"], f"s{seed}")
    return code_episode("__".join(parts), benchmark, model, task, way=way, seed=seed)


def installed_version(package: str) -> str:
    """Return the version of a package, or that it is not installed: extras need not be."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def choose_tasks(spec: QuantCodeSpec, tasks: Sequence[CodeTask]) -> tuple[CodeTask, ...]:
    """Return the tasks that a spec asks for, by id; raises :class:`UserError` for an unknown id."""
    by_id = {task.id: task for task in tasks}
    for name in spec.tasks:
        if name not in by_id:
            raise UserError(
                f"there is no task '{name}'", hint=did_you_mean(name, by_id, "see tradeassay code tasks")
            )
    chosen = [by_id[name] for name in sorted(spec.tasks)] if spec.tasks else list(tasks)
    kept = [
        task
        for task in chosen
        if _among(task.difficulty, spec.difficulties)
        and _among(task.timeframe, spec.timeframes)
        and _among(task.family, spec.families)
        and _among(task.source, spec.sources)
    ]
    if spec.sample is None:
        return tuple(kept)
    ways = [(wording, framework) for wording in spec.wordings for framework in spec.frameworks]
    kept = [task for task in kept if any(task.text(*way) is not None for way in ways)]
    if spec.sample >= len(kept):
        return tuple(kept)
    # Spread over the list, which is sorted by id, so that timeframes and kinds keep about their shares.
    return tuple(kept[place * len(kept) // spec.sample] for place in range(spec.sample))


def _among(value: Any, wanted: Sequence[Any]) -> bool:
    return not wanted or value in wanted


def _known(what: str, given: Sequence[str], known: Sequence[str]) -> None:
    if what in ("wording", "framework", "setting") and not given:
        raise UserError(f"no {what} is named", hint=f"give one of {', '.join(known)}")
    for value in given:
        if value not in known:
            raise UserError(
                f"there is no {what} '{value}'", hint=did_you_mean(value, known, f"known: {', '.join(known)}")
            )
