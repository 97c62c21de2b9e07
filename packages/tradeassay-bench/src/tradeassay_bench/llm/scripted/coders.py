"""Scripted models that submit programs, for code tasks and for strategies as governed software.

They read the payload of a task and not its text. Some submit the benchmark's own reference as a
control, and some of these need several turns. The scripted reviewer is crude.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Final

from tradeassay.core.syntax import syntax_tree
from tradeassay_bench.core.dialogue import ModelReply
from tradeassay_bench.llm.scripted.model import Question, say
from tradeassay_bench.llm.scripted.traders import Way, add_models

PROGRAMS: Final[dict[str, str]] = dict(
    part.split("\n", 1)
    for part in re.split(
        r"(?m)^## ",
        files("tradeassay_bench.llm.scripted").joinpath("programs.txt").read_text(encoding="utf-8"),
    )[1:]
)
"""Programs by name and framework.

The moving-average cross trades on nearly any market. A model learns such a program if only running
and trading are rewarded.
"""

BROKEN: Final = ("does-not-compile", "crashes", "never-trades")
CODE_TASK: Final = "quantcode.task"
"""The ``kind`` of the payload that asks for a program: ``{"kind", "task", "framework", ...}``."""

_KEY: dict[tuple[str, str], str] = {}
"""The answers of ``coder-gold``, by task and framework."""


def teach_coder(programs: Mapping[tuple[str, str], str]) -> None:
    """Give the right programs to the scripted models that submit them.

    The keys are the task's name in the payload and the framework. A benchmark calls this before a
    run with ``scripted/coder-gold``, which gets the best possible score.
    """
    _KEY.update(programs)


def program(source: str) -> ModelReply:
    return say(f"Here is the program.\n\n```python\n{source}```\n")


def hand_in(card: str, source: str) -> ModelReply:
    return say(
        f"The card:\n\n```json\n{card.strip()}\n```\n\nThe "
        f"program:\n\n```python\n{source.strip()}\n```\n"
    )


def _framework(asked: Question) -> str:
    return "frame" if asked.payload.get("framework") == "frame" else "backtrader"


def same_program(asked: Question) -> ModelReply:
    return program(PROGRAMS[f"sma {_framework(asked)}"])


def right_program(asked: Question) -> ModelReply:
    taught = _KEY.get((str(asked.payload.get("task", "")), _framework(asked)))
    return say("Nobody has shown me the answer to this one.") if taught is None else program(taught)


def mended_program(asked: Question) -> ModelReply:
    turn, framework = asked.request.attempt, _framework(asked)
    if turn <= len(BROKEN):
        return program(PROGRAMS[f"{BROKEN[turn - 1]} {framework}"])
    taught = _KEY.get((str(asked.payload.get("task", "")), framework))
    return program(taught) if taught else same_program(asked)


BUILD: Final = "systrade.build"
"""The ``kind`` of the payload that asks for a strategy: ``{"kind", "strategy", "iteration"}``."""
REVIEW: Final = "systrade.review"

_KNOWN: dict[str, tuple[str, str]] = {}
"""The card and source of each strategy's reference, if a benchmark has provided them."""


def teach_builder(references: Mapping[str, tuple[str, str]]) -> None:
    """Give cards and programs by strategy to the scripted models that submit them.

    It must be called before a run with these models.
    """
    _KNOWN.update(references)


def right_strategy(asked: Question) -> ModelReply:
    known = _KNOWN.get(str(asked.payload.get("strategy")))
    return say("Nobody has shown me this strategy.") if known is None else hand_in(*known)


def mended_strategy(asked: Question) -> ModelReply:
    known, turn = _KNOWN.get(str(asked.payload.get("strategy"))), asked.payload.get("iteration")
    if known is None or turn == 0:
        return say("I shall write a class TradingStrategy that follows the document.")
    card, source = known
    return hand_in(card, source + "\n\nraise KeyError('close')\n" if turn == 1 else source)


