"""Tools for models that have none."""

import asyncio

from llm_asking import ACTION, GOOD, OPENING, PLAIN, RESEARCH, SUBMIT, TOOLS, place

from tradeassay.core.dialogue import AskModel, Message, ModelReply, ToolCall
from tradeassay.llm import QuestionPlace
from tradeassay.llm.model import Attempt
from tradeassay.llm.text_tools import TextToolsProvider, tools_into_text


class Echo:
    name = "test/echo"

    def __init__(self, reply: ModelReply) -> None:
        self.reply = reply
        self.asked: list[AskModel] = []

    async def attempt(self, request: AskModel, place: QuestionPlace) -> Attempt:
        self.asked.append(request)
        return Attempt(reply=self.reply)


def ask(request: AskModel, reply: ModelReply) -> tuple[ModelReply, AskModel]:
    echo = Echo(reply)
    attempt = asyncio.run(TextToolsProvider(echo).attempt(request, place()))
    return attempt.reply, echo.asked[0]


def test_a_forced_call_becomes_an_answer_that_must_fit_its_schema():
    reply, sent = ask(SUBMIT, ModelReply(text=GOOD))
    assert sent.tools == () and sent.must_call is None and sent.answer_schema == ACTION.schema
    assert "submit_action" in sent.messages[0].text and "portfolio_state" not in sent.messages[0].text
    assert sent.messages[0].text.startswith("You trade.") and sent.messages[1:] == OPENING[1:]
    (call,) = reply.calls
    assert (call.name, call.arguments, call.found_in) == ("submit_action", GOOD, "json")


def test_free_calls_are_described_and_found():
    text = 'Let me look.\n```json\n{"name": "portfolio_state", "arguments": {}}\n```'
    reply, sent = ask(RESEARCH, ModelReply(text=text))
    assert sent.answer_schema is None and all(tool.name in sent.messages[0].text for tool in TOOLS)
    (call,) = reply.calls
    assert (call.id, call.name, call.found_in) == ("text-2-0", "portfolio_state", "fenced")
    assert reply.text == text


def test_calls_and_results_of_the_past_are_told_in_words():
    call = ToolCall(id="1", name="portfolio_state", arguments="{}")
    found = ToolCall(id="2", name="portfolio_state", arguments="{}", found_in="fenced")
    messages = (
        *OPENING[1:],
        Message(role="assistant", text="", calls=(call,)),
        Message(role="tool", text='{"cash": 1}', call_id="1"),
        Message(role="assistant", text="```json\n...\n```", calls=(found,)),
        Message(role="tool", text='{"cash": 2}', call_id="2"),
    )
    sent = tools_into_text(AskModel(purpose="research", messages=messages, tools=TOOLS))
    assert [message.role for message in sent.messages] == "system user assistant user assistant user".split()
    assert sent.messages[2].text == '```json\n{"name": "portfolio_state", "arguments": {}}\n```'
    assert sent.messages[3].text == 'Result of portfolio_state:\n{"cash": 1}'
    assert sent.messages[4].text == "```json\n...\n```"


def test_without_tools_nothing_changes_and_errors_pass():
    assert tools_into_text(PLAIN) == PLAIN
    failed = ModelReply(stop="error", error="x", error_kind="timeout")
    assert ask(SUBMIT, failed)[0] == failed
