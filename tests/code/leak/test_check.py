"""The verdict: what convicts, what does not, and what is no verdict at all."""

from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from tradeassay.code.leak import (
    PASSING,
    Columns,
    FunctionSubject,
    LeakConfig,
    RunFailure,
    Trace,
    check_leaks,
    probe_speed,
)
from tradeassay.code.leak.bench import bench_columns
from tradeassay.core.errors import UserError

SHORT = {name: values[:400] for name, values in bench_columns("daily").items()}


def positions(decide: Callable[[NDArray], NDArray]) -> FunctionSubject:
    return FunctionSubject(lambda columns: Trace.of_rows({"position": decide(columns["close"])}))


def momentum(close: NDArray) -> NDArray:
    return np.concatenate([np.zeros(min(5, len(close))), close[5:] > close[:-5]]).astype(np.int64)


def peeking(close: NDArray) -> NDArray:
    return (np.append(close[1:], close[-1:]) > close).astype(np.int64)


def test_honest_code_passes_and_is_told_what_that_is_worth() -> None:
    report = check_leaks(positions(momentum), SHORT, seed=1)
    assert report.verdict == "clean"
    assert PASSING in report.reason
    assert report.scored is not None
    assert len(report.scored) > 20
    assert report.record.screened > 50
    assert report.record.unconfirmed == 0


def test_a_conviction_names_the_bar_and_both_sides() -> None:
    report = check_leaks(positions(peeking), SHORT, seed=1)
    assert report.leaky
    first = report.evidence[0]
    assert first.row <= first.cut_row
    assert first.scored != first.other
    assert f"on bar {first.row}" in first.text
    assert report.reason == first.text


def test_the_same_seed_gives_the_same_report_and_another_seed_other_cuts() -> None:
    one, two = (check_leaks(positions(momentum), SHORT, seed=seed).record for seed in (3, 3))
    assert msgspec.json.encode(one) == msgspec.json.encode(two)
    assert one.cuts != check_leaks(positions(momentum), SHORT, seed=4).record.cuts
    generator = np.random.default_rng(3)
    assert check_leaks(positions(momentum), SHORT, seed=generator).record.cuts == one.cuts


def test_closing_out_at_the_end_of_the_data_is_no_leak() -> None:
    def closing(close: NDArray) -> NDArray:
        position = momentum(close)
        position[-1:] = 0
        return position

    for mode in ("sampled", "every"):
        rows = {name: values[:60] for name, values in SHORT.items()} if mode == "every" else SHORT
        assert check_leaks(positions(closing), rows, LeakConfig(mode=mode), seed=1).verdict == "clean"

    def closing_early(close: NDArray) -> NDArray:
        position = momentum(close)
        position[-3:] = 0
        return position

    assert check_leaks(positions(closing_early), SHORT, seed=1).leaky
    assert check_leaks(positions(closing_early), SHORT, LeakConfig(end_rows=3), seed=1).verdict == "clean"


def test_every_bar_finds_a_leak_on_a_single_bar() -> None:
    rows = {name: values[:50] for name, values in SHORT.items()}

    def once(close: NDArray) -> NDArray:
        position = np.zeros(len(close), dtype=np.int64)
        if len(close) > 38 and close[38] > close[37]:
            position[37] = 1
        return position

    assert rows["close"][38] > rows["close"][37]
    report = check_leaks(positions(once), rows, LeakConfig(mode="every"), seed=1)
    assert report.leaky
    assert {found.row for found in report.evidence} == {37}
    honest = check_leaks(positions(momentum), rows, LeakConfig(mode="every"), seed=1)
    assert honest.verdict == "clean"
    assert honest.record.cuts == tuple(range(49))


def test_the_scored_run_is_one_of_the_compared_runs() -> None:
    """Code that is honest whenever it is checked is still compared with what it did when it counted."""
    scored = Trace.of_rows({"position": peeking(SHORT["close"])})
    report = check_leaks(positions(momentum), SHORT, seed=1, scored=scored, deterministic=True)
    assert report.leaky
    assert report.scored is scored
    again = check_leaks(positions(momentum), SHORT, seed=1, scored=scored)
    assert (again.verdict, again.record.cause) == ("not_checked", "nondeterministic")


def test_nondeterminism_is_the_failure_of_another_gate() -> None:
    rng = np.random.default_rng(0)
    report = check_leaks(positions(lambda close: rng.integers(0, 2, len(close))), SHORT, seed=1)
    assert (report.verdict, report.record.cause) == ("not_checked", "nondeterministic")
    assert "differ on bar" in report.reason


def test_code_that_fails_is_not_cleared() -> None:
    def broken(close: NDArray) -> NDArray:
        raise KeyError("volume")

    report = check_leaks(positions(broken), SHORT, seed=1)
    assert (report.verdict, report.record.cause) == ("not_checked", "run_failed")

    def only_whole(close: NDArray) -> NDArray:
        if not np.array_equal(close, SHORT["close"]):
            raise ValueError("another table")
        return peeking(close)

    report = check_leaks(positions(only_whole), SHORT, seed=1)
    assert (report.verdict, report.record.cause) == ("not_checked", "fails_on_prefixes")
    assert "another table" in report.reason

    def wants_fifty(close: NDArray) -> NDArray:
        if len(close) < 50:
            raise ValueError("too few bars")
        return momentum(close)

    report = check_leaks(positions(wants_fifty), SHORT, seed=1)
    assert report.verdict == "clean"
    assert report.record.failed_runs > 0
    assert "too few bars" in " ".join(report.record.notes)


