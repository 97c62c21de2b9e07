"""Leaderboards and comparisons in a terminal of any width."""

import msgspec
import pytest
from report_sample import ATTACK, cell, printed, report

from tradeassay.report import numbers
from tradeassay_bench.report import print_leaderboard, terminal
from tradeassay_bench.runs.summary import RunSummary, completed_run


@pytest.fixture(scope="module")
def one():
    return completed_run(RunSummary(title="one", settings=(cell(0, 120),), draws=200))


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_no_line_is_wider_than_the_terminal_and_nobody_is_missing(one, width):
    text = printed(terminal(one), width)
    assert max(len(line) for line in text.splitlines()) <= width
    for agent in one.settings[0].agents:
        assert agent.name in text
    # Columns without room stand in a table below: every title and every number is there at any width.
    words = text.split()
    for title in ("tier", "return", "excess", "versus", "sharpe", "drawdown", "turnover"):
        assert title in words
    for agent in one.settings[0].agents:
        for name in ("cumulative_return", "sharpe", "max_drawdown", "turnover"):
            value = agent.measures[name].median.value
            assert value is None or numbers.written(value, numbers.form_of(name)) in words


def test_wide_tables_hold_intervals_badges_failures_and_the_sentence(one):
    text = printed(terminal(one))
    for wanted in (
        "synthetic data | corrected convention | rules only, no model",
        "return (95% interval)",
        "max drawdown",
        "cannot be told apart from buy and hold",
        "beats buy and hold by more than chance explains.",
    ):
        assert wanted in text
    line = next(
        line
        for line in printed(terminal(one)).splitlines()
        if "silent-model" in line and "failed" in line
    )
    assert "0.0%" not in line


def test_markup_in_names_is_text_and_printing_goes_to_stdout(capsys):
    data = RunSummary(title="x", settings=(cell(0, 60, attack=True),), draws=100)
    agents = tuple(
        msgspec.structs.replace(
            agent, row=msgspec.structs.replace(agent.row, agent="[bold red]boo[/]")
        )
        if agent.name == ATTACK
        else agent
        for agent in data.settings[0].agents
    )
    data = msgspec.structs.replace(
        data, settings=(msgspec.structs.replace(data.settings[0], agents=agents),)
    )
    assert "[bold red]boo[/]" in printed(terminal(data))
    print_leaderboard(report())
    out = capsys.readouterr().out
    assert out.count("synthetic data | corrected convention") == 3
