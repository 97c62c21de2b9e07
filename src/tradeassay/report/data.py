"""What a report is made from: plain frozen records that know neither a run nor a page."""

from __future__ import annotations

import msgspec

from tradeassay.core.badges import Badges
from tradeassay.metrics import Comparison, SeedSummary
from tradeassay.report.model_data import Figures, ModelData


class Trade(msgspec.Struct, frozen=True, kw_only=True):
    """One fill: positive ``quantity`` is a purchase."""

    session: str
    symbol: str
    quantity: float
    price: float
    forced: bool = False


class DecisionNote(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent said in one session, as it said it. ``problems`` are its failures, one line each."""

    session: str
    orders: tuple[str, ...]
    reason: str
    failed: bool = False
    problems: tuple[str, ...] = ()


class HoldingsOverTime(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of the account at the end of each session: ``weights[symbol][session]``, one shown per symbol."""

    symbols: tuple[str, ...]
    weights: tuple[tuple[float, ...], ...]


class AgentData(msgspec.Struct, frozen=True, kw_only=True):
    """One row of a leaderboard and all that unfolds from it.

    ``paths`` holds the value path (initial value first) of every repetition that has a result; ``shown`` is the
    place of the repetition whose holdings, trades and decisions are shown. ``failure`` says why there is no
    result at all. ``failed_episodes`` pairs an episode's key with its reason. ``model`` is None for a rule.
    """

    name: str
    measures: dict[str, SeedSummary]
    baseline: bool = False
    added: bool = False
    seeds: int = 1
    paths: tuple[tuple[float, ...], ...] = ()
    shown: int = 0
    shown_seed: int | None = None
    versus_baseline: Comparison | None = None
    p_adjusted: float | None = None
    failure: str | None = None
    failed_episodes: tuple[tuple[str, str], ...] = ()
    holdings: HoldingsOverTime | None = None
    trades: tuple[Trade, ...] = ()
    trades_left_out: int = 0
    rejections: dict[str, int] = {}
    failures: dict[str, int] = {}
    decisions: tuple[DecisionNote, ...] = ()
    decisions_left_out: int = 0
    model: ModelData | None = None


class CellData(msgspec.Struct, frozen=True, kw_only=True):
    """One benchmark on one data set: agents that may be compared with each other.

    ``baseline_phrase`` is what the baseline is called in a sentence ("buy and hold"). ``index`` has one level per
    session and one before, or is None. ``prices`` are closing prices as traded, one per session. ``settings`` are
    those of the conversation that the run named, ``window`` its named window; ``published`` what a paper printed.
    """

    id: str
    title: str
    benchmark: str
    dataset: str
    badges: Badges
    sessions: tuple[str, ...]
    agents: tuple[AgentData, ...]
    baseline: str
    baseline_phrase: str = "buy and hold"
    description: str = ""
    rules: str = ""
    periods_per_year: int = 252
    index_name: str | None = None
    index: tuple[float, ...] | None = None
    prices: dict[str, tuple[float | None, ...]] = {}
    settings: dict[str, bool | int | float | str] = {}
    window: str | None = None
    published: Figures | None = None


class ReportData(msgspec.Struct, frozen=True, kw_only=True):
    """A whole report. ``hashes`` and ``versions`` are (name, value) pairs, shown as they are.

    ``check`` is the command that checks the run the report was made from.
    """

    title: str
    cells: tuple[CellData, ...]
    level: float = 0.95
    draws: int = 1000
    hashes: tuple[tuple[str, str], ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    check: str | None = None
