"""The verdict: what convicts, what does not, and what is no verdict at all."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from tradeassay.core.arrays import Ints
from tradeassay.core.errors import UserError
from tradeassay_programs.code.lookahead.bench import bench_columns, load_bench
from tradeassay_programs.code.lookahead.futures import (
    Feeds,
    change_in_place,
    false_next_bars,
    grid_of,
)
from tradeassay_programs.code.lookahead.grow import (
    PASSING,
    Enough,
    FunctionSubject,
    JobSubject,
    LeakConfig,
    LookaheadProbe,
    Outcome,
    bound_of,
    check_leaks,
)
from tradeassay_programs.code.lookahead.trace import Columns, RunFailure, Trace
from tradeassay_programs.sandbox import Job

SHORT = {name: values[:200] for name, values in bench_columns("daily").items()}


def positions(decide: Callable[[NDArray], NDArray]) -> FunctionSubject:
    return FunctionSubject(lambda columns: Trace.of_rows({"position": decide(columns["close"])}))


def momentum(close: NDArray) -> NDArray:
    return np.concatenate([np.zeros(min(5, len(close))), close[5:] > close[:-5]]).astype(np.int64)


def peeking(close: NDArray) -> NDArray:
    return (np.append(close[1:], close[-1:]) > close).astype(np.int64)


@pytest.mark.parametrize(
    ("config", "worth"), [(None, "one of them at every bar"), (LeakConfig(every_bar=0), PASSING)]
)
def test_honest_code_passes_and_is_told_what_that_is_worth(config, worth):
    record = check_leaks(positions(momentum), SHORT, config, seed=1)
    assert record.verdict == "clean"
    assert worth in record.reason
    assert (
        record.cleared == 199 if config is None else record.bound is not None and record.bound > 1
    )


def test_a_conviction_names_the_bar_and_both_sides():
    record = check_leaks(positions(peeking), SHORT, seed=1)
    (first,) = record.evidence
    assert record.leaky and first.row <= first.cut_row and first.scored != first.other
    assert record.reason == first.text and f"on bar {first.row}" in first.text


def test_the_same_seed_gives_the_same_record():
    one, two, three = (
        check_leaks(positions(momentum), SHORT, seed=seed)
        for seed in (3, 3, np.random.default_rng(3))
    )
    assert msgspec.json.encode(one) == msgspec.json.encode(two) == msgspec.json.encode(three)
    assert one != check_leaks(positions(momentum), SHORT, seed=4)


class Watched(FunctionSubject):
    """Keeps the prices of every table that it is run on."""

    def __init__(self, function: Callable[[Columns], Trace]) -> None:
        super().__init__(function)
        self.seen: list[NDArray] = []

    def run(self, columns: Columns) -> Outcome:
        self.seen.append(columns["close"])
        return super().run(columns)


@pytest.mark.parametrize("bars", [120, 1_500])
def test_no_run_sees_the_whole_table_before_its_beginnings_are_answered(bars):
    """Long tables are also changed in place, after all prefixes."""
    close = np.resize(bench_columns("daily")["close"], bars)
    watched = Watched(lambda columns: Trace.of_rows({"position": momentum(columns["close"])}))
    config = LeakConfig(every_bar=500)
    probe = LookaheadProbe(watched, {"close": close}, config, seed=1)
    lengths = [len(seen) for seen in watched.seen]
    assert not any(np.array_equal(seen, close) for seen in watched.seen)
    assert probe.compare(Trace.of_rows({"position": momentum(close)})).verdict == "clean"
    if bars <= config.every_bar:
        assert lengths[: bars - 1] == list(range(2, bars + 1))
    else:
        assert lengths == sorted(lengths) and lengths[-2:] == [bars, bars] and lengths[5] < bars


def test_closing_out_at_the_end_of_the_data_is_no_leak():
    def closing(rows: int) -> Callable[[NDArray], NDArray]:
        return lambda close: np.append(
            momentum(close)[:-rows], np.zeros(min(rows, len(close)), dtype=np.int64)
        )

    for config in (None, LeakConfig(every_bar=0)):
        assert check_leaks(positions(closing(1)), SHORT, config, seed=1).verdict == "clean"
    assert check_leaks(positions(closing(3)), SHORT, seed=1).leaky


def test_every_bar_finds_a_leak_on_a_single_bar():
    rows = {name: values[:50] for name, values in SHORT.items()}
    at = next(row for row in range(30, 48) if rows["close"][row + 1] > rows["close"][row])

    def once(close: NDArray) -> NDArray:
        return (np.arange(len(close)) == at) & (len(close) > at + 1 and close[at + 1] > close[at])

    record = check_leaks(positions(once), rows, seed=1)
    assert record.leaky and {found.row for found in record.evidence} == {at}


def test_the_scored_run_is_one_of_the_compared_runs():
    """Code that is honest whenever it is checked is still compared with what it did when it
    counted.
    """
    probe = LookaheadProbe(positions(momentum), SHORT, LeakConfig(), seed=1)
    assert probe.compare(Trace.of_rows({"position": peeking(SHORT["close"])})).leaky


def test_nondeterminism_is_the_failure_of_another_gate():
    rng = np.random.default_rng(0)
    record = check_leaks(
        positions(lambda close: np.append(np.zeros(len(close) - 1), rng.random())), SHORT, seed=1
    )
    assert (record.verdict, record.cause) == (None, "nondeterministic")
    assert "differ on bar" in record.reason


def only_whole(close: NDArray) -> NDArray:
    if not np.array_equal(close, SHORT["close"]):
        raise ValueError("another table")
    return peeking(close)


def wants_fifty(close: NDArray) -> NDArray:
    if len(close) < 50:
        raise ValueError("too few bars")
    return momentum(close)


def broken(close: NDArray) -> NDArray:
    raise KeyError("volume")


@pytest.mark.parametrize(
    ("decide", "why"),
    [
        (broken, "the run itself failed: KeyError"),
        (only_whole, "another table"),
        (wants_fifty, "too few bars"),
    ],
)
def test_code_that_fails_is_not_cleared(decide, why):
    record = check_leaks(positions(decide), SHORT, seed=1)
    assert (record.verdict, record.cause) == (None, "run_failed")
    assert why in record.reason


def test_code_that_raises_on_other_futures_is_not_cleared_and_too_few_rows_are_not_tried():
    tiny = {name: values[:3] for name, values in SHORT.items()}
    assert check_leaks(positions(momentum), tiny, seed=1).cause == "too_short"
    assert bound_of(1_000, 0) == 1_000 and bound_of(525_600, 3_000) == 525
    true = np.resize(SHORT["close"], 20_000)

    def raises(columns: Columns) -> Trace:
        close = columns["close"]
        if not np.array_equal(close, true[: len(close)]):
            raise ValueError("these are not my prices")
        return Trace.of_rows({"position": (close > 100).astype(float)})

    record = check_leaks(FunctionSubject(raises), {"close": true}, seed=1)
    assert record.verdict is None and record.cause == "run_failed"


def test_several_feeds_and_orders_that_depend_on_the_position():
    daily = bench_columns("daily")
    columns = {f"A/{name}": values[:300] for name, values in daily.items()}
    columns |= {f"B/{name}": values[300:] for name, values in daily.items() if name != "time"}

    def pairs(ahead: int) -> Callable[[Columns], Trace]:
        def run(rows: Columns) -> Trace:
            spread = rows["A/close"] / rows["B/close"]
            held, actions = 0, []
            for row in range(20, len(spread)):
                moved = (
                    spread[min(row + ahead, len(spread) - 1)] / spread[row - 20 : row + 1].mean()
                    - 1
                )
                wanted = (
                    -1
                    if moved > 0.03
                    else 1
                    if moved < -0.03
                    else 0
                    if abs(moved) < 0.005
                    else held
                )
                if wanted != held:
                    actions += [(row, "A", wanted - held), (row, "B", held - wanted)]
                    held = wanted
            at, asset, quantity = (
                (np.array(column) for column in zip(*actions, strict=True)) if actions else [()] * 3
            )
            return Trace(
                rows=np.array(at, dtype=np.int64), fields={"asset": asset, "quantity": quantity}
            )

        return run

    assert check_leaks(FunctionSubject(pairs(0)), columns, seed=2).verdict == "clean"
    report = check_leaks(FunctionSubject(pairs(1)), columns, seed=2)
    assert report.leaky
    assert "asset=" in report.evidence[0].scored + report.evidence[0].other


def test_last_digits_of_linear_algebra_are_no_leak():
    def rounded(close: NDArray) -> NDArray:
        noise = 1 + 1e-13 * (len(close) % 7)
        return momentum(close) * noise

    assert check_leaks(positions(rounded), SHORT, seed=1).verdict == "clean"
    assert check_leaks(positions(rounded), SHORT, LeakConfig(rtol=0.0), seed=1).leaky


def test_a_placebo_tells_dates_from_prices():
    config = LeakConfig(placebo=True, every_bar=0)
    remembered = check_leaks(
        positions(lambda close: (np.arange(len(close)) % 20 < 3) * 1), SHORT, config, seed=1
    )
    assert remembered.repeated == 1.0
    priced = check_leaks(positions(momentum), SHORT, config, seed=1)
    assert priced.repeated is not None and priced.repeated < 0.6


class Timed:
    """Pretends to take a time that grows with a power of the rows."""

    def __init__(self, power: float, fails_at: int = 1 << 60) -> None:
        self.power = power
        self.fails_at = fails_at
        self.seen: list[int] = []

    def run(self, columns: Columns) -> Trace | RunFailure:
        rows = len(columns["close"])
        self.seen.append(rows)
        if rows >= self.fails_at:
            return RunFailure(kind="cpu_timeout", text="used 10 s of processor time")
        return replace(
            Trace.of_rows({"side": np.zeros(rows)}), cpu_s=0.5 * (rows / 5000) ** self.power
        )

    def next_bars(self, *_: object) -> list[Outcome]:
        raise AssertionError("long tables are not asked at every bar")


def test_quadratic_code_is_turned_away_before_the_long_run():
    long = {"close": 100 + np.sin(np.arange(525_600) / 50)}
    slow = Timed(2.0)
    report = check_leaks(slow, long, seed=1)
    assert (report.verdict, report.cause) == (None, "too_slow")
    assert slow.seen == [5_000, 20_000]
    assert "power 2.0" in report.reason
    assert "5,000 bars take 0.50 s and 20,000 bars 8.00 s" in report.reason
    assert "92 minutes" in report.reason
    late = check_leaks(Timed(2.0, fails_at=20_000), long, seed=1)
    assert late.cause == "too_slow"
    even, shorter = Timed(1.0), {"close": long["close"][:60_000]}
    assert check_leaks(even, shorter, seed=1).verdict == "clean"
    assert even.seen[:2] == [5_000, 20_000]
    assert sum(even.seen) < 10 * 60_000


@pytest.mark.parametrize("wrong", [{"confirmations": -1}, {"tail_rows": 0}, {"rtol": 0.5}])
def test_settings_that_make_no_sense(wrong):
    with pytest.raises(UserError, match=next(iter(wrong))):
        LeakConfig(**wrong)


def _bars(count: int) -> dict[str, NDArray]:
    """Bars with two decimals and whole volumes."""
    rng = np.random.default_rng(count)
    close = np.round(100 * np.exp(np.cumsum(0.01 * rng.standard_normal(count))), 2)
    opened = np.round(np.append(100.0, close[:-1]) * np.exp(0.001 * rng.standard_normal(count)), 2)
    return {
        "time": np.busday_offset("2016-01-04", np.arange(count)).astype("M8[ns]"),
        "open": opened,
        "high": np.round(np.maximum(opened, close) + rng.uniform(0.1, 0.9, count), 2),
        "low": np.round(np.minimum(opened, close) - rng.uniform(0.1, 0.9, count), 2),
        "close": close,
        "volume": np.rint(1e5 * rng.uniform(0.5, 1.5, count)),
    }


def test_other_futures_stay_on_the_grid_and_bars_stay_bars():
    feeds = Feeds.of(_bars(2_500))
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
    changed = np.flatnonzero(made.columns["close"] != feeds.columns["close"])
    assert set(changed.tolist()) <= {
        row
        for cut, n in zip(cuts, made.lengths, strict=True)
        for row in range(cut + 1, cut + 1 + n)
    }


def peeks(columns: Columns) -> dict[str, NDArray]:
    """What could be read of the next bar; False on the last.

    ``turned`` is turned round where one bar follows: a false bar that always moved against the true
    one would tell it. ``together`` is whether the close and another part move the same way: whoever
    can guess the one, a volume that was high and falls, then knows the other.
    """
    close, volume = columns["close"], columns["volume"]
    reach = np.maximum(columns["high"] - columns["low"], 1e-9)
    now = {"open": close, "close": close, "volume": volume}
    rises = {name: columns[name][1:] > here[:-1] for name, here in now.items()}
    found = {"open": rises["open"]}
    for name, up in rises.items():
        found[f"{name} turned"] = np.append(up[:-1], ~up[-1:])
        found[f"close and {name} together"] = up == rises["close"]
    found["close moves far"] = np.abs(np.diff(np.log(close))) > 0.02
    found["closes near its high"] = ((close - columns["low"]) / reach)[1:] > 0.5
    found["wide range"] = reach[1:] > 1.5
    found["another volume"] = np.abs(np.diff(np.log(volume))) > np.log(2.2)
    return {name: np.append(flags, False) for name, flags in found.items()}


@pytest.mark.parametrize(
    ("peek", "bars"),
    [
        *(
            (peek, 252)
            for peek in ("open turned", "close turned", "volume turned", "close moves far")
        ),
        *(
            (peek, bars)
            for peek in (
                "open",
                "close and volume together",
                "close and open together",
                "closes near its high",
                "wide range",
                "another volume",
            )
            for bars in (252, 4_000)
        ),
    ],
)
def test_a_false_bar_tells_nothing_of_the_true_one(peek, bars):
    columns = _bars(bars)

    def decide(columns: Columns) -> Trace:
        falls = np.append(False, np.diff(columns["close"]) < 0)
        return Trace.of_rows({"position": (falls & peeks(columns)[peek]).astype(float)})

    assert (
        check_leaks(FunctionSubject(decide), columns, seed=2, deterministic=True).verdict == "leaky"
    )


@pytest.mark.parametrize("ahead", [0, 1], ids=["honest", "leaky"])
def test_nothing_is_run_behind_the_first_leak_and_no_finding_changes(ahead):
    columns = _bars(160)
    run: list[int] = []

    def decide(columns: Columns) -> Trace:
        close = columns["close"]
        return Trace.of_rows(
            {"position": np.append(close[ahead:] > close[0], np.zeros(ahead, bool)).astype(int)}
        )

    class Stopping(FunctionSubject):
        """One that makes all its runs before it answers, up to the one that is enough."""

        def next_bars(
            self, columns: Columns, false: Columns, enough: Enough, rows: Ints | None = None
        ) -> Iterator[Outcome]:
            found: list[Outcome] = []
            for outcome in super().next_bars(columns, false, enough, rows):
                found.append(outcome)
                if enough(len(found) - 1 if rows is None else int(rows[len(found) - 1]), outcome):
                    break
            run.append(len(found))
            return iter(found)

    plain = check_leaks(FunctionSubject(decide), columns, seed=3, deterministic=True)
    stopping = check_leaks(Stopping(decide), columns, seed=3, deterministic=True)
    assert stopping == plain and plain.leaky == bool(ahead)
    assert run[0] < 20 if ahead else run[0] == 159 and 20 < run[1] < 100


@pytest.mark.slow
def test_the_leak_check_on_jobs_of_a_sandbox(pool):
    cases = {case.name: case for case in load_bench()}
    few = {name: values[:60] for name, values in SHORT.items()}
    for name, verdict in (("shift-minus-one", "leaky"), ("end-of-data-liquidation", "clean")):
        subject = JobSubject(executor=pool, job=Job(source=cases[name].source))
        assert check_leaks(subject, few, seed=1).verdict == verdict
    broken = JobSubject(executor=pool, job=Job(source="def run(frame):\n    return frame['none']"))
    report = check_leaks(broken, few, seed=1)
    assert (report.verdict, report.cause) == (None, "run_failed")
    assert "KeyError" in report.reason
