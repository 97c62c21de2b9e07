"""Generate unlimited tasks.

A family draws parameters, exits, filters, sizing, timeframe and wording. Words, reference and
decoys are made from one drawn specification, so that the words describe the reference. The entries
are data (``families.toml``). Exits, filters and sizes are shared by all families and are defined
here. A task's id (``gen-FAMILY-SEED-NUMBER``) determines the draw: the same id is the same task
everywhere.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import chain
from typing import Final, Literal

import msgspec
import numpy as np

from tradeassay.core.arguments import whole_number
from tradeassay.core.errors import UserError
from tradeassay.core.registry import did_you_mean
from tradeassay_bench.core.run_secret import seed_from
from tradeassay_programs.code.bars import MARKETS
from tradeassay_programs.code.task import (
    CodeTask,
    Decoy,
    DecoyKind,
    Difficulty,
    Expectations,
    Family,
    Sizing,
    Timeframe,
)

Split = Literal["train", "validation", "test"]
SPLITS: Final[tuple[Split, ...]] = ("train", "validation", "test")
BARS: Final = 400
"""Number of bars of a generated task.

Most rules trade ten times in it, and a training step can judge hundreds of programs.
"""
_ID: Final = re.compile(r"gen-(?P<family>[a-z0-9-]+)-(?P<seed>\d{1,9})-(?P<number>\d{1,9})")
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
_BARS: Final = {
    "1d": "daily",
    "1h": "hourly",
    "30m": "30-minute",
    "15m": "15-minute",
    "5m": "5-minute",
}


class FamilySpec(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The entry of a family, and its usual exit.

    ``numbers`` have a lowest and a highest value and a step (1 by default). ``ready`` is computed
    at the start of ``next``. ``gaps`` means that the family needs a market that closes.
    """

    kind: Family
    title: str
    split: Split = "train"
    numbers: dict[str, list[float]]
    mirror: dict[str, float] = {}
    timeframes: tuple[Timeframe, ...] = ("1d", "1h", "30m", "15m")
    assets: int = 1
    gaps: bool = False
    says: str
    init: tuple[str, ...]
    ready: tuple[str, ...] = ()
    when: str
    formal: str
    chat: str
    out: str = ""
    out_formal: str = ""
    out_chat: str = ""


class Rule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An exit or a filter: its numbers, its code, and its words in both wordings.

    ``enter`` runs with the entry order, and ``held`` on every bar with a position.
    """

    numbers: dict[str, list[float]] = {}
    init: tuple[str, ...] = ()
    enter: str = ""
    held: str = ""
    when: str
    formal: str
    chat: str


SizeKind = Literal["percent", "fixed", "own"]
_SIZES: Final[tuple[SizeKind, ...]] = ("percent", "percent", "fixed", "own")
_MARKETS: Final = ("us", "us", "range", "trend", "volatile", "crypto")


class Grammar(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The parts from which tasks are drawn.

    - ``pairs`` are words for tasks that buy and for tasks that sell short.
    - ``leaving`` are combinations of exits. ``own`` is the family's exit.
    - ``formal`` and ``chat`` are the templates of the wordings.
    """

    pairs: dict[str, tuple[str, str]]
    leaving: tuple[tuple[str, ...], ...]
    formal: tuple[str, ...]
    chat: tuple[str, ...]
    exits: dict[str, Rule]
    filters: dict[str, Rule]
    families: dict[str, FamilySpec]


@cache
def grammar() -> Grammar:
    return msgspec.toml.decode((files(__package__) / "families.toml").read_bytes(), type=Grammar)


def families() -> Mapping[str, FamilySpec]:
    return grammar().families


def families_of(name: str) -> tuple[str, ...]:
    """Return the families of a name: a family, ``all``, or a split.

    Raises UserError for other names.
    """
    known = families()
    if name in known:
        return (name,)
    found = tuple(one for one, spec in known.items() if name in ("all", spec.split))
    if not found:
        hint = did_you_mean(
            name, [*known, *SPLITS, "all"], f"a split ({', '.join(SPLITS)}), all, or a family"
        )
        raise UserError(f"there is no family '{name}' for drawing tasks", hint=hint)
    return found


