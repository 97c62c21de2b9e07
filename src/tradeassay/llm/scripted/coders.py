"""Scripted models that hand in programs: strategies for code tasks, and strategies as governed software.

They read the payload of a task and none of its words; the programs themselves are written for no task at all.
Some hand in the benchmark's own reference as a control, some go wrong on purpose: one talks, one cheats, one
looks ahead, one cannot be reached. The reviewer among them is crude.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Mapping
from importlib.resources import files
from typing import ClassVar, Final

from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.core.syntax import syntax_tree
from tradeassay.llm.model import failed_reply
from tradeassay.llm.scripted.model import Question, say, scripted_models
from tradeassay.llm.scripted.traders import Sensible

_PROGRAMS: Final[dict[str, str]] = dict(
    part.split("\n", 1)
    for part in re.split(
        r"(?m)^## ", files("tradeassay.llm.scripted").joinpath("programs.txt").read_text(encoding="utf-8")
    )[1:]
)
"""By name and framework. The crossing of two averages runs and trades on nearly everything: what a model learns
when it is rewarded for running and trading alone."""

BROKEN: Final = ("does-not-compile", "crashes", "never-trades")
CHEATS: Final = {
    "backtrader": ("prints-a-result", "patches-the-broker", "reads-later-bars", "tells-its-environment"),
    "frame": ("reads-later-bars",),
}

CODE_TASK: Final = "quantcode.task"
"""The ``kind`` of the payload that asks for a program: ``{"kind", "task", "framework", ...}``."""

_KEY: dict[tuple[str, str], str] = {}
"""The answers that ``coder-gold`` was taught, by task and framework."""


def teach_coder(programs: Mapping[tuple[str, str], str]) -> None:
    """Give the right programs, by (task as the payload names it, framework), to the coders that hand them in. A
    benchmark does so before a run in which ``scripted/coder-gold`` takes part: the best possible score."""
    _KEY.update(programs)


class _Task:
    """A coding task, and the answers that can be given to it."""

    def __init__(self, asked: Question) -> None:
        self.attempt = asked.request.attempt
        self.name = str(asked.payload.get("task", ""))
        self.framework = "frame" if asked.payload.get("framework") == "frame" else "backtrader"
        self.taught = _KEY.get((self.name, self.framework))

    def written(self, name: str) -> str:
        return _PROGRAMS[f"{name} {self.framework}"]


def program(source: str) -> ModelReply:
    return say(f"Here is the program.\n\n```python\n{source}```\n")


@scripted_models.register("coder-sma")
class SmaCoder(Sensible):
    summary: ClassVar[str] = "answers every coding task with one and the same moving-average cross"

    def answer(self, request: AskModel) -> ModelReply:
        """Answer one question; anything but a coding task is answered sensibly. All coders do."""
        asked = Question(request)
        return self.code(_Task(asked)) if asked.kind == CODE_TASK else super().answer(request)

    def code(self, task: _Task) -> ModelReply:
        return program(task.written("sma"))


@scripted_models.register("coder-gold")
class GoldCoder(SmaCoder):
    summary: ClassVar[str] = "hands in the benchmark's own references: what a perfect coder would get"

    def code(self, task: _Task) -> ModelReply:
        return say("Nobody has shown me the answer to this one.") if task.taught is None else program(task.taught)


@scripted_models.register("coder-mends")
class MendingCoder(SmaCoder):
    summary: ClassVar[str] = "gets a coding task wrong in three ways before it hands in the right program"

    def code(self, task: _Task) -> ModelReply:
        if task.attempt <= len(BROKEN):
            return program(task.written(BROKEN[task.attempt - 1]))
        return program(task.taught or task.written("sma"))


@scripted_models.register("coder-silent")
class SilentCoder(SmaCoder):
    summary: ClassVar[str] = "reasons about coding tasks without end and hands in no program"

    def code(self, task: _Task) -> ModelReply:
        loop = "Wait, let me think about the entry once more before I write it down.\n"
        return say("The strategy has an entry and an exit.\n" + loop * 40)


@scripted_models.register("coder-cheat")
class CheatingCoder(SmaCoder):
    summary: ClassVar[str] = "cheats at coding tasks, in another way for each: forges, patches, peeks, spies"

    def code(self, task: _Task) -> ModelReply:
        ways = CHEATS[task.framework]
        return program(task.written(ways[hashlib.sha256(task.name.encode()).digest()[0] % len(ways)]))


@scripted_models.register("away")
class AwayCoder(SmaCoder):
    summary: ClassVar[str] = "cannot be reached: every question ends in an error of the network"

    def answer(self, request: AskModel) -> ModelReply:
        return failed_reply("unreachable", "nobody answers at that address")


BUILD: Final = "systrade.build"
"""The ``kind`` of the payload that asks for a strategy: ``{"kind", "strategy", "iteration"}``."""
REVIEW: Final = "systrade.review"

_KNOWN: dict[str, tuple[str, str]] = {}
"""The card and source of each strategy's reference, where a benchmark has taught them."""


