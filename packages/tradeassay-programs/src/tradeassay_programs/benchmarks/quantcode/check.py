"""Check a program against a task, or references and decoys of tasks, without a run on disk."""

import asyncio
import threading
import tokenize
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from tradeassay.core.errors import UserError
from tradeassay.core.registry import refuse_unknown
from tradeassay.tables.cells import other_than_file
from tradeassay_bench.core.dialogue import AskModel, ModelReply
from tradeassay_bench.core.executors import Spread
from tradeassay_bench.core.executors.task import ExecutorName, cores
from tradeassay_bench.llm import ModelParams, QuestionPlace, check_model, open_model
from tradeassay_programs.benchmarks.quantcode import load_public_tasks, load_task
from tradeassay_programs.benchmarks.quantcode.dialogue import ModelJudge
from tradeassay_programs.benchmarks.quantcode.loading import read_task
from tradeassay_programs.code.bars import TaskBars
from tradeassay_programs.code.evaluation import (
    EvaluateConfig,
    Evaluation,
    ask_judge,
    examine,
    note_account_terms,
)
from tradeassay_programs.code.program_source import check_compiles
from tradeassay_programs.code.running import (
    ExamSettings,
    exam_settings,
    open_code_executor,
    require_code_extra,
)
from tradeassay_programs.code.task import CodeTask, Expectations, FrameVariant, Framework, Sizing
from tradeassay_programs.code.validation import (
    ProgramLine,
    ValidateConfig,
    ValidationReport,
    join_reports,
    validate,
)
from tradeassay_programs.sandbox import JobExecutor, TrustedCodeInProcess

_LARGEST = 1_000_000
_NO_TASK = "no-task"


def read_program(path: Path) -> str:
    """Return a program's text, decoded as Python decodes source files.

    The encoding is UTF-8 or the encoding named in the first lines. Raises :class:`UserError` for a
    path that is missing, not a file, too large or not text.
    """
    kind = other_than_file(path)
    if kind:
        raise UserError(f"{path} is {kind}, not a file", hint="name a Python file")
    try:
        if path.is_file() and path.stat().st_size > _LARGEST:
            raise UserError(
                f"{path} has more than {_LARGEST:,} bytes",
                hint="a strategy has a few thousand bytes",
            )
        with tokenize.open(path) as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise UserError(
            f"{path} is not UTF-8 text: {error.reason}", hint="save it as UTF-8"
        ) from error
    except SyntaxError as error:
        reason = f"{path} is not UTF-8 text, and names no other encoding"
        raise UserError(reason, hint="save it as UTF-8") from error
    except OSError as error:
        raise UserError(
            f"{path} cannot be read: {error.strerror}", hint="name a Python file"
        ) from error


def check_program(
    source: str,
    task: str | CodeTask,
    *,
    framework: Framework = "backtrader",
    judge: str | None = None,
    executor: JobExecutor | None = None,
    rules: ExamSettings | None = None,
    strict: bool = False,
    home: TaskBars | None = None,
) -> Evaluation:
    """Return the evaluation of a program on a task.

    - ``judge`` names a model that also judges the program.
    - ``rules`` contains the secret from which the judged markets are drawn. By default the secret
      is random.
    - ``strict`` fails a program if the kernel refused any of its calls.
    - ``home`` replaces the drawn markets for a task without a reference (see
      :func:`~tradeassay_programs.benchmarks.quantcode.loading.on_stored_bars`).

    Raises :class:`UserError` for an unknown task, and MissingExtra or SandboxRefused if this
    machine cannot run programs.
    """
    chosen = load_task(task) if isinstance(task, str) else task
    rules = rules or exam_settings(None)
    with ExitStack() as stack:
        if executor is None and not check_compiles(source, framework).passed:
            # There is nothing to run, so no sandbox is needed. This executor refuses to run
            # programs anyway.
            executor = TrustedCodeInProcess()
        elif executor is None:
            executor = stack.enter_context(open_code_executor())
        evaluation = examine(
            chosen,
            source,
            executor=executor,
            framework=framework,
            rules=rules,
            strict=strict,
            home=home,
        )
    if chosen.id == _NO_TASK and framework == "backtrader":
        evaluation = note_account_terms(evaluation, chosen, source)
    if judge is None:
        return evaluation
    with open_judge(judge, framework) as client:
        return ask_judge(evaluation, client, chosen, source, EvaluateConfig())


