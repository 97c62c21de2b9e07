"""Recorded answers: same bytes out, nothing asked twice, and nothing made up."""

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings, strategies as st
from llm_asking import OPENING, PLAIN, SUBMIT, TOOLS, place

from tradeassay.core.errors import UserError
from tradeassay_bench.core.dialogue import AskModel, Message, ModelReply, ToolCall, Usage
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.llm import (
    ModelParams,
    QuestionPlace,
    RecordingMismatch,
    RecordingStore,
    answer_key,
)
from tradeassay_bench.llm.recording import (
    AnswerLine,
    RecordingModel,
    ReplayingModel,
    key_of,
    recorded_question,
)

NAME = "test/model"
PARAMS = ModelParams()
PINNED = "e1e21c029bfbbf363285ae167c7a0e23794e9443b1e0ae751219285c898c2697"


class Counting:
    """A model that numbers its answers, or fails as it is told to."""

    name = NAME

    def __init__(self, *replies: ModelReply) -> None:
        self.replies = list(replies)
        self.asked = 0

    async def ask(self, request: AskModel, place: QuestionPlace) -> ModelReply:
        self.asked += 1
        number = self.asked
        await asyncio.sleep(0)
        if self.replies:
            return self.replies.pop(0)
        calls = (ToolCall(id="c", name="t", arguments="{é"),)
        return ModelReply(
            text=f"answer {number}", calls=calls, usage=Usage(input_tokens=3, usd=0.25)
        )


async def record(
    folder: Path, model: Counting, *requests: tuple[AskModel, QuestionPlace]
) -> list[ModelReply]:
    recording = RecordingModel(model, PARAMS, RecordingStore(folder))
    return [await recording.ask(request, where) for request, where in requests]


async def replay(
    folder: Path,
    *requests: tuple[AskModel, QuestionPlace],
    params: ModelParams = PARAMS,
    name: str = NAME,
) -> list[ModelReply]:
    model = ReplayingModel(name, params, RecordingStore(folder))
    return [await model.ask(request, where) for request, where in requests]


async def test_record_resume_replay(tmp_path):
    model = Counting()
    questions = [
        (PLAIN, place(0)),
        (SUBMIT, place(1)),
        (PLAIN, place(0, step=1)),
        (PLAIN, place(0, sample=1)),
    ]
    first = await record(tmp_path, model, *questions[:2])
    assert model.asked == 2
    again = await record(tmp_path, model, *questions)  # a new store: what a resumed run sees
    assert model.asked == 4 and again[:2] == first
    assert await replay(tmp_path, *questions) == again
    before = (tmp_path / "episode-1.jsonl").read_bytes()
    await record(tmp_path, model, *questions)
    assert (tmp_path / "episode-1.jsonl").read_bytes() == before and model.asked == 4


async def test_equal_questions_of_two_samples_steps_or_episodes_are_two_questions(tmp_path):
    model = Counting()
    places = [place(), place(sample=1), place(step=1), place(index=1), place(episode="episode-2")]
    texts = [
        reply.text for reply in await record(tmp_path, model, *((PLAIN, where) for where in places))
    ]
    assert len(set(texts)) == 5
    assert RecordingStore(tmp_path).episodes() == ("episode-1", "episode-2")


async def test_messages_and_tools_are_written_once(tmp_path):
    long = Message(role="user", text="x" * 10_000)
    questions = []
    messages: tuple[Message, ...] = (*OPENING, long)
    for at in range(10):
        questions.append((AskModel(purpose="research", messages=messages, tools=TOOLS), place(at)))
        messages = (*messages, Message(role="assistant", text=f"said {at}"))
    await record(tmp_path, Counting(), *questions)
    path = tmp_path / "episode-1.jsonl"
    assert path.stat().st_size < 30_000
    kinds = [json.loads(line)["type"] for line in path.read_text().splitlines()]
    assert (
        kinds.count("tools") == 1
        and kinds.count("message") == 3 + 9
        and kinds.count("answer") == 10
    )
    stored = RecordingStore(tmp_path).recorded("episode-1")
    assert stored[-1].messages == questions[-1][0].messages and stored[-1].tools == TOOLS


