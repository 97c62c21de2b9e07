"""Dated members and levels of the CSI 500, 2020-2024: no prices, for use beside imported A-share bars."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from tradeassay.core.errors import SourceError
from tradeassay.data.catalogue.download import Archive
from tradeassay.data.catalogue.entry import Entry, Package, Recipe, SideBuilt, catalogue
from tradeassay.data.files.codes import ashare_code
from tradeassay.data.panel import Membership

_FILE = "jqfactor_analyzer/sample_data/index_weight_info.csv"
_INDEX = "CSI500"
_BASE = 1000.0

ENTRY = Entry(
    name="csi500-members",
    title="daily members of a 500-name Chinese index and its level (side table)",
    packages=(
        Package(
            name="jqfactor-analyzer",
            version="1.1.0",
            files=(_FILE,),
            sha256="888c3a5d15e24bfbd3beb422ab48357d2ecc77aa4dcf1b67cc218a7461174cda",
        ),
    ),
    content="memberships of 884 A-shares, 1 index level; no prices",
    span="2020-01-02..2024-06-28",
    columns="date, one column of weights per symbol, return of the index",
    flaws=(
        "the package does not name the index: 500 members a day and their codes say CSI 500",
        "changes appear at the month's end, up to two weeks after they took effect",
        f"the level starts at {_BASE:g} and is made of the daily returns in the file",
    ),
    licence="package Apache-2.0; the weights have a vendor of their own",
    megabytes=10.1,
    kind="side",
)


def build(entry: Entry, archive: Archive) -> SideBuilt:
    """Turn daily weights into spells of membership, and daily returns into a level."""
    rows = list(csv.reader(io.StringIO(archive.read(_FILE).decode())))
    head, days = rows[0], [row[0] for row in rows[1:]]
    if head[-1] != "return" or days != sorted(days):
        raise SourceError(f"'{_FILE}' in the package has another form", mend="report it")
    spells = []
    for column, spelled in enumerate(head[1:-1], start=1):
        inside = [bool(row[column]) for row in rows[1:]]
        symbol = ashare_code(spelled) or spelled
        spells += [Membership(index=_INDEX, symbol=symbol, start=a, end=b) for a, b in _spells(days, inside)]
    level, levels = _BASE, {}
    for row in rows[1:]:
        level *= 1 + float(row[-1] or 0.0)
        levels[row[0]] = level
    return SideBuilt(tuple(spells), {_INDEX: levels})


def _spells(days: list[str], inside: list[bool]) -> Iterator[tuple[str, str | None]]:
    start: str | None = None
    for index, day in enumerate(days):
        if inside[index] and start is None:
            start = day
        elif not inside[index] and start is not None:
            yield start, days[index - 1]
            start = None
    if start is not None:
        yield start, None


catalogue.add(ENTRY.name, Recipe(ENTRY, build))
