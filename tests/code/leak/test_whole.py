"""Looking at a whole series: every bar of short ones, changes in place in long ones, and what is not cleared."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest

from tradeassay.code.leak import LeakConfig, check_leaks
from tradeassay.code.leak.bench import BenchCase, load_bench, load_long_bench, long_columns, measure_long
from tradeassay.code.leak.futures import Feeds, Rows, grid_of
from tradeassay.code.leak.report import WholeSeries
from tradeassay.code.leak.subject import Enough, FunctionSubject, RunFailure
from tradeassay.code.leak.trace import Columns, Trace
from tradeassay.code.leak.whole import bound_of, change_in_place, false_next_bars

WHOLE = LeakConfig(whole=WholeSeries())
LONG = {case.name: case for case in load_long_bench()}
QUICK = (
    "rare-one-in-a-thousand",
    "size-late",
    "volume-rarely",
    "length-even",
    "raises-off-the-grid",
    "honest-on-gaps",
)


def test_both_benches_together_are_large_enough() -> None:
    cases = (*load_bench(), *load_long_bench())
    assert sum(case.leaky for case in cases) >= 60 and sum(not case.leaky for case in cases) >= 30
    assert len({case.name for case in cases}) == len(cases)


@pytest.mark.parametrize("name", [*QUICK, "latch", "closes-at-the-end", "half-of-the-table"])
def test_every_bar_of_a_short_series(name: str) -> None:
    (line,) = measure_long(252, 3, [LONG[name]])
    assert line.right, line
    assert line.leaky == (line.verdict == "leaky") or line.length


@pytest.mark.parametrize("name", ["rare-one-in-a-hundred", "late-last-percent", "expanding-mean"])
def test_changes_in_place_find_what_is_rare_or_late(name: str) -> None:
    case, bars = LONG[name], 20_000
    (line,) = measure_long(bars, 3, [case])
    assert (line.verdict == "leaky") == case.leaky and (line.verdict == "clean") != case.leaky, line


@pytest.mark.slow
@pytest.mark.parametrize("bars", [252, 2_500])
@pytest.mark.parametrize("case", LONG.values(), ids=lambda case: case.name)
def test_the_long_bench(case: BenchCase, bars: int) -> None:
    (line,) = measure_long(bars, 5, [case])
    assert line.right, line


def test_code_that_raises_on_other_futures_is_not_cleared() -> None:
    true = long_columns(20_000)["close"]

    def raises(columns: Columns) -> Trace:
        close = columns["close"]
        if not np.array_equal(close, true[: len(close)]):
            raise ValueError("these are not my prices")
        return Trace.of_rows({"position": (close > 100).astype(float)})

    report = check_leaks(FunctionSubject(raises), long_columns(20_000), WHOLE, seed=1)
    assert report.verdict == "not_cleared" and report.record.cause == "run_failed"


def test_other_futures_stay_on_the_grid_and_bars_stay_bars() -> None:
    feeds = Feeds.of(long_columns(2_500))
    rng = np.random.default_rng(0)
    cuts = np.array([100, 600, 1_200, 2_400])
    made = change_in_place(feeds, cuts, 250, rng)
    false = false_next_bars(feeds, rng, cuts)
    for columns in (made.columns, false.first, false.second):
        assert grid_of(columns["close"]) == 2
        inside = (columns["low"] <= np.minimum(columns["open"], columns["close"])) & (
            columns["high"] >= np.maximum(columns["open"], columns["close"])
        )
        assert inside.all()
    changed = np.flatnonzero(made.columns["close"] != feeds.master["close"])
    assert set(changed.tolist()) <= {
        row for cut, n in zip(cuts, made.lengths, strict=True) for row in range(cut + 1, cut + 1 + n)
    }


def _next(columns: Columns, name: str) -> np.ndarray:
    """Return whether the next bar's value lies above this bar's close (or volume); False on the last bar."""
    here = columns["volume" if name == "volume" else "close"]
    return np.append(columns[name][1:] > here[:-1], False)


def _turned(columns: Columns, name: str) -> np.ndarray:
    """The same, turned round where one bar follows: a false bar that always moved against the true one would
    tell it.
    """
    said = _next(columns, name)
    said[-2:-1] = ~said[-2:-1]
    return said


def _wild(columns: Columns, name: str) -> np.ndarray:
    """Whether the next bar moves far, either way."""
    return np.append(np.abs(np.diff(np.log(columns[name]))) > 0.02, False)


@pytest.mark.parametrize(
    ("peek", "name", "bars"),
    [
        (_next, "open", 252),
        (_next, "open", 4_000),
        (_wild, "close", 252),
        (_turned, "close", 252),
        (_turned, "volume", 252),
        (_turned, "open", 252),
    ],
)
def test_a_false_bar_tells_nothing_of_the_true_one(
    peek: Callable[[Columns, str], np.ndarray], name: str, bars: int
) -> None:
    columns = long_columns(bars)

    def decide(columns: Columns) -> Trace:
        falls = np.append(False, np.diff(columns["close"]) < 0)
        return Trace.of_rows({"position": (falls & peek(columns, name)).astype(float)})

    assert check_leaks(FunctionSubject(decide), columns, WHOLE, seed=2, deterministic=True).verdict == "leaky"


def test_the_bound() -> None:
    assert bound_of(1_000, 0) == 1_000 and bound_of(525_600, 3_000) == 525


@pytest.mark.parametrize("ahead", [0, 1], ids=["honest", "leaky"])
def test_nothing_is_run_behind_the_first_leak_and_no_finding_changes(ahead: int) -> None:
    columns = long_columns(160)
    run: list[int] = []

    def decide(columns: Columns) -> Trace:
        close = columns["close"]
        return Trace.of_rows({"position": np.append(close[ahead:] > close[0], np.zeros(ahead, bool)).astype(int)})

    class Stopping(FunctionSubject):
        """One that makes all its runs before it answers, up to the one that is enough."""

        def next_bars(
            self, columns: Columns, false: Columns, enough: Enough, rows: Rows | None = None
        ) -> Iterator[Trace | RunFailure]:
            found: list[Trace | RunFailure] = []
            for outcome in super().next_bars(columns, false, enough, rows):
                found.append(outcome)
                if enough(len(found) - 1 if rows is None else int(rows[len(found) - 1]), outcome):
                    break
            run.append(len(found))
            return iter(found)

    plain = check_leaks(FunctionSubject(decide), columns, WHOLE, seed=3, deterministic=True)
    stopping = check_leaks(Stopping(decide), columns, WHOLE, seed=3, deterministic=True)
    assert stopping.record == plain.record and plain.leaky == bool(ahead)
    assert run[0] < 20 if ahead else run[0] == 159 and 20 < run[1] < 100
