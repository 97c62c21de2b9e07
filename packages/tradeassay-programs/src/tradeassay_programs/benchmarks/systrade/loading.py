"""Load a strategy's frozen semantics, Strategy Doc, reference, card and micro-scenarios.

A micro-scenario is a short list of hand-picked closes, the bars made from them, and the expected
trace.
"""

from dataclasses import replace
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
import numpy as np

from tradeassay.core.errors import UNDECODABLE, UserError
from tradeassay.core.hashing import sha256_bytes
from tradeassay.core.registry import refuse_unknown
from tradeassay_bench.account.shares import decision_list
from tradeassay_programs.code.bars import TaskBars
from tradeassay_programs.code.scores import complexity
from tradeassay_programs.code.semantics.interpreter import (
    Semantics,
    check_semantics,
    read_semantics,
    semantics_schema,
)
from tradeassay_programs.code.semantics.program import program_of
from tradeassay_programs.code.submission import (
    CARD,
    CODE,
    Scenario,
    StrategySpec,
    Submission,
    card_schema,
    write_submission,
)

_START: Final = np.datetime64("2024-01-01", "D")

Action = tuple[int, str, float, str]
"""The bar, the leg, the target share of equity, and the signal."""


class ScenarioFile(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """One scenario in its stored form.

    A bar opens at the previous close (the first at its own close), unless ``opens`` sets the price.
    High and low are ``wick`` beyond open and close. ``session`` is the number of bars per day for
    intraday scenarios. With 0 the bars are daily.
    """

    name: Annotated[str, msgspec.Meta(pattern=r"^[a-z0-9-]+$")]
    what: str
    closes: dict[str, tuple[float, ...]]
    opens: dict[str, dict[str, float]] = {}
    wick: float = 0.25
    session: int = 0
    expected: tuple[Action, ...] = ()


def read_scenarios(body: bytes, semantics: Semantics) -> tuple[Scenario, ...]:
    """Return the scenarios in a file. Raises :class:`UserError` if they do not fit the strategy."""
    try:
        stored = msgspec.json.decode(body, type=tuple[ScenarioFile, ...])
    except UNDECODABLE as error:
        raise UserError(f"the scenarios of '{semantics.id}' cannot be read: {error}") from error
    legs, signals, made = (
        semantics.inputs.legs,
        [rule.signal for rule in semantics.rules],
        list[Scenario](),
    )
    for one in stored:
        if set(one.closes) != set(legs):
            raise UserError(
                f"scenario '{one.name}' has closes of {sorted(one.closes)}, not of {sorted(legs)}"
            )
        row = np.arange(len(one.closes[legs[0]]))
        times = (_START + row).astype("M8[ns]")
        if one.session:  # The session opens at 09:30.
            days = (_START + row // one.session).astype("M8[m]")
            times = (days + 570 + 15 * (row % one.session)).astype("M8[ns]")
        feeds = {}
        for leg in legs:
            close = np.array(one.closes[leg])
            opening = np.concatenate([close[:1], close[:-1]])
            for place, price in one.opens.get(leg, {}).items():
                opening[int(place)] = price
            feeds[leg] = {
                "time": times,
                "open": opening,
                "high": np.maximum(opening, close) + one.wick,
                "low": np.minimum(opening, close) - one.wick,
                "close": close,
                "volume": np.full(row.size, 1000.0),
            }
        bars = TaskBars(feeds, "15m" if one.session else "1d", "exchange", f"scenario {one.name}")
        found = [
            (at, legs.index(leg), share, signals.index(name))
            for at, leg, share, name in one.expected
        ]
        made.append(Scenario(one.name, one.what, bars, decision_list(found)))
    return tuple(made)


STRATEGIES: Final = tuple(
    "bollinger double-ma turtle dual-thrust r-breaker spread calendar-spread index-enhancement "
    "cross-asset-momentum vol-target pairs rsi-macd".split()
)
"""The benchmark's strategies, in its order."""
SYSTB: Final = "systb-"
SYSTB_STRATEGIES: Final = tuple(f"{SYSTB}{name}" for name in STRATEGIES)
"""The same twelve strategies with the figures of the authors' public repository, in this project's
words.
"""


def load_semantics(id: str) -> Semantics:
    """Return a strategy's frozen semantics. Raises :class:`UserError` for an unknown name."""
    return load_spec(id).semantics


YEAR: Final = "year"
MINUTES: Final = 525_600
"""Number of minutes in a round-the-clock year.

In a minute version it replaces the value of a parameter called ``year``.
"""


@cache
def load_spec(id: str, *, minutes: bool = False) -> StrategySpec:
    """Return the specification against which submissions to a strategy are checked.

    With ``minutes`` it is the strategy's minute version, in which a year has the number of bars in
    its doc. Raises :class:`UserError` for unknown names.
    """
    if minutes:
        return _on_minutes(load_spec(id))
    folder = _folder(id)
    semantics = read_semantics(
        folder.joinpath("semantics.json").read_bytes(), f"{id}/semantics.json"
    )
    check_semantics(semantics)
    scenarios = read_scenarios(folder.joinpath("scenarios.json").read_bytes(), semantics)
    return StrategySpec(semantics, folder.joinpath("doc.md").read_text(encoding="utf-8"), scenarios)


def _on_minutes(spec: StrategySpec) -> StrategySpec:
    """Return the minute version of a strategy.

    If the strategy has a parameter for the year, its semantics, doc and scenarios use minutes per
    year.
    """
    frozen = spec.semantics.parameters.get(YEAR)
    if frozen is None or "1m" not in spec.semantics.inputs.timeframes:
        return spec
    parameters = {**spec.semantics.parameters, YEAR: msgspec.structs.replace(frozen, value=MINUTES)}
    doc = spec.doc.replace(f"| `{YEAR}` | {frozen.value:g} |", f"| `{YEAR}` | {MINUTES} |")
    made = StrategySpec(msgspec.structs.replace(spec.semantics, parameters=parameters), doc, ())
    # Scenarios are the same paths. Their returns are scaled down to the volatility of a minute.
    calmer = float(np.sqrt(frozen.value / MINUTES))
    scenarios = []
    for one in spec.scenarios:
        feeds = {}
        for leg, feed in one.bars.feeds.items():
            close = feed["close"]
            path = close[0] * np.cumprod(
                np.append(1.0, 1.0 + calmer * (close[1:] / close[:-1] - 1.0))
            )
            opening = np.append(path[:1], path[:-1])
            feeds[leg] = {
                **feed,
                "time": _START.astype("M8[ns]") + np.arange(close.size).astype("m8[m]"),
                "open": opening,
                "high": np.maximum(opening, path) + calmer,
                "low": np.minimum(opening, path) - calmer,
                "close": path,
            }
        bars = TaskBars(feeds, "1m", "always", one.bars.name)
        scenarios.append(replace(one, bars=bars, expected=made.frozen_decisions(bars)))
    return replace(made, scenarios=tuple(scenarios))


def load_reference(id: str, *, minutes: bool = False) -> Submission:
    """Return the reference implementation as a submission.

    Raises :class:`UserError` for an unknown name.
    """
    if minutes and (spec := load_spec(id, minutes=True)) is not load_spec(id):
        found = load_reference(id)
        daily = load_semantics(id).parameters[YEAR].value
        minute_card = msgspec.structs.replace(
            found.read_card(),
            parameters={name: one.value for name, one in spec.semantics.parameters.items()},
        )
        source = found.source.replace(f"YEAR = {daily:g}\n", f"YEAR = {MINUTES}\n")
        return msgspec.structs.replace(
            found, source=source, card=msgspec.json.encode(minute_card).decode()
        )
    folder = _folder(id)
    if id.startswith(SYSTB):
        code = program_of(load_semantics(id))
    else:
        code = folder.joinpath("reference.py.txt").read_text(encoding="utf-8")
    source = f"{bookkeeping()}\n\n{code}"
    card = folder.joinpath("card.json").read_text(encoding="utf-8")
    return Submission(source=source, card=card, name=f"reference {id}")


def bookkeeping() -> str:
    """Return the code that all references share: comparisons, windows, and a book."""
    return files(__package__).joinpath("bookkeeping.py.txt").read_text(encoding="utf-8")


def hashes(id: str) -> dict[str, str]:
    """Return the hashes that identify a strategy: canonical semantics, doc and scenarios."""
    named = {"doc": "doc.md", "scenarios": "scenarios.json"}
    found = {name: sha256_bytes((_folder(id) / file).read_bytes()) for name, file in named.items()}
    return found | {"semantics": load_spec(id).semantics.sha256}


def _folder(id: str) -> Traversable:
    refuse_unknown(id, (*STRATEGIES, *SYSTB_STRATEGIES), f"no strategy '{id}'")
    return files(__package__).joinpath("strategies", id.replace("-", "_"))


class StrategyLine(msgspec.Struct, frozen=True, kw_only=True):
    """One strategy in a list. ``sha256`` is the hash of its frozen semantics."""

    id: str
    title: str
    legs: str
    timeframes: str
    complexity: float
    sha256: str


def strategy_lines() -> tuple[StrategyLine, ...]:
    """Return all strategies: this project's, then the public repository's."""
    return tuple(
        StrategyLine(
            id=frozen.id,
            title=frozen.title,
            legs=", ".join(frozen.inputs.legs),
            timeframes=", ".join(frozen.inputs.timeframes),
            complexity=complexity(frozen),
            sha256=frozen.sha256,
        )
        for frozen in map(load_semantics, (*STRATEGIES, *SYSTB_STRATEGIES))
    )


def strategy_text(name: str, *, semantics: bool) -> str:
    """Return a strategy's doc or its frozen semantics.

    Raises :class:`UserError` for an unknown name.
    """
    spec = load_spec(name)
    if semantics:
        return msgspec.json.format(spec.semantics.canonical, indent=2).decode()
    return spec.doc.strip()


def write_reference(name: str, folder: Path) -> None:
    """Write the reference submission into a folder.

    Raises :class:`UserError` if a file already exists.
    """
    reference = load_reference(name)
    for file in (CODE, CARD):
        if (folder / file).exists():
            raise UserError(f"{folder / file} already exists", hint="name an empty folder")
    write_submission(reference, folder)


def schema_text(what: Literal["card", "semantics"]) -> str:
    schema = card_schema() if what == "card" else semantics_schema()
    return msgspec.json.format(schema, indent=2).decode()
