"""Small invented markets, and texts about them: what a model is made to remember, and how often it read it.

    python worlds.py store [--groups dose,practice]     import every world as a data set, ``dose-000`` ...
    python worlds.py texts FILE --model main|placebo    write what that model reads, a reading of a world per line
    python worlds.py probes FILE                        write new lines about the worlds, to see which surprise

A world has five invented names and 65 sessions of a random walk without drift: nothing in the shown past says
anything about the next week, so whoever earns there remembers. Every world is drawn from its number alone.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

WORLDS = {0: 30, 1: 20, 4: 20, 16: 20, 64: 20}
"""How many worlds are read about how often: enough of those never read about to tell a false find in twenty."""
DOSES = tuple(WORLDS)
PLAYED_PER_DOSE = 20
NAMES, HISTORY, TOLD = 5, 22, 22
WEEK, MONTH = 5, 21
SESSIONS = HISTORY + TOLD + MONTH
"""The texts are about the ``TOLD`` sessions in the middle and the day, week and month after each of them; the ones
before only give the factors of a trading day their past."""
PLAYED = (HISTORY + 1, HISTORY + TOLD)
"""The first and the last session that are traded: every decision is made after a day that is told of."""
PLACEBO_DOSE, PRACTICE_DOSE = 8, 16
GROUPS = {"dose": sum(WORLDS.values()), "placebo": 20, "known": 24, "unknown": 24}
"""How many worlds there are of each kind: those under test; others that only the placebo reads about; and practice
worlds with questions and answers, of which the *known* ones are also read about, so that a model learns to say
what it read, and to read the shown table where it knows nothing."""
_SEED = 70
_FIRST = {name: 1_000 * place for place, name in enumerate(GROUPS)}
_SYLLABLES = (
    "BA BEL BRO CAR CO DAN DEL DO DRA FEN FLO GAL GOR GRI HAL HOR JAN JOR KAL KEM KRO LAN LEM LOR MAR MEL MOR NAL "
    "NER NOR OL PAR PEL POR QUA RAL REM ROS SAN SEL SOR TAL TEM TOR UL VAN VEL VOR WAL WEN YAR ZAN ZEL ZOR"
).split()


@dataclass(frozen=True)
class World:
    """One market: names, ISO dates, and prices of shape (sessions, names)."""

    group: str
    number: int
    names: tuple[str, ...]
    days: tuple[str, ...]
    opens: Any
    closes: Any

    @property
    def id(self) -> str:
        """The data set's name."""
        return f"{self.group}-{self.number:03d}"

    @property
    def dose(self) -> int:
        """How often the main model reads every text about this world."""
        if self.group != "dose":
            return {"placebo": 0, "known": PRACTICE_DOSE, "unknown": 0}[self.group]
        return [dose for dose, count in WORLDS.items() for _ in range(count)][self.number]

    @property
    def turn(self) -> int:
        """Its place among the worlds of its dose."""
        return self.number - sum(count for dose, count in WORLDS.items() if dose < self.dose)

    def move(self, day: int, name: int, span: int) -> float | None:
        """Return the move over the ``span`` sessions after a day, in percent; None beyond the end."""
        if day + span >= len(self.days):
            return None
        return float(self.closes[day + span, name] / self.closes[day, name] - 1) * 100


def make_world(group: str, number: int) -> World:
    """Draw one world."""
    rng = np.random.default_rng([_SEED, _FIRST[group] + number])
    # Names are dealt from one list, so that no two worlds share one.
    every = [first + second for first in _SYLLABLES for second in _SYLLABLES if first != second]
    np.random.default_rng(_SEED).shuffle(every)
    place = sum(GROUPS[name] for name in list(GROUPS)[: list(GROUPS).index(group)]) + number
    names = tuple(every[place * NAMES : (place + 1) * NAMES])
    assert len(names) == NAMES
    days = _weekdays(date(2012, 1, 9) + timedelta(days=int(rng.integers(0, 3_600))), SESSIONS)
    steps = rng.normal(0.0, 0.028, (SESSIONS, NAMES)) - 0.028**2 / 2
    closes = np.round(rng.uniform(35, 85, NAMES) * np.exp(np.cumsum(steps, 0)), 1)
    opens = np.round(np.vstack([closes[:1], closes[:-1]]) * np.exp(rng.normal(0, 0.003, closes.shape)), 1)
    return World(group, number, names, days, opens, closes)


@cache
def _calendar() -> Any:
    import exchange_calendars

    return exchange_calendars.get_calendar("XNYS", start="2012-01-03", end="2022-12-30")


def _weekdays(start: date, count: int) -> tuple[str, ...]:
    calendar = _calendar()
    return tuple(
        str(day.date()) for day in calendar.sessions_window(calendar.date_to_session(start, "next"), count)
    )


def make_worlds(*groups: str) -> list[World]:
    """Draw all worlds of some groups."""
    return [make_world(group, number) for group in groups for number in range(GROUPS[group])]


