"""Find the limits of a verdict: missing tests, and findings that weaken praise.

Each limit is a clause, a colon and the reason. A verdict's sentence states only the first three, so
the most important limits come first. The order is: unmeasured style (which looks like alpha),
doubtful returns, access to files, facts about this account, and missing tests.
"""

from __future__ import annotations

import math

import msgspec

from tradeassay.core.measure import FILES_OPEN, above
from tradeassay.verdict._claims import (
    beats_random_portfolios,
    contrast_of,
    is_lost_information,
    is_recalled,
    mostly_lost,
    significant_claims,
    split_claims_by_memory,
    split_gap,
    split_of,
    surely_memory,
)
from tradeassay.verdict._phrases import part_of, percent, signed, spanned
from tradeassay.verdict.evidence import hidden_income_words, least_alpha
from tradeassay.verdict.record import (
    PRAISE,
    AgentFindings,
    Claim,
    Kind,
    MemoryEvidence,
    StabilityEvidence,
    VerdictConfig,
)

_LARGE_SKEW = -3.0
"""Skew at or below which a record may contain too few of the large losses."""
_RESTS_ON_NAME = 0.5
"""Share of selection from one name above which alpha rests on this name."""


def limits_of(account: AgentFindings, config: VerdictConfig, kind: Kind) -> tuple[str, ...]:
    """Return the limits of a verdict of this kind, the most important first."""
    limits = _style_limits(account, config)
    if kind in (*PRAISE, "hidden-risk"):
        limits += account.doubts
    if account.leaks.files_open and not account.leaks.findings:
        limits.append(FILES_OPEN)
    if kind == "memory":
        limits += _memory_limits(account, config)
    elif kind in ("skill", "could-be-best-of-few") or "alpha" in significant_claims(
        account, config
    ):
        limits += alpha_limits(account, config)
    limits += evidence_limits(account, config)
    if account.covered is not None and account.covered < config.styled:
        share = f"{account.covered:.0%}"
        limits.append(f"factors cover only {share} of what was held: the rest counts as selection")
    if account.biases:
        limits.append(f"the data set has known biases: {'; '.join(account.biases)}")
    if account.years * 252 < config.short:
        plural = "" if account.sessions == 1 else "s"
        limits.append(f"the window is short: {account.sessions} session{plural}")
    limits += answer_limits(account, config)
    return tuple(limits)


def _style_limits(account: AgentFindings, config: VerdictConfig) -> list[str]:
    """Return the limit that style was measured on too few days, or an empty list."""
    if account.styled is None or account.styled >= config.styled:
        return []
    known = "no factors are known"
    if account.styled:
        known = f"factors are known on {account.styled:.0%} of the days"
    return [f"style is not measured: {known}"]


def _memory_limits(account: AgentFindings, config: VerdictConfig) -> list[str]:
    """Return the limits of the verdict *memory*."""
    dropped = split_claims_by_memory(account, config).dropped
    unpriced = _unpriced_limit(account, dropped)
    if any(surely_memory(account, claim) for claim in dropped):
        if "alpha" not in significant_claims(account, config):
            return unpriced
        return unpriced + alpha_limits(account, config)
    gaps = []
    for claim in dropped:
        contrast = contrast_of(account, claim)
        if contrast is not None:
            gaps.append(spanned(contrast.gap))
    uncertain = f"memory is not certain: unmasked less masked is {' and '.join(gaps)} a year"
    return [uncertain, *unpriced]


def _unpriced_limit(account: AgentFindings, dropped: tuple[Claim, ...]) -> list[str]:
    """Return the limit that a claim may be lost information, if that loss was not measured."""
    memory = account.memory
    unpriced = False
    for claim in dropped:
        contrast = contrast_of(account, claim)
        if contrast is None or is_recalled(account, claim):
            continue
        if above(contrast.gap) or mostly_lost(contrast):
            unpriced = unpriced or split_gap(contrast) is None
    if memory is None or not unpriced:
        return []
    why = "the mask's price is not measured"
    if not isinstance(memory.price, msgspec.UnsetType) and memory.price.reason is not None:
        why += f" ({memory.price.reason})"
    return [f"what the mask took may be memory, or information that it destroyed: {why}"]


