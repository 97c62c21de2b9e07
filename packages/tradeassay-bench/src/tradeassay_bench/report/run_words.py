"""Write the sentences of a run's report.

The sentences name the best agent, compare agents with the baseline, and compare agents between
settings. This module computes no statistics. The scores state which agents differ significantly
from the baseline, after Holm's correction for the number of agents in one table. The summary
contains the tiers.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tradeassay.core.measure import BadgeTexts
from tradeassay.metrics import AgainstBaseline
from tradeassay.report import numbers
from tradeassay.report.words import ANSWERS, AgentStanding, badge_words
from tradeassay_bench.runs.summary import (
    AgentSummary,
    Contrast,
    ContrastArm,
    OverMarkets,
    SettingSummary,
)

MOSTLY_REFUSED = 0.5
"""The minimum share of refused orders for a sentence about an agent's refused orders."""
_PLURALS = {
    " beats ": " beat ",
    " falls ": " fall ",
    " is ": " are ",
    " was ": " were ",
    " has ": " have ",
}


class BestAnswer(msgspec.Struct, frozen=True):
    """The answer to "which agent is best?": a headline and its evidence."""

    headline: str
    support: tuple[str, ...]


def setting_badges(setting: SettingSummary) -> BadgeTexts:
    """Return the badges of a setting, with the sources of its models' answers."""
    there = {agent.model.answers for agent in setting.agents if agent.model is not None}
    return badge_words(setting.badges, [kind for kind in ANSWERS if kind in there])


def cost_line(agent: AgentSummary) -> str:
    """Return the line below a model's name, e.g. ``scripted model · 1.0M tokens · $0.00``.

    The line is empty for a rule.
    """
    if agent.model is None:
        return ""
    parts, cost = [ANSWERS[agent.model.answers]], agent.model.cost
    if cost is not None:
        tokens = cost.input_tokens + cost.output_tokens
        parts += [f"{numbers.short(tokens)} tokens", numbers.dollars(cost.usd)]
    return " · ".join(parts)


def standing(agent: AgentSummary, setting: SettingSummary) -> AgentStanding:
    """Return an agent's comparison with the baseline: label, colour and sentence."""
    phrase = setting.baseline_phrase
    if agent.result.value is None:
        reason = agent.failure or str(agent.result.reason)
        return AgentStanding("failed", "failed", f"{agent.name} has no result: {reason}.")
    if agent.baseline:
        return AgentStanding("baseline", "baseline", f"{agent.name} is the baseline: {phrase}.")
    if agent.versus is None:
        return AgentStanding(
            "none", "not compared", f"{agent.name} was not compared with {phrase}: no baseline."
        )
    return _standing_of(agent.versus, f"{agent.name} {agent.versus.said_of(phrase)}.")


def _standing_of(versus: AgainstBaseline, sentence: str) -> AgentStanding:
    if versus.distinguishable is None:
        return AgentStanding("none", "not compared", sentence)
    if versus.same:
        return AgentStanding("same", "same", sentence)
    label = {"above": "better", "below": "worse", None: "cannot be told apart"}[versus.side]
    return AgentStanding(versus.side or "same", label, sentence)


def in_words(setting: SettingSummary) -> tuple[str, ...]:
    """Return sentences about all agents of a setting, first their comparisons with the baseline.

    Agents with the same comparison share a sentence. Further sentences are about seeds, refused
    orders and exceptions.
    """
    names_by_sentence: dict[str, list[str]] = {}
    for agent in setting.ranked:
        compared = standing(agent, setting)
        if compared.tone != "baseline":
            names_by_sentence.setdefault(compared.sentence.removeprefix(agent.name), []).append(
                agent.name
            )
    sentences = []
    for rest, names in names_by_sentence.items():
        one = next((verb for verb in _PLURALS if len(names) > 1 and rest.startswith(verb)), "")
        sentences.append(f"{_all(names)}{_PLURALS.get(one, '')}{rest.removeprefix(one)}")
    repeated = [agent for agent in setting.ranked if agent.seeds > 1]
    if repeated:
        sentences.append(
            f"Figures of {_all([agent.name for agent in repeated])} are medians over their seeds."
        )
    for agent in setting.ranked:
        refused = (
            agent.measures["rejection_rate"].median.value
            if "rejection_rate" in agent.measures
            else None
        )
        if refused is not None and refused >= MOSTLY_REFUSED and agent.rejections:
            why = max(agent.rejections, key=agent.rejections.__getitem__).replace("_", " ")
            whose = f"{refused:.0%} of the orders of {agent.name}"
            sentences.append(f"{whose} were refused by the venue, most often: {why}.")
        raised = next((cause for cause in agent.causes if cause.kind == "agent"), None)
        if raised is not None and not agent.failure:
            sentences.append(f"{agent.name} first broke on {raised.session}: {raised.detail}.")
    return tuple(sentences)


