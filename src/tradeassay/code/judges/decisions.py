"""How far two runs on the same bars decide the same, and the verdicts of both judges.

Fills of one asset on one bar are netted into *events*. Two match when asset, kind, direction and bar are the same
and so is what was decided: for an entry its size in units or as a share of the account (whichever is nearer), for
an exit the share of the position that it ends. So accounts that drifted apart by one trade do not make every later
trade wrong. Nor does rounding to whole units, as long as that is the exception (a quarter of the entries): a size
that is always one unit more is another size.

The beginning is tolerated, because programs may differ in how many bars an indicator needs: events without a
partner are forgiven up to a twentieth of the bars after the reference's first fill, and until both hold the same,
at most a quarter of the bars.

``value`` is the F1 score of what remains. A market is passed when it reaches the threshold or when no more than
``strays`` events have no partner: one decision that hangs on the last bit of a float must not decide.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, Literal

import msgspec
import numpy as np
from scipy.optimize import linear_sum_assignment

from tradeassay.code.backtrader import Backtest
from tradeassay.code.bars import TaskBars
from tradeassay.core.dialogue import Usage
from tradeassay.core.view import Floats

CriterionName = Literal["indicators", "logic", "relevance"]
CRITERIA: tuple[CriterionName, ...] = ("indicators", "logic", "relevance")
JudgeStatus = Literal["passed", "failed", "not_scored"]


class Criterion(msgspec.Struct, frozen=True, kw_only=True):
    """One question to the language judge, and its answer with the reason."""

    name: CriterionName
    verdict: Literal["pass", "fail"]
    reason: str


class LanguageVerdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a language model found by reading a program. Passed when every criterion is. ``not_scored``: no judge,
    no answer, or no answer in the right form; ``reason`` says which. ``answers`` are its texts as they came,
    ``prompts`` is the hash of what it was asked with.
    """

    status: JudgeStatus
    reason: str = ""
    criteria: tuple[Criterion, ...] = ()
    judge: str = ""
    prompts: str = ""
    attempts: int = 0
    answers: tuple[str, ...] = ()
    usage: Usage = Usage()


class MarketAgreement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How far candidate and reference agree on one market, all numbers in 0 .. 1. ``value`` is the smaller of
    ``fills`` (F1 of matched fills) and ``exposure`` (overlap of positions). ``entries`` and ``exits`` split the
    first; None where neither has any. ``failure`` is why the candidate did not run here; the value is then 0.
    Decisions are compared: ``value`` and ``fills`` are the F1 score of events, ``stray`` events have no partner,
    ``forgiven`` ones lie in the warm-up.
    """

    market: str
    value: float
    fills: float
    exposure: float
    entries: float | None = None
    exits: float | None = None
    matched: int = 0
    candidate_events: int = 0
    reference_events: int = 0
    failure: str = ""
    stray: int = 0
    forgiven: int = 0


class BehaviourVerdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What running candidate and reference side by side showed. ``agreement`` is the mean over ``markets``
    (version 2: the lowest); passed when it reaches ``threshold`` and no expectation of the task is violated.
    ``hints`` say in general terms what differs, without giving the reference away.
    """

    status: JudgeStatus
    reason: str = ""
    agreement: float | None = None
    threshold: float | None = None
    markets: tuple[MarketAgreement, ...] = ()
    violations: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()


_NOTHING: Final = 1e-9
Key = tuple[int, int, str, int]


class DecisionsConfig(msgspec.Struct, frozen=True, kw_only=True):
    """``threshold`` is the F1 score that passes a market, ``size_tolerance`` a share of the larger size,
    ``warm_up`` the share of the bars after the reference's first fill in which a missing partner is forgiven,
    ``in_step_by`` the share after which it no longer matters that the two have not held the same so far.
    ``rounded`` is the share of the entries that may differ by rounding.
    """

    threshold: float = 0.98
    strays: int = 1
    size_tolerance: float = 0.05
    warm_up: float = 0.05
    in_step_by: float = 0.25
    rounded: float = 0.25


@dataclass(frozen=True, slots=True)
class DecisionEvent:
    """One change of a position. ``units`` is its size, ``share`` that of the account (entries) or of the position
    (exits); ``opened`` is the bar on which the position began.
    """

    bar: int
    asset: int
    kind: str
    direction: int
    units: float
    share: float
    opened: int

    @property
    def key(self) -> Key:
        """What must be the same for two events to be partners."""
        return self.bar, self.asset, self.kind, self.direction


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionsMatched:
    """How two runs compare on one market. ``stray`` events have no partner and are not forgiven."""

    value: float
    matched: int
    stray: int
    forgiven: int
    candidate: int
    reference: int
    entries: float | None
    exits: float | None