def _may_hide_memory(memory: MemoryEvidence, config: VerdictConfig) -> bool:
    """Return whether a gap may be lost information, but may also contain memory above the floor."""
    priced = split_gap(memory)
    if priced is None or not above(memory.gap) or not is_lost_information(memory):
        return False
    return not above(memory.masked) and (priced.remembered.high or 0.0) >= config.floor


def answer_limits(account: AgentFindings, config: VerdictConfig) -> list[str]:
    """Return the limits caused by failed seeds and by sessions without a usable answer."""
    limits = []
    if account.failed_seeds:
        of = account.seeds + account.failed_seeds
        limits.append(f"some seeds are left out: {account.failed_seeds} of {of} failed")
    rate = account.failure_rate.value
    if rate is not None and rate > config.failed_sessions:
        limits.append(f"many sessions had no usable answer: {rate:.0%}")
    return limits


def alpha_limits(account: AgentFindings, config: VerdictConfig) -> list[str]:
    """Return the limits of a weakly supported alpha.

    For example, random portfolios do not confirm it, or it comes from a few days or one name.
    """
    limits = []
    if not beats_random_portfolios(account, config):
        share = "some" if account.luck.p is None else f"{account.luck.p:.1%}"
        limits.append(f"random portfolios do not confirm it: {share} of them did as well")
    if not above(account.known_alpha.tested):
        limits.append("the unmasked play alone is not significant")
    limits += _unseen_income(account, config)
    stability, names = account.stability, account.concentration
    if stability is not None:
        limits += _rests_on_little(stability)
    limits += _large_losses(account)
    if names is not None and names.name_share is not None and names.name_share > _RESTS_ON_NAME:
        share = f"{names.name_share:.0%}"
        limits.append(f"it rests on one name: {names.name} brought {share} of the selection")
    return limits


def _rests_on_little(stability: StabilityEvidence) -> list[str]:
    """Return the limit that alpha comes from a few rows or from one month."""
    if not above(stability.without_best):
        left = f"without the five best {spanned(stability.without_best)} a year"
        return [f"it rests on a few days: {left}"]
    month = stability.without_month
    if month is None or above(month):
        return []
    return [
        f"it rests on one month ({stability.best_month}): without it {percent(month.value)} a year"
    ]


def _unseen_income(account: AgentFindings, config: VerdictConfig) -> list[str]:
    """Return the limit that dividends or interest missing from the returns may be part of alpha."""
    missing = least_alpha(account, config) - config.floor
    low = account.known_alpha.tested.low
    if account.method != "returns" or low is None or low >= missing:
        return []
    unseen = hidden_income_words(account, config)
    are = "is" if unseen == "interest" else "are"
    they = "it" if unseen == "interest" else "they"
    return [f"{unseen} {are} not excluded: {they} may be {missing:.1%} of it a year"]


def _large_losses(account: AgentFindings) -> list[str]:
    """Return the limit that losses are rare and large, or an empty list."""
    tail, earned = account.tail, part_of(account, "alpha") or 0.0
    if tail is None or tail.skew is None or tail.skew > _LARGE_SKEW or not -1.0 < tail.worst < 0.0:
        return []
    days = math.ceil(math.log1p(max(0.0, earned)) / -math.log1p(tail.worst))
    taken = f"{days} more like the worst day would have taken all of it"
    return [f"its losses are rare and large: skew of its returns {signed(tail.skew)}; {taken}"]


def evidence_limits(account: AgentFindings, config: VerdictConfig) -> list[str]:
    """Return the limits from missing evidence on memory, look-ahead, costs, timing and luck."""
    if account.method == "returns":
        return _limits_of_returns(account)
    limits = [*_recall_limits(account, config), *_look_ahead_limits(account, config)]
    if account.parts and part_of(account, "trading") is None:
        limits.append("costs are unknown: the account's own returns are not given")
    if account.timing is None and account.market.value is None:
        limits.append(f"timing and passive portfolios are not tested: {account.market.reason}")
    if account.luck.p is None:
        limits.append(f"there is no luck baseline: {account.luck.percentile.reason}")
    return limits


