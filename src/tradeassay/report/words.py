"""The plain sentences: which agent is best, does it differ from the baseline, or from itself in another setting?

Every claim is made after Holm's correction for the number of agents compared in one table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from tradeassay.core.badges import NOT_REDERIVABLE, OWN_PROGRAM, Badges
from tradeassay.report import numbers
from tradeassay.runs.summary import (
    AgentSummary,
    CellSummary,
    Contrast,
    ContrastArm,
    OverMarkets,
    failed_too_often,
    told_apart,
)

_PLURALS = (
    (" beats ", " beat "),
    (" falls ", " fall "),
    (" is ", " are "),
    (" was ", " were "),
    (" has ", " have "),
)
ANSWERS = {"scripted": "scripted model", "replayed": "replayed model", "live": "live model"}

Tone = Literal["above", "below", "same", "none", "baseline", "failed"]


class AgentStanding(msgspec.Struct, frozen=True):
    """One agent against what it is compared with: a short label for a chip, a sentence, and its tone."""

    tone: Tone
    label: str
    sentence: str


class BestAnswer(msgspec.Struct, frozen=True):
    """The answer to "which agent is best?": a headline and what supports it."""

    headline: str
    support: tuple[str, ...]


def badge_words(badges: Badges, answers: Sequence[str] = ()) -> tuple[tuple[str, str], ...]:
    """Return (kind, text) per badge; every table and page carries them.

    ``answers`` says whose answers are in the table; where they differ each kind has a badge of its own.
    """
    models = answers or ([] if badges.model == "none" else [badges.model])
    return (
        (badges.data, f"{badges.data} data"),
        ("convention", f"{badges.convention} convention"),
        *(("model", ANSWERS[kind]) for kind in models),
        *((("model", "rules only, no model"),) if not models else ()),
        *((("model", NOT_REDERIVABLE),) if {"live", "replayed"} & set(models) else ()),
        *((("model", OWN_PROGRAM),) if badges.own_program else ()),
        *(("bias", f"known bias: {bias}") for bias in badges.biases),
    )


def cell_badges(cell: CellSummary) -> tuple[tuple[str, str], ...]:
    """Return the badges of a cell; the liveliest kind of answers comes first."""
    there = {agent.model.answers for agent in cell.agents if agent.model is not None}
    return badge_words(cell.badges, [kind for kind in ("live", "replayed", "scripted") if kind in there])


def cost_line(agent: AgentSummary) -> str:
    """Return one line below a model's name: ``scripted model · 1.0M tokens · $0.00``; empty for a rule."""
    if agent.model is None:
        return ""
    parts, cost = [ANSWERS[agent.model.answers]], agent.model.cost
    if cost is not None:
        tokens = cost.input_tokens + cost.output_tokens
        parts += [f"{numbers.short(tokens)} tokens", numbers.dollars(cost.usd)]
    return " · ".join(parts)


# An agent against the baseline


def standing(agent: AgentSummary, cell: CellSummary, level: float) -> AgentStanding:
    """Say how an agent compares with its cell's baseline."""
    phrase = cell.baseline_phrase
    if agent.result.value is None:
        reason = agent.failure or str(agent.result.reason)
        return AgentStanding("failed", "failed", f"{agent.name} has no result: {reason}.")
    if agent.baseline:
        return AgentStanding("baseline", "baseline", f"{agent.name} is the baseline: {phrase}.")
    versus = agent.versus
    if versus is None or versus.distinguishable is None:
        reason = "no baseline" if versus is None else str(versus.difference.reason)
        return AgentStanding("none", "not compared", f"{agent.name} was not compared with {phrase}: {reason}.")
    if versus.difference.low == versus.difference.high == 0.0:
        return AgentStanding("same", "same", f"{agent.name} is the same as {phrase}, day by day.")
    tone = told_apart(agent, level)
    if tone == "above":
        return AgentStanding(tone, "better", f"{agent.name} beats {phrase} by more than luck explains.")
    if tone == "below":
        return AgentStanding(tone, "worse", f"{agent.name} falls behind {phrase} by more than luck explains.")
    sentence = f"{agent.name} cannot be told apart from {phrase}"
    if versus.distinguishable:
        sentence += " once the number of agents compared is allowed for"
    return AgentStanding("same", "cannot be told apart", sentence + ".")


