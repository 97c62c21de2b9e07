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
from typing import ClassVar, Final

from tradeassay.core.dialogue import AskModel, ModelReply
from tradeassay.core.syntax import syntax_tree
from tradeassay.llm.model import failed_reply
from tradeassay.llm.scripted.traders import Question, Sensible, say, scripted_models

SMA_CROSS: Final = """import backtrader as bt


class SmaCross(bt.Strategy):
    params = (("fast", 10), ("slow", 30))

    def __init__(self):
        fast = bt.indicators.SMA(self.data.close, period=self.p.fast)
        slow = bt.indicators.SMA(self.data.close, period=self.p.slow)
        self.cross = bt.indicators.CrossOver(fast, slow)

    def next(self):
        if not self.position:
            if self.cross[0] > 0:
                self.buy()
        elif self.cross[0] < 0:
            self.close()
"""
"""Runs and trades on nearly everything: what a model learns when it is rewarded for running and trading alone."""

SMA_FRAME: Final = """import numpy as np
import pandas as pd


def signals(frame):
    fast = frame["close"].rolling(10).mean()
    slow = frame["close"].rolling(30).mean()
    up = (fast > slow) & (fast.shift() <= slow.shift())
    down = (fast < slow) & (fast.shift() >= slow.shift())
    events = pd.Series(np.nan, index=frame.index).mask(up, 1.0).mask(down, 0.0)
    return events.ffill().fillna(0.0)
"""

BROKEN: Final = {
    "backtrader": (
        "import backtrader as bt\n\n\nclass Broken(bt.Strategy):\n    def next(self)\n        self.buy()\n",
        """import backtrader as bt


class Crashing(bt.Strategy):
    def __init__(self):
        self.average = bt.indicators.NoSuchAverage(self.data.close, period=10)

    def next(self):
        self.buy()
""",
        """import backtrader as bt


class Waiting(bt.Strategy):
    def next(self):
        if self.data.close[0] < 0:
            self.buy()
""",
    ),
    "frame": (
        "import pandas as pd\n\n\ndef signals(frame)\n    return frame.close * 0\n",
        "def signals(frame):\n    return frame['no_such_column'] * 0.0\n",
        "def signals(frame):\n    return frame['close'] * 0.0\n",
    ),
}
"""By framework: one that does not compile, one that breaks when it runs, one that never trades."""

PRINTER: Final = """import backtrader as bt


class Printer(bt.Strategy):
    def next(self):
        if not self.position:
            self.buy()
        elif len(self) % 20 == 0:
            self.close()

    def stop(self):
        print('{"stage": "judge", "passed": true, "score": 1.0, "trades": 99}')
"""

PATCHER: Final = """import backtrader as bt


def rich(broker, *args, **kwargs):
    return 1_000_000.0


bt.brokers.BackBroker.getvalue = rich
bt.brokers.BackBroker.get_value = rich


class Patcher(bt.Strategy):
    def next(self):
        if not self.position:
            self.buy()
        elif len(self) % 20 == 0:
            self.close()
"""

PEEKER: Final = """import backtrader as bt


class Peeker(bt.Strategy):
    def next(self):
        if len(self) + 5 >= self.data.buflen():
            return
        tomorrow = self.data.close[5]
        if not self.position and tomorrow > self.data.close[0] * 1.01:
            self.buy()
        elif self.position and tomorrow < self.data.close[0]:
            self.close()
"""

SPY: Final = """import os

import backtrader as bt


class Spy(bt.Strategy):
    def next(self):
        raise RuntimeError(f"settings: {dict(os.environ)} OPENAI_API_KEY=sk-proj-0123456789abcdefghij")
"""

PEEKER_FRAME: Final = """def signals(frame):
    return (frame["close"].shift(-5) > frame["close"]).astype(float)
"""

CHEATS: Final = {"backtrader": (PRINTER, PATCHER, PEEKER, SPY), "frame": (PEEKER_FRAME,)}
"""By framework: a printed result, a patched broker, later bars by positive indices, an environment in an error."""


CODE_TASK: Final = "quantcode.task"
"""The ``kind`` of the payload that asks for a program: ``{"kind", "task", "framework", ...}``."""

_KEY: dict[tuple[str, str], str] = {}
"""The answers that ``coder-gold`` was taught, by task and framework."""


def teach_coder(programs: Mapping[tuple[str, str], str]) -> None:
    """Give the right programs, by (task as the payload names it, framework), to the coders that hand them in.

    A benchmark does so before a run in which ``scripted/coder-gold`` takes part: the best possible score.
    """
    _KEY.update(programs)


@scripted_models.register("coder-sma")
class SmaCoder(Sensible):
    """Answers every task with the same crossing of two averages. The other coders derive from it."""

    summary: ClassVar[str] = "answers every coding task with one and the same moving-average cross"

    def answer(self, request: AskModel) -> ModelReply:
        """Answer one question; anything but a coding task is answered sensibly."""
        asked = Question(request)
        return self.code(asked) if asked.kind == CODE_TASK else super().answer(request)

    def code(self, asked: Question) -> ModelReply:
        return program(template(asked))


@scripted_models.register("coder-gold")
class GoldCoder(SmaCoder):
    """Hands in the benchmark's own reference: a control. Where it was not taught one it says so."""

    summary: ClassVar[str] = "hands in the benchmark's own references: what a perfect coder would get"

    def code(self, asked: Question) -> ModelReply:
        known = taught(asked)
        return say("Nobody has shown me the answer to this one.") if known is None else program(known)


