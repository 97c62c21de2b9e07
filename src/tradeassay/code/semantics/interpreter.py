"""Run frozen semantics bar by bar: slow, obvious, and the authority that everything fast is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tradeassay.account.shares import DecisionList, decision_list
from tradeassay.code.semantics.expression import FIELDS, BarCalendar, calendar_of, evaluate, is_pointwise, names_in
from tradeassay.code.semantics.model import Semantics, StrategyRule
from tradeassay.core.errors import UserError
from tradeassay.core.view import Floats

Columns = Mapping[str, Floats]
SPECIAL = ("session_first", "session_last", "row")


def check_semantics(semantics: Semantics) -> None:
    """Raise :class:`UserError` for an unknown name, a circular indicator, or a window inside a rule."""
    known = set(semantics.parameters) | set(SPECIAL)
    known |= {f"{leg}.{field}" for leg in semantics.inputs.legs for field in FIELDS}
    for name in ordered(semantics):
        _need(names_in(semantics.indicators[name]), known, f"indicator '{name}'")
        known.add(name)
    known |= set(semantics.registers) | {f"held_{leg}" for leg in semantics.inputs.legs}
    for rule in semantics.rules:
        for text in (rule.when, *rule.target.values(), *rule.set.values()):
            _need(names_in(text), known, f"rule '{rule.id}'")
            if not is_pointwise(text):
                raise UserError(f"rule '{rule.id}' uses a window in '{text}'", hint="make it an indicator")


def interpret(
    semantics: Semantics,
    feeds: Mapping[str, Columns],
    times: NDArray[Any],
    *,
    parameters: Mapping[str, float] | None = None,
) -> DecisionList:
    """Return the decisions of a strategy over bars. ``feeds`` maps each leg to its columns.

    ``parameters`` replaces values. A rule that uses an undefined value does not fire, unless it asks ``isnan``.
    """
    calendar = calendar_of(times)
    series = indicators(semantics, feeds, calendar, parameters)
    fixed = {**{n: p.value for n, p in semantics.parameters.items()}, **(parameters or {})}
    registers = dict(semantics.registers)
    held = {f"held_{leg}": 0.0 for leg in semantics.inputs.legs}
    state = semantics.states[0]
    found: list[tuple[int, int, float, int]] = []
    for row in range(len(times)):
        now = {name: float(values[row]) for name, values in series.items()}
        now.update(fixed, **registers, **held)
        place, rule = _firing(semantics, state, now)
        if rule is None:
            continue
        for leg, text in rule.target.items():
            wanted = float(evaluate(text, now))
            if np.isnan(wanted):
                raise UserError(f"rule '{rule.id}' of '{semantics.id}' aims at nothing in bar {row}")
            if wanted != held[f"held_{leg}"]:
                found.append((row, semantics.inputs.legs.index(leg), wanted, place))
                held[f"held_{leg}"] = wanted
        registers |= {name: float(evaluate(text, now)) for name, text in rule.set.items()}
        state = rule.to
    return decision_list(found)


def indicators(
    semantics: Semantics,
    feeds: Mapping[str, Columns],
    calendar: BarCalendar,
    parameters: Mapping[str, float] | None = None,
) -> dict[str, Floats]:
    """Return every series a rule may read: legs' fields, session marks and indicators, one value per bar."""
    n = calendar.session.size
    values: dict[str, Floats | float] = {name: p.value for name, p in semantics.parameters.items()}
    values.update(parameters or {})
    series: dict[str, Floats] = {}
    for leg in semantics.inputs.legs:
        for field in FIELDS:
            series[f"{leg}.{field}"] = np.asarray(feeds[leg][field], dtype=np.float64)
    series["session_first"] = calendar.first
    series["session_last"] = calendar.last
    series["row"] = np.arange(n, dtype=np.float64)
    values.update(series)
    for name in ordered(semantics):
        made = np.broadcast_to(evaluate(semantics.indicators[name], values, calendar), (n,))
        series[name] = values[name] = np.asarray(made, dtype=np.float64)
    return series


def _firing(semantics: Semantics, state: str, now: Mapping[str, float]) -> tuple[int, StrategyRule | None]:
    for place, rule in enumerate(semantics.rules):
        if state in rule.given and float(evaluate(rule.when, now)):
            return place, rule
    return -1, None


def ordered(semantics: Semantics) -> list[str]:
    """Return indicators so that each comes after those it uses; raises :class:`UserError` on a cycle."""
    uses = {name: names_in(text) & set(semantics.indicators) for name, text in semantics.indicators.items()}
    done: list[str] = []
    while len(done) < len(uses):
        ready = [name for name in uses if name not in done and uses[name] <= set(done)]
        if not ready:
            raise UserError(f"the indicators of '{semantics.id}' use each other in a circle")
        done += ready
    return done


def _need(used: frozenset[str], known: set[str], where: str) -> None:
    missing = sorted(used - known)
    if missing:
        raise UserError(f"{where} names '{missing[0]}', which is not defined")