def in_words(cell: CellSummary, level: float) -> tuple[str, ...]:
    """Say how every agent compares with the baseline, agents of the same standing in one sentence."""
    said: dict[str, list[str]] = {}
    for agent in cell.ranked:
        told = standing(agent, cell, level)
        if told.tone != "baseline":
            said.setdefault(told.sentence.removeprefix(agent.name), []).append(agent.name)
    sentences = []
    for rest, names in said.items():
        verb = next(((one, many) for one, many in _PLURALS if len(names) > 1 and rest.startswith(one)), ("", ""))
        sentences.append(f"{_all(names)}{verb[1]}{rest.removeprefix(verb[0])}")
    return tuple(sentences)


# Which agent is best


def answer(cell: CellSummary, level: float) -> BestAnswer:
    """Answer "which agent is best?" in plain words, best-founded statement first."""
    rivals = [agent for agent in cell.ranked if agent.result.value is not None and not agent.baseline]
    rivals = [agent for agent in rivals if failed_too_often(agent) is None] or rivals
    if not rivals and any(agent.result.value is not None for agent in cell.agents):
        return BestAnswer("Only the baseline has a result.", ("There is nobody to compare it with.",))
    if not rivals:
        return BestAnswer("No agent has a result.", ("Every episode failed; the reasons are below.",))
    winners = [agent for agent in rivals if told_apart(agent, level) == "above"]
    behind = [agent for agent in rivals if told_apart(agent, level) == "below"]
    if winners:
        support = _winners(winners, cell)
        headline = f"{_list([agent.name for agent in winners])} beat {cell.baseline_phrase}"
        if len(winners) == 1 or cell.leader_apart:
            headline = f"{winners[0].name} is best: it beats {cell.baseline_phrase}"
        headline += " by more than luck explains."
    else:
        support = [_leader(rivals[0], cell, luck=True)]
        headline = _no_winner(rivals, behind, cell)
    return BestAnswer(headline, (*contest_words(cell), *support, *_others(behind, cell)))


def contest_words(cell: CellSummary) -> list[str]:
    """Say which agents the best one cannot be told apart from, and who has no place."""
    contest = cell.contest
    if contest is None:
        return []
    first, others = contest.tiers[0], sum(map(len, contest.tiers[1:]))
    said = []
    if len(first) == 1:
        said.append(f"{first[0]} alone is in the first tier: the others can be told apart from it.")
    elif others:
        said.append(f"{_list(first)} share the first tier: they cannot be told apart.")
    else:
        said.append("All agents share one tier: over these sessions they cannot be told apart from each other.")
    likely = max(contest.best, key=lambda name: contest.best[name])
    said.append(f"On redrawn sessions {likely} is first most often, in {contest.best[likely]:.0%} of them.")
    if contest.superior is not None:
        said.append(f"That nobody beats {cell.baseline_phrase} has {numbers.p_value(contest.superior)} (SPA).")
    said += [f"{name} is not ranked: {why}." for name, why in contest.unranked.items()]
    return said


def markets_words(found: OverMarkets, title: str = "") -> str:
    """Say who is best over several markets, and by how much mean places would have to differ."""
    ranks, need = found.places.mean_ranks, found.places.difference
    means = ", ".join(f"{name} {value:.1f}" for name, value in ranks.items())
    said = f"Over {found.places.markets} markets{title} the mean places are {means}. "
    said += f"Two agents can be told apart when theirs differ by {need:.1f} (Nemenyi, {found.places.level:.0%}): "
    first = found.places.groups[0] if found.places.groups else ()
    behind = [name for name in ranks if name not in first]
    if not behind:
        return said + "none can."
    return said + f"{_list(first)} cannot be told apart, {_list(behind)} {_verb(behind, 'is', 'are')} behind."


def setting_title(found: OverMarkets, among: Sequence[OverMarkets]) -> str:
    """Return what sets a setting apart from others of the run, in brackets; empty where there is one."""
    apart = [value for key, value in found.setting.items() if any(one.setting.get(key) != value for one in among)]
    return f" ({', '.join(apart)})" if apart else ""


def _no_winner(rivals: Sequence[AgentSummary], behind: Sequence[AgentSummary], cell: CellSummary) -> str:
    phrase, one = cell.baseline_phrase, len(rivals) == 1
    if all(agent.versus is None or agent.versus.distinguishable is None for agent in rivals):
        return f"{_first(rivals[0], cell)} has the highest return; nothing could be compared with {phrase}."
    if len(behind) == len(rivals):
        return f"{rivals[0].name if one else 'Every agent'} falls behind {phrase}."
    if behind:
        names = [agent.name for agent in behind]
        return f"No agent beats {phrase}, and {_list(names)} {_verb(names, 'falls', 'fall')} behind it."
    subject = f"{rivals[0].name} cannot" if one else "No agent can"
    return f"{subject} be told apart from {phrase}."


