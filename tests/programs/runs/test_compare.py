"""Two runs side by side."""

import shutil
from unittest import mock

import msgspec
import pytest
import runs_world as world
import scripted_misfits  # noqa: F401  # adds models

from tradeassay.core.errors import UserError
from tradeassay.metrics import BootstrapConfig
from tradeassay_bench.runs import AgentSpec, RunSpec, Window, compare, run
from tradeassay_bench.runs.verify.freedom import code_departures, trading_departures
from tradeassay_bench.runs.verify.report import verify
from tradeassay_programs.benchmarks.quantcode.spec import QuantCodeSpec
from tradeassay_programs.benchmarks.systrade.benchmark import SystradeProtocol
from tradeassay_programs.benchmarks.systrade.spec import SystradeSpec
from tradeassay_programs.code.evaluation import EvaluateConfig
from tradeassay_programs.code.gates import GateConfig
from tradeassay_programs.code.scores import ScoreConfig

ONE = {"benchmarks": ("tiny-us-v1",), "seeds": (0,)}


@pytest.fixture(scope="module")
def first(home, tmp_path_factory):
    agents = (AgentSpec(name="random", params={"k": 2}, label="dice"), AgentSpec(name="cash"))
    folder = tmp_path_factory.mktemp("first")
    return run(
        world.tiny_spec("first", agents=agents, **ONE), folder / "r", executor="inline", home=home
    )


def second(home, folder, **changes):
    agents = (
        AgentSpec(name="random", params={"k": 2, "every": 2}, label="dice"),
        AgentSpec(name="index-hold"),
    )
    fields = {"agents": agents, **ONE, **changes}
    return run(world.tiny_spec("second", **fields), folder / "r", executor="inline", home=home)


def test_the_same_run_does_not_differ(finished, home):
    found = compare(finished.folder, finished.folder, home=home)
    assert len(found.pairs) == 6
    assert found.only_first == found.only_second == ()
    for pair in found.pairs:
        assert pair.comparable
        assert pair.measures["max_drawdown"].difference == 0.0
        assert pair.measures["sharpe"].reason == "record too short"
        assert pair.paired.distinguishable is False
        difference = pair.paired.difference
        assert (difference.value, difference.low, difference.high) == (0.0, 0.0, 0.0), pair.agent


def test_differences_are_second_minus_first_and_paired(first, home, tmp_path):
    other = second(home, tmp_path)
    found = compare(first, other)
    assert (found.first, found.second) == ("first", "second")
    assert [pair.agent for pair in found.pairs] == [
        "equal-weight",
        "rule random-k=2: dice and rule random-every=2-k=2: dice",
    ]
    assert (found.only_first, found.only_second) == (
        ("tiny-us-v1: cash",),
        ("tiny-us-v1: index-hold",),
    )
    dice = found.pairs[1]
    one, two = (
        run.scores.agents[1].measures["cumulative_return"].median.value for run in (first, other)
    )
    assert one is not None
    assert two is not None
    assert dice.measures["cumulative_return"].difference == pytest.approx(two - one, abs=1e-12)
    assert dice.paired.difference.value is not None
    assert dice.paired.difference.low is not None
    assert "first" in dice.paired.sentence


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"datasets": {"tiny-us-v1": ("tiny-ashare",)}}, "data differ: 'tiny-us' "),
        (
            {"window": Window(first="2024-02-01", last="2024-03-15")},
            "windows differ: 2024-01-15 to ",
        ),
    ],
)
def test_what_is_not_comparable_says_why(first, home, tmp_path, changes, reason):
    found = compare(first, second(home, tmp_path, **changes))
    dice = next(pair for pair in found.pairs if pair.agent.endswith(": dice"))
    assert not dice.comparable
    assert str(dice.reason).startswith(reason)
    assert dice.measures["sharpe"].difference is None
    assert "not comparable" in str(dice.measures["sharpe"].reason)
    assert dice.measures["sharpe"].first is not None
    assert dice.paired.distinguishable is None


