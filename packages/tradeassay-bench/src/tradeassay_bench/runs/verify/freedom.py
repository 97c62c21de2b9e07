"""List the runner's own choices for a result: the *freedom statement* of a run.

It contains every departure from the registered benchmark, the number of programs that ran out of
time, the number of seeds, and the number of runs of this benchmark in the folder. A result that was
selected from many windows, names or tries looks like any other result. The statement shows how many
alternatives the runner had.

Some fields of a spec are *rules*: gates, tolerances, weights, the use of judges. They are fixed by
the benchmark's id. A run with different rules is a run of a different benchmark, even if it states
the same id. The runner may choose all other options (a window, seeds, other data, the options for
queries to models). The choices are displayed with the result.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from tradeassay.core.errors import UNDECODABLE, TradeassayError, UserError
from tradeassay.metrics import BootstrapConfig
from tradeassay_bench.benchmarks import benchmarks
from tradeassay_bench.benchmarks.code_protocol import CodeSpec, find_protocol
from tradeassay_bench.runs.spec.episode import protocol_config
from tradeassay_bench.runs.spec.run_spec import RunSpec
from tradeassay_bench.runs.store.folder import RunFolder
from tradeassay_bench.runs.store.manifest import Manifest, RunManifest, read_manifest

_NAMES = frozenset(("models", "benchmark", "secret"))
"""Fields that are never departures: models under test, the id, and the secret of the draws."""
_LONGEST = 80
"""The maximum number of characters of a displayed value."""
NOT_HERE = "not registered here"
OUT_OF_TIME = re.compile(rb"not done after [0-9.e+]+ s\b|[0-9] s of processor time")
"""A pattern for the sandbox's messages about a program that exceeded its time limit.

Whether a program exceeds the limit depends on the machine.
"""


class Departure(msgspec.Struct, frozen=True, kw_only=True):
    """One difference from the registered benchmark.

    ``rule`` is true if the field is fixed by the benchmark's id.
    """

    benchmark: str
    field: str
    registered: str
    used: str
    rule: bool = False

    def __str__(self) -> str:
        return f"{self.field} is {self.used}, registered is {self.registered}"


def departures(manifest: Manifest) -> tuple[Departure, ...]:
    """Return every departure of a recorded run.

    Raises :class:`UserError` if a run of programs has an unknown benchmark.
    """
    if not isinstance(manifest, RunManifest):
        kind = find_protocol(manifest.benchmark)
        return code_departures(msgspec.json.decode(manifest.spec, type=kind.Spec))
    departed = list(trading_departures(manifest.spec))
    for name, record in manifest.benchmarks.items():
        for field in ("title", "description") if name in benchmarks else ():
            registered, used = getattr(benchmarks.get(name), field), getattr(record.config, field)
            if registered != used:
                departed.append(_departure(name, field, registered, used))
    return tuple(departed)


def trading_departures(spec: RunSpec) -> tuple[Departure, ...]:
    """Return the departures of a trading spec from its benchmarks, in the benchmarks' order."""
    departed: list[Departure] = []
    for name in spec.benchmarks:
        if name not in benchmarks:
            departed.append(_departure(name, "benchmark", NOT_HERE, name, rule=True))
            continue
        benchmark = benchmarks.get(name)
        market, data = benchmark.market, spec.datasets.get(name, (benchmark.dataset,))
        days = f"{market.first} .. {market.last}"
        pairs: list[tuple[str, object, object]] = []
        pairs.append(("dataset", benchmark.dataset, data[0] if len(data) == 1 else data))
        if spec.window is not None:
            pairs.append(("window", days, f"{spec.window.first} .. {spec.window.last}"))
        elif spec.windows:
            pairs.append(("window", days, spec.windows))
        pairs.append(("seeds", (0,), spec.seeds))
        pairs += [("index", market.index or "none", spec.index)] if spec.index else []
        pairs += [("universe", market.universe, spec.universe)] if spec.universe else []
        registered = protocol_config(benchmark) if spec.protocol else None
        for key, value_or_list in sorted(spec.protocol.items()):
            values = value_or_list if isinstance(value_or_list, tuple) else (value_or_list,)
            used = tuple(getattr(protocol_config(benchmark, {key: value}), key) for value in values)
            pairs.append(
                (f"protocol.{key}", getattr(registered, key), used[0] if len(used) == 1 else used)
            )
        pairs += _leaves(BootstrapConfig(), spec.bootstrap, "bootstrap")
        departed += [_departure(name, field, old, new) for field, old, new in pairs if old != new]
    return tuple(departed)


def code_departures(spec: CodeSpec) -> tuple[Departure, ...]:
    """Return the departures of a spec for a run of programs from its benchmark."""
    kind = find_protocol(spec.benchmark)
    plain = kind.Spec(models=spec.models, benchmark=spec.benchmark)
    departed = []
    for field in msgspec.structs.fields(plain):
        if field.name not in _NAMES:
            for where, old, new in _leaves(
                getattr(plain, field.name), getattr(spec, field.name), field.name
            ):
                rule = any(where == fixed or where.startswith(f"{fixed}.") for fixed in kind.fixed)
                departed.append(_departure(spec.benchmark, where, old, new, rule=rule))
    return tuple(departed)


def refuse_other_rules(spec: CodeSpec) -> None:
    """Check that a spec has the rules of its benchmark. Raises :class:`UserError` otherwise."""
    for departure in code_departures(spec):
        if departure.rule:
            raise UserError(
                f"{departure}: that is not '{spec.benchmark}'",
                hint="do not change the rules, or register a new benchmark with these rules",
            )


