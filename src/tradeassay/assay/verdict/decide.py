"""One verdict from what was found, by fixed rules, and never stronger than the evidence.

The order matters: a failed run is a failed run; a leak spoils everything after it; what memory explains is no
skill; only then are skill, style, market and luck told apart.
"""

from __future__ import annotations

import msgspec

from tradeassay.assay.verdict import words
from tradeassay.assay.verdict.config import VerdictConfig
from tradeassay.assay.verdict.evidence import above, below, leaning
from tradeassay.assay.verdict.record import LABELS, AgentAssay, AgentFindings, Kind, Verdict


def judge(found: AgentFindings, config: VerdictConfig) -> AgentAssay:
    """Return the findings with their verdict."""
    fields = {field.name: getattr(found, field.name) for field in msgspec.structs.fields(AgentFindings)}
    return AgentAssay(**fields, verdict=decide(found, config))


def decide(found: AgentFindings, config: VerdictConfig) -> Verdict:
    """Return the verdict on one agent."""
    if found.failure is not None or found.edge is None or found.total.value is None:
        reason = found.failure or str(found.total.reason)
        return Verdict(
            kind="failed",
            label=LABELS["failed"],
            firm=True,
            sentence=f"{found.agent} has no result: {reason}.",
            because=("a failed run is a failed run, not a return of zero",),
        )
    kind = kind_of(found, config)
    limits = limits_of(found, config)
    firm = kind not in ("skill", "mixed", "memory", "leak") or not limits
    if kind == "leak":
        firm = bool(found.leaks.findings)
    if kind == "memory":
        firm = True
    return Verdict(
        kind=kind,
        label=words.label(kind, firm=firm),
        firm=firm,
        sentence=words.sentence(kind, found, config, firm=firm),
        because=words.because(kind, found, config),
        limits=limits,
    )


def kind_of(found: AgentFindings, config: VerdictConfig) -> Kind:
    """Return which kind of result it is; ``found`` has an edge."""
    edge = found.edge
    assert edge is not None
    if found.leaks.findings or _too_good(found, config):
        return "leak"
    if above(edge.tested) and _beats_chance(found, config):
        memory = found.memory
        if memory is not None and above(memory.gap) and not memory.doubted:
            return "mixed" if above(memory.masked) else "memory"
        if confirmed(found):
            return "mixed" if leaning(found, config) else "skill"
    if below(edge.tested):
        return "worse"
    if found.active_variance is not None and found.active_variance <= config.market_variance:
        return "market"
    if leaning(found, config):
        return "style"
    return "luck"


def confirmed(found: AgentFindings) -> bool:
    """Return whether an edge stands where memory cannot help; true where no masked run was made."""
    return found.memory is None or found.memory.masked.value is None or above(found.memory.masked)


def limits_of(found: AgentFindings, config: VerdictConfig) -> tuple[str, ...]:
    """Return what was not examined, or stands in the way of a firm word."""
    limits = []
    if found.method == "returns":
        limits.append("holdings are unknown: exposures are estimated from returns alone")
    if found.luck.p is None:
        limits.append(f"no luck baseline: {found.luck.percentile.reason}")
    if found.by_model and not _memory_examined(found):
        why = found.memory.reason if found.memory is not None and found.memory.reason else "no masked run"
        limits.append(f"memory is not excluded: {why}")
    if found.memory is not None and found.memory.doubted:
        limits.append("the memory contrast is in doubt: a control, which cannot remember, shows a gap too")
    if not found.leaks.tested:
        limits.append("no leak test was made")
    if found.failed_seeds:
        limits.append(f"{found.failed_seeds} of {found.seeds + found.failed_seeds} seeds failed and are left out")
    rate = found.failure_rate.value
    if rate is not None and rate > config.failed_sessions:
        limits.append(f"{rate:.0%} of the sessions had no usable answer")
    return tuple(limits)


def _memory_examined(found: AgentFindings) -> bool:
    return found.mask not in (None, "bright") or (found.memory is not None and found.memory.gap.value is not None)


def _too_good(found: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether even the lower end of the information ratio is one that nobody has."""
    edge = found.edge
    return edge is not None and edge.ratio.low is not None and edge.ratio.low > config.too_good


def _beats_chance(found: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether random portfolios with the same trades do as well too rarely; true where there are none."""
    if found.luck.p is None or found.edge is None:
        return True
    # A second opinion, on the whole return: twice the chance of error that the edge itself is allowed. More than
    # that none of the portfolios did as well cannot be asked for.
    return found.luck.p <= max((1.0 - config.level) / found.edge.comparisons, 1.0 / found.luck.portfolios)
