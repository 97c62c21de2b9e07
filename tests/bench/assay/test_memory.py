"""What masks say about memory: the one who remembers is found, also by the verdict, the others
are not.
"""

import re
from datetime import date
from importlib import import_module

import memory_runs
import msgspec
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from memory_runs import home

from tradeassay.cli import main
from tradeassay.core.errors import UserError
from tradeassay.verdict.evidence import MeanTest, memory_evidence
from tradeassay.verdict.record import VerdictConfig
from tradeassay_bench.core.dialogue import AskModel, ModelReply
from tradeassay_bench.examine import MemoryConfig, MemoryContrast, assay, memory_contrast
from tradeassay_bench.examine.memory import RecallConfig, recall_audit
from tradeassay_bench.examine.memory.contrast import Sample, infer, welch
from tradeassay_bench.llm import scripted_models
from tradeassay_bench.llm.scripted.model import Question
from tradeassay_bench.report.recall_page import write_recall

RECALLING, READING = "scripted/tiny-memoriser: tiny-memoriser", "scripted/sensible: sensible"
"""As they are shown: a label of one's own stands behind what it is."""


@pytest.fixture(scope="module")
def contrast():
    return memory_contrast(memory_runs.masked_run())


def test_a_name_of_memory_is_exported_in_one_place():
    rooms = (
        import_module(name)
        for name in ("tradeassay_bench.examine", "tradeassay_bench.examine.memory")
    )
    public, inner = (set(room.__all__) for room in rooms)
    assert "memory_contrast" in public and "recall_audit" in inner
    assert not public & inner


def test_what_of_a_run_is_not_asked_about_is_said(capsys, monkeypatch, tmp_path):
    """Twenty questions are too few for all names that were held: how many would do is said, and
    is enough.
    """
    played = memory_runs.masked_run()
    monkeypatch.setenv("TRADEASSAY_HOME", str(home()))
    command = [
        "memory",
        "recall",
        "--run",
        str(played.folder),
        *"-m scripted/sensible --every 1 --plan".split(),
    ]
    assert main([*command, "--questions", "20"]) == 0
    said = re.search(
        r"asked about ([\d,]+) of ([\d,]+) moves of names that were held: 2 of (\d+) names, \d+% "
        r"of what was "
        r"held; --questions (\d+) asks about all",
        capsys.readouterr().err,
    )
    asked, of, names, enough = (int(one.replace(",", "")) for one in said.groups())
    assert names > 2 and of * 2 == asked * names
    for questions, left_out in ((enough, False), (enough - 5, True)):
        assert main([*command, "--questions", str(questions)]) == 0
        assert ("asked about" in capsys.readouterr().err) is left_out
    few, told = RecallConfig(questions=20, every=1), []
    report = recall_audit(
        "scripted/sensible",
        run=played,
        config=few,
        answer=lambda _: ModelReply(text="up"),
        say=told.append,
    )
    assert report.plan.left_out == said[0] and said[0] in told
    assert said[0] in write_recall(report, tmp_path / "recall.html").read_text()
    other = msgspec.structs.replace(report, dataset="elsewhere", run=None)
    with pytest.raises(UserError, match="has a record about elsewhere, which"):
        assay(played, CONFIG, memory=[other])


def test_who_remembers_loses_selection_under_the_mask_and_the_control_does_not(contrast):
    gap = contrast.gap_of(RECALLING, mode="memory-only")
    assert gap.told == "memory" and gap.inference == "sessions" and gap.gap.low > 0.0
    assert "recognises" in gap.sentence and "+" not in gap.sentence
    # One window is one cluster: the signed-rank test alone could never have told.
    assert gap.test.smallest_p == 1.0
    controls = [gap for gap in contrast.gaps if gap.control]
    assert controls and contrast.controls_hold
    for gap in controls:
        assert gap.told == "no gap"
        assert all((one.value, one.low, one.high) == (0.0, 0.0, 0.0) for one in gap.parts.values())
    assert contrast.gap_of(READING, mode="fixed-candidate").told != "memory"