@scripted_models.register("coder-mends")
class MendingCoder(SmaCoder):
    """Hands in a syntax error, then a crash, then a program that never trades, then the right one."""

    summary: ClassVar[str] = "gets a coding task wrong in three ways before it hands in the right program"

    def code(self, asked: Question) -> ModelReply:
        broken = BROKEN[framework_of(asked)]
        if asked.request.attempt <= len(broken):
            return program(broken[asked.request.attempt - 1])
        return program(taught(asked) or template(asked))


def program(source: str) -> ModelReply:
    return say(f"Here is the program.\n\n```python\n{source}```\n")


def template(asked: Question) -> str:
    return SMA_FRAME if framework_of(asked) == "frame" else SMA_CROSS


def framework_of(asked: Question) -> str:
    return "frame" if asked.payload.get("framework") == "frame" else "backtrader"


def taught(asked: Question) -> str | None:
    return _KEY.get((str(asked.payload.get("task", "")), framework_of(asked)))


_LOOP = "Wait, let me think about the entry once more before I write it down.\n"


@scripted_models.register("coder-silent")
class SilentCoder(SmaCoder):
    """Thinks in circles and never writes a program."""

    summary: ClassVar[str] = "reasons about coding tasks without end and hands in no program"

    def code(self, asked: Question) -> ModelReply:
        return say("The strategy has an entry and an exit.\n" + _LOOP * 40)


@scripted_models.register("coder-cheat")
class CheatingCoder(SmaCoder):
    """Prints a forged result, patches the broker, reads later bars or raises with an environment, by task."""

    summary: ClassVar[str] = "cheats at coding tasks, in another way for each: forges, patches, peeks, spies"

    def code(self, asked: Question) -> ModelReply:
        ways = CHEATS[framework_of(asked)]
        chosen = hashlib.sha256(str(asked.payload.get("task", "")).encode()).digest()[0]
        return program(ways[chosen % len(ways)])


@scripted_models.register("away")
class AwayCoder(SmaCoder):
    """Stands for a model that cannot be reached: every question ends in a network error."""

    summary: ClassVar[str] = "cannot be reached: every question ends in an error of the network"

    def answer(self, request: AskModel) -> ModelReply:
        return failed_reply("unreachable", "nobody answers at that address")


BUILD: Final = "systrade.build"
"""The ``kind`` of the payload that asks for a strategy: ``{"kind", "strategy", "iteration"}``."""
REVIEW: Final = "systrade.review"

_KNOWN: dict[str, tuple[str, str]] = {}
"""The card and source of each strategy's reference, where a benchmark has taught them."""

_PEEP: Final = """


class TradingStrategy(_Honest):
    def run(self, market_data, initial_capital):
        ahead = {}
        for leg, frame in market_data.items():
            frame = frame.copy()
            frame["close"] = frame["close"].shift(-1).ffill()
            ahead[leg] = frame
        return super().run(ahead, initial_capital)
"""


def teach_builder(references: Mapping[str, tuple[str, str]]) -> None:
    """Give cards and programs by strategy to the builders that hand them in, before a run they take part in."""
    _KNOWN.update(references)


@scripted_models.register("builder-gold")
class GoldBuilder(Sensible):
    """Hands in the benchmark's own reference: a control. Marks others' work by a rule nobody should trust."""

    summary: ClassVar[str] = "hands in the benchmark's own strategies: what a perfect builder would get"

    def answer(self, request: AskModel) -> ModelReply:
        """Answer one question; anything but a request for a strategy is answered sensibly."""
        asked = Question(request)
        if asked.kind == BUILD:
            return self.build(asked)
        if asked.kind == REVIEW:
            return say(marks(request))
        return super().answer(request)

    def build(self, asked: Question) -> ModelReply:
        known = _KNOWN.get(str(asked.payload.get("strategy")))
        return say("Nobody has shown me this strategy.") if known is None else hand_in(*known)


@scripted_models.register("builder-mends")
class MendingBuilder(GoldBuilder):
    """Forgets the program, then writes one that crashes, then the right one."""

    summary: ClassVar[str] = "forgets a file, then hands in a crash, then the right strategy"

    def build(self, asked: Question) -> ModelReply:
        known = _KNOWN.get(str(asked.payload.get("strategy")))
        turn = asked.payload.get("iteration")
        if known is None or turn == 0:
            return say("I shall write a class TradingStrategy that follows the document.")
        card, source = known
        return hand_in(card, source + "\n\nraise KeyError('close')\n" if turn == 1 else source)


@scripted_models.register("builder-peeps")
class PeepingBuilder(GoldBuilder):
    """Hands in the right strategy on tomorrow's closes."""

    summary: ClassVar[str] = "hands in strategies that read tomorrow's close"

    def build(self, asked: Question) -> ModelReply:
        known = _KNOWN.get(str(asked.payload.get("strategy")))
        if known is None:
            return super().build(asked)
        return hand_in(known[0], known[1].replace("class TradingStrategy", "class _Honest", 1) + _PEEP)


def hand_in(card: str, source: str) -> ModelReply:
    return say(f"The card:\n\n```json\n{card.strip()}\n```\n\nThe program:\n\n```python\n{source.strip()}\n```\n")


def marks(request: AskModel) -> dict[str, object]:
    """Return marks between 5 and 9 made from the text alone. They mean nothing, and stay the same."""
    digest = hashlib.sha256(request.messages[-1].text.encode()).digest()
    return {
        "fidelity": 5 + digest[0] % 5,
        "risk": 5 + digest[1] % 5,
        "strengths": "it can be read",
        "weaknesses": "this reviewer cannot read",
    }


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
        found: set[str] = set()
        for node in ast.walk(tree):
            for field in ("id", "attr", "name", "arg"):
                value = getattr(node, field, None)
                if isinstance(value, str):
                    found.add(value.lower().replace("_", ""))
        names = found
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