async def test_failures_are_replayed_but_asked_again_on_resume(tmp_path):
    poor = ModelReply(stop="error", error="no money", error_kind="over_budget")
    no = ModelReply(stop="filtered", error="no", error_kind="refused")
    model = Counting(poor, no)
    questions = [(PLAIN, place(0)), (PLAIN, place(1))]
    assert await record(tmp_path, model, *questions) == [poor, no]
    assert await replay(tmp_path, *questions) == [poor, no]
    again = await record(tmp_path, model, *questions)
    assert again[0].text == "answer 3" and again[1] == no and model.asked == 3
    assert await replay(tmp_path, *questions) == again


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (
            {"messages": (OPENING[0], Message(role="user", text="Decide now."))},
            "message 1 (user) differs: at character 6 it has 'Decide now.', recorded was 'Decide.'",
        ),
        (
            {"messages": (Message(role="user", text="You trade."), OPENING[1])},
            "message 0 (user) differs: recorded was a system message",
        ),
        (
            {"messages": (*OPENING, Message(role="user", text="And hurry."))},
            "message 2 (user) is new: 'And hurry.'",
        ),
        ({"messages": OPENING[:1]}, "message 1 (user) is missing: 'Decide.'"),
        ({"tools": TOOLS[:2]}, "the tools differ: there are 2, recorded were 3"),
        (
            {"tools": (TOOLS[1], TOOLS[0], TOOLS[2])},
            "'screen_candidates' replaces 'portfolio_state'",
        ),
        (
            {"tools": (msgspec.structs.replace(TOOLS[0], description="?"), *TOOLS[1:])},
            "the description of 'portfolio_state' changed",
        ),
        ({"must_call": None}, "must_call is None, recorded was 'submit_action'"),
        ({"attempt": 2}, "attempt is 2, recorded was 1"),
        ({"answer_schema": "{}"}, "answer_schema is '{}', recorded was None"),
        ({"purpose": "research"}, "purpose is 'research', recorded was 'submit'"),
    ],
)
async def test_a_changed_question_fails_closed_and_says_where(tmp_path, change, complaint):
    await record(tmp_path, Counting(), (SUBMIT, place(3, step=7)))
    with pytest.raises(RecordingMismatch) as caught:
        await replay(tmp_path, (msgspec.structs.replace(SUBMIT, **change), place(3, step=7)))
    assert complaint in str(caught.value)
    assert "episode episode-1, step 7, sample 0, question 3" in str(caught.value)


async def test_other_parameters_another_model_and_nothing_at_all(tmp_path):
    await record(tmp_path, Counting(), (PLAIN, place()))
    with pytest.raises(RecordingMismatch, match="params is"):
        await replay(tmp_path, (PLAIN, place()), params=ModelParams(temperature=1.0))
    with pytest.raises(RecordingMismatch, match="model is 'a/b', recorded was 'test/model'"):
        await replay(tmp_path, (PLAIN, place()), name="a/b")
    with pytest.raises(
        RecordingMismatch, match="nothing was recorded for episode episode-1, step 1"
    ):
        await replay(tmp_path, (PLAIN, place(step=1)))
    with pytest.raises(RecordingMismatch, match="nothing was recorded"):
        await replay(tmp_path / "absent", (PLAIN, place()))
    patient = ModelParams(timeout_s=1.0)  # a time limit changes no answer
    assert await replay(tmp_path, (PLAIN, place()), params=patient)


async def test_calls_that_differ_are_told_apart(tmp_path):
    def conversation(arguments: str, call_id: str = "1") -> AskModel:
        call = ToolCall(id=call_id, name="t", arguments=arguments)
        said = Message(role="assistant", text="", calls=(call,))
        return AskModel(
            purpose="x", messages=(*OPENING, said, Message(role="tool", text="{}", call_id=call_id))
        )

    await record(tmp_path, Counting(), (conversation('{"a": 1}'), place()))
    where = r"message 2 .assistant. differs: in the arguments of t, at character 6"
    with pytest.raises(RecordingMismatch, match=where):
        await replay(tmp_path, (conversation('{"a": 2}'), place()))
    with pytest.raises(RecordingMismatch, match="ids or the positions of its calls"):
        await replay(tmp_path, (conversation('{"a": 1}', "2"), place()))


