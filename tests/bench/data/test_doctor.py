"""The doctor on panels, one planted fault at a time."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from tradeassay.tables.faults import DataFault
from tradeassay_bench.core.time import DAY, MINUTE, parse_iso
from tradeassay_bench.core.view import FIELDS, CorporateAction, Fundamental, Instrument, NewsItem
from tradeassay_bench.data.calendars import sessions_between
from tradeassay_bench.data.datasets import diagnose
from tradeassay_bench.data.doctor import accept, describe, diagnose_panel, fault_lines
from tradeassay_bench.data.source import Listing, Membership, MinutePanel, Panel, PanelFacts


def real_panel() -> Panel:
    """Two quiet real stocks over three weeks of XNYS."""
    found = sessions_between("XNYS", "2024-01-02", "2024-01-19")
    shape = (found.days.size, 2)
    close = np.full(shape, 50.0)
    return Panel(
        name="real",
        facts=PanelFacts(kind="real", source="test", query="", currency="USD", calendar="XNYS"),
        listings=tuple(
            Listing(instrument=Instrument(symbol=s), listed="2024-01-02") for s in ("A", "B")
        ),
        sessions=found.days,
        open_time=found.open_time,
        close_time=found.close_time,
        bars={
            **dict.fromkeys(("open", "close", "volume", "amount"), close),
            "high": close + 1,
            "low": close - 1,
        },
        suspended=np.zeros(shape, dtype=bool),
    )


def put(panel: Panel, rows: Any, column: int, **values: float) -> Panel:
    """Return a panel with other numbers in some rows of one column."""
    bars = {name: array.copy() for name, array in panel.bars.items()}
    for name, value in values.items():
        bars[name][rows, column] = value  # type: ignore[index]
    return replace(panel, bars=bars)


NOTHING = dict.fromkeys(FIELDS, np.nan)
LATER = slice(5, None)
HALF, DOUBLE = (
    {"open": 50 * k, "high": 51 * k, "low": 49 * k, "close": 50 * k} for k in (0.5, 2.0)
)


def dropped(panel: Panel, row: int) -> Panel:
    keep = np.arange(panel.sessions.size) != row
    return replace(
        panel,
        sessions=panel.sessions[keep],
        open_time=panel.open_time[keep],
        close_time=panel.close_time[keep],
        bars={name: values[keep] for name, values in panel.bars.items()},
        suspended=panel.suspended[keep],
    )


def moved(panel: Panel) -> Panel:
    """The last session becomes Saturday."""
    sessions = panel.sessions.copy()
    sessions[-1] = np.datetime64("2024-01-20")
    return replace(
        panel, sessions=sessions, open_time=panel.open_time + 0, close_time=panel.close_time + 0
    )


def action(kind: str, day: str, value: float) -> CorporateAction:
    return CorporateAction(symbol="A", kind=kind, ex_date=day, known_at=0, value=value)  # type: ignore[arg-type]


def with_minutes(panel: Panel, **changes: float) -> Panel:
    times = panel.open_time[:3] + 60_000_000_000
    usual = {"open": 50.0, "high": 51.0, "low": 49.0, "close": 50.0, "volume": 5.0, "amount": 250.0}
    bars = {name: np.full((3, 1), value) for name, value in usual.items()}
    for name, value in changes.items():
        if name in bars:
            bars[name][1, 0] = value
    if "shift" in changes:
        times = times - int(changes["shift"])
    return replace(panel, minutes=MinutePanel(("A",), times, bars))


def having(**changes: Any) -> Callable[[Panel], Panel]:
    return lambda panel: replace(panel, **changes)


def figure(period: str, known: int, value: float) -> Fundamental:
    return Fundamental(symbol="A", field="eps", period_end=period, known_at=known, value=value)


def news(at: int, title: str) -> NewsItem:
    return NewsItem(id="n1", published_at=at, symbols=(), title=title)


YEAR = "2024-01-01T00:00:00Z"
LISTED = real_panel().listings
ENDED = (LISTED[0], msgspec.structs.replace(LISTED[1], delisted="2024-01-18"))
PAUSED = np.eye(13, 2, dtype=bool)[::-1] & (np.arange(13)[:, None] == 12)
SPLITS = (action("split", "2024-03-05", 2.0), action("split", "2024-03-05", 3.0))
SMALL, LARGE = action("dividend", "2024-01-15", 0.1), action("dividend", "2024-01-16", 60.0)
BACKWARDS = (Membership(index="I", symbol="A", start="2024-01-05", end="2024-01-04"),)
TWICE = tuple(Membership(index="I", symbol="A", start=day) for day in ("2024-01-03", "2024-01-04"))
EARLY, NO_NUMBER = (
    (figure("2024-03-31", parse_iso(YEAR), 1.0),),
    (figure("2023-12-31", 2**61, float("nan")),),
)
LEVELS = np.where(np.arange(13) == 2, 0.0, 9.0)
CASES: list[tuple[str, str, str, Callable[[Panel], Panel]]] = [
    ("price not positive", "error", "A on 2024-01-04: price 0 is", lambda p: put(p, 2, 0, low=0.0)),
    ("high below low", "error", "high 40 is below low 49", lambda p: put(p, 2, 0, high=40.0)),
    (
        "high below open or close",
        "error",
        "high 49.5 is below open 50",
        lambda p: put(p, 2, 0, high=49.5),
    ),
    (
        "low above open or close",
        "error",
        "low 50.5 is above open 50",
        lambda p: put(p, 2, 0, low=50.5),
    ),
    ("negative volume", "error", "volume -1 is negative", lambda p: put(p, 2, 1, volume=-1.0)),
    ("negative amount", "error", "amount -1 is negative", lambda p: put(p, 2, 1, amount=-1.0)),
    ("incomplete bar", "error", "the bar has no open", lambda p: put(p, 2, 0, open=np.nan)),
    (
        "gap without corporate action",
        "error",
        "close moved -50%",
        lambda p: put(p, LATER, 0, **HALF),
    ),
    (
        "gap without corporate action",
        "error",
        "close moved +100%",
        lambda p: put(p, LATER, 0, **DOUBLE),
    ),
    (
        "gap without corporate action",
        "warning",
        "before a pause",
        lambda p: put(put(p, 4, 0, **NOTHING), LATER, 0, **HALF),
    ),
    ("missing session", "error", "the session 2024-01-08", lambda p: dropped(p, 4)),
    ("bar on a holiday", "error", "2024-01-20 is not a session of XNYS", moved),
    ("missing bars", "warning", "A has no bar in 1 of 13", lambda p: put(p, 3, 0, **NOTHING)),
    (
        "missing bars",
        "error",
        "A has no bar in 7 of 13",
        lambda p: put(p, slice(3, 10), 0, **NOTHING),
    ),
    ("missing bars", "error", "A has no bar at all", lambda p: put(p, slice(None), 0, **NOTHING)),
    ("bar while unlisted", "error", "outside its listing dates", having(listings=ENDED)),
    ("bar while suspended", "error", "while marked as suspended", having(suspended=PAUSED)),
    ("duplicate action", "error", "a second split of A", having(actions=SPLITS)),
    (
        "ex-date is not a session",
        "warning",
        "2024-01-15 is not a session, 2024-01-16",
        having(actions=(SMALL,)),
    ),
    ("dividend above price", "error", "dividend 60 for a price of 50", having(actions=(LARGE,))),
    (
        "membership ends before it starts",
        "error",
        "from 2024-01-05 to 2024-01-04",
        having(memberships=BACKWARDS),
    ),
    ("overlapping membership", "error", "A is twice in I on 2024-01-04", having(memberships=TWICE)),
    (
        "known before the period ended",
        "error",
        f"known at {YEAR}, period ends 2024-03-31",
        having(fundamentals=EARLY),
    ),
    ("no number", "error", "A eps of 2023-12-31 is nan", having(fundamentals=NO_NUMBER)),
    (
        "empty news",
        "warning",
        "n1 has neither title nor text",
        having(news=(news(DAY * 19000, " "),)),
    ),
    ("undated news", "error", "n1 is dated 1970", having(news=(news(5, "x"),))),
    (
        "price not positive",
        "error",
        "index I on 2024-01-04: level 0",
        having(indices={"I": LEVELS}),
    ),
    (
        "high below low",
        "error",
        "A at 2024-01-03T14:31:00Z: high 1",
        lambda p: with_minutes(p, high=1.0),
    ),
    (
        "minute outside a session",
        "warning",
        "outside every session",
        lambda p: with_minutes(p, shift=60 * MINUTE),
    ),
]


def test_a_healthy_panel_has_no_faults():
    assert diagnose_panel(real_panel()) == ()
    assert diagnose_panel(with_minutes(real_panel())) == ()
    split = action("split", "2024-01-09", 2.0)
    assert diagnose_panel(replace(put(real_panel(), LATER, 0, **HALF), actions=(split,))) == (), (
        "a split explains a gap"
    )
    crash = put(real_panel(), 12, 0, low=20.0, close=21.0)
    assert diagnose_panel(crash) == (), "a crash within the day is no gap"


def test_planted_faults_are_found():
    for check, severity, reason, plant in CASES:
        faults = diagnose_panel(plant(real_panel()))
        assert any(
            f.check == check and f.severity == severity and reason in f.reason for f in faults
        ), (
            check,
            faults,
        )
        assert all(fault.file.startswith("real/") for fault in faults)


def test_synthetic_panels_have_their_own_calendar_and_mean_their_moves():
    facts = msgspec.structs.replace(real_panel().facts, kind="synthetic")
    panel = replace(dropped(put(real_panel(), LATER, 0, **HALF), 3), facts=facts)
    assert [(f.check, f.severity) for f in diagnose_panel(panel)] == [
        ("gap without corporate action", "warning")
    ]


def test_sessions_beyond_the_known_holidays_are_mentioned_not_refused():
    panel = real_panel()
    late = np.datetime64("2040-01-02") + np.arange(13)
    facts = msgspec.structs.replace(panel.facts, calendar="XSHG")
    opens = late.astype(np.int64) * DAY
    shifted = replace(
        panel,
        facts=facts,
        sessions=late,
        open_time=opens,
        close_time=opens + DAY // 4,
        listings=tuple(
            msgspec.structs.replace(entry, listed="2040-01-02") for entry in panel.listings
        ),
    )
    assert [(f.check, f.severity) for f in diagnose_panel(shifted)] == [
        ("calendar unknown", "warning")
    ]


def test_a_snapshot_can_be_diagnosed_and_an_altered_one_says_so(snapshot):
    assert (
        [f for f in diagnose(snapshot) if f.severity == "error"]
        == []
        == list(diagnose(snapshot.folder))
    )
    path = snapshot.folder / "news.arrow"
    content = bytearray(path.read_bytes())
    content[-40] ^= 1
    path.write_bytes(content)
    (fault,) = diagnose(snapshot.folder)
    assert fault.check == "altered snapshot" and "news.arrow" in fault.reason


def test_faults_are_counted_and_the_first_few_shown():
    faults = [DataFault(check="duplicate", file="a.csv", row=i, reason="again") for i in range(5)]
    assert (
        describe(faults)
        == "5 duplicate: a.csv:0: again; a.csv:1: again; a.csv:2: again; and 2 more"
    )
    many = accept(DataFault(check="x", file="a", row=None, reason="r") for _ in range(3000))
    assert many.counts == {"x": 3000} and len(many.listed) == 1000
    faults = [
        DataFault(check="high below low", file=f"f{n % 3}", row=n, reason="r")
        for n in range(1, 1658)
    ]
    lines = fault_lines(faults)
    assert lines[0] == "error: high below low: 1,657 rows in 3 files"
    assert lines[1:] == [
        "  f1:1: r",
        "  f2:2: r",
        "  f0:3: r",
        "  and 1,654 more (--all shows them)",
    ]
    assert len(fault_lines(faults, limit=None)) == 1658
