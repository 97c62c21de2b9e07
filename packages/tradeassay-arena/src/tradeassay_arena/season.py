"""Define a season: the frozen rules of one competition.

A changed spec is another season with separate standings.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from tradeassay.core.errors import UNDECODABLE, UserError
from tradeassay.core.hashing import canonical_json, sha256_bytes
from tradeassay.core.measure import Convention
from tradeassay_arena.benchmarks.ama.rules import AMA, AmaRules, Kind, rules_for
from tradeassay_bench.core.time import SECOND, Instant, parse_day, parse_iso

Scalar = bool | int | float | str
T = TypeVar("T")
BASELINE = "buy-and-hold"
"""The id of the baseline, an entry of every season that need not be in its spec."""

PREFIX = "live/"
"""The prefix of the ``dataset`` of an asset with live prices."""
NO_LIVE_RANKS = (
    "a live season shows accounts and no ranks, because its agents decide after the price at which "
    "they are filled"
    " is known"
)
"""The reason why a live season has no ranks, as it is displayed."""
FILLED_AT_DECISION = "this replay decides at the price it is filled at"
"""The note on every replay in which agents decide at the price of the fill, as in the paper."""

_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


class Asset(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A traded asset.

    ``dataset`` names the source of its prices: a stored data set, a synthetic world or a live
    source. A stock follows the sessions and early closes of its exchange. Crypto trades every day.
    ``calendar`` names the exchange of a live asset if its symbol and source do not identify it.
    ``second`` is another live source whose bars are compared with the first. ``first``, ``last``
    and ``live_from`` are the asset's own days if they differ from the season's. ``names`` are other
    names of the asset in the news. ``cik`` is its number at the SEC.
    """

    symbol: str
    kind: Kind
    dataset: str
    calendar: Literal["", "XNYS", "XSHG", "24/7"] = ""
    second: str = ""
    first: str | None = None
    last: str | None = None
    live_from: str | None = None
    names: tuple[str, ...] = ()
    cik: int | None = None


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A participant: an architecture, with a model if the architecture needs one."""

    id: str
    architecture: str
    model: str = ""
    label: str = ""
    params: dict[str, Scalar] = {}

    @property
    def kind(self) -> str:
        return f"{self.architecture} · {self.model}" if self.model else self.architecture

    @property
    def shown(self) -> str:
        """The displayed name: the entry's kind, followed by its label.

        An entry without a model and without a label has its id instead, because nothing else
        distinguishes two programs over HTTP.
        """
        if self.id == BASELINE:
            return self.label
        own = self.label or ("" if self.model else self.id)
        return f"{self.kind}: {own}" if own else self.kind


class OptionalRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Optional rules from the paper's future work, which are off by default.

    - ``cross_asset``: each entry has one account over all assets. The allocation of a decision is
      its share of the account.
    - ``messages``: entries may publish a message. Other entries see the message from the next
      session on.
    - ``feedback``: every settled decision is written to a log of rewards for agents that learn.
    """

    cross_asset: bool = False
    messages: bool = False
    feedback: bool = False


class PriceRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The limits beyond which a live bar is doubtful.

    A doubtful bar delays its round until an operator accepts it or a second look confirms it.
    ``stock_jump`` and ``crypto_jump`` are the largest accepted moves from the previous close, as
    fractions. ``apart`` is the largest accepted distance from the second source. The second look is
    ``look_again_s`` seconds after the first.
    """

    stock_jump: float = 0.4
    crypto_jump: float = 0.5
    apart: float = 0.02
    look_again_s: int = 600

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if not (value >= 0 if name == "look_again_s" else value > 0):
                raise UserError(
                    f"[prices] {name} = {value} is not a valid limit", hint="give a positive number"
                )

    def jump(self, kind: Kind) -> float:
        return self.stock_jump if kind == "stock" else self.crypto_jump


class NewsRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Live news: addresses of RSS or Atom feeds, read every ``every_s`` seconds.

    ``zone`` is the time zone of time stamps without a zone. An item belongs to the assets whose
    symbol or name it contains.
    """

    rss: tuple[str, ...] = ()
    every_s: int = 300
    zone: str | None = None


class FilingRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings for live filings.

    With ``edgar``, the SEC is queried about every asset with a ``cik``. The SEC requires a
    ``contact`` (a mail address). ``address`` is the server of the lists of filings, for example a
    mirror.
    """

    edgar: bool = False
    contact: str = ""
    address: str = "https://data.sec.gov"


class SummaryRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The model that summarises news, the model that checks summaries, and their language.

    Without a ``model``, agents get the original news. Without a ``checker``, summaries are not
    checked.
    """

    model: str = ""
    checker: str = ""
    language: Literal["", "en", "zh"] = ""


class BudgetRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Limits in dollars and in tokens for the season, for one entry, and for one session day.

    A limit of None is no limit. Spending is read from the database, so a restart does not reset it.
    A decision of an entry over a limit fails with the kind ``over_budget``, and the entry holds. A
    decision in progress is not interrupted. A season with a limit in dollars runs only if the price
    of every model is known. Summaries of the news are not counted.
    """

    usd: float | None = None
    usd_per_entry: float | None = None
    usd_per_day: float | None = None
    tokens: int | None = None
    tokens_per_entry: int | None = None
    tokens_per_day: int | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise UserError(
                    f"[budget] {name} = {value} is not a valid limit",
                    hint="give a positive amount, or leave it out",
                )

    @property
    def in_dollars(self) -> bool:
        """Whether a limit is in dollars, which requires a price for every model."""
        return any(value is not None for value in (self.usd, self.usd_per_entry, self.usd_per_day))

    @property
    def any(self) -> bool:
        return any(getattr(self, name) is not None for name in self.__struct_fields__)


_RANGES: dict[str, tuple[float, float]] = {
    "cash": (1e-6, 1e15),
    "fee_bp": (0.0, 5000.0),
    "temperature": (0.0, 10.0),
    "max_tokens": (1, 10**7),
    "news_days": (0, 3650),
    "seed": (0, 2**63 - 1),
    "window_s": (1, 10**9),
    "timeout_s": (1, 10**9),
    "warmup": (0, 10**6),
    "delay_s": (0, 10**9),
}
LIVE_DELAY_S = 900
"""Default time from the close to the decision in a live season, in seconds.

Vendors publish the last bar late.
"""


Change = Literal["join", "withdraw", "rename", "add", "retire", "reopen", "extend", "rule"]
AMENDABLE = ("fee_bp", "window_s", "timeout_s", "delay_s", "news_days")
"""The rules that an amendment may change.

