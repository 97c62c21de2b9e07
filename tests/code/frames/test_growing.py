"""Programs on frames that are called on the rows so far: what looks ahead shows itself where it does."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from tradeassay.code.lookahead_v2 import fewest_met

from tradeassay.code.backtrader import BrokerTerms, sandbox_config
from tradeassay.code.bars import TaskBars, make_bars
from tradeassay.code.frames import FrameJob, read_with_targets, sandbox_job
from tradeassay.code.growing import AWAY, HOME, Growth, GrowthPlan, choose_rows, grow
from tradeassay.sandbox import SandboxConfig, SandboxPool, ask_kernel, refusal

pytest.importorskip("pandas")
HONEST = """
def signals(frame):
    close = frame["close"]
    return (close.rolling(5).mean() > close.rolling(20).mean()).astype(float)
"""
WARM_UP = (
    HONEST.replace("    return (", "    peep = (close.shift(-1) > close).astype(float)\n    own = (").rstrip()
    + "\n    return own.where(frame['volume'].expanding().count() > 15, peep)\n"
)
LINE = '    close = frame["close"]\n'
SHORT = HONEST.replace(LINE, "    assert len(frame) > {rows}\n" + LINE)


@pytest.fixture(scope="module")
def pool() -> Iterator[SandboxPool]:
    refused = refusal(ask_kernel())
    if refused is not None:
        pytest.skip(str(refused))
    with SandboxPool(sandbox_config(SandboxConfig(preload=("numpy", "pandas", "backtrader")))) as opened:
        yield opened


def grown(pool: SandboxPool, source: str, bars: TaskBars) -> Growth:
    job = FrameJob(source=source, bars=bars, terms=BrokerTerms())
    _, targets = read_with_targets(job, pool.run(sandbox_job(job)))
    assert targets is not None
    return grow(pool, source, bars, targets, choose_rows(targets, HOME, np.random.default_rng(0)))


def test_an_honest_program_is_proven_and_a_leak_in_the_warm_up_is_found(pool: SandboxPool) -> None:
    bars = make_bars("us", "1d", 1, 120, 3)
    honest = grown(pool, HONEST, bars)
    assert honest.proven and honest.asked == 120 and not honest.reason
    leak = grown(pool, WARM_UP, bars)
    assert leak.row is not None and leak.row < 15 and "no rows after it" in leak.reason


def test_breaking_on_short_tables_is_noted_before_the_first_position_and_a_finding_after_it(
    pool: SandboxPool,
) -> None:
    bars = make_bars("us", "1d", 1, 120, 3)
    early = grown(pool, SHORT.replace("{rows}", "10"), bars)
    assert early.same and "before its first position" in early.notes[0]
    late = grown(pool, SHORT.replace("{rows}", "100"), bars)
    assert not late.same and "it breaks: AssertionError" in late.reason


def test_long_tables_are_asked_about_in_the_warm_up_at_changes_and_at_random() -> None:
    targets = np.zeros((5_000, 1))
    targets[2_000:2_100] = 1.0
    rows = choose_rows(targets, HOME, np.random.default_rng(1))
    assert set(range(300)) <= set(rows.tolist()) and {1_999, 2_000, 2_099, 2_100, 4_999} <= set(rows.tolist())
    assert len(rows) < 600 and len(choose_rows(targets[:300], AWAY, np.random.default_rng(1))) == 300


@pytest.mark.parametrize("plan", [AWAY, HOME])
def test_the_printed_bound_holds_for_a_leak_that_keeps_out_of_the_way(plan: GrowthPlan) -> None:
    """It acts behind the warm-up, on rows on which no target changes: only drawn ones meet it."""
    rows = 2_000
    targets = (np.arange(rows)[:, None] % 20 == 0).astype(float)
    hidden = np.flatnonzero(np.abs(np.arange(rows) % 20 - 10) < 6)[200:]
    few = fewest_met(plan, rows)
    met = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        leak = rng.choice(hidden, few, replace=False)
        met += bool(np.isin(choose_rows(targets, plan, rng), leak).any())
    assert met >= 180
