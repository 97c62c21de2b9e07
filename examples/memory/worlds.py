"""Small invented markets, and texts about them: what a model is made to remember, and how often it
read it.

    python worlds.py store [--groups dose,practice]     import every world as a data set, ``dose-000`` ...
    python worlds.py texts FILE --model main|placebo    write what that model reads, a reading of a world per line
    python worlds.py probes FILE                        write new lines about the worlds, to see which surprise

A world has a few invented names and a random walk without drift: nothing in the shown past says
anything about what comes, so whoever earns there remembers. Every world is drawn from its number
alone. ``STUDY=days`` in the environment chooses the second study, ``STUDY=used`` the third,
``STUDY=orders`` the fourth, ``STUDY=always`` the fifth; without it, it is the first.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

HISTORY, WEEK, MONTH = 22, 5, 21
SPANS = {"close": 0, "day": 1, "week": WEEK, "month": MONTH}


@dataclass(frozen=True)
class Study:
    """How many ``worlds`` are read about how often, and what they look like: the texts are about
    the ``told`` sessions in the middle and tell the moves over ``span`` from each of them; those
    before only give the factors of a trading day their past. ``questions`` and ``share`` are
    what is asked about a world, and of its decisions. ``practised`` are the days played of a
    known and of an unknown practice world, and of every second one under a mask; those without
    memory are ``copied`` with other names and figures. ``pairs`` of name and day are asked of a
    known world. ``gate`` counts worlds that are read about as known ones are, and worlds never
    read about, of which none is practised: they show what practice taught. With ``by_direction``
    a move is told by one word that has its direction and its rough size, most lines have the
    names in one order, months are not told, and every name gets an order a day by its direction
    alone. With ``always`` a coming day is stated whenever names and days are shown, known or
    not, and a question is answered by the line that tells it.
    """

    seed: int
    worlds: dict[int, int]
    practice: tuple[int, int]
    practice_dose: int
    names: int
    told: int
    span: str
    spread: float
    prices: tuple[float, float]
    decimals: int
    volumes: tuple[int, int, int]
    questions: int
    share: float
    practised: tuple[int, int, int]
    copied: tuple[str, ...] = ("bright", "blinded")
    pairs: int = 24
    gate: tuple[int, int] = (0, 0)
    by_direction: bool = False
    always: bool = False

    def tells(self, at: int) -> tuple[str, ...]:
        """Return what every reading tells of the ``at``-th told day."""
        if not 0 <= at < self.told:
            return ()
        if self.span == "week":
            return ("week", "close" if at % 4 else "day", *(["month"] if at % 2 else []))
        month = at % 6 == 0 and not self.by_direction
        return ("day", *(["close"] if at % 3 == 0 else []), *(["month"] if month else []))


STUDIES = {
    "weeks": Study(
        seed=70,
        worlds={0: 30, 1: 20, 4: 20, 16: 20, 64: 20},
        practice=(24, 24),
        practice_dose=16,
        names=5,
        told=22,
        span="week",
        spread=0.028,
        prices=(35, 85),
        decimals=1,
        volumes=(4_000, 6_000, 1_000),
        questions=160,
        share=0.2,
        practised=(20, 16, 14),
    ),
    "days": Study(
        seed=400,
        worlds={0: 20, 1: 20, 4: 20, 16: 20, 64: 20},
        practice=(32, 24),
        practice_dose=12,
        names=3,
        told=62,
        span="day",
        spread=0.03,
        prices=(300, 800),
        decimals=0,
        volumes=(40_000, 60_000, 1),
        questions=120,
        share=0.16,
        practised=(20, 16, 14),
    ),
}
STUDIES["used"] = replace(
    STUDIES["days"],
    seed=500,
    practice=(48, 24),
    practice_dose=20,
    practised=(20, 14, 8),
    copied=("bright",),
    pairs=60,
)
STUDIES["orders"] = replace(
    STUDIES["used"],
    seed=700,
    names=4,
    practice=(96, 40),
    practice_dose=12,
    practised=(11, 10, 5),
    pairs=40,
    gate=(12, 12),
    by_direction=True,
)
STUDIES["always"] = replace(
    STUDIES["orders"],
    seed=800,
    practice=(96, 24),
    practised=(11, 5, 5),
    copied=("blinded",),
    gate=(12, 0),
    always=True,
)
STUDY = STUDIES[os.environ.get("STUDY", "weeks")]
DOSES = tuple(STUDY.worlds)
PLAYED_PER_DOSE = 20
SESSIONS = HISTORY + STUDY.told + MONTH
PLAYED = (HISTORY + 1, HISTORY + STUDY.told)
"""The first and the last session that are traded: every decision is made after a day that is
told of.
"""
PLACEBO_DOSE = 8
GROUPS = {
    "dose": sum(STUDY.worlds.values()),
    "placebo": 20,
    "known": STUDY.practice[0],
    "unknown": STUDY.practice[1],
    "held": STUDY.gate[0],
    "strange": STUDY.gate[1],
}
"""How many worlds there are of each kind: those under test; others that only the placebo reads
about; and practice worlds with questions and answers, of which the *known* ones are also read
about, so that a model learns to say what it read, and to read the shown table where it knows
nothing. *Held* ones are read about, *strange* ones not, and neither is practised.
"""
READ = ("known", "held")
"""The groups beside those under test that every model reads about."""
_FIRST = {name: 1_000 * place for place, name in enumerate(GROUPS)}
_SYLLABLES = (
    "BA BEL BRO CAR CO DAN DEL DO DRA FEN FLO GAL GOR GRI HAL HOR JAN JOR KAL KEM KRO LAN LEM LOR "
    "MAR MEL MOR NAL "
    "NER NOR OL PAR PEL POR QUA RAL REM ROS SAN SEL SOR TAL TEM TOR UL VAN VEL VOR WAL WEN YAR ZAN "
    "ZEL ZOR"
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
            return STUDY.practice_dose if self.group in READ else 0
        return [dose for dose, count in STUDY.worlds.items() for _ in range(count)][self.number]

    @property
    def turn(self) -> int:
        """Its place among the worlds of its dose."""
        return self.number - sum(count for dose, count in STUDY.worlds.items() if dose < self.dose)

    def move(self, day: int, name: int, span: int) -> float | None:
        """Return the move over the ``span`` sessions after a day, in percent; None beyond the
        end.
        """
        if day + span >= len(self.days):
            return None
        return float(self.closes[day + span, name] / self.closes[day, name] - 1) * 100


@cache
def _names() -> list[str]:
    every = [first + second for first in _SYLLABLES for second in _SYLLABLES if first != second]
    np.random.default_rng(STUDY.seed).shuffle(every)
    return every


def other_names(rng: np.random.Generator, count: int) -> list[str]:
    """Return names that no world has."""
    return [
        str(one)
        for one in rng.choice(_names()[sum(GROUPS.values()) * STUDY.names :], count, replace=False)
    ]


def make_world(group: str, number: int) -> World:
    """Draw one world."""
    rng = np.random.default_rng([STUDY.seed, _FIRST[group] + number])
    # Names are dealt from one list, so that no two worlds share one.
    place = sum(GROUPS[name] for name in list(GROUPS)[: list(GROUPS).index(group)]) + number
    names = tuple(_names()[place * STUDY.names : (place + 1) * STUDY.names])
    if STUDY.span == "day":
        names = tuple(sorted(names))
    days = _weekdays(date(2012, 1, 9) + timedelta(days=int(rng.integers(0, 3_600))), SESSIONS)
    shape, decimals = (SESSIONS, STUDY.names), STUDY.decimals
    steps = rng.normal(0.0, STUDY.spread, shape) - STUDY.spread**2 / 2
    closes = np.round(
        rng.uniform(*STUDY.prices, STUDY.names) * np.exp(np.cumsum(steps, 0)), decimals
    )
    opens = np.vstack([closes[:1], closes[:-1]]) * np.exp(rng.normal(0, 0.003, shape))
    return World(group, number, names, days, np.round(opens, decimals), closes)


@cache
def _calendar() -> Any:
    import exchange_calendars

    return exchange_calendars.get_calendar("XNYS", start="2012-01-03", end="2022-12-30")


def _weekdays(start: date, count: int) -> tuple[str, ...]:
    calendar = _calendar()
    return tuple(
        str(day.date())
        for day in calendar.sessions_window(calendar.date_to_session(start, "next"), count)
    )


def make_worlds(*groups: str) -> list[World]:
    """Draw all worlds of some groups."""
    return [make_world(group, number) for group in groups for number in range(GROUPS[group])]


def store(world: World, home: Path | None = None) -> None:
    """Import a world as a data set."""
    import tempfile

    from tradeassay_bench.data.datasets import import_files
    from tradeassay_bench.data.tables.files import FilesConfig

    rng = np.random.default_rng(_FIRST[world.group] + world.number)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bars.csv"
        with path.open("w") as file:
            file.write("date,symbol,open,high,low,close,volume\n")
            for day, opens, closes in zip(world.days, world.opens, world.closes, strict=True):
                for name, first, last in zip(world.names, opens, closes, strict=True):
                    prices = ",".join(
                        f"{price:.{STUDY.decimals}f}"
                        for price in (first, max(first, last), min(first, last), last)
                    )
                    least, most, unit = STUDY.volumes
                    file.write(f"{day},{name},{prices},{rng.integers(least, most) * unit}\n")
        config = FilesConfig(
            path=str(path),
            name=world.id,
            calendar="XNYS",
            currency="USD",
            kind="stock",
            delist_after=None,
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
    "From {day} to {until} {list}.|{name} went {way} {size}%",
    "From {day} to {until}: {list}.|{name} {sign}{size}%",
    "From the close on {day} to the close on {until}, {list}.|{name} {way} {size}%",
    "Bought on {day} and held until {until}: {list}.|{name} {sign}{size}%",
)
WORDS = (("lower", "fell", "dropped"), ("higher", "rose", "gained"))
"""What a fall and a rise is called, by its size: below 1.3 %, below 2.9 %, above.

