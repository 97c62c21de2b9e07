"""A season: the frozen rules of one competition. Its standings are its own; a changed spec is another season."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

import msgspec

from tradeassay.benchmarks.ama.rules import AmaRules, Kind, rules_for
from tradeassay.core.badges import Convention
from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_of
from tradeassay.core.time import parse_day

Scalar = bool | int | float | str
BASELINE = "buy-and-hold"
"""The entry that every season has, whatever its spec says."""

_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")


class Asset(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something that is traded. ``dataset`` names where its prices come from: a stored data set or a world.

    A stock follows its exchange's sessions and early closes, crypto trades every day. The decision is made at the
    close of the session.
    """

    symbol: str
    kind: Kind
    dataset: str


class Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Somebody who takes part: an architecture, and the model inside it where it has one."""

    id: str
    architecture: str
    model: str = ""
    label: str = ""
    params: dict[str, Scalar] = {}

    @property
    def shown(self) -> str:
        """The name on the page."""
        return self.label or (f"{self.architecture} · {self.model}" if self.model else self.architecture)


class OptionalRules(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rules from the paper's future work, all off unless a season asks for them.

    ``cross_asset``: one account per entry over all assets, sized by the allocation it gives with each decision.
    ``messages``: entries may say something in public, which the others read from the next session on.
    ``feedback``: every settled decision is written to a reward log that an agent may learn from.
    """

    cross_asset: bool = False
    messages: bool = False
    feedback: bool = False


class Season(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that decides a season's standings.

    ``first``/``last`` are ISO days (``last`` None: it runs until it is ended); the first ``warmup`` sessions of
    each asset teach the agents and do not count. ``window_s`` is how long after the decision time a decision may
    still arrive. ``fee_bp`` None takes the convention's.
    """

    id: str
    title: str = ""
    convention: Convention = "sound"
    assets: tuple[Asset, ...]
    entries: tuple[Entry, ...]
    first: str
    last: str | None = None
    warmup: int = 0
    cash: float = 100_000.0
    fee_bp: float | None = None
    window_s: int = 1800
    timeout_s: int = 180
    news_days: int = 3
    seed: int = 0
    temperature: float = 0.0
    max_tokens: int = 2048
    rules: OptionalRules = OptionalRules()

    def __post_init__(self) -> None:
        _check_ids(self)
        first = parse_day(self.first)
        if self.last is not None and parse_day(self.last) < first:
            raise UserError(f"season '{self.id}' ends before it begins", mend="exchange 'first' and 'last'")
        if self.warmup < 0 or self.window_s <= 0 or self.timeout_s <= 0 or not self.cash > 0:
            raise UserError(
                f"season '{self.id}' has a negative warm-up, no time to decide, or no money",
                mend="warmup >= 0, window_s > 0, timeout_s > 0, cash > 0",
            )

    @property
    def sha256(self) -> str:
        """The hash under which the spec is frozen."""
        return sha256_of(self)

    @property
    def money(self) -> AmaRules:
        """How actions become money in this season."""
        rules = rules_for(self.convention)
        return rules if self.fee_bp is None else msgspec.structs.replace(rules, fee_bp=self.fee_bp)

    def asset(self, symbol: str) -> Asset:
        """Return an asset; raises :class:`UserError` when the season has no such symbol."""
        for asset in self.assets:
            if asset.symbol == symbol:
                return asset
        known = ", ".join(asset.symbol for asset in self.assets)
        raise UserError(f"season '{self.id}' has no asset '{symbol}'", mend=f"it has {known}")

    def entry(self, id: str) -> Entry:
        """Return an entry, the baseline included; raises :class:`UserError` when there is no such id."""
        for entry in self.everyone:
            if entry.id == id:
                return entry
        known = ", ".join(entry.id for entry in self.everyone)
        raise UserError(f"season '{self.id}' has no entry '{id}'", mend=f"it has {known}")

    @property
    def everyone(self) -> tuple[Entry, ...]:
        """All entries, then the baseline."""
        if any(entry.id == BASELINE for entry in self.entries):
            return self.entries
        return (*self.entries, Entry(id=BASELINE, architecture="rule", label="Buy and hold"))


def load_season(path: Path) -> Season:
    """Read a season from a TOML file; raises :class:`UserError` naming what is wrong in it."""
    try:
        return msgspec.toml.decode(path.read_bytes(), type=Season)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}", mend="name a season's TOML file") from error
    except (msgspec.DecodeError, ValueError) as error:
        raise UserError(f"{path} is not a season: {error}", mend="see docs/reference/arena.md") from error


def _check_ids(season: Season) -> None:
    named: list[tuple[Literal["season", "entry"], str]] = [("season", season.id)]
    named += [("entry", entry.id) for entry in season.entries]
    for what, id in named:
        if not _ID.fullmatch(id):
            raise UserError(f"{what} id '{id}'", mend="use up to 64 of a-z, 0-9, dot, dash and underscore")
    if not season.assets:
        raise UserError(f"season '{season.id}' has no assets")
    listed = (("asset", [a.symbol for a in season.assets]), ("entry", [e.id for e in season.entries]))
    for kind, ids in listed:
        twice = {id for id in ids if ids.count(id) > 1}
        if twice:
            raise UserError(f"season '{season.id}' has the {kind} '{min(twice)}' twice")


MODELS = ("scripted/sensible", "scripted/contrarian")
ARCHITECTURES = ("investor", "trade", "hedge-fund", "deep-fund")


def demo_season(seed: int = 7, *, first: str = "2022-03-01", last: str = "2022-12-30", warmup: int = 20) -> Season:
    """Return the demo's season on two stocks and two coins of the synthetic worlds of one seed."""
    return Season(
        id=f"demo-{seed}",
        title="Replayed synthetic days",
        assets=_assets(seed),
        entries=(
            *(
                Entry(id=f"{kind}-{model.removeprefix('scripted/')}", architecture=kind, model=model)
                for kind in ARCHITECTURES
                for model in MODELS
            ),
            Entry(id="trend", architecture="rule", label="Trend rule", params={"rule": "trend"}),
        ),
        first=first,
        last=last,
        warmup=warmup,
    )


def _assets(seed: int) -> tuple[Asset, ...]:
    """Return the first two ordinary instruments of each world, by name."""
    from tradeassay.data import load_dataset

    found: list[Asset] = []
    for kind, preset in (("stock", "us"), ("crypto", "crypto")):
        dataset = f"synthetic/{preset}:{seed}"
        snapshot = load_dataset(dataset)
        view = snapshot.at(0, "close")
        plain = [symbol for symbol in view.symbols if view.instrument(symbol).kind == kind]
        found += [
            Asset(symbol=symbol, kind="stock" if kind == "stock" else "crypto", dataset=dataset)
            for symbol in plain[:2]
        ]
    return tuple(found)
