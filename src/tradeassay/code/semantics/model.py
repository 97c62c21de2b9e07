"""A strategy's frozen meaning: parameters, indicators, registers and rules, as one JSON document.

The document is the authority. The Strategy Doc explains it, the reference implements it, the compiled kernel makes
it fast; all of them are tested against it.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from tradeassay.core.dialogue import schema_of_type
from tradeassay.core.errors import UNDECODABLE, UserError
from tradeassay.core.hashing import canonical_json, sha256_bytes

Name = Annotated[str, msgspec.Meta(pattern=r"^[A-Za-z][A-Za-z0-9_]*$", max_length=40)]
Expression = Annotated[str, msgspec.Meta(min_length=1, max_length=400)]


class StrategyParameter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A number of the strategy. A submission's card may differ from it by ``tolerance`` at most."""

    value: float
    kind: Literal["int", "float"]
    tolerance: Annotated[float, msgspec.Meta(ge=0)] = 0.0
    meaning: str = ""


class Inputs(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The legs it trades or watches, by name, and the bars it is made for. ``watched`` legs are never traded."""

    legs: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1, max_length=8)]
    timeframes: tuple[Literal["1d", "1m"], ...]
    watched: tuple[Name, ...] = ()


class StrategyRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """In one of the ``given`` states and when ``when`` holds: go to ``to``, set registers, aim at targets.

    ``target`` maps a leg to the exposure wanted, as a share of net equity; a leg that is not named keeps what it
    has. Registers are set from their old values.
    """

    id: str
    given: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1)] = msgspec.field(name="from")
    when: Expression
    to: Name
    signal: str
    target: dict[Name, Expression] = {}
    set: dict[Name, Expression] = {}


class StrategyConstraints(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What may never happen: gross exposure, trades a bar, an open position at a session's end."""

    max_exposure: float
    max_trades_per_bar: int
    flat_overnight: bool = False
    short_allowed: bool = True


class Conventions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The pins that prose usually leaves open. None where the strategy does not use the thing."""

    std_ddof: int | None = None
    ema_seed: str | None = None
    wilder: str | None = None
    channel_includes_current_bar: bool | None = None
    reversal: str = ""
    zero_variance: str | None = None
    ties: str = "numbers nearer than 1e-9 of the larger plus 1e-10 are equal"
    warm_up: str = "no rule fires while an indicator it uses is undefined"


class Semantics(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole meaning of a strategy."""

    id: str
    version: int
    title: str
    inputs: Inputs
    parameters: dict[Name, StrategyParameter]
    indicators: dict[Name, Expression]
    states: Annotated[tuple[Name, ...], msgspec.Meta(min_length=1)]
    registers: dict[Name, float] = {}
    rules: Annotated[tuple[StrategyRule, ...], msgspec.Meta(min_length=1)]
    constraints: StrategyConstraints
    conventions: Conventions
    sizing: Literal["equity-fraction"] = "equity-fraction"
    fill: Literal["signal-bar-close"] = "signal-bar-close"

    @property
    def sha256(self) -> str:
        return sha256_bytes(self.canonical)

    @property
    def canonical(self) -> bytes:
        return canonical_json(self)


def read_semantics(body: bytes, where: str = "semantics.json") -> Semantics:
    """Return the semantics in a JSON document; raises :class:`UserError` naming the place that is wrong."""
    try:
        found = msgspec.json.decode(body, type=Semantics)
    except (ValueError, *UNDECODABLE) as error:
        raise UserError(
            f"{where}: {error}", hint="compare it with the schema (tradeassay code strategies --schema semantics)"
        ) from error
    legs = set(found.inputs.legs)
    states = set(found.states)
    for rule in found.rules:
        strange = (set(rule.given) | {rule.to}) - states
        if strange:
            raise UserError(f"{where}: rule '{rule.id}' names the state '{min(strange)}', which is not listed")
        if set(rule.target) - legs:
            raise UserError(f"{where}: rule '{rule.id}' aims at a leg that is not among the inputs")
        if set(rule.target) & set(found.inputs.watched):
            raise UserError(f"{where}: rule '{rule.id}' trades a leg that may only be watched")
        if set(rule.set) - set(found.registers):
            raise UserError(f"{where}: rule '{rule.id}' sets a register that is not declared")
    groups = (found.parameters, found.indicators, found.registers, dict.fromkeys(legs))
    names = [name for group in groups for name in group]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise UserError(f"{where}: the name '{min(twice)}' means two things")
    if len({rule.id for rule in found.rules}) != len(found.rules):
        raise UserError(f"{where}: two rules have one id")
    return found


def semantics_schema() -> bytes:
    return canonical_json(schema_of_type(Semantics))
