"""A recorded run as training data: every answer with what it was worth, on both tracks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import runs_talk as talk
from click.testing import CliRunner
from tests.report.code_report_sample import code_run

from tradeassay.cli.runs import report
from tradeassay.runs import run
from tradeassay.runs.summary.trajectories import training_lines, trajectories


def test_programs_carry_their_reward_and_what_it_rests_on(tmp_path: Path) -> None:
    made = code_run(tmp_path / "r")
    every = list(trajectories(made))
    assert {one.prompt[0]["role"] for one in every} == {"system"}
    solved = [one for one in every if one.evidence.get("stage") == "solved"]
    assert solved and {one.reward for one in solved} == {1.0}
    assert all(one.completion for one in every)
    wrong = [one for one in every if one.evidence.get("stage") == "judge"]
    assert wrong and all(one.reward == pytest.approx(0.08) for one in wrong) and wrong[0].reason
    assert {one.reward for one in every if one.evidence.get("stage") in ("trick", "lookahead")} == {0.0}
    for line in (sft := list(training_lines(made, "sft"))):
        assert line["reward"] == 1.0 and line["messages"][-1]["role"] == "assistant"
    for line in (pairs := list(training_lines(made, "dpo"))):
        assert line["rewards"][0] > line["rewards"][1] and line["chosen"] != line["rejected"]
    assert sft and pairs
    done = CliRunner().invoke(report, [str(made.folder), "--format", "rl"])
    assert done.exit_code == 0
    assert [json.loads(line)["reward"] for line in done.stdout.splitlines()] == [one.reward for one in every]


def test_days_carry_what_the_account_made_of_them(tmp_path: Path, home: Path) -> None:
    made = run(talk.talk_spec("tiny-good"), tmp_path / "r", executor="inline", home=home)
    every = list(trajectories(made))
    known = [one for one in every if one.reward is not None]
    first = known[0]
    marks = {record.session: record.events[-1].nav for record in made.records(first.episode)}  # type: ignore[union-attr]
    session, until = first.evidence["session"], first.evidence["until"]
    assert first.reward == pytest.approx(marks[until] / marks[session] - 1.0)
    assert len(known) < len(every), "the last day has no next one"
    assert {one.reason for one in every if one.reward is None} == {"nothing is recorded about this answer"}
