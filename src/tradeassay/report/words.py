"""The plain sentences: which agent is best, and can it be told apart from the baseline?

Every claim is made after Holm's correction for the number of agents compared in one table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
import numpy as np

from tradeassay.core.measure import Measure
from tradeassay.metrics import BootstrapConfig, Comparison, compare_to_baseline
from tradeassay.report import numbers
from tradeassay.report.data import AgentData, CellData

_PLURALS = (
    (" beats ", " beat "),
    (" falls ", " fall "),
    (" is ", " are "),
    (" was ", " were "),
    (" has ", " have "),
)

Tone = Literal["above", "below", "same", "none", "baseline", "failed"]


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """One agent against the baseline: a short label for a chip, a sentence, and its tone."""

    tone: Tone
    label: str
    sentence: str


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to "which agent is best?": a headline and what supports it."""

    headline: str
    support: tuple[str, ...]


def result(agent: AgentData) -> Measure:
    """Return the measure that ranks a leaderboard: the (median) return over the window."""
    return agent.measures["cumulative_return"].median


def ranked(agents: Sequence[AgentData]) -> list[AgentData]:
    """Return agents by return, best first; those without a result last, each group otherwise in its order."""
    return sorted(agents, key=lambda agent: _sort_key(result(agent)))


def _sort_key(measure: Measure) -> tuple[bool, float]:
    return measure.value is None, -(measure.value or 0.0)


def verdict(agent: AgentData, cell: CellData, level: float) -> Verdict:
    """Say how an agent stands to its cell's baseline."""
    phrase = cell.baseline_phrase
    if result(agent).value is None:
        reason = agent.failure or str(result(agent).reason)
        return Verdict(tone="failed", label="failed", sentence=f"{agent.name} has no result: {reason}.")
    if agent.baseline:
        return Verdict(tone="baseline", label="baseline", sentence=f"{agent.name} is the baseline: {phrase}.")
    versus = agent.versus_baseline
    if versus is None or versus.distinguishable is None:
        reason = "no baseline" if versus is None else str(versus.difference.reason)
        return Verdict(
            tone="none", label="not compared", sentence=f"{agent.name} was not compared with {phrase}: {reason}."
        )
    return _compared(agent, versus, phrase, level)


def _compared(agent: AgentData, versus: Comparison, phrase: str, level: float) -> Verdict:
    if versus.difference.low == versus.difference.high == 0.0:
        return Verdict(tone="same", label="same", sentence=f"{agent.name} is the same as {phrase}, day by day.")
    tone = told_apart(agent, level)
    if tone == "above":
        return Verdict(
            tone=tone, label="better", sentence=f"{agent.name} beats {phrase} by more than luck explains."
        )
    if tone == "below":
        return Verdict(
            tone=tone, label="worse", sentence=f"{agent.name} falls behind {phrase} by more than luck explains."
        )
    sentence = f"{agent.name} cannot be told apart from {phrase}"
    if versus.distinguishable:
        sentence += " once the number of agents compared is allowed for"
    return Verdict(tone="same", label="cannot be told apart", sentence=sentence + ".")


def in_words(agents: Sequence[AgentData], cell: CellData, level: float) -> tuple[str, ...]:
    """Say how every agent stands to the baseline, agents of the same standing in one sentence."""
    said: dict[str, list[str]] = {}
    for agent in agents:
        told = verdict(agent, cell, level)
        if told.tone != "baseline":
            said.setdefault(told.sentence.removeprefix(agent.name), []).append(agent.name)
    return tuple(f"{_all(names)}{_plural(rest, names)}" for rest, names in said.items())


def _plural(rest: str, names: Sequence[str]) -> str:
    if len(names) == 1:
        return rest
    for one, many in _PLURALS:
        if rest.startswith(one):
            return many + rest[len(one) :]
    return rest


def told_apart(agent: AgentData, level: float) -> Literal["above", "below"] | None:
    """Return on which side of the baseline an agent certainly is, None when that is not certain."""
    versus = agent.versus_baseline
    if versus is None or not versus.distinguishable or versus.difference.value is None:
        return None
    p = agent.p_adjusted if agent.p_adjusted is not None else versus.p_value
    if p is None or p > 1.0 - level:
        return None
    return "above" if versus.difference.value > 0 else "below"


def answer(cell: CellData, level: float, draws: int = 1000) -> Answer:
    """Answer "which agent is best?" in plain words, best-founded statement first."""
    rivals = [agent for agent in ranked(cell.agents) if result(agent).value is not None and not agent.baseline]
    if not rivals:
        return _nobody(cell)
    winners = [agent for agent in rivals if told_apart(agent, level) == "above"]
    behind = [agent for agent in rivals if told_apart(agent, level) == "below"]
    if winners:
        support = _winners(winners, cell, level, draws)
        headline = _headline(winners, cell, level, draws)
    else:
        support = [_leader(rivals[0], cell, luck=True)]
        headline = _no_winner(rivals, behind, cell)
    return Answer(headline=headline, support=(*support, *_others(behind, cell)))


