"""Split the alpha of an account into recall and the rest.

For the names in the questions, x is the holding, y the return and f the recalled move. There are
three forms of f: the move of the session, the move of the horizon that begins with the session, and
its sign, because a model may trade on any of the three. All are demeaned over names. In x = g f +
u, recall explains the earnings of g f. The earnings of u are the rest. The same regression over
time, with the invested share and the market, measures timing. Intervals resample blocks of sessions
that are longer than the horizon of a recalled move, so that names on one day and overlapping moves
are not independent observations.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from tradeassay.core.arrays import Floats
from tradeassay.core.measure import Measure, above, not_scored
from tradeassay.metrics import BootstrapConfig, resamples
from tradeassay.metrics.intervals import between, choose_block, content_seed
from tradeassay.verdict.recalled import AlphaSplit, RecallSplit, split_sentence
from tradeassay_bench.examine.attribute import account_days
from tradeassay_bench.examine.memory.questions import HORIZONS, PriceTruth, RecallAnswer

if TYPE_CHECKING:
    from tradeassay_bench.examine.memory.recall import RecallReport
    from tradeassay_bench.runs import Run

_LEAST = 20  # the minimum number of sessions for a split


def recalled_moves(
    answers: Sequence[RecallAnswer], truth: PriceTruth
) -> tuple[tuple[str, ...], Floats, Floats]:
    """Return the names in the questions, and the model's own forecasts of moves, (T, names).

    A forecast is 0 if there is none. There is a forecast of every session's move, and a forecast of
    the longest requested horizon that begins with the session. A move recalled over several
    sessions is spread over them. A move without a size gets the size of the remaining moves.
    """
    row = {str(day): number for number, day in enumerate(truth.sessions)}
    moves = [
        one for one in answers if one.kind in HORIZONS and not one.invented and one.until in row
    ]
    sizes = [abs(one.value) for one in moves if one.value is not None]
    usual = float(np.median(sizes)) if sizes else 0.01
    names = tuple(dict.fromkeys(one.symbol for one in moves))
    place = {symbol: column for column, symbol in enumerate(names)}
    total, count, begun, often = (np.zeros((len(truth.sessions), len(names))) for _ in range(4))
    horizon = max((HORIZONS[one.kind] for one in moves), default=1)
    for one in moves:
        # A move that rounds to zero still has a sign.
        said = one.value or one.sign * (usual if one.value is None else 0.001)
        first, last = row[one.day] + 1, row[one.until] + 1
        total[first:last, place[one.symbol]] += said / max(1, last - first)
        count[first:last, place[one.symbol]] += 1.0
        if last - first == horizon:
            begun[first, place[one.symbol]] += said
            often[first, place[one.symbol]] += 1.0
    recalled = total / np.maximum(count, 1.0)
    # A direct question from a session on is more precise than the sum of shares of overlapping
    # moves.
    ahead = np.where(often > 0.0, begun / np.maximum(often, 1.0), _summed_ahead(recalled, horizon))
    return names, recalled, ahead


def _summed_ahead(recalled: Floats, horizon: int) -> Floats:
    ahead = np.zeros_like(recalled)
    for shift in range(min(horizon, len(recalled))):
        ahead[: len(recalled) - shift] += recalled[shift:]
    return ahead


def split_edge(
    held: Floats,
    returned: Floats,
    recalled: Floats,
    *,
    year: int,
    horizon: int,
    ahead: Floats | None = None,
    level: float = 0.95,
) -> tuple[AlphaSplit, AlphaSplit]:
    """Split the earnings of weights (T, N) by recall. Return the splits by names and by dates.

    ``returned`` and ``recalled`` have the shape of the weights.
    """
    known = int(np.isfinite(returned).any(axis=1).sum())
    if known < min(
        len(returned), _LEAST
    ):  # a missing return counts as 0; without any return the alpha would be 0
        unknown = _nothing(
            f"returns are known in {known} of {len(returned)} sessions: {_LEAST} are needed"
        )
        return unknown, unknown
    y = np.nan_to_num(returned)
    if ahead is None:
        ahead = _summed_ahead(recalled, horizon)
    forms = [recalled, np.sign(ahead), *([ahead] if horizon > 1 else [])]
    invested = held.sum(axis=1, keepdims=True)
    market = y.mean(axis=1, keepdims=True)
    expected = [one.mean(axis=1, keepdims=True) for one in forms]
    by_name = [one - one.mean(axis=1, keepdims=True) for one in (held, y, *forms)]
    by_date = [one - one.mean() for one in (invested, market, *expected)]
    names, dates = (_split(x, of, fs, year, horizon, level) for x, of, *fs in (by_name, by_date))
    return names, dates


def _split(
    x: Floats, y: Floats, forms: Sequence[Floats], year: int, horizon: int, level: float
) -> AlphaSplit:
    """Return the split of the earnings of holdings ``x`` by the recalled moves ``forms``.

    ``y`` contains the returns.
    """
    days = x.shape[0]
    if days < _LEAST:
        return _nothing(f"{days} sessions are too few: {_LEAST} are needed")
    # Deviations due to rounding count as zero.
    if np.abs(x).max() < 1e-12:
        return _nothing("what was held never changed")
    told = [one / np.sqrt((one**2).mean()) for one in forms if (one**2).sum() > 1e-20 * one.size]
    f = np.array(told).reshape(len(told), *x.shape)
    xy, xx = (np.einsum("ij,ij->i", x, one) for one in (y, x))
    xf, fy = (np.einsum("ij,kij->ik", one, f) for one in (x, y))
    ff = np.einsum("kij,lij->ikl", f, f)
    config = BootstrapConfig(level=level)
    block = max(choose_block(xy, config), 2.0 * horizon)
    rows = np.concatenate(
        [*resamples(days, config.draws, block, content_seed(config, xy, xf.ravel(), fy.ravel()))]
    )
    tail = (1.0 - level) / 2.0

    def measure(value: float, drawn: Floats) -> Measure:
        return between(value, tuple(np.nanquantile(drawn, [tail, 1.0 - tail])), level, days)

    scale = year / days
    earned, edge = xy[rows].sum(axis=1), float(xy.sum())
    whole = measure(edge * scale, earned * scale)
    if not told:
        none = between(0.0, (0.0, 0.0), level, days, "the same is recalled of everything")
        unmoved = not_scored("nothing to follow")
        return AlphaSplit(alpha=whole, explained=none, rest=whole, share=none, follows=unmoved)

    def of(held: Floats, among: Floats, earned: Floats, own: Floats) -> tuple[Floats, Floats]:
        """Return the earnings of the holdings that follow recall, and their correlation.

        The correlation is between these holdings and all holdings.
        """
        # Collinear forms share their explained part. A small ridge keeps the equations solvable.
        trace = 1e-9 * np.trace(among, axis1=-2, axis2=-1)[..., None, None] + 1e-12
        follow = np.linalg.solve(among + trace * np.eye(len(told)), held[..., None])[..., 0]
        return (follow * earned).sum(-1), np.sqrt(np.maximum((follow * held).sum(-1), 0.0) / own)

    with np.errstate(invalid="ignore", divide="ignore"):
        drawn, follows = of(*(one[rows].sum(axis=1) for one in (xf, ff, fy, xx)))
        shares = drawn / earned
    explained, followed = (float(one) for one in of(*(one.sum(axis=0) for one in (xf, ff, fy, xx))))
    uncertain = not_scored("what was earned cannot be told from nothing")
    return AlphaSplit(
        alpha=whole,
        explained=measure(explained * scale, drawn * scale),
        rest=measure(*(_left(*both) * scale for both in ((edge, explained), (earned, drawn)))),
        share=measure(explained / edge, shares) if above(whole) else uncertain,
        follows=measure(followed, follows),
    )


def _left(whole: Floats | float, part: Floats | float) -> Any:
    """Return the rest of a whole. A rest due to rounding is 0."""
    left = np.subtract(whole, part)
    return np.where(np.abs(left) <= 1e-6 * np.abs(whole), 0.0, left)[()]


def _nothing(reason: str) -> AlphaSplit:
    none = not_scored(reason)
    return AlphaSplit(alpha=none, explained=none, rest=none, share=none, follows=none)


def split_run(run: Run, keys: Sequence[str], audits: Sequence[RecallReport]) -> RecallSplit:
    """Split the earnings of one agent's episodes by recall, with equal weights for seeds.

    Audits of the traded names have priority, because audits of a data set use different days and
    horizons.
    """
    truth = PriceTruth.of(run.snapshot(keys[0]))
    of_this_run = [audit for audit in audits if audit.run] or audits
    answers = list(chain.from_iterable(audit.answers for audit in of_this_run))
    names, recalled, ahead = recalled_moves(answers, truth)
    benchmark = run.manifest.benchmark(run.episode(keys[0]))
    each = [account_days(run.records(key), truth.symbols) for key in keys]
    if not names or len({one.sessions for one in each}) != 1:
        why = (
            "no move was asked of a name" if not names else "its seeds ended in different sessions"
        )
        return RecallSplit(
            names=_nothing(why), dates=_nothing(why), covered=0.0, sentence=f"Not split: {why}."
        )
    row = {str(day): number for number, day in enumerate(truth.sessions)}
    rows = np.array([row[session] for session in each[0].sessions])
    columns = [truth.symbols.index(symbol) for symbol in names]
    weights = np.mean([one.weights for one in each], axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        returned = truth.closes[rows] / truth.closes[np.maximum(rows - 1, 0)] - 1.0
        if benchmark.market.decide != "close" and rows.size > 1:
            # A purchase at an open earns from there to the next open. The account before the
            # session does not have it.
            opens = run.snapshot(keys[0]).at(len(truth.sessions) - 1, "close").bars("open")[rows]
            since = np.nan_to_num(opens / truth.closes[rows], nan=1.0)[:-1]
            held = [
                one.weights[1:] * (one.nav[1:-1] / one.nav[:-2])[:, None] * since for one in each
            ]
            weights, returned, rows = np.mean(held, axis=0), opens[1:] / opens[:-1] - 1.0, rows[:-1]
    horizon = max(HORIZONS[one.kind] for one in answers if one.kind in HORIZONS)
    by_name, by_date = split_edge(
        weights[:, columns],
        returned[:, columns],
        recalled[rows],
        year=benchmark.periods_per_year,
        horizon=horizon,
        ahead=ahead[rows],
        level=audits[0].config.level,
    )
    gross = np.abs(weights).sum()
    return RecallSplit(
        names=by_name,
        dates=by_date,
        covered=float(np.abs(weights[:, columns]).sum() / gross) if gross > 0.0 else 0.0,
        sentence=f"By names: {split_sentence(by_name)} By dates: {split_sentence(by_date)}",
    )
