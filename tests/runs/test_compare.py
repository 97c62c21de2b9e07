"""Two runs side by side."""

import shutil
from pathlib import Path

import pytest
import runs_world as world

from tradeassay.core.errors import RunError
from tradeassay.runs import AgentSpec, Run, Window, compare, run

ONE = {"benchmarks": ("tiny-us-v1",), "seeds": (0,)}


@pytest.fixture(scope="module")
def first(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    agents = (AgentSpec(name="random", params={"k": 2}, label="dice"), AgentSpec(name="cash"))
    folder = tmp_path_factory.mktemp("first")
    return run(world.tiny_spec("first", agents=agents, **ONE), folder / "r", executor="inline", home=home)


def second(home: Path, folder: Path, **changes: object) -> Run:
    agents = (AgentSpec(name="random", params={"k": 2, "every": 2}, label="dice"), AgentSpec(name="index-hold"))
    fields = {"agents": agents, **ONE, **changes}
    return run(world.tiny_spec("second", **fields), folder / "r", executor="inline", home=home)


def test_the_same_run_does_not_differ(finished: Run, home: Path) -> None:
    found = compare(finished.folder, finished.folder, home=home)
    assert len(found.pairs) == 6
    assert found.only_first == found.only_second == ()
    for pair in found.pairs:
        assert pair.comparable
        assert pair.measures["sharpe"].difference == 0.0
        assert pair.paired.distinguishable is False
        difference = pair.paired.difference
        assert (difference.value, difference.low, difference.high) == (0.0, 0.0, 0.0), pair.agent


def test_differences_are_second_minus_first_and_paired(first: Run, home: Path, tmp_path: Path) -> None:
    other = second(home, tmp_path)
    found = compare(first, other)
    assert (found.first, found.second) == ("first", "second")
    assert [pair.agent for pair in found.pairs] == [
        "equal-weight",
        "rule random-k=2: dice and rule random-every=2-k=2: dice",
    ]
    assert found.only_first == ("tiny-us-v1: cash",)
    assert found.only_second == ("tiny-us-v1: index-hold",)
    dice = found.pairs[1]
    one, two = (run.scores.agents[1].measures["cumulative_return"].median.value for run in (first, other))
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
        ({"window": Window(first="2024-02-01", last="2024-03-15")}, "windows differ: 2024-01-15 to "),
    ],
)
def test_what_is_not_comparable_says_why(
    first: Run, home: Path, tmp_path: Path, changes: dict[str, object], reason: str
) -> None:
    found = compare(first, second(home, tmp_path, **changes))
    dice = next(pair for pair in found.pairs if pair.agent.endswith(": dice"))
    assert not dice.comparable
    assert str(dice.reason).startswith(reason)
    assert dice.measures["sharpe"].difference is None
    assert "not comparable" in str(dice.measures["sharpe"].reason)
    assert dice.measures["sharpe"].first is not None
    assert dice.paired.distinguishable is None


def test_other_rules_and_other_conventions_are_not_comparable(first: Run, home: Path, tmp_path: Path) -> None:
    shutil.copytree(first.folder, tmp_path / "other")
    manifest = tmp_path / "other" / "manifest.json"
    text = manifest.read_text()
    manifest.write_text(text.replace('"convention": "sound"', '"convention": "paper"'))
    assert "conventions differ" in str(compare(first, tmp_path / "other", home=home).pairs[0].reason)
    manifest.write_text(text.replace('"decide": "pre_open"', '"decide": "at_open"'))
    assert "the rules of benchmark" in str(compare(first, tmp_path / "other", home=home).pairs[0].reason)


def test_a_failed_episode_has_nothing_to_compare(first: Run, home: Path, tmp_path: Path) -> None:
    other = second(home, tmp_path, agents=(AgentSpec(name="test-never-answers", label="dice"),))
    dice = compare(first, other).pairs[1]
    assert dice.comparable
    assert dice.measures["sharpe"].difference is None
    assert "no usable answer" in str(dice.measures["sharpe"].reason)
    assert "an episode failed" in dice.paired.sentence


def test_an_unfinished_run_is_refused(first: Run, home: Path, tmp_path: Path) -> None:
    shutil.copytree(first.folder, tmp_path / "other")
    (tmp_path / "other" / "scores.json").unlink()
    with pytest.raises(RunError, match="has no scores yet"):
        compare(first, tmp_path / "other", home=home)
