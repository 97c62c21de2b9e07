"""Load tasks from files.

The files are this project's, with one TOML file per task, and QuantCode-Bench's public file of 400
tasks. This project's files are read strictly: unknown keys are refused. The public file is read
from a user's own copy. A public task has one wording, the symbol that its authors download, and
neither a reference program nor decoys. The task lists its missing parts in ``lacks``, and the
behavioural judge has nothing to compare it with. If the data of its symbol are imported, it can run
on stored bars instead of a synthetic market.
"""

import math
import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from tradeassay.core.arguments import instance_of
from tradeassay.core.errors import UNDECODABLE, DataError, UserError
from tradeassay.core.registry import did_you_mean, refuse_unknown
from tradeassay_bench.core.time import MINUTE
from tradeassay_bench.data.snapshot import AsOfView, Snapshot
from tradeassay_bench.data.tables.bars import ZONES, to_local
from tradeassay_programs.benchmarks.quantcode.families import generated_task
from tradeassay_programs.code.bars import (
    FIELDS,
    MINUTES,
    OPEN_MINUTE,
    Clock,
    TaskBars,
    bars_from_snapshot,
)
from tradeassay_programs.code.task import (
    DIFFICULTIES,
    TIMEFRAMES,
    CodeTask,
    Decoy,
    Expectations,
    FrameVariant,
    Sizing,
    Timeframe,
)

_UNKNOWN = re.compile(r"unknown field `(?P<field>[^`]*)`(?: - at `\$\.?(?P<where>[^`]*)`)?")
_PARTS = {"sizing": Sizing, "expect": Expectations, "decoys": Decoy, "frame": FrameVariant}


def read_task(text: str, where: str) -> CodeTask:
    """Return the task in a TOML text. ``where`` names the source in errors.

    Raises UserError for text that is not TOML, lacks a key, or has an unknown key or an invalid
    value.
    """
    try:
        return msgspec.convert(tomllib.loads(text), type=CodeTask)
    except tomllib.TOMLDecodeError as error:
        hint = "enclose code and wordings in '''"
        raise UserError(f"the task {where} is not TOML: {error}", hint=hint) from error
    except msgspec.ValidationError as error:
        hint = "docs/reference/quantcode-tasks.md lists every key"
        if found := _UNKNOWN.search(str(error)):
            head = re.split(r"[.\[]", found["where"] or "")[0]
            known = _PARTS.get(head, CodeTask).__struct_fields__
            hint = did_you_mean(found["field"], known, f"known: {', '.join(known)}")
        raise UserError(f"the task {where} cannot be read: {error}", hint=hint) from error


def read_tasks(folder: Path | Traversable) -> tuple[CodeTask, ...]:
    """Return the tasks of a folder's ``*.toml`` files, sorted by id.

    Raises UserError if the folder has none, or if a file is not a task or is not named after its
    task's id.
    """
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder of tasks", hint="store each task as <id>.toml")
    found = []
    for file in sorted(folder.iterdir(), key=lambda item: item.name):
        if not file.name.endswith(".toml"):
            continue
        task = read_task(file.read_text(encoding="utf-8"), file.name)
        if task.id != file.name.removesuffix(".toml"):
            raise UserError(
                f"the task {file.name} has the id '{task.id}'", hint=f"name it {task.id}.toml"
            )
        found.append(task)
    if not found:
        raise UserError(f"no tasks in {folder}", hint="store each task as <id>.toml")
    return check_ids(found)


def check_ids(tasks: Iterable[CodeTask]) -> tuple[CodeTask, ...]:
    """Return the tasks sorted by id. Raises UserError if two tasks share an id."""
    by_id: dict[str, CodeTask] = {}
    for task in tasks:
        if task.id in by_id:
            raise UserError(
                f"two tasks have the id '{task.id}'", hint="give one of them another id"
            )
        by_id[task.id] = task
    return tuple(by_id[key] for key in sorted(by_id))


@cache
def load_tasks() -> tuple[CodeTask, ...]:
    """Return the built-in tasks, sorted by id."""
    return read_tasks(files(__package__) / "tasks")