@settings(max_examples=40, deadline=None)
@given(cut=st.integers(min_value=1, max_value=400))
def test_a_torn_end_loses_at_most_what_it_tore(tmp_path_factory, cut):
    folder = tmp_path_factory.mktemp("torn")
    model = Counting()
    questions = [(PLAIN, place(0)), (SUBMIT, place(1)), (PLAIN, place(2))]
    whole = asyncio.run(record(folder, model, *questions))
    path = folder / "episode-1.jsonl"
    raw = path.read_bytes()
    path.write_bytes(raw[:-cut])
    assert asyncio.run(replay(folder, questions[0])) == whole[:1]
    kept = len(RecordingStore(folder).recorded("episode-1"))
    resumed = asyncio.run(record(folder, model, *questions))
    assert resumed[:kept] == whole[:kept] and model.asked == 3 + (3 - kept)
    assert asyncio.run(replay(folder, *questions)) == resumed
    assert path.read_bytes().endswith(b"\n")


async def test_damage_in_the_middle_is_refused(tmp_path):
    await record(tmp_path, Counting(), (PLAIN, place(0)), (PLAIN, place(1)))
    path = tmp_path / "episode-1.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:2], b"{}\n", *lines[2:]]))
    with pytest.raises(RunError, match=r"line 3 of .* is damaged"):
        await replay(tmp_path, (PLAIN, place(0)))
    path.write_bytes(b"".join([lines[0], *lines[3:]]))
    with pytest.raises(RunError, match="not in the file"):
        await replay(tmp_path, (PLAIN, place(0)))
    path.write_bytes(b'{"type":"cassette","format":99}\n')
    with pytest.raises(RunError, match="not a recording of format 1"):
        await replay(tmp_path, (PLAIN, place(0)))


def test_threads_and_stores_may_write_at_once(tmp_path):
    shared = RecordingStore(tmp_path)
    other = RecordingStore(tmp_path)

    def write(store: RecordingStore, start: int) -> None:
        for at in range(start, start + 50):
            request = AskModel(
                purpose="p", messages=(*OPENING, Message(role="user", text=f"{at} " * 200))
            )
            question = recorded_question(NAME, PARAMS, request, place(at))
            answer = AnswerLine(
                key=key_of(question), asked=question, reply=ModelReply(text=str(at))
            )
            store.record("episode-1", request, answer)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(write, (shared, shared, other, other), (0, 100, 200, 300)))
    found = {
        record.asked.index: record for record in RecordingStore(tmp_path).recorded("episode-1")
    }
    assert sorted(found) == [*range(50), *range(100, 150), *range(200, 250), *range(300, 350)]
    assert all(
        record.reply.text == str(at) and str(at) in record.messages[2].text
        for at, record in found.items()
    )


async def test_concurrent_tasks_share_a_store(tmp_path):
    async def main() -> list[ModelReply]:
        recording = RecordingModel(Counting(), PARAMS, RecordingStore(tmp_path, durable=True))
        asks = [recording.ask(PLAIN, place(at, episode=f"e{at % 4}")) for at in range(40)]
        return list(await asyncio.gather(*asks))

    first = await main()
    assert len({reply.text for reply in first}) == 40
    assert await main() == first


async def test_what_was_spent_is_known(tmp_path):
    assert RecordingStore(tmp_path).spent_usd() == 0.0
    await record(tmp_path, Counting(), (PLAIN, place(0)), (PLAIN, place(1)))
    assert RecordingStore(tmp_path).spent_usd() == 0.5


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "../x", "a\0b", "é"])
def test_only_file_names_name_recordings(tmp_path, name):
    with pytest.raises(UserError):
        RecordingStore(tmp_path).path(name)


def test_the_key_is_stable_across_versions_of_this_code():
    """If this changes, old recordings no longer replay: change FORMAT too, and say so in the
    changelog.
    """
    assert answer_key(NAME, PARAMS, SUBMIT, place()) == PINNED


def test_closing_and_going_on(tmp_path):
    store = RecordingStore(tmp_path)
    question = recorded_question(NAME, PARAMS, PLAIN, place())
    for number in "12":
        store.record(
            "e", PLAIN, AnswerLine(key=number, asked=question, reply=ModelReply(text=number))
        )
        store.close()
    assert [record.reply.text for record in store.recorded("e")] == ["1", "2"]
