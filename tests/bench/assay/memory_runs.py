"""A recorded grid of masks with a model that remembers, one that does not, and a rule."""

from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp
from typing import ClassVar

import numpy as np

from tradeassay.metrics import BootstrapConfig
from tradeassay_bench.core.dialogue import AskModel, ModelReply
from tradeassay_bench.data import write_snapshot
from tradeassay_bench.data.synthetic import generate, preset
from tradeassay_bench.llm import scripted_models
from tradeassay_bench.llm.scripted.model import Question, call
from tradeassay_bench.runs import AgentSpec, RunSpec, Window, run

FIRST, SESSIONS = 256, 290
SECRET = "5" * 32
"""Aliases are drawn from it: without one, every run of the tests masks other names."""


@lru_cache(maxsize=1)
def panel():
    return generate(
        preset("ashare", seed=5, names=40, sessions=SESSIONS, new_listings=0, delistings=0)
    ).panel


@lru_cache(maxsize=1)
def known():
    """What the memorising model has "read": how every stock of this market did over the window."""
    close = panel().bars["close"]
    gains = close[-1] / close[FIRST - 1] - 1.0
    return {
        symbol: float(gain)
        for symbol, gain in zip(panel().symbols, np.nan_to_num(gains), strict=True)
    }


class Memoriser:
    """Holds the names it remembers best; one it does not recognise is worth nothing to it."""

    summary: ClassVar[str] = "remembers how the stocks of one small market did"

    def answer(self, request: AskModel) -> ModelReply:
        payload = Question(request).payload
        shown = payload.get("universe") or [row["stock_id"] for row in payload["candidates"]]
        held = payload["account"]["positions"]
        names = {one.instrument.symbol: one.instrument.name for one in panel().listings}
        orders = []
        if not held:
            best = sorted(shown, key=lambda name: -known().get(name, 0.0))[:9]
            orders = [
                {
                    "stock_id": name,
                    "side": "BUY",
                    "target_weight": 0.095,
                    "confidence": 0.9,
                    "reason": f"I remember how {names[name]} rallied after the pandemic in 1999"
                    if name in names
                    else "nothing is known about this one, bought for balance",
                }
                for name in best
            ]
        weights = sum(row["weight"] for row in held)
        reason = f"invested about {weights:.2f} of the account, as planned"
        assert request.must_call is not None
        return call(request, [(request.must_call, {"orders": orders, "overall_reason": reason})])


if "tiny-memoriser" not in scripted_models:
    scripted_models.add("tiny-memoriser", Memoriser)


@lru_cache(maxsize=1)
def home():
    place = Path(mkdtemp(prefix="memory-"))
    write_snapshot(panel(), place / "store" / "tiny-memory", allow_faults=True)
    return place


def played(slug, agents, first, protocol=None, draws=20):
    """Play agents from a session on; models are named as they are registered."""
    days = panel().sessions
    models = {
        name: {"name": "model", "params": {"model": f"scripted/{name}"}, "label": name}
        for name in agents
    }
    spec = RunSpec(
        name=slug,
        benchmarks=("ktdfin-v1",),
        datasets={"ktdfin-v1": ("tiny-memory",)},
        agents=tuple(
            AgentSpec(**models[name]) if name in scripted_models else AgentSpec(name=name)
            for name in agents
        ),
        protocol=protocol or {},
        window=Window(first=str(days[first]), last=str(days[-1])),
        bootstrap=BootstrapConfig(draws=draws),
        secret=SECRET,
    )
    return run(spec, home() / slug, executor="inline", home=home(), progress="none")


def rules_only():
    """Three sessions in which nobody is masked and nobody speaks."""
    return played("rules", ["cash"], -3, draws=2)


@lru_cache(maxsize=1)
def masked_run():
    protocol = {"mask": ("bright", "blinded"), "mode": ("memory-only", "fixed-candidate")}
    return played("memory", ["tiny-memoriser", "sensible"], FIRST, protocol)
