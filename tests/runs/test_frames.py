"""A run as data frames."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import polars as pl
import pytest
import runs_talk as talk
import runs_world as world
from click.testing import CliRunner
from tests.report.code_report_sample import code_run

from tradeassay.cli.runs import report
from tradeassay.core.errors import UserError
from tradeassay.runs import AgentSpec, Frames, Run, run
from tradeassay.runs.store.frames import SCHEMAS
from tradeassay.runs.summary.trajectories import training_lines, trajectories


@pytest.fixture(scope="module")
def busy(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    agents = (AgentSpec(name="test-provoker"), AgentSpec(name="test-never-answers"))
    folder = tmp_path_factory.mktemp("busy")
    return run(world.tiny_spec("busy", agents=agents, seeds=(0,)), folder / "r", executor="inline", home=home)


@pytest.fixture(scope="module")
def frames(busy: Run) -> Frames:
    return busy.frames("polars")


def test_nav_is_the_series(busy: Run, frames: Frames) -> None:
    for episode in busy.episodes:
        rows = frames.nav.filter(pl.col("episode") == episode.key)
        assert rows["nav"].to_list() == busy.series(episode.key).nav.tolist()
        assert rows["session"].to_list()[0] is None
        assert [str(day) for day in rows["session"].to_list()[1:]] == list(busy.series(episode.key).sessions)
    total = frames.nav.select((pl.col("cash") + pl.col("positions") - pl.col("nav")).abs().max()).item()
    assert total < 1e-6


def test_trades_and_positions_add_up(frames: Frames) -> None:
    key = "tiny-us-v1__tiny-us__test-provoker__s0"
    trades = frames.trades.filter(pl.col("episode") == key)
    assert set(trades["side"].unique()) == {"BUY", "SELL"}
    last = frames.positions.filter((pl.col("episode") == key) & (pl.col("step") == 49))
    held = dict(zip(last["symbol"], last["quantity"], strict=True))
    for symbol in ("S4", "S5", "S6", "S7"):  # no split, no delisting
        signed = trades.filter(pl.col("symbol") == symbol).select(
            (pl.col("quantity") * pl.when(pl.col("side") == "BUY").then(1).otherwise(-1)).sum()
        )
        assert signed.item() == pytest.approx(held.get(symbol, 0.0))
    assert last["weight"].sum() <= 1.0 + 1e-9


def test_rejections_decisions_and_scores(busy: Run, frames: Frames) -> None:
    assert set(frames.rejections["reason"].unique()) >= {"insufficient_shares", "lot"}
    name = busy.names["test-never-answers"]  # a rule from elsewhere has that in its name
    failed = frames.decisions.filter(pl.col("agent") == name)
    assert failed["status"].unique().to_list() == ["failed"]
    scores = frames.scores.filter((pl.col("agent") == name) & (pl.col("measure") == "sharpe"))
    assert scores["value"].to_list() == [None, None]
    assert all("no usable answer" in reason for reason in scores["reason"].to_list())
    assert len(frames["scores"]) == len(busy.episodes) * 18


def test_pandas_has_the_same_content(busy: Run, frames: Frames) -> None:
    for name, table in busy.frames("pandas"):
        assert isinstance(table, pd.DataFrame)
        expected = getattr(frames, name)
        assert list(table.columns) == expected.columns == list(SCHEMAS[name])
        assert len(table) == len(expected)
    assert busy.frames("pandas").nav["nav"].to_list() == frames.nav["nav"].to_list()


def test_empty_tables_keep_their_columns(home: Path, tmp_path: Path) -> None:
    spec = world.tiny_spec(agents=(AgentSpec(name="cash"),), benchmarks=("tiny-us-v1",), seeds=(0,))
    done = run(spec, tmp_path / "r", executor="inline", home=home)
    for kind in ("polars", "pandas"):
        rejections = done.frames(kind).rejections  # type: ignore[arg-type]
        assert (len(rejections), list(rejections.columns)) == (0, list(SCHEMAS["rejections"]))


def test_another_kind_is_refused(finished: Run) -> None:
    with pytest.raises(UserError, match="choose polars or pandas"):
        finished.frames("excel")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="one of nav, trades"):
        _ = finished.frames()["naf"]


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
