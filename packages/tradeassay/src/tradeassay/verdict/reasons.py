"""What a verdict rests on, in words: numbers one line each, and the strongest reasons for skill and against it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tradeassay.core.measure import Measure, above, at_most, below
from tradeassay.verdict.evidence import convex, least_edge, never_moves, unearned_words
from tradeassay.verdict.record import CASH, AgentFindings, Claim, TailEvidence, VerdictConfig

_ROWS = {52: "week", 12: "month", 4: "quarter"}
_SESSION = re.compile(r"\b(session|day)(s?)\b")


def percent(value: float | None) -> str:
    """Return a share in per cent with its sign and a true minus."""
    if value is None:
        return "n/a"
    text = f"{abs(value):.1%}" if abs(value) < 10.0 else f"{abs(value):,.0%}"
    if float(text[:-1].replace(",", "")) == 0.0:
        return text
    return f"\u2212{text}" if value < 0 else f"+{text}"


def pace(found: AgentFindings) -> str:
    """Return what a return over several years is a year; nothing for a shorter one."""
    total, years = found.total.value, found.sessions / found.year
    if total is None or not total > -1.0 or years < 1.5:
        return ""
    return f" ({percent((1.0 + total) ** (1.0 / years) - 1.0)} a year)"


def in_rows(found: AgentFindings, *lines: str) -> tuple[str, ...]:
    """Return lines that call a monthly account's rows months, not days; its name stays as it is."""
    word = _ROWS.get(found.year)
    if word is None:
        return lines
    held = (line.replace(found.agent, "\0") for line in lines)
    return tuple(_SESSION.sub(rf"{word}\2", line).replace("\0", found.agent) for line in held)


def spanned(measure: Measure) -> str:
    text = percent(measure.value)
    return (
        text
        if measure.low is None
        else f"{text} ({percent(measure.low)} to {percent(measure.high)})"
    )


def edge_skew_words(tail: TailEvidence) -> str:
    """Return the tested skew with its sign and what it is of; empty where the test found nothing."""
    if tail.edge_skew is None:
        return ""
    over = "" if tail.edge_span in (None, 1) else f" over {tail.edge_span} sessions"
    return f"skew of the edge{over} {signed(tail.edge_skew)}"


def signed(value: float) -> str:
    """Return a number with one decimal, its sign and a true minus."""
    return f"{value:+.1f}".replace("-", "\u2212")


def part_of(found: AgentFindings, name: str) -> float | None:
    """Return a part of the return over the window; None where it is not known."""
    measure = found.parts.get(name)
    return None if measure is None else measure.value


def style_known(found: AgentFindings, config: VerdictConfig) -> bool:
    """Return whether style was measured on days enough to be spoken of."""
    return found.styled is None or found.styled >= config.styled


def beyond_what(found: AgentFindings, config: VerdictConfig) -> str:
    return "market and style" if style_known(found, config) else "the market"


def too_few(sessions: int, config: VerdictConfig) -> str:
    return f"{sessions} sessions are too few for any test: at least {config.least} are needed"


def yearly_of(found: AgentFindings, config: VerdictConfig) -> str:
    """Return the yearly edge, and beyond what."""
    # Returns alone do not say what was paid: an index has no costs, an account's may be in them or not.
    paid = "" if found.method == "returns" else ", after costs"
    if paid and found.parts and part_of(found, "trading") is None:
        paid = ", before costs"
    return f"{spanned(found.known_edge.tested)} a year beyond {beyond_what(found, config)}{paid}"


def _share(value: float) -> str:
    return "more than all" if value > 1.0 else f"{value:.0%}"


def because(found: AgentFindings, config: VerdictConfig) -> tuple[str, ...]:
    names = {"common": "market", "style": "style", "selection": "selection", "trading": "trading"}
    if part_of(found, "costs") is not None and part_of(found, "fills") is not None:
        del names["trading"]
        names |= {"fills": "fills", "costs": "costs"}
    known = {words: part_of(found, name) for name, words in names.items()}
    parts = ", ".join(
        f"{words} {percent(part)}" for words, part in known.items() if part is not None
    )
    lines = [
        f"of {percent(found.total.value)}: {parts}",
        f"{yearly_of(found, config)}{_certain(found, config)}",
    ]
    if found.market.value is not None:
        lines.append(f"the market returned {percent(found.market.value)} over the same sessions")
    if found.versus is not None and found.versus.difference.value is not None:
        lines.append(f"it {found.versus.sentence}: {spanned(found.versus.difference)} a year")
    if found.luck.percentile.value is not None:
        lines.append(_among(found))
    lines += _made_of(found)
    memory = found.memory
    if memory is not None and memory.gap.value is not None:
        masked = f"{spanned(memory.gap)} a year against {memory.against}; under the mask {spanned(memory.masked)}"
        both = "" if memory.both is None else f", over both plays {spanned(memory.both)}"
        lines.append(f"memory gap: {masked}{both}")
        gaps = {name: gap for name, gap in memory.parts.items() if name != "edge" and above(gap)}
        if gaps:
            sure = ", ".join(
                f"{names.get(name, name)} {spanned(gap)}" for name, gap in gaps.items()
            )
            lines.append(f"more than under the mask, for certain and a year: {sure}")
        if memory.sentence:
            lines.append(memory.sentence)
    if found.recall is not None:
        lines += found.recall.sentences or (
            (found.recall.excluded,) if found.recall.excluded else ()
        )
    if memory is not None and memory.fade is not None and memory.fade.value is not None:
        lines.append(
            f"selection per window before the model's cutoff less after it: {spanned(memory.fade)}"
        )
    lines += [found.leaks.sentence] if found.leaks.tested else []
    lines += [found.power] if found.power else []
    return tuple(lines)