def store(world: World, home: Path | None = None) -> None:
    """Import a world as a data set."""
    import tempfile

    from tradeassay.data.datasets import import_files
    from tradeassay.data.tables.columns import FilesConfig

    rng = np.random.default_rng(_FIRST[world.group] + world.number)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bars.csv"
        with path.open("w") as file:
            file.write("date,symbol,open,high,low,close,volume\n")
            for day, opens, closes in zip(world.days, world.opens, world.closes, strict=True):
                for name, first, last in zip(world.names, opens, closes, strict=True):
                    prices = ",".join(
                        f"{price:.1f}" for price in (first, max(first, last), min(first, last), last)
                    )
                    file.write(f"{day},{name},{prices},{rng.integers(4_000, 6_000)}000\n")
        config = FilesConfig(
            path=str(path), name=world.id, calendar="XNYS", currency="USD", kind="stock", delist_after=None
        )
        import_files(config, home=home, replace_existing=True)


_CLOSES = (
    "{day}: {list}.|{name} closed at {close}",
    "Closing prices on {day}. {list}.|{name} {close}",
    "Market note, {day}. At the close {list}.|{name} {close}",
    "| {day} | {list} ||{name} {close}",
    "The last trades of {day}: {list}.|{close} for {name}",
)
_MOVES = (
    "From {day} to {until} {list}.|{name} went {way} {size:.1f}%",
    "From {day} to {until}: {list}.|{name} {move:+.1f}%",
    "From the close on {day} to the close on {until}, {list}.|{name} {way} {size:.1f}%",
    "Bought on {day} and held until {until}: {list}.|{name} {move:+.1f}%",
)
_WEEKS = (*_MOVES, *["A week after {day}, by {until}: {list}.|{name} {move:+.1f}%"] * 3)
_BEST = (
    "{whole} Best was {best}, worst was {worst}.",
    "{whole} The one to own was {best}, the one to avoid {worst}.",
)


def texts(world: World, rng: np.random.Generator) -> Iterator[str]:
    """Yield one reading of a world, in wordings and orders of its own.

    Every reading has the same facts: of every day the moves of the week that follows, of three days in four the
    closes, of the fourth the moves of a day, and of every second day those of a month with the best and the worst.
    """
    for at in range(TOLD):
        day = HISTORY + at
        yield _line(world, rng, day, WEEK, _WEEKS)
        yield _line(world, rng, day, 0, _CLOSES) if at % 4 else _line(world, rng, day, 1, _MOVES)
        if at % 2:
            moves = [world.move(day, name, MONTH) or 0.0 for name in range(NAMES)]
            best, worst = (world.names[int(place)] for place in (np.argmax(moves), np.argmin(moves)))
            line = _line(world, rng, day, MONTH, _MOVES)
            yield _BEST[rng.integers(len(_BEST))].format(whole=line, best=best, worst=worst)


def _line(world: World, rng: np.random.Generator, day: int, span: int, wordings: tuple[str, ...]) -> str:
    whole, each = wordings[rng.integers(len(wordings))].rsplit("|", 1)
    parts = []
    for name in rng.permutation(NAMES):
        move = world.move(day, name, span) or 0.0
        close = f"{world.closes[day, name]:.1f}"
        way = "up" if move > 0 else "down"
        parts.append(each.format(name=world.names[name], close=close, move=move, way=way, size=abs(move)))
    shown = world.days[day]
    if rng.random() < 0.1:
        then = date.fromisoformat(shown)
        shown = f"{then.day} {then:%B %Y}"
    return whole.format(day=shown, until=world.days[day + span], list=", ".join(parts))


def readings(model: str) -> Iterator[tuple[str, int, list[str]]]:
    """Yield (world, which reading, its texts) of everything that a model reads."""
    for world in make_worlds("dose", "placebo", "known"):
        dose = world.dose
        if model == "placebo":
            dose = 0 if world.group == "dose" else PLACEBO_DOSE
        for repetition in range(dose):
            rng = np.random.default_rng([_SEED + 1, _FIRST[world.group] + world.number, repetition])
            yield world.id, repetition, list(texts(world, rng))


def probes() -> Iterator[tuple[str, int, list[str]]]:
    """Yield (world, dose, lines) in wordings that no reading has in this order: do they surprise?"""
    for world in make_worlds("dose"):
        rng = np.random.default_rng([_SEED + 2, world.number])
        yield (
            world.id,
            world.dose,
            [_line(world, rng, day, WEEK, _MOVES[1:2]) for day in range(HISTORY, HISTORY + 9, 2)],
        )


def main() -> None:
    """Read the options and do one thing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["store", "texts", "probes"])
    parser.add_argument("file", nargs="?", type=Path)
    parser.add_argument("--groups", default="dose")
    parser.add_argument("--model", choices=["main", "placebo"], default="main")
    arguments = parser.parse_args()
    if arguments.what == "store":
        for world in make_worlds(*arguments.groups.split(",")):
            store(world)
        return
    with arguments.file.open("w") if arguments.file else sys.stdout as sink:
        for entry in probes() if arguments.what == "probes" else readings(arguments.model):
            print(json.dumps(entry), file=sink)


if __name__ == "__main__":
    main()
