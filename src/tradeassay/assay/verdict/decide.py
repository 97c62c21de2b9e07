"""One verdict from what was found, by fixed rules, in words that are never stronger than the evidence.

The order matters: a failed run is a failed run; a leak spoils everything after it; what memory explains is not
skill; only then are skill, style, market and luck told apart. Every sentence is made from numbers that stand
beside it.
"""

from __future__ import annotations

import msgspec

from tradeassay.assay.verdict.evidence import above, below, leaning
from tradeassay.assay.verdict.record import LABELS, AgentAssay, AgentFindings, Edge, Kind, Verdict, VerdictConfig
from tradeassay.core.measure import Measure

_SOFT: dict[Kind, str] = {
    "skill": "consistent with skill",
    "mixed": "mixed, not all examined",
    "leak": "leak suspected",
}


def label(kind: Kind, *, firm: bool) -> str:
    """Return the short form."""
    return LABELS[kind] if firm else _SOFT.get(kind, LABELS[kind])


def percent(value: float | None) -> str:
    """Return a share in per cent with its sign and a true minus."""
    if value is None:
        return "n/a"
    text = f"{abs(value):.1%}"
    if float(text[:-1]) == 0.0:
        return text
    return f"\u2212{text}" if value < 0 else f"+{text}"


def spanned(measure: Measure) -> str:
    """Return a measure with its interval."""
    text = percent(measure.value)
    return text if measure.low is None else f"{text} ({percent(measure.low)} to {percent(measure.high)})"


def sentence(kind: Kind, found: AgentFindings, config: VerdictConfig, *, firm: bool) -> str:
    """Return the one sentence."""
    edge = found.edge
    assert edge is not None
    made = f"{found.agent} returned {percent(found.total.value)}"
    yearly = f"{spanned(edge.tested)} a year beyond market and style, after costs"
    if kind == "leak":
        if firm:
            return f"{made}, but it saw the future ({', '.join(found.leaks.findings[:3])}): the result is void."
        return (
            f"{made}, too good to be believed (an information ratio of {edge.ratio.value:.1f}, at least "
            f"{edge.ratio.low:.1f}): look for leaked future before anything else."
        )
    if kind == "memory":
        return _memory(made, found)
    if kind == "skill":
        verb = "skill is supported" if firm else "consistent with skill, which is not all examined"
        return f"{made}; {verb}: {yearly}{_beyond_chance(found)}."
    if kind == "mixed":
        return _mixed(made, yearly, found, config)
    if kind == "worse":
        cause = "the names it chose" if (edge.gross.high or 0.0) < 0 else "what it paid for trading"
        return f"{made}; it lost by {cause}: {yearly}."
    if kind == "market":
        return f"{made}, which is the market: {percent(_part(found, 'common'))} came from what all names shared."
    return _style(made, found, config) if kind == "style" else _luck(made, yearly, found)


def because(kind: Kind, found: AgentFindings, config: VerdictConfig) -> tuple[str, ...]:
    """Return the numbers behind the sentence, one line each."""
    edge = found.edge
    assert edge is not None
    shared = f", allowing for {edge.comparisons} comparisons" if edge.comparisons > 1 else ""
    lines = [
        f"of {percent(found.total.value)}: market {percent(_part(found, 'common'))}, style "
        f"{percent(_part(found, 'style'))}, selection {percent(_part(found, 'selection'))}, trading "
        f"{percent(_part(found, 'trading'))}",
        f"beyond market and style, after costs: {spanned(edge.tested)} a year at {edge.tested.level:.2%} "
        f"confidence{shared}",
    ]
    if found.luck.percentile.value is not None:
        lines.append(
            f"better than {found.luck.percentile.value:.1%} of {found.luck.portfolios:,} random portfolios with "
            "the same trades in other names"
        )
    if found.memory is not None and found.memory.gap.value is not None:
        lines.append(
            f"memory gap: {spanned(found.memory.gap)} a year against {found.memory.against}; under the mask "
            f"{spanned(found.memory.masked)}"
        )
        if found.memory.sentence:
            lines.append(found.memory.sentence)
    if found.leaks.tested:
        lines.append(found.leaks.sentence)
    if found.power:
        lines.append(found.power)
    return tuple(lines)


def _part(found: AgentFindings, name: str) -> float | None:
    measure = found.parts.get(name)
    return None if measure is None else measure.value


def _beyond_chance(found: AgentFindings) -> str:
    if found.luck.percentile.value is None:
        return ""
    return f", and better than {found.luck.percentile.value:.1%} of random portfolios with the same trades"


def _memory(made: str, found: AgentFindings) -> str:
    memory = found.memory
    assert memory is not None
    return (
        f"{made}, but its edge is memory: under '{memory.against}' it loses {spanned(memory.gap)} a year, and "
        f"what is left, {spanned(memory.masked)}, cannot be told from nothing."
    )


def _mixed(made: str, yearly: str, found: AgentFindings, config: VerdictConfig) -> str:
    memory = found.memory
    if memory is not None and above(memory.gap):
        return (
            f"{made}; part of its edge is memory ({spanned(memory.gap)} a year), part stays under "
            f"'{memory.against}' ({spanned(memory.masked)})."
        )
    return f"{made}; part of it is style ({_leans(found, config)}), and part is its own: {yearly}."


def _style(made: str, found: AgentFindings, config: VerdictConfig) -> str:
    return (
        f"{made}; what sets it apart from the market is style ({_leans(found, config)}), and nothing beyond it "
        "can be told from luck."
    )


def _leans(found: AgentFindings, config: VerdictConfig) -> str:
    strong = leaning(found, config)[:3]
    return ", ".join(f"{name} {'+' if value > 0 else chr(0x2212)}{abs(value):.1f}" for name, value in strong)


def _luck(made: str, yearly: str, found: AgentFindings) -> str:
    edge = found.edge
    assert edge is not None
    text = f"{made}, which cannot be told from luck: {yearly}"
    if _only_gross(edge):
        text += "; the names it chose did better than chance, and trading took it"
    elif above(edge.tested) and found.memory is not None and not above(found.memory.masked):
        text += f"; under '{found.memory.against}' nothing is left that can be told from it"
    elif above(edge.tested):
        text += "; random portfolios with the same trades did as well too often"
    if found.could_not and not above(edge.tested):
        text += "; the window is too short for skill to show"
    return text + "."


def _only_gross(edge: Edge) -> bool:
    return above(edge.gross) and not above(edge.tested)


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
        label=label(kind, firm=firm),
        firm=firm,
        sentence=sentence(kind, found, config, firm=firm),
        because=because(kind, found, config),
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
    """Return what was not examined, or prevents a firm verdict."""
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
    """Return whether even the lower end of the information ratio is one that nobody achieves."""
    edge = found.edge
    return edge is not None and edge.ratio.low is not None and edge.ratio.low > config.too_good


def _beats_chance(found: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether random portfolios with the same trades do as well too rarely; true where there are none."""
    if found.luck.p is None or found.edge is None:
        return True
    # A second opinion, on the whole return: twice the chance of error that the edge itself is allowed. It
    # cannot ask for more than that none of the portfolios did as well.
    return found.luck.p <= max((1.0 - config.level) / found.edge.comparisons, 1.0 / found.luck.portfolios)
