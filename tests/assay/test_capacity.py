"""Capacity: what impact would cost a larger account, and the size at which an edge is gone."""

from __future__ import annotations

import math
import re
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "runs"))

from attribute_runs import every_venue

from tradeassay.assay import attribute_episode
from tradeassay.assay.verdict import VerdictConfig
from tradeassay.assay.verdict.diagnostics import capacity_evidence
from tradeassay.assay.verdict.record import CapacityEvidence, money_words
from tradeassay.cli import main
from tradeassay.metrics.capacity import impact_rate


def test_impact_by_hand() -> None:
    """Half of the account is bought in the first session, a fifth of it sold in the second, of which amounts are
    a million a day; a second name has no amounts and pays what the first does.
    """
    weights = np.array([[0.0, 0.0], [0.5, 0.0], [0.4, 0.0]])
    returns = np.array([[0.02, 0.0], [0.00, 0.0], [-0.02, 0.0]])
    rate, known = impact_rate(weights, returns, np.zeros(3), np.full((3, 2), 1e6))
    assert known == 1.0
    # Two thirds of the deviation of 0.02 times the root of 0.5 / 1e6, on half of the account; then on a tenth.
    assert rate == pytest.approx([2 / 3 * 0.02 * math.sqrt(5e-7) * 0.5, 2 / 3 * 0.02 * math.sqrt(1e-7) * 0.1])
    mixed = np.array([[0.0, 0.0], [0.5, 0.5], [0.4, 0.5]])
    half = np.array([[1e6, np.nan]] * 3)
    scaled, known = impact_rate(mixed, returns, np.zeros(3), half)
    assert known == pytest.approx(0.6 / 1.1)
    assert scaled == pytest.approx(rate / known)
    held = np.array([[0.5], [0.5 * 1.1 / 1.05]])  # what has merely grown was not traded
    rate, _ = impact_rate(held, np.array([[0.1], [0.0]]), np.array([0.05, 0.0]), np.ones((2, 1)))
    assert rate.tolist() == [0.0]


def taken(rate: float, days: int) -> object:
    run = every_venue()
    one = attribute_episode(run, next(episode.key for episode in run.episodes if episode.label == "index-hold"))
    return msgspec.structs.replace(one, impact=(rate,) * (days - 1), impact_known=1.0)


def test_the_size_at_which_an_edge_is_gone() -> None:
    """0.1 % a day against 1e-7 times the root of the size: ten thousand squared."""
    rng = np.random.default_rng(5)
    noise = rng.normal(0.0, 0.002, 500)
    edge = 0.001 + noise - noise[:-1].mean()
    account = [taken(1e-7, 500)]
    found = capacity_evidence(edge, account, 252, VerdictConfig(), 1)  # type: ignore[arg-type]
    assert found is not None and found.dies == pytest.approx(1e8)
    assert 0.0 < found.low < found.dies < (found.high or math.inf)
    values = [one.value for one in found.edges]
    assert found.sizes == pytest.approx([1e5, 1e6, 1e7, 3e7, 1e8, 3e8])
    assert values == pytest.approx([252 * (0.001 - 1e-7 * math.sqrt(size)) for size in found.sizes], abs=1e-9)
    # At its ends the interval of the edge touches zero.
    exact = [
        capacity_evidence(edge - 1e-7 * math.sqrt(size), account, 252, VerdictConfig(), 1)  # type: ignore[arg-type]
        for size in (found.low * 0.99, found.low * 1.01)
    ]
    assert exact[0] is not None and exact[0].low > 0.0
    assert exact[1] is None or exact[1].low == 0.0
    assert found.sentence.startswith("its edge would be gone at a size of 100 million (")
    assert capacity_evidence(-edge, account, 252, VerdictConfig(), 1) is None  # type: ignore[arg-type]
    blind = [msgspec.structs.replace(account[0], impact_known=0.5)]  # type: ignore[type-var]
    assert capacity_evidence(edge, blind, 252, VerdictConfig(), 1) is None


def test_words_for_sums() -> None:
    assert [money_words(one) for one in (1234.0, 999_999.0, 2.34e6, 4.56e9, 7e13)] == [
        "1,200",
        "1 million",
        "2.3 million",
        "4.6 billion",
        "70 trillion",
    ]
    unsure = CapacityEvidence(sizes=(), edges=(), dies=5e5, low=0.0, high=None, traded=1.0)
    assert unsure.sentence.startswith("what edge there may be would be gone at a size of 500,000 (none to any)")


def test_a_run_with_volumes_says_what_impact_would_cost() -> None:
    run = every_venue()
    key = next(one.key for one in run.episodes if one.benchmark == "tiny-us-v1" and one.label == "test-provoker")
    found = attribute_episode(run, key)
    assert len(found.impact) == len(found.daily.sessions) - 1
    assert found.impact_known == 1.0 and max(found.impact) > 0.0


def test_the_command_shows_what_larger_accounts_would_have_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from exchange_calendars import get_calendar

    rng = np.random.default_rng(8)
    days = get_calendar("XNYS", start="2022-01-03", end="2022-12-30").sessions[:160].strftime("%Y-%m-%d")
    close = np.round(50.0 * np.cumprod(1.0 + rng.normal(0.0, 0.018, (160, 6)), axis=0), 4)
    bars, trades = (
        {True: ["date,symbol,open,high,low,close,volume"], False: ["date,symbol,open,high,low,close"]},
        [],
    )
    for day, prices in zip(days, close.tolist(), strict=True):
        for name, price in zip("ABCDEF", prices, strict=True):
            bars[False].append(f"{day},ZZ{name},{price},{price},{price},{price}")
            bars[True].append(f"{bars[False][-1]},{int(rng.integers(200_000, 400_000))}")
    for day in range(5, 150, 5):
        best = int(np.argmax(close[day + 5] / close[day]))
        # Bought at the close of one session, sold five later at that one's.
        for at, side in ((day, "buy"), (day + 5, "sell")):
            trades.append((at, side, f"{days[at]} 15:59:00,ZZ{'ABCDEF'[best]},{side},10,{close[at, best]},0"))
    log = tmp_path / "trades.csv"
    written = [row for *_, row in sorted(trades, key=lambda one: (one[0], one[1] != "sell"))]
    log.write_text("\n".join(["time,symbol,side,quantity,price,fees", *written]))
    said = {}
    for volumes in (True, False):
        prices = tmp_path / f"bars-{volumes}.csv"
        prices.write_text("\n".join(bars[volumes]))
        for given in ((), ("--cash-at-start", "1e9")):
            assert main(["assay", "file", str(log), "--prices", str(prices), "--capacity", *given]) == 0
            said[volumes, bool(given)] = "".join(capsys.readouterr())
    assert "capacity: the edge a year of larger accounts" in said[True, False]
    assert re.search(r"its edge would be gone at a size of [\d.,]+ million", said[True, False])
    # Neither amounts that nobody knows nor an account that is nearly all cash has a size at which an edge is gone.
    for one in ((True, True), (False, False), (False, True)):
        assert "no size is known" in said[one] and "gone at" not in said[one], (one, said[one])
