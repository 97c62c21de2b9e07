"""Many backtests at once give the same rows whatever the workers."""

from importlib.resources import files

import pytest

from tradeassay.code.bars import make_bars
from tradeassay.code.semantics.compiler import KernelTape
from tradeassay.code.semantics.interpreter import Semantics, read_semantics
from tradeassay.code.sweep import Batch, run_batch, spread_parameters, sweep
from tradeassay.core.errors import UserError


def semantics(id: str) -> Semantics:
    folder = files("tradeassay.benchmarks.systrade") / "strategies" / id.replace("-", "_")
    return read_semantics((folder / "semantics.json").read_bytes())


def tape_and_feeds(spec: Semantics, timeframe: str, seed: int):
    legs = spec.inputs.legs
    market = "pairs" if len(legs) == 2 else ("us", "crypto", "trend", "volatile")[seed % 4]
    bars = make_bars(market, timeframe, len(legs), 300 if timeframe == "1d" else 1700, seed)
    feeds = {leg: bars.feeds[asset] for leg, asset in zip(legs, bars.feeds, strict=True)}
    return feeds, bars.times, KernelTape(feeds, legs, bars.times)


@pytest.mark.slow
def test_a_sweep_is_the_same_whatever_the_workers():
    batches = []
    for id in ("double-ma", "bollinger", "pairs"):
        spec = semantics(id)
        tape = tape_and_feeds(spec, "1d", 1)[2]
        batches.append(Batch(spec, tape, "A", spread_parameters(spec, 3)))
    one = sweep(batches, workers=1)
    assert one == sweep(batches, workers=3)
    assert len(one) == 3 * 3 * 5
    assert one[:15] == run_batch(batches[0])
    finals = [row.final for row in one if row.strategy == "double-ma" and row.variant == 0]
    assert finals == sorted(finals, reverse=True)
    with pytest.raises(UserError, match="no executor"):
        sweep(batches, executor="cloud")  # type: ignore[arg-type]  # on purpose


@pytest.mark.slow
def test_a_sweep_on_ray_gives_the_same_bytes():
    pytest.importorskip("ray")
    spec = semantics("turtle")
    batch = Batch(spec, tape_and_feeds(spec, "1d", 1)[2], "A", spread_parameters(spec, 4))
    assert sweep([batch, batch], executor="ray") == sweep([batch, batch])
