"""Compare the decisions of two runs on the same bars, and define the verdicts of both judges.

The fills of one asset on one bar are netted into *events*. Two events match if asset, kind,
direction and bar are the same and the sizes agree. An entry's size is compared in units or as a
share of the account, whichever is closer. An exit's size is the share of the position that it
closes. One different trade therefore does not make every later trade wrong. Rounding to whole units
is also tolerated if it affects at most a quarter of the entries. A size that is always one unit
larger is a different size.

Differences at the start are tolerated, because programs may need different numbers of bars for an
indicator. Unmatched events are forgiven in the first twentieth of the bars after the reference's
first fill. They are also forgiven until both runs have the same positions, for at most a quarter of
the bars.

``value`` is the F1 score of the remaining events. A run passes a market if it reaches the
threshold, or if it has at most ``strays`` unmatched events. A decision that depends on the last bit
of a float must not determine the verdict.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, Literal

import msgspec
import numpy as np
from scipy.optimize import linear_sum_assignment

from tradeassay.core.arrays import Floats
from tradeassay_bench.core.dialogue import Usage
from tradeassay_programs.code.backtrader import Backtest
from tradeassay_programs.code.bars import TaskBars

CriterionName = Literal["indicators", "logic", "relevance"]
CRITERIA: tuple[CriterionName, ...] = ("indicators", "logic", "relevance")
JudgeStatus = Literal["passed", "failed", "not_scored"]


class Criterion(msgspec.Struct, frozen=True, kw_only=True):
    """One question to the language judge, with the answer and its reason."""

    name: CriterionName
    verdict: Literal["pass", "fail"]
    reason: str


class LanguageVerdict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The verdict of a language model that read a program. It passes if every criterion passes.

    The verdict is not scored if there was no judge, no answer, or no valid answer. ``reason``
    states which. ``answers`` are the model's texts, and ``prompts`` is the hash of its prompts.
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
    """The agreement of candidate and reference on one market, from 0 to 1.

    - ``value``, ``fills`` and ``exposure`` are all the F1 score of events. Earlier versions
      compared fills and positions.
    - ``entries`` and ``exits`` are the scores of these kinds, or None if neither run has any.
    - ``stray`` is the number of unmatched events, and ``forgiven`` their number in the warm-up.
    - ``failure`` is the reason if the candidate did not run on this market. The value is then 0.
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
    """The verdict of the behavioural judge, which compares runs of candidate and reference.

    ``agreement`` is the lowest agreement of all ``markets``. The program passes if every market
    passes and no expectation of the task is violated. ``hints`` describe the difference without
    revealing the reference.
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
    """Settings of the comparison of decisions.

    - ``threshold`` is the minimum F1 score that passes a market. ``strays`` is the number of
      unmatched events that passes with any score.
    - ``size_tolerance`` is the maximum difference between two equal sizes, as a share of the larger
      size.
    - ``warm_up`` is the share of the bars, after the reference's first fill, in which unmatched
      events are forgiven.
    - ``in_step_by`` is the share of the bars after which unmatched events count even if the runs
      have different positions.
    - ``rounded`` is the maximum share of entries that may differ by rounding.
    """

    threshold: float = 0.98
    strays: int = 1
    size_tolerance: float = 0.05
    warm_up: float = 0.05
    in_step_by: float = 0.25
    rounded: float = 0.25


@dataclass(frozen=True, slots=True)
class DecisionEvent:
    """One change of a position.

    ``units`` is its size. ``share`` is its share of the account (entries) or of the position
    (exits). ``opened`` is the bar on which the position was opened.
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
        """The values that must be equal for two events to match."""
        return self.bar, self.asset, self.kind, self.direction


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionsMatched:
    """The comparison of two runs on one market.

    ``stray`` is the number of unmatched events that are not forgiven.
    """

    value: float
    matched: int
    stray: int
    forgiven: int
    candidate: int
    reference: int
    entries: float | None
    exits: float | None