def answer(setting: SettingSummary) -> BestAnswer:
    """Return the answer to "which agent is best?", with the best-supported statement first."""
    phrase = setting.baseline_phrase
    played = [
        agent for agent in setting.ranked if agent.result.value is not None and not agent.baseline
    ]
    rivals = [agent for agent in played if agent.has_place]
    if not rivals and not played:
        if any(agent.result.value is not None for agent in setting.agents):
            return BestAnswer(
                "Only the baseline has a result.", ("There is no agent to compare it with.",)
            )
        return BestAnswer(
            "No agent has a result.", ("Every episode failed; the reasons are below.",)
        )
    sides = {agent.name: agent.versus.side for agent in rivals if agent.versus is not None}
    winners = [agent.name for agent in rivals if sides.get(agent.name) == "above"]
    behind = [agent.name for agent in rivals if sides.get(agent.name) == "below"]
    falls = f"{_list(behind)} {_verb(behind, 'falls', 'fall')} behind" if behind else ""
    base = next((agent for agent in setting.agents if agent.baseline), None)
    returned = None if base is None else base.result.value
    others = []
    if base is not None and returned is not None:
        capital = phrase[:1].upper() + phrase[1:]
        others.append(f"{capital} ({base.name}) returned {numbers.written(returned, 'change')}.")
    if behind:
        others.append(f"{falls} {phrase} by more than chance explains.")
    failed = [agent.name for agent in setting.agents if agent.result.value is None]
    if failed:
        others.append(f"{_list(failed)} {_verb(failed, 'has', 'have')} no result (see failures).")
    if not rivals:
        headline = "No agent is ranked: too many sessions had no usable answer."
        return BestAnswer(headline, (*contest_words(setting), *others))
    # An agent that failed too often has no rank, so a sentence about all agents must exclude it.
    kind = "agent" if len(rivals) == len(played) else "ranked agent"
    best, one = rivals[0], len(rivals) == 1
    # If the baseline returned more than the best agent, the sentence states this first.
    subject = (
        f"After {phrase}, {best.name}"
        if returned is not None and returned > (best.result.value or 0.0)
        else best.name
    )
    highest = "the highest return" if kind == "agent" else f"the highest return of a {kind}"
    tier = setting.contest.tiers[0] if setting.contest is not None and len(rivals) > 1 else ()
    if winners and tier == (winners[0],):
        # The best agent is alone in the first tier. Without this condition, an agent that beats the
        # baseline need not be better than its rivals.
        headline = (
            f"{winners[0]} is best: it beats {phrase} and every other {kind} by more than "
            "chance explains."
        )
    elif winners:
        headline = (
            f"{_list(winners)} {_verb(winners, 'beats', 'beat')} {phrase} by more than "
            "chance explains."
        )
    elif all(agent.versus is None or agent.versus.distinguishable is None for agent in rivals):
        headline = f"{subject} has {highest}; nothing could be compared with {phrase}."
    elif len(behind) == len(rivals):
        headline = (
            f"{best.name if one else f'Every {kind}'} falls behind {phrase} by more than "
            "chance explains."
        )
    elif behind:
        headline = f"No {kind} beats {phrase}, and {falls} it by more than chance explains."
    elif one and best.versus is not None:
        headline = f"{best.name} {best.versus.said_of(phrase)}."
    else:
        headline = f"No {kind} can be told apart from {phrase}."
    # The highest return and the excess return versus the baseline, both with intervals.
    bounds = numbers.interval("cumulative_return", best.result)
    leader = f"{subject} has {highest}, {numbers.written(best.result.value or 0.0, 'change')}"
    leader += f" ({bounds})" if bounds else ""
    gap = best.excess
    if gap is not None and gap.value is not None and gap.low is not None and gap.high is not None:
        low, high = numbers.difference(gap.low), numbers.difference(gap.high)
        size = f"{numbers.difference(gap.value)} {setting.horizon.words} ({low} to {high})"
        leader += f"; its excess return versus {phrase} is {size}"
    return BestAnswer(headline, (*contest_words(setting), f"{leader}.", *others))


