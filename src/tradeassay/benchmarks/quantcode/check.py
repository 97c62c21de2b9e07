"""Check one program against one task, and all references and decoys, without a run on disk."""

import asyncio
import threading
import tokenize
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from tradeassay.benchmarks.quantcode import load_public_tasks, load_task
from tradeassay.benchmarks.quantcode.dialogue import ModelJudge
from tradeassay.benchmarks.quantcode.loading import read_task
from tradeassay.code.bars import TaskBars
from tradeassay.code.evaluation import EvaluateConfig, Evaluation, ask_judge, examine, with_own_terms
from tradeassay.code.program_source import check_compiles
from tradeassay.code.running import Rules, open_code_executor, require_code_extra, rules_of
from tradeassay.code.task import CodeTask, Expectations, FrameVariant, Framework, Sizing
from tradeassay.code.validation import ProgramLine, ValidateConfig, ValidationReport, gathered, validate
from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.core.errors import UserError
from tradeassay.core.executors import Spread
from tradeassay.core.executors.task import ExecutorName, cores
from tradeassay.core.registry import refuse_unknown
from tradeassay.data.tables.cells import other_than_file
from tradeassay.llm import ModelParams, QuestionPlace, check_model, open_model
from tradeassay.sandbox import JobExecutor, TrustedCodeInProcess

_LARGEST = 1_000_000
_NO_TASK = "no-task"


def read_program(path: Path) -> str:
    """Return a program's text as Python would read it: as UTF-8, or in the encoding that its first lines name.

    Raises :class:`UserError` for a file that is missing, a folder, a pipe or device, huge or not text."""
    if what := other_than_file(path):
        raise UserError(f"{path} is {what}, not a file", hint="name a Python file")
    try:
        if path.is_file() and path.stat().st_size > _LARGEST:
            raise UserError(f"{path} has more than {_LARGEST:,} bytes", hint="a strategy has a few thousand")
        with tokenize.open(path) as file:
            return file.read()
    except UnicodeDecodeError as error:
        raise UserError(f"{path} is not UTF-8 text: {error.reason}", hint="save it as UTF-8") from error
    except SyntaxError as error:
        reason = f"{path} is not UTF-8 text and does not name another encoding"
        raise UserError(reason, hint="save it as UTF-8") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}", hint="name a Python file") from error


def check_program(
    source: str,
    task: str | CodeTask,
    *,
    framework: Framework = "backtrader",
    judge: str | None = None,
    executor: JobExecutor | None = None,
    rules: Rules | None = None,
    strict: bool = False,
    home: TaskBars | None = None,
) -> Evaluation:
    """Return all findings about a program: stages, look-ahead, agreement, tricks.

    ``judge`` names a model that is asked as well. ``rules`` hold the secret that the judged markets are drawn
    from; by default it is drawn.
    ``strict`` fails a program for any call that the kernel refused. ``home`` are bars for a task without a
    reference (see :func:`~tradeassay.benchmarks.quantcode.loading.on_stored_bars`). Raises :class:`UserError` for
    an unknown task, MissingExtra and SandboxRefused where programs cannot be run."""
    chosen = load_task(task) if isinstance(task, str) else task
    rules = rules or rules_of(None)
    with ExitStack() as stack:
        if executor is None and not check_compiles(source, framework).passed:
            executor = TrustedCodeInProcess()  # there is nothing to run, and it refuses to run anybody's program
        elif executor is None:
            executor = stack.enter_context(open_code_executor())
        found = examine(
            chosen, source, executor=executor, framework=framework, rules=rules, strict=strict, home=home
        )
    if chosen.id == _NO_TASK and framework == "backtrader":
        found = with_own_terms(found, chosen, source)
    if judge is None:
        return found
    with asked_judge(judge, framework) as client:
        return ask_judge(found, client, chosen, source, EvaluateConfig())


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
    """Run all references and decoys of tasks: a reference must pass, a decoy must fail where it says.

    ``judge`` names a model whose errors are measured too, ``secret`` is what the judged markets are drawn from.
    ``workers`` defaults to the cores. With ``executor="ray"`` each task is a piece of work for the cluster.
    Raises :class:`UserError` for tasks with neither references nor decoys, MissingExtra and SandboxRefused where
    programs cannot be run."""
    if not any(task.has_reference or task.decoys or task.frame for task in tasks):
        words = "none of these tasks comes with a reference or decoys: there is nothing to validate"
        raise UserError(words, hint="tasks of the public file have neither: choose others")
    require_code_extra()
    rules = rules_of(secret)
    if executor == "ray":
        config = ValidateConfig(thorough=thorough, threads=1, rules=rules)
        one = partial(_validate, workers=1, judge=judge, config=config, tell=None)

        def told(_: int, part: ValidationReport) -> None:
            for line in part.lines:
                if tell is not None:
                    tell(line)

        parts = Spread(executor=executor, workers=workers).map(one, [(task,) for task in tasks], done=told)
        return gathered(parts, judge)
    many = workers or cores()
    return _validate(tasks, many, judge, ValidateConfig(thorough=thorough, threads=many + 1, rules=rules), tell)


def _validate(
    tasks: Sequence[CodeTask],
    workers: int,
    judge: str | None,
    config: ValidateConfig,
    tell: Callable[[ProgramLine], None] | None,
) -> ValidationReport:
    with open_code_executor(workers) as executor:
        if judge is None:
            return validate(tasks, executor, config=config, tell=tell)
        with asked_judge(judge, "backtrader") as client:
            frames = ModelJudge(name=client.name, answer=client.answer, framework="frame")
            return validate(tasks, executor, config=config, judge=client, frame_judge=frames, tell=tell)


@contextmanager
def asked_judge(name: str, framework: Framework) -> Iterator[ModelJudge]:
    """Open a model as a judge that can be asked from any thread; raises what opening a model raises."""
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
    """Return one task of ours, of somebody's own file (``ID.toml``), or of a copy of the public file.

    Without a name: days of one stock on which any strategy may trade, and nothing to compare it with. Raises
    :class:`UserError` with near names."""
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
    own = file.suffix == ".toml"
    if own and not file.is_file():
        raise UserError(f"there is no task file {file}", hint="tradeassay new task NAME makes one")
    try:
        found = (read_task(file.read_text(encoding="utf-8"), file.name),) if own else load_public_tasks(file)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{file} cannot be read: {error}", hint="a task is a TOML file in UTF-8") from error
    known = {task.id: task for task in found}
    otherwise = f"the first is {next(iter(known))}; see tradeassay code tasks"
    refuse_unknown(task_id, known, f"there is no task '{task_id}' in {file.name}", otherwise)
    return known[task_id]


_LISTED = ("id", "title", "difficulty", "timeframe", "family", "market", "assets", "bars")


def task_line(task: CodeTask) -> dict[str, object]:
    """Return a task as a list of them has it: without its texts and programs."""
    shown = {name: getattr(task, name) for name in _LISTED}
    decoys = len(task.decoys) + (0 if task.frame is None else len(task.frame.decoys))
    return {**shown, "frame": task.frame is not None, "decoys": decoys, "source": task.source}
