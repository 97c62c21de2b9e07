"""Recorded plays of models of known memory, with and without a mask, on small generated worlds."""

from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from tempfile import mkdtemp
from typing import ClassVar

import msgspec
import numpy as np

from tradeassay.metrics import BootstrapConfig
from tradeassay_bench.core.dialogue import AskModel, ModelReply
from tradeassay_bench.data import write_snapshot
from tradeassay_bench.data.synthetic import generate, preset
from tradeassay_bench.llm import scripted_models
from tradeassay_bench.llm.scripted.model import Question, call
from tradeassay_bench.runs import AgentSpec, RunSpec, Window, run

SESSIONS, PLAYED, HELD, EVERY = 330, 70, 10, 8
SECRET = "6" * 32
JUDGED, UNREAD, REAL = "price-judged", "price-unread", "price-real"
"""The names of the data sets. The last is a copy of the second that calls itself real."""
SEEDS = {JUDGED: 21, UNREAD: 22}
BOTH = {"mask": ("bright", "blinded"), "mode": ("fixed-candidate",)}
REMEMBERS, READS = "tiny-price-memory", "tiny-price-information"


@lru_cache(maxsize=2)
def panel(world):
    changes = {"names": 40, "sessions": SESSIONS, "new_listings": 0, "delistings": 0}
    return generate(preset("ashare", seed=SEEDS[world], **changes)).panel


@lru_cache(maxsize=64)
def gains(world, step):
    """Return how every name of a world does from a played session to the next look."""
    close, now = panel(world).bars["close"], SESSIONS - PLAYED + step
    moves = np.nan_to_num(close[min(now + EVERY, SESSIONS - 1)] / close[now] - 1.0)
    return dict(zip(panel(world).symbols, moves.tolist(), strict=True))


_UNDER_MASK = {"acts": True, "answers": True}


@contextmanager
def under_mask(**changed):
    """Let all models stay out (``acts=False``) or soon say nothing (``answers=False``) under a
    mask.
    """
    before = dict(_UNDER_MASK)
    _UNDER_MASK.update(changed)
    yield
    _UNDER_MASK.update(before)


class ByName:
    """Holds names that it knows to rise, of the ``known`` worlds; others are all the same to it."""

    summary: ClassVar[str] = "trades by name"
    known: ClassVar[tuple[str, ...]] = ()

    def answer(self, request: AskModel) -> ModelReply:
        payload = Question(request).payload
        shown = [row["stock_id"] for row in payload["candidates"]]
        masked = any(name.startswith("asset_") for name in shown)
        if masked and payload["step"] > 0 and not _UNDER_MASK["answers"]:
            return ModelReply(text="")
        orders = []
        if payload["step"] % EVERY == 0 and (_UNDER_MASK["acts"] or not masked):
            worth = {}
            for world in self.known:
                worth |= gains(world, payload["step"])
            best = sorted(shown, key=lambda name: (-worth.get(name, 0.0), name))[:HELD]
            held = [row["stock_id"] for row in payload["account"]["positions"]]
            wanted = [(name, "SELL", 0.0) for name in held if name not in best]
            wanted += [(name, "BUY", 0.095) for name in best if name not in held]
            fields = {"confidence": 0.9, "reason": "held to the next look"}
            orders = [
                {"stock_id": name, "side": side, "target_weight": weight, **fields}
                for name, side, weight in wanted
            ]
        assert request.must_call is not None
        return call(request, [(request.must_call, {"orders": orders, "overall_reason": "waits"})])


MODELS = {
    # It has read the judged world, and nothing else.
    REMEMBERS: (JUDGED,),
    # What names tell it is there in both worlds, and no memory of either.
    READS: (JUDGED, UNREAD),
}
for _name, _known in MODELS.items():
    if _name not in scripted_models:
        scripted_models.add(_name, type(_name, (ByName,), {"known": _known}))


@lru_cache(maxsize=1)
def home():
    place = Path(mkdtemp(prefix="mask-price-"))
    for world in SEEDS:
        write_snapshot(panel(world), place / "store" / world, allow_faults=True)
    source = panel(UNREAD)
    real = replace(source, name=REAL, facts=msgspec.structs.replace(source.facts, kind="real"))
    write_snapshot(real, place / "store" / REAL, allow_faults=True)
    return place


def played(name, world, models=tuple(MODELS), *, days=PLAYED, labels=None, **changes):
    """Play models over the first ``days`` of a world's last 70 sessions."""
    sessions = panel(UNREAD if world == REAL else world).sessions[-PLAYED:]
    labels = labels or {}
    agents = tuple(
        AgentSpec(
            name="model", params={"model": f"scripted/{model}"}, label=labels.get(model, model)
        )
        if model in scripted_models
        else AgentSpec(name=model)
        for model in models
    )
    spec = RunSpec(
        name=name,
        benchmarks=("ktdfin-v1",),
        datasets={"ktdfin-v1": (world,)},
        agents=agents,
        protocol=BOTH | changes,
        window=Window(first=str(sessions[0]), last=str(sessions[days - 1])),
        bootstrap=BootstrapConfig(draws=20),
        secret=SECRET,
    )
    return run(spec, home() / name, executor="inline", home=home(), progress="none")


@lru_cache(maxsize=2)
def whole(world):
    """Return the run of all models in one world."""
    return played(f"whole-{world}", world)
