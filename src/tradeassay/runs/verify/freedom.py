"""What the runner was free to choose, said beside the result: the *freedom statement* of a run.

It is every departure from the registered benchmark, how many seeds there are, and of how many runs of this
benchmark in its folder the run is one. A result chosen among many windows, names or tries looks like any other;
what it was chosen from does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from functools import lru_cache
from pathlib import Path

import msgspec

from tradeassay.core.errors import UNDECODABLE, TradeassayError
from tradeassay.runs.store.manifest import Manifest, RunManifest, read_manifest
from tradeassay.runs.verify.departures import Departure, departures


class Freedom(msgspec.Struct, frozen=True, kw_only=True):
    """What was chosen for a run. ``runs`` counts those of its benchmarks in its folder, itself included; None
    where the folder is not known (a sealed run). ``words`` is the statement, a phrase for each freedom: every
    surface shows these.
    """

    departures: tuple[Departure, ...]
    seeds: tuple[int, ...]
    runs: int | None
    words: tuple[str, ...]

    @property
    def sentence(self) -> str:
        return f"Chosen by the runner: {'; '.join(self.words)}."


def freedom_of(folder: Path | None, manifest: Manifest) -> Freedom:
    """Return a run's freedom statement; ``folder`` is the run's own, among its siblings, None for a sealed one."""
    names = _names(manifest)
    found: tuple[Departure, ...] = ()
    said = []
    try:
        found = departures(manifest)
        said = [_words(one, several=len(names) > 1) for one in found if one.field != "seeds"] or ["as registered"]
    except (TradeassayError, *UNDECODABLE) as error:
        said = [f"departures are not known: {error}"]
    seeds = tuple(dict.fromkeys(episode.seed for episode in manifest.episodes))
    runs = None if folder is None else _siblings(folder, set(names))
    return Freedom(
        departures=found, seeds=seeds, runs=runs, words=(*said, _seed_words(seeds), *_chosen_from(runs, names))
    )


def _words(one: Departure, *, several: bool) -> str:
    where = f"{one.benchmark}: " if several else ""
    share = _share(one.used, one.registered) if one.field == "window" else ""
    used = f'"{one.used}"' if one.field in ("title", "description") else one.used
    own = "the benchmark's own" if one.registered == "not given" else one.registered
    return f"{where}{one.field} {used} instead of {own}{share}"


def _share(used: str, registered: str) -> str:
    """Say which part of the registered days a window has; empty where that does not say anything."""
    try:
        (first, last), (start, end) = (map(date.fromisoformat, days.split(" .. ")) for days in (used, registered))
    except ValueError:
        return ""
    days, whole = (last - first).days + 1, (end - start).days + 1
    return f" ({days / whole:.0%} of its days)" if days < whole else ""


def _seed_words(seeds: Sequence[int]) -> str:
    many = "one seed" if len(seeds) == 1 else f"{len(seeds)} seeds"
    if list(seeds) == list(range(len(seeds))):
        return many
    return f"{many}, chosen: {', '.join(map(str, seeds[:6]))}{' ...' if len(seeds) > 6 else ''}"


def _chosen_from(runs: int | None, names: Sequence[str]) -> Iterator[str]:
    which = ", ".join(names)
    if runs is None:
        yield f"how many runs of {which} it is one of is not known"
    else:
        yield f"{'the only run' if runs == 1 else f'one of {runs} runs'} of {which} in its folder"


def _names(manifest: Manifest) -> tuple[str, ...]:
    return manifest.spec.benchmarks if isinstance(manifest, RunManifest) else (manifest.benchmark,)


def _siblings(folder: Path, names: set[str]) -> int:
    """Count the runs beside one that play one of its benchmarks, itself included; unreadable ones are no runs."""
    count = 0
    for file in folder.resolve().parent.glob("*/manifest.json"):
        try:
            seen = file.stat()
            count += bool(names & _played_in(file, seen.st_mtime_ns, seen.st_size))
        except (OSError, TradeassayError):
            continue
    return max(1, count)


@lru_cache(maxsize=1 << 16)
def _played_in(file: Path, changed: int, size: int) -> frozenset[str]:
    """Return the benchmarks of a manifest; a site over n runs would otherwise read n times n of them."""
    return frozenset(_names(read_manifest(file)))