def load_task(task_id: str) -> CodeTask:
    """Return a built-in or generated task by its id.

    Raises UserError with similar names if there is none.
    """
    instance_of("a task's id", task_id, str, "see tradeassay code tasks")
    if (drawn := generated_task(task_id)) is not None:
        return drawn
    known = {task.id: task for task in load_tasks()}
    refuse_unknown(task_id, known, f"there is no task '{task_id}'", "see tradeassay code tasks")
    return known[task_id]


PUBLIC_KEYS = tuple(
    "id reformulated_task source difficulty ticker yf_symbol timeframe original_ticker "
    "original_timeframe "
    "was_reformulated".split()
)
"""The ten keys of a record. Only ``id`` and ``reformulated_task`` are required."""

PUBLIC_BARS: dict[Timeframe, int] = {
    "1d": 1500,
    "1h": 3500,
    "30m": 1560,
    "15m": 1560,
    "5m": 4680,
    "1m": 2730,
}
"""Number of bars per timeframe: about the history that the authors' harness downloads."""

_NAMES = {
    "daily": "1d",
    "1day": "1d",
    "d1": "1d",
    "60m": "1h",
    "h1": "1h",
    "m30": "30m",
    "m15": "15m",
    "m5": "5m",
}
_HEADS = ("assignment", "trading strategy writing assignment", "task", "description")
_CRYPTO = re.compile(r"-(USD|USDT|EUR|BTC)$")
_HARD_PRICE = re.compile(
    r"(?<![\w.])(?:\$|USD ?|EUR "
    r"?|€|£)\s?\d[\d,]*(?:\.\d+)?|\b(?:price|level|support|resistance|strike)s?"
    r"(?: level)?(?: of| at| is| "
    r"=|:)?\s+\$?\d{2,}(?:[\d,]*)(?:\.\d+)?(?!\s*(?:%|percent|bars?|days?|periods?))",
    re.IGNORECASE,
)
_EXTERNAL = re.compile(
    r"\b(?:news|sentiment|twitter|tweets?|earnings|fundamentals?|order ?book|open interest|funding "
    r"rate|on-chain|"
    r"options? chain|implied volatility|VIX|economic calendar|interest rates?|CSV "
    r"file|API|download)\b",
    re.IGNORECASE,
)
_SEVERAL = re.compile(
    r"\b(?:pairs? trad\w+|two (?:assets|stocks|instruments|symbols|coins)|several "
    r"(?:assets|stocks|symbols)|"
    r"multiple (?:assets|stocks|symbols|tickers|instruments)|basket|portfolio of|"
    r"second (?:asset|symbol|data feed)|spread between)\b",
    re.IGNORECASE,
)
OTHER_PRICES = "prices of other data: it names price levels, which synthetic bars may never reach"
_FLAGS = (
    (_HARD_PRICE, OTHER_PRICES),
    (_EXTERNAL, "external data that it asks for: programs get bars and nothing else"),
    (_SEVERAL, "several assets, which it asks for: programs get one"),
)
"""Requirements of a public task that this project's bars do not meet.

They are recorded on the task, because a program cannot be blamed for them.
"""
_LARGEST = 64 << 20


def load_public_tasks(path: str | Path) -> tuple[CodeTask, ...]:
    """Return the tasks of a public file, with ids from ``public-001``.

    ``lacks`` of a task states if it names price levels, needs data besides bars, or trades several
    assets, and if a missing or unknown value was replaced by a default. Unknown keys are ignored.
    Raises UserError if there is no such file, and DataError if it is not a list of records with ids
    and texts.
    """
    file = Path(path)
    if not file.is_file():
        hint = "get benchmark_tasks_multiframe.json from the QuantCode-Bench repository"
        raise UserError(f"there is no task file {file}", hint=hint)
    if not 0 < file.stat().st_size <= _LARGEST:  # A kernel file has no size and may never end.
        raise DataError(
            f"{file.name} is empty or has more than {_LARGEST:,} bytes", hint="download it again"
        )
    try:
        records: Any = msgspec.json.decode(file.read_bytes())
    except UNDECODABLE as error:
        raise DataError(f"{file.name} is not JSON: {error}", hint="download it again") from error
    except OSError as error:
        raise UserError(
            f"{file} cannot be read: {error.strerror}", hint="name another file"
        ) from error
    if isinstance(records, dict):
        records = records.get("tasks")
    if not isinstance(records, list) or not records:
        raise DataError(
            f"{file.name} does not contain a list of tasks",
            hint=f"a record has {', '.join(PUBLIC_KEYS)}",
        )
    return check_ids(
        _task(record, number, file.name) for number, record in enumerate(records, start=1)
    )


