"""Define code tasks: the strategy's rules in words, and the checks of a program."""

import re
from typing import Literal, get_args

import msgspec

from tradeassay_bench.account.backtrader import Sizing as Sizing

Difficulty = Literal["easy", "medium", "hard"]
Timeframe = Literal["1d", "1h", "30m", "15m", "5m", "1m"]
Family = Literal[
    "trend",
    "mean-reversion",
    "breakout",
    "calendar",
    "session",
    "multi-indicator",
    "risk-managed",
    "multi-asset",
]
OrderKind = Literal["market", "limit", "stop", "stop-limit", "trailing", "bracket", "oco"]
Wording = Literal["formal", "conversational"]
Framework = Literal["backtrader", "frame"]
FailStage = Literal["compile", "backtest", "trade", "judge", "lookahead", "trick"]
DecoyKind = Literal[
    "wrong-indicator",
    "wrong-direction",
    "wrong-entry",
    "wrong-exit",
    "wrong-parameter",
    "wrong-sizing",
    "wrong-order",
    "wrong-asset",
    "never-trades",
    "template",
    "look-ahead",
    "syntax",
    "crash",
    "no-strategy",
    "printed-result",
    "patched-framework",
    "secrets",
]

DIFFICULTIES: tuple[Difficulty, ...] = get_args(Difficulty)
TIMEFRAMES: tuple[Timeframe, ...] = get_args(Timeframe)
FAMILIES: tuple[Family, ...] = get_args(Family)
WORDINGS: tuple[Wording, ...] = get_args(Wording)

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base class of tasks and their parts. It refuses unknown keys."""


class Expectations(_Part, frozen=True, kw_only=True):
    """Expectations of a task for the orders and trades of a run.

    ``max_open_positions`` is the limit on assets held at the same time. ``max_holding_bars`` is the
    limit on bars from a trade's entry fill to its exit fill. ``indicators`` are names that the
    language judge looks for in the source.
    """

    min_trades: int = 1
    max_trades: int | None = None
    direction: Literal["long", "short", "both"] = "long"
    max_open_positions: int | None = None
    max_holding_bars: int | None = None
    flat_by_session_end: bool = False
    order_kinds: tuple[OrderKind, ...] = ("market",)
    indicators: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.min_trades < 1:
            raise ValueError("min_trades is below 1: a strategy that never trades passes no stage")
        if self.max_trades is not None and self.max_trades < self.min_trades:
            raise ValueError("max_trades is below min_trades")


class Decoy(_Part, frozen=True, kw_only=True):
    """A program that must not pass, with the kind of its error and the check that must reject
    it.
    """

    name: str
    kind: DecoyKind
    fails_at: FailStage
    source: str


class FrameVariant(_Part, frozen=True, kw_only=True):
    """The variant of a task for programs that return signals for a data frame."""

    formal: str
    conversational: str
    reference: str
    decoys: tuple[Decoy, ...] = ()


class CannotMatter(_Part, frozen=True, kw_only=True):
    """A change of a reference's constant or branch that alters no decision on any market.

    ``why`` is the reason.

    ``change`` and ``line`` are defined in :class:`tradeassay_programs.code.judges.markets.Mutant`.
    """

    change: str
    line: int
    why: str
    framework: Framework = "backtrader"


class CodeTask(_Part, frozen=True, kw_only=True):
    """A strategy to program, and the account and checks that a program gets.

    A task from a public file may lack ``conversational``, ``reference`` and ``decoys``.

    - ``market`` is a key of :data:`tradeassay_programs.code.bars.MARKETS`, the kind of the task's
      home market. Its bars are drawn from the run's secret.
    - ``symbol`` is the symbol that a public file tells its user to download.
    - ``lacks`` names the missing parts of an imported task.
    - ``cannot_matter`` names constants and branches of the references that change no decision on
      any market. Drawn markets need not exercise these constants and branches.
    - ``agreement`` replaces the threshold of the behavioural judge for this task.
    """

    id: str
    title: str
    difficulty: Difficulty
    timeframe: Timeframe
    family: Family | None
    source: str = "tradeassay"
    formal: str
    conversational: str = ""
    market: str
    assets: int = 1
    bars: int
    cash: float = 10_000.0
    commission: float = 0.001
    sizing: Sizing
    expect: Expectations = Expectations()
    reference: str = ""
    decoys: tuple[Decoy, ...] = ()
    frame: FrameVariant | None = None
    agreement: float | None = None
    symbol: str | None = None
    lacks: tuple[str, ...] = ()
    cannot_matter: tuple[CannotMatter, ...] | msgspec.UnsetType = msgspec.UNSET

    def __post_init__(self) -> None:
        if not _ID.fullmatch(self.id):
            raise ValueError(f"the id '{self.id}' is not lower-case words joined by hyphens")
        if not self.formal.strip():
            raise ValueError("the formal wording is empty")
        if self.assets < 1 or self.bars < 1:
            raise ValueError("assets and bars must be at least 1")
        if not self.cash > 0 or not 0 <= self.commission < 1:
            raise ValueError("cash must be above zero, commission in [0, 1)")
        if self.agreement is not None and not 0 < self.agreement <= 1:
            raise ValueError("agreement must be in (0, 1]")
        names = [decoy.name for decoy in self.decoys]
        if len(set(names)) < len(names):
            raise ValueError("two decoys have the same name")

    @property
    def has_reference(self) -> bool:
        """Whether the task has a reference for Backtrader."""
        return bool(self.reference.strip())

    @property
    def wordings(self) -> tuple[Wording, ...]:
        """The available wordings of the task."""
        return WORDINGS if self.conversational.strip() else ("formal",)

    def text(self, wording: Wording, framework: Framework = "backtrader") -> str | None:
        """Return the task's text in a wording and for a framework, or None if the task has none."""
        part: CodeTask | FrameVariant | None = self if framework == "backtrader" else self.frame
        if part is None:
            return None
        words = {"formal": part.formal, "conversational": part.conversational}
        return words.get(wording, "").strip() or None
