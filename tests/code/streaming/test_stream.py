"""Bar by bar in this process."""

from typing import Any

import numpy as np
import pytest

from tradeassay.code.harness.desk import WireError, pack_decisions, read_decisions
from tradeassay.code.lookahead.bench import bench_columns
from tradeassay.code.lookahead.grow import FunctionSubject, check_leaks
from tradeassay.code.streaming import BarDecision, BarDesk, stream
from tradeassay.core.errors import UserError

DAILY = {name: values[:300] for name, values in bench_columns("daily").items()}


class Cross:
    """Long above the mean of the last ten closes."""

    def __init__(self) -> None:
        self.closes: list[float] = []
        self.held = 0

    def on_bar(self, bar: Any, desk: BarDesk) -> None:
        self.closes = [*self.closes[-9:], bar.close]
        wanted = int(bar.close > sum(self.closes) / len(self.closes))
        if wanted != self.held:
            self.held = wanted
            desk.target(wanted)


def test_decisions_carry_the_bar_they_were_made_on():
    done = stream(Cross(), DAILY)
    closes = DAILY["close"]
    expected, held = [], 0
    for row in range(300):
        window = closes[max(0, row - 9) : row + 1]
        if int(closes[row] > window.mean()) != held:
            held = 1 - held
            expected.append((row, held))
    assert [(one.row, one.quantity) for one in done.decisions] == expected
    assert done.trace.rows.tolist() == [row for row, _ in expected]
    assert done.bars == 300
    assert not done.certified


def test_a_bar_has_the_columns_by_name_and_time_in_nanoseconds():
    seen = []

    class Watcher:
        def on_bar(self, bar: Any, desk: BarDesk) -> None:
            seen.append(bar)

    stream(Watcher(), {name: values[:2] for name, values in DAILY.items()})
    assert seen[1]._fields == ("time", "open", "high", "low", "close", "volume", "score")
    assert np.datetime64(seen[1].time, "ns") == DAILY["time"][1]
    assert seen[0].high == DAILY["high"][0]


def test_several_feeds_come_as_bars_by_name():
    columns = {"A/close": np.array([1.0, 2.0, 3.0]), "B/close": np.array([3.0, 2.0, 1.0])}

    class Pair:
        def on_bar(self, bars: Any, desk: BarDesk) -> None:
            if bars["A"].close > bars["B"].close:
                desk.order(-5)
                desk.order(5, "B", limit=bars["B"].close)
                desk.order(1, "A", stop=9.0)
                desk.cancel("B")

    done = stream(Pair(), columns)
    assert [one[:4] for one in done.decisions] == [
        (2, "A", "market", -5.0),
        (2, "B", "limit", 5.0),
        (2, "A", "stop", 1.0),
        (2, "B", "cancel", 0.0),
    ]
    assert done.decisions[1].price == 1.0
    with pytest.raises(ValueError, match="not both"):
        BarDesk().order(1, limit=1.0, stop=2.0)


def test_what_cannot_be_streamed():
    with pytest.raises(UserError, match="one length"):
        stream(Cross(), {"A/close": np.zeros(2), "B/close": np.zeros(3)})
    with pytest.raises(UserError, match="'class' cannot be an attribute"):
        stream(Cross(), {"class": np.zeros(2)})
    assert stream(Cross(), {"close": np.zeros(0)}).decisions == ()


def test_a_streamed_strategy_passes_the_leak_check():
    report = check_leaks(FunctionSubject(lambda columns: stream(Cross(), columns).trace), DAILY, seed=1)
    assert report.verdict == "clean"


def test_decisions_survive_the_wire_and_nonsense_does_not():
    made = [BarDecision(3, "B", "limit", -2.0, 9.5), BarDecision(3, "A", "target", 1.0, float("nan"))]
    back = read_decisions(pack_decisions(made, ("A", "B")), 3, ("A", "B"))
    assert back[0] == made[0] and back[1][:4] == made[1][:4]
    with pytest.raises(WireError, match="whole number"):
        read_decisions(b"abc", 0, ("A",))
    with pytest.raises(WireError, match="does not exist"):
        read_decisions(pack_decisions(made, ("A", "B")), 3, ("A",))
    with pytest.raises(ValueError):
        pack_decisions([BarDecision(0, "C", "target", 1.0, 0.0)], ("A",))
