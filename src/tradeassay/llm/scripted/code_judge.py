"""The scripted model that judges programs. It is crude, and says so.

It reads a question of kind ``quantcode.judge`` (task and program quoted line by line between marks that the
payload names) and looks at the program's syntax tree: which indicator names occur, whether it buys, sells and
closes as the direction asks, how many of the task's numbers it uses. It understands nothing: a right program
that computes an average by hand may fail, and one that uses the right parts in the wrong order passes. It
exists so that everything around a judge can be run and measured without a model.
"""

from __future__ import annotations

import ast
import re
from typing import ClassVar, Final

from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.core.syntax import syntax_tree
from tradeassay.llm.scripted.provider import scripted_models
from tradeassay.llm.scripted.traders import Question, Sensible, say

CODE_JUDGE: Final = "quantcode.judge"
_LINE = re.compile(r"^\d{4,}\| ?(.*)$")
_NUMBER = re.compile(r"(?<![\w.:])\d+(?:\.\d+)?(?!\d*[:\w])")
_ENOUGH_NUMBERS: Final = 0.25
_SYNONYMS: Final[dict[str, tuple[str, ...]]] = {
    "sma": ("sma", "simplemovingaverage", "movingaveragesimple", "rolling", "mean", "fmean"),
    "ema": ("ema", "exponentialmovingaverage", "movingaverageexponential", "ewm"),
    "wma": ("wma", "weightedmovingaverage", "movingaverageweighted"),
    "smma": ("smma", "smoothedmovingaverage", "wilderma", "modifiedmovingaverage", "movingaveragesmoothed"),
    "rsi": ("rsi", "relativestrengthindex", "rsisafe", "rsisma", "rsiema"),
    "bollinger": ("bollingerbands", "bbands", "bollingerbandspct", "stddev", "standarddeviation", "std"),
    "macd": ("macd", "macdhisto", "macdhistogram"),
    "atr": ("atr", "averagetruerange", "truerange", "tr"),
    "stochastic": ("stochastic", "stoch", "stochasticfast", "stochasticslow", "stochasticfull", "stochf"),
    "highest": ("highest", "maxn", "max", "rolling", "donchian"),
    "lowest": ("lowest", "minn", "min", "rolling", "donchian"),
    "donchian": ("highest", "lowest", "maxn", "minn", "donchian", "max", "min"),
    "crossover": ("crossover", "crossup", "crossdown"),
    "vwap": ("vwap", "volume"),
    "cci": ("cci", "commoditychannelindex"),
    "aroon": ("aroon", "aroonup", "aroondown", "aroonupdown", "aroonoscillator", "aroonosc"),
    "adx": ("adx", "averagedirectionalmovementindex", "directionalmovement", "dmi", "directionalindicator"),
    "sar": ("parabolicsar", "psar", "sar"),
    "williams": ("williamsr", "willr"),
    "ichimoku": ("ichimoku",),
}


@scripted_models.register("code-judge")
class CodeJudge(Sensible):
    """Judges by names, calls and numbers; it answers any other question sensibly."""

    summary: ClassVar[str] = "judges programs crudely, by names, calls and numbers in their syntax tree"

    def answer(self, request: AskModel) -> ModelReply:
        """Answer one question."""
        asked = Question(request)
        if asked.kind != CODE_JUDGE:
            return super().answer(request)
        text = next((message.text for message in request.messages if message.role == "user"), "")
        task = quoted(text, str(asked.payload.get("task_mark", "")))
        program = quoted(text, str(asked.payload.get("program_mark", "")))
        try:
            tree = syntax_tree(program)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            failed = {"verdict": "fail", "reason": "the program is no Python"}
            return say(dict.fromkeys(("indicators", "logic", "relevance"), failed))
        names = _names(tree)
        return say(
            {
                "indicators": _indicators(names, asked.payload.get("expected_indicators") or []),
                "logic": _logic(names, str(asked.payload.get("direction", "")), asked.payload.get("framework")),
                "relevance": _relevance(tree, task),
            }
        )


def quoted(text: str, mark: str) -> str:
    """Return the text between a mark's two lines, without line numbers; empty when the mark is missing."""
    found: list[str] = []
    inside = False
    for line in text.splitlines():
        if line == f"<<<{mark}":
            inside = True
        elif line == f"{mark}>>>":
            return "\n".join(found)
        elif inside:
            numbered = _LINE.match(line)
            found.append(numbered[1] if numbered else line)
    return ""


def _names(tree: ast.AST) -> set[str]:
    """Return every name, attribute and function of a program, in lower case without underscores."""
    found: set[str] = set()
    for node in ast.walk(tree):
        for field in ("id", "attr", "name", "arg"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                found.add(value.lower().replace("_", ""))
    return found


def _indicators(names: set[str], expected: list[str]) -> dict[str, str]:
    missing = [name for name in expected if not _knows(names, name)]
    if missing:
        return _fail(f"no trace of {', '.join(missing)} among the names of the program")
    return _pass(f"names that stand for {', '.join(expected) or 'the rules'} occur")


def _knows(names: set[str], indicator: str) -> bool:
    """Return whether a name stands for an indicator. Words that are not a library's indicators are accepted."""
    word = re.sub(r"[^a-z]", "", indicator.lower())
    for key, others in _SYNONYMS.items():
        if key in word or word in others:
            return any(name in others or key in name for name in names)
    return True


def _logic(names: set[str], direction: str, framework: object) -> dict[str, str]:
    if framework == "frame":
        return _pass("a frame of positions has no calls to look at")
    targets = any(name.startswith("ordertarget") for name in names)
    buys = targets or bool(names & {"buy", "buybracket"})
    sells = targets or bool(names & {"sell", "sellbracket"})
    leaves = targets or bool(names & {"close", "sell", "buy", "buybracket", "sellbracket"})
    if direction in ("long", "both") and not buys:
        return _fail("it never buys, and the task does")
    if direction in ("short", "both") and not sells:
        return _fail("it never sells, and the task does")
    if not leaves:
        return _fail("it never leaves a position")
    return _pass("it has the calls that the direction asks for")


def _relevance(tree: ast.AST, task: str) -> dict[str, str]:
    asked = {float(number) for number in _NUMBER.findall(task)} - {0.0, 1.0}
    used = {
        float(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and not isinstance(node.value, bool)
    }
    used |= {value * 100.0 for value in used} | {1.0 - value for value in used} | {value - 1.0 for value in used}
    known = {number for number in asked if any(abs(number - value) < 1e-9 for value in used)}
    if asked and len(known) < _ENOUGH_NUMBERS * len(asked):
        return _fail(f"it uses {len(known)} of the {len(asked)} numbers that the task names")
    return _pass(f"it uses {len(known)} of the {len(asked)} numbers that the task names")


def _pass(reason: str) -> dict[str, str]:
    return {"verdict": "pass", "reason": reason}


def _fail(reason: str) -> dict[str, str]:
    return {"verdict": "fail", "reason": reason}