def test_parts_add_up_memory_alone_is_probed_and_what_is_not_known_is_said(contrast):
    for row in (*contrast.arms, *contrast.gaps):
        values = {name: measure.value for name, measure in row.parts.items()}
        whole = values.pop("total")
        assert abs(sum(value or 0.0 for value in values.values()) - whole) < 1e-10
    found = {(one.agent, one.arm): one.told for one in contrast.direct}
    assert set(found) == {(a, m) for a in (RECALLING, READING) for m in ("bright", "blinded")}
    assert found[RECALLING, "bright"] == "memory" != found[RECALLING, "blinded"]
    assert {arm.period for arm in contrast.arms if arm.by_model} == {"unknown"}
    for words in ("no known cutoff", "synthetic"):
        assert any(words in note for note in contrast.notes)
    assert contrast.fades[0].selection.reason == "the model's cutoff is not known"
    assert msgspec.json.decode(msgspec.json.encode(contrast), type=MemoryContrast) == contrast


def test_cutoffs_split_before_and_after():
    days = [date.fromisoformat(str(day)) for day in memory_runs.panel().sessions]
    cutoffs = {"tiny-memoriser": days[-1], "sensible": days[-10]}
    found = memory_contrast(memory_runs.masked_run(), cutoffs=cutoffs)
    periods = {arm.agent: arm.period for arm in found.arms}
    assert periods == {RECALLING: "before", READING: "across", "equal-weight": "any"}
    assert found.fades[0].selection.value is None
    assert not any("no known cutoff" in note for note in found.notes)


def test_a_run_without_masks_is_refused():
    with pytest.raises(UserError, match="mask"):
        memory_contrast(memory_runs.rules_only())


# -- inference, by hand ----------------------------------------------------------------------------


def sample(totals, clusters, days=30):
    rng = np.random.default_rng(1)
    daily = tuple(total / days + rng.normal(0, 0.001, days) for total in totals)
    return Sample(np.array(totals), daily, tuple(clusters), tuple(range(len(totals))))


def test_intervals_by_hand():
    found = infer(sample([0.01, 0.03, 0.02, 0.04, 0.00, 0.02], [1, 2, 3, 4, 5, 6]), MemoryConfig())
    # mean 0.02, standard deviation 0.0141421, over root six 0.0057735, t(5, 97.5 %) 2.570582
    assert (found.by, found.measure.value) == ("windows", pytest.approx(0.02))
    assert found.measure.low == pytest.approx(0.02 - 2.570582 * 0.0057735, abs=1e-7)
    assert found.p_value == pytest.approx(0.0179, abs=1e-4)
    # A window counts once, however many seeds it has.
    found = infer(sample([1.0, 1.0, 1.0, 0.0], [1, 1, 1, 2]), MemoryConfig())
    assert (found.measure.value, found.by) == (0.5, "sessions")
    found = infer(sample([0.1], [1], days=5), MemoryConfig())
    assert found.measure.low is None and found.p_value is None
    assert infer(sample([], []), MemoryConfig()).measure.value is None
    # Welch: difference 0.1, error 0.1414214, two degrees of freedom: t = 4.302653
    one, other = sample([0.1, 0.3], [1, 2]), sample([0.0, 0.2], [3, 4])
    assert welch(one, other, MemoryConfig()).low == pytest.approx(
        0.1 - 4.302653 * 0.1414214, abs=1e-6
    )
    assert welch(one, sample([], []), MemoryConfig()).value is None
    assert welch(one, sample([0.1], [3]), MemoryConfig()).low is None


@settings(max_examples=20)
@given(st.integers(0, 10_000))
def test_the_bootstrap_interval_and_its_p_value_agree(seed):
    daily = np.random.default_rng(seed).normal(0.0005, 0.002, 40)
    found = infer(Sample(np.array([daily.sum()]), (daily,), (0,), (0,)), MemoryConfig(draws=200))
    assert found.measure.low < daily.sum() < found.measure.high
    if not 0.02 <= found.p_value <= 0.12:
        assert (found.measure.low < 0.0 < found.measure.high) == (found.p_value > 0.12)


