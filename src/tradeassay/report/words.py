"""The plain sentences: which agent is best, does it differ from the baseline, or from itself in another setting?

Nothing is decided here. Whether two can be told apart was recorded with the scores, after Holm's correction for
the number of agents compared in one table; who shares a tier is in the summary.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from tradeassay.assay.verdict.record import AgentFindings
from tradeassay.benchmarks.tables import counted
from tradeassay.core.measure import NOT_REDERIVABLE, OWN_PROGRAM, Badges, above, below
from tradeassay.metrics import AgainstBaseline
from tradeassay.report import numbers
from tradeassay.runs.summary import AgentSummary, CellSummary, Contrast, ContrastArm, OverMarkets

_PLURALS = (
    (" beats ", " beat "),
    (" falls ", " fall "),
    (" is ", " are "),
    (" was ", " were "),
    (" has ", " have "),
)
ANSWERS = {
    "live": "live model",
    "program": "a program of the runner's own",
    "replayed": "replayed model",
    "replayed program": "replayed program",
    "scripted": "scripted model",
}
"""Whose answers there are, the liveliest first."""

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
        *((("model", NOT_REDERIVABLE),) if set(models) - {"scripted"} else ()),
        *((("model", OWN_PROGRAM),) if badges.own_program else ()),
        *(("bias", f"known bias: {bias}") for bias in badges.biases),
    )


def cell_badges(cell: CellSummary) -> tuple[tuple[str, str], ...]:
    """Return the badges of a cell; the liveliest kind of answers comes first."""
    there = {agent.model.answers for agent in cell.agents if agent.model is not None}
    return badge_words(cell.badges, [kind for kind in ANSWERS if kind in there])


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

_LABELS = {"above": "better", "below": "worse", None: "cannot be told apart"}


def standing(agent: AgentSummary, cell: CellSummary) -> AgentStanding:
    """Say how an agent compares with its cell's baseline, as it was recorded."""
    phrase = cell.baseline_phrase
    if agent.result.value is None:
        reason = agent.failure or str(agent.result.reason)
        return AgentStanding("failed", "failed", f"{agent.name} has no result: {reason}.")
    if agent.baseline:
        return AgentStanding("baseline", "baseline", f"{agent.name} is the baseline: {phrase}.")
    if agent.versus is None:
        return AgentStanding("none", "not compared", f"{agent.name} was not compared with {phrase}: no baseline.")
    return _told(agent.versus, f"{agent.name} {agent.versus.said_of(phrase)}.")


def _told(versus: AgainstBaseline, sentence: str) -> AgentStanding:
    if versus.distinguishable is None:
        return AgentStanding("none", "not compared", sentence)
    if versus.same:
        return AgentStanding("same", "same", sentence)
    return AgentStanding(versus.side or "same", _LABELS[versus.side], sentence)


MOSTLY_REFUSED = 0.5
"""Share of orders from which that they were refused says more of an account than its return."""


def in_words(cell: CellSummary) -> tuple[str, ...]:
    """Say how every agent compares with the baseline, agents of the same standing in one sentence."""
    said: dict[str, list[str]] = {}
    for agent in cell.ranked:
        told = standing(agent, cell)
        if told.tone != "baseline":
            said.setdefault(told.sentence.removeprefix(agent.name), []).append(agent.name)
    sentences = []
    for rest, names in said.items():
        verb = next(((one, many) for one, many in _PLURALS if len(names) > 1 and rest.startswith(one)), ("", ""))
        sentences.append(f"{_all(names)}{verb[1]}{rest.removeprefix(verb[0])}")
    repeated = [agent for agent in cell.ranked if agent.seeds > 1]
    if repeated:
        sentences.append(f"Figures of {_all([one.name for one in repeated])} are medians over their seeds.")
    for agent in cell.ranked:
        refused = agent.measures["rejection_rate"].median.value if "rejection_rate" in agent.measures else None
        if refused is not None and refused >= MOSTLY_REFUSED and agent.rejections:
            why = max(agent.rejections, key=agent.rejections.__getitem__).replace("_", " ")
            sentences.append(
                f"{refused:.0%} of the orders of {agent.name} were refused by the venue, most often: {why}."
            )
        raised = next((one for one in agent.causes if one.kind == "agent"), None)
        if raised is not None and not agent.failure:
            sentences.append(f"{agent.name} first broke on {raised.session}: {raised.detail}.")
    return tuple(sentences)


# Which agent is best


def answer(cell: CellSummary) -> BestAnswer:
    """Answer "which agent is best?" in plain words, best-founded statement first."""
    played = [agent for agent in cell.ranked if agent.result.value is not None and not agent.baseline]
    rivals = [agent for agent in played if agent.has_place]
    if played and not rivals:
        headline = "No agent is ranked: too many sessions had no usable answer."
        return BestAnswer(headline, (*contest_words(cell), *_others([], cell)))
    if not rivals and any(agent.result.value is not None for agent in cell.agents):
        return BestAnswer("Only the baseline has a result.", ("There is nobody to compare it with.",))
    if not rivals:
        return BestAnswer("No agent has a result.", ("Every episode failed; the reasons are below.",))
    sides = {agent.name: agent.versus.side for agent in rivals if agent.versus is not None}
    winners = [agent.name for agent in rivals if sides.get(agent.name) == "above"]
    behind = [agent.name for agent in rivals if sides.get(agent.name) == "below"]
    # What holds for all who have a place need not hold for one that failed too often.
    kind = "agent" if len(rivals) == len(played) else "ranked agent"
    if winners:
        phrase = cell.baseline_phrase
        first = cell.contest.tiers[0] if cell.contest is not None and len(rivals) > 1 else ()
        # Best is who can be told apart from everybody: a baseline that is beaten makes nobody better than a rival.
        headline = f"{_list(winners)} {_verb(winners, 'beats', 'beat')} {phrase} by more than chance explains."
        if first == (winners[0],):
            beaten = f"{phrase} and every other {kind}"
            headline = f"{winners[0]} is best: it beats {beaten} by more than chance explains."
    else:
        headline = _no_winner(rivals, behind, cell, kind)
    support = (*contest_words(cell), _leader(rivals[0], cell, kind), *_others(behind, cell))
    return BestAnswer(headline, support)


