"""A submission (a strategy card and the source of a class ``TradingStrategy``), and what it is checked against.

``run(market_data, initial_capital)`` gets a dict of pandas frames by leg, indexed by ``time``, with the columns
``open``, ``high``, ``low``, ``close``, ``volume`` and ``session_last``; it returns a trade log and an audit log.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
import numpy as np

from tradeassay.account.shares import DecisionList
from tradeassay.code.bars import TaskBars, make_bars
from tradeassay.code.semantics import Semantics, interpret
from tradeassay.code.semantics.expression import calendar_of
from tradeassay.code.task import Timeframe
from tradeassay.core.errors import UNDECODABLE, UserError
from tradeassay.core.hashing import canonical_json, sha256_bytes
from tradeassay.core.schema import schema_of_type
from tradeassay.core.secrets import clean_text

CARD: Final = "strategy_card.json"
CODE: Final = "strategy.py"
CLASS: Final = "TradingStrategy"

Text = Annotated[str, msgspec.Meta(min_length=1, max_length=4000)]


class CardConstraints(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the strategy says it will never do. The names are those of the frozen semantics."""

    max_exposure: float
    max_trades_per_bar: int
    flat_overnight: bool = False
    short_allowed: bool = True


class StrategyCard(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A strategy as its author understood it.

    ``strategy`` and ``version`` name the frozen semantics. The four texts are the core logic: they are compared
    between iterations after blanks are normalised. ``parameters`` and ``constraints`` have the names of the frozen
    semantics; ``legs`` are the assets it trades or watches. ``notes`` are for people and compared by nobody.
    """

    strategy: str
    version: int
    strategy_family: Text
    entry_rule: Text
    exit_rule: Text
    position_sizing_rule: Text
    parameters: dict[str, float]
    constraints: CardConstraints
    legs: tuple[str, ...]
    execution: Literal["signal-bar-close"]
    notes: str = ""

    @property
    def core_logic(self) -> dict[str, str]:
        """The texts that may not change, with blanks normalised."""
        names = ("strategy_family", "entry_rule", "exit_rule", "position_sizing_rule")
        return {name: " ".join(str(getattr(self, name)).split()) for name in names}

    @property
    def core_sha256(self) -> str:
        """The hash of the core logic, of the strategy's name and of how orders are filled."""
        return sha256_bytes(
            canonical_json([self.strategy, self.version, self.execution, list(self.legs), self.core_logic])
        )


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """The two files of a submission, unread. ``name`` says where it came from (a model, a folder)."""

    source: str
    card: str
    name: str = ""

    @property
    def sha256(self) -> str:
        """The hash of both files."""
        return sha256_bytes(f"{self.card}\0{self.source}".encode("utf-8", "surrogatepass"))

    def read_card(self) -> StrategyCard:
        """Return the card; raises :class:`UserError` naming the place that does not fit."""
        try:
            return msgspec.json.decode(self.card, type=StrategyCard)
        except UNDECODABLE as error:
            raise UserError(f"{CARD}: {error}", mend="compare it with the card's schema") from error


def card_schema() -> bytes:
    """Return the JSON schema of a strategy card."""
    return canonical_json(schema_of_type(StrategyCard))


def read_submission(folder: Path, name: str = "") -> Submission:
    """Return the submission in a folder; raises :class:`UserError` if one of its files is missing or not text."""
    found = {}
    for file in (CODE, CARD):
        try:
            found[file] = (folder / file).read_text(encoding="utf-8")
        except OSError as error:
            raise UserError(
                f"{folder} has no readable {file}: {error.strerror}",
                mend=f"a submission is a folder with {CODE} and {CARD}",
            ) from error
        except UnicodeDecodeError as error:
            raise UserError(f"{folder / file} is not UTF-8 text") from error
    return Submission(source=found[CODE], card=found[CARD], name=name or folder.name)


def write_submission(submission: Submission, folder: Path) -> None:
    """Write a submission's files into a folder, which is created if missing."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / CODE).write_text(clean_text(submission.source), encoding="utf-8")
    (folder / CARD).write_text(clean_text(submission.card), encoding="utf-8")


@dataclass(frozen=True, slots=True, eq=False)
class Scenario:
    """A short price path chosen by hand, and what the strategy does on it: one decision for each trade."""

    name: str
    what: str
    bars: TaskBars
    expected: DecisionList


@dataclass(frozen=True, slots=True, eq=False)
class StrategySpec:
    """One strategy of the benchmark, as far as submissions are concerned."""

    semantics: Semantics
    doc: str
    scenarios: tuple[Scenario, ...]

    @property
    def id(self) -> str:
        """The strategy's name."""
        return self.semantics.id

    @property
    def signals(self) -> tuple[str, ...]:
        """The names that a trade's signal may have, in the order of the rules."""
        return tuple(rule.signal for rule in self.semantics.rules)

    def frozen_decisions(self, bars: TaskBars) -> DecisionList:
        """Return what the frozen semantics decide on bars, bar by bar. The assets are the legs, in order."""
        legs = self.semantics.inputs.legs
        feeds = dict(zip(legs, bars.feeds.values(), strict=False))
        last = calendar_of(bars.times).last.astype(np.bool_)
        return interpret(self.semantics, feeds, bars.times, last_bars=last)

    def compiled_decisions(self, bars: TaskBars) -> DecisionList:
        """Return the same for long bars, by the compiled strategy that is tested against the interpreter."""
        from tradeassay.code.semantics.compiler import KernelTape, run_compiled

        legs = self.semantics.inputs.legs
        feeds = dict(zip(legs, bars.feeds.values(), strict=False))
        last = calendar_of(bars.times).last.astype(np.bool_)
        return run_compiled(self.semantics, KernelTape(feeds, legs, bars.times, last))

    def practice_bars(self, rows: int = 500, seed: int = 1) -> TaskBars:
        """Return synthetic bars of the right shape: daily where the strategy has a daily version, else 15 minutes.

        Quarter hours stand in for minutes, so that the bars span enough sessions.
        """
        daily = "1d" in self.semantics.inputs.timeframes
        timeframe: Timeframe = "1d" if daily else "15m"
        count = len(self.semantics.inputs.legs)
        market = "us" if count == 1 else "pairs" if count == 2 else "trend"
        return make_bars(market, timeframe, count, rows, seed)