def _others(behind: Sequence[AgentSummary], cell: CellSummary) -> list[str]:
    sentences = []
    base = next((agent for agent in cell.agents if agent.baseline), None)
    if base is not None and base.result.value is not None:
        phrase = cell.baseline_phrase[:1].upper() + cell.baseline_phrase[1:]
        sentences.append(f"{phrase} ({base.name}) returned {numbers.written(base.result.value, 'change')}.")
    if behind:
        names = [agent.name for agent in behind]
        falls = _verb(names, "falls", "fall")
        sentences.append(f"{_list(names)} {falls} behind {cell.baseline_phrase} by more than luck explains.")
    failed = [agent.name for agent in cell.agents if agent.result.value is None]
    if failed:
        sentences.append(f"{_list(failed)} {_verb(failed, 'has', 'have')} no result (see failures).")
    return sentences


def _first(agent: AgentSummary, cell: CellSummary) -> str:
    """Name the best of those compared with the baseline, behind the baseline where that returned more."""
    base = next((one.result.value for one in cell.agents if one.baseline), None)
    ahead = base is not None and agent.result.value is not None and base > agent.result.value
    return f"After {cell.baseline_phrase}, {agent.name}" if ahead else agent.name


def _leader(agent: AgentSummary, cell: CellSummary, *, luck: bool) -> str:
    measure = agent.result
    bounds = numbers.interval("cumulative_return", measure)
    text = f"{_first(agent, cell)} has the highest return, {numbers.written(measure.value or 0.0, 'change')}"
    text += f" ({bounds})" if bounds else ""
    if not luck or agent.versus is None or agent.versus.distinguishable is None:
        return text + "."
    window = numbers.count(len(cell.sessions), "session")
    return f"{text}, but over {window} a lead of that size can be luck."


def _winners(winners: list[AgentSummary], cell: CellSummary) -> list[str]:
    sentences = [_leader(winners[0], cell, luck=False)]
    versus = winners[0].versus
    if versus is not None and versus.difference.value is not None:
        low, high = versus.difference.low or 0.0, versus.difference.high or 0.0
        sentences.append(
            f"That is {numbers.difference(versus.difference.value)} a year against {cell.baseline_phrase} "
            f"({numbers.difference(low)} to {numbers.difference(high)})."
        )
    if len(winners) > 1 and not cell.leader_apart:
        sentences.append(f"Among themselves, {_list([one.name for one in winners])} cannot all be told apart.")
    return sentences


# An agent against itself under another setting


def arm_standing(arm: ContrastArm, reference: str, level: float) -> AgentStanding:
    """Say how an agent under one setting compares with itself under the reference."""
    versus = arm.versus
    if versus is None or versus.distinguishable is None or versus.difference.value is None:
        reason = "" if versus is None else str(versus.difference.reason)
        return AgentStanding("none", "not compared", f"was not compared with {reference}: {reason}")
    if versus.difference.low == versus.difference.high == 0.0:
        return AgentStanding("same", "same", f"is the same as under {reference}, session by session")
    sure = versus.distinguishable and arm.p_adjusted is not None and arm.p_adjusted <= 1.0 - level
    if not sure:
        return AgentStanding("same", "cannot be told apart", f"cannot be told apart from {reference}")
    better = versus.difference.value > 0
    word = "better" if better else "worse"
    said = f"does {word} than under {reference} by more than luck explains"
    return AgentStanding("above" if better else "below", word, said)


def contrast_in_words(one: Contrast, level: float) -> tuple[str, ...]:
    """Return a contrast in plain words, one sentence for every agent and setting."""
    return tuple(
        f"{row.agent} under {label} {arm_standing(arm, one.labels[0], level).sentence}."
        for row in one.rows
        for label, arm in zip(one.labels[1:], row.arms[1:], strict=True)
        if arm is not None
    )


def _list(names: Sequence[str]) -> str:
    return f"{', '.join(names[:3])} and {len(names) - 3} others" if len(names) > 4 else _all(names)


def _all(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _verb(names: Sequence[str], one: str, many: str) -> str:
    return one if len(names) == 1 else many