def contest_words(cell: CellSummary) -> list[str]:
    """Say which agents the best one cannot be told apart from, and who has no place."""
    contest = cell.contest
    without = [f"{agent.name} is not ranked: {agent.unranked}." for agent in cell.ranked if agent.unranked]
    if contest is None:
        return without
    first, others = contest.tiers[0], sum(map(len, contest.tiers[1:]))
    kind = "ranked agent" if without else "agent"
    said = []
    if len(first) == 1 and others:
        said.append(f"{first[0]} alone is in the first tier: every other {kind} can be told apart from it.")
    elif others:
        said.append(f"{_list(first)} share the first tier: they cannot be told apart from its best.")
    elif len(first) > 1:
        said.append(f"All {kind}s share one tier: over these sessions they cannot be told apart from the best.")
    return said + without


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


def _no_winner(rivals: Sequence[AgentSummary], behind: Sequence[str], cell: CellSummary, kind: str) -> str:
    phrase, one = cell.baseline_phrase, len(rivals) == 1
    if all(agent.versus is None or agent.versus.distinguishable is None for agent in rivals):
        return f"{_first(rivals[0], cell)} has {_highest(kind)}; nothing could be compared with {phrase}."
    if len(behind) == len(rivals):
        return f"{rivals[0].name if one else f'Every {kind}'} falls behind {phrase} by more than chance explains."
    if behind:
        falls = _verb(behind, "falls", "fall")
        return f"No {kind} beats {phrase}, and {_list(behind)} {falls} behind it by more than chance explains."
    if one and rivals[0].versus is not None:
        return f"{rivals[0].name} {rivals[0].versus.said_of(phrase)}."
    return f"No {kind} can be told apart from {phrase}."


def _others(behind: Sequence[str], cell: CellSummary) -> list[str]:
    sentences = []
    base = next((agent for agent in cell.agents if agent.baseline), None)
    if base is not None and base.result.value is not None:
        phrase = cell.baseline_phrase[:1].upper() + cell.baseline_phrase[1:]
        sentences.append(f"{phrase} ({base.name}) returned {numbers.written(base.result.value, 'change')}.")
    if behind:
        falls = _verb(behind, "falls", "fall")
        sentences.append(f"{_list(behind)} {falls} behind {cell.baseline_phrase} by more than chance explains.")
    failed = [agent.name for agent in cell.agents if agent.result.value is None]
    if failed:
        sentences.append(f"{_list(failed)} {_verb(failed, 'has', 'have')} no result (see failures).")
    return sentences


def _first(agent: AgentSummary, cell: CellSummary) -> str:
    """Name the best of those compared with the baseline, behind the baseline where that returned more."""
    base = next((one.result.value for one in cell.agents if one.baseline), None)
    ahead = base is not None and agent.result.value is not None and base > agent.result.value
    return f"After {cell.baseline_phrase}, {agent.name}" if ahead else agent.name


def _highest(kind: str) -> str:
    return "the highest return" if kind == "agent" else f"the highest return of a {kind}"


def _leader(agent: AgentSummary, cell: CellSummary, kind: str) -> str:
    """Name the highest return and what it is against the baseline, both with their intervals."""
    bounds = numbers.interval("cumulative_return", agent.result)
    text = f"{_first(agent, cell)} has {_highest(kind)}, {numbers.written(agent.result.value or 0.0, 'change')}"
    text += f" ({bounds})" if bounds else ""
    gap = None if agent.versus is None else agent.versus.difference
    if gap is None or gap.value is None or gap.low is None or gap.high is None:
        return f"{text}."
    low, high = numbers.difference(gap.low), numbers.difference(gap.high)
    return (
        f"{text}; against {cell.baseline_phrase} that is {numbers.difference(gap.value)} a year ({low} to {high})."
    )


def until_known(one: AgentFindings) -> str:
    """Say how many more sessions would settle whether an edge is there; empty where none was measured."""
    edge = one.edge
    if edge is None or edge.tested.value is None or edge.tested.low is None or edge.tested.high is None:
        return ""
    if above(edge.tested) or below(edge.tested):
        return f"{counted(one.sessions, 'session')} settle it: the interval leaves zero out."
    if one.needed is None:
        return "No number of sessions would settle it: nothing is left to be found."
    # A design's power is above a half: what was needed may be less than what was had, and zero still inside.
    more = max(one.needed - one.sessions, one.sessions // 4, 1)
    if more > 100 * one.year:
        return f"So small an edge would take over {100 * one.year:,} sessions, or a hundred years, to tell it."
    long = f", about {more / one.year:.1f} years," if more >= one.year else ""
    return f"About {more:,} more sessions{long} like these would settle it, if the edge is as large as it looks."


# An agent against itself under another setting


def arm_standing(arm: ContrastArm, reference: str) -> AgentStanding:
    """Say how an agent under one setting compares with itself under the reference."""
    if arm.versus is None:
        return AgentStanding("none", "not compared", f"was not compared with {reference}")
    return _told(arm.versus, arm.versus.sentence)


def contrast_in_words(one: Contrast) -> tuple[str, ...]:
    """Return a contrast in plain words, one sentence for every agent and setting."""
    return tuple(
        f"{row.agent} under {label} {arm_standing(arm, one.labels[0]).sentence}."
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
