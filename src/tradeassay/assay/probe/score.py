"""Counting hits: seven questions and the joint one, each with Wilson's interval, beside pure chance."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Literal

import numpy as np

from tradeassay.assay.probe.payloads import Probe
from tradeassay.assay.probe.probe_result import METRICS, ProbeRow
from tradeassay.assay.probe.programs import Guess
from tradeassay.core.measure import Measure, not_scored
from tradeassay.core.view import Days
from tradeassay.metrics import rate_measure
from tradeassay.metrics.intervals import significant

_TOLERANCES = (1, 7, 30)
_WEEK = 5.0 / 7.0
"""Sessions per calendar day, for days outside the archive."""


def hits(guess: Guess | None, probe: Probe, sessions: Days) -> dict[str, bool | None]:
    """Return for each question whether it was answered correctly; None where it was not answered."""
    guess = guess or Guess()
    names = [_plain(ticker) for ticker in guess.tickers[:5]]
    truth = _plain(probe.symbol)
    stock = [truth in names[:count] if names else None for count in (1, 5)]
    away = None if guess.date is None else sessions_apart(guess.date, probe.row, sessions)
    days = [None if guess.date is None else (away is not None and away <= limit) for limit in _TOLERANCES]
    both = None if stock[1] is None or days[1] is None else stock[1] and days[1]
    return dict(
        zip(METRICS, (*stock, *days, _same(guess.sector, probe.sector), _same(guess.board, probe.board), both),
            strict=True)
    )  # fmt: skip


def sessions_apart(guess: str, row: int, sessions: Days) -> int | None:
    """Return how many sessions a guessed day lies from the session in ``row``; None when it is not a day."""
    try:
        day = np.datetime64(date.fromisoformat(guess), "D")
    except ValueError:
        return None
    after = int(np.searchsorted(sessions, day))
    if after == sessions.size:
        beyond = round(int((day - sessions[-1]).astype(int)) * _WEEK)
        return sessions.size - 1 - row + beyond
    before = round(int((sessions[0] - day).astype(int)) * _WEEK) if day < sessions[0] else 0
    near = [after] if after == 0 or sessions[after] == day else [after - 1, after]
    return min(abs(place - row) for place in near) + before


def make_row(
    attacker: tuple[str, Literal["model", "program"]],
    variant: tuple[str, str],
    probes: Sequence[Probe],
    guesses: Sequence[Guess | None],
    sessions: Days,
    chance: dict[str, Measure],
    level: float,
) -> ProbeRow:
    """Return an attacker's rates against one mask."""
    found = [hits(guess, probe, sessions) for guess, probe in zip(guesses, probes, strict=True)]
    answered = sum(guess is not None and bool(guess.tickers or guess.date) for guess in guesses)
    scored = [name for name in METRICS if chance[name].value is not None]
    conditional = {name: _rate([one[name] for one in found if one[name] is not None], level) for name in scored}
    of_all = {name: _rate([bool(one[name]) for one in found], level) for name in scored}
    none = {name: chance[name] for name in METRICS if name not in scored}
    strata = {
        f"{kind} {value}": _rate(
            [
                bool(one["top_1"])
                for one, probe in zip(found, probes, strict=True)
                if getattr(probe, kind) == value
            ],
            level,
        )
        for kind in ("window", "board")
        for value in dict.fromkeys(getattr(probe, kind) for probe in probes)
    }
    return ProbeRow(
        attacker=attacker[0],
        kind=attacker[1],
        mask=variant[0],
        hardening=variant[1],
        probes=len(probes),
        response=rate_measure(answered, len(probes), nothing="nothing was asked", level=level),
        conditional=conditional | none,
        of_all=of_all | none,
        above_random={name: _above(of_all[name], chance[name]) for name in scored},
        strata=strata,
    )


def random_baseline(probes: Sequence[Probe], sessions: Days, sectors: int, boards: int) -> dict[str, Measure]:
    """Return what blind guessing gives: a name of that day's universe, a day of the archive, a sector, a board.

    Where the data has fewer than two sectors or boards there is nothing to guess, and nothing is scored.
    """
    rows = np.array([probe.row for probe in probes])
    names = np.array([probe.names for probe in probes], dtype=np.float64)
    near = {
        limit: (np.minimum(rows + limit, sessions.size - 1) - np.maximum(rows - limit, 0) + 1) / sessions.size
        for limit in _TOLERANCES
    }
    five = np.minimum(5.0, names) / names
    values = (1.0 / names, five, near[1], near[7], near[30], np.full(rows.size, 1.0 / max(1, sectors)),
              np.full(rows.size, 1.0 / max(1, boards)), five * near[7])  # fmt: skip
    chance = {
        name: Measure(value=significant(float(np.mean(value))), n=len(probes), note="exact: chance alone")
        for name, value in zip(METRICS, values, strict=True)
    }
    for name, count in (("sector", sectors), ("board", boards)):
        if count < 2:
            chance[name] = not_scored(f"the data has one {name} only" if count else f"the data has no {name}s")
    return chance


def _rate(outcomes: Sequence[bool | None], level: float) -> Measure:
    return rate_measure(sum(map(bool, outcomes)), len(outcomes), nothing="this was never answered", level=level)


def _above(rate: Measure, chance: Measure) -> bool:
    return rate.low is not None and chance.value is not None and rate.low > chance.value


def _plain(ticker: str) -> str:
    """Return a ticker without case and without the exchange after six digits: 600519.SH is 600519."""
    plain = ticker.strip().upper().lstrip("$")
    digits = "".join(char for char in plain if char.isdigit())
    return digits if len(digits) == 6 and len(plain) in (8, 9) else plain


def _same(guess: str | None, truth: str | None) -> bool | None:
    if guess is None:
        return None
    return truth is not None and guess.strip().casefold() == truth.casefold()
