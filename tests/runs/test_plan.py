"""What a run would take."""

from pathlib import Path

import pytest
import runs_world as world

from tradeassay.core.errors import UserError
from tradeassay.runs import AgentSpec, Run, plan


def test_a_plan_counts_what_the_run_then_does(finished: Run, home: Path, tmp_path: Path) -> None:
    planned = plan(world.tiny_spec(), home=home, workers=3)
    assert planned.episodes == len(finished.episodes)
    assert planned.decisions == planned.sessions == 500
    assert planned.workers == 3
    assert planned.model_calls == 0
    assert planned.seconds > 0
    written = sum(path.stat().st_size for path in finished.folder.glob("episodes/*/events.jsonl"))
    assert planned.bytes == pytest.approx(written, rel=1.0)
    assert ("episodes", "10") in planned.rows()
    assert [(cell.agent, cell.baseline) for cell in planned.cells[:2]] == [
        ("equal-weight", True),
        ("reversal-every=4-lookback=3", False),
    ]


def test_a_costly_agent_is_not_asked(home: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    agent = AgentSpec(name="test-costly", params={"log": str(log)}, label="costly")
    planned = plan(world.tiny_spec(agents=(agent,)), home=home)
    cell = next(cell for cell in planned.cells if cell.agent == "costly")
    assert (cell.seconds, cell.bytes) == (None, None)
    assert "cost" in str(cell.note)
    assert not log.exists()


def test_an_agent_that_would_fail_is_named(home: Path) -> None:
    planned = plan(world.tiny_spec(agents=(AgentSpec(name="test-cannot-begin"),)), home=home)
    assert "would fail: RuntimeError" in str(planned.cells[1].note)


def test_a_plan_refuses_what_a_run_would_refuse(home: Path) -> None:
    with pytest.raises(UserError, match="no agent 'nobody'"):
        plan(world.tiny_spec(agents=(AgentSpec(name="nobody"),)), home=home)
    with pytest.raises(UserError, match="no dataset"):
        plan(world.tiny_spec(datasets={"tiny-us-v1": ("none",)}), home=home)