def _task(record: Any, number: int, where: str) -> CodeTask:
    if not isinstance(record, dict):
        words = f"{where}: record {number} is not an object"
        raise DataError(words, hint=f"a record has {', '.join(PUBLIC_KEYS)}")
    text = record.get("reformulated_task")
    if not isinstance(text, str) or not text.strip():
        hint = did_you_mean("reformulated_task", record, f"a record has {', '.join(PUBLIC_KEYS)}")
        raise DataError(f"{where}: record {number} has no 'reformulated_task'", hint=hint)
    lacks = ["a conversational wording", "a reference program", "decoys"]
    name = str(record.get("timeframe") or "").strip().lower()
    timeframe = next((known for known in TIMEFRAMES if known == _NAMES.get(name, name)), None)
    if timeframe is None:
        lacks.append(f"a known timeframe (has {record.get('timeframe')!r}, taken as 1d)")
    lacks += [what for pattern, what in _FLAGS if pattern.search(text)]
    number_said = record.get("id")
    id = re.sub(r"[^a-z0-9]+", "-", str(number_said or "").lower()).strip("-")
    if isinstance(number_said, int) and not isinstance(number_said, bool) and number_said >= 0:
        id = f"{number_said:03d}"
    if not id:
        lacks.append("an id (numbered by its place in the file)")
    # The title is the first line with words, without Markdown, at most 80 characters.
    lines = (re.sub(r"[*#`_]+", "", line).strip(" :-") for line in text.splitlines())
    telling = [line for line in lines if line] or [text.strip()]
    title = next((line for line in telling if not line.lower().startswith(_HEADS)), telling[0])
    said = record.get("difficulty")
    difficulty = next(
        (one for one in DIFFICULTIES if isinstance(said, str) and said.strip().lower() == one), None
    )
    if difficulty is None:
        lacks.append(f"a known difficulty (has {said!r}, taken as medium)")
    source = record.get("source")
    source = source.strip().lower() if isinstance(source, str) else ""
    if not source:
        lacks.append("a source")
    symbol = record.get("yf_symbol") or record.get("ticker")
    symbol = symbol if isinstance(symbol, str) else None
    upper = (symbol or "").upper()
    market = "futures" if upper.endswith(("=F", "=X")) else "us"  # A synthetic market replaces it.
    return CodeTask(
        id=f"public-{id or f'{number:03d}'}",
        title=title if len(title) <= 80 else title[:79].rstrip() + "…",
        difficulty=difficulty or "medium",
        timeframe=timeframe or "1d",
        family=None,
        source=source or "public",
        formal=text,
        market="crypto" if _CRYPTO.search(upper) else market,
        bars=PUBLIC_BARS[timeframe or "1d"],
        sizing=Sizing(kind="fixed", value=1.0),
        expect=Expectations(direction="both", order_kinds=()),
        symbol=symbol,
        lacks=tuple(lacks),
    )


_FEWEST: Final = 100
"""Minimum number of bars for running a strategy."""