def test_other_rules_and_other_conventions_are_not_comparable(first, home, tmp_path):
    shutil.copytree(first.folder, tmp_path / "other")
    manifest = tmp_path / "other" / "manifest.json"
    text = manifest.read_text()
    manifest.write_text(text.replace('"convention": "corrected"', '"convention": "paper"'))
    assert "conventions differ" in str(
        compare(first, tmp_path / "other", home=home).pairs[0].reason
    )
    manifest.write_text(text.replace('"decide": "pre_open"', '"decide": "at_open"'))
    assert "the rules of benchmark" in str(
        compare(first, tmp_path / "other", home=home).pairs[0].reason
    )


def test_a_failed_episode_has_nothing_to_compare(first, home, tmp_path):
    other = second(home, tmp_path, agents=(AgentSpec(name="test-never-answers", label="dice"),))
    dice = compare(first, other).pairs[1]
    assert dice.comparable
    assert dice.measures["max_drawdown"].difference is None
    assert "no usable answer" in str(dice.measures["max_drawdown"].reason)
    assert "an episode failed" in dice.paired.sentence


WIDE = SystradeSpec(
    models=("scripted/away",),
    strategies=("turtle",),
    score=ScoreConfig(gates=GateConfig(tolerance=1e9)),
)


def test_a_run_as_registered_departs_in_nothing_and_every_choice_is_listed():
    plain = RunSpec(name="x", benchmarks=("ktdfin-v1",), agents=(AgentSpec(name="cash"),))
    assert trading_departures(plain) == ()
    chosen = msgspec.structs.replace(
        plain,
        window=Window(first="2022-03-01", last="2022-03-02"),
        seeds=(4,),
        datasets={"ktdfin-v1": ("synthetic/ashare:9",)},
        index="none",
        universe="top-5",
        protocol={"mask": ("bright", "blinded"), "mode": "open-research"},
        bootstrap=BootstrapConfig(level=0.5),
    )
    found = trading_departures(chosen)
    fields = ["dataset", "window", "seeds", "index", "universe", "protocol.mask", "bootstrap.level"]
    assert [one.field for one in found] == fields and not any(one.rule for one in found)
    assert (
        str(found[1])
        == "window is 2022-03-01 .. 2022-03-02, registered is 2022-02-07 .. 2024-01-31"
    )


@pytest.mark.parametrize(
    ("spec", "rules"),
    [
        (WIDE, {"score.gates.tolerance"}),
        (
            QuantCodeSpec(models=("scripted/away",), turns=3, evaluate=EvaluateConfig(leak=False)),
            {"evaluate.leak"},
        ),
    ],
)
def test_rules_are_told_from_what_is_free_and_other_rules_are_refused(spec, rules, tmp_path):
    found = code_departures(spec)
    assert {one.field for one in found if one.rule} == rules
    assert {one.field for one in found if not one.rule} in ({"strategies"}, {"turns"})
    with pytest.raises(UserError, match=f"that is not '{spec.benchmark}'"):
        run(spec, tmp_path / "r")


def test_a_record_made_under_other_rules_is_named_and_not_scored_by_them(tmp_path, tell):
    with mock.patch.object(
        SystradeProtocol, "fixed", ()
    ):  # as somebody who edits the program would run it
        folder = run(WIDE, tmp_path / "r").folder
    found = verify(folder)
    why = (
        "the rules differ from the rules of 'systrade-v1': score.gates.tolerance is 1000000000.0, "
        "registered is 1e-06"
    )
    assert found.exit_code == 3 and not found.violations
    assert {(one.claim, one.outcome) for one in found.claims if one.why == why} == {
        (claim, "cannot be checked") for claim in ("rules", "programs", "conversation", "scores")
    }
    assert "score.gates.tolerance" in tell(["verify", str(folder)], 3).out
