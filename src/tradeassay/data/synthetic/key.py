"""A world's two halves: the panel with the facts a reader must know, and the answer key that no view reaches."""

from __future__ import annotations

from dataclasses import dataclass, fields
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tradeassay.core import reproducible_math as exact
from tradeassay.core.errors import DataError, UserError
from tradeassay.core.files import write_atomic
from tradeassay.core.hashing import sha256_bytes
from tradeassay.core.view import Days, Floats, Ints, NewsItem
from tradeassay.data.calendars import Sessions
from tradeassay.data.source import Panel, PanelFacts
from tradeassay.data.synthetic.engine import Drivers
from tradeassay.data.synthetic.events import NewsEvent
from tradeassay.data.synthetic.universe import VERSION, SyntheticConfig, WorldNames, sectors
from tradeassay.factors import FACTOR_NAMES

_MANIFEST = "manifest.json"
_HEAD = b"tradeassay-answer-key 1 "
"""A key's file begins with this and the SHA-256 of the rest."""


class NewsTruth(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one news item is worth. ``kind``: informative, noise, rumour or duplicate. ``tone`` is what the text
    says, ``gap`` the return planted at the open of ``session`` (the first that opens after publication), ``drift``
    the return planted afterwards, over ``horizon`` sessions. ``repeats`` names the item that a duplicate repeats.
    """

    id: str
    symbol: str
    session: str
    kind: str
    theme: str
    tone: int
    size: float
    gap: float
    drift: float
    horizon: int
    repeats: str | None = None


class PlantedSkill(msgspec.Struct, frozen=True, kw_only=True):
    """Something that can be known in this world, and what knowing it is worth before costs. ``edge`` is the mean
    return per item (news) or per year and unit of exposure (styles), in the direction of the knowledge; ``items``
    counts the occasions (None where there is one every day)."""

    name: str
    knows: str
    edge: float
    items: int | None = None


class KeyFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The part of a key that is not an array."""

    version: str
    preset: str
    seed: int
    symbols: tuple[str, ...]
    factors: tuple[str, ...]
    sectors: tuple[str, ...]
    regimes: tuple[str, ...]
    news: tuple[NewsTruth, ...]
    skills: tuple[PlantedSkill, ...]


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """The truth about a world of T sessions and N names (the index fund is not a name). A session's latent return
    is ``beta * market + sum(exposures * styles) + sectors[sector] + news + alpha + decline + residual``, all
    simple returns. ``exposures`` (T, 9, N) are known before the session, ``styles`` (T, 9) and ``sectors`` (T,
    sectors) are returns, ``news``, ``decline`` and ``residual`` have shape (T, N), ``beta``, ``alpha`` (per
    session) and ``sector`` one entry per name. Printed returns differ by dividends, rounding to the tick, and what
    a price limit held back."""

    facts: KeyFacts
    sessions: Days
    market: Floats
    styles: Floats
    sectors: Floats
    exposures: Floats
    news: Floats
    decline: Floats
    residual: Floats
    beta: Floats
    alpha: Floats
    sector: Ints

    def save(self, path: Path) -> Path:
        """Write the key to one file, never into a snapshot's folder, where a view might find it."""
        for folder in path.absolute().parents:
            if (folder / _MANIFEST).exists():
                problem = f"an answer key must not lie inside the snapshot {folder}"
                raise UserError(problem, hint="choose a folder outside it")
        arrays = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "facts"}
        arrays["sessions"] = self.sessions.astype(np.int64)
        path.parent.mkdir(parents=True, exist_ok=True)
        packed = BytesIO()
        np.savez_compressed(packed, facts=np.frombuffer(msgspec.json.encode(self.facts), dtype=np.uint8), **arrays)
        content = packed.getvalue()
        write_atomic(path, _HEAD + sha256_bytes(content).encode() + b"\n" + content)
        return path

    @classmethod
    def load(cls, path: Path) -> AnswerKey:
        """Read what :meth:`save` wrote; raises :class:`DataError` when the file is no answer key or altered."""
        try:
            content = path.read_bytes()
        except OSError as error:
            raise DataError(f"{path} is not an answer key ({error})", hint="make the world again") from error
        head, _, packed = content.partition(b"\n")
        if head != (_HEAD + sha256_bytes(packed).encode()):
            raise DataError(f"{path} is not an answer key, or was altered", hint="make the world again")
        with np.load(BytesIO(packed), allow_pickle=False) as stored:
            facts = msgspec.json.decode(stored["facts"].tobytes(), type=KeyFacts)
            arrays = {f.name: stored[f.name] for f in fields(cls) if f.name != "facts"}
        arrays["sessions"] = arrays["sessions"].astype("datetime64[D]")
        return cls(facts=facts, **arrays)

    def column(self, symbol: str) -> int:
        try:
            return self.facts.symbols.index(symbol)
        except ValueError:
            raise UserError(f"no name '{symbol}' in this answer key") from None