def on_stored_bars(
    task: CodeTask, snapshot: Snapshot, symbol: str | None = None
) -> tuple[CodeTask, TaskBars]:
    """Return a task adapted to stored bars, and the latest bars of its symbol.

    The number of bars is the task's. ``symbol`` replaces the symbol that the task names. Daily bars
    are adjusted for splits. Intraday bars are unadjusted, and their times are in the exchange's
    local time. Bars shorter than the task's are aggregated. If the account cannot pay for one unit,
    it gets the cash for ten units, and ``lacks`` states this.

    Raises :class:`UserError` for a task with a reference, because such a task is judged on drawn
    markets. Also raises it if the data set has no such symbol, no bars of that length, or too few
    bars.
    """
    if task.has_reference:
        hint = "stored bars are for tasks of the public file"
        raise UserError(f"task '{task.id}' is judged on drawn markets", hint=hint)
    view = snapshot.at(snapshot.rows(None, None)[-1], "close")
    name = _find(symbol or task.symbol or "", view.symbols, snapshot.name)
    bars = (
        bars_from_snapshot(snapshot, (name,))
        if task.timeframe == "1d"
        else _shorter(task, snapshot, view, name)
    )
    if bars.rows < _FEWEST:
        hint = "import a longer span"
        raise UserError(
            f"expected {_FEWEST} bars of '{name}' in '{snapshot.name}', got {bars.rows}", hint=hint
        )
    bars = bars.with_columns({key: values[-task.bars :] for key, values in bars.columns().items()})
    real = snapshot.facts.kind == "real"
    lacks = tuple(what for what in task.lacks if not (real and what == OTHER_PRICES))
    cash, unit = task.cash, float(bars.feeds["A"]["high"].max())
    if unit * (1.0 + task.commission) > cash:
        cash = 10.0 ** math.ceil(math.log10(10.0 * unit))
        lacks += (f"cash for a unit at {unit:,.2f}: {cash:,.0f} instead of {task.cash:,.0f}",)
    return msgspec.structs.replace(task, lacks=lacks, cash=cash), bars


def _find(symbol: str, known: tuple[str, ...], dataset: str) -> str:
    """Return a data set's spelling of a symbol. For example, BTC-USD may be BTC/USDT or BTC."""
    if symbol in known:
        return symbol

    def plain(name: str) -> str:
        return re.sub(r"USDT$", "USD", re.sub(r"[^A-Z0-9]", "", name.upper()))

    spelled = {plain(name): name for name in known}
    base = re.split(r"[-/]", symbol.upper())[0] if re.search(r"[-/]USDT?$", symbol.upper()) else ""
    for name in filter(None, (plain(symbol), base)):
        if name in spelled:
            return spelled[name]
    hint = did_you_mean(symbol, known, f"it has {', '.join(known[:3])} ...: name one")
    raise UserError(
        f"'{dataset}' does not have '{symbol}'" if symbol else "the task names no symbol", hint=hint
    )


def _shorter(task: CodeTask, snapshot: Snapshot, view: AsOfView, symbol: str) -> TaskBars:
    length, wanted = snapshot.facts.minutes_per_bar, MINUTES[task.timeframe]
    if wanted % length:
        words = f"'{snapshot.name}' has bars of {length} minutes, the task needs {task.timeframe}"
        raise UserError(words, hint="import bars of one minute")
    closes, fields = view.minutes(symbol, np.iinfo(np.int64).max // 2)
    opens = to_local(closes - length * MINUTE, ZONES[snapshot.calendar])
    clock: Clock = "always" if snapshot.calendar == "24/7" else "exchange"
    feed = {"time": opens.astype("M8[ns]")}
    feed |= {
        str(name): np.asarray(fields[name], dtype=np.float64) for name in fields if name in FIELDS
    }
    whole = np.all([np.isfinite(feed[name]) for name in FIELDS[1:]], axis=0) & (feed["low"] > 0.0)
    summed = sum_up({name: values[whole] for name, values in feed.items()}, task.timeframe, clock)
    return TaskBars(
        {"A": summed}, task.timeframe, clock, f"{snapshot.name}:{symbol} {task.timeframe}"
    )


def sum_up(
    feed: Mapping[str, NDArray[Any]], timeframe: Timeframe, clock: Clock
) -> dict[str, NDArray[Any]]:
    """Return bars aggregated to a longer timeframe.

    The first bar starts with the session. The time of a bar is its start.
    """
    minute = feed["time"].astype("M8[m]").astype(np.int64) - OPEN_MINUTE[clock]
    begins = minute // MINUTES[timeframe] * MINUTES[timeframe]
    first = (
        np.flatnonzero(np.append(True, begins[1:] != begins[:-1]))
        if minute.size
        else np.zeros(0, np.int64)
    )
    if not first.size:
        return {name: values[:0] for name, values in feed.items()}
    last = np.append(first[1:], minute.size) - 1
    return {
        "time": (begins[first] + OPEN_MINUTE[clock]).astype("M8[m]").astype("M8[ns]"),
        "open": feed["open"][first],
        "high": np.maximum.reduceat(feed["high"], first),
        "low": np.minimum.reduceat(feed["low"], first),
        "close": feed["close"][last],
        "volume": np.add.reduceat(feed["volume"], first),
    }