def crude_review(asked: Question) -> ModelReply:
    """Return marks between 5 and 9 that depend on the text alone.

    They mean nothing and are reproducible.
    """
    digest = hashlib.sha256(asked.request.messages[-1].text.encode()).digest()
    marks = {"fidelity": 5 + digest[0] % 5, "risk": 5 + digest[1] % 5}
    return say({**marks, "strengths": "it can be read", "weaknesses": "this reviewer cannot read"})


CODE_JUDGE: Final = "quantcode.judge"
_LINE = re.compile(r"^\d{4,}\| ?(.*)$")
_NUMBER = re.compile(r"(?<![\w.:])\d+(?:\.\d+)?(?!\d*[:\w])")
_ENOUGH_NUMBERS: Final = 0.25
_SYNONYMS: Final[dict[str, tuple[str, ...]]] = {
    "sma": ("sma", "simplemovingaverage", "movingaveragesimple", "rolling", "mean", "fmean"),
    "ema": ("ema", "exponentialmovingaverage", "movingaverageexponential", "ewm"),
    "wma": ("wma", "weightedmovingaverage", "movingaverageweighted"),
    "smma": (
        "smma",
        "smoothedmovingaverage",
        "wilderma",
        "modifiedmovingaverage",
        "movingaveragesmoothed",
    ),
    "rsi": ("rsi", "relativestrengthindex", "rsisafe", "rsisma", "rsiema"),
    "bollinger": (
        "bollingerbands",
        "bbands",
        "bollingerbandspct",
        "stddev",
        "standarddeviation",
        "std",
    ),
    "macd": ("macd", "macdhisto", "macdhistogram"),
    "atr": ("atr", "averagetruerange", "truerange", "tr"),
    "stochastic": (
        "stochastic",
        "stoch",
        "stochasticfast",
        "stochasticslow",
        "stochasticfull",
        "stochf",
    ),
    "highest": ("highest", "maxn", "max", "rolling", "donchian"),
    "lowest": ("lowest", "minn", "min", "rolling", "donchian"),
    "donchian": ("highest", "lowest", "maxn", "minn", "donchian", "max", "min"),
    "crossover": ("crossover", "crossup", "crossdown"),
    "vwap": ("vwap", "volume"),
    "cci": ("cci", "commoditychannelindex"),
    "aroon": ("aroon", "aroonup", "aroondown", "aroonupdown", "aroonoscillator", "aroonosc"),
    "adx": (
        "adx",
        "averagedirectionalmovementindex",
        "directionalmovement",
        "dmi",
        "directionalindicator",
    ),
    "sar": ("parabolicsar", "psar", "sar"),
    "williams": ("williamsr", "willr"),
    "ichimoku": ("ichimoku",),
}