def draw_tasks(family: str, count: int, seed: int = 0, *, start: int = 0) -> tuple[CodeTask, ...]:
    """Return ``count`` tasks of a family, or of a split or ``all`` with its families in turn.

    The same arguments give the same tasks. ``start`` skips that number of tasks, so that a training
    loop can continue. Raises UserError for an unknown family and for numbers below zero.
    """
    names = families_of(family)
    numbers = (("count", count), ("start", start), ("seed", seed))
    count, start, seed = (whole_number(name, given) for name, given in numbers)
    if seed >= 10**9 or start + count >= 10**9:
        raise UserError(
            "counts and seeds are whole numbers from 0 to 999,999,999", hint="count=10, seed=1"
        )
    places = range(start, start + count)
    return tuple(_drawn(names[place % len(names)], seed, place // len(names)) for place in places)


def generated_task(task_id: str) -> CodeTask | None:
    """Return the task of a generated id, or None for every other id.

    Raises UserError for an unknown family in the id.
    """
    read = _ID.fullmatch(task_id)
    if read is None:
        return None
    (name,) = families_of(read["family"])
    return _drawn(name, int(read["seed"]), int(read["number"]))


class _Draw:
    """One drawn specification.

    Its numbers depend on the side. A decoy changes a part and writes again.
    """

    def __init__(self, name: str, seed: int, number: int) -> None:
        spec = families()[name]
        self.spec = spec
        random = np.random.default_rng(seed_from("quantcode family", name, seed, number))
        self.random = random
        self.short = bool(random.random() < 0.3)
        ways = [way for way in grammar().leaving if spec.out or "own" not in way]
        self.exits = ways[int(random.integers(len(ways)))]
        # A rule that buys weakness would wait long for a strong bar.
        suit = ("volume",) if spec.kind == "mean-reversion" else ("trend", "volume", "candle")
        self.filter = suit[int(random.integers(len(suit)))] if random.random() < 0.3 else ""
        self.timeframe = spec.timeframes[int(random.integers(len(spec.timeframes)))]
        self.numbers = {name: _number(random, bounds) for name, bounds in spec.numbers.items()}
        for rule in self.rules:
            # Prices move less on shorter bars, so percentages are scaled down.
            scale = 1.0 if self.timeframe == "1d" else 0.4
            for number_name, bounds in rule.numbers.items():
                part = [
                    bound * (scale if len(bounds) == 3 and bounds[2] < 1 else 1.0)
                    for bound in bounds
                ]
                self.numbers[number_name] = _number(random, part)
        self.market = _MARKETS[int(random.integers(len(_MARKETS)))]
        if spec.gaps and MARKETS[self.market].clock == "always":
            self.market = _MARKETS[0]
        kind: SizeKind = _SIZES[int(random.integers(len(_SIZES)))]
        value = (
            5 * int(random.integers(8, 20)) if kind == "percent" else int(random.integers(1, 10))
        )
        self.sizing = (kind, value)

    @property
    def rules(self) -> list[Rule]:
        found = [grammar().exits[name] for name in self.exits if name != "own"]
        return found + ([grammar().filters[self.filter]] if self.filter else [])

    def words(self) -> dict[str, str]:
        """Return the values of all placeholders in texts and programs."""
        side = int(self.short)
        found = {name: pair[side] for name, pair in grammar().pairs.items()}
        for name, value in self.numbers.items():
            total = self.spec.mirror.get(name)
            shown = value if total is None or not self.short else total - value
            found[name], found[f"{name}_"] = f"{shown:g}", f"{round(shown / 100, 8):g}"
        if self.spec.kind == "calendar" and "day" in self.numbers:
            found["day_name"] = _DAYS[int(self.numbers["day"]) % len(_DAYS)]
        return found

    def program(self) -> str:
        """Return the reference: the drawn specification as a Backtrader program."""
        spec, rules = self.spec, self.rules
        init = [*spec.init, *chain.from_iterable(rule.init for rule in rules)]
        when = (
            f"{spec.when} and {grammar().filters[self.filter].when}" if self.filter else spec.when
        )
        enter = [rule.enter for rule in rules if rule.enter]
        held = [rule.held for rule in rules if rule.held]
        leaving = [spec.out if one == "own" else grammar().exits[one].when for one in self.exits]
        if len(leaving) > 1:
            leaving = [f"({one})" if " and " in one else one for one in leaving]
        leave = " or ".join(leaving)
        kind, value = self.sizing
        order = f"self.{{buy}}({f'size={value}' if kind == 'own' else ''})"
        lines = [
            "import backtrader as bt\n\n",
            "class Generated(bt.Strategy):",
            "    def __init__(self):",
            *(f"        {line}" for line in init or ["pass"]),
            "",
            "    def next(self):",
            *(f"        {line}" for line in spec.ready),
            "        if not self.position:",
            f"            if {when}:",
            *(f"                {line}" for line in [*enter, order]),
            "        else:" if held else f"        elif {leave}:",
            *(
                [f"            {line}" for line in held] + [f"            if {leave}:"]
                if held
                else []
            ),
            f"            {'    ' if held else ''}self.close()",
        ]
        return "\n".join(lines).format(**self.words()) + "\n"

    def text(self, chat: bool) -> str:
        spec, kind = self.spec, "chat" if chat else "formal"
        when = getattr(spec, kind)
        if self.filter:
            when = f"{when}, and {getattr(grammar().filters[self.filter], kind)}"
        leaving = [
            getattr(spec, f"out_{kind}") if one == "own" else getattr(grammar().exits[one], kind)
            for one in self.exits
        ]
        exits = f"{', or '.join(leaving)}{' (whichever comes first)' if len(leaving) > 1 else ''}"
        shapes: tuple[str, ...] = getattr(grammar(), kind)
        how, value = self.sizing
        units = f"{value} unit{'s' if value > 1 else ''}"
        sized = {
            "percent": (
                f"Give no size: the broker's sizer puts {value} % of the cash into each entry.",
                f"Don't work out a size, {value} percent of my cash goes into each entry by "
                "itself.",
            ),
            "fixed": (
                f"Give no size: the broker's sizer trades {units}.",
                f"Leave the size out, it's set to {units}.",
            ),
            "own": (
                f"Every entry order is for exactly {units} (name the size).",
                f"Always {units}; please put that size into the order.",
            ),
        }[how][chat]
        bars, words = _BARS[self.timeframe], self.words()
        shape = shapes[int(self.random.integers(len(shapes)))]
        assets = "one asset" if spec.assets == 1 else f"{spec.assets} assets, A and B"
        long = words["long"].capitalize()
        outer = {
            "bars": bars,
            "Bars": bars.capitalize(),
            "assets": assets,
            "says": spec.says,
            "when": when,
        }
        outer |= {
            "exits": exits,
            "size": sized,
            "Long": long,
            "only": f"{long} only, one position at a time.",
        }
        # Format twice, because inserted parts contain placeholders too.
        return shape.format(**{**words, **outer}).format(**words)


def _number(random: np.random.Generator, bounds: Sequence[float]) -> float:
    low, high, step = (*bounds, 1.0)[:3]
    return round(float(low + step * int(random.integers(round((high - low) / step) + 1))), 6)


def _drawn(name: str, seed: int, number: int) -> CodeTask:
    draw = _Draw(name, seed, number)
    spec = draw.spec
    # The texts are drawn before a decoy changes any part.
    formal, chat, reference = draw.text(False), draw.text(True), draw.program()
    kind, value = draw.sizing
    difficulties: tuple[Difficulty, ...] = ("easy", "medium", "hard")
    return CodeTask(
        id=f"gen-{name}-{seed}-{number}",
        title=spec.title,
        difficulty=difficulties[len(draw.exits) - 1 + bool(draw.filter)],
        timeframe=draw.timeframe,
        family=spec.kind,
        source="generated",
        formal=formal,
        conversational=chat,
        market=draw.market,
        assets=spec.assets,
        bars=BARS,
        sizing=Sizing(kind=kind, value=float(value)) if kind != "own" else Sizing(kind="own"),
        expect=Expectations(direction="short" if draw.short else "long", max_open_positions=1),
        reference=reference,
        decoys=tuple(_decoys(draw)),
    )


_TEMPLATE: Final = """import backtrader as bt


class Template(bt.Strategy):
    def __init__(self):
        self.average = bt.indicators.SMA(self.data.close, period=3)

    def next(self):
        if not self.position:
            if self.data.close[0] > self.average[0]:
                self.buy()
        elif self.data.close[0] < self.average[0]:
            self.close()
"""


def _decoys(draw: _Draw) -> Iterator[Decoy]:
    """Yield programs that must be rejected.

    They have another side, other numbers, another exit or size, or are a template.
    """

    def wrong(name: str, kind: DecoyKind, source: str) -> Decoy:
        return Decoy(name=name, kind=kind, fails_at="judge", source=source)

    draw.short = not draw.short
    yield wrong("other-side", "wrong-direction", draw.program())
    draw.short = not draw.short
    numbers, exits, sizing = draw.numbers, draw.exits, draw.sizing
    own = draw.spec.numbers
    # For every number, take the more distant end of its range.
    far = {
        name: max(own[name][:2], key=lambda end: abs(end - numbers[name]))
        for name in numbers
        if name in own
    }
    if far:
        draw.numbers = {**numbers, **far}
        yield wrong("other-numbers", "wrong-parameter", draw.program())
        draw.numbers = numbers
    draw.numbers = {**numbers, "hold": 1.0 if "bars" in exits else 25.0}
    draw.exits = ("bars",)
    yield wrong("other-exit", "wrong-exit", draw.program())
    draw.numbers, draw.exits = numbers, exits
    draw.sizing = ("own", 3 * int(sizing[1]) if sizing[0] != "percent" else 1)
    yield wrong("other-size", "wrong-sizing", draw.program())
    draw.sizing = sizing
    yield wrong("template", "template", _TEMPLATE)