def decision_events(run: Backtest, bars: TaskBars, cash: float) -> tuple[DecisionEvent, ...]:
    place = {label: number for number, label in enumerate(bars.assets)}
    netted: dict[tuple[int, int], list[float]] = {}
    for fill in run.fills:
        net = netted.setdefault((fill.bar, place[fill.asset]), [0.0, fill.price])
        net[0] += fill.size
    worth = np.concatenate([[cash], run.equity]) if run.equity.size else np.full(bars.rows + 1, cash)
    held, opened = [0.0] * len(bars.assets), [0] * len(bars.assets)
    events: list[DecisionEvent] = []
    for (bar, asset), (size, price) in sorted(netted.items()):
        if abs(size) < _NOTHING:
            continue
        before = held[asset]
        after = before + size
        after = 0.0 if abs(after) < _NOTHING else after
        held[asset] = after
        if before and (before * after <= 0 or abs(after) < abs(before)):
            ended, side = min(abs(size), abs(before)), 1 if before > 0 else -1
            events.append(DecisionEvent(bar, asset, "exit", side, ended, ended / abs(before), opened[asset]))
        if after and (before * after <= 0 or abs(after) > abs(before)):
            opened[asset] = bar if before * after <= 0 else opened[asset]
            units = abs(after) if before * after <= 0 else abs(size)
            account, side = float(worth[bar]), 1 if after > 0 else -1
            share = units * price / account if account > 0 else 0.0
            events.append(DecisionEvent(bar, asset, "entry", side, units, share, opened[asset]))
    return tuple(events)


def compare_decisions(
    mine: tuple[DecisionEvent, ...],
    theirs: tuple[DecisionEvent, ...],
    rows: int,
    config: DecisionsConfig | None = None,
) -> DecisionsMatched:
    config = config or DecisionsConfig()
    partners = {event.key: event for event in theirs}
    pairs = [(event, partners[event.key]) for event in mine if event.key in partners]
    matched = {event.key for event, other in pairs if _same(event, other, config.size_tolerance)}
    rounded = {event.key for event, other in pairs if event.key not in matched and _rounded(event, other)}
    entries = sum(key[2] == "entry" for key in matched)
    if len(rounded) <= config.rounded * (entries + len(rounded)):
        matched |= rounded
    start = _in_step(mine, theirs, rows, config)
    lone = [event for event in (*mine, *theirs) if event.key not in matched]
    stray = [event for event in lone if not (event.bar < start or (event.kind == "exit" and event.opened < start))]
    shares: dict[str, float | None] = {}
    for kind in ("entry", "exit"):
        good, bad = sum(key[2] == kind for key in matched), sum(event.kind == kind for event in stray)
        shares[kind] = 2.0 * good / (2 * good + bad) if good + bad else None
    counted = 2 * len(matched) + len(stray)
    return DecisionsMatched(
        value=2.0 * len(matched) / counted if counted else 1.0,
        matched=len(matched),
        stray=len(stray),
        forgiven=len(lone) - len(stray),
        candidate=len(mine),
        reference=len(theirs),
        entries=shares["entry"],
        exits=shares["exit"],
    )


CLOSENESS: Final = {"entries": 0.25, "exits": 0.25, "direction": 0.15, "sizing": 0.15, "timing": 0.2}
"""What each part of :func:`closeness` counts."""
_SHIFTS: Final = 8


def closeness(
    mine: tuple[DecisionEvent, ...], theirs: tuple[DecisionEvent, ...], rows: int, config: DecisionsConfig
) -> dict[str, float]:
    """Return how near two runs come to each other on one market, part by part, each from 0 to 1.

    Entries and exits are paired with the nearest of the other run; a pair counts less the more bars lie between.
    ``direction`` is that of entries on the same side, ``sizing`` also weighs how alike the sizes are, ``timing``
    is the agreement that the judge asks for. From each part is taken what the same trades earn at other times, so
    that trading often is worth nothing by itself.
    """
    first = {kind: [event for event in theirs if event.kind == kind] for kind in ("entry", "exit")}
    gaps = np.diff([event.bar for event in first["entry"]])
    reach = float(np.clip(np.median(gaps) / 4.0 if gaps.size else 2.0, 2.0, 10.0))
    weighed = {"entries": ("entry", 0), "exits": ("exit", 0), "direction": ("entry", 1), "sizing": ("entry", 2)}
    found = {}
    for name, (kind, strict) in weighed.items():
        own = [event for event in mine if event.kind == kind]
        credit = _alike(own, first[kind], strict)
        bars = np.array([event.bar for event in own], dtype=float)
        other = np.array([event.bar for event in first[kind]], dtype=float)
        shifts = [rows * k / (_SHIFTS + 1) for k in range(_SHIFTS + 1)]
        moved = [_paired(np.mod(bars + shift, rows), other, credit, reach) for shift in shifts]
        chance = float(np.mean(moved[1:]))
        found[name] = max(0.0, (moved[0] - chance) / (1.0 - chance)) if chance < 1.0 else 0.0
    found["timing"] = compare_decisions(mine, theirs, rows, config).value if mine and theirs else 0.0
    return found


