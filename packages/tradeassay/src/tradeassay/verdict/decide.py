"""One verdict from what was found, by fixed rules, in words that are never stronger than the evidence.

The questions are asked in this order, and the first that is answered decides: did it fail? did it see the future?
is it a passive portfolio? is it memory? is it pay for tail risk? is there an edge of its own, or timing of the
market or of styles? did costs eat one? is it worse than chance? What is left cannot be told from luck. Every
sentence is made from numbers that are shown with it, and what was not examined is said in it.
"""

from __future__ import annotations

import math

import msgspec

from tradeassay.core.measure import FILES_OPEN, above, below
from tradeassay.factors import factor_words
from tradeassay.verdict.evidence import (
    convex,
    gained,
    leaning,
    least_edge,
    never_moves,
    unearned,
    unearned_words,
)
from tradeassay.verdict.reasons import (
    because,
    beyond_what,
    edge_skew_words,
    in_rows,
    pace,
    part_of,
    percent,
    signed,
    spanned,
    speaks_against,
    speaks_for,
    style_known,
    yearly_of,
)
from tradeassay.verdict.recalled import EdgeSplit, split_sentence
from tradeassay.verdict.record import (
    CASH,
    LABELS,
    SOFT,
    AgentAssay,
    AgentFindings,
    Claim,
    Contrast,
    Kind,
    MemoryEvidence,
    Verdict,
    VerdictConfig,
)

_SMALL = "no edge is shown"
"""The label of what is certain and too small to be called an edge."""
_PRAISE = ("skill", "timing", "mixed")
"""Kinds that something unexamined makes weaker."""


def judge(found: AgentFindings, config: VerdictConfig) -> AgentAssay:
    return AgentAssay(**msgspec.structs.asdict(found), verdict=decide(found, config))


def decide(found: AgentFindings, config: VerdictConfig) -> Verdict:
    if found.failure is not None or found.edge is None or found.total.value is None:
        return Verdict(
            kind="failed",
            label=LABELS["failed"],
            firm=True,
            sentence=f"{found.agent} has no result: {found.failure or str(found.total.reason)}.",
            because=("a failed run is a failed run, not a return of zero",),
        )
    kind, (stays, lost) = _kind_of(found, config), _persisting(found, config)
    if kind == "cash":
        return _of_cash(found, config)
    limits = in_rows(found, *_limits_of(found, config, kind))
    # A verdict is firm where nothing that would have to be excluded is left.
    if kind == "leak":
        firm = bool(found.leaks.findings)
    elif kind == "memory":
        firm = any(_certainly_lost(found, claim) for claim in lost)
    elif kind == "worse":
        firm = found.luck.p_low is not None
    elif kind == "tail":
        firm = found.tail is not None and found.tail.option_like
    else:
        firm = kind not in _PRAISE or not limits
    label = LABELS[kind] if firm else SOFT.get(kind, LABELS[kind])
    if found.baseline and kind != "leak":
        label = "baseline"  # what others are compared with is there to be simple, not to be skilled
    elif kind == "luck" and _small(found, config):
        label = _SMALL
    elif kind == "worse" and not firm and not style_known(found, config):
        label = "behind the market"
    sentence = _said(kind, found, config, firm=firm)
    if kind in _PRAISE and limits:
        clauses = [limit.partition(":")[0] for limit in limits]
        more = f"; and {len(clauses) - 3} more" if len(clauses) > 3 else ""
        sentence += f" But {'; '.join(clauses[:3])}{more}."
    return Verdict(
        kind=kind,
        label=label,
        firm=firm,
        sentence=in_rows(found, sentence)[0],
        because=in_rows(found, *because(found, config)),
        limits=limits,
        speaks_for=in_rows(found, *speaks_for(found, config, stays)),
        speaks_against=(*in_rows(found, *speaks_against(found, config)), *limits),
    )


def _of_cash(found: AgentFindings, config: VerdictConfig) -> Verdict:
    """Return the verdict on an account that held cash. Nothing can be said of skill, and nothing has to be
    excluded; that it had no usable answer is said, because it may be why nothing was bought."""
    return Verdict(
        kind="cash",
        label="baseline" if found.baseline else LABELS["cash"],
        firm=True,
        sentence=in_rows(found, _said("cash", found, config, firm=True))[0],
        limits=in_rows(found, *_answer_limits(found, config)),
    )


