"""Plans bind the files of every kind of agent, and say what models take."""

from functools import partial

import msgspec
import pytest
import runs_code_toy as toy
import runs_talk as talk
import runs_world as world
from registries import replace_registered

from tradeassay.core.errors import UserError
from tradeassay.core.hashing import sha256_file
from tradeassay_bench.agents.own_file import own_files
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.llm import scripted_models
from tradeassay_bench.runs import AgentSpec, Asking, CodeRun, plan, run
from tradeassay_bench.runs.spec.run_spec import Window
from tradeassay_bench.runs.verify.plans import seal_plan, verify_anything
from tradeassay_bench.runs.verify.report import verify

SHORT = Window(first="2024-01-15", last="2024-01-19")

CLASS = """import helper
class Mine:
    def reply(self, request):
        return {"text": helper.WORD}
"""


def checked(folder, home, plan=None, **how):
    found = verify_anything(folder, plan=plan, check=partial(verify, home=home, workers=1, **how))[
        1
    ]
    assert found is not None
    return found


def test_files_of_every_kind_of_agent(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mind.py").write_text(CLASS)
    (tmp_path / "helper.py").write_text("WORD = ''\n")
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack/__init__.py").write_text("from .inner import X\n")
    (tmp_path / "pack/inner.py").write_text("X = 1\n")
    (tmp_path / "unrelated.py").write_text("")
    both = {"mind.py", "helper.py"}
    assert set(own_files("python", {"class": "./mind.py:Mine"})) == both
    assert set(own_files("python", {"class": "mind:Mine"})) == both
    assert set(own_files("python", {"class": "pack:X"})) == {"__init__.py", "inner.py"}
    assert set(own_files("pipe", {"command": "python ./mind.py --fast"})) == both
    assert set(own_files("pipe", {"command": "python -m mind"})) == both
    assert own_files("file", {"path": "mind.py", "name": "Mine"})["mind.py"] == sha256_file(
        tmp_path / "mind.py"
    )
    assert own_files("http", {"url": "http://h"}) == own_files("cash", {}) == {}


@pytest.mark.parametrize("kind", ["python", "pipe", "file"])
def test_a_swapped_file_is_not_the_plan(kind, home, tmp_path, monkeypatch):
    """The file that an agent is made of, or one that it imports, is swapped after the plan was
    published.
    """
    monkeypatch.chdir(tmp_path)
    rule = (
        "import other\nclass Rule:\n    def answer(self, request):\n        raise "
        "ValueError(other.WORD)\n"
    )
    (tmp_path / "other.py").write_text("WORD = 'x'\n")
    (tmp_path / "mind.py").write_text(rule.replace("answer", "reply") if kind != "file" else rule)
    params = {
        "python": {"class": "./mind.py:Rule"},
        "pipe": {"command": "python mind.py"},
        "file": {"path": "mind.py", "name": "Rule"},
    }[kind]
    agents = (AgentSpec(name=kind, params=params, label="mine"),)
    spec = world.tiny_spec(seeds=(0,), window=SHORT, agents=agents, benchmarks=("tiny-us-v1",))
    _, plan = seal_plan(spec, tmp_path / "p.plan.seal", home=home)
    run(plan.asked, tmp_path / "kept", executor="inline", home=home)
    found = checked(tmp_path / "kept", home, tmp_path / "p.plan.seal")
    assert not [one for one in found.violations if one.check == "plan"]
    (tmp_path / "other.py").write_text("WORD = 'reads the future'\n")
    with pytest.raises(RunError, match=r"the file other\.py of agent 'mine' has changed"):
        run(plan.asked, tmp_path / "kept", executor="inline", home=home)
    run(plan.asked, tmp_path / "swapped", executor="inline", home=home)
    found = checked(tmp_path / "swapped", home, tmp_path / "p.plan.seal")
    assert found.exit_code == 1
    assert any("the file other.py of agent 'mine' is" in one.what for one in found.violations)


def test_what_answers_over_http_is_left_open(home, tmp_path):
    agents = (AgentSpec(name="http", params={"url": "http://127.0.0.1:9"}, label="far"),)
    spec = world.tiny_spec(seeds=(0,), window=SHORT, agents=agents, benchmarks=("tiny-us-v1",))
    assert seal_plan(spec, tmp_path / "p.seal", home=home)[1].open == (
        "the program of agent 'far' over HTTP",
    )


def test_a_plan_of_programs(tmp_path):
    toy.fresh()
    spec = toy.ToySpec()
    _, plan = seal_plan(spec, tmp_path / "p.plan.seal")
    assert plan.benchmark == spec.benchmark and plan.episodes
    done = run(plan.asked, tmp_path / "kept")
    assert isinstance(done, CodeRun)
    found = verify_anything(tmp_path / "kept", plan=tmp_path / "p.plan.seal")[1]
    assert found.claims[-1].claim == "plan"
    assert found.claims[-1].outcome == "re-derived", found.violations
    run(msgspec.structs.replace(plan.asked, secret="0" * 32), tmp_path / "other")
    found = verify_anything(tmp_path / "other", plan=tmp_path / "p.plan.seal")[1]
    assert "spec differs from the plan" in str(found.violations)


def test_a_plan_counts_what_the_run_then_does(finished, home):
    planned = plan(world.tiny_spec(), home=home, workers=3)
    assert planned.episodes == len(finished.episodes)
    assert planned.decisions == planned.sessions == 500
    assert (planned.workers, planned.model_calls) == (3, 0)
    assert planned.seconds > 0
    written = sum(path.stat().st_size for path in finished.folder.glob("episodes/*/events.jsonl"))
    assert planned.bytes == pytest.approx(written, rel=1.0)
    assert ("episodes", "10") in planned.rows()
    assert [(row.agent, row.baseline) for row in planned.agents[:2]] == [
        ("equal-weight", True),
        ("reversal-every=4-lookback=3", False),
    ]


def test_a_costly_agent_is_not_asked(home, tmp_path):
    log = tmp_path / "log"
    agent = AgentSpec(name="test-costly", params={"log": str(log)}, label="costly")
    planned = plan(world.tiny_spec(agents=(agent,)), home=home)
    row = next(row for row in planned.agents if row.agent == "costly")
    assert (row.seconds, row.bytes) == (None, None)
    assert "cost" in str(row.note)
    assert not log.exists()


def test_an_agent_that_would_fail_is_named(home):
    planned = plan(world.tiny_spec(agents=(AgentSpec(name="test-cannot-begin"),)), home=home)
    assert "would fail: RuntimeError" in str(planned.agents[1].note)


def test_a_plan_refuses_what_a_run_would_refuse(home):
    with pytest.raises(UserError, match="no agent 'nobody'"):
        plan(world.tiny_spec(agents=(AgentSpec(name="nobody"),)), home=home)
    with pytest.raises(UserError, match="no dataset"):
        plan(world.tiny_spec(datasets={"tiny-us-v1": ("none",)}), home=home)


def model(name):
    return AgentSpec(name="model", params={"model": name}, label=name.replace("/", "-"))


@pytest.fixture
def sensible(monkeypatch):
    """Let the tiny conversation be measured with a model that can hold it."""
    replace_registered(monkeypatch, scripted_models, "sensible", talk.Good)


def test_calls_tokens_dollars_and_hours(home, sensible):
    spec = talk.talk_spec(
        agents=(model("openai/gpt-4o"), model("openai/none-such"), model("scripted/tiny-good"))
    )
    planned = plan(spec, home=home, asking=Asking(concurrency=2))
    priced, unpriced, scripted = (row for row in planned.agents if row.model)
    assert priced.model_calls == unpriced.model_calls == 200
    # At most 100 tokens an answer, as the conversation's own settings say.
    assert priced.output_tokens == 200 * 100
    assert priced.usd == pytest.approx(
        (priced.input_tokens * 2.5 + priced.output_tokens * 10) / 1e6, rel=0.02
    )
    assert priced.hours == pytest.approx((200 * 2.0 + 20_000 / 60) / 2 / 3600, rel=1e-3)
    assert unpriced.usd is None
    assert (scripted.usd, scripted.hours) == (0.0, 0.0)
    assert (planned.usd, planned.model_calls) == (None, 600)
    assert planned.hours == pytest.approx(2 * (priced.hours or 0))
    rows = dict(planned.rows())
    assert "the price of openai/none-such is unknown" in rows["dollars"]
    assert "price unknown" in rows["tiny-talk-v1__tiny-us, openai-none-such"]


def test_earlier_runs_go_before_what_is_assumed(home, sensible, tmp_path):
    name = model("scripted/tiny-good")
    done = run(
        talk.talk_spec(agents=(name,)), tmp_path / "runs" / "one", home=home, executor="inline"
    )
    (tmp_path / "runs" / "other").mkdir()
    (tmp_path / "runs" / "other" / "manifest.json").write_text("not a manifest")
    spending = [part.spending for _, part in done.outcomes()]
    planned = plan(talk.talk_spec(agents=(name,)), home=home, runs=tmp_path / "runs")
    row = next(row for row in planned.agents if row.model)
    assert (
        row.source is not None and "of 1 earlier run(s)" in row.source and row.source in row.words()
    )
    assert row.input_tokens == sum(one.input_tokens for one in spending if one is not None)
    assert row.model_calls == sum(one.calls for one in spending if one is not None)
    fresh = plan(talk.talk_spec(agents=(name,)), home=home, runs=tmp_path)
    assert "assumed" in str(next(row for row in fresh.agents if row.model).source)


def test_a_plan_of_a_broken_conversation_says_so(home, sensible, monkeypatch):
    def broken(self, observation):
        raise ValueError("the table is gone")

    monkeypatch.setattr(talk.TinyTalk, "dialogue", broken)
    planned = plan(talk.talk_spec(agents=(model("scripted/tiny-good"),)), home=home)
    assert "would fail: ValueError: the table is gone" in str(planned.agents[-1].note)


def test_a_cap_without_a_price_is_refused_in_a_plan_too(home):
    with pytest.raises(UserError, match="is unknown"):
        plan(
            talk.talk_spec(agents=(model("openai/none-such"),)),
            home=home,
            asking=Asking(max_usd=1.0),
        )
