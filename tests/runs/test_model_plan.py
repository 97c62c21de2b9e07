"""What models would take, before one is asked; and what a terminal shows while they are."""

import io
from pathlib import Path

import pytest
import runs_talk as talk

from tradeassay.core.dialogue import Usage
from tradeassay.core.errors import UserError
from tradeassay.runs import (
    Advanced,
    AgentSpec,
    Answered,
    Asking,
    AskStarted,
    Finished,
    PhaseStarted,
    RunEnded,
    plan,
)
from tradeassay.runs.play.progress import BarListener, LineListener


def model(name: str) -> AgentSpec:
    return AgentSpec(name="model", params={"model": name}, label=name.replace("/", "-"))


@pytest.fixture
def sensible(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the tiny conversation be measured with a model that can hold it."""
    from tradeassay.llm import scripted_models

    monkeypatch.setitem(scripted_models._items, "sensible", talk.Good)


def test_calls_tokens_dollars_and_hours(home: Path, sensible: None) -> None:
    spec = talk.talk_spec(agents=(model("openai/gpt-4o"), model("openai/none-such"), model("scripted/tiny-good")))
    planned = plan(spec, home=home, asking=Asking(concurrency=2))
    priced, unpriced, scripted = (cell for cell in planned.cells if cell.model)
    assert priced.model_calls == unpriced.model_calls == 200
    # At most 100 tokens an answer, as the conversation's own settings say.
    assert priced.output_tokens == 200 * 100
    assert priced.usd == pytest.approx((priced.input_tokens * 2.5 + priced.output_tokens * 10) / 1e6, rel=0.02)
    assert priced.hours == pytest.approx((200 * 2.0 + 20_000 / 60) / 2 / 3600, rel=1e-3)
    assert unpriced.usd is None
    assert (scripted.usd, scripted.hours) == (0.0, 0.0)
    assert planned.usd is None
    assert planned.model_calls == 600
    assert planned.hours == pytest.approx(2 * (priced.hours or 0))
    rows = dict(planned.rows())
    assert "the price of openai/none-such is unknown" in rows["dollars"]
    assert "price unknown" in rows["tiny-talk-v1__tiny-us, openai-none-such"]


def test_earlier_runs_go_before_what_is_assumed(home: Path, sensible: None, tmp_path: Path) -> None:
    from tradeassay.runs import run

    name = model("scripted/tiny-good")
    done = run(talk.talk_spec(agents=(name,)), tmp_path / "runs" / "one", home=home, executor="inline")
    (tmp_path / "runs" / "other").mkdir()
    (tmp_path / "runs" / "other" / "manifest.json").write_text("not a manifest")
    spending = [part.spending for _, part in done.outcomes()]
    planned = plan(talk.talk_spec(agents=(name,)), home=home, runs=tmp_path / "runs")
    cell = next(cell for cell in planned.cells if cell.model)
    assert cell.source is not None and "of 1 earlier run(s)" in cell.source and cell.source in cell.words()
    assert cell.input_tokens == sum(one.input_tokens for one in spending if one is not None)
    assert cell.model_calls == sum(one.calls for one in spending if one is not None)
    fresh = plan(talk.talk_spec(agents=(name,)), home=home, runs=tmp_path)
    assert "assumed" in str(next(cell for cell in fresh.cells if cell.model).source)


def test_a_plan_of_a_broken_conversation_says_so(
    home: Path, sensible: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: object, observation: object) -> None:
        raise ValueError("the table is gone")

    monkeypatch.setattr(talk.TinyTalk, "dialogue", broken)
    planned = plan(talk.talk_spec(agents=(model("scripted/tiny-good"),)), home=home)
    assert "would fail: ValueError: the table is gone" in str(planned.cells[-1].note)


def test_a_cap_without_a_price_is_refused_in_a_plan_too(home: Path) -> None:
    with pytest.raises(UserError, match="is unknown"):
        plan(talk.talk_spec(agents=(model("openai/none-such"),)), home=home, asking=Asking(max_usd=1.0))


def tell(listen: LineListener | BarListener) -> None:
    listen(PhaseStarted(phase="play", total=2, sessions=20))
    for key in ("a", "b"):
        listen(AskStarted(key=key, agent=f"model-{key}", session="2024-01-15", purpose="research"))
    listen(Answered(key="a", usage=Usage(input_tokens=1000, output_tokens=200, usd=0.25)))
    listen(Advanced(key="a", sessions=1))


def test_lines_say_who_asks_what_and_what_it_took() -> None:
    stream, now = io.StringIO(), [0.0]
    listen = LineListener(stream, interval=10, clock=lambda: now[0])
    tell(listen)
    now[0] = 20.0
    listen(Finished(key="b"))
    listen(RunEnded(complete=True))
    assert stream.getvalue().splitlines() == [
        "playing: 2 episodes",
        "playing: 1 of 2, 0.05 days/s, 380 s left; 1 call, 1,200 tokens, $0.25; model-a 2024-01-15 research",
        "asked: 1 call, 1,200 tokens, $0.25",
    ]


def test_the_bar_has_a_line_about_models() -> None:
    stream = io.StringIO()
    listen = BarListener(stream)
    tell(listen)
    line = next(task for task in listen._bar.tasks if "call" in task.description)
    assert line.description == "1 call, 1,200 tokens, $0.25"
    assert line.fields["episodes"] == "model-a 2024-01-15 research, model-b 2024-01-15 research"
    listen(RunEnded(complete=False, hint="stopped"))
    assert "asked: 1 call," in stream.getvalue()
