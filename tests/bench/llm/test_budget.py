"""The cap holds, whoever asks and however many."""

import asyncio
from datetime import date

import pytest
from hypothesis import given, settings, strategies as st
from llm_asking import PLAIN, SUBMIT, Listed, place

from tradeassay.core.errors import UserError
from tradeassay_bench.core.dialogue import AskModel, ModelReply, Usage
from tradeassay_bench.llm import Budget, ModelParams, Price, QuestionPlace
from tradeassay_bench.llm.budget import BudgetedProvider, most_request
from tradeassay_bench.llm.model import Attempt

PRICE = Price(input=1.0, output=2.0, source="a test", as_of=date(2025, 1, 1), cache_write=1.25)


def costing(*usd: float | None) -> list[Attempt]:
    return [Attempt(reply=ModelReply(text="ok", usage=Usage(usd=one))) for one in usd]


async def test_reserve_settle_refuse():
    budget = Budget(1.0)
    first = await budget.reserve(0.6)
    assert first is not None and budget.left_usd == pytest.approx(0.4)
    waiting = asyncio.create_task(budget.reserve(0.6))
    await asyncio.sleep(0)
    assert not waiting.done()  # the first may still give money back
    budget.settle(first, 0.1)
    second = await waiting
    assert second is not None and budget.spent_usd == pytest.approx(0.1)
    budget.settle(second, 0.6)
    assert await budget.reserve(0.6) is None  # nothing is under way: no is no
    held = await budget.reserve(0.3)
    tasks = [asyncio.create_task(budget.reserve(0.5)) for _ in range(3)]
    await asyncio.sleep(0)
    budget.settle(held, 0.0)  # the last one settles, and those who wait cannot be paid
    assert await asyncio.gather(*tasks) == [None, None, None] and budget.reserved_usd == 0.0
    small = await budget.reserve(0.3)
    budget.settle(small, None)
    assert budget.spent_usd == pytest.approx(1.0) and budget.uncertain_usd == pytest.approx(0.3)
    with pytest.raises(ValueError, match="once"):
        budget.settle(small, 0.0)


async def test_first_come_first_served_and_cancelled_waiters_leave_no_trace():
    budget = Budget(1.0)
    first = await budget.reserve(0.8)
    big = asyncio.create_task(budget.reserve(0.9))
    small = asyncio.create_task(budget.reserve(0.1))
    await asyncio.sleep(0)
    assert not small.done()  # it would fit, but the big one came first
    big.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    held = await small
    late = asyncio.create_task(budget.reserve(0.5))
    await asyncio.sleep(0)
    budget.settle(first, 0.1)  # grants the waiting call ...
    late.cancel()  # ... which is cancelled before it hears of it
    await asyncio.gather(late, return_exceptions=True)
    assert budget.reserved_usd == pytest.approx(0.1)
    budget.settle(held, 0.0)
    assert budget.reserved_usd == 0.0


def test_bad_amounts():
    for amount in (0.0, float("nan")):
        with pytest.raises(UserError):
            Budget(amount)
    with pytest.raises(ValueError, match="reserve"):
        asyncio.run(Budget(1.0).reserve(-1.0))


@settings(max_examples=60, deadline=None)
@given(
    cap=st.floats(0.5, 20.0),
    calls=st.lists(
        st.tuples(st.floats(0.0, 3.0), st.floats(0.0, 1.0), st.booleans()), min_size=1, max_size=30
    ),
)
def test_concurrent_callers_never_overshoot(cap, calls):
    async def main() -> None:
        budget = Budget(cap)

        async def one(at: int, worst: float, share: float, lost: bool) -> bool:
            for _ in range(at % 3):
                await asyncio.sleep(0)
            held = await budget.reserve(worst)
            if held is None:
                return False
            assert budget.spent_usd + budget.reserved_usd <= cap + 1e-6
            for _ in range(at % 5):
                await asyncio.sleep(0)
            budget.settle(held, None if lost else worst * share)
            assert budget.spent_usd <= cap + 1e-6
            return True

        done = await asyncio.gather(*(one(at, *call) for at, call in enumerate(calls)))
        assert budget.reserved_usd == 0.0
        if all(worst <= cap / len(calls) for worst, _, _ in calls):
            assert all(done)  # what fits is never refused

    asyncio.run(main())


async def test_a_provider_is_paid_by_what_it_used():
    worst = PRICE.worst_usd(most_request(SUBMIT), 100)
    assert worst == pytest.approx((most_request(SUBMIT) * 1.25 + 100 * 2.0) / 1e6)

    budget = Budget(worst * 2.5)
    costly = Listed(*costing(worst / 2, None, worst / 4, 0.0))
    paid = BudgetedProvider(costly, ModelParams(max_tokens=100), budget, PRICE)
    assert (await paid.attempt(SUBMIT, place())).reply.text == "ok"
    assert budget.spent_usd == pytest.approx(worst / 2)
    await paid.attempt(SUBMIT, place())  # lost: counted in full
    assert budget.spent_usd == pytest.approx(worst * 1.5) and budget.uncertain_usd == pytest.approx(
        worst
    )
    await paid.attempt(SUBMIT, place())
    refused = (await paid.attempt(SUBMIT, place())).reply
    assert (
        refused.error_kind == "over_budget"
        and refused.usage.usd == 0.0
        and "dollars" in (refused.error or "")
    )
    assert len(costly.attempts) == 1


async def test_many_concurrent_calls_stay_under_the_cap():
    worst = PRICE.worst_usd(most_request(PLAIN), 100)

    class Slow(Listed):
        async def attempt(self, request: AskModel, place: QuestionPlace) -> Attempt:
            for _ in range(3):
                await asyncio.sleep(0)
            return await super().attempt(request, place)

    budget = Budget(worst * 5)
    paid = BudgetedProvider(
        Slow(*costing(*[worst * 0.9] * 100)), ModelParams(max_tokens=100), budget, PRICE
    )
    attempts = await asyncio.gather(*(paid.attempt(PLAIN, place(at)) for at in range(50)))
    # 0.9 each: after four answers 1.4 are left, which pays for one more; then 0.5 are too little.
    assert sum(attempt.reply.error is None for attempt in attempts) == 5
    assert budget.spent_usd <= worst * 5


async def test_a_bug_settles_too():
    budget = Budget(1.0)
    with pytest.raises(IndexError):
        await BudgetedProvider(Listed(), ModelParams(), budget, PRICE).attempt(PLAIN, place())
    assert budget.reserved_usd == 0.0 and budget.uncertain_usd > 0


def test_an_unknown_price_cannot_be_capped_but_can_be_counted():
    with pytest.raises(UserError, match="price of test/listed is unknown"):
        BudgetedProvider(Listed(), ModelParams(), Budget(1.0), None)

    budget = Budget()
    asyncio.run(
        BudgetedProvider(Listed(*costing(None)), ModelParams(), budget, None).attempt(
            PLAIN, place()
        )
    )
    assert budget.unpriced_calls == 1 and budget.spent_usd == 0.0 and budget.left_usd is None