Any other change needs a new season.
"""


class Amendment(msgspec.Struct, frozen=True, kw_only=True):
    """A change that an operator made while a season ran. It is in force from the session ``day``
    on.

    - ``join``: the entry in ``value`` takes part.
    - ``withdraw``: an entry makes no decision after ``day`` and keeps its position.
    - ``rename``: an entry gets the label ``value``.
    - ``add``: the asset in ``value`` is traded.
    - ``retire``: an asset has no session after ``day``.
    - ``reopen``: the skipped session ``day`` of an asset is run after all.
    - ``extend``: the season's last day is ``day``.
    - ``rule``: the rule ``what`` has the value ``value``.
    """

    number: int
    at: str
    by: str
    change: Change
    what: str
    day: str
    value: str = ""

    def late(self, opened: Mapping[str, str]) -> bool:
        """Return whether a round was opened for a session that this amendment changes.

        ``opened`` maps every asset to its newest session with a round.
        """
        own = self.change in ("retire", "reopen", "add")
        newest = opened.get(self.what, "") if own else max(opened.values(), default="")
        begins = self.change in ("join", "rule", "reopen")
        return self.change != "rename" and (newest >= self.day if begins else newest > self.day)


class Season(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All settings that determine a season's standings: entries, assets, days and rules.

    ``benchmark`` is the version of prompts and protocol. ``first`` and ``last`` are ISO days. A
    season with ``last`` None has no planned end. The first ``warmup`` sessions of each asset, or
    the sessions before ``live_from``, let the agents learn and do not count. With the
    ``warmup_position`` ``kept``, a live account begins with the position at the end of the warm-up
    and pays no fee for it. With ``closed`` it begins without a position. Both begin with the value
    1.

    ``delay_s`` is the time from the close to the decision. None means zero in a replay and a
    quarter of an hour in a live season. ``window_s`` is the time after the delay within which a
    decision is accepted. All times are in seconds. With ``fee_bp`` None, the convention's fee
    applies.

    ``amendments`` and ``founded`` (the hash of the spec) are not part of a spec. :func:`amended`
    sets both in the amended season, which has every entry that ever joined.
    """

    id: str
    title: str = ""
    benchmark: Literal["ama-v1"] = AMA
    convention: Convention = "corrected"
    assets: tuple[Asset, ...]
    entries: tuple[Entry, ...]
    first: str
    last: str | None = None
    warmup: int = 0
    live_from: str | None = None
    warmup_position: Literal["kept", "closed"] = "kept"
    delay_s: int | None = None
    cash: float = 100_000.0
    fee_bp: float | None = None
    window_s: int = 1800
    timeout_s: int = 180
    news_days: int = 3
    seed: int = 0
    temperature: float = 0.0
    max_tokens: int = 2048
    rules: OptionalRules = OptionalRules()
    prices: PriceRules = PriceRules()
    news: NewsRules = NewsRules()
    filings: FilingRules = FilingRules()
    summary: SummaryRules = SummaryRules()
    budget: BudgetRules = BudgetRules()
    amendments: tuple[Amendment, ...] = ()
    founded: str = ""

    def __post_init__(self) -> None:
        for what, id in (("season", self.id), *(("entry", entry.id) for entry in self.entries)):
            if not _ID.fullmatch(id):
                raise UserError(
                    f"{what} id '{id}'", hint="use up to 64 of a-z, 0-9, dot, dash and underscore"
                )
        if not self.assets:
            raise UserError(f"season '{self.id}' has no assets")
        for kind, ids in (
            ("asset", [a.symbol for a in self.assets]),
            ("entry", [e.id for e in self.entries]),
        ):
            twice = {id for id, count in Counter(ids).items() if count > 1}
            if twice:
                raise UserError(f"season '{self.id}' has the {kind} '{min(twice)}' twice")
        for first, last, who in (
            (self.first, self.last, "it"),
            *((*self.days(a), a.symbol) for a in self.assets),
        ):
            if last is not None and parse_day(last) < parse_day(first):
                what = f"season '{self.id}' ends before it begins ({who})"
                raise UserError(what, hint="swap 'first' and 'last'")
        for day in (self.live_from, *(asset.live_from for asset in self.assets)):
            if day is not None:
                parse_day(day)
        if self.filings.edgar and "@" not in self.filings.contact:
            hint = 'add contact = "you@example.org" to [filings]'
            raise UserError(
                "[filings] edgar needs a contact: the SEC asks for a mail address", hint=hint
            )
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if value is not None and not low <= value <= high:
                hint = f"give {low:g} to {high:g}"
                raise UserError(
                    f"season '{self.id}': {name} = {value:g} is out of range", hint=hint
                )

    def days(self, asset: Asset) -> tuple[str, str | None]:
        return asset.first or self.first, asset.last or self.last

    def warming(self, asset: Asset, session: str, number: int) -> bool:
        """Return whether a session belongs to the warm-up.

        ``number`` is the session's index among the asset's sessions, from 0.
        """
        begins = asset.live_from or self.live_from
        return session < begins if begins is not None else number < self.warmup

    @property
    def has_warmup(self) -> bool:
        """Whether any asset has a warm-up."""
        return self.warmup > 0 or any(asset.live_from or self.live_from for asset in self.assets)

    @property
    def keeps_position(self) -> bool:
        """Whether a live account begins with the position of its warm-up.

        An account over all assets never does, because its assets may become live on different days.
        """
        return self.warmup_position == "kept" and not self.rules.cross_asset

    def _changed(self, change: Change) -> dict[str, str]:
        """Return the day of each amendment of one kind, by its target."""
        return {one.what: one.day for one in self.amendments if one.change == change}

    @property
    def joined(self) -> dict[str, str]:
        """The first day of each entry that joined later, by entry."""
        return self._changed("join")

    @property
    def withdrawn(self) -> dict[str, str]:
        """The last day of decisions of each withdrawn entry, by entry."""
        return self._changed("withdraw")

    def on(self, session: str) -> Season:
        """Return the season with the entries, assets and rules that are in force on a day."""
        if not self.amendments:
            return self
        joined, added = self.joined, self._changed("add")
        in_force = (one for one in self.amendments if one.change == "rule" and one.day <= session)
        rules = {one.what: msgspec.json.decode(one.value) for one in in_force}
        return msgspec.structs.replace(
            self,
            entries=tuple(one for one in self.entries if joined.get(one.id, "") <= session),
            assets=tuple(one for one in self.assets if added.get(one.symbol, "") <= session),
            **rules,
        )

    def fee_on(self, session: str) -> float:
        return self.on(session).money.fee_bp

    def closes(self, asset: str, session: str, at: Instant) -> Instant:
        """Return the deadline for the decisions of a session that is due ``at``.

        A reopened session gets the full time again.
        """
        place = ("reopen", asset, session)
        again = [
            parse_iso(one.at) for one in self.amendments if (one.change, one.what, one.day) == place
        ]
        return max((at, *again)) + self.on(session).window_s * SECOND

    @property
    def live(self) -> bool:
        """Whether any asset has live prices."""
        return any(asset.dataset.startswith(PREFIX) for asset in self.assets)

    @property
    def price_note(self) -> str:
        """The note on fill prices that every page must display, or an empty text."""
        if self.live:
            return NO_LIVE_RANKS
        return FILLED_AT_DECISION if self.convention == "paper" else ""

    @property
    def sha256(self) -> str:
        return self.founded or sha256_bytes(self.frozen)

    @property
    def frozen(self) -> bytes:
        """The spec in its stored and hashed form.

        A setting that was added later is written only if it differs from its default, so an older
        season keeps its hash.
        """
        return canonical_json(_frozen(self))

    @property
    def money(self) -> AmaRules:
        rules = rules_for(self.convention)
        return rules if self.fee_bp is None else msgspec.structs.replace(rules, fee_bp=self.fee_bp)

    def asset(self, symbol: str) -> Asset:
        """Return the asset with a symbol. Raises :class:`UserError` for an unknown symbol."""
        return self._known("asset", symbol, {asset.symbol: asset for asset in self.assets})

    def entry(self, id: str) -> Entry:
        """Return the entry or baseline with an id. Raises :class:`UserError` for an unknown id."""
        return self._known("entry", id, {entry.id: entry for entry in self.all_entries})

    def _known(self, kind: str, name: str, known: dict[str, T]) -> T:
        if name not in known:
            raise UserError(
                f"season '{self.id}' has no {kind} '{name}'", hint=f"it has {', '.join(known)}"
            )
        return known[name]

    @property
    def all_entries(self) -> tuple[Entry, ...]:
        if any(entry.id == BASELINE for entry in self.entries):
            return self.entries
        return (*self.entries, Entry(id=BASELINE, architecture="rule", label="Buy and hold"))


