"""What the runner of a result was free to choose, and chose: the *freedom statement* of a run.

It is every departure from the benchmark that is registered under the run's id, what the result rests on by the
runner's word alone, how many seeds there are, and of how many runs of this benchmark in its folder the run is one.
A result chosen among many windows, names or tries looks like any other; what it was chosen from does not.

Some fields of a spec are *rules*: gates, tolerances, weights, how judges are held. They belong to the benchmark's
id, and a run with others is a run of another benchmark, whatever it says it is. All else (a window, seeds, other
data, how models are asked) is documented as free, and is shown beside the result."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from tradeassay.benchmarks import benchmarks
from tradeassay.benchmarks.code_protocol import CodeSpec, find_protocol
from tradeassay.core.errors import UNDECODABLE, TradeassayError, UserError
from tradeassay.metrics import BootstrapConfig
from tradeassay.runs.spec.episode import protocol_config
from tradeassay.runs.spec.run_spec import RunSpec
from tradeassay.runs.store.folder import RunFolder
from tradeassay.runs.store.manifest import Manifest, RunManifest, read_manifest

_NAMES = frozenset(("models", "benchmark", "secret", "beacon"))
"""Fields that say who is examined and what the draws come from."""
_LONGEST = 80
NOT_HERE = "not registered here"
OUT_OF_TIME = re.compile(rb"not done after [0-9.e+]+ s\b|[0-9] s of processor time")
"""The sandbox's words about a program that its clock ended; how far one gets depends on the machine."""