def _certain(found: AgentFindings, config: VerdictConfig) -> str:
    """Return at which confidence an interval holds, and for how many tries it allows; or that there is none."""
    edge, trials = found.known_edge, found.trials
    if never_moves(found, config):
        return "; no interval, it is the same on every session"
    if edge.tested.low is None:
        return f"; no interval, {found.sessions} sessions are too few" if found.sessions else ""
    said = f", at {edge.tested.level:.2%} confidence"
    if edge.comparisons <= 1:
        return said
    where = [] if trials is None else [f"{trials.here} here"]
    if trials is not None and trials.declared > 1:
        where.append(f"x {trials.declared} declared")
    if trials is not None and trials.effective >= 1:
        where.append(f"{trials.effective:.0f} in the folder")
    return f"{said}, allowing for {edge.comparisons} tries" + (
        f" ({', '.join(where)})" if where else ""
    )


def _made_of(found: AgentFindings) -> list[str]:
    lines = []
    followed, kept, tail, trials = found.passive, found.concentration, found.tail, found.trials
    if followed is not None and followed.portfolio != CASH:
        explains = (
            f"explains {followed.explained:.1%} of the variance at a beta of {followed.beta:.2f}"
        )
        late = (
            f"; {followed.lagged:.0%} of the exposure comes late" if followed.lagged > 0.05 else ""
        )
        lines.append(
            f"{followed.portfolio}: {explains}; beyond it {spanned(followed.beyond)} a year{late}"
        )
    if found.timing is not None and found.timing.per_year.value is not None:
        lines.append(f"timing: {spanned(found.timing.per_year)} a year, by {found.timing.by}")
        if found.method == "returns" and found.timing.intercept is not None:
            lines[-1] += f"; {spanned(found.timing.intercept)} where the market does not move"
    if found.styles is not None:
        tilt, moved = spanned(found.styles.tilt), spanned(found.styles.timing)
        lines.append(f"style: {tilt} a year by its mean exposures, {moved} by changing them")
    if found.stability is not None:
        first, second = spanned(found.stability.first), spanned(found.stability.second)
        lines.append(f"edge by half: {first}, then {second} a year")
    if kept is not None and kept.session_share is not None:
        line = f"the best session ({kept.session}) brought {_share(kept.session_share)} of the edge"
        if kept.name_share is not None:
            line += f"; {kept.name} brought {_share(kept.name_share)} of the selection"
        lines.append(line)
    if tail is not None:
        skew = "" if tail.skew is None else f", skew of its returns {signed(tail.skew)}"
        skew += f", {words}" if (words := edge_skew_words(tail)) else ""
        calm = "; no crash of the market in the window" if tail.crash is False else ""
        worst = f"worst day {percent(tail.worst)} ({tail.worst_session})"
        lines.append(f"{worst}, worst drawdown {percent(tail.drawdown)}{skew}{calm}")
    if trials is not None and trials.void_at is not None:
        known = (
            f"{trials.here} here, {trials.declared} declared, {trials.found} other in the folder"
        )
        ratio = "n/a" if trials.deflated.value is None else f"{trials.deflated.value:.2f}"
        void = f"{_tries(trials.void_at)} would void the claim"
        lines.append(f"{void}; known are {known}; deflated Sharpe ratio {ratio}")
    return lines


# For and against