def decision_events(run: Backtest, bars: TaskBars, cash: float) -> tuple[DecisionEvent, ...]:
    """Return the events of a run, by bar and asset. ``cash`` is the starting capital."""
    place = {label: number for number, label in enumerate(bars.assets)}
    netted: dict[tuple[int, int], list[float]] = {}
    for fill in run.fills:
        net = netted.setdefault((fill.bar, place[fill.asset]), [0.0, fill.price])
        net[0] += fill.size
    worth = (
        np.concatenate([[cash], run.equity]) if run.equity.size else np.full(bars.rows + 1, cash)
    )
    held, opened = [0.0] * len(bars.assets), [0] * len(bars.assets)
    events: list[DecisionEvent] = []
    for (bar, asset), (size, price) in sorted(netted.items()):
        if abs(size) < _NOTHING:
            continue
        before = held[asset]
        after = before + size
        after = 0.0 if abs(after) < _NOTHING else after
        held[asset] = after
        # A trade that reverses a position is an exit and an entry.
        if before and (before * after <= 0 or abs(after) < abs(before)):
            ended, side = min(abs(size), abs(before)), 1 if before > 0 else -1
            events.append(
                DecisionEvent(bar, asset, "exit", side, ended, ended / abs(before), opened[asset])
            )
        if after and (before * after <= 0 or abs(after) > abs(before)):
            opened[asset] = bar if before * after <= 0 else opened[asset]
            units = abs(after) if before * after <= 0 else abs(size)
            account, side = float(worth[bar]), 1 if after > 0 else -1
            share = units * price / account if account > 0 else 0.0
            events.append(DecisionEvent(bar, asset, "entry", side, units, share, opened[asset]))
    return tuple(events)


def compare_decisions(
    candidate: tuple[DecisionEvent, ...],
    reference: tuple[DecisionEvent, ...],
    rows: int,
    config: DecisionsConfig | None = None,
) -> DecisionsMatched:
    """Return the comparison of a candidate's and the reference's events on ``rows`` bars."""
    config = config or DecisionsConfig()
    partners = {event.key: event for event in reference}
    pairs = [(event, partners[event.key]) for event in candidate if event.key in partners]
    matched = {event.key for event, other in pairs if _same(event, other, config.size_tolerance)}
    rounded = {
        event.key for event, other in pairs if event.key not in matched and _rounded(event, other)
    }
    entries = sum(key[2] == "entry" for key in matched)
    if len(rounded) <= config.rounded * (entries + len(rounded)):
        matched |= rounded
    start = _in_step(candidate, reference, rows, config)
    unmatched = [event for event in (*candidate, *reference) if event.key not in matched]
    # An exit from a position that was opened in the warm-up is forgiven too.
    stray = [
        event
        for event in unmatched
        if not (event.bar < start or (event.kind == "exit" and event.opened < start))
    ]
    scores: dict[str, float | None] = {}
    for kind in ("entry", "exit"):
        matches = sum(key[2] == kind for key in matched)
        strays = sum(event.kind == kind for event in stray)
        scores[kind] = 2.0 * matches / (2 * matches + strays) if matches + strays else None
    counted = 2 * len(matched) + len(stray)
    return DecisionsMatched(
        value=2.0 * len(matched) / counted if counted else 1.0,
        matched=len(matched),
        stray=len(stray),
        forgiven=len(unmatched) - len(stray),
        candidate=len(candidate),
        reference=len(reference),
        entries=scores["entry"],
        exits=scores["exit"],
    )


CLOSENESS: Final = {
    "entries": 0.25,
    "exits": 0.25,
    "direction": 0.15,
    "sizing": 0.15,
    "timing": 0.2,
}
"""The weight of each part of :func:`closeness`."""
_SHIFTS: Final = 8


