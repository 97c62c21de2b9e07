"""Load and register the trading benchmarks that ``specs.toml`` defines."""

from importlib.resources import files

import msgspec

from tradeassay_bench.benchmarks.benchmark import Benchmark, benchmarks

_TEXT = (files(__package__) / "specs.toml").read_bytes()
_SPECS = msgspec.toml.decode(_TEXT, type=dict[str, tuple[Benchmark, ...]])["benchmark"]
_ALL = {spec.id: spec for spec in _SPECS}
for _spec in _SPECS:
    benchmarks.add(_spec.id, _spec)

DAILY_US, DAILY_US_REAL = _ALL["daily-us-v1"], _ALL["daily-us-real-v1"]
DAILY_ASHARE, DAILY_CRYPTO = _ALL["daily-ashare-v1"], _ALL["daily-crypto-v1"]
KTDFIN, KTDFIN_PAPER = _ALL["ktdfin-v1"], _ALL["ktdfin-paper-v1"]
KTDFIN_US, KTDFIN_US_REAL = _ALL["ktdfin-us-v1"], _ALL["ktdfin-us-real-v1"]
STOCKBENCH, STOCKBENCH_PAPER = _ALL["stockbench-v1"], _ALL["stockbench-paper-v1"]
STOCKBENCH_DJIA = _ALL["stockbench-djia-v1"]