def amended(season: Season, made: Iterable[Amendment]) -> Season:
    """Return a season with its amendments.

    It has every entry that ever joined, and every asset with its days. Names and the last day are
    the present values. Changed rules depend on the day, see :meth:`Season.on`.
    """
    made, replace = tuple(made), msgspec.structs.replace
    if not made:
        return season
    entries = {entry.id: entry for entry in season.entries}
    assets = {asset.symbol: asset for asset in season.assets}
    last = season.last
    for one in made:
        if one.change == "join":
            entries[one.what] = msgspec.json.decode(one.value, type=Entry)
        elif one.change == "rename":
            entries[one.what] = replace(entries[one.what], label=one.value)
        elif one.change == "add":
            assets[one.what] = replace(msgspec.json.decode(one.value, type=Asset), first=one.day)
        elif one.change == "retire":
            ends = assets[one.what].last or last or one.day
            assets[one.what] = replace(assets[one.what], last=min(one.day, ends))
        elif one.change == "extend":
            last = one.day
    return replace(
        season,
        entries=tuple(entries.values()),
        assets=tuple(assets.values()),
        last=last,
        amendments=made,
        founded=season.sha256,
    )


_ALWAYS: dict[type, frozenset[str]] = {
    Season: frozenset(
        "title convention last warmup cash fee_bp window_s timeout_s news_days seed temperature "
        "max_tokens"
        " rules".split()
    ),
    Entry: frozenset(("model", "label")),
    OptionalRules: frozenset(("cross_asset", "messages", "feedback")),
}
"""Settings with a default that every stored spec contains.

Never add a setting here, because the hashes of stored specs would change.
"""


