"""Specs written by hand, and what is said about mistakes in them."""

from pathlib import Path

import pytest

from tradeassay.core.errors import UserError
from tradeassay.runs import AgentSpec, Window, load_spec

GRID = """
benchmarks = ["daily-us-v1", "daily-ashare-v1"]
agents = ["equal-weight", { name = "momentum-12-1", params = { k = 10 }, label = "mom10" }]
seeds = [0, 1, 2]
datasets = ["a", "b"]
window = { first = "2024-02-01", last = "2024-06-28" }
[bootstrap]
draws = 200
"""


def write(folder: Path, text: str, name: str = "my-grid.toml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def test_a_grid_in_toml(tmp_path: Path) -> None:
    spec = load_spec(write(tmp_path, GRID))
    assert spec.slug == "my-grid"
    assert spec.agents == (
        AgentSpec(name="equal-weight"),
        AgentSpec(name="momentum-12-1", params={"k": 10}, label="mom10"),
    )
    assert spec.datasets == {"daily-us-v1": ("a", "b"), "daily-ashare-v1": ("a", "b")}
    assert spec.window == Window(first="2024-02-01", last="2024-06-28")
    assert spec.bootstrap.draws == 200


def test_the_same_in_json_and_another_slug(tmp_path: Path) -> None:
    text = '{"benchmarks": "daily-us-v1", "agents": "cash", "datasets": {"daily-us-v1": "x"}, "slug": "s"}'
    spec = load_spec(write(tmp_path, text, "a.json"), slug="other")
    assert (spec.slug, spec.benchmarks, spec.agents[0].name) == ("other", ("daily-us-v1",), "cash")
    assert spec.datasets == {"daily-us-v1": ("x",)}


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("benchmark = ['a']", "unknown key 'benchmark'", "did you mean benchmarks?"),
        ("benchmarks = ['a']", "'agents' is missing", "add agents"),
        ("benchmarks = ['a']\nagents = [{ nam = 'x' }]", "unknown key 'agents[0].nam'", "did you mean name?"),
        ("benchmarks = ['a']\nagents = [{ label = 'x' }]", "'agents[0].name' is missing", "add name"),
        ("benchmarks = ['a']\nagents = ['x']\nseeds = ['1']", "'seeds[0]' is wrong", "expected 'int'"),
        ("benchmarks = ['a']\nagents = ['x']\nconvention = 'mine'", "'convention' is wrong", "invalid enum value"),
        (
            "benchmarks = ['a']\nagents = ['x']\nwindow = { first = '2024-01-01' }",
            "'window.last' is missing",
            "add",
        ),
        (
            "benchmarks = ['a']\nagents = ['x']\nbootstrap = { drws = 3 }",
            "'bootstrap.drws'",
            "did you mean draws?",
        ),
        ("benchmarks = ['a']\nagents = ['x']\nbootstrap = { draws = 0 }", "0 bootstrap draws", "ask for 1 to"),
        ("benchmarks = ['a', 'a']\nagents = ['x']", "'a' is given twice", "remove"),
        ("benchmarks = [", "is not valid TOML", "correct the line"),
    ],
)
def test_a_mistake_is_named_with_its_key(tmp_path: Path, text: str, message: str, hint: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(UserError) as caught:
        load_spec(path)
    assert str(path) in caught.value.message
    assert message in caught.value.message
    assert hint in str(caught.value.hint)


def test_a_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot read"):
        load_spec(tmp_path / "none.toml")


def test_json_that_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not a table"):
        load_spec(write(tmp_path, "[1]", "a.json"))
