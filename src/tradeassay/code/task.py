"""A code task: what a strategy must do, in words, and how to tell whether it does."""

import re
from typing import Literal, get_args

import msgspec

from tradeassay.account.backtrader import Sizing as Sizing

Difficulty = Literal["easy", "medium", "hard"]
Timeframe = Literal["1d", "1h", "30m", "15m", "5m", "1m"]
Family = Literal[
    "trend", "mean-reversion", "breakout", "calendar", "session", "multi-indicator", "risk-managed", "multi-asset"
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
    """A part of a task: keyword arguments only, unknown keys refused."""


class Expectations(_Part, frozen=True, kw_only=True):
    """What can be checked by machine on the orders and trades of a run. ``max_open_positions`` counts assets held
    at the same time, ``max_holding_bars`` the bars from a trade's entry fill to its exit fill. ``indicators`` are
    names a reader would look for: advice to a judge.
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
    """A program that must not pass: what is wrong with it, and the stage that must find out."""

    name: str
    kind: DecoyKind
    fails_at: FailStage
    source: str


class FrameVariant(_Part, frozen=True, kw_only=True):
    """The same task for plain vectorised signals on a frame: both wordings, a reference, decoys."""

    formal: str
    conversational: str
    reference: str
    decoys: tuple[Decoy, ...] = ()


class CannotMatter(_Part, frozen=True, kw_only=True):
    """A number or branch of a reference that no market can show, and why: ``change`` and ``line`` as in
    :class:`tradeassay.code.judges.markets.Mutant`.
    """

    change: str
    line: int
    why: str
    framework: Framework = "backtrader"


class CodeTask(_Part, frozen=True, kw_only=True):
    """One task. A task of a public file may lack ``conversational``, ``reference`` and ``decoys``. ``market`` is a
    key of :data:`tradeassay.code.bars.MARKETS`; the task's home market is that market with seed 1. ``symbol`` is
    what a public file tells its user to download. ``lacks`` says what an imported task does not come with.
    ``cannot_matter`` names what of its references changes no decision on any market: it is not asked of the
    markets that are drawn. ``agreement`` replaces the configured threshold of the behavioural judge where a task
    needs another one.
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
        return bool(self.reference.strip())

    @property
    def wordings(self) -> tuple[Wording, ...]:
        return WORDINGS if self.conversational.strip() else ("formal",)

    def text(self, wording: Wording, framework: Framework = "backtrader") -> str | None:
        """Return the wording for a framework, None where the task does not have it."""
        part: CodeTask | FrameVariant | None = self if framework == "backtrader" else self.frame
        if part is None:
            return None
        words = {"formal": part.formal, "conversational": part.conversational}
        return words.get(wording, "").strip() or None
