"""Log a run's numbers in an experiment tracker, MLflow or Weights & Biases (extra ``tracking``).

Nothing is computed here: every number is from the run, with its interval.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from tradeassay.core.errors import require
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.report.export_tables import paste_tables
from tradeassay_bench.report.run_html import write_html
from tradeassay_bench.runs import CodeRun, Run

Tracker = Literal["mlflow", "wandb"]
LoggedValues = tuple[dict[str, str], dict[str, float]]
"""Two mappings by name: parameters, and numbers."""


def tracked(run: Run | CodeRun) -> LoggedValues:
    """Return the parameters and the numbers of a finished run, for a tracker.

    Numbers are named ``table/agent/column``, with the ends of their intervals. Names that differ
    only in characters that a tracker rejects are numbered. Raises :class:`RunError` for an
    unfinished run.
    """
    if not run.complete:
        raise RunError(f"{run.name} is not finished", hint=f"tradeassay resume {run.folder}")
    names = dict.fromkeys(episode.benchmark for episode in run.episodes)
    params = {
        "run": run.name,
        "benchmarks": ", ".join(names),
        "work_sha256": run.manifest.work_sha256,
    }
    numbers: dict[str, float] = {}
    paths_of_key: dict[str, list[str]] = {}
    tables = paste_tables(run)
    for table in tables:
        for row in table.rows:
            for title, cell in zip(table.columns, row, strict=True):
                path = [*([table.title] if len(tables) > 1 else []), row[table.named].text, title]
                # Both trackers allow these characters only.
                key = "/".join(re.sub(r"[^A-Za-z0-9_. -]+", "-", text).strip("- ") for text in path)
                same_key = paths_of_key.setdefault(key, [])
                if "/".join(path) not in same_key:
                    same_key.append("/".join(path))
                place = same_key.index("/".join(path))
                key += f"-{place + 1}" if place else ""
                for end, value in (("", cell.value), ("_low", cell.low), ("_high", cell.high)):
                    if value is not None and title not in ("#", "tier"):
                        numbers[key + end] = value
    return params, numbers


def track(run: Run | CodeRun, tracker: Tracker, *, project: str = "tradeassay") -> str:
    """Log a finished run as one run of the tracker, with its page and scores as files.

    Returns the tracker's id. Raises :class:`MissingExtra` if the tracker is not installed,
    :class:`RunError` if the tracker fails.
    """
    values = tracked(run)
    client: Any = require(tracker, "tracking")
    log = _log_mlflow if tracker == "mlflow" else _log_wandb
    try:
        with tempfile.TemporaryDirectory() as folder:
            page = write_html(run, Path(folder) / "report.html")
            return log(client, project, run.name, values, (page, run.folder / "scores.json"))
    except Exception as error:  # a tracker may raise anything
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        hint = "wandb login, or WANDB_MODE=offline"
        if tracker == "mlflow":
            hint = "set a store with MLFLOW_TRACKING_URI, e.g. sqlite:///mlflow.db"
        raise RunError(f"{tracker} did not accept the run: {reason}", hint=hint) from error


def _log_mlflow(
    mlflow: Any, project: str, name: str, values: LoggedValues, files: Sequence[Path]
) -> str:
    params, numbers = values
    mlflow.set_experiment(project)
    with mlflow.start_run(run_name=name) as run:
        mlflow.log_params(params)
        mlflow.log_metrics(numbers)
        for file in files:
            mlflow.log_artifact(str(file))
    return str(run.info.run_id)


def _log_wandb(
    wandb: Any, project: str, name: str, values: LoggedValues, files: Sequence[Path]
) -> str:
    params, numbers = values
    run = wandb.init(project=project, name=name, config=params)
    failed = 1
    try:
        run.summary.update(numbers)
        for file in files:
            run.save(str(file), base_path=str(file.parent), policy="now")
        failed = 0
    finally:
        run.finish(exit_code=failed)
    return str(run.id)
