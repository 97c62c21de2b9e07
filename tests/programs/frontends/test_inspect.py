"""The benchmarks through Inspect's own front door, with a mock model or one that answers as the
scripted do.
"""

import json
import math
import re
import sys
import zipfile
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import pytest
import scripted_misfits  # noqa: F401  # adds models

from tradeassay.core.errors import UserError
from tradeassay_bench.api import make_spec
from tradeassay_bench.core.dialogue import AskModel, Message, ToolCall, ToolSpec
from tradeassay_bench.core.events import STEP_DECODER
from tradeassay_bench.llm import scripted_models
from tradeassay_bench.llm.scripted.traders import Sensible
from tradeassay_bench.runs import run
from tradeassay_programs.benchmarks.quantcode import load_task
from tradeassay_programs.benchmarks.systrade import load_reference
from tradeassay_programs.sandbox import ask_kernel, refusal

pytestmark = pytest.mark.journey


def task(name: str, **settings: Any) -> Any:
    """Return a task.

    Inspect is imported by the tests that use it: every worker collects this file.
    """
    from tradeassay_programs.frontends import inspect_programs

    return getattr(inspect_programs, name)(**settings)


def say(text: str, tool: str | None = None, arguments: dict[str, Any] | None = None) -> Any:
    """Return an answer in Inspect's form: a text, or a call of a tool."""
    from inspect_ai.model import ModelOutput, ModelUsage

    if tool is None:
        output = ModelOutput.from_content("mockllm/model", text)
    else:
        output = ModelOutput.for_tool_call("mockllm/model", tool, arguments or {})
    output.usage = ModelUsage(input_tokens=100, output_tokens=10, total_tokens=110)
    return output


