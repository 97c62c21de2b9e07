"""Attackers that are programs. They see a payload's text and an archive, never the truth."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from tradeassay.assay.probe.archive import Archive
from tradeassay.assay.probe.guess import Guess
from tradeassay.assay.probe.payloads import Payload
from tradeassay.core.errors import UserError
from tradeassay.core.near import did_you_mean
from tradeassay.core.view import Floats, Ints
from tradeassay.llm import fenced_blocks, parse_object

TOP = 5
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}")
_HORIZONS = (1, 5, 20)

Json = Mapping[str, object]


class Program(Protocol):
    """An attacker that is no language model."""

    def guesses(self, payloads: Sequence[Payload]) -> list[Guess | None]:
        """Return a guess for every payload, None where there is nothing to go by."""
        ...


def make_program(name: str, archive: Archive) -> Program:
    """Return an attacker by name; raises :class:`UserError` for an unknown one."""
    if name not in _PROGRAMS:
        raise UserError(
            f"no attacker '{name}'", mend=did_you_mean(name, _PROGRAMS, f"programs: {', '.join(_PROGRAMS)}")
        )
    return _PROGRAMS[name](archive)


class Match:
    """Matches what is shown of a series with every stretch of the archive: bars by the correlation of their
    returns, a row of a table by its returns over one, five and twenty sessions."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._changes = [archive.change(horizon) for horizon in _HORIZONS]

    def guesses(self, payloads: Sequence[Payload]) -> list[Guess | None]:
        """Return the best match of every payload."""
        found: list[Guess | None] = [None] * len(payloads)
        series: dict[int, list[tuple[int, Floats]]] = {}
        for place, payload in enumerate(payloads):
            returns = _shown_returns(payload)
            if returns is not None:
                series.setdefault(returns.size, []).append((place, returns))
            else:
                row = _shown_row(payload)
                found[place] = None if row is None else self._by_row(row)
        for same in series.values():
            scores, rows = self._archive.best_matches(np.stack([returns for _, returns in same]))
            for (place, _), score, row_of in zip(same, scores, rows, strict=True):
                found[place] = best_of(self._archive, score, row_of)
        return found

    def _by_row(self, row: Json) -> Guess | None:
        shown = [_number(_mapping(row.get("returns")).get(f"return_{horizon}d")) for horizon in _HORIZONS]
        apart = np.zeros(self._archive.close.shape)
        for value, changes in zip(shown, self._changes, strict=True):
            if value is not None:
                apart = np.maximum(apart, np.abs(changes - value))
        if all(value is None for value in shown):
            return None
        return nearest(self._archive, apart)


class Levels:
    """Matches the last shown price and turnover with the archive's: what a hardened mask takes away."""

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        with np.errstate(invalid="ignore", divide="ignore"):
            self._price, self._amount = np.log(archive.raw), np.log(archive.amount)

    def guesses(self, payloads: Sequence[Payload]) -> list[Guess | None]:
        """Return the nearest price and turnover for every payload."""
        return [self._guess(_last_bar(payload)) for payload in payloads]

    def _guess(self, bar: Json | None) -> Guess | None:
        price, amount = (None, None) if bar is None else (_number(bar.get("close")), _number(bar.get("amount")))
        if price is None or price <= 0.0:
            return None
        apart = np.abs(self._price - np.log(price))
        if amount is not None and amount > 0.0:
            apart = apart + np.abs(self._amount - np.log(amount))
        return nearest(self._archive, apart)


class Reader:
    """Repeats what stands in the payload: a ticker of the archive, a calendar day, the board. The probe's control:
    under a bright market it must know everything, under a mask nothing."""

    def __init__(self, archive: Archive) -> None:
        self._known = {one.symbol: one for one in archive.instruments}

    def guesses(self, payloads: Sequence[Payload]) -> list[Guess | None]:
        """Read every payload."""
        return [self._read(payload) for payload in payloads]

    def _read(self, payload: Payload) -> Guess:
        day = str(_observation(payload).get("trade_day", ""))
        instrument = self._known.get(payload.alias)
        row = _snapshot(payload) or _shown_row(payload) or {}
        board = row.get("board")
        return Guess(
            tickers=() if instrument is None else (instrument.symbol,),
            date=day if _ISO.fullmatch(day) else None,
            sector=None if instrument is None else instrument.sector,
            board=board if isinstance(board, str) else None,
        )


_PROGRAMS: dict[str, type[Match] | type[Levels] | type[Reader]] = {
    "match": Match, "levels": Levels, "reader": Reader,
}  # fmt: skip


def nearest(archive: Archive, apart: Floats) -> Guess | None:
    """Return the guess for distances of shape (T, N), NaN where there is nothing."""
    score = np.where(np.isfinite(apart), -apart, -np.inf)
    return best_of(archive, score.max(axis=0), score.argmax(axis=0))


def best_of(archive: Archive, best: Floats, rows: Ints) -> Guess | None:
    """Return the five names with the best score, and the session after the one in which the best of them has it.

    Both arrays have shape (N,); a score of -inf is none.
    """
    order = [k for k in np.argsort(-best, kind="stable")[:TOP].tolist() if np.isfinite(best[k])]
    if not order:
        return None
    first = archive.instruments[order[0]]
    row = min(int(rows[order[0]]) + 1, archive.sessions.size - 1)
    return Guess(
        tickers=tuple(archive.instruments[k].symbol for k in order),
        date=str(archive.sessions[row]),
        sector=first.sector,
        board=first.board.value,
    )


# -- reading a payload -------------------------------------------------------------------------------------------


def _observation(payload: Payload) -> Json:
    for message in payload.messages:
        if message.role == "user":
            for block in fenced_blocks(message.text):
                body = parse_object(block.text)
                if body is not None and "trade_day" in body:
                    return body
    return {}


def _snapshot(payload: Payload) -> Json | None:
    for message in payload.messages:
        if message.role == "tool":
            body = parse_object(message.text)
            if body is not None and body.get("stock_id") == payload.alias and "bars" in body:
                return body
    return None


def _shown_row(payload: Payload) -> Json | None:
    seen = _observation(payload)
    rows = [*_list(seen.get("candidates")), *_list(seen.get("held"))]
    return next((row for row in rows if isinstance(row, dict) and row.get("stock_id") == payload.alias), None)


def _bars(payload: Payload) -> list[dict[str, object]]:
    shown = _snapshot(payload)
    if shown is None:
        return []
    columns = [str(name) for name in _list(shown.get("columns"))]
    return [dict(zip(columns, row, strict=False)) for row in _list(shown["bars"]) if isinstance(row, list)]


def _last_bar(payload: Payload) -> Json | None:
    bars = _bars(payload)
    if bars:
        return bars[-1]
    row = _shown_row(payload)
    return None if row is None else _mapping(row.get("last_bar"))


def _shown_returns(payload: Payload) -> Floats | None:
    closes = np.array([np.nan if (x := _number(bar.get("close"))) is None else x for bar in _bars(payload)])
    if closes.size < 3:
        return None
    with np.errstate(invalid="ignore", divide="ignore"):
        moved = closes[1:] / closes[:-1] - 1.0
    returns: Floats = np.where(np.isfinite(moved), moved, 0.0)
    return returns if returns.any() else None


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _mapping(value: object) -> Json:
    return value if isinstance(value, dict) else {}