_LATE = 0.05
"""Share of the market exposure in later rows above which it is a limit."""


def _limits_of_returns(account: AgentFindings) -> list[str]:
    """Return the limits of every table of returns, and those of its prices."""
    limits = []
    followed = account.passive
    if followed is not None and followed.lagged > _LATE:
        late = f"{followed.lagged:.0%} of its market exposure comes late"
        limits.append(f"its prices are stale or smoothed: {late}")
    if account.tail is not None and account.tail.crash is False:
        limits.append(
            "no crash in the record: an account that sells insurance looks the same until one comes"
        )
    limits.append(
        "hindsight is not excluded: returns do not say when what was held was chosen; survivors "
        "look skilled"
    )
    unseen = "holdings, random portfolios and look-ahead"
    if account.luck.p is not None:
        unseen = "holdings and look-ahead"
    limits.append(f"returns alone say no more: {unseen} cannot be examined")
    return limits


def _look_ahead_limits(account: AgentFindings, config: VerdictConfig) -> list[str]:
    """Return the limit that look-ahead is not excluded, or an empty list."""
    leaks = account.leaks
    if not leaks.tested:
        return ["look-ahead is not excluded: no leak test was made"]
    if leaks.findings or leaks.bound is None or leaks.bound <= config.leak_bound:
        return []
    share = f"{leaks.bound:.0%}"
    return [f"look-ahead on up to {share} of days is not excluded: the leak test was too short"]


def _recall_limits(account: AgentFindings, config: VerdictConfig) -> list[str]:
    """Return the reasons why a model's memory is not excluded. A rule-based agent has none."""
    memory, recall = account.memory, _recall_limit(account)
    masked = account.mask not in (None, "bright")
    contrasted = memory is not None and memory.gap.value is not None
    recall_excluded = account.recall is not None and bool(account.recall.sentences) and not recall
    limits = []
    if account.by_model and not masked and not contrasted and not recall_excluded:
        why = memory.reason if memory is not None and memory.reason else "no masked run"
        limits.append(f"memory is not excluded: {why}")
    if recall is not None:
        limits.append(recall)
    priced = split_gap(memory)
    if memory is not None and priced is not None and _may_hide_memory(memory, config):
        rest = f"{spanned(priced.remembered)} a year"
        limits.append(f"memory is not excluded: beyond lost information the mask takes {rest}")
    if memory is not None and memory.doubted:
        control = "a control, which cannot remember, shows a gap too"
        limits.append(f"the memory contrast is in doubt: {control}")
    return limits


def _recall_limit(account: AgentFindings) -> str | None:
    """Return the reason why a model's recall is not excluded, or None."""
    recall = account.recall
    if not account.by_model or recall is None or recall.excluded is not None:
        return None
    if recall.by_name:
        evidence = recall.sentences[-1].rstrip(".") if recall.sentences else ""
        return f"what it was shown does not matter: {evidence}"
    if recall.reason is not None:
        return f"recall is not tested: {recall.reason}"
    split = recall.split
    if split is not None and split.covered < 0.5 and recall.told != "recalls":
        return f"recall is not excluded: it was asked about {split.covered:.0%} of what was held"
    none_shown = recall.told == "no recall is shown"
    names = split_of(account, "alpha")
    if names is not None and (above(names.rest) or (none_shown and names.alpha.value is not None)):
        # If all answers are identical, the test cannot detect memory.
        if names.follows.value is None:
            return "recall is not excluded: its answers do not tell apart the moves that it traded"
        return None
    if none_shown:
        return None
    first = recall.sentences[0].rstrip(".") if recall.sentences else recall.told
    return f"recall is not excluded: {first}"


def chance_words(account: AgentFindings, *, well: bool) -> str:
    """Return a clause about the share of random portfolios that did as ``well``, or as badly."""
    share = account.luck.p if well else account.luck.p_low
    text = "some" if share is None else f"{share:.1%}"
    how = "well" if well else "badly"
    return f"{text} of random portfolios with the same trades did as {how}"