def _leaves(registered: Any, used: Any, where: str) -> Iterator[tuple[str, object, object]]:
    """Yield the path and both values of every innermost field in which two values differ."""
    if isinstance(registered, msgspec.Struct) and type(registered) is type(used):
        for field in msgspec.structs.fields(registered):
            yield from _leaves(
                getattr(registered, field.name), getattr(used, field.name), f"{where}.{field.name}"
            )
    elif registered != used:
        yield where, registered, used


def _departure(
    benchmark: str, field: str, old: object, new: object, *, rule: bool = False
) -> Departure:
    return Departure(
        benchmark=benchmark, field=field, registered=_shown(old), used=_shown(new), rule=rule
    )


def _shown(value: object) -> str:
    if value is None or value is msgspec.UNSET or value == ():
        return "not given"
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


class Freedom(msgspec.Struct, frozen=True, kw_only=True):
    """The runner's choices for a run.

    ``runs`` is the number of runs of the same benchmarks in the run's parent folder, including the
    run itself. It is None if the folder is unknown, as for a sealed run. ``words`` is the statement
    as phrases, one per choice. Every page and table displays the statement.
    """

    departures: tuple[Departure, ...]
    seeds: tuple[int, ...]
    runs: int | None
    words: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """Return the statement as one sentence."""
        text = "; ".join(self.words)
        if any(departure.field != "seeds" for departure in self.departures):
            return f"Differs from the registered benchmark: {text}."
        return f"{text[0].upper()}{text[1:]}."


def freedom_of(folder: Path, manifest: Manifest, *, alone: bool = False) -> Freedom:
    """Return the freedom statement of the run in a folder.

    ``alone`` is true if the run is not in its original parent folder. Other runs are then not
    counted.
    """
    names = manifest.spec.benchmarks if isinstance(manifest, RunManifest) else (manifest.benchmark,)
    departed: tuple[Departure, ...] = ()
    words: list[str] = []
    try:
        departed = departures(manifest)
        for departure in departed:
            if departure.field == "seeds":
                continue
            where = f"{departure.benchmark}: " if len(names) > 1 else ""
            words.append(f"{where}{_departure_words(departure)}")
        words = words or ["as registered"]
    except (TradeassayError, *UNDECODABLE) as error:
        words = [f"departures are unknown: {error}"]
    # Time-outs cannot be reproduced, and the runner may have caused them on purpose.
    if not isinstance(manifest, RunManifest):
        journals = [RunFolder(folder).events(episode.key) for episode in manifest.episodes]
        lines = chain.from_iterable(
            journal.read_bytes().splitlines() for journal in journals if journal.is_file()
        )
        timed_out = sum(OUT_OF_TIME.search(line) is not None for line in lines)
        if timed_out:
            words.append(
                f"{timed_out} {'programs' if timed_out > 1 else 'program'} out of time, as stated "
                "by the runner"
            )
    seeds = tuple(dict.fromkeys(episode.seed for episode in manifest.episodes))
    seed_words = "one seed" if len(seeds) == 1 else f"{len(seeds)} seeds"
    if list(seeds) != list(range(len(seeds))):
        seed_words += (
            f", chosen: {', '.join(map(str, seeds[:6]))}{' ...' if len(seeds) > 6 else ''}"
        )
    which, runs = ", ".join(names), None
    among = f"the number of runs of {which} from which it was chosen is unknown"
    if not alone:
        runs = 0
        for file in folder.resolve().parent.glob("*/manifest.json"):
            with suppress(OSError, TradeassayError):  # an unreadable folder is not a run
                status = file.stat()
                runs += not _played_in(file, status.st_mtime_ns, status.st_size).isdisjoint(names)
        runs = max(1, runs)
        among = f"{'the only run' if runs == 1 else f'one of {runs} runs'} of {which} in its folder"
    return Freedom(departures=departed, seeds=seeds, runs=runs, words=(*words, seed_words, among))


def _departure_words(departure: Departure) -> str:
    """Return a departure as a phrase: the field, its value, and the registered value."""
    used = departure.used
    if departure.field in ("title", "description"):
        used = f'"{used}"'
    if departure.registered == NOT_HERE:
        return f"{departure.field} {used}, {NOT_HERE}"
    registered = departure.registered
    if registered == "not given":
        registered = "the benchmark's own"
    return f"{departure.field} {used} instead of {registered}{_share(departure)}"


def _share(departure: Departure) -> str:
    """Return the window's share of the registered days as text; empty without a shorter window."""
    try:
        (first, last), (start, end) = (
            map(date.fromisoformat, days.split(" .. "))
            for days in (departure.used, departure.registered)
        )
    except ValueError:
        return ""
    days, whole = (last - first).days + 1, (end - start).days + 1
    return (
        f" ({days / whole:.0%} of its days)" if departure.field == "window" and days < whole else ""
    )


@lru_cache(maxsize=1 << 16)
def _played_in(file: Path, changed: int, size: int) -> frozenset[str]:
    """Return the ids of a manifest's benchmarks.

    The ids are cached, because a site over n runs would otherwise read n times n manifests.
    ``changed`` (the file's time) and ``size`` are part of the key of the cache.
    """
    manifest = read_manifest(file)
    return frozenset(
        manifest.spec.benchmarks if isinstance(manifest, RunManifest) else (manifest.benchmark,)
    )
