"""Build the panel of a synthetic world, and its answer key, which no view contains."""

from __future__ import annotations

from dataclasses import dataclass, fields
from io import BytesIO
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tradeassay.core.arrays import Days, Floats, Ints
from tradeassay.core.errors import DataError, UserError
from tradeassay.core.files import write_atomic
from tradeassay.core.hashing import sha256_bytes
from tradeassay.factors import FACTOR_NAMES
from tradeassay_bench.core.view import NewsItem
from tradeassay_bench.data.calendars import Sessions
from tradeassay_bench.data.source import Panel, PanelFacts
from tradeassay_bench.data.synthetic.engine import Drivers
from tradeassay_bench.data.synthetic.events import NewsEvent
from tradeassay_bench.data.synthetic.universe import VERSION, SyntheticConfig, WorldNames, sectors

_MANIFEST = "manifest.json"
_HEAD = b"tradeassay-answer-key 1 "
"""First bytes of a key's file, followed by the SHA-256 of the rest."""


class NewsTruth(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The true effect of one news item.

    - ``kind``: informative, noise, rumour or duplicate.
    - ``session``: the first session that opens after publication.
    - ``tone``: the tone of the text.
    - ``gap``: the return planted at the open of ``session``.
    - ``drift``: the return planted afterwards, over ``horizon`` sessions.
    - ``repeats``: the id of the item that a duplicate repeats.
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
    """A piece of knowledge about a world, and its value before costs.

    ``edge`` is the mean return in the direction of the knowledge. For news it is per item, and for
    styles per year and unit of exposure. ``items`` is the number of occasions, or None for
    knowledge that applies every day.
    """

    name: str
    knows: str
    edge: float
    items: int | None = None


class KeyFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The values of an answer key that are not arrays."""

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
    """The truth about a world of T sessions and N names. The index fund is not one of the names.

    A session's latent return is ``beta * market + sum(exposures * styles) + sectors[sector] + news
    + alpha + decline + residual``, all simple returns. Printed returns differ from it by dividends,
    rounding to the tick and price limits.

    - ``styles`` with shape (T, 9) and ``sectors`` with shape (T, sectors) are returns.
    - ``exposures`` has shape (T, 9, N) and is known before the session.
    - ``news``, ``decline`` and ``residual`` have shape (T, N).
    - ``beta``, ``alpha`` (per session) and ``sector`` have one entry per name.
    """

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
        """Write the key to a file and return its path.

        Raises :class:`UserError` for a path inside a snapshot's folder, where an agent could read
        the key.
        """
        for folder in path.absolute().parents:
            if (folder / _MANIFEST).exists():
                problem = f"an answer key may not be inside the snapshot {folder}"
                raise UserError(problem, hint="choose a folder outside the snapshot")
        arrays = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "facts"}
        arrays["sessions"] = self.sessions.astype(np.int64)
        path.parent.mkdir(parents=True, exist_ok=True)
        packed = BytesIO()
        np.savez_compressed(
            packed, facts=np.frombuffer(msgspec.json.encode(self.facts), dtype=np.uint8), **arrays
        )
        content = packed.getvalue()
        write_atomic(path, _HEAD + sha256_bytes(content).encode() + b"\n" + content)
        return path

    @classmethod
    def load(cls, path: Path) -> AnswerKey:
        """Return the key stored in a file.

        Raises :class:`DataError` if the file is not an answer key or was altered.
        """
        try:
            content = path.read_bytes()
        except OSError as error:
            raise DataError(
                f"{path} is not an answer key ({error})", hint="generate the world again"
            ) from error
        head, _, packed = content.partition(b"\n")
        if head != (_HEAD + sha256_bytes(packed).encode()):
            raise DataError(
                f"{path} is not an answer key, or was altered", hint="generate the world again"
            )
        with np.load(BytesIO(packed), allow_pickle=False) as stored:
            facts = msgspec.json.decode(stored["facts"].tobytes(), type=KeyFacts)
            arrays = {f.name: stored[f.name] for f in fields(cls) if f.name != "facts"}
        arrays["sessions"] = arrays["sessions"].astype("datetime64[D]")
        return cls(facts=facts, **arrays)

    def column(self, symbol: str) -> int:
        """Return a symbol's column. Raises :class:`UserError` for an unknown symbol."""
        try:
            return self.facts.symbols.index(symbol)
        except ValueError:
            raise UserError(f"no name '{symbol}' in this answer key") from None


@dataclass(frozen=True, slots=True)
class World:
    """A panel and its answer key."""

    panel: Panel
    key: AnswerKey


def panel_frame(config: SyntheticConfig, sessions: Sessions) -> dict[str, Any]:
    """Return the name, metadata and sessions of a world's panel as keyword arguments."""
    facts = PanelFacts(
        kind="synthetic",
        source=VERSION,
        query=msgspec.json.encode({"preset": config.preset, "seed": config.seed}).decode(),
        currency=config.currency,
        calendar=config.calendar,
        licence="generated; free to use",
    )
    times = {
        "sessions": sessions.days,
        "open_time": sessions.open_time,
        "close_time": sessions.close_time,
    }
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
    """Return the answer key of a world, for its visible sessions ``days``.

    ``drawn`` contains the exposures and the residual returns, ``news`` the events and the items
    about them.
    """
    burn = len(drivers.market.regime) - days.size
    events, items = news
    copied = ("kind", "theme", "tone", "size", "gap", "drift")
    truths = tuple(
        NewsTruth(
            id=item.id,
            symbol=item.symbols[0],
            session=str(days[event.row]),
            horizon=config.news.horizon,
            repeats=None if event.origin is None else items[event.origin].id,
            **{name: getattr(event, name) for name in copied},
        )
        for event, item in zip(events, items, strict=True)
    )
    # The value of reading the news is the mean drift after the first open over the items of a kind.
    reading = []
    for kind, knows in (
        ("informative", "which items tell a fact, and whether it is good or bad"),
        ("rumour", "that rumours fade: trade against their tone at the next open"),
    ):
        worth = np.array([abs(event.drift) for event in events if event.kind == kind])
        if worth.size:
            edge = float(worth.mean())
            reading.append(
                PlantedSkill(name=f"news-{kind}", knows=knows, edge=edge, items=worth.size)
            )
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