def test_too_few_rows_and_no_budget() -> None:
    tiny = {name: values[:3] for name, values in SHORT.items()}
    assert check_leaks(positions(momentum), tiny, seed=1).record.cause == "too_short"
    report = check_leaks(positions(momentum), SHORT, LeakConfig(budget_bars=10), seed=1)
    assert report.verdict == "not_checked"
    assert "budget" in report.reason
    bounded = check_leaks(positions(momentum), SHORT, LeakConfig(budget_bars=3_000), seed=1)
    assert bounded.record.bars <= 3_000 + 2 * 400
    assert any("want of budget" in note for note in bounded.record.notes)


def test_several_feeds_and_orders_that_depend_on_the_position() -> None:
    daily = bench_columns("daily")
    columns = {f"A/{name}": values[:500] for name, values in daily.items()}
    columns |= {f"B/{name}": values[900:1400] for name, values in daily.items() if name != "time"}

    def pairs(ahead: int) -> Callable[[Columns], Trace]:
        def run(rows: Columns) -> Trace:
            spread = np.log(rows["A/close"] / rows["B/close"])
            held, actions = 0, []
            for row in range(20, len(spread)):
                window = spread[row - 20 : row + 1]
                score = (spread[min(row + ahead, len(spread) - 1)] - window.mean()) / window.std()
                wanted = -1 if score > 1.5 else 1 if score < -1.5 else 0 if abs(score) < 0.3 else held
                if wanted != held:
                    actions += [(row, "A", wanted - held), (row, "B", held - wanted)]
                    held = wanted
            return Trace(
                rows=np.array([row for row, _, _ in actions], dtype=np.int64),
                fields={
                    "asset": np.array([asset for _, asset, _ in actions], dtype=object),
                    "quantity": np.array([quantity for _, _, quantity in actions], dtype=np.int64),
                },
            )

        return run

    assert check_leaks(FunctionSubject(pairs(0)), columns, seed=2).verdict == "clean"
    report = check_leaks(FunctionSubject(pairs(1)), columns, seed=2)
    assert report.leaky
    assert "asset=" in report.evidence[0].scored + report.evidence[0].other


def test_last_digits_of_linear_algebra_are_no_leak() -> None:
    def rounded(close: NDArray) -> NDArray:
        noise = 1 + 1e-13 * (len(close) % 7)
        return momentum(close) * noise

    assert check_leaks(positions(rounded), SHORT, seed=1).verdict == "clean"
    assert check_leaks(positions(rounded), SHORT, LeakConfig(rtol=0.0), seed=1).leaky


def test_a_placebo_tells_dates_from_prices() -> None:
    config = LeakConfig(placebo=True, splice_runs=0)
    remembered = check_leaks(positions(lambda close: (np.arange(len(close)) % 20 < 3) * 1), SHORT, config, seed=1)
    assert remembered.record.placebo is not None
    assert remembered.record.placebo.share == 1.0
    priced = check_leaks(positions(momentum), SHORT, config, seed=1)
    assert priced.record.placebo is not None
    assert (priced.record.placebo.share or 0.0) < 0.6


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
        return replace(Trace.of_rows({"side": np.zeros(rows)}), cpu_s=0.5 * (rows / 5000) ** self.power)

    def run_many(self, batch: Sequence[Columns]) -> list[Trace | RunFailure]:
        return [self.run(columns) for columns in batch]


def test_quadratic_code_is_turned_away_before_the_long_run() -> None:
    long = {"close": 100 + np.sin(np.arange(525_600) / 50)}
    slow = Timed(2.0)
    report = check_leaks(slow, long, seed=1)
    assert (report.verdict, report.record.cause) == ("not_checked", "too_slow")
    assert slow.seen == [5_000, 20_000]
    assert "power 2.0" in report.reason
    assert "5,000 bars take 0.50 s and 20,000 bars 8.00 s" in report.reason
    assert "92 minutes" in report.reason
    late = check_leaks(Timed(2.0, fails_at=20_000), long, seed=1)
    assert late.record.cause == "too_slow"
    even, shorter = Timed(1.0), {"close": long["close"][:60_000]}
    assert check_leaks(even, shorter, seed=1).verdict == "clean"
    assert even.seen[:2] == [5_000, 20_000]
    assert sum(even.seen) < 10 * 60_000
    probe, outcomes = probe_speed(Timed(1.0), long)
    assert probe is not None
    assert not probe.quadratic
    assert len(outcomes) == 2


def test_settings_that_make_no_sense() -> None:
    with pytest.raises(UserError, match="splice_runs"):
        LeakConfig(splice_runs=-1)
    with pytest.raises(UserError, match="tail_rows"):
        LeakConfig(tail_rows=0)
    with pytest.raises(UserError, match="rtol"):
        LeakConfig(rtol=0.5)