def _small(found: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether an edge, or a loss, is certain and too small to be called one."""
    edge, value = found.known_edge.tested, found.known_edge.tested.value or 0.0
    least = least_edge(found, config) if value > 0.0 else config.floor
    return (above(edge) or below(edge)) and abs(value) < least


def _kind_of(found: AgentFindings, config: VerdictConfig) -> Kind:
    """Return which kind of result it is; ``found`` has an edge."""
    edge = found.known_edge
    # Too good to be believed is a suspicion: where it was shown what the edge is, it has its name. A leaked future
    # is there under a mask too.
    shown = _certainly_lost(found, "edge") and _remembered(found, "edge", config)
    if found.leaks.findings or (_too_good(found, config) and not shown):
        return "leak"
    if found.passive is not None and found.passive.portfolio == CASH and _passive(found, config):
        return "cash"
    if found.method == "returns" and part_of(found, "common") is None:
        return "open"
    if _passive(found, config):
        return "market"
    stays, lost = _persisting(found, config)
    if lost and not stays:
        return "memory"
    if _for_tails(found, config) and _confirmed(found):
        return "tail"
    if stays:
        several = len(stays) > 1 or bool(lost) or any(_partly(found, claim) for claim in stays)
        if several or ("edge" in stays and leaning(found, config)):
            return "mixed"
        return "skill" if "edge" in stays else "timing"
    # Most of what was lost may be costs, and they may have eaten most of an edge.
    lost_it = below(edge.tested) and not below(edge.gross) and not above(edge.gross)
    lost_it = lost_it and (edge.tested.value or 0.0) <= -config.floor
    if _ate_an_edge(found, config) or (lost_it and edge.most_of_loss and edge.costly(config)):
        return "costs"
    # Where there are no random portfolios that do as badly, the word is weaker.
    rare = found.luck.p_low is None or found.luck.p_low <= _allowed(found, config)
    if below(edge.tested) and (edge.tested.value or 0.0) <= -config.floor and rare:
        return "worse"
    # It leans to styles, and they moved it, or brought it, more than its names did.
    style, own = (
        part_of(found, "style"),
        (part_of(found, "selection") or 0.0) + (part_of(found, "trading") or 0.0),
    )
    mostly = (found.style_variance or 0.0) >= 0.5 or abs(style or 0.0) > abs(own)
    return "style" if mostly and leaning(found, config) else "luck"


def _passive(found: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether an account follows a passive portfolio and nothing worth the name is left beyond it."""
    if found.active_variance is not None and found.active_variance <= config.market_variance:
        edge = found.known_edge.tested
        certain = above(edge) or below(edge)
        # Many names, held now more and now less, or traded away at a cost, follow the market too.
        other = set(_claims(found, config)) - {"edge"} or _ate_an_edge(found, config)
        if not other and (not certain or abs(edge.value or 0.0) < config.floor):
            return True
    followed = found.passive
    if followed is None or followed.explained < config.tracks:
        return False
    beyond, value = followed.beyond, followed.beyond.value or 0.0
    if value < 0.0 and found.method == "returns":
        # Leverage, fees and trading cost something: what trails the portfolio that moves it is still that one.
        return True
    certain = above(beyond) or below(beyond)
    return not certain or abs(value) < config.floor + (
        unearned(found, config) if value > 0.0 else 0.0
    )


def _earned(found: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether an edge is more than the dividends and interest that returns alone do not show."""
    missing, at_least = least_edge(found, config) - config.floor, found.known_edge.at_least
    return missing <= 0.0 or at_least is None or at_least > missing


def _for_tails(found: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether what was earned for certain bends down as what sellers of options earn does, or is certain no
    more once its skew is allowed for."""
    tail = found.tail
    paid = tail is not None and (tail.option_like or tail.rare_losses)
    return paid and gained(found.known_edge.tested, config.floor) and not _contradicted(found)


def _claims(found: AgentFindings, config: VerdictConfig) -> tuple[Claim, ...]:
    """Return what is certain and large enough to be praised, before anybody asks whether it is remembered. An edge
    is also not contradicted by random portfolios."""
    edge, least, memory = found.known_edge.tested, least_edge(found, config), found.memory
    certain, large = above(edge), (edge.value or 0.0) >= least
    if not certain and memory is not None and not memory.doubted:
        # Two plays of one agent say more than either. Memory, which helps in one of them, does not persist.
        certain = gained(memory.both, least) and _persists(memory)
    has_edge = large and certain and _earned(found, config) and not _contradicted(found)
    made: list[Claim] = ["edge"] if has_edge else []
    timed, styles = found.timing, found.styles
    if found.method == "returns":
        # Convexity can be bought: it is timing only where something is left after its price, which is the edge.
        # And then it is all of the edge, unless something is earned where the market does not move.
        if made and convex(found, config) and timed is not None:
            made = (
                ["edge", "timing"]
                if timed.intercept is not None and above(timed.intercept)
                else ["timing"]
            )
        return tuple(made)
    if timed is not None and gained(timed.per_year, config.floor):
        made.append("timing")
    # Trades that time styles are paid from what all trades brought: where costs ate an edge, both are asked.
    if styles is not None and gained(styles.timing, config.floor):
        if gained(styles.net, config.floor) or not _ate_an_edge(found, config):
            made.append("style_timing")
    # What recall earned may be certain where chance hides it in the whole.
    for claim in (
        ("edge", "timing") if found.recall is not None and found.recall.told == "recalls" else ()
    ):
        split = _split_of(found, claim)
        remembered = (
            split is not None and split.remembered and gained(split.explained, config.floor)
        )
        if claim not in made and remembered:
            made.append(claim)
    return tuple(made)


def _persisting(
    found: AgentFindings, config: VerdictConfig
) -> tuple[tuple[Claim, ...], tuple[Claim, ...]]:
    """Return the claims that stand where memory cannot help, and those that are memory."""
    made = _claims(found, config)
    lost = tuple(claim for claim in made if _remembered(found, claim, config))
    stays = [claim for claim in made if claim not in lost and _confirmed(found, claim)]
    both = None if found.memory is None or found.memory.doubted else found.memory.together
    # Who remembers what came earns by names and by dates, and either may hide in chance where their sum does not:
    # with few names the days are a large part of it.
    if not (stays or lost or both is None or _contradicted(found)) and gained(
        both.earned, config.floor
    ):
        if not above(both.masked) if above(both.gap) else _mostly_lost(both):
            lost = ("together",)
    tails = _for_tails(found, config)
    return tuple(claim for claim in stays if not (claim == "edge" and tails)), lost


def _contrast_of(found: AgentFindings, claim: Claim) -> MemoryEvidence | Contrast | None:
    """Return how a claim fared under a mask; None where it was not played under one."""
    memory = found.memory
    if memory is None or memory.gap.value is None:
        return None
    by_claim = {
        "timing": memory.timing,
        "style_timing": memory.style_timing,
        "together": memory.together,
    }
    return memory if claim == "edge" else by_claim[claim]


def _split_of(found: AgentFindings, claim: Claim) -> EdgeSplit | None:
    """Return what a claim is worth without what the model recalls; None where it was not asked."""
    recall = found.recall
    # Answers that tell nothing can follow what was held all the same: by where they were asked for.
    if recall is None or recall.reason is not None or recall.split is None or claim == "together":
        return None
    return recall.split.dates if claim == "timing" else recall.split.names


def _recalled(found: AgentFindings, claim: Claim) -> bool:
    """Return whether direct evidence says that a claim is memory: recall explains it, or input does not matter."""
    recall, split = found.recall, _split_of(found, claim)
    # Who does not read, and shows no recall either, may be lucky: that is a limit, not memory.
    blind = recall is not None and recall.by_name and recall.told != "no recall is shown"
    return blind or (split is not None and split.remembered)


def _familiar(found: AgentFindings, claim: Claim) -> bool:
    """Return whether memory is suspected: it is right where questions are familiar, and nothing else is sure."""
    recall, split = found.recall, _split_of(found, claim)
    if recall is None or recall.interaction is None or recall.told == "no recall is shown":
        return False
    return above(recall.interaction) and (split is None or not above(split.rest))


def _certainly_lost(found: AgentFindings, claim: Claim) -> bool:
    contrast = _contrast_of(found, claim)
    return (contrast is not None and above(contrast.gap)) or _recalled(found, claim)


def _confirmed(found: AgentFindings, claim: Claim = "edge") -> bool:
    """Return whether a claim stands where memory cannot help; true where no masked run was made."""
    contrast = _contrast_of(found, claim)
    return contrast is None or contrast.masked.value is None or _persists(contrast)


def _partly(found: AgentFindings, claim: Claim) -> bool:
    """Return whether a mask takes a part of what is claimed for certain."""
    contrast, split, memory = _contrast_of(found, claim), _split_of(found, claim), found.memory
    if split is not None and split.partly:
        return True
    return (
        contrast is not None and above(contrast.gap) and memory is not None and not memory.doubted
    )


def _persists(contrast: MemoryEvidence | Contrast) -> bool:
    return above(contrast.masked) if contrast.confirmed is None else contrast.confirmed


def _remembered(found: AgentFindings, claim: Claim, config: VerdictConfig) -> bool:
    if _recalled(found, claim):
        return True
    memory, contrast = found.memory, _contrast_of(found, claim)
    # What stands under a mask is not what was remembered, however familiar the questions are.
    if _familiar(found, claim) and (contrast is None or not _persists(contrast)):
        return True
    if memory is None or memory.doubted:
        return False
    if contrast is not None and above(contrast.gap):
        return not above(contrast.masked)
    if claim == "edge" and memory.fade is not None and above(memory.fade):
        return True
    # What random portfolios do not confirm either is luck.
    return (
        contrast is not None
        and _mostly_lost(contrast)
        and (claim != "edge" or _beats_chance(found, config))
    )


def _mostly_lost(contrast: MemoryEvidence | Contrast) -> bool:
    """Return whether a mask takes more than it leaves, tested one-sided, and what it leaves may be nothing. That
    something is certain in one play and not in the other does not say that the two differ."""
    gap, masked = contrast.gap.value, contrast.masked.value
    shrinks = contrast.shrinks and not _persists(contrast)
    return shrinks and gap is not None and masked is not None and gap > masked


def _ate_an_edge(found: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether there was a certain edge before costs, and they took most of it for certain."""
    edge = found.known_edge
    eaten = edge.costly(config) and not above(edge.tested) and edge.most_of_gain
    return eaten and gained(edge.gross, config.floor) and not _contradicted(found)


def _too_good(found: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether even the lower end of the information ratio is one that nobody achieves."""
    edge, followed = found.known_edge, found.passive
    if never_moves(found, config):
        return (edge.tested.value or 0.0) >= least_edge(found, config) and not _passive(
            found, config
        )
    # A tracker's residual is tiny: its ratio says nothing. Nor does that of stale prices.
    tracks = followed is not None and followed.explained >= config.tracks
    ratio = edge.ratio.low is not None and edge.ratio.low > config.too_good
    return ratio and not tracks and (edge.tested.value or 0.0) >= config.floor


def _allowed(found: AgentFindings, config: VerdictConfig) -> float:
    # A second opinion, on the whole return: twice the chance of error that the edge itself is allowed. It
    # cannot ask for more than that none of the portfolios did as well.
    return max(
        (1.0 - config.level) / found.known_edge.comparisons, 1.0 / max(1, found.luck.portfolios)
    )


def _beats_chance(found: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether random portfolios with the same trades do as well too rarely; true where there are none."""
    return found.luck.p is None or found.luck.p <= _allowed(found, config)


def _contradicted(found: AgentFindings) -> bool:
    """Return whether most random portfolios with the same trades did better. That they did as well too often is a
    limit, not a veto: they are compared by the whole return, in which market and style are noise, and a second
    test of the same question would miss skill that the first has found."""
    share = found.luck.percentile.value
    return share is not None and share < 0.5


# What was not examined


def _limits_of(found: AgentFindings, config: VerdictConfig, kind: Kind) -> tuple[str, ...]:
    """Return what was not examined, or prevents a firm verdict, each a clause and what it comes from."""
    # What matters most comes first: the sentence has room for three. That is style where nobody
    # measured it, which looks like any edge, then whether the agent could look anything up, what is particular to
    # this account, and what was not examined.
    limits = []
    if found.styled is not None and found.styled < config.styled:
        there = (
            f"factors are known on {found.styled:.0%} of the days"
            if found.styled
            else "no factors are known"
        )
        limits.append(f"style is not measured: {there}")
    if kind in _PRAISE:
        limits += found.doubts
    if found.leaks.files_open and not found.leaks.findings:
        limits.append(FILES_OPEN)
    if kind == "memory":
        gone = _persisting(found, config)[1]
        if not any(_certainly_lost(found, claim) for claim in gone):
            taken = [
                spanned(one.gap)
                for claim in gone
                if (one := _contrast_of(found, claim)) is not None
            ]
            limits.append(
                f"memory is not certain: unmasked less masked is {' and '.join(taken)} a year"
            )
        elif "edge" in _claims(found, config):
            limits += _edge_limits(found, config)
    elif kind in ("skill", "mixed") or "edge" in _claims(found, config):
        limits += _edge_limits(found, config)
    limits += _evidence_limits(found, config)
    if found.covered is not None and found.covered < config.styled:
        limits.append(
            f"factors cover only {found.covered:.0%} of what was held: the rest counts as selection"
        )
    if found.biases:
        limits.append(f"the data set has known biases: {'; '.join(found.biases)}")
    if found.sessions < config.short:
        limits.append(f"the window is short: {found.sessions} session{'s' * (found.sessions != 1)}")
    limits += _answer_limits(found, config)
    return tuple(limits)


def _answer_limits(found: AgentFindings, config: VerdictConfig) -> list[str]:
    """Return what is missing because an agent did not answer."""
    limits = []
    if found.failed_seeds:
        of = found.seeds + found.failed_seeds
        limits.append(f"some seeds are left out: {found.failed_seeds} of {of} failed")
    if found.failure_rate.value is not None and found.failure_rate.value > config.failed_sessions:
        limits.append(f"many sessions had no usable answer: {found.failure_rate.value:.0%}")
    return limits


def _edge_limits(found: AgentFindings, config: VerdictConfig) -> list[str]:
    """Return where an edge rests on little: what confirms nothing, one half, a few days, one name."""
    limits = []
    if not _beats_chance(found, config):
        limits.append(
            f"random portfolios do not confirm it: {_chance(found.luck.p)} of them did as well"
        )
    edge = found.known_edge.tested
    if not above(edge):
        limits.append(f"the unmasked play alone is not certain: {spanned(edge)} a year")
    missing = least_edge(found, config) - config.floor
    if found.method == "returns" and edge.low is not None and edge.low < missing:
        unseen = unearned_words(found, config)
        are, they = ("is", "it") if unseen == "interest" else ("are", "they")
        limits.append(f"{unseen} {are} not excluded: {they} may be {missing:.1%} of it a year")
    stability, trials, kept = found.stability, found.trials, found.concentration
    if (
        stability is not None
        and (stability.first.value or 0.0) * (stability.second.value or 0.0) < 0.0
    ):
        halves = f"{spanned(stability.first)} a year in the first, {spanned(stability.second)} in the second"
        limits.append(f"it was earned in one half: {halves}")
    if stability is not None and not above(stability.without_best):
        limits.append(
            f"it rests on a few days: without the five best {spanned(stability.without_best)} a year"
        )
    tail, brought = found.tail, part_of(found, "edge") or 0.0
    # From such a skew on, a window may hold fewer of the large losses than are to come.
    if tail is not None and tail.skew is not None and tail.skew <= -3.0 and -1.0 < tail.worst < 0.0:
        days = math.ceil(math.log1p(max(0.0, brought)) / -math.log1p(tail.worst))
        taken = f"{days} more like the worst day would have taken all of it"
        limits.append(
            f"its losses are rare and large: skew of its returns {signed(tail.skew)}; {taken}"
        )
    if kept is not None and kept.name_share is not None and kept.name_share > 0.5:
        limits.append(
            f"it rests on one name: {kept.name} brought {kept.name_share:.0%} of the selection"
        )
    if trials is not None and trials.void_at is not None and trials.void_at <= 20:
        limits.append(
            f"it would not survive {trials.void_at} tries: only so many as are known were allowed for"
        )
    return limits


def _evidence_limits(found: AgentFindings, config: VerdictConfig) -> list[str]:
    """Return which evidence is missing: of memory, leaks, costs, timing and luck."""
    memory, leaks = found.memory, found.leaks
    if found.method == "returns":
        unseen = (
            "holdings and leaks"
            if found.luck.p is not None
            else "holdings, random portfolios and leaks"
        )
        calm = found.tail is not None and found.tail.crash is False
        return [
            *(
                ["the market did not crash: who sells insurance looks the same until it does"]
                if calm
                else []
            ),
            "hindsight is not excluded: returns do not say when what was held was chosen; survivors look skilled",
            f"returns alone say no more: {unseen} cannot be examined",
        ]
    recall = _recall_limit(found)
    masked = found.mask not in (None, "bright") or (
        memory is not None and memory.gap.value is not None
    )
    asked = found.recall is not None and bool(found.recall.sentences) and not recall
    limits = []
    if found.by_model and not masked and not asked:
        why = memory.reason if memory is not None and memory.reason else "no masked run"
        limits.append(f"memory is not excluded: {why}")
    if recall is not None:
        limits.append(recall)
    if memory is not None and memory.doubted:
        limits.append(
            "the memory contrast is in doubt: a control, which cannot remember, shows a gap too"
        )
    if not leaks.tested:
        limits.append("leaks are not excluded: no leak test was made")
    elif not leaks.findings and leaks.bound is not None and leaks.bound > config.leak_bound:
        limits.append(
            f"leaks on up to {leaks.bound:.0%} of days are not excluded: the leak test was too short"
        )
    if found.parts and part_of(found, "trading") is None:
        limits.append("costs are unknown: the account's own returns are not given")
    if found.timing is None and found.market.value is None:
        limits.append(f"timing and passive portfolios are not tested: {found.market.reason}")
    if found.luck.p is None:
        limits.append(f"there is no luck baseline: {found.luck.percentile.reason}")
    return limits


def _recall_limit(found: AgentFindings) -> str | None:
    """Return what keeps recall from being excluded; a rule has none."""
    recall = found.recall
    if not found.by_model or recall is None or recall.excluded is not None:
        return None
    if recall.by_name:
        return f"what it was shown does not matter: {recall.sentences[-1].rstrip('.') if recall.sentences else ''}"
    if recall.reason is not None:
        return f"recall is not tested: {recall.reason}"
    if recall.split is not None and recall.split.covered < 0.5 and recall.told != "recalls":
        return f"recall is not excluded: it was asked about {recall.split.covered:.0%} of what was held"
    split, none = _split_of(found, "edge"), recall.told == "no recall is shown"
    if split is not None and (above(split.rest) or (none and split.edge.value is not None)):
        # Nothing can follow from answers that are all alike: such a test would have found no memory either.
        alike = split.follows.value is None
        return (
            "recall is not excluded: its answers do not tell apart the moves that it traded"
            if alike
            else None
        )
    if none:
        return None
    return f"recall is not excluded: {recall.sentences[0].rstrip('.') if recall.sentences else recall.told}"


# The words

_CLAIMS: dict[Claim, str] = {
    "edge": "edge",
    "timing": "timing",
    "style_timing": "timing of styles",
    "together": "choice of names and days",
}


def _said(kind: Kind, found: AgentFindings, config: VerdictConfig, *, firm: bool) -> str:
    """Return the sentence without what was not excluded."""
    seeds = f" over its {found.seeds} seeds in equal parts" if found.seeds > 1 else ""
    name = f"{found.agent}, the baseline," if found.baseline else found.agent
    made = f"{name} returned {percent(found.total.value)}{pace(found)}{seeds}"
    if found.with_all is not None:
        made += f" where its benchmark has rows ({percent(found.with_all)} with all of its own)"
    yearly, edge, share = yearly_of(found, config), found.known_edge, found.luck.percentile.value
    if kind == "leak":
        return f"{made}, {_leak(found, firm=firm)}"
    if kind == "memory":
        return f"{made}, {_of_memory(found, config)}"
    if kind == "skill":
        verb = "skill is supported" if firm else "consistent with skill"
        better = "and better than", "of random portfolios with the same trades"
        chance = "" if share is None else f", {better[0]} {share:.1%} {better[1]}"
        return f"{made}; {verb}: {_certain_part(yearly, found)}{chance}."
    if kind == "timing":
        return f"{made}; {_timing(found, config, firm=firm)}"
    if kind == "mixed":
        return f"{made}; {_mixed(_certain_part(yearly, found), found, config)}"
    if kind == "tail":
        return f"{made}; {_tail(yearly, found, firm=firm)}"
    if kind == "costs":
        assert edge.costs is not None
        taken, gross = f"{abs(edge.costs.value or 0.0):.1%}", spanned(edge.gross)
        if above(edge.gross):
            left = f"they took {taken}, and {spanned(edge.tested)} is left"
            return f"{made}; costs ate its edge: it earned {gross} a year before costs, {left}."
        before = f"before costs it cannot be told from luck ({gross} a year)"
        return f"{made}; costs took it: {before}, they are {taken} a year."
    if kind == "worse" and found.method == "returns":
        return f"{made}; it fell behind: {yearly}."
    if kind == "worse":
        cause = (
            "the names it chose"
            if below(edge.gross)
            else "what it chose and what it paid for trading"
        )
        chance = (
            ""
            if share is None
            else f"; only {share:.1%} of random portfolios with the same trades did worse"
        )
        return f"{made}; it lost by {cause}: {yearly}{chance}."
    if kind == "open":
        mend = "give a market's returns (--benchmark) or a data set (--dataset) to learn what it is made of"
        return f"{made}, and {found.market.reason or 'no benchmark is given'}: {mend}."
    if kind == "cash":
        did = "it held cash" if found.total.value == 0.0 else "it moves as cash does"
        return f"{made}: {did}; nothing to judge."
    if kind == "market":
        return f"{made}, which is {_market(found, config)}"
    return f"{made}{_style(found, config) if kind == 'style' else _luck(yearly, found, config)}"


def _certain_part(yearly: str, found: AgentFindings) -> str:
    """Return the yearly edge that is certain: that of the account, or that of both plays."""
    memory = found.memory
    if above(found.known_edge.tested) or memory is None or memory.both is None:
        return yearly
    beyond = yearly.partition(" a year ")[2]
    return f"{spanned(memory.both)} a year {beyond}, over the play and its twin under '{memory.against}'"


def _leak(found: AgentFindings, *, firm: bool) -> str:
    ratio = found.known_edge.ratio
    if firm:
        return f"but it saw the future ({', '.join(found.leaks.findings[:3])}): the result is void."
    if ratio.low is None:
        look, why = (
            "leaked future or made-up figures",
            "beyond the market it earns the same on every session",
        )
    else:
        look, why = (
            "leaked future",
            f"an information ratio of {ratio.value:.1f}, at least {ratio.low:.1f}",
        )
    return f"too good to be believed ({why}): look for {look} before anything else."


def _tail(yearly: str, found: AgentFindings, *, firm: bool) -> str:
    tail = found.tail
    assert tail is not None
    if not firm:
        words = edge_skew_words(tail)
        skew = f" ({words})" if words else ""
        rare = f"its losses are rare and large{skew}, and a window with so few of them cannot tell"
        return f"consistent with selling insurance: {yearly}, but {rare}."
    calm = "; the market did not crash in the window" if tail.crash is False else ""
    bends = "it bends down when the market moves far, as what sellers of options earn does"
    return f"it is paid for tail risk: {yearly}, and {bends}{calm}."


def _of_memory(found: AgentFindings, config: VerdictConfig) -> str:
    memory, recall, claim = found.memory, found.recall, _persisting(found, config)[1][0]
    contrast, split = _contrast_of(found, claim), _split_of(found, claim)
    is_memory = f"but its {_CLAIMS[claim]} is memory:"
    left = "" if contrast is None else spanned(contrast.masked)
    if contrast is not None and memory is not None and above(contrast.gap):
        took = f"'{memory.against}' takes {spanned(contrast.gap)} a year of it"
        return f"{is_memory} {took}, and what is left, {left}, cannot be told from nothing."
    if _recalled(found, claim) and split is not None and split.remembered:
        return f"{is_memory} {split_sentence(split)}"
    if _recalled(found, claim):
        unread = None if recall is None or recall.unread is None else recall.unread.value
        kept = (
            ""
            if unread is None
            else f", and orders stay at {unread:+.2f} when returns are mirrored (+1 the same)"
        )
        return f"{is_memory} it decides by name and day, not by what it is shown{kept}."
    if _familiar(found, claim):
        assert recall is not None and recall.interaction is not None
        right = f"{spanned(recall.interaction)} for one standard deviation of Min-K%"
        return f"and memory is suspected: it is right where questions are familiar, {right}."
    assert memory is not None
    if claim != "edge" and contrast is not None:
        stays = f"{left} a year is left under '{memory.against}'"
        return f"and memory is suspected: of {_brought(found, claim)}, {stays}."
    if memory.fade is not None and above(memory.fade):
        after = "after the day on which its knowledge ends"
        return f"and memory is suspected: its selection fades by {spanned(memory.fade)} per window {after}."
    whole = f"{spanned(found.known_edge.tested)} a year beyond market and style"
    return f"and memory is suspected: of {whole} {spanned(memory.masked)} is left under '{memory.against}'."


def _brought(found: AgentFindings, claim: Claim) -> str:
    if claim == "style_timing":
        assert found.styles is not None
        return f"{spanned(found.styles.timing)} a year from leaning to styles when they paid"
    if claim == "together":
        assert found.memory is not None and found.memory.together is not None
        return f"{spanned(found.memory.together.earned)} a year from names and days together"
    assert found.timing is not None
    if found.method == "returns":
        gain = "all of it from gaining more when the market rose than losing when it fell"
        return f"{spanned(found.known_edge.tested)} a year beyond the market, {gain}"
    return f"{spanned(found.timing.per_year)} a year from being invested when the market rose"


def _timing(found: AgentFindings, config: VerdictConfig, *, firm: bool) -> str:
    verb = "timing is supported" if firm else "consistent with timing"
    tested = found.known_edge.tested
    brought = " and ".join(_brought(found, claim) for claim in _persisting(found, config)[0])
    if found.method == "returns":
        return f"{verb}: {brought}."
    rest = "nothing in the names it chose can be told from luck"
    if below(tested):
        rest = f"the rest lost for certain ({spanned(tested)} a year)"
    elif above(tested):
        rest = f"the names it chose brought {spanned(tested)} a year, but {_but(found, config)}"
    return f"{verb}: {brought}; {rest}."


def _mixed(yearly: str, found: AgentFindings, config: VerdictConfig) -> str:
    (stays, lost), memory = _persisting(found, config), found.memory
    kept = " and ".join(yearly if one == "edge" else _brought(found, one) for one in stays)
    for claim in (*lost, *(one for one in stays if _partly(found, one))):
        contrast, split = _contrast_of(found, claim), _split_of(found, claim)
        if (
            split is not None
            and (claim in lost or split.partly)
            and (contrast is None or not above(contrast.gap))
        ):
            rest = f", but {kept} stays." if claim in lost and kept else "."
            return f"of its {_CLAIMS[claim]}, {split_sentence(split).rstrip('.')}{rest}"
        if contrast is not None and memory is not None:
            gone = f"{_CLAIMS[claim]} is memory ({spanned(contrast.gap)} a year)"
            if claim in lost:
                return f"its {gone}, but {kept} stays."
            return f"part of its {gone}, part stays under '{memory.against}' ({spanned(contrast.masked)})."
    timed = [claim for claim in stays if claim != "edge"]
    if timed:
        other, shares = (
            "the names",
            [f"{_CLAIMS[claim]} ({_brought(found, claim)})" for claim in timed],
        )
        if found.method == "returns" and found.timing is not None:
            other, worth = "something else", spanned(found.timing.per_year)
            shares = [f"timing ({worth} a year, before what it cost)"]
        last = f", part {other}: {yearly}" if "edge" in stays else ""
        return f"part of it is {', part '.join(shares)}{last}."
    brought = f"{percent(part_of(found, 'style'))} ({_leans(found, config)})"
    return f"it leans to styles, which brought {brought}, and part is its own: {yearly}."


def _market(found: AgentFindings, config: VerdictConfig) -> str:
    followed = found.passive
    if followed is None or followed.explained < config.tracks:
        shared = f"{percent(part_of(found, 'common'))} came from what all names shared"
        return f"the market: {shared}, and what is left is nothing worth calling an edge."
    late = " with a lag" if followed.lagged > 0.05 else ""
    share = "" if abs(followed.beta - 1.0) < 0.1 else f", beta {followed.beta:.2f}"
    beyond, value = followed.beyond, followed.beyond.value or 0.0
    if (below(beyond) or beyond.low is None) and value <= -config.floor:
        rest = "what leverage, fees or trading cost"
    elif not gained(beyond, config.floor):
        rest = "nothing worth calling an edge"
    elif found.method == "returns" and config.dividends > 0.0:
        rest = "no more than dividends and interest, which a benchmark of prices leaves out"
    else:
        rest = "no more than interest on what was not invested"
    follows = (
        f"it follows {followed.portfolio}{late} ({followed.explained:.1%} of its variance{share})"
    )
    return f"the market: {follows}, and {spanned(beyond)} a year beyond that is {rest}."


def _style(found: AgentFindings, config: VerdictConfig) -> str:
    share, brought, leans = (
        found.style_variance or 0.0,
        percent(part_of(found, "style")),
        _leans(found, config),
    )
    said = f"most of what moves it apart from the market is style ({share:.0%}: {leans}), which brought {brought}"
    if share < 0.5:
        own = percent((part_of(found, "selection") or 0.0) + (part_of(found, "trading") or 0.0))
        said = (
            f"style brought {brought} ({leans}), more than selection and trading together ({own})"
        )
    but = _but(found, config)
    luck = f"cannot be told from luck{_too_short(found)}" if but is None else f"may be luck: {but}"
    return f"; {said}; the rest, {spanned(found.known_edge.tested)} a year, {luck}."


def _leans(found: AgentFindings, config: VerdictConfig) -> str:
    strong = leaning(found, config)[:3]
    return ", ".join(f"{factor_words(name)} {signed(value)}" for name, value in strong)


def _luck(yearly: str, found: AgentFindings, config: VerdictConfig) -> str:
    but, versus = _but(found, config), found.versus
    if but is not None:
        return f", and {_SMALL if _small(found, config) else 'luck is not excluded'}: {yearly}, but {but}."
    if versus is None or versus.side is None:
        return f", which cannot be told from luck: {yearly}{_too_short(found)}."
    # That it beat its baseline for certain says nothing of what made it: both are true, and both are said.
    ahead = f"{'beats' if versus.side == 'above' else 'falls behind'} {versus.baseline}"
    beyond = f"what it did beyond {beyond_what(found, config)} cannot be told from luck"
    return f" and {ahead}, but {beyond}: {yearly}{_too_short(found)}."


def _too_short(found: AgentFindings) -> str:
    return "; the window is too short for skill to show" if found.could_not else ""


def _but(found: AgentFindings, config: VerdictConfig) -> str | None:
    """Return what speaks against an edge, or a loss, whose interval excludes zero; None where it does not."""
    edge = found.known_edge.tested
    # An interval that excludes zero is not shown next to "cannot be told" without what speaks against it.
    if not above(edge) and not below(edge):
        return None
    value, least = edge.value or 0.0, least_edge(found, config)
    unseen = unearned_words(found, config)
    if abs(value) < config.floor:
        return f"that is too little to be called an edge (the floor is {config.floor:.0%} a year)"
    if 0.0 < value < least:
        called = f"(an edge is called one from {least:.1%} a year here)"
        return f"that is no more than the {unseen} that returns alone do not show {called}"
    if above(edge) and not _earned(found, config):
        rest = "which returns alone do not show, and the rest is not certain"
        return f"{least - config.floor:.1%} of it may be {unseen}, {rest}"
    if above(edge) and found.memory is not None and not _confirmed(found):
        return f"under '{found.memory.against}' nothing is left that can be told from it"
    luck, side = (found.luck.p, "well") if above(edge) else (found.luck.p_low, "badly")
    return f"{_chance(luck)} of random portfolios with the same trades did as {side}"


def _chance(share: float | None) -> str:
    return "some" if share is None else f"{share:.1%}"
