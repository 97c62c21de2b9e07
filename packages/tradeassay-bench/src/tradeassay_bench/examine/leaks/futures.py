"""Construct alternative futures of a market.

An alternative future is identical to the market up to a moment. After that moment, the data of some
or all channels differs.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import Any, Literal

import msgspec
import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay_bench.core.time import HOUR, Instant
from tradeassay_bench.core.view import FIELDS, CorporateAction, Field, Fundamental, NewsItem
from tradeassay_bench.data import Membership, MinutePanel, Panel
from tradeassay_bench.data.snapshot import SessionPhase
from tradeassay_bench.data.source import previous_close
from tradeassay_bench.examine.leaks.leak_result import Channel

Style = Literal["mirrored", "noisy"]
STYLES: tuple[Style, ...] = ("mirrored", "noisy")
_PLANTED = 12
"""The number of names about which a fact is planted."""
_replace = msgspec.structs.replace


@dataclass(frozen=True, slots=True)
class Cut:
    """The moment of the decision in the session of ``row``."""

    row: int
    phase: SessionPhase

    @property
    def first_unknown(self) -> int:
        """Return the first row whose bar is not completely known."""
        return self.row + 1 if self.phase == "close" else self.row

    def clock(self, panel: Panel) -> Instant:
        """Return the last known instant."""
        at = int(panel.close_time[self.row] if self.phase == "close" else panel.open_time[self.row])
        return at - 1 if self.phase == "pre_open" else at


@dataclass(frozen=True, slots=True)
class _Work:
    """A panel whose data after a moment is being rewritten."""

    panel: Panel
    cut: Cut
    style: Style
    rng: np.random.Generator
    token: str
    planting: tuple[Instant, ...]

    @property
    def today(self) -> str:
        return str(self.panel.sessions[self.cut.row])

    def some(self, share: float, among: Collection[str]) -> frozenset[str]:
        """Draw a share of the symbols, but at least one symbol if there are any."""
        names = sorted(among)
        count = min(len(names), max(1, round(share * len(names))))
        return frozenset(names[k] for k in self.rng.permutation(len(names))[:count].tolist())

    def stocks(self) -> list[str]:
        return [one.instrument.symbol for one in self.panel.listings if one.listed <= self.today]


def rewrite(
    panel: Panel,
    cut: Cut,
    channels: Collection[Channel],
    style: Style,
    seed: int,
    *,
    until: int | None = None,
) -> tuple[Panel, dict[str, Channel]]:
    """Return ``panel`` with all data after ``cut`` changed in ``channels``, and the planted words.

    Each planted word belongs to one channel. ``mirrored`` reverses every price path: gains become
    losses and the best names become the worst. ``noisy`` multiplies prices by noise and draws
    suspensions. Facts with a unique word are planted just after the cut, and at the same time of
    every later session up to row ``until``.
    """
    rows = range(cut.row, cut.row + 1 if until is None else until + 1)
    planting = tuple(Cut(row, cut.phase).clock(panel) for row in rows)
    canaries: dict[str, Channel] = {}
    for channel, change in _CHANGES.items():
        if channel in channels:
            # Each channel has a separate generator, so that a change to one channel does not
            # change the draws of another channel.
            words = f"{seed}/{cut.row}/{style}/{channel}"
            digest = hashlib.sha256(words.encode()).hexdigest()
            token = f"canary{digest[:10]}"
            work = _Work(
                panel, cut, style, np.random.default_rng(int(digest[:16], 16)), token, planting
            )
            panel = replace(panel, **change(work))
            canaries[token] = channel
    return panel, canaries


def present_channels(panel: Panel, cut: Cut) -> dict[Channel, str | None]:
    """Return all channels, each with the reason why it cannot be rewritten, or None if it can."""
    today = str(panel.sessions[cut.row])
    gone = any(one.delisted is not None and one.delisted >= today for one in panel.listings)
    later = any(one.listed > today for one in panel.listings)
    return {
        "bars": None,
        "index levels": None if panel.indices else "the data has no index",
        "index membership": None if panel.memberships else "the data has no index members",
        "listings": None
        if gone or later
        else "nothing is listed or delisted after the last moment",
        "corporate actions": None,
        "news": None if panel.news else "the data has no news",
        "fundamentals": None if panel.fundamentals else "the data has no fundamentals",
    }


# -- the channels ----------------------------------------------------------------------------------


def _bars(work: _Work) -> dict[str, Any]:
    """Return the changed bars, suspensions and minutes of a panel, by the field of the panel."""
    panel, start = work.panel, work.cut.first_unknown
    changed = {field: panel.bars[field].copy() for field in FIELDS}
    suspended = panel.suspended.copy()
    opens, halted = changed["open"][work.cut.row].copy(), suspended[work.cut.row].copy()
    shape = changed["close"][start:].shape
    if work.style == "mirrored":
        base = _last_close(panel.bars["close"][:start])
        turned_into: dict[Field, Field] = {
            "open": "open",
            "close": "close",
            "high": "low",
            "low": "high",
        }
        for field, other in turned_into.items():
            turned = base * base / panel.bars[other][start:]
            changed[field][start:] = np.where(np.isfinite(turned), turned, changed[field][start:])
    else:
        factor = np.exp(work.rng.normal(0.0, 0.3, shape))
        for field in ("open", "high", "low", "close"):
            changed[field][start:] *= factor
        noisy = work.rng.random(shape) < 0.15
        for field in FIELDS:
            changed[field][start:][noisy] = np.nan
        suspended[start:] |= noisy
    changed["volume"][start:] *= work.rng.uniform(0.2, 4.0, shape)
    changed["amount"][start:] *= work.rng.uniform(0.2, 4.0, shape)
    if work.cut.phase == "open":
        changed["open"][work.cut.row], suspended[work.cut.row] = opens, halted
    minutes = panel.minutes
    if minutes is not None:
        late = minutes.close_time > work.cut.clock(work.panel)
        swings = np.exp(work.rng.normal(0.0, 0.1, int(late.sum())))[:, None]
        bars = {name: values.copy() for name, values in minutes.bars.items()}
        for values in bars.values():
            values[late] *= swings
        minutes = MinutePanel(minutes.symbols, minutes.close_time, bars)
    return {"bars": changed, "suspended": suspended, "minutes": minutes}


def _indices(work: _Work) -> dict[str, Any]:
    start, changed = work.cut.first_unknown, {}
    for name, levels in work.panel.indices.items():
        known = levels[:start][np.isfinite(levels[:start])]
        base = float(known[-1]) if known.size else float(np.nanmean(levels))
        later = base * base / levels[start:]
        if work.style == "noisy":
            later = levels[start:] * np.exp(work.rng.normal(0.0, 0.3, later.shape))
        changed[name] = np.concatenate((levels[:start], later))
    return {"indices": changed}


def _memberships(work: _Work) -> dict[str, Any]:
    today = work.today
    held = [one for one in work.panel.memberships if one.start <= today]
    inside = {one.symbol for one in held if one.end is None or one.end >= today}
    leaving = work.some(0.3, inside)
    kept = []
    for one in held:
        if one.end is None or one.end >= today:
            one = _replace(one, end=today if one.symbol in leaving else None)
        kept.append(one)
    following = work.panel.sessions[work.cut.row + 1 : work.cut.row + 2]
    if following.size:
        outside = set(work.stocks()) - inside
        for index in sorted({one.index for one in held}):
            joining = sorted(work.some(0.3, outside)) if outside else []
            kept += [
                Membership(index=index, symbol=symbol, start=str(following[0]))
                for symbol in joining
            ]
    return {"memberships": tuple(kept)}


def _listings(work: _Work) -> dict[str, Any]:
    listings = []
    for one in work.panel.listings:
        if one.listed > work.today:
            renamed = _replace(one.instrument, name=f"{work.token} {one.instrument.symbol}")
            one = _replace(one, instrument=renamed, delisted=None)
        elif one.delisted is not None and one.delisted >= work.today:
            one = _replace(one, delisted=None)
        listings.append(one)
    return {"listings": tuple(listings)}


def _actions(work: _Work) -> dict[str, Any]:
    panel, clock = work.panel, work.cut.clock(work.panel)
    kept = [action for action in panel.actions if action.known_at <= clock]
    later = panel.sessions[work.cut.row + 2 : work.cut.row + 3]
    if later.size:
        close = _last_close(panel.bars["close"][: work.cut.first_unknown])
        place = {symbol: column for column, symbol in enumerate(panel.symbols)}
        for symbol in sorted(work.some(0.3, work.stocks())):
            paid, day = float(close[place[symbol]]) / 10, str(later[0])
            if np.isfinite(paid):
                made = {
                    "symbol": symbol,
                    "kind": "dividend",
                    "ex_date": day,
                    "known_at": clock + 1,
                    "value": paid,
                }
                kept.append(msgspec.convert(made, CorporateAction))
    return {"actions": tuple(sorted(kept, key=lambda action: (action.known_at, action.symbol)))}


def _news(work: _Work) -> dict[str, Any]:
    clock = work.cut.clock(work.panel)
    kept = [item for item in work.panel.news if item.published_at <= clock]
    names = {one.instrument.symbol: one.instrument.name for one in work.panel.listings}
    planted = sorted(work.some(1.0, work.stocks()))[:_PLANTED]
    for number, at in enumerate(work.planting):
        for place, symbol in enumerate(planted):
            kept.append(
                NewsItem(
                    id=f"{work.token}-{number}-{place}",
                    published_at=at + 1 + place * HOUR,
                    symbols=(symbol,),
                    title=f"{work.token}: {names[symbol] or symbol} to be taken over at twice its "
                    "price",
                    body=f"{work.token} {symbol}",
                    source=work.token,
                )
            )
    return {"news": tuple(sorted(kept, key=lambda item: item.published_at))}


def _fundamentals(work: _Work) -> dict[str, Any]:
    clock = work.cut.clock(work.panel)
    figures = [
        figure
        if figure.known_at <= clock
        else _replace(figure, value=figure.value * float(work.rng.uniform(-2.0, 3.0)))
        for figure in work.panel.fundamentals
    ]
    for at in work.planting:
        for symbol in sorted(work.some(1.0, work.stocks()))[:_PLANTED]:
            figures.append(
                Fundamental(
                    symbol=symbol,
                    field=work.token,
                    period_end=work.today,
                    known_at=at + 1,
                    value=1e6,
                )
            )
    return {"fundamentals": tuple(sorted(figures, key=lambda figure: figure.known_at))}


def _last_close(closes: Floats) -> Floats:
    """Return the last close of every column; NaN if there is none."""
    last: Floats = previous_close(np.pad(closes, ((0, 1), (0, 0))), None)[-1]
    return last


_CHANGES: dict[Channel, Callable[[_Work], dict[str, Any]]] = {
    "bars": _bars,
    "index levels": _indices,
    "index membership": _memberships,
    "listings": _listings,
    "corporate actions": _actions,
    "news": _news,
    "fundamentals": _fundamentals,
}