def _no_winner(rivals: Sequence[AgentData], behind: Sequence[AgentData], cell: CellData) -> str:
    phrase, one = cell.baseline_phrase, len(rivals) == 1
    if all(agent.versus_baseline is None or agent.versus_baseline.distinguishable is None for agent in rivals):
        return f"{rivals[0].name} has the highest return; nothing could be compared with {phrase}."
    if len(behind) == len(rivals):
        return f"{rivals[0].name if one else 'Every agent'} falls behind {phrase}."
    if behind:
        names = [agent.name for agent in behind]
        return f"No agent beats {phrase}, and {_list(names)} {_verb(names, 'falls', 'fall')} behind it."
    subject = f"{rivals[0].name} cannot" if one else "No agent can"
    return f"{subject} be told apart from {phrase}."


def _others(behind: Sequence[AgentData], cell: CellData) -> list[str]:
    sentences = []
    base = next((agent for agent in cell.agents if agent.baseline), None)
    if base is not None and result(base).value is not None:
        sentences.append(_sentence_of_baseline(base, cell))
    if behind:
        names = [agent.name for agent in behind]
        falls = _verb(names, "falls", "fall")
        sentences.append(f"{_list(names)} {falls} behind {cell.baseline_phrase} by more than luck explains.")
    failed = [agent.name for agent in cell.agents if result(agent).value is None]
    if failed:
        sentences.append(f"{_list(failed)} {_verb(failed, 'has', 'have')} no result (see failures).")
    return sentences


def _nobody(cell: CellData) -> Answer:
    if any(result(agent).value is not None for agent in cell.agents):
        return Answer(headline="Only the baseline has a result.", support=("There is nobody to compare it with.",))
    return Answer(headline="No agent has a result.", support=("Every episode failed; the reasons are below.",))


def _leader(agent: AgentData, cell: CellData, *, luck: bool) -> str:
    measure = result(agent)
    bounds = numbers.interval("cumulative_return", measure)
    text = f"{agent.name} has the highest return, {numbers.shown('cumulative_return', measure.value or 0.0)}"
    text += f" ({bounds})" if bounds else ""
    if not luck or agent.versus_baseline is None or agent.versus_baseline.distinguishable is None:
        return text + "."
    window = numbers.count(len(cell.sessions), "session")
    return f"{text}, but over {window} a lead of that size can be luck."


def _winners(winners: list[AgentData], cell: CellData, level: float, draws: int) -> list[str]:
    sentences = [_leader(winners[0], cell, luck=False)]
    versus = winners[0].versus_baseline
    if versus is not None and versus.difference.value is not None:
        low, high = versus.difference.low or 0.0, versus.difference.high or 0.0
        sentences.append(
            f"That is {numbers.difference(versus.difference.value)} a year against {cell.baseline_phrase} "
            f"({numbers.difference(low)} to {numbers.difference(high)})."
        )
    if len(winners) > 1 and not _beats(winners[0], winners[1], cell, level, draws):
        also = [agent.name for agent in winners]
        sentences.append(f"Among themselves, {_list(also)} cannot all be told apart.")
    return sentences


def _headline(winners: list[AgentData], cell: CellData, level: float, draws: int) -> str:
    if len(winners) == 1 or _beats(winners[0], winners[1], cell, level, draws):
        return f"{winners[0].name} is best: it beats {cell.baseline_phrase} by more than luck explains."
    names = _list([agent.name for agent in winners])
    return f"{names} beat {cell.baseline_phrase} by more than luck explains."


def _beats(first: AgentData, second: AgentData, cell: CellData, level: float, draws: int) -> bool:
    """Return whether the leader can be told apart from the next, path against path."""
    if not first.paths or not second.paths:
        return False
    config = BootstrapConfig(level=level, draws=draws)
    verdict = compare_to_baseline(
        np.array(first.paths),
        np.array(second.paths),
        periods_per_year=cell.periods_per_year,
        baseline=second.name,
        bootstrap=config,
    )
    return bool(verdict.distinguishable)


def _sentence_of_baseline(base: AgentData, cell: CellData) -> str:
    value = numbers.shown("cumulative_return", result(base).value or 0.0)
    phrase = cell.baseline_phrase[:1].upper() + cell.baseline_phrase[1:]
    return f"{phrase} ({base.name}) returned {value}."


def _list(names: Sequence[str]) -> str:
    return f"{', '.join(names[:3])} and {len(names) - 3} others" if len(names) > 4 else _all(names)


def _all(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _verb(names: Sequence[str], one: str, many: str) -> str:
    return one if len(names) == 1 else many