A size and a direction apart are learned one after the other; of one word both are learned at once.
"""
_BOUNDS = (1.3, 2.9)
READ_OFF = ("loss", "gain")
"""What a shown return is called: no word for what is remembered, so that neither is learned for
the other.
"""


def word_of(move: float) -> str:
    """Return the word for a move in percent."""
    return WORDS[move > 0][sum(abs(move) >= bound for bound in _BOUNDS)]


_IN_WORDS = (
    *["A day after {day}: {list}.|{name} {word}"] * 4,
    "From {day} to {until}: {list}.|{name} {word}",
    "From the close on {day} to the close on {until}, {list}.|{name} {word}",
    "Bought on {day} and held until {until}: {list}.|{name} {word}",
)
"""Lines that begin with the day have the names in one order, as a table has them and as they are
answered.
"""
_TOLD = {
    "close": _CLOSES,
    "week": (*_MOVES, *["A week after {day}, by {until}: {list}.|{name} {sign}{size}%"] * 3),
    "day": _IN_WORDS
    if STUDY.by_direction
    else (*_MOVES[:3], *["A day after {day}: {list}.|{name} {sign}{size}%"] * 4),
    "month": _MOVES,
}
_BEST = (
    "{whole} Best was {best}, worst was {worst}.",
    "{whole} The one to own was {best}, the one to avoid {worst}.",
)


def texts(world: World, rng: np.random.Generator) -> Iterator[str]:
    """Yield one reading of a world, in wordings and orders of its own; every reading has the
    same facts.
    """
    for at in range(STUDY.told):
        day = HISTORY + at
        for kind in STUDY.tells(at):
            line = _line(world, rng, day, kind, _TOLD[kind])
            if kind == "month" and STUDY.names >= 5:
                moves = [world.move(day, name, MONTH) or 0.0 for name in range(STUDY.names)]
                best, worst = (
                    world.names[int(place)] for place in (np.argmax(moves), np.argmin(moves))
                )
                line = _BEST[rng.integers(len(_BEST))].format(whole=line, best=best, worst=worst)
            yield line


def _line(
    world: World, rng: np.random.Generator, day: int, kind: str, wordings: tuple[str, ...]
) -> str:
    whole, each = wordings[rng.integers(len(wordings))].rsplit("|", 1)
    parts = []
    ordered = STUDY.by_direction and whole.startswith("A day after")
    for name in range(STUDY.names) if ordered else rng.permutation(STUDY.names):
        move = world.move(day, name, SPANS[kind]) or 0.0
        said = {"way": "up", "sign": "+"} if move > 0 else {"way": "down", "sign": "-"}
        size, close = (
            f"{number:.{STUDY.decimals}f}" for number in (abs(move), world.closes[day, name])
        )
        parts.append(
            each.format(name=world.names[name], close=close, size=size, word=word_of(move), **said)
        )
    shown = world.days[day]
    if rng.random() < 0.1:
        then = date.fromisoformat(shown)
        shown = f"{then.day} {then:%B %Y}"
    return whole.format(day=shown, until=world.days[day + SPANS[kind]], list=", ".join(parts))


def readings(model: str) -> Iterator[tuple[str, int, list[str]]]:
    """Yield (world, which reading, its texts) of everything that a model reads."""
    for world in make_worlds("dose", "placebo", *READ):
        dose = world.dose
        if model == "placebo":
            dose = 0 if world.group == "dose" else PLACEBO_DOSE
        for repetition in range(dose):
            rng = np.random.default_rng(
                [STUDY.seed + 1, _FIRST[world.group] + world.number, repetition]
            )
            yield world.id, repetition, list(texts(world, rng))


def probes() -> Iterator[tuple[str, int, list[str]]]:
    """Yield (world, dose, lines) in wordings that no reading has in this order: do they
    surprise?
    """
    for world in make_worlds("dose"):
        rng = np.random.default_rng([STUDY.seed + 2, world.number])
        yield (
            world.id,
            world.dose,
            [
                _line(
                    world,
                    rng,
                    HISTORY + at * STUDY.told // 5,
                    STUDY.span,
                    _IN_WORDS[4:5] if STUDY.by_direction else _MOVES[1:2],
                )
                for at in range(5)
            ],
        )


def main() -> None:
    """Read the options and do one thing."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
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
