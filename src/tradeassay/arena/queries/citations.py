"""The paper's figures beside ours, each pair with every reason why it may not be compared."""

from __future__ import annotations

from typing import Literal

import msgspec

from tradeassay.arena.queries.seasons import Selection
from tradeassay.arena.queries.view import SeasonView
from tradeassay.benchmarks.ama import AmaFigure, compare_with, published
from tradeassay.benchmarks.ama.published import Setting
from tradeassay.core.measure import Measure


class Ours(msgspec.Struct, frozen=True, kw_only=True):
    """A result of ours beside a figure; it is comparable exactly when ``reasons`` is empty."""

    entry: str
    label: str
    assets: tuple[str, ...]
    measure: Measure
    comparable: bool
    reasons: tuple[str, ...]


class Cited(msgspec.Struct, frozen=True, kw_only=True):
    """A published figure and what our entries of the same architecture made."""

    figure: AmaFigure
    ours: tuple[Ours, ...]


class CitedFigures(msgspec.Struct, frozen=True, kw_only=True):
    """All figures, where they come from and which days they cover."""

    source: str
    second_hand: bool
    first: str
    last: str
    figures: tuple[Cited, ...]


def cited_figures(view: SeasonView, data: Literal["real", "synthetic"]) -> CitedFigures:
    """Return the published figures with ours beside them: on the same asset where we have it, else on all ours."""
    shown = published()
    return CitedFigures(
        source=shown.source,
        second_hand=shown.second_hand,
        first=shown.first,
        last=shown.last,
        figures=tuple(Cited(figure=figure, ours=_ours(view, figure, data)) for figure in shown.figure),
    )


def _ours(view: SeasonView, figure: AmaFigure, data: Literal["real", "synthetic"]) -> tuple[Ours, ...]:
    symbols = tuple(asset.symbol for asset in view.season.assets)
    assets = (figure.asset,) if figure.asset in symbols else ()
    board = view.board(Selection(assets=assets))
    found = []
    for row in board.rows:
        if row.architecture != figure.architecture:
            continue
        ours = Setting(
            data=data,
            convention=view.season.convention,
            first=board.first or "",
            last=board.last or "",
            architecture=row.architecture,
            model=row.model,
            asset=",".join(row.assets),
        )
        reasons = compare_with(figure, ours)
        found.append(
            Ours(
                entry=row.entry,
                label=row.label,
                assets=row.assets,
                measure=row.measures[figure.measure],
                comparable=not reasons,
                reasons=reasons,
            )
        )
    return tuple(found)
