"""The texts that models receive: the opening, a refusal, the evidence, and the review.

The request is at the end of each text. The texts contain nothing for scripted models, which read
the typed question that is sent with the text (:class:`~tradeassay_bench.core.dialogue.Given`).
"""

from collections.abc import Sequence
from typing import Final, Literal

import msgspec

from tradeassay.core.hashing import sha256_bytes
from tradeassay.core.measure import Measure
from tradeassay_bench.core.dialogue import Given, Message
from tradeassay_programs.benchmarks.systrade.prompts import PROMPTS
from tradeassay_programs.benchmarks.systrade.spec import Iteration, ScoredIteration
from tradeassay_programs.code.drift import BUDGET
from tradeassay_programs.code.scores import DIMENSIONS, TARGET, Scorecard
from tradeassay_programs.code.submission import StrategySpec, Submission

EXAMPLE: Final = "example-hold"
"""The strategy of the example answer.

A submission for this strategy is a copy of the example.
"""
LAST_SHARPE: Final = 1.5
LAST_RETURN: Final = 0.10
"""The paper's goals for its last iteration (D.2)."""
_SET_ASIDE: Final = (
    " Your last change was set aside, and what follows is about that change. Go on from the "
    "hand-in shown "
    "above, which is the one before it."
)
_REFUSED: Final = "That answer could not be used"
_KEPT: Final = ("Your strategy card was read", "Your program was read")
Kept = Literal["", "card", "program"]
"""The half of a submission that has already been read."""
_SHOWN: Final = 5
_LONGEST: Final = 12_000
"""Maximum number of characters of a refused answer that are quoted to its author."""


DIMENSION_WORDS: Final = {
    "D1": "Fidelity (decides what the frozen rules decide)",
    "D2": "Risk discipline (keeps its limits, also under stress)",
    "D3": "Reliability (runs, repeats, does not look ahead, logs the truth)",
    "D4": "Robustness (what remains after costs)",
}


def opening(spec: StrategySpec) -> tuple[Message, ...]:
    """Return the messages that request a first submission."""
    # The Strategy Doc without its title, its headings one level lower.
    lines = spec.doc.strip().splitlines()
    kept = lines[1:] if lines[0].startswith("# ") else lines
    user = PROMPTS.fill(
        "first",
        title=spec.semantics.title,
        strategy=spec.id,
        doc="\n".join(f"#{line}" if line.startswith("#") else line for line in kept).strip(),
        semantics=_indented(spec),
        legs=", ".join(spec.semantics.inputs.legs),
        **_form(spec),
    )
    return (Message(role="system", text=PROMPTS.fill("system").strip()), _user(user))


def given(spec: StrategySpec, number: int) -> Given:
    shown = msgspec.json.encode(StrategyShown(strategy=spec.id, iteration=number)).decode()
    return Given(session=f"iteration {number}", rules="{}", observation=shown)


def refusal(
    spec: StrategySpec, asked: tuple[Message, ...], answer: str, why: str, kept: Kept
) -> tuple[Message, ...]:
    """Return the messages that request the missing part of a refused answer.

    They contain the question, the refused answer alone, the reason, and the form of the missing
    part.
    """
    if asked[-1].text.startswith((_REFUSED, *_KEPT)):
        asked = asked[:-2]
    text = {"card": "want_program", "program": "want_card"}.get(kept, "again")
    again = PROMPTS.fill(text, reason=why, strategy=spec.id, **_form(spec))
    return (*asked, Message(role="assistant", text=_shortened(answer)), _user(again))


def evidence(
    spec: StrategySpec,
    scored: ScoredIteration,
    done: Sequence[Iteration],
    base: Submission,
    *,
    last: bool,
) -> tuple[Message, ...]:
    """Return the messages that request a patch.

    They contain the opening, the base submission, and the scores of the last iteration in ``done``.
    Only the ``last`` iteration sees the history and the goals.
    """
    card, drift = scored.develop, scored.drift
    lines, judged, more = [], "", {"history": "", "goal": ""}
    for gate in card.gates.gates:
        why = f" ({gate.reason})" if gate.reason else ""
        lines.append(f"- {gate.name}: {gate.status.replace('_', ' ')}{why}")
        lines += [f"  - {finding.text[:300]}" for finding in gate.evidence[:_SHOWN]]
    if drift is not None:
        changes = "; ".join((*drift.card_changes, *drift.reasons)[:_SHOWN])
        why = f" ({changes})" if changes else ""
        judged = f" The last change ({drift.changed_lines} lines) was judged: {drift.kind}{why}."
    if last:
        aim = {"target": TARGET, "sharpe": f"{LAST_SHARPE:g}", "total": f"{LAST_RETURN:.0%}"}
        goal = PROMPTS.fill("goal", year=_year(card), **aim)
        more = {"history": _history(done, base), "goal": f"\n{goal}"}
    reviewed = []
    for number, review in enumerate(done[-1].reviews, 1):
        if review.failure is None:
            weaknesses = " ".join(review.weaknesses.replace("`", "'").split())[:400]
            marks = f"fidelity {review.fidelity:g}, risk {review.risk:g}"
            reviewed.append(f"- reviewer {number}: {marks}. {weaknesses}")
    text = PROMPTS.fill(
        "evidence",
        target=TARGET,
        scores="\n".join(
            f"- {DIMENSION_WORDS[name]}: {_number(card.corrected[name])}" for name in DIMENSIONS
        ),
        gates="\n".join(lines),
        budget=BUDGET,
        drift=judged,
        set_aside=_SET_ASIDE if done[-1].set_aside else "",
        reviews="\n".join(reviewed) or "- none",
        **more,
    )
    handed = f"```python\n{base.source.strip()}\n```\n\n```json\n{base.card.strip()}\n```"
    return *opening(spec), Message(role="assistant", text=handed), _user(text)