def speaks_for(
    found: AgentFindings, config: VerdictConfig, stays: Sequence[Claim]
) -> tuple[str, ...]:
    """Return what speaks for skill, the strongest first; ``stays`` is what is certain and no memory."""
    edge, memory, trials = found.known_edge, found.memory, found.trials
    lines = []
    if above(edge.tested) and (edge.tested.value or 0.0) >= least_edge(found, config):
        lines.append(f"{yearly_of(found, config)}, above zero for certain")
    if found.luck.percentile.value is not None and found.luck.percentile.value >= 0.95:
        lines.append(_among(found))
    if memory is not None and memory.against is not None and above(memory.masked):
        lines.append(f"under '{memory.against}' {spanned(memory.masked)} a year stays")
    if "timing" in stays and found.timing is not None and found.method != "returns":
        lines.append(
            f"being invested when the market rose brought {spanned(found.timing.per_year)} a year"
        )
    if "style_timing" in stays and found.styles is not None:
        lines.append(
            f"leaning to styles when they paid brought {spanned(found.styles.timing)} a year"
        )
    # Whoever chose afterwards needs no tries, and returns do not say when it was.
    void_at = None if trials is None or found.method == "returns" else trials.void_at
    if void_at is not None and void_at > 20:
        lines.append(f"it would take {_tries(void_at)} to find as much by chance")
    halves = found.stability
    if (
        halves is not None
        and min(halves.first.value or 0.0, halves.second.value or 0.0) >= config.floor
    ):
        both = f"{percent(halves.first.value)} and {percent(halves.second.value)} a year"
        lines.append(f"the edge is positive in both halves: {both}")
    if found.leaks.tested and not found.leaks.findings and found.leaks.bound is not None:
        beside = ", except by reading files" if found.leaks.files_open else ""
        lines.append(
            f"leaks on more than {at_most(found.leaks.bound)} of days are excluded{beside}"
        )
    return tuple(lines)


def speaks_against(found: AgentFindings, config: VerdictConfig) -> tuple[str, ...]:
    """Return what was found against skill, the strongest first; what was not examined comes after it."""
    edge, memory, followed, kept = (
        found.known_edge,
        found.memory,
        found.passive,
        found.concentration,
    )
    lines = [found.leaks.sentence] if found.leaks.findings else []
    if followed is not None and followed.explained >= config.tracks and followed.portfolio != CASH:
        lines.append(f"{followed.portfolio} explains {followed.explained:.1%} of its variance")
    if memory is not None and memory.gap.value is not None:
        asked = {"edge": memory, "timing": memory.timing, "timing of styles": memory.style_timing}
        taken = {name: one.gap for name, one in asked.items() if one is not None and above(one.gap)}
        if not taken and memory.together is not None and above(memory.together.gap):
            lines.append(
                f"'{memory.against}' takes {spanned(memory.together.gap)} a year of names and days together"
            )
        lines += [
            f"'{memory.against}' takes {spanned(gap)} a year of the {name}"
            for name, gap in taken.items()
        ]
    if convex(found, config) and found.timing is not None and found.timing.intercept is not None:
        bought = "it gains when the market moves far, as what buyers of options hold does"
        lines.append(
            f"{bought}; where it does not move {spanned(found.timing.intercept)} a year are paid for that"
        )
    yearly, value, least = (
        yearly_of(found, config),
        edge.tested.value or 0.0,
        least_edge(found, config),
    )
    if below(edge.tested):
        lines.append(f"{yearly}, below zero for certain")
    elif never_moves(found, config):
        lines.append(f"{yearly}, the same on every session: nothing can be tested")
    elif edge.tested.low is None:
        lines.append(too_few(found.sessions, config))
    elif not above(edge.tested):
        lines.append(f"{yearly}: zero is not excluded")
    elif value < config.floor:
        lines.append(f"{yearly}: less than the floor of {config.floor:.0%}")
    elif value < least:
        lines.append(
            f"{yearly}: {unearned_words(found, config)} may be {least - config.floor:.1%} of it"
        )
    if found.luck.percentile.value is not None and found.luck.percentile.value < 0.95:
        lines.append(_among(found))
    if (
        edge.costs is not None
        and above(edge.gross)
        and not above(edge.tested)
        and edge.most_of_gain
    ):
        lines.append(
            f"before costs {spanned(edge.gross)} a year; they took {abs(edge.costs.value or 0.0):.1%}"
        )
    if found.could_not and edge.tested.low is not None and not above(edge.tested):
        lines.append(found.power)
    if kept is not None and kept.session_share is not None and kept.session_share > 0.25:
        lines.append(
            f"one session ({kept.session}) brought {_share(kept.session_share)} of the edge"
        )
    return tuple(lines)


def _among(found: AgentFindings) -> str:
    share, others = found.luck.percentile, f"{found.luck.portfolios:,} random portfolios"
    span = "" if share.low is None else f" ({share.low:.0%} to {share.high:.0%} on days like these)"
    return f"better than {share.value:.1%} of {others} with the same trades in other names{span}"


def _tries(count: int) -> str:
    return "more tries than anybody makes" if count > 10**6 else f"{count:,} tries"
