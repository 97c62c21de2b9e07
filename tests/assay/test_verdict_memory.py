"""A model that remembers, played under masks: the verdict sees what the mask took away."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from memory_runs import home, panel

from tradeassay.assay import Assay, VerdictConfig, assay
from tradeassay.metrics import BootstrapConfig
from tradeassay.runs import AgentSpec, RunSpec, Window, run

CONFIG = VerdictConfig(portfolios=0, draws=100, least=20)


@pytest.fixture(scope="module")
def judged() -> Assay:
    days = panel().sessions
    spec = RunSpec(
        slug="verdict-memory",
        benchmarks=("ktdfin-v1",),
        datasets={"ktdfin-v1": ("tiny-memory",)},
        agents=(AgentSpec(name="model", params={"model": "scripted/tiny-memoriser"}, label="tiny-memoriser"),),
        protocol={"mask": ("bright", "blinded"), "mode": ("fixed-candidate",)},
        window=Window(first=str(days[-24]), last=str(days[-1])),
        bootstrap=BootstrapConfig(draws=20),
    )
    return assay(run(spec, home() / "verdict", executor="inline", home=home()), CONFIG)


def cell(judged: Assay, mask: str) -> str:
    return next(one.cell for one in judged.agents if one.mask == mask)


def test_the_gap_stands_beside_the_unmasked_cell_only(judged: Assay) -> None:
    bright = judged.agent("tiny-memoriser", cell(judged, "bright"))
    assert bright.memory is not None
    assert bright.memory.against == "blinded"
    assert bright.memory.gap.value is not None
    assert bright.memory.gap.value > 0
    assert set(bright.memory.parts) == {"common", "style", "selection", "trading", "edge"}
    assert "tiny-memoriser" in bright.memory.sentence
    assert bright.verdict.kind not in ("skill", "mixed")
    assert not any("memory is not excluded" in limit for limit in bright.verdict.limits)
    masked = judged.agent("tiny-memoriser", cell(judged, "blinded"))
    assert masked.memory is None
    assert masked.verdict.kind != "skill"


def test_a_rule_beside_a_model_has_badges_of_its_own(judged: Assay) -> None:
    models = {one.agent: one.badges.model for one in judged.agents if one.badges is not None}
    assert models.pop("scripted/tiny-memoriser: tiny-memoriser") == "scripted"
    assert set(models.values()) == {"none"}
    assert sorted(title.rpartition(", ")[2] for title in judged.titles.values()) == ["blinded", "bright"]


def test_dollars_and_confidences_are_in_it(judged: Assay) -> None:
    one = judged.agent("tiny-memoriser", cell(judged, "bright"))
    assert one.dollars is not None
    assert one.dollars.calls > 0
    assert one.calibration is not None
    assert one.calibration.ece.value is not None
