"""Connections, waiting, and trying again; with sleeps that are written down instead of slept."""

import asyncio

import pytest
from hypothesis import given, strategies as st
from llm_asking import PLAIN, SUBMIT, Listed, place
from llm_servers import StandIn, chat, openai_error

from tradeassay.core.errors import UserError
from tradeassay_bench.core.dialogue import AskModel, ModelReply, Usage
from tradeassay_bench.core.errors import RunError
from tradeassay_bench.llm import Access, Budget, ModelParams, QuestionPlace, RetryPolicy, open_model
from tradeassay_bench.llm.model import AskingModel, Attempt, failed_reply

NAME = "openai-api/standin/m"


class Slept:
    """Sleeps that take no time."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        await asyncio.sleep(0)


BUSY = Attempt(reply=failed_reply("rate_limited", "slow down"), again=True)
GOOD = Attempt(reply=ModelReply(text="ok", usage=Usage(usd=0.0)))


async def ask(attempts: list[Attempt], policy: RetryPolicy) -> tuple[ModelReply, list[float]]:
    slept = Slept()
    model = AskingModel(Listed(*attempts), connections=1, retry=policy, sleep=slept)
    return await model.ask(PLAIN, place()), slept.seconds


async def test_waits_double_and_end():
    policy = RetryPolicy(attempts=5, first_s=1.0, longest_s=4.0)
    reply, slept = await ask([BUSY] * 5, policy)
    assert reply.error_kind == "rate_limited" and len(slept) == 4
    for wait, full in zip(slept, (1.0, 2.0, 4.0, 4.0), strict=True):
        assert full / 2 <= wait <= full
    reply, slept = await ask([BUSY, BUSY, GOOD], policy)
    assert reply.text == "ok" and len(slept) == 2


async def test_latency_is_that_of_the_attempt_that_was_answered():
    timed = Attempt(
        reply=GOOD.reply, seconds=0.25
    )  # counted by the provider, from the first byte that it sent
    slow = Attempt(reply=BUSY.reply, again=True, seconds=9.0)

    async def took(*attempts: Attempt) -> float:
        model = AskingModel(
            Listed(*attempts), connections=1, retry=RetryPolicy(attempts=5), sleep=Slept()
        )
        await model.ask(PLAIN, place())
        seconds = model.seconds_of(place())
        assert model.seconds_of(place()) == 0.0  # it is asked for once
        return seconds

    assert await took(slow, slow, timed) == 0.25
    assert 0.0 < await took(GOOD) < 5.0  # a provider that does not count is timed from outside


async def test_a_providers_wish_is_honoured_within_reason():
    policy = RetryPolicy(first_s=1.0, patience_s=60.0)
    wish = Attempt(reply=BUSY.reply, again=True, wait_s=30.0)
    reply, slept = await ask([wish, GOOD], policy)
    assert slept == [30.0] and reply.text == "ok"
    reply, slept = await ask([Attempt(reply=BUSY.reply, again=True, wait_s=61.0), GOOD], policy)
    assert slept == [] and reply.error_kind == "rate_limited"
    _, slept = await ask([Attempt(reply=BUSY.reply, again=True, wait_s=0.0), GOOD], policy)
    assert 0.5 <= slept[0] <= 1.0  # "at once" is no reason to hurry


@given(st.integers(1, 20), st.integers(0, 10), st.integers(0, 10))
def test_waits_depend_on_the_place_alone(failed, step, index):
    policy = RetryPolicy(attempts=100)
    where = place(index, step=step)
    assert policy.wait(failed, None, where) == policy.wait(failed, None, where)
    wait = policy.wait(failed, None, where)
    assert wait is not None and 0.0 < wait <= policy.longest_s


async def test_connections_are_shared():
    under_way, most = [], []

    class Slow(Listed):
        async def attempt(self, request: AskModel, place: QuestionPlace) -> Attempt:
            under_way.append(place)
            most.append(len(under_way))
            await asyncio.sleep(0)
            under_way.remove(place)
            return await super().attempt(request, place)

    model = AskingModel(Slow(*[GOOD] * 40), connections=3, retry=RetryPolicy())
    await asyncio.gather(*(model.ask(PLAIN, place(at)) for at in range(40)))
    assert max(most) == 3


def test_without_a_connection_nothing_is_asked():
    with pytest.raises(UserError):
        AskingModel(Listed(), connections=0, retry=RetryPolicy())


async def test_over_the_wire_retry_after_and_one_budget_per_attempt():
    """Twice turned away, then answered: three attempts, each with a reservation, one of them
    paid for.
    """

    slept = Slept()
    busy = openai_error(429, "slow down", headers={"retry-after": "9"})
    async with StandIn(busy, openai_error(500, "oops"), chat("ok")) as server:
        budget = Budget(1.0)
        access = Access(base_url=f"{server.url}/v1", sleep=slept)
        params = ModelParams(max_tokens=100)
        async with open_model("openai/gpt-4o", params, budget=budget, access=access) as model:
            reply = await model.ask(PLAIN, place())
    assert reply.text == "ok" and len(server.heard) == 3
    assert slept.seconds[0] == 9.0 and 1.0 <= slept.seconds[1] <= 2.0
    assert budget.spent_usd == pytest.approx(reply.usage.usd) and budget.reserved_usd == 0.0


async def test_over_the_wire_twenty_callers_share_four_connections():
    gate = asyncio.Event()
    said = chat("ok")
    said.gate = gate
    async with StandIn(said) as server:
        async with open_model(
            NAME, connections=4, access=Access(base_url=f"{server.url}/v1")
        ) as model:
            asks = [asyncio.create_task(model.ask(SUBMIT, place(at))) for at in range(20)]
            while server.at_once < 4:
                await asyncio.sleep(0.01)
            for _ in range(20):
                await asyncio.sleep(0)
            assert server.at_once == 4 and len(server.heard) == 4
            gate.set()
            assert {reply.text for reply in await asyncio.gather(*asks)} == {"ok"}
        assert server.most_at_once == 4 and len(server.heard) == 20


async def test_a_cancelled_caller_frees_its_connection():
    gate = asyncio.Event()
    said = chat("ok")
    said.gate = gate
    async with (
        StandIn(said) as server,
        open_model(NAME, connections=1, access=Access(base_url=f"{server.url}/v1")) as model,
    ):
        first = asyncio.create_task(model.ask(PLAIN, place(0)))
        while not server.heard:
            await asyncio.sleep(0.01)
        first.cancel()
        gate.set()
        reply = await model.ask(PLAIN, place(1))
        assert reply.text == "ok" and first.cancelled()


async def test_a_provider_that_has_gone_silent_stops_the_run():
    """Time-outs in a row are counted per episode; an answer, or another kind of failure, starts
    anew.
    """
    late = Attempt(reply=failed_reply("timeout", "no answer", billed=True))
    gone = Attempt(reply=failed_reply("refused", "no"))

    says = [late, late, GOOD, late, late, gone, late, late, late]
    model = AskingModel(Listed(*says), connections=1, retry=RetryPolicy(silences=3), sleep=Slept())
    other = AskingModel(
        Listed(*[late] * 40), connections=1, retry=RetryPolicy(silences=None), sleep=Slept()
    )
    for at in range(8):
        await model.ask(PLAIN, place(at))
    with pytest.raises(RunError, match=r"3 questions in a row.*resume"):
        await model.ask(PLAIN, place(9))
    for at in range(40):
        await other.ask(PLAIN, place(at))
