"""The scripted coders: what they hand in, and that every way to cheat is found."""

import msgspec
import pytest

from tradeassay.benchmarks.quantcode import load_task
from tradeassay.benchmarks.quantcode.check import check_program
from tradeassay.benchmarks.quantcode.dialogue import QuantCodeSettings, play
from tradeassay.code.extraction import extract
from tradeassay.code.program_source import check_compiles
from tradeassay.code.running import open_code_executor
from tradeassay.core.dialogue import AskModel, Message
from tradeassay.llm import scripted_models
from tradeassay.llm.scripted import coders
from tradeassay.sandbox import ask_kernel, refusal

WRITTEN = coders._PROGRAMS
SMA_CROSS, SMA_FRAME = WRITTEN["sma backtrader"], WRITTEN["sma frame"]
BROKEN = tuple(WRITTEN[f"{name} backtrader"] for name in coders.BROKEN)
CHEATS = {kind: [WRITTEN[f"{name} {kind}"] for name in names] for kind, names in coders.CHEATS.items()}

TASK = "d-sma-cross-long"


def ask(name: str, framework: str = "backtrader", attempt: int = 1) -> str:
    settings = msgspec.convert({"framework": framework}, QuantCodeSettings)
    request = next(play(load_task(TASK), settings))
    assert isinstance(request, AskModel)
    return scripted_models.get(name)().answer(msgspec.structs.replace(request, attempt=attempt)).text


def test_the_template_fits_its_framework() -> None:
    assert extract(ask("coder-sma")).code == SMA_CROSS
    assert extract(ask("coder-sma", "frame")).code == SMA_FRAME
    assert check_compiles(SMA_CROSS).passed and check_compiles(SMA_FRAME, "frame").passed


def test_the_mending_one_gets_better_and_the_silent_one_loops() -> None:
    answers = [extract(ask("coder-mends", attempt=n)).code for n in (1, 2, 3)]
    assert tuple(answers) == BROKEN
    assert extract(ask("coder-silent")).missing == "loop"
    assert extract(ask("coder-cheat")).code in CHEATS["backtrader"]
    assert extract(ask("coder-cheat", "frame")).code in CHEATS["frame"]


@pytest.mark.parametrize("name", ["coder-sma", "coder-gold", "coder-mends", "coder-silent", "coder-cheat", "away"])
def test_strange_questions_break_nobody(name: str) -> None:
    for text in ("", "Hello.", '```json\n{"kind": "quantcode.task"}\n```', '```json\n{"kind": "other"}\n```'):
        request = AskModel(purpose="any", messages=(Message(role="user", text=text),))
        model = scripted_models.get(name)()
        assert model.answer(request) == model.answer(request)


@pytest.mark.slow
@pytest.mark.skipif(refusal(ask_kernel()) is not None, reason="this machine cannot hold untrusted code")
def test_no_way_to_cheat_scores() -> None:
    """What is printed is not believed, whoever looks ahead finds nothing in a fed run, the rest is named."""
    with open_code_executor(1) as executor:
        found = [check_program(source, TASK, executor=executor) for source in CHEATS["backtrader"]]
        frame = [check_program(source, TASK, framework="frame", executor=executor) for source in CHEATS["frame"]]
    named = [{trick.name for trick in one.tricks} for one in found]
    assert "patched-framework" in named[1] and "secrets-in-error" in named[3] and not named[0]
    assert [one.outcome for one in found] == ["judge", "trick", "trade", "trick"]
    assert [one.outcome for one in frame] == ["lookahead"] and all(one.score == 0.0 for one in [*found, *frame])