def closeness(
    candidate: tuple[DecisionEvent, ...],
    reference: tuple[DecisionEvent, ...],
    rows: int,
    config: DecisionsConfig,
) -> dict[str, float]:
    """Return the closeness of a candidate to the reference on one market, in parts from 0 to 1.

    Entries and exits are paired with the nearest event of the other run. The credit of a pair falls
    with the number of bars between its events. ``direction`` pairs only entries on the same side,
    and ``sizing`` also weighs the ratio of their sizes. ``timing`` is the agreement that the judge
    measures.

    The first four parts are corrected for chance: the mean score of the same trades at other times
    is subtracted. Frequent trading alone therefore earns nothing.
    """
    by_kind = {
        kind: [event for event in reference if event.kind == kind] for kind in ("entry", "exit")
    }
    gaps = np.diff([event.bar for event in by_kind["entry"]])
    reach = float(np.clip(np.median(gaps) / 4.0 if gaps.size else 2.0, 2.0, 10.0))
    # Each part has a kind of event and a strictness: 0 compares bars, 1 also directions, 2 also
    # sizes.
    parts = {
        "entries": ("entry", 0),
        "exits": ("exit", 0),
        "direction": ("entry", 1),
        "sizing": ("entry", 2),
    }
    shifts = [rows * k / (_SHIFTS + 1) for k in range(_SHIFTS + 1)]
    scores = {}
    for name, (kind, strictness) in parts.items():
        events, other_events = [e for e in candidate if e.kind == kind], by_kind[kind]
        credit = _pair_credit(events, other_events, strictness)
        bars = np.array([event.bar for event in events], dtype=float)
        other_bars = np.array([event.bar for event in other_events], dtype=float)
        shifted = [
            _best_pairing(np.mod(bars + shift, rows), other_bars, credit, reach) for shift in shifts
        ]
        chance = float(np.mean(shifted[1:]))
        scores[name] = max(0.0, (shifted[0] - chance) / (1.0 - chance)) if chance < 1.0 else 0.0
    scores["timing"] = 0.0
    if candidate and reference:
        scores["timing"] = compare_decisions(candidate, reference, rows, config).value
    return scores


def _pair_credit(
    candidate: list[DecisionEvent], reference: list[DecisionEvent], strictness: int
) -> Floats:
    """Return the credit of each pair of events if both were on the same bar."""
    table: dict[str, tuple[Floats, Floats]] = {}
    for name in ("asset", "direction", "units", "share"):
        left = np.array([getattr(event, name) for event in candidate], dtype=float)
        right = np.array([getattr(event, name) for event in reference], dtype=float)
        table[name] = left[:, None], right[None, :]
    ratios = [
        np.minimum(*table[name]) / np.maximum(np.maximum(*table[name]), 1e-300)
        for name in ("units", "share")
    ]
    paired = np.equal(*table["asset"]) & (np.equal(*table["direction"]) if strictness else True)
    credit: Floats = np.where(paired, np.maximum(*ratios) if strictness > 1 else 1.0, 0.0)
    return credit


def _best_pairing(
    candidate_bars: Floats, reference_bars: Floats, credit: Floats, reach: float
) -> float:
    """Return the F1 score of the best pairing of events, by credit and by the bars between them."""
    if not candidate_bars.size or not reference_bars.size:
        return 0.0
    distance = np.abs(candidate_bars[:, None] - reference_bars[None, :])
    worth = np.maximum(0.0, 1.0 - distance / (reach + 1.0)) * credit
    left, right = linear_sum_assignment(worth, maximize=True)
    return 2.0 * float(worth[left, right].sum()) / (candidate_bars.size + reference_bars.size)