@dataclass(frozen=True, slots=True)
class World:
    """A panel and its answer key, kept apart."""

    panel: Panel
    key: AnswerKey


def panel_frame(config: SyntheticConfig, sessions: Sessions) -> dict[str, Any]:
    """Return the name, facts and sessions of a world's panel."""
    facts = PanelFacts(
        kind="synthetic",
        source=VERSION,
        query=msgspec.json.encode({"preset": config.preset, "seed": config.seed}).decode(),
        currency=config.currency,
        calendar=config.calendar,
        licence="generated; free to use",
    )
    times = {"sessions": sessions.days, "open_time": sessions.open_time, "close_time": sessions.close_time}
    return {"name": f"synthetic/{config.preset}:{config.seed}", "facts": facts, **times}


def make_key(
    config: SyntheticConfig,
    universe: WorldNames,
    drivers: Drivers,
    drawn: tuple[Floats, Floats],
    news: tuple[tuple[NewsEvent, ...], tuple[NewsItem, ...]],
    days: Days,
    skills: tuple[PlantedSkill, ...],
) -> AnswerKey:
    """Return the key of a world whose shown sessions are ``days``; what lies before them is left out. In ``drawn``
    are exposures and residual returns, in ``news`` the events and the items about them."""
    burn = len(drivers.market.regime) - days.size
    events, items = news
    told = ("kind", "theme", "tone", "size", "gap", "drift")
    truths = tuple(
        NewsTruth(
            id=item.id,
            symbol=item.symbols[0],
            session=str(days[event.row]),
            horizon=config.news.horizon,
            repeats=None if event.origin is None else items[event.origin].id,
            **{name: getattr(event, name) for name in told},
        )
        for event, item in zip(events, items, strict=True)
    )
    # What reading is worth: the mean drift after the first open, over items of a kind.
    reading = []
    for kind, knows in (
        ("informative", "which items tell a fact, and whether it is good or bad"),
        ("rumour", "that rumours fade: trade against their tone at the next open"),
    ):
        worth = np.array([abs(event.drift) for event in events if event.kind == kind])
        if worth.size:
            edge = float(exact.mean(worth))
            reading.append(PlantedSkill(name=f"news-{kind}", knows=knows, edge=edge, items=worth.size))
    facts = KeyFacts(
        version=VERSION,
        preset=config.preset,
        seed=config.seed,
        symbols=tuple(instrument.symbol for instrument in universe.instruments),
        factors=FACTOR_NAMES,
        sectors=sectors(config.preset),
        regimes=drivers.market.regime[burn:],
        news=truths,
        skills=(*reading, *skills),
    )
    return AnswerKey(
        facts=facts,
        sessions=days,
        market=(drivers.market.overnight + drivers.market.intraday)[burn:],
        styles=(drivers.styles[0] + drivers.styles[1])[burn:],
        sectors=(drivers.sectors[0] + drivers.sectors[1])[burn:],
        exposures=drawn[0][burn:],
        news=(drivers.planted[0] + drivers.planted[1])[burn:],
        decline=drivers.decline[burn:],
        residual=drawn[1][burn:],
        beta=universe.beta,
        alpha=universe.alpha,
        sector=universe.sector,
    )