def judgement(asked: Question) -> ModelReply:
    """Return a verdict on a program by the names, calls and numbers in its syntax tree."""
    payload = asked.payload
    text = next((message.text for message in asked.request.messages if message.role == "user"), "")
    task = quoted(text, str(payload.get("task_mark", "")))
    try:
        tree = syntax_tree(quoted(text, str(payload.get("program_mark", ""))))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        failed = {"verdict": "fail", "reason": "the program is no Python"}
        return say(dict.fromkeys(("indicators", "logic", "relevance"), failed))
    # Every name, attribute and function of the program, in lower case without underscores, and
    # every number
    names: set[str] = set()
    used: set[float] = set()
    for node in ast.walk(tree):
        for field in ("id", "attr", "name", "arg"):
            if isinstance(value := getattr(node, field, None), str):
                names.add(value.lower().replace("_", ""))
        if isinstance(node, ast.Constant) and type(node.value) in (int, float):
            used.add(float(node.value))  # type: ignore[arg-type]  # a number, as the line above says
    expected: list[str] = payload.get("expected_indicators") or []
    missing = [name for name in expected if not _knows(names, name)]
    indicators = f"no trace of {', '.join(missing)} among the names of the program"
    if not missing:
        indicators = f"names that stand for {', '.join(expected) or 'the rules'} occur"
    wrong, logic = _logic(names, str(payload.get("direction", "")), payload.get("framework"))
    numbers = {float(number) for number in _NUMBER.findall(task)} - {0.0, 1.0}
    used |= (
        {value * 100.0 for value in used}
        | {1.0 - value for value in used}
        | {value - 1.0 for value in used}
    )
    known = sum(any(abs(number - value) < 1e-9 for value in used) for number in numbers)
    few = bool(numbers) and known < _ENOUGH_NUMBERS * len(numbers)
    relevance = f"it uses {known} of the {len(numbers)} numbers that the task names"
    marks = {
        "indicators": (bool(missing), indicators),
        "logic": (wrong, logic),
        "relevance": (few, relevance),
    }
    return say(
        {
            name: {"verdict": "fail" if bad else "pass", "reason": reason}
            for name, (bad, reason) in marks.items()
        }
    )


def quoted(text: str, mark: str) -> str:
    """Return the text between a mark's two lines, without line numbers; empty without the mark."""
    lines = text.splitlines()
    if f"<<<{mark}" not in lines or f"{mark}>>>" not in lines:
        return ""
    inside = lines[lines.index(f"<<<{mark}") + 1 : lines.index(f"{mark}>>>")]
    return "\n".join(numbered[1] if (numbered := _LINE.match(line)) else line for line in inside)


def _knows(names: set[str], indicator: str) -> bool:
    """Return whether a name denotes an indicator.

    Words that are not a library's indicators are accepted.
    """
    word = re.sub(r"[^a-z]", "", indicator.lower())
    for key, others in _SYNONYMS.items():
        if key in word or word in others:
            return any(name in others or key in name for name in names)
    return True


def _logic(names: set[str], direction: str, framework: object) -> tuple[bool, str]:
    """Return whether a call required by a direction is missing, and a remark on it."""
    if framework == "frame":
        return False, "a frame of positions has no calls to look at"
    targets = any(name.startswith("ordertarget") for name in names)
    if direction in ("long", "both") and not (targets or names & {"buy", "buybracket"}):
        return True, "it never buys, and the task does"
    if direction in ("short", "both") and not (targets or names & {"sell", "sellbracket"}):
        return True, "it never sells, and the task does"
    if not (targets or names & {"close", "sell", "buy", "buybracket", "sellbracket"}):
        return True, "it never leaves a position"
    return False, "it has the calls that the direction asks for"


# The summary of each model and its answer to a program task. All other questions get a sensible
# answer.
_CODERS: Final[Mapping[str, tuple[Way, str]]] = {
    "coder-sma": (
        same_program,
        "answers every coding task with one and the same moving-average cross",
    ),
    "coder-gold": (
        right_program,
        "hands in the benchmark's own references: what a perfect coder would get",
    ),
    "coder-mends": (
        mended_program,
        "gets a coding task wrong in three ways before it hands in the right program",
    ),
}
_BUILDERS: Final[Mapping[str, tuple[Way, str]]] = {
    "builder-gold": (
        right_strategy,
        "hands in the benchmark's own strategies: what a perfect builder would get",
    ),
    "builder-mends": (
        mended_strategy,
        "forgets a file, then hands in a crash, then the right strategy",
    ),
}
add_models({name: (about, {CODE_TASK: way}) for name, (way, about) in _CODERS.items()})
add_models(
    {name: (about, {BUILD: way, REVIEW: crude_review}) for name, (way, about) in _BUILDERS.items()}
)
_JUDGE = "judges programs crudely, by names, calls and numbers in their syntax tree"
add_models({"code-judge": (_JUDGE, {CODE_JUDGE: judgement})})