class Departure(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is not as registered. ``rule``: it belongs to the id, and was not the runner's to choose."""

    benchmark: str
    field: str
    registered: str
    used: str
    rule: bool = False

    def __str__(self) -> str:
        return f"{self.field} is {self.used}, registered is {self.registered}"


def departures(manifest: Manifest) -> tuple[Departure, ...]:
    """Return every departure of a recorded run; raises :class:`UserError` for an unknown benchmark of programs."""
    if not isinstance(manifest, RunManifest):
        kind = find_protocol(manifest.benchmark)
        return code_departures(msgspec.json.decode(manifest.spec, type=kind.Spec))
    found = list(trading_departures(manifest.spec))
    for name, record in manifest.benchmarks.items():
        for field in ("title", "description") if name in benchmarks else ():
            ours, theirs = getattr(benchmarks.get(name), field), getattr(record.config, field)
            if ours != theirs:
                found.append(_departure(name, field, ours, theirs))
    return tuple(found)


def trading_departures(spec: RunSpec) -> tuple[Departure, ...]:
    """Return in what a spec that trades departs from its benchmarks, benchmark by benchmark."""
    found: list[Departure] = []
    for name in spec.benchmarks:
        if name not in benchmarks:
            found.append(_departure(name, "benchmark", NOT_HERE, name, rule=True))
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
        for key, given in sorted(spec.protocol.items()):
            values = given if isinstance(given, tuple) else (given,)
            used = tuple(getattr(protocol_config(benchmark, {key: value}), key) for value in values)
            pairs.append((f"protocol.{key}", getattr(registered, key), used[0] if len(used) == 1 else used))
        pairs += _leaves(BootstrapConfig(), spec.bootstrap, "bootstrap")
        found += [_departure(name, field, old, new) for field, old, new in pairs if old != new]
    return tuple(found)


def code_departures(spec: CodeSpec) -> tuple[Departure, ...]:
    """Return in what the spec of a run of programs departs from its benchmark."""
    kind = find_protocol(spec.benchmark)
    plain = kind.Spec(models=spec.models, benchmark=spec.benchmark)
    found = []
    for field in msgspec.structs.fields(plain):
        if field.name not in _NAMES:
            for where, old, new in _leaves(getattr(plain, field.name), getattr(spec, field.name), field.name):
                rule = any(where == one or where.startswith(f"{one}.") for one in kind.fixed)
                found.append(_departure(spec.benchmark, where, old, new, rule=rule))
    return tuple(found)


def refuse_other_rules(spec: CodeSpec) -> None:
    """Raise :class:`UserError` for a spec whose rules are not those of its benchmark."""
    for one in code_departures(spec):
        if one.rule:
            raise UserError(
                f"{one}: that is not '{spec.benchmark}'",
                hint="leave the rules as they are, or register a benchmark of your own with these",
            )


def _leaves(registered: Any, used: Any, where: str) -> Iterator[tuple[str, object, object]]:
    """Yield the innermost fields in which two values of a spec differ."""
    if isinstance(registered, msgspec.Struct) and type(registered) is type(used):
        for field in msgspec.structs.fields(registered):
            yield from _leaves(getattr(registered, field.name), getattr(used, field.name), f"{where}.{field.name}")
    elif registered != used:
        yield where, registered, used


def _departure(benchmark: str, field: str, old: object, new: object, *, rule: bool = False) -> Departure:
    return Departure(benchmark=benchmark, field=field, registered=_shown(old), used=_shown(new), rule=rule)


def _shown(value: object) -> str:
    if value is None or value is msgspec.UNSET or value == ():
        return "not given"
    text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


class Freedom(msgspec.Struct, frozen=True, kw_only=True):
    """What was chosen for a run. ``runs`` counts those of its benchmarks in its folder, itself included; None
    where the folder is not known (a sealed run). ``words`` is the statement, a phrase for each freedom: every
    surface shows these."""

    departures: tuple[Departure, ...]
    seeds: tuple[int, ...]
    runs: int | None
    words: tuple[str, ...]

    @property
    def sentence(self) -> str:
        return f"Chosen by the runner: {'; '.join(self.words)}."


def freedom_of(folder: Path, manifest: Manifest, *, alone: bool = False) -> Freedom:
    """Return the freedom statement of the run in a folder; ``alone``: it was taken from among its siblings."""
    names = manifest.spec.benchmarks if isinstance(manifest, RunManifest) else (manifest.benchmark,)
    found: tuple[Departure, ...] = ()
    said: list[str] = []
    try:
        found = departures(manifest)
        for one in found:
            if one.field == "seeds":
                continue
            where = f"{one.benchmark}: " if len(names) > 1 else ""
            used = f'"{one.used}"' if one.field in ("title", "description") else one.used
            own = "the benchmark's own" if one.registered == "not given" else one.registered
            known = f", {NOT_HERE}" if one.registered == NOT_HERE else f" instead of {own}{_share(one)}"
            said.append(f"{where}{one.field} {used}{known}")
        said = said or ["as registered"]
    except (TradeassayError, *UNDECODABLE) as error:
        said = [f"departures are not known: {error}"]
    # What a result rests on that nobody can make again, and that a runner may have wished for.
    if not isinstance(manifest, RunManifest):
        journals = [RunFolder(folder).events(episode.key) for episode in manifest.episodes]
        lines = (line for one in journals if one.is_file() for line in one.read_bytes().splitlines())
        if late := sum(OUT_OF_TIME.search(line) is not None for line in lines):
            said.append(f"{late} {'programs' if late > 1 else 'program'} out of time, as stated by the runner")
    seeds = tuple(dict.fromkeys(episode.seed for episode in manifest.episodes))
    many = "one seed" if len(seeds) == 1 else f"{len(seeds)} seeds"
    if list(seeds) != list(range(len(seeds))):
        many += f", chosen: {', '.join(map(str, seeds[:6]))}{' ...' if len(seeds) > 6 else ''}"
    which, runs = ", ".join(names), None
    among = f"how many runs of {which} it is one of is not known"
    if not alone:
        runs = 0
        for file in folder.resolve().parent.glob("*/manifest.json"):
            with suppress(OSError, TradeassayError):  # what cannot be read is no run
                seen = file.stat()
                runs += not _played_in(file, seen.st_mtime_ns, seen.st_size).isdisjoint(names)
        runs = max(1, runs)
        among = f"{'the only run' if runs == 1 else f'one of {runs} runs'} of {which} in its folder"
    return Freedom(departures=found, seeds=seeds, runs=runs, words=(*said, many, among))


def _share(one: Departure) -> str:
    """Say which part of the registered days a window has; empty where that does not say anything."""
    try:
        (first, last), (start, end) = (
            map(date.fromisoformat, days.split(" .. ")) for days in (one.used, one.registered)
        )
    except ValueError:
        return ""
    days, whole = (last - first).days + 1, (end - start).days + 1
    return f" ({days / whole:.0%} of its days)" if one.field == "window" and days < whole else ""


@lru_cache(maxsize=1 << 16)
def _played_in(file: Path, changed: int, size: int) -> frozenset[str]:
    """Return the benchmarks of a manifest; a site over n runs would otherwise read n times n of them."""
    manifest = read_manifest(file)
    return frozenset(manifest.spec.benchmarks if isinstance(manifest, RunManifest) else (manifest.benchmark,))