def teach_builder(references: Mapping[str, tuple[str, str]]) -> None:
    """Give cards and programs by strategy to the builders that hand them in, before a run they take part in."""
    _KNOWN.update(references)


@scripted_models.register("builder-gold")
class GoldBuilder(Sensible):
    summary: ClassVar[str] = "hands in the benchmark's own strategies: what a perfect builder would get"

    def answer(self, request: AskModel) -> ModelReply:
        asked = Question(request)
        if asked.kind == BUILD:
            return self.build(_KNOWN.get(str(asked.payload.get("strategy"))), asked.payload.get("iteration"))
        if asked.kind == REVIEW:
            # Marks between 5 and 9 made from the text alone: they mean nothing, and stay the same.
            digest = hashlib.sha256(request.messages[-1].text.encode()).digest()
            marks = {"fidelity": 5 + digest[0] % 5, "risk": 5 + digest[1] % 5}
            return say({**marks, "strengths": "it can be read", "weaknesses": "this reviewer cannot read"})
        return super().answer(request)

    def build(self, known: tuple[str, str] | None, turn: object) -> ModelReply:
        return say("Nobody has shown me this strategy.") if known is None else hand_in(*known)


@scripted_models.register("builder-mends")
class MendingBuilder(GoldBuilder):
    summary: ClassVar[str] = "forgets a file, then hands in a crash, then the right strategy"

    def build(self, known: tuple[str, str] | None, turn: object) -> ModelReply:
        if known is None or turn == 0:
            return say("I shall write a class TradingStrategy that follows the document.")
        card, source = known
        return hand_in(card, source + "\n\nraise KeyError('close')\n" if turn == 1 else source)


@scripted_models.register("builder-peeps")
class PeepingBuilder(GoldBuilder):
    summary: ClassVar[str] = "hands in strategies that read tomorrow's close"

    def build(self, known: tuple[str, str] | None, turn: object) -> ModelReply:
        if known is None:
            return super().build(known, turn)
        honest = known[1].replace("class TradingStrategy", "class _Honest", 1)
        return hand_in(known[0], honest + _PROGRAMS["reads-later-bars systrade"])


def hand_in(card: str, source: str) -> ModelReply:
    return say(f"The card:\n\n```json\n{card.strip()}\n```\n\nThe program:\n\n```python\n{source.strip()}\n```\n")


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
    summary: ClassVar[str] = "judges programs crudely, by names, calls and numbers in their syntax tree"

    def answer(self, request: AskModel) -> ModelReply:
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
        # Every name, attribute and function of a program, in lower case without underscores
        names: set[str] = set()
        for node in ast.walk(tree):
            for field in ("id", "attr", "name", "arg"):
                value = getattr(node, field, None)
                if isinstance(value, str):
                    names.add(value.lower().replace("_", ""))
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
