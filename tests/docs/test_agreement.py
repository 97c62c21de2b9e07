"""What several pages say about one thing is the same, and is what the code says."""

import re
import tomllib
from pathlib import Path

import pytest

from tradeassay_programs.code.gates import GATES, PAPER_GATES

ROOT = Path(__file__).resolve().parents[2]
NUMBERS = dict(
    zip("one two three four five six seven eight nine ten".split(), range(1, 11), strict=True)
)


def page(name):
    return " ".join((ROOT / name).read_text().split())


@pytest.mark.parametrize(
    ("name", "phrase", "number"),
    [
        ("CHANGELOG.md", r"(\w+) gates, drift", len(GATES)),
        ("docs/concepts/gates.md", r"must pass (\w+) gates", len(GATES)),
        ("docs/howto/run-systrade.md", r"goes through (\w+) \[gates\]", len(GATES)),
        ("docs/reference/papers.md", r"\| (\w+) gates \| as printed", len(PAPER_GATES)),
        (
            "docs/reference/papers.md",
            r"(\w+) more, scenarios and agreement, are ours",
            len(GATES) - len(PAPER_GATES),
        ),
        (
            "CHANGELOG.md",
            r"in notebooks, (\w+) notebooks",
            len([*(ROOT / "examples/notebooks").glob("*.ipynb")]),
        ),
        (
            "examples/README.md",
            r"(\w+) notebooks",
            len([*(ROOT / "examples/notebooks").glob("*.ipynb")]),
        ),
    ],
)
def test_a_count_in_prose_is_the_count_of_the_code(name, phrase, number):
    assert NUMBERS[re.search(phrase, page(name))[1]] == number


def test_the_size_of_an_installation_is_one_number():
    install = page("docs/reference/install.md")
    [total] = re.findall(r"packages/\*` takes (\d+) MB", install)
    parts = re.search(r"included: (.*?) \(`perf", install)[1]
    assert sum(map(int, re.findall(r"(?<![.\d])\d+", parts))) == int(total)
    assert re.findall(r"takes \[(\d+) MB\]", page("docs/evidence/performance.md")) == [total]
    elsewhere = re.findall(r"installation \((\d+) MB\)", page("README.md") + page("CHANGELOG.md"))
    assert set(elsewhere) <= {total}


def test_the_table_of_extras_has_every_extra():
    extras = tomllib.loads((ROOT / "packages" / "tradeassay" / "pyproject.toml").read_text())[
        "project"
    ]["optional-dependencies"]
    table = (ROOT / "docs/reference/install.md").read_text().split("## Extras")[1]
    rows = re.findall(r"^\| (`[^|]+`) \|", table, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == set(extras)
    # ``all`` names other extras, some of which bring more.
    brought, waiting = set(), ["all"]
    while waiting:
        name = waiting.pop()
        brought.add(name)
        waiting += [
            one
            for text in extras[name]
            for one in re.findall(r"\w+", text.removeprefix("tradeassay["))
            if text.startswith("tradeassay[")
        ]
    if "data" in brought:  # one name for the sources, each of which has one of its own
        brought |= {"us", "crypto", "ashare"}
    left_out = re.search(r"everything but (.*?) \|", table)[1]
    assert set(re.findall(r"`(\w+)`", left_out)) == set(extras) - brought


def test_adapters_tiers_and_exit_statuses_are_told_alike():
    changes, agents = page("CHANGELOG.md"), page("docs/howto/known-agents.md")
    assert "there is no adapter for it" in agents and "TradingAgents" not in changes
    assert [path.stem for path in (ROOT / "examples/known_agents").glob("*.py")] == [
        "ai_hedge_fund"
    ]
    assert "an adapter for ai-hedge-fund 2" in changes
    assert "tiers (multiple comparisons with the best)" in changes
    assert "multiple comparisons with the best" in page("docs/reference/metrics.md")
    for name in ("CHANGELOG.md", "docs/howto/resume-and-verify.md"):
        assert re.search(r"\b4\b[^.;]*`?verify`? itself", page(name)), name