@pytest.fixture(scope="module", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRADEASSAY_HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("INSPECT_DISPLAY", "none")
        # Inspect reads what every installed package consists of whenever it evaluates a task.
        patch.setattr(
            "inspect_ai._util.package.packages_distributions", cache(packages_distributions)
        )
        yield
    if tasks := sys.modules.get("tradeassay_programs.frontends.inspect_programs"):
        tasks.close_sandboxes()


def holds(input: Any, tools: Any, tool_choice: Any, config: Any) -> Any:
    """Answer as a model that abstains, in whatever form it is asked for."""
    arguments = {"orders": [], "overall_reason": "nothing looks better than cash today"}
    return say("I have seen enough.", getattr(tool_choice, "name", None), arguments)


def sensible(input: Any, tools: Any, tool_choice: Any, config: Any) -> Any:
    """Let the scripted model answer, through Inspect's forms."""
    from inspect_ai.tool import ToolCall as InspectCall

    messages = tuple(
        Message(
            role=message.role,
            text=message.text,
            calls=tuple(
                ToolCall(id=call.id, name=call.function, arguments=json.dumps(call.arguments))
                for call in getattr(message, "tool_calls", None) or ()
            ),
            call_id=getattr(message, "tool_call_id", None),
        )
        for message in input
    )
    offered = tuple(
        ToolSpec(
            name=tool.name,
            description=tool.description,
            schema=tool.parameters.model_dump_json(exclude_none=True),
        )
        for tool in tools
    )
    must = getattr(tool_choice, "name", None)
    reply = Sensible().answer(
        AskModel(purpose="any", messages=messages, tools=offered, must_call=must)
    )
    output = say(reply.text)
    output.message.tool_calls = [
        InspectCall(id=call.id, function=call.name, arguments=json.loads(call.arguments))
        for call in reply.calls
    ] or None
    return output


def says_nothing(input: Any, tools: Any, tool_choice: Any, config: Any) -> Any:
    return say("I would rather not.")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Journals of masked episodes are kept under the current folder."""
    monkeypatch.chdir(tmp_path)


def play(task: Any, answers: Any, tmp_path: Path) -> Any:
    from inspect_ai import eval as inspect_eval
    from inspect_ai.model import get_model

    model = get_model("mockllm/model", custom_outputs=answers, memoize=False)
    return inspect_eval(task, model=model, log_dir=str(tmp_path), display="none")[0]


def outcome(log: Any) -> tuple[Any, dict[str, float]]:
    assert log.status == "success", log.error
    metrics = {score.name: score.metrics["mean"].value for score in log.results.scores}
    return log.samples[0].scores["outcome_scorer"], metrics


def fetching_a_tokenizer() -> Exception:
    """Return what tiktoken raises where it cannot fetch its tables: a time-out, by its name."""
    from tiktoken import load

    class ConnectTimeout(OSError):
        pass

    def get(*args: Any, **named: Any) -> None:
        raise ConnectTimeout("no route to the tables")

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", "")
        patch.setattr("requests.get", get)
        try:
            load.read_file_cached("https://127.0.0.1/cl100k_base.tiktoken")
        except OSError as error:
            return error
    raise AssertionError


def kept_journal(log: Any, sample: str) -> list[str]:
    """Return the journal of a masked episode, which is in no log."""
    return (Path("runs") / log.eval.metadata["kept"] / f"{sample}.jsonl").read_text().splitlines()


def test_inspect_and_a_run_give_the_same_journal(tmp_path):
    log = play(
        task("ktdfin", mask="blinded", days=3, benchmark="ktdfin-v1"), sensible, tmp_path / "logs"
    )
    settings = {"mask": "blinded", "mode": "open-research"}
    spec = make_spec(
        "ktdfin-v1",
        models=["scripted/sensible"],
        protocol=settings,
        first="2022-02-07",
        last="2022-02-10",
    )
    done = run(spec, tmp_path / "run", executor="inline")
    key = next(episode.key for episode in done.episodes if episode.by_model)
    ours = (done.folder / "episodes" / key / "events.jsonl").read_text().splitlines()[:3]
    journal = kept_journal(log, "episode-0")
    assert journal == ours and '"orders":[{' in ours[0]
    # The log names neither stock nor day, nor market and years, nor what aliases are drawn from.
    (file,) = (tmp_path / "logs").glob("*.eval")
    with zipfile.ZipFile(file) as packed:
        told = "".join(packed.read(name).decode() for name in packed.namelist())
    assert "screen_candidates" in told
    symbols = {
        order.symbol for line in journal for order in STEP_DECODER.decode(line).decision.orders
    }
    assert symbols and not [
        symbol for symbol in symbols if re.search(rf"\b{re.escape(symbol)}\b", told)
    ]
    assert not re.search(r"2022-0[1-3]-\d\d|synthetic.ashare", told)
    assert (tmp_path / "runs" / log.eval.metadata["kept"] / "secret").read_text() not in told


def test_days_without_a_usable_answer_count(tmp_path):
    log = play(task("ktdfin", mode="memory-only", days=2), says_nothing, tmp_path)
    score, metrics = outcome(log)
    assert score.explanation == "no usable answer in any of 2 sessions"
    assert score.metadata is not None and score.metadata["failed"] is True
    assert isinstance(score.value, dict) and score.value["failed_days"] == 1.0
    assert math.isnan(float(str(score.value["cumulative_return"])))
    assert metrics["failed_days"] == 1.0 and math.isnan(metrics["cumulative_return"])


def test_one_good_day_of_two_is_scored_and_the_other_counted(tmp_path):
    asked = iter(range(99))

    def one_day(*args: Any) -> Any:
        return holds(*args) if next(asked) < 1 else says_nothing(*args)

    score, metrics = outcome(play(task("ktdfin", mode="memory-only", days=2), one_day, tmp_path))
    assert (
        score.value == {"cumulative_return": 0.0, "failed_days": 0.5}
        and metrics["failed_days"] == 0.5
    )


@pytest.mark.parametrize(
    ("raised", "told"),
    [
        (ConnectionRefusedError("nobody listens"), "unreachable: nobody listens"),
        (fetching_a_tokenizer, "unreachable: the tokenizer of tiktoken cannot be fetched"),
    ],
)
def test_an_episode_that_broke_off_says_why_and_counts_what_it_missed(raised, told, tmp_path):
    asked = iter(range(99))

    def breaks(*args: Any) -> Any:
        if next(asked) < 1:
            return holds(*args)
        raise raised() if callable(raised) else raised

    score, metrics = outcome(play(task("ktdfin", mode="memory-only", days=4), breaks, tmp_path))
    assert score.explanation is not None and score.explanation.startswith(told), score.explanation
    assert metrics["failed_days"] == 0.75 and math.isnan(metrics["cumulative_return"])


def test_the_sample_holds_the_conversation(tmp_path):
    log = play(task("ktdfin", mask="blinded", days=2), sensible, tmp_path)
    said = log.samples[0].messages[1:]  # what comes first is the sample's own title
    assert [message.role for message in said].count("system") == 2, (
        "a conversation of its own for every day"
    )
    calls = [call for message in said for call in getattr(message, "tool_calls", None) or ()]
    results = [message for message in said if message.role == "tool"]
    assert len(calls) > 4 and {one.tool_call_id for one in results} <= {call.id for call in calls}
    assert calls[-1].function == "submit_action" and said[-1].role == "assistant"


def test_stockbench_speaks_too(tmp_path):
    log = play(task("stockbench", days=2), says_nothing, tmp_path)
    assert log.status == "success", log.error
    assert len(log.samples[0].store["tradeassay:events"]) == 2


def test_what_a_run_would_refuse_a_task_refuses():
    with pytest.raises(UserError, match="cannot take mask"):
        task("ktdfin", mask="dark")
    with pytest.raises(UserError, match="has no option 'inputz'"):
        task("stockbench", settings={"inputz": "all"})
    with pytest.raises(UserError, match="must be at least 1"):
        task("ktdfin", days=0)


def test_a_key_reaches_no_log_of_inspects(tmp_path, monkeypatch):
    key = "sk-proj-Xb4Rn8Tq2Wz6Ym0Kc9Lv5Pd3"
    monkeypatch.setenv("ECHOING_API_KEY", key)

    def echoes(input: Any, tools: Any, tool_choice: Any, config: Any) -> Any:
        return say(f"You sent {key}.")

    log = play(task("ktdfin", mode="memory-only", days=1), echoes, tmp_path)
    told = log.model_dump_json()
    at = told.find(key)
    assert at < 0, told[at - 600 : at]
    assert "[secret removed]" in told


TASK = "d-sma-cross-long"


def silent_coder(input: Any, tools: Any, tool_choice: Any, config: Any) -> Any:
    messages = tuple(Message(role=message.role, text=message.text) for message in input)
    turns = sum(message.role == "assistant" for message in messages)
    coder = scripted_models.get("coder-silent")()
    return say(coder.answer(AskModel(purpose="write", messages=messages, attempt=turns + 1)).text)


@pytest.mark.slow
def test_no_code_is_a_zero_at_every_stage(tmp_path):
    log = play(task("quantcode", setting="agentic", turns=2, tasks=TASK), silent_coder, tmp_path)
    assert log.status == "success", log.error
    (sample,) = log.samples or []
    score = (sample.scores or {})["stage_scorer"]
    assert score.value == {
        "compile": 0,
        "backtest": 0,
        "trade": 0,
        "lookahead": 0,
        "solved": 0,
        "turns": 2,
    }
    assert score.metadata is not None and score.metadata["failure_class"] == "no-code"


@pytest.mark.slow
@pytest.mark.skipif(
    refusal(ask_kernel()) is not None, reason="this machine cannot hold untrusted code"
)
def test_a_right_program_is_solved_and_every_turn_is_in_the_store(tmp_path):
    built = task("quantcode", tasks=TASK, wording="conversational", judge="scripted/code-judge")
    log = play(built, lambda *asked: say(f"```python\n{load_task(TASK).reference}\n```"), tmp_path)
    assert log.status == "success", log.error
    (sample,) = log.samples or []
    score = (sample.scores or {})["stage_scorer"]
    assert (
        isinstance(score.value, dict) and score.value["solved"] == 1.0 == score.value["lookahead"]
    )
    outcome = sample.store["tradeassay:outcome"]
    assert (
        outcome["wording"] == "conversational"
        and "class SmaCrossLong" in outcome["turns"][0]["code"]
    )
    assert outcome["turns"][0]["evaluation"]["judge_language"]["judge"] == "scripted/code-judge"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"setting": "agentc"}, "agentc"),
        ({"tasks": "d-sma-cros"}, "did you mean d-sma-cross-long"),
        ({"difficulty": "hard", "timeframe": "1m", "family": "calendar"}, "no task matches"),
        ({"decides": "both"}, "no judge is named"),
        ({"decides": ""}, "task settings are not valid"),
        ({"wording": ""}, "task settings are not valid"),
    ],
)
def test_bad_arguments(given, said):
    with pytest.raises(UserError, match=said):
        task("quantcode", **given)


@pytest.mark.slow
def test_a_strategy_is_built_through_inspect(tmp_path):
    built = task(
        "systrade",
        strategies="bollinger",
        iterations=1,
        reviewers="scripted/builder-gold",
        secret="ab" * 16,
    )
    reference = load_reference("bollinger")
    text = f"```json\n{reference.card}\n```\n\n```python\n{reference.source}\n```"
    log = play(built, lambda *asked: say(text), tmp_path)
    assert log.status == "success", log.error
    (sample,) = log.samples or []
    score = (sample.scores or {})["card_scorer"]
    assert (
        isinstance(score.value, dict) and score.value["valid"] == 1.0 and score.value["D1"] == 10.0
    )
    review = sample.store["tradeassay:outcome"]["iterations"][0]["reviews"][0]
    assert review["reviewer"] == "scripted/builder-gold"