def review(spec: StrategySpec, submission: Submission) -> tuple[Message, ...]:
    """Return the messages that request marks from a reviewer."""
    # The delimiter is a hash of the content, so the content cannot contain it and end the
    # quotation.
    mark = f"<<{sha256_bytes(submission.sha256.encode())[:16]}>>"
    lines = (
        f"strategy_card.json\n{submission.card}\n\nstrategy.py\n{submission.source}".splitlines()
    )
    quoted = "\n".join(f"{mark} {line}" for line in lines)
    user = PROMPTS.fill(
        "review", title=spec.semantics.title, semantics=_indented(spec), mark=mark, quoted=quoted
    )
    return (Message(role="system", text=PROMPTS.fill("review_system").strip()), _user(user))


def review_refusal(messages: tuple[Message, ...], answer: str, why: str) -> tuple[Message, ...]:
    """Return the question, the refused marks alone, and the form again."""
    again = PROMPTS.fill("again_review", reason=why)
    return (*messages[:2], Message(role="assistant", text=_shortened(answer)), _user(again))


def example_program() -> str:
    """Return the program of the example answer, without its fence."""
    return (
        PROMPTS.fill("example_program")
        .strip()
        .removeprefix("```python")
        .removesuffix("```")
        .strip()
    )


def _user(text: str) -> Message:
    return Message(role="user", text=text.strip() + "\n")


def _form(spec: StrategySpec) -> dict[str, str]:
    """Return the example answer, and the factual values of the card."""
    frozen = spec.semantics
    values = ", ".join(f"{name} = {one.value:g}" for name, one in frozen.parameters.items())
    limits = frozen.constraints
    card = (
        f'In the card, strategy is "{spec.id}", version is {frozen.version}, legs is '
        f'{msgspec.json.encode(frozen.inputs.legs).decode()} and execution is "signal-bar-close". '
        "Its parameters "
        f"are {values}. Its constraints are max_exposure {limits.max_exposure:g}, "
        "max_trades_per_bar "
        f"{limits.max_trades_per_bar}, flat_overnight {str(limits.flat_overnight).lower()} and "
        "short_allowed "
        f"{str(limits.short_allowed).lower()}. The other texts of the card are in your own words."
    )
    example = {name: PROMPTS.fill(name).strip() for name in ("example_program", "example_card")}
    return {**example, "card": card, "parameters": values}


def _indented(spec: StrategySpec) -> str:
    """Return the frozen rules, indented to distinguish them from a block of an answer."""
    lines = []
    for key, value in msgspec.to_builtins(spec.semantics).items():
        kept = (
            {name: one for name, one in value.items() if one is not None}
            if isinstance(value, dict)
            else value
        )
        if key in ("parameters", "indicators", "rules") and kept:
            opening, closing = ("[", "]") if isinstance(kept, list | tuple) else ("{", "}")
            items = kept if opening == "[" else [f"{_json(n)}: {_json(v)}" for n, v in kept.items()]
            rows = [one if isinstance(one, str) else _json(one) for one in items]
            lines.append(f'"{key}": {opening}')
            lines += [f" {row}{',' if at + 1 < len(rows) else ''}" for at, row in enumerate(rows)]
            lines.append(f"{closing},")
        else:
            lines.append(f'"{key}": {_json(kept)},')
    lines[-1] = lines[-1].removesuffix(",")
    return "\n".join(f"    {line}" for line in ("{", *(f" {line}" for line in lines), "}"))


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=0).decode()


def _shortened(answer: str) -> str:
    if len(answer) <= _LONGEST:
        return answer
    half = _LONGEST // 2
    return f"{answer[:half]}\n[... {len(answer) - 2 * half} characters ...]\n{answer[-half:]}"


def _history(done: Sequence[Iteration], base: Submission) -> str:
    """Return the earlier submissions with their scores.

    The base submission is already shown above.
    """
    parts = []
    for one in done:
        if one.submission is None or one.scored is None or one.submission.sha256 == base.sha256:
            continue
        corrected = one.scored.develop.corrected
        scores = ", ".join(
            f"{DIMENSION_WORDS[name].split(' (')[0].lower()} {_number(corrected[name])}"
            for name in DIMENSIONS
        )
        aside = " It was set aside." if one.set_aside else ""
        code = "\n".join(f"    {line}" for line in one.submission.source.strip().splitlines())
        parts.append(f"Iteration {one.number} ({scores}).{aside}\n\n{code}")
    return "\n## Earlier programs\n\n" + "\n\n".join(parts) + "\n" if parts else ""


class StrategyShown(msgspec.Struct, frozen=True, kw_only=True):
    """A strategy as data for a scripted model: its name, and its number of earlier submissions."""

    kind: str = "systrade.build"
    strategy: str
    iteration: int


def _number(measure: Measure) -> str:
    if measure.value is None:
        return f"not scored ({measure.reason})"
    return f"{measure.value:.2f}" + (f" ({measure.note})" if measure.note else "")


def _year(card: Scorecard) -> str:
    if card.year is None:
        return card.year_reason or "nothing"
    middle = card.year.costs[len(card.year.costs) // 2]
    ratio = "none" if middle.sharpe is None else f"{middle.sharpe:.2f}"
    return (
        f"{middle.total:+.1%} at {middle.cost_bp:g} bp, Sharpe ratio {ratio}, turnover "
        f"{card.year.turnover:.1f}"
    )