def validate_tasks(
    tasks: Sequence[CodeTask],
    *,
    judge: str | None = None,
    thorough: bool = False,
    workers: int | None = None,
    secret: str | None = None,
    tell: Callable[[ProgramLine], None] | None = None,
    executor: ExecutorName = "local",
) -> ValidationReport:
    """Run all references and decoys of tasks, and return a report.

    A reference must pass, and a decoy must fail at its stage. ``judge`` names a model whose error
    rates are measured too. The judged markets are drawn from ``secret``. ``workers`` defaults to
    the number of cores. With ``executor="ray"`` the cluster gets one work item for each task.
    ``tell`` is called with each finished line.

    Raises :class:`UserError` if no task has a reference or a decoy, and MissingExtra or
    SandboxRefused if this machine cannot run programs.
    """
    if not any(task.has_reference or task.decoys or task.frame for task in tasks):
        reason = "there is nothing to validate: none of these tasks has a reference or a decoy"
        raise UserError(reason, hint="choose other tasks: those of the public file have neither")
    require_code_extra()
    rules = exam_settings(secret)
    if executor == "ray":
        config = ValidateConfig(thorough=thorough, threads=1, rules=rules)
        validate_one = partial(_validate, workers=1, judge=judge, config=config, tell=None)

        def report_lines(_: int, part: ValidationReport) -> None:
            for line in part.lines:
                if tell is not None:
                    tell(line)

        pieces = [(task,) for task in tasks]
        spread = Spread(executor=executor, workers=workers)
        parts = spread.map(validate_one, pieces, done=report_lines)
        return join_reports(parts, judge)
    workers = workers or cores()
    # One thread more than workers prepares the next program while the others run.
    config = ValidateConfig(thorough=thorough, threads=workers + 1, rules=rules)
    return _validate(tasks, workers, judge, config, tell)


def _validate(
    tasks: Sequence[CodeTask],
    workers: int,
    judge: str | None,
    config: ValidateConfig,
    tell: Callable[[ProgramLine], None] | None,
) -> ValidationReport:
    """Open an executor, and the judge if requested, and return the validation of tasks."""
    with open_code_executor(workers) as executor:
        if judge is None:
            return validate(tasks, executor, config=config, tell=tell)
        with open_judge(judge, "backtrader") as client:
            frames = ModelJudge(name=client.name, answer=client.answer, framework="frame")
            return validate(
                tasks, executor, config=config, judge=client, frame_judge=frames, tell=tell
            )


@contextmanager
def open_judge(name: str, framework: Framework) -> Iterator[ModelJudge]:
    """Open a model and yield a judge that any thread can query."""
    check_model(name)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="tradeassay-judge", daemon=True)
    thread.start()
    opened = open_model(name, ModelParams())
    try:
        model = asyncio.run_coroutine_threadsafe(opened.__aenter__(), loop).result()

        def answer(request: AskModel) -> ModelReply:
            place = QuestionPlace(episode="check", step=0, sample=0, index=0)
            return asyncio.run_coroutine_threadsafe(model.ask(request, place), loop).result()

        try:
            yield ModelJudge(name=name, answer=answer, framework=framework)
        finally:
            asyncio.run_coroutine_threadsafe(opened.__aexit__(None, None, None), loop).result()
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def find_task(task_id: str | None, file: Path | None = None) -> CodeTask:
    """Return the task with an id.

    The task is built in, or from ``file``: a user's ``ID.toml`` or a copy of the public file.
    Without an id, a task that any strategy fits is returned: one stock with daily bars and no
    reference. Raises :class:`UserError` with similar names for an unknown task.
    """
    if task_id is None:
        return CodeTask(
            id=_NO_TASK,
            title="Any strategy",
            difficulty="easy",
            timeframe="1d",
            family=None,
            formal="Any strategy.",
            market="us",
            bars=1000,
            sizing=Sizing(kind="percent", value=95.0),
            expect=Expectations(direction="both"),
            frame=FrameVariant(formal="Any strategy.", conversational="", reference=""),
        )
    if file is None:
        return load_task(task_id)
    own_file = file.suffix == ".toml"
    if own_file and not file.is_file():
        raise UserError(
            f"there is no task file {file}", hint="create one with tradeassay new task NAME"
        )
    tasks: Sequence[CodeTask]
    try:
        if own_file:
            tasks = (read_task(file.read_text(encoding="utf-8"), file.name),)
        else:
            tasks = load_public_tasks(file)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"{file} cannot be read: {error}", hint="a task is a TOML file in UTF-8"
        ) from error
    by_id = {task.id: task for task in tasks}
    hint = f"the first is {next(iter(by_id))}; see tradeassay code tasks"
    refuse_unknown(task_id, by_id, f"there is no task '{task_id}' in {file.name}", hint)
    return by_id[task_id]


_LISTED = ("id", "title", "difficulty", "timeframe", "family", "market", "assets", "bars")


def task_line(task: CodeTask) -> dict[str, object]:
    """Return the entry of a task in a list of tasks, without its texts and programs."""
    line = {name: getattr(task, name) for name in _LISTED}
    decoys = len(task.decoys)
    if task.frame is not None:
        decoys += len(task.frame.decoys)
    return {**line, "frame": task.frame is not None, "decoys": decoys, "source": task.source}
