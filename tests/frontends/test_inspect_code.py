"""QuantCode through Inspect's own front door, with a mock model that answers as the scripted coders do."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("inspect_ai")

from inspect_ai import eval as inspect_eval
from inspect_ai.log import EvalLog
from inspect_ai.model import ModelOutput, ModelUsage, get_model

from tradeassay.benchmarks.quantcode import load_task
from tradeassay.benchmarks.systrade import load_reference
from tradeassay.core.dialogue import AskModel, Message
from tradeassay.core.errors import UserError
from tradeassay.frontends import inspect_tasks
from tradeassay.frontends.inspect_tasks import quantcode, systrade
from tradeassay.llm import scripted_models
from tradeassay.sandbox import ask_kernel, refusal

TASK = "d-sma-cross-long"


@pytest.fixture(scope="module", autouse=True)
def quiet() -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("INSPECT_DISPLAY", "none")
        yield
    inspect_tasks._SANDBOX.close()


def coder(name: str) -> Any:
    model = scripted_models.get(name)()

    def answers(input: Any, tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
        messages = tuple(Message(role=message.role, text=message.text) for message in input)
        turns = sum(message.role == "assistant" for message in messages)
        reply = model.answer(AskModel(purpose="write", messages=messages, attempt=turns + 1))
        output = ModelOutput.from_content("mockllm/model", reply.text)
        output.usage = ModelUsage(input_tokens=100, output_tokens=10, total_tokens=110)
        return output

    return answers


def saying(text: str) -> Any:
    """Answer every question with the same text, and say how many tokens it had."""

    def answers(input: Any, tools: Any, tool_choice: Any, config: Any) -> ModelOutput:
        output = ModelOutput.from_content("mockllm/model", text)
        output.usage = ModelUsage(input_tokens=100, output_tokens=10, total_tokens=110)
        return output

    return answers


def play(task: Any, answers: Any, tmp_path: Path) -> EvalLog:
    model = get_model("mockllm/model", custom_outputs=answers, memoize=False)
    (log,) = inspect_eval(task, model=model, log_dir=str(tmp_path), log_level="error")
    assert log.status == "success", log.error
    return log


@pytest.mark.slow
def test_no_code_is_a_zero_at_every_stage(tmp_path: Path) -> None:
    log = play(quantcode(setting="agentic", turns=2, tasks=TASK), coder("coder-silent"), tmp_path)
    (sample,) = log.samples or []
    score = (sample.scores or {})["stage_scorer"]
    assert score.value == {"compile": 0, "backtest": 0, "trade": 0, "lookahead": 0, "solved": 0, "turns": 2}
    assert score.metadata is not None and score.metadata["failure_class"] == "no-code"


@pytest.mark.slow
@pytest.mark.skipif(refusal(ask_kernel()) is not None, reason="this machine cannot hold untrusted code")
def test_a_right_program_is_solved_and_every_turn_is_in_the_store(tmp_path: Path) -> None:
    task = quantcode(tasks=TASK, wording="conversational", judge="scripted/code-judge")
    log = play(task, saying(f"```python\n{load_task(TASK).reference}\n```"), tmp_path)
    (sample,) = log.samples or []
    score = (sample.scores or {})["stage_scorer"]
    assert isinstance(score.value, dict) and score.value["solved"] == 1.0 == score.value["lookahead"]
    outcome = sample.store[inspect_tasks.OUTCOME]
    assert outcome["wording"] == "conversational" and "class SmaCrossLong" in outcome["turns"][0]["code"]
    assert outcome["turns"][0]["evaluation"]["judge_language"]["judge"] == "scripted/code-judge"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"setting": "agentc"}, "agentc"),
        ({"tasks": "d-sma-cros"}, "did you mean d-sma-cross-long"),
        ({"difficulty": "hard", "timeframe": "1m", "family": "calendar"}, "no task is left"),
        ({"decides": "both"}, "no judge is named"),
    ],
)
def test_bad_arguments(given: dict[str, str], said: str) -> None:
    with pytest.raises(UserError, match=said):
        quantcode(**given)  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_strategy_is_built_through_inspect(tmp_path: Path) -> None:
    task = systrade(strategies="bollinger", iterations=1, reviewers="scripted/builder-gold", secret="ab" * 16)
    reference = load_reference("bollinger")
    text = f"```json\n{reference.card}\n```\n\n```python\n{reference.source}\n```"
    log = play(task, saying(text), tmp_path)
    (sample,) = log.samples or []
    score = (sample.scores or {})["card_scorer"]
    assert isinstance(score.value, dict) and score.value["valid"] == 1.0 and score.value["D1"] == 10.0
    review = sample.store[inspect_tasks.OUTCOME]["iterations"][0]["reviews"][0]
    assert review["reviewer"] == "scripted/builder-gold"


def test_a_strategy_that_is_not_there() -> None:
    with pytest.raises(UserError, match="did you mean bollinger"):
        systrade(strategies="bolinger")
