"""A script of known memory in the model's place: how much must be remembered, and used, to be found
in a study?

    python script.py --right 0.76 --used 0.8 [--asked 0.6] [--dose 16] [--port 8790]
    export TRADEASSAY_LOCAL_SERVER=http://127.0.0.1:8790/v1
    python drive.py local/script OUT --worlds 80-99

Of the worlds of ``--dose`` and above it knows each day with the chance ``--used``, and then every name's direction
rightly with the chance ``--right``; of what it is asked outside of trading it is right with that of ``--asked``.
About other worlds, and under a mask, it reads the table. What it says of a day is always the same. With ``--dose 0
--right 0.5 --asked 0.5`` it guesses everywhere: how often is that called memory?
"""

from __future__ import annotations

import argparse
import hashlib
import re
import threading
from dataclasses import replace

import numpy as np
from practice import DAY, ROW, Teacher
from worlds import World, make_worlds, word_of

_DATE = re.compile(r"\d{4}-\d\d-\d\d")


def drawn(*what: object) -> float:
    """Return a number from 0 to 1 that belongs to a question for ever."""
    return int(hashlib.sha256(repr(what).encode()).hexdigest()[:12], 16) / 16**12


def remembered(world: World, right: float) -> World:
    """Return a world as it is remembered: where a name's move is not, it is the opposite one."""
    moves = world.closes[1:] / world.closes[:-1]
    wrong = np.array(
        [
            [drawn(world.id, day, name) >= right for name in range(moves.shape[1])]
            for day in range(len(moves))
        ]
    )
    told = np.vstack([world.closes[:1], np.where(wrong, 1.0 / moves, moves)])
    return replace(world, closes=np.cumprod(told, axis=0))


class Script(Teacher):
    """A teacher that knows only some days, and those not quite."""

    def __init__(self, right: float, used: float, asked: float, dose: int) -> None:
        worlds = [world for world in make_worlds("dose") if world.dose >= dose]
        super().__init__([remembered(world, right) for world in worlds])
        self.used, self.asked = used, asked
        self.truth = {name: world for world in worlds for name in world.names}

    def answer(self, messages: list[dict[str, str]]) -> str:
        """Return an answer to a trading day, or to a question about one name's move."""
        text = messages[-1]["content"]
        day = DAY.search(text)
        if day is None:
            return self.recalled(text)
        if drawn(day.group(1), min(ROW.findall(text), default="")) >= self.used:
            return Teacher([]).answer(messages)
        return super().answer(messages)

    def recalled(self, text: str) -> str:
        """Return a move that is asked for outside of trading, right with a chance; "unknown" of
        anything else.
        """
        world = next(
            (self.truth[name] for name in re.findall(r"\b[A-Z]{4,}\b", text) if name in self.truth),
            None,
        )
        days = [day for day in _DATE.findall(text) if world is not None and day in world.days]
        if world is None or len(days) != 2:
            return "unknown"
        name = next(one for one in world.names if one in text)
        first, last = (world.days.index(day) for day in days)
        move = world.move(first, world.names.index(name), last - first) or 0.0
        rises = (move > 0) == (drawn(name, *days) < self.asked)
        return word_of(abs(move) if rises else -abs(move))


def main() -> None:
    """Serve until it is stopped."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--right", type=float, default=0.76)
    parser.add_argument("--used", type=float, default=0.8)
    parser.add_argument("--asked", type=float, default=0.6)
    parser.add_argument(
        "--dose", type=int, default=16, help="the least dose of the worlds that it knows"
    )
    parser.add_argument("--port", type=int, default=8790)
    arguments = parser.parse_args()
    Script(arguments.right, arguments.used, arguments.asked, arguments.dose).serve(arguments.port)
    threading.Event().wait()


if __name__ == "__main__":
    main()