def _frozen(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_frozen(one) for one in value]
    if not isinstance(value, msgspec.Struct):
        return value
    always = _ALWAYS.get(type(value), frozenset())
    return {
        field.name: _frozen(getattr(value, field.name))
        for field in _fields(type(value))
        if field.name in always or getattr(value, field.name) != field.default
    }


_fields = cache(
    msgspec.structs.fields
)  # The hints are stored, because msgspec computes them on every call.


def load_season(path: Path) -> Season:
    """Read a season from a TOML file, or a recorded season from JSON.

    Raises :class:`UserError` if the file is not a valid season.
    """
    decode = msgspec.json.decode if path.suffix == ".json" else msgspec.toml.decode
    try:
        season = decode(path.read_bytes(), type=Season)
    except OSError as error:
        raise UserError(
            f"{path}: {error.strerror}", hint="name the TOML file of a season"
        ) from error
    except (ValueError, *UNDECODABLE) as error:
        raise UserError(
            f"{path} is not a season: {error}", hint="see docs/reference/arena.md"
        ) from error
    if season.amendments or season.founded:
        raise UserError(f"{path} contains amendments", hint="make them with tradeassay arena amend")
    check_written(season)
    return season


def check_written(season: Season) -> None:
    """Raise :class:`UserError` for a name that is too long or has invisible characters."""
    check_text("title", season.title, 200)
    for asset in season.assets:
        check_text("symbol of an asset", asset.symbol, 64)
    for entry in season.entries:
        check_text(f"label of '{entry.id}'", entry.label, 80)
        check_text(f"model of '{entry.id}'", entry.model, 200)
    if not all(asset.symbol.strip() for asset in season.assets):
        raise UserError("an asset has no symbol", hint="give every asset a symbol")


def check_text(what: str, text: str, most: int) -> None:
    """Raise :class:`UserError` for a text that is too long or has invisible characters."""
    if len(text) > most:
        raise UserError(f"the {what} has {len(text)} characters", hint=f"use up to {most}")
    kinds = ("Cc", "Cf", "Co", "Cs", "Zl", "Zp")
    unseen = (c for c in text if unicodedata.category(c) in kinds and c not in "\u200c\u200d")
    if (hidden := next(unseen, None)) is not None:
        raise UserError(
            f"the {what} has the invisible character U+{ord(hidden):04X}",
            hint="remove the character",
        )


MODELS = ("scripted/sensible", "scripted/contrarian")
ARCHITECTURES = ("investor", "trade", "hedge-fund", "deep-fund")


def demo_season(
    seed: int = 7, *, first: str = "2022-03-01", last: str = "2022-12-30", warmup: int = 20
) -> Season:
    """Return the demo season: two stocks and two coins of the synthetic worlds of one seed."""
    from tradeassay_bench.data import load_dataset

    assets: list[Asset] = []
    kinds: tuple[tuple[Kind, str], ...] = (("stock", "us"), ("crypto", "crypto"))
    for kind, preset in kinds:
        dataset = f"synthetic/{preset}:{seed}"
        view = load_dataset(dataset).at(0, "close")
        plain = [symbol for symbol in view.symbols if view.instrument(symbol).kind == kind]
        assets += [Asset(symbol=symbol, kind=kind, dataset=dataset) for symbol in plain[:2]]
    return Season(
        id=f"demo-{seed}",
        title="Replayed synthetic days",
        assets=tuple(assets),
        entries=(
            *(
                Entry(
                    id=f"{kind}-{model.removeprefix('scripted/')}", architecture=kind, model=model
                )
                for kind, model in product(ARCHITECTURES, MODELS)
            ),
            Entry(id="trend", architecture="rule", label="Trend rule", params={"rule": "trend"}),
        ),
        first=first,
        last=last,
        warmup=warmup,
    )