def _alike(mine: list[DecisionEvent], theirs: list[DecisionEvent], strict: int) -> Floats:
    """Return what each pair of events would count if it were on one bar."""
    table: dict[str, tuple[Floats, Floats]] = {}
    for name in ("asset", "direction", "units", "share"):
        one, other = (np.array([getattr(event, name) for event in run], dtype=float) for run in (mine, theirs))
        table[name] = one[:, None], other[None, :]
    ratios = [
        np.minimum(*table[name]) / np.maximum(np.maximum(*table[name]), 1e-300) for name in ("units", "share")
    ]
    paired = np.equal(*table["asset"]) & (np.equal(*table["direction"]) if strict else True)
    alike: Floats = np.where(paired, np.maximum(*ratios) if strict > 1 else 1.0, 0.0)
    return alike


def _paired(mine: Floats, theirs: Floats, credit: Floats, reach: float) -> float:
    """Return the F1 score of the best pairing of events, by credit and by the bars between them."""
    if not mine.size or not theirs.size:
        return 0.0
    near = np.maximum(0.0, 1.0 - np.abs(mine[:, None] - theirs[None, :]) / (reach + 1.0))
    worth = near * credit
    left, right = linear_sum_assignment(worth, maximize=True)
    return 2.0 * float(worth[left, right].sum()) / (mine.size + theirs.size)


def _in_step(
    mine: tuple[DecisionEvent, ...], theirs: tuple[DecisionEvent, ...], rows: int, config: DecisionsConfig
) -> float:
    """Return the bar from which runs are compared: after the warm-up, or when both first hold the same."""
    first = min((event.bar for event in theirs), default=0)
    end = first + config.warm_up * rows
    held: dict[int, list[int]] = {}
    by_bar: dict[int, list[tuple[int, DecisionEvent]]] = {}
    for own, run in enumerate((mine, theirs)):
        for event in run:
            by_bar.setdefault(event.bar, []).append((own, event))
    begun = end
    for bar in sorted(by_bar):
        if bar >= begun and all(one == other for one, other in held.values()):
            return begun
        if bar > first + config.in_step_by * rows:
            return end
        for own, event in by_bar[bar]:
            sides = held.setdefault(event.asset, [0, 0])
            if event.kind == "entry" or event.share > 1.0 - _NOTHING:
                sides[own] = event.direction if event.kind == "entry" else 0
        begun = max(end, bar + 1.0)
    return begun if all(one == other for one, other in held.values()) else end


def passes(found: DecisionsMatched, config: DecisionsConfig | None = None) -> bool:
    config = config or DecisionsConfig()
    if found.reference and not found.matched:
        return False
    return found.value >= config.threshold or found.stray <= config.strays


_CLEAR: Final = 0.25
"""A hint is given when dropping one condition lifts the agreement by this much."""


def decision_hints(
    mine: tuple[DecisionEvent, ...], theirs: tuple[DecisionEvent, ...], rows: int, config: DecisionsConfig
) -> tuple[str, ...]:
    """Say in general terms how two runs differ, without a bar, a price or a rule of the reference."""
    if not mine:
        return ("it does not trade here, although the task's rules do",)
    plain = compare_decisions(mine, theirs, rows, config)
    found: list[str] = []
    flipped = tuple(replace(event, direction=-event.direction) for event in mine)
    if compare_decisions(flipped, theirs, rows, config).value > plain.value + _CLEAR:
        found.append("it buys where it should sell and sells where it should buy")
    sizeless = msgspec.structs.replace(config, size_tolerance=1.0)
    if compare_decisions(mine, theirs, rows, sizeless).value > plain.value + _CLEAR:
        found.append("it trades on the right bars with other sizes than the task's")
    for late in (-1, 1):
        moved = tuple(replace(event, bar=event.bar + late) for event in mine)
        if compare_decisions(moved, theirs, rows, config).value > plain.value + _CLEAR:
            found.append(f"its trades come one bar too {'late' if late < 0 else 'early'}")
    if plain.entries is not None and plain.exits is not None and abs(plain.entries - plain.exits) > _CLEAR:
        good, bad = ("entries", "exits") if plain.entries > plain.exits else ("exits", "entries")
        found.append(f"its {good} agree better with the task than its {bad}")
    if len(mine) > 1.5 * len(theirs):
        found.append("it trades much more often than the task's rules do")
    elif len(theirs) > 1.5 * len(mine):
        found.append("it trades much less often than the task's rules do")
    return tuple(found) or ("some of its trades are not those of the task's rules",)


def _same(one: DecisionEvent, other: DecisionEvent, tolerance: float) -> bool:
    shares = abs(one.share - other.share) <= tolerance * max(one.share, other.share)
    if one.kind == "exit":
        return shares
    small, large = sorted((one.units, other.units))
    if 1.0 <= small == math.floor(large):
        return True
    return shares or abs(one.units - other.units) <= tolerance * max(one.units, other.units)


def _rounded(one: DecisionEvent, other: DecisionEvent) -> bool:
    """Return whether both are the same share of their accounts, each rounded down to whole units."""
    if one.kind != "entry" or not (one.units >= 1.0 and other.units >= 1.0):
        return False
    if one.units != math.floor(one.units) or other.units != math.floor(other.units):
        return False
    near = one.share < other.share * (1.0 + 1.0 / other.units)
    return near and other.share < one.share * (1.0 + 1.0 / one.units)