def contest_words(setting: SettingSummary) -> list[str]:
    """Return sentences about the tiers and about the agents that are not ranked."""
    contest = setting.contest
    without = [
        f"{agent.name} is not ranked: {agent.unranked}."
        for agent in setting.ranked
        if agent.unranked
    ]
    if contest is None:
        return without
    first, others_count = contest.tiers[0], sum(map(len, contest.tiers[1:]))
    kind = "ranked agent" if without else "agent"
    sentences = []
    if len(first) == 1 and others_count:
        sentences.append(
            f"{first[0]} alone is in the first tier: every other {kind} can be told apart from it."
        )
    elif others_count:
        sentences.append(
            f"{_list(first)} share the first tier: they cannot be told apart from the best agent."
        )
    elif len(first) > 1:
        sentences.append(
            f"All {kind}s share one tier: over these sessions they cannot be told apart from the "
            "best."
        )
    return sentences + without


def markets_words(comparison: OverMarkets, title: str = "") -> str:
    """Return sentences about the mean places of agents over several markets.

    ``title`` names the options of the comparison.
    """
    ranks, need = comparison.places.mean_ranks, comparison.places.difference
    means = ", ".join(f"{name} {value:.1f}" for name, value in ranks.items())
    text = f"Over {comparison.places.markets} markets{title} the mean places are {means}. "
    text += (
        f"Two agents can be told apart if their mean places differ by {need:.1f} (Nemenyi, "
        f"{comparison.places.level:.0%}): "
    )
    first = comparison.places.groups[0] if comparison.places.groups else ()
    behind = [name for name in ranks if name not in first]
    if not behind:
        return text + "no agents can be told apart."
    return (
        text + f"{_list(first)} cannot be told apart, {_list(behind)} {_verb(behind, 'is', 'are')} "
        "behind."
    )


def setting_title(comparison: OverMarkets, among: Sequence[OverMarkets]) -> str:
    """Return the options that distinguish a comparison from all others, in brackets."""
    apart = [
        value
        for key, value in comparison.options.items()
        if any(other.options.get(key) != value for other in among)
    ]
    return f" ({', '.join(apart)})" if apart else ""


def arm_standing(arm: ContrastArm, reference: str) -> AgentStanding:
    """Return the comparison of an agent's result in one setting with the reference setting."""
    if arm.versus is None:
        return AgentStanding("none", "not compared", f"was not compared with {reference}")
    return _standing_of(arm.versus, arm.versus.sentence)


def contrast_in_words(contrast: Contrast) -> tuple[str, ...]:
    """Return a contrast as sentences, one for every agent and every setting but the reference."""
    first, *others = contrast.labels
    sentences = []
    for row in contrast.rows:
        for label, arm in zip(others, row.arms[1:], strict=True):
            if arm is not None:
                sentences.append(f"{row.agent} under {label} {arm_standing(arm, first).sentence}.")
    return tuple(sentences)


def _list(names: Sequence[str]) -> str:
    return f"{', '.join(names[:3])} and {len(names) - 3} others" if len(names) > 4 else _all(names)


def _all(names: Sequence[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))


def _verb(names: Sequence[str], one: str, many: str) -> str:
    return one if len(names) == 1 else many