# -- reasons ---------------------------------------------------------------------------------------


CONFIG = VerdictConfig(portfolios=0, draws=100, least=20)
MASKED = {"mask": ("bright", "blinded"), "mode": ("fixed-candidate",)}


@pytest.fixture(scope="module")
def judged():
    return assay(memory_runs.played("verdict", ["tiny-memoriser"], -24, MASKED), CONFIG)


def cell(judged, mask):
    return next(one.setting for one in judged.agents if one.mask == mask)


def test_the_gap_stands_beside_the_unmasked_cell_only(judged):
    bright = judged.agent("tiny-memoriser", cell(judged, "bright"))
    assert bright.memory.against == "blinded" and bright.memory.gap.value > 0
    assert set(bright.memory.parts) == {"common", "style", "selection", "trading", "alpha"}
    assert "tiny-memoriser" in bright.memory.sentence
    assert bright.verdict.kind not in ("skill", "could-be-best-of-few")
    assert not any("memory is not excluded" in limit for limit in bright.verdict.limits)
    masked = judged.agent("tiny-memoriser", cell(judged, "blinded"))
    assert masked.memory is None and masked.verdict.kind != "skill"


class Shy(memory_runs.Memoriser):
    """Remembers too; once it holds names that it does not know, it says nothing that can be
    read.
    """

    def answer(self, request: AskModel) -> ModelReply:
        held = [row["stock_id"] for row in Question(request).payload["account"]["positions"]]
        return (
            super().answer(request)
            if set(held) <= set(memory_runs.known())
            else ModelReply(text="")
        )


def test_a_masked_run_without_answers_is_no_contrast():
    if "tiny-shy" not in scripted_models:
        scripted_models.add("tiny-shy", Shy)
    made = assay(memory_runs.played("shy", ["tiny-shy"], -24, MASKED), CONFIG)
    bright = made.agent("tiny-shy", cell(made, "bright"))
    assert bright.memory.reason == "the masked run had no usable answer on 96% of its sessions"
    assert "memory is not excluded: " + bright.memory.reason in bright.verdict.limits


def drawn(*, holds=1.0):
    """Return daily parts of an account with a significant alpha that is invested on a share of
    its days.
    """
    rng, days = np.random.default_rng(1), 200
    market, held = rng.normal(0.0, 0.01, days), (np.arange(days) < holds * days).astype(float)
    rows = {
        "common": held * market,
        "selection": held * (0.003 + rng.normal(0.0, 0.004, days)),
        "market": market,
    }
    rows |= {
        "style": np.zeros(days),
        "trading": np.zeros(days),
        "invested": held,
        "alpha": rows["selection"],
    }
    return rows | {"total": rows["common"] + rows["selection"]}


def test_who_stays_out_under_a_mask_has_not_shown_memory():
    """Skill that does not play is gone as surely as what was remembered: a contrast needs a twin
    that trades.
    """
    for holds, out in ((0.0, 200), (0.4, 120), (0.6, None)):
        made = memory_evidence(
            drawn(), drawn(holds=holds), MeanTest(252, CONFIG), against="blinded"
        )
        why = f"the masked run held nothing on {out} of the 200 sessions on which it did"
        assert made.reason == (why if out else None) and (made.gap.value is None) == bool(out)


def test_a_rule_beside_a_model_has_badges_of_its_own(judged):
    models = {one.agent: one.badges.model for one in judged.agents if one.badges is not None}
    assert models.pop("scripted/tiny-memoriser: tiny-memoriser") == "scripted" and set(
        models.values()
    ) == {"none"}
    assert sorted(title.rpartition(", ")[2] for title in judged.titles.values()) == [
        "blinded",
        "bright",
    ]
    one = judged.agent("tiny-memoriser", cell(judged, "bright"))
    assert one.dollars.calls > 0 and one.calibration.ece.value is not None