def _in_step(
    candidate: tuple[DecisionEvent, ...],
    reference: tuple[DecisionEvent, ...],
    rows: int,
    config: DecisionsConfig,
) -> float:
    """Return the bar from which runs are compared.

    This is the end of the warm-up, or the bar on which both runs have the same positions.
    """
    first = min((event.bar for event in reference), default=0)
    end = first + config.warm_up * rows
    # The sides of both runs by asset: 1 long, -1 short, 0 flat.
    held: dict[int, list[int]] = {}
    by_bar: dict[int, list[tuple[int, DecisionEvent]]] = {}
    for number, run in enumerate((candidate, reference)):
        for event in run:
            by_bar.setdefault(event.bar, []).append((number, event))
    start = end
    for bar in sorted(by_bar):
        if bar >= start and all(left == right for left, right in held.values()):
            return start
        if bar > first + config.in_step_by * rows:
            return end
        for number, event in by_bar[bar]:
            sides = held.setdefault(event.asset, [0, 0])
            if event.kind == "entry" or event.share > 1.0 - _NOTHING:
                sides[number] = event.direction if event.kind == "entry" else 0
        start = max(end, bar + 1.0)
    return start if all(left == right for left, right in held.values()) else end


def passes(comparison: DecisionsMatched, config: DecisionsConfig | None = None) -> bool:
    """Return whether a comparison passes a market."""
    config = config or DecisionsConfig()
    if comparison.reference and not comparison.matched:
        return False
    return comparison.value >= config.threshold or comparison.stray <= config.strays


_CLEAR: Final = 0.25
"""Minimum difference of two scores for a hint.

The scores are the agreement with and without one condition, or the scores of entries and exits.
"""


def decision_hints(
    candidate: tuple[DecisionEvent, ...],
    reference: tuple[DecisionEvent, ...],
    rows: int,
    config: DecisionsConfig,
) -> tuple[str, ...]:
    """Return sentences on the differences of two runs.

    They reveal no bar, price or rule of the reference.
    """
    if not candidate:
        return ("it does not trade here, although the task's rules do",)
    plain = compare_decisions(candidate, reference, rows, config)
    hints: list[str] = []
    flipped = tuple(replace(event, direction=-event.direction) for event in candidate)
    if compare_decisions(flipped, reference, rows, config).value > plain.value + _CLEAR:
        hints.append("it buys where it should sell and sells where it should buy")
    any_size = msgspec.structs.replace(config, size_tolerance=1.0)
    if compare_decisions(candidate, reference, rows, any_size).value > plain.value + _CLEAR:
        hints.append("it trades on the right bars with other sizes than the task's")
    for shift in (-1, 1):
        moved = tuple(replace(event, bar=event.bar + shift) for event in candidate)
        if compare_decisions(moved, reference, rows, config).value > plain.value + _CLEAR:
            hints.append(f"its trades come one bar too {'late' if shift < 0 else 'early'}")
    entries, exits = plain.entries, plain.exits
    if entries is not None and exits is not None and abs(entries - exits) > _CLEAR:
        better, worse = ("entries", "exits") if entries > exits else ("exits", "entries")
        hints.append(f"its {better} agree better with the task than its {worse}")
    if len(candidate) > 1.5 * len(reference):
        hints.append("it trades much more often than the task's rules do")
    elif len(reference) > 1.5 * len(candidate):
        hints.append("it trades much less often than the task's rules do")
    return tuple(hints) or ("some of its trades are not those of the task's rules",)


def _same(left: DecisionEvent, right: DecisionEvent, tolerance: float) -> bool:
    """Return whether the sizes of two events agree."""
    same_share = abs(left.share - right.share) <= tolerance * max(left.share, right.share)
    if left.kind == "exit":
        return same_share
    small, large = sorted((left.units, right.units))
    # One of the two may be rounded down to whole units.
    if 1.0 <= small == math.floor(large):
        return True
    return same_share or abs(left.units - right.units) <= tolerance * max(left.units, right.units)


def _rounded(left: DecisionEvent, right: DecisionEvent) -> bool:
    """Return whether both events are the same account share, rounded down to whole units."""
    if left.kind != "entry" or not (left.units >= 1.0 and right.units >= 1.0):
        return False
    if left.units != math.floor(left.units) or right.units != math.floor(right.units):
        return False
    close = left.share < right.share * (1.0 + 1.0 / right.units)
    return close and right.share < left.share * (1.0 + 1.0 / left.units)
